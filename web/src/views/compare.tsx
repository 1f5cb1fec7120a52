// Compares two runs, or two steps of one: curves, change by holder, and the report of `diff`.
import { computed, signal } from "@preact/signals";
import { ask, files, subject } from "../state/run.ts";
import { oklch } from "../draw/index.ts";
import * as format from "../format.ts";
import { go, part } from "../state/view.ts";
import { Curves } from "./chart.tsx";
import { Flame } from "./flame.tsx";
import { Choice, FrameName, Missing } from "./parts.tsx";
import { SectionView } from "./report.tsx";
import { tree_of } from "./tree.ts";
import type { Tree } from "./tree.ts";

const tab = part("tab");
const search = part("search");
const own = part("file");
const [at_a, at_b] = [part("at_a"), part("at_b")];
/** The file of B: another one, or the same when two moments of one run are compared. */
const other = computed(() => {
  const said = part("other").value;
  if (files.value[said]) return said;
  return files.value.length > 1 ? (own.value === 0 ? 1 : 0) : own.value;
});
const is_one = computed(() => other.value === own.value);
const is_open = computed(() => tab.value === "compare" && !!files.value[own.value]?.devices.length && !!files.value[other.value]?.devices.length);
const is_shown = computed(() => is_open.value && !(is_one.value && at_a.value === at_b.value));
const from_view = (moment: number) => (moment >= 0 ? moment : null);
const asked = ask("compare", () =>
  is_shown.value ? { ...subject(), event: from_view(at_a.value), other: other.value, other_device: from_view(part("other_device").value), other_event: from_view(at_b.value), by: part("hold").value } : null,
);
const other_device = computed(() => (part("other_device").value >= 0 ? part("other_device").value : is_one.value ? part("device").value : 0));
/** The step ends that a side can be set to. */
const steps_of = (query: () => { file: number; device: number } | null, slot: string) => {
  const marks = ask("marks", query, { slot });
  return computed(() => {
    const answer = marks.value.answer;
    if (!answer) return [];
    const ends = ((answer.head.kinds ?? []) as string[]).indexOf("step end");
    const [kind, event, label] = [answer.u32("kind"), answer.u32("event"), answer.u32("label")];
    return Array.from(kind, (value, i) => ({ value, event: event[i], text: String(answer.head.labels[label[i]]) })).filter((mark) => mark.value === ends);
  });
};
const steps_a = steps_of(() => (is_open.value ? { file: own.value, device: part("device").value } : null), "marks of A");
const steps_b = steps_of(() => (is_open.value ? { file: other.value, device: other_device.value } : null), "marks of B");
const curve = (which: () => number, of: () => number, slot: string) =>
  ask("levels", () => {
    const device = files.value[which()]?.devices[of()] ?? files.value[which()]?.devices[0];
    if (!is_open.value || !device) return null;
    return { file: which(), device: Math.max(0, files.value[which()].devices.indexOf(device)), from: 0, to: device.events + 1, columns: 1024, by: "none" };
  }, { slot });
const own_curve = curve(() => own.value, () => part("device").value, "curve of A");
const other_curve = curve(() => other.value, () => other_device.value, "curve of B");

const tree = computed<Tree | null>(() => {
  const answer = asked.value.answer;
  if (!answer?.has("bytes_b")) return null;
  // Width by the larger of both, so that vanished holders keep a box.
  const [a, b] = [answer.f64("bytes_a"), answer.f64("bytes_b")];
  const out = tree_of(answer);
  out.bytes = Array.from(a, (value, i) => Math.max(value, b[i]));
  for (let i = out.bytes.length - 1; i >= 0; --i) out.bytes[i] = Math.max(out.bytes[i], out.children[i].reduce((sum, child) => sum + out.bytes[child], 0));
  for (const list of out.children) list.sort((x, y) => out.bytes[y] - out.bytes[x]);
  return out;
});
const chosen = signal(-1);
const difference = (node: number) => {
  const answer = asked.value.answer;
  return answer ? answer.f64("bytes_b")[node] - answer.f64("bytes_a")[node] : 0;
};

/** Which moment of a side is compared: its peak, or the end of a step. */
function AtMoment({ name, steps, label }: { name: "at_a" | "at_b"; steps: { event: number; text: string }[]; label: string }) {
  const value = part(name).value;
  const known = value < 0 || steps.some((step) => step.event === value);
  return (
    <select aria-label={label} value={String(value)} onChange={(event) => go({ [name]: Number(event.currentTarget.value) })}>
      <option value="-1">at the peak</option>
      {known ? null : <option value={String(value)}>after event {format.count(value)}</option>}
      {steps.map((step) => <option key={step.event} value={String(step.event)}>end of {format.plain(step.text, 40)}</option>)}
    </select>
  );
}

export function Compare() {
  if (!is_open.value) return <div class="empty">No device memory to compare.</div>;
  if (is_one.value && steps_a.value.length < 2 && !is_shown.value)
    return <div class="empty">Only one file is open, and it has fewer than two steps. `gpumemprof view A B` compares two files.</div>;
  const answer = asked.value.answer;
  // The first step makes what stays, like the optimizer's state.
  const steps = steps_a.value;
  const [early, later] = steps.length > 1 ? [steps[steps.length > 2 ? 1 : 0], steps[steps.length - 1]] : [];
  const name = (index: number) => format.plain(files.value[index]?.name ?? "", 60);
  const shown = tree.value;
  const rows = shown ? shown.bytes.map((_, node) => ({ node, change: difference(node) })).filter((row) => row.node > 0 && row.change !== 0) : [];
  // By stack, only the user's own lines where there are any: every frame above them changed as much.
  const has_user = part("hold").value === "stack" && !!shown?.kinds.includes("user");
  rows.sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
  const to = Math.max(1, Number(own_curve.value.answer?.head.to ?? 1), Number(other_curve.value.answer?.head.to ?? 1));
  const points = (one: typeof own_curve) => {
    const levels = one.value.answer;
    const event = levels?.u32("event") ?? new Uint32Array();
    return { x: Array.from(event, (value) => value / to), y: levels?.f64("total") ?? [] };
  };
  const top_lines = rows.filter((row) => !has_user || shown?.kinds[shown.label[row.node]] === "user").slice(0, 40);
  return (
    <div class="panel">
      <div class="strip">
        <span class="field"><b>A</b> {is_one.value ? null : name(own.value)} <AtMoment name="at_a" steps={steps_a.value} label="A at" /></span>
        <span class="field"><b>B</b> {is_one.value ? null : name(other.value)} <AtMoment name="at_b" steps={steps_b.value} label="B at" /></span>
        <button onClick={() => go(is_one.value ? { at_a: at_b.value, at_b: at_a.value } : { file: other.value, other: own.value, device: other_device.value, other_device: part("device").value, at_a: at_b.value, at_b: at_a.value })}>Swap</button>
        <Choice name="hold" label="Compared by" options={[["stack", "Stack"], ["module", "Module"], ["category", "Category"]]} />
        {answer ? <span class="n"><b>{format.signed((answer.head.total_b ?? 0) - (answer.head.total_a ?? 0))}</b> <span class="dim">from {format.bytes(answer.head.total_a)} to {format.bytes(answer.head.total_b)}</span></span> : null}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Comparison">
        <div class="report">
          {is_one.value ? (
            <Curves label="Live memory by event" end_text={format.plural(to - 1, "event")} curves={[{ name: name(own.value), ...points(own_curve) }]} marks={[at_a.value, at_b.value].filter((at) => at >= 0).map((at, i) => ({ x: at / to, text: i ? "B" : "A" }))} />
          ) : (
            <Curves label="Live memory of both runs by event" end_text={format.plural(to - 1, "event")} curves={[{ name: `A: ${name(own.value)}`, ...points(own_curve) }, { name: `B: ${name(other.value)}`, ...points(other_curve), dash: [6, 4] }]} />
          )}
          {!is_shown.value ? <p class="empty">Choose two steps to see what grew between them. {early && later ? <button onClick={() => go({ at_a: early.event, at_b: later.event })}>End of {format.plain(early.text, 40)} and of {format.plain(later.text, 40)}</button> : null}</p> : !answer || answer.unknown ? <Missing asked={asked.value} what="No comparison." /> : null}
          {(answer?.head.document?.sections ?? []).map((section: any, i: number) => <SectionView section={section} key={i} />)}
          {shown && shown.bytes.length > 1 ? (
            <section>
              <h2>Flame graph of the difference</h2>
              <p class="dim">Width = bytes in the larger of both. Red with + grew, blue with − shrank, grey did not change.</p>
              <div style={{ height: "360px" }}>
                <Flame
                  tree={tree} upward={false} search={search} chosen={chosen} on_choose={(node) => (chosen.value = node)} label="Change by holder"
                  colour={(node, dark) => {
                    const change = difference(node) / Math.max(1, shown.bytes[node]);
                    const strength = Math.min(1, Math.abs(change));
                    return strength < 0.005 ? oklch(dark ? 0.38 : 0.9, 0.005, 250) : oklch((dark ? 0.45 : 0.88) - (dark ? -0.1 : 0.15) * strength, 0.03 + 0.12 * strength, change > 0 ? 25 : 250);
                  }}
                  describe={(node) => `${format.signed(difference(node))}: ${format.bytes(answer?.f64("bytes_a")[node])} in A, ${format.bytes(answer?.f64("bytes_b")[node])} in B`}
                />
              </div>
              <div class="tablebox">
                <table class="data">
                  <thead><tr><th>Holder</th><th class="right">Change</th><th class="right">A</th><th class="right">B</th></tr></thead>
                  <tbody>
                    {top_lines.map(({ node, change }) => (
                      <tr key={node}>
                        <td class="wide code"><FrameName text={shown.labels[shown.label[node]] ?? ""} /></td>
                        <td class="right" data-title="change" title={format.exact(change)}>{format.signed(change)}</td>
                        <td class="right" data-title="A">{format.bytes(answer?.f64("bytes_a")[node])}</td>
                        <td class="right" data-title="B">{format.bytes(answer?.f64("bytes_b")[node])}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </section>
          ) : null}
        </div>
      </div>
    </div>
  );
}

// Compares two moments, of two files, two devices or one: change by holder, curves, and the report of `diff`.
import { computed, signal } from "@preact/signals";
import type { Section } from "../data/types.ts";
import { ask, files } from "../state/run.ts";
import { oklch } from "../draw/index.ts";
import * as format from "../format.ts";
import { go, part, view } from "../state/view.ts";
import { time_of } from "./axis.ts";
import { Curves } from "./chart.tsx";
import { Flame } from "./flame.tsx";
import { Choice, FrameName, Missing, YourCodeOnly } from "./parts.tsx";
import { SectionView } from "./report.tsx";
import { like, named_device, set_sides, sides } from "./sides.ts";
import type { Side } from "./sides.ts";
import { both_of, tree_of } from "./tree.ts";
import type { Tree } from "./tree.ts";

const tab = part("tab");
const search = part("search");
const inside_change = part("inside_change");
const library = part("library");
const device_of = (side: Side) => files.value[side.file]?.devices[side.device];
const is_one = computed(() => sides.value.a.file === sides.value.b.file && sides.value.a.device === sides.value.b.device);
const is_open = computed(() => tab.value === "compare" && !!device_of(sides.value.a) && !!device_of(sides.value.b));
const moment_of = (side: Side) => (side.at >= 0 ? side.at : (device_of(side)?.peak?.event ?? 0));
const is_shown = computed(() => is_open.value && !(is_one.value && moment_of(sides.value.a) === moment_of(sides.value.b)));
const from_view = (moment: number) => (moment >= 0 ? moment : null);
const asked = ask("compare", () => {
  const { a, b } = sides.value;
  return is_shown.value ? { file: a.file, device: a.device, event: from_view(a.at), other: b.file, other_device: named_device.value, other_event: from_view(b.at), by: part("hold").value } : null;
});
/** The step ends that a side can be set to. */
const steps_of = (of: "a" | "b") => {
  const marks = ask("marks", () => (is_open.value ? { file: sides.value[of].file, device: sides.value[of].device } : null), { slot: `marks of ${of}` });
  return computed(() => {
    const answer = marks.value.answer;
    if (!answer) return [];
    const ends = ((answer.head.kinds ?? []) as string[]).indexOf("step end");
    const [kind, event, label] = [answer.u32("kind"), answer.u32("event"), answer.u32("label")];
    return Array.from(kind, (value, i) => ({ value, event: event[i], text: String(answer.head.labels[label[i]]) })).filter((mark) => mark.value === ends);
  });
};
const steps = { a: steps_of("a"), b: steps_of("b") };
const curve_of = (of: "a" | "b") =>
  ask("levels", () => {
    const side = sides.value[of];
    return is_open.value ? { file: side.file, device: side.device, from: 0, to: device_of(side)!.events + 1, columns: 1024, by: "none" } : null;
  }, { slot: `curve of ${of}` });
const curve = { a: curve_of("a"), b: curve_of("b") };

const whole = computed<Tree | null>(() => (asked.value.answer?.has("bytes_b") ? tree_of(asked.value.answer) : null));
/** By stack, of the user's own lines where there are any: every frame above them changed as much. */
const has_user = computed(() => part("hold").value === "stack" && !!whole.value?.kinds.includes("user"));
const both = computed(() => {
  const [like, answer] = [whole.value, asked.value.answer];
  return like && answer ? both_of(like, answer.f64("bytes_a"), answer.f64("bytes_b"), has_user.value && !library.value) : null;
});
const tree = computed<Tree | null>(() => both.value?.tree ?? null);
/** Rows of boxes below the root. */
const depth_of = (shown: Tree): number => {
  const depth: number[] = [];
  for (let i = 0; i < shown.parent.length; ++i) depth.push(i ? depth[shown.parent[i]] + 1 : 0);
  return depth.reduce((most, one) => Math.max(most, one), 0);
};
const chosen = signal(-1);
const difference = (node: number) => {
  const of = both.value;
  return of ? of.b[node] - of.a[node] : 0;
};

/** Which memory of which file is compared, at its peak, its end, the chart's moment, or the end of a step. */
function SideChoice({ of }: { of: "a" | "b" }) {
  const side = sides.value[of];
  const name = of.toUpperCase();
  const devices = files.value[side.file]?.devices ?? [];
  const end = devices[side.device]?.events ?? 0;
  const set = (patch: Partial<Side>) => set_sides({ [of]: { ...side, ...patch } });
  const set_file = (file: number) => {
    const { a } = sides.value;
    const device = like(devices[side.device]?.name, files.value[file]);
    // A moment with itself has no difference.
    const is_itself = of === "b" && file === a.file && device === a.device && a.at < 0;
    set({ file, device, at: is_itself ? (files.value[file]?.devices[device]?.events ?? 0) : -1 });
  };
  const ends = steps[of].value.filter((step) => step.event !== end);
  const last = steps[of].value.find((step) => step.event === end);
  const options: [number, string][] = [[-1, "at the peak"], [end, last ? `end of ${format.plain(last.text, 40)}, the run's end` : "at the end"]];
  options.push(...ends.map((step): [number, string] => [step.event, `end of ${format.plain(step.text, 40)}`]));
  const is_looked_at = view.value.file === side.file && view.value.device === side.device;
  for (const at of [side.at, is_looked_at ? view.value.moment : -1])
    if (!options.some(([event]) => event === at)) options.splice(2, 0, [at, `at event ${format.count(at)}`]);
  return (
    <span class="field">
      <b>{name}</b>
      {files.value.length > 1 ? (
        <select aria-label={`${name}'s file`} value={String(side.file)} onChange={(event) => set_file(Number(event.currentTarget.value))}>
          {files.value.map((one, i) => <option key={i} value={String(i)} disabled={!one.devices.length}>{format.plain(one.name, 60)}</option>)}
        </select>
      ) : null}
      {devices.length > 1 ? (
        <select aria-label={`${name}'s memory`} value={String(side.device)} onChange={(event) => set({ device: Number(event.currentTarget.value), at: -1 })}>
          {devices.map((one, i) => <option key={i} value={String(i)}>{format.plain(one.label ?? one.name, 80)}</option>)}
        </select>
      ) : null}
      <select aria-label={`${name} at`} value={String(side.at)} onChange={(event) => set({ at: Number(event.currentTarget.value) })}>
        {options.map(([event, text]) => <option key={event} value={String(event)}>{text}</option>)}
      </select>
    </span>
  );
}
/** Both curves, over the recorded time where both have times; otherwise each over its own events. */
function Both() {
  const { a, b } = sides.value;
  const is_timed = part("axis").value === "time" && [a, b].every((side) => device_of(side)?.has_times !== false && device_of(side)?.first_time_ns != null);
  const levels = [curve.a, curve.b].map((one) => one.value.answer);
  const columns = levels.map((one) => ({ event: one?.u32("event") ?? new Uint32Array(), time_ns: is_timed && one?.has("time_ns") ? one.f64("time_ns") : new Float64Array() }));
  const times = columns.flatMap(({ time_ns }) => (time_ns.length ? [time_ns[0], time_ns[time_ns.length - 1]] : []));
  const has_times = columns.every(({ time_ns }) => time_ns.length > 0);
  const [begin, end] = [Math.min(...times), Math.max(...times)];
  const x_of = (i: number, side: Side) => (event: number) =>
    has_times ? (time_of(columns[i], event) - begin) / Math.max(1, end - begin) : event / Math.max(1, device_of(side)?.events ?? 1);
  const named = (side: Side) => [files.value.length > 1 ? files.value[side.file]?.name : "", (files.value[side.file]?.devices.length ?? 0) > 1 ? (device_of(side)?.label ?? device_of(side)?.name) : ""].filter(Boolean).join(", ");
  const curves = [a, b].map((side, i) => ({
    name: `${"AB"[i]}: ${named(side)}`, x: Array.from(columns[i].event, x_of(i, side)), y: levels[i]?.f64("total") ?? [], ...(i ? { dash: [6, 4] } : {}),
  }));
  if (is_one.value) curves.splice(1), (curves[0].name = files.value[a.file]?.name ?? "");
  const marks = [a, b].map((side, i) => ({ x: x_of(i, side)(moment_of(side)), text: "AB"[i] }));
  if (Math.abs(marks[1].x - marks[0].x) < 0.02) (marks[0].text = "A, B"), (marks[1].text = "");
  const events = [a, b].map((side) => format.plural(device_of(side)?.events ?? 0, "event"));
  return (
    <Curves
      label={`Live memory by ${has_times ? "time" : "event"}`} curves={curves} marks={marks}
      end_text={has_times ? format.time(end - begin) : events[0] === events[1] ? events[0] : `A: ${events[0]}, B: ${events[1]}`}
    />
  );
}

/** What to compare with one click, where both sides are the same. */
function Suggestion() {
  const { a, b } = sides.value;
  const ends = steps.a.value;
  // The first step makes what stays, like the optimizer's state.
  const [early, later] = ends.length > 1 ? [ends[ends.length > 2 ? 1 : 0], ends[ends.length - 1]] : [];
  const devices = files.value[a.file]?.devices ?? [];
  const next = devices.length > 1 ? (a.device === 0 ? 1 : 0) : -1;
  return (
    <p class="empty">
      A and B are the same moment: choose another one for either.{" "}
      {early && later ? <button onClick={() => set_sides({ a: { ...a, at: early.event }, b: { ...b, at: later.event } })}>End of {format.plain(early.text, 40)} and of {format.plain(later.text, 40)}</button> : null}{" "}
      {next >= 0 ? <button onClick={() => set_sides({ a: { ...a, at: -1 }, b: { ...b, device: next, at: -1 } })}>With the peak of {format.plain(devices[next].label ?? devices[next].name, 80)}</button> : null}
    </p>
  );
}

export function Compare() {
  if (!is_open.value) return <div class="empty">No device memory to compare.</div>;
  const answer = asked.value.answer;
  const shown = tree.value;
  const rows = shown ? shown.bytes.map((_, node) => ({ node, change: difference(node) })).filter((row) => row.node > 0 && row.change !== 0) : [];
  rows.sort((a, b) => Math.abs(b.change) - Math.abs(a.change));
  const top_lines = rows.filter((row) => !has_user.value || shown?.kinds[shown.label[row.node]] === "user").slice(0, 40);
  const sections: Section[] = answer?.head.document?.sections ?? [];
  return (
    <div class="panel">
      <div class="strip">
        <SideChoice of="a" />
        <SideChoice of="b" />
        <button onClick={() => set_sides({ a: sides.value.b, b: sides.value.a })}>Swap</button>
        <Choice name="hold" label="Compared by" options={[["stack", "Stack"], ["module", "Module"], ["category", "Category"]]} />
        {has_user.value ? <YourCodeOnly /> : null}
        {answer ? <span class="n"><b>{format.signed((answer.head.total_b ?? 0) - (answer.head.total_a ?? 0))}</b> <span class="dim">from {format.bytes(answer.head.total_a)} to {format.bytes(answer.head.total_b)}</span></span> : null}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Comparison">
        <div class="report">
          {!is_shown.value ? <Suggestion /> : !answer || answer.unknown ? <Missing asked={asked.value} what="No comparison." /> : null}
          {shown && shown.bytes.length > 1 ? (
            <section>
              <h2>Flame graph of the difference</h2>
              <p class="dim">Width: bytes in the larger of both. Red with + grew, blue with − shrank, grey did not change.</p>
              <div style={{ height: `${Math.min(240, 22 + 20 * depth_of(shown))}px` }}>
                <Flame
                  tree={tree} upward={false} search={search} chosen={chosen} on_choose={(node) => (chosen.value = node)}
                  inside={inside_change} on_open={(node) => go({ inside_change: node })} label="Change by holder"
                  colour={(node, dark) => {
                    const change = difference(node) / Math.max(1, shown.bytes[node]);
                    const strength = Math.min(1, Math.abs(change));
                    return strength < 0.005 ? oklch(dark ? 0.38 : 0.9, 0.005, 250) : oklch((dark ? 0.45 : 0.88) - (dark ? -0.1 : 0.15) * strength, 0.03 + 0.12 * strength, change > 0 ? 25 : 250);
                  }}
                  root={`All: ${format.signed(difference(0))}`}
                  describe={(node) => `${format.signed(difference(node))}: ${format.bytes(both.value?.a[node])} in A, ${format.bytes(both.value?.b[node])} in B`}
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
                        <td class="right" data-title="A">{format.bytes(both.value?.a[node])}</td>
                        <td class="right" data-title="B">{format.bytes(both.value?.b[node])}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            </section>
          ) : null}
          <Both />
          {sections.map((section, i) => <SectionView section={section} key={i} />)}
        </div>
      </div>
    </div>
  );
}

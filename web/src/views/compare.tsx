// Two runs on one axis: their curves, what grew by holder, and what `diff` says.
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
const other = computed(() => (files.value.length > 1 ? (part("file").value === 0 ? 1 : 0) : -1));
const is_shown = computed(() => tab.value === "compare" && other.value >= 0);
const asked = ask("compare", () => (is_shown.value ? { ...subject(), other: other.value, by: part("hold").value } : null));
const curve = (which: () => number, slot: string) =>
  ask("levels", () => {
    const device = files.value[which()]?.devices[part("device").value] ?? files.value[which()]?.devices[0];
    if (!is_shown.value || !device) return null;
    return { file: which(), device: Math.max(0, files.value[which()].devices.indexOf(device)), from: 0, to: device.events + 1, columns: 1024, by: "none" };
  }, { slot });
const own_curve = curve(() => part("file").value, "curve of A");
const other_curve = curve(() => other.value, "curve of B");

const tree = computed<Tree | null>(() => {
  const answer = asked.value.answer;
  if (!answer?.has("bytes_b")) return null;
  // Drawn by the larger of both, so that what went away has its place.
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

export function Compare() {
  if (files.value.length < 2)
    return <div class="empty">One file is open. `gpumemprof view A B` shows two on one axis.</div>;
  const answer = asked.value.answer;
  const name = (index: number) => format.plain(files.value[index]?.name ?? "", 60);
  const shown = tree.value;
  const rows = shown ? shown.bytes.map((_, node) => ({ node, change: difference(node) })).filter((row) => row.node > 0 && row.change !== 0) : [];
  // Of stacks the lines of the reader's own code, where there are any: every frame above them changed as much.
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
        <span><b>A</b> {name(part("file").value)}</span>
        <span><b>B</b> {name(other.value)}</span>
        <button onClick={() => go({ file: other.value, device: 0, from: 0, to: 0, moment: -1 })}>Swap</button>
        <Choice name="hold" label="Compared by" options={[["stack", "Stack"], ["module", "Module"], ["category", "Category"]]} />
        {answer ? <span class="n"><b>{format.signed((answer.head.total_b ?? 0) - (answer.head.total_a ?? 0))}</b> <span class="dim">from {format.bytes(answer.head.total_a)} to {format.bytes(answer.head.total_b)}</span></span> : null}
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="Comparison">
        <div class="report">
          <Curves label="Live memory of both runs over their events" end_text={format.plural(to - 1, "event")} curves={[{ name: `A: ${name(part("file").value)}`, ...points(own_curve) }, { name: `B: ${name(other.value)}`, ...points(other_curve), dash: [6, 4] }]} />
          {!answer || answer.unknown ? <Missing asked={asked.value} what="No comparison." /> : null}
          {(answer?.head.document?.sections ?? []).map((section: any, i: number) => <SectionView section={section} key={i} />)}
          {shown && shown.bytes.length > 1 ? (
            <section>
              <h2>The difference as a flame graph</h2>
              <p class="dim">Wide is much in either run. Red with + grew, blue with − shrank, grey stayed.</p>
              <div style={{ height: "360px" }}>
                <Flame
                  tree={tree} upward={false} search={search} chosen={chosen} on_choose={(node) => (chosen.value = node)} label="Difference of holders"
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

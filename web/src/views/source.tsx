// A source line in its file, with the live bytes of every line beside it.
import { computed } from "@preact/signals";
import * as format from "../format.ts";
import { ask, device, moment, store, subject } from "../state/run.ts";
import { go, part } from "../state/view.ts";
import { CopyButton, Missing } from "./parts.tsx";
import { own_lines, tree_of } from "./tree.ts";

const tab = part("tab");
const source = part("source");
const split = () => /^(.*):(\d+)$/.exec(source.value);
const asked = ask("source", () => {
  const parts = split();
  if (!device.value || tab.value !== "source" || !parts) return null;
  return { ...subject(), path: parts[1], line: Number(parts[2]), around: 20, event: moment.value };
});

const to_middle = (row: HTMLTableRowElement | null): void => row?.scrollIntoView({ block: "center" });

const holders_asked = ask("holders", () => (device.value && tab.value === "source" ? { ...subject(), event: moment.value, by: "stack" } : null), { slot: "holders of the source" });
const tree = computed(() => {
  const { answer } = holders_asked.value;
  return answer && !answer.unknown ? tree_of(answer) : null;
});
/** Per "file:line" what was allocated with it as the innermost line of the user's code. */
const self_bytes = computed(() => {
  const shown = tree.value;
  const out = new Map<string, number>();
  for (const line of shown ? own_lines(shown, Infinity) : []) {
    const place = `${shown!.files[line.label]}:${shown!.lines[line.label]}`;
    out.set(place, (out.get(place) ?? 0) + line.self_bytes);
  }
  return out;
});
/** What both tables have before a line. */
const HEADS = <><th class="right" title="Allocated with this as the innermost line of your code">Self</th><th class="right" title="Allocated by this line or by what it calls">With callees</th></>;
function Bytes({ value }: { value: number | undefined }) {
  return <td class="right" title={value ? format.exact(value) : undefined}>{value ? format.bytes(value) : ""}</td>;
}

function Lines() {
  // What to begin with: no line is chosen.
  const shown = tree.value;
  const lines = shown ? own_lines(shown, 12) : [];
  const has_source = store.value?.kind === "server"; // a page in a file has no text of sources
  if (!shown || lines.length === 0) return <Missing asked={holders_asked.value} what="No line of your code is known at this moment." />;
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Lines of your code">
      <table class="data">
        <thead><tr>{HEADS}<th>{has_source ? "Line of your code: choose one to see its source" : "Line of your code. Its source is not in this file: gpumemprof view RECORDING shows it"}</th></tr></thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.label}>
              <Bytes value={line.self_bytes} /><Bytes value={line.bytes} />
              <td class="wide">
                {has_source ? (
                  <button class="link code" onClick={() => go({ source: `${shown.files[line.label]}:${shown.lines[line.label] ?? 1}` })}>{format.frame_line(shown.labels[line.label] ?? "")}</button>
                ) : <span class="code long">{format.frame_line(shown.labels[line.label] ?? "")}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function Source() {
  const parts = split();
  if (!parts) return <Lines />;
  const answer = asked.value.answer;
  const head = answer?.head;
  const lines: string[] = head?.lines ?? [];
  const from = Number(head?.from ?? 1);
  const bytes: Record<string, number> = head?.bytes ?? {};
  return (
    <div class="panel">
      <div class="strip">
        <b class="code long">{format.plain(source.value, 600)}</b>
        <CopyButton label="Copy location" text={() => source.value} />
        <button onClick={() => go({ source: "" })}>Other lines</button>
      </div>
      {!answer || answer.unknown ? <Missing asked={asked.value} what="No source available." /> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Source">
          <table class="data code">
            <thead><tr>{HEADS}<th class="right">Line</th><th>Source</th></tr></thead>
            <tbody>
              {lines.map((text, i) => (
                <tr key={i} ref={from + i === Number(parts[2]) ? to_middle : undefined} class={from + i === Number(parts[2]) ? "chosen" : ""}>
                  <Bytes value={self_bytes.value.get(`${parts[1]}:${from + i}`)} /><Bytes value={bytes[from + i]} />
                  <td class="right dim">{from + i}</td>
                  <td style={{ whiteSpace: "pre" }}>{format.plain(text.replaceAll("\t", "    "), 400)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

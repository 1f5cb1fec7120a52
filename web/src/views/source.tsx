// A source line in its file, with the live bytes of every line beside it.
import * as format from "../format.ts";
import { ask, device, moment, subject } from "../state/run.ts";
import { part } from "../state/view.ts";
import { CopyButton, Missing } from "./parts.tsx";

const tab = part("tab");
const source = part("source");
const split = () => /^(.*):(\d+)$/.exec(source.value);
const asked = ask("source", () => {
  const parts = split();
  if (!device.value || tab.value !== "source" || !parts) return null;
  return { ...subject(), path: parts[1], line: Number(parts[2]), around: 20, event: moment.value };
});

const to_middle = (row: HTMLTableRowElement | null): void => row?.scrollIntoView({ block: "center" });

export function Source() {
  const parts = split();
  if (!parts) return <div class="empty">Choose a stack frame to see its source.</div>;
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
      </div>
      {!answer || answer.unknown ? <Missing asked={asked.value} what="No source available." /> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="Source">
          <table class="data code">
            <thead><tr><th class="right">Live</th><th class="right">Line</th><th>Source</th></tr></thead>
            <tbody>
              {lines.map((text, i) => (
                <tr key={i} ref={from + i === Number(parts[2]) ? to_middle : undefined} class={from + i === Number(parts[2]) ? "chosen" : ""}>
                  <td class="right">{bytes[from + i] ? format.bytes(bytes[from + i]) : ""}</td>
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

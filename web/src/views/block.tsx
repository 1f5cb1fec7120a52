// One block: its facts and its stack.
import { ask, device, subject } from "../state/run.ts";
import * as format from "../format.ts";
import { go, part } from "../state/view.ts";
import { choose } from "./moves.ts";
import { CopyButton, FrameLine, Missing } from "./parts.tsx";

const block = part("block");
const asked = ask("block", () => (device.value && block.value >= 0 ? { ...subject(), id: block.value } : null));

interface Frame {
  function: string;
  file?: string;
  line?: number;
  kind?: string;
}
const BYTES = /bytes$/;
const TIME = /time_ns$/;
// Shown elsewhere on the page, or of no use to a reader.
const HIDDEN = new Set(["id", "stack", "is_freed"]);
const EVENTS = new Set(["start", "end"]);

/** A fact as text; the ending of its name says whether it is a size, a time or a count. */
function fact_text(name: string, value: unknown): string {
  if (value === null || value === undefined) return "unknown";
  if (typeof value === "number" && BYTES.test(name)) return `${format.bytes(value)} (${format.exact(value)})`;
  if (typeof value === "number" && TIME.test(name)) return format.time(value);
  if (typeof value === "number") return format.count(value);
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.length ? format.plain(value.map((one) => Object.values(one).join(" ")).join("; ")) : "none";
  return format.plain(typeof value === "object" ? Object.values(value).join(" ") : value);
}
function fact_name(name: string): string {
  const words = name.replace(BYTES, "").replace(/_(ns)$/, "").replaceAll("_", " ").trim();
  return words ? words[0].toUpperCase() + words.slice(1) : "Size";
}

export function BlockView() {
  if (block.value < 0)
    return (
      <div class="empty">
        {part("by").value === "blocks" ? "No block chosen: click one in the chart." : (
          <>
            No block chosen. Group the chart by block, or open the address space, and click one.{" "}
            <button onClick={() => go({ by: "blocks" })}>Group by block</button>
          </>
        )}
      </div>
    );
  const answer = asked.value.answer;
  if (!answer || answer.unknown) return <Missing asked={asked.value} what="Block not found." />;
  const facts = (answer.head.block ?? {}) as Record<string, any>;
  const told = Object.entries(facts).filter(([name, value]) => !HIDDEN.has(name) && !(Array.isArray(value) && value.length === 0));
  const unknown = told.filter(([name, value]) => value === null && !name.startsWith("end")).map(([name]) => fact_name(name).toLowerCase());
  const frames = (answer.head.frames ?? []) as Frame[];
  const text = () => frames.map((frame) => `${frame.function}${frame.file ? ` (${frame.file}:${frame.line ?? "?"})` : ""}`).join("\n");
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Block">
      <div class="report" style={{ maxWidth: "900px" }}>
        <h2>Block {format.count(block.value)}: {format.bytes(facts.size_bytes)}</h2>
        <dl class="facts n">
          {told.filter(([name, value]) => value !== null || name.startsWith("end")).map(([name, value]) => (
            <>
              <dt>{format.plain(fact_name(name), 60)}</dt>
              <dd>
                {EVENTS.has(name) && typeof value === "number" ? (
                  <button class="link" onClick={() => choose(value)}>event {format.count(value)}</button>
                ) : name.startsWith("end") && value === null ? "not freed" : fact_text(name, value)}
              </dd>
            </>
          ))}
          {unknown.length ? <><dt>Unknown</dt><dd class="dim">{unknown.join(", ")}</dd></> : null}
        </dl>
        <div class="strip" style={{ padding: 0 }}>
          <h3>Stack, innermost first</h3>
          {frames.length ? <CopyButton label="Copy stack" text={text} /> : null}
        </div>
        {frames.length ? (
          <ol class="frames">
            {frames.map((frame, i) => <FrameLine key={i} text={frame.function} file={frame.file} line={frame.line} kind={frame.kind} />)}
          </ol>
        ) : (
          <p class="dim">{answer.head.stack_unknown ? format.plain(answer.head.stack_unknown) : "The stack of this block is unknown."}</p>
        )}
      </div>
    </div>
  );
}

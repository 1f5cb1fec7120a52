// Small parts that several views share.
import { useEffect, useState } from "preact/hooks";
import * as format from "../format.ts";
import type { Asked } from "../state/run.ts";
import { go, part } from "../state/view.ts";
import type { View } from "../state/view.ts";

/** A choice of one among a few: buttons side by side. */
export function Choice(props: { name: keyof View; label: string; options: [string, string, string?][] }) {
  const value = String(part(props.name).value);
  return (
    <span class="segments" role="group" aria-label={props.label}>
      {props.options.map(([id, text, disabled_why]) => (
        <button key={id} aria-pressed={value === id} disabled={!!disabled_why} title={disabled_why} onClick={() => go({ [props.name]: id })}>
          {text}
        </button>
      ))}
    </span>
  );
}

const library = part("library");
/** Whether frames of libraries are left out of the holders by stack. */
export function YourCodeOnly() {
  return (
    <label class="field">
      <input type="checkbox" checked={!library.value} onChange={(event) => go({ library: !event.currentTarget.checked })} />
      <span>Your code only</span>
    </label>
  );
}

/** In place of an answer: why it is missing, or that it is loading. */
export function Missing({ asked, what }: { asked: Asked; what: string }) {
  const unknown = asked.answer?.unknown;
  const text = asked.error ?? (unknown ? `Unknown: ${unknown}` : asked.is_waiting ? "Loading…" : what);
  return <div class="empty" role="status">{format.plain(text)}</div>;
}

/** Copies a text and confirms it for a moment. */
export function CopyButton({ text, label }: { text: () => string; label: string }) {
  const [done, set_done] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => set_done(false), 1500);
    return () => clearTimeout(timer);
  }, [done]);
  return (
    <button onClick={() => void copy(text()).then(() => set_done(true))}>{done ? "Copied" : label}</button>
  );
}
export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // The clipboard needs a secure context; this works without.
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** An option of a command, as it is typed: "--sweep", "-o". What is longer may have to break. */
const OPTION = /((?<![\w-])--?[a-z][\w-]{0,40}(?![\w-]))/i;
/** A text that may wrap only after the separators of a name or path, or before a bracket; never inside of an option. */
export function Joints({ text, is_prose = false }: { text: string; is_prose?: boolean }) {
  // In prose a point or a colon is no separator: "11.6 GiB".
  const joint = is_prose ? /[^/_]+[/_]*|[/_]+/g : /[(<]?[^/_.:,(<]+[/_.:,]*|[/_.:,(<]+/g;
  const pieces = (is_prose ? format.unbroken(text) : text).split(OPTION);
  return <>{pieces.map((piece, i) => (i % 2 ? <span key={i} class="option">{piece}</span> : (piece.match(joint) ?? []).map((part, k) => (k ? [<wbr key={k} />, part] : part))))}</>;
}
/** A frame's function, and below it its place. */
export function FrameName({ text }: { text: string }) {
  const { name, place } = format.frame(text);
  return (
    <>
      <Joints text={name} />
      {place ? <span class="where"> <Joints text={place} /></span> : null}
    </>
  );
}

/** A frame's function and place; the place opens its source. */
export function FrameLine(props: { text: string; file?: string; line?: number; kind?: string }) {
  const place = props.file ? `${props.file}:${props.line ?? 0}` : "";
  return (
    <li class={props.kind === "user" ? "user" : ""}>
      <span class="code"><Joints text={format.plain(props.text)} /></span>
      {place ? (
        <div class="where">
          <button class="link" title={format.plain(place, 1000)} onClick={() => go({ tab: "source", source: place })}>
            {format.file_name(props.file!)}:{props.line ?? "?"}
          </button>
          {props.kind ? <span> · {KINDS[props.kind] ?? props.kind}</span> : null}
        </div>
      ) : null}
    </li>
  );
}
export const KINDS: Record<string, string> = { user: "your code", label: "module, layer, variable, operation, mode or phase", library: "library", native: "native code", none: "no line of your code", other: "other" };

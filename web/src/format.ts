// Figures and untrusted text as the page shows them. Sizes as in the command: three digits, binary units.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/** As C's printf rounds: of two that are as near the even one, where toFixed gives the larger. */
function fixed(value: number, digits: number): string {
  const scaled = value * 10 ** digits, floor = Math.floor(scaled);
  const is_half = scaled - floor === 0.5;
  return ((is_half ? floor + (floor % 2) : Math.round(scaled)) / 10 ** digits).toFixed(digits);
}
/** "12 B", "1.50 MiB"; null is unknown. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined || Number.isNaN(value)) return "unknown";
  let size = Math.abs(value);
  let unit = 0;
  while (size >= (unit ? 1023.5 : 1024) && unit < UNITS.length - 1) {
    size /= 1024;
    ++unit;
  }
  const text = unit === 0 ? String(Math.round(size)) : fixed(size, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
  return `${value < 0 ? "-" : ""}${text} ${UNITS[unit]}`;
}
/** A difference: "+1.50 MiB". */
export function signed(value: number): string {
  return value > 0 ? `+${bytes(value)}` : bytes(value);
}
const NUMBER = new Intl.NumberFormat("en");
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? "unknown" : NUMBER.format(Math.round(value));
}
export function exact(value: number | null | undefined): string {
  return value === null || value === undefined ? "unknown" : `${count(value)} bytes`;
}
export function share(part: number, whole: number): string {
  if (!(whole > 0)) return "";
  const percent = (100 * part) / whole;
  return percent === 0 ? "0 %" : percent < 0.1 ? "< 0.1 %" : `${percent.toFixed(1)} %`;
}
export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}
/** A time in nanoseconds, with as many digits as `step_ns` needs. */
export function time(value_ns: number | null | undefined, step_ns = 0): string {
  if (value_ns === null || value_ns === undefined || !Number.isFinite(value_ns)) return "unknown";
  const size = Math.max(Math.abs(value_ns), step_ns);
  const [unit, scale] = size >= 1e9 ? ["s", 1e9] : size >= 1e6 ? ["ms", 1e6] : size >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  const digits = scale === 1 ? 0 : step_ns > 0 ? Math.min(6, Math.max(0, Math.ceil(-Math.log10(step_ns / scale)))) : 3;
  return `${(value_ns / scale).toFixed(digits)} ${unit}`;
}
/** An address that comes in two halves. */
export function address(high: number, low: number): string {
  return `0x${(BigInt(high) * 4294967296n + BigInt(low)).toString(16)}`;
}

// Characters that would hide, reorder or break text: shown as a symbol or by number.
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;
const LONGEST = 300;

/** Untrusted text, safe in one line: nothing hidden; where cut, the full length is shown. */
export function plain(text: unknown, longest = LONGEST): string {
  const whole = typeof text === "string" ? text : String(text ?? "");
  const cut = whole.length > longest ? whole.slice(0, longest) : whole;
  const shown = cut.replace(HIDDEN, (letter) => {
    const code = letter.charCodeAt(0);
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : code === 0x7f ? "\u2421" : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return cut.length < whole.length ? `${shown}… (${count(whole.length)} characters)` : shown;
}
const FIGURE = /(\d) (?=(?:%|[KMGTPE]?i?B|ns|µs|ms|s|min|h)(?![\w]))/g;
/** Prose whose figures stay beside their units where a line ends. */
export function unbroken(text: string): string {
  return text.replace(FIGURE, "$1\u00a0");
}
/** The last two parts of a path. */
export function file_name(path: string): string {
  const separator = (before: number) => (before < 0 ? -1 : Math.max(path.lastIndexOf("/", before), path.lastIndexOf("\\", before)));
  return plain(path.slice(separator(separator(path.length) - 1) + 1), 4000);
}

export interface FrameName {
  name: string; // the function, or the whole text if it has none
  place: string; // the file's last two parts and the line; may be empty
}
const FRAME = /^(\S.*?):(\d+) (.+)$/s;
/** A frame as the command names it ("path:line function", "?? function") as its function and its place. */
export function frame(text: string): FrameName {
  const cut = text.length > 4000 ? text.slice(0, 4000) : text;
  const found = FRAME.exec(cut);
  if (found) return { name: plain(found[3], 160), place: `${file_name(found[1])}:${found[2]}` };
  // A module of the model is written as a frame of a pseudo file: "<torch module> layers.0".
  const stood_for = /^<([^<>]{1,40})> (.+)$/s.exec(cut);
  if (stood_for) return { name: plain(stood_for[2], 160), place: plain(stood_for[1], 60) };
  return { name: plain(text.startsWith("?? ") ? text.slice(3) : text, 160), place: "" };
}
/** What tells a key of the chart from others: the file and the line before the function, of which many share a name. Of
 *  stacks of the same line `beside` names the callers ("←") or what was called ("→") in which they differ. */
export function key_name(text: string): { file: string; line: string; name: string; beside: string } {
  const [first, ...others] = text.split(/ (?=[←→] )/);
  const { name, place } = frame(first);
  const at = /^(?:.*[/\\])?([^/\\]+)(:\d+)$/.exec(place);
  const told = (other: string) => {
    const { file, line, name } = key_name(other.slice(2));
    return `${other[0]} ${file ? file + line : name}`;
  };
  const beside = others.map(told).join(" ");
  return at ? { file: at[1], line: at[2], name, beside } : { file: "", line: "", name, beside };
}
/** Of several frames beside a key the last one is where the stacks differ: it, and those before it. */
export function besides(beside: string): [shared: string, last: string] {
  const all = beside.split(/ (?=[←→] )/);
  return [all.slice(0, -1).join(" "), all.at(-1)!];
}
/** "→ adam.py:178 (2)" as what may be cut, and the line and number, which tell it from others of the file. */
export function before_line(place: string): [name: string, line: string] {
  const at = place.search(/(:\d+)?( \(\d+\))?$/);
  return [place.slice(0, at), place.slice(at)];
}
/** The same in one line, for a picture. */
export function key_line(text: string): string {
  const { file, line, name, beside } = key_name(text);
  return (file ? [`${file}${line}`, beside, name] : [name, beside]).filter(Boolean).join(" ");
}
/** A frame, or what tells stacks of the same line apart, in one line. */
export function frame_line(text: string): string {
  return text.split(/ (?=[←→] )/).map((one, i) => {
    const { name, place } = frame(i ? one.slice(2) : one);
    return `${i ? `${one[0]} ` : ""}${place ? `${name}  ${place}` : name}`;
  }).join(" ");
}

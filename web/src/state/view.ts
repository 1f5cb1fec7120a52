// The view's state as one value: the address stores it, undo and redo step through it, every view reads it.
import { computed, signal } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals";

export interface View {
  file: number;
  device: number;
  from: number; // visible events; from = to = 0: all
  to: number;
  axis: "event" | "time";
  by: string;
  filter: string;
  moment: number; // -1: the peak
  range_from: number; // a marked range; both -1: none
  range_to: number;
  tab: string;
  what: string; // holders of what: at, allocated, left, freed
  hold: string; // holders by stack, module, category
  shape: string;
  inside: number; // the node of the holders that is shown alone; 0: all
  library: boolean; // frames of libraries are shown
  block: number; // -1: none
  focus: string; // a frame whose callers and callees are shown
  search: string;
  source: string; // path:line
  settings: string; // of the what-if
  capacity: string;
  other: number; // what is compared with: its file, -1: the second one
  other_device: number; // -1: the one of the same name
  at_a: number; // the moments that are compared; -1: the peaks
  at_b: number;
  inside_change: number; // the node of the comparison that is shown alone; 0: all
  lines: string; // which of reserved, requested, capacity
  lanes: boolean; // what was sampled beside is shown below the chart
}

export const START: View = {
  file: 0, device: 0, from: 0, to: 0, axis: "event", by: "category", filter: "", moment: -1, range_from: -1, range_to: -1,
  tab: "holders", what: "at", hold: "stack", shape: "icicle", inside: 0, library: false, block: -1, focus: "", search: "", source: "",
  settings: "", capacity: "", other: -1, other_device: -1, at_a: -1, at_b: -1, inside_change: 0, lines: "reserved,capacity", lanes: true,
};

/** Names in addresses, and as shown. */
export const TABS: [string, string][] = [
  ["holders", "Holders"], ["space", "Address space"], ["findings", "Findings"], ["report", "Report"], ["block", "Block"],
  ["whatif", "What-if"], ["compare", "Compare"], ["source", "Source"], ["devices", "Devices"],
];

export const view = signal<View>(START);

/** One member of the view; its readers are not redrawn when other members change. */
export function part<K extends keyof View>(name: K): ReadonlySignal<View[K]> {
  return computed(() => view.value[name]);
}

/** The view as an address: only what differs from what the page would begin with. */
export function to_hash(value: View, start: View = START): string {
  const out = new URLSearchParams();
  for (const name of Object.keys(START) as (keyof View)[])
    if (value[name] !== start[name]) out.set(name, String(value[name]));
  return out.toString();
}

/** The view in an address; an invalid member keeps its default. */
export function from_hash(hash: string, start_of: (file: number, device: number | null) => View = () => START): View {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const number_of = (name: string) => (Number.isSafeInteger(Number(given.get(name) ?? NaN)) ? Number(given.get(name)) : null);
  const base = start_of(number_of("file") ?? START.file, number_of("device"));
  const out: Record<string, unknown> = { ...base };
  for (const [name, start] of Object.entries(START)) {
    const text = given.get(name);
    if (text === null) continue;
    if (typeof start === "number") {
      const number = Number(text);
      if (Number.isSafeInteger(number)) out[name] = number;
    } else if (typeof start === "boolean") out[name] = text === "true";
    else out[name] = text.slice(0, 2000);
  }
  if (!TABS.some(([id]) => id === out.tab)) out.tab = base.tab;
  return out as unknown as View;
}

const past: View[] = [];
const future: View[] = [];
let changed_at = 0;
let changed = -1;
/** What changes often while it is moved or typed: as long as no pause is longer, it is one undo step. */
const MERGED: { members: (keyof View)[]; pause_ms: number }[] = [
  { members: ["from", "to"], pause_ms: 600 }, { members: ["range_from", "range_to"], pause_ms: 600 }, { members: ["search"], pause_ms: 2000 },
];
const MOST_STEPS = 200;

export const can_undo = signal(false);
export const can_redo = signal(false);

/** What is counted in events, or names a block: of another file or device it means something else. */
const OF_ONE_DEVICE: Partial<View> = {
  from: 0, to: 0, moment: -1, range_from: -1, range_to: -1, block: -1, at_a: -1, at_b: -1,
};

/** What makes the tree of holders another one: its nodes are numbered anew. */
const OF_ONE_TREE = ["file", "device", "moment", "range_from", "range_to", "filter", "what", "hold", "library"] as const;

const OF_ONE_CHANGE = ["file", "device", "other", "other_device", "at_a", "at_b", "hold", "library"] as const;

/** Whether another file, device, tab, box or tile is looked at: the browser's Back returns from there. */
export function is_elsewhere(before: View, after: View): boolean {
  return (["file", "device", "tab", "inside", "inside_change"] as const).some((name) => before[name] !== after[name]);
}

/** Changes the view. Zooming, dragging and typing are one undo step each. */
export function go(wanted: Partial<View>): void {
  const before = view.peek();
  const changes = (name: keyof View) => (wanted[name] ?? before[name]) !== before[name];
  const patch = {
    ...(changes("file") || changes("device") ? OF_ONE_DEVICE : {}), ...(OF_ONE_TREE.some(changes) ? { inside: 0 } : {}),
    ...(OF_ONE_CHANGE.some(changes) ? { inside_change: 0 } : {}), ...wanted,
  };
  if (Object.entries(patch).every(([name, value]) => before[name as keyof View] === value)) return;
  const kind = MERGED.findIndex(({ members }) => Object.keys(wanted).every((name) => members.includes(name as keyof View)));
  const now = Date.now();
  if (kind < 0 || kind !== changed || now - changed_at > MERGED[kind].pause_ms) {
    past.push(before);
    if (past.length > MOST_STEPS) past.shift();
  }
  changed_at = now;
  changed = kind;
  future.length = 0;
  view.value = { ...before, ...patch };
  told();
}
/** Takes back what was asked for and cannot be, without a step of undo. */
export function amend(patch: Partial<View>): void {
  view.value = { ...view.peek(), ...patch };
}
export function undo(): void {
  step(past, future);
}
export function redo(): void {
  step(future, past);
}
function step(source: View[], target: View[]): void {
  const next = source.pop();
  if (!next) return;
  target.push(view.peek());
  changed = -1;
  view.value = next;
  told();
}
function told(): void {
  can_undo.value = past.length > 0;
  can_redo.value = future.length > 0;
}
/** A view from an address, without a step of undo. */
export function open(value: View): void {
  view.value = value;
}

// The queries of the chart of memory over time, and what is derived from their answers.
import { computed, signal } from "@preact/signals";
import { colour_of, colour_of_id, is_dark } from "../draw/palette.ts";
import { ask, device, file, filter, moment, moments, subject, visible } from "../state/run.ts";
import { part } from "../state/view.ts";
import { fetch_again, NO_TIMES, Axis } from "./axis.ts";
import type { Fetch, Times } from "./axis.ts";
import { block_spans, blocks_of, column_of, levels_of } from "./bands.ts";
import type { BlockSpans, Levels } from "./bands.ts";
import { NONE } from "../data/columns.ts";
import type { Query } from "../data/store.ts";
import type { Chart } from "../data/types.ts";

export const LEFT = 66;
export const TOP = 20;
export const BOTTOM = 22;
// A freed block shifts those above it; more blocks would need more rectangles than a frame can draw.
const MOST_BLOCKS = 600;
// Over three times the visible range: about one per 20 pixels.
const MOST_SPANS = 60_000;

export const size = signal<[number, number]>([1000, 300]);
/** Where the pointer is over the chart, as a share of its width; null: nowhere, or a key was pressed since it moved. */
export const pointer_x = signal<number | null>(null);
/** The visible moment at a share of the width. */
export function moment_at(x: number): number {
  const [from, to] = visible.value;
  const event = Math.floor(axis.value.event_at_x(Math.min(1, Math.max(0, x))) + 0.5);
  return Math.min(to - 1, Math.max(from, event || 0));
}
/** The moment under the pointer, of the device and range that are shown now; null: none. */
export const hovered = computed(() => (pointer_x.value === null ? null : moment_at(pointer_x.value)));
/** The highlighted key; null: all are in colour. */
export const isolated = signal<string | null>(null);
export const by = part("by");
export const is_blocks = computed(() => by.value === "blocks");

/** What was sampled beside the events: of the host, and of the devices' drivers. */
export const lanes = computed<Chart[]>(() =>
  (file.value?.document?.sections ?? []).flatMap((section) => section.parts).filter((one) => one.kind === "chart"),
);
const shows_lanes = part("lanes");
export const has_lanes = computed(() => shows_lanes.value && lanes.value.length > 0);

let held: Fetch | null = null;
const window_asked = computed(() => {
  const [from, to] = visible.value;
  const width = Math.max(100, size.value[0] - LEFT);
  // Columns have equal numbers of events; on a time axis, where events crowd, they must be narrower.
  return (held = fetch_again(held, from, to, moments.value, is_blocks.value ? width / 2 : part("axis").value === "time" ? 2.5 * width : width));
});
const with_subject = () => ({ ...subject(), ...window_asked.value });

export const levels_asked = ask("levels", () =>
  device.value ? { ...with_subject(), by: is_blocks.value ? "none" : by.value, filter: filter.value } : null,
);
// The times of events place them on a time axis, and samples of lanes among them.
const needs_times = computed(() => part("axis").value === "time" || has_lanes.value);
const times_asked = ask("times", () => (device.value && needs_times.value ? { ...with_subject(), columns: 2048 } : null));
export const blocks_asked = ask("blocks", () =>
  device.value && is_blocks.value
    ? { ...with_subject(), limit: MOST_BLOCKS, filter: filter.value, order: "byte_time" }
    : null,
);
export const marks_asked = ask("marks", () => (device.value ? subject() : null));
const hits_asked = ask("search", () => {
  const text = part("search").value;
  return device.value && text ? { ...with_subject(), q: text } : null;
}, { wait_ms: 150 });

export const levels = computed<Levels | null>(() => {
  const answer = levels_asked.value.answer;
  return answer ? levels_of(answer) : null;
});
export const hits = computed(() => hits_asked.value);
export const times = computed<Times>(() => {
  const answer = times_asked.value.answer;
  return answer ? { event: answer.u32("event"), time_ns: answer.f64("time_ns") } : NO_TIMES;
});
export const axis = computed(() => {
  const [from, to] = visible.value;
  return new Axis(part("axis").value, from, Math.max(from + 1, to - 1), times.value);
});

export interface Mark {
  kind: number;
  event: number;
  end: number;
  label: string;
  bytes: number | null;
}
export const STEP = 0, PHASE = 1, ANNOTATION = 2, OUT_OF_MEMORY = 3, UNKNOWN_BEFORE = 4;
export const marks = computed<Mark[]>(() => {
  const answer = marks_asked.value.answer;
  if (!answer) return [];
  const labels: string[] = answer.head.labels ?? [];
  const [kind, event, end, label, bytes] = [answer.u32("kind"), answer.u32("event"), answer.u32("end"), answer.u32("label"), answer.f64("bytes")];
  return Array.from(kind, (value, i) => ({
    kind: value, event: event[i], end: end[i], label: labels[label[i]] ?? "", bytes: bytes[i] ?? null,
  }));
});

export const spans = computed<(BlockSpans & { colour: number[] }) | null>(() => {
  const answer = blocks_asked.value.answer;
  const all = levels.value;
  if (!is_blocks.value || !answer || !all || answer.head.from !== all.from || answer.head.to !== all.to) return null;
  // Largest first: the fewer are shown, the larger the rest, and the sum is the same.
  let shown = blocks_of(answer);
  let made = block_spans(all, shown, MOST_SPANS);
  while (!made) made = block_spans(all, (shown = shown.slice(0, shown.length >> 1)), MOST_SPANS);
  const stack = answer.u32("stack");
  return { ...made, colour: made.blocks.map((block) => colour_of_block(stack[block.index], block.id)) };
});

export const colour_list = computed(() => {
  const shown = levels.value;
  if (!shown) return [];
  const dark = is_dark.value;
  return shown.keys.map((key) => colour_of(levels_asked.value.query.by as string, key.id < 0 ? "other" : key.label, dark));
});
/** The colour of the block's stack, varied a little so that neighbours of the same stack can be told apart. */
function colour_of_block(stack: number, id: number): number {
  const own = colour_of_id(stack === NONE ? 0 : stack);
  const by = [-8, 0, 8][id % 3];
  const shift = (at: number) => Math.min(255, Math.max(0, ((own >> at) & 255) + by)) << at;
  return shift(16) | shift(8) | shift(0);
}

/** The readout at a moment: exact where its column has no other moment, else the column's highest. */
export interface Reading {
  event: number;
  time_ns: number | null;
  is_summed: boolean;
  total: number;
  keys: number[];
  lines: Record<string, number>;
  pending: number | null;
}
export function reading_at(shown: Levels | null, event: number): Reading | null {
  if (!shown) return null;
  const column = column_of(shown, event);
  if (column < 0) return null;
  const lines: Record<string, number> = {};
  for (const [name, values] of Object.entries(shown.lines)) lines[name] = values[column];
  return {
    event: shown.event[column], time_ns: shown.time_ns[column] ?? null, is_summed: shown.event[column] !== event, total: shown.total[column],
    keys: shown.keys.map((_, key) => shown.values[key * shown.columns + column]),
    lines, pending: shown.pending.length ? shown.pending[column] : null,
  };
}
// The chosen moment exactly, whatever the chart shows: a column of its own.
const moment_asked = ask("levels", () =>
  device.value
    ? { ...subject(), from: moment.value, to: moment.value + 1, columns: 1, by: is_blocks.value ? "none" : by.value, filter: filter.value }
    : null,
  { slot: "levels of the moment" },
);
export const moment_levels = computed(() => {
  const { answer, query } = moment_asked.value;
  return answer && is_of_subject(query) ? levels_of(answer) : null;
});
/** Whether an answer is of the shown file and device: until theirs comes, the chart stays, but its figures are not theirs. */
function is_of_subject(query: Query): boolean {
  const { file, device } = subject();
  return query.file === file && query.device === device;
}
/** The readout of the column under the pointer; null: none. */
export const pointed = computed(() => (hovered.value !== null && is_of_subject(levels_asked.value.query) ? reading_at(levels.value, hovered.value) : null));

// Memory over time as rectangles: one column per bucket of events, one stacked band per key; a column adds up to its total.
import type { Answer } from "../data/columns.ts";
import { NONE } from "../data/columns.ts";
import { RectList } from "../draw/rects.ts";
import { column_start } from "./axis.ts";

export interface Band {
  id: number;
  label: string;
  colour: number;
}
export interface Levels {
  from: number;
  to: number;
  columns: number;
  begin: Uint32Array; // the first moment of each column, then the end of the last
  event: Uint32Array; // the moment that each shows: its highest
  total: Float64Array;
  min: Float64Array;
  values: Float64Array;
  keys: { id: number; label: string }[];
  lines: Record<string, Float64Array>;
  pending: Float64Array;
}

export function levels_of(answer: Answer): Levels {
  const event = answer.u32("event");
  const head = answer.head;
  const lines: Record<string, Float64Array> = {};
  for (const name of ["reserved", "requested"]) if (answer.has(name)) lines[name] = answer.f64(name);
  const begin = answer.has("begin")
    ? answer.u32("begin")
    : Uint32Array.from({ length: event.length + 1 }, (_, i) => column_start(head.from, head.to, event.length, i));
  return {
    from: head.from, to: head.to, columns: event.length, begin, event, total: answer.f64("total"), min: answer.f64("min"),
    values: answer.f64("values"), keys: (head.keys ?? []).map((key: any) => ({ id: key.id ?? -1, label: String(key.label ?? "") })), lines, pending: answer.f64("pending"),
  };
}

/** The column of an event; -1 where there is none. */
export function column_of(levels: Levels, event: number): number {
  return levels.columns === 0 || event < levels.from || event > levels.to ? -1 : column_at(levels, event);
}
/** The last column that begins at or before an event, else the first one. */
export function column_at(levels: Levels, event: number): number {
  let low = 0;
  let high = levels.columns;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (levels.begin[middle] <= event) low = middle;
    else high = middle;
  }
  return low;
}
/** Bytes of every key in a column, in the order of the keys. */
export function values_at(levels: Levels, column: number): number[] {
  return levels.keys.map((_, key) => levels.values[key * levels.columns + column] ?? 0);
}

/** Rectangles of the bands; x in units of the axis less `origin`, y in bytes. Columns of equal value are one rectangle. */
export function band_rects(levels: Levels, colours: number[], unit: (event: number) => number, origin: number): RectList {
  const out = new RectList();
  const { columns, values } = levels;
  const edges = new Float64Array(columns + 1);
  for (let i = 0; i <= columns; ++i) edges[i] = unit(levels.begin[i]) - origin;
  const below = new Float64Array(columns);
  levels.keys.forEach((_, key) => {
    let i = 0;
    while (i < columns) {
      const value = values[key * columns + i];
      const bottom = below[i];
      const begin = i;
      do ++i;
      while (i < columns && values[key * columns + i] === value && below[i] === bottom);
      if (value > 0) out.add(edges[begin], bottom, edges[i], bottom + value, colours[key]);
    }
    for (i = 0; i < columns; ++i) below[i] += values[key * columns + i];
  });
  return out;
}

export interface Block {
  index: number;
  id: number;
  start: number;
  end: number;
  size_bytes: number;
}
export function blocks_of(answer: Answer): Block[] {
  const [id, start, end, size] = [answer.u32("id"), answer.u32("start"), answer.u32("end"), answer.f64("size_bytes")];
  return Array.from(id, (value, index) => ({ index, id: value, start: start[index], end: end[index], size_bytes: size[index] }));
}
/** A rectangle of the block view: where it is, and whose. */
export interface BlockSpan {
  block: Block;
  x0: number;
  x1: number;
  bottom: number;
}
/** Alive from the moment of its start until the one before its end. */
export function is_alive(block: Block, event: number): boolean {
  return block.start <= event && (block.end === NONE || block.end > event);
}

/** Single blocks as bands in the order of their allocation, and the sum of the rest on top: it changes at most events,
 *  and would move all that lies on it. In every column the blocks and the rest add up to the total. Null: there would be
 *  more than `most` rectangles. */
export function block_spans(levels: Levels, blocks: Block[], most = Infinity): { spans: BlockSpan[]; rest: Float64Array } | null {
  const { columns, event, total } = levels;
  const ordered = [...blocks].sort((a, b) => a.start - b.start || a.id - b.id);
  const rest = Float64Array.from(total);
  const spans: BlockSpan[] = [];
  let alive: { block: Block; span: BlockSpan | null }[] = [];
  let next = 0;
  for (let i = 0; i < columns; ++i) {
    if (alive.some((one) => !is_alive(one.block, event[i]))) alive = alive.filter((one) => is_alive(one.block, event[i]));
    while (next < ordered.length && ordered[next].start <= event[i]) {
      if (is_alive(ordered[next], event[i])) alive.push({ block: ordered[next], span: null });
      ++next;
    }
    let bottom = 0;
    for (const one of alive) {
      // A block that does not move continues its rectangle.
      if (one.span && one.span.bottom === bottom) one.span.x1 = i + 1;
      else spans.push((one.span = { block: one.block, x0: i, x1: i + 1, bottom }));
      bottom += one.block.size_bytes;
    }
    rest[i] = Math.max(0, total[i] - bottom);
    if (spans.length > most) return null;
  }
  return { spans, rest };
}

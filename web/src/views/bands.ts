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
  time_ns: Float64Array; // of these moments; empty where the source has no times
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
    from: head.from, to: head.to, columns: event.length, begin, event,
    time_ns: answer.f64("time_ns"), total: answer.f64("total"), min: answer.f64("min"),
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
/** The columns of the peaks: of every hill its highest, if it has 70 % of the highest of all. A dip of less than a tenth of
 *  what lies between the lowest and the highest parts no hill. */
export function peaks_of(total: ArrayLike<number>): number[] {
  let [most, least] = [-Infinity, Infinity];
  for (let i = 0; i < total.length; ++i) (most = Math.max(most, total[i])), (least = Math.min(least, total[i]));
  const dip = (most - least) / 10;
  const out: number[] = [];
  if (!(dip > 0)) return out;
  let top = 0; // the highest of the hill; -1: down from one
  let low = total[0];
  for (let i = 1; i < total.length; ++i) {
    const value = total[i];
    if (top < 0) {
      low = Math.min(low, value);
      if (value - low >= dip) top = i;
    } else if (value > total[top]) top = i;
    else if (total[top] - value >= dip) {
      out.push(top);
      top = -1;
      low = value;
    }
  }
  if (top >= 0) out.push(top);
  return out.filter((i) => total[i] >= 0.7 * most);
}
/** Bytes of every key in a column, in the order of the keys. */
export function values_at(levels: Levels, column: number): number[] {
  return levels.keys.map((_, key) => levels.values[key * levels.columns + column] ?? 0);
}

/** Rectangles of the bands; x in units of the axis less `origin`, y in bytes. Columns of equal value are one rectangle. */
export function band_rects(levels: Levels, colours: number[], unit: (event: number) => number, origin: number): RectList {
  const { columns, values } = levels;
  const out = new RectList(columns * levels.keys.length);
  const edges = new Float64Array(columns + 1);
  for (let i = 0; i <= columns; ++i) edges[i] = unit(levels.begin[i]) - origin;
  const below = new Float64Array(columns);
  for (let key = 0, row = 0; key < levels.keys.length; ++key, row += columns) {
    out.begin_row();
    for (let i = 0; i < columns; ) {
      const value = values[row + i];
      const bottom = below[i];
      const begin = i;
      do below[i++] = bottom + value;
      while (i < columns && values[row + i] === value && below[i] === bottom);
      if (value > 0) out.add(edges[begin], bottom, edges[i], bottom + value, colours[key]);
    }
  }
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
/** Rectangles of the block view, in columns and bytes: of `blocks[block[i]]` from column x0[i] to x1[i]. */
export interface BlockSpans {
  blocks: Block[]; // in the order of their allocation
  count: number;
  block: Uint32Array;
  x0: Uint32Array;
  x1: Uint32Array;
  bottom: Float64Array;
  rest: Float64Array; // by column: all blocks that are not among these
}
/** Alive from the moment of its start until the one before its end. */
export function is_alive(block: Block, event: number): boolean {
  return block.start <= event && (block.end === NONE || block.end > event);
}

/** Single blocks as bands in the order of their allocation, and the sum of the rest on top: it changes at most events,
 *  and would move all that lies on it. In every column the blocks and the rest add up to the total. Null: there would be
 *  more than `most` rectangles. */
export function block_spans(levels: Levels, shown: Block[], most = levels.columns * shown.length): BlockSpans | null {
  const { columns, event, total } = levels;
  const blocks = [...shown].sort((a, b) => a.start - b.start || a.id - b.id);
  const [block, x0, x1] = [new Uint32Array(most), new Uint32Array(most), new Uint32Array(most)];
  const [bottom, rest] = [new Float64Array(most), Float64Array.from(total)];
  const alive = new Uint32Array(blocks.length);
  const span_of = new Int32Array(blocks.length).fill(-1);
  let living = 0;
  let next = 0;
  let count = 0;
  for (let i = 0; i < columns; ++i) {
    let kept = 0;
    for (let at = 0; at < living; ++at) if (is_alive(blocks[alive[at]], event[i])) alive[kept++] = alive[at];
    living = kept;
    for (; next < blocks.length && blocks[next].start <= event[i]; ++next) if (is_alive(blocks[next], event[i])) alive[living++] = next;
    let height = 0;
    for (let at = 0; at < living; ++at) {
      const one = alive[at];
      // A block that does not move continues its rectangle.
      if (span_of[one] < 0 || bottom[span_of[one]] !== height) {
        if (count === most) return null;
        span_of[one] = count;
        block[count] = one;
        x0[count] = i;
        bottom[count++] = height;
      }
      x1[span_of[one]] = i + 1;
      height += blocks[one].size_bytes;
    }
    rest[i] = Math.max(0, total[i] - height);
  }
  return { blocks, count, block, x0, x1, bottom, rest };
}

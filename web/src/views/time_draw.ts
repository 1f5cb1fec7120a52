// Memory over time, drawn: bands below, and above them the grid, lines, marks, names, the range and the pointer.
import { colour_of, colours, faded, fit_text, ink_on, is_dark } from "../draw/index.ts";
import type { Colours, Surface } from "../draw/index.ts";
import { RectList } from "../draw/rects.ts";
import * as format from "../format.ts";
import { device, moment, range } from "../state/run.ts";
import { part } from "../state/view.ts";
import { byte_ticks, ticks } from "./axis.ts";
import type { Axis } from "./axis.ts";
import { band_rects, column_at } from "./bands.ts";
import type { Levels } from "./bands.ts";
import * as data from "./time_data.ts";
import { NONE } from "../data/columns.ts";

const lines_shown = part("lines");
const chosen_block = part("block");
export const LINE_DASH: Record<string, number[]> = { reserved: [7, 4], requested: [2, 3], capacity: [12, 3, 2, 3] };

const MOST_TALL = 8; // marks of refused requests that cross the chart
const LEAST_BETWEEN_STEPS = 12; // pixels: nearer together only steps with a label cross the chart

/** The first and last visible column. */
function seen_columns(levels: Levels, axis: Axis): [number, number] {
  const first = column_at(levels, axis.event_at_x(0));
  const last = Math.max(first, column_at(levels, axis.event_at_x(1)));
  return [first, last];
}

export function top_of(levels: Levels, axis: Axis): number {
  const [first, last] = seen_columns(levels, axis);
  let most = 1;
  for (let i = first; i <= last; ++i) {
    most = Math.max(most, levels.total[i]);
    for (const name of Object.keys(levels.lines))
      if (lines_shown.value.includes(name)) most = Math.max(most, levels.lines[name][i]);
  }
  const capacity = device.value?.capacity_bytes;
  if (capacity && lines_shown.value.includes("capacity") && capacity < 1.8 * most) most = Math.max(most, capacity);
  return most * 1.06;
}

// Rectangles are rebuilt only when their data changes; panning and zooming move the window alone.
let made_of: unknown[] = [];
function rects_of(surface: Surface, levels: Levels, axis: Axis): number {
  const origin = axis.unit(levels.from);
  const dark = is_dark.value;
  const blocks = data.spans.value;
  const alone = data.isolated.value;
  const from = [surface, levels, axis.kind, axis.kind === "time" ? axis.times : 0, dark, blocks, alone, chosen_block.value];
  if (from.every((value, i) => value === made_of[i])) return origin;
  made_of = from;
  const unit = (event: number) => axis.unit(event);
  if (!data.is_blocks.value) {
    const colour = levels.keys.map((key, i) => (alone && alone !== key.label ? faded(data.colour_list.value[i]) : data.colour_list.value[i]));
    surface.rects.set(band_rects(levels, colour, unit, origin));
    return origin;
  }
  if (!blocks) return origin;
  const out = new RectList(levels.columns + blocks.count);
  const grey = colour_of("", "other", dark);
  const edges = Float64Array.from(levels.begin, (event) => unit(event) - origin);
  for (let i = 0; i < levels.columns; ++i) if (blocks.rest[i] > 0) out.add(edges[i], levels.total[i] - blocks.rest[i], edges[i + 1], levels.total[i], grey);
  const colour = blocks.blocks.map((block, i) => (chosen_block.value >= 0 && chosen_block.value !== block.id ? faded(blocks.colour[i]) : blocks.colour[i]));
  for (let i = 0; i < blocks.count; ++i) {
    const { block, x0, x1, bottom } = blocks;
    out.add(edges[x0[i]], bottom[i], edges[x1[i]], bottom[i] + blocks.blocks[block[i]].size_bytes, colour[block[i]]);
  }
  surface.rects.set(out);
  return origin;
}

export function draw_time(surface: Surface): void {
  const { context: c, width, height } = surface;
  const levels = data.levels.value;
  const axis = data.axis.value;
  const tone = colours();
  const plot = { x: data.LEFT, y: data.TOP, w: Math.max(1, width - data.LEFT), h: Math.max(1, height - data.TOP - data.BOTTOM) };
  if (!levels || levels.columns === 0) {
    surface.rects.set(new RectList());
    surface.rects.draw({ x0: 0, x1: 1, y0: 0, y1: 1 });
    return;
  }
  const most = top_of(levels, axis);
  const origin = rects_of(surface, levels, axis);
  const per_px = (axis.u1 - axis.u0) / plot.w;
  const y_per_px = most / plot.h;
  surface.rects.draw({
    x0: axis.u0 - origin - plot.x * per_px, x1: axis.u1 - origin,
    y0: -data.BOTTOM * y_per_px, y1: most + data.TOP * y_per_px,
  });
  const x_of = (event: number) => plot.x + axis.x(event) * plot.w;
  const y_of = (value: number) => plot.y + plot.h * (1 - value / most);

  c.fillStyle = tone.card;
  c.fillRect(0, 0, plot.x, height);
  c.fillRect(0, 0, width, plot.y);
  c.fillRect(0, plot.y + plot.h, width, data.BOTTOM);
  draw_grid(c, plot, most, tone, axis);
  c.save();
  c.beginPath();
  c.rect(plot.x, 0, plot.w, plot.y + plot.h);
  c.clip();
  if (!data.is_blocks.value) draw_names(c, levels, axis, x_of, y_of);
  draw_pending(c, levels, axis, x_of, y_of, tone);
  draw_lines(c, levels, axis, x_of, y_of, tone);
  draw_hits(c, levels, x_of, plot, tone);
  draw_marks(c, x_of, plot, tone);
  draw_cursor(c, x_of, plot, tone);
  c.restore();
}

interface Plot {
  x: number;
  y: number;
  w: number;
  h: number;
}

/** The labels of the horizontal axis, by their shares of its width. */
export function moment_ticks(axis: Axis, width_px: number): { x: number; text: string }[] {
  const steps = ticks(axis.u0, axis.u1, width_px / 110);
  const step = steps.length > 1 ? steps[1] - steps[0] : axis.u1 - axis.u0;
  const text_of = (value: number) => (axis.kind === "time" ? format.time(value, step) : format.count(value));
  return steps
    .filter((value) => axis.kind === "time" || value === Math.round(value))
    .map((value) => ({ x: (value - axis.u0) / (axis.u1 - axis.u0), text: text_of(value) }));
}

function draw_grid(c: CanvasRenderingContext2D, plot: Plot, most: number, tone: Colours, axis: Axis): void {
  c.textBaseline = "middle";
  c.textAlign = "right";
  for (const value of byte_ticks(most / 1.02, plot.h)) {
    const y = Math.round(plot.y + plot.h * (1 - value / most)) + 0.5;
    c.globalAlpha = 0.5;
    c.strokeStyle = tone.strong;
    c.lineWidth = 0.6;
    line(c, plot.x, y, plot.x + plot.w, y);
    c.globalAlpha = 1;
    c.fillStyle = tone.dim;
    c.fillText(format.bytes(value), plot.x - 7, Math.min(y, plot.y + plot.h - 5));
  }
  c.textBaseline = "alphabetic";
  c.fillText(axis.kind === "time" ? "time" : "events", plot.x - 7, plot.y + plot.h + 16);
  c.textAlign = "center";
  for (const { x: share, text } of moment_ticks(axis, plot.w)) {
    const x = plot.x + share * plot.w;
    c.strokeStyle = tone.strong;
    line(c, x, plot.y + plot.h, x, plot.y + plot.h + 4);
    const half = c.measureText(text).width / 2;
    c.fillStyle = tone.dim;
    c.fillText(text, Math.min(plot.x + plot.w - half - 3, Math.max(plot.x + half, x)), plot.y + plot.h + 16);
  }
  c.strokeStyle = tone.strong;
  c.lineWidth = 1;
  line(c, plot.x, plot.y + plot.h + 0.5, plot.x + plot.w, plot.y + plot.h + 0.5);
}

function line(c: CanvasRenderingContext2D, x0: number, y0: number, x1: number, y1: number): void {
  c.beginPath();
  c.moveTo(x0, y0);
  c.lineTo(x1, y1);
  c.stroke();
}

/** Names of bands where they are thick enough for one. */
function draw_names(c: CanvasRenderingContext2D, levels: Levels, axis: Axis, x_of: (e: number) => number, y_of: (v: number) => number): void {
  const [first, last] = seen_columns(levels, axis);
  const below = new Float64Array(levels.columns);
  const left = data.LEFT + 4;
  const right = data.size.value[0] - 4;
  c.textAlign = "center";
  c.textBaseline = "middle";
  const least = 15 / ((y_of(0) - y_of(1e9)) / 1e9); // bytes that are 15 pixels high
  const { values } = levels;
  levels.keys.forEach((key, k) => {
    const row = k * levels.columns;
    let best: [number, number, number] = [0, 0, 0];
    for (let i = first; i <= last; ++i) {
      if (values[row + i] < least) continue;
      const begin = i;
      while (i + 1 <= last && values[row + i + 1] >= least) ++i;
      const w = Math.min(right, x_of(levels.begin[i + 1])) - Math.max(left, x_of(levels.begin[begin]));
      if (w > best[2]) best = [begin, i, w];
    }
    const text = best[2] > 44 ? fit_text(c, format.key_line(key.label), best[2] - 14) : "";
    if (text) {
      const middle = (Math.max(left, x_of(levels.begin[best[0]])) + Math.min(right, x_of(levels.begin[best[1] + 1]))) / 2;
      const half = c.measureText(text).width / 2 + 3;
      let floor = 0;
      let ceiling = Infinity;
      for (let i = best[0]; i <= best[1]; ++i) {
        if (x_of(levels.begin[i + 1]) < middle - half || x_of(levels.begin[i]) > middle + half) continue;
        floor = Math.max(floor, below[i]);
        ceiling = Math.min(ceiling, below[i] + values[row + i]);
      }
      if (y_of(floor) - y_of(ceiling) >= 13) {
        const own = data.colour_list.value[k];
        const alone = data.isolated.value;
        c.fillStyle = alone && alone !== key.label ? colours().dim : ink_on(own);
        c.fillText(text, middle, (y_of(floor) + y_of(ceiling)) / 2);
      }
    }
    for (let i = first; i <= last; ++i) below[i] += values[row + i];
  });
}

function step_path(c: CanvasRenderingContext2D, levels: Levels, axis: Axis, values: Float64Array, x_of: (e: number) => number, y_of: (v: number) => number): void {
  const [first, last] = seen_columns(levels, axis);
  c.beginPath();
  for (let i = first; i <= last; ++i) {
    const y = y_of(values[i]);
    if (i === first) c.moveTo(x_of(levels.begin[i]), y);
    else c.lineTo(x_of(levels.begin[i]), y);
    c.lineTo(x_of(levels.begin[i + 1]), y);
  }
}
function draw_lines(c: CanvasRenderingContext2D, levels: Levels, axis: Axis, x_of: (e: number) => number, y_of: (v: number) => number, tone: Colours): void {
  c.lineWidth = 1.6;
  for (const [name, values] of Object.entries(levels.lines)) {
    if (!lines_shown.value.includes(name)) continue;
    c.setLineDash(LINE_DASH[name]);
    c.strokeStyle = tone.ink;
    step_path(c, levels, axis, values, x_of, y_of);
    c.stroke();
  }
  const capacity = device.value?.capacity_bytes;
  if (capacity && lines_shown.value.includes("capacity") && y_of(capacity) >= data.TOP) {
    c.setLineDash(LINE_DASH.capacity);
    c.strokeStyle = tone.bad;
    line(c, data.LEFT, y_of(capacity), c.canvas.width, y_of(capacity));
    c.textAlign = "right";
    c.textBaseline = "top";
    c.fillStyle = tone.bad;
    c.fillText(`capacity ${format.bytes(capacity)}`, data.size.value[0] - 8, y_of(capacity) + 3);
  }
  c.setLineDash([]);
}

/** Freed but still in use by a stream: hatched, at the top of the live bytes. */
function draw_pending(c: CanvasRenderingContext2D, levels: Levels, axis: Axis, x_of: (e: number) => number, y_of: (v: number) => number, tone: Colours): void {
  if (levels.pending.length === 0 || data.is_blocks.value) return;
  const [first, last] = seen_columns(levels, axis);
  c.strokeStyle = tone.mark;
  c.lineWidth = 1;
  for (let i = first; i <= last; ++i) {
    if (!(levels.pending[i] > 0)) continue;
    const y1 = y_of(levels.total[i]);
    const y0 = y_of(levels.total[i] - levels.pending[i]);
    const x0 = x_of(levels.begin[i]);
    const x1 = Math.max(x0 + 1, x_of(levels.begin[i + 1]));
    c.globalAlpha = 0.3;
    c.fillStyle = tone.mark;
    c.fillRect(x0, y1, x1 - x0, y0 - y1);
    c.globalAlpha = 1;
    c.beginPath();
    for (let x = Math.ceil(x0 / 4) * 4; x < x1; x += 4) {
      c.moveTo(x, y0);
      c.lineTo(x, y1);
    }
    c.stroke();
  }
}

function draw_hits(c: CanvasRenderingContext2D, levels: Levels, x_of: (e: number) => number, plot: Plot, tone: Colours): void {
  const { answer } = data.hits.value;
  if (!answer) return;
  const [hits, begin] = [answer.u32("hits"), answer.u32("begin")];
  c.fillStyle = tone.accent;
  hits.forEach((count, i) => {
    if (count > 0 && begin[i] >= levels.from) c.fillRect(x_of(begin[i]), plot.y + plot.h - 6, Math.max(2, x_of(begin[i + 1] ?? begin[i]) - x_of(begin[i])), 6);
  });
}

function draw_marks(c: CanvasRenderingContext2D, x_of: (e: number) => number, plot: Plot, tone: Colours): void {
  c.textBaseline = "middle";
  c.textAlign = "left";
  const chosen = x_of(moment.value);
  const taken: [number, number][] = [[chosen - 3, chosen + 3]]; // by labels, and by the sign of the moment
  /** Draws a label where the first of `places` has room for it; false where none has. */
  const flag = (text: string, colour: string, ...places: ((width: number) => number)[]) => {
    const w = c.measureText(text).width;
    const at = places.map((place) => place(w)).find((x) => x >= plot.x && x + w <= plot.x + plot.w && taken.every(([from, to]) => x > to + 10 || x + w < from - 10));
    if (at === undefined) return false;
    c.fillStyle = colour;
    c.fillText(text, at, plot.y / 2 + 1);
    taken.push([at, at + w]);
    return true;
  };
  // One that began further left keeps its label while some of it is to the right.
  const after = (x: number) => (w: number) => (x + 4 + w < plot.x ? -1 : Math.max(plot.x + 3, x + 4));
  // A step's mark is its end: its label stands in the middle of the step, as far as that is seen.
  const between = (from: number, to: number) => (w: number) => Math.max(plot.x + 3, (Math.max(plot.x, from) + to - w) / 2);
  // Else, as where the moment's own mark is, at an end of it.
  const within = (from: number, to: number, at: "begin" | "end") => (w: number) =>
    to - Math.max(plot.x, from) < w + 8 ? -1 : at === "begin" ? Math.max(plot.x, from) + 4 : to - 4 - w;
  const before = (x: number) => (w: number) => x - 4 - w;
  const shown = data.marks.value;
  // Out of memory first: its label matters most. Very many would hide the chart: then only the chosen one is drawn at full height.
  const refused = shown.filter((mark) => mark.kind === data.OUT_OF_MEMORY && x_of(mark.event) >= plot.x && x_of(mark.event) <= plot.x + plot.w);
  for (const mark of refused) {
    const x = Math.round(x_of(mark.event)) + 0.5;
    const is_tall = refused.length <= MOST_TALL || mark.event === moment.value;
    c.strokeStyle = tone.bad;
    c.lineWidth = is_tall ? 2 : 1;
    line(c, x, is_tall ? 0 : plot.y - 7, x, is_tall ? plot.y + plot.h : plot.y + 5);
    if (is_tall || mark === refused[0]) flag(`Out of memory${mark.bytes ? `: ${format.bytes(mark.bytes)} refused` : ""}`, tone.bad, after(x), before(x));
  }
  c.lineWidth = 1;
  const steps = shown.filter((mark) => mark.kind === data.STEP && x_of(mark.event) >= plot.x && x_of(mark.event) <= plot.x + plot.w);
  let step_begin = x_of(0);
  const are_many = steps.length * LEAST_BETWEEN_STEPS > plot.w;
  for (const mark of shown) {
    const x = Math.round(x_of(mark.event)) + 0.5;
    if (mark.kind === data.UNKNOWN_BEFORE) {
      if (x <= plot.x + 1) continue;
      c.globalAlpha = 0.5;
      c.strokeStyle = tone.dim;
      for (let at = plot.x - plot.h; at < x; at += 9) line(c, at, plot.y + plot.h, at + plot.h, plot.y);
      c.globalAlpha = 1;
      flag("Unknown before this point", tone.dim, after(plot.x));
    } else if (mark.kind === data.STEP || mark.kind === data.PHASE || mark.kind === data.ANNOTATION) {
      const begin = step_begin;
      if (mark.kind === data.STEP) step_begin = x;
      if (x < plot.x - 200 || x > plot.x + plot.w) continue;
      const label = mark.label.length > 40 ? `${format.plain(mark.label.slice(0, 40))}…` : format.plain(mark.label);
      const places = mark.kind === data.STEP ? [between(begin, x), within(begin, x, "begin"), within(begin, x, "end")] : [after(x)];
      const is_named = flag(label, tone.mark, ...places);
      const is_tall = is_named || mark.kind !== data.STEP || !are_many;
      c.strokeStyle = tone.mark;
      c.setLineDash(mark.kind === data.STEP ? [] : [3, 3]);
      c.globalAlpha = 0.55;
      if (x >= plot.x) line(c, x, plot.y - 6, x, is_tall ? plot.y + plot.h : plot.y);
      if (mark.end !== NONE && mark.end > mark.event) {
        c.lineWidth = 3;
        line(c, x, plot.y - 2, x_of(mark.end), plot.y - 2);
        c.lineWidth = 1;
      }
      c.globalAlpha = 1;
      c.setLineDash([]);
    }
  }
}

function draw_cursor(c: CanvasRenderingContext2D, x_of: (e: number) => number, plot: Plot, tone: Colours): void {
  const marked = range.value;
  if (marked) {
    const [x0, x1] = marked.map(x_of);
    c.globalAlpha = 0.16;
    c.fillStyle = tone.accent;
    c.fillRect(x0, plot.y, x1 - x0, plot.h);
    c.globalAlpha = 1;
    c.strokeStyle = tone.accent;
    c.lineWidth = 1.5;
    for (const x of [x0, x1]) line(c, x, plot.y, x, plot.y + plot.h);
  }
  const x = Math.round(x_of(moment.value)) + 0.5;
  c.strokeStyle = tone.ink;
  c.lineWidth = 1.5;
  line(c, x, plot.y - 3, x, plot.y + plot.h);
  c.fillStyle = tone.ink;
  c.beginPath();
  c.moveTo(x - 5, plot.y - 7);
  c.lineTo(x + 5, plot.y - 7);
  c.lineTo(x, plot.y);
  c.fill();
  const pointer = data.hovered.value;
  if (pointer !== null) {
    c.globalAlpha = 0.7;
    c.setLineDash([2, 2]);
    c.lineWidth = 1;
    line(c, x_of(pointer), plot.y, x_of(pointer), plot.y + plot.h);
    c.setLineDash([]);
    c.globalAlpha = 1;
  }
}

/** The key's index or the block under a point of the chart. */
export function under(x: number, y: number): { key?: number; block?: number } {
  const levels = data.levels.value;
  if (!levels) return {};
  const [width, height] = data.size.value;
  const axis = data.axis.value;
  const event = axis.event_at_x((x - data.LEFT) / (width - data.LEFT));
  const plot_h = height - data.TOP - data.BOTTOM;
  const value = (1 - (y - data.TOP) / plot_h) * top_of(levels, axis);
  const column = column_at(levels, event);
  const blocks = data.spans.value;
  if (data.is_blocks.value) {
    for (let i = 0; blocks && i < blocks.count; ++i) {
      const block = blocks.blocks[blocks.block[i]];
      if (blocks.x0[i] <= column && column < blocks.x1[i] && blocks.bottom[i] <= value && value < blocks.bottom[i] + block.size_bytes) return { block: block.id };
    }
    return {};
  }
  let sum = 0;
  for (let key = 0; key < levels.keys.length; ++key) {
    sum += levels.values[key * levels.columns + column];
    if (value < sum) return { key };
  }
  return {};
}

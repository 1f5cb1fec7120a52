// What the machine said meanwhile, on the chart's own axis: a lane for each memory that was sampled.
import { colours, css, fit_text, SurfaceBox } from "../draw/index.ts";
import type { Surface } from "../draw/index.ts";
import type { Chart } from "../data/types.ts";
import * as format from "../format.ts";
import { moment } from "../state/run.ts";
import { event_at, time_of } from "./axis.ts";
import { DASHES, tint } from "./chart.tsx";
import * as data from "./time_data.ts";

/** Of the sample nearest to a time, as the report takes it; -1: there is none at or before it. The later one only where the
 * figure is known all the time between: a line ends with a sample without bytes. */
function sample_at(line: Chart["lines"][number], time_s: number): number {
  let low = -1;
  let high = line.times_s.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (line.times_s[middle] <= time_s) low = middle;
    else high = middle;
  }
  const is_known = low >= 0 && high < line.times_s.length && line.bytes[low] !== null && line.bytes[high] !== null;
  return is_known && line.times_s[high] - time_s < time_s - line.times_s[low] ? high : low;
}

/** The figure nearest to a time; null: none, or not known. */
export function figure_at(line: Chart["lines"][number], time_s: number): number | null {
  return line.bytes[sample_at(line, time_s)] ?? null;
}

/** How far from a time the farthest of a lane's figures was sampled: memory may have changed between. "": not far. */
export function age_text(lane: Chart, time_s: number): string {
  let age_s = 0;
  for (const line of lane.lines) {
    if (figure_at(line, time_s) === null) continue;
    const its = time_s - line.times_s[sample_at(line, time_s)];
    if (Math.abs(its) > Math.abs(age_s)) age_s = its;
  }
  return Math.abs(age_s) < 0.001 ? "" : `, sampled ${format.time(Math.abs(age_s) * 1e9, 1e6)} ${age_s > 0 ? "earlier" : "later"}`;
}

/** A figure at a time, or why there is none. The last sample of a process that ended has no bytes; one that others were
 * sampled without had not begun. */
export function figure_text(lane: Chart, line: Chart["lines"][number], time_s: number): string {
  const value = figure_at(line, time_s);
  if (value !== null || !/ by process/.test(lane.title) || line.times_s.length === 0) return format.bytes(value);
  const first = line.times_s[0];
  if (time_s >= line.times_s.at(-1)!) return "not running";
  if (time_s >= first) return format.bytes(value);
  const is_before_it = lane.lines.some((other) => other.times_s.some((at) => at >= time_s && at < first));
  return is_before_it ? "not running" : "not sampled yet";
}

/** The lines of a lane by number: those with a figure at a time, then the others. */
export function named_first(lane: Chart, time_s: number): number[] {
  const has_none = (k: number) => Number(figure_at(lane.lines[k], time_s) === null);
  return lane.lines.map((_, k) => k).sort((a, b) => has_none(a) - has_none(b));
}
/** A lane's title, with the age of its figures where that fits. */
export function title_text(lane: Chart, time_s: number, fits: (text: string) => boolean): string {
  const title = `${format.plain(lane.title, 60)}${lane.limit_bytes ? ` of ${format.bytes(lane.limit_bytes)}` : ""}`;
  const aged = `${title}${age_text(lane, time_s)}:`;
  return fits(aged) ? aged : `${title}:`;
}

const KEY = 16; // the width of a line's sign before its name
const LEAST_PLOT = 30; // the height that the words leave to the lines

const ROW = 14; // the height of a row of words
const more = (count: number) => `and ${count} more`;

/** The lane's title and how old its figures are, then of each line its sign, name and figure at the moment, in as many rows
 * as `height` has room for. The age, then the title give way to the first line, a name to its figure; in the last row lines without room
 * for half of their names are counted: "and 3 more". Lines with a figure at the moment come first. Where the words end. */
export function draw_words(c: CanvasRenderingContext2D, lane: Chart, width: number, height: number): number {
  const time_s = time_of(data.times.value, data.hovered.value ?? moment.value) / 1e9;
  const end = data.LEFT + width - 8;
  const begin = data.LEFT + 2;
  const last = Math.floor((height - LEAST_PLOT) / ROW) * ROW - ROW / 2;
  let [x, y] = [begin, ROW / 2];
  const width_of = (text: string) => c.measureText(text).width;
  const say = (text: string) => {
    c.fillText(text, x, y);
    x += width_of(text) + 8;
  };
  const words = named_first(lane, time_s).map((k) => ({ k, name: format.plain(lane.lines[k].name, 60), figure: ` ${figure_text(lane, lane.lines[k], time_s)}` }));
  const first = words[0] ? KEY + 8 + width_of(words[0].name + words[0].figure) : 0;
  const room = Math.max(end - x - first, width / 3);
  say(fit_text(c, title_text(lane, time_s, (text) => width_of(text) <= room), room));
  for (const [place, { k, name, figure }] of words.entries()) {
    const room_at = (x: number) => end - x - KEY - width_of(figure);
    const wanted = width_of(name) * (y < last ? 1 : 0.5);
    if (room_at(x) < wanted && y < last) (x = begin), (y += ROW);
    const after = words.length - place - 1;
    const beside = room_at(x) - (after && y >= last ? width_of(more(after)) + 8 : 0);
    const room = beside < width_of(name) / 2 ? room_at(x) : beside;
    if (room < width_of(name) / 2) {
      if (width_of(more(after + 1)) <= end - x) say(more(after + 1));
      break;
    }
    stroke_as(c, k);
    c.beginPath();
    c.moveTo(x, y);
    c.lineTo(x + KEY - 4, y);
    c.stroke();
    x += KEY;
    say(fit_text(c, name, room) + figure);
  }
  c.setLineDash([]);
  return y + ROW / 2;
}

function stroke_as(c: CanvasRenderingContext2D, k: number): void {
  c.strokeStyle = css(tint(k));
  c.lineWidth = 1.8;
  c.setLineDash(DASHES[k % DASHES.length] ?? []);
}

function draw(lane: Chart, { context: c, width, height }: Surface): void {
  const tone = colours();
  const axis = data.axis.value;
  const times = data.times.value;
  const plot = width - data.LEFT;
  const bottom = height - 1.5;
  c.fillStyle = tone.dim;
  c.textBaseline = "middle";
  c.textAlign = "left";
  const top = draw_words(c, lane, plot, height);
  let most = 1;
  for (const line of lane.lines) for (const value of line.bytes) if (value !== null && value > most) most = value;
  if (lane.limit_bytes && lane.limit_bytes < 2 * most) most = lane.limit_bytes;
  const y_of = (value: number) => bottom - (Math.min(value, most) / most) * (bottom - top - 2);
  const x_of = (time_s: number) => data.LEFT + plot * (axis.kind === "time" ? (time_s * 1e9 - axis.u0) / (axis.u1 - axis.u0) : axis.x(event_at(times, time_s * 1e9)));
  c.save();
  c.beginPath();
  c.rect(data.LEFT, 0, plot, height);
  c.clip();
  lane.lines.forEach((line, k) => {
    const end = times.time_ns.at(-1);
    c.beginPath();
    let before: number | null = null;
    line.times_s.forEach((time_s, i) => {
      const value = line.bytes[i] ?? null;
      const x = x_of(time_s);
      // A figure holds until the next one; where none is known there is a gap.
      if (before !== null) c.lineTo(x, y_of(before));
      if (value !== null && before === null) c.moveTo(x, y_of(value));
      else if (value !== null) c.lineTo(x, y_of(value));
      before = value;
    });
    if (before !== null && end !== undefined) c.lineTo(Math.max(x_of(line.times_s.at(-1)!), x_of(end / 1e9)), y_of(before));
    stroke_as(c, k);
    c.stroke();
  });
  c.setLineDash([]);
  c.strokeStyle = tone.ink;
  c.lineWidth = 1;
  const x = data.LEFT + axis.x(moment.value) * plot;
  c.beginPath();
  c.moveTo(x, top);
  c.lineTo(x, height);
  c.stroke();
  c.restore();
  c.fillStyle = tone.dim;
  c.textAlign = "right";
  c.fillText(format.bytes(most), data.LEFT - 7, top + 6);
  c.strokeStyle = tone.line;
  c.beginPath();
  c.moveTo(data.LEFT, height - 0.5);
  c.lineTo(width, height - 0.5);
  c.stroke();
}

export function Lanes() {
  if (!data.has_lanes.value) return null;
  return (
    <div class="lanes" role="region" aria-label="Sampled memory" tabIndex={0}>
      {data.lanes.value.map((lane, i) => (
        <SurfaceBox key={i} draw={(surface) => draw(lane, surface)} focusable={false} label={`${format.plain(lane.title, 60)} over time. The report has its figures.`} />
      ))}
    </div>
  );
}

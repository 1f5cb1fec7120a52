// The horizontal axis: events, or the time at which they happened. The visible range is always one of events.

export interface Times {
  event: Uint32Array;
  time_ns: Float64Array;
}
export const NO_TIMES: Times = { event: new Uint32Array(), time_ns: new Float64Array() };

function between(keys: ArrayLike<number>, values: ArrayLike<number>, key: number): number {
  const last = keys.length - 1;
  if (last < 0) return NaN;
  if (key <= keys[0]) return values[0];
  if (key >= keys[last]) return values[last];
  let low = 0;
  let high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (keys[middle] <= key) low = middle;
    else high = middle;
  }
  const span = keys[high] - keys[low];
  return span > 0 ? values[low] + ((values[high] - values[low]) * (key - keys[low])) / span : values[low];
}
export function time_of(times: Times, event: number): number {
  return between(times.event, times.time_ns, event);
}
export function event_at(times: Times, time_ns: number): number {
  return between(times.time_ns, times.event, time_ns);
}

/** Between events, units (events or ns) and shares of the width, for one visible range. */
export class Axis {
  readonly kind: "event" | "time";
  readonly times: Times;
  readonly u0: number;
  readonly u1: number;
  constructor(kind: "event" | "time", from: number, to: number, times: Times) {
    const timed = kind === "time" && times.event.length > 1 && time_of(times, to) > time_of(times, from);
    this.kind = timed ? "time" : "event";
    this.times = times;
    this.u0 = this.unit(from);
    this.u1 = this.unit(to);
  }
  unit(event: number): number {
    return this.kind === "time" ? time_of(this.times, event) : event;
  }
  event(unit: number): number {
    return this.kind === "time" ? event_at(this.times, unit) : unit;
  }
  /** 0 to 1 inside of the visible range. */
  x(event: number): number {
    return (this.unit(event) - this.u0) / (this.u1 - this.u0);
  }
  event_at_x(x: number): number {
    return this.event(this.u0 + x * (this.u1 - this.u0));
  }
}

/** Round values between two, about `wanted` of them. */
export function ticks(low: number, high: number, wanted: number, binary = false): number[] {
  const raw = (high - low) / Math.max(1, wanted);
  if (!(raw > 0) || !Number.isFinite(raw)) return [];
  const base = binary ? 2 ** Math.ceil(Math.log2(raw)) : 10 ** Math.floor(Math.log10(raw));
  const step = binary ? base : base * ([1, 2, 5, 10].find((factor) => factor * base >= raw) ?? 10);
  const out: number[] = [];
  for (let value = Math.ceil(low / step) * step; value <= high && out.length < 100; value += step) out.push(value);
  return out;
}

/** Sizes for an axis of some height: at least four where it has 120 pixels, 20 pixels apart or more. Of nothing: 0 alone. */
export function byte_ticks(most: number, height_px: number): number[] {
  if (most < 2) return [0];
  return ticks(0, most, Math.max(2, Math.min(6, height_px / 20), height_px / 40), true).filter(Number.isInteger);
}

export interface Fetch {
  from: number;
  to: number;
  columns: number;
}
const bucket_for = (span: number, width_px: number) => 2 ** Math.max(0, Math.ceil(Math.log2(span / Math.max(1, width_px) / 1.5)));
const columns_of = (from: number, to: number, bucket: number) => Math.max(1, Math.min(8192, Math.ceil((to - from) / bucket)));
/** What to fetch for a visible range: three times as wide, in power-of-two buckets of about a pixel. */
export function fetch_for(from: number, to: number, events: number, width_px: number): Fetch {
  const bucket = bucket_for(to - from, width_px);
  const span = to - from;
  const grid = Math.max(bucket, 2 ** Math.floor(Math.log2(Math.max(1, span))));
  const low = Math.max(0, Math.floor((from - span) / grid) * grid);
  const high = Math.min(events, Math.ceil((to + span) / grid) * grid);
  return { from: low, to: high, columns: columns_of(low, high, bucket) };
}
/** The window of `held` as long as it has the visible range with half as much beside it, in buckets of the same size: an
 *  answer that comes rebuilds all rectangles. */
export function fetch_again(held: Fetch | null, from: number, to: number, events: number, width_px: number): Fetch {
  if (held && held.to <= events) {
    const margin = (to - from) / 2;
    const has_all = held.from <= Math.max(0, from - margin) && held.to >= Math.min(events, to + margin);
    if (has_all && held.columns === columns_of(held.from, held.to, bucket_for(to - from, width_px))) return held;
  }
  return fetch_for(from, to, events, width_px);
}
/** The first event of a column; that of the column after the last is the range's end. */
export function column_start(from: number, to: number, columns: number, index: number): number {
  return from + Math.floor((index * (to - from)) / columns);
}

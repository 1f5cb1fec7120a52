// Panning and zooming the visible range by pointer, wheel and keys, for every view on the chart's axis.
import { signal } from "@preact/signals";
import { device, moment, moments, range, visible } from "../state/run.ts";
import { go } from "../state/view.ts";
import { Axis } from "./axis.ts";
import { peaks_of } from "./bands.ts";
import * as data from "./time_data.ts";

/** Whether a drag pans instead of selecting a range. */
export const drags_pan = signal(false);

const LEAST_EVENTS = 4;

/** Shows [from, to), clamped to the run. */
export function show_events(from: number, to: number): void {
  const all = moments.value;
  const span = Math.min(all, Math.max(Math.min(LEAST_EVENTS, all), Math.round(to - from)));
  const low = Math.max(0, Math.min(Math.round(from), all - span));
  go(span >= all ? { from: 0, to: 0 } : { from: low, to: low + span });
}
export function zoom(factor: number, at_x = 0.5): void {
  const axis = data.axis.value;
  const [from, to] = visible.value;
  if (axis.kind === "event") {
    const centre = from + at_x * (to - from);
    show_events(centre - at_x * (to - from) * factor, centre + (1 - at_x) * (to - from) * factor);
    return;
  }
  const wide = new Axis("time", from, to, axis.times);
  const unit = wide.u0 + at_x * (wide.u1 - wide.u0);
  const low = wide.event(unit - at_x * (wide.u1 - wide.u0) * factor);
  const high = wide.event(unit + (1 - at_x) * (wide.u1 - wide.u0) * factor);
  show_events(low, factor > 1 && high - low <= to - from ? low + (to - from) * factor : high);
}
export function pan(share: number): void {
  const [from, to] = visible.value;
  const by = share * (to - from);
  show_events(from + (by > 0 ? Math.ceil(by) : Math.floor(by)), to + (by > 0 ? Math.ceil(by) : Math.floor(by)));
}
/** Shows the selected range, else the surroundings of the chosen moment. */
export function fit(): void {
  const marked = range.value;
  if (marked) {
    const margin = Math.ceil((marked[1] - marked[0]) * 0.04);
    show_events(marked[0] - margin, marked[1] + margin);
    return;
  }
  const [from, to] = visible.value;
  const span = Math.max(40, (to - from) / 8);
  show_events(moment.value - span / 2, moment.value + span / 2);
}
export function show_all(): void {
  go({ from: 0, to: 0 });
}
/** Chooses a moment, and pans to it if it is not visible. */
export function choose(event: number, patch: object = {}): void {
  const at = Math.max(0, Math.min(Math.round(event), moments.value - 1));
  const [from, to] = visible.value;
  const low = Math.max(0, at - Math.floor((to - from) / 2));
  const moved = at < from || at >= to ? { from: low, to: low + (to - from) } : {};
  go({ moment: at, ...moved, ...patch });
}
export function to_peak(): void {
  const peak = device.value?.peak?.event;
  if (peak !== undefined) choose(peak, { moment: -1 });
}
/** Goes to the next or previous peak among the shown columns. */
export function to_next_peak(direction: 1 | -1): void {
  const shown = data.levels.value;
  if (!shown) return;
  const peaks = peaks_of(shown.total).map((column) => shown.event[column]);
  const next = direction > 0 ? peaks.find((event) => event > moment.value) : peaks.findLast((event) => event < moment.value);
  if (next !== undefined) choose(next);
}
export function to_out_of_memory(): void {
  const marks = data.marks.value.filter((mark) => mark.kind === data.OUT_OF_MEMORY);
  const next = marks.find((mark) => mark.event > moment.value) ?? marks[0];
  if (next) choose(next.event);
}

/** The pointer over a chart whose plot begins `left` pixels from its left edge. */
export function follow_pointer(canvas: HTMLElement, left: number, on_click: (x: number, y: number, event: number) => void): () => void {
  const held = new Map<number, { x: number; y: number }>();
  let start: { x: number; from: number; to: number; event: number; pans: boolean } | null = null;
  let moved = false;
  let pinch = 0;
  let pending: (() => void) | null = null;
  let frame = 0;
  // Of the movements between two frames only the last counts.
  const soon = (what: () => void) => {
    pending = what;
    frame ||= requestAnimationFrame(() => {
      frame = 0;
      pending?.();
      pending = null;
    });
  };
  const share = (x: number) => {
    const box = canvas.getBoundingClientRect();
    return (x - box.left - left) / Math.max(1, box.width - left);
  };
  const event_of = (x: number) => data.moment_at(share(x));
  let last: [number, number] = [NaN, NaN];

  const down = (event: PointerEvent) => {
    if (event.button > 1) return;
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, { x: event.clientX, y: event.clientY });
    moved = false;
    const [from, to] = visible.value;
    const pans = event.button === 1 || event.shiftKey || event.pointerType === "touch" || drags_pan.value;
    start = { x: event.clientX, from, to, event: event_of(event.clientX), pans };
    if (event.pointerType === "touch" && !drags_pan.value && start && touch_marks.value) start.pans = false;
  };
  const move = (event: PointerEvent) => {
    if (!held.has(event.pointerId)) {
      // A browser also tells of a pointer that rests, where the page under it changed.
      if (event.clientX === last[0] && event.clientY === last[1]) return;
      last = [event.clientX, event.clientY];
      data.pointer_x.value = share(event.clientX) >= 0 ? share(event.clientX) : null;
      return;
    }
    held.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (held.size === 2) {
      const [a, b] = [...held.values()];
      const distance = Math.max(20, Math.abs(a.x - b.x));
      if (pinch > 0) {
        const factor = pinch / distance;
        soon(() => zoom(factor, Math.min(1, Math.max(0, share((a.x + b.x) / 2)))));
      }
      pinch = distance;
      moved = true;
      return;
    }
    if (!start || Math.abs(event.clientX - start.x) < 4 && !moved) return;
    moved = true;
    const { clientX } = event;
    const begun = start;
    soon(() => {
      if (begun.pans) {
        const box = canvas.getBoundingClientRect();
        const by = ((begun.x - clientX) / Math.max(1, box.width - left)) * (begun.to - begun.from);
        show_events(begun.from + by, begun.to + by);
      } else {
        const at = event_of(clientX);
        go({ range_from: Math.min(begun.event, at), range_to: Math.max(begun.event, at) + (at === begun.event ? 1 : 0) });
      }
    });
  };
  const up = (event: PointerEvent) => {
    held.delete(event.pointerId);
    pinch = 0;
    if (!moved && start && held.size === 0 && share(event.clientX) >= 0) {
      const box = canvas.getBoundingClientRect();
      on_click(event.clientX - box.left, event.clientY - box.top, event_of(event.clientX));
    }
    if (held.size === 0) start = null;
  };
  const leave = () => {
    data.pointer_x.value = null;
    last = [NaN, NaN];
  };
  const wheel = (event: WheelEvent) => {
    event.preventDefault();
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : event.deltaX;
    const scale = event.deltaMode === 1 ? 16 : 1;
    if (Math.abs(sideways) > Math.abs(event.shiftKey ? 0 : event.deltaY)) pan((sideways * scale) / 900);
    else zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY * scale)) / 350), Math.min(1, Math.max(0, share(event.clientX))));
  };
  const twice = (event: MouseEvent) => {
    const marked = range.value;
    const at = event_of(event.clientX);
    if (marked && at >= marked[0] && at <= marked[1]) fit();
    else zoom(0.25, Math.min(1, Math.max(0, share(event.clientX))));
  };
  const listen: [string, any, AddEventListenerOptions?][] = [
    ["pointerdown", down], ["pointermove", move], ["pointerup", up], ["pointercancel", up], ["pointerleave", leave],
    ["wheel", wheel, { passive: false }], ["dblclick", twice],
  ];
  for (const [name, call, options] of listen) canvas.addEventListener(name, call, options);
  return () => {
    cancelAnimationFrame(frame);
    leave();
    for (const [name, call] of listen) canvas.removeEventListener(name, call);
  };
}
/** On a touch screen a finger pans unless selecting was chosen. */
export const touch_marks = signal(false);

// The whole run with the visible range as a frame: dragging the frame pans, dragging beside it selects a new range.
import { computed } from "@preact/signals";
import { colours, SurfaceBox } from "../draw/index.ts";
import type { Surface } from "../draw/index.ts";
import { ask, device, filter, moment, moments, range, subject, visible } from "../state/run.ts";
import { part } from "../state/view.ts";
import { Axis, NO_TIMES } from "./axis.ts";
import { levels_of } from "./bands.ts";
import { show_events } from "./moves.ts";
import { LEFT, marks, OUT_OF_MEMORY } from "./time_data.ts";

const asked = ask(
  "levels",
  () => (device.value ? { ...subject(), from: 0, to: moments.value, columns: 1024, by: "none", filter: filter.value } : null),
  { slot: "levels of the whole run" },
);
const whole = computed(() => (asked.value.answer ? levels_of(asked.value.answer) : null));

const axis_kind = part("axis");
const times_asked = ask(
  "times",
  () => (device.value && axis_kind.value === "time" ? { ...subject(), from: 0, to: moments.value, columns: 2048 } : null),
  { slot: "times of the whole run" },
);
const axis = computed(() => {
  const answer = times_asked.value.answer;
  const times = answer ? { event: answer.u32("event"), time_ns: answer.f64("time_ns") } : NO_TIMES;
  return new Axis(axis_kind.value, 0, Math.max(1, moments.value - 1), times);
});

function draw(surface: Surface): void {
  const { context: c, width, height } = surface;
  const tone = colours();
  const levels = whole.value;
  const w = width - LEFT;
  const x_of = (event: number) => LEFT + axis.value.x(Math.min(event, moments.value - 1)) * w;
  c.fillStyle = tone.ground;
  c.fillRect(LEFT, 0, w, height);
  if (levels) {
    let most = 1;
    for (const value of levels.total) most = Math.max(most, value);
    c.beginPath();
    c.moveTo(LEFT, height);
    for (let i = 0; i < levels.columns; ++i) {
      const y = height - 2 - (levels.total[i] / most) * (height - 6);
      c.lineTo(x_of(levels.begin[i]), y);
      c.lineTo(x_of(levels.begin[i + 1]), y);
    }
    c.lineTo(width, height);
    c.fillStyle = tone.strong;
    c.fill();
  }
  for (const mark of marks.value) {
    if (mark.kind !== OUT_OF_MEMORY) continue;
    c.fillStyle = tone.bad;
    c.fillRect(x_of(mark.event) - 1, 0, 2, height);
  }
  const marked = range.value;
  if (marked) {
    c.globalAlpha = 0.35;
    c.fillStyle = tone.accent;
    c.fillRect(x_of(marked[0]), 0, Math.max(2, x_of(marked[1]) - x_of(marked[0])), height);
    c.globalAlpha = 1;
  }
  const [from, to] = visible.value;
  const [x0, x1] = [x_of(from), Math.max(x_of(from) + 3, x_of(to))];
  c.globalAlpha = 0.6;
  c.fillStyle = tone.card;
  c.fillRect(LEFT, 0, x0 - LEFT, height);
  c.fillRect(x1, 0, width - x1, height);
  c.globalAlpha = 1;
  c.strokeStyle = tone.accent;
  c.lineWidth = 1.5;
  c.strokeRect(x0 + 0.75, 0.75, Math.max(2, x1 - x0 - 1.5), height - 1.5);
  c.fillStyle = tone.ink;
  c.fillRect(x_of(moment.value) - 0.5, 0, 1.5, height);
}

function setup({ top }: Surface) {
  let held: { x: number; from: number; to: number; moves: boolean } | null = null;
  const event_of = (x: number) => {
    const box = top.getBoundingClientRect();
    return axis.value.event_at_x(Math.min(1, Math.max(0, (x - box.left - LEFT) / Math.max(1, box.width - LEFT))));
  };
  top.addEventListener("pointerdown", (event) => {
    top.setPointerCapture(event.pointerId);
    const [from, to] = visible.value;
    const at = event_of(event.clientX);
    held = { x: at, from, to, moves: at >= from && at <= to && to - from < moments.value };
  });
  top.addEventListener("pointermove", (event) => {
    if (!held) return;
    const at = event_of(event.clientX);
    if (held.moves) show_events(held.from + at - held.x, held.to + at - held.x);
    else if (Math.abs(at - held.x) > moments.value / 200) show_events(Math.min(at, held.x), Math.max(at, held.x));
  });
  top.addEventListener("pointerup", (event) => {
    const at = event_of(event.clientX);
    if (held && !held.moves && Math.abs(at - held.x) <= moments.value / 200) {
      const span = held.to - held.from;
      show_events(at - span / 2, at + span / 2);
    }
    held = null;
  });
}

export function Minimap() {
  return <SurfaceBox draw={draw} setup={setup} label="The whole run; the frame marks what the chart below shows." focusable={false} />;
}

// Curves of a few runs over one axis: lines told apart by their dashes and names, not by colour alone.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { colours, css, is_dark, nth, SurfaceBox } from "../draw/index.ts";
import type { Surface } from "../draw/index.ts";
import * as format from "../format.ts";
import type { Chart } from "../data/types.ts";
import { byte_ticks } from "./axis.ts";

export interface Curve {
  name: string;
  x: ArrayLike<number>; // 0 to 1
  y: ArrayLike<number>; // bytes; NaN is a gap
  dash?: number[];
}
/** The colour of the k-th line: the first two are blue and red. */
export const tint = (k: number) => nth(k === 1 ? 3 : k === 3 ? 1 : k, is_dark.value);
export const DASHES = [undefined, [6, 4], [2, 3], [10, 3, 2, 3]];
/** A curve's sign in a legend: dashed as the curve is. */
export function Dash({ dash, colour = "currentColor" }: { dash?: number[]; colour?: string }) {
  return <svg class="dash" viewBox="0 0 22 2" aria-hidden="true"><path d="M0 1h22" stroke={colour} stroke-width="2" stroke-dasharray={dash?.join(" ")} /></svg>;
}
const LEFT = 66;
const BOTTOM = 20;

/** A chart of a report, over the seconds that all its lines span. */
export function ChartView({ chart, height }: { chart: Chart; height?: string }) {
  const all = chart.lines.flatMap((line) => line.times_s);
  const [begin, end] = all.reduce(([low, high], time) => [Math.min(low, time), Math.max(high, time)], [Infinity, -Infinity]);
  const curves = chart.lines.map((line, i) => ({
    name: line.name,
    x: line.times_s.map((time) => (end > begin ? (time - begin) / (end - begin) : 0)),
    y: line.bytes.map((value) => value ?? NaN),
    dash: DASHES[i % DASHES.length],
  }));
  const most = Math.max(0, ...curves.flatMap((curve) => curve.y.filter((value) => !Number.isNaN(value))));
  return (
    <figure>
      <figcaption class="dim">{format.plain(chart.title)}: highest {format.bytes(most)}{chart.limit_bytes ? ` of ${format.bytes(chart.limit_bytes)}` : ""}</figcaption>
      {all.length ? <Curves curves={curves} label={`${format.plain(chart.title)} over time`} limit={chart.limit_bytes} limit_text={`total ${format.bytes(chart.limit_bytes)}`} end_text={format.time((end - begin) * 1e9)} height={height} /> : <p class="empty">No sample was taken.</p>}
    </figure>
  );
}

export function Curves(props: { curves: Curve[]; marks?: { x: number; text: string }[]; label: string; limit?: number | null; limit_text?: string; end_text?: string; height?: string }) {
  const shown = useRef(signal(props)).current;
  useEffect(() => {
    shown.value = props;
  });
  const draw = ({ context: c, width, height }: Surface) => {
    const { curves, marks = [], limit, limit_text } = shown.value;
    const tone = colours();
    let most = 1;
    for (const curve of curves) for (let i = 0; i < curve.y.length; ++i) if (curve.y[i] > most) most = curve.y[i];
    if (limit && limit < 2 * most) most = Math.max(most, limit);
    most *= 1.08;
    const y_of = (value: number) => (height - BOTTOM) * (1 - value / most);
    const x_of = (value: number) => LEFT + value * (width - LEFT - 6);
    c.textAlign = "right";
    c.textBaseline = "middle";
    for (const value of byte_ticks(most, height - BOTTOM)) {
      const y = Math.round(y_of(value)) + 0.5;
      c.strokeStyle = tone.line;
      c.lineWidth = 1;
      c.beginPath();
      c.moveTo(LEFT, y);
      c.lineTo(width, y);
      c.stroke();
      c.fillStyle = tone.dim;
      if (y > 6) c.fillText(format.bytes(value), LEFT - 7, Math.min(y, height - BOTTOM - 4));
    }
    curves.forEach((curve, k) => {
      c.strokeStyle = css(tint(k));
      c.lineWidth = 2;
      c.setLineDash(curve.dash ?? []);
      c.beginPath();
      for (let i = 0; i < curve.y.length; ++i) {
        if (Number.isNaN(curve.y[i])) continue;
        if (i === 0 || Number.isNaN(curve.y[i - 1])) {
          c.moveTo(x_of(curve.x[i]), y_of(curve.y[i]));
          if (curve.y.length === 1) c.lineTo(x_of(curve.x[i]) + 3, y_of(curve.y[i]));
        } else {
          c.lineTo(x_of(curve.x[i]), y_of(curve.y[i - 1]));
          c.lineTo(x_of(curve.x[i]), y_of(curve.y[i]));
        }
      }
      c.stroke();
    });
    c.setLineDash([]);
    c.textAlign = "left";
    if (limit && limit <= most) {
      c.strokeStyle = tone.bad;
      c.setLineDash([12, 3, 2, 3]);
      c.beginPath();
      c.moveTo(LEFT, y_of(limit));
      c.lineTo(width, y_of(limit));
      c.stroke();
      c.setLineDash([]);
      c.fillStyle = tone.bad;
      c.fillText(limit_text ?? "", LEFT + 6, y_of(limit) + 9);
    }
    // Of many marks only the first is drawn at full height: all would hide the curves.
    const is_tall = (i: number) => i === 0 || marks.length <= 2;
    marks.forEach((mark, i) => {
      const x = x_of(mark.x);
      c.strokeStyle = tone.bad;
      c.lineWidth = is_tall(i) ? 1.5 : 1;
      c.beginPath();
      c.moveTo(x, 0);
      c.lineTo(x, is_tall(i) ? height - BOTTOM : 9);
      c.stroke();
      c.fillStyle = tone.bad;
      // At the foot: the curves and the limit are high where a request is refused.
      if (is_tall(i)) c.fillText(mark.text, Math.max(LEFT, x - c.measureText(mark.text).width - 5), height - BOTTOM - 10);
    });
    c.fillStyle = tone.dim;
    c.fillText("0", LEFT, height - 8);
    c.textAlign = "right";
    c.fillText(shown.value.end_text ?? "", width - 6, height - 8);
  };
  return (
    <div style={{ display: "grid", gridTemplateRows: "auto 1fr", height: props.height ?? "220px" }}>
      <div class="strip">
        {props.curves.map((curve, k) => (
          <span class="field long" key={curve.name}>
            <Dash dash={curve.dash} colour={css(tint(k))} /> {format.plain(curve.name, 60)}
          </span>
        ))}
      </div>
      <SurfaceBox draw={draw} label={props.label} focusable={false} />
    </div>
  );
}

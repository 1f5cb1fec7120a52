// Two stacked canvases that follow the size of their box: rectangles below, lines and text above.
import { useLayoutEffect, useRef } from "preact/hooks";
import { effect, signal } from "@preact/signals";
import type { Signal } from "@preact/signals";
import { is_dark } from "./palette.ts";
import { rect_layer } from "./rects.ts";
import type { RectLayer } from "./rects.ts";

export interface Surface {
  rects: RectLayer;
  below: HTMLCanvasElement;
  top: HTMLCanvasElement;
  context: CanvasRenderingContext2D;
  width: number; // CSS pixels
  height: number;
  ratio: number;
}
export interface Colours {
  ink: string;
  dim: string;
  line: string;
  strong: string;
  card: string;
  ground: string;
  accent: string;
  bad: string;
  mark: string;
}
export function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const get = (name: string) => style.getPropertyValue(name).trim();
  return {
    ink: get("--ink"), dim: get("--dim"), line: get("--line"), strong: get("--line-strong"), card: get("--card"),
    ground: get("--ground"), accent: get("--accent"), bad: get("--bad"), mark: get("--mark"),
  };
}
export const FONT = '11.5px Inter, "Segoe UI", system-ui, -apple-system, Roboto, "DejaVu Sans", sans-serif';
/** For tests: `?renderer=canvas` never asks for WebGL, `?renderer=webgl` takes any. */
const renderer = () => new URLSearchParams(location.search).get("renderer");

export interface SurfaceProps {
  /** Draws everything, and again whenever a signal that it reads changes. */
  draw: (surface: Surface) => void;
  label: string;
  size?: Signal<[number, number]>;
  setup?: (surface: Surface) => (() => void) | void;
  class?: string;
  children?: preact.ComponentChildren;
  focusable?: boolean;
}

export function SurfaceBox(props: SurfaceProps) {
  const box = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLCanvasElement>(null);
  const top = useRef<HTMLCanvasElement>(null);
  const latest = useRef(props);
  latest.current = props;
  // Before the first paint: what is asked for is of the right width at once.
  useLayoutEffect(() => {
    const context = top.current!.getContext("2d")!;
    let layer: RectLayer | null = null;
    const surface: Surface = {
      // Created at the first drawing: a browser gives a page few WebGL contexts.
      get rects() {
        return (layer ??= rect_layer(below.current!, renderer()));
      },
      below: below.current!, top: top.current!, context, width: 0, height: 0, ratio: 1,
    };
    const due = signal(0);
    let is_due = true;
    let frame = 0;
    const measure = () => {
      if (!box.current) return; // taken away while the browser was measuring
      const { clientWidth: width, clientHeight: height } = box.current;
      const ratio = Math.min(3, window.devicePixelRatio || 1);
      if (width === surface.width && height === surface.height && ratio === surface.ratio) return;
      Object.assign(surface, { width, height, ratio });
      for (const canvas of [surface.below, surface.top]) {
        canvas.width = Math.max(1, Math.round(width * ratio));
        canvas.height = Math.max(1, Math.round(height * ratio));
      }
      if (props.size) props.size.value = [width, height];
      // At once: a canvas of a new size is empty.
      is_due = true;
      due.value++;
    };
    const observer = new ResizeObserver(measure);
    observer.observe(box.current!);
    measure();
    const undo_setup = latest.current.setup?.(surface);
    // The signals read while drawing trigger the next drawing, of which a frame has one.
    const stop = effect(() => {
      due.value;
      if (!is_due) {
        frame ||= requestAnimationFrame(() => {
          frame = 0;
          is_due = true;
          due.value++;
        });
        return;
      }
      is_due = false;
      is_dark.value;
      if (surface.width === 0 || surface.height === 0) return;
      context.setTransform(surface.ratio, 0, 0, surface.ratio, 0, 0);
      context.clearRect(0, 0, surface.width, surface.height);
      context.font = FONT;
      latest.current.draw(surface);
    });
    return () => {
      stop();
      cancelAnimationFrame(frame);
      undo_setup?.();
      observer.disconnect();
    };
  }, []);
  return (
    <div class={`chart ${props.class ?? ""}`} ref={box}>
      <canvas ref={below} aria-hidden="true" />
      <canvas ref={top} class="top" role="img" aria-label={props.label} tabIndex={props.focusable === false ? -1 : 0} />
      {props.children}
    </div>
  );
}

/** A text cut to a width, with "…"; empty where not even three letters fit. */
export function fit_text(context: CanvasRenderingContext2D, text: string, width: number): string {
  if (context.measureText(text).width <= width) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
    else high = middle - 1;
  }
  return low < 3 ? "" : text.slice(0, low) + "…";
}

// A tree as nested boxes: a flame graph (root below), an icicle (root above), or a difference of two.
import { useComputed, useSignal } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { colours, css, fit_text, ink_on, is_dark, oklch, SurfaceBox } from "../draw/index.ts";
import type { Surface } from "../draw/index.ts";
import * as format from "../format.ts";
import { layout, matcher, path_to } from "./tree.ts";
import type { Box, Tree } from "./tree.ts";

const ROW = 20;

export function frame_colour(kind: string, label: number, dark: boolean): number {
  const wobble = ((Math.imul(label + 7, 2654435761) >>> 16) % 9) * 0.012 - 0.05;
  if (kind === "user") return oklch((dark ? 0.58 : 0.78) + wobble, 0.105, 252);
  if (kind === "label") return oklch((dark ? 0.5 : 0.84) + wobble, 0.06, 305);
  if (kind === "none") return oklch(dark ? 0.44 : 0.8, 0.004, 250);
  if (kind === "native") return oklch((dark ? 0.4 : 0.87) + wobble, 0.012, 250);
  if (kind === "library") return oklch((dark ? 0.46 : 0.86) + wobble, 0.045, 195);
  return oklch((dark ? 0.52 : 0.82) + wobble, 0.075, (label * 47) % 360);
}

export interface FlameProps {
  tree: ReadonlySignal<Tree | null>;
  upward: boolean;
  search: ReadonlySignal<string>;
  label: string;
  chosen: ReadonlySignal<number>;
  on_choose: (node: number) => void;
  /** The box that is shown alone, with all above and below it: kept by the view, else until the tree is another one. */
  inside?: ReadonlySignal<number>;
  on_open?: (node: number) => void;
  /** A node's colour where it is not that of its kind: in a difference. */
  colour?: (node: number, dark: boolean) => number;
  describe?: (node: number) => string;
  /** What the root says where its bytes are no sum that means anything. */
  root?: string;
}

export function Flame(props: FlameProps) {
  const size = useSignal<[number, number]>([600, 300]);
  const own_top = useSignal(0);
  const top = props.inside ?? own_top;
  const open = (node: number) => (latest.current.on_open ? latest.current.on_open(node) : (own_top.value = node));
  const over = useSignal<{ node: number; x: number; y: number } | null>(null);
  const tree = props.tree;
  const latest = useRef(props);
  latest.current = props;
  const zoomed = useComputed(() => (top.value < (tree.value?.bytes.length ?? 0) ? top.value : 0));
  const boxes = useComputed<Box[]>(() => (tree.value ? layout(tree.value, zoomed.value, 0.6 / Math.max(1, size.value[0])) : []));
  const height = useComputed(() => (boxes.value.reduce((most, box) => Math.max(most, box.depth), 0) + 1) * ROW + 2);
  const upward = useSignal(props.upward);
  const y_of = (box: Box) => (latest.current.upward ? size.peek()[1] - (box.depth + 1) * ROW - 1 : box.depth * ROW + 1);

  const draw = ({ context: c, width }: Surface) => {
    size.value, upward.value;
    const shown = tree.value;
    if (!shown) return;
    const dark = is_dark.value;
    const tone = colours();
    const matches = matcher(props.search.value);
    c.textBaseline = "middle";
    c.textAlign = "left";
    for (const box of boxes.value) {
      const label = shown.label[box.node];
      const text = shown.labels[label] ?? "";
      const kind = shown.kinds[label] ?? "other";
      let fill = latest.current.colour?.(box.node, dark) ?? (box.node === 0 ? oklch(dark ? 0.33 : 0.9, 0.01, 250) : frame_colour(kind, label, dark));
      const is_hit = matches?.(text) ?? false;
      c.globalAlpha = matches && !is_hit ? 0.35 : 1;
      if (is_hit) fill = oklch(dark ? 0.72 : 0.86, 0.15, 85);
      const x = box.x0 * width;
      const w = (box.x1 - box.x0) * width;
      const y = y_of(box);
      c.fillStyle = css(fill);
      c.fillRect(x, y, Math.max(0.7, w - 1), ROW - 1);
      if (box.node === props.chosen.value && box.node !== 0) {
        c.strokeStyle = tone.ink;
        c.lineWidth = 2;
        c.strokeRect(x + 1, y + 1, Math.max(1, w - 3), ROW - 3);
      }
      if (w > 34) {
        c.fillStyle = ink_on(fill);
        c.font = `${kind === "user" ? "600 " : ""}11.5px Inter, "Segoe UI", system-ui, -apple-system, Roboto, "DejaVu Sans", sans-serif`;
        const shown_text = fit_text(c, box.node === 0 ? latest.current.root ?? `${label === 0 ? "All" : format.frame_line(text)}: ${format.bytes(shown.bytes[0])}` : format.frame_line(text), w - 9);
        c.fillText(shown_text, x + 4, y + ROW / 2);
      }
    }
    c.globalAlpha = 1;
  };
  const at = (x: number, y: number): number =>
    boxes.value.find((box) => x >= box.x0 * size.value[0] && x < box.x1 * size.value[0] && y >= y_of(box) && y < y_of(box) + ROW)?.node ?? -1;

  const setup = ({ top: canvas }: Surface) => {
    canvas.style.touchAction = "auto";
    canvas.style.cursor = "pointer";
    const place = (event: MouseEvent) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top] as const;
    };
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = place(event);
      const node = at(x, y);
      over.value = node >= 0 ? { node, x, y } : null;
    });
    canvas.addEventListener("pointerleave", () => (over.value = null));
    canvas.addEventListener("click", (event) => {
      const node = at(...place(event));
      if (node < 0) return;
      latest.current.on_choose(node);
      open(node);
    });
    canvas.addEventListener("keydown", (event) => {
      const shown = tree.value;
      if (!shown) return;
      const node = latest.current.chosen.value >= 0 ? latest.current.chosen.value : 0;
      const siblings = node > 0 ? shown.children[shown.parent[node]] : [0];
      const moves: Record<string, number | undefined> = {
        ArrowDown: shown.children[node]?.[0], ArrowUp: node > 0 ? shown.parent[node] : 0,
        ArrowRight: siblings[siblings.indexOf(node) + 1], ArrowLeft: siblings[siblings.indexOf(node) - 1],
      };
      if (event.key === "Enter") open(node);
      else if (event.key === "Escape") open(0);
      else if (event.key in moves) {
        const next = moves[event.key];
        if (next !== undefined) latest.current.on_choose(next);
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
  };
  // A new tree starts unzoomed.
  const before = useRef<Tree | null>(null);
  useEffect(() => {
    if (before.current && before.current !== tree.value) own_top.value = 0;
    before.current = tree.value;
  }, [tree.value]);
  useEffect(() => {
    upward.value = props.upward;
    size.value = [...size.peek()];
  }, [props.upward]);

  const shown = tree.value;
  return (
    <div class="scroll" style={{ position: "relative", height: "100%" }}>
      <div style={{ height: `max(100%, ${height.value}px)`, display: "grid" }}>
        <SurfaceBox draw={draw} setup={setup} size={size} label={props.label}>
          {over.value && shown && over.value.node < shown.bytes.length ? (
            <div
              class="tooltip"
              style={{
                left: `${Math.max(4, Math.min(over.value.x + 14, size.value[0] - 330))}px`,
                top: `${over.value.y > size.value[1] - 110 ? Math.max(4, over.value.y - 92) : over.value.y + 18}px`,
              }}
            >
              <b>{format.plain(shown.labels[shown.label[over.value.node]] ?? "All", 200)}</b>
              <span class="n">
                {props.describe?.(over.value.node) ??
                  `${format.bytes(shown.bytes[over.value.node])}, ${format.share(shown.bytes[over.value.node], shown.bytes[0])}, ${format.plural(shown.blocks[over.value.node], "block")}`}
              </span>
            </div>
          ) : null}
        </SurfaceBox>
      </div>
    </div>
  );
}

/** A stack as text for copying, outermost frame last as in the command's output. */
export function stack_text(tree: Tree, node: number): string {
  return path_to(tree, node)
    .reverse()
    .map((at) => tree.labels[tree.label[at]] ?? "")
    .join("\n");
}

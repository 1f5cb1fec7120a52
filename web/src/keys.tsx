// Keyboard shortcuts, and the dialog that lists them.
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { is_dark } from "./draw/palette.ts";
import { device, has_times, moment, moments } from "./state/run.ts";
import { go, part, redo, TABS, undo } from "./state/view.ts";
import { go_out } from "./views/holders.tsx";
import * as moves from "./views/moves.ts";
import { next_hit } from "./views/search.tsx";
import { pointer_x } from "./views/time_data.ts";

export const help_open = signal(false);
const GROUPS = ["category", "module", "line", "stack", "stream", "process", "thread", "blocks", "none"];

export function toggle_theme(): void {
  is_dark.value = !is_dark.value;
  try {
    localStorage.setItem("theme", is_dark.value ? "dark" : "light");
  } catch {
    // Without storage the choice lasts while the page is open.
  }
}
function next_in(list: string[], now: string, by: number): string {
  return list[(list.indexOf(now) + by + list.length) % list.length];
}

interface Key {
  keys: string[];
  shown: string;
  text: string;
  act: () => void;
}
const KEYS: Key[] = [
  { keys: ["w", "ArrowUp"], shown: "w ↑", text: "Zoom in", act: () => moves.zoom(0.66) },
  { keys: ["s", "ArrowDown"], shown: "s ↓", text: "Zoom out", act: () => moves.zoom(1.5) },
  { keys: ["a", "ArrowLeft"], shown: "a ←", text: "Pan left", act: () => moves.pan(-0.15) },
  { keys: ["d", "ArrowRight"], shown: "d →", text: "Pan right", act: () => moves.pan(0.15) },
  { keys: ["f"], shown: "f", text: "Fit the range, or the surroundings of the moment", act: moves.fit },
  { keys: ["0", "Home"], shown: "0", text: "Show the whole run", act: moves.show_all },
  { keys: ["p"], shown: "p", text: "Go to the peak", act: moves.to_peak },
  { keys: ["]"], shown: "]", text: "Go to the next peak", act: () => moves.to_next_peak(1) },
  { keys: ["["], shown: "[", text: "Go to the previous peak", act: () => moves.to_next_peak(-1) },
  { keys: ["o"], shown: "o", text: "Go to the refused allocation", act: moves.to_out_of_memory },
  { keys: ["."], shown: ".", text: "Next event", act: () => moves.choose(Math.min(moves_end(), moment.value + 1)) },
  { keys: [","], shown: ",", text: "Previous event", act: () => moves.choose(moment.value - 1) },
  { keys: ["m"], shown: "m", text: "Start a range at the moment, or end it there", act: () => mark_to_moment() },
  { keys: ["v"], shown: "v", text: "Drag selects or pans", act: () => (moves.drags_pan.value = !moves.drags_pan.value) },
  { keys: ["/"], shown: "/", text: "Search. Enter: the next match, out of the box; Ctrl+Enter: filter; Esc: no search", act: () => focus("search-box") },
  { keys: ["n"], shown: "n", text: "Next block that matches the search", act: () => void next_hit(1) },
  { keys: ["N"], shown: "N", text: "Previous block that matches the search", act: () => void next_hit(-1) },
  { keys: ["x"], shown: "x", text: "Axis: events or time", act: () => go({ axis: part("axis").value === "event" && has_times.value ? "time" : "event" }) },
  { keys: ["g"], shown: "g", text: "Next grouping", act: () => go({ by: next_in(GROUPS, part("by").value, 1) }) },
  { keys: ["b"], shown: "b", text: "Group by block, or back by category", act: () => go({ by: part("by").value === "blocks" ? "category" : "blocks" }) },
  { keys: ["u"], shown: "u", text: "Undo", act: undo },
  { keys: ["U"], shown: "U", text: "Redo", act: redo },
  { keys: ["t"], shown: "t", text: "Light or dark theme", act: toggle_theme },
  { keys: ["Escape"], shown: "Esc", text: "Out of a tile; clear the range, then the search, then the filter", act: () => clear() },
  ...TABS.map(([id, text], i) => ({ keys: [`${i + 1}`], shown: `${i + 1}`, text, act: () => go({ tab: id }) })),
  { keys: ["?"], shown: "?", text: "This list", act: () => (help_open.value = !help_open.value) },
];
function moves_end(): number {
  return moments.value - 1;
}
let marked_from = -1;
function mark_to_moment(): void {
  if (marked_from < 0 || marked_from === moment.value) marked_from = moment.value;
  else {
    go({ range_from: Math.min(marked_from, moment.value), range_to: Math.max(marked_from, moment.value) });
    marked_from = -1;
  }
}
function focus(id: string): void {
  const element = document.getElementById(id) as HTMLInputElement | null;
  element?.focus();
  element?.select();
}
function clear(): void {
  if (go_out()) return;
  if (part("range_from").value >= 0) go({ range_from: -1, range_to: -1, what: "at" });
  else if (part("search").value) go({ search: "" });
  else if (part("filter").value) go({ filter: "" });
}

export function listen_to_keys(): void {
  document.addEventListener("keydown", (event) => {
    const target = event.target as HTMLElement;
    if (event.defaultPrevented || (help_open.value && event.key !== "?")) return;
    // What a key does is seen at once, also while the pointer rests on the chart.
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z") {
      if (target.closest("input, textarea")) return;
      event.preventDefault();
      pointer_x.value = null;
      return event.shiftKey ? redo() : undo();
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (target.closest("input:not([type=checkbox]), textarea, select")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    // Arrow keys move the chart only where the focused element does not scroll.
    if (event.key.startsWith("Arrow") && target.closest(".scroll, .legend, [role=tablist]")) return;
    const menu = document.querySelector<HTMLDetailsElement>("details.menu[open]");
    if (menu && event.key === "Escape") {
      menu.open = false;
      menu.querySelector("summary")?.focus();
      return;
    }
    const found = KEYS.find((key) => key.keys.includes(event.key));
    // What has no chart has views and a list of keys all the same.
    if (!found || (!device.value && !/^[1-9?tuU]$/.test(event.key))) return;
    event.preventDefault();
    pointer_x.value = null;
    found.act();
  });
}

type Gesture = [string, string];
const POINTER: Gesture[] = [
  ["Click", "Choose the moment"], ["Drag", "Select a range"], ["Shift, drag", "Pan"], ["Wheel", "Zoom; with Shift: pan"], ["Double click", "Zoom in"],
];
const TOUCH: Gesture[] = [
  ["Tap", "Choose the moment; of a block or a box: see it"], ["Drag", "Pan; after Select: select a range"], ["Pinch", "Zoom"], ["Double tap", "Zoom in"],
  ["Tap a tile", "Go into it; Back goes out"],
];
function Gestures({ title, gestures }: { title: string; gestures: Gesture[] }) {
  return (
    <>
      <h2 style={{ marginTop: "14px" }}>{title}</h2>
      <div class="keys">{gestures.map(([gesture, text]) => <div key={gesture}><span>{gesture}</span><span>{text}</span></div>)}</div>
    </>
  );
}

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  const is_open = help_open.value;
  const has_touch = matchMedia("(pointer: coarse)").matches;
  useEffect(() => {
    if (is_open && !dialog.current?.open) dialog.current?.showModal();
    if (!is_open) dialog.current?.close();
  }, [is_open]);
  return (
    <dialog ref={dialog} onCancel={() => (help_open.value = false)} onClose={() => (help_open.value = false)} aria-labelledby="help-title">
      <div class="field" style={{ width: "100%" }}>
        <h2 id="help-title" class="grow">Help</h2>
        <button onClick={() => (help_open.value = false)}>Close</button>
      </div>
      {has_touch ? <Gestures title="Touch" gestures={TOUCH} /> : null}
      <h2 style={{ marginTop: "14px" }}>Keyboard</h2>
      <div class="keys">
        {KEYS.map((key) => (
          <div key={key.shown}><span>{key.shown.split(" ").map((one) => <><kbd>{one}</kbd> </>)}</span><span>{key.text}</span></div>
        ))}
      </div>
      {has_touch ? null : <Gestures title="Pointer" gestures={POINTER} />}
      <h2 style={{ marginTop: "14px" }}>Filters</h2>
      <p class="long">
        <span class="code">conv "layers.3" /adam.*step/ bytes&gt;10MiB lived&gt;100 category:activation module:layers.3 stream:7 process:1 thread:x not …</span>
      </p>
      <p class="dim">Words are searched in frames and modules. A block must match all terms. lived counts events, lived&gt;2steps ends of steps.</p>
    </dialog>
  );
}

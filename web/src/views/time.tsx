// Memory over time: readout, minimap, chart and legend.
import { computed, useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { css, SurfaceBox } from "../draw/index.ts";
import * as format from "../format.ts";
import { device, file, has_times, is_one_moment, is_peak, moment } from "../state/run.ts";
import { go, part } from "../state/view.ts";
import { Dash } from "./chart.tsx";
import { Minimap } from "./minimap.tsx";
import { Lanes } from "./lanes.tsx";
import { drags_pan, fit, follow_pointer, show_all, to_next_peak, to_out_of_memory, to_peak, touch_marks, zoom } from "./moves.ts";
import * as data from "./time_data.ts";
import { RangeFigures } from "./range.tsx";
import { draw_time, LINE_DASH, under } from "./time_draw.ts";

/** The readout of the pointer's column, else of the chosen moment. */
export const reading = computed(() => data.pointed.value ?? data.reading_at(data.moment_levels.value, moment.value));
const shown_keys = computed(() => ((!data.pointed.value && data.moment_levels.value) || data.levels.value)?.keys ?? []);

function Readout() {
  const read = reading.value;
  if (!read) return <div class="readout dim grow">{data.levels_asked.value.is_waiting ? "Loading…" : ""}</div>;
  return (
    <div class="readout grow n" aria-live="off">
      <b title={format.exact(read.total)}>{format.bytes(read.total)}</b>
      <span>{is_one_moment.value ? "live at the one moment of this file" : `${!data.pointed.value ? (is_peak.value ? "at the peak, " : "at ") : read.is_summed ? "highest here, at " : ""}event ${format.count(read.event)} of ${format.count(device.value?.events ?? 0)}`}</span>
      {!data.pointed.value && read.is_summed ? (
        <span class="warning">the nearest to event {format.count(moment.value)} in this file</span>
      ) : null}
      <span class="dim">{format.exact(read.total)}</span>
      {read.time_ns === null || !has_times.value ? null : <span class="dim">{format.time(read.time_ns)}</span>}
      {Object.entries(read.lines).map(([name, value]) => (
        <span class="dim" key={name}>{name} {format.bytes(value)}</span>
      ))}
      {read.pending ? <span class="dim">pending frees {format.bytes(read.pending)}</span> : null}
    </div>
  );
}

function Tools() {
  const has_oom = data.marks.value.some((mark) => mark.kind === data.OUT_OF_MEMORY);
  return (
    <div class="tools">
      <button class="plain" onClick={to_peak} title="Go to the peak (p)">Peak</button>
      <button class="plain icon" onClick={() => to_next_peak(-1)} aria-label="Previous peak" title="Previous peak ( [ )">‹</button>
      <button class="plain icon" onClick={() => to_next_peak(1)} aria-label="Next peak" title="Next peak ( ] )">›</button>
      {has_oom ? <button class="plain bad" onClick={to_out_of_memory} title="Go to the refused allocation (o)">Out of memory</button> : null}
      <button class="plain icon" onClick={() => zoom(0.5)} aria-label="Zoom in" title="Zoom in (w)">+</button>
      <button class="plain icon" onClick={() => zoom(2)} aria-label="Zoom out" title="Zoom out (s)">−</button>
      <button class="plain" onClick={fit} title="Fit the range, or the surroundings of the moment (f)">Fit</button>
      <button class="plain" onClick={show_all} title="Show the whole run (0)">All</button>
      {data.lanes.value.length ? <button class="plain" aria-pressed={part("lanes").value} onClick={() => go({ lanes: !part("lanes").value })} title="Sampled memory of the host and the devices">Lanes</button> : null}
      <span class="segments" role="group" aria-label="Drag">
        <button aria-pressed={!drags_pan.value && (touch_marks.value || !matchMedia("(pointer: coarse)").matches)} onClick={() => ((drags_pan.value = false), (touch_marks.value = true))} title="Drag selects a range (v)">Select</button>
        <button aria-pressed={drags_pan.value || (!touch_marks.value && matchMedia("(pointer: coarse)").matches)} onClick={() => ((drags_pan.value = true), (touch_marks.value = false))} title="Drag pans (v)">Pan</button>
      </span>
    </div>
  );
}

export interface LegendRow {
  label: string;
  bytes: number | null; // null: its answer has not come
  colour: string;
}
/** The bands at the moment that is read, in the order of the chart: the top one first. */
export const legend_rows = computed<LegendRow[]>(() => {
  const levels = data.levels.value;
  if (data.is_blocks.value) return [];
  return shown_keys.value.map(({ label }, i) => {
    const index = levels?.keys.findIndex((key) => key.label === label) ?? -1;
    const colour = index >= 0 ? css(data.colour_list.value[index]) : "transparent";
    return { label, bytes: reading.value?.keys[i] ?? null, colour };
  }).reverse();
});
/** The lines that there are, and their bytes at the moment that is read. */
export const legend_lines = computed(() => {
  const capacity = device.value?.capacity_bytes;
  const names = [...Object.keys(data.levels.value?.lines ?? {}), ...(capacity ? ["capacity"] : [])];
  return names.map((name) => ({
    name, text: LINE_TEXT[name] ?? name, bytes: name === "capacity" ? capacity : reading.value?.lines[name],
  }));
});
const LINE_TEXT: Record<string, string> = {
  reserved: "Reserved", requested: "Requested", capacity: "Capacity",
};
function Legend() {
  const read = reading.value;
  const figure = (bytes: number | null | undefined) => (read ? format.bytes(bytes) : "");
  const kind = String(data.levels_asked.value.query.by ?? "");
  const on = part("lines").value.split(",");
  const toggle = (name: string) =>
    go({ lines: (on.includes(name) ? on.filter((other) => other !== name) : [...on, name]).filter(Boolean).join(",") });
  const unknown = data.levels_asked.value.answer?.head.unknown?.[kind];
  // In the order of the chart the largest bands are the last: of many these are seen first.
  const list = useRef<HTMLDivElement>(null);
  const { by, file: of, device: on_device, filter } = data.levels_asked.value.query;
  useLayoutEffect(() => void (list.current && (list.current.scrollTop = list.current.scrollHeight)), [by, of, on_device, filter, legend_rows.value.length > 0]);
  return (
    <div class="legend" role="region" aria-label="Legend" tabIndex={0} ref={list}>
      <table>
        <caption>{data.is_blocks.value ? "By block" : `By ${BY[kind] ?? kind}`}</caption>
        <tbody>
          {legend_rows.value.map(({ label, bytes, colour }, i) => (
            <tr key={`${label} ${i}`} class={data.isolated.value && data.isolated.value !== label ? "off" : bytes === 0 ? "zero" : ""}>
              <td>
                <button
                  aria-pressed={data.isolated.value === label}
                  title={`${format.plain(label)}${read ? `: ${format.exact(bytes)}` : ""}. Click to highlight it alone.`}
                  onClick={() => (data.isolated.value = data.isolated.value === label ? null : label)}
                >
                  <span class="swatch" style={{ background: colour }} />
                  <KeyName text={label} />
                </button>
              </td>
              <td class="v" title={read ? format.exact(bytes) : undefined}>{figure(bytes)}</td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr><td><b>{"\u00a0Total"}</b></td><td class="v"><b>{figure(read?.total)}</b></td></tr>
          {legend_lines.value.map(({ name, text, bytes }) => (
            <tr key={name} class={on.includes(name) ? "" : "off"}>
              <td>
                <button aria-pressed={on.includes(name)} onClick={() => toggle(name)} title="Click to show or hide this line.">
                  <span class={name === "capacity" ? "bad" : ""}><Dash dash={LINE_DASH[name]} /></span>
                  <span class="cut">{text}</span>
                </button>
              </td>
              <td class="v">{figure(bytes)}</td>
            </tr>
          ))}
        </tfoot>
      </table>
      {data.is_blocks.value ? <BlocksNote /> : null}
      {unknown ? <p class="dim">Unknown: {format.plain(unknown)}.</p> : null}
    </div>
  );
}
/** Where there is too little room the function's name gives way and what all stacks of the line share, then the file's. */
function KeyName({ text }: { text: string }) {
  const { file, line, name, beside } = format.key_name(text);
  if (!file && !beside) {
    // Of a path of names the last ones tell it from others.
    const at = Math.max(0, name.lastIndexOf("/", name.lastIndexOf("/") - 1));
    return <span class="key">{at ? <span class="cut head">{name.slice(0, at)}</span> : null}<span class="cut">{name.slice(at)}</span></span>;
  }
  const [shared, all_of_last] = format.besides(beside);
  const [last, last_line] = format.before_line(all_of_last ?? "");
  return (
    <span class="key">
      <span class="cut">{file || name}</span>
      <span>{line}</span>
      {shared ? <span class="cut beside head">{shared}</span> : null}
      {last ? <span class="cut beside">{last}</span> : null}
      {last_line ? <span style={{ whiteSpace: "pre" }}>{last_line}</span> : null}
      {file ? <span class="cut name">{name}</span> : null}
    </span>
  );
}
export const BY: Record<string, string> = {
  category: "category", module: "module", line: "line of your code", stack: "stack", stream: "stream", process: "process", thread: "thread", none: "nothing", blocks: "block",
};

function BlocksNote() {
  const head = data.blocks_asked.value.answer?.head;
  if (!head) return <p class="dim">{data.blocks_asked.value.error ?? "Loading…"}</p>;
  const smaller = (head.alive?.blocks ?? 0) - (data.spans.value?.blocks.length ?? 0);
  return (
    <p class="dim">
      Each band is a block, in order of allocation, coloured by its stack. The grey band on top is the sum of{" "}
      {format.plural(Math.max(0, smaller), "smaller block")}. Click a block to see its stack.
    </p>
  );
}

/** What is at a point of the chart. */
function said_at(x: number, y: number): { text: string; value: string } | null {
  const [found, read] = [under(x, y), data.pointed.value];
  if (found.key !== undefined && read) return { text: format.frame_line(data.levels.value!.keys[found.key].label), value: format.bytes(read.keys[found.key]) };
  const block = found.block === undefined ? undefined : data.spans.value?.blocks.find(({ id }) => id === found.block);
  return block ? { text: `Block ${format.count(block.id)}`, value: format.bytes(block.size_bytes) } : null;
}
function Tip({ x, y }: { x: number; y: number }) {
  const said = data.pointed.value ? said_at(x, y) : null;
  if (!said) return null;
  return (
    <div class="tooltip" style={{ left: `${Math.min(x + 14, data.size.value[0] - 220)}px`, top: `${Math.max(4, y - 50)}px` }}>
      <b class="n">{said.value}</b>
      {said.text}
    </div>
  );
}

export function TimeView() {
  const tip = useSignal<{ x: number; y: number } | null>(null);
  const set_tip = (event: PointerEvent) => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const at = { x: event.clientX - box.left, y: event.clientY - box.top };
    tip.value = event.buttons || event.pointerType === "touch" || at.x <= data.LEFT ? null : at;
  };
  const asked = data.levels_asked.value;
  return (
    <section class="pane time" aria-label="Memory over time">
      <div class="left">
        <div class="strip">
          <Readout />
          <Tools />
        </div>
        <Minimap />
        <SurfaceBox
          draw={draw_time}
          size={data.size}
          class={`over-time ${drags_pan.value ? "pans" : ""}`}
          label={`Memory over time of ${format.plain(device.value?.name ?? "", 60)}, by ${BY[data.by.value] ?? data.by.value}. Keys w and s zoom, a and d pan, p goes to the peak.`}
          setup={({ top }) =>
            follow_pointer(top, data.LEFT, (x, y, event) => {
              const block = under(x, y).block;
              // A column shows its highest moment, so a click chooses that one.
              const read = data.reading_at(data.levels.value, event);
              go({ moment: read ? read.event : event, ...(block !== undefined ? { block, tab: "block" } : {}) });
            })
          }
        >
          <div style={{ position: "absolute", inset: 0, pointerEvents: "none" }} />
          {tip.value ? <Tip {...tip.value} /> : null}
          {asked.error ? <div class="empty">{format.plain(asked.error)}</div> : null}
          <TipListener on_move={set_tip} on_leave={() => (tip.value = null)} />
        </SurfaceBox>
        <Lanes />
        {asked.answer?.summary ? <p class="notice">{asked.answer.summary}</p> : null}
      </div>
      {file.value ? <aside class="beside-chart"><Legend /><RangeFigures /></aside> : null}
    </section>
  );
}

/** Listens to the pointer in the enclosing box. */
function TipListener(props: { on_move: (event: PointerEvent) => void; on_leave: () => void }) {
  return (
    <span
      hidden
      ref={(element) => {
        const box = element?.parentElement;
        if (!box) return;
        box.onpointermove = props.on_move;
        box.onpointerleave = props.on_leave;
      }}
    />
  );
}

// The page: the bar, notices, memory over time, and the chosen view below.
import { computed, signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { Item } from "./data/types.ts";
import { is_dark } from "./draw/palette.ts";
import { save_holders, save_levels, save_png, save_svg } from "./export.ts";
import * as format from "./format.ts";
import { Help, help_open, toggle_theme } from "./keys.tsx";
import { beginning, device, failure, file, files, has_times, loading, lost, store } from "./state/run.ts";
import { dropped, growth, is_dragged_over, read_again } from "./state/source.ts";
import { can_redo, can_undo, go, part, redo, TABS, undo } from "./state/view.ts";
import { copy } from "./views/parts.tsx";
import { BlockView } from "./views/block.tsx";
import { ChartView } from "./views/chart.tsx";
import { Compare } from "./views/compare.tsx";
import { Devices } from "./views/devices.tsx";
import { Holders } from "./views/holders.tsx";
import { lanes } from "./views/time_data.ts";
import { Findings, findings_count, Report, worst_finding } from "./views/report.tsx";
import { SearchBox, SearchState } from "./views/search.tsx";
import { Source } from "./views/source.tsx";
import { Space } from "./views/space.tsx";
import { BY, TimeView } from "./views/time.tsx";
import { WhatIf } from "./views/whatif.tsx";

const VIEWS: Record<string, () => ComponentChildren> = {
  holders: () => <Holders />, space: () => <Space />, findings: () => <Findings />, report: () => <Report />,
  block: () => <BlockView />, whatif: () => <WhatIf />, compare: () => <Compare />, source: () => <Source />, devices: () => <Devices />,
};
const tab = part("tab");
const share_of_top = signal(46);

function Logo() {
  return (
    <svg viewBox="0 0 20 20" aria-hidden="true">
      <rect x="1" y="11" width="18" height="8" rx="2" fill="#3f7fe0" />
      <rect x="4" y="6" width="11" height="4" rx="1.5" fill="#35a58a" />
      <rect x="8" y="1" width="5" height="4" rx="1.5" fill="#d9853b" />
    </svg>
  );
}

const to_file = (index: number) => go({ file: index, device: beginning(index, null).device });

/** On a narrow screen all above the row of the search scrolls away. */
function tell_height(bar: HTMLElement | null): (() => void) | void {
  if (!bar) return;
  const observer = new ResizeObserver(() => bar.style.setProperty("--above", `${Math.max(0, (bar.querySelector<HTMLElement>(".search")?.offsetTop ?? 0) - 5)}px`));
  observer.observe(bar);
  return () => observer.disconnect();
}
function Bar() {
  const bar = useRef<HTMLElement>(null);
  useEffect(() => tell_height(bar.current), []);
  const shown = file.value;
  const devices = shown?.devices ?? [];
  return (
    <header class="bar" ref={bar}>
      <span class="brand"><Logo /><h1>gpumemprof</h1></span>
      {files.value.length > 1 ? (
        <label class="field"><span>File</span>
          <select value={String(part("file").value)} onChange={(event) => to_file(Number(event.currentTarget.value))}>
            {files.value.map((one, i) => <option key={i} value={String(i)}>{format.plain(one.name, 60)}</option>)}
          </select>
        </label>
      ) : <span class="file cut" title={format.plain(shown?.name ?? "", 1000)}>{format.plain(shown?.name ?? "", 200)}</span>}
      {devices.length > 1 ? (
        <label class="field"><span>Memory</span>
          <select aria-label="Device" value={String(part("device").value)} onChange={(event) => go({ device: Number(event.currentTarget.value) })}>
            {devices.map((one, i) => <option key={i} value={String(i)}>{format.plain(one.label ?? one.name, 80)}: {format.bytes(one.peak?.bytes)}</option>)}
          </select>
        </label>
      ) : null}
      {/* Samples and dumps have no events to group, scale or search. */}
      {device.value || loading.value ? (
        <>
          <label class="field"><span>Group by</span>
            <select aria-label="Group by" value={part("by").value} onChange={(event) => go({ by: event.currentTarget.value })}>
              {Object.entries(BY).map(([id, text]) => <option key={id} value={id}>{text}</option>)}
            </select>
          </label>
          <span class="segments" role="group" aria-label="Axis">
            <button aria-pressed={part("axis").value === "event"} onClick={() => go({ axis: "event" })}>Events</button>
            <button aria-pressed={part("axis").value === "time"} onClick={() => go({ axis: "time" })} disabled={!has_times.value} title={has_times.value ? undefined : "No event times were recorded."}>Time</button>
          </span>
          <SearchBox />
        </>
      ) : null}
      <SearchState />
      <span class="grow wide-only" aria-hidden="true" />
      <button class="plain icon" onClick={undo} disabled={!can_undo.value} aria-label="Undo" title="Undo (u)">↶</button>
      <button class="plain icon" onClick={redo} disabled={!can_redo.value} aria-label="Redo" title="Redo (U)">↷</button>
      <details class="menu" onClick={(event) => { if ((event.target as HTMLElement).closest("div")) event.currentTarget.open = false; }}>
        <summary>Export</summary>
        <div>
          <button onClick={save_png}>Chart as PNG</button>
          <button onClick={save_svg}>Chart as SVG</button>
          <button onClick={save_levels}>Chart as CSV</button>
          <button onClick={save_holders} disabled={tab.value !== "holders"}>Holders as CSV</button>
          <button onClick={() => void copy(location.href)}>Copy link to this view</button>
        </div>
      </details>
      <button class="plain icon" onClick={toggle_theme} aria-label={is_dark.value ? "Light theme" : "Dark theme"} title="Light or dark theme (t)">{is_dark.value ? "☀" : "☾"}</button>
      <button class="plain icon" onClick={() => (help_open.value = true)} aria-label="Help" title="Keyboard shortcuts (?)">?</button>
    </header>
  );
}

/** How the program ended, where not well. */
const ends = computed(() => {
  const out: string[] = [];
  for (const said of file.value?.document?.sections[0]?.parts ?? []) {
    if (said.kind !== "sentence" || (said.tone !== "bad" && said.tone !== "strong")) break;
    out.push(said.text);
  }
  return out;
});
/** Nothing of the file can be shown but why. */
const is_unreadable = computed(() => !!file.value?.error && !device.value && lanes.value.length === 0);
/** Then what limits the figures: unknowns, unreadable files, lost events. */
const notices = computed(() => {
  const out: { text: string; is_bad: boolean }[] = ends.value.map((text) => ({ text, is_bad: true }));
  const note = store.value?.note;
  if (note) out.push({ text: note, is_bad: false });
  for (const one of file.value?.unknown ?? []) out.push({ text: `${one.what}: ${one.reason}`, is_bad: false });
  for (const one of files.value) if (one.error && !(one === file.value && is_unreadable.value)) out.push({ text: `${one.name}: ${one.error}`, is_bad: true });
  if (lost.value) out.push({ text: lost.value, is_bad: true });
  const left = device.value?.left_out_events;
  if (left) out.push({ text: `${format.plural(left, "event")} not shown: they exceed what the page can hold.`, is_bad: true });
  return out;
});
const fixes_of = (item: Item) => (item.details ?? []).filter((one) => one.label === "Fix").map((one) => `Fix: ${one.text}`);
const filter = part("filter");
function Notices() {
  return (
    <div class="notices">
      {loading.value ? <p class="notice" role="status">{format.plain(loading.value.text)}: {Math.round(100 * loading.value.share)} %</p> : null}
      {growth.value ? (
        <p class="notice" role="status">
          {format.plain(growth.value.text, 500)}{" "}
          {growth.value.is_reading ? null : <button class="link" onClick={() => void read_again(growth.value!.file)}>Read it again</button>}
        </p>
      ) : null}
      {dropped.value ? (
        <p class={`notice ${dropped.value.is_bad ? "bad" : ""}`} role="status">
          {format.plain(dropped.value.text, 500)}{" "}
          {dropped.value.is_bad ? <button class="link" onClick={() => (dropped.value = null)}>Close</button> : null}
        </p>
      ) : null}
      {worst_finding.value && ends.value.length === 0 ? (
        <p class="notice">
          {format.plain([worst_finding.value.text, ...fixes_of(worst_finding.value)].join(" "), 500)}{" "}
          {tab.value === "findings" ? null : <button class="link" onClick={() => go({ tab: "findings" })}>Show all findings</button>}
        </p>
      ) : null}
      {notices.value.slice(0, 3).map((one, i) => <p key={i} class={`notice ${one.is_bad ? "bad" : ""}`}>{format.plain(one.text, 500)}</p>)}
      {notices.value.length > 3 ? <p class="notice">{format.plural(notices.value.length - 3, "more notice")} in the report.</p> : null}
      {filter.value ? (
        <p class="notice">
          Filter on all views: <span class="code">{format.plain(filter.value)}</span>{" "}
          <button class="link" onClick={() => go({ filter: "" })}>Remove filter</button>
        </p>
      ) : null}
    </div>
  );
}

function Tabs() {
  const move = (event: KeyboardEvent) => {
    const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    event.preventDefault();
    const at = TABS.findIndex(([id]) => id === tab.value);
    const next = TABS[(at + by + TABS.length) % TABS.length][0];
    go({ tab: next });
    document.getElementById(`tab-${next}`)?.focus();
  };
  const strip = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const [all, chosen] = [strip.current, document.getElementById(`tab-${tab.value}`)];
    if (all && chosen) all.scrollLeft += chosen.getBoundingClientRect().left - all.getBoundingClientRect().left - (all.clientWidth - chosen.clientWidth) / 2;
  }, [tab.value]);
  return (
    <div class="tabs" role="tablist" aria-label="Views" onKeyDown={move} ref={strip}>
      {TABS.map(([id, text]) => (
        <button key={id} id={`tab-${id}`} role="tab" aria-selected={tab.value === id} aria-controls="view" tabIndex={tab.value === id ? 0 : -1} onClick={() => go({ tab: id })}>
          {text}
          {id === "findings" && findings_count.value ? <span class="count">{findings_count.value}</span> : null}
        </button>
      ))}
    </div>
  );
}

function Splitter() {
  const drag = (event: PointerEvent) => {
    const bar = event.currentTarget as HTMLElement;
    if (!bar.hasPointerCapture(event.pointerId)) return;
    const box = bar.parentElement!.getBoundingClientRect();
    share_of_top.value = Math.min(80, Math.max(20, (100 * (event.clientY - box.top)) / box.height));
  };
  return (
    <button
      class="splitter" role="separator" aria-orientation="horizontal" aria-label="Chart height" aria-valuenow={Math.round(share_of_top.value)} aria-valuemin={20} aria-valuemax={80}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)} onPointerMove={drag}
      onKeyDown={(event) => {
        const by = event.key === "ArrowUp" ? -4 : event.key === "ArrowDown" ? 4 : 0;
        if (by === 0) return;
        event.preventDefault();
        event.stopPropagation();
        share_of_top.value = Math.min(80, Math.max(20, share_of_top.value + by));
      }}
    />
  );
}

/** The report's charts, shown for a file without events. */
function Charts() {
  return (
    <section class="pane" aria-label="Memory over time">
      <div class="scroll" tabIndex={0} role="region" aria-label="Charts">
        <div class="charts">{lanes.value.map((chart, i) => <ChartView key={i} chart={chart} height="250px" />)}</div>
      </div>
    </section>
  );
}

function DropHint() {
  return is_dragged_over.value ? <div class="drop">Drop a recording, a snapshot or samples to look at it</div> : null;
}

export function App() {
  if (failure.value && files.value.length === 0)
    return <main class="start"><h1>gpumemprof</h1><p class="bad long">{format.plain(failure.value)}</p></main>;
  if (files.value.length === 0)
    return (
      <main class="start">
        <h1>gpumemprof</h1>
        <p role="status">{loading.value ? `${format.plain(loading.value.text)}: ${Math.round(100 * loading.value.share)} %` : "Loading…"}</p>
        {loading.value ? <progress value={loading.value.share} /> : null}
      </main>
    );
  if (is_unreadable.value)
    return (
      <div class="app">
        <Bar />
        <Notices />
        <main class="pane"><div class="empty" role="alert"><span class="bad">{format.plain(`Cannot read ${file.value!.name}: ${file.value!.error}`)}</span></div></main>
        <Help />
        <DropHint />
      </div>
    );
  const shown = VIEWS[tab.value] ?? VIEWS.holders;
  return (
    <div class="app">
      <Bar />
      <Notices />
      <main class="panes" style={{ "--top": device.value || lanes.value.length ? `${share_of_top.value}%` : "0px" } as any}>
        {device.value ? <TimeView /> : lanes.value.length ? <Charts /> : <div class="pane"><div class="empty">{loading.value ? "Loading…" : file.value?.kind === "dump" ? "An out-of-memory dump has no events: its report is below." : "No device memory was recorded."}</div></div>}
        <Splitter />
        <section class="pane below" aria-label="Views">
          <Tabs />
          <div id="view" role="tabpanel" aria-labelledby={`tab-${tab.value}`} style={{ display: "grid", minHeight: 0, minWidth: 0 }}>{shown()}</div>
        </section>
      </main>
      <Help />
      <DropHint />
    </div>
  );
}

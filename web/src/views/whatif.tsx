// A replay of the recorded requests with other allocator settings or another capacity.
import { useSignal } from "@preact/signals";
import * as format from "../format.ts";
import { ask, device, moments, subject } from "../state/run.ts";
import { go, part } from "../state/view.ts";
import { Curves } from "./chart.tsx";
import { Missing } from "./parts.tsx";

const tab = part("tab");
const settings = part("settings");
const capacity = part("capacity");
const asked = ask("whatif", () =>
  device.value && tab.value === "whatif" ? { ...subject(), settings: settings.value, capacity: capacity.value, columns: 1024 } : null,
);
const PRESETS = [
  ["As recorded", ""],
  ["Expandable segments", "expandable_segments:True"],
  ["No splitting above 128 MiB", "max_split_size_mb:128"],
  ["Release cache above 80 %", "garbage_collection_threshold:0.8"],
  ["Round up to 8 divisions", "roundup_power2_divisions:8"],
] as const;

export function WhatIf() {
  const typed = useSignal(settings.value);
  const size = useSignal(capacity.value);
  const answer = asked.value.answer;
  const head = answer?.head ?? {};
  const events = Math.max(1, moments.value - 1);
  const at = Array.from(answer?.u32("event") ?? [], (event) => event / events);
  const submit = (event: Event) => {
    event.preventDefault();
    go({ settings: typed.value.trim(), capacity: size.value.trim() });
  };
  return (
    <div class="panel">
      <form class="strip" onSubmit={submit}>
        <label class="field grow">
          <span>Settings</span>
          <input type="text" class="grow code" value={typed.value} placeholder="as recorded" onInput={(event) => (typed.value = event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>Capacity</span>
          <input type="text" style={{ width: "90px" }} value={size.value} placeholder="recorded" onInput={(event) => (size.value = event.currentTarget.value)} />
        </label>
        <button type="submit">Replay</button>
        <span class="field">
          {PRESETS.map(([name, value]) => (
            <button type="button" key={name} class="plain" aria-pressed={settings.value === value} onClick={() => ((typed.value = value), go({ settings: value }))}>{name}</button>
          ))}
        </span>
      </form>
      {!answer || answer.unknown ? <Missing asked={asked.value} what="No replay." /> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="What-if">
          <div class="report">
            <p class="headline">
              Peak reserved: {format.bytes(head.peak_bytes)}; recorded: {format.bytes(head.recorded_peak_bytes)}
              {typeof head.peak_bytes === "number" && typeof head.recorded_peak_bytes === "number" ? ` (${format.signed(head.peak_bytes - head.recorded_peak_bytes)})` : ""}.
            </p>
            {head.refused?.length ? <p class="bad">{format.plural(head.refused_count ?? head.refused.length, "allocation")} would fail, the first for {format.bytes(head.refused[0].requested_bytes)}.</p> : <p>No allocation would fail.</p>}
            <Curves
              label="Reserved memory: replayed and recorded"
              curves={[{ name: "Replayed", x: at, y: answer.f64("reserved") }, { name: "Recorded", x: at, y: answer.f64("recorded"), dash: [5, 4] }]}
              marks={(head.refused ?? []).map((one: any) => ({ x: one.event / events, text: `${format.bytes(one.requested_bytes)} refused` }))}
              end_text={format.plural(events, "event")} limit={head.capacity_bytes} limit_text={`capacity ${format.bytes(head.capacity_bytes)}`}
            />
            {head.recorded_settings ? <p class="note">Recorded with: <span class="code">{format.plain(head.recorded_settings)}</span></p> : null}
            {head.without_effect?.length ? <p class="warning">No effect in this replay: {format.plain(head.without_effect.join(", "))}.</p> : null}
            {head.retries ? <p>The allocator would release its cache {format.plural(head.retries, "time")} to make an allocation fit.</p> : null}
            {(head.notes ?? []).map((note: string) => <p class="note" key={note}>{format.plain(note, 2000)}</p>)}
          </div>
        </div>
      )}
    </div>
  );
}

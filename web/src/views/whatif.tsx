// A replay of the recorded requests with other allocator settings or another capacity.
import { useSignal } from "@preact/signals";
import * as format from "../format.ts";
import { ask, device, moments, subject } from "../state/run.ts";
import { go, part } from "../state/view.ts";
import { of_run, whatif_words } from "./allocator_words.ts";
import type { WhatIfHead } from "./allocator_words.ts";
import { Curves, DASHES } from "./chart.tsx";
import { Missing } from "./parts.tsx";

const tab = part("tab");
const settings = part("settings");
const capacity = part("capacity");
const asked = ask("whatif", () =>
  device.value && tab.value === "whatif" ? { ...subject(), settings: settings.value, capacity: capacity.value, columns: 1024 } : null,
);
const PRESETS = [
  ["Expandable segments", "expandable_segments:True"],
  ["No splitting above 128 MiB", "max_split_size_mb:128"],
  ["Release cache above 80 %", "garbage_collection_threshold:0.8"],
  ["Round up to 8 divisions", "roundup_power2_divisions:8"],
] as const;

export function WhatIf() {
  const typed = useSignal(settings.value);
  const size = useSignal(capacity.value);
  const answer = asked.value.answer;
  const head: Record<string, any> = answer?.head ?? {};
  // The reason stands below: nothing that is typed here would change it.
  const disabled = !!answer?.unknown || !device.value;
  const events = Math.max(1, moments.value - 1);
  const at = Array.from(answer?.u32("event") ?? [], (event) => event / events);
  const is_assumed = of_run(head) === "assumed";
  const own = is_assumed ? "Assumed settings, replayed" : "Recorded settings, replayed";
  const presets = [[is_assumed ? "PyTorch's defaults" : "As recorded", ""], ...PRESETS] as const;
  const words = answer && !answer.unknown ? whatif_words(head as WhatIfHead, !!asked.value.query.settings) : null;
  const curve = (name: string, column: string, dash?: number[]) => (answer?.has(column) ? [{ name, x: at, y: answer.f64(column), dash }] : []);
  const curves = [
    ...curve(asked.value.query.settings ? "These settings, replayed" : own, "reserved"),
    ...(asked.value.query.settings ? curve(own, "baseline", DASHES[1]) : []),
    ...curve("Recorded run", "recorded", DASHES[2]),
  ];
  const submit = (event: Event) => {
    event.preventDefault();
    go({ settings: typed.value.trim(), capacity: size.value.trim() });
  };
  return (
    <div class="panel">
      <form class="strip" onSubmit={submit}>
        <label class="field grow">
          <span>Settings</span>
          <input type="text" class="grow code" disabled={disabled} value={typed.value} placeholder={is_assumed ? "PyTorch's defaults" : "as recorded"} onInput={(event) => (typed.value = event.currentTarget.value)} />
        </label>
        <label class="field">
          <span>Capacity</span>
          <input type="text" style={{ width: "90px" }} disabled={disabled} value={size.value} placeholder="recorded" onInput={(event) => (size.value = event.currentTarget.value)} />
        </label>
        <button type="submit" disabled={disabled}>Replay</button>
        <span class="field presets">
          {presets.map(([name, value]) => (
            <button type="button" key={name} disabled={disabled} aria-pressed={settings.value === value} onClick={() => ((typed.value = value), go({ settings: value }))}>{name}</button>
          ))}
        </span>
      </form>
      {!answer || answer.unknown ? <Missing asked={asked.value} what="No replay." /> : (
        <div class="scroll" tabIndex={0} role="region" aria-label="What-if">
          <div class="report">
            <p class={words!.is_bad ? "headline bad" : "headline"}>{words!.refused}</p>
            <p class="strong">{words!.peak}</p>
            <Curves
              label="Reserved memory: replayed and recorded" curves={curves}
              marks={(head.refused ?? []).map((one: any) => ({ x: one.event / events, text: `${format.bytes(one.requested_bytes)} refused` }))}
              end_text={format.plural(events, "event")} limit={head.capacity_bytes} limit_text={`capacity ${format.bytes(head.capacity_bytes)}`}
            />
            {words!.notes.map((note) => <p class="note" key={note}>{note}</p>)}
            {is_assumed ? <p class="note">The file does not name the recorded settings: PyTorch's defaults are assumed.</p> : null}
            {head.recorded_settings ? <p class="note">Recorded with: <span class="code">{format.plain(head.recorded_settings)}</span></p> : null}
            {head.without_effect?.length ? <p class="warning">No effect in this replay: {format.plain(head.without_effect.join(", "))}.</p> : null}
          </div>
        </div>
      )}
    </div>
  );
}

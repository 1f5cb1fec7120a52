// What a marked range of the chart amounts to: its events and time, and what it leaves.
import { computed } from "@preact/signals";
import * as format from "../format.ts";
import { ask, filter, has_times, moments, range, subject } from "../state/run.ts";
import { go, part } from "../state/view.ts";
import { levels_of } from "./bands.ts";
import { reading_at } from "./time_data.ts";
import type { Reading } from "./time_data.ts";

const ends = computed(() => range.value?.map((event) => Math.min(event, moments.value - 1)) ?? null);
/** The levels at an end: a column of its own. */
const end_asked = (i: number) =>
  ask("levels", () => {
    const at = ends.value?.[i];
    return at === undefined ? null : { ...subject(), from: at, to: at + 1, columns: 1, by: "none", filter: filter.value };
  }, { slot: `levels at end ${i} of the range`, wait_ms: 60 });
const asked = [end_asked(0), end_asked(1)];
/** The readings at both ends, of these very moments; null: not asked yet, or not in this file. */
const readings = computed<Reading[] | null>(() => {
  const wanted = ends.value;
  const read = asked.map(({ value: { answer, query } }, i) => (answer && query.from === wanted?.[i] ? reading_at(levels_of(answer), query.from as number) : null));
  return read.every((one) => one && !one.is_summed) ? (read as Reading[]) : null;
});
const what = part("what");

export function RangeFigures() {
  const at = ends.value;
  if (!at) return null;
  const [first, last] = readings.value ?? [];
  const is_waiting = asked.some((one) => one.value.is_waiting);
  const net = first && last ? last.total - first.total : null;
  const time_ns = has_times.value && first && last && first.time_ns !== null && last.time_ns !== null ? last.time_ns - first.time_ns : null;
  return (
    <div class="range" role="region" aria-label="Range">
      <div class="field">
        <b class="grow cut n">Range {format.count(at[0])} to {format.count(at[1])}</b>
        <button class="plain" onClick={() => go({ range_from: -1, range_to: -1, what: "at" })}>Clear</button>
      </div>
      <dl class="facts n">
        <dt>Events</dt><dd>{format.count(at[1] - at[0])}</dd>
        {has_times.value ? <><dt>Duration</dt><dd>{time_ns === null ? (is_waiting ? "" : "unknown") : format.time(time_ns)}</dd></> : null}
        <dt>Net</dt>
        <dd title={net === null ? undefined : format.exact(net)}>{net === null ? (is_waiting ? "" : "unknown: its ends are not in this file") : format.signed(net)}</dd>
        {first && last ? <><dt>Live</dt><dd>{format.unbroken(`${format.bytes(first.total)} to ${format.bytes(last.total)}`)}</dd></> : null}
      </dl>
      {what.value === "at" ? <button class="link" onClick={() => go({ tab: "holders", what: "allocated" })}>What it allocated and freed</button> : null}
    </div>
  );
}

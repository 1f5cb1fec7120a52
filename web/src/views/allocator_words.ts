// What an allocator's replay says, in words: the sums of the address space, and a what-if.
import * as format from "../format.ts";

/** The answer to `allocator`; null: it is not known. */
export interface Replayed {
  reserved_bytes: number;
  active_bytes: number;
  fragmented_bytes: number;
  cached_bytes: number;
}
/** What lies between blocks: of sizes as they were asked for rounding too, of ranges without segments nobody knows what. */
const FREE: Record<string, string> = { requested: "free or rounding", unknown: "between them" };
export const between = (sizes: string) => FREE[sizes] ?? "free";
/** The parts of the reserved bytes, which add up to them. `used`: of the blocks, in sizes as they were asked for or as
 *  the allocator rounded them; "unknown": of ranges. */
export function reserved_parts(reserved: number, used: number, sizes: string, replayed: Replayed | null): string[] {
  const parts: [number, string][] = [[used, "used"]];
  if (replayed && replayed.reserved_bytes === reserved && replayed.active_bytes >= used)
    parts.push(
      [replayed.active_bytes - used, "rounding"], [replayed.fragmented_bytes, "lost to fragmentation"], [replayed.cached_bytes, "cached"],
    );
  else parts.push([reserved - used, between(sizes)]);
  return parts.filter(([bytes], i) => i === 0 || bytes > 0).map(([bytes, text]) => `${format.bytes(bytes)} ${text}`);
}

interface Row {
  peak_bytes: number;
  refused_count: number;
  fails_at_start: boolean;
  retries: number;
}
/** The header of the answer to `whatif`. */
export interface WhatIfHead extends Row {
  baseline: Row; // the recorded settings, or those assumed, replayed
  settings_known: boolean;
  recorded_peak_bytes: number | null;
  capacity_bytes: number | null;
  is_recorded_capacity: boolean;
  refused: { event: number; requested_bytes: number | null }[];
}
/** What the run's own settings are, in the words of `whatif`. */
export const of_run = (head: { settings_known?: boolean }) => (head.settings_known === false ? "assumed" : "recorded");
const failing = (row: Row) => row.refused_count + (row.fails_at_start ? 1 : 0);
/** Whether requests fail, which matters most; then the peak against the replay of the recorded settings, as `whatif` has it. */
export function whatif_words(head: WhatIfHead, has_settings: boolean): { refused: string; is_bad: boolean; peak: string; notes: string[] } {
  const { baseline } = head;
  const own = of_run(head);
  const [fails, failed] = [failing(head), failing(baseline)];
  const first = head.refused.find((one) => one.requested_bytes !== null);
  const beside = has_settings && failed > 0 ? `; with the ${own} settings ${format.plural(failed, "fails", "fail")}` : "";
  const refused = head.fails_at_start
    ? "What was live before the first event would not fit"
    : fails > 0 ? `${format.plural(fails, "allocation")} would fail${first ? `, the first for ${format.bytes(first.requested_bytes)}` : ""}` : "No allocation would fail";
  const peak = has_settings
    ? `Peak reserved: ${format.bytes(head.peak_bytes)}, ${format.signed(head.peak_bytes - baseline.peak_bytes)} against the ${own} settings in the replay (${format.bytes(baseline.peak_bytes)}).`
    : `Peak reserved with the ${own} settings: ${format.bytes(head.peak_bytes)} in the replay.`;
  const notes = [
    head.capacity_bytes === null
      ? "On a device of unlimited size; a capacity sets a limit."
      : `On a device with ${format.bytes(head.capacity_bytes)} for this process${head.is_recorded_capacity ? ", as in the recorded run, which ran out of memory" : ""}.`,
  ];
  if (head.recorded_peak_bytes !== null && head.recorded_peak_bytes !== baseline.peak_bytes)
    notes.push(`The recorded run reserved ${format.bytes(head.recorded_peak_bytes)} at most: the replay does not know what was cached before the trace. Compare with the replay.`);
  if (head.retries) notes.push(`The allocator would release its cache ${format.plural(head.retries, "time")} to make an allocation fit.`);
  return { refused: `${refused}${beside}.`, is_bad: fails > 0, peak, notes };
}

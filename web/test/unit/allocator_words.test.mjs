import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { between, reserved_parts, whatif_words } = await load("views/allocator_words.ts");
const MIB = 2 ** 20;

test("the parts of what is reserved add up to it: rounding is not free", () => {
  const replayed = { reserved_bytes: 100 * MIB, active_bytes: 64 * MIB, fragmented_bytes: 26 * MIB, cached_bytes: 10 * MIB };
  assert.deepEqual(reserved_parts(100 * MIB, 60 * MIB, "requested", replayed), ["60.0 MiB used", "4.00 MiB rounding", "26.0 MiB lost to fragmentation", "10.0 MiB cached"]);
  assert.deepEqual(reserved_parts(100 * MIB, 60 * MIB, "requested", null), ["60.0 MiB used", "40.0 MiB free or rounding"]);
  assert.deepEqual(reserved_parts(100 * MIB, 64 * MIB, "rounded", null), ["64.0 MiB used", "36.0 MiB free"]);
  // Of another state than the one that is shown: it says nothing of this one.
  assert.deepEqual(reserved_parts(90 * MIB, 60 * MIB, "requested", replayed), ["60.0 MiB used", "30.0 MiB free or rounding"]);
  assert.deepEqual(reserved_parts(90 * MIB, 60 * MIB, "unknown", null), ["60.0 MiB used", "30.0 MiB between them"]);
  assert.deepEqual(reserved_parts(60 * MIB, 60 * MIB, "rounded", null), ["60.0 MiB used"]);
  assert.deepEqual(["requested", "rounded"].map(between), ["free or rounding", "free"]);
});

test("a what-if says first whether requests fail, and compares with the replay of the recorded settings", () => {
  const row = (peak_mib, refused_count = 0, retries = 0) => ({ peak_bytes: peak_mib * MIB, refused_count, fails_at_start: false, retries });
  const head = { ...row(540, 2, 1), baseline: row(600, 1), recorded_peak_bytes: 656 * MIB, capacity_bytes: 700 * MIB, is_recorded_capacity: true, refused: [{ event: 9, requested_bytes: 32 * MIB }] };
  assert.deepEqual(whatif_words(head, true), {
    refused: "2 allocations would fail, the first for 32.0 MiB; with the recorded settings 1 fails.", is_bad: true,
    peak: "Peak reserved: 540 MiB, -60.0 MiB against the recorded settings in the replay (600 MiB).",
    notes: [
      "On a device with 700 MiB for this process, as in the recorded run, which ran out of memory.",
      "The recorded run reserved 656 MiB at most: the replay does not know what was cached before the trace. Compare with the replay.",
      "The allocator would release its cache 1 time to make an allocation fit.",
    ],
  });
  const alone = { ...row(600), baseline: row(600), recorded_peak_bytes: 600 * MIB, capacity_bytes: null, is_recorded_capacity: false, refused: [] };
  assert.deepEqual(whatif_words(alone, false), {
    refused: "No allocation would fail.", is_bad: false, peak: "Peak reserved with the recorded settings: 600 MiB in the replay.",
    notes: ["On a device of unlimited size; a capacity sets a limit."],
  });
  // PyTorch before 2.5 writes no settings: the command calls its defaults assumed.
  const assumed = { ...head, settings_known: false };
  assert.equal(whatif_words(assumed, true).refused, "2 allocations would fail, the first for 32.0 MiB; with the assumed settings 1 fails.");
  assert.equal(whatif_words(assumed, true).peak, "Peak reserved: 540 MiB, -60.0 MiB against the assumed settings in the replay (600 MiB).");
  assert.equal(whatif_words({ ...alone, settings_known: false }, false).peak, "Peak reserved with the assumed settings: 600 MiB in the replay.");
  assert.match(whatif_words({ ...alone, fails_at_start: true }, true).refused, /^What was live before the first event would not fit\.$/);
});

import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { files, is_one_moment, is_peak } = await load("state/run.ts", "state/view.ts");

test("a file of one moment has no event that changes what was live before", () => {
  const device = (events, end_bytes) => ({ events, base_bytes: 16, end_bytes, peak: { event: 0, bytes: 16 } });
  const is = (...of) => ((files.value = [{ devices: [device(...of)] }]), is_one_moment.value);
  assert.deepEqual([is(0, 16), is(1, 16), is(1, 8), is(2, 16)], [true, true, false, false]);
  // What one event frees was live at the peak.
  is(1, 8);
  assert.equal(is_peak.value, true);
});

import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { beginning, files, from_hash, is_one_moment, is_peak, START, store, to_hash } = await load("state/run.ts", "state/view.ts");

test("a file of one moment has no event that changes what was live before", () => {
  const device = (events, end_bytes) => ({ events, base_bytes: 16, end_bytes, peak: { event: 0, bytes: 16 } });
  const is = (...of) => ((files.value = [{ devices: [device(...of)] }]), is_one_moment.value);
  assert.deepEqual([is(0, 16), is(1, 16), is(1, 8), is(2, 16)], [true, true, false, false]);
  // What one event frees was live at the peak.
  is(1, 8);
  assert.equal(is_peak.value, true);
});

test("a page in a file begins with the comparison of the two runs that it has", () => {
  files.value = [{ devices: [{}] }, { devices: [{}] }];
  const begins = () => beginning(0, null).tab;
  assert.equal(begins(), "holders", "a server may be given a second file later");
  store.value = { kind: "embedded" };
  assert.equal(begins(), "compare");
  files.value = [{ devices: [{}] }, { devices: [] }];
  assert.equal(begins(), "holders", "samples have no memory to compare");
  store.value = null;
});

test("an address says what differs from what the page begins with, and comes back as the same view", () => {
  const unknown = [{ what: "category", reason: "no marks" }];
  files.value = [{ devices: [{}, { is_main: true }, { unknown }] }, { devices: [{ unknown }, {}] }];
  const address = (view) => to_hash(view, beginning(view.file, view.device));
  const views = [
    [{ device: 1 }, ""], [{ device: 0 }, "device=0"], [{ device: 2, by: "line" }, "device=2"], [{ device: 2 }, "device=2&by=category"],
    [{ file: 1, by: "line" }, "file=1"], [{ file: 1, device: 1 }, "file=1&device=1"], [{ file: 1, tab: "report" }, "file=1&by=category&tab=report"],
  ];
  for (const [patch, hash] of views) {
    const view = { ...START, ...patch };
    assert.equal(address(view), hash);
    assert.deepEqual(from_hash(hash, beginning), view);
  }
  files.value = [{ devices: [], document: {} }]; // only a report
  assert.equal(address({ ...START, tab: "report" }), "");
  assert.equal(address(START), "tab=holders");
});

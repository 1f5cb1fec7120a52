import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { figure_at, evidence_patch } = await load("views/lanes.tsx", "views/report.tsx");

test("a figure holds until the next one; before the first, and where none is known, there is none", () => {
  const line = { name: "used", times_s: [1, 2, 2, 5], bytes: [10, 20, 30, null] };
  assert.deepEqual([0.5, 1, 1.999, 2, 4.9, 5, 9].map((time) => figure_at(line, time)), [null, 10, 10, 30, 30, null, null]);
  assert.equal(figure_at({ name: "none", times_s: [], bytes: [] }, 3), null);
});

test("evidence is all that is looked at: what was chosen before goes", () => {
  const range = evidence_patch({ view: "holders", device: 1, from: 3, to: 9, filter: 'line:"a.py:1 f"' });
  assert.deepEqual([range.tab, range.device, range.range_from, range.range_to, range.what, range.filter], ["holders", 1, 3, 9, "left", 'line:"a.py:1 f"']);
  const moment = evidence_patch({ view: "space", event: 7 });
  assert.deepEqual([moment.tab, moment.moment, moment.range_from, moment.what, moment.filter, moment.block], ["space", 7, -1, "at", "", -1]);
  assert.equal(evidence_patch(undefined), null);
});

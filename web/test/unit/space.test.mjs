import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { told_gaps } = await load("views/space.tsx");

test("of gaps that lie too close together to be told apart the largest are drawn", () => {
  const gap = (at, bytes) => ({ at, bytes });
  assert.deepEqual(told_gaps([gap(10, 5), gap(100, 5)], 1), [10, 100]);
  assert.deepEqual(told_gaps([gap(10, 5), gap(14, 9), gap(25, 7), gap(100, 1)], 1), [14, 100]);
  // A thousand segments in 300 pixels: without this their lines were a pattern over all blocks.
  assert.ok(told_gaps(Array.from({ length: 1000 }, (_, i) => gap(i, (i * 7) % 1000)), 0.3).length <= 26);
});

import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { from_hash, go, to_hash, undo, view, is_elsewhere, START } = await load("state/view.ts");

test("what is counted in one device's events does not go with the view to another", () => {
  const of_one = { from: 5, to: 90, moment: 7, range_from: 6, range_to: 8, block: 3, at_a: 10, at_b: 20 };
  go({ ...of_one, by: "module" });
  const before = view.peek();
  go({ device: 0, tab: "compare" }); // the same one
  assert.deepEqual(view.peek(), { ...before, tab: "compare" });
  go({ device: 1 });
  assert.deepEqual(view.peek(), { ...START, by: "module", tab: "compare", device: 1 });
  undo();
  assert.equal(view.peek().at_a, 10);
  // What is chosen with the device is of that device.
  go({ file: 1, moment: 4, at_b: 2 });
  assert.deepEqual(view.peek(), { ...START, by: "module", tab: "compare", file: 1, moment: 4, at_b: 2 });
});

test("an address with a tab that there is not shows the first one", () => {
  assert.equal(from_hash("#tab=whatif").tab, "whatif");
  assert.equal(from_hash("#tab=time&by=line").tab, "holders");
});

test("Back returns from another file, device, tab or tile, not from a movement", () => {
  for (const patch of [{ file: 1 }, { device: 1 }, { tab: "space" }, { inside: 2 }, { inside_change: 2 }]) assert.equal(is_elsewhere(START, { ...START, ...patch }), true);
  for (const patch of [{ from: 3, to: 9 }, { moment: 4 }, { by: "line" }, { filter: "x" }]) assert.equal(is_elsewhere(START, { ...START, ...patch }), false);
});

test("typing, dragging and zooming are one step of undo each", () => {
  const start = view.peek();
  for (const search of ["d", "dr", "dro"]) go({ search });
  for (const to of [20, 30, 40]) go({ range_from: 10, range_to: to });
  for (const to of [50, 60]) go({ from: 5, to });
  const [zoomed, dragged, typed] = [view.peek(), { ...start, search: "dro", inside: 0, range_from: 10, range_to: 40 }, { ...start, search: "dro" }];
  assert.deepEqual(zoomed, { ...dragged, from: 5, to: 60 });
  for (const before of [dragged, typed, start]) {
    undo();
    assert.deepEqual(view.peek(), before);
  }
  go({ search: "x" }); // after an undo a step of its own
  undo();
  assert.deepEqual(view.peek(), start);
});

test("a tile is of one tree of holders: another moment, filter or kind of holder shows all", () => {
  go({ inside: 7, shape: "treemap" });
  go({ tab: "space", by: "line" });
  assert.equal(view.peek().inside, 7);
  for (const patch of [{ moment: 12 }, { filter: "x" }, { hold: "module" }, { range_from: 1, range_to: 5 }, { device: 2 }]) {
    go({ inside: 7 });
    go(patch);
    assert.equal(view.peek().inside, 0);
  }
});

test("the box that is shown alone is in the address, and a step of undo; a comparison's is of one comparison", () => {
  go({ inside: 0, inside_change: 0 });
  go({ inside: 9, shape: "icicle" });
  assert.equal(from_hash(to_hash(view.peek())).inside, 9);
  undo();
  assert.equal(view.peek().inside, 0);
  for (const patch of [{ other: 1 }, { other_device: 2 }, { at_a: 4 }, { at_b: 6 }, { hold: "category" }, { library: true }]) {
    go({ inside_change: 5 });
    go({ moment: view.peek().moment + 1 });
    assert.equal(view.peek().inside_change, 5);
    go(patch);
    assert.equal(view.peek().inside_change, 0);
  }
});

import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";
import { encode } from "../mock.mjs";

const { both_of, decode, of_your_code, own_lines, tree_of, without, callees, callers, by_label, layout, treemap, nested_treemap, settled, stations, matcher } = await load("data/columns.ts", "views/tree.ts");

// all 10 ─ a 7 ─ b 4 (own 3) ─ a 1
//        │     └ c 3
//        └ c 3
const encoded = encode(
  { labels: ["all", "a", "b", "c"], kinds: ["other", "user", "library", "user"] },
  { parent: Uint32Array.from([0xffffffff, 0, 1, 2, 1, 0]), label: Uint32Array.from([0, 1, 2, 1, 3, 3]), bytes: Float64Array.from([10, 7, 4, 1, 3, 3]), self_bytes: Float64Array.from([0, 0, 3, 1, 3, 3]), blocks: Uint32Array.from([5, 3, 2, 1, 1, 2]) },
);
const tree = tree_of(decode(encoded.buffer.slice(encoded.byteOffset, encoded.byteOffset + encoded.length)));
const named = (of, node) => of.labels[of.label[node]];

test("a row of the table counts each byte once, also where a frame calls itself", () => {
  assert.deepEqual(by_label(tree).map((line) => [tree.labels[line.label], line.bytes, line.self_bytes]), [["a", 7, 1], ["c", 6, 6], ["b", 4, 3]]);
});

test("hidden frames leave what they hold to the frame above", () => {
  const shown = without(tree, (label) => tree.kinds[label] === "user", "nobody");
  const lines = shown.bytes.map((bytes, node) => [named(shown, node), bytes, shown.self_bytes[node]]);
  assert.deepEqual(lines, [["all", 10, 0], ["a", 7, 3], ["a", 1, 1], ["c", 3, 3], ["c", 3, 3]]);
});

test("what no kept frame holds has a name of its own, and nothing is lost", () => {
  const shown = without(tree, (label) => label === 2, "nobody");
  assert.deepEqual(shown.children[0].map((node) => [named(shown, node), shown.bytes[node], shown.blocks[node]]), [["nobody", 6, 3], ["b", 4, 2]]);
});

test("what has no stack is not said to be of libraries", () => {
  const shown = of_your_code({ ...tree, kinds: ["other", "library", "none", "library"] });
  assert.deepEqual(shown.children[0].map((node) => [named(shown, node), shown.bytes[node]]), [["no line of your code", 6], ["b", 4]]);
});

test("of a comparison's frames those of one's own code are left, with all that changed", () => {
  const [a, b] = [[10, 7, 4, 1, 3, 3], [8, 3, 0, 0, 3, 5]];
  const rows = (of) => of.tree.bytes.map((bytes, node) => [named(of.tree, node), bytes, of.a[node], of.b[node]]);
  const yours = both_of(tree, a, b, true);
  assert.deepEqual(rows(yours), [["all", 12, 10, 8], ["a", 7, 7, 3], ["a", 1, 1, 0], ["c", 3, 3, 3], ["c", 5, 3, 5]]);
  const only_b = both_of({ ...tree, kinds: ["other", "library", "user", "library"] }, a, b, true);
  assert.deepEqual(rows(only_b), [["all", 12, 10, 8], ["b", 4, 4, 0], ["no line of your code", 8, 6, 8]]);
  assert.deepEqual(rows(both_of(tree, a, b, false)).map(([, ...sums]) => sums), [[12, 10, 8], [7, 7, 3], [4, 4, 0], [1, 1, 0], [3, 3, 3], [5, 3, 5]]);
});

test("a line of one's own code has what it and the libraries that it calls hold", () => {
  // Of b, which is a library's, a has the 3 bytes; a below b has its own.
  const shown = { ...tree, files: ["", "/a.py", "/lib/b.py", "/c.py"], lines: [0, 1, 2, 3] };
  assert.deepEqual(own_lines(shown, 5).map((line) => [tree.labels[line.label], line.self_bytes]), [["c", 6], ["a", 4]]);
  assert.deepEqual(own_lines(shown, 1).length, 1);
  assert.deepEqual(own_lines({ ...shown, files: [] }, 5), []);
});

test("callers and callees of a frame add up to what it holds", () => {
  const below = callees(tree, 1);
  assert.equal(below.bytes[0], 7);
  assert.deepEqual(below.children[0].map((node) => [named(below, node), below.bytes[node]]), [["b", 4], ["c", 3]]);
  const above = callers(tree, 3);
  assert.equal(above.bytes[0], 6);
  assert.deepEqual(above.children[0].map((node) => [named(above, node), above.bytes[node]]), [["a", 3]]);
});

test("boxes lie inside of their parents and leave room for what a node holds itself", () => {
  const boxes = layout(tree, 0, 0);
  const of = new Map(boxes.map((box) => [box.node, box]));
  assert.equal(boxes.length, 6);
  for (const box of boxes) {
    if (box.node === 0) continue;
    const up = of.get(tree.parent[box.node]);
    assert.ok(box.x0 >= up.x0 - 1e-12 && box.x1 <= up.x1 + 1e-12 && box.depth === up.depth + 1);
    assert.ok(Math.abs(box.x1 - box.x0 - tree.bytes[box.node] / 10) < 1e-12);
  }
});

test("a treemap's areas are its values", () => {
  const values = [6, 6, 4, 3, 2, 2, 1];
  const tiles = treemap(values, 60, 40);
  assert.equal(tiles.length, 7);
  for (const tile of tiles) assert.ok(Math.abs(tile.w * tile.h - values[tile.index] * 100) < 1e-6);
  assert.deepEqual(treemap([], 10, 10), []);
});

test("tiles lie in tiles, below the name of each, as deep as there is room", () => {
  const told = (top, width, height) =>
    nested_treemap(tree, top, width, height).map((tile) => [named(tree, tile.node), tile.bytes, tile.is_own, tile.is_open, ...[tile.x, tile.y, tile.w, tile.h].map((value) => Math.round(100 * value) / 100)]);
  // 7 of 10 bytes are 70 of 100 pixels; 20 are for a name, 3 for an edge: b and c share 64 by 77, the rest of b and a 58 by 21.
  assert.deepEqual(told(0, 100, 100), [
    ["a", 7, false, true, 0, 0, 70, 100], ["b", 4, false, true, 3, 20, 64, 44], ["b", 3, true, false, 6, 40, 43.5, 21],
    ["a", 1, false, false, 49.5, 40, 14.5, 21], ["c", 3, false, false, 3, 64, 64, 33], ["c", 3, false, false, 70, 0, 30, 100],
  ]);
  assert.deepEqual(told(0, 59, 100).map((tile) => tile[0]), ["a", "c"]); // no room for a name
  assert.deepEqual(told(2, 40, 10), [["b", 3, true, false, 0, 0, 30, 10], ["a", 1, false, false, 30, 0, 10, 10]]);
  // A leaf fills the place as what it is.
  assert.deepEqual(told(3, 40, 10).map((tile) => tile.slice(0, 3)), [["b", 3, true], ["a", 1, false]]);
  assert.deepEqual(told(99, 40, 10), []);
});

test("a chain of nodes that hold the same is one tile, of the last name", () => {
  const chain = { ...tree, parent: [-1, 0, 1, 2, 2], label: [0, 1, 2, 3, 1], bytes: [8, 8, 8, 5, 3], children: [[1], [2], [3, 4], [], []] };
  assert.equal(settled(chain, 0), 2);
  assert.equal(settled(chain, 3), 3);
  assert.deepEqual(stations(chain, 3), [0, 3]);
  assert.deepEqual(nested_treemap(chain, 0, 80, 10).map((tile) => [tile.node, tile.w]), [[3, 50], [4, 30]]);
});

test("a search is a part of a name or a pattern", () => {
  assert.equal(matcher("")?.("x"), undefined);
  assert.equal(matcher("CONV")("my_conv2d"), true);
  assert.equal(matcher("/^a.c$/")("abc"), true);
  assert.equal(matcher("/(/")("("), false);
  // About blocks, not names: no box is dimmed.
  for (const text of ["bytes>10MiB category:activation", "lived<3", "not module:layers.3"]) assert.equal(matcher(text), null);
});

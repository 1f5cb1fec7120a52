import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { band_rects, block_spans, column_of, peaks_of, fetch_again, fetch_for, Axis, byte_ticks, ticks } = await load("views/bands.ts", "views/axis.ts");
const NONE = 0xffffffff;

function levels_of(values, event, begin) {
  const columns = event.length;
  const total = event.map((_, i) => values.reduce((sum, row) => sum + row[i], 0));
  return { from: begin[0], to: begin.at(-1), columns, begin: Uint32Array.from(begin), event: Uint32Array.from(event), total: Float64Array.from(total), min: Float64Array.from(total), values: Float64Array.from(values.flat()), keys: values.map((_, id) => ({ id, label: `k${id}` })), lines: {}, pending: new Float64Array() };
}
/** Heights of the rectangles over the middle of a column. */
function height_at(rects, x) {
  let sum = 0;
  for (let i = 0; i < rects.count; ++i) if (rects.corners[4 * i] <= x && x < rects.corners[4 * i + 2]) sum += rects.corners[4 * i + 3] - rects.corners[4 * i + 1];
  return sum;
}

test("bands of every column add up to its total", () => {
  const levels = levels_of([[1, 1, 5, 0], [2, 2, 2, 9], [0, 4, 4, 4]], [0, 3, 6, 8], [0, 2, 5, 7, 10]);
  const rects = band_rects(levels, [1, 2, 3], (event) => event, 0);
  [1, 3, 6, 9].forEach((x, i) => assert.equal(height_at(rects, x), levels.total[i]));
});

test("equal neighbours are one rectangle", () => {
  const rects = band_rects(levels_of([[3, 3, 3]], [0, 1, 2], [0, 1, 2, 3]), [1], (event) => event, 0);
  assert.equal(rects.count, 1);
  assert.deepEqual([...rects.corners.subarray(0, 4)], [0, 0, 3, 3]);
});

test("blocks and the rest add up to the total of every column", () => {
  let seed = 7;
  const random = (n) => (seed = (seed * 48271) % 2147483647) % n;
  const blocks = Array.from({ length: 60 }, (_, id) => ({ index: id, id, start: random(100), size_bytes: 1 + random(50), end: 0 }));
  for (const block of blocks) block.end = random(4) === 0 ? NONE : block.start + 1 + random(40);
  const total = (e) => blocks.reduce((sum, b) => sum + (b.start <= e && (b.end === NONE || b.end > e) ? b.size_bytes : 0), 0);
  const event = Array.from({ length: 100 }, (_, i) => i);
  const levels = levels_of([event.map(total)], event, [...event, 100]);
  const shown = [...blocks].sort((a, b) => b.size_bytes - a.size_bytes).slice(0, 25);
  const made = block_spans(levels, shown);
  assert.equal(block_spans(levels, shown, made.count - 1), null);
  assert.equal(block_spans(levels, shown, made.count).count, made.count);
  const spans = Array.from({ length: made.count }, (_, i) => ({
    block: made.blocks[made.block[i]], x0: made.x0[i], x1: made.x1[i], bottom: made.bottom[i],
  }));
  for (const e of event) {
    const over = spans.filter((span) => span.x0 <= e && e < span.x1).sort((a, b) => a.bottom - b.bottom);
    let top = 0;
    for (const span of over) {
      assert.equal(span.bottom, top);
      top += span.block.size_bytes;
    }
    assert.equal(top + made.rest[e], total(e));
  }
});

test("a hill has one peak, whatever small dips it has; a low one and a flat line have none", () => {
  // From 0 to 100: a dip of 9 parts no hill, one of 10 does.
  assert.deepEqual(peaks_of([0, 80, 100, 91, 99, 20, 0, 90, 80, 85, 0, 69, 0]), [2, 7]);
  assert.deepEqual(peaks_of([100, 0, 50, 90, 80, 90, 81, 0, 100]), [0, 3, 5, 8]);
  assert.deepEqual(peaks_of([7, 7, 7]), []);
  assert.deepEqual(peaks_of([]), []);
});

test("a moment finds its column", () => {
  const levels = levels_of([[1, 2, 3]], [0, 4, 9], [0, 4, 5, 10]);
  assert.deepEqual([0, 3, 4, 5, 9, 10, 11].map((e) => column_of(levels, e)), [0, 0, 1, 2, 2, 2, -1]);
});

test("three times the visible range is fetched, in buckets of a power of two", () => {
  const { from, to, columns } = fetch_for(5000, 6000, 100_000, 500);
  assert.ok(from <= 4000 && to >= 7000);
  assert.equal(Math.log2((to - from) / columns) % 1, 0);
  assert.deepEqual(fetch_for(0, 10, 10, 1000), { from: 0, to: 10, columns: 10 });
  // Moving a little asks for the same.
  assert.deepEqual(fetch_for(5010, 6010, 100_000, 500), fetch_for(5020, 6020, 100_000, 500));
});

test("an answer is kept until the range comes near its end, or is shown finer or coarser", () => {
  const held = fetch_for(5000, 6000, 100_000, 500);
  assert.equal(fetch_again(held, 5200, 6200, 100_000, 500), held);
  const near = fetch_again(held, held.to - 1400, held.to - 400, 100_000, 500);
  assert.notEqual(near, held);
  assert.ok(near.to > held.to);
  assert.deepEqual(fetch_again(held, 5000, 5400, 100_000, 500), fetch_for(5000, 5400, 100_000, 500));
  assert.deepEqual(fetch_again(held, 4000, 7000, 100_000, 500), fetch_for(4000, 7000, 100_000, 500));
  // A run's ends need nothing beside them; another run may be shorter.
  const end = fetch_for(98_000, 99_000, 99_999, 500);
  assert.equal(fetch_again(end, 98_999, 99_999, 99_999, 500), end);
  assert.notEqual(fetch_again(end, 98_000, 98_500, 98_600, 500), end);
});

test("an axis of time goes there and back", () => {
  const times = { event: Uint32Array.from([0, 10, 20]), time_ns: Float64Array.from([0, 100, 1000]) };
  const axis = new Axis("time", 0, 20, times);
  assert.equal(axis.x(10), 0.1);
  assert.equal(axis.event_at_x(0.1), 10);
  assert.equal(new Axis("time", 0, 20, { event: new Uint32Array(), time_ns: new Float64Array() }).kind, "event");
});

test("ticks are round and few", () => {
  assert.deepEqual(ticks(0, 10, 5), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(ticks(0, 4096, 4, true), [0, 1024, 2048, 3072, 4096]);
  assert.deepEqual(ticks(0, NaN, 5), []);
});

test("an axis of nothing has one size", () => {
  assert.deepEqual(byte_ticks(1.06 / 1.02, 300), [0]);
  assert.deepEqual(byte_ticks(8, 300), [0, 2, 4, 6, 8]);
  assert.deepEqual(byte_ticks(3, 900), [0, 1, 2, 3]);
});

test("an axis of 120 pixels or more has at least four sizes, and none nearer than 20 pixels to the next", () => {
  for (const height of [60, 120, 150, 240, 400, 900])
    for (let most = 1000; most < 2 ** 40; most *= 1.37) {
      const at = byte_ticks(most, height);
      assert.ok(at.length >= (height >= 120 ? 4 : 2) && at[0] === 0, `${at.length} for ${most} on ${height} pixels`);
      assert.ok((at[1] / most) * height >= 20 - 1e-9, `${(at[1] / most) * height} pixels for ${most} on ${height}`);
    }
});

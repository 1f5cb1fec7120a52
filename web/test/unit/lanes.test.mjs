import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { age_text, draw_words, figure_at, figure_text, evidence_patch, findings_of, has_own_scale, named_first, title_text } = await load("views/lanes.tsx", "views/report.tsx", "views/devices.tsx");

test("a figure is of the nearest sample; before the first, and where none is known, there is none", () => {
  const line = { name: "used", times_s: [1, 2, 2, 5], bytes: [10, 20, 30, null] };
  assert.deepEqual([0.5, 1, 1.499, 1.999, 2, 4.9, 5, 9].map((time) => figure_at(line, time)), [null, 10, 10, 20, 30, 30, null, null]);
  assert.equal(figure_at({ name: "none", times_s: [], bytes: [] }, 3), null);
});

test("a lane says how far from the moment its farthest figure was sampled", () => {
  const lane = { lines: [{ times_s: [0, 0.5, 4], bytes: [1, 2, null] }, { times_s: [0.25], bytes: [3] }, { times_s: [9], bytes: [4] }] };
  assert.deepEqual([-1, 0, 0.199, 1.5].map((time) => age_text(lane, time)), ["", "", ", sampled 199 ms earlier", ", sampled 1.250 s earlier"]);
  // Memory was refused 304 ms before a sample, and 696 ms after one.
  assert.equal(age_text({ lines: [{ times_s: [2, 3], bytes: [5, 6] }] }, 2.696), ", sampled 304 ms later");
});

test("evidence is all that is looked at: what was chosen before goes", () => {
  const range = evidence_patch({ view: "holders", device: 1, from: 3, to: 9, filter: 'line:"a.py:1 f"' });
  assert.deepEqual([range.tab, range.device, range.range_from, range.range_to, range.what, range.filter], ["holders", 1, 3, 9, "left", 'line:"a.py:1 f"']);
  const moment = evidence_patch({ view: "space", event: 7 });
  assert.deepEqual([moment.tab, moment.moment, moment.range_from, moment.what, moment.filter, moment.block], ["space", 7, -1, "at", "", -1]);
  assert.equal(evidence_patch(undefined), null);
});

test("a process that does not run is not called unknown", () => {
  const main = { name: "main", times_s: [0, 1, 2, 3], bytes: [1024, 1024, 1024, 1024] };
  const worker = { name: "worker", times_s: [1, 1, 2], bytes: [2048, 2048, null] };
  const lane = { kind: "chart", title: "resident (RSS) by process", limit_bytes: null, lines: [main, worker] };
  const said = (time) => figure_text(lane, worker, time);
  // At 0 it was looked for and not there; it began between 0 and 1, and had ended at 2.
  assert.deepEqual([-1, 0, 0.5, 1, 1.9, 2, 3].map(said), ["not running", "not running", "not sampled yet", "2.00 KiB", "2.00 KiB", "not running", "not running"]);
  assert.equal(figure_text({ ...lane, title: "host" }, worker, 3), "unknown");
});

test("on a narrow lane the lines that have no room beside the first are named in further rows", () => {
  const said = (width, height) => {
    const out = [];
    const c = { measureText: (text) => ({ width: 6 * text.length }), fillText: (text, x, y) => out.push([text, y]), setLineDash() {}, beginPath() {}, moveTo() {}, lineTo() {}, stroke() {} };
    return [draw_words(c, { kind: "chart", title: "host", limit_bytes: null, lines: ["anonymous", "pages of files", "shared memory"].map((name) => ({ name, times_s: [], bytes: [] })) }, width, height), out];
  };
  assert.deepEqual(said(900, 46), [14, [["host:", 7], ["anonymous unknown", 7], ["pages of files unknown", 7], ["shared memory unknown", 7]]]);
  // 46 pixels leave 30 to the lines: one row of words; 76 leave three.
  assert.deepEqual(said(190, 46), [14, [["host:", 7], ["anonymous unknown", 7]]]);
  assert.deepEqual(said(190, 76), [42, [["host:", 7], ["anonymous unknown", 7], ["pages of files unknown", 21], ["shared memory unknown", 35]]]);
});

test("of a lane's lines those with a figure at the moment are named first", () => {
  const lane = { lines: [{ times_s: [1, 2], bytes: [5, null] }, { times_s: [1], bytes: [6] }, { times_s: [4], bytes: [7] }, { times_s: [1], bytes: [8] }] };
  assert.deepEqual([1.5, 3, 5].map((time) => named_first(lane, time)), [[0, 1, 3, 2], [1, 3, 0, 2], [1, 2, 3, 0]]);
});

test("where a lane's title has no room for it, the age of the figures goes before the title is cut", () => {
  const lane = { title: "host memory by class", limit_bytes: 2 ** 30, lines: [{ times_s: [1], bytes: [1024] }] };
  const said = (most) => title_text(lane, 1.282, (text) => text.length <= most);
  assert.equal(said(80), "host memory by class of 1.00 GiB, sampled 282 ms earlier:");
  assert.equal(said(40), "host memory by class of 1.00 GiB:");
});

test("each line of a lane has its name, or is counted among more", () => {
  const lane = { kind: "chart", title: "by process", limit_bytes: null, lines: ["a", "b", "c", "d", "e"].map((name) => ({ name: name.repeat(20), times_s: [], bytes: [] })) };
  const drawn = (width) => {
    const texts = [];
    const nothing = () => {};
    // Ten pixels a letter.
    draw_words({ measureText: (text) => ({ width: 10 * text.length }), fillText: (text) => texts.push(text), beginPath: nothing, moveTo: nothing, lineTo: nothing, stroke: nothing, setLineDash: nothing }, lane, width, 46);
    return texts;
  };
  const name = (letter) => `${letter.repeat(20)} unknown`;
  // The title takes 118 pixels, a line 304, "and 3 more" 108.
  assert.deepEqual(drawn(850), ["by process:", name("a"), name("b"), "and 3 more"]);
  assert.deepEqual(drawn(2000), ["by process:", ...["a", "b", "c", "d", "e"].map(name)]);
});

test("findings are counted, not the advice and the causes beside them", () => {
  const list = (...texts) => ({ kind: "list", items: texts.map((text) => ({ text })) });
  const sections = [
    { title: "Findings", parts: [list("one", "two", "three")] },
    { title: "What to change", parts: [list("a", "b")] },
    { title: "Out of memory on cuda:0", parts: [list("c"), { kind: "sentence", text: "d" }] },
  ];
  assert.deepEqual(findings_of(sections).map((item) => item.text), ["one", "two", "three"]);
});

test("a device too small for the largest one's scale has its own", () => {
  assert.deepEqual([0, 1, 49, 50, 1000].map((peak) => has_own_scale(peak, 1000)), [false, true, true, false, false]);
});

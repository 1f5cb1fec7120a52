import assert from "node:assert/strict";
import { deflateRawSync } from "node:zlib";
import test from "node:test";
import { load } from "../load.mjs";
import { encode } from "../mock.mjs";

const { EmbeddedStore } = await load("data/embedded.ts");
const packed = deflateRawSync(encode({ from: 0, to: 101 })).toString("base64");
const store = new EmbeddedStore({ answers: {
  "holders?device=0&file=0&from=0&to=101&what=left": packed, "holders?device=0&event=40&file=0": packed,
  "holders?device=0&event=90&file=0": packed, "levels?by=none&columns=8&device=0&file=0&from=0&to=101": packed,
} });
const said = async (path, query) => (await store.ask(path, { file: 0, device: 0, ...query })).summary;

test("in place of what a file lacks it shows the nearest, and names both", async () => {
  assert.equal(await said("holders", { from: 10, to: 21, what: "left" }), "Not in this file: events 10 to 20. Shown: events 0 to 100, the nearest range.");
  assert.equal(await said("holders", { event: 60 }), "Not in this file: event 60. Shown: event 40, the nearest one.");
  assert.equal(await said("holders", { event: 90 }), null);
  assert.equal(await said("holders", { from: 0, to: 101, what: "left" }), null);
  // Columns of a wider range show the wanted one, only less finely.
  assert.equal(await said("levels", { from: 10, to: 21, by: "none" }), "This file has a summary of this range.");
});

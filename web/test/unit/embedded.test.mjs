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

test("why nothing can be replayed holds for all settings; where the recorded ones can, the file lacks the others", async () => {
  const key = (device) => `whatif?columns=1024&device=${device}&file=0`;
  const why = "the allocator was not recorded, so it cannot be simulated";
  const store = new EmbeddedStore({ answers: {
    [key(0)]: deflateRawSync(encode({ unknown: why })).toString("base64"), [key(1)]: deflateRawSync(encode({ peak_bytes: 5 })).toString("base64"),
  } });
  const ask = (device, settings) => store.ask("whatif", { file: 0, device, settings, capacity: "", columns: 1024 });
  assert.deepEqual([(await ask(0, "")).unknown, (await ask(0, "expandable_segments:True")).unknown], [why, why]);
  assert.equal((await ask(1, "")).head.peak_bytes, 5);
  await assert.rejects(ask(1, "expandable_segments:True"), /does not contain a replay with these settings/);
});

test("in place of what a file lacks it shows the nearest, and names both", async () => {
  assert.equal(await said("holders", { from: 10, to: 21, what: "left" }), "Not in this file: events 10 to 20. Shown: events 0 to 100, the nearest range.");
  assert.equal(await said("holders", { event: 60 }), "Not in this file: event 60. Shown: event 40, the nearest one.");
  assert.equal(await said("holders", { event: 90 }), null);
  assert.equal(await said("holders", { from: 0, to: 101, what: "left" }), null);
  // Columns of a wider range show the wanted one, only less finely.
  assert.equal(await said("levels", { from: 10, to: 21, by: "none" }), "This file has a summary of this range.");
});

import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { ended, looks_of, packed, picture, take, unpack, view_command, KEPT } = await load("state/live.ts");

const S = 1e9;
const device = (bytes) => ({ device: "cuda:0", allocated_bytes: bytes, reserved_bytes: null, peak_bytes: bytes + 1 });
const recording = (pid, bytes) => ({ host: "node", pid, rank: null, program: "train.py", folder: `/runs/${pid}`, devices: [device(bytes)] });
const show = (seconds, ...recordings) => take({ time_ns: seconds * S, host: "node", recordings });
const levels = (pid) => looks_of(recording(pid, 0), device(0)).map((look) => look.allocated);

test("a curve and what ended are kept over a reload; where nobody looked there is a gap", () => {
  show(1, recording(1, 10), recording(2, 5));
  show(2, recording(1, 20), recording(2, 6));
  show(2, recording(1, 20), recording(2, 6)); // the stream begins anew with what was sent last
  show(3, recording(1, 30));
  assert.deepEqual(levels(1), [10, 20, 30]);
  assert.deepEqual(ended.value, [{ host: "node", pid: 2, rank: null, program: "train.py", folder: "/runs/2", peaks: [{ device: "cuda:0", bytes: 7 }], time_ns: 3 * S }]);
  const text = packed();
  take({ time_ns: 0, host: "another", recordings: [] }); // nothing of a host is another one's
  assert.deepEqual([levels(1), ended.value], [[], []]);
  unpack(text);
  show(60, recording(1, 40));
  assert.deepEqual(levels(1), [10, 20, 30, NaN, 40]);
  assert.deepEqual(ended.value.map((one) => one.pid), [2]);
  assert.ok(looks_of(recording(1, 0), device(0)).every((look) => Number.isNaN(look.reserved)));
  show(61, recording(2, 8)); // it was away while its file could not be read
  assert.deepEqual(ended.value.map((one) => one.pid), [1]);
  assert.equal(picture.value.time_ns, 61 * S);
  for (let second = 62; second < 62 + 2 * KEPT; ++second) show(second, recording(2, second));
  assert.equal(levels(2).length, KEPT);
});

test("the command that opens a recording can be pasted", () => {
  assert.equal(view_command("/runs/a-b_1.gpumemprof"), "gpumemprof view /runs/a-b_1.gpumemprof");
  assert.equal(view_command("/my runs/it's"), "gpumemprof view '/my runs/it'\\''s'");
});

import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { bytes, signed, share, unbroken, time, plain, frame, frame_line, key_line, key_name, before_line, besides, address, csv, from_hash, to_hash, START } = await load("format.ts", "state/view.ts", "export.ts");

test("sizes read as the command's", () => {
  // What src/base/size_test.cc and format_bytes() give.
  assert.deepEqual([0, 1023, 1024, 1536, 10 * 1024, 1023.4 * 1024, 1024 ** 2, 12426629128].map(bytes), ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "10.0 KiB", "1023 KiB", "1.00 MiB", "11.6 GiB"]);
  // Of two that are as near the even one, as printf does.
  assert.deepEqual([8.125, 8.375, 16.25, 16.75].map((size) => bytes(size * 1024 ** 2)), ["8.12 MiB", "8.38 MiB", "16.2 MiB", "16.8 MiB"]);
  assert.equal(bytes(null), "unknown");
  assert.equal(signed(-2048), "-2.00 KiB");
  assert.equal(signed(2048), "+2.00 KiB");
});
test("shares and times", () => {
  assert.deepEqual([share(1, 3), share(1, 1e6), share(0, 5), share(1, 0)], ["33.3 %", "< 0.1 %", "0 %", ""]);
  // As the command: less than a tenth is said, and what is nearly all is no round 100.
  assert.deepEqual([share(9, 10_000), share(1, 1000), share(9999, 10_000), share(7, 7)], ["< 0.1 %", "0.1 %", "100.0 %", "100.0 %"]);
  assert.deepEqual([time(1.5e9), time(2e6, 1e6), time(null)], ["1.500 s", "2 ms", "unknown"]);
  assert.equal(address(0x7f12, 0x34), "0x7f1200000034");
});
test("what hides or turns a line around is shown, and a long text is cut with its length told", () => {
  assert.equal(plain("a\u0000b\u001b\u202e\n"), "a\u2400b\u241b\\u202e\u240a");
  assert.equal(plain("<b>&"), "<b>&");
  const cut = plain("y".repeat(10_485_760));
  assert.equal(cut, `${"y".repeat(300)}… (10,485,760 characters)`);
});
test("a frame is a function and a place", () => {
  assert.deepEqual(frame("/home/x/net/model.py:20 forward"), { name: "forward", place: "net/model.py:20" });
  assert.deepEqual(frame("C:\\x\\net\\model.py:20 forward"), { name: "forward", place: "net\\model.py:20" });
  assert.equal(key_name("C:\\x\\net\\model.py:20 forward").file, "model.py");
  assert.deepEqual(frame("<torch module> layers.0"), { name: "layers.0", place: "torch module" });
  assert.deepEqual(frame("?? at::empty(int, int)"), { name: "at::empty(int, int)", place: "" });
  assert.deepEqual(frame("std::vector<a> f(b)"), { name: "std::vector<a> f(b)", place: "" });
});
test("a key of the chart begins with what tells it from others", () => {
  assert.deepEqual(key_name("/home/x/net/model.py:20 forward"), { file: "model.py", line: ":20", name: "forward", beside: "" });
  assert.deepEqual(key_name("model.py:39 forward"), { file: "model.py", line: ":39", name: "forward", beside: "" });
  for (const text of ["optimizer state", "(no stack recorded)"]) assert.deepEqual(key_name(text), { file: "", line: "", name: text, beside: "" });
  assert.deepEqual(key_name("<torch module> layers.0"), { file: "", line: "", name: "layers.0", beside: "" });
  // Stacks of the same line.
  assert.deepEqual(key_name("/x/model.py:20 forward ← /x/train.py:3 step → …/nn/functional.py:9 silu"), { file: "model.py", line: ":20", name: "forward", beside: "← train.py:3 → functional.py:9" });
  assert.deepEqual(key_name("at::empty ← at::zeros"), { file: "", line: "", name: "at::empty", beside: "← at::zeros" });
  assert.deepEqual(besides("→ _tensor.py:623 → layers.5.self_attn (2)"), ["→ _tensor.py:623", "→ layers.5.self_attn (2)"]);
  assert.deepEqual(besides("← train.py:3"), ["", "← train.py:3"]);
  const cut = ["→ adam.py:178", "→ adam.py:178 (2)", "→ layers.5.self_attn (2)", "→ ReLU", ""].map(before_line);
  assert.deepEqual(cut, [["→ adam.py", ":178"], ["→ adam.py", ":178 (2)"], ["→ layers.5.self_attn", " (2)"], ["→ ReLU", ""], ["", ""]]);
  assert.equal(key_line("/x/model.py:20 forward ← /x/train.py:3 step"), "model.py:20 ← train.py:3 forward");
  assert.equal(key_line("<torch module> layers.0"), "layers.0");
  assert.equal(frame_line("/x/model.py:20 forward ← /x/train.py:3 step"), "forward  x/model.py:20 ← step  x/train.py:3");
});
test("a table keeps commas and quotes, and no cell is a formula", () => {
  assert.equal(csv([["a,b", 'c"d'], ["=1+1", "-5"]]), '"a,b","c""d"\r\n\'=1+1,-5\r\n');
});
test("the address holds the view, and nothing that it says wrongly counts", () => {
  const view = { ...START, from: 5, to: 90, by: "module", filter: 'a "b" & c=d', library: true };
  assert.deepEqual(from_hash("#" + to_hash(view)), view);
  assert.equal(to_hash(START), "");
  assert.deepEqual(from_hash("#from=x&to=1e99&nothing=1&library=maybe"), { ...START, library: false });
});

test("a figure stays beside its unit", () => {
  assert.equal(unbroken("40.4 % of 1.50 MiB, 2 GiB/s in 3 s and 4 steps"), "40.4\u00a0% of 1.50\u00a0MiB, 2\u00a0GiB/s in 3\u00a0s and 4 steps");
});

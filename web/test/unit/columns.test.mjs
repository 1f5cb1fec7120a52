import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";
import { encode } from "../mock.mjs";

const { decode, Cache, Answer, key_of, EmbeddedStore } = await load("data/columns.ts", "data/store.ts", "data/embedded.ts");
const buffer = (bytes) => bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);

test("columns come out as they went in", () => {
  const answer = decode(buffer(encode({ a: 1 }, { small: Uint8Array.from([1, 2, 3]), ids: Uint32Array.from([7, 0xffffffff]), sizes: Float64Array.from([2 ** 53, 0.5]) })));
  assert.equal(answer.head.a, 1);
  assert.deepEqual([...answer.u32("small")], [1, 2, 3]);
  assert.deepEqual([...answer.u32("ids")], [7, 0xffffffff]);
  assert.deepEqual([...answer.f64("sizes")], [2 ** 53, 0.5]);
  assert.deepEqual([...answer.f64("absent")], []);
});

test("a column outside of its answer is refused", () => {
  const good = encode({}, { sizes: Float64Array.from([1, 2, 3]) });
  assert.throws(() => decode(buffer(good.subarray(0, good.length - 8))), /lies outside/);
  assert.throws(() => decode(buffer(Buffer.from("nonsense"))), /does not begin/);
  assert.throws(() => decode(buffer(Buffer.from("GMPC\xff\xff\xff\x7f", "latin1"))), /longer than the answer/);
  assert.throws(() => decode(new ArrayBuffer(3)), /too short/);
});

test("columns of a type that is none, or at a bad place, are refused", () => {
  const with_spec = (spec) => {
    const head = Buffer.from(JSON.stringify({ columns: { x: spec } }));
    const out = Buffer.alloc(8 + head.length + 64);
    out.write("GMPC");
    out.writeUInt32LE(head.length, 4);
    head.copy(out, 8);
    return buffer(out);
  };
  for (const spec of [{ type: "constructor", length: 1, offset: 8 }, { type: "f64", length: 1, offset: 4 }, { type: "f64", length: -1, offset: 8 }, { type: "f64", length: 2 ** 40, offset: 8 }, { type: "u8", length: 1.5, offset: 8 }])
    assert.throws(() => decode(with_spec(spec)), /lies outside/);
});

test("the cache drops what was used longest ago", () => {
  const answer = () => new Answer({}, new Map([["x", new Float64Array(1000)]]));
  const cache = new Cache(3 * answer().size_bytes);
  for (const key of ["a", "b", "c"]) cache.put(key, answer());
  cache.get("a");
  cache.put("d", answer());
  assert.ok(cache.get("a") && cache.get("c") && cache.get("d"));
  assert.equal(cache.get("b"), undefined);
  assert.equal(cache.size_bytes, 3 * answer().size_bytes);
});

test("the same question has one key whatever its order", () => {
  assert.equal(key_of("levels", { to: 9, from: 0, filter: "" }), key_of("levels", { from: 0, to: 9 }));
  assert.equal(key_of("levels", { from: 0, to: 9 }), "levels?from=0&to=9");
  assert.equal(key_of("run", {}), "run");
});

async function packed(head, columns) {
  const stream = new Blob([encode(head, columns)]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  return Buffer.from(await new Response(stream).arrayBuffer()).toString("base64");
}
test("an embedded page answers with the narrowest range that covers what is asked, and says so", async () => {
  const store = new EmbeddedStore({ answers: {
    "levels?columns=8&from=0&to=1000": await packed({ of: "whole" }),
    "levels?columns=8&from=100&to=300": await packed({ of: "part" }),
    "holders?by=stack&event=50": await packed({ of: 50 }),
    "holders?by=stack&event=90": await packed({ of: 90 }),
  } });
  const part = await store.ask("levels", { from: 120, to: 200, columns: 64 });
  assert.equal(part.head.of, "part");
  assert.match(part.summary, /summary/);
  assert.equal((await store.ask("levels", { from: 50, to: 200, columns: 64 })).head.of, "whole");
  assert.equal((await store.ask("levels", { from: 0, to: 1000, columns: 8 })).summary, null);
  const near = await store.ask("holders", { event: 60, by: "stack" });
  assert.equal(near.head.of, 50);
  assert.match(near.summary, /event 50, the nearest/);
  await assert.rejects(store.ask("holders", { event: 60, by: "module" }), /does not contain the holders/);
  await assert.rejects(store.ask("space", { event: 60 }), /does not contain the address space/);
});

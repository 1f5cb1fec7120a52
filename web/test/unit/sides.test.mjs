import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { sides_of, START } = await load("views/sides.ts", "state/view.ts");
const device = (name, is_main = false) => ({ name, is_main });
const first = { devices: [device("cpu"), device("cuda:0", true)] };
const second = { devices: [device("cuda:1"), device("cuda:0", true)] };
const told = (patch, files) => {
  const { a, b } = sides_of({ ...START, at: -1, ...patch }, files);
  return [[a.file, a.device, a.at], [b.file, b.device, b.at]];
};

test("the first file is the baseline, unless the address says another", () => {
  assert.deepEqual(told({ device: 1 }, [first, second]), [[0, 1, -1], [1, 1, -1]]);
  assert.deepEqual(told({ file: 1, device: 1 }, [first, second]), [[0, 1, -1], [1, 1, -1]]);
  assert.deepEqual(told({ file: 1, device: 1, other: 0 }, [first, second]), [[1, 1, -1], [0, 1, -1]]);
  // Of the same name there is none: the main one.
  assert.deepEqual(told({ device: 0 }, [first, second]), [[0, 0, -1], [1, 1, -1]]);
});

test("a file beside itself at the same moment gives way to the other file", () => {
  assert.deepEqual(told({ other: 0, other_device: 0 }, [first, second]), [[0, 0, -1], [1, 1, -1]]);
  assert.deepEqual(told({ file: 1, device: 1, other: 1 }, [first, second]), [[0, 1, -1], [1, 1, -1]]);
});

test("two devices and two moments of one file are two sides", () => {
  assert.deepEqual(told({ other_device: 1 }, [first]), [[0, 0, -1], [0, 1, -1]]);
  assert.deepEqual(told({ device: 1, at: 5, at_b: 9 }, [first]), [[0, 1, 5], [0, 1, 9]]);
  assert.deepEqual(told({ other: 0, other_device: 1 }, [first, second]), [[0, 0, -1], [0, 1, -1]]);
  assert.deepEqual(told({ device: 1, other: 0, at_b: 9 }, [first, second]), [[0, 1, -1], [0, 1, 9]]);
});

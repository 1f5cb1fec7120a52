import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { load } from "../load.mjs";

const { CATEGORIES, colour_of, ink_on, nth } = await load("draw/palette.ts");

test("a category has its colour whatever came before it; other names have theirs by order", () => {
  for (const dark of [false, true]) {
    assert.deepEqual([...CATEGORIES].reverse().map((name) => colour_of("category", name, dark)), CATEGORIES.map((_, index) => nth(index, dark)).reverse());
    assert.equal(new Set(CATEGORIES.map((name) => colour_of("category", name, dark))).size, 12);
  }
  assert.deepEqual(["b", "a", "b"].map((name) => colour_of("module", name, false)), [nth(0, false), nth(1, false), nth(0, false)]);
  // A name that the list does not have comes after it.
  assert.equal(colour_of("category", "from a rule", false), nth(12, false));
});

test("the list has every category that the command names", () => {
  const source = readFileSync(new URL("../../../src/analysis/categories/category_rules.cc", import.meta.url), "utf8");
  const named = [.../kNames\[kCategories\] = \{([^}]*)\}/.exec(source)[1].matchAll(/"([^"]+)"/g)].map((found) => found[1]);
  assert.deepEqual([...CATEGORIES].sort(), named.sort());
});

test("a text on a colour is the one that is read more easily", () => {
  // On #767676 white has a contrast of 4.54 and black of 4.62; on #757575 it is 4.61 and 4.56.
  assert.deepEqual([0xffffff, 0x767676, 0x757575, 0x000000, 0x628bc9].map(ink_on), ["#000000", "#000000", "#ffffff", "#ffffff", "#000000"]);
});

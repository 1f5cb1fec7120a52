import assert from "node:assert/strict";
import test from "node:test";
import { load } from "../load.mjs";

const { fill_rects, RectList } = await load("draw/rects.ts");

test("every pixel is that of the last rectangle over it", () => {
  const [width, height] = [37, 23];
  const window = { x0: -3, x1: 71, y0: 2, y1: 48 };
  const list = new RectList();
  let seed = 7;
  const dice = (n) => (seed = (seed * 48271) % 2147483647) % n;
  for (let i = 0; i < 3000; ++i) {
    const [x, y] = [dice(90) - 10, dice(60) - 5];
    list.add(x, y, x + dice(40) / 8, y + dice(40) / 8, dice(0x1000000));
  }
  const pixels = new Uint32Array(width * height);
  fill_rects(pixels, width, height, list, window);
  const [sx, sy] = [width / (window.x1 - window.x0), height / (window.y1 - window.y0)];
  for (let y = 0; y < height; ++y)
    for (let x = 0; x < width; ++x) {
      let wanted = 0;
      for (let i = 0; i < list.count; ++i) {
        const [x0, y0, x1, y1] = list.corners.subarray(4 * i, 4 * i + 4);
        const left = Math.round((x0 - window.x0) * sx);
        const right = Math.max(left + 1, Math.round((x1 - window.x0) * sx));
        const [low, high] = [height - (y1 - window.y0) * sy, height - (y0 - window.y0) * sy].map(Math.round);
        if (left <= x && x < right && low <= y && y < high) wanted = list.colours[i] + 0x1000000;
      }
      const got = pixels[y * width + x];
      const colour = got === 0 ? 0 : 0x1000000 + ((got & 255) << 16) + (got & 0xff00) + ((got >> 16) & 255);
      assert.equal(colour, wanted, `${x}, ${y}`);
      assert.ok(got === 0 || got >>> 24 === 255);
    }
});

test("of rows in order what lies outside of the window is passed over, and nothing else", () => {
  const [width, height] = [40, 20];
  const [plain, ordered] = [new RectList(), new RectList()];
  let seed = 11;
  const dice = (n) => (seed = (seed * 48271) % 2147483647) % n;
  for (let row = 0; row < 6; ++row) {
    if (row > 1) ordered.begin_row(); // before the first row in no order
    for (let i = 0, x = 0; i < 200; ++i) {
      const end = x + dice(9) / 4;
      const y = 3 * row + dice(3);
      for (const list of [plain, ordered]) list.add(row > 1 ? x : 100 - x, y, row > 1 ? end : 101 - x, y + 1 + dice(1), 1000 * row + i);
      x = end;
    }
  }
  for (const window of [{ x0: -5, x1: 300 }, { x0: 30, x1: 31 }, { x0: 57.3, x1: 120.1 }, { x0: -20, x1: -10 }, { x0: 900, x1: 950 }]) {
    const drawn = [plain, ordered].map((list) => {
      const pixels = new Uint32Array(width * height);
      fill_rects(pixels, width, height, list, { ...window, y0: 0, y1: 20 });
      return [...pixels];
    });
    assert.deepEqual(drawn[1], drawn[0]);
  }
});

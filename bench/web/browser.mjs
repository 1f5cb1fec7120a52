// A headless Chromium for bench/measures/page.py: requests as lines of JSON on standard input, an answer a line.
//   {"do": "picture", "address": URL}   until the chart, its legend and what is said of it are there
//   {"do": "frames", "address": URL, "count": N}   milliseconds between frames while the wheel zooms and moves
//   {"do": "click", "address": URL, "count": N}   from a click on a block until its stack is shown
//   {"do": "heap", "address": URL}
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(new URL("../../web/package.json", import.meta.url));
const { chromium } = require("playwright-core");
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
});
const page = await (await browser.newContext({ viewport: { width: 1440, height: 900 } })).newPage();
page.setDefaultTimeout(30_000);

/** The bands are drawn, and both what is read and the legend have their figures. */
const is_complete = () => {
  const bands = document.querySelectorAll(".time .chart canvas:not(.top)")[1]; // the first is that of the whole run
  if (!bands || !document.querySelector(".legend tfoot tr") || !/bytes|B/.test(document.querySelector(".readout b")?.textContent ?? "")) return false;
  const { width, height } = bands;
  const copy = new OffscreenCanvas(width, height).getContext("2d");
  copy.drawImage(bands, 0, 0);
  return copy.getImageData(0, 0, width, height).data.some((value) => value !== 0);
};

async function picture({ address }) {
  // Another document first: what changes behind "#" alone would be the same page.
  await page.goto("about:blank");
  await page.goto(address);
  await page.waitForFunction(is_complete, null, { polling: 20 });
  return {};
}

async function frames({ address, count }) {
  await picture({ address });
  await page.waitForTimeout(500);
  return page.evaluate(async (count) => {
    const canvas = document.querySelectorAll(".time .chart canvas.top")[1];
    const box = canvas.getBoundingClientRect();
    const at = { clientX: box.left + box.width * 0.6, clientY: box.top + box.height / 2, bubbles: true, cancelable: true };
    const next = () => new Promise((done) => requestAnimationFrame(done));
    const took = [];
    let before = await next();
    for (let i = 0; i < count; ++i) {
      // In for a while, sideways, out again.
      const turn = Math.floor(i / 20) % 4;
      const sideways = turn === 1 || turn === 3;
      canvas.dispatchEvent(new WheelEvent("wheel", { ...at, deltaY: turn === 2 ? 60 : -60, shiftKey: sideways }));
      const now = await next();
      took.push(now - before);
      before = now;
    }
    return { ms: took };
  }, count);
}

async function click({ address, count }) {
  await picture({ address });
  await page.waitForTimeout(1000);
  const box = await page.locator(".time .chart canvas.top").nth(1).boundingBox();
  const ms = [];
  for (let i = 0; i < count; ++i) {
    await page.evaluate(() => {
      window.shown = new Promise((done) => {
        let begin = 0;
        addEventListener("pointerup", () => (begin = performance.now()), { capture: true, once: true });
        const heading = () => [...document.querySelectorAll("h2")].find((one) => /^Block \d/.test(one.textContent))?.textContent;
        const before = heading();
        new MutationObserver((_, watching) => {
          if (!begin || !document.querySelector(".frames") || !heading() || heading() === before) return;
          watching.disconnect();
          done(performance.now() - begin);
        }).observe(document.body, { childList: true, subtree: true, characterData: true });
      });
    });
    // Low in the chart lie the blocks that stay; each click is on another one.
    await page.mouse.click(box.x + 120 + ((box.width - 160) * (i + 1)) / (count + 2), box.y + box.height - 25 - 2 * (i % 8));
    const took = await page.evaluate(() => Promise.race([window.shown, new Promise((done) => setTimeout(() => done(null), 1500))]));
    if (took !== null) ms.push(took);
  }
  return { ms };
}

async function heap({ address }) {
  await picture({ address });
  for (const by of ["stack", "line", "blocks", "module"]) await picture({ address: address.replace(/#.*|$/, `#by=${by}`) });
  return { bytes: await page.evaluate(() => (globalThis.gc?.(), performance.memory.usedJSHeapSize)) };
}

const DO = { picture, frames, click, heap };
process.stdout.write("{}\n");
for await (const line of createInterface({ input: process.stdin })) {
  const asked = JSON.parse(line);
  const answer = await DO[asked.do](asked).catch((error) => ({ error: String(error).split("\n")[0] }));
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
await browser.close();

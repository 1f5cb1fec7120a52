// Files of every size, through the command itself: nothing, very much, and no events at all. Wide and narrow, light and dark.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import test, { after, describe } from "node:test";
import { KINDS, launch } from "./browsers.mjs";
import { COMMAND, folder, made, serve, snapshot } from "./command.mjs";
import { walk } from "./walk.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SIZES = [{ width: 1440, height: 900 }, { width: 390, height: 844 }];
const HUGE_EVENTS = 400_000;
const TABS = ["holders", "holders&shape=table", "space", "findings", "report", "whatif", "compare", "devices"];

const FILES = {
  empty: { make: () => made("empty.pickle", 'pickle.dump({"segments": [], "device_traces": [[]]}, open(path, "wb"))'), shows: ".empty, .report" },
  // Two hundred lines; from event 4,000 on 4,000 blocks of 1 to 64 KiB live at every moment, the oldest goes first.
  huge: {
    make: () => made("huge.pickle", `
events, live = [], []
for i in range(${HUGE_EVENTS}):
    at = 1700000000000000 + i
    if i < 4000 or i % 2 == 0:
        frames = [{"filename": f"/home/me/project/src/model_{i % 20}.py", "line": i % 200 + 1, "name": f"forward_{i % 50}"}, {"filename": "/home/me/project/train.py", "line": 12, "name": "<module>"}]
        live.append((0x7f0000000000 + i * 65536, 1024 * (1 + i % 64)))
        events.append({"action": "alloc", "addr": live[-1][0], "size": live[-1][1], "stream": 0, "time_us": at, "frames": frames})
    else:
        address, size = live.pop(0)
        events.append({"action": "free_completed", "addr": address, "size": size, "stream": 0, "time_us": at, "frames": []})
pickle.dump({"segments": [], "device_traces": [events]}, open(path, "wb"))`),
    shows: ".legend tfoot tr",
  },
  samples: {
    make: () => made("samples.jsonl", `
with open(path, "w") as file:
    for i in range(500):
        file.write(json.dumps({"timestamp": 1700000000 + i, "rss_bytes": (1 << 30) + (i % 40) * (8 << 20), "allocated_bytes": (1 << 28) + i * 100_000}) + "\\n")`),
    shows: ".charts canvas.top",
  },
};

/** What an out-of-memory error of a recorded program leaves. */
function dump() {
  const path = join(folder, "oom_dump_20260101T000000Z_1_cpu_1");
  mkdirSync(path, { recursive: true });
  const files = {
    manifest: { bundle_name: "oom_dump_20260101T000000Z_1_cpu_1" },
    metadata: { captured_event_count: 0, exception_message: "DefaultCPUAllocator: can't allocate memory: you tried to allocate 4096 bytes. Error code 12 (Cannot allocate memory)", backend: "cpu", stack: ["train.py:4 main"] },
    live_memory: { devices: [{ device: "cpu", live_bytes: 1 << 20, holders: [{ bytes: 1 << 20, count: 1, stack: ["train.py:3 main"] }] }] },
  };
  for (const [name, data] of Object.entries(files)) writeFileSync(join(path, `${name}.json`), JSON.stringify(data));
  return path;
}

for (const kind of KINDS)
  describe(kind, () => {
    let browser;
    after(() => browser?.close());
    for (const [name, { make, shows }] of Object.entries(FILES))
      test(`${name}: every view can be read`, async () => {
        browser ??= await launch(kind);
        const server = await serve(make());
        try {
          for (const viewport of SIZES)
            for (const scheme of ["light", "dark"]) {
              const context = await browser.context({ viewport, scheme });
              context.setDefaultTimeout(60_000);
              for (const tab of TABS) {
                const where = `${tab}, ${viewport.width}, ${scheme}`;
                const page = await context.newPage();
                const problems = [];
                page.on("pageerror", (error) => problems.push(String(error)));
                await page.goto(`${server.address}#tab=${tab}`);
                await page.waitForSelector(shows);
                await page.waitForFunction(() => !/Reading…/.test(document.body.innerText));
                assert.deepEqual(await page.evaluate(walk), [], where);
                if (scheme === "light") {
                  await page.evaluate(axe);
                  const { violations } = await page.evaluate(() => axe.run());
                  assert.deepEqual(violations.filter((one) => ["serious", "critical"].includes(one.impact)).map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 160)}`), [], where);
                }
                assert.deepEqual(problems, [], where);
                await page.close();
              }
              await context.close();
            }
        } finally {
          server.close();
        }
      });
    test("two runs open at what is different", async () => {
      browser ??= await launch(kind);
      const server = await serve(snapshot("before", 40, '"a.py"'), snapshot("after", 60, '"a.py"'));
      try {
        const context = await browser.context({ viewport: SIZES[0] });
        const page = await context.newPage();
        await page.goto(server.address);
        await page.waitForSelector(".panel .report h2");
        assert.equal(await page.locator("[role=tab][aria-selected=true]").innerText(), "Compare");
        assert.match(await page.locator(".panel .strip").first().innerText(), /\+20\.0 MiB/);
        await context.close();
      } finally {
        server.close();
      }
    });
    test("a page in a file has no link to a source that it does not have", async () => {
      browser ??= await launch(kind);
      const path = join(folder, "kept.html");
      assert.equal(spawnSync(COMMAND, ["view", "--html", path, snapshot("kept", 40, '"/job/train.py"')]).status, 0);
      const context = await browser.context({ viewport: SIZES[0] });
      const page = await context.newPage();
      await page.goto(`file://${path}#tab=source`);
      await page.waitForSelector(".panel table tbody tr, #view table tbody tr");
      assert.match(await page.locator("#view table thead").innerText(), /Its source is not in this file/);
      assert.equal(await page.locator("#view table button").count(), 0);
      await context.close();
    });
    test("a dump says what it is, and shows no control of what it does not have", async () => {
      browser ??= await launch(kind);
      const server = await serve(dump());
      try {
        const context = await browser.context({ viewport: SIZES[0] });
        const page = await context.newPage();
        await page.goto(server.address);
        await page.waitForSelector(".report h2, .report p");
        const text = (await page.locator(".app").innerText()).replaceAll("\u00a0", " ");
        assert.match(text, /An out-of-memory dump has no events: its report is below\./);
        assert.match(text, /Out of memory: 4\.00 KiB were refused at train\.py:4 main, with 1\.00 MiB live on cpu just after it\./);
        assert.equal(await page.locator("#search-box, select, .segments").count(), 0);
        await page.keyboard.press("9");
        assert.equal(await page.locator("[role=tab][aria-selected=true]").innerText(), "Devices");
        await context.close();
      } finally {
        server.close();
      }
    });
  });

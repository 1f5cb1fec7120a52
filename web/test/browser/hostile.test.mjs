// Files that were made to break a page, through the command itself: their texts are text, and every view goes on.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test, { after, describe } from "node:test";
import { KINDS, launch } from "./browsers.mjs";
import { COMMAND, serve, snapshot } from "./command.mjs";
import { walk } from "./walk.mjs";

const TABS = ["holders", "space", "findings", "report", "block&block=0", "whatif", "compare", "source"];

const FILES = {
  "markup and control characters": () => snapshot("markup", 40, "names[i % 4]"),
  "a name of 64 KiB": () => snapshot("long", 3, '"y" * 65_536 if i == 1 else "a.py"'),
  "sizes of 2^53 and more": () => snapshot("large", 8, '"a.py"', "2**53 + 2**(i % 9)"),
  "a million distinct stacks": () => snapshot("stacks", 1_000_000, '"a.py"', "512 + i % 100"),
};
test("a name of 10 MB is refused in a line", () => {
  const path = snapshot("longer", 3, '"y" * 10_000_000 if i == 1 else "a.py"');
  const { status, stderr } = spawnSync(COMMAND, ["view", "--no-browser", path], { encoding: "utf8" });
  assert.equal(status, 2);
  assert.match(stderr, /^gpumemprof: .*longer\.pickle: a frame's 'filename' is an object or a text of more than 64 KiB.* \(at byte \d+\)\n$/);
});

for (const kind of KINDS)
  describe(kind, () => {
    let browser;
    after(() => browser?.close());
    for (const [what, make] of Object.entries(FILES))
      test(what, async () => {
        browser ??= await launch(kind);
        const server = await serve(make());
        const context = await browser.context({ viewport: { width: 1440, height: 900 } });
        context.setDefaultTimeout(60_000);
        try {
          for (const tab of TABS) {
            const page = await context.newPage();
            const problems = [];
            page.on("pageerror", (error) => problems.push(String(error)));
            page.on("dialog", (dialog) => problems.push(dialog.message()));
            await page.goto(`${server.address}#by=stack&tab=${tab}`);
            await page.waitForSelector(".legend tfoot tr");
            await page.waitForTimeout(500);
            assert.deepEqual(await page.evaluate(() => [window.ran ?? 0, document.querySelectorAll("img, iframe, object").length]), [0, 0], tab);
            // A name of theirs that is longer than a line has to end somewhere.
            const wrong = (await page.evaluate(walk)).filter((line) => !/^broken inside a word: \S*[<>]/.test(line));
            assert.deepEqual(wrong, [], tab);
            const shown = await page.evaluate(() => document.body.innerText);
            assert.ok(shown.length < 2_000_000 && !/[\u0000\u001b\u202e]/.test(shown), tab);
            assert.deepEqual(problems, [], tab);
            await page.close();
          }
        } finally {
          await context.close();
          server.close();
        }
      });
  });

// Pictures of views, to be looked at:  node test/look.mjs ADDRESS FOLDER [HASH …]
import { mkdirSync } from "node:fs";
import { chromium } from "playwright-core";

const [address, folder, ...hashes] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const sizes = (process.env.SIZES ?? "1440x900,390x844").split(",").map((size) => size.split("x").map(Number));
for (const [width, height] of sizes)
  for (const scheme of (process.env.SCHEMES ?? "light,dark").split(",")) {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
    for (const hash of hashes.length ? hashes : [""]) {
      const page = await context.newPage();
      page.on("console", (line) => line.type() === "error" && console.log("console:", line.text().slice(0, 300)));
      page.on("pageerror", (error) => console.log("error:", String(error.stack).slice(0, 600)));
      await page.goto(`${address}#${hash}`);
      await page.waitForTimeout(Number(process.env.WAIT ?? 1200));
      const name = `${(hash || "start").replace(/[^a-z0-9]+/gi, "-").slice(0, 50)}-${width}-${scheme}.png`;
      await page.screenshot({ path: `${folder}/${name}`, fullPage: width < 500 });
      console.log(name);
      await page.close();
    }
    await context.close();
  }
await browser.close();

// The browsers that every view is looked at in: Debian's Chromium and Firefox, without a window.
import { fileURLToPath } from "node:url";
import { chromium, firefox } from "playwright-core";

export const KINDS = (process.env.BROWSERS ?? "chromium,firefox").split(",");

/** Playwright and axe run what tests say by eval(), which Firefox holds to the page's policy: it is allowed, and nothing else. */
async function with_eval(route) {
  const allowed = (text) => text.replace("script-src ", "script-src 'unsafe-eval' ");
  const response = await route.fetch();
  const headers = response.headers();
  if (headers["content-security-policy"]) headers["content-security-policy"] = allowed(headers["content-security-policy"]);
  return route.fulfill({ response, headers, body: allowed(await response.text()) });
}

/** A browser with context(options): `scheme` is "light" or "dark", the rest are playwright's. */
export async function launch(kind) {
  if (kind === "chromium") {
    const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
    return {
      context: ({ scheme = "light", ...options }) => browser.newContext({ colorScheme: scheme, ...options }),
      close: () => browser.close(),
    };
  }
  // Firefox 140 takes its scheme from its settings alone: one for each.
  const started = {};
  const of = async (scheme) =>
    (started[scheme] ??= await firefox.launch({
      channel: "moz-firefox",
      executablePath: fileURLToPath(new URL("firefox-esr.mjs", import.meta.url)),
      firefoxUserPrefs: { "layout.css.prefers-color-scheme.content-override": scheme === "dark" ? 0 : 1 },
      timeout: 120_000,
    }));
  return {
    context: async ({ scheme = "light", ...options }) => {
      const context = await (await of(scheme)).newContext(options);
      await context.route((url) => ["/", "/live", "/kept"].includes(url.pathname), with_eval);
      return context;
    },
    close: () => Promise.all(Object.values(started).map((browser) => browser.close())),
  };
}

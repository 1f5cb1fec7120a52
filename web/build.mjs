// Bundles the page into one file: page.html with its style and script inside, and a policy that lets nothing else run.
//   node build.mjs [--out FILE] [--watch-size]   writes build/page.html beside this folder unless told otherwise
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
const given = process.argv.indexOf("--out");
const out = resolve(given > 0 ? process.argv[given + 1] : `${here}/../build/page.html`);
const MOST_GZIPPED = 150_000;

async function bundle(entry, options = {}) {
  const result = await build({
    entryPoints: [`${here}/${entry}`], bundle: true, minify: true, write: false, format: "iife", target: "es2022",
    legalComments: "none", jsx: "automatic", jsxImportSource: "preact", logLevel: "warning", ...options,
  });
  return result.outputFiles[0].text.trim();
}

// "</script" inside of the script would end it.
const script = (await bundle("src/main.tsx")).replaceAll("</script", "<\\/script");
const style = await bundle("src/style.css", { format: undefined });
const hash = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy =
  `default-src 'none'; script-src ${hash(script)}; style-src ${hash(style)}; connect-src 'self'; ` +
  "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'";
const page = readFileSync(`${here}/src/page.html`, "utf8")
  .replace("{{policy}}", () => policy)
  .replace("{{style}}", () => style)
  .replace("{{script}}", () => script);

mkdirSync(dirname(out), { recursive: true });
writeFileSync(out, page);
const size = gzipSync(page, { level: 9 }).length;
console.log(`page: ${page.length} bytes, ${size} gzipped`);
if (size > MOST_GZIPPED) throw new Error(`the page is ${size} bytes gzipped; ${MOST_GZIPPED} is the most`);

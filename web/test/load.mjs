// A module of the page, for tests: bundled, as node reads no TypeScript that it is sure to know.
import { build } from "esbuild";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../src/", import.meta.url));
export async function load(...paths) {
  const { outputFiles } = await build({
    stdin: { contents: paths.map((path) => `export * from ${JSON.stringify(root + path)};`).join("\n"), resolveDir: root, loader: "ts" },
    bundle: true, format: "esm", write: false, jsx: "automatic", jsxImportSource: "preact", logLevel: "error",
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString("base64")}`);
}

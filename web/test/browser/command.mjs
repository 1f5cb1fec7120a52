// The command itself, for tests of whole files: what it serves, and files that are made for it.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const COMMAND = process.env.GPUMEMPROF_BIN ?? fileURLToPath(new URL("../../../.venv/bin/gpumemprof", import.meta.url));
export const folder = mkdtempSync(join(tmpdir(), "gpumemprof-page-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** A file that lines of Python write: `path` is where. */
export function made(name, lines) {
  const path = join(folder, name);
  const done = spawnSync("python3", ["-c", `import json, pickle, sys\npath = sys.argv[1]\n${lines}`, path]);
  if (done.status !== 0) throw new Error(String(done.stderr));
  return path;
}
/** A snapshot of one device, its events by an expression of Python over `i`. */
export function snapshot(name, count, file, size = "1 << 20") {
  return made(`${name}.pickle`, `
names = ["</script><script>window.ran = 1</script>", "<img src=x onerror='window.ran = 1'>", "\\x1b[31m\\x07\\x00red", "\\u202egnp.exe"]
events = [{"action": "alloc", "addr": 4096 * (i + 1), "size": ${size}, "stream": 0, "time_us": 1700000000000000 + i,
           "frames": [{"filename": ${file}, "line": i + 1, "name": names[i % 4]}]} for i in range(${count})]
pickle.dump({"segments": [], "device_traces": [events]}, open(path, "wb"))`);
}
export async function serve(...paths) {
  const server = spawn(COMMAND, ["view", "--no-browser", "--no-index", "--port", "0", ...paths], { stdio: ["ignore", "pipe", "inherit"] });
  const line = await new Promise((done, fail) => {
    server.stdout.once("data", (data) => done(String(data)));
    server.once("exit", (code) => fail(new Error(`view ended with ${code}`)));
  });
  return { address: /http:\S+/.exec(line)[0], close: () => server.kill() };
}

#!/usr/bin/env node
// Stands between playwright and Debian's Firefox: playwright speaks a WebDriver BiDi that is newer than that of
// Firefox 140, and needs nothing of what is answered here in its place. Ends with either of the two.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { ws: Socket, wsServer: Server } = require(require.resolve("playwright-core/package.json").replace("package.json", "lib/utilsBundle.js"));
const LISTENS = /WebDriver BiDi listening on (ws:\/\/\S+)/;
/** Commands that Firefox 140 has not, with what they answer. No test asks for the body of a reply or downloads a file. */
const ANSWERS = { "network.addDataCollector": { collector: "none" }, "network.removeDataCollector": {}, "browser.setDownloadBehavior": {}, "emulation.setScreenOrientationOverride": {}, "emulation.setScreenSettingsOverride": {}, "emulation.setMediaFeaturesOverride": {} };

const firefox = spawn(process.env.FIREFOX ?? "/usr/bin/firefox-esr", process.argv.slice(2), { stdio: ["ignore", "inherit", "pipe"] });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => firefox.kill(signal));
firefox.on("exit", (code) => process.exit(code ?? 1));

let text = "";
firefox.stderr.on("data", (piece) => {
  text += piece;
  const found = LISTENS.exec(text);
  if (!found) return;
  firefox.stderr.removeAllListeners("data").resume();
  const server = new Server({ host: "127.0.0.1", port: 0 }, () => process.stderr.write(`WebDriver BiDi listening on ws://127.0.0.1:${server.address().port}\n`));
  server.on("connection", (client) => join(client, found[1]));
});

function join(client, address) {
  const browser = new Socket(`${address}/session`, { perMessageDeflate: false });
  const waiting = [];
  client.on("message", (data) => {
    const message = JSON.parse(String(data));
    const answer = ANSWERS[message.method];
    if (answer) client.send(JSON.stringify({ type: "success", id: message.id, result: answer }));
    else if (browser.readyState === 1) browser.send(String(data));
    else waiting.push(String(data));
  });
  browser.on("open", () => waiting.forEach((data) => browser.send(data)));
  browser.on("message", (data) => client.send(String(data)));
  browser.on("close", () => client.close());
  client.on("close", () => browser.close());
}

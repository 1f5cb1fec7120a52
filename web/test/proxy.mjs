// Serves the built page and passes its questions on to a `gpumemprof view` that already runs: to work on the page alone.
//   node test/proxy.mjs http://127.0.0.1:8050/?token=… [PORT]
import { readFileSync } from "node:fs";
import { createServer, request } from "node:http";

const target = new URL(process.argv[2]);
const port = Number(process.argv[3] ?? 8060);
const page = new URL("../../build/page.html", import.meta.url);
createServer((asked, answer) => {
  const url = new URL(asked.url, "http://localhost");
  if (!url.pathname.startsWith("/api/")) {
    answer.setHeader("content-type", "text/html; charset=utf-8");
    answer.end(readFileSync(page));
    return;
  }
  url.searchParams.set("token", target.searchParams.get("token"));
  const passed = request({ host: target.hostname, port: target.port, path: `${url.pathname}?${url.searchParams}` }, (got) => {
    answer.writeHead(got.statusCode, got.headers);
    got.pipe(answer);
  });
  passed.on("error", () => answer.writeHead(502).end());
  passed.end();
}).listen(port, "127.0.0.1");

// The live page. Everything that comes from a recording goes in as text, never as markup.
#include "serve/service.h"

namespace gpumemprof {

const std::string_view kLivePage = R"page(<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>gpumemprof live</title>
<link rel="stylesheet" href="live.css">
<body>
<header><h1>gpumemprof</h1> <span id="host"></span> <span id="state" role="status">connecting</span></header>
<main>
<section aria-labelledby="h-memory"><h2 id="h-memory">Memory</h2><div id="memory"></div></section>
<section aria-labelledby="h-alerts"><h2 id="h-alerts">Alerts</h2><div id="alerts"></div></section>
<section aria-labelledby="h-recordings"><h2 id="h-recordings">Live recordings</h2><div id="recordings"></div></section>
<section aria-labelledby="h-processes"><h2 id="h-processes">Processes</h2><div id="processes"></div></section>
</main>
<noscript>This page needs JavaScript; the same figures are at /metrics.</noscript>
<script src="live.js"></script>
</html>
)page";

const std::string_view kLiveStyle = R"css(:root { color-scheme: light dark; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 72rem; padding: 0 1rem 2rem; }
header { align-items: baseline; display: flex; gap: 1rem; }
h1 { font-size: 1.3rem; }
h2 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
h3 { font-size: .95rem; margin: 1rem 0 .2rem; }
#state { margin-left: auto; opacity: .75; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .15rem .6rem .15rem 0; text-align: left; vertical-align: top; }
td.n, th.n { font-variant-numeric: tabular-nums; text-align: right; white-space: nowrap; }
tr + tr td { border-top: 1px solid color-mix(in srgb, currentColor 15%, transparent); }
td.w { overflow-wrap: anywhere; }
figure { margin: .4rem 0; }
figcaption { display: flex; font-size: .85rem; justify-content: space-between; opacity: .75; }
svg { display: block; height: 6rem; width: 100%; }
polyline { fill: none; stroke: #2a78c8; stroke-width: 1.5; vector-effect: non-scaling-stroke; }
polygon { fill: #2a78c8; opacity: .2; }
.scroll { overflow-x: auto; }
meter { height: 1rem; width: 12rem; }
.critical { color: #c62828; font-weight: 600; }
.warning { color: #b26a00; font-weight: 600; }
.dim { opacity: .7; }
)css";

const std::string_view kLiveScript = R"js("use strict";
const $ = (id) => document.getElementById(id);
const looks = new Map();
const KEEP = 300;

function bytes(value) {
  if (value === null || value === undefined) return "unknown";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let size = value, unit = 0;
  while (Math.abs(size) >= 1024 && unit < units.length - 1) { size /= 1024; ++unit; }
  return (unit === 0 ? size : size.toPrecision(size >= 1000 ? 4 : 3)) + " " + units[unit];
}
function element(name, text, className) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}
function table(head, rows) {
  const made = element("table"), first = element("tr");
  for (const [text, kind] of head) {
    const cell = element("th", text, kind);
    cell.scope = "col";
    first.append(cell);
  }
  made.append(first);
  for (const row of rows) {
    const line = element("tr");
    row.forEach((text, i) => {
      line.append(text instanceof Node ? text : element("td", text, head[i][1]));
    });
    made.append(line);
  }
  const around = element("div", undefined, "scroll");
  around.append(made);
  return around;
}
function chart(seen) {
  const space = "http://www.w3.org/2000/svg", svg = document.createElementNS(space, "svg");
  const first = seen[0].time, last = seen[seen.length - 1].time, span = Math.max(last - first, 1e9);
  const top = Math.max(...seen.map((at) => at.bytes), 1), ago = Math.round((last - first) / 1e9);
  svg.setAttribute("viewBox", "0 0 300 100");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("role", "img");
  const now = bytes(seen[seen.length - 1].bytes);
  svg.setAttribute("aria-label", `allocated in the last ${ago} s: at most ${bytes(top)}, now ${now}`);
  const points = seen.map((at) => `${300 - 300 * (last - at.time) / span},${99 - 97 * at.bytes / top}`);
  const left = 300 - 300 * (last - first) / span;
  for (const [name, of] of [["polygon", [`${left},100`, ...points, "300,100"]], ["polyline", points]]) {
    const shape = document.createElementNS(space, name);
    shape.setAttribute("points", of.join(" "));
    svg.append(shape);
  }
  const made = element("figure"), above = element("figcaption"), below = element("figcaption");
  above.append(element("span", `allocated, at most ${bytes(top)}`));
  below.append(element("span", `${ago} s ago`), element("span", `now ${now}`));
  made.append(above, svg, below);
  return made;
}
function gauge(title, used, total, why) {
  const row = element("p", title + ": ");
  if (used === null || total === null) {
    row.append(element("span", "unknown (" + (why || "not told") + ")", "dim"));
    return row;
  }
  const meter = element("meter");
  meter.min = 0; meter.max = total; meter.high = 0.8 * total; meter.value = used;
  meter.textContent = bytes(used);
  row.append(meter, ` ${bytes(used)} of ${bytes(total)} (${(100 * used / total).toFixed(1)} %)`);
  return row;
}
function showMemory(picture) {
  const memory = picture.memory, out = [];
  const reasons = (of) => (of.unknown && of.unknown.used_bytes);
  out.push(gauge("Machine", memory.used_bytes, memory.total_bytes, reasons(memory)));
  if (memory.cgroup_limit_bytes !== null) {
    out.push(gauge("Container", memory.cgroup_used_bytes, memory.cgroup_limit_bytes));
  }
  const devices = picture.accelerators.devices;
  if (devices === null) {
    const why = picture.accelerators.unknown.devices;
    out.push(element("p", "Accelerators: unknown (" + why + ")", "dim"));
  }
  for (const d of devices || []) {
    out.push(gauge(`${d.device} ${d.model}`, d.used_bytes, d.total_bytes, reasons(d)));
  }
  $("memory").replaceChildren(...out);
}
function signed(value) {
  return value === null ? "unknown" : (value < 0 ? "-" : "+") + bytes(Math.abs(value));
}
function showSum(device) {
  const now = device.now, of = now.framework, rows = [];
  const row = (depth, name, text, why) => {
    const first = element("td", name);
    first.style.paddingLeft = depth + "rem";
    rows.push([first, text, text === "unknown" ? "because " + why : ""]);
  };
  const why = (term) => now.unknown[term] || "nobody tells";
  row(0, "device used", bytes(now.device_used_bytes), why("device_used"));
  if (now.reserved_bytes !== null) row(1, "driver's own", bytes(now.reserved_bytes));
  row(1, "other processes", bytes(now.other_processes_bytes), why("other_processes"));
  if (now.of_no_process_bytes) row(1, "of no process that is named", signed(now.of_no_process_bytes));
  row(1, "this process", bytes(now.process_used_bytes), why("process_used"));
  row(2, "contexts", bytes(now.contexts_bytes), why("contexts"));
  row(2, "modules", bytes(now.modules_bytes));
  for (const one of now.libraries) row(2, one.name, bytes(one.bytes));
  row(2, "rounding to pages of 2 MiB", bytes(now.rounding_bytes));
  row(2, "framework", bytes(of.bytes));
  if (of.allocated_bytes !== null) {
    row(3, "allocated", bytes(of.allocated_bytes));
    row(3, "cached", bytes(of.cached_bytes));
    row(4, "pinned, in pieces", bytes(of.unservable_bytes), why("framework.unservable"));
    if (of.beside_bytes) row(3, "beside its allocator", signed(of.beside_bytes));
  }
  if (now.others_and_unexplained_bytes !== null)
    row(1, "other processes and unexplained", signed(now.others_and_unexplained_bytes));
  else
    row(2, "unexplained", signed(now.unexplained_bytes), why("unexplained"));
  const name = device.device + (device.accelerator === null ? "" : " is " + device.accelerator);
  return table([[name, ""], ["Bytes", "n"], ["", "w"]], rows);
}
function showRecording(recording, seen, time) {
  const rank = recording.rank === null ? "" : `rank ${recording.rank}: `;
  const out = [element("h3", `${rank}${recording.program} (pid ${recording.pid})`)];
  if (recording.problem !== null) out.push(element("p", recording.problem, "warning"));
  if (!recording.exact) out.push(element("p", "not exact: " + recording.unknown.exact, "warning"));
  for (const device of recording.devices) {
    const key = `${recording.host} ${recording.pid} ${device.device}`;
    seen.add(key);
    const values = looks.get(key) || [];
    values.push({ time, bytes: device.allocated_bytes });
    if (values.length > KEEP) values.shift();
    looks.set(key, values);
    const leak = device.leak_bytes_per_second;
    out.push(table([["Device", ""], ["Allocated", "n"], ["Reserved", "n"], ["Peak", "n"],
      ["Blocks", "n"], ["Change", "n"], ["Growth", "n"]],
      [[device.device, bytes(device.allocated_bytes), bytes(device.reserved_bytes),
        bytes(device.peak_bytes),
        device.live_blocks.toLocaleString("en"),
        device.bytes_per_second === null ? "unknown" : bytes(device.bytes_per_second) + "/s",
        leak === null ? element("td", "-", "n") : element("td", bytes(leak) + "/s", "n warning")]]));
    if (leak === null) out.push(element("p", device.unknown.leak_bytes_per_second, "dim"));
    out.push(chart(values));
    const kinds = device.categories || [];
    if (kinds.length > 0) {
      out.push(element("p", kinds.map((k) => `${k.category} ${bytes(k.bytes)}`).join(", ")));
    }
    if (device.holders.length > 0) {
      out.push(table([["Holds now", "n"], ["Blocks", "n"], ["Line", "w"], ["Type", ""], ["Module", "w"]],
        device.holders.map((h) =>
          [bytes(h.bytes), h.count.toLocaleString("en"), h.line || "(no stack recorded)",
            h.category || "", h.module || ""])));
    }
  }
  for (const device of recording.driver ? recording.driver.devices : []) out.push(showSum(device));
  return out;
}
function show(picture) {
  $("host").textContent = picture.host;
  showMemory(picture);
  const seen = new Set(), out = picture.recordings.flatMap((r) => showRecording(r, seen, picture.time_ns));
  for (const key of looks.keys()) if (!seen.has(key)) looks.delete(key);
  if (out.length === 0) {
    out.push(element("p", "None: gpumemprof run -- python train.py makes one.", "dim"));
  }
  $("recordings").replaceChildren(...out);
  const alerts = picture.alerts.slice(-20).reverse().map((a) =>
    [new Date(a.time_ns / 1e6).toLocaleTimeString(), element("td", a.level, a.level),
      a.subject, a.text]);
  const ofAlerts = [["Time", ""], ["Level", ""], ["Of", ""], ["What", "w"]];
  $("alerts").replaceChildren(
    alerts.length > 0 ? table(ofAlerts, alerts) : element("p", "None.", "dim"));
  $("processes").replaceChildren(table(
    [["PID", "n"], ["Resident", "n"], ["Recorded", ""], ["Program", "w"]],
    picture.processes.map((p) =>
      [String(p.pid), bytes(p.resident_bytes), p.recorded ? "yes" : "no", p.command])));
}
const events = new EventSource("events" + location.search);
events.addEventListener("picture", (event) => {
  $("state").textContent = "live";
  show(JSON.parse(event.data));
});
events.onerror = () => { $("state").textContent = "connection lost, trying again"; };
)js";

}  // namespace gpumemprof

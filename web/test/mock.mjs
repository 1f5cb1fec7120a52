// A small deterministic run and the answers to questions about it, counted one by one: what the page is tested against.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { deflateRawSync } from "node:zlib";

const NONE = 0xffffffff;
const CATEGORIES = ["unknown", "parameter", "gradient", "optimizer state", "activation", "temporary"];
/** Names that a page must show as text: markup, control characters, the wrong direction, and much too long. */
export const HOSTILE = ["<img src=x onerror=alert(1)>", "a\u0000b\u001b[31m\u202ecod", "y".repeat(200_000)];

export function make_run(options = {}) {
  const steps = options.steps ?? 6;
  const layers = options.layers ?? 40;
  const blocks = [];
  let event = 0;
  const alloc = (bytes, category, stack, module) => {
    blocks.push({ id: blocks.length, start: ++event, end: NONE, bytes, category, stack, module, address: 0 });
    return blocks.at(-1);
  };
  const free = (block) => (block.end = ++event);
  const stacks = [];
  const stack = (...frames) => (stacks.push(frames), stacks.length - 1);
  const of_layer = Array.from({ length: layers }, (_, i) => stack("train.py:12 <module>", "train.py:80 step", `model.py:${20 + i} forward`, "?? at::empty"));
  const adam = stack("train.py:12 <module>", "train.py:90 step", "optim.py:5 adam", "?? at::empty");
  const hostile = HOSTILE.map((name) => stack("train.py:12 <module>", name));
  for (let i = 0; i < layers; ++i) alloc(1048576 * (1 + (i % 4)), 1, of_layer[i], `layers.${i}`);
  hostile.forEach((at, i) => alloc(3_000_000 + i, 0, at, HOSTILE[i]));
  for (let step = 0; step < steps; ++step) {
    const kept = [];
    for (let i = 0; i < layers; ++i) {
      const short = alloc(262144 + 512 * i, 5, of_layer[i], `layers.${i}`);
      kept.push(alloc(2097152 + 4096 * (i % 7), 4, of_layer[i], `layers.${i}`));
      free(short);
    }
    for (const block of kept.reverse()) free(block);
    if (step === 0) for (let i = 0; i < layers; ++i) alloc(2097152, 3, adam, "optimizer");
  }
  let at = 0x7f0000000000;
  for (const block of blocks) (block.address = at), (at += Math.ceil(block.bytes / 512) * 512);
  return { blocks, events: event, stacks, step_events: Array.from({ length: steps }, (_, i) => Math.floor((event * (i + 1)) / steps)) };
}

const alive = (block, e) => block.start <= e && (block.end === NONE || block.end > e);
const total_at = (run, e) => run.blocks.reduce((sum, block) => sum + (alive(block, e) ? block.bytes : 0), 0);

/** "GMPC" and what follows; the contract is docs/page-data.md. */
export function encode(head, columns = {}) {
  const specs = {};
  const parts = [];
  let offset = 0;
  for (const [name, array] of Object.entries(columns)) {
    const type = { Uint8Array: "u8", Uint16Array: "u16", Uint32Array: "u32", Float64Array: "f64" }[array.constructor.name];
    specs[name] = { type, length: array.length, offset };
    parts.push([offset, array]);
    offset += Math.ceil(array.byteLength / 8) * 8;
  }
  // Offsets count from the answer's begin: they shift with the header's length, which they are part of.
  let begin = 0;
  let text;
  for (let i = 0; i < 4; ++i) {
    const shifted = Object.fromEntries(Object.entries(specs).map(([name, spec]) => [name, { ...spec, offset: spec.offset + begin }]));
    text = Buffer.from(JSON.stringify({ ...head, columns: shifted }));
    begin = Math.ceil((8 + text.length) / 8) * 8;
  }
  const out = Buffer.alloc(begin + offset);
  out.write("GMPC");
  out.writeUInt32LE(text.length, 4);
  text.copy(out, 8);
  for (const [at, array] of parts) Buffer.from(array.buffer, array.byteOffset, array.byteLength).copy(out, begin + at);
  return out;
}

function levels(run, q) {
  const { from, to, columns } = window_of(run, q);
  const count = Math.min(columns, to - from);
  const begin = Uint32Array.from({ length: count + 1 }, (_, i) => from + Math.floor((i * (to - from)) / count));
  const totals = all_totals(run);
  const event = new Uint32Array(count);
  for (let i = 0; i < count; ++i) {
    event[i] = begin[i];
    for (let e = begin[i]; e < begin[i + 1]; ++e) if (totals[e] > totals[event[i]]) event[i] = e;
  }
  const by = q.get("by") ?? "category";
  const name_of = (block) => ({ category: CATEGORIES[block.category], module: block.module, none: "all", stack: run.stacks[block.stack].at(-1), line: run.stacks[block.stack].at(-2) })[by] ?? "unknown";
  const names = [...new Set(run.blocks.map(name_of))].slice(0, 23);
  const keys = [...names.map((label, id) => ({ id, label })), { id: null, label: "other" }];
  const values = new Float64Array(keys.length * count);
  for (const block of run.blocks) {
    const key = names.indexOf(name_of(block));
    for (let i = 0; i < count; ++i) if (alive(block, event[i])) values[(key < 0 ? names.length : key) * count + i] += block.bytes;
  }
  const total = Float64Array.from(event, (e) => totals[e]);
  const min = Float64Array.from(event, (_, i) => Math.min(...totals.slice(begin[i], begin[i + 1])));
  const reserved = Float64Array.from(total, (value) => Math.ceil(value / 20971520) * 20971520);
  const requested = Float64Array.from(total, (value) => value - Math.floor(value / 8));
  return encode({ from, to, keys }, { begin, event, time_ns: Float64Array.from(event, (e) => e * 1000), total, min, values, reserved, requested });
}
function all_totals(run) {
  if (run.totals) return run.totals;
  const change = new Float64Array(run.events + 2);
  for (const block of run.blocks) {
    change[block.start] += block.bytes;
    if (block.end !== NONE) change[block.end] -= block.bytes;
  }
  for (let e = 1; e < change.length; ++e) change[e] += change[e - 1];
  return (run.totals = change.slice(0, run.events + 1));
}
function window_of(run, q) {
  const from = Number(q.get("from") ?? 0);
  return { from, to: Math.min(run.events + 1, Number(q.get("to") ?? run.events + 1)), columns: Number(q.get("columns") ?? 1024) };
}
function tree(run, held, by, from, to) {
  const labels = ["all"];
  const nodes = [{ parent: NONE, label: 0, bytes: 0, own: 0, blocks: 0 }];
  const known = new Map();
  const child = (parent, text) => {
    const key = `${parent} ${text}`;
    if (!known.has(key)) {
      if (!labels.includes(text)) labels.push(text);
      nodes.push({ parent, label: labels.indexOf(text), bytes: 0, own: 0, blocks: 0 });
      known.set(key, nodes.length - 1);
    }
    return known.get(key);
  };
  for (const block of held) {
    let at = 0;
    const path = by === "stack" ? run.stacks[block.stack] : by === "module" ? block.module.split(".") : [CATEGORIES[block.category]];
    for (const step of [null, ...path]) {
      if (step !== null) at = child(at, step);
      nodes[at].bytes += block.bytes;
      nodes[at].blocks += 1;
    }
    nodes[at].own += block.bytes;
  }
  const kinds = labels.map((label) => (label.startsWith("??") ? "native" : /py:/.test(label) ? "user" : "other"));
  const u32 = (name) => Uint32Array.from(nodes, (node) => node[name]);
  const f64 = (name) => Float64Array.from(nodes, (node) => node[name]);
  return encode({ labels, kinds, from, to }, { parent: u32("parent"), label: u32("label"), bytes: f64("bytes"), self_bytes: f64("own"), blocks: u32("blocks") });
}
function holders(run, q) {
  const by = q.get("by") ?? "stack";
  if (q.has("event")) return tree(run, run.blocks.filter((block) => alive(block, Number(q.get("event")))), by, Number(q.get("event")));
  const { from, to } = window_of(run, q);
  const inside = (e) => e > from && e < to;
  const what = q.get("what");
  return tree(run, run.blocks.filter((block) => (what === "freed" ? block.end !== NONE && inside(block.end) : inside(block.start) && (what !== "left" || alive(block, to - 1)))), by, from, to);
}
function blocks(run, q) {
  const { from, to } = window_of(run, q);
  const all = run.blocks.filter((block) => block.start < to && (block.end === NONE || block.end > from));
  const shown = [...all].sort((a, b) => b.bytes - a.bytes || a.id - b.id).slice(0, Number(q.get("limit") ?? 4000));
  const u32 = (get) => Uint32Array.from(shown, get);
  return encode(
    { from, to, alive: { blocks: all.length }, left_out: { blocks: all.length - shown.length, bytes: 0 } },
    { id: u32((b) => b.id), start: u32((b) => b.start), end: u32((b) => b.end), stack: u32((b) => b.stack), size_bytes: Float64Array.from(shown, (b) => b.bytes) },
  );
}
function space_time(run, q) {
  const { from, to } = window_of(run, q);
  const all = run.blocks.filter((block) => block.start < to && (block.end === NONE || block.end > from));
  const u32 = (get) => Uint32Array.from(all, get);
  return encode({ from, to, left_out: { blocks: 0, bytes: 0 } }, {
    id: u32((b) => b.id), start: u32((b) => b.start), end: u32((b) => b.end), stack: u32((b) => b.stack), size_bytes: Float64Array.from(all, (b) => b.bytes),
    address_hi: u32((b) => Math.floor(b.address / 2 ** 32)), address_lo: u32((b) => b.address % 2 ** 32),
  });
}
function space(run, q) {
  const e = Number(q.get("event"));
  const live = run.blocks.filter((block) => alive(block, e));
  const first = run.blocks[0].address;
  const last = run.blocks.at(-1);
  const size = Math.ceil((last.address + last.bytes - first) / 4);
  const at = Array.from({ length: 4 }, (_, i) => first + i * size);
  const high = (list) => Uint32Array.from(list, (value) => Math.floor(value / 2 ** 32));
  const low = (list) => Uint32Array.from(list, (value) => value % 2 ** 32);
  const where = live.map((block) => block.address);
  return encode({ event: e, stacks: {}, pools: {}, sizes: "requested" }, {
    segment_address_hi: high(at), segment_address_lo: low(at), segment_bytes: Float64Array.from(at, () => size), segment_flags: Uint8Array.from([1, 0, 0, 0]),
    segment_pool: Uint32Array.from(at, () => NONE), segment_stream: Uint32Array.from(at, () => 0),
    block_address_hi: high(where), block_address_lo: low(where), block_bytes: Float64Array.from(live, (b) => b.bytes),
    block_state: new Uint8Array(live.length), block_id: Uint32Array.from(live, (b) => b.id), block_stack: Uint32Array.from(live, (b) => b.stack), block_category: Uint8Array.from(live, (b) => b.category),
  });
}
const DOCUMENT = {
  title: "Memory of mock",
  sections: [
    { title: "", parts: [{ kind: "sentence", tone: "headline", text: "The peak is what the tests say it is." }, { kind: "sentence", text: `${HOSTILE[0]} ${HOSTILE[1]} ${HOSTILE[2]}` }] },
    { title: "Findings", parts: [{ kind: "list", items: [{ label: "warning", tone: "warning", text: "2.00 MiB are kept with every step.", details: [{ text: "Because the test says so." }, { text: "gpumemprof run --explain-leaks -o rec -- python train.py tells more" }], evidence: { view: "holders", device: 0, from: 10, to: 200 } }, { label: "info", text: "The second step's end holds less.", evidence: { view: "space", device: 0, event: 77, filter: 'line:"model.py:20 forward"' } }] }] },
    { title: "By line of your code", parts: [{ kind: "table", columns: [{ title: "Bytes", is_number: true }, { title: "Line" }], rows: [{ cells: [{ text: "12 MiB" }, { text: "model.py:20 forward", is_code: true }], share: 0.4, evidence: { view: "holders", device: 0, event: 120, filter: 'line:"model.py:20 forward"' }, details: [{ kind: "stack", frames: [{ text: "model.py:20 forward", is_user_code: true }] }] }], left_out_text: "and 3 more lines" }] },
    { title: "By stack", parts: [{ kind: "table", columns: [{ title: "Bytes", is_number: true }, { title: "Share", is_number: true }, { title: "Stack" }], rows: [{ cells: [{ text: "12 MiB" }, { text: "40 %" }, { text: "?? at::_ops::empty_strided::redispatch(c10::DispatchKeySet,c10::ArrayRef<c10::SymInt>,std::optional<c10::ScalarType>)", is_code: true }] }] }, { kind: "sentence", tone: "note", label: "A", text: `/data/${"folder_with_a_long_name/".repeat(8)}run.gmp, cuda:0, 22,332 events` }] },
    { title: "The machine during the run", parts: [{ kind: "chart", title: "host", limit_bytes: 8 * 2 ** 30, lines: [{ name: "used by all processes", times_s: [0, 0.0002, 0.0004], bytes: [2 ** 30, 3 * 2 ** 30, 2 ** 31] }, { name: "resident in this run's processes", times_s: [0, 0.0002, 0.0004], bytes: [null, 2 ** 30, 2 ** 30 + 4096] }] }] },
    { title: "What was lost or not seen", is_folded: true, parts: [{ kind: "sentence", text: "Nothing." }] },
  ],
};
function run_answer(run, name, sent) {
  const device = (of, i) => {
    const totals = all_totals(of);
    let peak = 0;
    totals.forEach((value, e) => value > totals[peak] && (peak = e));
    return { name: `cuda:${i}`, label: of.label, is_main: i === (run.main ?? 0), capacity_bytes: 402653184, events: of.events, first_time_ns: 0, last_time_ns: of.events * 1000, has_addresses: true, exact: true, peak: { event: peak, time_ns: peak * 1000, bytes: totals[peak] }, base_bytes: of.base_bytes ?? 0, end_bytes: totals.at(-1), unknown: of.unknown };
  };
  const file = (name) => ({
    name, kind: "recording", unknown: [], document: DOCUMENT, findings: 3, processes: [], streams: [{ id: 0, label: "default stream" }], threads: [],
    categories: CATEGORIES.map((label, id) => ({ id, label })),
    devices: [run, ...(run.others ?? [])].map(device),
  });
  return { schema: "gpumemprof-page/1", files: [file(name), ...sent.map((one) => file(one.name))] };
}
function marks(run) {
  const at = [...run.step_events, Math.floor(run.events / 2)];
  const labels = [...run.step_events.map((_, i) => `step ${i}`), "cuda:0"];
  return encode({ labels, kinds: ["step end", "phase", "annotation", "out of memory"], out_of_memory: [] }, {
    kind: Uint8Array.from(at, (_, i) => (i === at.length - 1 ? 3 : 0)), event: Uint32Array.from(at), end: Uint32Array.from(at, () => NONE),
    label: Uint32Array.from(at, (_, i) => i), bytes: Float64Array.from(at, (_, i) => (i === at.length - 1 ? 1 << 30 : 0)),
  });
}
/** Other settings reserve one segment of 20 MiB less than the recorded ones, of which one request fails. */
function whatif(run, q) {
  const segment = 20 * 2 ** 20;
  const event = Uint32Array.from({ length: run.events + 1 }, (_, e) => e);
  const baseline = Float64Array.from(all_totals(run), (total) => Math.ceil(total / segment) * segment);
  const reserved = q.has("settings") ? baseline.map((bytes) => Math.max(0, bytes - segment)) : baseline;
  const row = (bytes, refused_count) => ({ peak_bytes: Math.max(...bytes), refused_count, fails_at_start: false, retries: 0 });
  const refused = q.has("settings") ? [] : [{ event: 500, requested_bytes: 2 ** 30 }];
  return encode({
    ...row(reserved, refused.length), baseline: row(baseline, 1), recorded_peak_bytes: Math.max(...baseline) + segment, capacity_bytes: 402653184, is_recorded_capacity: true,
    refused, recorded_settings: "", without_effect: [],
  }, { event, reserved, baseline, recorded: baseline });
}
/** Two moments of the run by category, counted block by block. */
function compare(run, q) {
  const sums = (e) => CATEGORIES.map((_, category) => run.blocks.filter((block) => alive(block, e) && block.category === category).reduce((sum, block) => sum + block.bytes, 0));
  const [a, b] = [sums(Number(q.get("event"))), sums(Number(q.get("other_event")))];
  const whole = (list) => list.reduce((sum, value) => sum + value, 0);
  return encode(
    { labels: ["all", ...CATEGORIES], kinds: ["other", ...CATEGORIES.map(() => "other")], total_a: whole(a), total_b: whole(b), document: { title: "", sections: [{ title: "Lines", parts: [{ kind: "sentence", text: "No line is told." }] }] } },
    {
      parent: Uint32Array.from([NONE, ...CATEGORIES.map(() => 0)]), label: Uint32Array.from([0, ...CATEGORIES.map((_, i) => i + 1)]),
      bytes_a: Float64Array.from([whole(a), ...a]), bytes_b: Float64Array.from([whole(b), ...b]),
      blocks_a: Float64Array.from([0, ...a]), blocks_b: Float64Array.from([0, ...b]),
    },
  );
}
/** What `serve` tells: two ranks, one without a stack, one that grows; names that are hostile; what is unknown. */
export const PICTURE = {
  schema: "gpumemprof.live/1", time_ns: 1.7e18, host: "node-17",
  memory: { total_bytes: 64 * 2 ** 30, used_bytes: 40 * 2 ** 30, cgroup_limit_bytes: null, cgroup_used_bytes: null },
  accelerators: { devices: [{ device: "nvidia:0", model: "NVIDIA H100 80GB HBM3", total_bytes: 80 * 2 ** 30, used_bytes: 71 * 2 ** 30 }, { device: "nvidia:1", model: "NVIDIA H100 80GB HBM3", total_bytes: null, used_bytes: null, unknown: { used_bytes: "the driver does not answer" } }] },
  processes: [{ pid: 101, command: "train.py", resident_bytes: 3 * 2 ** 30, recorded: true }, { pid: 9, command: HOSTILE[0], resident_bytes: 5 * 2 ** 20, recorded: false }],
  recordings: [0, 1].map((rank) => ({
    pid: 101 + rank, host: "node-17", program: rank ? HOSTILE[0] : "train.py", folder: "/data/runs/2026-11-25/train.gpumemprof", rank, events: 6_000_000, lost_events: 0, exact: rank === 0, unknown: { exact: "12 events were lost" }, problem: null,
    devices: [{
      device: "cuda:0", allocated_bytes: (60 + rank) * 2 ** 30, reserved_bytes: 68 * 2 ** 30, peak_bytes: 66 * 2 ** 30, live_blocks: 12345, refused_count: rank, bytes_per_second: -1048576, leak_bytes_per_second: rank ? 3 * 2 ** 20 : 0,
      categories: rank ? null : [{ category: "parameter", bytes: 20 * 2 ** 30 }, { category: "activation", bytes: 40 * 2 ** 30 }], unknown: { categories: "the recording says nothing of them" },
      holders: [{ bytes: 40 * 2 ** 30, count: 800, line: "/home/me/project/src/models/transformer/attention.py:118 SelfAttention.forward", module: "layers.7.attention", category: "activation" }, { bytes: 2 ** 30, count: 3, line: null, module: null, category: null }, { bytes: 2 ** 20, count: 3, line: HOSTILE[2], module: HOSTILE[1], category: HOSTILE[2] }],
    }],
    driver: rank ? null : { devices: [{ device: "cuda:0", accelerator: "nvidia:0", now: { device_used_bytes: 71 * 2 ** 30, reserved_bytes: null, other_processes_bytes: null, of_no_process_bytes: null, process_used_bytes: 70 * 2 ** 30, contexts_bytes: 500 * 2 ** 20, modules_bytes: 7, libraries: [{ name: "NCCL", bytes: 2 ** 30 }], rounding_bytes: 0, framework: { bytes: 68 * 2 ** 30, allocated_bytes: 60 * 2 ** 30, cached_bytes: 8 * 2 ** 30, unservable_bytes: null, beside_bytes: null }, others_and_unexplained_bytes: null, unexplained_bytes: 2 ** 20, unknown: { other_processes: "the driver names no process" } } }] },
  })),
  alerts: [{ time_ns: 1.7e18, level: "critical", subject: "nvidia:0", text: "96 % of the memory is in use" }, { time_ns: 1.7e18, level: "warning", subject: "pid 101 cuda:0", text: "grows by 180 MiB a minute" }],
};
/** The blocks of which a frame has the text. */
const matching = (run, q) => run.blocks.filter((block) => run.stacks[block.stack].some((frame) => frame.includes(q.get("q"))));
/** Other devices of the run are runs of their own: `others`, of which `main` says which one the report is about. */
function answer_to(whole, name, path, q, { state, sent }) {
  const run = path === "run" ? whole : (whole.others?.[Number(q.get("device") ?? 0) - 1] ?? whole);
  const json = (value) => ["application/json", Buffer.from(JSON.stringify(value))];
  const columns = (body) => ["application/octet-stream", body];
  const { from, to, columns: wanted } = window_of(run, q);
  switch (path) {
    case "run": return json(run_answer(run, name, sent));
    case "state": return json({ files: [{ ...state, is_written: false, progress: null, error: null }] });
    case "read_again": {
      const before = { ...state };
      Object.assign(state, { generation: state.generation + 1, has_changed: false });
      return json({ files: [{ ...before, is_written: false, progress: 0, error: null }] });
    }
    case "levels": return columns(levels(run, q));
    case "times": {
      const event = Uint32Array.from({ length: Math.min(wanted, to - from) }, (_, i, n = Math.min(wanted, to - from)) => from + Math.floor((i * (to - from - 1)) / Math.max(1, n - 1)));
      return columns(encode({ from, to }, { event, time_ns: Float64Array.from(event, (e) => e * 1000) }));
    }
    case "holders": return columns(holders(run, q));
    case "blocks": return columns(blocks(run, q));
    case "space": return columns(space(run, q));
    case "space_time": return columns(space_time(run, q));
    case "whatif": return columns(whatif(run, q));
    case "compare": return columns(compare(run, q));
    case "marks": return columns(marks(run));
    case "search": {
      const all = matching(run, q).filter((block) => block.start < to && (block.end === NONE || block.end > from));
      return columns(encode({ from, to, matches: all.length, bytes: all.reduce((sum, block) => sum + block.bytes, 0) }, { begin: Uint32Array.from([from, to]), hits: Uint32Array.from([all.length]) }));
    }
    case "block_next": {
      const [all, after, is_back] = [matching(run, q), Number(q.get("after")), Number(q.get("direction")) < 0];
      const block = is_back ? (all.findLast((one) => one.start < after) ?? all.at(-1)) : (all.find((one) => one.start > after) ?? all[0]);
      return json(block ? { id: block.id, event: block.start, position: all.indexOf(block) + 1, matches: all.length, size_bytes: block.bytes, line: run.stacks[block.stack].at(-2) } : { id: null, event: null });
    }
    case "block": {
      const block = run.blocks[Number(q.get("id"))];
      return block && json({ block: { id: block.id, size_bytes: block.bytes, start: block.start, end: block.end === NONE ? null : block.end, category: CATEGORIES[block.category], module: block.module }, frames: run.stacks[block.stack].map((text) => ({ function: text, kind: "user" })).reverse() });
    }
    default: return null;
  }
}

/** What a page in a file has of the run: its whole range, and the moments given. */
function kept(run, name, moments) {
  const whole = `device=0&file=0&from=0&to=${run.events + 1}`;
  const queries = ["category", "none"].map((by) => `levels?by=${by}&columns=64&${whole}`);
  queries.push(`holders?by=stack&${whole}&what=left`, "marks?device=0&file=0");
  for (const event of moments) queries.push(`holders?by=stack&device=0&event=${event}&file=0`);
  const answers = { run: encode(run_answer(run, name, [])) };
  for (const query of queries) {
    const [path, rest] = query.split("?");
    answers[query] = answer_to(run, name, path, new URLSearchParams(rest), {})[1];
  }
  const text = Object.fromEntries(Object.entries(answers).map(([key, answer]) => [key, deflateRawSync(answer).toString("base64")]));
  return `<script type="application/json" id="gpumemprof-data">${JSON.stringify({ answers: text })}</script>`;
}

/** Serves the built page and the run on a free port of loopback. */
export async function serve(run = make_run(), name = "mock.gmp") {
  const page = new URL("../../build/page.html", import.meta.url);
  const state = { generation: 1, has_changed: false };
  const sent = []; // name and bytes of what PUT brought
  const server = createServer(async (request, response) => {
    const url = new URL(request.url, "http://localhost");
    if (request.method === "PUT" && url.pathname === "/api/v1/file" && url.searchParams.get("token") === "t") {
      const pieces = [];
      for await (const piece of request) pieces.push(piece);
      sent.push({ name: url.searchParams.get("name"), bytes: Buffer.concat(pieces) });
      return response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ file: sent.length }));
    }
    if (url.pathname === "/events") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      for (let look = 0; look < 3; ++look) response.write(`event: picture\ndata: ${JSON.stringify({ ...PICTURE, time_ns: PICTURE.time_ns + look * 1e9 })}\n\n`);
      return undefined; // the stream stays open
    }
    if (url.pathname === "/live")
      return response.setHeader("content-type", "text/html; charset=utf-8").end(readFileSync(page, "utf8").replace("<!--gpumemprof-data-->", '<script type="application/json" id="gpumemprof-live">{}</script>'));
    if (url.pathname === "/kept")
      return response.setHeader("content-type", "text/html; charset=utf-8").end(readFileSync(page, "utf8").replace("<!--gpumemprof-data-->", () => kept(run, name, url.searchParams.getAll("moment"))));
    if (!url.pathname.startsWith("/api/v1/")) return response.setHeader("content-type", "text/html; charset=utf-8").end(readFileSync(page));
    if (/XiB/.test(url.searchParams.get("filter") ?? url.searchParams.get("q") ?? ""))
      return response.writeHead(400, { "content-type": "application/json" }).end('{"error": "expected a size, such as 10MiB, 1GB or 4096", "at": 6}');
    const found = answer_to(run, name, url.pathname.slice(8), url.searchParams, { state, sent });
    if (!found) return response.writeHead(404, { "content-type": "application/json" }).end('{"error": "the mock does not answer this"}');
    return response.writeHead(200, { "content-type": found[0] }).end(found[1]);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { address: `http://127.0.0.1:${server.address().port}/?token=t`, run, state, sent, close: () => (server.closeAllConnections(), server.close()), total_at: (e) => total_at(run, e) };
}

// The allocator's address space: segments with blocks and holes, at one moment or over time.
import { computed, signal } from "@preact/signals";
import { NONE } from "../data/columns.ts";
import { colour_of, colour_of_id, colours, css, fit_text, ink_on, is_dark, oklch, SurfaceBox } from "../draw/index.ts";
import type { Surface } from "../draw/index.ts";
import { RectList } from "../draw/rects.ts";
import * as format from "../format.ts";
import { ask, device, file, filter, is_peak, moment, subject, visible } from "../state/run.ts";
import { go, part } from "../state/view.ts";
import { between, reserved_parts } from "./allocator_words.ts";
import type { Replayed } from "./allocator_words.ts";
import { choose } from "./moves.ts";
import { Missing } from "./parts.tsx";
import * as data from "./time_data.ts";

const tab = part("tab");
const through_time = signal(false);
const at_moment = ask("space", () => (device.value && tab.value === "space" && !through_time.value ? { ...subject(), event: moment.value } : null), { wait_ms: 40 });
const over_time = ask("space_time", () => {
  if (!device.value || tab.value !== "space" || !through_time.value) return null;
  const [from, to] = visible.value;
  return { ...subject(), from, to, limit: 20000, filter: filter.value };
}, { wait_ms: 80 });

interface Segment {
  address: bigint;
  bytes: number;
  stream: number;
  pool: number;
  is_expandable: boolean;
  blocks: Block[];
  live: number;
}
interface Block {
  address: bigint;
  bytes: number;
  state: number; // 0 live, 1 free, 2 pending
  id: number;
  stack: number;
  category: number;
}
/** As in the chart by category; otherwise each stack has a colour: the answer has no keys of other groups. */
const is_by_category = computed(() => part("by").value === "category");
const colour_of_block = (block: Block, dark: boolean) => {
  const category = is_by_category.value ? file.value?.categories?.find((one) => one.id === block.category)?.label : undefined;
  return category === undefined ? colour_of_id(block.stack, dark) : colour_of("category", category, dark);
};
const join = (high: number, low: number) => BigInt(high) * 4294967296n + BigInt(low);

/** Segments with their blocks, and the blocks that are outside every known segment. */
const space = computed<{ segments: Segment[]; outside: { blocks: number; bytes: number } }>(() => {
  const answer = at_moment.value.answer;
  const outside = { blocks: 0, bytes: 0 };
  if (!answer || answer.unknown) return { segments: [], outside };
  const u = (name: string) => answer.u32(name);
  const [sh, sl, ss, sp, sf, sb] = [u("segment_address_hi"), u("segment_address_lo"), u("segment_stream"), u("segment_pool"), u("segment_flags"), answer.f64("segment_bytes")];
  const out: Segment[] = Array.from(sb, (bytes, i) => ({
    address: join(sh[i], sl[i]), bytes, stream: ss[i] ?? NONE, pool: sp[i] ?? NONE, is_expandable: (sf[i] & 1) === 1, blocks: [], live: 0,
  }));
  out.sort((a, b) => (a.address < b.address ? -1 : 1));
  const [bh, bl, st, id, sk, ct, by] = [u("block_address_hi"), u("block_address_lo"), u("block_state"), u("block_id"), u("block_stack"), u("block_category"), answer.f64("block_bytes")];
  const blocks = Array.from(by, (bytes, i) => ({ address: join(bh[i], bl[i]), bytes, state: st[i] ?? 0, id: id[i] ?? NONE, stack: sk[i] ?? NONE, category: ct[i] ?? 0 }));
  blocks.sort((a, b) => (a.address < b.address ? -1 : 1));
  if (out.length === 0) return { segments: stretches(blocks), outside };
  let s = 0;
  for (const block of blocks) {
    while (s + 1 < out.length && block.address >= out[s + 1].address) ++s;
    const of = out[s];
    if (!of || block.address < of.address || Number(block.address - of.address) >= of.bytes) {
      ++outside.blocks;
      outside.bytes += block.bytes;
      continue;
    }
    of.blocks.push(block);
    if (block.state !== 1) of.live += block.bytes;
  }
  return { segments: out, outside };
});
const segments = computed(() => space.value.segments);

/** For a source without segments: address ranges without a hole as large as a segment. */
function stretches(blocks: Block[]): Segment[] {
  const out: Segment[] = [];
  let until = -1n;
  for (const block of blocks) {
    const last = out.at(-1);
    const stop = block.address + BigInt(block.bytes);
    const of =
      last && block.address < until + HOLE
        ? last
        : { address: block.address, bytes: 0, stream: NONE, pool: NONE, is_expandable: false, blocks: [] as Block[], live: 0 };
    if (of !== last) out.push(of);
    of.blocks.push(block);
    of.live += block.bytes;
    if (stop > until) until = stop;
    of.bytes = Number(until - of.address);
  }
  return out;
}
const HOLE = 20n * 1024n * 1024n; // PyTorch's larger segments are of 20 MiB and more
const has_segments = computed(() => !at_moment.value.answer?.head.unknown_segments);
const sizes = computed<string>(() => (has_segments.value ? (at_moment.value.answer?.head.sizes ?? "") : "unknown"));
// Sizes as they were asked for leave open what the allocator added to them.
const replayed = ask("allocator", () =>
  device.value && tab.value === "space" && !through_time.value && at_moment.value.answer?.head.sizes === "requested" && has_segments.value
    ? { ...subject(), event: moment.value }
    : null, { wait_ms: 40 });

// A segment is a row (rows, where it is long): bytes from left to right, the same scale for all.
const LEAST_ROW = 22;
const MOST_ROW = 56;
const NAME = 156;
const size = signal<[number, number]>([800, 300]);
const order = signal<"address" | "free">("address");
const sorted = computed(() => (order.value === "address" ? segments.value : [...segments.value].sort((a, b) => b.bytes - b.live - (a.bytes - a.live))));
// The canvas is as high as the visible part: a whole list may exceed the largest canvas.
const scrolled = signal(0);
const room = signal(300);
const row_height = computed(() => Math.min(MOST_ROW, Math.max(LEAST_ROW, Math.floor((room.value - 8) / Math.max(1, sorted.value.length)))));

function draw_moment(surface: Surface): void {
  const { context: c, width, height } = surface;
  size.value;
  const tone = colours();
  const dark = is_dark.value;
  const list = sorted.value;
  const widest = list.reduce((most, segment) => Math.max(most, segment.bytes), 1);
  const ROW = row_height.value;
  const first = Math.floor(scrolled.value / ROW);
  const plot = width - NAME - 90;
  const rects = new RectList();
  const free = oklch(dark ? 0.27 : 0.945, 0.008, 250);
  const chosen = part("block").value;
  c.textBaseline = "middle";
  list.slice(first, first + Math.ceil(height / ROW) + 1).forEach((segment, row) => {
    const y = (first + row) * ROW + 3 - scrolled.value;
    const w = Math.max(2, (segment.bytes / widest) * plot);
    const box = (x0: number, x1: number, inset: number, colour: number) => rects.add(x0, height - y - ROW + 5 + inset, x1, height - y - inset, colour);
    box(NAME, NAME + w, 0, free);
    for (const block of segment.blocks) {
      if (block.state === 1) continue;
      const x = NAME + (Number(block.address - segment.address) / segment.bytes) * w;
      const own = block.state === 2 ? oklch(dark ? 0.7 : 0.6, 0.12, 300) : colour_of_block(block, dark);
      const bw = (block.bytes / segment.bytes) * w;
      box(x, x + Math.max(0.5, bw - (bw > 3 ? 1 : 0)), 0, own);
      if (block.state === 2) {
        c.strokeStyle = tone.card;
        c.beginPath();
        for (let at = x + 2; at < x + bw; at += 4) c.moveTo(at, y + ROW - 5), c.lineTo(at + 3, y);
        c.stroke();
      }
      if (block.id === chosen && chosen >= 0) {
        c.strokeStyle = tone.ink;
        c.lineWidth = 2;
        c.strokeRect(x - 0.5, y - 0.5, Math.max(4, bw), ROW - 4);
      }
      if (bw > 60 && block.state === 0) {
        c.fillStyle = ink_on(own);
        c.textAlign = "left";
        c.fillText(fit_text(c, format.bytes(block.bytes), bw - 8), x + 4, y + ROW / 2 - 2);
      }
    }
    c.textAlign = "left";
    c.fillStyle = tone.ink;
    c.fillText(format.bytes(segment.bytes), 10, y + ROW / 2 - 2);
    c.fillStyle = tone.dim;
    c.textAlign = "right";
    c.fillText(`${format.share(segment.live, segment.bytes) || "0 %"} used`, NAME - 8, y + ROW / 2 - 2);
    c.textAlign = "left";
    const tags = [segment.is_expandable ? "expandable" : "", Object.keys(pools()).length > 1 ? format.plain(pools()[segment.pool] ?? "", 40) : ""].filter(Boolean).join(", ");
    c.fillText(fit_text(c, tags, width - NAME - w - 10), NAME + w + 6, y + ROW / 2 - 2);
  });
  surface.rects.set(rects);
  surface.rects.draw({ x0: 0, x1: width, y0: 0, y1: height });
}
function block_at(x: number, y: number): { segment?: Segment; block?: Block } {
  const list = sorted.value;
  const segment = list[Math.floor((y + scrolled.value) / row_height.value)];
  if (!segment) return {};
  const widest = list.reduce((most, other) => Math.max(most, other.bytes), 1);
  const w = Math.max(2, (segment.bytes / widest) * (size.value[0] - NAME - 90));
  const at = ((x - NAME) / w) * segment.bytes;
  return { segment, block: segment.blocks.find((block) => at >= Number(block.address - segment.address) && at < Number(block.address - segment.address) + block.bytes) };
}

const over = signal<{ x: number; y: number; title: string; text: string } | null>(null);
const pools = () => at_moment.value.answer?.head.pools ?? {};

function Moment() {
  const list = sorted.value;
  const [reserved, live] = list.reduce(([a, b], segment) => [a + segment.bytes, b + segment.live], [0, 0]);
  if (list.length === 0) return <Missing asked={at_moment.value} what="Nothing is reserved at this moment." />;
  return (
    <div
      class="scroll space" tabIndex={0} role="region" aria-label={`${format.plural(list.length, "segment")}, ${format.bytes(reserved)} reserved, ${format.bytes(live)} used`}
      onScroll={(event) => (scrolled.value = event.currentTarget.scrollTop)}
      ref={(element) => {
        if (element && element.clientHeight !== room.peek()) room.value = element.clientHeight;
      }}
    >
      <div style={{ height: `${Math.max(room.value, list.length * row_height.value + 8)}px` }}>
        <div class="window" style={{ height: `${room.value}px` }}>
        <SurfaceBox
          draw={draw_moment} size={size} focusable={false}
          label={`Segments as rows, with their blocks. ${format.plural(list.length, "segment")}.`}
          setup={({ top }) => {
            top.style.touchAction = "auto";
            top.style.cursor = "pointer";
            top.onpointermove = (event) => {
              const { segment, block } = block_at(event.offsetX, event.offsetY);
              over.value = segment && event.offsetX >= NAME ? { x: event.offsetX, y: event.offsetY, ...told(segment, block) } : null;
            };
            top.onpointerleave = () => (over.value = null);
            top.onclick = (event) => {
              const { block } = block_at(event.offsetX, event.offsetY);
              if (block && block.state !== 1 && block.id !== NONE) go({ block: block.id, tab: "block" });
            };
          }}
        >
          {over.value ? (
            <div class="tooltip" style={{ left: `${Math.max(4, Math.min(over.value.x + 14, size.value[0] - 300))}px`, top: `${over.value.y > size.value[1] - 90 ? Math.max(0, over.value.y - 80) : over.value.y + 18}px` }}>
              <b class="n">{over.value.title}</b>
              {over.value.text}
            </div>
          ) : null}
        </SurfaceBox>
        </div>
      </div>
    </div>
  );
}
function told(segment: Segment, block?: Block): { title: string; text: string } {
  const pool = pools()[segment.pool] ? `, ${format.plain(pools()[segment.pool], 60)}` : "";
  const of = `${has_segments.value ? "Segment" : "Range"} 0x${segment.address.toString(16)} of ${format.bytes(segment.bytes)}, ${format.share(segment.live, segment.bytes) || "0 %"} used${pool}`;
  const free = between(sizes.value);
  if (!block || block.state === 1) return { title: block ? `Free: ${format.bytes(block.bytes)}` : has_segments.value ? free[0].toUpperCase() + free.slice(1) : "No block", text: of };
  const category = file.value?.categories?.find((one) => one.id === block.category)?.label ?? "";
  const name = at_moment.value.answer?.head.stacks?.[block.stack];
  return {
    title: `${format.bytes(block.bytes)}${block.state === 2 ? ", freed but still in use by a stream" : ""}${category ? `, ${format.plain(category, 60)}` : ""}`,
    text: `${name ? `${format.plain(name, 120)}. ` : ""}${of}`,
  };
}

/** Unused addresses above `at` bytes of used ones. */
interface Gap {
  at: number;
  bytes: number;
}
const GAP_PX = 12;
/** Where gaps are drawn, in pixels: of those that would lie closer together than lines can be told apart the largest. */
export function told_gaps(gaps: Gap[], px_per_byte: number): number[] {
  const out: number[] = [];
  for (const gap of [...gaps].sort((a, b) => b.bytes - a.bytes)) {
    const y = gap.at * px_per_byte;
    if (out.every((other) => Math.abs(other - y) >= GAP_PX)) out.push(y);
  }
  return out;
}

const rectangles = computed(() => {
  const answer = over_time.value.answer;
  if (!answer || answer.unknown) return null;
  const [hi, lo, bytes, start, end, stack, id] = [answer.u32("address_hi"), answer.u32("address_lo"), answer.f64("size_bytes"), answer.u32("start"), answer.u32("end"), answer.u32("stack"), answer.u32("id")];
  // Addresses are far apart: unused gaps are left out, each range in use keeps its length.
  const places = Array.from(bytes, (_, i) => ({ i, at: join(hi[i], lo[i]) })).sort((a, b) => (a.at < b.at ? -1 : 1));
  const y0 = new Float64Array(bytes.length);
  const gaps: Gap[] = [];
  let begin = 0n;
  let until = 0n;
  let base = 0;
  for (const { i, at } of places) {
    const stop = at + BigInt(Math.round(bytes[i]));
    if (until === 0n || at > until + 2097152n) {
      base += Number(until - begin);
      if (until !== 0n) gaps.push({ at: base, bytes: Number(at - until) });
      begin = at;
      until = stop;
    }
    y0[i] = base + Number(at - begin);
    if (stop > until) until = stop;
  }
  return { bytes, start, end, stack, id, y0, gaps, height: base + Number(until - begin), left_out: answer.head.left_out };
});
const time_size = signal<[number, number]>([800, 300]);
function draw_through_time(surface: Surface): void {
  const { context: c, width, height } = surface;
  time_size.value;
  const shown = rectangles.value;
  const axis = data.axis.value;
  const tone = colours();
  const rects = new RectList();
  const chosen = part("block").value;
  if (shown) {
    const origin = axis.u0;
    const last = axis.event_at_x(1);
    for (let i = 0; i < shown.bytes.length; ++i) {
      const stop = shown.end[i] === NONE ? last : Math.min(shown.end[i], last);
      rects.add(axis.unit(shown.start[i]) - origin, shown.y0[i], axis.unit(stop) - origin, shown.y0[i] + shown.bytes[i], chosen >= 0 && chosen === shown.id[i] ? 0xe0a100 : colour_of_id(shown.stack[i]));
    }
    surface.rects.set(rects);
    const per_px = (axis.u1 - axis.u0) / Math.max(1, width - data.LEFT);
    surface.rects.draw({ x0: -data.LEFT * per_px, x1: axis.u1 - axis.u0, y0: 0, y1: shown.height });
  }
  c.fillStyle = tone.card;
  c.fillRect(0, 0, data.LEFT, height);
  if (!shown) return;
  c.strokeStyle = tone.strong;
  c.setLineDash([2, 4]);
  for (const at of told_gaps(shown.gaps, height / shown.height)) {
    const y = Math.round(height - at) + 0.5;
    c.beginPath();
    c.moveTo(data.LEFT, y);
    c.lineTo(width, y);
    c.stroke();
  }
  c.setLineDash([]);
  const x = data.LEFT + axis.x(moment.value) * (width - data.LEFT);
  c.strokeStyle = tone.ink;
  c.beginPath();
  c.moveTo(x, 0);
  c.lineTo(x, height);
  c.stroke();
  c.fillStyle = tone.dim;
  c.textAlign = "right";
  c.textBaseline = "top";
  c.fillText(format.bytes(shown.height), data.LEFT - 7, 4);
}
function ThroughTime() {
  const shown = rectangles.value;
  if (!shown || shown.bytes.length === 0) return <Missing asked={over_time.value} what="No block was live in this range." />;
  // In the chart's own columns: a moment is at the same place in both.
  return (
    <div class="through-time">
      <SurfaceBox
        draw={draw_through_time} size={time_size} label="Blocks as rectangles: events from left to right, addresses from bottom to top."
        setup={({ top }) => {
          top.onclick = (event) => {
            const now = rectangles.value;
            if (!now) return;
            const [width, height] = time_size.value;
            const at = data.axis.value.event_at_x((event.offsetX - data.LEFT) / (width - data.LEFT));
            const y = (1 - event.offsetY / height) * now.height;
            const hit = now.y0.findIndex((low, i) => y >= low && y < low + now.bytes[i] && at >= now.start[i] && (now.end[i] === NONE || at < now.end[i]));
            if (hit >= 0) go({ block: now.id[hit], tab: "block" });
            else choose(at);
          };
        }}
      />
      <aside class="side dim" aria-label="Explanation">
        <p>
          From left to right the chart's moments, from bottom to top addresses in use; a dotted line is a gap between them, of close ones the largest.
          Each box is a block, coloured by its stack. Click one to see it.
        </p>
      </aside>
    </div>
  );
}

export function Space() {
  const list = segments.value;
  const [reserved, live] = list.reduce(([a, b], segment) => [a + segment.bytes, b + segment.live], [0, 0]);
  const shown_event = at_moment.value.answer?.head.event ?? moment.value;
  // In a page in a file the nearest moment may be another one for each.
  const of_moment = replayed.value.answer?.head;
  const known = of_moment && of_moment.event === shown_event && !of_moment.unknown ? (of_moment as unknown as Replayed) : null;
  const parts = reserved_parts(reserved, live, sizes.value, known);
  const left_out = rectangles.value?.left_out;
  const summary = (through_time.value ? over_time : at_moment).value.answer?.summary;
  return (
    <div class="panel">
      <div class="strip">
        <span class="segments" role="group" aria-label="Address space">
          <button aria-pressed={!through_time.value} onClick={() => (through_time.value = false)}>At this moment</button>
          <button aria-pressed={through_time.value} onClick={() => (through_time.value = true)}>Over time</button>
        </span>
        {!through_time.value && list.length ? (
          <>
            <span class="n">
              <b>{format.bytes(reserved)}</b> <span class="dim">{has_segments.value ? "reserved" : "of address space"} in {format.plural(list.length, has_segments.value ? "segment" : "range")}: {parts.join(", ")}, at event {format.count(shown_event)}{is_peak.value && shown_event === moment.value ? ", the peak" : ""}</span>
            </span>
            <span class="segments" role="group" aria-label="Order of segments">
              <button aria-pressed={order.value === "address"} onClick={() => (order.value = "address")}>By address</button>
              <button aria-pressed={order.value === "free"} onClick={() => (order.value = "free")}>By unused bytes</button>
            </span>
            <span class="dim"><span class="swatch" style={{ background: css(oklch(is_dark.value ? 0.27 : 0.945, 0.008, 250)), border: "1px solid var(--line-strong)", verticalAlign: "-1px" }} /> {has_segments.value ? between(sizes.value) : "no block"}; a block is coloured by its {is_by_category.value ? "category, as in the chart" : "stack"}</span>
            {space.value.outside.blocks ? <span class="warning">{format.plural(space.value.outside.blocks, "block")} of {format.bytes(space.value.outside.bytes)} {space.value.outside.blocks === 1 ? "is" : "are"} outside every known segment.</span> : null}
            {has_segments.value ? null : <span class="warning">Segments are unknown: {format.plain(at_moment.value.answer?.head.unknown_segments)}.</span>}
          </>
        ) : null}
        {through_time.value && left_out?.blocks ? <span class="dim">{format.plural(left_out.blocks, "smaller block")} ({format.bytes(left_out.bytes)}) not shown</span> : null}
        {summary ? <span class="warning">{summary}</span> : null}
      </div>
      {through_time.value ? <ThroughTime /> : <Moment />}
    </div>
  );
}

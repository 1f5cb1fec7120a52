// Holders of the memory: live at the moment, or allocated, not freed or freed within the range.
import { computed, signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import { colour_of, css, faded, ink_on, is_dark } from "../draw/index.ts";
import * as format from "../format.ts";
import { ask, device, filter, is_one_moment, is_peak, moment, range, subject } from "../state/run.ts";
import { go, part } from "../state/view.ts";
import { Flame, frame_colour, stack_text } from "./flame.tsx";
import { Choice, CopyButton, FrameName, KINDS, Missing, YourCodeOnly } from "./parts.tsx";
import { by_label, callees, callers, matcher, nested_treemap, of_your_code, path_to, stations, tree_of } from "./tree.ts";
import type { Line, Tree } from "./tree.ts";

const tab = part("tab");
const hold = part("hold");
const what = part("what");
const search = part("search");
const library = part("library");
const focus = part("focus");
const inside = part("inside");

const asked = ask(
  "holders",
  () => {
    if (!device.value || tab.value !== "holders") return null;
    const common = { ...subject(), by: hold.value, filter: filter.value };
    const marked = range.value;
    return what.value !== "at" && marked
      ? { ...common, from: marked[0], to: marked[1] + 1, what: what.value }
      : { ...common, event: moment.value };
  },
  { wait_ms: 30 },
);
const whole = computed<Tree | null>(() => (asked.value.answer && !asked.value.answer.unknown ? tree_of(asked.value.answer) : null));
export const tree = computed<Tree | null>(() => {
  const all = whole.value;
  if (!all || library.value || hold.value !== "stack" || all.kinds.length === 0) return all;
  if (!all.kinds.includes("user")) return all;
  return of_your_code(all);
});
const chosen = signal(-1);
const focus_label = computed(() => (focus.value && tree.value ? tree.value.labels.indexOf(focus.value) : -1));
const callees_tree = computed(() => (tree.value && focus_label.value >= 0 ? callees(tree.value, focus_label.value) : null));
const callers_tree = computed(() => (tree.value && focus_label.value >= 0 ? callers(tree.value, focus_label.value) : null));
const none = signal(-1);

const WHAT: Record<string, string> = { allocated: "allocated", left: "allocated and not freed", freed: "freed" };
function When() {
  // What the answer is about: in a page in a file this is the nearest that the file has.
  const { query, answer } = asked.value;
  const [from, to] = [answer?.head.from ?? query.from, answer?.head.to ?? query.to];
  const shown_event = answer?.head.from ?? moment.value;
  const text =
    query.what !== undefined
      ? `${WHAT[query.what ?? ""] ?? ""} in events ${format.count(from)} to ${format.count(to - 1)}`
      : is_one_moment.value ? "live" : `live at event ${format.count(shown_event)}${is_peak.value && shown_event === moment.value ? ", the peak" : ""}`;
  return (
    <span class="n">
      <b title={format.exact(tree.value?.bytes[0])}>{tree.value ? format.bytes(whole.value?.bytes[0]) : ""}</b> <span class="dim">{text}</span>
    </span>
  );
}

export function Holders() {
  const marked = range.value;
  const needs_range = marked ? undefined : "Select a range in the chart first.";
  const shape = part("shape").value;
  const shown = tree.value;
  // What is shown alone is what is told of, also in a link that someone was given.
  useEffect(() => {
    chosen.value = shown && inside.value > 0 && inside.value < shown.bytes.length ? inside.value : -1;
  }, [shown, inside.value]);
  return (
    <div class="panel">
      <div class="strip">
        <When />
        <Choice name="what" label="Holders of" options={[["at", "Live"], ["allocated", "Allocated", needs_range], ["left", "Not freed", needs_range], ["freed", "Freed", needs_range]]} />
        <Choice name="hold" label="Holders by" options={[["stack", "Stack"], ["module", "Module"], ["category", "Category"]]} />
        <Choice name="shape" label="Shown as" options={[["flame", "Flame"], ["icicle", "Icicle"], ["table", "Table"], ["treemap", "Treemap"]]} />
        {hold.value === "stack" && whole.value?.kinds.includes("user") ? (
          <YourCodeOnly />
        ) : null}
        {asked.value.answer?.head.left_out?.nodes ? (
          <span class="dim">{format.plural(asked.value.answer.head.left_out.nodes, "node")} of {format.bytes(asked.value.answer.head.left_out.bytes)} left out</span>
        ) : null}
        {asked.value.answer?.summary ? <span class="warning">{asked.value.answer.summary}</span> : null}
      </div>
      {!shown || shown.bytes.length < 2 ? (
        <Missing asked={asked.value} what={shown ? "No blocks here." : "No holders."} />
      ) : (
        <div class="split">
          <div class="scroll">
            {focus_label.value >= 0 ? <Sandwich /> : shape === "table" ? <HoldersTable shown={shown} /> : shape === "treemap" ? <Treemap shown={shown} /> : (
              <Flame
                tree={tree} upward={shape === "flame"} search={search} chosen={chosen} on_choose={(node) => (chosen.value = node)}
                inside={inside} on_open={(node) => go({ inside: node })}
                label="Holders as nested boxes. Arrow keys move, Enter zooms. Table shows the same figures."
              />
            )}
          </div>
          <aside class="side" aria-label="Selection">
            <Chosen shown={shown} />
          </aside>
        </div>
      )}
    </div>
  );
}

function Sandwich() {
  return (
    <div style={{ display: "grid", gridTemplateRows: "auto minmax(110px, 1fr) auto minmax(110px, 1fr)", height: "100%" }}>
      <div class="strip">
        <b>Callers</b>
        <span class="cut code">{format.frame_line(focus.value)}</span>
        <button onClick={() => go({ focus: "" })}>Show all</button>
      </div>
      <Flame tree={callers_tree} upward search={search} chosen={none} on_choose={() => {}} label="Callers" />
      <div class="strip"><b>Callees</b></div>
      <Flame tree={callees_tree} upward={false} search={search} chosen={none} on_choose={() => {}} label="Callees" />
    </div>
  );
}

/** By stack a box has the colour of its frame's kind. */
const has_kinds = (shown: Tree) => hold.value === "stack" && shown.kinds.length > 0;
function Chosen({ shown }: { shown: Tree }) {
  const node = chosen.value;
  if (node <= 0 || node >= shown.bytes.length) {
    const shape = part("shape").value;
    // A table has no colours, and other holders have a colour each.
    const has_key = has_kinds(shown) && (shape !== "table" || focus_label.value >= 0);
    const has_none = shown.kinds.includes("none");
    return (
      <div>
        <h2>{format.bytes(shown.bytes[0])} in {format.plural(shown.blocks[0], "block")}</h2>
        <p class="dim">Click a box to see its figures.</p>
        {has_key ? (
          <dl class="facts">
            <dt>{shape === "treemap" ? "Blue" : "Bold, blue"}</dt><dd>your code</dd>
            <dt>Violet</dt><dd>modules, layers, variables, operations, modes and phases</dd>
            {has_none ? null : <><dt>Green</dt><dd>libraries</dd></>}
            <dt>Grey</dt><dd>{has_none ? KINDS.none : KINDS.native}</dd>
          </dl>
        ) : null}
      </div>
    );
  }
  const label = shown.label[node];
  const name = shown.labels[label] ?? "";
  const path = path_to(shown, node).reverse();
  const file = shown.files[label];
  return (
    <div>
      <h2 class="code"><FrameName text={name} /></h2>
      <dl class="facts n">
        <dt>Total</dt><dd>{format.bytes(shown.bytes[node])} <span class="dim">{format.exact(shown.bytes[node])}</span></dd>
        <dt>Share</dt><dd>{format.share(shown.bytes[node], shown.bytes[0])}</dd>
        <dt>Self</dt><dd>{format.bytes(shown.self_bytes[node])}</dd>
        <dt>Blocks</dt><dd>{format.count(shown.blocks[node])}</dd>
        {shown.kinds[label] && hold.value === "stack" ? <><dt>Kind</dt><dd>{KINDS[shown.kinds[label]] ?? shown.kinds[label]}</dd></> : null}
      </dl>
      <div class="strip" style={{ padding: "0 0 10px" }}>
        <button onClick={() => go({ filter: filter_for(name) })}>Filter by this</button>
        {hold.value === "stack" ? <button onClick={() => go({ focus: name })}>Callers and callees</button> : null}
        <CopyButton label="Copy stack" text={() => stack_text(shown, node)} />
        {file ? <button onClick={() => go({ tab: "source", source: `${file}:${shown.lines[label] ?? 1}` })}>Source</button> : null}
      </div>
      <ol class="frames">
        {path.slice(0, 100).map((at) => (
          <li key={at} class={shown.kinds[shown.label[at]] === "user" ? "user" : ""}>
            <button class="link code" onClick={() => (chosen.value = at)} title={format.plain(shown.labels[shown.label[at]] ?? "", 1000)}><FrameName text={shown.labels[shown.label[at]] ?? ""} /></button>
          </li>
        ))}
      </ol>
      {path.length > 100 ? <p class="dim">{format.plural(path.length - 100, "more frame")}.</p> : null}
    </div>
  );
}
/** The filter for the blocks of a box. */
function filter_for(name: string): string {
  const quoted = `"${name.replaceAll('"', "")}"`;
  return hold.value === "category" ? `category:${quoted}` : hold.value === "module" ? `module:${quoted}` : quoted;
}

const MOST_ROWS = 500;
type Order = "bytes" | "self_bytes" | "blocks";
export function HoldersTable({ shown }: { shown: Tree }) {
  const [order, set_order] = useState<Order>("bytes");
  const matches = matcher(search.value);
  const rows = by_label(shown)
    .filter((line) => !matches || matches(shown.labels[line.label] ?? ""))
    .sort((a, b) => b[order] - a[order]);
  const head = (key: Order, text: string) => (
    <th class="right" aria-sort={order === key ? "descending" : "none"}>
      <button onClick={() => set_order(key)}>{text}{order === key ? " ↓" : ""}</button>
    </th>
  );
  const pick = (line: Line) => (chosen.value = shown.label.indexOf(line.label, 1));
  return (
    <div>
      <table class="data">
        <thead>
          <tr><th>{{ stack: "Frame", module: "Module", category: "Category" }[hold.value]}</th>{head("bytes", "Total")}<th class="right">Share</th>{head("self_bytes", "Self")}{head("blocks", "Blocks")}</tr>
        </thead>
        <tbody>
          {rows.slice(0, MOST_ROWS).map((line) => (
            <tr key={line.label} class={chosen.value > 0 && shown.label[chosen.value] === line.label ? "chosen" : ""}>
              <td class="wide">
                <button class="link code" onClick={() => pick(line)} title={format.plain(shown.labels[line.label] ?? "", 1000)}><FrameName text={shown.labels[line.label] ?? ""} /></button>
                <span class="share" style={{ width: `${(100 * line.bytes) / (shown.bytes[0] || 1)}%` }} />
              </td>
              <td class="right" title={format.exact(line.bytes)}>{format.bytes(line.bytes)}</td>
              <td class="right">{format.share(line.bytes, shown.bytes[0])}</td>
              <td class="right" title={format.exact(line.self_bytes)}>{format.bytes(line.self_bytes)}</td>
              <td class="right">{format.count(line.blocks)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > MOST_ROWS ? <p class="empty">{format.plural(rows.length - MOST_ROWS, "more row")}. Search for one, or export all as CSV.</p> : null}
    </div>
  );
}

/** Out of the tile that the treemap shows, by one level, or of the box that is shown alone. False: all is shown, or something else. */
export function go_out(): boolean {
  const node = inside.value;
  const shape = part("shape").value;
  if (tab.value !== "holders" || shape === "table" || !tree.value || node <= 0) return false;
  go({ inside: shape === "treemap" ? (stations(tree.value, node).at(-2) ?? 0) : 0 });
  return true;
}
/** Tiles in tiles: a click goes into one. */
function Treemap({ shown }: { shown: Tree }) {
  const [[width, height], set_box] = useState<[number, number]>([0, 0]);
  const top = inside.value < shown.bytes.length ? inside.value : 0;
  const matches = matcher(search.value);
  const name_of = (node: number) => (node === 0 ? "All" : (shown.labels[shown.label[node]] ?? ""));
  const is_hit = (node: number) => path_to(shown, node).some((at) => matches!(name_of(at)));
  return (
    <div class="treemap">
      {top > 0 ? (
        <nav class="strip" aria-label="Inside of">
          {stations(shown, top).map((node) => (
            <button key={node} class="link cut" aria-current={node === top ? "location" : undefined} disabled={node === top} onClick={() => go({ inside: node })}>{format.frame_line(name_of(node))}</button>
          ))}
          <button onClick={go_out}>Back</button>
        </nav>
      ) : null}
      <div
        class="chart" role="list" aria-label="Holders as tiles in tiles. A click goes into a tile, Escape goes out."
        ref={(element) => {
          if (element && (element.clientWidth !== width || element.clientHeight !== height)) set_box([element.clientWidth, element.clientHeight]);
        }}
      >
        {nested_treemap(shown, top, width, height).map((tile) => {
          const { node, bytes, is_own, is_open } = tile;
          const { file, line, name: of } = format.key_name(name_of(node));
          const [bold, rest] = file ? [`${file}${line}`, ` ${of}`] : [format.frame(name_of(node)).name, ""];
          const ending = `${rest}${is_own ? ", itself" : ""}`;
          // Where a line has no room for the name, what tells it from its neighbours begins the next one.
          const dot = bold.lastIndexOf(".");
          const [head, tail] = file ? [file, line] : dot > 0 ? [bold.slice(0, dot), bold.slice(dot)] : [bold, ""];
          const is_split = !is_open && tile.h > 56 && tail !== "" && (bold + ending).length * 7 > tile.w - 10;
          const text = `${bold}${ending}: ${format.exact(bytes)}`;
          const label = shown.label[node];
          const own = has_kinds(shown) ? frame_colour(shown.kinds[label] ?? "other", label, is_dark.value) : colour_of(hold.value, name_of(tile.group));
          const fill = is_open ? faded(own) : own;
          const is_chosen = chosen.value === node && !is_own;
          const has_name = tile.w > 56 && tile.h > 18;
          return (
            <div role="listitem" key={`${node} ${is_own}`} style={{ left: `${tile.x}px`, top: `${tile.y}px`, width: `${tile.w - 1}px`, height: `${tile.h - 1}px` }}>
              <button
                title={text} aria-label={has_name ? undefined : text} aria-pressed={is_chosen} tabIndex={has_name ? 0 : -1}
                onClick={() => {
                  chosen.value = node;
                  if (!is_own && shown.children[node].length > 0) go({ inside: node });
                }}
                style={{
                  background: css(fill), color: is_open ? "var(--ink)" : ink_on(fill), padding: has_name ? "1px 5px" : 0,
                  outline: is_chosen ? "2px solid var(--ink)" : undefined, opacity: matches && !is_open && !is_hit(node) ? 0.35 : 1,
                }}
              >
                {has_name ? <>{is_split ? <span class="cut"><b>{head}</b></span> : null}<span class="cut"><b>{is_split ? tail : bold}</b>{ending}{is_open ? <span class="n"> {format.bytes(bytes)}</span> : null}</span></> : null}
                {has_name && !is_open && tile.h > 36 ? <span class="cut n">{format.bytes(bytes)}{tile.w > 112 ? `, ${format.share(bytes, shown.bytes[0])}` : ""}</span> : null}
              </button>
            </div>
          );
        })}
      </div>
    </div>
  );
}

/** The table for export: every row, exact bytes. */
export function holders_rows(): string[][] {
  const shown = tree.value;
  if (!shown) return [];
  return [
    ["holder", "bytes", "self_bytes", "blocks"],
    ...by_label(shown).map((line) => [shown.labels[line.label] ?? "", String(line.bytes), String(line.self_bytes), String(line.blocks)]),
  ];
}

// A tree of holders and its operations. Parents come before their children; node 0 is the root.
import type { Answer } from "../data/columns.ts";

export interface Tree {
  parent: Int32Array | number[];
  label: number[];
  bytes: number[];
  self_bytes: number[];
  blocks: number[];
  children: number[][];
  labels: string[];
  kinds: string[];
  files: string[];
  lines: number[];
}

export function tree_of(answer: Answer): Tree {
  const head = answer.head;
  const bytes = answer.has("bytes") ? answer.f64("bytes") : answer.f64("bytes_b");
  const count = bytes.length;
  const own = answer.has("self_bytes") ? answer.f64("self_bytes") : new Float64Array(count);
  return linked({
    parent: Int32Array.from(answer.u32("parent")), label: [...answer.u32("label")], bytes: [...bytes], self_bytes: [...own],
    blocks: answer.has("blocks") ? [...answer.u32("blocks")] : new Array(count).fill(0), children: [],
    labels: (head.labels ?? []).map(String), kinds: head.kinds ?? [], files: head.files ?? [], lines: head.lines ?? [],
  });
}
function linked(tree: Tree): Tree {
  tree.children = tree.bytes.map(() => []);
  for (let i = 1; i < tree.bytes.length; ++i) {
    const up = tree.parent[i];
    // A parent must come before its children.
    if (up >= 0 && up < i) tree.children[up].push(i);
  }
  for (const list of tree.children) list.sort((a, b) => tree.bytes[b] - tree.bytes[a] || a - b);
  return tree;
}
function empty_like(tree: Tree): Tree {
  return { ...tree, parent: [-1], label: [tree.label[0] ?? 0], bytes: [0], self_bytes: [0], blocks: [0], children: [[]] };
}

/** Adds to trees node by node; nodes of the same label under the same parent are one. */
class Merged {
  readonly tree: Tree;
  private readonly known = new Map<string, number>();
  constructor(like: Tree) {
    this.tree = empty_like(like);
  }
  child(parent: number, label: number): number {
    const key = `${parent} ${label}`;
    let node = this.known.get(key);
    if (node === undefined) {
      node = this.tree.bytes.length;
      this.known.set(key, node);
      (this.tree.parent as number[]).push(parent);
      this.tree.label.push(label);
      this.tree.bytes.push(0);
      this.tree.self_bytes.push(0);
      this.tree.blocks.push(0);
    }
    return node;
  }
  add(node: number, bytes: number, own: number, blocks: number): void {
    this.tree.bytes[node] += bytes;
    this.tree.self_bytes[node] += own;
    this.tree.blocks[node] += blocks;
  }
  done(): Tree {
    return linked(this.tree);
  }
}

/** Drops the frames whose label is not kept: their bytes go to the frame above them, or to `nobody`. Tells `see` in which
 *  node each kept one is, and in which one the own bytes of those are that have none above them. */
export function without(tree: Tree, keeps: (label: number) => boolean, nobody: string, see: (node: number, is_in: number, is_own: boolean) => void = () => {}): Tree {
  const out = new Merged({ ...tree, labels: [...tree.labels, nobody], kinds: [...tree.kinds, "none"] });
  const place = new Int32Array(tree.bytes.length);
  const unnamed = tree.labels.length;
  // A node's own blocks are those that its children do not have.
  const own_blocks = [...tree.blocks];
  for (let i = 1; i < tree.bytes.length; ++i) own_blocks[tree.parent[i]] -= tree.blocks[i];
  out.add(0, tree.bytes[0] ?? 0, 0, tree.blocks[0] ?? 0);
  see(0, 0, false);
  for (let i = 0; i < tree.bytes.length; ++i) {
    const up = i === 0 ? 0 : place[tree.parent[i]];
    if (i > 0 && keeps(tree.label[i])) {
      place[i] = out.child(up, tree.label[i]);
      out.add(place[i], tree.bytes[i], tree.self_bytes[i], tree.blocks[i]);
      see(i, place[i], false);
      continue;
    }
    place[i] = up;
    if (up > 0) out.add(up, 0, tree.self_bytes[i], 0);
    else if (tree.self_bytes[i] > 0) {
      const unnamed_node = out.child(0, unnamed);
      out.add(unnamed_node, tree.self_bytes[i], tree.self_bytes[i], own_blocks[i]);
      see(i, unnamed_node, true);
    }
  }
  return out.done();
}

/** With the modules, operations, modes and phases in which it ran, and what has no stack at all. */
export function of_your_code(tree: Tree, see?: (node: number, is_in: number, is_own: boolean) => void): Tree {
  return without(tree, (label) => ["user", "label", "none"].includes(tree.kinds[label]), "no line of your code", see);
}
/** Two trees of the same nodes, of `a` and `b` bytes, as one: as wide as the larger of both, so that a holder that vanished keeps a box. */
export interface Both {
  tree: Tree;
  a: ArrayLike<number>;
  b: ArrayLike<number>;
}
export function both_of(like: Tree, a: ArrayLike<number>, b: ArrayLike<number>, is_yours: boolean): Both {
  if (is_yours) {
    const own = (bytes: ArrayLike<number>) => Array.from(bytes, (value, i) => value - like.children[i].reduce((sum, child) => sum + bytes[child], 0));
    const [own_a, own_b] = [own(a), own(b)];
    const [in_a, in_b]: [number[], number[]] = [[], []];
    const tree = of_your_code({ ...like, self_bytes: own_a.map((value, i) => Math.max(value, own_b[i])) }, (node, is_in, is_own) => {
      in_a[is_in] = (in_a[is_in] ?? 0) + (is_own ? own_a : a)[node];
      in_b[is_in] = (in_b[is_in] ?? 0) + (is_own ? own_b : b)[node];
    });
    return both_of(tree, in_a, in_b, false);
  }
  const bytes = Array.from(a, (value, i) => Math.max(value, b[i]));
  for (let i = bytes.length - 1; i >= 0; --i) bytes[i] = Math.max(bytes[i], like.children[i].reduce((sum, child) => sum + bytes[child], 0));
  const children = like.children.map((list) => [...list].sort((x, y) => bytes[y] - bytes[x]));
  return { tree: { ...like, bytes, children }, a, b };
}

/** Whether an ancestor has the same label and so already counts these bytes. */
function is_nested(tree: Tree, node: number): boolean {
  for (let up = tree.parent[node]; up > 0; up = tree.parent[up]) if (tree.label[up] === tree.label[node]) return true;
  return false;
}
/** The callees of a frame, over all its occurrences. */
export function callees(tree: Tree, label: number): Tree {
  const out = new Merged(tree);
  out.tree.label[0] = label;
  const place = new Map<number, number>();
  for (let i = 1; i < tree.bytes.length; ++i) {
    const up = place.get(tree.parent[i]);
    if (up !== undefined) place.set(i, out.child(up, tree.label[i]));
    else if (tree.label[i] === label) place.set(i, 0);
    const at = place.get(i);
    if (at === undefined) continue;
    if (at !== 0 || !is_nested(tree, i)) out.add(at, tree.bytes[i], tree.self_bytes[i], tree.blocks[i]);
  }
  return out.done();
}
/** The callers of a frame, innermost first. */
export function callers(tree: Tree, label: number): Tree {
  const out = new Merged(tree);
  out.tree.label[0] = label;
  for (let i = 1; i < tree.bytes.length; ++i) {
    if (tree.label[i] !== label || is_nested(tree, i)) continue;
    let at = 0;
    out.add(0, tree.bytes[i], 0, tree.blocks[i]);
    for (let up = tree.parent[i]; up > 0; up = tree.parent[up]) {
      at = out.child(at, tree.label[up]);
      out.add(at, tree.bytes[i], 0, tree.blocks[i]);
    }
  }
  return out.done();
}

export interface Line {
  label: number;
  bytes: number;
  self_bytes: number;
  blocks: number;
}
/** One row per label: its own bytes and those with everything below it, each byte once. */
export function by_label(tree: Tree): Line[] {
  const lines = new Map<number, Line>();
  for (let i = 1; i < tree.bytes.length; ++i) {
    const label = tree.label[i];
    let line = lines.get(label);
    if (!line) lines.set(label, (line = { label, bytes: 0, self_bytes: 0, blocks: 0 }));
    line.self_bytes += tree.self_bytes[i];
    if (is_nested(tree, i)) continue;
    line.bytes += tree.bytes[i];
    line.blocks += tree.blocks[i];
  }
  return [...lines.values()].sort((a, b) => b.bytes - a.bytes);
}
/** The lines of the user's code that allocated most, each byte at its innermost such line. */
export function own_lines(tree: Tree, most: number): Line[] {
  const own = without(tree, (label) => tree.kinds[label] === "user", "");
  return by_label(own).filter((line) => line.self_bytes > 0 && tree.files[line.label]).sort((a, b) => b.self_bytes - a.self_bytes).slice(0, most);
}
/** The frames from the root to a node, outermost first. */
export function path_to(tree: Tree, node: number): number[] {
  const out: number[] = [];
  for (let at = node; at > 0; at = tree.parent[at]) out.unshift(at);
  return out;
}

export interface Box {
  node: number;
  depth: number;
  x0: number; // shares of the width
  x1: number;
}
/** Boxes of the nodes below and above `top`; narrower than `least` they are left out. */
export function layout(tree: Tree, top: number, least: number): Box[] {
  const out: Box[] = [];
  if (tree.bytes.length === 0) return out;
  const above = [0, ...path_to(tree, top)];
  if (top === 0) above.length = 1;
  above.forEach((node, depth) => out.push({ node, depth, x0: 0, x1: 1 }));
  const stack: Box[] = [out[out.length - 1]];
  while (stack.length > 0) {
    const box = stack.pop()!;
    const whole = Math.max(tree.bytes[box.node], tree.children[box.node].reduce((sum, child) => sum + tree.bytes[child], 0));
    if (!(whole > 0)) continue;
    let at = box.x0;
    for (const child of tree.children[box.node]) {
      const width = ((box.x1 - box.x0) * tree.bytes[child]) / whole;
      if (width < least) break; // sorted: the rest is narrower
      const next = { node: child, depth: box.depth + 1, x0: at, x1: at + width };
      out.push(next);
      stack.push(next);
      at += width;
    }
  }
  return out;
}

export interface Tile {
  index: number;
  x: number;
  y: number;
  w: number;
  h: number;
}
/** A squarified treemap (Bruls, Huizing, van Wijk 2000) of values that are sorted, the largest first. */
export function treemap(values: number[], width: number, height: number): Tile[] {
  const out: Tile[] = [];
  const sum = values.reduce((a, b) => a + b, 0);
  if (!(sum > 0)) return out;
  const scale = (width * height) / sum;
  let [x, y, w, h] = [0, 0, width, height];
  let begin = 0;
  while (begin < values.length && values[begin] > 0) {
    const side = Math.min(w, h);
    let row = 0;
    let end = begin;
    let worst = Infinity;
    while (end < values.length && values[end] > 0) {
      const area = values[end] * scale;
      const next = row + area;
      const ratio = Math.max((side * side * values[begin] * scale) / (next * next), (next * next) / (side * side * area));
      if (ratio > worst) break;
      worst = ratio;
      row = next;
      ++end;
    }
    const thick = side > 0 ? row / side : 0;
    let at = 0;
    for (let i = begin; i < end; ++i) {
      const long = (values[i] * scale) / Math.max(thick, 1e-9);
      out.push(w >= h ? { index: i, x, y: y + at, w: thick, h: long } : { index: i, x: x + at, y, w: long, h: thick });
      at += long;
    }
    if (w >= h) (x += thick), (w -= thick);
    else (y += thick), (h -= thick);
    begin = end;
  }
  return out;
}

/** The node that stands for a chain of nodes which hold all that the one above holds: the last of them. */
export function settled(tree: Tree, node: number): number {
  let at = node;
  while (tree.children[at].length === 1 && tree.bytes[tree.children[at][0]] === tree.bytes[at]) at = tree.children[at][0];
  return at;
}
/** The nodes on the way to a node that are shown as themselves; the root stands for the chain that it begins. */
export function stations(tree: Tree, node: number): number[] {
  const first = settled(tree, 0);
  return [0, ...path_to(tree, node).filter((at) => at === node || (at !== first && settled(tree, at) === at))];
}

export interface Nested {
  node: number;
  group: number; // the outermost tile that it lies in
  bytes: number;
  is_own: boolean; // what the node holds beside its children
  is_open: boolean; // its children lie inside of it, below its name
  x: number;
  y: number;
  w: number;
  h: number;
}
export const TILE_HEAD = 20; // pixels for the name of an open tile
const TILE_EDGE = 3;
const LEAST_TILE = 3;
/** Tiles in tiles, as deep as there is room for a name; a tile comes before those inside of it. Tiles of less than three
 *  pixels are left out: the tile around them shows there. */
export function nested_treemap(tree: Tree, top: number, width: number, height: number): Nested[] {
  const out: Nested[] = [];
  const place = (of: number, group: number, x: number, y: number, w: number, h: number) => {
    const parts = tree.children[of].map((node) => ({ node: settled(tree, node), bytes: tree.bytes[node], is_own: false }));
    const rest = tree.bytes[of] - parts.reduce((sum, part) => sum + part.bytes, 0);
    if (rest > 0) parts.push({ node: of, bytes: rest, is_own: true });
    parts.sort((a, b) => b.bytes - a.bytes);
    for (const tile of treemap(parts.map((part) => part.bytes), w, h)) {
      if (tile.w < LEAST_TILE || tile.h < LEAST_TILE) continue;
      const part = parts[tile.index];
      const has_room = tile.w >= 60 && tile.h >= TILE_HEAD + 16;
      const is_open = has_room && !part.is_own && tree.children[part.node].length > 0;
      const box = { ...part, group: group < 0 ? part.node : group, is_open, x: x + tile.x, y: y + tile.y, w: tile.w, h: tile.h };
      out.push(box);
      if (is_open) place(part.node, box.group, box.x + TILE_EDGE, box.y + TILE_HEAD, box.w - 2 * TILE_EDGE, box.h - TILE_HEAD - TILE_EDGE);
    }
  };
  if (top >= tree.bytes.length) return out;
  const shown = settled(tree, top);
  place(tree.children[shown].length ? shown : Math.max(0, tree.parent[shown]), -1, 0, 0, width, height);
  return out;
}

const FIELD = /^(?:(?:bytes|lived)[<>=]|(?:category|module|stream|process|thread):)|^not$/;
/** Whether a label matches the search: a substring, or /a pattern/. Null as well where the search is about blocks alone ("bytes>1MiB"). */
export function matcher(text: string): ((label: string) => boolean) | null {
  if (!text || text.trim().split(/\s+/).some((word) => FIELD.test(word))) return null;
  const pattern = /^\/(.+)\/$/.exec(text);
  if (pattern) {
    try {
      const expression = new RegExp(pattern[1], "i");
      return (label) => expression.test(label.slice(0, 2000));
    } catch {
      return () => false;
    }
  }
  const wanted = text.toLowerCase();
  return (label) => label.toLowerCase().includes(wanted);
}

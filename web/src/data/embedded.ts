// Answers embedded in the page. Where an exact one is missing, the nearest is given, with a note that says so.
import { Answer, decode } from "./columns.ts";
import { key_of, StoreError } from "./store.ts";
import type { Query, Store } from "./store.ts";

export interface Embedded {
  answers: Record<string, string>;
  note?: string;
  start?: string; // the first view, as an address
}

interface Kept {
  key: string;
  path: string;
  query: Map<string, string>;
}

const RANGE = new Set(["from", "to", "columns", "limit", "event"]);

export class EmbeddedStore implements Store {
  readonly kind = "embedded";
  readonly note: string | null;
  readonly start: string;
  private readonly kept: Kept[];
  private readonly answers: Record<string, string>;
  private readonly decoded = new Map<string, Promise<Answer>>();

  constructor(data: Embedded) {
    this.answers = data.answers;
    this.note = data.note || null;
    this.start = data.start ?? "";
    this.kept = Object.keys(data.answers).map((key) => {
      const [path, rest = ""] = key.split("?", 2);
      return { key, path, query: new Map(new URLSearchParams(rest)) };
    });
  }

  async ask(path: string, query: Query): Promise<Answer> {
    const exact = key_of(path, query);
    if (Object.hasOwn(this.answers, exact)) return this.open(exact);
    // Where the recorded settings cannot be replayed, no others can.
    const recorded = path === "whatif" ? key_of(path, { ...query, settings: "", capacity: "" }) : "";
    if (Object.hasOwn(this.answers, recorded)) {
      const answer = await this.open(recorded);
      if (answer.unknown) return answer;
    }
    const nearest = this.nearest(path, query);
    if (!nearest) throw new StoreError(missing(path, query));
    const answer = await this.open(nearest.key);
    const copy = Object.assign(Object.create(Object.getPrototypeOf(answer)), answer) as Answer;
    copy.summary = summary_of(path, nearest, query);
    return copy;
  }

  has(path: string, query: Query): boolean {
    return this.nearest(path, query) !== undefined;
  }

  /** The answer whose moment is nearest, or whose range is the narrowest that covers the query's. */
  private nearest(path: string, query: Query): Kept | undefined {
    const same = this.kept.filter(
      (kept) =>
        kept.path === path &&
        [...Object.keys(query), ...kept.query.keys()].every(
          (name) => RANGE.has(name) || String(query[name] ?? "") === (kept.query.get(name) ?? ""),
        ),
    );
    const number = (kept: Kept, name: string) => Number(kept.query.get(name) ?? NaN);
    if (query.event !== undefined && query.event !== null) {
      const wanted = Number(query.event);
      const distance = (kept: Kept) => Math.abs(number(kept, "event") - wanted);
      return same.filter((kept) => kept.query.has("event")).sort((a, b) => distance(a) - distance(b))[0];
    }
    const from = Number(query.from ?? 0);
    const to = Number(query.to ?? 0);
    const ranged = same.filter((kept) => kept.query.has("from") && !kept.query.has("event"));
    const span = (kept: Kept) => number(kept, "to") - number(kept, "from");
    const covering = ranged.filter((kept) => number(kept, "from") <= from && number(kept, "to") >= to);
    return covering.sort((a, b) => span(a) - span(b))[0] ?? ranged.sort((a, b) => span(b) - span(a))[0];
  }

  private open(key: string): Promise<Answer> {
    let answer = this.decoded.get(key);
    if (!answer) {
      answer = inflate(this.answers[key]).then(decode);
      this.decoded.set(key, answer);
    }
    return answer;
  }
}

async function inflate(text: string): Promise<ArrayBuffer> {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Response(stream).arrayBuffer();
}

function summary_of(path: string, kept: Kept, query: Query): string | null {
  const count = (value: unknown) => Number(value).toLocaleString("en");
  // A range ends before the moment that it names last.
  const range = (from: unknown, to: unknown) => `events ${count(from)} to ${count(Number(to) - 1)}`;
  if (kept.query.has("event")) {
    const is_it = kept.query.get("event") === String(query.event);
    const shown = count(kept.query.get("event"));
    return is_it ? null : `Not in this file: event ${count(query.event)}. Shown: event ${shown}, the nearest one.`;
  }
  if (kept.query.get("from") === String(query.from) && kept.query.get("to") === String(query.to)) return null;
  // Levels of a wider range still cover the requested one, more coarsely; other answers are about the wider range.
  if (path === "levels" || path === "times") return "This file has a summary of this range.";
  const shown = range(kept.query.get("from"), kept.query.get("to"));
  return `Not in this file: ${range(query.from, query.to)}. Shown: ${shown}, the nearest range.`;
}

function missing(path: string, query: Query): string {
  const what = query.filter ? "filtered views" : (NAMES[path] ?? path);
  return `This file does not contain ${what}. Open the recording with \`gpumemprof view\` instead.`;
}
const NAMES: Record<string, string> = {
  blocks: "the blocks of this range",
  space: "the address space at this moment",
  space_time: "the address space over time",
  holders: "the holders at this moment",
  search: "search results",
  block: "details of this block",
  whatif: "a replay with these settings",
  source: "source code",
  compare: "this comparison",
};

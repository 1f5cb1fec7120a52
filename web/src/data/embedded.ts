// Answers that the page carries itself. What it does not hold it answers with the nearest it has, and says so.
import { Answer, decode } from "./columns.ts";
import { key_of, StoreError } from "./store.ts";
import type { Query, Store } from "./store.ts";

export interface Embedded {
  answers: Record<string, string>;
  note?: string;
  start?: string; // what is looked at first, as the address says it
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

  /** Of the answers to the same question, the one whose range covers what is asked and is narrowest, or whose moment is nearest. */
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
  const number = (name: string) => Number(kept.query.get(name)).toLocaleString("en");
  if (kept.query.has("event")) {
    return kept.query.get("event") === String(query.event) ? null : `This file keeps some moments. Shown: event ${number("event")}, the nearest.`;
  }
  if (kept.query.get("from") === String(query.from) && kept.query.get("to") === String(query.to)) return null;
  // Levels of a wider range are coarser and still of the range that is asked for; other answers are of the wider one.
  if (path === "levels" || path === "times") return "This file keeps a summary of this range.";
  return `This file keeps some ranges. Shown: events ${number("from")} to ${number("to")}.`;
}

function missing(path: string, query: Query): string {
  const what = query.filter ? "answers with a filter" : (NAMES[path] ?? path);
  return `This file does not keep ${what}. \`gpumemprof view\` on the recording shows it.`;
}
const NAMES: Record<string, string> = {
  blocks: "single blocks here",
  space: "the address space of this moment",
  space_time: "the address space through time",
  holders: "the holders of this moment",
  search: "answers to searches",
  block: "this block's facts",
  whatif: "other settings",
  source: "lines of source",
};

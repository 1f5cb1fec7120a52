// The source of the page's data. Views do not know whether a server or the page itself answers.
import { Answer } from "./columns.ts";

export type Query = Record<string, string | number | undefined | null>;

export interface Store {
  /** "server" answers everything; "embedded" only what the page contains. */
  readonly kind: "server" | "embedded";
  /** For a page that is a summary, how far it is exact; else null. */
  readonly note: string | null;
  /** A new query in a `slot` cancels the pending one there. Rejects with a one-line error. */
  ask(path: string, query: Query, slot?: string): Promise<Answer>;
  /** Whether there is an answer, maybe of another range or moment. */
  has(path: string, query: Query): boolean;
}

/** An error as one line. */
export class StoreError extends Error {
  /** The position of the error in a filter, in characters. */
  readonly at: number | null;
  constructor(text: string, at: number | null = null) {
    super(text);
    this.at = at;
  }
}
/** A newer query of the same slot replaced this one; show nothing. */
export class Superseded extends Error {}

/** Canonical key of a query: names sorted, empty values left out. */
export function key_of(path: string, query: Query): string {
  const parts = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null && value !== "")
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return parts.length ? `${path}?${parts.join("&")}` : path;
}

/** Keeps the most recently used answers, up to a number of bytes. */
export class Cache {
  private readonly entries = new Map<string, Answer>();
  private held_bytes = 0;
  private readonly limit_bytes: number;
  constructor(limit_bytes: number) {
    this.limit_bytes = limit_bytes;
  }

  get(key: string): Answer | undefined {
    const found = this.entries.get(key);
    if (found) {
      this.entries.delete(key);
      this.entries.set(key, found);
    }
    return found;
  }
  put(key: string, answer: Answer): void {
    this.drop(key);
    this.entries.set(key, answer);
    this.held_bytes += answer.size_bytes;
    for (const oldest of this.entries.keys()) {
      if (this.held_bytes <= this.limit_bytes || oldest === key) break;
      this.drop(oldest);
    }
  }
  get size_bytes(): number {
    return this.held_bytes;
  }
  private drop(key: string): void {
    const old = this.entries.get(key);
    if (!old) return;
    this.held_bytes -= old.size_bytes;
    this.entries.delete(key);
  }
}

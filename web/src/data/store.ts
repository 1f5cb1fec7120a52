// Where the page's data comes from. Views ask a Store and never know whether a server answers or the page itself.
import { Answer } from "./columns.ts";

export type Query = Record<string, string | number | undefined | null>;

export interface Store {
  /** "server" or "embedded"; the page says what an embedded one cannot answer. */
  readonly kind: "server" | "embedded";
  /** What the page says of itself where it is a summary, else null. */
  readonly note: string | null;
  /** `slot` names who asks: an answer that is still on its way to the same slot is given up. Rejects with one line. */
  ask(path: string, query: Query, slot?: string): Promise<Answer>;
  /** Whether there is an answer, maybe of another range or moment. */
  has(path: string, query: Query): boolean;
}

/** One line for whatever went wrong. */
export class StoreError extends Error {
  /** Where in a filter it went wrong, in characters. */
  readonly at: number | null;
  constructor(text: string, at: number | null = null) {
    super(text);
    this.at = at;
  }
}
/** A newer question of the same slot took its place: nothing to show. */
export class Superseded extends Error {}

/** The same for the same question: names sorted, empty ones left out. */
export function key_of(path: string, query: Query): string {
  const parts = Object.entries(query)
    .filter(([, value]) => value !== undefined && value !== null && value !== "")
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`);
  return parts.length ? `${path}?${parts.join("&")}` : path;
}

/** Keeps what was used last, up to so many bytes. */
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

// Answers of `gpumemprof view` and `serve`, over HTTP from the page's own origin.
import { Answer, decode } from "./columns.ts";
import { Cache, key_of, StoreError, Superseded } from "./store.ts";
import type { Query, Store } from "./store.ts";

const CACHE_BYTES = 64 * 1024 * 1024;
/** What is answered otherwise the next time. */
const CHANGING = new Set(["run", "state", "read_again"]);

export class ServerStore implements Store {
  readonly kind = "server";
  readonly note = null;
  private readonly cache = new Cache(CACHE_BYTES);
  private readonly running = new Map<string, { key: string; abort: AbortController; answer: Promise<Answer> }>();
  private readonly token: string;
  private readonly base: string;

  constructor(token: string, base = "") {
    this.token = token;
    this.base = base;
  }

  async ask(path: string, query: Query, slot = path): Promise<Answer> {
    const key = key_of(path, query);
    const kept = CHANGING.has(path) ? undefined : this.cache.get(key);
    const before = this.running.get(slot);
    if (before && before.key === key) return before.answer;
    before?.abort.abort();
    if (kept) {
      this.running.delete(slot);
      return kept;
    }
    const abort = new AbortController();
    const answer = this.fetch(key, { signal: abort.signal }).then(
      (value) => {
        if (!CHANGING.has(path)) this.cache.put(key, value);
        return value;
      },
      (error) => {
        if (abort.signal.aborted) throw new Superseded();
        throw error;
      },
    );
    const entry = { key, abort, answer };
    this.running.set(slot, entry);
    const done = () => this.running.get(slot) === entry && this.running.delete(slot);
    answer.then(done, done);
    return answer;
  }

  /** The same server, and nothing remembered. */
  fresh(): ServerStore {
    return new ServerStore(this.token, this.base);
  }
  /** Sends a file; its number. Rejects with one line. */
  async send(path: string, query: Query, body: Blob): Promise<number> {
    return (await this.fetch(key_of(path, query), { method: "PUT", body })).head.file;
  }

  has(): boolean {
    return true;
  }

  private async fetch(key: string, how: RequestInit): Promise<Answer> {
    const address = `${this.base}api/v1/${key}${key.includes("?") ? "&" : "?"}token=${encodeURIComponent(this.token)}`;
    let response: Response;
    try {
      response = await fetch(address, how);
    } catch (error) {
      if (how.signal?.aborted) throw error;
      throw new StoreError("The command that serves this page does not respond; it may have exited.");
    }
    const is_json = (response.headers.get("content-type") ?? "").startsWith("application/json");
    if (!response.ok) {
      const body = is_json ? await response.json().catch(() => ({})) : {};
      throw new StoreError(body.error ?? `The server returned status ${response.status}.`, body.at ?? null);
    }
    if (is_json) return new Answer(await response.json());
    return decode(await response.arrayBuffer());
  }
}

// Answers of `gpumemprof view` and `serve`, over HTTP from the page's own origin.
import { Answer, decode } from "./columns.ts";
import { Cache, key_of, StoreError, Superseded } from "./store.ts";
import type { Query, Store } from "./store.ts";

const CACHE_BYTES = 64 * 1024 * 1024;

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
    const kept = path === "run" ? undefined : this.cache.get(key);
    const before = this.running.get(slot);
    if (before && before.key === key) return before.answer;
    before?.abort.abort();
    if (kept) {
      this.running.delete(slot);
      return kept;
    }
    const abort = new AbortController();
    const answer = this.fetch(key, abort.signal).then(
      (value) => {
        if (path !== "run") this.cache.put(key, value);
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

  private async fetch(key: string, signal: AbortSignal): Promise<Answer> {
    const address = `${this.base}api/v1/${key}${key.includes("?") ? "&" : "?"}token=${encodeURIComponent(this.token)}`;
    let response: Response;
    try {
      response = await fetch(address, { signal });
    } catch (error) {
      if (signal.aborted) throw error;
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

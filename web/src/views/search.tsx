// The search: its box, the blocks that it finds one after the other, and the filter that is made of it.
import { computed, signal } from "@preact/signals";
import * as format from "../format.ts";
import { moment, refused, store, subject } from "../state/run.ts";
import { go, part } from "../state/view.ts";
import { choose } from "./moves.ts";
import { hits } from "./time_data.ts";

const search = part("search");
const filter = part("filter");

interface Found {
  of: string; // the search, file and device
  id: number;
  event: number;
  position: number;
  matches: number;
  size_bytes: number;
  line: string;
}
const last = signal<Found | null>(null);
const key = (q: string) => JSON.stringify({ ...subject(), q });
/** The block that n or N went to, as long as its moment is the chosen one. */
const found = computed(() => (last.value?.of === key(search.value) && last.value.event === moment.value ? last.value : null));

/** Goes to the next or previous block that matches the search. */
export async function next_hit(direction: 1 | -1): Promise<void> {
  const q = search.value;
  if (!q || !store.value) return;
  const of = key(q);
  const answer = await store.value.ask("block_next", { ...subject(), q, after: moment.value, direction }).catch(() => null);
  if (!answer || answer.head.id == null || of !== key(search.value)) return;
  const { id, event, position, matches, size_bytes, line } = answer.head;
  last.value = { of, id, event, position, matches, size_bytes, line };
  choose(event, { block: id });
}
const make_filter = () => go({ filter: search.value });

export function SearchBox() {
  const typed = search.value;
  const { error_at, query, error } = hits.value;
  const wrong = !typed ? null : refused.value?.text === typed ? refused.value.why : error_at !== null && query.q === typed ? error : null;
  const press = (event: KeyboardEvent) => {
    const box = event.currentTarget as HTMLInputElement;
    if (event.key === "Enter") {
      event.preventDefault();
      if (event.ctrlKey || event.metaKey) return make_filter();
      if (wrong) return;
      box.blur();
      void next_hit(1);
    } else if (event.key === "Escape") {
      // A browser would empty the box alone.
      event.preventDefault();
      go({ search: "" });
      box.blur();
    }
  };
  return (
    <form class="search" role="search" onSubmit={(event) => event.preventDefault()}>
      <input
        id="search-box" type="search" aria-label="Search; Enter goes to the next match, Ctrl+Enter filters all views" placeholder="Search: conv bytes>1MiB" value={typed}
        aria-invalid={!!wrong} aria-describedby={wrong ? "search-error" : undefined}
        onInput={(event) => go({ search: event.currentTarget.value })} onKeyDown={press} maxLength={1000} spellcheck={false}
      />
      {typed && typed !== filter.value
        ? <button type="button" onClick={make_filter} title="Show only these blocks in all views (Ctrl+Enter)">Filter</button>
        : <kbd>/</kbd>}
      {wrong ? <span id="search-error" class="why bad" role="alert">{format.plain(wrong)}</span> : null}
    </form>
  );
}

/** How many blocks match, and which of them was gone to. */
export function SearchState() {
  const { answer } = hits.value;
  if (!search.value) return null;
  const one = found.value;
  if (one) {
    const line = one.line ? `, ${format.frame_line(one.line)}` : "";
    const text = `${format.count(one.position)} of ${format.count(one.matches)}: ${format.bytes(one.size_bytes)}${line}`;
    return <span class="found cut n" role="status" title={text}>{text}</span>;
  }
  return answer ? <span class="found cut dim n" role="status">{format.plural(answer.head.matches ?? 0, "block")}, {format.bytes(answer.head.bytes)}</span> : null;
}

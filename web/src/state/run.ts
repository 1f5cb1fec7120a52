// The open files, the chosen file and device, and queries that follow the view.
import { computed, effect, signal } from "@preact/signals";
import type { ReadonlySignal } from "@preact/signals";
import { Superseded } from "../data/store.ts";
import type { Query, Store } from "../data/store.ts";
import type { Answer } from "../data/columns.ts";
import type { Device, RunFile } from "../data/types.ts";
import { amend, part, START, view } from "./view.ts";
import type { View } from "./view.ts";

export const store = signal<Store | null>(null);
export const files = signal<RunFile[]>([]);
export const failure = signal<string | null>(null);
/** Why the page no longer follows its source. */
export const lost = signal<string | null>(null);
export const loading = signal<{ share: number; text: string } | null>(null);

export const file = computed<RunFile | null>(() => files.value[view.value.file] ?? files.value[0] ?? null);
export const device = computed<Device | null>(() => {
  const devices = file.value?.devices ?? [];
  return devices[view.value.device] ?? devices[0] ?? null;
});

export const has_times = computed(() => device.value?.first_time_ns != null && device.value.has_times !== false);
/** A file of one moment has no history: what is live in it was live before, and no event changes it. */
export const is_one_moment = computed(() => {
  const of = device.value;
  return !!of && of.events <= 1 && of.base_bytes > 0 && of.peak?.bytes === of.base_bytes && of.end_bytes === of.base_bytes;
});

/** How many moments there are: before the first event, and after each. */
export const moments = computed(() => (device.value?.events ?? 0) + 1);

/** The visible moments: at least one, inside of the device's. */
export const visible = computed<[number, number]>(() => {
  const events = moments.value;
  const { from, to } = view.value;
  if (to <= from) return [0, events];
  const low = Math.max(0, Math.min(from, events - 1));
  return [low, Math.max(low + 1, Math.min(to, events))];
});
/** The moment that the other views show: the clicked one, else the peak. */
export const moment = computed<number>(() => {
  const chosen = view.value.moment;
  const events = device.value?.events ?? 0;
  return chosen < 0 ? (device.value?.peak?.event ?? events) : Math.min(chosen, events);
});
export const is_peak = computed(() => moment.value === device.value?.peak?.event);
export const range = computed<[number, number] | null>(() => {
  const { range_from, range_to } = view.value;
  return range_from >= 0 && range_to > range_from ? [range_from, range_to] : null;
});

/** What the page begins with where an address does not say: of a file the device that its report is about, and the report
 *  where there are no events. One band of an unknown category would say nothing. */
export function beginning(file_index: number, device_index: number | null): View {
  const opened = files.value;
  const devices = (opened[file_index] ?? opened[0])?.devices ?? [];
  const main = Math.max(0, devices.findIndex((one) => one.is_main));
  const has_no_category = devices[device_index ?? main]?.unknown?.some((one) => one.what === "category");
  const is_report = opened.length > 0 && opened.every((one) => !one.devices?.length && one.document);
  // Two runs in a page are there to be compared; a server's address says so itself, as files may be added to it.
  const is_comparison = store.value?.kind === "embedded" && opened.length === 2 && opened.every((one) => one.devices?.length);
  return { ...START, device: main, by: has_no_category ? "line" : START.by, tab: is_report ? "report" : is_comparison ? "compare" : START.tab };
}
/** The file and device of a query. */
export function subject(): Query {
  return { file: view.value.file, device: view.value.device };
}

export interface Asked {
  answer: Answer | null; // the newest, also while the next is loading
  query: Query;
  error: string | null;
  error_at: number | null;
  is_waiting: boolean;
}
/** A filter that was refused, and why: the views keep the last one that was not. */
export const refused = signal<{ text: string; why: string } | null>(null);
let last_filter = "";
function refuse(text: string, why: string): void {
  refused.value = { text, why };
  amend({ filter: text === last_filter ? "" : last_filter, search: text });
}
const NOTHING: Asked = { answer: null, query: {}, error: null, error_at: null, is_waiting: false };

/** A query that is repeated whenever a signal that `query` reads changes; null asks nothing. */
export function ask(path: string, query: () => Query | null, options: { slot?: string; wait_ms?: number } = {}): ReadonlySignal<Asked> {
  const asked = signal<Asked>(NOTHING);
  const slot = options.slot ?? path;
  const wanted = computed(() => {
    const value = query();
    return value && JSON.stringify(value);
  });
  effect(() => {
    const from = store.value;
    const text = wanted.value;
    if (!from) return;
    if (text === null) {
      asked.value = NOTHING;
      return;
    }
    const value = JSON.parse(text) as Query;
    let is_current = true;
    asked.value = { ...asked.peek(), is_waiting: true };
    const timer = setTimeout(() => {
      from.ask(path, value, slot).then(
        (answer) => {
          if (!is_current) return;
          if ("filter" in value) last_filter = String(value.filter ?? "");
          asked.value = { answer, query: value, error: null, error_at: null, is_waiting: false };
        },
        (error) => {
          if (!is_current || error instanceof Superseded) return;
          const at = typeof error.at === "number" ? error.at : null;
          // A page in a file has no levels of a filter that nobody asked for when it was written.
          if (value.filter && (at !== null || (from.kind === "embedded" && path === "levels"))) return refuse(String(value.filter), error.message);
          asked.value = { answer: null, query: value, error: String(error.message), error_at: at, is_waiting: false };
        },
      );
    }, options.wait_ms ?? 0);
    return () => {
      is_current = false;
      clearTimeout(timer);
    };
  });
  return asked;
}

export const filter = part("filter");

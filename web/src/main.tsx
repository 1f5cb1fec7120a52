// Starts the page: chooses the store, opens the run, and keeps the address and the view equal.
import { effect } from "@preact/signals";
import { render } from "preact";
import { App } from "./app.tsx";
import { EmbeddedStore } from "./data/embedded.ts";
import { ServerStore } from "./data/server.ts";
import type { Store } from "./data/store.ts";
import { is_dark } from "./draw/palette.ts";
import { listen_to_keys } from "./keys.tsx";
import { beginning, failure, files, loading, store } from "./state/run.ts";
import { listen_to_drops, open_run, watch } from "./state/source.ts";
import { from_hash, go, is_elsewhere, open, START, to_hash, view } from "./state/view.ts";
import type { View } from "./state/view.ts";
import { Live } from "./views/live.tsx";

function find_store(): Store {
  const carried = document.getElementById("gpumemprof-data")?.textContent;
  if (carried) return new EmbeddedStore(JSON.parse(carried));
  return new ServerStore(new URLSearchParams(location.search).get("token") ?? "");
}

/** The view that the newest entry of the browser's history has. */
let written = START;
function show(value: View): void {
  open((written = value));
}

/** Once a file's devices are known: what neither the address nor the reader has said. */
function begin(hash: string): void {
  const now = view.peek();
  const wanted = from_hash(hash, beginning);
  const said = new URLSearchParams(hash.replace(/^#/, ""));
  const unsaid = (["device", "by", "tab"] as const).filter((name) => !said.has(name) && now[name] === START[name]);
  show({ ...now, ...Object.fromEntries(unsaid.map((name) => [name, wanted[name]])) });
}
/** The view's address. */
const address_of = (value: View) => to_hash(value, beginning(value.file, value.device));

function start_theme(): void {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem("theme");
  } catch {
    // A file opened from a disk may have no storage.
  }
  const system = matchMedia("(prefers-color-scheme: dark)");
  is_dark.value = kept ? kept === "dark" : system.matches;
  if (!kept) system.addEventListener("change", () => (is_dark.value = system.matches));
  effect(() => {
    document.documentElement.dataset.theme = is_dark.value ? "dark" : "light";
  });
}

function start(): void {
  start_theme();
  const live = document.getElementById("gpumemprof-live");
  if (live) {
    render(<Live />, document.getElementById("page")!);
    return;
  }
  show(from_hash(location.hash));
  addEventListener("hashchange", () => {
    if (location.hash.replace(/^#/, "") !== address_of(view.peek())) go((written = from_hash(location.hash, beginning)));
  });
  let timer = 0;
  effect(() => {
    const now = view.value;
    // What the page begins with is not known before the first file is: until then the address stays as it was given.
    if (files.value.length === 0 || loading.value) return;
    const hash = address_of(now);
    // Browsers refuse an address that changes too often.
    clearTimeout(timer);
    timer = setTimeout(() => {
      // A frame in a notebook has no address of its own.
      if (location.protocol === "about:" || location.hash.replace(/^#/, "") === hash) return;
      const address = `${location.pathname}${location.search}${hash ? `#${hash}` : ""}`;
      history[is_elsewhere(written, now) ? "pushState" : "replaceState"](null, "", address);
      written = now;
    }, 250) as unknown as number;
  });
  listen_to_keys();
  render(<App />, document.getElementById("page")!);
  try {
    const from = find_store();
    store.value = from;
    const start = location.hash || (from instanceof EmbeddedStore ? from.start : "");
    show(from_hash(start));
    void open_run(from, () => begin(start)).then((is_open) => {
      if (is_open && from.kind === "server") void watch(from);
    });
    listen_to_drops();
  } catch (error) {
    failure.value = `Cannot read this page's data: ${(error as Error).message}`;
  }
}
start();

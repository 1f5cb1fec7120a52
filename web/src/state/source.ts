// Where the files come from: whether they have changed since they were read, and files that are dropped onto the page.
import { signal } from "@preact/signals";
import { ServerStore } from "../data/server.ts";
import type { Store } from "../data/store.ts";
import { beginning, failure, files, loading, lost, store } from "./run.ts";
import { amend, go, view } from "./view.ts";

const POLL_MS = 300;
const LOOK_MS = 3000;
export const MOST_DROPPED_BYTES = 4 * 2 ** 30; // as the server has it

/** What is to be known of the files while the page is open; null: nothing. */
export interface Growth {
  file: number;
  text: string;
  is_reading: boolean;
}
export const growth = signal<Growth | null>(null);
/** Why a dropped file is not shown, or how far it is. */
export const dropped = signal<{ text: string; is_bad: boolean } | null>(null);
export const is_dragged_over = signal(false);

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
const name_of = (index: number) => files.value[index]?.name ?? "The file";

/** Asks for the run until all of it is read. False: it never will be. */
export async function open_run(from: Store, on_first: () => void = () => {}): Promise<boolean> {
  for (;;) {
    try {
      const { head } = await from.ask("run", {});
      loading.value = head.loading ?? null;
      if (head.files?.length) {
        const is_first = !files.value.some((one) => one.devices?.length);
        files.value = head.files;
        if (is_first) on_first();
      }
      if (!head.loading && !head.files?.length) failure.value = head.error ?? "No file to show.";
      if (!head.loading && !head.refresh_ms) return true;
      lost.value = null;
      await sleep(head.loading ? POLL_MS : head.refresh_ms);
    } catch (error) {
      failure.value = (error as Error).message;
      lost.value = failure.value;
      return false;
    }
  }
}

interface FileState {
  generation: number;
  is_written: boolean;
  has_changed: boolean;
  progress: number | null;
  error: string | null;
}
async function states(from: Store): Promise<FileState[]> {
  return (await from.ask("state", {}, "state")).head.files ?? [];
}
/** Says when a file has changed, as long as the page is looked at and the command answers. */
export async function watch(from: Store): Promise<void> {
  for (;;) {
    await sleep(LOOK_MS);
    if (document.hidden || growth.value?.is_reading) continue;
    try {
      const now = await states(from);
      const index = now.findIndex((one) => one.is_written || one.has_changed);
      if (growth.value?.is_reading) continue;
      growth.value = index < 0 ? null : {
        file: index, is_reading: false,
        text: now[index].is_written ? `${name_of(index)} is still being written: the page shows it as it was when it was read.` : `${name_of(index)} has changed since it was read.`,
      };
    } catch {
      return; // What shows the run says why.
    }
  }
}
/** Reads a file again; what is shown stays until it is read. */
export async function read_again(index: number): Promise<void> {
  const from = store.value;
  if (!from) return;
  const say = (text: string, is_reading: boolean) => (growth.value = { file: index, text, is_reading });
  try {
    say(`Reading ${name_of(index)} again`, true);
    const before = (await from.ask("read_again", { file: index }, "read again")).head.files[index] as FileState;
    for (;;) {
      await sleep(POLL_MS);
      const now = (await states(from))[index];
      if (now.error) return void say(`${name_of(index)}: ${now.error}`, false);
      if (now.generation !== before.generation) break;
      say(`Reading ${name_of(index)} again: ${Math.round(100 * (now.progress ?? 0))} %`, true);
    }
    await start_anew(from);
    growth.value = null;
  } catch (error) {
    say((error as Error).message, false);
  }
}
/** No answer of before is of use any more. */
async function start_anew(from: Store): Promise<void> {
  const fresh = from instanceof ServerStore ? from.fresh() : from;
  if (!(await open_run(fresh))) return;
  amend({ inside: 0, inside_change: 0 }); // the nodes are others
  store.value = fresh;
}

/** Sends a file to the command that serves the page, on this machine, and shows it beside the others. */
export async function open_dropped(transfer: DataTransfer): Promise<void> {
  const from = store.value;
  const entry = transfer.items[0]?.webkitGetAsEntry?.();
  const file = transfer.files[0];
  const say = (text: string, is_bad = false) => (dropped.value = { text, is_bad });
  if (!(from instanceof ServerStore)) return void say("This page is a file: it cannot read others. `gpumemprof view FILE` shows them.", true);
  if (entry?.isDirectory) return void say("A browser hands over no folders: `gpumemprof view FOLDER` shows it.", true);
  if (!file) return void say("No file was dropped.", true);
  if (file.size > MOST_DROPPED_BYTES) return void say("More than 4 GiB: `gpumemprof view FILE` shows it without a copy.", true);
  try {
    say(`Sending ${file.name}`);
    const number = await from.send("file", { name: file.name }, file);
    say(`Reading ${file.name}`);
    const fresh = from.fresh();
    if (!(await open_run(fresh))) return;
    store.value = fresh;
    const failed = files.value[number]?.error;
    if (failed) return void (dropped.value = null); // The remarks have it.
    // Who compares keeps the baseline, A.
    if (view.peek().tab === "compare") go({ other: number, other_device: -1, at_b: -1 });
    else go({ file: number, device: beginning(number, null).device, filter: "", focus: "" });
    dropped.value = null;
  } catch (error) {
    say((error as Error).message, true);
  }
}

export function listen_to_drops(): void {
  let depth = 0;
  const has_files = (event: DragEvent) => event.dataTransfer?.types.includes("Files") ?? false;
  addEventListener("dragenter", (event) => {
    if (has_files(event)) ++depth, (is_dragged_over.value = true);
  });
  addEventListener("dragleave", (event) => {
    if (has_files(event) && --depth <= 0) (depth = 0), (is_dragged_over.value = false);
  });
  addEventListener("dragover", (event) => has_files(event) && event.preventDefault());
  addEventListener("drop", (event) => {
    if (!has_files(event)) return;
    event.preventDefault();
    depth = 0;
    is_dragged_over.value = false;
    void open_dropped(event.dataTransfer!);
  });
}

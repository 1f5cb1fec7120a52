// What this tab has seen of the recordings that `serve` shows. The server keeps no history: the tab does, over a reload.
import { signal } from "@preact/signals";
import type { LiveDevice, LiveRecording, Picture } from "../data/picture.ts";

export const KEPT = 600; // samples that a curve shows
const GAP_NS = 10e9; // between two samples: nobody looked
const STORED = "gpumemprof-live";

export interface Look {
  time_ns: number;
  allocated: number;
  reserved: number; // NaN: unknown
}
/** A recording that was live when this tab last looked. */
export interface Seen {
  host: string;
  pid: number;
  rank: number | null;
  program: string;
  folder: string;
  peaks: { device: string; bytes: number }[];
  time_ns: number;
}
export const picture = signal<Picture | null>(null);
/** Those that this tab saw end, the latest first. */
export const ended = signal<Seen[]>([]);
let running: Seen[] = [];
let looks = new Map<string, Look[]>();
let host: string | null = null;

type Of = { host: string; pid: number; folder: string };
const name_of = ({ host, pid, folder }: Of) => `${host} ${pid} ${folder}`;
const key_of = (of: Of, device: LiveDevice) => `${name_of(of)} ${device.device}`;
const seen = (of: LiveRecording, time_ns: number): Seen => ({
  host: of.host, pid: of.pid, rank: of.rank, program: of.program, folder: of.folder, time_ns,
  peaks: of.devices.map(({ device, peak_bytes }) => ({ device, bytes: peak_bytes })),
});

export function take(next: Picture): void {
  if (host !== null && host !== next.host) forget();
  host = next.host;
  const before = looks;
  looks = new Map();
  for (const recording of next.recordings)
    for (const device of recording.devices) {
      const key = key_of(recording, device);
      const kept = before.get(key) ?? [];
      if ((kept.at(-1)?.time_ns ?? -1) < next.time_ns) kept.push({ time_ns: next.time_ns, allocated: device.allocated_bytes, reserved: device.reserved_bytes ?? NaN });
      looks.set(key, kept.slice(-KEPT));
    }
  const now = new Set(next.recordings.map(name_of));
  const gone = running.filter((of) => !now.has(name_of(of))).map((of) => ({ ...of, time_ns: next.time_ns }));
  const back = ended.value.some((of) => now.has(name_of(of)));
  if (gone.length || back) ended.value = [...gone, ...ended.value.filter((of) => !now.has(name_of(of)))].slice(0, 50);
  running = next.recordings.map((of) => seen(of, next.time_ns));
  picture.value = next;
}
/** The samples of a device; where nobody looked there is one of NaN. */
export function looks_of(recording: Of, device: LiveDevice): Look[] {
  const out: Look[] = [];
  for (const look of looks.get(key_of(recording, device)) ?? []) {
    const last = out.at(-1);
    if (last && look.time_ns - last.time_ns > GAP_NS) out.push({ time_ns: last.time_ns + 1, allocated: NaN, reserved: NaN });
    out.push(look);
  }
  return out;
}

function forget(): void {
  looks = new Map();
  running = [];
  ended.value = [];
}
/** As text, and back. */
export function packed(): string {
  return JSON.stringify({ host, running, ended: ended.value, looks: [...looks].map(([key, list]) => [key, list.map((look) => [look.time_ns, look.allocated, look.reserved])]) });
}
export function unpack(text: string): void {
  const kept = JSON.parse(text);
  host = kept.host;
  running = kept.running;
  ended.value = kept.ended;
  looks = new Map(kept.looks.map(([key, list]: [string, (number | null)[][]]) => [
    key, list.map(([time_ns, allocated, reserved]) => ({ time_ns, allocated, reserved: reserved ?? NaN })),
  ]));
}
/** Goes on where this tab was before it was reloaded. */
export function keep_over_reloads(): () => void {
  try {
    const text = sessionStorage.getItem(STORED);
    if (text) unpack(text);
  } catch {
    forget(); // No storage, or another version's.
  }
  const keep = () => {
    try {
      sessionStorage.setItem(STORED, packed());
    } catch {
      // No storage, or no room in it: the curves begin anew.
    }
  };
  addEventListener("pagehide", keep);
  return () => removeEventListener("pagehide", keep);
}

/** What opens a recording, for a shell. */
export function view_command(folder: string): string {
  return `gpumemprof view ${/^[\w@%+=:,./-]+$/.test(folder) ? folder : `'${folder.replaceAll("'", "'\\''")}'`}`;
}

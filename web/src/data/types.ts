// The answer to `run` and a report's Document, as docs/page-data.md describes them.

export interface Device {
  name: string;
  capacity_bytes: number | null;
  events: number;
  first_time_ns: number | null;
  has_times?: boolean; // false: its times are numbers of events
  last_time_ns: number | null;
  has_addresses: boolean;
  is_exact: boolean;
  is_main?: boolean;
  label?: string; // with its process where there are several
  left_out_events?: number;
  unknown?: { what: string; reason: string }[];
  peak: { event: number; time_ns: number | null; bytes: number } | null;
  base_bytes: number;
  end_bytes: number;
}
export interface Named {
  id: number;
  label: string;
}
export interface RunFile {
  name: string;
  kind: string;
  unknown: { what: string; reason: string }[];
  devices: Device[];
  processes: Named[];
  streams: Named[];
  categories: Named[];
  threads: Named[];
  document?: Document;
  findings?: number; // as many as `analyze` names; the report may tell some within others
  error?: string; // why it could not be read
}

export type Tone = "plain" | "headline" | "strong" | "bad" | "warning" | "note" | "dim";
/** Where the other views show something. */
export interface Evidence {
  view?: string; // a tab
  event?: number;
  from?: number; // with `to`: what was allocated between them and left
  to?: number;
  filter?: string;
  by?: string;
  block?: number;
  device?: number;
}
export interface Sentence {
  text: string;
  tone?: Tone;
  label?: string;
}
export interface Item extends Sentence {
  details?: Sentence[];
  evidence?: Evidence;
}
export interface Cell {
  text: string;
  note?: string;
  is_code?: boolean;
  is_strong?: boolean;
  depth?: number;
}
export interface Row {
  cells: Cell[];
  details?: Part[];
  share?: number;
  evidence?: Evidence;
}
export interface Frame {
  text: string;
  short_text?: string;
  is_user_code?: boolean;
  is_kept?: boolean;
}
export type Part =
  | ({ kind: "sentence" } & Sentence)
  | { kind: "list"; items: Item[] }
  | { kind: "table"; columns: { title: string; is_number?: boolean }[]; rows: Row[]; left_out_text?: string }
  | { kind: "stack"; frames: Frame[] }
  | Chart;
/** Bytes over seconds; null where a figure is not known. */
export interface Chart {
  kind: "chart";
  title: string;
  limit_bytes: number | null;
  lines: { name: string; times_s: number[]; bytes: (number | null)[] }[];
}
export interface Section {
  title: string;
  is_folded?: boolean;
  parts: Part[];
  evidence?: Evidence;
}
export interface Document {
  title: string;
  sections: Section[];
}

// What `serve` sends once a second: docs/schemas/live.schema.json.

export type Unknown = Record<string, string> | undefined;
export interface HeldLine {
  bytes: number;
  count: number;
  line: string | null;
  module: string | null;
  category: string | null;
  has_other_categories?: boolean;
}
export interface LiveDevice {
  device: string;
  allocated_bytes: number;
  reserved_bytes: number | null;
  peak_bytes: number;
  live_blocks: number;
  bytes_per_second: number | null;
  leak_bytes_per_second: number | null;
  refused_count: number;
  categories: { category: string; bytes: number }[] | null;
  holders: HeldLine[];
  unknown?: Unknown;
}
/** What one device holds, added up: docs/driver.md. */
export interface DriverMoment {
  device_used_bytes: number | null;
  reserved_bytes: number | null;
  other_processes_bytes: number | null;
  of_no_process_bytes: number | null;
  process_used_bytes: number | null;
  contexts_bytes: number | null;
  modules_bytes: number;
  libraries: { name: string; bytes: number }[];
  rounding_bytes: number;
  framework: { bytes: number; allocated_bytes: number | null; cached_bytes: number | null; unservable_bytes: number | null; beside_bytes: number | null };
  others_and_unexplained_bytes: number | null;
  contexts_and_unexplained_bytes: number | null;
  unexplained_bytes: number | null;
  unknown: Record<string, string>;
}
/** A process's host memory by class: docs/host.md. */
export interface HostMoment {
  resident_bytes: number | null;
  pinned_bytes: number | null;
  other_shared_bytes: number | null;
  file_bytes: number | null;
  rest_bytes: number | null;
  unknown: Record<string, string>;
}
export interface LiveRecording {
  pid: number;
  host: string;
  program: string;
  folder: string;
  rank: number | null;
  events: number;
  lost_events: number;
  exact: boolean;
  problem: string | null;
  devices: LiveDevice[];
  host_memory?: HostMoment;
  driver: { devices: { device: string; accelerator: string | null; now: DriverMoment }[] } | null;
  unknown?: Unknown;
}
export interface Memory {
  total_bytes: number | null;
  used_bytes: number | null;
  cgroup_limit_bytes?: number | null;
  cgroup_used_bytes?: number | null;
  unknown?: Unknown;
}
export interface Picture {
  time_ns: number;
  host: string;
  memory: Memory;
  accelerators: { devices: (Memory & { device: string; model: string })[] | null; unknown?: Unknown };
  processes: { pid: number; command: string; resident_bytes: number; recorded: boolean }[];
  recordings: LiveRecording[];
  waiting?: { pid: number; program: string; folder: string }[];
  alerts: { time_ns: number; level: string; subject: string; text: string }[];
}

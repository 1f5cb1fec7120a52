// The recordings that run on this machine now, from the server's stream: every process with its devices, largest first.
import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { DriverMoment, HostMoment, HeldLine, LiveDevice, LiveRecording, Memory, Picture } from "../data/picture.ts";
import * as format from "../format.ts";
import { toggle_theme } from "../keys.tsx";
import { ended, keep_over_reloads, KEPT, looks_of, picture, take, view_command } from "../state/live.ts";
import { Curves } from "./chart.tsx";
import { CopyButton, FrameName } from "./parts.tsx";

const state = signal("connecting");

function follow(): () => void {
  const forget_listener = keep_over_reloads();
  const events = new EventSource(`events${location.search}`);
  events.addEventListener("picture", (event) => {
    state.value = "live";
    take(JSON.parse((event as MessageEvent).data));
  });
  events.onerror = () => (state.value = "connection lost, reconnecting");
  return () => (forget_listener(), events.close());
}

function Gauge(props: { name: string; used: number | null | undefined; total: number | null | undefined; why?: string }) {
  const { used, total } = props;
  if (used === null || used === undefined || !total)
    return <p class="gauge"><b>{format.plain(props.name, 80)}</b> <span class="dim">unknown: {format.plain(props.why ?? "no reason given")}</span></p>;
  return (
    <p class="gauge">
      <b>{format.plain(props.name, 80)}</b>
      <meter min={0} max={total} high={0.8 * total} value={used} aria-label={format.plain(props.name, 80)} />
      <span class="n">{format.bytes(used)} of {format.bytes(total)} ({format.share(used, total)})</span>
    </p>
  );
}
function Machine({ now }: { now: Picture }) {
  const { memory, accelerators } = now;
  const why = (of: Memory) => of.unknown?.used_bytes ?? of.unknown?.total_bytes;
  return (
    <section id="memory">
      <h2>Memory</h2>
      <Gauge name="Machine" used={memory.used_bytes} total={memory.total_bytes} why={why(memory)} />
      {memory.cgroup_limit_bytes != null ? <Gauge name="Container" used={memory.cgroup_used_bytes} total={memory.cgroup_limit_bytes} /> : null}
      {(accelerators.devices ?? []).map((one) => <Gauge key={one.device} name={`${one.device} ${one.model}`} used={one.used_bytes} total={one.total_bytes} why={why(one)} />)}
      {accelerators.devices === null ? <p class="dim">Accelerators: unknown ({format.plain(accelerators.unknown?.devices)})</p> : null}
    </section>
  );
}

function rate(value: number | null): string {
  return value === null ? "unknown" : `${format.signed(value)}/s`;
}
function Holders({ holders, whole }: { holders: HeldLine[]; whole: number }) {
  return (
    <div class="tablebox" tabIndex={0} role="region" aria-label="Live memory by line">
      <table class="data">
        <thead><tr><th>Line</th><th>Type</th><th class="right">Bytes</th><th class="right">Share</th><th class="right">Blocks</th></tr></thead>
        <tbody>
          {holders.map((one, i) => (
            <tr key={i}>
              <td class="wide">
                <span class="code">{one.line ? <FrameName text={one.line} /> : "no stack recorded"}{one.module ? <span class="where"> {format.plain(one.module, 120)}</span> : null}</span>
                <span class="share" style={{ width: `${Math.min(100, (100 * one.bytes) / (whole || 1))}%` }} />
              </td>
              <td data-title="type">{format.plain(one.category ?? "unknown", 40) + (one.has_other_categories ? " and others" : "")}</td>
              <td class="right" data-title="bytes" title={format.exact(one.bytes)}>{format.bytes(one.bytes)}</td>
              <td class="right" data-title="share">{format.share(one.bytes, whole)}</td>
              <td class="right" data-title="blocks">{format.count(one.count)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Device({ recording, device }: { recording: LiveRecording; device: LiveDevice }) {
  const kept = looks_of(recording, device);
  const begin = kept[0]?.time_ns ?? 0;
  const span = Math.max(1, (kept.at(-1)?.time_ns ?? 0) - begin);
  const x = kept.map((look) => (look.time_ns - begin) / span);
  const reserved = kept.map((look) => look.reserved);
  const curves = [{ name: "allocated", x, y: kept.map((look) => look.allocated) }];
  const leak = device.leak_bytes_per_second;
  const no_leak = device.unknown?.leak_bytes_per_second;
  return (
    <>
      <div class="of n">
        <h3>{format.plain(device.device, 60)}</h3>
        <span><b>{format.bytes(device.allocated_bytes)}</b> allocated</span>
        <span title={device.unknown?.reserved_bytes}>{device.reserved_bytes === null ? "reserved unknown" : `${format.bytes(device.reserved_bytes)} reserved`}</span>
        <span>peak {format.bytes(device.peak_bytes)}</span>
        <span>{format.plural(device.live_blocks, "block")}</span>
        <span>change {rate(device.bytes_per_second)}</span>
        {leak ? <span class="bad">grows by {format.bytes(60 * leak)} a minute</span> : <span class="dim">{leak === 0 ? "live memory does not grow" : format.plain(no_leak ?? "growth unknown")}</span>}
        {device.refused_count ? <span class="bad">{format.plural(device.refused_count, "request")} refused</span> : null}
      </div>
      <Curves
        label={`Memory of ${device.device}, process ${recording.pid}`} height="150px"
        end_text={kept.length < 2 ? "first sample" : `${format.time(span, 1e9)}${kept.length < KEPT ? " since this tab first saw it" : ""}`}
        curves={reserved.every(Number.isNaN) ? curves : [...curves, { name: "reserved", x, y: reserved, dash: [6, 4] }]}
      />
      {device.categories?.length ? <p class="n">{device.categories.map((one) => `${one.category} ${format.bytes(one.bytes)}`).join(", ")}</p> : null}
      {device.categories === null ? <p class="dim">Memory by type: unknown ({format.plain(device.unknown?.categories)})</p> : null}
      {device.holders.length ? <Holders holders={device.holders} whole={device.allocated_bytes} /> : null}
    </>
  );
}

/** "pid 4941 cpu" and "rank 1 cuda:0" are of a program: its name, where only one can be meant. */
export function with_program(subject: string, recordings: Pick<LiveRecording, "pid" | "rank" | "program">[]): string {
  const [, kind, number] = /^(pid|rank) (\d+)\b/.exec(subject) ?? [];
  const of = kind ? recordings.filter((one) => one[kind as "pid" | "rank"] === Number(number)) : [];
  return of.length === 1 ? `${of[0].program}, ${subject}` : subject;
}

/** The terms of the device's memory, as `analyze` names them; an unknown one has its reason. */
function terms(now: DriverMoment): [number, string, number | null, string?][] {
  const of = now.framework;
  const why = (term: string) => now.unknown[term] ?? "nothing reports it";
  const out: [number, string, number | null, string?][] = [[0, "device used", now.device_used_bytes, why("device_used")]];
  if (now.reserved_bytes !== null) out.push([1, "driver's own", now.reserved_bytes]);
  out.push([1, "other processes", now.other_processes_bytes, why("other_processes")]);
  if (now.of_no_process_bytes) out.push([1, "no known process", now.of_no_process_bytes]);
  out.push([1, "this process", now.process_used_bytes, why("process_used")], [2, "contexts", now.contexts_bytes, why("contexts")], [2, "modules", now.modules_bytes]);
  for (const one of now.libraries) out.push([2, one.name, one.bytes]);
  out.push([2, "rounding to pages of 2 MiB", now.rounding_bytes], [2, "framework", of.bytes]);
  if (of.allocated_bytes !== null) {
    out.push([3, "allocated", of.allocated_bytes], [3, "cached", of.cached_bytes], [4, "in pinned segments", of.unservable_bytes, why("framework.unservable")]);
    if (of.beside_bytes) out.push([3, "outside its allocator", of.beside_bytes]);
  }
  if (now.others_and_unexplained_bytes !== null) out.push([1, "other processes or unexplained", now.others_and_unexplained_bytes]);
  else if (now.contexts_and_unexplained_bytes !== null) out.push([2, "contexts and unexplained", now.contexts_and_unexplained_bytes]);
  else out.push([2, "unexplained", now.unexplained_bytes, why("unexplained")]);
  return out;
}
/** The terms of the process's host memory, as `analyze` names them. */
function host_terms(now: HostMoment): [number, string, number | null, string?][] {
  const why = (term: string) => now.unknown[term] ?? "nothing reports it";
  return [
    [0, "resident (RSS)", now.resident_bytes, why("resident_bytes")],
    [1, "pinned by the GPU's driver", now.pinned_bytes, why("pinned_bytes")],
    [1, "other shared memory", now.other_shared_bytes, why("other_shared_bytes")],
    [1, "pages of files", now.file_bytes, why("file_bytes")],
    [1, "malloc, Python's arenas and the rest", now.rest_bytes, why("resident_bytes")],
  ];
}
/** Terms that may be negative are shown with their sign. */
const SIGNED = new Set(["no known process", "outside its allocator", "other processes or unexplained", "unexplained", "malloc, Python's arenas and the rest"]);
function Sum({ name, label, of }: { name: string; label: string; of: [number, string, number | null, string?][] }) {
  return (
    <details class="fold">
      <summary>{format.plain(name, 120)}</summary>
      <div class="tablebox" tabIndex={0} role="region" aria-label={label}>
        <table class="data">
          <tbody>
            {of.map(([depth, text, bytes, why]) => (
              <tr key={text}>
                <td class="wide" style={{ paddingLeft: `${10 + 16 * depth}px` }}>{format.plain(text, 80)}{bytes === null ? <span class="dim"> ({format.plain(why)})</span> : null}</td>
                <td class="right" title={format.exact(bytes)}>{bytes !== null && SIGNED.has(text) ? format.signed(bytes) : format.bytes(bytes)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

/** The command that opens a recording, live or ended. */
function Opens({ folder }: { folder: string }) {
  const command = view_command(folder);
  return (
    <p class="opens"><span class="code long">{format.plain(command, 500)}</span> <CopyButton label="Copy" text={() => command} /></p>
  );
}
function Ended() {
  if (ended.value.length === 0) return null;
  return (
    <section id="ended">
      <h2>Ended</h2>
      {ended.value.map((one) => (
        <article key={`${one.host} ${one.pid} ${one.folder}`}>
          <div class="of n">
            <h3>{format.plain(one.program, 100)}</h3>
            <span class="dim">pid {one.pid}{one.rank === null ? "" : `, rank ${one.rank}`}, ended at {new Date(one.time_ns / 1e6).toLocaleTimeString()}</span>
            {one.peaks.map((peak) => <span key={peak.device}>{format.plain(peak.device, 60)} peak <b>{format.bytes(peak.bytes)}</b></span>)}
          </div>
          <Opens folder={one.folder} />
        </article>
      ))}
    </section>
  );
}

function Recording({ recording }: { recording: LiveRecording }) {
  const rank = recording.rank === null ? "" : `, rank ${recording.rank}`;
  return (
    <article>
      <div class="of">
        <h3>{format.plain(recording.program, 100)}</h3>
        <span class="dim">pid {recording.pid}{rank}, {format.plural(recording.events, "event")}</span>
      </div>
      <Opens folder={recording.folder} />
      {recording.problem !== null ? <p class="warning">{format.plain(recording.problem)}</p> : null}
      {recording.exact ? null : <p class="warning">not exact: {format.plain(recording.unknown?.exact)}</p>}
      {recording.devices.map((device) => <Device key={device.device} recording={recording} device={device} />)}
      {(recording.driver?.devices ?? []).map((one) => <Sum key={one.device} name={`${one.accelerator ? `${one.device} is ${one.accelerator}` : one.device}: ${format.bytes(one.now.device_used_bytes)} in use, by owner`} label="Device memory by owner" of={terms(one.now)} />)}
      {recording.host_memory?.resident_bytes != null ? <Sum name={`Host memory: ${format.bytes(recording.host_memory.resident_bytes)} resident, by class`} label="Host memory by class" of={host_terms(recording.host_memory)} /> : null}
    </article>
  );
}

const fullest = (recording: LiveRecording) => Math.max(0, ...recording.devices.map((device) => device.allocated_bytes));

export function Live() {
  useEffect(follow, []);
  const now = picture.value;
  const recordings = [...(now?.recordings ?? [])].sort((a, b) => fullest(b) - fullest(a));
  const alerts = (now?.alerts ?? []).slice(-20).reverse();
  return (
    <div class="live">
      <header class="bar">
        <h1>gpumemprof</h1>
        <span id="host" class="dim cut">{format.plain(now?.host ?? "", 100)}</span>
        <span id="state" class="state dim" role="status">{state.value}</span>
        <button class="plain icon" onClick={toggle_theme} aria-label="Light or dark theme" title="Light or dark theme">◐</button>
      </header>
      <main class="scroll" tabIndex={0} aria-label="Live">
        <div class="report">
          {now ? <Machine now={now} /> : null}
          <section id="recordings">
            <h2>Live recordings{recordings.length > 1 ? ", largest first" : ""}</h2>
            {(now?.waiting ?? []).map((one) => <p key={one.pid} class="dim">{format.plain(one.program, 60)}, pid {one.pid}: no allocation yet</p>)}
            {recordings.length === 0 && now && !now.waiting?.length ? <p class="dim">None. <span class="code">gpumemprof run -- python train.py</span> starts one.</p> : null}
            {recordings.map((one) => <Recording key={`${one.host} ${one.pid} ${one.folder}`} recording={one} />)}
          </section>
          <Ended />
          <section id="alerts">
            <h2>Alerts</h2>
            {alerts.length === 0 ? <p class="dim">None.</p> : (
              <ul>
                {alerts.map((one, i) => (
                  <li key={i} class={`item ${one.level === "critical" ? "bad" : "warning"}`}>
                    <span class="label">{one.level}</span>{new Date(one.time_ns / 1e6).toLocaleTimeString()} {format.plain(with_program(one.subject, [...recordings, ...ended.value]))}: {format.plain(one.text)}
                  </li>
                ))}
              </ul>
            )}
          </section>
          <section id="processes">
            <h2>Processes</h2>
            <div class="tablebox" tabIndex={0} role="region" aria-label="Processes">
              <table class="data">
                <thead><tr><th>Program</th><th class="right">PID</th><th class="right">Resident</th><th>Recorded</th></tr></thead>
                <tbody>
                  {(now?.processes ?? []).map((one) => (
                    <tr key={one.pid}>
                      <td class="wide"><span class="code">{format.plain(one.command, 200)}</span></td>
                      <td class="right" data-title="pid">{one.pid}</td>
                      <td class="right" data-title="resident" title={format.exact(one.resident_bytes)}>{format.bytes(one.resident_bytes)}</td>
                      <td>{one.recorded ? "recorded" : "not recorded"}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          </section>
        </div>
      </main>
    </div>
  );
}

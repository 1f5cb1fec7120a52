// All devices of the run side by side, highest peak first: on one scale, but for those too small to be seen on it.
import { computed, signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { css, colours, is_dark, nth, SurfaceBox } from "../draw/index.ts";
import type { Surface } from "../draw/index.ts";
import * as format from "../format.ts";
import { ChartView } from "./chart.tsx";
import { file, store } from "../state/run.ts";
import { go, part } from "../state/view.ts";
import type { Device } from "../data/types.ts";

const COLUMNS = 256;
const LEAST_SHARE = 0.05; // of the largest peak: less would be a flat line
const MOST = 64; // of the others only the number is shown
const curves = signal<Map<string, { begin: Uint32Array; total: Float64Array }>>(new Map());
const order = computed(() =>
  (file.value?.devices ?? []).map((device, index) => ({ device, index })).sort((a, b) => (b.device.peak?.bytes ?? 0) - (a.device.peak?.bytes ?? 0)),
);

/** What drivers and the kernel reported of the whole machine during the run. */
const machine = computed(() => (file.value?.document?.sections ?? []).flatMap((section) => section.parts).filter((one) => one.kind === "chart"));

/** Whether a card has a scale of its own. */
export function has_own_scale(peak_bytes: number, most_bytes: number): boolean {
  return peak_bytes > 0 && peak_bytes < LEAST_SHARE * most_bytes;
}

/** One after the other, so that the visible view's queries go first. */
async function load(file_index: number, devices: { device: Device; index: number }[]): Promise<void> {
  for (const { device, index } of devices) {
    const key = `${file_index} ${index}`;
    if (curves.value.has(key) || !store.value) continue;
    const query = { file: file_index, device: index, from: 0, to: device.events + 1, columns: COLUMNS, by: "none" };
    const answer = await store.value.ask("levels", query, `curve ${key}`).catch(() => null);
    if (answer) curves.value = new Map(curves.value).set(key, { begin: answer.u32("begin"), total: answer.f64("total") });
  }
}

export function Devices() {
  const file_index = part("file").value;
  const largest = order.value.slice(0, MOST);
  useEffect(() => void load(file_index, largest), [file_index, largest.length]);
  if (largest.length === 0 && machine.value.length === 0) return <div class="empty">No device memory was recorded.</div>;
  const most = Math.max(1, ...largest.map(({ device }) => device.peak?.bytes ?? 0));
  const shown = largest.map((one) => ({ ...one, is_small: has_own_scale(one.device.peak?.bytes ?? 0, most) }));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Devices">
      <div class="multiples">
        {shown.map(({ device, index, is_small }) => (
          <button key={`${file_index} ${index}`} aria-pressed={part("device").value === index} onClick={() => go({ device: index })}>
            <b class="cut">{format.plain(device.label ?? device.name, 120)}</b>
            <span class="dim n">
              peak {format.bytes(device.peak?.bytes)}{device.capacity_bytes ? ` of ${format.bytes(device.capacity_bytes)}` : ""}, {format.plural(device.events, "event")}
              {is_small ? ", own scale" : ""}
            </span>
            <Curve id={`${file_index} ${index}`} most={is_small ? device.peak!.bytes : most} index={index} />
          </button>
        ))}
      </div>
      {machine.value.length ? <div class="charts"><h2>System memory during the run</h2>{machine.value.map((chart, i) => <ChartView key={i} chart={chart} height="160px" />)}</div> : null}
      {order.value.length > MOST ? <p class="empty">{format.plural(order.value.length - MOST, "more device")} with lower peaks in the Memory selector.</p> : null}
    </div>
  );
}

function Curve({ id, most, index }: { id: string; most: number; index: number }) {
  const draw = ({ context: c, width, height }: Surface) => {
    const curve = curves.value.get(id);
    if (!curve || curve.total.length === 0) return;
    const end = curve.begin[curve.total.length] || 1;
    c.beginPath();
    c.moveTo(0, height);
    curve.total.forEach((value, i) => {
      const y = height - (value / most) * (height - 4);
      c.lineTo((curve.begin[i] / end) * width, y);
      c.lineTo((curve.begin[i + 1] / end) * width, y);
    });
    c.lineTo(width, height);
    c.fillStyle = css(nth(index, is_dark.value));
    c.fill();
    c.strokeStyle = colours().strong;
    c.strokeRect(0, height - 0.5, width, 0.5);
  };
  return <SurfaceBox draw={draw} label="Live memory by event" focusable={false} />;
}

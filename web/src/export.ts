// Saves the shown chart or table as a file.
import { css } from "./draw/palette.ts";
import { colours, fit_text, FONT } from "./draw/surface.tsx";
import * as format from "./format.ts";
import { device, file, visible } from "./state/run.ts";
import { part } from "./state/view.ts";
import { holders_rows } from "./views/holders.tsx";
import * as data from "./views/time_data.ts";
import { byte_ticks } from "./views/axis.ts";
import { BY, legend_lines, legend_rows, reading } from "./views/time.tsx";
import { LINE_DASH, moment_ticks, top_of } from "./views/time_draw.ts";

function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** CSV. A cell that a spreadsheet would run as a formula gets a leading quote. */
export function csv(rows: string[][]): string {
  const cell = (text: string) => {
    const safe = /^[=+@\t\r]|^-(?![\d.])/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  return rows.map((row) => row.map(cell).join(",") + "\r\n").join("");
}
export function save_holders(): void {
  save("holders.csv", new Blob([csv(holders_rows())], { type: "text/csv" }));
}
export function save_levels(): void {
  const levels = data.levels.value;
  if (!levels) return;
  const rows = [["event", "total", ...levels.keys.map((key) => key.label), ...Object.keys(levels.lines)]];
  for (let i = 0; i < levels.columns; ++i)
    rows.push([String(levels.event[i]), String(levels.total[i]), ...levels.keys.map((_, key) => String(levels.values[key * levels.columns + i])), ...Object.values(levels.lines).map((line) => String(line[i]))]);
  save("memory-over-time.csv", new Blob([csv(rows)], { type: "text/csv" }));
}

/** What a picture says beside the chart: what it is of, and what its colours are. */
function words() {
  const [from, to] = visible.value;
  const rows = legend_rows.value.map((row) => ({ ...row, name: format.key_line(row.label) }));
  const on = part("lines").value.split(",");
  const of = `${format.plain(file.value?.name ?? "")}: ${format.plain(device.value?.label ?? device.value?.name ?? "")}`;
  return {
    title: `${of}, by ${BY[part("by").value] ?? ""}, events ${format.count(from)} to ${format.count(to - 1)}`,
    caption: `Bytes at event ${format.count(reading.value?.event)}`,
    rows,
    total: format.bytes(reading.value?.total),
    lines: legend_lines.value
      .filter((one) => on.includes(one.name))
      .map((one) => ({ ...one, colour: one.name === "capacity" ? colours().bad : colours().ink })),
  };
}
const TITLE = 30; // the height of a picture's title
const LEGEND = 330; // the width of its legend
const ROW = 20;

/** The chart as on the screen, with its title above and its legend beside it. */
export function save_png(): void {
  const [below, top] = document.querySelectorAll<HTMLCanvasElement>(".over-time canvas");
  if (!below || !top) return;
  const out = document.createElement("canvas");
  const said = words();
  const tone = colours();
  const ratio = top.width / top.clientWidth;
  const height = Math.max(top.clientHeight, (said.rows.length + said.lines.length + 2) * ROW + 8);
  out.width = top.width + Math.round(LEGEND * ratio);
  out.height = Math.round((TITLE + height) * ratio);
  const context = out.getContext("2d")!;
  context.fillStyle = tone.card;
  context.fillRect(0, 0, out.width, out.height);
  for (const canvas of [below, top]) context.drawImage(canvas, 0, Math.round(TITLE * ratio));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = FONT;
  context.fillStyle = tone.ink;
  context.fillText(fit_text(context, said.title, top.clientWidth + LEGEND - 24), 12, 20);
  const x = top.clientWidth + 14;
  let y = TITLE + 16;
  const say = (name: string, bytes: string) => {
    context.fillStyle = tone.ink;
    context.textAlign = "left";
    context.fillText(fit_text(context, name, LEGEND - 120), x + 18, y);
    context.textAlign = "right";
    context.fillText(bytes, x + LEGEND - 26, y);
    y += ROW;
  };
  say(said.caption, "");
  for (const row of said.rows) {
    context.fillStyle = row.colour;
    context.fillRect(x, y - 10, 12, 12);
    say(row.name, format.bytes(row.bytes));
  }
  say("Total", said.total);
  for (const one of said.lines) {
    context.strokeStyle = one.colour;
    context.lineWidth = 1.6;
    context.setLineDash(LINE_DASH[one.name]);
    context.beginPath();
    context.moveTo(x - 4, y - 4);
    context.lineTo(x + 14, y - 4);
    context.stroke();
    say(one.text, format.bytes(one.bytes));
  }
  out.toBlob((blob) => blob && save("memory-over-time.png", blob));
}

const xml = (text: string) => format.plain(text).replace(/[<>&"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

/** The chart's visible range as shapes and text, with its axes and its legend. */
export function time_svg(): string {
  const levels = data.levels.value;
  if (!levels) return "";
  const tone = colours();
  const axis = data.axis.value;
  const most = top_of(levels, axis);
  const [w, h, left, top] = [960, 360, 80, 34];
  const x = (event: number) => (left + axis.x(event) * w).toFixed(1);
  const y = (value: number) => (top + h * (1 - value / most)).toFixed(1);
  const out: string[] = [];
  const below = new Float64Array(levels.columns);
  const inside = (i: number) => axis.x(levels.begin[i + 1]) > 0 && axis.x(levels.begin[i]) < 1;
  const shown = Array.from({ length: levels.columns }, (_, i) => i).filter(inside);
  levels.keys.forEach((key, k) => {
    const up = shown.map((i) => `${x(levels.begin[i])},${y(below[i] + levels.values[k * levels.columns + i])} ${x(levels.begin[i + 1])},${y(below[i] + levels.values[k * levels.columns + i])}`);
    const down = [...shown].reverse().map((i) => `${x(levels.begin[i + 1])},${y(below[i])} ${x(levels.begin[i])},${y(below[i])}`);
    out.push(`<polygon fill="${css(data.colour_list.value[k])}" points="${up.join(" ")} ${down.join(" ")}"><title>${xml(key.label)}</title></polygon>`);
    for (const i of shown) below[i] += levels.values[k * levels.columns + i];
  });
  const said = words();
  const capacity = device.value?.capacity_bytes;
  const stroke_of = (name: string, colour: string) =>
    `stroke="${colour}" stroke-width="1.6" stroke-dasharray="${LINE_DASH[name].join(" ")}"`;
  for (const { name, colour } of said.lines) {
    const values = levels.lines[name];
    const step = (i: number, value: number) => `${x(levels.begin[i])},${y(value)} ${x(levels.begin[i + 1])},${y(value)}`;
    const points = shown.map((i) => step(i, values?.[i] ?? capacity ?? 0)).join(" ");
    out.push(`<polyline fill="none" ${stroke_of(name, colour)} points="${points}"/>`);
  }
  const side = left + w + 18;
  let at = top - ROW;
  const legend = (sign: string, name: string, bytes: string) => {
    at += ROW;
    const cut = name.length > 32 ? `${name.slice(0, 31)}…` : name;
    const figure = `<text x="${LEGEND - 30}" y="10" text-anchor="end">${bytes}</text>`;
    const named = `<text x="20" y="10">${xml(cut)}<title>${xml(name)}</title></text>`;
    return `<g transform="translate(${side} ${at})">${sign}${named}${figure}</g>`;
  };
  const names = [
    legend("", said.caption, ""),
    ...said.rows.map((row) =>
      legend(`<rect width="12" height="12" rx="3" fill="${row.colour}"/>`, row.name, format.bytes(row.bytes)),
    ),
    legend("", "Total", said.total),
    ...said.lines.map((one) =>
      legend(`<path d="M-4 6h18" ${stroke_of(one.name, one.colour)}/>`, one.text, format.bytes(one.bytes)),
    ),
  ];
  const sizes = byte_ticks(most / 1.02, h).map((value) => {
    const line = `<path d="M${left - 4} ${y(value)}h${w + 4}" stroke="${tone.strong}" stroke-width=".6"/>`;
    return `${line}<text x="${left - 8}" y="${Number(y(value)) + 4}" text-anchor="end">${format.bytes(value)}</text>`;
  });
  const moments = moment_ticks(axis, w).map((tick) => {
    const x0 = (left + tick.x * w).toFixed(1);
    const line = `<path d="M${x0} ${top + h}v4" stroke="${tone.strong}"/>`;
    return `${line}<text x="${x0}" y="${top + h + 18}" text-anchor="middle">${tick.text}</text>`;
  });
  const box = `0 0 ${side + LEGEND} ${Math.max(top + h, at + ROW) + 40}`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}" font-family="sans-serif" font-size="12" fill="${tone.ink}">
<rect width="100%" height="100%" fill="${tone.card}"/>
<text x="${left}" y="20">${xml(said.title)}</text>
<clipPath id="plot"><rect x="${left}" y="${top}" width="${w}" height="${h}"/></clipPath>
<g clip-path="url(#plot)">${out.join("\n")}</g>
${sizes.join("\n")}
<text x="${left - 8}" y="${top + h + 18}" text-anchor="end">${axis.kind === "time" ? "time" : "events"}</text>
${moments.join("\n")}
${names.join("\n")}
</svg>`;
}
export function save_svg(): void {
  save("memory-over-time.svg", new Blob([time_svg()], { type: "image/svg+xml" }));
}

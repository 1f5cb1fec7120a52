// Saves the shown chart or table as a file.
import { css } from "./draw/palette.ts";
import { colours } from "./draw/surface.tsx";
import * as format from "./format.ts";
import { device, file, visible } from "./state/run.ts";
import { part } from "./state/view.ts";
import { holders_rows } from "./views/holders.tsx";
import * as data from "./views/time_data.ts";
import { top_of } from "./views/time_draw.ts";

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

/** The chart as on the screen. */
export function save_png(): void {
  const [below, top] = document.querySelectorAll<HTMLCanvasElement>(".over-time canvas");
  if (!below || !top) return;
  const out = document.createElement("canvas");
  out.width = top.width;
  out.height = top.height;
  const context = out.getContext("2d")!;
  context.fillStyle = colours().card;
  context.fillRect(0, 0, out.width, out.height);
  context.drawImage(below, 0, 0);
  context.drawImage(top, 0, 0);
  out.toBlob((blob) => blob && save("memory-over-time.png", blob));
}

const xml = (text: string) => format.plain(text).replace(/[<>&"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

/** The chart's visible range as shapes and text, with its legend. */
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
  const names = levels.keys.map((key, k) => `<rect x="${left + w + 18}" y="${top + 20 * k}" width="12" height="12" rx="3" fill="${css(data.colour_list.value[k])}"/><text x="${left + w + 36}" y="${top + 20 * k + 10}">${xml(key.label)}</text>`);
  const [from, to] = visible.value;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${left + w + 260} ${top + h + 40}" font-family="sans-serif" font-size="12" fill="${tone.ink}">
<rect width="100%" height="100%" fill="${tone.card}"/>
<text x="${left}" y="20">${xml(file.value?.name ?? "")}: ${xml(device.value?.name ?? "")}, by ${xml(part("by").value)}, events ${format.count(from)} to ${format.count(to - 1)}</text>
<clipPath id="plot"><rect x="${left}" y="${top}" width="${w}" height="${h}"/></clipPath>
<g clip-path="url(#plot)">${out.join("\n")}</g>
<text x="${left - 8}" y="${top + 10}" text-anchor="end">${format.bytes(most)}</text><text x="${left - 8}" y="${top + h}" text-anchor="end">0 B</text>
${names.join("\n")}
</svg>`;
}
export function save_svg(): void {
  save("memory-over-time.svg", new Blob([time_svg()], { type: "image/svg+xml" }));
}

// Colours: stable by name within a page, far apart, of similar weight in both themes; never the only sign of a meaning.
import { signal } from "@preact/signals";

export const is_dark = signal(false);

/** sRGB of a colour in OKLCH (Björn Ottosson's matrices), as 0xRRGGBB. */
export function oklch(lightness: number, chroma: number, hue_degrees: number): number {
  const hue = (hue_degrees * Math.PI) / 180;
  const a = chroma * Math.cos(hue);
  const b = chroma * Math.sin(hue);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  const linear = [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ];
  return linear.reduce((sum, value) => {
    const bounded = Math.min(1, Math.max(0, value));
    const encoded = bounded <= 0.0031308 ? 12.92 * bounded : 1.055 * bounded ** (1 / 2.4) - 0.055;
    return sum * 256 + Math.round(encoded * 255);
  }, 0);
}

const HUES = [255, 160, 60, 320, 205, 95, 285, 25, 130, 230, 350, 75];
export const REST = "other";

/** The colour of the n-th name. */
export function nth(index: number, dark: boolean): number {
  const round = Math.floor(index / HUES.length) % 3;
  const hue = HUES[index % HUES.length] + round * 13;
  const step = [0, -0.09, 0.08][round] + (index % 2 ? 0.025 : -0.015);
  return oklch((dark ? 0.66 : 0.71) + step, dark ? 0.105 : 0.115, hue);
}
function grey(dark: boolean): number {
  return dark ? 0x5b636e : 0xb3bac4;
}

/** The categories, as category_rules.cc names them: each has the same colour in every run. */
export const CATEGORIES = [
  "parameter", "gradient", "optimizer state", "activation", "input", "temporary",
  "unknown", "buffer", "KV cache", "workspace", "framework other", "weight copy",
];
const given = new Map([["category", new Map(CATEGORIES.map((name, index) => [name, index]))]]);
/** The colour of a name; it stays the one first given. */
export function colour_of(kind: string, name: string, dark = is_dark.value): number {
  if (name === REST) return grey(dark);
  let names = given.get(kind);
  if (!names) given.set(kind, (names = new Map()));
  let index = names.get(name);
  if (index === undefined) names.set(name, (index = names.size));
  return nth(index, dark);
}
/** A colour for the number of a block or stack; there are too many for each to be distinct. */
export function colour_of_id(id: number, dark = is_dark.value): number {
  const mixed = Math.imul(id + 1, 2654435761) >>> 0;
  const wobble = ((mixed >>> 12) % 7) * 0.018 - 0.054;
  return oklch((dark ? 0.6 : 0.74) + wobble, 0.085, mixed % 360);
}
export function css(colour: number): string {
  return `#${colour.toString(16).padStart(6, "0")}`;
}
/** Mixed with the page's background, for what is not highlighted. */
export function faded(colour: number, dark = is_dark.value): number {
  const ground = dark ? 0x14 : 0xf6;
  const mix = (shift: number) => Math.round(((colour >> shift) & 255) * 0.22 + ground * 0.78) << shift;
  return mix(16) | mix(8) | mix(0);
}
/** How light a colour is, 0 to 1 (WCAG's relative luminance). */
function luminance(colour: number): number {
  const linear = (shift: number) => {
    const value = ((colour >> shift) & 255) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * linear(16) + 0.7152 * linear(8) + 0.0722 * linear(0);
}
/** Black or white, whichever has more contrast on a background: at least 4.58, and WCAG asks for 4.5. */
export function ink_on(colour: number): string {
  const above_black = luminance(colour) + 0.05;
  return above_black / 0.05 > 1.05 / above_black ? "#000000" : "#ffffff";
}

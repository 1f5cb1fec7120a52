// The two sides of a comparison: a device of a file at a moment each; what the address leaves open is chosen here.
import { computed } from "@preact/signals";
import type { RunFile } from "../data/types.ts";
import { files } from "../state/run.ts";
import { go, part } from "../state/view.ts";

export interface Side {
  file: number;
  device: number;
  at: number; // -1: the peak
}
export interface Sides {
  a: Side;
  b: Side;
}
/** The device of `other` with the same name, else its main one, else its first: as the server has it. */
export function like(name: string | undefined, other: RunFile | undefined): number {
  const devices = other?.devices ?? [];
  const same = devices.findIndex((one) => one.name === name);
  return same >= 0 ? same : Math.max(0, devices.findLastIndex((one) => one.is_main === true));
}
export interface Wanted extends Side {
  other: number;
  other_device: number;
  at_b: number;
}
/** A is the file that is shown, B the other one; where none is said, the first file is what the others are compared with. */
export function sides_of(wanted: Wanted, all: RunFile[]): Sides {
  const { file, other, other_device, at, at_b } = wanted;
  const own = { file, device: wanted.device < (all[file]?.devices.length ?? 0) ? wanted.device : 0, at };
  const name = all[file]?.devices[own.device]?.name;
  const is_device = (of: number) => other_device >= 0 && other_device < (all[of]?.devices.length ?? 0);
  const is_itself = other === file && at === at_b && (!is_device(file) || other_device === own.device);
  if (all[other] && !(is_itself && all.length > 1))
    return { a: own, b: { file: other, device: is_device(other) ? other_device : other === file ? own.device : like(name, all[other]), at: at_b } };
  if (all.length < 2) return { a: own, b: { ...own, device: is_device(file) ? other_device : own.device, at: at_b } };
  if (file === 0) return { a: own, b: { file: 1, device: like(name, all[1]), at: at_b } };
  return { a: { file: 0, device: like(name, all[0]), at }, b: { ...own, at: at_b } };
}
const names = ["file", "device", "other", "other_device", "at_a", "at_b"] as const;
const [file, device, other, other_device, at_a, at_b] = names.map((name) => part(name));
export const sides = computed(() =>
  sides_of({ file: file.value, device: device.value, at: at_a.value, other: other.value, other_device: other_device.value, at_b: at_b.value }, files.value),
);
/** Changes one side or both; the address then names both. */
export function set_sides({ a = sides.peek().a, b = sides.peek().b }: Partial<Sides>): void {
  go({ file: a.file, device: a.device, other: b.file, other_device: b.device, at_a: a.at, at_b: b.at });
}
/** The device of B as a request names it; null where the server finds it by itself. */
export const named_device = computed(() => {
  const { a, b } = sides.value;
  const is_said = other.value === b.file && other_device.value === b.device;
  return is_said || b.device !== like(files.value[a.file]?.devices[a.device]?.name, files.value[b.file]) ? b.device : null;
});

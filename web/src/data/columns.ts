// The one binary form of every answer: "GMPC", the header's length, JSON, then arrays at multiples of 8.
// The format: docs/page-data.md. An answer is untrusted: a column outside of it is an error.

export type Column = Uint8Array | Uint16Array | Uint32Array | Float64Array;

/** An id column's "there is none". */
export const NONE = 0xffffffff;

export class Answer {
  readonly head: Record<string, any>;
  private readonly columns: Map<string, Column>;
  /** In one-file pages: why the answer is not exactly the requested one. */
  summary: string | null = null;

  constructor(head: Record<string, any>, columns: Map<string, Column> = new Map()) {
    this.head = head;
    this.columns = columns;
  }

  has(name: string): boolean {
    return this.columns.has(name);
  }
  /** A column of doubles: bytes and times. Empty where the answer lacks it. */
  f64(name: string): Float64Array {
    const column = this.columns.get(name);
    return column instanceof Float64Array ? column : Float64Array.from(column ?? []);
  }
  /** A column of whole numbers: ids and events. Empty where the answer lacks it. */
  u32(name: string): Uint32Array {
    const column = this.columns.get(name);
    return column instanceof Uint32Array ? column : Uint32Array.from(column ?? []);
  }
  get unknown(): string | null {
    return typeof this.head.unknown === "string" ? this.head.unknown : null;
  }
  get size_bytes(): number {
    let sum = 4096;
    for (const column of this.columns.values()) sum += column.byteLength;
    return sum;
  }
}

const KINDS: Record<string, { new (buffer: ArrayBuffer, offset: number, length: number): Column; BYTES_PER_ELEMENT: number }> = {
  u8: Uint8Array,
  u16: Uint16Array,
  u32: Uint32Array,
  f64: Float64Array,
};

/** Throws an Error of one line where the bytes are not an answer. */
export function decode(buffer: ArrayBuffer): Answer {
  if (buffer.byteLength < 8) throw new Error(`an answer of ${buffer.byteLength} bytes is too short`);
  const bytes = new Uint8Array(buffer);
  if (String.fromCharCode(...bytes.subarray(0, 4)) !== "GMPC") throw new Error("an answer does not begin with GMPC");
  const header_bytes = new DataView(buffer).getUint32(4, true);
  if (8 + header_bytes > buffer.byteLength) throw new Error("an answer's header is longer than the answer");
  const head = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + header_bytes)));
  const columns = new Map<string, Column>();
  for (const [name, spec] of Object.entries<any>(head.columns ?? {})) {
    const Kind = Object.hasOwn(KINDS, spec.type) ? KINDS[spec.type] : undefined;
    const { offset, length } = spec;
    const sane = Kind && Number.isSafeInteger(offset) && Number.isSafeInteger(length) && offset >= 0 && length >= 0;
    if (!sane || offset % 8 !== 0 || offset + length * Kind.BYTES_PER_ELEMENT > buffer.byteLength)
      throw new Error(`column ${name} of an answer lies outside of it`);
    columns.set(name, new Kind(buffer, offset, length));
  }
  return new Answer(head, columns);
}

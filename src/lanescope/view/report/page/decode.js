// Unpacking: base64 -> raw deflate -> JSON, or columns of numbers. Nothing here knows what the numbers mean.

/**
 * Bytes of a base64 text.
 * @param {string} text
 * @returns {Uint8Array<ArrayBuffer>}
 */
export function fromBase64(text) {
  const binary = atob(text.trim());
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/**
 * Inflate a raw deflate stream.
 * @param {Uint8Array<ArrayBuffer>} bytes
 * @returns {Promise<Uint8Array<ArrayBuffer>>}
 */
export async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * The header: its block is base64 of deflated JSON.
 * @param {string} text
 * @returns {Promise<import('./types.js').Header>}
 */
export async function readHeader(text) {
  const header = JSON.parse(new TextDecoder().decode(await inflate(fromBase64(text))));
  if (header.v !== 2) throw new Error(`this page reads version 2 of the data, not ${header.v}`);
  return header;
}

/**
 * Running sums, in place: deltas become values.
 * @template {Float64Array | Int32Array} A
 * @param {A} values
 * @returns {A}
 */
export function runningSums(values) {
  for (let i = 1; i < values.length; i++) values[i] += values[i - 1];
  return values;
}

/** The columns by name, decoded when asked for. */
export class Columns {
  /**
   * @param {Uint8Array<ArrayBuffer>} bytes of all columns
   * @param {Record<string, import('./types.js').ColumnEntry>} entries where each lies
   */
  constructor(bytes, entries) {
    this.bytes = bytes;
    this.entries = new Map(Object.entries(entries));
  }

  /**
   * A column as 64-bit floats: whole numbers up to 2^53 are exact.
   * @param {string} name
   */
  numbers(name) {
    const [offset, size, n, kind] = this.entry(name);
    if (kind === 'f') return new Float64Array(this.bytes.slice(offset, offset + size).buffer);
    return this.varints(new Float64Array(n), offset, kind === 'z');
  }

  /**
   * A column of small whole numbers.
   * @param {string} name
   */
  integers(name) {
    const [offset, , n, kind] = this.entry(name);
    return this.varints(new Int32Array(n), offset, kind === 'z');
  }

  /** @param {string} name */
  entry(name) {
    const entry = this.entries.get(name);
    if (!entry) throw new Error(`the data has no column ${name}`);
    return entry;
  }

  /**
   * LEB128: seven bits a byte, the lowest first. Zigzag: 0, -1, 1, -2 ... are 0, 1, 2, 3 ...
   * @template {Float64Array | Int32Array} A
   * @param {A} out
   * @param {number} at first byte
   * @param {boolean} zigzag
   * @returns {A}
   */
  varints(out, at, zigzag) {
    const { bytes } = this;
    for (let i = 0; i < out.length; i++) {
      let byte = bytes[at++];
      let value = byte & 127;
      // Factors, not shifts: a shift has 32 bits.
      for (let factor = 128; byte > 127; factor *= 128) {
        byte = bytes[at++];
        value += (byte & 127) * factor;
      }
      out[i] = !zigzag ? value : value % 2 ? -(value + 1) / 2 : value / 2;
    }
    return out;
  }
}

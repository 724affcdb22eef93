// Numbers and names as text. The writer prints the same (lanescope/view/model/numbers.py); one table of cases tests both.

/** What is shown for a value that is not known. */
export const UNKNOWN = '-';

const TIMES = /** @type {[string, number][]} */ ([['s', 1e9], ['ms', 1e6], ['µs', 1e3]]);
const CYCLES = /** @type {[string, number][]} */ ([['Gcyc', 1e9], ['Mcyc', 1e6], ['kcyc', 1e3]]);
const MANY_CYCLES = 10000;
const MORE_DIGITS = 30;

/** @param {string} digits  @returns {string} the same with a comma for each thousand */
export function withSeparators(digits) {
  const [whole, part] = digits.split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return part === undefined ? grouped : `${grouped}.${part}`;
}

/**
 * Like `toFixed`, but what lies exactly between two goes to the even one, as in Python.
 * @param {number} value
 * @param {number} digits
 */
export function fixed(value, digits) {
  const exact = Math.abs(value).toFixed(digits + MORE_DIGITS);
  const kept = exact.slice(0, -MORE_DIGITS).replace(/\.$/, '');
  const isTie = /^50*$/.test(exact.slice(-MORE_DIGITS));
  if (!isTie || Number(kept.slice(-1)) % 2) return value.toFixed(digits);
  return (value < 0 ? '-' : '') + kept;
}

/** @param {number} value  @returns {string} three significant digits, without zeros at the end */
function general(value) {
  const [digits, exponent] = value.toExponential(2).split('e');
  const power = Number(exponent);
  if (power >= -4 && power < 3) return String(Number(value.toPrecision(3)));
  const sign = power < 0 ? '-' : '+';
  return `${Number(digits)}e${sign}${String(Math.abs(power)).padStart(2, '0')}`;
}

/** @param {number} value  @returns {string} three digits, or all before the point */
function threeDigits(value) {
  const size = Math.abs(value);
  if (size > 0 && size < 0.0995) return general(value);
  const decimals = size > 0 && size < 0.9995 ? 3 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
  return withSeparators(fixed(value, decimals));
}

/** @param {number} value  @returns {string} of a number that is not counted */
function plain(value) {
  const size = Math.abs(value);
  if (size >= 999.5) return size < 1e15 ? withSeparators(fixed(value, 0)) : general(value);
  return value === 0 || size >= 0.001 ? threeDigits(value) : general(value);
}

/** @param {number} value */
const counted = (value) => (Number.isInteger(value) ? withSeparators(String(value)) : plain(value));

/**
 * @param {number} value
 * @param {[string, number][]} units the largest first
 */
function scaled(value, units) {
  const size = Math.abs(value);
  for (const [name, step] of units) if (size >= step * 0.9995) return `${threeDigits(value / step)} ${name}`;
  return null;
}

/** @param {number} size  @returns {string} */
function bytes(size) {
  if (size < 0) return `-${bytes(-size)}`;
  if (size < 1024) return `${size} B`;
  const power = Math.min(Math.floor(Math.log2(size) / 10), 4);
  return `${fixed(size / 1024 ** power, 1)} ${['KiB', 'MiB', 'GiB', 'TiB'][power - 1]}`;
}

/**
 * A value as text.
 * @param {import('./types.js').Whole | null | undefined} value
 * @param {string} kind `time` in its unit with three digits; `exact`: all digits; `value`: of a counter; `count`, `share`,
 *   `number`, `bytes`
 * @param {string} [unit] of times: `ns` or `cycles`, which are never shown as time; of a `value` any
 * @returns {string}
 */
export function numberText(value, kind, unit = '') {
  if (value === null || value === undefined) return UNKNOWN;
  if (kind === 'exact') return `${withSeparators(String(value))} ${one(value, unit)}`;
  if (kind === 'count' && typeof value === 'string') return withSeparators(value);
  const number = Number(value);
  if (!Number.isFinite(number)) return UNKNOWN;
  if (kind === 'time') return unit === 'ns' ? nanoseconds(number) : cycles(number, unit);
  if (kind === 'share') return number > 0 && number < 0.0005 ? '<0.1%' : percent(number);
  if (kind === 'bytes') return bytes(number);
  if (kind === 'value') return measured(number, unit);
  return kind === 'count' ? counted(number) : plain(number);
}

/** @param {number} value  @param {string} unit */
function measured(value, unit) {
  if (unit === 'ns' || unit === 'cycles') return numberText(value, 'time', unit);
  const isExact = Number.isSafeInteger(value);
  if (unit === 'bytes' && isExact) return bytes(value);
  const text = isExact ? withSeparators(String(value)) : plain(value);
  if (unit === '' || unit === '1') return text;
  return unit === '%' ? `${text}%` : `${text} ${clean(unit)}`;
}

/** @param {number} value */
const percent = (value) => `${withSeparators(fixed(value * 100, 1))}%`;

/** @param {number} value */
function nanoseconds(value) {
  return scaled(value, TIMES) ?? `${Number.isInteger(value) ? value : threeDigits(value)} ns`;
}

/** @param {number} value  @param {string} unit */
function cycles(value, unit) {
  const large = Math.abs(value) >= MANY_CYCLES ? scaled(value, CYCLES) : null;
  return large ?? `${counted(value)} ${one(value, unit)}`;
}

/** @param {import('./types.js').Whole} value  @param {string} unit */
const one = (value, unit) => (unit === 'cycles' && Number(value) === 1 ? 'cycle' : unit);

/**
 * A moment on the axis: just as many digits as its ticks need.
 * @param {number} t
 * @param {number} step between ticks
 * @param {string} unit
 * @param {number} largest of the moments shown: one unit for all of them
 * @param {boolean} isFirst of those shown: it has the unit in any case
 */
export function axisText(t, step, unit, largest, isFirst) {
  if (unit !== 'ns') return withSeparators(String(Math.round(t))) + (isFirst ? ` ${unit}` : '');
  const units = /** @type {[string, number][]} */ ([...TIMES, ['ns', 1]]);
  const [name, size] = units.find(([, size]) => largest >= size && step >= size / 1000) ?? ['ns', 1];
  const digits = Math.min(3, Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return `${withSeparators((t / size).toFixed(digits))} ${name}`;
}

/** Control characters, those that hide text or turn it around, and those that no font has to know. */
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/gu;
const LONGEST_NAME = 400;
/** Half of a character beyond 16 bits, at an end. */
const HALF = /^[\udc00-\udfff]|[\ud800-\udbff]$/g;

/** @param {string} c  @returns {string} as Python's `escape` writes it */
function escaped(c) {
  let code = /** @type {number} */ (c.codePointAt(0));
  if (code >= 0xdc80 && code <= 0xdcff) code -= 0xdc00; // how Python carries a byte that it could not decode
  const [letter, digits] = code < 0x100 ? ['x', 2] : code < 0x10000 ? ['u', 4] : ['U', 8];
  return `\\${letter}${code.toString(16).padStart(digits, '0')}`;
}

/**
 * A text of the trace: characters that hide text or turn it around are shown, never obeyed.
 * @param {unknown} text
 * @returns {string}
 */
export function clean(text) {
  const all = String(text);
  const isLong = all.length > LONGEST_NAME;
  const cut = isLong ? all.slice(0, LONGEST_NAME).replace(HALF, '') : all;
  return cut.replace(HIDDEN, escaped) + (isLong ? '…' : '');
}

/**
 * A text of at most so many characters: names differ at their ends, so the middle is what goes.
 * @param {string} text
 * @param {number} most
 * @param {number} [tailShare] part of what is left that comes from the end
 */
export function cutMiddle(text, most, tailShare = 0.45) {
  if (text.length <= most) return text;
  const tail = most < 5 ? 0 : Math.floor((most - 1) * tailShare);
  const [first, last] = [text.slice(0, Math.max(0, most - 1 - tail)), text.slice(text.length - tail)];
  return first && first.replace(HALF, '') + '…' + last.replace(HALF, '');
}

/**
 * The same by width.
 * @param {string} text
 * @param {number} room in pixels
 * @param {(text: string) => number} measure width of a text in pixels
 * @param {number} [tailShare]
 */
export function fitMiddle(text, room, measure, tailShare) {
  const width = measure(text);
  if (width <= room) return text;
  let most = Math.floor((text.length * room) / width);
  let cut = cutMiddle(text, most, tailShare);
  while (most > 1 && measure(cut) > room) cut = cutMiddle(text, --most, tailShare);
  return cut;
}

/** Parts that may come from the end, and how many names are compared. */
const TAILS = [0.45, 0.15, 0.75];
const MOST_COMPARED = 100;

/**
 * The same, so that it differs from other names that are cut likewise, where that can be had.
 * @param {string} text
 * @param {string[]} others names beside it, which may have it too
 * @param {number} room  @param {(text: string) => number} measure
 */
export function fitApart(text, others, room, measure) {
  const first = fitMiddle(text, room, measure);
  if (first === text || others.length > MOST_COMPARED) return first;
  for (const tailShare of TAILS) {
    const cut = fitMiddle(text, room, measure, tailShare);
    if (!others.some((other) => other !== text && cutMiddle(other, cut.length, tailShare) === cut)) return cut;
  }
  return first;
}

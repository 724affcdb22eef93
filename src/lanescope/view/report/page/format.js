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

/** @param {number} size */
function bytes(size) {
  if (size < 1024) return `${size} B`;
  const power = Math.min(Math.floor(Math.log2(size) / 10), 4);
  return `${fixed(size / 1024 ** power, 1)} ${['KiB', 'MiB', 'GiB', 'TiB'][power - 1]}`;
}

/**
 * A value as text.
 * @param {import('./types.js').Whole | null | undefined} value
 * @param {string} kind `time` in its unit with three digits; `exact`: all digits; `count`, `share`, `number`, `bytes`
 * @param {string} [unit] of times: `ns` or `cycles`, which are never shown as time
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
  return kind === 'count' ? counted(number) : plain(number);
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
 */
export function axisText(t, step, unit, largest) {
  if (unit !== 'ns') return t === 0 ? `0 ${unit}` : withSeparators(String(Math.round(t)));
  const units = /** @type {[string, number][]} */ ([...TIMES, ['ns', 1]]);
  const [name, size] = units.find(([, size]) => largest >= size && step >= size / 1000) ?? ['ns', 1];
  const digits = Math.min(3, Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)));
  return `${withSeparators((t / size).toFixed(digits))} ${name}`;
}

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const LONGEST_NAME = 400;

/**
 * A text of the trace: characters that hide text or turn it around are shown, never obeyed.
 * @param {unknown} text
 * @returns {string}
 */
export function clean(text) {
  const cut = String(text).slice(0, LONGEST_NAME + 1);
  const shown = cut.replace(HIDDEN, (c) => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0'));
  return cut.length > LONGEST_NAME ? shown.slice(0, LONGEST_NAME) + '…' : shown;
}

/**
 * A text of at most so many characters: names differ at their ends, so the middle is what goes.
 * @param {string} text
 * @param {number} most
 */
export function cutMiddle(text, most) {
  if (text.length <= most) return text;
  if (most < 5) return most < 2 ? '' : text.slice(0, most - 1) + '…';
  const tail = Math.floor((most - 1) * 0.45);
  return text.slice(0, most - 1 - tail) + '…' + text.slice(text.length - tail);
}

/**
 * The same by width.
 * @param {string} text
 * @param {number} room in pixels
 * @param {(text: string) => number} measure width of a text in pixels
 */
export function fitMiddle(text, room, measure) {
  const width = measure(text);
  if (width <= room) return text;
  let most = Math.floor((text.length * room) / width);
  let cut = cutMiddle(text, most);
  while (most > 1 && measure(cut) > room) cut = cutMiddle(text, --most);
  return cut;
}

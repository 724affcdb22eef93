// Level of detail: what of a strip is drawn at a width, exact in each column of pixels.
// The same as lanescope/view/model/lod.py, which explains it; tests compare both.

/** Pixels beyond which a slice is a rectangle of its own, and beyond which it has room for a label. */
export const WIDE = 1.5;
export const LABELLED = 26;
/** Of a name that is cut to no more characters than these nothing is written: `s…y` tells nothing. */
export const LEAST_LABEL = 4;
/** Opacities of columns: a short slice alone stays visible. */
export const OPACITIES = [0.42, 0.62, 0.82, 1];
const RADIX = 16;

/** @typedef {ArrayLike<number>} Numbers */

/**
 * First index in [a, b) with array[index] > x; b if there is none.
 * @param {Numbers} array rising  @param {number} x  @param {number} a  @param {number} b
 */
export function firstAfter(array, x, a, b) {
  while (a < b) {
    const middle = (a + b) >> 1;
    if (array[middle] > x) b = middle;
    else a = middle + 1;
  }
  return a;
}

/**
 * First index in [a, b) with array[index] >= x, by steps that double from a: O(log of the distance).
 * @param {Numbers} array rising  @param {number} x  @param {number} a  @param {number} b
 */
export function gallop(array, x, a, b) {
  let step = 1;
  while (a + step < b && array[a + step] < x) {
    a += step;
    step *= 2;
  }
  let stop = Math.min(b, a + step + 1);
  while (a < stop) {
    const middle = (a + stop) >> 1;
    if (array[middle] >= x) stop = middle;
    else a = middle + 1;
  }
  return a;
}

/** @param {number} share of a column that is busy  @returns {number} index into OPACITIES */
export const opacityOf = (share) => (share > 0.8 ? 3 : share > 0.5 ? 2 : share > 0.2 ? 1 : 0);

/** The longest slice of any range, from a pyramid: entry j of level k is the longest of [16^(k+1) j, 16^(k+1) (j+1)). */
export class Longest {
  /** @param {Numbers} begin  @param {Numbers} end */
  constructor(begin, end) {
    this.begin = begin;
    this.end = end;
    /** @type {Int32Array[]} */
    this.levels = [];
    /** @type {Int32Array | null} */
    let below = null;
    for (let m = begin.length; m > RADIX; m = Math.ceil(m / RADIX)) {
      const level = new Int32Array(Math.ceil(m / RADIX));
      for (let j = 0; j < level.length; j++) level[j] = this.best(below, j * RADIX, Math.min(m, (j + 1) * RADIX), -1);
      this.levels.push(level);
      below = level;
    }
  }

  /**
   * The longest of the entries [a, b) of a level, or `best` if that is at least as long.
   * @param {Int32Array | null} level null: the slices themselves
   * @param {number} a  @param {number} b  @param {number} best -1: none yet
   */
  best(level, a, b, best) {
    let most = best < 0 ? -1 : this.end[best] - this.begin[best];
    for (let k = a; k < b; k++) {
      const i = level ? level[k] : k;
      const length = this.end[i] - this.begin[i];
      if (length > most || (length === most && i < best)) {
        most = length;
        best = i;
      }
    }
    return best;
  }

  /**
   * Row of the longest of [a, b), the first of equals: O(16 log16 n).
   * @param {number} a  @param {number} b
   */
  of(a, b) {
    let best = -1;
    for (let k = -1; ; k++) {
      const level = k < 0 ? null : this.levels[k];
      if (b - a <= 2 * RADIX || k + 1 >= this.levels.length) return this.best(level, a, b, best);
      const inner = Math.ceil(a / RADIX);
      const outer = Math.floor(b / RADIX);
      best = this.best(level, a, inner * RADIX, best);
      best = this.best(level, outer * RADIX, b, best);
      a = inner;
      b = outer;
    }
  }
}

/**
 * Slices along their strips, with what drawing looks up.
 * @typedef {object} Detail
 * @property {Float64Array} begin times; `end` likewise
 * @property {Float64Array} end
 * @property {Float64Array} sums [n + 1], running sums of the time that slices cover
 * @property {Int32Array} start [strips + 1], first row of each strip
 * @property {Longest} longest
 */

/**
 * What to draw of a strip, from left to right. O(min(slices, width) log slices).
 * @param {Detail} detail
 * @param {number} strip
 * @param {number} t0 time of the left edge  @param {number} t1 of the right edge
 * @param {number} width pixels between them
 * @param {(longest: number, first: number, stop: number) => number} colourOf colour of the rows [first, stop)
 * @param {(left: number, right: number, row: number, colour: number, opacity: number, slices: number,
 *   alone: boolean) => void} draw gets each rectangle; of one that is `alone` the edges are those of the slice
 */
export function walkStrip(detail, strip, t0, t1, width, colourOf, draw) {
  const { begin, end, sums, longest } = detail;
  const stop = detail.start[strip + 1];
  const perTime = width / (t1 - t0);
  // The rectangle of columns that is being put together: columns that touch and look alike are one.
  let left = 0, right = -1, row = 0, colour = 0, opacity = 0, slices = 0;
  let i = firstAfter(end, t0, detail.start[strip], stop);
  while (i < stop && begin[i] < t1) {
    const x = (begin[i] - t0) * perTime;
    const wide = (end[i] - begin[i]) * perTime;
    if (wide > WIDE) {
      if (right >= 0) draw(left, right, row, colour, opacity, slices, false);
      right = -1;
      draw(x, x + wide, i, colourOf(i, i, i + 1), 3, 1, true);
      i++;
      continue;
    }
    const column = Math.max(Math.floor(x), 0);
    let next = Math.max(gallop(begin, t0 + (column + 1) / perTime, i, stop), i + 1);
    if (next - 1 > i && (end[next - 1] - begin[next - 1]) * perTime > WIDE) next--;
    const share = opacityOf(Math.min((sums[next] - sums[i]) * perTime, 1));
    const top = next === i + 1 ? i : longest.of(i, next);
    const its = colourOf(top, i, next);
    if (right === column && its === colour && share === opacity) {
      right++;
      slices += next - i;
    } else {
      if (right >= 0) draw(left, right, row, colour, opacity, slices, false);
      left = column;
      right = column + 1;
      row = top;
      colour = its;
      opacity = share;
      slices = next - i;
    }
    i = next;
  }
  if (right >= 0) draw(left, right, row, colour, opacity, slices, false);
}

/** How many intervals run at a time: a step function with its integral. O(m log m) once, O(log m) a question. */
export class Activity {
  /** @param {Float64Array} begins  @param {Float64Array} ends in any order, both are sorted here */
  constructor(begins, ends) {
    const m = begins.length;
    begins.sort();
    ends.sort();
    this.time = new Float64Array(2 * m + 1);
    this.running = new Int32Array(2 * m + 1);
    this.area = new Float64Array(2 * m + 1);
    this.steps = 1;
    this.peak = 1;
    let running = 0;
    for (let i = 0, j = 0; j < m;) {
      const t = i < m && begins[i] < ends[j] ? begins[i] : ends[j];
      for (; i < m && begins[i] === t; i++) running++;
      for (; j < m && ends[j] === t; j++) running--;
      const p = this.steps;
      this.time[p] = t;
      this.area[p] = this.area[p - 1] + this.running[p - 1] * (t - this.time[p - 1]);
      this.running[p] = running;
      this.peak = Math.max(this.peak, running);
      this.steps++;
    }
  }

  /** @param {number} t  @returns {number} the integral up to t */
  until(t) {
    const p = Math.max(firstAfter(this.time, t, 1, this.steps) - 1, 0);
    return this.area[p] + this.running[p] * (t - this.time[p]);
  }

  /** @param {number} t0  @param {number} t1  @returns {number} how many run, on average */
  mean(t0, t1) {
    return (this.until(t1) - this.until(t0)) / (t1 - t0);
  }
}

// The window of time that is shown, how it moves, and the loop that draws a frame when something changed.

const GLIDE_MS = 260;
/** Widths per second that a held key pans, and powers of e that it zooms. */
const PAN_SPEED = 1.1;
const ZOOM_SPEED = 2.6;
/** How much of the window may be beyond the ends of the trace. */
const BEYOND = 0.1;

export class Stage {
  /** @param {number} span  @param {number} scale  @param {() => void} draw one frame */
  constructor(span, scale, draw) {
    this.span = span;
    this.t0 = 0;
    this.t1 = span;
    /** Pixels of the canvas that has the lanes. */
    this.width = 1;
    this.height = 1;
    this.least = Math.max(scale / 16, 8);
    this.draw = draw;
    /** Keys that are held down. @type {Set<string>} */
    this.held = new Set();
    /** Where the pointer is, or null. @type {number | null} */
    this.pointer = null;
    this.asked = false;
    this.gliding = 0;
    this.lastMove = 0;
    /** What to do when the window came to rest. @type {() => void} */
    this.settled = () => {};
    /** Where zooming by key is anchored without a pointer: a moment, or null. @type {() => number | null} */
    this.anchor = () => null;
  }

  get duration() {
    return this.t1 - this.t0;
  }

  /** @param {number} x  @returns {number} */
  timeAt(x) {
    return this.t0 + (this.duration * x) / this.width;
  }

  /** @param {number} t  @returns {number} */
  xOf(t) {
    return ((t - this.t0) * this.width) / this.duration;
  }

  /** Ask for a frame. */
  changed() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => this.frame());
  }

  frame() {
    this.asked = false;
    this.moveByKeys();
    this.clamp();
    this.draw();
  }

  /** At most the whole trace and a little, at least some ticks of its clock. */
  clamp() {
    const duration = Math.min(this.span * (1 + 2 * BEYOND), Math.max(this.least, this.duration));
    let middle = (this.t0 + this.t1) / 2;
    const reach = duration * (0.5 - BEYOND);
    if (duration >= this.span) middle = this.span / 2;
    else middle = Math.min(this.span - reach, Math.max(reach, middle));
    this.t0 = middle - duration / 2;
    this.t1 = middle + duration / 2;
  }

  /** @param {number} by time */
  shift(by) {
    this.stopGliding();
    this.t0 += by;
    this.t1 += by;
    this.changed();
  }

  /** @param {number} factor below 1: in  @param {number} around the moment that stays where it is */
  zoom(factor, around) {
    this.stopGliding();
    const duration = Math.min(this.span * (1 + 2 * BEYOND), Math.max(this.least, this.duration * factor));
    const part = (around - this.t0) / this.duration;
    this.t0 = around - part * duration;
    this.t1 = this.t0 + duration;
    this.changed();
  }

  /** @param {number} t0  @param {number} t1 */
  set(t0, t1) {
    this.stopGliding();
    this.t0 = t0;
    this.t1 = t1;
    this.changed();
  }

  stopGliding() {
    cancelAnimationFrame(this.gliding);
  }

  /**
   * Glide to a window; its width changes by the same factor in each step.
   * @param {number} t0  @param {number} t1
   */
  goTo(t0, t1) {
    this.stopGliding();
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.set(t0, t1);
      this.settled();
      return;
    }
    const [from, to] = [Math.log(this.duration), Math.log(Math.max(t1 - t0, this.least))];
    const [here, there] = [(this.t0 + this.t1) / 2, (t0 + t1) / 2];
    const begun = performance.now();
    const step = (/** @type {number} */ now) => {
      const done = Math.max(0, Math.min(1, (now - begun) / GLIDE_MS));
      const eased = 1 - (1 - done) ** 3;
      const duration = Math.exp(from + (to - from) * eased);
      const middle = here + (there - here) * eased;
      this.t0 = middle - duration / 2;
      this.t1 = middle + duration / 2;
      this.changed();
      if (done < 1) this.gliding = requestAnimationFrame(step);
      else this.settled();
    };
    this.gliding = requestAnimationFrame(step);
  }

  whole() {
    this.goTo(0, this.span);
  }

  /** @param {string} key one of w, a, s, d */
  press(key) {
    this.stopGliding();
    this.held.add(key);
    this.changed();
  }

  /** @param {string} [key] all if not given */
  release(key) {
    if (key === undefined) this.held.clear();
    else if (!this.held.delete(key)) return;
    if (!this.held.size) this.settled();
  }

  moveByKeys() {
    if (!this.held.size) {
      this.lastMove = 0;
      return;
    }
    const now = performance.now();
    const seconds = this.lastMove ? Math.min(50, now - this.lastMove) / 1000 : 0.016;
    this.lastMove = now;
    const around = this.pointer !== null ? this.timeAt(this.pointer) : this.anchor() ?? (this.t0 + this.t1) / 2;
    const pan = this.duration * seconds * PAN_SPEED;
    if (this.held.has('a')) this.shift(-pan);
    if (this.held.has('d')) this.shift(pan);
    if (this.held.has('w')) this.zoom(Math.exp(-ZOOM_SPEED * seconds), around);
    if (this.held.has('s')) this.zoom(Math.exp(ZOOM_SPEED * seconds), around);
    this.changed();
  }
}

/**
 * Moments for ticks at steps of 1, 2 or 5 times a power of ten.
 * @param {number} t0  @param {number} t1  @param {number} width pixels  @param {number} apart least pixels between two
 */
export function ticks(t0, t1, width, apart = 110) {
  const least = ((t1 - t0) / width) * apart;
  const power = 10 ** Math.floor(Math.log10(least));
  const step = Math.max(1, power * (/** @type {number} */ ([1, 2, 5, 10].find((m) => m * power >= least))));
  const moments = [];
  for (let t = Math.ceil(t0 / step) * step; t <= t1; t += step) moments.push(t);
  return { moments, step };
}

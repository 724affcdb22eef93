// Colors. Those of slices are the same in both themes; all others are the custom properties of the style sheet.
import { byId } from './dom.js';

/** Fills of slices, no two of which look alike to any kind of sight; none is red, which is for what is wrong. */
export const FILLS = ['#8ec2fd', '#fcaa2b', '#5a947e', '#966cd7', '#d06217', '#b488a9', '#afaf7b', '#fbe1b0'];
/** Further fills: what waits, what a search did not find, columns of pixels that hide what it found. */
export const NEUTRAL = 8;
export const DIMMED = 9;
export const HIDES_HIT = 10;
const LABEL_ON_FILL = '#10151c';
/** Colors of texts on fills; of the last two one can be read on any. */
const INKS = [LABEL_ON_FILL, '#e4e9f0', '#fff', '#000'];
const READABLE = 4.56;

const TOKENS = /** @type {const} */ (['bg', 'bg2', 'panel', 'ink', 'dim', 'faint', 'line', 'edge', 'accent', 'bad', 'warn',
  'neutral', 'hatch', 'loss', 'area', 'flow', 'select']);

/** @typedef {Record<typeof TOKENS[number], string>} Tokens */

export class Theme {
  /** @param {() => void} changed called behind each change */
  constructor(changed) {
    this.changed = changed;
    this.name = '';
    this.sans = '';
    this.tokens = /** @type {Tokens} */ ({});
    this.fills = FILLS;
    /** Colors of texts by theme, fill and opacity. @type {Map<string, string>} */
    this.labels = new Map();
    /** @type {CanvasPattern | string} */
    this.unrecorded = '';
    /** @type {CanvasPattern | string} */
    this.lost = '';
    const prefersDark = matchMedia('(prefers-color-scheme: dark)');
    prefersDark.addEventListener('change', () => this.use(prefersDark.matches ? 'dark' : 'light'));
    this.use(prefersDark.matches ? 'dark' : 'light');
    byId('theme').addEventListener('click', () => this.flip());
  }

  /** @param {string} name `light` or `dark` */
  use(name) {
    this.name = name;
    document.documentElement.dataset.theme = name;
    const style = getComputedStyle(document.documentElement);
    const read = (/** @type {string} */ token) => style.getPropertyValue(`--${token}`).trim();
    this.tokens = /** @type {Tokens} */ (Object.fromEntries(TOKENS.map((token) => [token, read(token)])));
    this.sans = read('sans');
    this.fills = [...FILLS, this.tokens.neutral, this.tokens.faint, this.tokens.accent];
    this.unrecorded = stripes(this.tokens.hatch, 4, 1);
    this.lost = stripes(this.tokens.loss, 4, 1.6);
    this.changed();
  }

  flip() {
    this.use(this.name === 'dark' ? 'light' : 'dark');
  }

  /**
   * The colour of a text on a fill: the first one that can be read there.
   * @param {number} colour of the fill, an index into `fills`
   * @param {number} opacity of the fill, over the background
   * @returns {string}
   */
  labelOn(colour, opacity) {
    const key = `${this.name} ${colour} ${opacity}`;
    let found = this.labels.get(key);
    if (found === undefined) {
      const [fill, behind] = [this.fills[colour], this.tokens.bg].map(channels);
      const below = luminance(fill.map((value, k) => value * opacity + behind[k] * (1 - opacity)));
      const contrast = (/** @type {string} */ text) => {
        const own = luminance(channels(text));
        return (Math.max(own, below) + 0.05) / (Math.min(own, below) + 0.05);
      };
      found = INKS.find((ink) => contrast(ink) >= READABLE) ?? INKS.reduce((best, ink) => (contrast(ink) > contrast(best) ? ink : best));
      this.labels.set(key, found);
    }
    return found;
  }

  /** @param {number} colour as the header has it  @returns {string} */
  fillOf(colour) {
    return this.fills[colour < 0 ? NEUTRAL : colour];
  }
}

/** @param {string} hex `#rgb` or `#rrggbb`  @returns {number[]} red, green and blue, 0 to 1 */
function channels(hex) {
  const digits = hex.length < 5 ? [...hex.slice(1)].map((digit) => digit + digit) : [1, 3, 5].map((at) => hex.slice(at, at + 2));
  return digits.map((two) => parseInt(two, 16) / 255);
}

/** @param {number[]} rgb  @returns {number} relative luminance, as WCAG has it */
function luminance(rgb) {
  const [red, green, blue] = rgb.map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

/**
 * Diagonal stripes to fill with.
 * @param {string} colour
 * @param {number} distance pixels between them
 * @param {number} thickness
 */
function stripes(colour, distance, thickness) {
  const tile = document.createElement('canvas');
  tile.width = tile.height = distance * 2;
  const c = /** @type {CanvasRenderingContext2D} */ (tile.getContext('2d'));
  c.strokeStyle = colour;
  c.lineWidth = thickness;
  c.beginPath();
  for (let k = -2; k < 4; k++) {
    c.moveTo(k * distance - 1, distance * 2 + 1);
    c.lineTo(k * distance + distance * 2 + 1, -1);
  }
  c.stroke();
  return /** @type {CanvasPattern} */ (c.createPattern(tile, 'repeat'));
}

/**
 * The drawing context of a canvas, fitted to its place on the page and to the screen's density.
 * @param {HTMLCanvasElement} canvas
 * @returns {{c: CanvasRenderingContext2D, width: number, height: number}}
 */
export function fitCanvas(canvas) {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const density = Math.min(devicePixelRatio || 1, 2);
  const [w, h] = [Math.max(1, Math.round(width * density)), Math.max(1, Math.round(height * density))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const c = /** @type {CanvasRenderingContext2D} */ (canvas.getContext('2d', { alpha: false }));
  c.setTransform(density, 0, 0, density, 0, 0);
  return { c, width: Math.max(1, width), height: Math.max(1, height) };
}

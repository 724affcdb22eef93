// Colors. Those of slices are the same in both themes; all others are the custom properties of the style sheet.
import { byId } from './dom.js';

/** Fills of slices, no two of which look alike to any kind of sight; none is red, which is for what is wrong. */
export const FILLS = ['#8ec2fd', '#fcaa2b', '#5a947e', '#966cd7', '#d06217', '#b488a9', '#afaf7b', '#fbe1b0'];
/** Further fills: what waits, what a search did not find, columns of pixels that hide what it found. */
export const NEUTRAL = 8;
export const DIMMED = 9;
export const HIDES_HIT = 10;
export const LABEL_ON_FILL = '#10151c';

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

  /** @param {number} colour as the header has it  @returns {string} */
  fillOf(colour) {
    return this.fills[colour < 0 ? NEUTRAL : colour];
  }
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

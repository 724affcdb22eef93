// Search by name: others turn grey, Enter steps through what was found.
import { byId } from './dom.js';
import { numberText } from './format.js';

/** @typedef {import('./main.js').App} App */

/** A hit that is narrower than this is zoomed at. */
const TOO_NARROW = 6;
const WIDTH_THEN = 90;

export class Search {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** `mask`: names that match; `sums`: running number of rows that do. @type {{mask: Uint8Array, sums: Int32Array} | null} */
    this.hits = null;
    /** Rows found, by time; made at the first step. @type {Int32Array | null} */
    this.order = null;
    this.at = -1;
    this.input = /** @type {HTMLInputElement} */ (byId('search'));
    this.input.addEventListener('input', () => app.whenReady(() => this.find(this.input.value)));
    this.input.addEventListener('focus', () => {
      app.stage.pointer = null;
    });
    this.input.addEventListener('keydown', (event) => {
      if (event.key === 'Enter') this.step(event.shiftKey ? -1 : 1);
    });
  }

  get found() {
    return this.hits ? this.hits.sums[this.hits.sums.length - 1] : 0;
  }

  /**
   * Find names that contain a text, or the one that it is.
   * @param {string} text
   * @param {boolean} [whole] the whole name
   */
  find(text, whole = false) {
    const { header, model } = this.app;
    this.order = null;
    this.at = -1;
    this.hits = null;
    if (text) {
      const wanted = text.toLowerCase();
      const matches = (/** @type {string} */ name) => (whole ? name === text : name.toLowerCase().includes(wanted));
      const mask = Uint8Array.from(header.names, (name) => Number(matches(name)));
      const sums = new Int32Array(model.n + 1);
      for (let i = 0; i < model.n; i++) sums[i + 1] = sums[i] + mask[model.name[i]];
      this.hits = { mask, sums };
    }
    this.write();
    this.app.stage.changed();
  }

  /** Show the number found and which of them is shown. */
  write() {
    const count = numberText(this.found, 'count');
    byId('hits').textContent = !this.hits ? '' : this.at < 0 ? count : `${numberText(this.at + 1, 'count')}/${count}`;
    this.input.classList.toggle('none', this.hits !== null && this.found === 0);
  }

  /** Rows found, by time. @returns {Int32Array} */
  inOrder() {
    const { model } = this.app;
    const rows = new Int32Array(this.found);
    const { mask } = /** @type {{mask: Uint8Array}} */ (this.hits);
    for (let i = 0, k = 0; i < model.n; i++) if (mask[model.name[i]]) rows[k++] = i;
    return rows.sort((a, b) => model.begin[a] - model.begin[b]);
  }

  /** Next or previous of what was found. @param {number} by */
  step(by) {
    if (!this.hits || !this.found) return;
    const { stage, model, selection } = this.app;
    this.order ??= this.inOrder();
    this.at = this.at < 0 && by < 0 ? this.order.length - 1 : (this.at + by + this.order.length) % this.order.length;
    const row = this.order[this.at];
    const long = model.end[row] - model.begin[row];
    selection.select(row, { jump: true });
    if ((long / stage.duration) * stage.width < TOO_NARROW) {
      const half = Math.max((long * stage.width) / WIDTH_THEN, 64 * model.scale) / 2;
      const middle = (model.begin[row] + model.end[row]) / 2;
      stage.goTo(middle - half, middle + half);
    }
    this.write();
  }

  /** Search for one name, and go to its first slice. @param {string} name */
  forName(name) {
    this.input.value = name;
    this.find(name, true);
    this.step(1);
  }

  clear() {
    this.input.value = '';
    this.find('');
  }
}

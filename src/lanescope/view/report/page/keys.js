// The keyboard, as in Perfetto's viewer where it has the same.
import { byId, el } from './dom.js';

/** @typedef {import('./main.js').App} App */

const HELP = /** @type {[string, string][]} */ ([
  ['W S', 'zoom in, out: at the pointer, else at the selection'],
  ['A D', 'pan'],
  ['← →', 'previous, next slice of the lane'],
  ['↑ ↓', 'nearest slice of the lane above, below'],
  ['Home End', 'first, last slice of the lane'],
  ['[ ]', 'follow a flow back, onward'],
  ['F', 'focus the selection; again: with its flows'],
  ['Space', 'close or open the group of the lane'],
  ['/', 'search names; Enter: next, Shift+Enter: previous'],
  ['N P', 'next, previous finding'],
  ['Q', 'sums of the window, as of a range measured with Shift and drag'],
  ['0', 'whole capture'],
  ['1 – 9', 'tabs'],
  ['T', 'light or dark'],
  ['Esc', 'clear'],
  ['wheel', 'scroll lanes; with Ctrl zoom, with Shift pan'],
  ['drag', 'pan; on the ruler: zoom to the range; on the map: move the window'],
]);

export class Keys {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.help = /** @type {HTMLDialogElement} */ (byId('keys'));
    for (const [keys, text] of HELP) {
      byId('keylist').append(el('dt', {}, ...keys.split(' ').map((key) => el('kbd', {}, key))), el('dd', {}, text));
    }
    byId('help').addEventListener('click', () => this.help.showModal());
    addEventListener('keydown', (event) => this.press(event));
    addEventListener('keyup', (event) => app.stage.release(event.key.toLowerCase()));
    addEventListener('blur', () => app.stage.release());
    byId('whole').addEventListener('click', () => app.stage.whole());
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const { app } = this;
    const isTyping = event.target instanceof HTMLInputElement;
    if (event.key === 'Escape') return this.escape(isTyping ? /** @type {HTMLInputElement} */ (event.target) : null);
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || this.help.open || !app.ready) return;
    const key = event.key.toLowerCase();
    const isElsewhere = event.target instanceof Element && event.target.closest('#drawer, #top, header, #grip') !== null;
    const used = /^[wasd]$/.test(key) ? (app.stage.press(key), true) : this.command(key) || (!isElsewhere && this.walk(key));
    if (used) event.preventDefault();
  }

  /** @param {HTMLInputElement | null} input that has the keyboard */
  escape(input) {
    const { search, selection } = this.app;
    if (this.help.open || !this.app.ready) return;
    if (input) {
      input.blur();
      byId('lanes').focus({ preventScroll: true });
    } else if (selection.row >= 0 || selection.range || selection.place) selection.clear();
    else search.clear();
  }

  /** Keys that work wherever the focus is. @param {string} key  @returns {boolean} whether it is one */
  command(key) {
    const { app } = this;
    const { stage, selection, search, findings, drawer, theme } = app;
    if (key === '/') search.input.select();
    else if (key === 'f' && selection.row >= 0) selection.select(selection.row, { jump: true, focus: true });
    else if (key === '0') stage.whole();
    else if (key === 't') theme.flip();
    else if (key === '?') this.help.showModal();
    else if (key === 'n' || key === 'p') findings.step(key === 'n' ? 1 : -1);
    else if (key >= '1' && key <= '9') drawer.showNumber(Number(key));
    else if (key === '[' || key === ']') selection.follow(key === ']');
    else if (key === 'q') app.measureWindow();
    else return false;
    return true;
  }

  /** Keys that walk, unless something else has the focus. @param {string} key  @returns {boolean} whether it is one */
  walk(key) {
    const { selection, lanes, model } = this.app;
    if (key === 'arrowright' || key === 'arrowleft') selection.step(key === 'arrowright' ? 1 : -1);
    else if (key === 'arrowup' || key === 'arrowdown') selection.stepLane(key === 'arrowdown' ? 1 : -1);
    else if (key === 'home' || key === 'end') selection.end(key === 'end');
    else if (key === ' ') {
      if (selection.row >= 0) lanes.foldAround(model.trackOf(selection.row));
      else if (lanes.inView()[0]) lanes.foldAround(lanes.inView()[0].track);
    } else return false;
    return true;
  }
}

// The drawer below the lanes: tabs with the selection, the tables, and what is known of the file.
import { byId, button, el } from './dom.js';
import { clean, numberText } from './format.js';
import { aboutView, nothingView, rangeView, sliceView } from './details.js';
import { matrixView, tableView } from './tables.js';

/** @typedef {import('./main.js').App} App */

const LEAST_HEIGHT = 80;
const KEY_STEP = 24;

export class Drawer {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.panel = byId('panel');
    this.tabs = byId('tabs');
    this.shown = '';
    /** Tables that were made. @type {Map<string, HTMLElement>} */
    this.made = new Map();
    this.ids = ['selection', ...app.header.tables.map(({ id }) => id), 'about'];
    this.setUpGrip();
  }

  write() {
    const { tables } = this.app.header;
    const titles = ['Selection', ...tables.map(({ title }) => clean(title)), 'About'];
    this.ids.forEach((id, k) => {
      const total = tables[k - 1]?.total;
      this.tabs.append(button({
        role: 'tab', id: `tab-${id}`, 'aria-controls': 'panel', title: k < 9 ? `Key ${k + 1}` : '', onclick: () => this.show(id),
      }, titles[k], total ? el('small', {}, ` ${numberText(total, 'count')}`) : null));
    });
    this.tabs.addEventListener('keydown', (event) => this.key(event));
    this.show(this.ids[1]);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const at = this.ids.indexOf(this.shown);
    const last = this.ids.length - 1;
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    const id = this.ids[(to + last + 1) % (last + 1)];
    this.show(id);
    byId(`tab-${id}`).focus();
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {string} id */
  show(id) {
    this.shown = id;
    for (const tab of this.tabs.children) {
      const isShown = tab.id === `tab-${id}`;
      tab.setAttribute('aria-selected', String(isShown));
      tab.setAttribute('tabindex', isShown ? '0' : '-1');
    }
    this.panel.setAttribute('aria-labelledby', `tab-${id}`);
    this.panel.replaceChildren(this.contentOf(id));
  }

  /** @param {number} number as the key has it: 1 is the first */
  showNumber(number) {
    if (number <= this.ids.length) this.show(this.ids[number - 1]);
  }

  /** @param {string} id  @returns {HTMLElement} */
  contentOf(id) {
    const { app } = this;
    if (id === 'about') return aboutView(app);
    if (id === 'selection') return this.selected();
    const table = app.header.tables.find((one) => one.id === id);
    if (!table) return nothingView(app);
    let made = this.made.get(id);
    if (!made) {
      made = tableView(app, table);
      if (table.matrix && table.matrix.names.length) made = el('div', { class: 'split' }, matrixView(table.matrix), made);
      this.made.set(id, made);
    }
    return made;
  }

  selected() {
    const { app } = this;
    if (!app.ready) return nothingView(app);
    if (app.selection.row >= 0) return sliceView(app, app.selection.row);
    return app.selection.range ? rangeView(app, app.selection.range) : nothingView(app);
  }

  /** Show what is selected; if nothing is, only where the selection was shown before. */
  showSelection() {
    const { row, range } = this.app.selection;
    if (row >= 0 || range || this.shown === 'selection') this.show('selection');
  }

  setUpGrip() {
    const grip = byId('grip');
    const drawer = byId('drawer');
    /** @type {{y: number, height: number} | null} */
    let from = null;
    const resize = (/** @type {number} */ height) => {
      const shown = Math.max(LEAST_HEIGHT, Math.min(innerHeight * 0.7, height));
      document.documentElement.style.setProperty('--drawer', `${shown}px`);
      grip.setAttribute('aria-valuenow', String(Math.round((shown / innerHeight) * 100)));
    };
    grip.addEventListener('pointerdown', (event) => {
      grip.setPointerCapture(event.pointerId);
      from = { y: event.clientY, height: drawer.offsetHeight };
    });
    grip.addEventListener('pointermove', (event) => {
      if (from) resize(from.height + from.y - event.clientY);
    });
    for (const name of ['pointerup', 'pointercancel']) grip.addEventListener(name, () => (from = null));
    grip.addEventListener('keydown', (event) => {
      const by = { ArrowUp: KEY_STEP, ArrowDown: -KEY_STEP }[event.key];
      if (by === undefined) return;
      resize(drawer.offsetHeight + by);
      event.preventDefault();
      event.stopPropagation();
    });
  }
}

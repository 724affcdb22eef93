// Printing: light, the lanes as they are, then the first rows of every table.
import { byId, el } from './dom.js';
import { tableView } from './tables.js';

/** @typedef {import('./main.js').App} App */

const MOST_ROWS = 25;
const MOST_HEIGHT = 420;

/** @param {App} app */
export function setUpPrinting(app) {
  const panel = byId('panel');
  const scroller = byId('scroll');
  /** @type {{theme: string, panel: Node[]} | null} */
  let before = null;
  addEventListener('beforeprint', () => {
    if (before) return;
    before = { theme: app.theme.name, panel: [...panel.childNodes] };
    app.theme.use('light');
    const tables = app.header.tables.flatMap((table) => [el('h2', {}, table.title), tableView(app, { ...table, rows: table.rows.slice(0, MOST_ROWS) })]);
    panel.replaceChildren(el('div', { class: 'printed' }, ...tables));
    if (!app.ready) return;
    scroller.style.height = `${Math.min(app.lanes.height, MOST_HEIGHT)}px`;
    app.resize();
    app.stage.frame();
  });
  addEventListener('afterprint', () => {
    if (!before) return;
    panel.replaceChildren(...before.panel);
    scroller.style.height = '';
    app.theme.use(before.theme);
    before = null;
    if (app.ready) app.resize();
  });
}

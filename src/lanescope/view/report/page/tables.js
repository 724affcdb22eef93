// Tables: sorted by any column, filtered, with bars for shares; names in them are searches, lanes and moments are places.
import { button, el } from './dom.js';
import { clean, cutMiddle, fitApart, numberText, UNKNOWN } from './format.js';
import { pathOf } from './model.js';

/** @typedef {import('./main.js').App} App */
/** @typedef {import('./types.js').Table} Table */
/** @typedef {import('./types.js').TableColumn} TableColumn */
/** @typedef {import('./types.js').CellValue} CellValue */

const LONGEST_CELL = 52;
const MOST_NAMES_SHOWN = 14;

/** @param {TableColumn} column */
const isNumeric = ({ kind }) => kind !== 'text' && kind !== 'track' && kind !== 'name';

/**
 * @param {App} app
 * @param {CellValue} value
 * @param {TableColumn} column
 * @returns {string}
 */
export function cellText(app, value, { kind, unit }) {
  if (value === null || value === undefined) return UNKNOWN;
  if (kind === 'track') return clean(pathOf(app.tracks, Number(value)));
  if (kind === 'text' || kind === 'name') return clean(value);
  if (kind === 'time' || kind === 'moment') return numberText(value, 'time', unit || app.unit);
  if (kind === 'change') return `${Number(value) > 0 ? '+' : ''}${numberText(value, 'share')}`;
  return numberText(value, kind);
}

/**
 * A table with its filter.
 * @param {App} app
 * @param {Table} table
 */
export function tableView(app, table) {
  const { columns } = table;
  let by = -1, falling = true, wanted = '';
  const body = el('tbody');
  const bars = barColumn(table);
  const heads = columns.map((column, k) => {
    const sort = button({
      onclick: () => {
        falling = by === k ? !falling : isNumeric(column);
        by = k;
        fill();
      },
    }, clean(column.name));
    return el('th', { scope: 'col', class: isNumeric(column) ? 'num' : '', title: clean(column.about) }, sort);
  });
  const fill = () => {
    const rows = sorted(wanted ? table.rows.filter((row) => matches(app, row, columns, wanted)) : table.rows, by, falling);
    heads.forEach((head, k) => head.setAttribute('aria-sort', by !== k ? 'none' : falling ? 'descending' : 'ascending'));
    body.replaceChildren(...rows.map((row) => tableRow(app, row, columns, bars)));
  };
  fill();
  const filter = el('input', {
    type: 'search', placeholder: 'Filter rows', 'aria-label': `Filter rows of ${table.title}`,
    oninput: (/** @type {InputEvent} */ event) => {
      wanted = /** @type {HTMLInputElement} */ (event.target).value.toLowerCase();
      fill();
    },
  });
  return el('div', { class: 'tablebox' },
    el('div', { class: 'tablehead' }, el('p', { class: 'note' }, aboutTable(table)), filter),
    el('table', {}, el('caption', { class: 'sr' }, table.title), el('thead', {}, el('tr', {}, ...heads)), body));
}

/** @param {Table} table */
function aboutTable({ about, rows, total }) {
  if (rows.length >= total) return about;
  return `${numberText(rows.length, 'count')} of ${numberText(total, 'count')} rows. ${about}`;
}

/**
 * The column that has bars, and what is a full one; -1: none.
 * @param {Table} table
 */
function barColumn({ columns, rows }) {
  let column = columns.findIndex(({ kind }) => kind === 'share');
  if (column >= 0) return { column, full: 1 };
  column = columns.findIndex(({ kind, name }) => kind === 'time' && /^(total|busy|time|length|duration)/.test(name));
  return { column, full: rows.reduce((most, row) => Math.max(most, Number(row[column] ?? 0)), 0) || 1 };
}

/** @param {App} app  @param {CellValue[]} row  @param {TableColumn[]} columns  @param {string} wanted */
function matches(app, row, columns, wanted) {
  return row.some((v, k) => !isNumeric(columns[k]) && cellText(app, v, columns[k]).toLowerCase().includes(wanted));
}

/** @param {CellValue[][]} rows  @param {number} by column, -1: as they are  @param {boolean} falling */
function sorted(rows, by, falling) {
  if (by < 0) return rows;
  const sign = falling ? -1 : 1;
  return rows.slice().sort((one, other) => {
    const [a, b] = [one[by], other[by]];
    if (a === null || b === null) return Number(a === null) - Number(b === null);
    return a < b ? -sign : a > b ? sign : 0;
  });
}

/** @param {App} app  @param {CellValue[]} row  @param {TableColumn[]} columns  @param {{column: number, full: number}} bars */
function tableRow(app, row, columns, bars) {
  return el('tr', {}, ...row.map((value, k) => {
    const column = columns[k];
    const text = cellText(app, value, column);
    const cell = el('td', { class: isNumeric(column) ? 'num' : '' });
    if (value !== null && (column.kind === 'time' || column.kind === 'moment')) {
      cell.title = numberText(value, 'exact', column.unit || app.unit);
    } else if (text.length > LONGEST_CELL) cell.title = text;
    const shown = isNumeric(column) ? text : cutMiddle(text, LONGEST_CELL);
    const go = value === null ? null : linkOf(app, value, row, columns, column);
    if (go && shown.trim()) cell.append(button({ class: 'link', onclick: () => app.whenReady(go) }, shown));
    else if (k === bars.column && value) {
      const bar = el('span', { class: 'bar' });
      bar.style.width = `${Math.min(100, (Number(value) / bars.full) * 100)}%`;
      cell.classList.add('barred');
      cell.append(bar, el('span', {}, shown));
    } else cell.textContent = shown;
    return cell;
  }));
}

/**
 * Where a cell leads to; null: nowhere.
 * @param {App} app  @param {string | number} value  @param {CellValue[]} row  @param {TableColumn[]} columns
 * @param {TableColumn} column
 * @returns {(() => void) | null}
 */
function linkOf(app, value, row, columns, { kind }) {
  if (kind === 'track') return () => app.lanes.reveal(Number(value));
  if (kind === 'name') return () => app.search.forName(String(value));
  if (kind !== 'moment') return null;
  const track = columns.findIndex((other) => other.kind === 'track');
  return () => {
    const half = app.stage.span / 100;
    if (track >= 0 && row[track] !== null) app.lanes.reveal(Number(row[track]));
    app.stage.goTo(Number(value) - half, Number(value) + half);
  };
}

/**
 * How much of each name's time another one runs too, as a picture.
 * @param {import('./types.js').Matrix} matrix
 */
export function matrixView({ names, shared }) {
  const shown = names.slice(0, MOST_NAMES_SHOWN).map((name) => clean(name));
  const cut = (/** @type {string} */ name, /** @type {number} */ most) => fitApart(name, shown, most, (text) => text.length);
  const head = el('tr', {}, el('td'),
    ...shown.map((name) => el('th', { scope: 'col', title: name }, el('span', {}, cut(name, 13)))));
  const rows = shown.map((name, i) => {
    const whole = Number(shared[i][i]);
    const cells = shown.map((other, k) => {
      const part = whole ? Number(shared[i][k]) / whole : 0;
      const cell = el('td', { class: 'heat' });
      cell.textContent = i === k ? '·' : !part ? '' : part < 0.005 ? '<1' : String(Math.round(part * 100));
      cell.title = `${other} runs in ${numberText(part, 'share')} of the time of ${name}`;
      if (i !== k) cell.style.setProperty('--part', part.toFixed(3));
      return cell;
    });
    return el('tr', {}, el('th', { scope: 'row', title: name }, cut(name, 24)), ...cells);
  });
  return el('div', { class: 'matrixbox' }, el('p', { class: 'note' }, 'Percent of the row’s time in which the column runs too.'),
    el('table', { class: 'matrix' }, el('thead', {}, head), el('tbody', {}, ...rows)));
}

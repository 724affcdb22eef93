// What the drawer shows besides tables: the selected slice, a measured range, the key to the colors, and the file.
import { button, el, terms } from './dom.js';
import { clean, numberText } from './format.js';
import { firstAfter } from './lod.js';
import { pathOf } from './model.js';

/** @typedef {import('./main.js').App} App */

const MOST_FLOWS = 40;
const MOST_NAMES = 60;
const MOST_CHIPS = 8;

/** @param {App} app  @param {number} value */
function twice({ unit }, value) {
  const [short, exact] = [numberText(value, 'time', unit), numberText(Math.round(value), 'exact', unit)];
  return el('span', {}, short, ...(short === exact ? [] : [' ', el('small', {}, exact)]));
}

/** @param {string} colour  @returns {HTMLElement} */
function dot(colour) {
  const made = el('i', { class: 'dot' });
  made.style.background = colour;
  return made;
}

/** @param {App} app  @param {number} row */
export function sliceView(app, row) {
  const { model, header, theme } = app;
  const name = header.names[model.name[row]];
  const track = model.trackOf(row);
  const focus = () => app.selection.select(row, { jump: true, focus: true });
  const flows = model.flowsOf(row);
  return el('div', { class: 'details' },
    el('h2', {}, dot(theme.fillOf(header.colours[model.name[row]])), el('span', {}, clean(name)),
      button({ class: 'link', title: 'Show the lane', onclick: () => app.lanes.reveal(track.id) }, clean(pathOf(app.tracks, track.id))),
      button({ onclick: focus, title: 'Let it fill the window (F)' }, 'Focus')),
    el('div', {}, el('h3', {}, model.bundles.has(row) ? 'Bundle of slices' : 'Slice'), terms(factsOf(app, row))),
    el('div', {}, el('h3', {}, 'Arguments'), argumentsOf(app, row)),
    el('div', { class: 'flows' }, el('h3', {}, `Flows (${flows.length})`),
      ...(flows.length ? flows.slice(0, MOST_FLOWS).map((flow) => flowLine(app, row, flow)) : [el('p', { class: 'note' }, header.flows_left ? 'none in this file' : 'none')]),
      header.flows_left ? el('p', { class: 'note' }, `${numberText(header.flows_left, 'count')} flows of the capture are not in this file`) : null));
}

/** @param {App} app  @param {number} row  @returns {[string, Node | string | null][]} */
function factsOf(app, row) {
  const { model, header, unit } = app;
  const long = model.end[row] - model.begin[row];
  const bundle = model.bundles.get(row);
  const notes = header.flags.filter((_, bit) => (model.flags[row] >> bit) & 1);
  if (bundle) {
    return [
      ['slices', numberText(bundle.count, 'count')],
      ['mostly', clean(header.names[model.name[row]])],
      ['from, to', `${numberText(model.begin[row], 'time', unit)}, ${numberText(model.end[row], 'time', unit)}`],
      ['busy', `${numberText(bundle.busy, 'time', unit)}, ${numberText(bundle.busy / (long || 1), 'share')}`],
      ['note', 'the file has these slices as one; totals are exact'],
    ];
  }
  return [
    ['duration', twice(app, long)],
    ['begin', twice(app, model.begin[row])],
    ['among its name', rankOf(app, row)],
    ['category', clean(header.cats[model.codes('s.cat')[row]] ?? '') || null],
    ['quality', clean(header.qualities[model.codes('s.quality')[row]] ?? '') || null],
    ['note', notes.length ? notes.join('; ') : null],
    ['row', `slices.id = ${model.codes('s.id')[row]}`],
  ];
}

/** How long it is among those of its name. @param {App} app  @param {number} row */
function rankOf({ model }, row) {
  const long = model.end[row] - model.begin[row];
  let [all, shorter] = [0, 0];
  for (let i = 0; i < model.n; i++) {
    if (model.name[i] !== model.name[row] || model.bundles.has(i)) continue;
    all++;
    if (model.end[i] - model.begin[i] < long) shorter++;
  }
  if (all === 1) return 'the only one';
  if (shorter === all - 1) return `the longest of ${numberText(all, 'count')}`;
  if (!shorter) return `none of ${numberText(all, 'count')} is shorter`;
  return `longer than ${Math.floor((shorter / (all - 1)) * 100)}% of ${numberText(all, 'count')}`;
}

/** @param {App} app  @param {number} row */
function argumentsOf({ header, model, unit }, row) {
  /** @type {[string, string][]} */
  const found = [];
  header.args.forEach((argument, k) => {
    const value = model.argument(k, row);
    if (value === undefined) return;
    const isTime = argument.unit === unit && typeof value === 'number';
    const text = typeof value === 'string' ? clean(value) : numberText(value, isTime ? 'time' : 'count', unit);
    const noted = argument.unit && !isTime && argument.unit !== '1' ? `${text} ${clean(argument.unit)}` : text;
    found.push([clean(argument.name.replaceAll('_', ' ')), noted]);
  });
  return found.length ? terms(found) : el('p', { class: 'note' }, 'none');
}

/** @param {App} app  @param {number} row  @param {{flow: number, leaves: boolean, other: number}} flow */
function flowLine(app, row, { flow, leaves, other }) {
  const { model, header, unit } = app;
  const { source, target, leaves: out, arrives } = model.flows;
  const wait = model.begin[target[flow]] + arrives[flow] - (model.end[source[flow]] + out[flow]);
  const after = wait >= 0 ? `${numberText(wait, 'time', unit)} ${leaves ? 'later' : 'earlier'}` : `overlaps by ${numberText(-wait, 'time', unit)}`;
  const name = clean(header.names[model.name[other]]);
  const lane = clean(pathOf(app.tracks, model.trackOf(other).id));
  const text = `${leaves ? '→' : '←'} ${name}  ${after} · ${lane}`;
  return button({ class: 'link', title: text, onclick: () => app.selection.select(other, { jump: true }) }, text);
}

/** What to do, and what colors and hatches mean. @param {App} app */
export function nothingView(app) {
  const { header, theme } = app;
  /** @type {Map<number, string>} */
  const names = new Map();
  header.names.slice(0, MOST_NAMES).forEach((name, code) => {
    const colour = header.colours[code];
    if (colour >= 0 && !names.has(colour) && names.size < MOST_CHIPS) names.set(colour, name);
  });
  const chips = [...names].map(([colour, name]) => el('span', {}, dot(theme.fillOf(colour)), clean(name).slice(0, 32)));
  const key = (/** @type {string} */ look, /** @type {string} */ text) => el('span', {}, el('i', { class: `dot ${look}` }), text);
  chips.push(el('span', {}, dot(theme.tokens.neutral), 'waits'));
  chips.push(key('unrecorded', 'not recorded'), key('lost', 'records lost'), el('span', { class: 'plain' }, 'empty: idle'));
  return el('div', { class: 'nothing' },
    el('p', {}, 'Click a slice, or press ', el('kbd', {}, '→'), ' to begin with the first one; ', el('kbd', {}, 'Shift'),
      ' and drag measure a range. ', el('kbd', {}, '?'), ' shows all keys.'),
    el('div', { class: 'chips' }, ...chips));
}

/**
 * Sums of a range of time, by name, over the lanes that are shown.
 * @param {App} app  @param {[number, number]} range
 */
export function rangeView(app, [t0, t1]) {
  const { model, header, lanes, unit } = app;
  /** @type {Map<number, {count: number, time: number}>} */
  const sums = new Map();
  for (const { track } of lanes.rows) {
    for (const strip of track.strips) {
      for (let i = firstAfter(model.end, t0, model.start[strip], model.start[strip + 1]); i < model.start[strip + 1] && model.begin[i] < t1; i++) {
        const part = (Math.min(model.end[i], t1) - Math.max(model.begin[i], t0)) / (model.end[i] - model.begin[i] || 1);
        const sum = sums.get(model.name[i]) ?? { count: 0, time: 0 };
        sum.count += model.bundles.get(i)?.count ?? 1;
        sum.time += model.covered(i) * part;
        sums.set(model.name[i], sum);
      }
    }
  }
  const rows = [...sums].sort(([, a], [, b]) => b.time - a.time).slice(0, MOST_NAMES).map(([code, sum]) => el('tr', {},
    el('td', {}, dot(app.theme.fillOf(header.colours[code])), ' ', clean(header.names[code])),
    el('td', { class: 'num' }, numberText(sum.count, 'count')), el('td', { class: 'num' }, numberText(Math.round(sum.time), 'time', unit))));
  return el('div', { class: 'details' }, el('h2', {}, el('span', {}, `Range of ${numberText(Math.round(t1 - t0), 'time', unit)}`)),
    el('div', {}, terms([['from', twice(app, t0)], ['to', twice(app, t1)], ['length', twice(app, t1 - t0)]])),
    el('div', { class: 'tablebox' }, el('table', {}, el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'name in shown lanes'),
      el('th', { scope: 'col', class: 'num' }, 'slices'), el('th', { scope: 'col', class: 'num' }, 'time inside'))), el('tbody', {}, ...rows))));
}

/** Where the data came from, and what of it is not here. @param {App} app */
export function aboutView({ header, unit }) {
  const heads = ['input', 'scope', 'unit', 'total', 'decoded', 'padding', 'lost'];
  const cell = (/** @type {string | number} */ value, /** @type {number} */ k) =>
    el('td', { class: k > 2 ? 'num' : '' }, k > 2 ? numberText(value, 'count') : clean(value));
  const missing = header.left_out.map((sentence) => el('li', {}, clean(sentence)));
  const inputs = header.inputs.slice(0, 20).map(({ path, sha256 }) =>
    /** @type {[string, Node]} */ ([clean(path), el('code', {}, sha256)]));
  return el('div', { class: 'details wide' }, el('h2', { class: 'sr' }, 'About this file'),
    el('div', {}, el('h3', {}, 'Capture'), terms([
      ['file', clean(header.capture)], ['format', clean(`${header.family} ${header.format}`)],
      ['size', numberText(header.size, 'bytes')], ['SHA-256', el('code', {}, header.sha256)],
      ['unit of time', unit === 'cycles' ? 'cycles of the device: their frequency is unknown' : unit],
      ['length', numberText(header.span, 'exact', unit)], ['time 0 is', header.sides.length ? null : numberText(header.lo, 'exact', unit)]]),
    ...header.sides.map(({ letter, capture, low, span, slices }) => terms([[`capture ${letter}`, clean(capture)],
      ['slices', numberText(slices, 'count')], ['length', numberText(span, 'exact', unit)], ['time 0 is', numberText(low, 'exact', unit)]])),
    missing.length ? el('h3', {}, 'Not in this file') : null, missing.length ? el('ul', {}, ...missing) : null,
    inputs.length > 1 ? el('h3', {}, `Inputs (${header.inputs_total})`) : null, inputs.length > 1 ? terms(inputs) : null),
    el('div', {}, el('h3', {}, 'Accounting: total = decoded + padding + lost'),
      el('table', {}, el('thead', {}, el('tr', {}, ...heads.map((head, k) => el('th', { scope: 'col', class: k > 2 ? 'num' : '' }, head)))),
        el('tbody', {}, ...header.accounting.map((row) => el('tr', {}, ...row.map(cell)))))));
}

// The answer in words, and the findings: one card a rule, whose button steps through the places.
import { byId, button, el } from './dom.js';
import { clean, numberText } from './format.js';
import { pathOf } from './model.js';

/** @typedef {import('./main.js').App} App */
/** @typedef {import('./types.js').Finding} Finding */
/** @typedef {import('./types.js').Place} Place */

/** Rules that report stats name theirs at the end of the title, where a narrow card cuts. */
const TITLE = /^(.*) \((\w+)\)$/;
const ICONS = { error: '✕', warning: '!', notice: 'i' };

/** @param {Place} place */
const canBeShown = ({ track, t, row }) => track !== null || t !== null || row !== null;

export class Findings {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** Where triangles are in the minimap; the worst last, so that they are on top.
     * @type {{t: number, severity: string}[]} */
    this.marks = [];
    /** All places that can be shown, over all findings. @type {(() => void)[]} */
    this.steps = [];
    this.at = -1;
  }

  /** Write sentences and cards: all from the header. */
  write() {
    const { header } = this.app;
    const verdict = byId('verdict');
    for (const [head, rest] of header.words) {
      const line = el('p', { title: clean(head ? `${head}: ${rest}` : rest) });
      if (head) line.append(el('b', {}, clean(head)), ' ');
      line.append(clean(rest));
      verdict.append(line);
    }
    if (header.bundled) verdict.append(this.aboutBundles(header.bundled));
    const missing = /** @type {[number, string][]} */ ([[header.flows_left, 'flows'], [header.instants_left, 'instants'], [header.counters_left, 'counter samples']])
      .filter(([count]) => count).map(([count, what]) => `${numberText(count, 'count')} ${what}`);
    if (missing.length) verdict.append(el('p', { title: 'About lists all' }, el('b', {}, 'Not in this file'), ` ${missing.join(', ')}: they do not fit`));
    const list = byId('findings');
    if (!header.findings.length) list.append(el('p', { class: 'note', role: 'listitem' }, 'No findings: every rule holds.'));
    for (const finding of header.findings) list.append(this.card(finding));
    this.marks.reverse();
  }

  /** @param {NonNullable<import('./types.js').Header['bundled']>} bundled */
  aboutBundles({ cell, slices, rows }) {
    const [many, few] = [numberText(slices, 'count'), numberText(rows, 'count')];
    const long = numberText(cell, 'time', this.app.unit);
    const text = `${many} slices shorter than ${long} are drawn as ${few} bundles; all totals are exact`;
    return el('p', { title: text }, el('b', {}, 'Bundled'), ` ${text}`);
  }

  /** @param {Finding} finding  @returns {HTMLElement} */
  card(finding) {
    const { code, severity, title, help, count } = finding;
    const [, rule, stat] = TITLE.exec(clean(title)) ?? ['', clean(title), ''];
    const places = finding.places.filter(canBeShown);
    const where = el('p');
    const position = el('span', { class: 'position' });
    let at = -1;
    const write = () => {
      where.textContent = this.describe(finding, places[Math.max(at, 0)] ?? finding.places[0]);
      where.title = `${where.textContent}\n${clean(help)}`;
      const total = numberText(Math.max(places.length, finding.places_total), 'count');
      position.textContent = places.length < 2 ? '' : at < 0 ? total : `${at + 1}/${total}`;
    };
    const show = (/** @type {number} */ k) => {
      at = k;
      write();
      this.show(places[k], severity);
    };
    write();
    places.forEach((place, k) => {
      this.steps.push(() => show(k));
      if (place.t !== null) this.marks.push({ t: Number(place.t), severity });
    });
    const next = button({
      'aria-label': `Show: ${clean(title)}`, title: 'Show the next place (N)',
      onclick: () => this.app.whenReady(() => show((at + 1) % places.length)),
    }, 'Show');
    return el('div', { class: `finding ${severity}`, role: 'listitem' },
      el('span', { class: 'icon', role: 'img', 'aria-label': severity, title: severity }, ICONS[severity]),
      el('div', { class: 'what' },
        el('div', { class: 'head', title: clean(title) }, el('b', {}, rule), stat ? el('span', { class: 'stat' }, stat) : null, count > 1 ? el('span', {}, `× ${numberText(count, 'count')}`) : null,
          el('span', { class: 'code' }, code)), where),
      el('div', { class: 'go' }, position, places.length ? next : null));
  }

  /** @param {Finding} finding  @param {Place | undefined} place  @returns {string} */
  describe(finding, place) {
    const { tracks, unit } = this.app;
    const parts = [clean(place?.detail || finding.detail)];
    if (place && place.track !== null) parts.push(clean(pathOf(tracks, place.track)));
    if (place && place.t !== null) parts.push(`at ${numberText(place.t, 'time', unit)}`);
    return parts.filter(Boolean).join(' · ');
  }

  /** @param {Place} place  @param {string} severity */
  show(place, severity) {
    const { stage, model, lanes, selection } = this.app;
    if (place.row !== null) {
      const [begin, end] = [model.begin[place.row], model.end[place.row]];
      selection.select(place.row, { jump: true });
      const half = Math.max((end - begin) * 6, stage.span / 800);
      stage.goTo((begin + end) / 2 - half, (begin + end) / 2 + half);
    } else {
      const t0 = Number(place.t ?? 0);
      const t1 = place.t === null ? stage.span : t0 + Number(place.dur ?? 0);
      if (place.track !== null) lanes.reveal(place.track);
      selection.mark({ track: place.track, t0, t1, severity });
      const around = Math.max((t1 - t0) * 0.4, stage.span / 100);
      if (place.t === null) stage.whole();
      else stage.goTo(t0 - around, t1 + around);
      this.app.say(clean(place.detail));
    }
  }

  /** Next or previous place over all findings. @param {number} by */
  step(by) {
    const n = this.steps.length;
    if (!n) return;
    this.at = this.at < 0 && by < 0 ? n - 1 : (this.at + by + n) % n;
    this.steps[this.at]();
  }
}

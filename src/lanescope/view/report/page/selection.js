// What is selected: a slice, the place of a finding, a measured range. How one walks from slice to slice.
import { byId } from './dom.js';
import { clean, numberText } from './format.js';
import { firstAfter } from './lod.js';
import { pathOf } from './model.js';

/** @typedef {import('./main.js').App} App */
/** @typedef {{track: number | null, t0: number, t1: number, severity: string}} MarkedPlace */

const LINK_AFTER_MS = 300;

export class Selection {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** Row of the selected slice; -1: none. */
    this.row = -1;
    /** @type {MarkedPlace | null} */
    this.place = null;
    /** A measured range of time. @type {[number, number] | null} */
    this.range = null;
    /** A range while it is drawn. @type {[number, number] | null} */
    this.dragged = null;
    this.focused = -1;
    this.linkTimer = 0;
  }

  /**
   * Select a row of slices, or nothing (-1).
   * @param {number} row
   * @param {{jump?: boolean, focus?: boolean}} [how] `jump`: show it; `focus`: let it fill a third of the window
   */
  select(row, { jump = false, focus = false } = {}) {
    const { app } = this;
    this.row = row;
    this.place = null;
    if (row < 0) this.range = null;
    if (row >= 0) {
      this.show(row, jump, focus);
      app.say(this.spoken(row));
    }
    app.drawer.showSelection();
    app.lanes.writeLabels();
    app.stage.changed();
    this.link();
  }

  /** @param {number} row  @param {boolean} jump  @param {boolean} focus */
  show(row, jump, focus) {
    const { stage, model, lanes } = this.app;
    const [begin, end] = [model.begin[row], model.end[row]];
    if (jump) lanes.reveal(model.trackOf(row).id);
    if (focus) {
      const [t0, t1] = this.focused === row ? this.extentOfFlows(row) : [begin, end];
      const around = Math.max(t1 - t0, model.scale) * (this.focused === row ? 0.2 : 1);
      this.focused = this.focused === row ? -1 : row;
      stage.goTo(t0 - around, t1 + around);
      return;
    }
    this.focused = -1;
    if (!jump || (begin >= stage.t0 && end <= stage.t1)) return;
    const half = stage.duration / 2;
    const middle = end - begin > stage.duration ? begin + half * 0.8 : (begin + end) / 2;
    stage.goTo(middle - half, middle + half);
  }

  /** @param {number} row  @returns {[number, number]} times of it and of what its flows join */
  extentOfFlows(row) {
    const { model } = this.app;
    const rows = [row, ...model.flowsOf(row).map(({ other }) => other)];
    return [Math.min(...rows.map((i) => model.begin[i])), Math.max(...rows.map((i) => model.end[i]))];
  }

  /** @param {number} row  @returns {string} what a screen reader speaks */
  spoken(row) {
    const { model, header, unit, tracks } = this.app;
    const bundle = model.bundles.get(row);
    const name = clean(header.names[model.name[row]]);
    const what = bundle ? `${numberText(bundle.count, 'count')} slices, most of the time ${name}` : name;
    const [long, at] = [model.end[row] - model.begin[row], model.begin[row]];
    const lane = clean(pathOf(tracks, model.trackOf(row).id));
    return `${what}, ${numberText(long, 'time', unit)}, on ${lane}, at ${numberText(at, 'time', unit)}`;
  }

  clear() {
    this.range = this.dragged = null;
    this.select(-1);
  }

  /** Mark the place of a finding that has no slice. @param {MarkedPlace | null} place */
  mark(place) {
    this.row = -1;
    this.place = place;
    this.app.lanes.writeLabels();
    this.app.stage.changed();
  }

  /** Previous or next slice of the strip. @param {number} by */
  step(by) {
    const { model } = this.app;
    if (this.row < 0) return this.first();
    const strip = model.stripOf[this.row];
    const row = this.row + by;
    if (row >= model.start[strip] && row < model.start[strip + 1]) this.select(row, { jump: true });
  }

  /** First or last slice of the strip. @param {boolean} last */
  end(last) {
    const { model } = this.app;
    if (this.row < 0) return this.first();
    const strip = model.stripOf[this.row];
    this.select(last ? model.start[strip + 1] - 1 : model.start[strip], { jump: true });
  }

  /** The nearest slice of the next lane that has any. @param {number} by 1: below, -1: above */
  stepLane(by) {
    const { model, lanes } = this.app;
    if (this.row < 0) return this.first();
    const t = model.begin[this.row];
    const row = lanes.shownRowOf(model.trackOf(this.row).id);
    const from = row ? lanes.rows.indexOf(row) : 0;
    for (let k = from + by; k >= 0 && k < lanes.rows.length; k += by) {
      const strip = lanes.rows[k].track.strips.find((s) => model.start[s + 1] > model.start[s]);
      if (strip === undefined) continue;
      const [a, b] = [model.start[strip], model.start[strip + 1]];
      return this.select(Math.max(a, firstAfter(model.begin, t, a, b) - 1), { jump: true });
    }
  }

  /** The first slice in the window of the first lane that has any. */
  first() {
    const { lanes } = this.app;
    for (const row of [...lanes.inView(), ...lanes.rows]) if (this.firstOf(row.track)) return;
  }

  /** @param {import('./model.js').Track} track  @returns {boolean} whether it has any */
  firstOf(track) {
    const { model, stage } = this.app;
    for (const strip of track.strips) {
      const [a, b] = [model.start[strip], model.start[strip + 1]];
      if (a === b) continue;
      this.select(Math.min(b - 1, firstAfter(model.end, stage.t0, a, b)), { jump: true });
      return true;
    }
    return false;
  }

  /** Follow a flow. @param {boolean} onward else back */
  follow(onward) {
    if (this.row < 0) return;
    const found = this.app.model.flowsOf(this.row).find(({ leaves }) => leaves === onward);
    if (found) this.select(found.other, { jump: true });
    else this.app.say(onward ? 'no flow leaves this slice' : 'no flow arrives at this slice');
  }

  /** A moment in the window that zooming by key keeps in place. @returns {number | null} */
  anchor() {
    const { model, stage } = this.app;
    if (this.row < 0) return null;
    const middle = (model.begin[this.row] + model.end[this.row]) / 2;
    return middle > stage.t0 && middle < stage.t1 ? middle : null;
  }

  /** Keep the place in the address, so that it can be sent. */
  link() {
    clearTimeout(this.linkTimer);
    this.linkTimer = setTimeout(() => {
      const { t0, t1 } = this.app.stage;
      const selected = this.row >= 0 ? `&s=${this.row}` : '';
      try {
        history.replaceState(null, '', `#t=${Math.round(t0)},${Math.round(t1)}${selected}`);
      } catch {
        // A page in a sandbox has no address.
      }
    }, LINK_AFTER_MS);
  }

  /** Go to the place that the address names, if any. */
  fromLink() {
    const found = /^#t=(-?\d+),(\d+)(?:&s=(\d+))?$/.exec(location.hash);
    if (!found || Number(found[2]) <= Number(found[1])) return;
    this.app.stage.set(Number(found[1]), Number(found[2]));
    if (found[3] && Number(found[3]) < this.app.model.n) this.select(Number(found[3]), { jump: true });
  }
}

/** @param {string} text  what the polite live region speaks */
export function speak(text) {
  byId('live').textContent = text;
}

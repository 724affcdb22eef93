// Mouse, pen and touch: panning, zooming, selecting, measuring, and the tip under the pointer.
import { byId, canvasById, el } from './dom.js';
import { clean, numberText } from './format.js';
import { firstAfter } from './lod.js';
import { WORK } from './model.js';

/** @typedef {import('./main.js').App} App */
/** @typedef {{x: number, y: number, t0: number, t1: number, scroll: number, moved: boolean, range: boolean}} Press */

/** Pixels that a press may move and still be a click. */
const STILL = 4;
/** How near the pointer must be to a slice. */
const NEAR = 1.5;
const MOST_LOOKED_AT = 1e6;

export class Pointer {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.canvas = canvasById('canvas');
    this.tip = byId('tip');
    /** @type {Map<number, PointerEvent>} */
    this.down = new Map();
    /** @type {Press | null} */
    this.press = null;
    const { canvas } = this;
    canvas.addEventListener('pointerdown', (event) => this.begin(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.finish(event));
    canvas.addEventListener('pointercancel', (event) => {
      this.down.delete(event.pointerId);
      this.press = null;
    });
    canvas.addEventListener('pointerleave', () => {
      app.stage.pointer = null;
      this.tip.hidden = true;
    });
    canvas.addEventListener('dblclick', () => {
      if (app.selection.row >= 0) app.selection.select(app.selection.row, { jump: true, focus: true });
    });
    byId('scroll').addEventListener('wheel', (event) => this.wheel(event), { passive: false });
    this.setUpRuler();
    this.setUpMap();
  }

  /**
   * The slice at a place of the canvas: of several within reach the longest.
   * @param {number} x  @param {number} y
   */
  at(x, y) {
    const { lanes, stage, model } = this.app;
    const all = y + lanes.scroll;
    const row = lanes.rows[lanes.indexAt(all)];
    const nothing = { slice: -1, row: row ?? null, many: 0 };
    if (!row) return nothing;
    if (row.track.kind === 'p') return { ...nothing, slice: model.path?.row[this.onPath(stage.timeAt(x))] ?? -1 };
    const level = row.levels.findIndex(({ top, height }) => all - row.y >= top - 1 && all - row.y <= top + height);
    if (level < 0) return nothing;
    const [a, b] = [stage.timeAt(x - NEAR), stage.timeAt(x + NEAR)];
    for (const strip of row.track.strips) {
      if (model.stripLevel[strip] !== level) continue;
      const first = firstAfter(model.end, a, model.start[strip], model.start[strip + 1]);
      let stop = first;
      while (stop < model.start[strip + 1] && model.begin[stop] <= b && stop < first + MOST_LOOKED_AT) stop++;
      if (stop === first) continue;
      const under = this.under(first, stop, stage.timeAt(x));
      return { slice: under >= 0 ? under : model.longest.of(first, stop), row, many: stop - first };
    }
    return nothing;
  }

  /** The slice exactly under the pointer, if it is wide enough to be aimed at. @param {number} a  @param {number} b  @param {number} t */
  under(a, b, t) {
    const { model, stage } = this.app;
    const row = firstAfter(model.end, t, a, b);
    const isAimedAt = row < b && model.begin[row] <= t && (model.end[row] - model.begin[row]) * stage.width > NEAR * stage.duration;
    return isAimedAt ? row : -1;
  }

  /** @param {number} t  @returns {number} the part of the critical path at a time, -1 without */
  onPath(t) {
    const { path } = this.app.model;
    if (!path) return -1;
    const part = firstAfter(path.begin, t, 0, path.begin.length) - 1;
    return part >= 0 && t <= path.begin[part] + path.dur[part] ? part : -1;
  }

  /** @param {PointerEvent} event */
  begin(event) {
    const { stage, lanes } = this.app;
    byId('lanes').focus({ preventScroll: true });
    this.canvas.setPointerCapture(event.pointerId);
    this.down.set(event.pointerId, event);
    stage.stopGliding();
    this.press = { x: event.offsetX, y: event.offsetY, t0: stage.t0, t1: stage.t1, scroll: lanes.scroll, moved: false, range: event.shiftKey };
  }

  /** @param {PointerEvent} event */
  move(event) {
    this.app.stage.pointer = event.offsetX;
    const before = this.down.get(event.pointerId);
    if (!before) this.writeTip(event);
    else {
      if (this.down.size === 2) this.pinch(before, event);
      else if (this.press) this.drag(this.press, event);
      this.down.set(event.pointerId, event);
    }
  }

  /** @param {Press} press  @param {PointerEvent} event */
  drag(press, event) {
    const { stage, lanes, selection } = this.app;
    const [dx, dy] = [event.offsetX - press.x, event.offsetY - press.y];
    press.moved ||= Math.hypot(dx, dy) >= STILL;
    if (!press.moved) return;
    this.tip.hidden = true;
    if (press.range) {
      const ends = [stage.timeAt(press.x), stage.timeAt(event.offsetX)];
      selection.dragged = [Math.min(...ends), Math.max(...ends)];
      stage.changed();
      return;
    }
    const by = (dx * (press.t1 - press.t0)) / stage.width;
    stage.set(press.t0 - by, press.t1 - by);
    lanes.scroller.scrollTop = press.scroll - dy;
  }

  /** Two fingers: what is under each stays there. @param {PointerEvent} before  @param {PointerEvent} now */
  pinch(before, now) {
    const { stage } = this.app;
    const other = [...this.down.values()].find(({ pointerId }) => pointerId !== now.pointerId);
    if (!other || !this.press) return;
    const [old, apart] = [Math.abs(before.offsetX - other.offsetX), Math.abs(now.offsetX - other.offsetX)];
    if (old > 8 && apart > 8) stage.zoom(old / apart, stage.timeAt(other.offsetX));
    this.press.moved = true;
  }

  /** @param {PointerEvent} event */
  finish(event) {
    const { selection, lanes } = this.app;
    const { press } = this;
    this.down.delete(event.pointerId);
    if (this.down.size) return;
    this.press = null;
    if (!press) return;
    if (selection.dragged) {
      selection.select(-1);
      selection.range = selection.dragged;
      selection.dragged = null;
      this.app.drawer.showSelection();
    } else if (!press.moved) {
      const { slice, row } = this.at(event.offsetX, event.offsetY);
      if (slice < 0 && row?.track.kind === 'g') lanes.fold(row.node);
      else selection.select(slice, { jump: row?.track.kind === 'p' });
    }
    selection.link();
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    const { stage, selection } = this.app;
    const x = event.clientX - this.canvas.getBoundingClientRect().left;
    const isSideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.ctrlKey || event.metaKey || event.altKey) {
      // A pinch on a touchpad comes as small steps, a wheel as large ones.
      const speed = Math.abs(event.deltaY) < 20 ? 0.012 : 0.0022;
      stage.zoom(Math.exp(event.deltaY * speed), stage.timeAt(Math.max(0, x)));
    } else if (event.shiftKey || isSideways) {
      stage.shift(((isSideways ? event.deltaX : event.deltaY) * stage.duration) / stage.width);
    } else return;
    event.preventDefault();
    selection.link();
  }

  /** @param {PointerEvent} event */
  writeTip(event) {
    const { slice, row, many } = this.at(event.offsetX, event.offsetY);
    const t = this.app.stage.timeAt(event.offsetX);
    const waits = row?.track.kind === 'p' ? this.aboutPath(this.onPath(t)) : null;
    const lines = waits ?? (slice >= 0 ? this.aboutSlice(slice, many) : row ? this.aboutPlace(row.track, t) : null);
    this.canvas.style.cursor = slice >= 0 ? 'pointer' : '';
    this.tip.hidden = !lines;
    if (!lines) return;
    this.tip.replaceChildren(el('b', {}, lines[0]), el('span', {}, lines[1]));
    const box = byId('lanes').getBoundingClientRect();
    const [x, y] = [event.clientX - box.left + 14, event.clientY - box.top + 16];
    this.tip.style.left = `${Math.min(x, box.width - this.tip.offsetWidth - 8)}px`;
    this.tip.style.top = `${Math.min(y, box.height - this.tip.offsetHeight - 4)}px`;
  }

  /** A part of the critical path in which no slice works; null of others. @param {number} part  @returns {[string, string] | null} */
  aboutPath(part) {
    const { header, model, unit } = this.app;
    const { path } = model;
    if (!path || part < 0 || path.causes[path.cause[part]] === WORK) return null;
    const slice = path.row[part];
    const until = slice >= 0 ? ` · until ${clean(header.names[model.name[slice]])}` : '';
    return [clean(path.causes[path.cause[part]] ?? ''), `${numberText(path.dur[part], 'time', unit)}${until}`];
  }

  /** @param {number} slice  @param {number} many  @returns {[string, string]} */
  aboutSlice(slice, many) {
    const { header, model, unit } = this.app;
    const bundle = model.bundles.get(slice);
    const name = clean(header.names[model.name[slice]]);
    const long = numberText(model.end[slice] - model.begin[slice], 'time', unit);
    if (bundle) {
      const busy = numberText(bundle.busy / (model.end[slice] - model.begin[slice] || 1), 'share');
      return [`${numberText(bundle.count, 'count')} slices, mostly ${name}`, `${long}, ${busy} busy · bundled: zoom stops here`];
    }
    return [name, many > 1 ? `${long} · longest of ${numberText(many, 'count')} here` : long];
  }

  /** @param {import('./model.js').Track} track  @param {number} t  @returns {[string, string] | null} */
  aboutPlace(track, t) {
    const { header, unit } = this.app;
    const covers = (/** @type {import('./model.js').Stretch} */ { t0, t1 }) => t >= t0 && t < t1;
    const gap = track.gaps.find(covers);
    if (gap) {
      const lost = gap.lost >= 0 ? `, ${numberText(gap.lost, 'count')} records` : '';
      return [`Records lost: ${clean(header.causes[gap.cause] ?? '')}`, `${numberText(gap.t1 - gap.t0, 'time', unit)} unknown${lost}`];
    }
    const bare = track.unrecorded.find(covers);
    if (bare) return ['Not recorded', numberText(bare.t1 - bare.t0, 'time', unit)];
    if (!track.samples) return null;
    const at = firstAfter(track.samples.ts, t, 0, track.samples.ts.length) - 1;
    return at < 0 ? null : [clean(track.name), numberText(track.samples.value[at], 'value', track.unit)];
  }

  /** Dragging on the ruler zooms to the range. */
  setUpRuler() {
    const { stage, selection } = this.app;
    const ruler = canvasById('ruler');
    let from = NaN;
    ruler.addEventListener('pointerdown', (event) => {
      ruler.setPointerCapture(event.pointerId);
      from = event.offsetX;
    });
    ruler.addEventListener('pointermove', (event) => {
      if (Number.isNaN(from)) return;
      selection.dragged = [stage.timeAt(Math.min(from, event.offsetX)), stage.timeAt(Math.max(from, event.offsetX))];
      stage.changed();
    });
    ruler.addEventListener('pointerup', (event) => {
      const { dragged } = selection;
      selection.dragged = null;
      if (dragged && Math.abs(event.offsetX - from) >= STILL) stage.goTo(...dragged);
      from = NaN;
      stage.changed();
    });
  }

  /** Clicking in the minimap moves the view there, dragging moves it along. */
  setUpMap() {
    const { stage, selection } = this.app;
    const map = canvasById('map');
    /** @type {{x: number, t0: number, t1: number} | null} */
    let from = null;
    map.addEventListener('pointerdown', (event) => {
      map.setPointerCapture(event.pointerId);
      const t = (event.offsetX / map.clientWidth) * stage.span;
      if (t < stage.t0 || t > stage.t1) stage.set(t - stage.duration / 2, t + stage.duration / 2);
      from = { x: event.offsetX, t0: stage.t0, t1: stage.t1 };
    });
    map.addEventListener('pointermove', (event) => {
      if (!from) return;
      const by = ((event.offsetX - from.x) / map.clientWidth) * stage.span;
      stage.set(from.t0 + by, from.t1 + by);
    });
    for (const name of ['pointerup', 'pointercancel']) {
      map.addEventListener(name, () => {
        from = null;
        selection.link();
      });
    }
  }
}

// Drawing the lanes: only what can be seen, one fill after the other.
import { firstAfter, LABELLED, OPACITIES, opacityOf, walkStrip } from './lod.js';
import { ticks } from './stage.js';
import { WORK } from './model.js';
import { DIMMED, HIDES_HIT, NEUTRAL } from './theme.js';

/** @typedef {import('./main.js').App} App */
/** @typedef {import('./lanes.js').Row} Row */
/** @typedef {{c: CanvasRenderingContext2D, width: number, height: number}} Surface */

const FILL_COUNT = HIDES_HIT + 1;
/** Rectangles by fill and opacity: x, y, width, height and so on. */
const batches = Array.from({ length: FILL_COUNT * OPACITIES.length }, () => /** @type {number[]} */ ([]));
/** @type {{row: number, x: number, y: number, room: number, dimmed: boolean, colour: number, strength: number}[]} */
const labels = [];
/** @type {number[]} x, y, width of what is drawn in a bundle */
const combs = [];

/**
 * Draw all rows in view.
 * @param {App} app
 * @param {Surface} surface
 * @returns {number} rectangles of slices
 */
export function drawLanes(app, surface) {
  const { c, width, height } = surface;
  const { stage, lanes } = app;
  const { tokens } = app.theme;
  for (const batch of batches) batch.length = 0;
  labels.length = combs.length = 0;
  c.fillStyle = tokens.bg;
  c.fillRect(0, 0, width, height);
  c.fillStyle = tokens.line;
  for (const t of ticks(stage.t0, stage.t1, width).moments) c.fillRect(Math.round(stage.xOf(t)), 0, 1, height);
  for (const row of lanes.inView()) {
    const y = row.y - lanes.scroll;
    if (row.track.kind === 'g') drawGroup(app, surface, row, y);
    else if (row.track.kind === 'p') drawPath(app, surface, row, y);
    else drawLane(app, surface, row, y);
    c.fillStyle = tokens.line;
    c.fillRect(0, y + row.height - 1, width, 1);
  }
  const drawn = fillBatches(app, c);
  drawLabels(app, c);
  return drawn;
}

/** @param {App} app  @param {CanvasRenderingContext2D} c  @returns {number} rectangles */
function fillBatches(app, c) {
  let drawn = 0;
  batches.forEach((batch, k) => {
    if (!batch.length) return;
    c.globalAlpha = OPACITIES[k % OPACITIES.length];
    c.fillStyle = app.theme.fills[Math.floor(k / OPACITIES.length)];
    for (let i = 0; i < batch.length; i += 4) c.fillRect(batch[i], batch[i + 1], batch[i + 2], batch[i + 3]);
    drawn += batch.length / 4;
  });
  c.globalAlpha = 1;
  c.fillStyle = app.theme.tokens.bg;
  for (let i = 0; i < combs.length; i += 3) {
    for (let x = combs[i] + 3; x < combs[i] + combs[i + 2]; x += 4) c.fillRect(x, combs[i + 1], 1, 4);
  }
  return drawn;
}

/** @param {App} app  @param {CanvasRenderingContext2D} c */
function drawLabels(app, c) {
  const { theme } = app;
  c.font = `11px ${theme.sans}`;
  c.textBaseline = 'alphabetic';
  for (const { row, x, y, room, dimmed, colour, strength } of labels) {
    const bundle = app.model.bundles.get(row);
    const name = app.shortName(app.model.name[row]);
    const text = app.fitText(bundle ? `${bundle.count} × ${name}` : name, room);
    if (!text) continue;
    c.fillStyle = dimmed ? theme.tokens.dim : theme.labelOn(colour, OPACITIES[strength]);
    c.fillText(text, x, y);
  }
}

/**
 * A group: a header while it is open, else how many of its lanes are busy.
 * @param {App} app  @param {Surface} surface  @param {Row} row  @param {number} y
 */
function drawGroup(app, { c, width }, row, y) {
  const { model, theme } = app;
  c.fillStyle = theme.tokens.bg2;
  c.fillRect(0, y, width, row.height);
  if (row.node.open) return;
  const other = row.node.other.length ? app.tracks[row.node.other[row.node.other.length - 1]] : null;
  const own = model.activityOf(row.track);
  if (!other) drawActivity(app, c, own, { base: y + row.height - 3, tall: row.height - 6, peak: own.peak, width });
  else {
    // The second capture hangs below the first, at the same scale: what differs is what is not a mirror image.
    const second = model.activityOf(other);
    const [peak, half] = [Math.max(own.peak, second.peak), Math.floor(row.height / 2)];
    drawActivity(app, c, own, { base: y + half - 1, tall: half - 4, peak, width });
    drawActivity(app, c, second, { base: y + half + 1, tall: 4 - half, peak, width });
    drawStretches(app, c, other.gaps, theme.lost, y + row.height - 6, 4, theme.tokens.loss);
  }
  drawStretches(app, c, row.track.gaps, theme.lost, y + 1, 4, theme.tokens.loss);
}

/**
 * How many lanes are busy, as an area.
 * @param {App} app  @param {CanvasRenderingContext2D} c  @param {import('./lod.js').Activity} activity
 * @param {{base: number, tall: number, peak: number, width: number}} where `tall` below 0: downwards
 */
function drawActivity({ stage, theme }, c, activity, { base, tall, peak, width }) {
  const [first, last] = [Math.max(0, Math.floor(stage.xOf(0))), Math.min(width, stage.xOf(stage.span))];
  c.fillStyle = theme.tokens.area;
  c.beginPath();
  c.moveTo(first, base);
  let before = activity.until(stage.timeAt(first));
  const column = stage.duration / width;
  for (let x = first; x < last; x++) {
    const now = activity.until(stage.timeAt(x + 1));
    const top = base - Math.min(1, (now - before) / column / peak) * tall;
    before = now;
    c.lineTo(x, top);
    c.lineTo(x + 1, top);
  }
  c.lineTo(last, base);
  c.fill();
}

/**
 * A lane with its slices, or a counter.
 * @param {App} app  @param {Surface} surface  @param {Row} row  @param {number} y
 */
function drawLane(app, surface, row, y) {
  const { c, width } = surface;
  const { track } = row;
  const { theme, model } = app;
  drawStretches(app, c, track.unrecorded, theme.unrecorded, y, row.height - 1, '');
  drawStretches(app, c, track.gaps, theme.lost, y, row.height - 1, theme.tokens.loss);
  if (track.samples) drawCounter(app, surface, track.samples, y, row.height);
  else if (track.kind === 'c' && app.header.counters_left) {
    c.font = `11px ${theme.sans}`;
    c.textBaseline = 'alphabetic';
    c.fillStyle = theme.tokens.dim;
    c.fillText('its samples are not in this file', 8, y + row.height / 2 + 4);
  }
  for (const strip of track.strips) {
    const level = model.stripLevel[strip];
    if (level >= row.levels.length) continue;
    const { top, height } = row.levels[level];
    drawStrip(app, strip, y + top, height, width);
  }
  if (track.instants) drawInstants(app, c, track.instants.ts, y);
}

/**
 * One strip: its rectangles go to the batches, its labels to the list.
 * @param {App} app  @param {number} strip  @param {number} y  @param {number} height  @param {number} width
 */
function drawStrip(app, strip, y, height, width) {
  const { stage, model, header } = app;
  const { hits } = app.search;
  const { name } = model;
  const own = (/** @type {number} */ row) => (header.colours[name[row]] < 0 ? NEUTRAL : header.colours[name[row]]);
  const colourOf = !hits ? own : (/** @type {number} */ longest, /** @type {number} */ a, /** @type {number} */ b) => {
    if (hits.sums[b] === hits.sums[a]) return DIMMED;
    return hits.mask[name[longest]] ? own(longest) : HIDES_HIT;
  };
  walkStrip(model, strip, stage.t0, stage.t1, width, colourOf, (left, right, row, colour, opacity, slices, alone) => {
    if (!alone) {
      batches[colour * OPACITIES.length + opacity].push(left, y, right - left, height);
      return;
    }
    const bundle = model.bundles.size ? model.bundles.get(row) : undefined;
    const [a, b] = [Math.max(left, -2), Math.min(right, width + 2)];
    // A little background between neighbors: their edge never depends on their colors.
    const edge = b - a > 4 ? 1 : 0.35;
    const strength = bundle ? opacityOf(bundle.busy / (model.end[row] - model.begin[row])) : opacity;
    batches[colour * OPACITIES.length + strength].push(a, y, b - a - edge, height);
    if (bundle && b - a > 8 && height > 8) combs.push(a, y + height - 4, b - a - edge);
    if (b - a > LABELLED && height > 8) {
      const inside = Math.max(a, 0);
      labels.push({ row, x: inside + 4, y: y + 12, room: Math.min(b, width) - inside - 8, dimmed: colour === DIMMED, colour, strength });
    }
  });
}

/** @param {App} app  @param {CanvasRenderingContext2D} c  @param {Float64Array} ts  @param {number} y */
function drawInstants(app, c, ts, y) {
  const { stage } = app;
  c.fillStyle = app.theme.tokens.ink;
  let last = -9;
  for (let i = firstAfter(ts, stage.t0 - 1, 0, ts.length); i < ts.length && ts[i] <= stage.t1; i++) {
    const x = Math.round(stage.xOf(ts[i]));
    if (x - last < 4) continue;
    last = x;
    c.fillRect(x - 1, y + 1, 3, 1);
    c.fillRect(x, y + 2, 1, 2);
  }
}

/**
 * Gaps, or time that was not recorded.
 * @param {App} app  @param {CanvasRenderingContext2D} c  @param {import('./model.js').Stretch[]} stretches
 * @param {CanvasPattern | string} pattern  @param {number} y  @param {number} height  @param {string} edge colour, or none
 */
function drawStretches(app, c, stretches, pattern, y, height, edge) {
  const { stage } = app;
  for (const { t0, t1 } of stretches) {
    if (t1 < stage.t0 || t0 > stage.t1) continue;
    const a = Math.max(-2, stage.xOf(t0));
    const b = Math.max(a + 2, Math.min(stage.width + 2, stage.xOf(t1)));
    c.fillStyle = pattern;
    c.fillRect(a, y, b - a, height);
    if (!edge) continue;
    c.fillStyle = edge;
    c.fillRect(a, y, 1, height);
    c.fillRect(b - 1, y, 1, height);
  }
}

/**
 * A counter as an area; of a column of pixels the largest value.
 * @param {App} app  @param {Surface} surface  @param {{ts: Float64Array, value: Float64Array, least: number,
 *   most: number}} samples  @param {number} y  @param {number} height
 */
function drawCounter(app, { c, width }, samples, y, height) {
  const { stage } = app;
  const { ts, value, least, most } = samples;
  const n = ts.length;
  const end = Math.min(width, stage.xOf(stage.span));
  const tall = height - 8;
  const level = (/** @type {number} */ v) => y + height - 4 - ((v - least) / (most - least || 1)) * tall;
  const zero = level(0);
  c.fillStyle = app.theme.tokens.area;
  for (let i = Math.max(0, firstAfter(ts, stage.t0, 0, n) - 1); i < n && ts[i] <= stage.t1;) {
    const x = Math.max(0, stage.xOf(ts[i]));
    let far = value[i];
    let next = i + 1;
    for (; next < n && stage.xOf(ts[next]) < x + 1; next++) if (Math.abs(value[next]) > Math.abs(far)) far = value[next];
    // What holds until the next sample is the last value; a column that changes inside shows its extreme.
    const stop = next < n ? Math.min(width, stage.xOf(ts[next])) : end;
    const last = level(value[next - 1]);
    // Edges on whole pixels: two that share one would leave a seam.
    const from = Math.round(x);
    c.fillRect(from, Math.min(last, zero), Math.max(0, Math.round(stop) - from), Math.abs(zero - last));
    c.fillRect(x, Math.min(level(far), zero), 1, Math.abs(zero - level(far)));
    i = next;
  }
}

/**
 * The critical path: the slice that the whole waits for at each time, or why none runs.
 * @param {App} app  @param {Surface} surface  @param {Row} row  @param {number} y
 */
function drawPath(app, { c, width }, row, y) {
  const { stage, model, theme, header } = app;
  const path = model.path;
  if (!path) return;
  const { begin, dur } = path;
  const [top, height] = [y + 3, row.height - 7];
  let drawnTo = -1;
  for (let i = Math.max(0, firstAfter(begin, stage.t0, 0, begin.length) - 1); i < begin.length; i++) {
    if (begin[i] > stage.t1) break;
    const a = Math.max(-2, stage.xOf(begin[i]));
    const b = Math.min(width + 2, stage.xOf(begin[i] + dur[i]));
    if (b < drawnTo + 0.5) continue;
    drawnTo = Math.max(b, a + 1);
    // Only where its slice works it has its name and colour: other parts end where that slice begins or ends.
    const cause = path.causes[path.cause[i]] ?? '';
    const code = path.row[i] >= 0 && cause === WORK ? model.name[path.row[i]] : -1;
    c.fillStyle = code >= 0 ? theme.fillOf(header.colours[code]) : theme.tokens.neutral;
    c.fillRect(a, top, Math.max(1, b - a - (b - a > 4 ? 1 : 0.35)), height);
    if (b - a < LABELLED) continue;
    const inside = Math.max(a, 0);
    c.font = `11px ${theme.sans}`;
    c.textBaseline = 'alphabetic';
    c.fillStyle = theme.labelOn(code >= 0 && header.colours[code] >= 0 ? header.colours[code] : NEUTRAL, 1);
    const text = code >= 0 ? app.shortName(code) : cause;
    c.fillText(app.fitText(text, Math.min(b, width) - inside - 8), inside + 4, top + 11);
  }
}

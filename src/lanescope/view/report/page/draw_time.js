// Drawing what lies above the lanes: the minimap of the whole trace, and the ruler of the window.
import { axisText } from './format.js';
import { ticks } from './stage.js';

/** @typedef {import('./main.js').App} App */
/** @typedef {import('./draw_lanes.js').Surface} Surface */

/** @param {App} app  @param {Surface} surface */
export function drawRuler(app, { c, width, height }) {
  const { stage, theme } = app;
  const { tokens } = theme;
  c.fillStyle = tokens.bg;
  c.fillRect(0, 0, width, height);
  const range = app.selection.range ?? app.selection.dragged;
  if (range) {
    c.globalAlpha = 0.22;
    c.fillStyle = tokens.accent;
    c.fillRect(stage.xOf(range[0]), 0, stage.xOf(range[1]) - stage.xOf(range[0]), height);
    c.globalAlpha = 1;
  }
  const { moments, step } = ticks(stage.t0, stage.t1, width);
  const largest = Math.max(...moments.map(Math.abs), step);
  c.font = `11px ${theme.sans}`;
  c.textBaseline = 'middle';
  c.fillStyle = tokens.dim;
  for (const [k, t] of moments.entries()) {
    const x = Math.round(stage.xOf(t));
    c.fillRect(x, height - 6, 1, 6);
    // Of cycles the first one has the unit; a text that would be cut is not written.
    const text = axisText(t, step, app.unit, largest, k === 0);
    if (x + 4 + app.measure(text, '11px') <= width) c.fillText(text, x + 4, height / 2);
  }
}

/** The minimap counts busy lanes once for a width, of each capture. @type {{width: number, means: Float64Array[], most: number}} */
let busyColumns = { width: 0, means: [], most: 1 };

/** @param {App} app  @param {number} width */
function busyLanes(app, width) {
  if (busyColumns.width === width) return busyColumns;
  const { model, stage, header, tracks } = app;
  const means = Array.from({ length: header.sides.length || 1 }, () => new Float64Array(width + 1));
  const perTime = width / stage.span;
  for (let strip = 0; strip + 1 < model.start.length; strip++) {
    if (!model.stripOuter[strip]) continue;
    const mean = means[tracks[model.stripTrack[strip]].side];
    for (let i = model.start[strip]; i < model.start[strip + 1]; i++) {
      const [a, b] = [model.begin[i] * perTime, model.end[i] * perTime];
      const dense = model.bundles.size ? model.covered(i) / (model.end[i] - model.begin[i] || 1) : 1;
      const [first, last] = [Math.floor(a), Math.floor(b)];
      if (first === last) {
        mean[first] += (b - a) * dense;
        continue;
      }
      mean[first] += (first + 1 - a) * dense;
      for (let x = first + 1; x < last; x++) mean[x] += dense;
      mean[last] += (b - last) * dense;
    }
  }
  const most = means.reduce((all, mean) => mean.reduce((top, v) => Math.max(top, v), all), 1e-9);
  busyColumns = { width, means, most };
  return busyColumns;
}

/** @param {App} app  @param {Surface} surface */
export function drawMap(app, { c, width, height }) {
  const { stage, findings } = app;
  const { tokens } = app.theme;
  const { means, most } = busyLanes(app, Math.floor(width));
  c.fillStyle = tokens.bg;
  c.fillRect(0, 0, width, height);
  c.fillStyle = tokens.area;
  // Of two captures the first stands on a line that the second hangs from.
  const room = (height - 9) / means.length;
  means.forEach((mean, side) => {
    for (let x = 0; x < mean.length; x++) {
      const tall = (room * mean[x]) / most;
      c.fillRect(x, side ? height - room + 1 : height - room * (means.length - 1) - tall, 1, tall);
    }
  });
  for (const { t, severity } of findings.marks) {
    const x = (t / stage.span) * width;
    c.fillStyle = severity === 'error' ? tokens.bad : severity === 'warning' ? tokens.warn : tokens.dim;
    c.beginPath();
    c.moveTo(x - 3.5, 0);
    c.lineTo(x + 3.5, 0);
    c.lineTo(x, 6);
    c.fill();
  }
  drawBrush(app, c, width, height);
}

/** The view as a frame. @param {App} app  @param {CanvasRenderingContext2D} c  @param {number} w  @param {number} h */
function drawBrush({ stage, theme }, c, w, h) {
  const a = Math.max(0, (stage.t0 / stage.span) * w);
  const b = Math.min(w, (stage.t1 / stage.span) * w);
  c.globalAlpha = 0.62;
  c.fillStyle = theme.tokens.bg;
  c.fillRect(0, 0, a, h);
  c.fillRect(b, 0, w - b, h);
  c.globalAlpha = 1;
  c.strokeStyle = theme.tokens.accent;
  c.lineWidth = 1.5;
  const left = Math.min(Math.max(1, a), w - 4);
  c.strokeRect(left, 1, Math.max(3, Math.min(b, w - 1) - left), h - 2);
}

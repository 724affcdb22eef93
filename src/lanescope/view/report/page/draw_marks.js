// Drawing over the lanes: the selected slice, its flows, the place of a finding, a measured range.

/** @typedef {import('./main.js').App} App */
/** @typedef {import('./draw_lanes.js').Surface} Surface */

const MOST_FLOWS_SHOWN = 200;

/** @param {App} app  @param {Surface} surface */
export function drawMarks(app, surface) {
  drawRange(app, surface);
  drawPlace(app, surface);
  const { row } = app.selection;
  if (row < 0) return;
  for (const flow of app.model.flowsOf(row).slice(0, MOST_FLOWS_SHOWN)) drawFlow(app, surface, flow.flow);
  const { stage, model } = app;
  const box = app.lanes.boxOf(row);
  const a = Math.max(-3, stage.xOf(model.begin[row]));
  const b = Math.min(surface.width + 3, stage.xOf(model.end[row]));
  surface.c.strokeStyle = app.theme.tokens.select;
  surface.c.lineWidth = 2;
  surface.c.strokeRect(a - 1, box.y - 1, Math.max(3, b - a + 1), box.height + 2);
}

/** @param {App} app  @param {Surface} surface */
function drawRange({ selection, stage, theme }, { c, height }) {
  const range = selection.range ?? selection.dragged;
  if (!range) return;
  const [a, b] = [stage.xOf(range[0]), stage.xOf(range[1])];
  c.fillStyle = theme.tokens.accent;
  c.globalAlpha = 0.1;
  c.fillRect(a, 0, b - a, height);
  c.globalAlpha = 1;
  c.fillRect(Math.round(a), 0, 1, height);
  c.fillRect(Math.round(b), 0, 1, height);
}

/** Where a finding is that has no slice. @param {App} app  @param {Surface} surface */
function drawPlace({ selection, stage, theme, lanes }, { c, width, height }) {
  const { place } = selection;
  if (!place) return;
  const row = place.track === null ? undefined : lanes.shownRowOf(place.track);
  const [y, tall] = row ? [row.y - lanes.scroll, row.height - 1] : [0, height];
  const a = Math.max(-3, stage.xOf(place.t0));
  const b = Math.min(width + 3, Math.max(a + 3, stage.xOf(place.t1)));
  c.strokeStyle = place.severity === 'error' ? theme.tokens.bad : theme.tokens.warn;
  c.lineWidth = 2;
  c.strokeRect(a, y, b - a, tall);
}

/**
 * An arrow from where the flow leaves to where it arrives.
 * @param {App} app  @param {Surface} surface  @param {number} flow
 */
function drawFlow({ model, stage, theme, lanes }, { c, width }, flow) {
  const { source, target, leaves, arrives } = model.flows;
  const [from, to] = [lanes.boxOf(source[flow]), lanes.boxOf(target[flow])];
  const x1 = stage.xOf(model.end[source[flow]] + leaves[flow]);
  const x2 = stage.xOf(model.begin[target[flow]] + arrives[flow]);
  if (Math.max(x1, x2) < -500 || Math.min(x1, x2) > width + 500) return;
  const [y1, y2] = [from.y + from.height / 2, to.y + to.height / 2];
  const bend = Math.max(18, Math.min(90, Math.abs(x2 - x1) / 2));
  c.strokeStyle = c.fillStyle = theme.tokens.flow;
  c.lineWidth = 1.5;
  c.beginPath();
  c.moveTo(x1, y1);
  c.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2 - 5, y2);
  c.stroke();
  c.beginPath();
  c.moveTo(x2, y2);
  c.lineTo(x2 - 7, y2 - 3.5);
  c.lineTo(x2 - 7, y2 + 3.5);
  c.fill();
  c.beginPath();
  c.arc(x1, y1, 2.2, 0, 7);
  c.fill();
}

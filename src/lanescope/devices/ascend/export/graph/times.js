// --- timeline: one strip a core, as far as executions are recorded ----------------------------------------------------

const LANE = 15, NAMES = 74, AXIS = 18;
const times = { x0: D.begin, x1: Math.max(D.end, D.begin + 1), top: 0 };
const lanes = D.cores.map(() => []);
T.bars.forEach((bars, t) => bars.forEach(([lane, begin, end]) => lanes[lane].push([begin, end, t])));
lanes.forEach((bars) => bars.sort((a, b) => a[0] - b[0]));
const strip = new Stage($('bars'), paintTimes);

function drawTimes() { if (!$('times').hidden) strip.now(); }
function span0() { return times.x1 - times.x0; }
function paintTimes(ctx, s) {
  ctx.fillStyle = css.bg;
  ctx.fillRect(0, 0, s.w, s.h);
  const room = s.w - NAMES, px = room / span0(), focus = hovered >= 0 ? hovered : selected;
  ctx.font = '11px Inter, system-ui, sans-serif';
  ctx.textBaseline = 'middle';
  if (!D.cores.length) {
    ctx.fillStyle = css.dim;
    ctx.fillText('No executions with times in this capture.', 14, s.h / 2);
  }
  const held = focus >= 0 ? new Set([focus, ...[...chain(focus)].map((e) => E.pred[e])]) : new Set();
  lanes.forEach((bars, lane) => {
    const y = AXIS + lane * LANE - times.top;
    if (y < AXIS - LANE || y > s.h) return;
    ctx.fillStyle = lane % 2 ? css.bg : css.bg2;
    ctx.fillRect(0, y, s.w, LANE);
    ctx.fillStyle = css.dim;
    ctx.fillText(cut(ctx, D.cores[lane], NAMES - 14), 8, y + LANE / 2);
    let drawn = -Infinity;
    let low = 0, high = bars.length;
    while (low < high) { const middle = (low + high) >> 1; if (bars[middle][0] < times.x0) low = middle + 1; else high = middle; }
    for (let i = Math.max(0, low - 1); i < bars.length && bars[i][0] <= times.x1; i++) {
      const [begin, end, t] = bars[i];
      const x = Math.max(NAMES, NAMES + (begin - times.x0) * px), right = NAMES + (end - times.x0) * px;
      if (right < NAMES || (right - drawn < 0.5 && !held.has(t))) continue;
      const wide = Math.max(right - x, 1.2);
      const faint = (isHit && !isHit[t]) || (focus >= 0 && !held.has(t));
      ctx.globalAlpha = faint ? 0.35 : 1;
      ctx.fillStyle = fill(t);
      ctx.fillRect(x, y + 2, wide, LANE - 4);
      ctx.globalAlpha = 1;
      if (held.has(t)) {
        ctx.strokeStyle = css.accent;
        ctx.lineWidth = t === focus ? 2 : 1;
        ctx.strokeRect(x, y + 2, wide, LANE - 4);
      }
      if (wide > 44) { ctx.fillStyle = faint ? css.dim : fill(t) === css.none ? css.ink : '#10151c'; ctx.fillText(cut(ctx, `${title(t)} ${T.name[t]}`, wide - 8), x + 4, y + LANE / 2); }
      drawn = x + wide;
    }
  });
  if (focus >= 0 && !T.bars[focus].length && T.begin[focus] !== null) {
    const x = NAMES + (T.begin[focus] - times.x0) * px;
    ctx.fillStyle = css.accent;
    if (x >= NAMES) ctx.fillRect(x - 1, AXIS, Math.max(2, ((T.end[focus] ?? T.begin[focus]) - T.begin[focus]) * px), s.h);
  }
  ctx.fillStyle = css.panel;
  ctx.fillRect(0, 0, s.w, AXIS);
  ctx.fillStyle = css.dim;
  const raw = span0() / Math.max(room / 110, 1), size = 10 ** Math.floor(Math.log10(raw));
  const tick = [1, 2, 5, 10].map((f) => f * size).find((v) => v >= raw);
  for (let v = Math.ceil((times.x0 - D.begin) / tick) * tick; v + D.begin <= times.x1; v += tick) {
    const x = NAMES + (v + D.begin - times.x0) * px;
    ctx.fillRect(x, AXIS - 4, 1, 4);
    const text = span(Number(v.toPrecision(9)), 6), wide = ctx.measureText(text).width;
    ctx.fillText(text, x + 3 + wide > s.w ? x - 3 - wide : x + 3, 8);
  }
  ctx.textBaseline = 'alphabetic';
}
function barAt(x, y) {
  const lane = Math.floor((y - AXIS + times.top) / LANE);
  if (x < NAMES || y < AXIS || !lanes[lane]) return -1;
  const px = span0() / (strip.w - NAMES), time = times.x0 + (x - NAMES) * px;
  let found = -1;
  for (const [begin, end, t] of lanes[lane]) if (begin - 2 * px <= time && time <= end + 2 * px) found = t;
  return found;
}
function within() {
  const least = 10, whole = Math.max(D.end - D.begin, least), size = Math.min(Math.max(span0(), least), whole * 1.05);
  times.x0 = Math.min(Math.max(times.x0, D.begin - whole * 0.025), D.end + whole * 0.025 - size);
  times.x1 = times.x0 + size;
  times.top = Math.min(Math.max(times.top, 0), Math.max(0, AXIS + lanes.length * LANE - strip.h));
}
function reveal(lane) {
  const room = strip.h - AXIS - LANE, y = lane * LANE - times.top;
  if (y < 0 || y > room) times.top += y < 0 ? y : y - room;
  within();
}
function frame(t) {
  if (T.begin[t] === null) return;
  const wide = Math.max((T.end[t] ?? T.begin[t]) - T.begin[t], (D.end - D.begin) / 2000, 10) * 8;
  const centre = ((T.end[t] ?? T.begin[t]) + T.begin[t]) / 2;
  times.x0 = centre - wide / 2; times.x1 = centre + wide / 2;
  within();
  if (T.bars[t].length) reveal(T.bars[t][0][0]);
  drawTimes();
}
pointer($('bars'), {
  hover(x, y) { hover(x < 0 ? -1 : barAt(x, y), x, y, $('times')); },
  drag(dx, dy) {
    const by = -dx * span0() / (strip.w - NAMES);
    times.x0 += by; times.x1 += by; times.top -= dy || 0;
    within();
    drawTimes();
  },
  zoom(factor, x) {
    const centre = times.x0 + span0() * Math.max(x - NAMES, 0) / (strip.w - NAMES), size = span0() / factor;
    times.x0 = centre - (centre - times.x0) / factor; times.x1 = times.x0 + size;
    within();
    drawTimes();
  },
  click(x, y) { const t = barAt(x, y); select(t); if (t >= 0) show(t); },
});
$('bars').addEventListener('dblclick', (event) => { const t = barAt(event.offsetX, event.offsetY); if (t >= 0) frame(t); });

// --- begin -----------------------------------------------------------------------------------------------------------

function theme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ['bg', 'bg2', 'panel', 'ink', 'dim', 'line', 'edge', 'accent', 'bad', 'warn', 'wire', 'held', 'none']) {
    css[name] = style.getPropertyValue(`--${name}`).trim();
  }
  map.picture = null;
  main.now();
  drawTimes();
}
function resize() {
  for (const stage of [main, map, strip]) stage.size();
  map.picture = null;
  main.now();
  drawTimes();
}
function facts() {
  const parts = [['tasks', N], ['edges', E.pred.length], ['implied', E.needed.filter((n) => !n).length], 
    ['levels', T.level.reduce((a, b) => Math.max(a, b + 1), 0)]];
  const lost = T.record.filter((r) => D.records[r] === 'lost').length, violated = E.violated.filter(Boolean).length;
  if (D.end > D.begin) parts.push(['span', span(D.end - D.begin)]);
  for (const [name, value] of parts) {
    const part = node('span');
    part.append(node('b', typeof value === 'number' ? value.toLocaleString('en') : value), document.createTextNode(` ${name}`));
    $('facts').append(part);
  }
  for (const [name, value] of [['violated', violated], ['lost', lost]]) {
    if (!value) continue;
    const part = node('span', undefined, 'bad');
    part.append(node('b', value), document.createTextNode(` ${name}`));
    $('facts').append(part);
  }
}
facts();
$('times').style.height = `${Math.min(190, AXIS + Math.max(lanes.length, 2) * LANE + 4)}px`;
for (const stage of [main, map, strip]) stage.size();
theme();
addEventListener('resize', resize);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', theme);
const asked = D.selected >= 0 ? D.selected : T.name.indexOf(decodeURIComponent(location.hash.slice(1)));
const before = main.cost;
main.cost = Infinity; // no flight to the first view
first();
main.cost = before;
select(asked);
if (asked >= 0) show(asked, true);

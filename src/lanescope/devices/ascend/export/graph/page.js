'use strict';
// A task graph to explore. All data is in the page; names reach it by textContent and fillText only.
const D = JSON.parse(document.getElementById('data').textContent);
const T = D.tasks, E = D.edges, N = T.name.length;
const W = D.width, HEAD = D.head, PORT = D.port;
const $ = (id) => document.getElementById(id);
const reduced = matchMedia('(prefers-reduced-motion: reduce)').matches;
let css = {};
let selected = -1, hovered = -1, hits = [], hit = -1, isHit = null, showsImplied = false;

// --- texts -----------------------------------------------------------------------------------------------------------

function span(value, digits = 3) {
  if (value === null) return '?';
  if (D.unit !== 'ns') return `${value} ${D.unit}`;
  for (const [size, name] of [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']]) {
    if (Math.abs(value) * 2000 >= size * 1999) return `${Number((value / size).toPrecision(digits))} ${name}`;
  }
  return `${value} ns`;
}
const length = (t) => (T.begin[t] === null || T.end[t] === null ? null : T.end[t] - T.begin[t]);
const title = (t) => (T.fn[t] >= 0 ? D.functions[T.fn[t]] : D.kinds[T.kind[t]]);
const kind = (t) => D.kinds[T.kind[t]];
const record = (t) => D.records[T.record[t]];
const ABSENT = { none: 'no record by design', lost: 'record lost', undecidable: 'no record', recorded: 'no time' };
function summary(t) {
  if (T.begin[t] === null) return ABSENT[record(t)];
  const slack = T.slack[t] === null ? [] : [`slack ${span(T.slack[t])}`];
  const isMoment = length(t) === 0 && ['dummy', 'skipped'].includes(kind(t));
  return [...(isMoment ? [] : [length(t) === null ? 'no end' : span(length(t))]), ...slack].join(', ') || 'passed';
}
// As much of a text as fits; nothing where that would be three letters or fewer, which tell nothing.
function cut(ctx, text, room) {
  const width = ctx.measureText(text).width;
  if (width <= room) return text;
  for (let kept = Math.ceil(text.length * room / width); kept > 3; kept--) {
    const tail = kept >> 1;
    const shown = `${text.slice(0, kept - tail)}…${text.slice(text.length - tail)}`;
    if (ctx.measureText(shown).width <= room) return shown;
  }
  return '';
}
function fill(t) {
  return T.color[t] >= 0 ? D.palette[T.color[t]] : css.none;
}

// --- graph -----------------------------------------------------------------------------------------------------------

const into = Array.from({ length: N }, () => []), out = Array.from({ length: N }, () => []);
for (let e = 0; e < E.pred.length; e++) { into[E.succ[e]].push(e); out[E.pred[e]].push(e); }
const L = D.lines, boxes = new Float64Array(L.edge.length * 4);
L.points.forEach((points, i) => {
  let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
  for (let k = 0; k < points.length; k += 2) {
    x0 = Math.min(x0, points[k]); x1 = Math.max(x1, points[k]);
    y0 = Math.min(y0, points[k + 1]); y1 = Math.max(y1, points[k + 1]);
  }
  boxes.set([x0 - 60, y0 - 4, x1 + 60, y1 + 4], i * 4);
});
// The chain of producers that ended last: what held a task, back to its source.
function chain(t) {
  const edges = new Set(), seen = new Set();
  for (let e = T.holds[t]; e >= 0 && !seen.has(e); e = T.holds[E.pred[e]]) { edges.add(e); seen.add(e); }
  return edges;
}

// --- drawing ---------------------------------------------------------------------------------------------------------

class Stage {
  constructor(canvas, draw) {
    this.canvas = canvas;
    this.ctx = canvas.getContext('2d');
    this.x = this.y = 0;
    this.k = this.ky = 1;
    this.paint = draw;
    this.cost = 0;
    this.still = document.createElement('canvas');
    this.timer = 0;
  }
  size() {
    const { clientWidth: w, clientHeight: h } = this.canvas.parentElement === $('stage') && this.canvas === $('map')
      ? this.canvas : this.canvas.parentElement;
    const ratio = Math.min(devicePixelRatio || 1, 2);
    this.w = w; this.h = h; this.ratio = ratio;
    this.canvas.width = w * ratio; this.canvas.height = h * ratio;
  }
  // While a large graph moves, the last picture moves; it is drawn anew when it rests.
  move() {
    if (this.cost < 8) { this.now(); return; }
    if (!this.waiting) {
      this.waiting = true;
      requestAnimationFrame(() => { this.waiting = false; if (this.timer) this.shift(); });
    }
    clearTimeout(this.timer);
    this.timer = setTimeout(() => { this.timer = 0; this.now(); }, 90);
  }
  shift() {
    const { ctx, ratio, last } = this, k = this.k / last.k;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.fillStyle = css.bg;
    ctx.fillRect(0, 0, this.w, this.h);
    ctx.drawImage(this.still, (last.x - this.x) * this.k, (last.y - this.y) * this.k, this.w * k, this.h * k);
  }
  now() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = 0;
      const begin = performance.now();
      this.ctx.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
      this.paint(this.ctx, this);
      this.cost = performance.now() - begin;
      if (this.cost >= 8) {
        this.still.width = this.canvas.width; this.still.height = this.canvas.height;
        this.still.getContext('2d').drawImage(this.canvas, 0, 0);
        this.last = { x: this.x, y: this.y, k: this.k };
      }
    });
  }
}

const main = new Stage($('graph'), paint), map = new Stage($('map'), paintMap);

function stroke(ctx, i, fine) {
  const p = L.points[i];
  ctx.moveTo(p[0], p[1]);
  for (let k = 2; k < p.length; k += 2) {
    const x = p[k], y = p[k + 1], left = p[k - 2], up = p[k - 1];
    if (!fine || (k / 2) % 2 === 0) ctx.lineTo(x, y);
    else {
      const bend = x >= left ? Math.max((x - left) / 2, 30) : 60;
      ctx.bezierCurveTo(left + bend, up, x - bend, y, x, y);
    }
  }
}

function paint(ctx, s) {
  ctx.fillStyle = css.bg;
  ctx.fillRect(0, 0, s.w, s.h);
  ctx.save();
  ctx.scale(s.k, s.k);
  ctx.translate(-s.x, -s.y);
  const view = [s.x, s.y, s.x + s.w / s.k, s.y + s.h / s.k];
  const focus = hovered >= 0 ? hovered : selected;
  const held = focus >= 0 ? chain(focus) : new Set();
  const near = new Set(focus >= 0 ? [...into[focus], ...out[focus]] : []);
  const groups = [[], [], [], [], [], []]; // implied, plain, holding, violated, of the focus, what held it
  for (let i = 0; i < L.edge.length; i++) {
    if (boxes[i * 4] > view[2] || boxes[i * 4 + 2] < view[0] || boxes[i * 4 + 1] > view[3] || boxes[i * 4 + 3] < view[1]) continue;
    const e = L.edge[i];
    if (held.has(e)) groups[5].push(i);
    else if (near.has(e) && (E.needed[e] || showsImplied)) groups[4].push(i);
    else if (!E.needed[e]) { if (showsImplied) groups[0].push(i); } else if (E.violated[e]) groups[3].push(i);
    else groups[T.holds[E.succ[e]] === e ? 2 : 1].push(i);
  }
  const fine = s.k > 0.12, thin = 1 / s.k;
  const styles = [[css.wire, 1, [4, 4]], [css.wire, 1.1], [css.held, 1.7], [css.bad, 2.2],
    [css.accent, 1.4], [css.accent, 3]];
  groups.forEach((lines, at) => {
    const [color, width, dash] = styles[at];
    ctx.strokeStyle = color;
    ctx.lineWidth = Math.max(width, thin * (at > 2 ? 1.4 : 0.6));
    ctx.globalAlpha = at < 3 && focus >= 0 ? 0.45 : at < 3 && s.k < 0.12 ? 0.5 : 1;
    ctx.setLineDash(dash && fine ? dash : []);
    ctx.beginPath();
    for (const i of lines) stroke(ctx, i, fine);
    ctx.stroke();
  });
  ctx.setLineDash([]);
  ctx.globalAlpha = 1;
  for (let t = 0; t < N; t++) {
    if (T.x[t] > view[2] || T.x[t] + W < view[0] || T.y[t] > view[3] || T.y[t] + T.h[t] < view[1]) continue;
    box(ctx, t, s.k);
  }
  for (const t of [hovered, selected]) {
    if (t < 0) continue;
    ctx.strokeStyle = css.accent;
    ctx.lineWidth = Math.max(2.4, 2 * thin);
    ctx.strokeRect(T.x[t] - 3, T.y[t] - 3, W + 6, T.h[t] + 6);
  }
  ctx.restore();
  paintMap(map.ctx, map);
}

const DASHES = { dummy: [4, 3], alloc: [4, 3], skipped: [2, 3], unknown: [2, 3] };

function box(ctx, t, k) {
  const x = T.x[t], y = T.y[t], h = T.h[t], name = kind(t), dim = isHit && !isHit[t];
  ctx.globalAlpha = dim ? 0.25 : 1;
  if (k < 0.22) {
    ctx.fillStyle = fill(t);
    ctx.fillRect(x, y, W, h);
    if (record(t) === 'lost') { ctx.fillStyle = css.bad; ctx.fillRect(x, y, W, h / 3); }
    ctx.globalAlpha = 1;
    return;
  }
  ctx.beginPath();
  ctx.roundRect(x, y, W, h, name === 'alloc' ? 14 : 4);
  ctx.fillStyle = css.panel;
  ctx.fill();
  ctx.strokeStyle = record(t) === 'lost' ? css.bad : css.wire;
  ctx.lineWidth = name === 'graph' ? 3 : 1.2;
  ctx.setLineDash(DASHES[name] || []);
  ctx.stroke();
  ctx.setLineDash([]);
  ctx.fillStyle = fill(t);
  ctx.beginPath();
  ctx.roundRect(x, y, 7, h, [4, 0, 0, 4]);
  ctx.fill();
  const size = Math.min(Math.max(9.5 / k, 11), 17), id = T.name[t];
  const font = (size_) => `${size_}px Inter, system-ui, sans-serif`;
  ctx.font = `600 ${font(k < 0.42 ? Math.min(11 / k, HEAD * 0.7) : size)}`;
  if (k < 0.42) {
    // Smaller letters before fewer ones.
    const wide = ctx.measureText(title(t)).width;
    if (wide > W - 18) ctx.font = `600 ${font(Math.max(Math.min(11 / k, HEAD * 0.7) * (W - 22) / wide, 7.5 / k))}`;
    ctx.fillStyle = css.ink;
    ctx.fillText(cut(ctx, title(t), W - 22), x + 14, y + Math.min(h / 2, 24) + 4 / k);
  } else {
    const mark = T.early[t] !== null ? '▶▶' : T.allows[t] ? '▷' : '';
    ctx.fillStyle = css.ink;
    ctx.fillText(cut(ctx, title(t), W - 30 - size * 0.58 * id.length), x + 13, y + 3 + size);
    ctx.font = font(size * 0.9);
    ctx.fillStyle = css.dim;
    ctx.fillText(cut(ctx, summary(t), W - 22 - (mark ? 2 * size : 0)), x + 13, y + 4 + size * 2.1);
    ctx.textAlign = 'right';
    ctx.fillText(id, x + W - 7, y + 3 + size);
    ctx.fillStyle = T.early[t] === null ? css.dim : css.accent;
    ctx.fillText(mark, x + W - 7, y + 4 + size * 2.1);
    ctx.textAlign = 'left';
    ports(ctx, t, x, y, k);
  }
  ctx.globalAlpha = 1;
}

function ports(ctx, t, x, y, k) {
  ctx.fillStyle = css.dim;
  ctx.beginPath();
  T.into[t].forEach((port, at) => dot(ctx, x, y + HEAD + PORT * (at + 0.5)));
  T.out[t].forEach((port, at) => dot(ctx, x + W, y + HEAD + PORT * (at + 0.5)));
  ctx.fill();
  if (k < 0.85) return;
  ctx.font = '8px Inter, system-ui, sans-serif';
  T.into[t].forEach(([, type, tensor, shape], at) => {
    const text = `T${tensor} ${D.texts[shape]}${type === 'INOUT' ? ' ↻' : ''}`;
    ctx.fillText(cut(ctx, text, W - 60), x + 13, y + HEAD + PORT * (at + 0.5) + 3);
  });
  ctx.textAlign = 'right';
  T.out[t].forEach((tensor, at) => ctx.fillText(`T${tensor}`, x + W - 8, y + HEAD + PORT * (at + 0.5) + 3));
  ctx.textAlign = 'left';
}
function dot(ctx, x, y) { ctx.moveTo(x + 2.6, y); ctx.arc(x, y, 2.6, 0, 7); }

function paintMap(ctx, s) {
  const { x, y, w, h, k: zoomed } = main;
  const isWhole = x <= 0 && y <= 0 && x + w / zoomed >= D.size[0] && y + h / zoomed >= D.size[1];
  s.canvas.style.visibility = isWhole ? 'hidden' : 'visible';
  const k = Math.min(s.w / (D.size[0] || 1), s.h / (D.size[1] || 1)) * 0.94;
  s.k = k;
  s.x = (D.size[0] - s.w / k) / 2; s.y = (D.size[1] - s.h / k) / 2;
  if (!s.picture || s.theme !== css.bg) {
    s.theme = css.bg;
    s.picture = document.createElement('canvas');
    s.picture.width = s.canvas.width; s.picture.height = s.canvas.height;
    const p = s.picture.getContext('2d');
    p.setTransform(s.ratio * k, 0, 0, s.ratio * k, -s.x * k * s.ratio, -s.y * k * s.ratio);
    for (let t = 0; t < N; t++) { p.fillStyle = fill(t); p.fillRect(T.x[t], T.y[t], Math.max(W, 1 / k), Math.max(T.h[t], 1 / k)); }
  }
  ctx.setTransform(1, 0, 0, 1, 0, 0);
  ctx.clearRect(0, 0, s.canvas.width, s.canvas.height);
  ctx.drawImage(s.picture, 0, 0);
  ctx.setTransform(s.ratio, 0, 0, s.ratio, 0, 0);
  ctx.strokeStyle = css.accent;
  ctx.lineWidth = 1.5;
  ctx.strokeRect((main.x - s.x) * k, (main.y - s.y) * k, main.w / main.k * k, main.h / main.k * k);
  if (selected >= 0) {
    ctx.fillStyle = css.accent;
    ctx.fillRect((T.x[selected] + W / 2 - s.x) * k - 2, (T.y[selected] + T.h[selected] / 2 - s.y) * k - 2, 5, 5);
  }
}

// --- moving ----------------------------------------------------------------------------------------------------------

function bounded() {
  const [w, h] = D.size, roomX = main.w / main.k * 0.8, roomY = main.h / main.k * 0.8;
  main.x = Math.min(Math.max(main.x, -roomX), w - main.w / main.k + roomX);
  main.y = Math.min(Math.max(main.y, -roomY), h - main.h / main.k + roomY);
}
function fit(x, y, w, h, most = 1.2) {
  const k = Math.min(main.w / (w + 80), main.h / (h + 80), most);
  glide({ k, x: x + w / 2 - main.w / 2 / k, y: y + h / 2 - main.h / 2 / k });
}
let flight = 0;
function glide(to) {
  cancelAnimationFrame(flight);
  if (reduced || main.cost > 24) { Object.assign(main, to); main.now(); return; }
  const from = { k: main.k, x: main.x, y: main.y }, begin = performance.now();
  const step = (now) => {
    const p = Math.min(Math.max((now - begin) / 220, 0), 1), q = p * (2 - p);
    main.k = from.k * (to.k / from.k) ** q;
    main.x = from.x + (to.x - from.x) * q; main.y = from.y + (to.y - from.y) * q;
    main.now();
    if (p < 1) flight = requestAnimationFrame(step);
  };
  flight = requestAnimationFrame(step);
}
// What is long and thin begins at its first tasks, at a size that can be read.
function first() {
  const [w, h] = D.size, [across, down] = [main.w / (w + 80), main.h / (h + 80)];
  if (Math.min(across, down) > 0.15 || Math.max(across, down) < 3 * Math.min(across, down)) { whole(); return; }
  const k = Math.min(Math.max(across, down), 0.8);
  glide({ k, x: across < down ? -40 / k : (w - main.w / k) / 2, y: across < down ? (h - main.h / k) / 2 : -40 / k });
}
function whole() { fit(0, 0, D.size[0], D.size[1]); }
function zoom(factor, px = main.w / 2, py = main.h / 2) {
  cancelAnimationFrame(flight);
  const least = Math.min(main.w / D.size[0], main.h / D.size[1], 1) * 0.5;
  const k = Math.min(Math.max(main.k * factor, least), 6);
  main.x += px / main.k - px / k; main.y += py / main.k - py / k;
  main.k = k;
  bounded(); main.move();
}
function at(px, py) {
  const x = main.x + px / main.k, y = main.y + py / main.k;
  for (let t = N - 1; t >= 0; t--) {
    if (x >= T.x[t] && x <= T.x[t] + W && y >= T.y[t] && y <= T.y[t] + T.h[t]) return t;
  }
  return -1;
}
function pointer(canvas, handlers) {
  const down = new Map();
  let moved = false, gap = 0;
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    down.set(event.pointerId, [event.offsetX, event.offsetY]);
    moved = false; gap = 0;
  });
  canvas.addEventListener('pointermove', (event) => {
    const last = down.get(event.pointerId);
    if (!last) { handlers.hover(event.offsetX, event.offsetY); return; }
    const [dx, dy] = [event.offsetX - last[0], event.offsetY - last[1]];
    if (!moved && Math.hypot(dx, dy) < 4) return;
    moved = true;
    down.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (down.size === 2) {
      const [a, b] = [...down.values()], now = Math.hypot(a[0] - b[0], a[1] - b[1]);
      if (gap) handlers.zoom(now / gap, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
      gap = now;
    } else handlers.drag(dx, dy, event.offsetX, event.offsetY);
  });
  const up = (event) => {
    if (down.delete(event.pointerId) && !moved && event.type === 'pointerup') handlers.click(event.offsetX, event.offsetY);
  };
  canvas.addEventListener('pointerup', up);
  canvas.addEventListener('pointercancel', up);
  canvas.addEventListener('pointerleave', () => handlers.hover(-1, -1));
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    if (event.shiftKey) handlers.drag(-event.deltaY - event.deltaX, 0);
    else handlers.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), event.offsetX, event.offsetY);
  }, { passive: false });
}
pointer($('graph'), {
  hover(x, y) { hover(x < 0 ? -1 : at(x, y), x, y, $('stage')); },
  drag(dx, dy) { cancelAnimationFrame(flight); main.x -= dx / main.k; main.y -= dy / main.k; bounded(); main.move(); },
  zoom,
  click(x, y) { select(at(x, y)); },
});
$('graph').addEventListener('dblclick', (event) => { const t = at(event.offsetX, event.offsetY); if (t >= 0) show(t, true); });
function centre(x, y) { main.x = map.x + x / map.k - main.w / 2 / main.k; main.y = map.y + y / map.k - main.h / 2 / main.k; bounded(); main.move(); }
pointer($('map'), { hover() {}, zoom, drag(dx, dy, x, y) { if (x !== undefined) centre(x, y); }, click: centre });

function hover(t, x, y, where) {
  const tip = $('tip');
  if (t >= 0) {
    tip.textContent = `${title(t)} ${T.name[t]}\n${kind(t)}, level ${T.level[t]}\n${summary(t)}`;
    where.append(tip);
    tip.style.display = 'block';
    tip.style.left = `${Math.min(x + 14, where.clientWidth - tip.offsetWidth - 4)}px`;
    tip.style.top = `${Math.max(2, y + 14 + tip.offsetHeight > where.clientHeight ? y - tip.offsetHeight - 8 : y + 14)}px`;
  } else tip.style.display = 'none';
  if (t === hovered) return;
  hovered = t;
  if (main.cost < 24) main.now();
  drawTimes();
}


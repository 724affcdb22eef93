// --- selection -------------------------------------------------------------------------------------------------------

function node(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}
function button(text, action) {
  const made = node('button', text);
  made.type = 'button';
  made.addEventListener('click', () => action(made));
  return made;
}
function list(edges, far, heading) {
  if (!edges.length) return [];
  const shown = [...edges].sort((a, b) => (E.slack[a] ?? Infinity) - (E.slack[b] ?? Infinity)).slice(0, 60);
  const made = node('ul');
  for (const e of shown) {
    const t = far[e], item = node('li'), go = button('', () => { select(t); show(t); });
    go.append(node('span', T.name[t], 'id'), node('span', title(t), 'grow'));
    const slack = E.slack[e] === null ? '' : span(E.slack[e]);
    go.append(node('span', slack, E.violated[e] ? 'bad' : 'dim'));
    const why = E.why[e] ? `\n${E.why[e]}` : '';
    go.title = `${E.violated[e] ? 'violated: started before its producer had ended' : 'slack: from the end of the producer to the start of its consumer'}${E.needed[e] ? '' : '\nimplied by other edges'}${why}`;
    if (far === E.pred && T.holds[E.succ[e]] === e) go.append(node('span', '◀ last', 'mark'));
    item.append(go);
    made.append(item);
  }
  const parts = [node('h3', `${heading} (${edges.length})`), made];
  if (edges.length > shown.length) parts.push(node('p', `and ${edges.length - shown.length} more`, 'dim'));
  return parts;
}
function pairs(rows) {
  const made = node('dl');
  for (const [name, value, hint] of rows) {
    if (value === null || value === undefined) continue;
    const term = node('dt', name);
    if (hint) term.title = hint;
    made.append(term, node('dd', value));
  }
  return made;
}
// For the search field of Perfetto: a colon typed first makes it take a query.
function query(t) {
  const ids = T.ids[t].map((id) => `'${id}'`).join(', ');
  return `select s.id, s.ts, s.dur, s.track_id, s.name from slice s join args a using (arg_set_id) where a.key = 'debug.task_id' and a.display_value in (${ids}) order by s.ts`;
}
async function copy(text, made) {
  try { await navigator.clipboard.writeText(text); } catch {
    const area = node('textarea', text);
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
  }
  const before = made.textContent;
  made.textContent = 'copied';
  setTimeout(() => { made.textContent = before; }, 900);
}
function details(t) {
  const shown = [node('h2', title(t)), node('p', `${T.name[t]}, ${kind(t)}, level ${T.level[t]}`, 'dim')];
  if (record(t) !== 'recorded') shown.push(node('p', D.words[record(t)], record(t) === 'lost' ? 'bad' : 'dim'));
  if (kind(t) === 'unknown') shown.push(node('p', 'The capture contains no proof of what this task is.', 'dim'));
  if (T.early[t] !== null) shown.push(node('p', `▶▶ dispatched ${span(T.early[t])} before its last producer ended`, 'mark'));
  if (T.allows[t]) shown.push(node('p', '▷ allows its consumers to be dispatched before it ends', 'dim'));
  const zero = D.begin, since = (value) => (value === null ? null : span(value - zero, 6));
  shown.push(pairs([
    ['begin', since(T.begin[t])], ['end', since(T.end[t])], ['duration', length(t) === null ? null : span(length(t))],
    ['last producer ended', since(T.ready[t])],
    ['waited after that', T.ready[t] === null || T.begun[t] === null ? null : span(T.begun[t] - T.ready[t]), 'from the end of the last producer to the start'],
    ['slack', T.slack[t] === null ? null : span(T.slack[t]), 'how much later it could have ended before a consumer would have started later'],
    ['executions', T.bars[t].length || null], ['blocks', T.blocks[t] || null],
    ['nodes', T.nodes[t] ? T.nodes[t].join(', ') : null],
  ]));
  const row = node('div', undefined, 'row');
  row.append(
    button(`copy ${T.name[t]}`, (made) => copy(T.name[t], made)),
    button('copy timeline query', (made) => copy(query(t), made)),
    button('copy SQL', (made) => copy(`select * from ascend_tasks where task = '${T.name[t]}'`, made)),
    button('in timeline', () => { $('times').hidden = false; resize(); frame(t); }),
  );
  row.children[1].title = 'in the timeline that `lanescope view` opens: type : into the search field, paste, Enter; lists the slices of this task';
  row.children[2].title = 'for `lanescope sql`';
  shown.push(row, ...list(into[t], E.pred, 'Waits for'), ...list(out[t], E.succ, 'Consumers'));
  if (T.into[t].length || T.out[t].length) {
    const made = node('ul');
    for (const [index, type, tensor, shape] of T.into[t]) {
      const text = node('li', `${type} ${index}: T${tensor} ${D.texts[shape]}`);
      text.title = D.tensors[tensor];
      made.append(text);
    }
    for (const tensor of T.out[t]) made.append(node('li', `→ T${tensor} ${D.tensors[tensor]}`, 'dim'));
    shown.push(node('h3', 'Tensors'), made);
  }
  return shown;
}
function legend() {
  const shown = [node('h2', 'Task graph'), node('p', 'Click a task. Bold lines come from the producer that ended last: it held its consumer. The selected task shows, in blue, the chain that held it.', 'dim')];
  const made = node('ul');
  const uses = new Array(D.functions.length).fill(0);
  for (const at of T.fn) if (at >= 0) uses[at]++;
  const often = D.functions.map((name, at) => [name, at]).sort((a, b) => uses[b[1]] - uses[a[1]]);
  often.slice(0, 16).forEach(([name, at]) => {
    const item = node('li'), key = node('span', undefined, 'key');
    key.style.background = D.palette[D.colors[at]];
    item.append(key, document.createTextNode(name));
    made.append(item);
  });
  if (D.functions.length > 16) made.append(node('li', `and ${D.functions.length - 16} more`, 'dim'));
  if (D.functions.length) shown.push(node('h3', 'Functions'), made);
  const counts = D.kinds.map((name, at) => [name, T.kind.filter((k) => k === at).length]).filter(([, n]) => n);
  shown.push(node('h3', 'Kinds'), pairs(counts));
  shown.push(node('h3', 'Marks'), pairs([['▶▶', 'dispatched before its last producer ended'], ['▷', 'allows that to its consumers'],
    ['dashed', 'runs on no core'], ['red line', 'started before its producer ended']]));
  shown.push(node('h3', 'Keys'), pairs([['wheel, drag', 'zoom, pan'], ['0', 'all'], ['F', 'frame the task'], ['← →', 'what held it, tightest consumer'],
    ['/', 'search; Enter: next'], ['I', 'implied edges'], ['T', 'timeline'], ['Esc', 'clear']]));
  return shown;
}
function select(t) {
  selected = t;
  $('panel').replaceChildren(...(t >= 0 ? details(t) : legend()));
  $('panel').scrollTop = 0;
  $('said').textContent = t >= 0 ? `${title(t)} ${T.name[t]}, ${summary(t)}` : '';
  try { history.replaceState(null, '', t >= 0 ? `#${encodeURIComponent(T.name[t])}` : '#'); } catch { /* not everywhere allowed */ }
  main.now();
  if (t >= 0 && T.bars[t].length) reveal(T.bars[t][0][0]);
  drawTimes();
}
function show(t, close = false) {
  const x = (T.x[t] - main.x) * main.k, y = (T.y[t] - main.y) * main.k;
  const inside = x > 20 && y > 20 && x + W * main.k < main.w - 20 && y + T.h[t] * main.k < main.h - 20;
  if (close || !inside || main.k < 0.42) {
    const k = close ? 1.3 : Math.max(main.k, 0.8);
    glide({ k, x: T.x[t] + W / 2 - main.w / 2 / k, y: T.y[t] + T.h[t] / 2 - main.h / 2 / k });
  }
}
const best = (edges) => edges.reduce((a, e) => (a < 0 || (E.slack[e] ?? Infinity) < (E.slack[a] ?? Infinity) ? e : a), -1);
function step(forward) {
  if (selected < 0) return;
  const e = forward ? best(out[selected]) : T.holds[selected] >= 0 ? T.holds[selected] : best(into[selected]);
  if (e >= 0) { const t = forward ? E.succ[e] : E.pred[e]; select(t); show(t); }
}

// --- search, keys ----------------------------------------------------------------------------------------------------

function search(text) {
  const wanted = text.trim().toLowerCase();
  hits = []; hit = -1;
  isHit = wanted ? new Uint8Array(N) : null;
  for (let t = 0; wanted && t < N; t++) {
    if (T.name[t].toLowerCase() === wanted || title(t).toLowerCase().includes(wanted) || kind(t) === wanted) { hits.push(t); isHit[t] = 1; }
  }
  $('hits').textContent = wanted ? `${hits.length} found` : '';
  main.now();
}
function next(by) {
  if (!hits.length) return;
  hit = (hit + by + hits.length) % hits.length;
  $('hits').textContent = `${hit + 1}/${hits.length}`;
  select(hits[hit]); show(hits[hit]);
}
$('search').addEventListener('input', (event) => search(event.target.value));
$('search').addEventListener('keydown', (event) => {
  if (event.key === 'Enter') next(event.shiftKey ? -1 : 1);
  if (event.key === 'Escape') { event.target.value = ''; search(''); event.target.blur(); }
  event.stopPropagation();
});
function toggleImplied() { showsImplied = !showsImplied; $('implied').setAttribute('aria-pressed', showsImplied); main.now(); }
function toggleTimes() { $('times').hidden = !$('times').hidden; resize(); }
$('implied').addEventListener('click', toggleImplied);
$('strip').addEventListener('click', toggleTimes);
$('all').addEventListener('click', whole);
$('theme').addEventListener('click', () => {
  const root = document.documentElement, dark = css.bg !== '#fff';
  root.dataset.theme = dark ? 'light' : 'dark';
  theme();
});
addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const keys = {
    0: whole, f: () => selected >= 0 && show(selected, true), i: toggleImplied, t: toggleTimes, '/': () => $('search').focus(),
    Escape: () => select(-1), ArrowLeft: () => step(false), ArrowRight: () => step(true), '+': () => zoom(1.4), '-': () => zoom(1 / 1.4),
  };
  const action = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (action) { event.preventDefault(); action(); }
});

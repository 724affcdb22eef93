// The list of lanes: which rows there are, how high, which groups are open, and their labels.
import { byId, button, el } from './dom.js';
import { clean, fitApart, numberText } from './format.js';
import { Track, pathOf } from './model.js';

/** @typedef {import('./main.js').App} App */
/** @typedef {{track: Track, chain: number[], depth: number, open: boolean, above: Node | null, below: Node[],
 *   other: number[]}} Node A row of the tree: groups that are each the only child of the one before are one; `other`: its
 *   chain in the second of two captures. */
/** @typedef {{track: Track, node: Node, y: number, height: number, levels: {top: number, height: number}[],
 *   hidden: number}} Row A row that is shown. */

const LEVEL = 17;
const THIN_LEVEL = 4;
const PAD = 4;
/** A closed group of two captures. */
const PAIR_HEIGHT = 38;
const HEIGHTS = { g: 24, c: 36, p: 22 };
const MOST_LEVELS = 6;
/** A level that covers less of its lane's time than this is drawn thin. */
const ALMOST_EMPTY = 0.001;
const INDENT = 11;
/** Pixels of a row that have room for its name. */
const LEAST_SEEN = 18;
const NARROW = 200;

export class Lanes {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.scroll = 0;
    /** Of all rows together. */
    this.height = 0;
    /** @type {Row[]} */
    this.rows = [];
    /** @type {Map<number, Row>} by track */
    this.rowOf = new Map();
    /** @type {Map<number, Node>} by track */
    this.nodeOf = new Map();
    /** @type {Node[]} */
    this.nodes = this.makeNodes();
    /** Tracks of which all levels are shown. @type {Set<number>} */
    this.tall = new Set();
    /** The row of the tree that has the keyboard. @type {Node | null} */
    this.current = null;
    this.labels = byId('labels');
    this.scroller = byId('scroll');
    this.scroller.addEventListener('scroll', () => {
      this.scroll = this.scroller.scrollTop;
      this.writeLabels();
      app.stage.changed();
    });
    byId('fold').addEventListener('click', () => this.foldAll());
    this.labels.addEventListener('keydown', (event) => this.key(event));
  }

  makeNodes() {
    const { header, tracks } = this.app;
    /** @type {Node[]} */
    const nodes = [];
    /** @type {Node[]} */
    const open = [];
    if (header.path) {
      const track = new Track(-1, [null, 'p', 'critical path', -1, '', '', 1, null], 0);
      nodes.push({ track, chain: [], depth: 0, open: false, above: null, below: [], other: [] });
    }
    for (const [chain, depth, isOpen, other] of header.tree) {
      const track = tracks[chain[chain.length - 1]];
      /** @type {Node} */
      const node = { track, chain, depth, open: isOpen === 1, above: depth ? open[depth - 1] : null, below: [], other };
      node.above?.below.push(node);
      open[depth] = node;
      nodes.push(node);
      for (const id of [...chain, ...other]) this.nodeOf.set(id, node);
    }
    return nodes;
  }

  /** @param {Node} node  @returns {boolean} */
  isShown(node) {
    return node.above === null || (node.above.open && this.isShown(node.above));
  }

  /** Lay the rows out anew, after a fold or at the start. */
  layOut() {
    let y = 0;
    this.rows = [];
    for (const node of this.nodes) {
      if (!this.isShown(node)) continue;
      const row = this.makeRow(node, y);
      this.rows.push(row);
      y += row.height;
    }
    this.height = y;
    this.rowOf = new Map(this.rows.map((row) => [row.track.id, row]));
    byId('space').style.height = `${y}px`;
    this.scroll = this.scroller.scrollTop;
    this.writeLabels();
    this.app.stage.changed();
  }

  /** @param {Node} node  @param {number} y  @returns {Row} */
  makeRow(node, y) {
    const { track } = node;
    if (track.kind !== 'l') {
      const height = node.other.length && !node.open ? PAIR_HEIGHT : HEIGHTS[track.kind];
      return { track, node, y, height, levels: [], hidden: 0 };
    }
    const shown = this.tall.has(track.id) ? track.levels : Math.min(track.levels, MOST_LEVELS);
    const covered = this.coveredByLevel(track);
    const levels = [];
    let top = PAD / 2;
    for (let level = 0; level < shown; level++) {
      const height = level && covered[level] < covered[0] * ALMOST_EMPTY ? THIN_LEVEL : LEVEL;
      levels.push({ top, height: height - 1 });
      top += height;
    }
    return { track, node, y, height: top + PAD / 2, levels, hidden: track.levels - shown };
  }

  /** @param {Track} track  @returns {number[]} */
  coveredByLevel(track) {
    const { model } = this.app;
    const covered = new Array(track.levels).fill(0);
    for (const s of track.strips) {
      covered[model.stripLevel[s]] += model.sums[model.start[s + 1]] - model.sums[model.start[s]];
    }
    return covered;
  }

  /** @param {number} y pixels from the top of all rows  @returns {number} index of the first row that ends below it */
  indexAt(y) {
    let [a, b] = [0, this.rows.length];
    while (a < b) {
      const middle = (a + b) >> 1;
      if (this.rows[middle].y + this.rows[middle].height <= y) a = middle + 1;
      else b = middle;
    }
    return a;
  }

  /** @returns {Row[]} */
  inView() {
    const bottom = this.indexAt(this.scroll + this.app.stage.height - 1);
    return this.rows.slice(this.indexAt(this.scroll), bottom + 1);
  }

  /**
   * The row of a track, or of the closed group that it is in.
   * @param {number} id
   */
  shownRowOf(id) {
    let node = this.nodeOf.get(id) ?? null;
    while (node && !this.rowOf.has(node.track.id)) node = node.above;
    return node ? this.rowOf.get(node.track.id) : undefined;
  }

  /**
   * Where a row of slices is drawn: pixels from the top of the canvas.
   * @param {number} slice
   */
  boxOf(slice) {
    const { model } = this.app;
    const track = model.trackOf(slice);
    const row = this.shownRowOf(track.id) ?? this.rows[0];
    const y = row.y - this.scroll;
    if (row.track !== track) return { y: y + 4, height: row.height - 8 };
    const level = row.levels[Math.min(model.stripLevel[model.stripOf[slice]], row.levels.length - 1)];
    return { y: y + level.top, height: level.height };
  }

  /**
   * Open the groups above a track and scroll to it.
   * @param {number} id
   */
  reveal(id) {
    const node = this.nodeOf.get(id);
    if (!node) return;
    const isHidden = !this.isShown(node);
    for (let above = node.above; above; above = above.above) above.open = true;
    if (isHidden) this.layOut();
    const row = this.rowOf.get(node.track.id);
    if (row) this.scrollTo(row);
  }

  /** @param {Row} row */
  scrollTo(row) {
    const { height } = this.app.stage;
    if (row.y >= this.scroll + 4 && row.y + row.height <= this.scroll + height - 4) return;
    this.scroller.scrollTop = row.y - height / 2 + row.height / 2;
    this.scroll = this.scroller.scrollTop;
    this.writeLabels();
    this.app.stage.changed();
  }

  /** @param {Node} node  @param {boolean} [open] the opposite of what it is, if not given */
  fold(node, open = !node.open) {
    if (!node.below.length || node.open === open) return;
    node.open = open;
    this.layOut();
  }

  /** Close all groups but the outermost; if they are closed, open all. */
  foldAll() {
    const anyOpen = this.nodes.some((node) => node.depth > 0 && node.open && this.isShown(node));
    for (const node of this.nodes) if (node.below.length) node.open = node.depth === 0 || !anyOpen;
    byId('fold').textContent = anyOpen ? 'Open all' : 'Close all';
    this.layOut();
  }

  /** Write the labels of the rows in view. Not called while only time moves. */
  writeLabels() {
    const hadFocus = this.labels.contains(document.activeElement);
    const rows = this.inView();
    const tabbable = rows.find((row) => row.node === this.current) ?? rows[0];
    const made = rows.map((row) => this.label(row, row === tabbable));
    this.labels.replaceChildren(...made);
    if (hadFocus && tabbable) made[rows.indexOf(tabbable)].focus({ preventScroll: true });
  }

  /** @param {Row} row  @param {boolean} tabbable  @returns {HTMLElement} */
  label(row, tabbable) {
    const { app } = this;
    const { track, node } = row;
    const isGroup = track.kind === 'g';
    const selected = app.selection.row >= 0 && app.model.trackOf(app.selection.row) === track;
    const path = track.kind === 'p' ? 'critical path' : clean(pathOf(app.tracks, track.id));
    const siblings = node.above ? node.above.below : this.nodes.filter((other) => other.depth === 0);
    // A narrow window has room for names only.
    const about = this.labels.clientWidth < NARROW ? '' : this.about(row);
    const made = el('div', {
      class: `row${isGroup ? ' group' : ''}${selected ? ' selected' : ''}${track.side ? ' second' : ''}`,
      role: 'treeitem', 'aria-level': node.depth + 1, 'aria-selected': String(selected), title: path,
      'aria-posinset': siblings.indexOf(node) + 1, 'aria-setsize': siblings.length, tabindex: tabbable ? 0 : -1,
      onclick: () => {
        this.current = node;
        this.fold(node);
      },
    });
    if (isGroup) made.setAttribute('aria-expanded', String(node.open));
    const indent = 4 + node.depth * INDENT;
    const name = this.nameOf(node);
    const taken = indent + 35 + (track.letter ? 18 : 0) + app.measure(about, '11px') + (row.hidden ? 36 : 0);
    const room = this.labels.clientWidth - taken;
    const inside = [
      el('span', { class: 'arrow', 'aria-hidden': 'true' }, isGroup ? (node.open ? '▾' : '▸') : ''),
      track.letter && !node.other.length ? el('span', { class: 'letter', 'aria-hidden': 'true' }, track.letter) : null,
      el('span', { class: 'name' }, fitApart(name, siblings.map((other) => this.nameOf(other)), room, (text) => app.measure(text, isGroup ? '600 12px' : '12px'))),
    ];
    made.append(...inside.filter((one) => one !== null));
    if (row.hidden) made.append(this.moreButton(row));
    made.append(el('span', { class: 'about' }, about));
    // The name of a high row that is half out of sight stands in the middle of what is seen of it.
    const [top, bottom] = [row.y - this.scroll, row.y - this.scroll + row.height];
    const seen = [Math.max(top, 0), Math.min(bottom, this.labels.clientHeight)];
    const [from, to] = seen[1] - seen[0] < LEAST_SEEN ? [top, bottom] : seen;
    made.style.top = `${from}px`;
    made.style.height = `${to - from}px`;
    made.style.paddingLeft = `${indent}px`;
    return made;
  }

  /** @param {Row} row */
  moreButton(row) {
    const more = `${row.hidden} more levels`;
    return button({
      class: 'more', title: more, 'aria-label': more, tabindex: -1,
      onclick: (/** @type {Event} */ event) => {
        event.stopPropagation();
        this.tall.add(row.track.id);
        this.layOut();
      },
    }, `+${row.hidden}`);
  }

  /** @param {Node} node  @returns {string} */
  nameOf(node) {
    if (!node.chain.length) return node.track.name;
    const [name, other] = [node.chain, node.other].map((chain) => chain.map((id) => clean(this.app.tracks[id].short)).join(' › '));
    return other && other !== name ? `${name} | ${other}` : name;
  }

  /** What is said at the right of a label. @param {Row} row  @returns {string} */
  about({ track, node }) {
    if (track.kind === 'l') return track.busy === null ? '' : numberText(track.busy, 'share');
    if (track.kind === 'c') {
      if (track.samples) {
        const [least, most] = [track.samples.least, track.samples.most].map((value) => numberText(value, 'value', track.unit));
        return track.samples.least < 0 ? `${least} to ${most}` : `max ${most}`;
      }
      return this.app.header.counters_left ? 'not in this file' : '';
    }
    if (track.kind === 'p') return '';
    const count = lanesOf(track);
    if (node.other.length) {
      const second = lanesOf(this.app.tracks[node.other[node.other.length - 1]]);
      if (second !== count) return `${numberText(count, 'count')} | ${numberText(second, 'count')} lanes`;
    }
    return `${numberText(count, 'count')} ${count === 1 ? 'lane' : 'lanes'}`;
  }

  /**
   * Keys of the tree while it has the keyboard.
   * @param {KeyboardEvent} event
   */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = this.rows.findIndex((row) => row.node === this.current);
    const row = this.rows[at] ?? this.inView()[0];
    if (!row) return;
    const { node } = row;
    const index = this.rows.indexOf(row);
    const to = { ArrowDown: index + 1, ArrowUp: index - 1, Home: 0, End: this.rows.length - 1 }[event.key];
    if (to !== undefined) this.moveTo(this.rows[Math.max(0, Math.min(this.rows.length - 1, to))].node);
    else if (event.key === 'ArrowRight') {
      if (node.below.length && node.open) this.moveTo(node.below[0]);
      else this.fold(node, true);
    } else if (event.key === 'ArrowLeft') {
      if (node.below.length && node.open) this.fold(node, false);
      else if (node.above) this.moveTo(node.above);
    } else if (event.key === 'Enter' || event.key === ' ') {
      if (node.below.length) this.fold(node);
      else this.app.selection.firstOf(row.track);
    } else return;
    this.current ??= node;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {Node} node */
  moveTo(node) {
    this.current = node;
    const row = this.rowOf.get(node.track.id);
    if (!row) return;
    this.scrollTo(row);
    this.writeLabels();
  }

  /** Fold the group that a track is in, or that it is; with the keyboard, from the timeline. @param {Track} track */
  foldAround(track) {
    const row = this.shownRowOf(track.id);
    if (!row) return;
    const node = row.node.below.length ? row.node : row.node.above;
    if (node) this.fold(node);
    const now = node && this.rowOf.get(node.track.id);
    if (now) this.scrollTo(now);
  }
}

/** @param {Track} track  @returns {number} how many lanes it has, itself or below */
function lanesOf(track) {
  return track.children.reduce((sum, child) => sum + lanesOf(child), Number(track.kind === 'l'));
}

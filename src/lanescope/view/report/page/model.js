// The model: rows on strips with their times, the tree of tracks, flows both ways. Made once from the columns.
import { runningSums } from './decode.js';
import { Activity, Longest, firstAfter } from './lod.js';

/** @typedef {{t0: number, t1: number, cause: number, lost: number}} Stretch A gap, or time that was not recorded. */

/** Cause of the parts of the critical path in which a slice works. */
export const WORK = 'work';

/** A track: a group, a lane or a counter. */
export class Track {
  /**
   * @param {number} id  @param {import('./types.js').TrackEntry} entry
   * @param {number} side  @param {string} letter of its capture, where two are side by side
   */
  constructor(id, entry, side, letter = '') {
    const [parent, kind, name, rank, unit, role, , busy] = entry;
    this.parent = parent;
    /** Group, lane, counter; `p`: the critical path, which is drawn like one. */
    this.kind = kind;
    this.name = name;
    /** What it is called beside its row: without addresses, which the path in its tooltip has. */
    this.short = name;
    this.rank = rank;
    this.unit = unit;
    this.role = role;
    this.busy = busy;
    this.id = id;
    this.side = side;
    this.letter = letter;
    /** @type {Track[]} */
    this.children = [];
    /** @type {number[]} numbers of its strips */
    this.strips = [];
    /** @type {Stretch[]} */
    this.gaps = [];
    /** @type {Stretch[]} */
    this.unrecorded = [];
    /** @type {{ts: Float64Array, name: Int32Array} | null} */
    this.instants = null;
    /** @type {{ts: Float64Array, value: Float64Array, least: number, most: number} | null} */
    this.samples = null;
    /** @type {Activity | null} */
    this.activity = null;
    /** Stack levels of its strips, over all its drawing rows. */
    this.levels = 1;
  }
}

/**
 * The tracks with their children, from the header alone: what tables and findings need before the columns are there.
 * @param {import('./types.js').Header} header
 */
export function makeTracks(header) {
  const tracks = header.tracks.map((entry, id) => new Track(id, entry, header.side[id] ?? 0, header.sides[header.side[id]]?.letter));
  for (const [id, short] of Object.entries(header.short)) tracks[Number(id)].short = short;
  for (const track of tracks) if (track.parent !== null) tracks[track.parent].children.push(track);
  for (const track of tracks) track.children.sort((a, b) => a.rank - b.rank || a.id - b.id);
  return tracks;
}

/** @param {Track[]} tracks  @param {number} id  @returns {string} names from the top: `GPU 0 / SM 3 / load` */
export function pathOf(tracks, id) {
  const names = [];
  for (let at = /** @type {number | null} */ (id); at !== null; at = tracks[at].parent) names.unshift(tracks[at].name);
  const { letter } = tracks[id];
  return `${letter ? `${letter}: ` : ''}${names.join(' / ')}`;
}

/**
 * Rows by another row: `rows.subarray(at[i], at[i + 1])` are the flows of row i.
 * @param {Int32Array} key  @param {number} n
 */
function indexBy(key, n) {
  const at = new Int32Array(n + 1);
  for (const k of key) at[k + 1]++;
  runningSums(at);
  const next = at.slice();
  const rows = new Int32Array(key.length);
  for (let i = 0; i < key.length; i++) rows[next[key[i]]++] = i;
  return { at, rows };
}

/**
 * First indices of runs of equal values.
 * @param {Int32Array} values sorted
 * @param {(value: number, first: number, stop: number) => void} use
 */
function eachRun(values, use) {
  for (let first = 0, stop = 0; first < values.length; first = stop) {
    while (stop < values.length && values[stop] === values[first]) stop++;
    use(values[first], first, stop);
  }
}

/** All rows and tracks of the trace. */
export class Model {
  /**
   * @param {import('./types.js').Header} header
   * @param {import('./decode.js').Columns} columns
   * @param {Track[]} tracks
   */
  constructor(header, columns, tracks) {
    this.header = header;
    this.columns = columns;
    this.tracks = tracks;
    this.span = Number(header.span) || 1;
    this.scale = Number(header.scale) || 1;
    this.n = header.rows;
    this.name = columns.integers('s.name');
    this.flags = columns.integers('s.flags');
    this.start = runningSums(columns.integers('strip.start'));
    /** Bundles of slices by row. @type {Map<number, {count: number, busy: number}>} */
    this.bundles = new Map();
    /** Running sums of the time that rows cover. */
    this.sums = new Float64Array(this.n + 1);
    this.stripOf = new Int32Array(this.n);
    const { begin, end } = this.readTimes();
    this.begin = begin;
    this.end = end;
    this.longest = new Longest(begin, end);
    const row = columns.integers('strip.row');
    this.stripTrack = row.map((r) => header.row_track[r]);
    /** Stack level, over all drawing rows of the track. */
    this.stripLevel = columns.integers('strip.level');
    /** 1 for strips at the outside of their drawing row: what lies in them is not inside another slice. */
    this.stripOuter = Uint8Array.from(this.stripLevel, (level) => Number(level === 0));
    this.readStrips(row);
    this.readStretches();
    this.readPoints();
    this.flows = this.readFlows();
    this.path = this.readPath();
    /** Arguments that were asked for. @type {Map<number, {rows: Int32Array, values: Float64Array}>} */
    this.args = new Map();
    /** Columns of codes that were asked for. @type {Map<string, Int32Array>} */
    this.lazy = new Map();
  }

  /** Begin, end and covered time of each row. A bundle covers less than it spans. */
  readTimes() {
    const { columns, scale, start } = this;
    const gap = columns.numbers('s.gap');
    const dur = columns.numbers('s.dur');
    const bundleRows = runningSums(columns.integers('b.row'));
    const bundleBusy = columns.numbers('b.busy');
    const bundleCount = columns.integers('b.count');
    bundleRows.forEach((row, k) => this.bundles.set(row, { count: bundleCount[k], busy: bundleBusy[k] * scale }));
    for (let strip = 0; strip + 1 < start.length; strip++) {
      let t = 0;
      for (let i = start[strip]; i < start[strip + 1]; i++) {
        const begin = t + gap[i] * scale;
        t = begin + dur[i] * scale;
        const bundle = bundleRows.length ? this.bundles.get(i) : undefined;
        this.sums[i + 1] = this.sums[i] + (bundle ? bundle.busy : t - begin);
        this.stripOf[i] = strip;
        gap[i] = begin;
        dur[i] = t;
      }
    }
    return { begin: gap, end: dur };
  }

  /** Strips of tracks, whose drawing rows are one below the other. @param {Int32Array} row of each strip */
  readStrips(row) {
    const level = this.stripLevel;
    const { row_track: rowTrack } = this.header;
    const depth = new Int32Array(rowTrack.length).fill(1);
    for (let s = 0; s < row.length; s++) depth[row[s]] = Math.max(depth[row[s]], level[s] + 1);
    const first = new Int32Array(rowTrack.length);
    const used = new Map();
    rowTrack.forEach((track, r) => {
      first[r] = used.get(track) ?? 0;
      used.set(track, first[r] + depth[r]);
    });
    for (const [track, levels] of used) this.tracks[track].levels = levels;
    for (let s = 0; s < row.length; s++) {
      level[s] += first[row[s]];
      this.tracks[this.stripTrack[s]].strips.push(s);
    }
  }

  /** Gaps, which hold for all below them, and time that was not recorded. */
  readStretches() {
    const { columns, tracks } = this;
    const [gapTrack, cause, lost] = ['g.track', 'g.cause', 'g.lost'].map((name) => columns.integers(name));
    const [gapAt, gapFor] = ['g.ts', 'g.dur'].map((name) => columns.numbers(name));
    gapTrack.forEach((id, k) => {
      tracks[id].gaps.push({ t0: gapAt[k], t1: gapAt[k] + gapFor[k], cause: cause[k], lost: lost[k] - 1 });
    });
    const bareTrack = columns.integers('n.track');
    const [bareAt, bareFor] = ['n.ts', 'n.dur'].map((name) => columns.numbers(name));
    bareTrack.forEach((id, k) => {
      tracks[id].unrecorded.push({ t0: bareAt[k], t1: bareAt[k] + bareFor[k], cause: -1, lost: -1 });
    });
    /** @param {Track} track  @param {Stretch[]} above */
    const inherit = (track, above) => {
      if (above.length) track.gaps = [...track.gaps, ...above].sort((a, b) => a.t0 - b.t0);
      for (const child of track.children) inherit(child, track.gaps);
    };
    for (const track of tracks) if (track.parent === null) inherit(track, []);
  }

  /** Instants and samples of counters. */
  readPoints() {
    const { columns, tracks } = this;
    const instantAt = runningSums(columns.numbers('i.ts'));
    const instantName = columns.integers('i.name');
    eachRun(runningSums(columns.integers('i.track')), (id, a, b) => {
      tracks[id].instants = { ts: instantAt.subarray(a, b), name: instantName.subarray(a, b) };
    });
    const sampleAt = runningSums(columns.numbers('c.ts'));
    const sample = columns.numbers('c.value');
    if (columns.entry('c.value')[3] === 'z') runningSums(sample);
    eachRun(runningSums(columns.integers('c.track')), (id, a, b) => {
      const value = sample.subarray(a, b);
      let least = 0, most = 0;
      for (const v of value) {
        least = Math.min(least, v);
        most = Math.max(most, v);
      }
      tracks[id].samples = { ts: sampleAt.subarray(a, b), value, least, most };
    });
  }

  /** Flows, with those of each row both ways. */
  readFlows() {
    const { columns, n } = this;
    const source = runningSums(columns.integers('f.src'));
    const target = columns.integers('f.dst');
    for (let k = 0; k < target.length; k++) target[k] += source[k];
    const [leaves, arrives] = ['f.out', 'f.in'].map((name) => columns.numbers(name));
    const kind = columns.integers('f.kind');
    return { source, target, kind, leaves, arrives, out: indexBy(source, n), in: indexBy(target, n) };
  }

  /** @param {number} row  @returns {Track} */
  trackOf(row) {
    return this.tracks[this.stripTrack[this.stripOf[row]]];
  }

  /** @param {number} row  @returns {number} time that it covers */
  covered(row) {
    return this.sums[row + 1] - this.sums[row];
  }

  /**
   * Flows of a row: those that arrive, then those that leave.
   * @param {number} row
   * @returns {{flow: number, leaves: boolean, other: number}[]}
   */
  flowsOf(row) {
    const { flows } = this;
    const of = (/** @type {{at: Int32Array, rows: Int32Array}} */ index) =>
      [...index.rows.subarray(index.at[row], index.at[row + 1])];
    return [
      ...of(flows.in).map((flow) => ({ flow, leaves: false, other: flows.source[flow] })),
      ...of(flows.out).map((flow) => ({ flow, leaves: true, other: flows.target[flow] })),
    ];
  }

  /**
   * How many lanes below a track are busy, over time; made when first drawn.
   * @param {Track} track
   */
  activityOf(track) {
    if (track.activity) return track.activity;
    /** @type {number[]} */
    const strips = [];
    const visit = (/** @type {Track} */ at) => {
      for (const strip of at.strips) if (this.stripOuter[strip]) strips.push(strip);
      at.children.forEach(visit);
    };
    visit(track);
    const size = strips.reduce((sum, s) => sum + this.start[s + 1] - this.start[s], 0);
    const begins = new Float64Array(size);
    const ends = new Float64Array(size);
    let at = 0;
    for (const s of strips) {
      begins.set(this.begin.subarray(this.start[s], this.start[s + 1]), at);
      ends.set(this.end.subarray(this.start[s], this.start[s + 1]), at);
      at += this.start[s + 1] - this.start[s];
    }
    track.activity = new Activity(begins, ends);
    return track.activity;
  }

  /**
   * Value of argument K of a row; undefined if it has none.
   * @param {number} k  @param {number} row
   * @returns {string | number | undefined}
   */
  argument(k, row) {
    const { type, texts } = this.header.args[k];
    let column = this.args.get(k);
    if (!column) {
      const values = this.columns.numbers(`a.${k}`);
      if (type === 'int') runningSums(values);
      column = { rows: runningSums(this.columns.integers(`a.${k}.row`)), values };
      this.args.set(k, column);
    }
    const at = firstAfter(column.rows, row - 1, 0, column.rows.length);
    if (column.rows[at] !== row) return undefined;
    return type === 'text' ? (texts ?? [])[column.values[at]] : column.values[at];
  }

  /** @param {string} name  @returns {Int32Array} a column of codes, decoded once */
  codes(name) {
    let found = this.lazy.get(name);
    if (!found) {
      found = this.columns.integers(name);
      if (name === 's.id') runningSums(found);
      this.lazy.set(name, found);
    }
    return found;
  }

  /** The critical path: its parts in time order; null if there is none. */
  readPath() {
    if (!this.header.path) return null;
    return {
      begin: runningSums(this.columns.numbers('p.ts')),
      dur: this.columns.numbers('p.dur'),
      row: this.columns.integers('p.row').map((row) => row - 1),
      cause: this.columns.integers('p.cause'),
      causes: this.header.path.causes,
    };
  }
}

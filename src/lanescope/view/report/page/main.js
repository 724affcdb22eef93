// The page: first the header with its sentences, findings and tables; then the columns with the timeline.
import { Columns, fromBase64, inflate, readHeader } from './decode.js';
import { byId, canvasById, el } from './dom.js';
import { drawLanes } from './draw_lanes.js';
import { drawMarks } from './draw_marks.js';
import { drawMap, drawRuler } from './draw_time.js';
import { Drawer } from './drawer.js';
import { Findings } from './findings.js';
import { clean, cutMiddle, fitMiddle, numberText } from './format.js';
import { Keys } from './keys.js';
import { Lanes } from './lanes.js';
import { LEAST_LABEL } from './lod.js';
import { Model, makeTracks } from './model.js';
import { Pointer } from './pointer.js';
import { setUpPrinting } from './print.js';
import { Search } from './search.js';
import { Selection, speak } from './selection.js';
import { Stage } from './stage.js';
import { fitCanvas, Theme } from './theme.js';

const MOST_MEASURED = 20000;

/** All parts of the page, and what they share. */
export class App {
  /** @param {import('./types.js').Header} header */
  constructor(header) {
    this.header = header;
    this.unit = header.unit;
    this.tracks = makeTracks(header);
    /** @type {Model | null} */
    this.opened = null;
    /** What was asked for before the columns were there. @type {(() => void)[]} */
    this.waiting = [];
    /** Widths of texts by font. @type {Map<string, number>} */
    this.widths = new Map();
    this.ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement('canvas').getContext('2d'));
    /** Names of slices as they are shown. @type {string[]} */
    this.names = [];
    /** How often and how long it drew: what benchmarks read. */
    this.drawn = { frames: 0, rectangles: 0, milliseconds: /** @type {number[]} */ ([]) };
    this.stage = new Stage(Number(header.span) || 1, Number(header.scale) || 1, () => this.draw());
    this.theme = new Theme(() => this.repaint());
    this.findings = new Findings(this);
    this.drawer = new Drawer(this);
    this.selection = new Selection(this);
    this.search = new Search(this);
    this.lanes = new Lanes(this);
    this.keys = new Keys(this);
    setUpPrinting(this);
    this.stage.settled = () => this.selection.link();
    this.stage.anchor = () => this.selection.anchor();
  }

  /** Whether the columns are there. */
  get ready() {
    return this.opened !== null;
  }

  /** The rows. Only what runs behind `ready` asks for them. */
  get model() {
    if (!this.opened) throw new Error('the timeline is not open yet');
    return this.opened;
  }

  /** All that the header has. */
  writeHeader() {
    const { header, unit } = this;
    const fact = (/** @type {string} */ value, /** @type {string} */ name, bad = false) =>
      el('div', { class: bad ? 'fact bad' : 'fact' }, el('b', {}, value), el('span', {}, name));
    const count = (/** @type {number} */ n) => numberText(n, 'count');
    const { total, lost } = header;
    const captured = unit === 'cycles' ? 'device cycles' : 'captured';
    const each = (/** @type {string[]} */ values) => values.join(' | ');
    const facts = header.sides.length ? [
      fact(each(header.sides.map(({ span }) => numberText(span, 'time', unit))), `${captured}, A | B`),
      fact(each(header.sides.map(({ slices }) => count(slices))), 'slices'),
      fact(each(header.sides.map(({ lanes }) => count(lanes))), 'lanes'),
    ] : [fact(numberText(header.span, 'time', unit), captured), fact(count(total.slices), 'slices'), fact(count(total.lanes), 'lanes')];
    if (total.flows) facts.push(fact(count(total.flows), 'flows'));
    // No byte of the file was lost where the device itself dropped records: "0 B lost" would be a lie then.
    const dropped = lost.records > 0 || lost.kinds.length > 0;
    if (lost.bytes || !dropped) facts.push(fact(numberText(lost.bytes, 'bytes'), 'lost', lost.bytes > 0));
    if (lost.records) facts.push(fact(count(lost.records), 'records dropped', true));
    if (lost.kinds.length) {
      const kinds = fact(count(lost.kinds.length), lost.kinds.length > 1 ? 'kinds of data loss' : 'kind of data loss', true);
      kinds.title = lost.kinds.map(([meaning, times]) => `${clean(meaning)}: ${count(times)}`).join('\n');
      facts.push(kinds);
    }
    byId('facts').append(...facts);
    const file = header.sides.length || header.capture === header.title ? '' : `${clean(header.capture)} · `;
    byId('about').textContent = cutMiddle(`${file}${clean(header.family)} · ${clean(header.format)}`, 60);
    this.findings.write();
    this.drawer.write();
  }

  /** The timeline, when its columns are there. @param {Columns} columns */
  open(columns) {
    this.opened = new Model(this.header, columns, this.tracks);
    byId('lanes').removeAttribute('aria-busy');
    byId('opening').remove();
    this.pointer = new Pointer(this);
    this.resize();
    this.lanes.layOut();
    this.selection.fromLink();
    new ResizeObserver(() => this.resize()).observe(byId('scroll'));
    for (const task of this.waiting.splice(0)) task();
  }

  /** @param {() => void} task done now, or as soon as the columns are there */
  whenReady(task) {
    if (this.ready) task();
    else this.waiting.push(task);
  }

  draw() {
    if (!this.ready) return;
    const begun = performance.now();
    const lanes = fitCanvas(canvasById('canvas'));
    this.stage.width = lanes.width;
    this.drawn.rectangles = drawLanes(this, lanes);
    drawMarks(this, lanes);
    drawRuler(this, fitCanvas(canvasById('ruler')));
    drawMap(this, fitCanvas(canvasById('map')));
    byId('shown').textContent = `${numberText(Math.round(this.stage.duration), 'time', this.unit)} shown`;
    this.drawn.frames++;
    this.drawn.milliseconds.push(performance.now() - begun);
  }

  /** After a change of colors. */
  repaint() {
    if (!this.ready) return;
    this.stage.changed();
    if (this.drawer.shown === 'selection') this.drawer.show('selection');
  }

  /** After a change of sizes. */
  resize() {
    const height = byId('scroll').clientHeight;
    this.stage.height = height;
    this.stage.width = canvasById('canvas').clientWidth;
    document.documentElement.style.setProperty('--lanes-height', `${height}px`);
    this.lanes.writeLabels();
    this.stage.changed();
  }

  /** @param {string} text for those who hear the page */
  say(text) {
    speak(text);
  }

  /** Sums of the window, as if it had been measured. */
  measureWindow() {
    const { stage, selection } = this;
    selection.select(-1);
    selection.range = [Math.max(0, stage.t0), Math.min(stage.span, stage.t1)];
    this.drawer.showSelection();
    stage.changed();
  }

  /** @param {number} code  @returns {string} a name of slices, as it is shown */
  shortName(code) {
    return (this.names[code] ??= clean(this.header.names[code]));
  }

  /** @param {string} text  @param {string} font without its family  @returns {number} pixels */
  measure(text, font) {
    const key = `${font} ${text}`;
    let width = this.widths.get(key);
    if (width === undefined) {
      if (this.widths.size > MOST_MEASURED) this.widths.clear();
      this.ruler.font = `${font} ${this.theme.sans}`;
      width = this.ruler.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }

  /** @param {string} text  @param {number} room pixels  @returns {string} as much of it as fits into a slice */
  fitText(text, room) {
    const fitted = fitMiddle(text, room, (part) => this.measure(part, '11px'));
    return fitted.length > LEAST_LABEL || fitted === text ? fitted : '';
  }
}

/** Let the browser show what is there. */
const nextFrame = () => new Promise((done) => {
  requestAnimationFrame(() => setTimeout(done));
  setTimeout(done, 100); // a page in the background has no frames
});

/** @param {unknown} error */
function fail(error) {
  const shown = el('p', { class: 'failure', role: 'alert' });
  shown.textContent = `This report cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
  document.body.prepend(shown);
}

async function main() {
  const app = new App(await readHeader(byId('header').textContent ?? ''));
  Object.assign(globalThis, { lanescope: app }); // for those who look at it in the console, and for tests
  app.writeHeader();
  performance.mark('lanescope-header');
  await nextFrame();
  const block = byId('columns');
  const bytes = await inflate(fromBase64(block.textContent ?? ''));
  block.remove();
  app.open(new Columns(bytes, app.header.columns));
  await nextFrame();
  performance.mark('lanescope-drawn');
}

main().catch(fail);

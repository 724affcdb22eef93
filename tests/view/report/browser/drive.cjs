#!/usr/bin/env node
// Open reports in headless Chromium, use them by keyboard and mouse, and print what happened as one JSON object.
//
//   node drive.cjs TIMELINE.html HOSTILE.html LOSSY.html NOTEBOOK.html PAIR.html FOLDER-FOR-SCREENSHOTS
//
// NODE_PATH names a folder with puppeteer-core, CHROMIUM the browser.
'use strict';
const path = require('path');
const { pathToFileURL } = require('url');
const puppeteer = require('puppeteer-core');

const [timeline, hostile, lossy, notebook, pair, shots] = process.argv.slice(2);
const rest = (ms = 380) => new Promise((done) => setTimeout(done, ms));

/** What the page's own objects know. */
const state = (page) => page.evaluate(() => {
  const { stage, selection, lanes, drawer, theme, search } = lanescope;
  const open = document.getElementById('keys').open;
  return {
    t0: stage.t0, t1: stage.t1, span: stage.span, row: selection.row, range: selection.range, scroll: lanes.scroll,
    tab: drawer.shown, theme: theme.name, help: open, live: document.getElementById('live').textContent,
    hits: document.getElementById('hits').textContent, found: search.found, rows: lanes.rows.length,
  };
});

async function open(browser, file, { width = 1440, height = 900, dark = false } = {}) {
  const page = await browser.newPage();
  page.seen = { requests: 0, dialogs: 0, errors: [] };
  page.on('request', () => page.seen.requests++);
  page.on('dialog', (dialog) => { page.seen.dialogs++; dialog.dismiss(); });
  page.on('pageerror', (error) => page.seen.errors.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error') page.seen.errors.push(message.text()); });
  await page.setViewport({ width, height });
  if (dark) await page.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: 'dark' }]);
  await page.evaluateOnNewDocument(() => {
    globalThis.violations = [];
    addEventListener('securitypolicyviolation', (event) => violations.push(event.violatedDirective));
  });
  await page.goto(pathToFileURL(file).href);
  await page.waitForFunction('globalThis.lanescope?.drawn.frames > 0', { timeout: 20000 });
  return page;
}

/** A slice that is wide on the screen: its row and the middle of its rectangle in the window. */
const wideSlice = (page) => page.evaluate(() => {
  const { stage, lanes, model } = lanescope;
  const box = document.getElementById('canvas').getBoundingClientRect();
  for (const { track } of lanes.inView()) {
    for (const strip of track.strips) {
      for (let row = model.start[strip]; row < model.start[strip + 1]; row++) {
        const [a, b] = [stage.xOf(model.begin[row]), stage.xOf(model.end[row])];
        const { y, height } = lanes.boxOf(row);
        if (b - a < 12 || a < 0 || b > stage.width || y + height > stage.height) continue;
        return { row, x: box.left + (a + b) / 2, y: box.top + y + height / 2 };
      }
    }
  }
  return null;
});

async function keys(page) {
  const seen = {};
  const press = async (key, wait) => { await page.keyboard.press(key); await rest(wait); return state(page); };
  seen.first = await press('ArrowRight');
  seen.focused = await press('f');
  seen.next = await press('ArrowRight');
  await page.keyboard.down('w'); await rest(300); await page.keyboard.up('w');
  seen.zoomed = await state(page);
  await page.keyboard.down('d'); await rest(200); await page.keyboard.up('d');
  seen.panned = await state(page);
  seen.whole = await press('0');
  const flow = await page.evaluate(() => lanescope.model.flows.source[0]);
  await page.evaluate((row) => lanescope.selection.select(row, { jump: true }), flow);
  await rest();
  seen.source = await state(page);
  seen.onward = await press(']');
  seen.back = await press('[');
  seen.lane = await press('ArrowDown');
  await press('/', 50);
  const name = await page.evaluate(() => lanescope.header.names[0]);
  await page.keyboard.type(name);
  seen.searched = { ...await state(page), name };
  seen.hit = await press('Enter');
  seen.hitName = await page.evaluate(() => lanescope.header.names[lanescope.model.name[lanescope.selection.row]]);
  seen.tab = await press('Escape', 50) && await press('2', 50);
  seen.dark = await press('t', 50);
  await press('t', 50);
  seen.help = await press('?', 50);
  await press('Escape', 50);
  seen.cleared = await press('Escape', 50);
  await press('0');
  const before = (await state(page)).rows;
  const folding = await page.evaluate(() => {
    const group = document.querySelector('#labels [aria-expanded=true]');
    lanescope.lanes.current = lanescope.lanes.rows.find(({ node }) => node.below.length && node.open).node;
    lanescope.lanes.writeLabels();
    document.querySelector('#labels [tabindex="0"]').focus();
    return group !== null;
  });
  const closed = await press('ArrowLeft', 50);
  const opened = await press('ArrowRight', 50);
  seen.folding = { folding, before, closed: closed.rows, opened: opened.rows };
  return seen;
}

async function mouse(page) {
  const seen = {};
  await page.keyboard.press('0');
  await page.evaluate(() => { lanescope.selection.clear(); lanescope.lanes.scroller.scrollTop = 0; });
  await rest(450);
  const wide = await wideSlice(page);
  if (wide) {
    await page.mouse.click(wide.x, wide.y);
    await rest(80);
  }
  seen.click = { wanted: wide?.row, got: (await state(page)).row };
  const box = await page.evaluate(() => {
    const { left, top, width } = document.getElementById('canvas').getBoundingClientRect();
    return { left, top, width };
  });
  const at = (s, x) => s.t0 + ((s.t1 - s.t0) * (x - box.left)) / box.width;
  const [x, y] = [box.left + 500, box.top + 60];
  const before = await state(page);
  await page.mouse.move(x, y);
  await page.keyboard.down('Control');
  await page.mouse.wheel({ deltaY: -600 });
  await rest(150);
  await page.keyboard.up('Control');
  const zoomed = await state(page);
  seen.wheel = { factor: (before.t1 - before.t0) / (zoomed.t1 - zoomed.t0), pixels: Math.abs(at(before, x) - at(zoomed, x)) / (zoomed.t1 - zoomed.t0) * box.width };
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.mouse.move(x - 120, y, { steps: 6 });
  await page.mouse.up();
  await rest(100);
  const dragged = await state(page);
  seen.drag = (dragged.t0 - zoomed.t0) / (zoomed.t1 - zoomed.t0) * box.width;
  await page.keyboard.down('Shift');
  await page.mouse.move(box.left + 200, y);
  await page.mouse.down();
  await page.mouse.move(box.left + 400, y, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up('Shift');
  await rest(100);
  const measured = await state(page);
  seen.measured = measured.range && (measured.range[1] - measured.range[0]) / (measured.t1 - measured.t0) * box.width;
  return seen;
}

/** Each pixel of the canvas at the outermost level of a lane is covered, at some opacity, just where slices are. */
const coverage = (page) => page.evaluate(() => {
  const { stage, lanes, model, theme, selection } = lanescope;
  selection.clear();
  stage.frame();
  const canvas = document.getElementById('canvas');
  const density = canvas.width / canvas.clientWidth;
  const context = canvas.getContext('2d');
  const [bg, grid] = [theme.tokens.bg, theme.tokens.line].map((hex) => hex.length < 5 ? '255,255,255' : [1, 3, 5].map((k) => parseInt(hex.slice(k, k + 2), 16)).join());
  let [checked, wrong] = [0, 0];
  for (const row of lanes.inView()) {
    if (row.track.kind !== 'l' || row.track.gaps.length || row.track.unrecorded.length || row.track.levels > 1) continue;
    const y = Math.round((row.y - lanes.scroll + row.levels[0].top + 13) * density);
    const pixels = context.getImageData(0, y, canvas.width, 1).data;
    for (const strip of row.track.strips) {
      const busy = new Float64Array(Math.ceil(stage.width) + 1);
      for (let i = model.start[strip]; i < model.start[strip + 1]; i++) {
        const [a, b] = [stage.xOf(model.begin[i]), stage.xOf(model.end[i])];
        for (let x = Math.max(0, Math.floor(a)); x <= Math.min(stage.width - 1, Math.floor(b)); x++) busy[x] += Math.min(b, x + 1) - Math.max(a, x);
      }
      for (let x = 1; x + 1 < stage.width; x++) {
        if (busy[x] > 0 && busy[x] < 0.999) continue; // at edges a pixel may be either
        if (!busy[x] && (busy[x - 1] || busy[x + 1])) continue;
        const drawn = [...pixels.slice(x * density * 4, x * density * 4 + 3)].join();
        checked++;
        const isEmpty = drawn === bg || drawn === grid;
        if (isEmpty !== !busy[x] && busy[x - 1] === busy[x] && busy[x + 1] === busy[x]) wrong++;
      }
    }
  }
  return { checked, wrong };
});

/** Texts of the ruler while it pans: how many are cut at its end. */
const ruler = (page) => page.evaluate(() => {
  const { stage } = lanescope;
  const [shown, wide] = [[], document.getElementById('ruler').clientWidth];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, ...more) {
    if (this.canvas.id === 'ruler') shown.push(x + this.measureText(text).width <= wide);
    return fillText.call(this, text, x, ...more);
  };
  for (let step = 0; step < 40; step++) {
    stage.set(stage.span * (0.3 + step / 170), stage.span * (0.5 + step / 170));
    stage.frame();
  }
  CanvasRenderingContext2D.prototype.fillText = fillText;
  return { texts: shown.length, cut: shown.filter((fits) => !fits).length };
});

async function security(page) {
  const raw = new Set();
  const elements = new Set();
  for (const key of ['ArrowRight', 'f', '2', '3', '4', '5', '1', 'n', '0', 'ArrowDown', 'ArrowDown', 'ArrowDown']) {
    await page.keyboard.press(key);
    await rest(60);
    // No text or attribute has a character that is not seen, and no name became an element.
    const found = await page.evaluate(() => {
      const hidden = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Co}\p{Cn}]/u;
      const texts = [];
      for (const one of document.querySelectorAll('header *, section *, main *, #drawer *, #live')) {
        texts.push(...[...one.attributes].map(({ value }) => value), ...[...one.childNodes].filter(({ nodeType }) => nodeType === 3).map(({ data }) => data));
      }
      return { raw: texts.filter((text) => hidden.test(text.replaceAll('\n', ''))).map((text) => JSON.stringify(text).slice(0, 80)),
        elements: [...document.querySelectorAll('img, svg, iframe, object, embed, body style, body a:not(.skip)')].map(({ outerHTML }) => outerHTML.slice(0, 80)) };
    });
    found.raw.forEach((text) => raw.add(text));
    found.elements.forEach((text) => elements.add(text));
  }
  const own = await page.evaluate(() => ({ violations: violations.length, images: document.images.length,
    scripts: document.scripts.length, names: lanescope.header.names.length, polluted: String({}.hostile), title: document.title }));
  const blocked = await page.evaluate(async () => {
    const script = document.createElement('script');
    script.textContent = 'globalThis.injected = 1';
    document.body.append(script);
    const styled = document.createElement('p');
    styled.setAttribute('style', 'color: red');
    document.body.append(styled);
    const fetched = await fetch('https://example.invalid/').then(() => 'sent', () => 'blocked');
    await new Promise((done) => setTimeout(done, 200)); // violations are reported later
    return { injected: globalThis.injected ?? null, style: styled.style.color, fetched, violations: violations.length };
  });
  Object.assign(own, { raw: [...raw], elements: [...elements] });
  return { own, blocked, seen: page.seen };
}

/** Two captures: what a click says, and how a closed group of both is drawn. */
async function sideBySide(page) {
  const seen = {};
  seen.labels = await page.evaluate(() => [...document.querySelectorAll('#labels .row')].map((row) => row.querySelector('.letter')?.textContent ?? ''));
  seen.facts = await page.evaluate(() => document.getElementById('facts').textContent);
  for (const side of [0, 1]) {
    const row = await page.evaluate((wanted) => {
      const { model } = lanescope;
      const row = Array.from({ length: model.n }, (_, k) => k).find((k) => model.trackOf(k).side === wanted);
      lanescope.selection.select(row, { jump: true });
      return row;
    }, side);
    seen[`said${side}`] = (await state(page)).live;
    if (row === undefined) throw new Error(`no slice on side ${side}`);
  }
  await page.evaluate(() => {
    lanescope.selection.clear();
    for (const node of lanescope.lanes.nodes) node.open = false;
    lanescope.lanes.layOut();
  });
  await page.keyboard.press('0');
  await rest(450);
  seen.activity = await page.evaluate(() => {
    const { stage, lanes, model, tracks, theme } = lanescope;
    stage.frame();
    const row = lanes.rows.find(({ node }) => node.other.length);
    const canvas = document.getElementById('canvas');
    const context = canvas.getContext('2d');
    const area = [1, 3, 5].map((k) => parseInt(theme.tokens.area.slice(k, k + 2), 16)).join();
    const density = canvas.width / canvas.clientWidth;
    const other = tracks[row.node.other.at(-1)];
    const peak = Math.max(model.activityOf(row.track).peak, model.activityOf(other).peak);
    const half = Math.floor(row.height / 2);
    const found = [];
    for (const [track, from, step] of [[row.track, half - 2, -1], [other, half + 1, 1]]) {
      let off = 0;
      for (let x = 8; x < canvas.clientWidth - 8; x += 7) {
        const pixels = context.getImageData(Math.round(x * density), 0, 1, Math.round(row.height * density)).data;
        let tall = 0;
        for (let y = from; y > 2 && y < row.height - 2; y += step) {
          const at = Math.round((row.y - lanes.scroll + y) * density) * 4;
          if ([...pixels.slice(at, at + 3)].join() !== area) break;
          tall++;
        }
        const wanted = model.activityOf(track).mean(stage.timeAt(x), stage.timeAt(x + 1)) / peak * (half - 4);
        off = Math.max(off, Math.abs(wanted - tall));
      }
      found.push(off);
    }
    return found;
  });
  return seen;
}

(async () => {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM, headless: 'shell',
    args: ['--no-sandbox', '--disable-gpu', '--single-process', '--no-zygote', '--hide-scrollbars', '--disable-background-networking'],
  });
  const results = {};
  const shot = (page, name) => page.screenshot({ path: path.join(shots, `${name}.png`) });
  const page = await open(browser, timeline);
  results.named = await page.evaluate(() => {
    const box = document.getElementById('labels').getBoundingClientRect();
    return [...document.querySelectorAll('#labels > .row')].map((row) => {
      const [its, name] = [row, row.querySelector('.name')].map((each) => each.getBoundingClientRect());
      const seen = Math.min(its.bottom, box.bottom) - Math.max(its.top, box.top);
      return [seen, name.top >= box.top && name.bottom <= box.bottom];
    });
  });
  results.marks = await page.evaluate(() => performance.getEntriesByType('mark').map(({ name }) => name));
  await shot(page, '1-first');
  results.coverage = await coverage(page);
  results.ruler = await ruler(page);
  await page.evaluate(() => lanescope.stage.set(0, lanescope.stage.span));
  const tree = await page.accessibility.snapshot({ interestingOnly: false });
  const roles = {};
  const unnamed = [];
  (function visit(node) {
    roles[node.role] = (roles[node.role] ?? 0) + 1;
    if (node.role === 'button' && !node.name) unnamed.push(node);
    (node.children ?? []).forEach(visit);
  })(tree);
  results.accessibility = { roles, unnamed: unnamed.length };
  results.treeitem = await page.evaluate(() => Object.fromEntries([...document.querySelector('[role=treeitem]').attributes].map(({ name, value }) => [name, value])));
  results.keys = await keys(page);
  results.mouse = await mouse(page);
  await shot(page, '2-measured');
  await page.evaluate(() => { const { flows, begin, end } = lanescope.model; const k = flows.source.findIndex((row) => end[row] - begin[row] > 0); lanescope.selection.select(flows.target[Math.max(k, 0)], { jump: true, focus: true }); });
  await rest(450);
  await shot(page, '3-selected-flow');
  results.errors = page.seen;
  await page.close();
  const dark = await open(browser, timeline, { dark: true });
  await dark.keyboard.press('/');
  await dark.keyboard.type(results.keys.searched.name.slice(0, 4));
  await rest(100);
  await shot(dark, '4-search-dark');
  await dark.close();
  const narrow = await open(browser, timeline, { width: 480, height: 800 });
  await shot(narrow, '5-narrow');
  results.narrow = await narrow.evaluate(() => ({ wide: document.documentElement.scrollWidth, canvas: document.getElementById('canvas').clientWidth }));
  await narrow.emulateMediaType('print');
  await narrow.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await rest(100);
  results.print = await narrow.evaluate(() => ({ tables: document.querySelectorAll('.printed table').length, theme: document.documentElement.dataset.theme,
    rows: Math.max(...[...document.querySelectorAll('.printed tbody')].map((body) => body.rows.length)) }));
  await narrow.evaluate(() => dispatchEvent(new Event('afterprint')));
  await narrow.emulateMediaType('screen');
  await narrow.setViewport({ width: 360, height: 500 });
  await rest(150);
  results.low = await narrow.evaluate(() => ({ wide: document.documentElement.scrollWidth, lanes: document.getElementById('scroll').clientHeight,
    cut: [...document.querySelectorAll('#facts b')].filter((fact) => fact.offsetWidth && fact.getBoundingClientRect().right > document.getElementById('facts').getBoundingClientRect().right + 1).length }));
  await shot(narrow, '12-low');
  results.print.after = await narrow.evaluate(() => document.querySelectorAll('.printed').length);
  const pdf = Buffer.from(await narrow.pdf({ format: 'A4', printBackground: true })).toString('latin1');
  results.print.pages = pdf.match(/\/Type\s*\/Page\b/g).length;
  await narrow.close();
  const bad = await open(browser, hostile);
  results.security = await security(bad);
  await shot(bad, '6-hostile');
  await bad.close();
  const lost = await open(browser, lossy);
  results.lost = await lost.evaluate(() => ({
    facts: [...document.querySelectorAll('#facts .fact.bad')].map((fact) => fact.textContent),
    titles: [...document.querySelectorAll('#facts .fact.bad')].map((fact) => fact.title),
    stats: [...document.querySelectorAll('.finding .stat')].map((stat) => [stat.textContent, stat.scrollWidth <= stat.clientWidth]),
    gaps: lanescope.model.tracks.reduce((sum, track) => sum + track.gaps.length, 0) }));
  results.lost.before = await state(lost);
  await lost.keyboard.press('n');
  await rest(450);
  results.lost.next = await state(lost);
  await lost.keyboard.press('n');
  await rest(450);
  results.lost.second = await state(lost);
  await lost.keyboard.press('p');
  await rest(450);
  results.lost.back = await state(lost);
  await shot(lost, '7-finding');
  await lost.close();
  const two = await open(browser, pair);
  await shot(two, '9-two-captures');
  results.pair = await sideBySide(two);
  results.pair.errors = two.seen;
  await two.keyboard.press('t');
  await rest(150);
  await shot(two, '10-two-captures-closed-dark');
  await two.close();
  const cell = await browser.newPage();
  const errors = [];
  cell.on('pageerror', (error) => errors.push(String(error)));
  cell.on('console', (message) => { if (message.type() === 'error') errors.push(message.text()); });
  await cell.setViewport({ width: 1200, height: 3000 });  // all of it: what is out of sight is drawn once it is seen
  await cell.goto(pathToFileURL(notebook).href);
  const frame = await (await cell.waitForSelector('iframe')).contentFrame();
  await frame.waitForFunction('globalThis.lanescope?.drawn.frames > 0', { timeout: 20000 });
  results.notebook = {
    errors, pictures: await cell.evaluate(() => [...document.images].map((image) => image.naturalWidth)),
    reach: await frame.evaluate(() => { try { return String(parent.document.title); } catch { return 'refused'; } }) };
  await rest(100);
  await shot(cell, '8-notebook');
  await browser.close();
  console.log(JSON.stringify(results));
})().catch((error) => { console.error(error); process.exit(1); });

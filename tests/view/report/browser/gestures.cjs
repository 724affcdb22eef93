#!/usr/bin/env node
// Fingers, drags, counters, bundles, addresses, the way by keyboard, and the rules of axe-core; prints one JSON object.
//
//   node gestures.cjs COUNTED.html BUNDLED.html FOLDER-FOR-SCREENSHOTS
//
// NODE_PATH names a folder with puppeteer-core and axe-core, CHROMIUM the browser.
'use strict';
const fs = require('fs');
const path = require('path');
const { pathToFileURL } = require('url');
const puppeteer = require('puppeteer-core');

const [counted, bundled, shots] = process.argv.slice(2);
const rest = (ms = 400) => new Promise((done) => setTimeout(done, ms));
const state = (page) => page.evaluate(() => {
  const { stage, selection } = lanescope;
  return { t0: stage.t0, t1: stage.t1, span: stage.span, width: stage.width, row: selection.row };
});
const boxOf = (page, id) => page.evaluate((name) => {
  const { left, top, width, height } = document.getElementById(name).getBoundingClientRect();
  return { left, top, width, height };
}, id);

async function open(browser, file, hash = '') {
  const page = await browser.newPage();
  page.errors = [];
  page.on('pageerror', (error) => page.errors.push(String(error)));
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(pathToFileURL(file).href + hash);
  await page.waitForFunction('globalThis.lanescope?.drawn.frames > 0', { timeout: 20000 });
  return page;
}

/** Two fingers, of which one moves: how much nearer it got, and how far what is under the other one went. */
async function pinch(page) {
  const client = await page.createCDPSession();
  const box = await boxOf(page, 'canvas');
  const [still, y] = [box.left + 300, box.top + 40];
  const at = (s) => s.t0 + ((s.t1 - s.t0) * 300) / s.width;
  const before = await state(page);
  const touch = (type, ...xs) => client.send('Input.dispatchTouchEvent', { type, touchPoints: xs.map((x, id) => ({ x, y, id })) });
  await touch('touchStart', still);
  await touch('touchStart', still, still + 200);
  for (let x = 200; x <= 392; x += 24) await touch('touchMove', still, still + x);
  await touch('touchEnd');
  await rest(150);
  const now = await state(page);
  return { factor: (before.t1 - before.t0) / (now.t1 - now.t0), pixels: Math.abs(at(before) - at(now)) / (now.t1 - now.t0) * now.width };
}

async function drag(page, box, from, to) {
  const y = box.top + box.height / 2;
  await page.mouse.move(box.left + from, y);
  await page.mouse.down();
  await page.mouse.move(box.left + to, y, { steps: 5 });
  await page.mouse.up();
  await rest();
}

/** Hover over a counter at a sample and read the tip; the columns of its area are as tall as its values. */
async function counters(page) {
  await page.keyboard.press('0');
  await rest();
  const found = await page.evaluate(() => {
    const { lanes, stage, theme } = lanescope;
    const row = lanes.rows.find(({ track }) => track.samples);
    const { ts, value, most } = row.track.samples;
    const canvas = document.getElementById('canvas');
    const density = canvas.width / canvas.clientWidth;
    const area = [1, 3, 5].map((k) => parseInt(theme.tokens.area.slice(k, k + 2), 16)).join();
    const [y, tall] = [row.y - lanes.scroll, row.height - 8];
    let off = 0;
    for (let k = 0; k + 1 < ts.length; k++) {
      const x = Math.round(stage.xOf((ts[k] + ts[k + 1]) / 2) * density);
      const pixels = canvas.getContext('2d').getImageData(x, Math.round(y * density), 1, Math.round(row.height * density)).data;
      let count = 0;
      for (let p = 0; p < pixels.length; p += 4) if ([...pixels.slice(p, p + 3)].join() === area) count++;
      off = Math.max(off, Math.abs(count / density - (value[k] / most) * tall));
    }
    const box = canvas.getBoundingClientRect();
    return { off, values: [...value], x: box.left + stage.xOf((ts[2] + ts[3]) / 2), y: box.top + y + row.height / 2 };
  });
  await page.mouse.move(found.x, found.y);
  await rest(100);
  return { ...found, tip: await page.evaluate(() => document.getElementById('tip').textContent) };
}

/** A bundle that is wide on the screen: what is said, shown and hovered of it. */
async function bundles(page) {
  const seen = await page.evaluate(() => {
    const { model, selection } = lanescope;
    const [row, { count, busy }] = [...model.bundles].sort((a, b) => b[1].count - a[1].count)[0];
    selection.select(row, { jump: true, focus: true });
    return { row, count, busy, name: lanescope.header.names[model.name[row]] };
  });
  await rest(600);
  const spot = await page.evaluate((row) => {
    const { stage, lanes, model } = lanescope;
    const box = document.getElementById('canvas').getBoundingClientRect();
    const at = lanes.boxOf(row);
    return { x: box.left + (stage.xOf(model.begin[row]) + stage.xOf(model.end[row])) / 2, y: box.top + at.y + at.height / 2 };
  }, seen.row);
  await page.mouse.move(spot.x, spot.y);
  await rest(100);
  return { ...seen, ...await page.evaluate(() => ({
    live: document.getElementById('live').textContent, panel: document.getElementById('panel').textContent,
    tip: document.getElementById('tip').textContent, verdict: document.getElementById('verdict').textContent,
    total: lanescope.header.total.slices, drawn: lanescope.model.n,
    inside: [...lanescope.model.bundles.values()].reduce((sum, { count }) => sum + count, 0), all: lanescope.model.bundles.size,
  })) };
}

/** What has the keyboard, step by step, and what is said when one walks. */
async function keyboard(page) {
  const path = [];
  for (let k = 0; k < 40; k++) {
    await page.keyboard.press('Tab');
    const at = await page.evaluate(() => {
      const { activeElement: one } = document;
      const style = getComputedStyle(one);
      const name = one.getAttribute('aria-label') || one.textContent.trim() || one.title;
      return { at: one.id || one.getAttribute('role') || one.className || one.tagName, name: name.slice(0, 40),
        ring: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0 };
    });
    if (at.at === 'BODY') break;
    path.push(at);
  }
  await page.evaluate(() => document.activeElement.blur());
  await page.evaluate(() => document.querySelector('.skip').focus());
  await page.keyboard.press('Enter');
  await page.keyboard.press('ArrowRight');
  await rest(100);
  const first = await page.evaluate(() => ({ at: document.activeElement.id, live: document.getElementById('live').textContent }));
  await page.keyboard.press('ArrowRight');
  await rest(100);
  return { path, first, next: await page.evaluate(() => document.getElementById('live').textContent) };
}

async function axe(page) {
  await page.evaluate(fs.readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
  const { violations, passes } = await page.evaluate(() => axe.run(document));
  return { passes: passes.length, violations: violations.map(({ id, impact, nodes }) => ({ id, impact,
    nodes: nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)) })) };
}

/** What axe-core says of each tab of the drawer. */
async function tabs(page) {
  const violations = [];
  for (const id of await page.evaluate(() => lanescope.drawer.ids)) {
    await page.evaluate((shown) => lanescope.drawer.show(shown), id);
    violations.push(...(await axe(page)).violations.map((one) => ({ tab: id, ...one })));
  }
  return violations;
}

/** The least contrast of a label to what is behind it, over all fills and opacities. */
const labels = (page) => page.evaluate(() => {
  const { theme } = lanescope;
  const c = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  const luminance = (...paints) => {
    for (const [colour, opacity] of paints) {
      c.globalAlpha = opacity;
      c.fillStyle = colour;
      c.fillRect(0, 0, 1, 1);
    }
    const [red, green, blue] = [...c.getImageData(0, 0, 1, 1).data].map((value) => value / 255)
      .map((value) => (value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  let least = 99;
  for (let colour = 0; colour <= 8; colour++) {
    for (const opacity of [0.42, 0.62, 0.82, 1]) {
      const pair = [luminance([theme.tokens.bg, 1], [theme.fills[colour], opacity]), luminance([theme.labelOn(colour, opacity), 1])];
      least = Math.min(least, (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05));
    }
  }
  return least;
});

(async () => {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM, headless: 'shell',
    args: ['--no-sandbox', '--disable-gpu', '--single-process', '--no-zygote', '--hide-scrollbars', '--disable-background-networking'],
  });
  const results = {};
  const page = await open(browser, counted);
  results.axe = { light: await axe(page) };
  await page.keyboard.press('t');
  await rest(100);
  results.axe.dark = await axe(page);
  await page.keyboard.press('t');
  results.keyboard = await keyboard(page);
  results.counters = await counters(page);
  results.pinch = await pinch(page);
  await page.keyboard.press('0');
  await rest();
  let before = await state(page);
  const ruler = await boxOf(page, 'ruler');
  await drag(page, ruler, 240, 640);
  let now = await state(page);
  const moment = (s, x) => s.t0 + ((s.t1 - s.t0) * x) / s.width;
  results.ruler = [[now.t0, 240], [now.t1, 640]].map(([t, x]) => Math.abs(t - moment(before, x)) / (before.t1 - before.t0) * before.width);
  before = now;
  const map = await boxOf(page, 'map');
  await drag(page, map, 400, 460);
  now = await state(page);
  results.map = ((now.t0 - before.t0) / now.span) * map.width;
  await page.keyboard.press('ArrowRight');
  await rest(800);
  const kept = await state(page);
  const hash = await page.evaluate(() => location.hash);
  const again = await open(browser, counted, hash);
  await rest(100);
  results.address = { hash, kept, opened: await state(again) };
  await again.close();
  results.errors = page.errors;
  await page.close();
  const many = await open(browser, bundled);
  results.axe.findings = await axe(many);
  results.bundles = await bundles(many);
  results.axe.selected = await axe(many);
  results.labels = { light: await labels(many) };
  results.tabs = { light: await tabs(many) };
  await many.keyboard.press('t');
  await rest(100);
  results.labels.dark = await labels(many);
  results.tabs.dark = await tabs(many);
  await many.screenshot({ path: path.join(shots, '11-bundle.png') });
  results.errors.push(...many.errors);
  await browser.close();
  console.log(JSON.stringify(results));
})().catch((error) => { console.error(error); process.exit(1); });

#!/usr/bin/env node
// Open a report in headless Chromium, pan and zoom it by key, and print what that took as one JSON object:
// node report_page.cjs REPORT.html. Milliseconds; `draw` are those that the script of the page drew for, by frame; `fps`
// are the frames a second that the browser's own trace has, while a key pans.
'use strict';
const { pathToFileURL } = require('url');
const puppeteer = require('puppeteer-core');

const rest = (ms) => new Promise((done) => setTimeout(done, ms));
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

/** Frames a second that reach the screen while a key is held, by the browser's trace: null if it has none of them. */
async function framesPerSecond(page) {
  const client = await page.createCDPSession();
  const events = [];
  client.on('Tracing.dataCollected', ({ value }) => events.push(...value));
  const categories = ['viz', 'graphics.pipeline', 'benchmark', 'blink.user_timing'];
  await client.send('Tracing.start', { transferMode: 'ReportEvents', traceConfig: { includedCategories: categories } });
  for (const [key, mark] of [['w', 'zoom'], ['d', 'pan'], ['a', 'end']]) {
    await page.evaluate((name) => performance.mark(`lanescope-fps-${name}`), mark);
    if (mark === 'end') break;
    await page.keyboard.down(key);
    await rest(1500);
    await page.keyboard.up(key);
  }
  const complete = new Promise((done) => client.once('Tracing.tracingComplete', done));
  await client.send('Tracing.end');
  await complete;
  const [from, , to] = ['zoom', 'pan', 'end'].map((name) => events.find((event) => event.name === `lanescope-fps-${name}`)?.ts);
  const drawn = new Set(events.filter(({ name, ph, ts }) => name === 'Graphics.Pipeline.DrawAndSwap' && ph !== 'e' && ph !== 'E' && ts >= from && ts <= to)
    .map(({ ts }) => ts));
  return drawn.size ? drawn.size / ((to - from) / 1e6) : null;
}

(async () => {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM, headless: 'shell',
    args: ['--no-sandbox', '--disable-gpu', '--single-process', '--no-zygote', '--disable-background-networking'],
  });
  const page = await browser.newPage();
  await page.setViewport({ width: 1440, height: 900 });
  await page.goto(pathToFileURL(process.argv[2]).href);
  await page.waitForFunction("performance.getEntriesByName('lanescope-drawn').length", { timeout: 60000 });
  const seen = await page.evaluate(() => ({
    paint: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? null,
    header: performance.getEntriesByName('lanescope-header')[0].startTime,
    drawn: performance.getEntriesByName('lanescope-drawn')[0].startTime,
  }));
  await page.evaluate(() => { lanescope.drawn.milliseconds.length = 0; });
  for (const [key, ms] of [['d', 700], ['a', 700], ['w', 1300], ['d', 700], ['a', 700], ['s', 1500]]) {
    await page.keyboard.down(key);
    await rest(ms);
    await page.keyboard.up(key);
    await rest(60);
  }
  const draw = (await page.evaluate(() => lanescope.drawn.milliseconds)).sort((a, b) => a - b);
  await page.keyboard.press('0');
  await rest(400);
  const fps = await framesPerSecond(page);
  await browser.close();
  console.log(JSON.stringify({ ...seen, frames: draw.length, median: at(draw, 0.5), p95: at(draw, 0.95), fps }));
})().catch((error) => { console.error(error); process.exit(1); });

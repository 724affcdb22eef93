#!/usr/bin/env node
// Open a report in headless Chromium, pan and zoom it by key, and print what that took as one JSON object:
// node report_page.cjs REPORT.html. Milliseconds; `draw` are those that the script of the page drew for, by frame.
'use strict';
const { pathToFileURL } = require('url');
const puppeteer = require('puppeteer-core');

const rest = (ms) => new Promise((done) => setTimeout(done, ms));
const at = (sorted, part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))];

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
  await browser.close();
  console.log(JSON.stringify({ ...seen, frames: draw.length, median: at(draw, 0.5), p95: at(draw, 0.95) }));
})().catch((error) => { console.error(error); process.exit(1); });

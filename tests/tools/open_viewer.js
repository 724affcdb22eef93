#!/usr/bin/env node
// Open an address in headless Chromium and tell what happened there, as one JSON object on stdout.
//
//   node open_viewer.js ADDRESS SCREENSHOT 'TEXT TO WAIT FOR'
//
// NODE_PATH names a folder with puppeteer-core, CHROMIUM the browser. {"texts": whether the text came, "requests":
// every address asked for with its answer, "errors": what the page reported, "seconds": until the text was there,
// "cpu": processor seconds of all the browser's processes until then}
'use strict';
const puppeteer = require('puppeteer-core');

const [address, screenshot, awaited] = process.argv.slice(2);

(async () => {
  const browser = await puppeteer.launch({
    executablePath: process.env.CHROMIUM,
    headless: 'shell',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync', '--window-size=1600,900'],
    defaultViewport: { width: 1600, height: 900 },
  });
  const page = await browser.newPage();
  const requests = [], errors = [];
  page.on('response', (r) => requests.push({ url: r.url(), status: r.status() }));
  page.on('requestfailed', (r) => requests.push({ url: r.url(), status: 0, error: r.failure()?.errorText ?? "blocked" }));
  page.on('pageerror', (e) => errors.push(String(e)));
  page.on('console', (m) => { if (m.type() === 'error') errors.push(m.text()); });
  const start = Date.now();
  await page.goto(address, { waitUntil: 'load' });
  let found = true;
  await page.waitForFunction((t) => document.body.innerText.includes(t), { timeout: 60000 }, awaited)
    .catch(() => { found = false; });
  const seconds = (Date.now() - start) / 1000;
  const session = await browser.target().createCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  const cpu = processInfo.reduce((sum, process) => sum + process.cpuTime, 0);
  await new Promise((r) => setTimeout(r, 1500));   // let the canvas be drawn
  const text = await page.evaluate(() => document.body.innerText);
  const badges = await page.evaluate(() => [...document.querySelectorAll('[title]')].map((e) => e.title));
  if (screenshot) await page.screenshot({ path: screenshot });
  await browser.close();
  console.log(JSON.stringify({ found, seconds, cpu, text, badges, requests, errors }));
})().catch((e) => { console.error(e); process.exit(1); });

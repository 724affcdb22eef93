#!/usr/bin/env node
// Open pictures in headless Chromium and print, as one JSON list, the texts of slices: text, its right edge, that of its box.
//
//   node labels.cjs PICTURE.svg...
//
// NODE_PATH names a folder with puppeteer-core, CHROMIUM the browser.
'use strict';
const { pathToFileURL } = require('url');
const puppeteer = require('puppeteer-core');

(async () => {
  const browser = await puppeteer.launch({ executablePath: process.env.CHROMIUM, headless: 'shell', args: ['--no-sandbox', '--disable-gpu'] });
  const found = [];
  for (const file of process.argv.slice(2)) {
    const page = await browser.newPage();
    await page.goto(pathToFileURL(file).href);
    found.push(...await page.evaluate(() => [...document.querySelectorAll('g > rect + text')].map((text) => {
      const [drawn, box] = [text.getBBox(), text.previousElementSibling.getBBox()];
      return [text.textContent, drawn.x + drawn.width, box.x + box.width];
    })));
  }
  await browser.close();
  console.log(JSON.stringify(found));
})();

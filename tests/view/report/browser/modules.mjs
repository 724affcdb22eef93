// What the page's modules give without a browser: `node modules.mjs FOLDER-OF-MODULES <question >answer`, both JSON.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [folder] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${folder}/${name}`).href);
const { numberText, clean, cutMiddle, axisText, fitApart } = await load('format.js');
const { Longest, walkStrip, Activity } = await load('lod.js');
const { Columns, runningSums, fromBase64, inflate } = await load('decode.js');
const question = JSON.parse(readFileSync(0, 'utf8'));

const answer = {};
answer.numbers = question.numbers.map(({ kind, value, unit }) => numberText(value, kind, unit));
answer.names = question.names.map((name) => clean(name));
answer.cut = question.cut.map(([text, most]) => cutMiddle(text, most));
answer.apart = question.apart.map((names) => names.map((name) => fitApart(name, names, 9, (text) => text.length)));
answer.axis = question.axis.map((one) => axisText(...one));
answer.drawn = question.strips.map(({ begin, end, busy, start, colour, window: [t0, t1], width }) => {
  const sums = new Float64Array(begin.length + 1);
  begin.forEach((_, i) => { sums[i + 1] = sums[i] + busy[i]; });
  const detail = { begin: Float64Array.from(begin), end: Float64Array.from(end), sums, start: Int32Array.from(start), longest: new Longest(begin, end) };
  return start.slice(1).map((_, strip) => {
    const drawn = [];
    walkStrip(detail, strip, t0, t1, width, (longest) => colour[longest], (left, right, row, its, opacity, slices, alone) => {
      drawn.push([alone ? Math.max(left, 0) : left, alone ? Math.min(right, width) : right, row, opacity, slices, alone]);
    });
    return drawn;
  });
});
answer.mean = question.activity.map(([begins, ends, t0, t1]) => new Activity(Float64Array.from(begins), Float64Array.from(ends)).mean(t0, t1));
const columns = new Columns(await inflate(fromBase64(question.columns.bytes)), question.columns.entries);
answer.columns = Object.keys(question.columns.entries).map((name) => [...columns.numbers(name)]);
answer.sums = [...runningSums(Float64Array.from([5, -2, 3]))];
console.log(JSON.stringify(answer));

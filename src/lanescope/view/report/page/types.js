// What the two data blocks of this page hold, as types. The writer's side of it: lanescope/view/report/__init__.py.

/** @typedef {number | string} Whole A whole number; beyond 2^53 - 1 the text of its digits. */
/** @typedef {[parent: number | null, kind: 'g' | 'l' | 'c' | 'p', name: string, rank: number, unit: string, role: string,
 *   rows: number, busy: number | null]} TrackEntry */
/** @typedef {{track: number | null, t: Whole | null, dur: Whole | null, row: number | null, detail: string}} Place */
/** @typedef {{code: string, severity: 'error' | 'warning' | 'notice', title: string, detail: string, help: string,
 *   count: number, share: number | null, places: Place[], places_total: number}} Finding */
/** @typedef {'time' | 'moment' | 'count' | 'share' | 'number' | 'track' | 'name' | 'text' | 'change'} CellKind */
/** @typedef {string | number | null} CellValue */
/** @typedef {{name: string, kind: CellKind, unit: string, about: string}} TableColumn */
/** @typedef {{names: string[], kinds: string[], shared: Whole[][]}} Matrix */
/** @typedef {{id: string, title: string, about: string, total: number, columns: TableColumn[], rows: CellValue[][],
 *   matrix?: Matrix | null}} Table */
/** @typedef {{name: string, unit: string, about: string, type: 'int' | 'float' | 'text', texts?: string[]}} Argument */
/** @typedef {[offset: number, bytes: number, n: number, kind: 'u' | 'z' | 'f']} ColumnEntry */

/**
 * @typedef {object} Header
 * @property {number} v
 * @property {string} title
 * @property {string} capture
 * @property {string} family
 * @property {string} format
 * @property {string} sha256
 * @property {number} size
 * @property {{path: string, family: string, format: string, sha256: string, size: number}[]} inputs
 * @property {number} inputs_total
 * @property {string} unit
 * @property {string} lo
 * @property {Whole} span
 * @property {Whole} scale
 * @property {{slices: number, lanes: number, flows: number, instants: number, counters: number}} total
 * @property {number} rows
 * @property {{bytes: number, records: number, kinds: [meaning: string, count: number][]}} lost
 * @property {(string | number)[][]} accounting
 * @property {TrackEntry[]} tracks
 * @property {Record<string, string>} short
 * @property {[chain: number[], depth: number, open: number, other: number[]][]} tree
 * @property {number[]} side
 * @property {{letter: string, capture: string, low: string, span: Whole, slices: number, lanes: number}[]} sides
 * @property {number[]} row_track
 * @property {string[]} names
 * @property {string[]} kinds
 * @property {number[]} colours
 * @property {string[]} cats
 * @property {string[]} qualities
 * @property {string[]} flow_kinds
 * @property {string[]} instant_names
 * @property {string[]} causes
 * @property {string[]} flags
 * @property {Argument[]} args
 * @property {Finding[]} findings
 * @property {[head: string, rest: string][]} words
 * @property {Table[]} tables
 * @property {{table: string, causes: string[]} | null} path
 * @property {{cell: Whole, exact: [Whole, Whole][], slices: number, rows: number} | null} bundled
 * @property {number} flows_left
 * @property {number} instants_left
 * @property {number} counters_left
 * @property {string[]} left_out
 * @property {Record<string, ColumnEntry>} columns
 */

export {};

"""The report: one self-contained HTML file of a trace that one sends to a colleague.

What the page gets, the contract between the writer (Python) and the page (JavaScript), version 2:

Two blocks, in this order, each base64 of a raw deflate stream (``DecompressionStream('deflate-raw')``)::

    <script type="text/plain" id="header">   the header: JSON, UTF-8
    <script type="text/plain" id="columns">  the bytes of the columns, one column behind the other

All texts of the trace are in the header; the markup has the escaped title only. Times are whole numbers in ``unit``
since ``lo``, so that the first time of the trace is 0. A whole number beyond 2^53 - 1 is a text of its digits, wherever
it stands (``Number(value)`` is close enough to draw it; the text is what is shown).

Fields of the header
    ``v``            2
    ``title``        text: title of the page; ``capture``: text, name of the captured file
    ``family``, ``format``, ``sha256``  texts; ``size``: bytes. Of the first input; ``inputs[{path, family, format,
                     sha256, size}]`` has all (at most 50; ``inputs_total``)
    ``unit``         ``ns``, or ``cycles``, which are never shown as time
    ``lo``           text, int64: time 0 of the page on the clock of the trace
    ``span``         length of the trace; 1 at least
    ``scale``        unit of ``s.gap``, ``s.dur``, ``b.busy``: the greatest common divisor of all of them; 1 at least
    ``total``        ``{slices, lanes, flows, instants, counters}``: rows of the trace; ``lanes`` are lanes only
    ``rows``         rows of the ``s.`` columns: slices, and bundles of slices
    ``lost``         ``{bytes, records, kinds[[meaning, count]]}``: bytes of the inputs that could not be decoded;
                     records that the producer dropped, where it counts them; stats of severity ``data_loss``
    ``accounting[[input, scope, unit, total, decoded, padding, lost]]``
    ``tracks[[parent, kind, name, rank, unit, role, rows, busy]]``  by track id. ``parent``: track id or null; ``kind``:
                     ``g`` group, ``l`` lane, ``c`` counter; ``rank``: order among all; ``unit``: of a counter's values;
                     ``rows``: how many drawing rows it has; ``busy``: part of the span that slices cover, null unless
                     a lane
    ``tree[[chain, depth, open, other]]``  rows of the lane list, depth first in drawing order. ``chain``: track ids,
                     each the only child of the one before; the last is what is drawn. ``depth``: 0 at the top.
                     ``open``: 1 where a group is open at first. ``other``: of two captures side by side, the chain of
                     the second one, where the row is the same group in both; else empty. A lane of both is two rows,
                     that of the first above
    ``side[]``       0 or 1 by track id: which of the captures it is of; empty unless two are side by side
    ``sides[{letter, capture, low, span, slices, lanes}]``  the captures, where two are side by side; else empty. Each
                     begins at time 0 of the page; ``low``: text, that time on its own clock
    ``row_track[]``  track id of each drawing row, rising
    ``names[]``      names of slices, by number of slices; ``kinds[]``: kind of work of each (``load compute store wait
                     outer``); ``colours[]``: 0..7, number of its colour in the palette, or -1: neutral, a wait
    ``cats[] qualities[] flow_kinds[] instant_names[] causes[]``  texts behind codes
    ``flags[]``      text of each bit of ``s.flags``, from bit 0
    ``args[{name, unit, about, type, texts?}]``  arguments of slices, by column number K. ``type``: ``int``, ``float``
                     or ``text``; ``texts``: of the codes where it is ``text``
    ``findings[{code, severity, title, detail, help, count, share, places[], places_total}]``  one a rule and title, the
                     worst first. ``severity``: ``error``, ``warning``, ``notice``; ``detail``: of the first place;
                     ``share``: part of all slice time concerned, or null; ``places[{track, t, dur, row, detail}]``: at
                     most 200, by time; each value may be null; ``row``: position among the ``s.`` rows. An entry
                     without ``track`` and ``t`` cannot be shown in the timeline
    ``words[[head, rest]]``  verdict sentences; ``head`` may be empty
    ``tables[{id, title, about, total, columns[{name, kind, unit, about}], rows[][], matrix?}]``  ``id``: ``names``,
                     ``lanes``, ``overlap``, ``idle``, ``phases``, ``path``, those that have rows; of two captures
                     ``compare``, ``lanes`` and, of each, ``overlap-a`` and so on; ``total``: rows of the whole
                     table, of which ``rows`` has the first. ``kind``: ``time`` (duration in ``unit``),
                     ``moment`` (time since ``lo``), ``count``, ``share`` (0..1), ``number``, ``track`` (track id, shown
                     as its path), ``name`` (name of slices: a search), ``text``, ``change`` (a share with
                     its sign). A value may be null: unknown.
                     ``matrix`` (overlap): ``{names[], kinds[], shared[][]}``, time in which row and column both run,
                     the diagonal: all time of the row
    ``path``         null, or ``{table: 'path', causes[]}``: the critical path is in the ``p.`` columns
    ``bundled``      null, or ``{cell, exact[[t0, t1]], slices, rows}``: what is shorter than ``cell`` and not in a
                     window of ``exact`` was joined; ``slices`` of them are in ``rows`` bundles
    ``flows_left instants_left counters_left``  flows, instants and samples that the trace has and the file has not
    ``left_out[]``   sentences: what the trace has and the file has not
    ``columns``      ``{name: [offset, bytes, n, kind]}``; ``kind``: ``u`` unsigned LEB128, ``z`` zigzag LEB128 (0, -1,
                     1, -2 ...), ``f`` float64 little endian. Every column below is there, ``n`` may be 0; only ``a.``
                     and ``p.`` columns are as ``args`` and ``path`` say

Columns (*delta*: running sum gives the values, the first counts from 0)
    Rows ``s.`` are sorted by strip = (drawing row, level): within one strip they are disjoint and in time order.

    ``strip.start``  u, delta, [strips + 1]: first row of each strip, and ``rows`` at the end
    ``strip.row``    u: drawing row (index into ``row_track``); ``strip.level``  u: stack level in it, 0 outermost
    ``s.gap``        u, times ``scale``: begin minus end of the row before in the strip; of the first: its begin
    ``s.dur``        u, times ``scale``: length. Of an open slice: up to when it was last seen
    ``s.name s.cat s.quality``  u: codes; ``s.flags``  u: bits
    ``s.id``         z, delta: id in the table ``slices``; of a bundle that of its first slice
    ``b.row``        u, delta: rows that are bundles; ``b.count``  u: slices in each; ``b.busy``  u, times ``scale``:
                     sum of their lengths (``s.dur`` reaches from the first begin to the last end; ``s.name``
                     is the name with most of the time)
    ``f.src``        u, delta: row where a flow begins, sorted; ``f.dst``  z, minus src: row where it ends; ``f.kind``
                     u
    ``f.out``        z: its time at the source minus the end of that row; ``f.in``  z: its time at the destination minus
                     the begin of that row
    ``i.track i.ts i.name``  instants by track and time: u delta, z delta, u
    ``c.track c.ts c.value``  samples by track and time: u delta, z delta, ``z`` delta if whole else ``f``
    ``g.track g.ts g.dur g.cause g.lost``  u, u, u, u, u: gaps; one on a group holds for all lanes below it; ``g.lost``:
                     number of lost records plus 1, 0: unknown
    ``n.track n.ts n.dur``  u, u, u: time that was not recorded, by lane
    ``a.K.row``      u, delta: rows that have argument K, sorted; ``a.K``: ``z`` delta if ``int``, ``f`` if ``float``,
                     ``u`` code if ``text``
    ``p.ts p.dur p.row p.cause``  u delta, u, u (row + 1, 0: none), u (code in ``path.causes``): parts of the path

Numbers are shown as ``view.model.numbers`` shows them; ``tests/view/number_cases.json`` has cases that the page must
print alike: ``[{kind, value, unit, text}]``. Python rounds half to even: ``1125 ns`` is ``1.12 µs`` (in JavaScript
``Intl.NumberFormat`` with ``roundingMode: 'halfEven'``).

Placeholders of the template ``page/page.html``, each filled once in one pass: ``{{csp}} {{style}} {{title}} {{header}}
{{columns}} {{script}}``.
"""

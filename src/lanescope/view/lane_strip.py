"""The lane strip: a timeline drawn with block characters, for a first look without leaving the terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.summary import covered_by
from lanescope.common.intervals import Intervals, Ints, order
from lanescope.trace import Trace, row_packing
from lanescope.trace.column import Mask
from lanescope.view.formatting import display_width as columns_of
from lanescope.view.formatting import escape, fit_width, format_count, format_duration

Floats = npt.NDArray[np.float64]

#: 256-colour codes that read well on dark and on light backgrounds.
_COLORS = (33, 208, 35, 170, 178, 37, 203, 99, 71, 137, 205, 67, 142, 141, 131, 73)
_BOLD, _DIM, _GAP = "1", "2", "38;5;203"
_SEVERITY_STYLES = {"error": "1;31", "warning": "1;33", "notice": "36"}
_SEVERITIES = ("notice", "warning", "error")

#: How deep a stack is told apart by colour.
_LEVELS = 8
#: How many slice pieces are cut at a time, so that memory stays bounded.
_PIECES = 1 << 22
_NAMES_SHOWN = 8
_COUNTERS_SHOWN = 4
_RULES_SHOWN = 8


class Finding(Protocol):
    """What the strip reads of a finding of ``lanescope.analysis.check``."""

    @property
    def code(self) -> str: ...  # noqa: D102
    @property
    def severity(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def place(self) -> Any: ...  # noqa: D102
    @property
    def count(self) -> int: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class _Glyphs:
    """The characters that stand for things."""

    blocks: str = "▁▂▃▄▅▆▇█"
    gap: str = "╱"  # noqa: RUF001 (a hatch is meant)
    open: str = "╌"
    unrecorded: str = "·"
    point: str = "╷"
    mark: str = "▲"
    swatch: str = "■"
    tick: str = "╵"
    ellipsis: str = "…"
    times: str = "×"  # noqa: RUF001 (a multiplication sign is meant)
    micro: str = "µ"


_PLAIN = _Glyphs(".:-=+*#@", "/", "?", "_", "'", "^", "#", "|", "..", "x", "u")


def lane_strip(
    trace: Trace,
    *,
    findings: Sequence[Finding] = (),
    width: int | None = None,
    rows: int = 24,
    color: bool = False,
    ascii_only: bool | None = None,
) -> str:
    """Draw the lanes of a trace over a common time axis.

    The height of a block says how much of its cell's time slices cover, its colour which kind of name covers most of
    it, the innermost where they nest. Names that differ in digits only are one kind, unless all names do; kinds keep
    their colours from trace to trace as far as those of the largest differ. Blank is idle; gaps, time that was not
    recorded, and time in which an open slice may still have run have signs of their own. Findings are marked beneath
    their lanes.

    Args:
        trace: the trace.
        findings: what ``check.run`` found.
        width: columns; those of the terminal when not given, never fewer than 40.
        rows: how many lanes to draw at most. Lanes with warnings or gaps come first, then the busiest of each role in
            turn; the legend says how many are left out.
        color: whether to use colours; ``NO_COLOR`` in the environment wins over it.
        ascii_only: whether to do without block characters; when not given, as the encoding of standard output demands.

    Returns:
        Lines of at most ``width`` columns, without a line end after the last. Names are escaped.

    Complexity:
        One sort of the slices, and of the drawn ones in addition one pass by lane, level and cell.
    """
    if ascii_only is None:
        ascii_only = not _can_show(sys.stdout.encoding)
    width = max(width or shutil.get_terminal_size((100, 24)).columns, 40)
    color = color and not os.environ.get("NO_COLOR")
    strip = _Strip(trace, findings, width, rows, _PLAIN if ascii_only else _Glyphs(), color=color)
    paint = _painted if color else _plain
    lines = ["".join(paint(text, style) for style, text in _trimmed(line)) for line in strip.lines()]
    text = "\n".join(lines)
    return text.encode("ascii", "backslashreplace").decode() if ascii_only else text


def _can_show(encoding: str | None) -> bool:
    try:
        "".join(getattr(_Glyphs(), name) for name in _Glyphs.__slots__).encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _painted(text: str, style: str) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if style and text.strip() else text


def _plain(text: str, style: str) -> str:
    return text


Line = list[tuple[str, str]]  # (style, text) one after another


class _Strip:
    """One drawing: what is on it and how large."""

    def __init__(
        self, trace: Trace, findings: Sequence[Finding], width: int, rows: int, glyphs: _Glyphs, *, color: bool
    ) -> None:
        self.trace = trace
        self.findings = findings
        self.width = width
        self.glyphs = glyphs
        self.color = color
        self.time = LaneTime(trace)
        self.tree = self.time.tree
        self.begin, end = self.time.window
        self.span = max(end - self.begin, 1)
        self.used = set(self._in_use())
        self.shown = self._choose(rows)
        self.labels = self._labels()
        longest = max((columns_of(label) for _, label in self.labels.values()), default=0)
        self.label = min(longest, max(width * 3 // 10, 12))
        self.cells = width - self.label - 7  # a share of four columns, a space before it and two after it
        self.edges = np.linspace(0.0, float(self.span), self.cells + 1)
        self.kinds, self.kind_names, self.kind_time = self._kinds()
        self.colors = self._assign()
        self.signs: set[str] = set()

    # --- which tracks -------------------------------------------------------------------------------------------------

    def _in_use(self) -> Iterable[int]:
        for table in (self.trace.slices, self.trace.instants, self.trace.counters):
            yield from np.unique(table.values("track_id")).tolist()
        yield from np.unique(self.time.gaps.group).tolist()

    def _choose(self, rows: int) -> list[int]:
        """Return the most telling lanes, and a few counters, in drawing order."""
        worst: dict[int, int] = {}
        for finding in self.findings:
            track = finding.place.track_id
            if track is not None and finding.severity != "notice":
                worst[track] = max(worst.get(track, 0), _SEVERITIES.index(finding.severity))
        gaps = set(self.time.gaps.group.tolist())
        roles = self.trace.tracks.codes("role").tolist()
        busy = self.time.busy
        turn: dict[int, int] = {}
        ranked = []
        lanes = [lane for lane in self.tree.lanes.tolist() if lane in self.used]
        for lane in sorted(lanes, key=lambda lane: -int(busy[lane])):
            turn[roles[lane]] = turn.get(roles[lane], 0) + 1
            ranked.append((-worst.get(lane, 0), lane not in gaps, turn[roles[lane]], -int(busy[lane]), lane))
        chosen = {entry[-1] for entry in sorted(ranked)[:rows]}
        self.left_out = [lane for lane in lanes if lane not in chosen]
        is_counter = self.trace.tracks.values("kind") == "counter"
        counters = [track for track in self.tree.order.tolist() if is_counter[track] and track in self.used]
        chosen.update(counters[:_COUNTERS_SHOWN])
        self.counters = set(counters[:_COUNTERS_SHOWN])
        self.counters_left_out = len(counters) - len(self.counters)
        return [track for track in self.tree.order.tolist() if track in chosen]

    def _labels(self) -> dict[int, tuple[list[str], str]]:
        """Return for each shown track the headings that come before it, and its label.

        A group gets a heading where two or more of what is shown stand in it; else it is part of the label.
        """
        chains = {track: self.tree.ancestors(track) for track in self.shown}
        below: dict[int, set[int]] = {}
        for chain in chains.values():
            for group, child in pairwise(chain):
                below.setdefault(group, set()).add(child)
        found: dict[int, tuple[list[str], str]] = {}
        headed: set[int] = set()
        for track, chain in chains.items():
            headings, names, depth = [], [], 0
            for step in chain:
                names.append(escape(self.tree.names[step]))
                if step != track and len(below[step]) > 1:
                    if step not in headed:
                        headings.append("  " * depth + "/".join(names))
                        headed.add(step)
                    names, depth = [], depth + 1
            found[track] = (headings, "  " * depth + "/".join(names))
        return found

    # --- names and colours --------------------------------------------------------------------------------------------

    def _kinds(self) -> tuple[Ints, list[str], Floats]:
        """Return the kind of each name code, what stands for each kind, and its share of the time that slices cover."""
        column = self.trace.slices.column("name")
        texts = column.dictionary.texts if column.dictionary else []
        used = np.flatnonzero(np.bincount(column.values, minlength=len(texts))) if len(column) else np.empty(0, int)
        kind_of = np.zeros(len(texts), np.int64)
        stems = {code: texts[code].translate(_WITHOUT_DIGITS).strip(" _-.:#") for code in used.tolist()}
        if len(set(stems.values())) == 1:
            # Names that differ in nothing else are told apart by their digits after all.
            stems = {code: texts[code] for code in stems}
        numbers: dict[str, int] = {}
        names: list[str] = []
        for code, stem in stems.items():
            number = kind_of[code] = numbers.setdefault(stem, len(names))
            if number == len(names):
                names.append(texts[code])
            elif names[number] != texts[code]:
                names[number] = re.sub("[0-9]+", "#", texts[code])
        self.stems = list(numbers)
        if not names:
            return kind_of, [], np.empty(0)
        time = covered_by(self.time, kind_of[column.values], len(names))
        return kind_of, names, time / max(float((self.time.slice_union.end - self.time.slice_union.begin).sum()), 1.0)

    def _assign(self) -> Ints:
        """Return the colour of each kind: by hash, but no two among the largest the same while there are enough."""
        hashes = [zlib.crc32(stem.encode("utf-8", "replace")) for stem in self.stems]
        colors = np.array(hashes, np.int64) % len(_COLORS)
        taken: set[int] = set()
        for kind in np.argsort(-self.kind_time, kind="stable")[: len(_COLORS)].tolist():
            while int(colors[kind]) in taken:
                colors[kind] = (colors[kind] + 1) % len(_COLORS)
            taken.add(int(colors[kind]))
        return colors

    # --- cells --------------------------------------------------------------------------------------------------------

    def _cell(self, ts: Ints) -> Ints:
        """Return the cell in which each time lies."""
        return np.clip(((ts - self.begin) * (self.cells / self.span)).astype(np.int64), 0, self.cells - 1)

    def _filled(self, intervals: Intervals, track: int) -> Floats:
        """Return how much of each cell the disjoint intervals of a track cover, 0 to 1."""
        first, last = np.searchsorted(intervals.group, [track, track + 1]).tolist()
        if first == last:
            return np.zeros(self.cells)
        begin = (intervals.begin[first:last] - self.begin).astype(np.float64)
        length = (intervals.end - intervals.begin)[first:last].astype(np.float64)
        before = np.concatenate([[0.0], np.cumsum(length)])
        times = np.stack([begin, begin + length], axis=1).reshape(-1)
        covered = np.stack([before[:-1], before[1:]], axis=1).reshape(-1)
        found: Floats = np.diff(np.interp(self.edges, times, covered)) / np.diff(self.edges)
        return found

    def _cell_colors(self) -> dict[int, Ints]:
        """Return the colour of each cell of each shown lane, -1 where nothing runs."""
        lanes = [track for track in self.shown if track not in self.counters]
        number = np.full(len(self.tree) + 1, -1, np.int64)
        number[lanes] = np.arange(len(lanes))
        track, begin, end = self.time.extents
        known = np.where((track >= 0) & (track < len(self.tree)), track, -1)
        rows = np.flatnonzero((number[known] >= 0) & (end > begin))
        if not len(rows):
            return {}
        levels = self._levels(rows)
        codes = self.trace.slices.codes("name")[rows]
        key = (number[track[rows]] * _LEVELS + levels) * self.cells
        colors = self.colors[self.kinds[codes]]
        first, last = self._cell(begin[rows]), self._cell(end[rows] - 1)
        begin_at, end_at = ((t[rows] - self.begin).astype(np.float64) for t in (begin, end))
        shape = (len(lanes), _LEVELS, self.cells, len(_COLORS))
        time = np.zeros(shape).reshape(-1)
        pieces = np.cumsum(last - first + 1)
        cuts = np.searchsorted(pieces, np.arange(0, int(pieces[-1]) + _PIECES, _PIECES)).tolist()
        for start, stop in zip(cuts, [*cuts[1:], len(rows)], strict=True):
            if start == stop:
                continue
            count = (last - first + 1)[start:stop]
            row = np.repeat(np.arange(start, stop), count)
            cell = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
            length = np.minimum(end_at[row], self.edges[cell + 1]) - np.maximum(begin_at[row], self.edges[cell])
            time += np.bincount((key[row] + cell) * len(_COLORS) + colors[row], np.maximum(length, 0), len(time))
        return self._dominant(lanes, time.reshape(shape))

    def _dominant(self, lanes: list[int], time: Floats) -> dict[int, Ints]:
        """Return the colour of each cell of the lanes, from the time by [lane, level, cell, colour]."""
        level_time = time.sum(axis=3)
        # What runs within a slice runs instead of it.
        own = level_time.copy()
        own[:, :-1] -= level_time[:, 1:]
        level = own.argmax(axis=1)
        where = (np.arange(len(lanes))[:, None], level, np.arange(self.cells)[None, :])
        colors = np.where(level_time.sum(axis=1) > 0, time[where].argmax(axis=2), -1)
        return dict(zip(lanes, colors, strict=True))

    def _levels(self, rows: Ints) -> Ints:
        """Return how many slices of its lane each of the slices lies within, at most ``_LEVELS`` - 1."""
        nested = (self.trace.tracks.values("nesting") == "nested")[self.time.extents.group[rows]]
        found = np.zeros(len(rows), np.int64)
        if nested.any():
            group, begin, end = self.time.extents.take(rows[nested])
            end = np.minimum(end, row_packing.FOREVER - 1)
            placed = row_packing.place_intervals(
                row_packing.Intervals(group, begin, end - begin, np.empty(0, np.uint8)), self.trace.tracks
            )
            found[nested] = np.minimum(row_packing.depth(placed), _LEVELS - 1)
        return found

    # --- lines --------------------------------------------------------------------------------------------------------

    def lines(self) -> Iterable[Line]:
        """Yield the drawing, line by line."""
        if not self.shown:
            yield [("", "no lane has anything to draw")]
        else:
            yield from self._axis()
            colors = self._cell_colors()
            for track in self.shown:
                headings, label = self.labels[track]
                for heading in headings:
                    yield [(_BOLD, self._fit(heading, self.width))]
                head = ("", self._fit(label, self.label) + " ")
                if track in self.counters:
                    yield [head, *self._counter(track)]
                else:
                    yield [head, *self._lane(track, colors.get(track, np.full(self.cells, -1)))]
                    yield from self._marks(track)
            yield []
            yield from self._legend()
        yield from self._rules()

    def _fit(self, text: str, width: int) -> str:
        return fit_width(text, width, self.glyphs.ellipsis)

    def _axis(self) -> Iterable[Line]:
        unit, size = self._axis_unit()
        widest = len(str(int(self.span / size))) + len(unit) + 3
        step = _nice(self.span / size / self.cells * widest)
        labels, ticks = [" "] * (self.cells + widest), [" "] * self.cells
        at = 0.0
        while True:
            cell = round(at * size / self.span * self.cells)
            text = f"{at:.10g}" + (f" {unit}" if not at else "")
            if cell >= self.cells or cell + len(text) > self.cells:
                break
            labels[cell : cell + len(text)] = text
            ticks[cell] = self.glyphs.tick
            at += step
        yield [("", " " * (self.label + 7)), (_DIM, "".join(labels)[: self.cells])]
        yield [("", fit_width("", self.label) + " "), (_DIM, "busy  " + "".join(ticks))]

    def _axis_unit(self) -> tuple[str, int]:
        if self.trace.time.time_unit != "ns":
            return self.trace.time.time_unit, 1
        for unit, size in (("s", 10**9), ("ms", 10**6), (f"{self.glyphs.micro}s", 10**3)):
            if self.span >= 2 * size:
                return unit, size
        return "ns", 1

    def _time(self, value: int) -> str:
        return format_duration(value, self.trace.time.time_unit).replace("µ", self.glyphs.micro)

    def _lane(self, track: int, colors: Ints) -> Line:
        busy = self._filled(self.time.slice_union, track)
        gap, tail, unrecorded = (
            self._filled(part, track) for part in (self.time.gaps, self.time.possibly_running, self.time.uncovered)
        )
        points = self._points(track)
        line: Line = [("", f"{_percent(int(self.time.busy[track]), self.span)}  ")]
        signs = self.glyphs
        for cell in range(self.cells):
            if gap[cell] > 0 and gap[cell] >= busy[cell]:
                line.append((_GAP, self._sign(signs.gap)))
            elif busy[cell] > 0:
                level = min(max(int(np.ceil(busy[cell] * 8 - 1e-6)), 1), 8)
                line.append((f"38;5;{_COLORS[colors[cell]]}" if colors[cell] >= 0 else "", signs.blocks[level - 1]))
            elif points[cell]:
                line.append(("", self._sign(signs.point)))
            elif tail[cell] > 0.5:
                line.append((_DIM, self._sign(signs.open)))
            elif unrecorded[cell] > 0.5:
                line.append((_DIM, self._sign(signs.unrecorded)))
            else:
                line.append(("", " "))
        return _merged(line)

    def _sign(self, sign: str) -> str:
        self.signs.add(sign)
        return sign

    def _points(self, track: int) -> Mask:
        """Return which cells hold an instant, or a slice of no length."""
        found = np.zeros(self.cells, np.bool_)
        instants = self.trace.instants
        found[self._cell(instants.values("ts")[instants.values("track_id") == track])] = True
        group, begin, end = self.time.extents
        found[self._cell(begin[(group == track) & (begin == end)])] = True
        return found

    def _counter(self, track: int) -> Line:
        """Draw a counter's mean by cell, from the smaller of 0 and its lowest sample to its highest."""
        counters = self.trace.counters
        mine = np.flatnonzero(counters.values("track_id") == track)
        mine = mine[order(counters.values("track_id")[mine], counters.values("ts")[mine])]
        at = (counters.values("ts")[mine] - self.begin).astype(np.float64)
        value = np.nan_to_num(counters.values("value")[mine])
        area = np.concatenate([[0.0], np.cumsum(value * np.diff(np.append(at, self.span)))])
        held = np.interp(self.edges, np.append(at, self.span), area)
        known = np.maximum(self.edges[1:] - np.maximum(self.edges[:-1], at[0]), 0)
        mean = np.divide(np.diff(held), known, out=np.zeros(self.cells), where=known > 0)
        low, high = min(float(value.min()), 0.0), max(float(value.max()), 0.0)
        level = np.clip((mean - low) / ((high - low) or 1.0) * 7.999, 0, 7).astype(int)
        drawn = "".join(self.glyphs.blocks[n] if k > 0 else " " for n, k in zip(level, known, strict=True))
        unit = escape(str(self.trace.tracks.values("unit")[track]))
        title = f"to {high:.3g}{' ' if unit else ''}{unit}"
        room = self.cells - len(title) - 1
        # The highest value stands at the end of the line, over the drawing's last cells.
        return [("", "      "), (_DIM, drawn[:room] + " " + title if room > 8 else drawn)]

    def _marks(self, track: int) -> Iterable[Line]:
        """Yield a line of marks under a lane that has findings: where each begins, and its code where there is room."""
        mine = [f for f in self.findings if f.place.track_id == track and f.place.ts is not None]
        if not mine:
            return
        row: list[tuple[str, str]] = [("", " ")] * self.cells
        taken = [False] * self.cells
        mine.sort(key=lambda finding: -_SEVERITIES.index(finding.severity))
        at = self._cell(np.array([finding.place.ts for finding in mine], np.int64)).tolist()
        for finding, cell in zip(mine, at, strict=True):
            if not taken[cell]:
                row[cell], taken[cell] = (_SEVERITY_STYLES[finding.severity], self.glyphs.mark), True
        for finding, cell in zip(mine, at, strict=True):
            text = f" {finding.code} {self.glyphs.times}{finding.count} "
            for first in (cell + 1, cell - len(text)):
                room = range(first, first + len(text))
                if first >= 0 and room.stop <= self.cells and not any(taken[first : room.stop]):
                    for where, character in zip(room, text, strict=True):
                        row[where], taken[where] = (_SEVERITY_STYLES[finding.severity], character), True
                    break
        yield [("", " " * (self.label + 7)), *_merged(row)]

    def _legend(self) -> Iterable[Line]:
        names = np.argsort(-self.kind_time, kind="stable")
        names = names[self.kind_time[names] > 0]
        entries: list[Line] = []
        for kind in names[:_NAMES_SHOWN].tolist():
            text = self._fit(escape(self.kind_names[kind]), 32).rstrip()
            share = _percent(float(self.kind_time[kind]), 1.0).strip()
            swatch = (f"38;5;{_COLORS[int(self.colors[kind])]}", f"{self.glyphs.swatch} ")
            entries.append([*([swatch] if self.color else []), ("", f"{text or repr('')} "), (_DIM, share)])
        if len(names) > _NAMES_SHOWN:
            entries.append([(_DIM, f"and {format_count(len(names) - _NAMES_SHOWN, 'more name')}")])
        yield from self._flow(entries)
        g = self.glyphs
        meanings = (
            (g.gap, _GAP, "gap: lost, unknown"),
            (g.open, _DIM, "may still run"),
            (g.unrecorded, _DIM, "not recorded"),
            (g.point, "", "instant"),
        )
        signs: list[Line] = [[(style, sign), ("", f" {text}")] for sign, style, text in meanings if sign in self.signs]
        if self.begin:
            signs.append([(_DIM, f"0 on the axis is {self._time(self.begin)}")])
        yield from self._flow(signs)
        rest = []
        if self.left_out:
            busy = sum(int(self.time.busy[lane]) for lane in self.left_out)
            share = _percent(busy, max(int(self.time.busy.sum()), 1)).strip()
            rest.append(f"{format_count(len(self.left_out), 'more lane')} with {share} of the busy time not drawn")
        if self.counters_left_out:
            rest.append(f"{format_count(self.counters_left_out, 'more counter')} not drawn")
        if rest:
            yield [(_DIM, self._fit("; ".join(rest), self.width))]

    def _flow(self, entries: list[Line]) -> Iterable[Line]:
        """Yield the entries side by side, in as many lines as they need."""
        line: Line = []
        used = 0
        for entry in entries:
            size = sum(columns_of(text) for _, text in entry)
            if line and used + 3 + size > self.width:
                yield line
                line, used = [], 0
            line += [("", "   "), *entry] if line else entry
            used += size + (3 if used else 0)
        if line:
            yield line

    def _rules(self) -> Iterable[Line]:
        """Yield what was found, a line for each rule and severity."""
        grouped: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.findings:
            grouped.setdefault((finding.severity, finding.code), []).append(finding)
        ranked = sorted(grouped, key=lambda key: (-_SEVERITIES.index(key[0]), key[1]))
        for severity, code in ranked[:_RULES_SHOWN]:
            some = grouped[severity, code]
            lanes = len({finding.place.track_id for finding in some if finding.place.track_id is not None})
            total = sum(finding.count for finding in some)
            where = f" on {format_count(lanes, 'lane')}" if lanes else ""
            text = f" {some[0].title}, {self.glyphs.times}{total}{where}"
            mark = f"{self.glyphs.mark} {code} {severity}"
            yield [(_SEVERITY_STYLES[severity], mark), ("", self._fit(text, self.width - len(mark)))]
        if len(ranked) > _RULES_SHOWN:
            yield [(_DIM, f"and {format_count(len(ranked) - _RULES_SHOWN, 'more rule')}")]


_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


def _merged(line: Line) -> Line:
    """Join neighbours of one style, so that a line holds few control sequences."""
    found: Line = []
    for style, text in line:
        if found and found[-1][0] == style:
            found[-1] = (style, found[-1][1] + text)
        else:
            found.append((style, text))
    return found


def _trimmed(line: Line) -> Line:
    """Return the line without blanks at its end."""
    line = list(line)
    while line and not line[-1][1].rstrip():
        line.pop()
    return [*line[:-1], (line[-1][0], line[-1][1].rstrip())] if line else line


def _percent(part: float, whole: float) -> str:
    """Return a share in four columns: what is more than nothing is never 0 %, what is less than all never 100 %."""
    share = 100 * part / whole
    if 0 < share < 1:
        return " <1%"
    return f"{min(round(share), 99) if share < 100 else round(share):3d}%"


def _nice(least: float) -> float:
    """Return the smallest of 1, 2, 5, 10, 20, 50, ... (and their fractions) that is not below ``least``."""
    power = 10.0 ** np.floor(np.log10(max(least, 1e-12)))
    return float(next(power * step for step in (1, 2, 5, 10) if power * step >= least * (1 - 1e-9)))

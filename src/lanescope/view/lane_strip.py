"""The lane strip: a timeline drawn with block characters, for a first look without leaving the terminal."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lanescope.trace import Trace
from lanescope.trace.column import Mask
from lanescope.view.formatting import display_width as columns_of
from lanescope.view.formatting import escape, fit_width, format_count, format_duration
from lanescope.view.model.numbers import number_text
from lanescope.view.strip_layout import COLORS, SEVERITIES, Finding, Ints, StripLayout

_BOLD, _DIM, _GAP = "1", "2", "38;5;203"
_SEVERITY_STYLES = {"error": "1;31", "warning": "1;33", "notice": "36"}
_NAMES_SHOWN = 8
_RULES_SHOWN = 8


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
        rows: how many lanes to draw at most. Lanes with warnings or gaps come first, then the busiest of each kind,
            role and name, in turn; the legend says how many are left out.
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
    strip = _Strip(StripLayout(trace, findings, width, rows), _PLAIN if ascii_only else _Glyphs(), color=color)
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
    """One drawing: a layout in characters."""

    def __init__(self, layout: StripLayout, glyphs: _Glyphs, *, color: bool) -> None:
        self.layout = layout
        self.glyphs = glyphs
        self.color = color
        self.signs: set[str] = set()

    def lines(self) -> Iterable[Line]:
        """Yield the drawing, line by line."""
        if not self.layout.shown:
            yield [("", "no lane has anything to draw")]
        else:
            yield from self._axis()
            colors = self.layout.cell_colors()
            for track in self.layout.shown:
                headings, label = self.layout.labels[track]
                for heading in headings:
                    yield [(_BOLD, self._fit(heading, self.layout.width))]
                head = ("", self._fit(label, self.layout.label) + " ")
                if track in self.layout.counters:
                    yield [head, *self._counter(track)]
                else:
                    yield [head, *self._lane(track, colors.get(track, np.full(self.layout.cells, -1)))]
                    yield from self._marks(track)
            yield []
            yield from self._legend()
        yield from self._rules()

    def _fit(self, text: str, width: int) -> str:
        return fit_width(text, width, self.glyphs.ellipsis)

    def _axis(self) -> Iterable[Line]:
        unit, size = self._axis_unit()
        widest = len(str(int(self.layout.span / size))) + len(unit) + 3
        step = _nice(self.layout.span / size / self.layout.cells * widest)
        labels, ticks = [" "] * (self.layout.cells + widest), [" "] * self.layout.cells
        at = 0.0
        while True:
            cell = round(at * size / self.layout.span * self.layout.cells)
            text = f"{at:.10g}" + (f" {unit}" if not at else "")
            if cell >= self.layout.cells or cell + len(text) > self.layout.cells:
                break
            labels[cell : cell + len(text)] = text
            ticks[cell] = self.glyphs.tick
            at += step
        yield [("", " " * (self.layout.label + 7)), (_DIM, "".join(labels)[: self.layout.cells])]
        yield [("", fit_width("", self.layout.label) + " "), (_DIM, "busy  " + "".join(ticks))]

    def _axis_unit(self) -> tuple[str, int]:
        if self.layout.trace.time.time_unit != "ns":
            return self.layout.trace.time.time_unit, 1
        for unit, size in (("s", 10**9), ("ms", 10**6), (f"{self.glyphs.micro}s", 10**3)):
            if self.layout.span >= 2 * size:
                return unit, size
        return "ns", 1

    def _time(self, value: int) -> str:
        return format_duration(value, self.layout.trace.time.time_unit).replace("µ", self.glyphs.micro)

    def _lane(self, track: int, colors: Ints) -> Line:
        busy = self.layout.filled(track, *self.layout.time.slice_union)
        time = self.layout.time
        gap, tail, unrecorded = (
            self.layout.filled(track, *part) for part in (time.gaps, time.possibly_running, time.uncovered)
        )
        points = self._points(track)
        line: Line = [("", f"{_percent(int(self.layout.busy[track]), self.layout.span)}  ")]
        signs = self.glyphs
        for cell in range(self.layout.cells):
            if gap[cell] > 0 and gap[cell] >= busy[cell]:
                line.append((_GAP, self._sign(signs.gap)))
            elif busy[cell] > 0:
                level = min(max(int(np.ceil(busy[cell] * 8 - 1e-6)), 1), 8)
                line.append((f"38;5;{COLORS[colors[cell]]}" if colors[cell] >= 0 else "", signs.blocks[level - 1]))
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
        found = np.zeros(self.layout.cells, np.bool_)
        instants = self.layout.trace.instants
        found[self.layout.cell(instants.values("ts")[instants.values("track_id") == track])] = True
        group, begin, end = self.layout.time.extents
        found[self.layout.cell(begin[(group == track) & (begin == end)])] = True
        return found

    def _counter(self, track: int) -> Line:
        """Draw a counter's mean by cell, from the smaller of 0 and its lowest sample to its highest."""
        counters = self.layout.trace.counters
        mine = np.flatnonzero(counters.values("track_id") == track)
        mine = mine[np.argsort(counters.values("ts")[mine], kind="stable")]
        at = (counters.values("ts")[mine] - self.layout.begin).astype(np.float64)
        value = np.nan_to_num(counters.values("value")[mine])
        area = np.concatenate([[0.0], np.cumsum(value * np.diff(np.append(at, self.layout.span)))])
        held = np.interp(self.layout.edges, np.append(at, self.layout.span), area)
        known = np.maximum(self.layout.edges[1:] - np.maximum(self.layout.edges[:-1], at[0]), 0)
        mean = np.divide(np.diff(held), known, out=np.zeros(self.layout.cells), where=known > 0)
        low, high = min(float(value.min()), 0.0), max(float(value.max()), 0.0)
        level = np.clip((mean - low) / ((high - low) or 1.0) * 7.999, 0, 7).astype(int)
        drawn = "".join(self.glyphs.blocks[n] if k > 0 else " " for n, k in zip(level, known, strict=True))
        unit = str(self.layout.trace.tracks.values("unit")[track])
        least, most = (number_text(level, "value", unit).replace("µ", self.glyphs.micro) for level in (low, high))
        title = f"{least} to {most}" if low else f"to {most}"
        room = self.layout.cells - len(title) - 1
        # The highest value stands at the end of the line, over the drawing's last cells.
        return [("", "      "), (_DIM, drawn[:room] + " " + title if room > 8 else drawn)]

    def _marks(self, track: int) -> Iterable[Line]:
        """Yield a line of marks under a lane that has findings: where each begins, and its code where there is room."""
        mine = [f for f in self.layout.findings if f.location.track_id == track and f.location.ts is not None]
        if not mine:
            return
        row: list[tuple[str, str]] = [("", " ")] * self.layout.cells
        taken = [False] * self.layout.cells
        mine.sort(key=lambda finding: -SEVERITIES.index(finding.severity))
        at = self.layout.cell(np.array([finding.location.ts for finding in mine], np.int64)).tolist()
        for finding, cell in zip(mine, at, strict=True):
            if not taken[cell]:
                row[cell], taken[cell] = (_SEVERITY_STYLES[finding.severity], self.glyphs.mark), True
        for finding, cell in zip(mine, at, strict=True):
            text = f" {finding.code} {self.glyphs.times}{finding.count} "
            for first in (cell + 1, cell - len(text)):
                room = range(first, first + len(text))
                if first >= 0 and room.stop <= self.layout.cells and not any(taken[first : room.stop]):
                    for where, character in zip(room, text, strict=True):
                        row[where], taken[where] = (_SEVERITY_STYLES[finding.severity], character), True
                    break
        yield [("", " " * (self.layout.label + 7)), *_merged(row)]

    def _legend(self) -> Iterable[Line]:
        names = np.argsort(-self.layout.kind_time, kind="stable")
        names = names[self.layout.kind_time[names] > 0]
        entries: list[Line] = []
        for kind in names[:_NAMES_SHOWN].tolist():
            text = self._fit(escape(self.layout.kind_names[kind]), 32).rstrip()
            share = _percent(float(self.layout.kind_time[kind]), 1.0).strip()
            swatch = (f"38;5;{COLORS[int(self.layout.colors[kind])]}", f"{self.glyphs.swatch} ")
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
        if self.layout.begin:
            signs.append([(_DIM, f"0 on the axis is {self._time(self.layout.begin)}")])
        yield from self._flow(signs)
        rest = []
        if self.layout.left_out:
            left_out, busy = self.layout.left_out, self.layout.busy
            share = _percent(sum(int(busy[lane]) for lane in left_out), max(int(busy.sum()), 1)).strip()
            rest.append(f"{format_count(len(left_out), 'more lane')} with {share} of the busy time not drawn")
        if self.layout.counters_left_out:
            rest.append(f"{format_count(self.layout.counters_left_out, 'more counter')} not drawn")
        if rest:
            yield [(_DIM, self._fit("; ".join(rest), self.layout.width))]

    def _flow(self, entries: list[Line]) -> Iterable[Line]:
        """Yield the entries side by side, in as many lines as they need."""
        line: Line = []
        used = 0
        for entry in entries:
            size = sum(columns_of(text) for _, text in entry)
            if line and used + 3 + size > self.layout.width:
                yield line
                line, used = [], 0
            line += [("", "   "), *entry] if line else entry
            used += size + (3 if used else 0)
        if line:
            yield line

    def _rules(self) -> Iterable[Line]:
        """Yield what was found, a line for each rule and severity."""
        grouped: dict[tuple[str, str], list[Finding]] = {}
        for finding in self.layout.findings:
            grouped.setdefault((finding.severity, finding.code), []).append(finding)
        ranked = sorted(grouped, key=lambda key: (-SEVERITIES.index(key[0]), key[1]))
        for severity, code in ranked[:_RULES_SHOWN]:
            some = grouped[severity, code]
            lanes = len({finding.location.track_id for finding in some if finding.location.track_id is not None})
            total = sum(finding.count for finding in some)
            where = f" on {format_count(lanes, 'lane')}" if lanes else ""
            text = f" {some[0].title}, {self.glyphs.times}{total}{where}"
            mark = f"{self.glyphs.mark} {code} {severity}"
            yield [(_SEVERITY_STYLES[severity], mark), ("", self._fit(text, self.layout.width - len(mark)))]
        if len(ranked) > _RULES_SHOWN:
            yield [(_DIM, f"and {format_count(len(ranked) - _RULES_SHOWN, 'more rule')}")]


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

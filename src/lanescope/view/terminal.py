"""The lane strip: a timeline drawn with block characters, for a first look without leaving the terminal."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lanescope.trace import Table, Trace
from lanescope.view.text import count_text, escape, time_text

Floats = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]

_LEVELS = "▁▂▃▄▅▆▇█"
_IDLE, _LOST, _POINT, _MARK = "·", "░", "╷", "▲"
_ASCII = str.maketrans(_LEVELS + _IDLE + _LOST + _POINT + _MARK + "│─", ".:-=+*#@.x'^|-")
#: Colours that read well on dark and light backgrounds (256-colour codes).
_COLORS = (39, 208, 77, 170, 178, 44, 203, 105, 149, 67, 137, 211)
_DIM, _RED, _BOLD, _RESET = "\x1b[2m", "\x1b[31m", "\x1b[1m", "\x1b[0m"
_LABEL = 26


class Finding(Protocol):
    """What the strip needs of a finding: where it is (``place.track_id``, ``place.ts``)."""

    @property
    def place(self) -> Any: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class _Window:
    """The time that is drawn, and how many cells it has."""

    begin: int
    end: int
    cells: int

    @property
    def edges(self) -> Floats:
        return np.linspace(self.begin, self.end, self.cells + 1)

    def cell(self, ts: Int64) -> Int64:
        share = (ts - self.begin) / max(self.end - self.begin, 1)
        return np.clip((share * self.cells).astype(np.int64), 0, self.cells - 1)


def lane_strip(
    trace: Trace,
    *,
    findings: Sequence[Finding] = (),
    width: int | None = None,
    rows: int = 16,
    color: bool = False,
    ascii_only: bool = False,
) -> str:
    """Draw the lanes of a trace over a common time axis.

    The height of a block says how much of its cell is covered by slices, its colour what covers most of it. Time that
    was recorded and idle is dotted, lost time is hatched, and what was not recorded stays blank.

    Args:
        trace: the trace.
        findings: what ``check`` found: marked on a line of its own; their lanes are drawn first of all.
        width: columns; those of the terminal when not given.
        rows: lanes at most; how many are left out is said.
        color: whether to use colours.
        ascii_only: for terminals that cannot show block characters.
    """
    window = _window(trace, (width or shutil.get_terminal_size((100, 24)).columns) - _LABEL - 2)
    lanes, left_out = _choose(trace, findings, rows)
    if window is None or not lanes:
        return "(nothing to draw)"
    colors = _colors(trace)
    unit = trace.time.time_unit
    lines = [_axis(window, unit, color=color)]
    paths = _paths(trace.tracks)
    group = ""
    for lane in lanes:
        if paths[lane][:-1] and (title := " / ".join(paths[lane][:-1])) != group:
            group = title
            lines.append(
                (_BOLD if color else "") + _fit(escape(group), _LABEL + 1 + window.cells) + (_RESET if color else "")
            )
        lines.append(
            f"{_fit('  ' + escape(paths[lane][-1]), _LABEL)}│{_lane(trace, lane, window, colors, color=color)}"
        )
    marks = [finding.place.ts for finding in findings if finding.place.ts is not None]
    if marks:
        line = [" "] * window.cells
        for cell in window.cell(np.array(marks, np.int64)):
            line[cell] = _MARK
        text = "".join(line).rstrip()
        lines.append(f"{_fit('  findings', _LABEL)}│{_RED + text + _RESET if color else text}")
    lines.append(_legend(trace, colors, left_out, color=color))
    text = "\n".join(lines)
    return text.translate(_ASCII) if ascii_only else text


# --- what is drawn ------------------------------------------------------------------------------------------------


def _window(trace: Trace, cells: int) -> _Window | None:
    edges: list[int] = []
    for table in (trace.slices, trace.gaps, trace.coverage, trace.instants):
        if len(table):
            edges.append(int(table["ts"].min()))
            lengths = table["dur"] if "dur" in table.spec.names else 0
            edges.append(int((table["ts"] + lengths).max()))
    if not edges:
        return None
    return _Window(min(edges), max(max(edges), min(edges) + 1), max(cells, 10))


def _choose(trace: Trace, findings: Iterable[Finding], rows: int) -> tuple[list[int], int]:
    """Return the lanes to draw, in the order of the tree, and how many others hold something."""
    tracks = trace.tracks
    filled = np.zeros(len(tracks), np.bool_)
    for table in (trace.slices, trace.instants, trace.gaps):
        filled[np.unique(table["track_id"])] = True
    order = [lane for lane in _in_tree_order(tracks) if filled[lane] and tracks["kind"][lane] == "lane"]
    told = {finding.place.track_id for finding in findings} | set(trace.gaps["track_id"].tolist())
    # What is at fault is told first, but never so much of it that the sound lanes are not seen beside it.
    faulty = [lane for lane in order if lane in told][: rows // 2]
    chosen = set(faulty) | set([lane for lane in order if lane not in faulty][: rows - len(faulty)])
    return [lane for lane in order if lane in chosen], len(order) - len(chosen)


def _parents(tracks: Table) -> list[int]:
    parents: list[int] = np.where(tracks.valid("parent_id"), tracks["parent_id"], -1).tolist()
    return parents


def _in_tree_order(tracks: Table) -> list[int]:
    children: dict[int, list[int]] = {}
    parents = _parents(tracks)
    for row in np.lexsort((np.arange(len(tracks)), tracks["sort_key"])).tolist():
        children.setdefault(parents[row], []).append(row)
    order, stack = [], children.get(-1, [])[::-1]
    while stack:
        row = stack.pop()
        order.append(row)
        stack += children.get(row, [])[::-1]
    return order


def _paths(tracks: Table) -> list[list[str]]:
    parents, names = _parents(tracks), tracks["name"].tolist()
    paths = []
    for row in range(len(tracks)):
        path, at = [names[row]], parents[row]
        while at >= 0:
            path.append(names[at])
            at = parents[at]
        paths.append(path[::-1])
    return paths


def _covered(begin: Int64, end: Int64, edges: Floats) -> Floats:
    """Return how much of each cell the union of intervals covers, 0 to 1."""
    if not len(begin):
        return np.zeros(len(edges) - 1)
    order = np.argsort(begin, kind="stable")
    begin, reach = begin[order], np.maximum.accumulate(end[order])
    starts = np.flatnonzero(np.append(True, begin[1:] > reach[:-1]))
    first, last = begin[starts], reach[np.append(starts[1:], len(begin)) - 1]
    before = np.concatenate([[0.0], np.cumsum((last - first).astype(np.float64))])
    at = np.searchsorted(first, edges, side="right")
    total = before[at] - np.where(at > 0, np.maximum(last[np.maximum(at - 1, 0)] - edges, 0), 0)
    return np.clip(np.diff(total) / np.diff(edges), 0.0, 1.0)


def _lane(trace: Trace, lane: int, window: _Window, colors: dict[int, int], *, color: bool) -> str:
    slices = trace.slices.where(trace.slices["track_id"] == lane)
    ends = slices["ts"] + slices["dur"]
    is_open = ~slices.valid("dur")
    ends[is_open] = np.maximum(slices["last_seen_ts"][is_open], slices["ts"][is_open])
    edges = window.edges
    busy = _covered(slices["ts"], ends, edges)
    touched = np.zeros(window.cells, np.bool_)
    touched[window.cell(slices["ts"])] = len(slices) > 0
    points = np.zeros(window.cells, np.bool_)
    instants = trace.instants.where(trace.instants["track_id"] == lane)
    points[window.cell(instants["ts"])] = len(instants) > 0
    lost, recorded = (_part(table, lane, edges) for table in (trace.gaps, trace.coverage))
    if not len(trace.coverage):
        recorded = np.ones(window.cells)
    names = _dominant(slices, ends, edges, colors) if color else np.full(window.cells, -1)

    out, last = [], ""
    for cell in range(window.cells):
        style = ""
        if lost[cell] > 0 and busy[cell] < 0.5:
            character, style = _LOST, _RED
        elif busy[cell] > 0 or touched[cell]:
            character = _LEVELS[min(int(busy[cell] * 8), 7)]
            style = f"\x1b[38;5;{names[cell]}m" if names[cell] >= 0 else ""
        elif points[cell]:
            character = _POINT
        else:
            character, style = (_IDLE, _DIM) if recorded[cell] > 0 else (" ", "")
        if color and style != last:
            out.append(_RESET + style if last else style)
            last = style
        out.append(character)
    return "".join(out) + (_RESET if color and last else "")


def _part(table: Table, lane: int, edges: Floats) -> Floats:
    mine = table.where(table["track_id"] == lane)
    ends = mine["ts"] + mine["dur"]
    ends[~mine.valid("dur")] = int(edges[-1])
    return _covered(mine["ts"], ends, edges)


def _dominant(slices: Table, ends: Int64, edges: Floats, colors: dict[int, int]) -> Int64:
    """Return the colour of each cell: that of the innermost name which covers a good part of it."""
    names = slices.codes("name")
    cells = len(edges) - 1
    best, found = np.zeros(cells), np.full(cells, -1, np.int64)
    codes, counts = np.unique(names, return_counts=True)
    lengths = np.bincount(names, ends - slices["ts"], minlength=int(names.max(initial=-1)) + 1)
    # Long slices first, so that what is nested in them is painted over them.
    for code in sorted(codes.tolist(), key=lambda c: -lengths[c] / counts[codes == c][0])[-24:]:
        mine = names == code
        cover = _covered(slices["ts"][mine], ends[mine], edges)
        wins = (cover > 0.3) | (cover > best)
        best = np.where(wins, cover, best)
        found[wins & (cover > 0)] = colors[code]
    return found


# --- words around it ------------------------------------------------------------------------------------------------


def _colors(trace: Trace) -> dict[int, int]:
    """Return a colour for each name code; names that differ only in digits share one, as in the Perfetto UI."""
    dictionary = trace.slices.column("name").dictionary
    kinds: dict[str, int] = {}
    chosen = {}
    for code, text in enumerate(dictionary.texts if dictionary else []):
        kind = re.sub(r"\d+", "", text)
        chosen[code] = _COLORS[kinds.setdefault(kind, len(kinds)) % len(_COLORS)]
    return chosen


def _legend(trace: Trace, colors: dict[int, int], left_out: int, *, color: bool) -> str:
    parts = [f"█ busy  {_IDLE} idle"]
    if len(trace.gaps):
        parts.append(f"{_LOST} lost")
    if len(trace.coverage):
        parts.append("blank: not recorded")
    if left_out:
        parts.append(f"{count_text(left_out, 'more lane')} not drawn")
    line = " " * (_LABEL + 1) + "  ".join(parts)
    dictionary = trace.slices.column("name").dictionary
    if not color or dictionary is None or not dictionary.texts:
        return line
    lengths = np.bincount(trace.slices.codes("name"), trace.slices["dur"], minlength=len(dictionary.texts))
    named = [
        f"\x1b[38;5;{colors[code]}m█{_RESET} {escape(dictionary.texts[code])}"
        for code in np.argsort(-lengths, kind="stable")[:6].tolist()
        if lengths[code] > 0
    ]
    return line + "\n" + " " * (_LABEL + 1) + "  ".join(named)


def _axis(window: _Window, unit: str, *, color: bool) -> str:
    line = [" "] * (window.cells + 12)
    step = max(window.cells // 5, 14)
    for cell in range(0, window.cells - 6, step):
        offset = round((window.end - window.begin) * cell / window.cells)
        label = "│" + (time_text(offset, unit) if cell else f"+0 {unit}")
        line[cell : cell + len(label)] = label
    text = "".join(line).rstrip()
    start = time_text(window.begin, unit)
    return f"{_fit('  from ' + start, _LABEL)} {_DIM + text + _RESET if color else text}"


def _fit(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"

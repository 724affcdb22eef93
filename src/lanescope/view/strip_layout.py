"""Layout of a lane strip: lanes, names and their colors, content of each cell."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.partition import BUSY, by_state, partition
from lanescope.analysis.summary import covered_by
from lanescope.trace import Trace, row_packing
from lanescope.view.formatting import display_width as columns_of
from lanescope.view.formatting import escape

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

#: 256-colour codes that read well on dark and on light backgrounds.
COLORS = (33, 208, 35, 170, 178, 37, 203, 99, 71, 137, 205, 67, 142, 141, 131, 73)
SEVERITIES = ("notice", "warning", "error")

#: How deep a stack is told apart by colour.
_LEVELS = 8
#: How many slice pieces are cut at a time, so that memory stays bounded.
_PIECES = 1 << 22
_COUNTERS_SHOWN = 4
_WITHOUT_DIGITS = str.maketrans("", "", "0123456789")


class Finding(Protocol):
    """Attributes of a finding that the strip reads."""

    @property
    def code(self) -> str: ...  # noqa: D102
    @property
    def severity(self) -> str: ...  # noqa: D102
    @property
    def title(self) -> str: ...  # noqa: D102
    @property
    def location(self) -> Any: ...  # noqa: D102
    @property
    def count(self) -> int: ...  # noqa: D102


class StripLayout:
    """Content, position and colors of the cells.

    Args:
        trace: the trace.
        findings: what ``check.run`` found.
        width: columns.
        rows: how many lanes to draw at most.

    Attributes:
        time: the lanes' time; ``busy``: int64 [tracks], busy time of each.
        begin, span: of the time axis.
        shown: tracks that are drawn, in drawing order.
        counters: those of them that are counters.
        left_out: lanes that are not drawn; ``counters_left_out``: how many counters are not.
        labels: for each shown track the headings that come before it, and its label.
        label: columns of labels.
        cells: columns of the drawing; ``edges``: float64 [cells + 1], times between them, from ``begin``.
        kinds: int64 [names], kind of each name code.
        kind_names, kind_time: the text of each kind, and its share of the time that slices cover.
        colors: int64 [kinds], place in ``COLORS``.
    """

    def __init__(self, trace: Trace, findings: Sequence[Finding], width: int, rows: int) -> None:
        self.trace = trace
        self.findings = findings
        self.width = width
        self.time = LaneTime(trace)
        self.tree = self.time.tree
        self.busy = by_state(partition(self.time), len(self.tree))[:, BUSY]
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

    # --- which tracks -------------------------------------------------------------------------------------------------

    def _in_use(self) -> Iterable[int]:
        """Return the tracks that have rows."""
        found = np.zeros(len(self.tree), np.bool_)
        tables = (self.trace.slices, self.trace.instants, self.trace.counters)
        for track in (*(table.values("track_id") for table in tables), self.time.gaps.group):
            found[track[(track >= 0) & (track < len(found))]] = True
        return np.flatnonzero(found).tolist()

    def _choose(self, rows: int) -> list[int]:
        """Return the most telling lanes, and a few counters, in drawing order."""
        worst: dict[int, int] = {}
        for finding in self.findings:
            track = finding.location.track_id
            if track is not None and finding.severity != "notice":
                worst[track] = max(worst.get(track, 0), SEVERITIES.index(finding.severity))
        gaps = set(self.time.gaps.group.tolist())
        roles = self.trace.tracks.codes("role").tolist()
        busy = self.busy
        # Lanes of one role may do different work, as the groups of warps of a block: their names say so.
        kinds = [re.sub("[0-9]+", "#", name) for name in self.trace.tracks.values("name")]
        turn: dict[tuple[int, str], int] = {}
        ranked = []
        lanes = [lane for lane in self.tree.lanes.tolist() if lane in self.used]
        for lane in sorted(lanes, key=lambda lane: -int(busy[lane])):
            kind = roles[lane], kinds[lane]
            turn[kind] = turn.get(kind, 0) + 1
            ranked.append((-worst.get(lane, 0), lane not in gaps, turn[kind], -int(busy[lane]), lane))
        chosen = {entry[-1] for entry in sorted(ranked)[:rows]}
        self.left_out = [lane for lane in lanes if lane not in chosen]
        is_counter = self.trace.tracks.values("kind") == "counter"
        counters = [track for track in self.tree.order.tolist() if is_counter[track] and track in self.used]
        self.counters = set(counters[: min(_COUNTERS_SHOWN, max(rows // 4, 1))])  # room is for lanes first
        chosen |= self.counters
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
        """Return the kind of each name code, the text of each kind, and its share of the time that slices cover."""
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
        colors = np.array(hashes, np.int64) % len(COLORS)
        taken: set[int] = set()
        for kind in np.argsort(-self.kind_time, kind="stable")[: len(COLORS)].tolist():
            while int(colors[kind]) in taken:
                colors[kind] = (colors[kind] + 1) % len(COLORS)
            taken.add(int(colors[kind]))
        return colors

    # --- cells --------------------------------------------------------------------------------------------------------

    def cell(self, ts: Ints) -> Ints:
        """Return the cell in which each time lies."""
        return np.clip(((ts - self.begin) * (self.cells / self.span)).astype(np.int64), 0, self.cells - 1)

    def filled(self, track: int, group: Ints, begins: Ints, ends: Ints) -> Floats:
        """Return how much of each cell the disjoint intervals of a track cover, 0 to 1; ``group``: their tracks."""
        first, last = np.searchsorted(group, [track, track + 1]).tolist()
        if first == last:
            return np.zeros(self.cells)
        begin = (begins[first:last] - self.begin).astype(np.float64)
        length = (ends - begins)[first:last].astype(np.float64)
        before = np.concatenate([[0.0], np.cumsum(length)])
        times = np.stack([begin, begin + length], axis=1).reshape(-1)
        covered = np.stack([before[:-1], before[1:]], axis=1).reshape(-1)
        found: Floats = np.diff(np.interp(self.edges, times, covered)) / np.diff(self.edges)
        return found

    def cell_colors(self) -> dict[int, Ints]:
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
        first, last = self.cell(begin[rows]), self.cell(end[rows] - 1)
        begin_at, end_at = ((t[rows] - self.begin).astype(np.float64) for t in (begin, end))
        shape = (len(lanes), _LEVELS, self.cells, len(COLORS))
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
            time += np.bincount((key[row] + cell) * len(COLORS) + colors[row], np.maximum(length, 0), len(time))
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

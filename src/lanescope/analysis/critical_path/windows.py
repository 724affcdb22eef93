"""Windows and sinks: which stretches of time have a path, and the event at which each path ends."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.critical_path.event_graph import Mask
from lanescope.analysis.critical_path.trace_graph import TraceGraph
from lanescope.analysis.windows.window import moment
from lanescope.common.distinct import distinct
from lanescope.errors import UsageError
from lanescope.families.causes import NaturalWindow

_END = 1
#: Ordinals have so many digits at most.
_DIGITS = 18


class PathWindow(NamedTuple):
    """A window, and where its path ends.

    Attributes:
        name: what it is called; empty for the whole trace.
        begin: begin of the window.
        end: its end.
        sink: the node at which the path ends.
        cut: the node behind it whose piece reaches over the window's end; -1: nothing runs there.
        reason: why the path ends there.
        outlive: slices of it that begin inside and end behind.
        passed_over: slices without length, cause and effect that are later than the sink.
        passed_until: the last of their times; the sink's without any.
    """

    name: str
    begin: int
    end: int
    sink: int
    cut: int
    reason: str
    outlive: int
    passed_over: int = 0
    passed_until: int = 0


class WindowChoice(NamedTuple):
    """Which windows are wanted.

    Attributes:
        name: name of a slice or window, with ``#k`` for the kth one from 0; empty: those that the families declare.
        begin: begin of the only window, a text as ``lanescope.window`` takes it, or a time of the trace; None: that of
            the first slice.
        end: its end; None: that of the last slice.
        sink: path of the lane at whose last end the path ends, a glob pattern; empty: any.
        device: path of the device whose lanes count, likewise.
    """

    name: str = ""
    begin: str | int | None = None
    end: str | int | None = None
    sink: str = ""
    device: str = ""


class _Sinks:
    """Finds the event at which a path ends."""

    def __init__(self, made: TraceGraph) -> None:
        self.made = made
        graph = made.graph
        self.time, self.rows = graph.time, graph.rows
        nodes = graph.nodes
        self.row, self.event, self.linked = nodes["row"], nodes["event"], nodes["linked"]
        self.has_edges = np.zeros(len(made.cache.trace.tracks), bool)
        self.has_edges[self.rows.lane[self.row[graph.edges["target"]]]] = True
        # What takes no time, and that nothing caused and causes nothing, ends nothing: a scheduler's closing
        # record. Where there is nothing else, it counts.
        self.is_mark = self.rows.begin == self.rows.end
        self.is_mark[made.given.source] = self.is_mark[made.given.target] = False

    def whole(self, name: str, lanes: Mask | None, reason: str, *, of: Mask | None = None) -> PathWindow:
        """Return the window of all rows, or of those on some tracks, up to the last that may be a sink.

        Args:
            name: what it is called.
            lanes: the tracks whose events may be the sink, bool [tracks]; None: all.
            reason: why the path ends there.
            of: the tracks of the window, bool [tracks]; None: all.
        """
        rows = self.rows
        inside = np.ones(len(rows.lane), bool) if of is None else of[rows.lane]
        ending = inside & ~self.is_mark
        end = int(rows.end[ending if ending.any() else inside].max())
        return self.find(name, int(rows.begin[inside].min()), end, lanes, reason, reach=int(rows.end[inside].max()))

    def find(
        self, name: str, begin: int, end: int, lanes: Mask | None, reason: str, *, reach: int | None = None
    ) -> PathWindow:
        """Return the window whose path ends with the last event at or before its end.

        Args:
            name: what it is called.
            begin: its begin.
            end: its end.
            lanes: the tracks whose events may be the sink, bool [tracks]; None: all.
            reason: why it ends there.
            reach: until when rows count as passed over; None: the end.

        Raises:
            UsageError: nothing begins before the end.
        """
        rows = self.rows
        inside = np.ones(len(rows.lane), bool) if lanes is None else lanes[rows.lane]
        of_node = inside[self.row] & (self.time <= end)
        if not of_node.any():
            raise UsageError(f"no slice starts before the end of the window at {end:,}", hint="use a later --to")
        counts = of_node & ~self.is_mark[self.row]
        if counts.any():
            of_node = counts
        outlive = inside & (rows.begin >= begin) & (rows.begin < end) & (rows.end > end)
        last = int(self.time[of_node].max())
        running = np.flatnonzero(inside & (rows.begin < end) & (rows.end > end)) if last < end else ()
        cut = -1
        if len(running):
            begins = rows.begin[running]
            sink = int(self.made.graph.begin_of[running[np.flatnonzero(begins == begins.max())[0]]])
            while sink + 1 < len(self.time) and self.linked[sink + 1] and self.time[sink + 1] <= end:
                sink += 1
            cut = sink + 1
        else:
            nodes = np.flatnonzero(of_node & (self.time == last))
            row = self.row[nodes]
            order = np.lexsort((row, self.event[nodes] != _END, ~self.has_edges[rows.lane[row]]))
            sink = int(nodes[order[0]])
        found = PathWindow(name, begin, end, sink, cut, reason, int(np.count_nonzero(outlive)))
        ts = int(self.time[sink])
        over = rows.begin[inside & self.is_mark & (rows.begin > ts) & (rows.begin <= (end if reach is None else reach))]
        return found._replace(passed_over=len(over), passed_until=int(over.max(initial=ts)))

    def at_end_of(self, name: str, row: int, begin: int, end: int, reason: str) -> PathWindow:
        """Return the window whose path ends with the end of a row."""
        rows = self.rows
        outlive = (rows.begin >= begin) & (rows.begin < end) & (rows.end > end)
        sink = int(self.made.graph.end_of[row])
        return PathWindow(name, begin, end, sink, -1, reason, int(np.count_nonzero(outlive)))


def windows(made: TraceGraph, choice: WindowChoice) -> list[PathWindow]:
    """Return the windows that are wanted, each with its sink.

    Raises:
        UsageError: no window, lane or device is called so, or the window is empty.
    """
    if not len(made.slice_of):
        raise UsageError("the capture has no slices that work or wait", hint="see 'lanescope info CAPTURE'")
    sinks, rows = _Sinks(made), made.graph.rows
    lanes = _lanes(made, choice)
    why = "last end of lane " + choice.sink if choice.sink else "last end"
    why += f" on device {choice.device}" if choice.device else ""
    if choice.name:
        return [_named(made, sinks, choice.name, lanes, why)]
    if choice.begin is not None or choice.end is not None:
        first, last = int(rows.begin.min()), int(rows.end.max())
        begin = first if choice.begin is None else time_of(made.cache, "--start", choice.begin, is_end=False)
        end = last if choice.end is None else time_of(made.cache, "--end", choice.end, is_end=True)
        if begin >= end:
            hint = f"use times from {first:,} to {last:,}, the first one before the last"
            raise UsageError(f"the window from {begin:,} to {end:,} is empty", hint=hint)
        return [sinks.find("", begin, end, lanes, why)]
    if made.windows and lanes is None:
        return [_natural(made, sinks, window, None, why) for window in made.windows]
    if lanes is None:
        parts = _unjoined_devices(made)
        if len(parts) > 1:
            tree = made.cache.time.tree
            return [sinks.whole(tree.path(device), mask, "last end of the device", of=mask) for device, mask in parts]
    return [sinks.whole("", lanes, why)]


def time_of(cache: AnalysisCache, option: str, given: str | int, *, is_end: bool) -> int:
    """Return the time that a text, or an integer, asks for; errors as ``moment``, or the slice does not exist."""
    if isinstance(given, int):
        return given
    asked = moment(option, given)
    if asked.instance is not None:
        each = _instance(cache, asked.instance.name, asked.instance.ordinal, given)
        extents = cache.time.extents
        return int((extents.end if is_end else extents.begin)[each])
    first, last = cache.time.window
    return asked.offset + {"zero": 0, "first": first, "last": last}[asked.origin]


def _instance(cache: AnalysisCache, name: str, place: int, text: str, windows: Sequence[NaturalWindow] = ()) -> int:
    """Return the slice of a name that begins as the kth, from 0, from the last if negative."""
    code = cache.names.texts.index(name) if name in cache.names.texts else -1
    found = np.flatnonzero(cache.name_of == code)
    found = found[np.lexsort((cache.time.extents.end[found], cache.time.extents.begin[found]))]
    if not -len(found) <= place < len(found):
        known = [window.name for window in windows[:8]]
        hint = f"use 0 to {len(found) - 1}" if len(found) else "run 'lanescope summary CAPTURE' to list names"
        if known:
            hint = "use one of " + ", ".join(known)
        raise UsageError(f"no slice or window {text!r}: {len(found):,} slices of this name", hint=hint)
    return int(found[place])


def _lanes(made: TraceGraph, choice: WindowChoice) -> Mask | None:
    """Return the tracks whose events may be sinks, bool [tracks]; None: all."""
    if not choice.sink and not choice.device:
        return None
    tree = made.cache.time.tree
    paths = [tree.path(track) for track in range(len(tree))]
    found = np.ones(len(tree), bool)
    used = np.zeros(len(tree), bool)
    used[made.graph.rows.lane] = True
    if choice.sink:
        found &= np.array([_fits(path, choice.sink) for path in paths])
    if choice.device:
        devices = made.device_of
        found &= np.array([_fits(paths[device], choice.device) for device in devices.tolist()])
    if not (found & used).any():
        what = f"lane {choice.sink!r}" if choice.sink else f"device {choice.device!r}"
        among = sorted({paths[device] for device in made.device_of[used].tolist()})
        known = [paths[track] for track in np.flatnonzero(used).tolist()] if choice.sink else among
        raise UsageError(f"no {what} has slices", hint="use one of " + ", ".join(known[:8]))
    return found


def _fits(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or fnmatchcase(path.rpartition("/")[2], pattern)


def _named(made: TraceGraph, sinks: _Sinks, text: str, lanes: Mask | None, why: str) -> PathWindow:
    """Return the kth window or slice of a name."""
    natural = [window for window in made.windows if window.name == text]
    if natural:
        return _natural(made, sinks, natural[0], lanes, why)
    name, mark, number = text.rpartition("#")
    is_numbered = bool(mark) and number.removeprefix("-").isdecimal() and len(number) < _DIGITS
    name = name if is_numbered else text
    cache = made.cache
    each = _instance(cache, name, int(number) if is_numbered else 0, text, made.windows)
    begin, end = int(cache.time.extents.begin[each]), int(cache.time.extents.end[each])
    if begin == end:
        raise UsageError(f"{text!r} takes no time", hint="use another slice of the name")
    row = int(made.row_of[each])
    if row >= 0 and lanes is None:
        return sinks.at_end_of(text, row, begin, end, f"end of {name}")
    return sinks.find(text, begin, end, lanes, f"{why} in {name}")


def _natural(made: TraceGraph, sinks: _Sinks, window: NaturalWindow, lanes: Mask | None, why: str) -> PathWindow:
    name, begin, end = window.name, window.begin, window.end
    row = -1 if window.sink is None else int(made.row_of[window.sink])
    if row >= 0 and lanes is None:
        return sinks.at_end_of(name, row, begin, end, f"last end of {name}")
    return sinks.find(name, begin, end, lanes, f"{why} in {name}")


def _unjoined_devices(made: TraceGraph) -> list[tuple[int, Mask]]:
    """Return devices that no cause joins, each with the tracks of what is joined to it, bool [tracks]."""
    graph, device = made.graph, made.device_of
    roles = made.cache.trace.tracks.values("role")
    used = distinct(device[graph.rows.lane])
    parent = {int(each): int(each) for each in used}

    def root(each: int) -> int:
        while parent[each] != each:
            parent[each] = parent[parent[each]]
            each = parent[each]
        return each

    nodes, edges = graph.nodes["row"], graph.edges
    source = device[graph.rows.lane[nodes[edges["source"]]]]
    target = device[graph.rows.lane[nodes[edges["target"]]]]
    pairs = distinct(source * len(device) + target) if len(source) else source
    for pair in pairs.tolist():
        parent[root(pair // len(device))] = root(pair % len(device))
    joined: dict[int, list[int]] = {}
    for each in used.tolist():
        joined.setdefault(root(each), []).append(each)
    found = []
    for _, members in sorted(joined.items()):
        devices = [each for each in members if roles[each] == "device"]
        if devices:
            found.append((devices[0], np.isin(device, members)))
    return found

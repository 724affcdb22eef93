"""Causes that profiles of PyTorch show: launches, synchronising calls, copies that return, waits between streams."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints, known_extents
from lanescope.families import CauseEdges, CauseKind, Causes
from lanescope.foreign.kineto.analysis import device_rows
from lanescope.foreign.kineto.analysis.collectives import collectives
from lanescope.foreign.kineto.formats import layout
from lanescope.trace import Trace

Mask = npt.NDArray[np.bool_]

_SYNC = CauseKind("sync", 0)
_COPY_RETURN = CauseKind("copy return", 0, is_blocking=True)
_STREAM_WAIT = CauseKind("stream wait", 1)
_LAUNCH = CauseKind("launch", 3)
_INFERRED_WAIT = CauseKind("inferred stream wait", 8, is_inferred=True)
_OF_DEVICE = re.compile(r"(?:cuda|hip)DeviceSynchronize|cuCtxSynchronize")
_OF_STREAM = re.compile(r"(?:cuda|hip)(?:Stream|Event)Synchronize|cu(?:Stream|Event)Synchronize")
_COPIES = re.compile(r"(?:cuda|hip)Memcpy(?:2D|WithStream|Async)?$")
_TO_HOST = re.compile(r"DtoH|Device -> Host")
#: An inferred wait: a row begins so long after its last known arrival, so short after another stream's end, in ns.
_LATE, _NEAR = 20_000, 10_000
_NO_STREAM = -2
#: Role of the lanes of the profiler's own spans.
_PROFILER = "profiler"


class _Work(NamedTuple):
    """Rows of devices, by end; arrays [rows].

    Attributes:
        slice: int64.
        begin, end: int64.
        device, stream: int64, -2 where the profile does not say.
        launched: int64, begin of the call that launched it; the smallest number where none is known.
        correlation: int64, -1 where the profile has none.
    """

    slice: Ints
    begin: Ints
    end: Ints
    device: Ints
    stream: Ints
    launched: Ints
    correlation: Ints


def causes(trace: Trace, *, infer: bool) -> Causes:
    """Return what a trace shows of causes; annotations, Python calls and what the profiler shows of itself are views.

    Args:
        trace: the trace.
        infer: add waits between streams that are not recorded, where a row begins late and just after another stream's.
    """
    class_of = _classes(trace)
    is_work = class_of == layout.WORK
    shown = ~is_work & (class_of != layout.OP)
    extents = known_extents(trace.slices)
    input_of = trace.tracks.values("input_id")[trace.slices.values("track_id")]
    launches = CauseEdges.of_flows(_LAUNCH, trace, "submit")
    edges = [launches]
    hits = at_random = 0
    for number in distinct(input_of).tolist():  # streams and correlations of one rank have nothing to do with another's
        mine = input_of == number
        links = Links(trace, mine)
        work = _work(is_work & mine, extents, links, launches)
        edges += [*_returns(trace, extents, links, work, mine), _stream_waits(trace, extents, links, work, mine)]
        if infer:
            inferred, *counts = _inferred_waits(work, extents)
            edges.append(inferred)
            hits, at_random = hits + counts[0], at_random + counts[1]
    edges.append(collectives(trace, is_work, input_of, extents))
    return Causes(tuple(edges), views=shown, chance={_INFERRED_WAIT.name: (hits, at_random)} if infer else {})


def _classes(trace: Trace) -> Ints:
    """Return the class of each slice by its category, int64 [slices]."""
    categories = trace.slices.column("category").dictionary
    classes = [layout.CLASS_OF.get(text, layout.OP) for text in (categories.texts if categories is not None else [])]
    found: Ints = np.array([*classes, layout.OP], np.int64)[trace.slices.codes("category")]
    found[(found == layout.WORK) & ~device_rows.rows_of(trace, device_rows.ALL)] = layout.RANGE
    return found


def views(trace: Trace) -> Mask:
    """Return which lanes have annotations, Python calls, waits of streams, or the profiler itself; bool [tracks].

    A lane has slices of one class; one without slices counts by its role.
    """
    found: Mask = trace.tracks.values("role") == _PROFILER
    class_of = np.full(len(found), layout.OP)
    track = trace.slices.values("track_id")
    known = (track >= 0) & (track < len(found))
    class_of[track[known]] = _classes(trace)[known]
    found = found | ((class_of != layout.OP) & (class_of != layout.WORK))
    return found


class Links:
    """Numbers that rows share with others, by slice; int64 [slices], -1 or -2 where there are none."""

    def __init__(self, trace: Trace, mine: Mask | None = None) -> None:
        count = len(trace.slices)
        self.correlation = np.full(count, -1, np.int64)
        self.stream = np.full(count, _NO_STREAM, np.int64)
        self.device = np.full(count, _NO_STREAM, np.int64)
        ops = trace.details.get("kineto_ops")
        if ops is not None:
            for name in ("correlation", "stream", "device"):
                known = ops.valid(name)
                if mine is not None:
                    known = known & mine[ops.values("slice_id")]
                getattr(self, name)[ops.values("slice_id")[known]] = ops.values(name)[known]


def _work(is_work: Mask, extents: Intervals, links: Links, launches: CauseEdges) -> _Work:
    launched = np.full(len(is_work), np.iinfo(np.int64).min)
    launched[launches.target] = launches.source_ts
    rows = np.flatnonzero(is_work)
    rows = rows[np.argsort(extents.end[rows], kind="stable")]
    return _Work(
        rows,
        extents.begin[rows],
        extents.end[rows],
        links.device[rows],
        links.stream[rows],
        launched[rows],
        links.correlation[rows],
    )


def _returns(trace: Trace, extents: Intervals, links: Links, work: _Work, mine: Mask) -> tuple[CauseEdges, CauseEdges]:
    """Return what calls waited for before they returned: work that ended before, and that was launched before them."""
    dictionary = trace.slices.column("name").dictionary
    texts = dictionary.texts if dictionary is not None else []
    codes = trace.slices.codes("name")

    def named(pattern: re.Pattern[str]) -> Mask:
        return np.array([*(bool(pattern.match(text)) for text in texts), False], bool)[codes]

    is_device, is_stream, is_copy = named(_OF_DEVICE), named(_OF_STREAM), named(_COPIES)
    to_host = np.array([*(bool(_TO_HOST.search(text)) for text in texts), False], bool)[codes]
    by_async = np.array([*(text.endswith("Async") for text in texts), False], bool)[codes]
    closed = trace.slices.valid("dur")
    waits = {int(links.correlation[row]): row for row in _sync_rows(trace, links).tolist()}
    by_correlation: dict[int, int] = {}
    for place in np.flatnonzero(work.correlation >= 0).tolist():  # the last to end of each counts
        by_correlation[int(work.correlation[place])] = place
    synced: list[tuple[int, int]] = []
    finished = _Finished(work)
    before: dict[int, int] = {}  # the device call before, by thread
    track = trace.slices.values("track_id")
    calls = np.flatnonzero((is_device | is_stream) & closed & mine)
    for call in calls[np.argsort(extents.begin[calls], kind="stable")].tolist():
        stream = device = _NO_STREAM
        if is_stream[call]:
            wait = waits.get(int(links.correlation[call]), call)
            stream, device = int(links.stream[wait]), int(links.device[wait])
        last = finished.last(stream, device, int(extents.begin[call]), int(extents.end[call]))
        if last >= 0:
            synced.append((int(work.slice[last]), call))
        if last >= 0 and is_device[call]:
            known = before.get(int(track[call]), -1)
            others = finished.last_of_others(last, int(extents.begin[call]), int(extents.end[call]))
            synced += [
                (int(work.slice[row]), call)
                for row in others
                if known < 0 or work.launched[row] > extents.begin[known] or work.end[row] > extents.end[known]
            ]
            before[int(track[call])] = call
    returned: list[tuple[int, int]] = []
    for call in np.flatnonzero(is_copy & closed & (links.correlation >= 0)).tolist():
        found = by_correlation.get(int(links.correlation[call]))
        if found is None or work.end[found] > extents.end[call]:
            continue
        each = int(work.slice[found])
        if to_host[each] or not by_async[call]:
            returned.append((each, call))
    return _ends(_SYNC, synced, extents), _ends(_COPY_RETURN, returned, extents)


class _Finished:
    """Finds what ended last before a call returned, among what was launched before it."""

    #: Rows that are looked at together, from the last one back: mostly the first of them fits.
    _STEP = 256

    def __init__(self, work: _Work) -> None:
        self._work = work
        self._streams = set(work.stream.tolist())
        self._devices = set(work.device.tolist())
        self._rows: dict[tuple[int, int], tuple[Ints, Ints]] = {}
        self._streams_of: dict[int, list[int]] = {}

    def last(self, stream: int, device: int, begin: int, end: int) -> int:
        """Return the place of a row; -1 for none.

        Args:
            stream: the row's; any if it is negative, or no row has it.
            device: likewise.
            begin: the row was launched by then.
            end: it ended by then.
        """
        work = self._work
        key = stream if stream >= 0 and stream in self._streams else -1, device if device in self._devices else -1
        if key not in self._rows:
            fits = np.ones(len(work.slice), np.bool_)
            for wanted, column in zip(key, (work.stream, work.device), strict=True):
                fits &= (column == wanted) | (wanted < 0)
            chosen = np.flatnonzero(fits)
            self._rows[key] = chosen, work.end[chosen]
        rows, ends = self._rows[key]
        high = int(np.searchsorted(ends, end, "right"))
        while high > 0:
            low = max(high - self._STEP, 0)
            found = np.flatnonzero(work.launched[rows[low:high]] <= begin)
            if len(found):
                return int(rows[low + int(found[-1])])
            high = low
        return -1

    def last_of_others(self, last: int, begin: int, end: int) -> list[int]:
        """Return the place of what ended last on each other stream of a row's device: it, too, had to have ended."""
        work = self._work
        device = int(work.device[last])
        if device not in self._streams_of:
            self._streams_of[device] = distinct(work.stream[work.device == device]).tolist()
        streams = (each for each in self._streams_of[device] if each >= 0 and each != work.stream[last])
        found = (self.last(stream, device, begin, end) for stream in streams) if work.stream[last] >= 0 else ()
        return [row for row in found if row >= 0]


def _ends(kind: CauseKind, pairs: list[tuple[int, int]], extents: Intervals) -> CauseEdges:
    source, target = np.array(pairs, np.int64).reshape(-1, 2).T
    return CauseEdges(kind, source, extents.end[source], target, extents.end[target])


def _sync_rows(trace: Trace, links: Links) -> Ints:
    """Return the rows of waits on devices that have a correlation."""
    syncs = trace.details.get("kineto_syncs")
    rows: Ints = np.empty(0, np.int64) if syncs is None else syncs.values("slice_id")
    return rows[links.correlation[rows] >= 0]


def _stream_waits(trace: Trace, extents: Intervals, links: Links, work: _Work, mine: Mask) -> CauseEdges:
    """Return for waits on an event what was in its stream when it was recorded; what was launched next waited."""
    syncs = trace.details.get("kineto_syncs")
    pairs: list[tuple[int, int]] = []
    unplaced = 0
    if syncs is not None and len(syncs):
        launched = _Launched(work)
        calls: dict[int, int] = {}
        is_host = trace.tracks.values("role")[trace.slices.values("track_id")] == "host_thread"
        for row in np.flatnonzero(is_host & (links.correlation >= 0)).tolist():
            calls.setdefault(int(links.correlation[row]), row)
        known = syncs.valid("wait_stream") & syncs.valid("wait_correlation") & mine[syncs.values("slice_id")]
        kinds = syncs.values("sync_kind")
        for at in np.flatnonzero(known).tolist():
            if "Stream Wait" not in str(kinds[at]):
                continue
            wait = int(syncs.values("slice_id")[at])
            recorded = calls.get(int(syncs.values("wait_correlation")[at]))
            waiting = calls.get(int(links.correlation[wait]))
            if recorded is None or waiting is None:
                unplaced += 1
                continue
            before = launched.last_until(int(syncs.values("wait_stream")[at]), int(extents.begin[recorded]))
            behind = launched.first_from(int(links.stream[wait]), int(extents.begin[waiting]))
            if before < 0 or behind < 0:
                unplaced += 1
                continue
            pairs.append((int(work.slice[before]), int(work.slice[behind])))
    source, target = np.array(pairs, np.int64).reshape(-1, 2).T
    return CauseEdges(_STREAM_WAIT, source, extents.end[source], target, extents.begin[target], unplaced)


class _Launched:
    """Finds rows of a stream by when they were launched."""

    def __init__(self, work: _Work) -> None:
        self._work = work
        self._found: dict[int, tuple[Ints, Ints, Ints]] = {}

    def last_until(self, stream: int, ts: int) -> int:
        """Return the place of what ended last of what was launched until ``ts``; -1: nothing was."""
        launched, last, _ = self._of(stream)
        at = int(np.searchsorted(launched, ts, "right"))
        return int(last[at - 1]) if at else -1

    def first_from(self, stream: int, ts: int) -> int:
        """Return the place of what began first of what was launched from ``ts`` on; -1: nothing was."""
        launched, _, first = self._of(stream)
        at = int(np.searchsorted(launched, ts, "left"))
        return int(first[at]) if at < len(launched) else -1

    def _of(self, stream: int) -> tuple[Ints, Ints, Ints]:
        """Return the launches of a stream in order of time, and what each of the two questions has for an answer."""
        if stream not in self._found:
            rows = np.flatnonzero(self._work.stream == stream)
            rows = rows[np.argsort(self._work.launched[rows], kind="stable")]
            begin_order = np.lexsort((rows, self._work.begin[rows]))
            rank = np.empty(len(rows), np.int64)
            rank[begin_order] = np.arange(len(rows))
            first = rows[begin_order[np.minimum.accumulate(rank[::-1])[::-1]]]
            self._found[stream] = self._work.launched[rows], np.maximum.accumulate(rows), first
        return self._found[stream]


def _inferred_waits(work: _Work, extents: Intervals) -> tuple[CauseEdges, int, int]:
    """Return waits of rows for other streams of their device, how many there are, and how many at random times.

    The random times are as many, uniform in the same idle times, drawn from a fixed seed.
    """
    order = np.lexsort((work.begin, work.stream, work.device))
    same = (np.diff(work.device[order]) == 0) & (np.diff(work.stream[order]) == 0)
    rows, before = order[1:][same], order[:-1][same]
    arrival = np.maximum(work.end[before], work.launched[rows])
    late = work.begin[rows] - arrival > _LATE
    rows, arrival = rows[late], arrival[late]
    random = np.random.default_rng(1)
    times = arrival + _LATE + (random.random(len(rows)) * (work.begin[rows] - arrival - _LATE)).astype(np.int64)

    def near(ts: Ints) -> Ints:
        """Return the row of another stream that ended last before each time, where that was a moment ago; else -1."""
        found = np.full(len(ts), -1, np.int64)
        for place, (row, moment) in enumerate(zip(rows.tolist(), ts.tolist(), strict=True)):
            low, high = np.searchsorted(work.end, [moment - _NEAR, moment + 1])
            others = np.arange(low, high)
            others = others[(work.device[others] == work.device[row]) & (work.stream[others] != work.stream[row])]
            if len(others):
                found[place] = others[-1]
        return found

    found, at_random = near(work.begin[rows]), near(times)
    hit = found >= 0
    source, target = work.slice[found[hit]], work.slice[rows[hit]]
    edges = CauseEdges(_INFERRED_WAIT, source, extents.end[source], target, extents.begin[target])
    return edges, int(np.count_nonzero(hit)), int(np.count_nonzero(at_random >= 0))

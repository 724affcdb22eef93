"""Event graph of a trace: which slices are rows, what their families tell of causes, and what had to be left out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.critical_path.event_graph import (
    BACKWARD,
    CYCLIC,
    ENOUGH,
    EventGraph,
    GraphEdges,
    GraphRows,
    Mask,
    UnknownTimes,
)
from lanescope.analysis.work_classes import WAIT, WAITING_CALLS, classify
from lanescope.common.clock_order import ClockErrors
from lanescope.common.intervals import Ints, join
from lanescope.errors import InputError, MissingDependencyError, UsageError
from lanescope.families import registry
from lanescope.families.causes import CauseEdges, CauseFinder, CauseKind, Causes, NaturalWindow
from lanescope.trace import Flag, Trace

#: Times further from 0 cannot be added up in 64 bits.
_FAR = 1 << 59
#: Ranks of flows of families that do not declare their causes.
_RANKS = {"complete": 0, "dependency": 1, "signal": 1, "ready": 1, "dispatch": 3, "submit": 4}


class EdgeCounts(NamedTuple):
    """What became of the causes of one kind.

    Attributes:
        kind: the kind.
        kept: how many are in the graph.
        floor_ns: what one costs at least, the smallest over devices; 0 where too few are known.
        floor_count: how many lags were compared; 0 where they are too few.
        binding: how many of them bind their effect.
        backward: causes that are later than their effects, left out.
        undecided: such causes on another clock than their effects, by no more than the clocks' errors; left out, too.
        backward_max_ns: by how much at most.
        cyclic: causes of one time on a cycle, left out.
        unplaced: causes without slices on both sides, left out.
    """

    kind: CauseKind
    kept: int
    floor_ns: int
    floor_count: int
    binding: int
    backward: int
    undecided: int
    backward_max_ns: int
    cyclic: int
    unplaced: int


class TraceGraph:
    """The event graph of a trace.

    Attributes:
        cache: the trace.
        graph: its event graph; rows are slices that work or wait.
        slice_of: int64 [rows], slice of each row.
        row_of: int64 [slices], row of each slice, -1 for what is left out.
        windows: windows that have paths of their own.
        chance: of inferred kinds, hits and hits at random times.
        given: the causes between rows.
        rows_suspect: slices left out because of implausible timestamps.

    Args:
        cache: the trace.
        waits: names of further slices that wait, a regular expression.
        infer: add causes that follow from times only.

    Raises:
        UsageError: ``waits`` is not a regular expression.
        InputError: the families of the trace record no causes; the hint says what answers instead.
    """

    def __init__(self, cache: AnalysisCache, *, waits: str = "", infer: bool = False) -> None:
        self.cache = cache
        trace = cache.trace
        found = list(causes_of(trace, infer=infer))
        if found and all(causes.hint for causes in found):
            raise InputError("the capture records no causes: the critical path is not known", hint=found[0].hint)
        self.windows: tuple[NaturalWindow, ...] = tuple(window for causes in found for window in causes.windows)
        self.chance = {kind: counts for causes in found for kind, counts in causes.chance.items()}
        extents = cache.time.extents
        suspect = (trace.slices.values("flags") & np.uint32(Flag.CLOCK_SUSPECT)) != 0
        suspect |= (extents.begin < -_FAR) | (extents.end > _FAR)
        left_out = _either(len(suspect), (causes.views for causes in found))
        self.rows_suspect = int(np.count_nonzero(suspect & ~left_out))
        left_out |= suspect | (extents.group < 0) | (extents.group >= len(trace.tracks))
        self.slice_of = np.flatnonzero(~left_out)
        self.row_of = np.full(len(left_out), -1, np.int64)
        self.row_of[self.slice_of] = np.arange(len(self.slice_of))
        is_wait = _either(len(suspect), (causes.waits for causes in found)) | _named_waits(trace, waits)
        if any(causes.word_waits for causes in found):
            is_wait |= _word_waits(trace)
        mine = extents.take(self.slice_of) if left_out.any() else extents
        self._rows_made = rows = GraphRows(
            mine.group, mine.begin, mine.end, cache.name_of[self.slice_of], is_wait[self.slice_of]
        )
        self._edges = _merged(edges for causes in found for edges in causes.edges)
        kinds = tuple(edges.kind for edges in self._edges)
        self.edge_counts_unplaced = [edges.unplaced for edges in self._edges]
        self.given = self._graph_edges()
        self.graph = EventGraph(rows, self.given, kinds, trace.tracks.values("nesting").tolist())

    def _graph_edges(self) -> GraphEdges:
        """Return the causes between rows, and count those that are not; a slice without an end causes nothing there."""
        trace, extents = self.cache.trace, self.cache.time.extents
        is_open = ~trace.slices.valid("dur")
        columns: list[list[Ints]] = [[] for _ in range(6)]
        for number, edges in enumerate(self._edges):
            source, target = (_rows(self.row_of, slices) for slices in (edges.source, edges.target))
            places = np.clip(edges.source, 0, max(len(is_open) - 1, 0))
            left = is_open[places] & (edges.source_ts == extents.end[places]) if len(is_open) else is_open
            known = (source >= 0) & (target >= 0) & ~left
            known &= (np.abs(edges.source_ts) <= _FAR) & (np.abs(edges.target_ts) <= _FAR)
            self.edge_counts_unplaced[number] += int(np.count_nonzero(~known))
            count = int(np.count_nonzero(known))
            target_ts = edges.target_ts[known]
            if edges.kind.ends_wait:
                ends = self._rows_made.end[target[known]]
                target_ts = np.where(self._rows_made.waits[target[known]] & (target_ts <= ends), ends, target_ts)
            lanes = extents.group[self.slice_of[target[known]]]
            for column, values in zip(
                columns,
                (
                    source[known],
                    edges.source_ts[known],
                    target[known],
                    target_ts,
                    np.full(count, number, np.int64),
                    self.device_of[lanes],
                ),
                strict=True,
            ):
                column.append(values)
        return GraphEdges(*(np.concatenate([np.empty(0, np.int64), *column]) for column in columns))

    @cached_property
    def device_of(self) -> Ints:
        """The device of each track, int64 [tracks]: its nearest track of that role, else the topmost one."""
        tree, found = self.cache.time.tree, list(range(len(self.cache.time.tree)))
        is_device = (self.cache.trace.tracks.values("role") == "device").tolist()
        for track in tree.order.tolist():  # groups come before what is in them
            above = tree.parents[track]
            if above >= 0 and not is_device[track]:
                found[track] = found[above]
        return np.array(found, np.int64)

    @cached_property
    def gaps(self) -> UnknownTimes:
        """Times in which the state of lanes is unknown."""
        return UnknownTimes.of(self.cache.time.gaps, len(self.cache.trace.tracks))

    @cached_property
    def not_recorded(self) -> UnknownTimes:
        """Those times, and times in which lanes were not recorded."""
        return UnknownTimes.of(join(self.cache.time.gaps, self.cache.time.uncovered), len(self.cache.trace.tracks))

    @cached_property
    def clock_errors(self) -> ClockErrors:
        """How far times of different clocks may be apart from what they show."""
        return ClockErrors(self.cache.trace)

    def _undecided(self, rows: Ints) -> Mask:
        """Return which causes later than their effects are so by no more than the errors of two clocks, bool [n]."""
        given, lane = self.given, self.graph.rows.lane
        source_ts, target_ts = given.source_ts[rows], given.target_ts[rows]
        error = self.clock_errors.between(lane[given.source[rows]], source_ts, lane[given.target[rows]], target_ts)
        found: Mask = source_ts - target_ts <= error
        return found

    def edge_counts(self) -> list[EdgeCounts]:
        """Return what became of the causes, by kind."""
        graph, given = self.graph, self.given
        edges, binding = graph.edges, graph.nodes["binding"]
        binds = np.zeros(len(edges["kind"]), bool)
        binds[binding[binding >= 0]] = True
        found = []
        for number, kind in enumerate(graph.kinds):
            mine = edges["kind"] == number
            fate = edges["fate"][given.kind == number]
            backward = np.flatnonzero(given.kind == number)[fate == BACKWARD]
            undecided = self._undecided(backward)
            late = np.where(undecided, 0, (given.source_ts - given.target_ts)[backward])
            floor = edges["floor"][mine]
            found.append(
                EdgeCounts(
                    kind,
                    int(np.count_nonzero(mine)),
                    int(floor.min()) if len(floor) else 0,
                    len(floor) if len(floor) >= ENOUGH else 0,
                    int(np.count_nonzero(binds & mine)),
                    int(np.count_nonzero(late)),
                    int(np.count_nonzero(undecided)),
                    int(late.max(initial=0)),
                    int(np.count_nonzero(fate == CYCLIC)),
                    self.edge_counts_unplaced[number],
                )
            )
        return found


def causes_of(trace: Trace, *, infer: bool) -> Iterable[Causes]:
    """Yield what each family of a trace tells of causes; of those that declare nothing, the flows."""
    has_flows = False
    for name in dict.fromkeys(str(name) for name in trace.inputs.values("family").tolist()):
        make: CauseFinder | None
        try:
            make = registry.family(name).causes
        except (UsageError, MissingDependencyError):  # read from a folder; its family is not installed
            make = None
        if make is not None:
            yield make(trace, infer=infer)
        elif not has_flows:
            has_flows = True
            yield Causes(tuple(flow_edges(trace)))
    if not len(trace.inputs):
        yield Causes(tuple(flow_edges(trace)))


def flow_edges(trace: Trace) -> Iterable[CauseEdges]:
    """Yield the flows of a trace as causes, by kind."""
    codes, dictionary = trace.flows.codes("kind"), trace.flows.column("kind").dictionary
    for code, name in enumerate(dictionary.texts if dictionary is not None else ()):
        if (codes == code).any():
            yield CauseEdges.of_flows(CauseKind(name, _RANKS.get(name, 1)), trace, name)


def _merged(edges: Iterable[CauseEdges]) -> list[CauseEdges]:
    """Return the causes with one entry a kind, those that bind before others first."""
    by_name: dict[str, list[CauseEdges]] = {}
    for each in edges:
        by_name.setdefault(each.kind.name, []).append(each)
    found = [
        CauseEdges(
            parts[0].kind,
            np.concatenate([part.source for part in parts]),
            np.concatenate([part.source_ts for part in parts]),
            np.concatenate([part.target for part in parts]),
            np.concatenate([part.target_ts for part in parts]),
            sum(part.unplaced for part in parts),
        )
        for parts in by_name.values()
    ]
    return sorted(found, key=lambda edges: (edges.kind.rank, edges.kind.name))


def _rows(row_of: Ints, slices: Ints) -> Ints:
    """Return the rows of slices; -1 where there is none."""
    inside = (slices >= 0) & (slices < len(row_of))
    return np.where(inside, np.append(row_of, -1)[np.where(inside, slices, -1)], -1)


def _either(count: int, masks: Iterable[Mask | None]) -> Mask:
    found = np.zeros(count, bool)
    for mask in masks:
        if mask is not None:
            found |= mask
    return found


def _word_waits(trace: Trace) -> Mask:
    """Return which slices have a word for waiting in their names, bool [slices]."""
    dictionary = trace.slices.column("name").dictionary
    texts = dictionary.texts if dictionary is not None else []
    return np.array([*(classify(text) == WAIT for text in texts), False], bool)[trace.slices.codes("name")]


def _named_waits(trace: Trace, waits: str) -> Mask:
    """Return which slices wait because of their names, bool [slices]."""
    try:
        given = re.compile(waits) if waits else None
    except re.error as error:
        raise UsageError(f"invalid regular expression {waits!r}: {error}") from None
    dictionary = trace.slices.column("name").dictionary
    texts = dictionary.texts if dictionary is not None else []
    found = [bool(WAITING_CALLS.match(text) or (given is not None and given.search(text))) for text in texts]
    return np.array([*found, False], bool)[trace.slices.codes("name")]

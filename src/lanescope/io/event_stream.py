"""A trace laid out for a writer of packets: rows, events on them in time order, and flows between events.

An *event* is a span (a slice by its row, then a gap by its row plus the number of slices) or a point (plus the number
of spans): an instant of the trace, a finding, or an end of flows that have no slice there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.declaration import frozen_class, replace
from lanescope.errors import InternalError
from lanescope.io.viewer_names import finding_label
from lanescope.trace import Column, Dictionary, Table, Trace
from lanescope.trace.row_packing import Intervals, RowPacking, RowsById, place_intervals, rows_of

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
UInt8 = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

GAP, FLOW, FINDING = "lanescope.gap", "lanescope.flow", "lanescope.finding"

#: How a flow is drawn; the numbers are the encoder's.
_UNDRAWN, _TO_BEGIN, _TO_END, _TIED = range(4)


def joined(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """Return the parts end to end, contiguous; a single filled one without a copy."""
    filled = [part for part in parts if len(part)]
    return np.ascontiguousarray(filled[0] if len(filled) == 1 else np.concatenate(parts))


def encode_utf8(texts: Iterable[str]) -> core.PerfettoTexts:
    """Return texts as the encoder reads them: UTF-8 end to end, and offsets."""
    known = list(texts)
    joined = "".join(known)
    if joined.isascii():  # as nearly always: one character is one byte
        offsets = np.zeros(len(known) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, known), np.int64, len(known)), out=offsets[1:])
        return core.PerfettoTexts(np.frombuffer(joined.encode(), np.uint8), offsets)
    encoded = [text.encode("utf-8", "replace") for text in known]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(text) for text in encoded], out=offsets[1:])
    return core.PerfettoTexts(np.frombuffer(b"".join(encoded), np.uint8), offsets)


class Vocabulary:
    """The texts of several dictionaries end to end, so that one array of codes can refer to all of them."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._at: list[tuple[Dictionary, int]] = []

    def codes(self, column: Column) -> Int32:
        """Return the codes of a text column in this vocabulary, int32 [n]."""
        dictionary = column.dictionary or Dictionary()
        offset = next((at for known, at in self._at if known is dictionary), None)
        if offset is None:
            offset = len(self.texts)
            self._at.append((dictionary, offset))
            self.texts.extend(dictionary.texts)
        return column.values + np.int32(offset) if offset else column.values

    def same(self, text: str, count: int) -> Int32:
        """Return the code of one text, ``count`` times."""
        self.texts.append(text)
        return np.full(count, len(self.texts) - 1, np.int32)


def is_empty_column(column: Column) -> bool:
    """Return whether a text column is empty in all rows, without reading the rows."""
    texts = column.dictionary.texts if column.dictionary is not None else []
    constant = column.constant_value
    return len(column) == 0 or not any(texts) or (constant is not None and not texts[constant])


@frozen_class
class Points:
    """Events without a length.

    Attributes:
        track: int64 [n], row of the tracks table.
        ts: int64 [n], ns.
        name: int32 [n], codes into the names.
        category: int32 [n], codes into the categories.
    """

    track: Int64
    ts: Int64
    name: Int32
    category: Int32

    def __len__(self) -> int:
        return len(self.ts)


@frozen_class
class InTime:
    """Points or samples by track and time.

    Attributes:
        order: int64 [n], indices.
        ts: int64 [n], ns, along ``order``.
        start: int64 [tracks + 1], where each track begins in ``order``.
    """

    order: Int64
    ts: Int64
    start: Int64


@frozen_class
class Lanes:
    """The rows of the drawing that hold anything, by track and row.

    Attributes:
        track: int64 [rows], the track of each.
        row: int64 [rows], its number within the track.
        first: int64 [tracks], row 0 of each track that has any.
        ranges: int64 [rows, 6], where its spans, points and samples begin and end in their orders.
        file_order: int64 [rows], the order in which to write them.
    """

    track: Int64
    row: Int64
    first: Int64
    ranges: Int64
    file_order: Int64


@frozen_class
class FlowEvents:
    """What the flows do at events, grouped by event: those of event i are [first[i], first[i + 1]); by default none.

    Attributes:
        first: uint32 [events + 1]; empty: no flow meets any of the events.
        id: uint32 [ends], numbers of flows, from 1.
        end: uint8 [ends], what the flow does, as the encoder's ``FlowEnd``.
    """

    first: npt.NDArray[np.uint32] = np.empty(0, np.uint32)
    id: npt.NDArray[np.uint32] = np.empty(0, np.uint32)
    end: UInt8 = np.empty(0, np.uint8)


class FlowGroup(NamedTuple):
    """Flows that are numbered one after another: their kind, where their ends lie (``FLOW_PLACES``), how many."""

    kind: str
    source: str
    destination: str
    flows: int


#: Where an end of a flow lies: at the start of its slice or on an instant, at the end of its slice, elsewhere.
FLOW_PLACES = ("start", "end", "")


class EventStream:
    """A trace in drawing order.

    Args:
        trace: the trace.
        findings: judgements to draw, or None.
        groups_flows: number flows by kind and by the places of their ends.

    Attributes:
        tracks: how many tracks there are; ``extra_track`` is one more, for findings without a lane.
        extra_track: whether anything lies on it.
        names, categories: texts of all events.
        span_name, span_category: int32 [spans], of slices, then gaps; the latter is empty when none has a category, and
            a single one where all have the same.
        points: instants, then findings, then ends of flows; ``instants`` and ``findings`` count the first two.
        finding_table: the findings that are drawn: those with a time.
        placement: rows of the spans.
        points_in_time, samples_in_time: points and counter samples by track and time.
        lanes: the rows.
        span_flows, point_flows: what flows do.
        flows_drawn: how many flows can be drawn.
        flow_groups: if ``groups_flows``, what flows are, in the order of their numbers, drawn or not.
    """

    def __init__(self, trace: Trace, findings: Table | None, *, groups_flows: bool = False) -> None:
        self.tracks = len(trace.tracks)
        self._track_ids = trace.tracks.values("id")
        self._is_counter = trace.tracks.values("kind") == "counter"
        self.names, self.categories = Vocabulary(), Vocabulary()
        self._slice_ids, self._instant_ids = trace.slices.column("id"), trace.instants.column("id")

        self._spans = Intervals.of(trace.tracks, trace.slices, trace.gaps)
        self.span_name = self._span_names(trace)
        self.span_category = self._span_categories(trace)
        self.placement = place_intervals(self._spans, trace.tracks)
        self._require(np.flatnonzero(self.placement.rows), "slices and gaps", counter=False)

        # Rows without a time are not drawn: of a loss the gap is drawn, and a finding about it where the gap is.
        drawn = None if findings is None else findings.take(np.flatnonzero(findings.valid("ts")))
        self.finding_table = drawn
        self.instants, self.findings = len(trace.instants), 0 if drawn is None else len(drawn)
        parts = [self._instants(trace.instants)]
        if drawn is not None:
            parts.append(self._findings(drawn))
        source, destination, ends = self._flow_ends(trace)
        parts.append(ends)
        self.points = Points(
            joined([part.track for part in parts]),
            joined([part.ts for part in parts]),
            joined([part.name for part in parts]),
            joined([part.category for part in parts]),
        )
        self.extra_track = bool((self.points.track == self.tracks).any())

        sample_track = rows_of(self._track_ids, trace.counters.values("track_id"))
        self._require(sample_track, "samples", counter=True)
        count = self.tracks + 1
        self.points_in_time = _in_time(self.points.track, self.points.ts, count)
        self.samples_in_time = _in_time(sample_track, trace.counters.values("ts"), count)
        self.lanes = _lanes(self.placement, self.points_in_time.start, self.samples_in_time.start)
        self.span_flows, self.point_flows, self.flows_drawn = FlowEvents(), FlowEvents(), 0
        self.flow_groups: list[FlowGroup] = []
        if len(source):
            self._draw_flows(source, destination, trace.flows if groups_flows else None)
        del self._spans  # what writers need of it is in the placement

    def _require(self, track: Int64, what: str, *, counter: bool) -> None:
        """Refuse rows on no track, samples on anything but a counter, and all else on a counter."""
        if len(track) and (track.min() < 0 or bool((self._is_counter[track] != counter).any())):
            where = "something that is not a counter" if counter else "a counter"
            raise InternalError(f"{what} lie on no track or on {where}")

    def start(self) -> int | None:
        """Return the first time at which anything is drawn, at least 0; None when nothing is."""
        ranges = self.lanes.ranges
        times = (self.placement.begin, self.points_in_time.ts, self.samples_in_time.ts)
        firsts = []
        for column, ts in zip((0, 2, 4), times, strict=True):
            begin = ranges[:, column][ranges[:, column] < ranges[:, column + 1]]
            if len(begin):
                firsts.append(int(ts[begin].min()))
        return max(min(firsts), 0) if firsts else None

    @cached_property
    def slice_rows(self) -> RowsById:
        """The rows of slices by their ids."""
        return RowsById(self._slice_ids.read_once())

    @cached_property
    def instant_rows(self) -> RowsById:
        """The rows of instants by their ids."""
        return RowsById(self._instant_ids.read_once())

    # --- what is drawn ----------------------------------------------------------------------------------------

    def _span_names(self, trace: Trace) -> Int32:
        parts = [self.names.codes(trace.slices.column("name"))]
        if len(trace.gaps):
            parts.append(self.names.codes(trace.gaps.column("cause")))
        return joined(parts)

    def _span_categories(self, trace: Trace) -> Int32:
        category = trace.slices.column("category")
        if not len(trace.gaps):
            if is_empty_column(category):
                return np.empty(0, np.int32)
            if category.constant_value is not None:
                category = category.take(np.zeros(1, np.int64))
            return joined([self.categories.codes(category)])
        return joined([self.categories.codes(category), self.categories.same(GAP, len(trace.gaps))])

    def _instants(self, instants: Table) -> Points:
        track = rows_of(self._track_ids, instants.values("track_id"))
        self._require(track, "instants", counter=False)
        return Points(
            track,
            instants.values("ts"),
            self.names.codes(instants.column("name")),
            self.categories.codes(instants.column("category")),
        )

    def _findings(self, findings: Table) -> Points:
        count = len(findings)
        track = np.where(findings.valid("track_id"), rows_of(self._track_ids, findings.values("track_id")), -1)
        placed = track >= 0
        placed[placed] = ~self._is_counter[track[placed]]
        titles = Dictionary()
        codes = titles.codes(
            finding_label(code, severity, title)
            for code, severity, title in zip(
                *(findings.values(name) for name in ("code", "severity", "title")), strict=True
            )
        )
        return Points(
            np.where(placed, track, self.tracks),
            findings.values("ts"),
            self.names.codes(Column.array(codes, dictionary=titles)),
            self.categories.same(FINDING, count),
        )

    # --- flows ------------------------------------------------------------------------------------------------

    def _flow_ends(self, trace: Trace) -> tuple[Int64, Int64, Points]:
        """Return the event at either end of each flow, int64 [flows], and the points that had to be made for it."""
        flows = trace.flows
        count = len(flows)
        if not count:
            none = np.empty(0, np.int64)
            return none, none, Points(none, none, np.empty(0, np.int32), np.empty(0, np.int32))
        slices = self.slice_rows
        source, destination = (self._slices_of(slices, flows, f"{side}_slice_id") for side in ("src", "dst"))
        # Readers take whichever slice began first for the source. So what reaches a slice that was running already ends
        # at the moment of its arrival instead.
        left = flows.values("src_ts") if int(source.min()) < 0 else np.empty(0, np.int64)
        arrived, begun = flows.column("dst_ts").read_once(), self._spans.begin[: len(trace.slices)]
        times = (np.ascontiguousarray(ts) for ts in (left, arrived, begun))
        running = core.flows_running(source, destination, *times)
        del arrived, times
        if len(running):
            destination = destination.copy()
            destination[running] = -1
        if min(int(source.min()), int(destination.min())) >= 0:
            none = np.empty(0, np.int64)
            return source, destination, Points(none, none, np.empty(0, np.int32), np.empty(0, np.int32))
        event = np.concatenate([source, destination])
        bare = event < 0
        track, ts = (
            np.concatenate([flows.values(f"{side}_{name}") for side in ("src", "dst")])[bare]
            for name in ("track_id", "ts")
        )
        track = rows_of(self._track_ids, track)
        self._require(track, "ends of flows", counter=False)
        # Flows of one kind that meet at one place and time share one instant.
        kind = np.tile(self.names.codes(flows.column("kind")), 2)[bare]
        keys, point = np.unique(np.stack([track, ts, kind], 1), axis=0, return_inverse=True)
        event[bare] = len(self._spans) + self.instants + self.findings + point.reshape(-1)
        points = Points(keys[:, 0], keys[:, 1], keys[:, 2].astype(np.int32), self.categories.same(FLOW, len(keys)))
        return event[:count], event[count:], points

    @staticmethod
    def _slices_of(slices: RowsById, flows: Table, name: str) -> Int64:
        """Return the row of the slice at one end of each flow, int64 [flows], -1 without one."""
        rows = slices.find(flows.column(name).read_once())
        valid = flows.column(name).valid
        return np.ascontiguousarray(rows if valid is None else np.where(valid, rows, -1))

    def _draw_flows(self, source: Int64, destination: Int64, grouped: Table | None) -> None:
        """Bind each flow to one packet at either end, such that the reader meets its source first.

        The reader takes the ends of a flow in order of time, and at equal times in order of the file. Both are bound
        to begins. Where those are at one time, the destination is bound to its end; where it has none or no length, the
        order of the file decides. Their numbers count up, group by group where ``grouped`` says what they are.
        """
        spans, points = self._spans, self.points
        state = np.empty(len(source), np.uint8)
        length, known = spans.length, spans.known
        if core.flows_states(source, destination, spans.begin, length, known, np.ascontiguousarray(points.ts), state):
            tied = np.flatnonzero(state == _TIED)
            lane, position = self._places()
            from_lane, to_lane = lane[source[tied]], lane[destination[tied]]
            apart = from_lane != to_lane
            file_order = _sources_first(len(self.lanes.track), from_lane[apart], to_lane[apart])
            self.lanes = replace(self.lanes, file_order=file_order)
            rank = np.empty(len(self.lanes.track), np.int64)
            rank[self.lanes.file_order] = np.arange(len(rank))
            first = np.where(
                apart, rank[from_lane] < rank[to_lane], position[source[tied]] < position[destination[tied]]
            )
            state[tied] = np.where(first, _TO_BEGIN, _UNDRAWN)
        self.flows_drawn = int(np.count_nonzero(state))
        numbers = np.empty(0, np.uint32) if grouped is None else self._number_flows(grouped, source, destination)
        ends = source, destination, state, numbers
        self.span_flows = FlowEvents(*core.flows_by_event(*ends, 0, len(spans)))
        self.point_flows = FlowEvents(*core.flows_by_event(*ends, len(spans), len(points)))

    def _number_flows(self, flows: Table, source: Int64, destination: Int64) -> npt.NDArray[np.uint32]:
        """Number flows by kind and by the places of their ends, uint32 [flows], and note how many there are of each."""
        kinds = flows.column("kind")
        texts = kinds.dictionary.texts if kinds.dictionary is not None else []
        codes = np.empty(0, np.int32)
        if kinds.constant_value is not None:
            texts = [texts[kinds.constant_value]]
        elif len(texts) > 1:
            codes = np.ascontiguousarray(kinds.values)
        spans, points = self._spans, np.ascontiguousarray(self.points.ts)
        left, arrived = (np.ascontiguousarray(flows.column(name).read_once()) for name in ("src_ts", "dst_ts"))
        events = spans.begin, spans.length, spans.known, points
        sizes, numbers = core.flows_numbered(source, destination, left, arrived, *events, codes, len(texts))
        groups = [(text, left, right) for text in texts for left in FLOW_PLACES for right in FLOW_PLACES]
        self.flow_groups = [FlowGroup(*group, size) for group, size in zip(groups, sizes.tolist(), strict=True) if size]
        numbered: npt.NDArray[np.uint32] = numbers
        return numbered

    def _places(self) -> tuple[Int64, Int64]:
        """Return the row of ``lanes`` that each event lies on, and its place among events of one time there."""
        spans = len(self._spans)
        lane = self.lanes.first[np.concatenate([self._spans.track, self.points.track])]
        lane[:spans] += self.placement.row
        position = np.empty(len(lane), np.int64)
        position[self.placement.order] = np.arange(spans)
        position[spans + self.points_in_time.order] = np.arange(
            spans, len(lane)
        )  # points follow the begins of their time
        return lane, position


def _in_time(track: Int64, ts: Int64, tracks: int) -> InTime:
    count = len(ts)
    order, begin, end = (np.empty(count, np.int64) for _ in range(3))
    row, rows = np.empty(count, np.int32), np.empty(tracks, np.int32)
    track, ts = np.ascontiguousarray(track), np.ascontiguousarray(ts)
    flat, none = np.zeros(tracks, np.uint8), np.empty(0, np.uint8)
    try:  # what has no length shares no time, so each track stays on one row
        core.layout_place(track, ts, np.zeros(count, np.int64), none, flat, order, row, begin, end, rows)
    except (ValueError, OverflowError) as error:
        raise InternalError(f"instants cannot be placed: {error}") from error
    start = np.zeros(tracks + 1, np.int64)
    np.cumsum(np.bincount(track, minlength=tracks), out=start[1:])
    return InTime(order, begin, start)


def _lanes(placement: RowPacking, point_start: Int64, sample_start: Int64) -> Lanes:
    """Join the rows of the placement with the tracks that hold only points or samples."""
    tracks = len(point_start) - 1
    placed = np.zeros(tracks, np.int64)
    placed[: len(placement.rows)] = placement.rows
    bare = (np.diff(point_start) > 0) | (np.diff(sample_start) > 0)
    rows = np.maximum(placed, bare)
    first = np.cumsum(rows) - rows
    track = np.repeat(np.arange(tracks), rows)
    row = np.arange(len(track)) - first[track]
    ranges = np.zeros((len(track), 6), np.int64)
    holds_spans = row < placed[track]
    ranges[holds_spans, 0] = placement.row_start[:-1]
    ranges[holds_spans, 1] = placement.row_start[1:]
    head = row == 0
    for column, start in ((2, point_start), (4, sample_start)):
        ranges[head, column] = start[:-1][track[head]]
        ranges[head, column + 1] = start[1:][track[head]]
    return Lanes(track, row, first, ranges, np.arange(len(track)))


def _sources_first(lanes: int, before: Int64, after: Int64) -> Int64:
    """Return an order of the lanes in which ``before[i]`` precedes ``after[i]``, int64 [lanes].

    Lanes stay in natural order as far as that allows; of lanes that wait for one another the first goes first.
    """
    pairs = np.unique(np.stack([before, after], 1), axis=0)
    followers: dict[int, list[int]] = {}
    for source, destination in pairs.tolist():
        followers.setdefault(source, []).append(destination)
    waits = np.bincount(pairs[:, 1], minlength=lanes).tolist()
    ready = [lane for lane in range(lanes) if not waits[lane]]  # a heap: it is sorted
    stuck = iter(range(lanes))
    done = [False] * lanes
    order: list[int] = []
    while len(order) < lanes:
        lane = heapq.heappop(ready) if ready else next(lane for lane in stuck if not done[lane])
        if done[lane]:
            continue
        done[lane] = True
        order.append(lane)
        for follower in followers.get(lane, ()):
            waits[follower] -= 1
            if not waits[follower] and not done[follower]:
                heapq.heappush(ready, follower)
    return np.array(order, np.int64)

"""Assembly of a trace: the lanes of a buffer on one time axis, and the state that all emitters of rows share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.common.stat_tally import StatTally
from lanescope.devices.cuda.emit.tracks import Tree
from lanescope.devices.cuda.formats.buffer import Buffer, LaneSpan, Summary, WrapOffsets
from lanescope.devices.cuda.formats.lane_columns import LaneColumns
from lanescope.devices.cuda.formats.lanes import I64, STEP_BACK, U32, Rows
from lanescope.devices.cuda.formats.word_source import WordSource
from lanescope.devices.cuda.interpret.clock_fit import Timeline, at_rate, fit_clock
from lanescope.devices.cuda.interpret.names import UserNames
from lanescope.devices.cuda.schema import STATS, TABLES
from lanescope.source import Capture
from lanescope.trace import Column, TimeBase, TraceBuilder

Mask = npt.NDArray[np.bool_]

#: Empty lanes have a track if they are in few blocks: one, or up to this share of them; and in a grid of one block if
#: they are few themselves. No more than this number has one.
_EMPTY_SHARE, _MOST_EMPTY = 0.1, 100


class TraceAssembly:
    """The trace of one buffer while rows are added to it; ``grow`` comes before any of them.

    Args:
        capture: the capture.
        options: as ``family.options`` declares them.
        given: names of events and groups.
        buffer: the buffer, its headers understood.
        content: where it stands in the file.
        summary: of all lanes, as the core counts them.
        step: of the stamps' clock, in ticks; None: not known.

    Attributes:
        grid: the lanes.
        summary: the same, with times as whole ticks.
        turns: the wrap period of the counter that each lane starts in.
        extent: when lanes were begun and finalized, in ticks.
        timeline: how cycles become ns; None: ticks are ns, or nothing says.
        is_unplaced: ticks are cycles, and nothing relates those of two SMs.
        span: ``begin`` and ``end`` of each lane, int64 [lanes], as ``lane_ns`` has them.
        known: bool [lanes], lanes that anything is known of.
        empty: int64, the other lanes of the grid if they are few: they have a track, as records may be missing there.
        placed: bool [lanes], lanes that have a time.
        t0: the time at which the trace begins, as ``lane_ns`` has it.
        relaunched: whether a lane has records of several launches.
        builder: the trace.
        stats: what is counted of the input, for all parts of the buffer.
        device: name of the GPU.
        input_id: the buffer's file.
        tree: the tracks.
    """

    input_id: int
    tree: Tree

    def __init__(
        self,
        capture: Capture,
        options: Mapping[str, Any],
        given: UserNames,
        buffer: Buffer,
        content: WordSource,
        *,
        summary: Summary,
        step: int | None,
    ) -> None:
        self.capture, self.options, self.names = capture, options, given
        self.buffer, self.content, self.before = buffer, content, content.before + buffer.main_at
        self.grid = buffer.grid
        self.summary, self.step = summary, step
        self.stats = StatTally(STATS)
        self.device = options["device"] or buffer.describe().get("device", "GPU")
        self._place()

    def _place(self) -> None:
        """Place all lanes on one time axis."""
        buffer, summary, options = self.buffer, self.summary, self.options
        anchor = options["anchor"]
        if anchor is None and options["host_anchor"] is not None:
            anchor = options["host_anchor"][0]
        self.turns: WrapOffsets = buffer.turns(summary, anchor, STEP_BACK)
        used = summary["records"] > 0
        for name in ("first", "last", "min", "max"):
            summary[name] = np.where(used, summary[name] + self.turns.ticks, 0)
        self.extent: LaneSpan = buffer.extent(summary)
        summary["finalize"] = np.where(self.extent.ended, self.extent.end, 0)
        mhz = options["clock_mhz"]
        self.timeline: Timeline | None = None
        if (bounds := buffer.clock_bounds(summary, self.extent)) is not None:
            self.timeline = fit_clock(bounds, self._counters(), slope=None if mhz is None else 1000 / mhz)
        elif buffer.frequency_hz is not None:
            self.timeline = at_rate(buffer.frequency_hz, summary["min"][used], len(used))
        self.placed: Mask = used | self.extent.begun
        # Without a lane there is nothing to place, and nothing that keeps the buffer from being merged with others.
        self.is_unplaced = buffer.in_cycles and self.timeline is None and bool(self.placed.any())
        unit = "cycles" if self.is_unplaced else "ns"
        self.builder = TraceBuilder(TimeBase(epoch_kind="first_event", time_unit=unit), details=TABLES, stats=STATS)
        if self.is_unplaced:
            self._align_sms()
        lanes, extent = np.arange(len(used)), self.extent
        least, most = self.lane_ns(lanes, summary["min"]), self.lane_ns(lanes, summary["max"])
        begin = self.lane_ns(lanes, np.where(extent.begun, extent.begin, summary["min"]))
        end = self.lane_ns(lanes, np.where(extent.ended, extent.end, summary["max"]))
        self.span = LaneColumns(
            {
                "begin": np.where(used, np.minimum(begin, least), begin),
                "end": np.where(used, np.maximum(end, most), end),
            }
        )
        del least, most, begin, end
        self.known: Mask = used | (summary["missing"] > 0) | self.extent.begun
        self.empty = self._few_empty()
        # A buffer that lanes left nothing in begins when the host read the timer.
        read = [ticks for ticks, *_ in buffer.describe().get("anchors", ())[:1]]
        self.t0 = int(self.begin[self.placed].min()) if self.placed.any() else read[0] if read else 0
        self.relaunched = bool((summary["launches"] > 1).any())

    @property
    def begin(self) -> I64:
        """When each lane began, as ``lane_ns`` has it, int64 [lanes]."""
        return self.span["begin"]

    @property
    def end(self) -> I64:
        """When each lane ended, likewise."""
        return self.span["end"]

    def _few_empty(self) -> I64:
        """Return the lanes that the grid of the header has and that have no word, int64; none if they are many."""
        empty, grid = np.flatnonzero(~self.known), self.grid
        units, total = (grid.block, grid.num_blocks) if grid.num_blocks > 1 else (grid.group, len(grid))
        is_few = len(distinct(units[empty])) <= max(1, int(_EMPTY_SHARE * total)) and len(empty) <= _MOST_EMPTY
        return empty if is_few and self.known.any() else empty[:0]

    def _align_sms(self) -> None:
        """Let the counters of all SMs begin at the same time, since nothing relates them."""
        used, first = self.summary["records"] > 0, self.summary["min"]
        units, row = np.unique(self._counters(), return_inverse=True)
        earliest = np.full(len(units), np.iinfo(np.int64).max)
        np.minimum.at(earliest, row[used], first[used])
        self._origin = np.where(used, earliest[row], 0)

    def _counters(self) -> I64:
        """Return which counter each lane reads, int64 [lanes]: that of its SM unless the layout declares another."""
        if self.buffer.counters is not None:
            return self.buffer.counters
        return np.zeros(len(self.grid), np.int64) if self.grid.sm is None else self.grid.sm

    def grow(self, input_id: int, clock_of: I64) -> None:
        """Add the tracks of all lanes.

        Args:
            input_id: the buffer's file.
            clock_of: int64 [lanes], the clock of each lane.
        """
        self.input_id = input_id
        drawn = self.known.copy()
        drawn[self.empty] = True
        self.tree = Tree(self.builder, self.grid, drawn, clock_of, self.names.groups, self.device, input_id)

    # --- of rows ------------------------------------------------------------------------------------------------

    def lane_ns(self, lane: I64 | U32, ticks: I64) -> I64:
        """Return the times of ticks of lanes, int64 [n], not yet counted from ``t0``."""
        if self.timeline is not None:
            return self.timeline.ns(lane, ticks)
        return ticks - self._origin[lane] if self.is_unplaced else ticks

    def axis_origin(self, lane: int) -> int:
        """Return the reading of a lane's counter at ts = 0, of a buffer whose counters have no rate."""
        return int(self._origin[lane]) + self.t0

    def ns(self, rows: Rows, ticks: I64) -> I64:
        """Return the times of ticks of rows, int64 [n], counted from ``t0``."""
        if not self.buffer.in_cycles:
            return ticks - self.t0
        return self.lane_ns(rows.lane, ticks) - self.t0

    @property
    def best_quality(self) -> str:
        """What a row is at best: times that were mapped from cycles are estimated."""
        return "exact" if self.timeline is None or self.timeline.is_declared else "estimated"

    def resolution(self, dur: I64, valid: Mask | None) -> Column | None:
        """Return by less than what lengths are off, a column; None where nothing says."""
        count = len(dur)
        if self.is_unplaced or (self.timeline is None and self.step is None):
            return None
        if self.timeline is not None and self.timeline.slope_error is None:
            return None
        if self.timeline is None:
            return Column.constant(self.step, count, np.int64)
        timeline = self.timeline
        return Column.derived(count, lambda: timeline.resolution(dur), valid=valid)

    def identity(self, rows: Rows) -> dict[str, Any]:
        """Return the columns that say whose record a row is."""
        event, count, grid = rows["event"], len(rows), self.grid
        found: dict[str, Any] = {
            "launch": rows["launch"] if self.relaunched else 0,
            "block": Column.derived(count, lambda: grid.block[rows.lane]),
            "group": Column.derived(count, lambda: grid.group[rows.lane]),
            "event_id": Column.derived(count, lambda: self.event_numbers(event)),
        }
        if grid.sm is not None:
            sm = grid.sm
            valid = (
                None if (sm[self.known] >= 0).all() else rows.to_rows(sm[rows.base : rows.base + len(rows.counts)] >= 0)
            )
            found["sm"] = Column.derived(count, lambda: np.maximum(sm[rows.lane], 0), valid=valid)
        return found

    def carried(self, slots: Column) -> dict[str, Any]:
        """Return the columns of what the kernel stored with records at ``slots``."""
        token = self.buffer.tokens(slots.values) if self.buffer.has_tokens else None
        if token is None or not token.any():
            return {"payload": self.payload(slots)}
        return {"token": Column.array(token, valid=token != 0), "payload": self.payload(slots)}

    def payload(self, slots: Column) -> Column | None:
        """Return the payloads of records at ``slots``, a column; None: the layout has none."""
        if not self.buffer.has_payloads:
            return None
        values, valid = self.buffer.payloads(slots.values)
        if slots.valid is not None:
            valid = slots.valid if valid is None else valid & slots.valid
        return Column.array(values if valid is None else np.where(valid, values, np.uint64(0)), valid=valid)

    def event_names(self, rows: Rows, index: str, tick: str, is_end: Mask | None = None) -> Column:
        """Return the names of events as a column of codes; ends without begin are called ``end NAME?``."""
        event, known, dictionary = rows["event"], self.names.events, self.builder.names
        used = rows.events()
        code_of = np.zeros((2, 1 << 16), np.int32)
        ended = set() if is_end is None else set(rows.events(is_end))
        marked = set(used) if is_end is None else set(rows.events(~is_end))
        for number in used:
            name = self.event_name(number)
            if number in marked:
                code_of[0, number] = dictionary.code(name)
            if number in ended:
                code_of[1, number] = dictionary.code(f"end {name}?")
        if known is not None:
            unknown = [number for number in used if self._number(number) not in known]
            if unknown:
                self.stat_rows("cuda_unknown_event", np.isin(event, unknown), rows, index, tick)
        if is_end is None:
            return Column.derived(len(event), lambda: rows.look_up(code_of[0]), dictionary=dictionary)
        return Column.derived(len(event), lambda: code_of[is_end.astype(np.intp), event], dictionary=dictionary)

    def event_numbers(self, event: npt.NDArray[np.uint16]) -> I64:
        """Return the numbers of events, int64 [n], from their codes."""
        ids = self.buffer.event_ids
        return event.astype(np.int64) if ids is None else ids[event]

    def _number(self, code: int) -> int:
        ids = self.buffer.event_ids
        return code if ids is None else int(ids[code])

    def event_name(self, code: int) -> str:
        """Return the name of an event from its code: the given one, or that of the layout."""
        number = self._number(code)
        return (self.names.events or {}).get(number) or self.buffer.event_names.get(number) or f"event_{number}"

    # --- facts --------------------------------------------------------------------------------------------------

    def offsets(self, lane: I64 | U32, index: U32) -> I64:
        """Return where records stand in the file, int64 [n] bytes."""
        return self.before + self.buffer.slots_of(lane, index) * self.buffer.unit_bytes

    def stat_rows(self, name: str, mask: Mask, rows: Rows, index: str, tick: str, *, by_lane: bool = False) -> None:
        """Count the rows under ``mask``, with the place of the first; ``by_lane``: of each lane."""
        offset, ts = self._offset_of(rows, index), self._ts_of(rows, tick)
        if not by_lane:
            # Where lanes may join records, others of the kind are counted elsewhere.
            self.stats.add_rows(name, mask, offset=offset, ts=ts, by_offset=self.buffer.has_special)
            return
        found = np.flatnonzero(mask)
        # Rows come lane after lane, so stats do as well, however the lanes are cut into parts.
        lanes, first, counts = np.unique(rows.lane[found], return_index=True, return_counts=True)
        for at, row, count in zip(lanes.tolist(), found[first].tolist(), counts.tolist(), strict=True):
            self.stats.add(name, count, offset=offset(row), ts=ts(row), track=int(self.tree.lane[at]))

    def stat_flagged(self, name: str, flag: int, rows: Rows, index: str, tick: str) -> None:
        """Count the rows that have a flag, with the place of the first."""
        count, row = core.cuda_flagged(rows["flags"], flag)
        if count:
            self.stats.add(name, count, offset=self._offset_of(rows, index)(row), ts=self._ts_of(rows, tick)(row))

    @staticmethod
    def _lane_of(rows: Rows, row: int) -> I64:
        return np.searchsorted(np.cumsum(rows.counts), [row], side="right").astype(np.int64) + rows.base

    def _offset_of(self, rows: Rows, index: str) -> Callable[[int], int]:
        return lambda row: int(self.offsets(self._lane_of(rows, row), rows[index][row : row + 1])[0])

    def _ts_of(self, rows: Rows, tick: str) -> Callable[[int], int]:
        return lambda row: int(self.lane_ns(self._lane_of(rows, row), rows[tick][row : row + 1])[0]) - self.t0

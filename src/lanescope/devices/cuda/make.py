"""Decoded lanes -> the rows of a trace, for every layout alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda import facts, names, unknown
from lanescope.devices.cuda.buffer import Buffer, Extent, Summary, Turns
from lanescope.devices.cuda.clocks import Timeline
from lanescope.devices.cuda.content import Content
from lanescope.devices.cuda.joined import Joined
from lanescope.devices.cuda.lanes import I64, STEP_BACK, U32, Decoded, Rows
from lanescope.devices.cuda.schema import MARKS, REGIONS, STATS, TABLES
from lanescope.devices.cuda.tree import Tree
from lanescope.source import Capture
from lanescope.trace import Column, Flag, TimeBase, Trace, TraceBuilder
from lanescope.trace.stats import CORE_STATS

Mask = npt.NDArray[np.bool_]

#: Records that are decoded at a time where the whole does not have to be in memory.
PART_RECORDS = 1 << 20
#: The timer counts nanoseconds.
TIMER_HZ = 1_000_000_000

REGION, ASYNC, MARK, UNMATCHED = "region", "async", "mark", "unmatched_end"

#: Flags of slices that are counted as a stat each.
_FLAG_STATS = {
    Flag.OPEN_END: "cuda_open_region",
    Flag.NEGATIVE: "cuda_negative",
    Flag.CROSSES: "cuda_crossing",
    Flag.BELOW_RESOLUTION: "cuda_below_resolution",
}


class Maker:
    """Makes the trace of one buffer, lanes by lanes.

    Args:
        capture: the capture.
        options: as ``family.options`` declares them.
        given: names of events and groups.
        buffer: the buffer, its headers understood.
        content: where it stands in the file.
    """

    def __init__(
        self, capture: Capture, options: Mapping[str, Any], given: names.Given, buffer: Buffer, content: Content
    ) -> None:
        self.capture, self.options, self.names = capture, options, given
        self.buffer, self.content, self.before = buffer, content, content.before
        self.grid = buffer.grid
        self._stats: dict[str, tuple[int, int | None, int | None]] = {}
        self.device = options["device"] or buffer.describe().get("device", "GPU")

    def batches(self) -> Iterator[Trace]:
        """Yield the trace in batches of about ``PART_RECORDS`` records."""
        buffer, options = self.buffer, self.options
        parts = buffer.parts(PART_RECORDS)
        rules = {"split": options["multi"] == "split", "step_back": STEP_BACK}
        # Nothing can be placed before all lanes are known, so many parts are decoded twice: memory, not time, is short.
        summaries, steps = [], []
        for part in parts:
            decoded = buffer.decode(part, **rules)
            summaries.append(decoded.summary)
            steps.append(decoded.tick_step)
        self.summary: Summary = {
            name: np.concatenate([s[name] for s in summaries]) if len(parts) > 1 else summaries[0][name]
            for name in summaries[0]
        }
        self.step = _common_step(summaries, steps)
        self._place()
        for number, part in enumerate(parts):
            piece = decoded if len(parts) == 1 else buffer.decode(part, **rules)
            if piece.tick_step != self.step:
                _mark_below_resolution(piece, self.step)
            self._part(piece)
            if number + 1 < len(parts):
                yield self.builder.batch()
        unknown.overruns(self)
        unknown.lane_details(self)
        facts.add(self)
        self._count()
        name, make = buffer.raw()
        before = self.before
        self.builder.records(name, lambda: make(before))
        yield self.builder.finish()

    # --- all lanes ----------------------------------------------------------------------------------------------

    def _place(self) -> None:
        """Place all lanes on one time axis and add their tracks."""
        buffer, summary, options = self.buffer, self.summary, self.options
        anchor = options["anchor"]
        if anchor is None and options["host_anchor"] is not None:
            anchor = options["host_anchor"][0]
        self.turns: Turns = buffer.turns(summary, anchor, STEP_BACK)
        used = summary["records"] > 0
        for name in ("first", "last", "min", "max"):
            summary[name] = np.where(used, summary[name] + self.turns.ticks, 0)
        self.extent: Extent = buffer.extent(summary)
        summary["finalize"] = np.where(self.extent.ended, self.extent.end, 0)
        mhz = options["clock_mhz"]
        self.timeline: Timeline | None = buffer.timeline(summary, self.extent, step=self.step, mhz=mhz)
        self.placed: Mask = used | self.extent.begun
        # Without a lane there is nothing to place, and nothing that keeps the buffer from being merged with others.
        self.is_unplaced = buffer.in_cycles and self.timeline is None and bool(self.placed.any())
        unit = "cycles" if self.is_unplaced else "ns"
        self.builder = TraceBuilder(TimeBase(epoch_kind="first_event", time_unit=unit), details=TABLES, stats=STATS)
        if self.is_unplaced:
            self._align_sms()
        lanes = np.arange(len(used))
        self.begin = self.lane_ns(lanes, np.where(self.extent.begun, self.extent.begin, summary["min"]))
        self.begin = np.where(used, np.minimum(self.begin, self.lane_ns(lanes, summary["min"])), self.begin)
        self.end = self.lane_ns(lanes, np.where(self.extent.ended, self.extent.end, summary["max"]))
        self.end = np.where(used, np.maximum(self.end, self.lane_ns(lanes, summary["max"])), self.end)
        self.known: Mask = used | (summary["missing"] > 0) | self.extent.begun
        # A buffer that lanes left nothing in begins when the host read the timer.
        read = [ticks for ticks, *_ in buffer.describe().get("anchors", ())[:1]]
        self.t0 = int(self.begin[self.placed].min()) if self.placed.any() else read[0] if read else 0
        self.relaunched = bool((summary["launches"] > 1).any())
        self.input_id = facts.inputs(self)
        self.tree = Tree(
            self.builder,
            self.grid,
            self.known,
            facts.clocks(self),
            self.names.groups,
            self.device,
            self.input_id,
        )
        self.joined = Joined(self)

    def _align_sms(self) -> None:
        """Let the counters of all SMs begin at the same time, since nothing relates them."""
        used, first = self.summary["records"] > 0, self.summary["min"]
        sm = np.zeros(len(used), np.int64) if self.grid.sm is None else self.grid.sm
        units, row = np.unique(sm, return_inverse=True)
        earliest = np.full(len(units), np.iinfo(np.int64).max)
        np.minimum.at(earliest, row[used], first[used])
        self._origin = np.where(used, earliest[row], 0)

    def lane_ns(self, lane: I64 | U32, ticks: I64) -> I64:
        """Return the times of ticks of lanes, int64 [n], not yet counted from ``t0``."""
        if self.timeline is not None:
            return self.timeline.ns(lane, ticks)
        return ticks - self._origin[lane] if self.is_unplaced else ticks

    def ns(self, rows: Rows, ticks: I64) -> I64:
        """Return the times of ticks of rows, int64 [n], counted from ``t0``."""
        if not self.buffer.in_cycles:
            return ticks - self.t0
        return self.lane_ns(rows.lane, ticks) - self.t0

    # --- rows of some lanes -------------------------------------------------------------------------------------

    def _part(self, decoded: Decoded) -> None:
        lanes = slice(decoded.base, decoded.base + len(decoded.summary["records"]))
        decoded.move(self.turns.ticks[lanes])
        self._doubt(decoded, lanes)
        first = self._slices(decoded)
        rows, where = decoded.instants, None
        if self.buffer.has_special and len(rows):
            where = self.joined.add(decoded, first)
        self._instants(rows, where)
        unknown.missing(self, decoded)

    def _doubt(self, decoded: Decoded, lanes: slice) -> None:
        """Flag what the turns of the lanes leave open, and take back what they prove."""
        ambiguous = np.uint32(Flag.EPOCH_AMBIGUOUS)
        for rows in (decoded.slices, decoded.instants):
            flags = rows["flags"]
            if self.turns.sure is not None and self.summary["jumps"][lanes].any():
                flags &= ~np.where(rows.spread(self.turns.sure[lanes]), ambiguous, np.uint32(0))
            if self.turns.doubtful is not None:
                flags |= np.where(rows.spread(self.turns.doubtful[lanes]), ambiguous, np.uint32(0))
            if self.timeline is not None and self.timeline.contradicts.any():
                suspect = np.uint32(Flag.CLOCK_SUSPECT)
                flags |= np.where(rows.spread(self.timeline.contradicts[lanes]), suspect, np.uint32(0))
        if self.turns.doubtful is not None:
            decoded.seen |= Flag.EPOCH_AMBIGUOUS
        if self.timeline is not None and self.timeline.contradicts.any():
            decoded.seen |= Flag.CLOCK_SUSPECT

    @property
    def best_quality(self) -> str:
        """What a row is at best: times that were mapped from cycles are estimated."""
        return "exact" if self.timeline is None else "estimated"

    def _slices(self, decoded: Decoded) -> int:
        """Add slices; return the id of the first."""
        rows, seen = decoded.slices, decoded.seen
        begin, ticks, flags = rows["begin"], rows["dur"], rows["flags"]
        count = len(rows)
        if not count:
            return 0
        valid = last_seen = is_open = end_valid = None
        mapped = self.timeline is not None
        ts = Column.derived(count, lambda: self.ns(rows, begin))
        dur = ticks
        if mapped:
            ts = Column.array(self.ns(rows, begin))
            dur = self.ns(rows, begin + ticks) - ts.values
        dur_ticks = ticks
        quality: Any = self.best_quality
        if seen & (Flag.OPEN_END | Flag.NEGATIVE):
            is_open = (flags & np.uint32(Flag.OPEN_END)) != 0
            end_valid = ~is_open
            valid = end_valid & ((flags & np.uint32(Flag.NEGATIVE)) == 0)
            last_seen = np.where(is_open, ts.values + dur, 0)
            dur, dur_ticks = np.where(valid, dur, 0), np.where(valid, ticks, 0)
        if seen & Flag.INFERRED_IDENTITY:
            qualities = self.builder.dictionary("slices", "quality")
            inferred = (flags & np.uint32(Flag.INFERRED_IDENTITY)) != 0
            quality = np.where(inferred, qualities.code("inferred"), qualities.code(quality)).astype(np.int32)
        length = Column.array(dur, valid=valid)
        track_of = self._tracks(decoded)
        first = self.builder.append(
            "slices",
            track_id=Column.derived(count, lambda: rows.spread(track_of)),
            ts=ts,
            dur=length,
            ts_ticks=Column.array(begin),
            dur_ticks=Column.array(dur_ticks, valid=valid) if mapped else length,
            name=self.event_names(rows, "begin_index", "begin"),
            category=REGION,
            quality=quality,
            flags=flags if seen else 0,
            last_seen_ts=last_seen,
            last_seen_ts_valid=is_open,
        )
        for flag, stat in _FLAG_STATS.items():
            if seen & flag:
                self.stat_rows(stat, (flags & np.uint32(flag)) != 0, rows, "begin_index", "begin")
        slots_of, begin_index, end_index = self.buffer.slots_of, rows["begin_index"], rows["end_index"]

        def end_slots() -> I64:
            slots = slots_of(rows.lane, end_index)
            return slots if end_valid is None else np.where(end_valid, slots, 0)

        begins = Column.derived(count, lambda: slots_of(rows.lane, begin_index))
        ends = Column.derived(count, end_slots, valid=end_valid)
        self.builder.append(
            REGIONS.name,
            slice_id=counting(first, count),
            begin_slot=begins,
            end_slot=ends,
            resolution_ns=self.resolution(dur, valid),
            end_payload=self.payload(ends),
            **self.identity(rows),
            **self.carried(begins),
        )
        return first

    def _tracks(self, decoded: Decoded) -> I64:
        return self.tree.lane[decoded.base : decoded.base + len(decoded.summary["records"])]

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
            "event_id": Column.derived(count, lambda: event.astype(np.int64)),
        }
        if grid.sm is not None:
            sm = grid.sm
            valid = (
                None if (sm[self.known] >= 0).all() else rows.spread(sm[rows.base : rows.base + len(rows.counts)] >= 0)
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

    def _instants(self, rows: Rows, where: Mask | None) -> None:
        """Add the instants, those under the mask ``where`` only."""
        if where is not None:
            rows = subset(rows, where)
        tick, index = rows["tick"], rows["index"]
        count = len(rows)
        if not count:
            return
        is_end = rows["is_end"] != 0
        marks, ends = self.builder.categories.code(MARK), self.builder.categories.code(UNMATCHED)
        slots_of = self.buffer.slots_of
        first = self.builder.append(
            "instants",
            track_id=self.tree.lane[rows.lane],
            ts=self.ns(rows, tick),
            ts_ticks=tick,
            name=self.event_names(rows, "index", "tick", is_end),
            category=np.where(is_end, ends, marks).astype(np.int32),
            quality=self.best_quality,
            flags=rows["flags"],
        )
        self.stat_rows("cuda_end_unmatched", is_end, rows, "index", "tick")
        slots = Column.derived(count, lambda: slots_of(rows.lane, index))
        carried = self.carried(slots)
        carried.pop("token", None)
        self.builder.append(MARKS.name, instant_id=counting(first, count), slot=slots, **carried, **self.identity(rows))

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
            unknown = [number for number in used if number not in known]
            if unknown:
                self.stat_rows("cuda_unknown_event", np.isin(event, unknown), rows, index, tick)
        if is_end is None:
            return Column.derived(len(event), lambda: rows.look_up(code_of[0]), dictionary=dictionary)
        return Column.derived(len(event), lambda: code_of[is_end.astype(np.intp), event], dictionary=dictionary)

    def event_name(self, number: int) -> str:
        """Return the name of an event."""
        return (self.names.events or {}).get(number) or f"event_{number}"

    # --- facts --------------------------------------------------------------------------------------------------

    def offsets(self, lane: I64 | U32, index: U32) -> I64:
        """Return where records stand in the file, int64 [n] bytes."""
        return self.before + self.buffer.slots_of(lane, index) * self.buffer.unit_bytes

    def stat(self, name: str, count: int, *, offset: int | None = None, ts: int | None = None) -> None:
        """Count a fact about the input; the first place is kept."""
        if count:
            before = self._stats.get(name)
            self._stats[name] = (count, offset, ts) if before is None else (before[0] + count, *before[1:])

    def _count(self) -> None:
        """Add the stats in the order of their declarations, however the lanes were cut."""
        for spec in STATS + CORE_STATS:
            if spec.name in self._stats:
                count, offset, ts = self._stats[spec.name]
                self.builder.stat(spec.name, count, input_id=self.input_id, first_offset=offset, first_ts=ts)

    def stat_rows(self, name: str, mask: Mask, rows: Rows, index: str, tick: str) -> None:
        """Count the rows under ``mask``, with the place of the first."""
        count = int(np.count_nonzero(mask))
        if count:
            at = int(mask.argmax())
            lane = np.searchsorted(np.cumsum(rows.counts), [at], side="right").astype(np.int64) + rows.base
            offset = int(self.offsets(lane, rows[index][at : at + 1])[0])
            self.stat(name, count, offset=offset, ts=int(self.lane_ns(lane, rows[tick][at : at + 1])[0]) - self.t0)


def counting(first: int, count: int) -> Column:
    """Return the ids of appended rows, a column."""
    return Column.derived(count, lambda: np.arange(first, first + count, dtype=np.int64))


def subset(rows: Rows, where: Mask) -> Rows:
    """Return the rows under a mask."""
    lanes = rows.lane[where].astype(np.int64) - rows.base
    counts = np.bincount(lanes, minlength=len(rows.counts)).astype(np.int64)
    return Rows({name: column[where] for name, column in rows.columns.items()}, counts, rows.base)


def _common_step(summaries: list[Summary], steps: list[int | None]) -> int | None:
    """Return the step that all parts share; their first stamps are so many steps apart too."""
    found = [step for step in steps if step is not None]
    if len(steps) == 1 or not found:
        return steps[0] if len(steps) == 1 else None
    firsts = np.concatenate([s["first"][s["records"] > 0] for s in summaries])
    return int(np.gcd.reduce(np.append(firsts - firsts[0], found)))


def _mark_below_resolution(decoded: Decoded, step: int | None) -> None:
    """Judge slices by the step of the whole buffer, not by that of their part."""
    short, odd = np.uint32(Flag.BELOW_RESOLUTION), np.uint32(Flag.OPEN_END | Flag.NEGATIVE)
    flags = decoded.slices["flags"]
    flags &= ~short
    if step is not None:
        flags[(decoded.slices["dur"] < 2 * step) & ((flags & odd) == 0)] |= short
    decoded.seen = int(np.bitwise_or.reduce(flags, initial=0))

"""Decoded lanes -> the rows of a trace, for every layout alike."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.cuda.emit import gaps, metadata
from lanescope.devices.cuda.emit.async_rows import Joined
from lanescope.devices.cuda.emit.trace_assembly import TraceAssembly
from lanescope.devices.cuda.formats.buffer import Buffer, Summary
from lanescope.devices.cuda.formats.lane_columns import LaneColumns, end_to_end
from lanescope.devices.cuda.formats.lanes import I64, STEP_BACK, Decoded, Rows, Stamps
from lanescope.devices.cuda.formats.word_source import WordSource
from lanescope.devices.cuda.interpret import names
from lanescope.devices.cuda.schema import MARKS, REGIONS
from lanescope.source import Capture
from lanescope.source.disk_arrays import is_memory_limited
from lanescope.trace import Column, Flag, Trace
from lanescope.trace.streams import TracePart

Mask = npt.NDArray[np.bool_]

#: Records that are decoded at a time where the whole does not have to be in memory.
PART_RECORDS = 1 << 20
#: Rows of a kind of one batch, of a lane that has many more.
PIECE_ROWS = 1 << 18
#: Lanes whose details are rows of one batch.
PART_LANES = 1 << 16
#: So many parts are kept until all lanes are known, unless the memory is limited. More are decoded twice, in halves.
_FEW_PARTS = 4

REGION, ASYNC, MARK, UNMATCHED = "region", "async", "mark", "unmatched_end"

#: Lanes whose stray ends are counted for each of them; those of more lanes are counted together.
_MOST_LOCATED = 100
#: Flags of slices that are counted as a stat each.
_FLAG_STATS = {
    Flag.UNFINISHED: "cuda_unfinished_region",
    Flag.NEGATIVE_DURATION: "cuda_negative_duration",
    Flag.PARTIAL_OVERLAP: "cuda_partial_overlap",
    Flag.BELOW_RESOLUTION: "cuda_below_resolution",
}


def batches(
    capture: Capture,
    options: Mapping[str, Any],
    given: names.UserNames,
    buffer: Buffer,
    content: WordSource,
    part: TracePart | None = None,
) -> Iterator[Trace]:
    """Yield the trace of one buffer in batches of about ``PART_RECORDS`` records.

    Args:
        capture: the capture.
        options: as ``family.options`` declares them.
        given: names of events and groups.
        buffer: the buffer, its headers understood.
        content: where it stands in the file.
        part: the part of the timeline whose regions are made; None: all. Where records join regions, all are made.
    """
    parts = buffer.parts(PART_RECORDS)
    if len(parts) > _FEW_PARTS:
        parts = buffer.parts(PART_RECORDS // 2)
    rules = {"split": options["after_finalize"] == "split", "step_back": STEP_BACK}
    # Nothing can be placed before all lanes are known.
    summary, step, kept = _all(buffer, parts, rules)
    if buffer.part_launches(summary, keep=options["stale"] == "keep", launch_ns=options["launch_ns"]):
        kept.clear()
        summary, step, kept = _all(buffer, parts, rules)
    making = TraceAssembly(capture, options, given, buffer, content, summary=summary, step=step)
    making.grow(metadata.inputs(making), metadata.clocks(making))
    joined = Joined(making)
    wanted = None if buffer.has_special else part
    for number, lanes in enumerate(parts):
        decoded = kept.popleft() if kept else buffer.decode(lanes, **rules)
        # Records of other lanes may end what begins anywhere in a lane.
        pieces = iter([decoded]) if buffer.has_special else decoded.pieces(PIECE_ROWS)
        del decoded  # its rows are those of the batch from now on
        for at, piece in enumerate(pieces):
            if at:
                yield making.builder.batch()
            if piece.resolution_ticks != step:
                _mark_below_resolution(piece, step)
            _part(making, joined, piece, wanted)
            del piece
        if number + 1 < len(parts):
            yield making.builder.batch()
    lost = gaps.bounds_of(making)
    gaps.add_overrun_gaps(making, lost)
    for first in range(0, max(1, len(making.known)), PART_LANES):
        if first:
            yield making.builder.batch()
        gaps.lane_details(making, lost, slice(first, min(first + PART_LANES, len(making.known))))
    metadata.add(making)
    making.stats.emit(making.builder, making.input_id)
    name, make = buffer.raw()
    before = making.before
    making.builder.records(name, lambda: make(before))
    yield making.builder.finish()


def _all(
    buffer: Buffer, parts: list[tuple[int, int]], rules: Mapping[str, Any]
) -> tuple[Summary, int | None, deque[Decoded]]:
    """Decode all parts; return the summary of all lanes, the step of their clock, and the parts if they are few."""
    if len(parts) == 1:
        only = buffer.decode(parts[0], **rules)
        return dict(only.summary), only.resolution_ticks, deque([only])
    is_kept = len(parts) <= _FEW_PARTS and not is_memory_limited()
    kept = deque[Decoded]()
    summaries: list[Summary] = []
    stamps: list[Stamps] = []
    for part in parts:
        decoded = buffer.decode(part, **rules)
        summaries.append(LaneColumns(decoded.summary))
        stamps.append(decoded.stamps)
        wrap = decoded.stamp_wrap
        if is_kept:
            kept.append(decoded)
        del decoded  # its memory is that of the next one
    step = core.cuda_common_step(stamps, wrap.bit_length() - 1) or None
    summary = LaneColumns({})
    for name in list(summaries[0]):
        # Part by part, column by column: what is joined is not kept twice.
        summary[name] = end_to_end([part.pop(name) for part in summaries])
    return summary, step, kept


def _part(making: TraceAssembly, joined: Joined, decoded: Decoded, wanted: TracePart | None) -> None:
    lanes = slice(decoded.base, decoded.base + len(decoded.summary["records"]))
    decoded.move(making.turns.ticks[lanes])
    _doubt(making, decoded, lanes)
    first = _slices(making, decoded, wanted)
    rows, where = decoded.instants, None
    if making.buffer.has_special and len(rows):
        where = joined.add(decoded, first)
    _instants(making, rows, where)
    gaps.missing(making, decoded)


def _doubt(making: TraceAssembly, decoded: Decoded, lanes: slice) -> None:
    """Flag rows with an ambiguous wrap period, and clear the flag where the lane proves the period."""
    ambiguous = np.uint32(Flag.WRAP_AMBIGUOUS)
    for rows in (decoded.slices, decoded.instants):
        flags = rows["flags"]
        if making.turns.sure is not None and making.summary["jumps"][lanes].any():
            flags &= ~np.where(rows.to_rows(making.turns.sure[lanes]), ambiguous, np.uint32(0))
        if making.turns.doubtful is not None:
            flags |= np.where(rows.to_rows(making.turns.doubtful[lanes]), ambiguous, np.uint32(0))
        if making.timeline is not None and making.timeline.contradicts.any():
            suspect = np.uint32(Flag.CLOCK_SUSPECT)
            flags |= np.where(rows.to_rows(making.timeline.contradicts[lanes]), suspect, np.uint32(0))
    if making.turns.doubtful is not None:
        decoded.seen |= Flag.WRAP_AMBIGUOUS
    if making.timeline is not None and making.timeline.contradicts.any():
        decoded.seen |= Flag.CLOCK_SUSPECT


def _slices(making: TraceAssembly, decoded: Decoded, wanted: TracePart | None) -> int:
    """Add slices, those of a part of the timeline if one is wanted; return the id of the first."""
    rows, seen = decoded.slices, decoded.seen
    begin, ticks, flags = rows["begin"], rows["dur"], rows["flags"]
    count = len(rows)
    if not count:
        return 0
    valid = last_seen = is_open = end_valid = None
    mapped = making.timeline is not None
    ts = Column.derived(count, lambda: making.ns(rows, begin))
    dur = ticks
    if mapped:
        ts = Column.array(making.ns(rows, begin))
        dur = making.ns(rows, begin + ticks) - ts.values
    dur_ticks = ticks
    quality: Any = making.best_quality
    if seen & (Flag.UNFINISHED | Flag.NEGATIVE_DURATION):
        is_open = (flags & np.uint32(Flag.UNFINISHED)) != 0
        end_valid = ~is_open
        valid = end_valid & ((flags & np.uint32(Flag.NEGATIVE_DURATION)) == 0)
        last_seen = np.where(is_open, ts.values + dur, 0)
        dur, dur_ticks = np.where(valid, dur, 0), np.where(valid, ticks, 0)
    making.stats.add("cuda_length_assumed", _lengths_assumed(making, dur, valid))
    if seen & Flag.INFERRED_IDENTITY:
        qualities = making.builder.dictionary("slices", "quality")
        inferred = (flags & np.uint32(Flag.INFERRED_IDENTITY)) != 0
        quality = np.where(inferred, qualities.code("inferred"), qualities.code(quality)).astype(np.int32)
    length = Column.array(dur, valid=valid)
    names = making.event_names(rows, "begin_index", "begin")
    for flag, stat in _FLAG_STATS.items():
        if seen & flag:
            making.stat_flagged(stat, flag, rows, "begin_index", "begin")
    track_of = making.tree.lane[decoded.base : decoded.base + len(decoded.summary["records"])]
    if wanted is not None:
        is_near = _near(
            wanted,
            rows,
            track_of,
            ts.values,
            ts.values + dur if last_seen is None else np.maximum(last_seen, ts.values + dur),
        )
        if not is_near.any():
            return 0
        names = Column.array(names.values[is_near], dictionary=names.dictionary)
        ts, rows, count = Column.array(ts.values[is_near]), subset(rows, is_near), int(np.count_nonzero(is_near))
        begin, flags, dur, dur_ticks = begin[is_near], flags[is_near], dur[is_near], dur_ticks[is_near]
        valid, end_valid, is_open, last_seen = (
            None if column is None else column[is_near] for column in (valid, end_valid, is_open, last_seen)
        )
        quality = quality if isinstance(quality, str) else quality[is_near]
        length = Column.array(dur, valid=valid)
    ts_ticks = Column.array(begin)
    if last_seen is None and not making.buffer.in_cycles and not making.buffer.has_special:
        # The ticks are read by few and made from the times again, which take their memory.
        begin -= making.t0
        ts, ts_ticks = Column.array(begin), Column.derived(count, lambda: begin + making.t0)
    first = making.builder.append(
        "slices",
        track_id=rows.lane_column(track_of),
        ts=ts,
        dur=length,
        ts_ticks=ts_ticks,
        dur_ticks=Column.array(dur_ticks, valid=valid) if mapped else length,
        name=names,
        category=REGION,
        quality=quality,
        flags=flags if seen else 0,
        last_known_ts=last_seen,
        last_known_ts_valid=is_open,
    )
    slots_of, begin_index, end_index = making.buffer.slots_of, rows["begin_index"], rows["end_index"]

    def end_slots() -> I64:
        slots = slots_of(rows.lane, end_index)
        return slots if end_valid is None else np.where(end_valid, slots, 0)

    begins = Column.derived(count, lambda: slots_of(rows.lane, begin_index))
    ends = Column.derived(count, end_slots, valid=end_valid)
    making.builder.append(
        REGIONS.name,
        slice_id=counting(first, count),
        begin_slot=begins,
        end_slot=ends,
        resolution_ns=making.resolution(dur, valid),
        end_payload=making.payload(ends),
        **making.identity(rows),
        **making.carried(begins),
    )
    return first


def _near(wanted: TracePart, rows: Rows, track_of: I64, begin: I64, end: I64) -> Mask:
    """Return which slices are in a part of the timeline, bool [n]; the others are counted there.

    Args:
        wanted: the part.
        rows: the slices.
        track_of: int64 [lanes], tracks of their lanes.
        begin: int64 [n], begins.
        end: int64 [n], known ends.
    """
    is_near = wanted.holds(begin, end)
    far = ~is_near
    wanted.leave_out(track_of[rows.lane[far].astype(np.int64) - rows.base], begin[far], end[far])
    return is_near


def _instants(making: TraceAssembly, rows: Rows, where: Mask | None) -> None:
    """Add the instants, those under the mask ``where`` only."""
    if where is not None:
        rows = subset(rows, where)
    tick, index = rows["tick"], rows["index"]
    count = len(rows)
    if not count:
        return
    is_end = rows["is_end"] != 0
    marks, ends = making.builder.categories.code(MARK), making.builder.categories.code(UNMATCHED)
    slots_of = making.buffer.slots_of
    first = making.builder.append(
        "instants",
        track_id=making.tree.lane[rows.lane],
        ts=making.ns(rows, tick),
        ts_ticks=tick,
        name=making.event_names(rows, "index", "tick", is_end),
        category=np.where(is_end, ends, marks).astype(np.int32),
        quality=making.best_quality,
        flags=rows["flags"],
    )
    by_lane = int(np.count_nonzero(making.summary["unmatched"])) <= _MOST_LOCATED
    making.stat_rows("cuda_end_unmatched", is_end, rows, "index", "tick", by_lane=by_lane)
    slots = Column.derived(count, lambda: slots_of(rows.lane, index))
    carried = making.carried(slots)
    carried.pop("token", None)
    if making.buffer.has_second_payloads:
        carried["payload2"] = Column.array(making.buffer.second_payloads(slots.values))
    making.builder.append(MARKS.name, instant_id=counting(first, count), slot=slots, **carried, **making.identity(rows))


def _lengths_assumed(making: TraceAssembly, dur: I64, valid: Mask | None) -> int:
    """Return how many regions are taken for shorter than they may be: their layout does not store all of a length."""
    wrap, launch_ns = making.buffer.length_wrap, making.options["launch_ns"]
    if wrap is None:
        return 0
    may_be_longer = np.ones(len(dur), np.bool_) if launch_ns is None else dur + wrap <= launch_ns
    return int(np.count_nonzero(may_be_longer if valid is None else may_be_longer & valid))


def counting(first: int, count: int) -> Column:
    """Return the ids of appended rows, a column."""
    return Column.derived(count, lambda: np.arange(first, first + count, dtype=np.int64))


def subset(rows: Rows, where: Mask) -> Rows:
    """Return the rows under a mask."""
    lanes = rows.lane[where].astype(np.int64) - rows.base
    counts = np.bincount(lanes, minlength=len(rows.counts)).astype(np.int64)
    return Rows({name: column[where] for name, column in rows.columns.items()}, counts, rows.base)


def _mark_below_resolution(decoded: Decoded, step: int | None) -> None:
    """Judge slices by the step of the whole buffer, not by that of their part."""
    short, odd = np.uint32(Flag.BELOW_RESOLUTION), np.uint32(Flag.UNFINISHED | Flag.NEGATIVE_DURATION)
    flags = decoded.slices["flags"]
    flags &= ~short
    if step is not None:
        flags[(decoded.slices["dur"] < 2 * step) & ((flags & odd) == 0)] |= short
    decoded.seen = int(np.bitwise_or.reduce(flags, initial=0))

"""A buffer of a declared layout, as the decoder sees buffers of all layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.buffer import Bounds, Grid, LaneSpan, Mask, Summary, TaggedRecords, WrapOffsets
from lanescope.devices.cuda.formats.declared import anchoring, raw_table
from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import MAIN, Declaration
from lanescope.devices.cuda.formats.declared.geometry import end_of_lanes, locate
from lanescope.devices.cuda.formats.declared.records import UNREADABLE, Records, records_of
from lanescope.devices.cuda.formats.lanes import I64, U32, Decoded, Outputs
from lanescope.trace import Table

#: Wider stamps are counted from the smallest one of the buffer.
_CORE_BITS = 62
#: Stamps further apart are of no one buffer: 73 years in ns.
_FAR = 1 << 61


class DeclaredBuffer:
    """A buffer whose layout is data.

    Args:
        declaration: the layout, checked.
        arrays: the file's content.
        params: parameters that the user gave.

    Raises:
        InputError: the file does not have this layout.
        UsageError: a parameter is missing or unknown.

    Attributes:
        declaration: the layout.
        columns: its records as they are stored.
        records: what they mean, lane after lane.
    """

    behind = 0
    tokens_leave_lanes = True

    def __init__(self, declaration: Declaration, arrays: Arrays, params: Mapping[str, int]) -> None:
        self.declaration, self._arrays = declaration, arrays
        self.columns = columns = Columns(declaration, arrays, locate(declaration, arrays, params))
        self.records: Records = records_of(declaration, columns)
        self.format = declaration.name
        clock = declaration.clock
        self.clock = clock.name
        self.in_cycles = clock.unit != "ns"
        self.is_full_clock = clock.bits > _CORE_BITS or clock.anchor is not None
        self.stamp_bits = min(clock.bits, _CORE_BITS)
        self.unit_bytes = declaration.unit_bytes
        self.cut = arrays.cut + columns.missing * declaration.record.size
        self.has_special = declaration.pairing == "token"
        self.has_tokens = False
        self.has_payloads = "payload" in declaration.roles
        self.event_ids = self.records.ids
        self.event_names: Mapping[int, str] = declaration.names
        self.frequency_hz = clock.hz
        self.main_at, self.envelope = arrays.at[MAIN], arrays.envelope
        self._rebase()

    def _rebase(self) -> None:
        """Count stamps that are wider than the core's from the smallest one; those that are too far are unreadable."""
        records = self.records
        self._origin = 0
        if self.declaration.clock.bits <= _CORE_BITS and records.is_narrow:
            return
        if self.declaration.clock.bits <= _CORE_BITS:
            mask = np.int64((1 << self.stamp_bits) - 1)
            records.begin &= mask
            if records.end is not None:
                records.end &= mask
            return
        good = records.kind < UNREADABLE
        if not good.any():
            records.begin[:] = 0
            return
        # A count of 64 bits that has its highest bit set would have run for longer than a clock of nanoseconds can.
        far = good & (records.begin < 0)
        records.kind[far] = UNREADABLE
        good &= ~far
        if good.any():
            self._origin = int(records.begin[good].min())
            far = good & (records.begin - self._origin >= _FAR)
            if records.end is not None:
                has_end = good & (records.kind == layout.BEGIN)
                far |= has_end & (np.abs(records.end - records.begin) >= _FAR)
            records.kind[far] = UNREADABLE
            good &= ~far
        mask = np.int64((1 << _CORE_BITS) - 1)
        records.begin = np.where(good, records.begin - self._origin, 0) & mask
        if records.end is not None:
            records.end = np.where(good, records.end - self._origin, 0) & mask

    @cached_property
    def slots(self) -> int:
        """Units of all arrays, without those behind the last lane if anything is there: these are part of no lane."""
        main = self._arrays.main
        behind = main[min(len(main), end_of_lanes(self.declaration, self.columns.geometry)) :]
        return (self._arrays.size - (len(behind) if behind.any() else 0)) // self.unit_bytes

    @cached_property
    def grid(self) -> Grid:
        """The lanes, and what their headers count."""
        records = self.records
        return Grid(
            max(1, len(distinct(records.block))),
            max(1, int(records.group.max(initial=0)) + 1),
            records.block,
            records.group,
            sm=records.sm,
            capacity=records.capacity,
            offered=records.offered,
            lost=records.lost,
            counted=records.counted,
        )

    @property
    def counters(self) -> I64 | None:
        """Return which counter each lane reads, int64 [lanes]; None: that of its SM."""
        across = self.declaration.clock.across
        if across == "device":
            return np.zeros(len(self.records.block), np.int64)
        if across == "block" or self.records.sm is None:
            return self.records.block
        return None

    @cached_property
    def overwritten(self) -> I64 | None:
        """1 for lanes whose position 0 represents overwritten records, int64 [lanes]; None: no lane has any."""
        return self.records.overwritten

    def parts(self, limit: int) -> list[tuple[int, int]]:
        """All lanes at once: their records are in memory."""
        return [(0, len(self.records.block))]

    def part_launches(self, summary: Summary, *, keep: bool, launch_ns: int | None) -> bool:
        """Return False: a declaration does not tell launches apart."""
        return False

    def decode(self, part: tuple[int, int], *, split: bool, step_back: int) -> Decoded:
        """Decode all lanes; arguments as ``buffer.Buffer.decode`` describes them."""
        records = self.records
        lanes = len(records.block)
        kind = records.kind
        if self.has_special:
            kind = np.where(kind < UNREADABLE, np.uint8(layout.INSTANT), kind)
        starts = kind == layout.BEGIN
        if records.end is not None:
            starts |= kind == layout.FINALIZE
        slices = int(np.count_nonzero(starts))
        readable = int(np.count_nonzero(kind < UNREADABLE))
        out = Outputs(lanes, slices=slices, instants=readable - slices, gaps=len(kind) + lanes)
        overwritten = np.zeros(lanes, np.uint8) if self.overwritten is None else self.overwritten.astype(np.uint8)
        shared = (records.event, kind, records.start, overwritten, records.is_full.astype(np.uint8), self.stamp_bits)
        begin = records.begin.view(np.uint64)
        if records.end is not None:
            result = core.cuda_decode_spans(begin, records.end.view(np.uint64), *shared, *out.arguments())
        else:
            result = core.cuda_decode_columns(begin, *shared, step_back, split, *out.arguments())
        return out.done(result, stamp_wrap=1 << self.stamp_bits)

    def turns(self, summary: Summary, anchor: int | None, step_back: int) -> WrapOffsets:
        """Place the lanes: by the anchors in their headers, or by their first stamps."""
        found = anchoring.turns(self._lanes, summary, anchor)
        if summary["finalizes"].any():
            summary["finalize"] = np.where(summary["finalizes"] > 0, summary["finalize"] + found.ticks, 0)
        return found

    @property
    def _lanes(self) -> anchoring.Lanes:
        return anchoring.Lanes(
            self.records, self.declaration.clock, self.counters, self._origin, self.stamp_bits, self.in_cycles
        )

    def extent(self, summary: Summary) -> LaneSpan:
        """Only a finalize record gives the end of a lane."""
        nothing = np.zeros(len(self.records.block), np.int64)
        ended = summary["finalizes"] > 0
        return LaneSpan(nothing, np.where(ended, summary["finalize"], 0), nothing != 0, ended)

    def clock_bounds(self, summary: Summary, extent: LaneSpan) -> Bounds | None:
        """Return readings of counter and timer, where lanes have them."""
        return anchoring.bounds(self.records, summary)

    def _rows(self, lane: U32 | I64, index: U32) -> I64:
        """Return the numbers of records from their lanes and positions, int64 [n]."""
        lanes, records = lane.astype(np.int64), self.records
        at = index.astype(np.int64)
        if self.overwritten is not None:
            at = np.maximum(at - self.overwritten[lanes], 0)
        # Position 0 of a ring represents records that are gone, and a lane may have no record left.
        found: I64 = np.minimum(records.start[lanes] + at, max(0, len(records.slot) - 1))
        return found

    def slots_of(self, lane: U32 | I64, index: U32) -> I64:
        """Return the slots of records from their lanes and positions."""
        slots = self.records.slot
        return slots[self._rows(lane, index)] if len(slots) else np.zeros(len(lane), np.int64)

    def special(self, lane: U32, index: U32) -> TaggedRecords:
        """Return the kinds of records whose ends may be in another lane."""
        records = self.records
        kind = records.kind[self._rows(lane, index)].astype(np.int64)
        found = np.full(len(kind), layout.INSTANT, np.int64)
        found[kind == layout.BEGIN] = layout.ASYNC_BEGIN
        found[kind == layout.END] = layout.ASYNC_END
        return TaggedRecords(found, np.zeros(len(kind), np.int64), self.slots_of(lane, index))

    def tokens(self, slots: I64) -> I64:
        """There are none."""
        return np.zeros(len(slots), np.int64)

    def payloads(self, slots: I64) -> tuple[npt.NDArray[np.uint64], Mask | None]:
        """Return the payloads of records at slots."""
        payload = self.records.payload
        assert payload is not None
        order = np.argsort(self.records.slot, kind="stable")
        at = np.searchsorted(self.records.slot, slots, sorter=order)
        return payload[order[np.minimum(at, len(order) - 1)]].view(np.uint64), None

    def values(self, slots: I64, tokens: I64) -> npt.NDArray[np.float64]:
        """There are none."""
        return np.zeros(len(slots))

    def describe(self) -> Mapping[str, Any]:
        """Return the distance of records, and what happens without room."""
        overflow = self.declaration.overflow
        stride, rest = divmod(self.columns.geometry.stride, self.unit_bytes)
        policy = {"drop": "drop", "saturated": "drop", "ring": "ring", "ring-by-time": "ring"}.get(overflow)
        return {
            "stride": stride if not rest and stride > 0 else None,
            "stride_source": "declared",
            "overflow_policy": policy,
        }

    def account(self, summary: Summary) -> tuple[int, int]:
        """Count headers and records; unreadable records, and positions without one before others, are lost."""
        unit, geometry, of = self.unit_bytes, self.columns.geometry, self.declaration
        lanes_at = geometry.lane_scope
        headers = of.header.size
        if of.lane.size and of.lane.at is not None:
            value = of.lane.at.value(lanes_at)
            headers += of.lane.size * (len(distinct(value)) if isinstance(value, np.ndarray) else 1)
        records = int(summary["records"].sum()) + self.records.ignored
        lost = int(summary["missing"].sum()) + self.records.orphans
        if self.overwritten is not None:
            lost -= int((self.overwritten * (summary["missing"] > 0)).sum())
        understood = min(self.slots, -(-(headers + records * of.record.size) // unit))
        return understood, min(self.slots - understood, -(-lost * of.record.size // unit))

    def stats(self, summary: Summary) -> Iterator[tuple[str, int, int | None]]:
        """Yield what the records and the headers give reason to report."""
        bad = self.records.kind == UNREADABLE
        first = int(self.records.slot[bad.argmax()]) if bad.any() else None
        yield "cuda_corrupt_record", int(np.count_nonzero(bad)) + self.records.orphans, first
        yield "cuda_bad_lane_header", int(np.count_nonzero(~self.columns.geometry.is_sound)), None
        yield "cuda_bad_count", self.columns.bad_count, None
        yield "cuda_multiple_sms", self.records.moved, None
        if self.records.lost is None:
            yield "cuda_dropped", int(self.columns.lost.sum()), None
        if self.records.capacity is None:
            # Records that name their lanes: what is full are the pieces of the buffer, whoever wrote them.
            yield "cuda_lane_may_be_lost", int(np.count_nonzero(self.columns.is_full)), None

    def raw(self) -> tuple[str, Callable[[int], Table]]:
        """Return what makes the table of records."""
        return raw_table.RECORDS.name, lambda before: raw_table.make(self.records, self.unit_bytes, before)

"""A buffer of a declared layout, as the decoder sees buffers of all layouts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.buffer import Bounds, Grid, LaneSpan, Mask, Summary, TaggedRecords, WrapOffsets
from lanescope.devices.cuda.formats.declared import anchoring, raw_table
from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.declaration import MAIN, Declaration
from lanescope.devices.cuda.formats.declared.direct import CORE_BITS
from lanescope.devices.cuda.formats.declared.geometry import bytes_behind, locate
from lanescope.devices.cuda.formats.declared.lane_decoding import lanes_of
from lanescope.devices.cuda.formats.declared.lane_table import LaneTable
from lanescope.devices.cuda.formats.declared.records import Records
from lanescope.devices.cuda.formats.lane_columns import shared
from lanescope.devices.cuda.formats.lanes import I64, U32, Decoded
from lanescope.trace import Table


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
    """

    behind = 0
    tokens_leave_lanes = True

    def __init__(self, declaration: Declaration, arrays: Arrays, params: Mapping[str, int]) -> None:
        self.declaration, self._arrays = declaration, arrays
        self._geometry = locate(declaration, arrays, params)
        self.format = declaration.name
        clock = declaration.clock
        self.clock = clock.name
        self.in_cycles = clock.unit != "ns"
        self.is_full_clock = clock.bits > CORE_BITS or clock.anchor is not None
        self.stamp_bits = min(clock.bits, CORE_BITS)
        self.unit_bytes = declaration.unit_bytes
        self.has_special = declaration.pairing == "token"
        self.has_tokens = "token" in declaration.roles
        self.has_payloads, self.has_second_payloads = ("payload" in declaration.roles, "payload2" in declaration.roles)
        self.event_names: Mapping[int, str] = declaration.names
        self.frequency_hz = clock.hz
        bits = declaration.length_bits
        self.length_wrap = None if bits is None else 1 << bits
        self.main_at, self.envelope = arrays.at[MAIN], arrays.envelope
        self._lanes = lanes_of(declaration, arrays, self._geometry)
        self._stale: tuple[int, int] | None = None

    @property
    def lanes(self) -> LaneTable:
        """What is known of the lanes apart from their records."""
        return self._lanes.table

    @property
    def records(self) -> Records:
        """All records, however many they are."""
        return self._lanes.records()

    @property
    def cut(self) -> int:
        """Bytes that headers promise and that are not in the file."""
        return self._arrays.cut + self.lanes.missing * self.declaration.record.size

    @property
    def event_ids(self) -> I64 | None:
        """The event number of each code, int64; None: codes are numbers."""
        return self.lanes.ids

    @cached_property
    def slots(self) -> int:
        """Units of all arrays, without those behind the last lane if anything is there: these are part of no lane."""
        behind = bytes_behind(self.declaration, self._arrays, self._geometry)
        return (self._arrays.size - behind) // self.unit_bytes

    @cached_property
    def grid(self) -> Grid:
        """The lanes, and what their headers count."""
        records = self.lanes
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
            return np.broadcast_to(np.int64(0), len(self.lanes))
        if across == "block" or self.lanes.sm is None:
            return self.lanes.block
        return None

    @cached_property
    def overwritten(self) -> I64 | None:
        """1 for lanes whose position 0 represents overwritten records, int64 [lanes]; None: no lane has any."""
        return self.lanes.overwritten

    def parts(self, limit: int) -> list[tuple[int, int]]:
        """Cut the lanes such that no part has many more records than ``limit``, where they can be read alone."""
        return self._lanes.cut(limit)

    def part_launches(self, summary: Summary, *, keep: bool, launch_ns: int | None) -> bool:
        """Find what earlier launches left, where lanes take turns and records are words; else return False."""
        self._stale = self._lanes.part_launches(summary, keep=keep, launch_ns=launch_ns)
        self.__dict__.pop("grid", None)
        return self._stale is not None

    def decode(self, part: tuple[int, int], *, split: bool, step_back: int) -> Decoded:
        """Decode the lanes of a part; arguments as ``buffer.Buffer.decode`` describes them."""
        return self._lanes.decode(part, split=split, step_back=step_back)

    def turns(self, summary: Summary, anchor: int | None, step_back: int) -> WrapOffsets:
        """Place the lanes: by the anchors in their headers, or by their first stamps."""
        found = anchoring.turns(self._clocked, summary, anchor)
        if summary["finalizes"].any():
            summary["finalize"] = np.where(summary["finalizes"] > 0, summary["finalize"] + found.ticks, 0)
        return found

    @property
    def _clocked(self) -> anchoring.Lanes:
        return anchoring.Lanes(
            self.lanes, self.declaration.clock, self.counters, self._lanes.origin, self.stamp_bits, self.in_cycles
        )

    def extent(self, summary: Summary) -> LaneSpan:
        """Only a finalize record gives the end of a lane."""
        nothing = np.broadcast_to(np.int64(0), len(self.lanes))
        ended = summary["finalizes"] > 0
        return LaneSpan(nothing, shared(np.where(ended, summary["finalize"], 0)), nothing != 0, ended)

    def clock_bounds(self, summary: Summary, extent: LaneSpan) -> Bounds | None:
        """Return readings of counter and timer, where lanes have them."""
        return anchoring.bounds(self.lanes, summary)

    def slots_of(self, lane: U32 | I64, index: U32) -> I64:
        """Return the slots of records from their lanes and positions."""
        return self._lanes.slots_of(lane, index)

    def special(self, lane: U32, index: U32) -> TaggedRecords:
        """Return the kinds of records whose ends may be in another lane."""
        kind = self._lanes.kinds_of(lane, index).astype(np.int64)
        found = np.full(len(kind), layout.INSTANT, np.int64)
        found[kind == layout.BEGIN] = layout.ASYNC_BEGIN
        found[kind == layout.END] = layout.ASYNC_END
        slots = self.slots_of(lane, index)
        return TaggedRecords(found, self.tokens(slots), slots)

    def tokens(self, slots: I64) -> I64:
        """Return the tokens of records at slots; 0 where the layout has none."""
        return self._lanes.carried(slots, "token") if self.has_tokens else np.zeros(len(slots), np.int64)

    def payloads(self, slots: I64) -> tuple[npt.NDArray[np.uint64], Mask | None]:
        """Return the payloads of records at slots."""
        return self._lanes.carried(slots, "payload").view(np.uint64), None

    def second_payloads(self, slots: I64) -> npt.NDArray[np.uint64]:
        """Return the second payloads of records at slots."""
        return self._lanes.carried(slots, "payload2").view(np.uint64)

    def values(self, slots: I64, tokens: I64) -> npt.NDArray[np.float64]:
        """There are none."""
        return np.zeros(len(slots))

    def describe(self) -> Mapping[str, Any]:
        """Return the distance of records, and what happens without room."""
        overflow = self.declaration.overflow
        stride, rest = divmod(self._geometry.stride, self.unit_bytes)
        policy = {"drop": "drop", "saturated": "drop", "ring": "ring", "ring-by-time": "ring"}.get(overflow)
        return {
            "stride": stride if not rest and stride > 0 else None,
            "stride_source": "declared",
            "overflow_policy": policy,
        }

    def account(self, summary: Summary) -> tuple[int, int]:
        """Count headers and records; unreadable records, and positions without one before others, are lost."""
        unit, geometry, of = self.unit_bytes, self._geometry, self.declaration
        lanes_at = geometry.lane_scope
        headers = of.header.size
        if of.lane.size and of.lane.at is not None:
            value = of.lane.at.value(lanes_at)
            headers += of.lane.size * (len(distinct(value)) if isinstance(value, np.ndarray) else 1)
        records = int(summary["records"].sum()) + self.lanes.ignored
        lost = int(summary["missing"].sum()) + self.lanes.orphans
        if self.overwritten is not None:
            lost -= int((self.overwritten * (summary["missing"] > 0)).sum())
        understood = min(self.slots, -(-(headers + records * of.record.size) // unit))
        return understood, min(self.slots - understood, -(-lost * of.record.size // unit))

    def stats(self, summary: Summary) -> Iterator[tuple[str, int, int | None]]:
        """Yield what the records and the headers give reason to report."""
        lanes = self.lanes
        yield "cuda_read_whole", int(self._lanes.is_read_whole), None
        records, slot = self._stale or (0, None)
        yield "cuda_stale", records + lanes.stale, lanes.first_stale if slot is None else slot
        yield "cuda_corrupt_record", lanes.bad + lanes.orphans, lanes.first_bad
        yield "cuda_bad_lane_header", int(np.count_nonzero(~self._geometry.is_sound)), None
        yield "cuda_bad_count", lanes.bad_counts, None
        yield "cuda_multiple_sms", lanes.moved, None
        if self.declaration.overwrites_instants:
            yield "cuda_instants_unreliable", int((summary["instants"] - summary["unmatched"]).sum()), None
        if lanes.lost is None:
            yield "cuda_dropped", lanes.lost_by_slots, None
        if lanes.capacity is None:
            # Records that name their lanes: what is full are the pieces of the buffer, whoever wrote them.
            yield "cuda_lane_may_be_lost", lanes.full_slots, None

    def raw(self) -> tuple[str, Callable[[int], Table]]:
        """Return what makes the table of records."""
        return raw_table.RECORDS.name, lambda before: raw_table.make(self._lanes.records(), self.unit_bytes, before)

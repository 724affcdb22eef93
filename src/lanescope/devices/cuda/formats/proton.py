"""Reader of the host file of Proton's instrumentation: an area for each CTA, a ring of entries for each warp in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.buffer import (
    Bounds,
    Grid,
    LaneSpan,
    Mask,
    OwnNumbers,
    Summary,
    TaggedRecords,
    WrapOffsets,
)
from lanescope.devices.cuda.formats.lanes import I64, U32, Decoded, Outputs, turns_of
from lanescope.devices.cuda.formats.layout import PROTON_BLOCK, PROTON_ENTRY, PROTON_PREAMBLE
from lanescope.devices.cuda.formats.proton_file import (
    HEADER_WORDS,
    MAX_WARPS,
    OLD_WORDS,
    ProtonHeader,
    ProtonWords,
    Words32,
)
from lanescope.devices.cuda.formats.raw_records import table_of
from lanescope.devices.cuda.formats.word_source import PIECE_WORDS, FileBytes
from lanescope.trace import Column, Dictionary, Table
from lanescope.trace.schema import ColumnSpec, TableSpec

PROTON_ENTRIES = TableSpec(
    "cuda_proton_entries",
    "one entry of the ring of a warp, oldest first",
    (
        ColumnSpec("slot", "int64", "position of the entry in 32-bit words"),
        ColumnSpec("offset", "int64", "byte offset in the file", unit="bytes"),
        ColumnSpec("lane", "uint32", "ring of the entry"),
        ColumnSpec("time", "uint64", "43 bits of the counter; value of a metric", unit="ticks"),
        ColumnSpec("scope", "uint32", "scope number"),
        ColumnSpec("is_end", "bool", "whether the entry is an end"),
        ColumnSpec("type", "text", "entry type: scope, async, mark, metric"),
        ColumnSpec("value_type", "uint32", "type of a metric's value"),
    ),
)


#: Words in front of a CTA's write indices, in versions with times.
_NEW = PROTON_BLOCK.bits // 32
#: Longest plausible kernel; a larger difference does not come from a pair of times.
_LONGEST_NS = np.uint64(1 << 42)
_LATEST = np.uint64(1 << 62)
#: No warp writes so many words; what looks so is a time.
_LARGEST_INDEX = 1 << 24
#: No SM runs faster.
_MOST_GHZ = 4
#: Below all stamps; twice as much still fits.
_NEVER = -(1 << 61)


class ProtonBuffer(OwnNumbers):
    """A Proton file.

    Args:
        words: uint32 [n], the whole file, or its bytes; a cut one is read as far as it holds whole areas.

    Raises:
        InputError: the header is none.

    Attributes:
        header: the file header.
        words: the words of the file.
        cut: bytes that the header promises and that are not there.
        behind: bytes behind the buffer.
        has_times: whether the areas hold times.
        bad_blocks: areas without a preamble, or whose sizes contradict themselves.
    """

    format = layout.PROTON
    clock = "clock64"
    unit_bytes = 4
    in_cycles = True
    is_full_clock = False
    has_tokens = False

    def __init__(self, words: Words32 | FileBytes) -> None:
        self.words = ProtonWords(words)
        self.header = header = ProtonHeader.read(self.words.window(0, HEADER_WORDS + MAX_WARPS))
        self._size = min(header.size, len(self.words))
        self.cut = (header.size - self._size) * self.unit_bytes
        self.behind = (len(self.words) - self._size) * self.unit_bytes
        self._blocks = max(0, (self._size - header.payload) // header.scratch)
        self._areas = areas = self._heads()
        self.has_times = self._times(areas)
        meta = (_NEW if self.has_times else OLD_WORDS) + header.units
        size = areas[:, 3].astype(np.int64) // 4
        segment = size // len(header.uids) // 2 * 2
        good = (areas[:, 0] == PROTON_PREAMBLE) & (meta + size <= header.scratch)
        self.bad_blocks = int(np.count_nonzero(~good))
        self._good = np.flatnonzero(good)
        self._rings = self._find_rings(meta, segment)
        self._window = self.words.window(0, 0)
        self._window_at = 0
        found = [core.cuda_proton_count(*self._rings_of(part)[:2]) for part in self._cut(PIECE_WORDS)]
        self._begins, self._marks, self._async, self._values, self._reserved, self._orphans = (
            sum(counts[at] for counts in found) for at in (0, 1, 2, 3, 4, 6)
        )
        self.stamp_bits = layout.PROTON_STAMP_BITS if any(counts[5] for counts in found) else layout.STAMP_BITS

    def _pieces(self) -> Iterator[tuple[int, Words32]]:
        """Yield the areas of some blocks at a time, uint32 [n, words of an area], and the first of them."""
        scratch, payload = self.header.scratch, self.header.payload
        step = max(1, PIECE_WORDS // scratch)
        for first in range(0, self._blocks, step):
            last = min(first + step, self._blocks)
            words = self.words.window(payload + first * scratch, payload + last * scratch)
            yield first, words.reshape(-1, scratch)

    def _heads(self) -> Words32:
        """Return the words before the entries of each area, uint32 [blocks, n]."""
        width = min(self.header.scratch, _NEW + self.header.units)
        found = np.empty((self._blocks, width), np.uint32)
        for first, areas in self._pieces():
            found[first : first + len(areas)] = areas[:, :width]
        return found

    def _times(self, areas: npt.NDArray[np.uint32]) -> bool:
        """Return whether the areas hold times, as newer versions write them: nothing else says which version it is.

        With times there are three moments in order, and then write indices, which are even and not large. An older
        area that passes for one with times would need the third stamp of its first warp to look like an index.
        """
        marked = areas[areas[:, 0] == PROTON_PREAMBLE]
        if not len(marked) or self.header.scratch < _NEW + self.header.units:
            return False
        times = marked[:, 4:10].astype(np.uint64)
        begin, end, done = (times[:, at] | times[:, at + 1] << np.uint64(32) for at in (0, 2, 4))
        ran = end > 0
        ordered = (begin > 0) & (~ran | ((begin <= end) & (end <= done) & (done - begin < _LONGEST_NS)))
        indices = marked[:, _NEW : _NEW + self.header.units]
        even = (indices % 2 == 0) & (indices < _LARGEST_INDEX)
        if not (ordered.all() and even.all() and (begin < _LATEST).all()):
            return False
        # If that leaves no record, what stands in front may be the indices of an older version.
        older = marked[:, OLD_WORDS : OLD_WORDS + self.header.units]
        is_older = not indices.any() and older.any() and ((older % 2 == 0) & (older < _LARGEST_INDEX)).all()
        return not is_older

    def _find_rings(self, meta: int, segment: I64) -> I64:
        """Return the core's table of rings, a row for each recorded warp of each good area."""
        header = self.header
        uids = np.array(header.uids)
        rows = self._good
        index = self._areas[rows][:, meta - header.units : meta][:, uids].astype(np.int64) // 2
        entries = np.broadcast_to((segment[rows] // 2)[:, None], index.shape)
        lost = np.maximum(0, index - entries)
        first = np.where(lost > 0, index % np.maximum(entries, 1), 0)
        start = header.payload + rows[:, None] * header.scratch + meta
        start = start + np.arange(len(uids))[None, :] * segment[rows][:, None]
        table = np.stack([start, entries, first, np.minimum(index, entries), lost], axis=-1)
        return np.ascontiguousarray(table.reshape(-1, 5), np.int64)

    @cached_property
    def grid(self) -> Grid:
        """The warps that were recorded."""
        count = len(self.header.uids)
        block = np.repeat(self._areas[self._good, 1].astype(np.int64), count)
        warp = np.tile(np.array(self.header.uids, np.int64), len(self._good))
        rings = self._rings
        return Grid(
            self.header.blocks,
            count,
            block,
            warp,
            sm=np.repeat(self._areas[self._good, 2].astype(np.int64), count),
            warp=warp,
            capacity=rings[:, 1],
            offered=rings[:, 3] + rings[:, 4],
            lost=rings[:, 4],
        )

    @property
    def slots(self) -> int:
        """Words of the file."""
        return self._size

    @cached_property
    def overwritten(self) -> I64 | None:
        """1 for lanes whose position 0 represents overwritten records, int64 [lanes]; None: no lane has any."""
        found = self._rings[:, 4] > 0
        return found.astype(np.int64) if found.any() else None

    def slots_of(self, lane: U32 | I64, index: U32) -> I64:
        """Return the words at which entries stand, int64 [n], from their lanes and positions in order of writing."""
        lanes = lane.astype(np.int64)
        start, entries, first = self._rings[lanes, 0], self._rings[lanes, 1], self._rings[lanes, 2]
        at = first + index.astype(np.int64)
        if self.overwritten is not None:
            at = np.maximum(at - self.overwritten[lanes], first)
        found: I64 = start + 2 * (at % np.maximum(entries, 1))
        return found

    def _cut(self, limit: int) -> list[tuple[int, int]]:
        """Cut the lanes by the words of their areas, about ``limit`` in a part; those of a block stay together."""
        count, scratch = len(self.header.uids), self.header.scratch
        block = self._areas[self._good, 1]
        begins = np.flatnonzero(np.diff(block, prepend=block[:1] ^ np.uint32(1)) != 0)
        at = np.append(begins, len(self._good))
        step, first, found = max(1, limit // scratch), 0, []
        while first < len(self._good):
            last = int(at[min(int(np.searchsorted(at, first + step)), len(at) - 1)])
            found.append((first * count, last * count))
            first = last
        return found or [(0, 0)]

    def parts(self, limit: int) -> list[tuple[int, int]]:
        """Cut the lanes into parts of whole blocks that have about so many entries."""
        scratch, most = self.header.scratch, max(1, int(self._rings[:, 3].max(initial=0)) * len(self.header.uids))
        return self._cut(max(1, limit // most) * scratch)

    def _rings_of(self, part: tuple[int, int]) -> tuple[Words32, I64, int]:
        """Return the words that hold the rings of lanes, these rings in them, and where in the file the words begin."""
        rings = self._rings[slice(*part)]
        if not len(rings):
            return self.words.window(0, 0), rings, 0
        first, last = int(rings[:, 0].min()), int((rings[:, 0] + 2 * rings[:, 1]).max())
        return self.words.window(first, last), np.ascontiguousarray(rings - np.array([first, 0, 0, 0, 0])), first

    def _at(self, slots: I64) -> Words32:
        """Return words, those of the part that was decoded last without a look at the file, uint32 [n]."""
        if not len(slots):
            return np.empty(0, np.uint32)
        low, high = int(slots.min()), int(slots.max()) + 1
        if self.words.is_in_memory:
            return self.words.window(0, len(self.words))[slots]
        if self._window_at <= low and high <= self._window_at + len(self._window):
            return self._window[slots - self._window_at]
        found = np.empty(len(slots), np.uint32)
        of = slots // PIECE_WORDS
        for piece in distinct(of).tolist():
            rows = of == piece
            found[rows] = self.words.window(piece * PIECE_WORDS, (piece + 1) * PIECE_WORDS)[
                slots[rows] - piece * PIECE_WORDS
            ]
        return found

    def part_launches(self, summary: Summary, *, keep: bool, launch_ns: int | None) -> bool:
        """What the lanes count is of one launch."""
        return False

    def decode(self, part: tuple[int, int], *, split: bool, step_back: int) -> Decoded:
        """Decode warps; arguments as ``buffer.Buffer.decode`` describes them."""
        words, rings, first = self._rings_of(part)
        self._window, self._window_at = words, first
        count, begins, marks = len(rings), self._begins, self._marks
        if count < len(self._rings):
            begins, marks = core.cuda_proton_count(words, rings)[:2]
        out = Outputs(count, slices=begins, instants=marks, gaps=int(rings[:, 3].sum()) + count)
        result = core.cuda_proton_decode(words, rings, self.stamp_bits, step_back, *out.arguments())
        return out.done(result, stamp_wrap=1 << self.stamp_bits, base=part[0])

    def turns(self, summary: Summary, anchor: int | None, step_back: int) -> WrapOffsets:
        """Place the lanes of each SM by their first stamps; each SM counts for itself."""
        ticks, doubtful = np.zeros(len(self._rings), np.int64), np.zeros(len(self._rings), np.bool_)
        assert self.grid.sm is not None
        for sm in distinct(self.grid.sm).tolist():
            mine = self.grid.sm == sm
            found, certain = turns_of({n: column[mine] for n, column in summary.items()}, None, self.stamp_bits)
            ticks[mine], doubtful[mine] = found, not certain
        return WrapOffsets(ticks, doubtful if doubtful.any() else None)

    def extent(self, summary: Summary) -> LaneSpan:
        """No area holds a reading of the counter."""
        nothing = np.zeros(len(self._rings), np.int64)
        return LaneSpan(nothing, nothing, nothing != 0, nothing != 0)

    def clock_bounds(self, summary: Summary, extent: LaneSpan) -> Bounds | None:
        """Return bounds of the SMs' counters: a CTA's records lie between the times at its start and its end."""
        if not self.has_times or not len(self._rings):
            return None
        words = self._areas[self._good, 4:8].astype(np.int64)
        begin, end = (np.repeat(words[:, at] | words[:, at + 1] << 32, len(self.header.uids)) for at in (0, 2))
        good = np.flatnonzero((summary["records"] > 0) & (end > begin))
        if not len(good):
            return None
        times = np.concatenate([begin[good], end[good]])
        tick = max(1, int(np.gcd.reduce(times - times[0])))
        return Bounds(
            np.concatenate([good, good]),
            np.concatenate([summary["min"][good], summary["max"][good]]),
            np.concatenate([begin[good], begin[good]]),
            np.concatenate([end[good], end[good]]) + tick,
        )

    def special(self, lane: U32, index: U32) -> TaggedRecords:
        """Say what instants of the core really are."""
        slot = self.slots_of(lane, index)
        tag = self._at(slot).astype(np.int64)
        kinds, is_end = PROTON_ENTRY["type"].of(tag), PROTON_ENTRY["is_end"].of(tag)
        kind = np.full(len(slot), layout.INSTANT, np.int64)
        is_async = (kinds == layout.ASYNC) | (kinds >= layout.ASYNC_39)
        kind[is_async] = (layout.ASYNC_BEGIN + is_end)[is_async]
        kind[kinds == layout.METRIC] = -1
        return TaggedRecords(kind, np.zeros(len(slot), np.int64), slot)

    def tokens(self, slots: I64) -> I64:
        """There are none."""
        return np.zeros(len(slots), np.int64)

    @property
    def has_payloads(self) -> bool:
        """True if records may have values."""
        return bool(self._values)

    def payloads(self, slots: I64) -> tuple[npt.NDArray[np.uint64], Mask | None]:
        """Return the value behind each record that has one."""
        rows = np.searchsorted(self._rings[:, 0], slots, side="right") - 1
        start, entries = self._rings[rows, 0], np.maximum(self._rings[rows, 1], 1)
        behind = start + 2 * (((slots - start) // 2 + 1) % entries)
        newest = self._rings[rows, 2] + self._rings[rows, 3] - 1
        is_last = (slots - start) // 2 == newest % entries
        found = (PROTON_ENTRY["type"].of(self._at(behind).astype(np.int64)) == layout.METRIC) & ~is_last
        return np.where(found, self._at(np.minimum(behind + 1, self._size - 1)), 0).astype(np.uint64), found

    def values(self, slots: I64, tokens: I64) -> npt.NDArray[np.float64]:
        """There are none."""
        return np.zeros(len(slots))

    @property
    def has_special(self) -> bool:
        """True with asynchronous scopes or values."""
        return bool(self._async or self._values)

    def describe(self) -> Mapping[str, Any]:
        """Return what the file header says."""
        return {"stride_source": "lanes", "overflow_policy": "ring"}

    def stored(self) -> tuple[U32, I64]:
        """Return the positions of all entries in order of writing, uint32 [n], and their lanes, int64 [n]."""
        counts = self._rings[:, 3]
        ring = np.repeat(np.arange(len(counts)), counts)
        at = np.arange(len(ring)) - np.repeat(np.cumsum(counts) - counts, counts)
        if self.overwritten is not None:
            at = at + self.overwritten[ring]
        return at.astype(np.uint32), ring

    def account(self, summary: Summary) -> tuple[int, int]:
        """Count headers and entries; unreadable entries and areas are lost."""
        header = self.header
        records = int(summary["records"].sum())
        meta = (_NEW if self.has_times else OLD_WORDS) + header.units
        understood = HEADER_WORDS + len(header.uids) + len(self._good) * meta + 2 * records
        lost = 2 * (int(self._rings[:, 3].sum()) - records)
        bad = np.setdiff1d(np.arange(len(self._areas)), self._good, assume_unique=True)
        if len(bad):
            is_bad = np.zeros(len(self._areas), np.bool_)
            is_bad[bad] = True
            for first, areas in self._pieces():
                lost += int(np.count_nonzero(areas[is_bad[first : first + len(areas)]]))
        rest = self.words.window(header.payload + len(self._areas) * header.scratch, self._size)
        return understood, lost + int(np.count_nonzero(rest))

    def stats(self, summary: Summary) -> Iterator[tuple[str, int, int | None]]:
        """Yield what the areas give reason to say."""
        bad = np.setdiff1d(np.arange(len(self._areas)), self._good, assume_unique=True)
        first = int(self.header.payload + bad[0] * self.header.scratch) if len(bad) else None
        yield "cuda_bad_block", len(bad), first
        wrong = self._good[self._contradictory() | self._too_short(summary)]
        first = int(self.header.payload + wrong[0] * self.header.scratch) if len(wrong) else None
        yield "cuda_contradictory_block", len(wrong), first
        # The value of a record that the ring has overwritten is lost with it, and nothing is wrong with either.
        yield "cuda_corrupt_record", int(summary["bad"].sum()) - self._orphans, None
        yield "cuda_reserved_bits", self._reserved, None

    def _contradictory(self) -> Mask:
        """Return which good areas contradict the grid, another area, the GPU or themselves, bool [good areas]."""
        areas = self._areas[self._good]
        block = areas[:, 1].astype(np.int64)
        _, place, counts = np.unique(block, return_inverse=True, return_counts=True)
        found: Mask = (block >= self.header.blocks) | (counts[place] > 1)
        if self.header.is_cuda:
            found |= areas[:, 2] >= layout.MOST_SMS
        if self.has_times:
            # A block that did not come to its end was not copied either.
            found |= ~areas[:, 6:8].any(axis=1) & areas[:, 8:10].any(axis=1)
        return found

    def _too_short(self, summary: Summary) -> Mask:
        """Return which good areas' blocks counted more cycles than their time has at any rate, bool [good areas]."""
        found = np.zeros(len(self._good), np.bool_)
        warps = len(self.header.uids)
        used = (summary["records"] > 0).reshape(-1, warps)
        if not self.has_times or not used.any():
            return found
        words = self._areas[self._good, 4:8].astype(np.int64)
        begin, end = (words[:, at] | words[:, at + 1] << 32 for at in (0, 2))
        times = np.concatenate([begin, end])
        tick = int(np.gcd.reduce(times - times[0]))
        first, last = (summary[name].reshape(-1, warps) for name in ("min", "max"))
        cycles = np.where(used, last, _NEVER).max(axis=1) - np.where(used, first, -_NEVER).min(axis=1)
        found[:] = used.any(axis=1) & (end > 0) & (cycles > _MOST_GHZ * (end - begin + tick))
        return found

    def raw(self) -> tuple[str, Callable[[int], Table]]:
        """Return what makes the table of entries."""
        return PROTON_ENTRIES.name, lambda before: proton_entries(self, before)


def proton_entries(buffer: ProtonBuffer, before: int) -> Table:
    """Return the entries of all rings of a Proton file, in the order in which they were written."""
    stored, ring = buffer.stored()
    slots = buffer.slots_of(ring, stored)
    words = buffer.words.window(0, len(buffer.words))
    tag, low = words[slots].astype(np.uint64), words[slots + 1]
    names = Dictionary(["scope", "async", "mark", "metric"])
    values: dict[str, Any] = {
        "slot": slots,
        "offset": before + slots * 4,
        "lane": ring.astype(np.uint32),
        "time": PROTON_ENTRY["time_high"].of(tag) << np.uint64(32) | low,
        "scope": PROTON_ENTRY["scope"].of(tag).astype(np.uint32),
        "is_end": PROTON_ENTRY["is_end"].of(tag) == 1,
        "value_type": PROTON_ENTRY["value_type"].of(tag).astype(np.uint32),
    }
    kind = PROTON_ENTRY["type"].of(tag).astype(np.int32)
    kind[kind >= layout.ASYNC_39] = layout.ASYNC
    return table_of(PROTON_ENTRIES, values, type=Column.array(kind, dictionary=names))

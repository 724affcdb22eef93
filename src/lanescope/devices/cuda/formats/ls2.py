"""Reader of LS2 (docs/adr/0004, 0007, 0013): checks the header, then hands all lanes to the common rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.wrapping_counters import at_or_after
from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats import layout, ls2_contradictions
from lanescope.devices.cuda.formats.buffer import (
    UNKNOWN,
    Bounds,
    Grid,
    LaneSpan,
    Mask,
    OwnNumbers,
    Summary,
    TaggedRecords,
    WrapOffsets,
)
from lanescope.devices.cuda.formats.lanes import I64, U32, Decoded, Outputs
from lanescope.devices.cuda.formats.raw_records import LS2_RECORDS, ls2_records
from lanescope.devices.cuda.formats.tirx import MAX_SLOTS
from lanescope.devices.cuda.formats.word_source import PIECE_WORDS, Words, WordStore, store_of
from lanescope.errors import InputError
from lanescope.trace import Table

_FILE, _LANE = layout.LS2_FILE_WORDS, layout.LS2_LANE_WORDS
#: Columns of the core's table of lanes.
SCANNED = ("state", "offered", "stored", "present", "first", "lost", "stale", "begins", "marks", "special", "torn")
#: A part may have so many times the words of its records.
_SPARSE = 4
#: A reading beyond this is none.
_LATEST = np.uint64(ls2_contradictions.UNREADABLE)
#: A count beyond this is damage; sums of lower ones fit into their columns.
_MOST = 1 << 62


@frozen_class
class Ls2Header:
    """Contents of the file header.

    Attributes:
        num_blocks, num_groups: the grid.
        record_words: 1, or 2 with a payload.
        clock: ``layout.GLOBALTIMER`` or ``layout.CLOCK64``.
        is_ring: the newest records are kept, else the oldest.
        capacity: positions of a lane.
        launch, ordinal: the host's numbers of the launch and of the GPU.
        anchors: (globaltimer, Unix time, bound of the error), all in ns.
        refused: lanes that found no room; None: the probes did not count them.
        required_blocks, required_groups: the grid where it is known to be larger than the buffer's, else the buffer's.
        version: of the layout.
        contradictions: words of the header that contradict others.
        window: the timer before and after the launch, as ``ls2_contradictions.launch_window`` returns it.
    """

    num_blocks: int
    num_groups: int
    record_words: int
    clock: int
    is_ring: bool
    capacity: int
    launch: int
    ordinal: int
    anchors: tuple[tuple[int, int, int], ...]
    refused: int | None
    required_blocks: int
    required_groups: int
    version: int
    contradictions: tuple[int, ...]
    window: tuple[int, int]

    @property
    def lanes(self) -> int:
        """Lanes of the grid."""
        return self.num_blocks * self.num_groups

    @property
    def lane_words(self) -> int:
        """Words of a lane."""
        return _LANE + self.capacity * self.record_words

    @property
    def size(self) -> int:
        """Words of the whole buffer."""
        return _FILE + self.lanes * self.lane_words

    @classmethod
    def read(cls, words: Words) -> Ls2Header:
        """Return the header of a buffer.

        Raises:
            InputError: it is none, of another version, or contradicts itself.
        """
        if len(words) < _FILE or int(words[0]) != layout.LS2_MAGIC:
            raise InputError("LS2 header not found", hint="copy the complete buffer")
        fields = layout.LS2_HEADER.decode(int.from_bytes(words[:_FILE].tobytes(), "little"))
        if fields["version"] not in layout.LS2_VERSIONS:
            raise InputError(f"unsupported LS2 version {fields['version']}", hint="upgrade lanescope")
        capacity, lanes = fields["capacity"], fields["num_blocks"] * fields["num_groups"]
        sound = (
            fields["record_words"] in (1, 2)
            and fields["clock"] in (layout.GLOBALTIMER, layout.CLOCK64)
            and fields["policy"] in (layout.DROP, layout.RING)
            and 1 <= capacity <= layout.LS2_MAX_CAPACITY
            and capacity & (capacity - 1) == 0
            and 1 <= lanes <= layout.TIRX_MAX_LANES
        )
        if not sound:
            raise InputError("invalid LS2 header", hint="see docs/adr/0004 for its fields")
        # Of an older buffer the words say nothing; in a newer one nothing that large was ever counted.
        counts = fields["version"] != 1
        refused, blocks, groups = (
            min(fields[name], _MOST) if counts else 0 for name in ("refused", "required_blocks", "required_groups")
        )
        rows = [[fields[f"{name}_{part}"] for part in ("ticks", "unix", "error")] for name in ("anchor", "anchor2")]
        return cls(
            num_blocks=fields["num_blocks"],
            num_groups=fields["num_groups"],
            record_words=fields["record_words"],
            clock=fields["clock"],
            is_ring=fields["policy"] == layout.RING,
            capacity=capacity,
            launch=fields["launch"],
            ordinal=fields["ordinal"],
            anchors=tuple((t, u, e) for t, u, e in rows if u and max(t, u, e) < _LATEST),
            refused=refused if counts else None,
            required_blocks=max(fields["num_blocks"], blocks),
            required_groups=max(fields["num_groups"], groups),
            version=fields["version"],
            contradictions=tuple(ls2_contradictions.of_header(fields)),
            window=ls2_contradictions.launch_window(fields),
        )


class Ls2Buffer(OwnNumbers):
    """An LS2 buffer.

    Args:
        words: the whole buffer; a cut one is read as far as it goes.

    Raises:
        InputError: the header is none.

    Attributes:
        header: the file header.
        words: the words of the buffer; what stands behind is left out.
        cut: bytes that the header promises and that are not there.
        behind: bytes behind the buffer.
        heads: uint64 [lanes, 8], the lane headers.
        scanned: by the names of ``SCANNED``, int64 [lanes].
    """

    format = layout.LS2
    unit_bytes = 8
    stamp_bits = layout.STAMP_BITS
    is_full_clock = True
    has_tokens = True

    def __init__(self, words: Words | WordStore) -> None:
        words = store_of(words)
        self.header = header = Ls2Header.read(words.window(0, _FILE))
        if len(words) > MAX_SLOTS:
            raise InputError(f"buffer of {len(words)} words is too large", hint=f"record at most {MAX_SLOTS} words")
        self.words = words.beginning(header.size)
        self.tokens_leave_lanes = header.version != 1
        self.cut = (header.size - len(self.words)) * self.unit_bytes
        self.behind = (len(words) - len(self.words)) * self.unit_bytes
        lanes = min(header.lanes, -(-(len(self.words) - _FILE) // header.lane_words))
        self._table = np.zeros((lanes, core.CUDA_LS2_COLUMNS), np.int64)
        self.heads = np.zeros((lanes, _LANE), np.uint64)
        for first in range(0, lanes, step := self._lanes_at_once()):
            last = min(first + step, lanes)
            piece = self._words_of(first, last)
            core.cuda_ls2_scan(
                piece, header.capacity, header.record_words, header.is_ring, self.in_cycles, self._table[first:last]
            )
            at = _FILE + np.arange(last - first)[:, None] * header.lane_words + np.arange(_LANE)
            there = at < len(piece)
            self.heads[first:last][there] = piece[at[there]]
        self.scanned = dict(zip(SCANNED, self._table.T, strict=True))
        #: The words of the part that is decoded, and where they begin.
        self._part, self._start = self.words.window(0, _FILE), 0

    def _lanes_at_once(self) -> int:
        return max(1, len(self.words) if self.words.is_in_memory else PIECE_WORDS // self.header.lane_words)

    def _words_of(self, first: int, last: int) -> Words:
        """Return the words of lanes; as many words are in front of them as in front of the first lane of a file."""
        width = self.header.lane_words
        return self.words.window(first * width, _FILE + last * width)

    def _at(self, slots: I64) -> Words:
        """Return the words at these places of the part; any word where a place is none."""
        found: Words = self._part[np.clip(slots - self._start, 0, len(self._part) - 1)]
        return found

    @property
    def slots(self) -> int:
        """Words of the buffer."""
        return len(self.words)

    @property
    def in_cycles(self) -> bool:
        """True if the timestamps are cycles of the SMs."""
        return self.header.clock == layout.CLOCK64

    @property
    def has_payloads(self) -> bool:
        """True if a record has a second word."""
        return self.header.record_words == 2

    @property
    def clock(self) -> str:
        """Name of the counter behind the stamps."""
        return "clock64" if self.header.clock == layout.CLOCK64 else "globaltimer"

    @cached_property
    def grid(self) -> Grid:
        """The lanes that the file reaches."""
        lane = np.arange(len(self.heads), dtype=np.int64)
        groups = self.header.num_groups
        word = self.heads[:, 6]
        begun = self.scanned["state"] != layout.UNUSED
        # A full lane that was never finalized may have dropped more records than it counted. A counter of two positions
        # that has no room leaves the last one empty.
        needed = np.where((self.header.record_words == 1) & (self.scanned["special"] > 0), 2, 1)
        has_no_room = self.scanned["stored"] + needed > self.header.capacity
        at_capacity = has_no_room & (self.scanned["state"] != layout.FINALIZED) & (not self.header.is_ring)
        return Grid(
            self.header.num_blocks,
            groups,
            lane // groups,
            lane % groups,
            sm=np.where(begun, (word & np.uint64(0xFFFF)).astype(np.int64), UNKNOWN),
            warp=np.where(begun, (word >> np.uint64(16) & np.uint64(0xFFFF)).astype(np.int64), UNKNOWN),
            cluster_rank=np.where(begun, (word >> np.uint64(32)).astype(np.int64), UNKNOWN),
            grid_id=self.heads[:, 7],
            capacity=np.full(len(lane), self.header.capacity, np.int64),
            offered=self.scanned["offered"],
            lost=self.scanned["lost"],
            torn=self.scanned["torn"],
            counted=~at_capacity,
            at_capacity=at_capacity,
            refused=self.header.refused,
        )

    @cached_property
    def overwritten(self) -> I64 | None:
        """1 for lanes whose position 0 represents overwritten records, int64 [lanes]; None: no lane has any."""
        found = (self.scanned["lost"] > 0) & self.header.is_ring
        return found.astype(np.int64) if found.any() else None

    def slots_of(self, lane: U32 | I64, index: U32) -> I64:
        """Return the words at which records stand, int64 [n], from their lanes and positions in order of writing."""
        lanes, at = lane.astype(np.int64), index.astype(np.int64)
        if self.overwritten is not None:
            at = np.maximum(at - self.overwritten[lanes], 0) + self.scanned["first"][lanes]
        header = self.header
        start = _FILE + _LANE + lanes * header.lane_words
        found: I64 = start + (at & (header.capacity - 1)) * header.record_words
        return found

    def parts(self, limit: int) -> list[tuple[int, int]]:
        """Cut the lanes; those of one block stay together, because flows join them."""
        groups, lanes = self.header.num_groups, len(self.heads)
        # Empty positions are cheap, but they are read.
        taken = np.maximum(self.scanned["present"], self.header.lane_words // _SPARSE)
        ends = np.cumsum(taken)[groups - 1 :: groups]
        parts, first, done = [], 0, 0
        for block, end in enumerate(ends.tolist()):
            if end - done > limit and block * groups > first:
                parts.append((first, block * groups))
                first, done = block * groups, int(ends[block - 1])
        return [*parts, (first, lanes)]

    def part_launches(self, summary: Summary, *, keep: bool, launch_ns: int | None) -> bool:
        """What the lanes count is of one launch."""
        return False

    def decode(self, part: tuple[int, int], *, split: bool, step_back: int) -> Decoded:
        """Decode lanes; arguments as ``buffer.Buffer.decode`` describes them."""
        header, (first, last) = self.header, part
        scanned = {name: column[first:last] for name, column in self.scanned.items()}
        self._part, self._start = self._words_of(first, last), first * header.lane_words
        out = Outputs(
            last - first,
            slices=int(scanned["begins"].sum()),
            instants=int(scanned["marks"].sum()),
            gaps=int(scanned["present"].sum()) + last - first,
        )
        result = core.cuda_ls2_decode(
            self._part,
            header.capacity,
            header.record_words,
            header.is_ring,
            self.in_cycles,
            self._table[first:last],
            step_back,
            *out.arguments(),
        )
        decoded = out.done(result, stamp_wrap=layout.STAMP_WRAP, base=first)
        finalized = scanned["state"] == layout.FINALIZED
        decoded.summary["finalizes"][:] = finalized
        # Only a finalized lane tells its whole count; another one that is full may have lost something.
        filled = (scanned["stored"] == header.capacity) & ~finalized
        decoded.summary["full"][:] = ((scanned["lost"] > 0) | filled) & (not header.is_ring)
        return decoded

    def turns(self, summary: Summary, anchor: int | None, step_back: int) -> WrapOffsets:
        """Place each lane on its full clock: forward from its begin, or back from its end where the begin is lost."""
        at = self.extent(summary)
        first, last = summary["first"], summary["last"]
        forward = at_or_after(first, at.begin - step_back, self.stamp_bits) - first
        latest = at.end + step_back
        backward = at_or_after(last, latest + 1 - layout.STAMP_WRAP, self.stamp_bits) - last
        used = summary["records"] > 0
        lost_begin = np.zeros(len(first), np.bool_) if self.overwritten is None else self.overwritten > 0
        ticks = np.where(lost_begin & at.ended, backward, np.where(at.begun, forward, 0))
        ticks = np.where(used & (summary["min"] + ticks >= 0), ticks, 0)
        differs = at.ended & ~lost_begin & (forward != backward)
        doubtful = used & (~at.begun | differs | (lost_begin & ~at.ended))
        sure = used & at.begun & at.ended & ~lost_begin & ~differs
        return WrapOffsets(ticks, doubtful if doubtful.any() else None, sure)

    def extent(self, summary: Summary) -> LaneSpan:
        """Return the readings in the lane headers."""
        which = 1 if self.in_cycles else 0
        begin, end = self.heads[:, 2 + which], self.heads[:, 4 + which]
        begun = (self.scanned["state"] != layout.UNUSED) & (begin < _LATEST)
        ended = (self.scanned["state"] == layout.FINALIZED) & (end < _LATEST)
        return LaneSpan(
            np.where(begun, begin, 0).astype(np.int64), np.where(ended, end, 0).astype(np.int64), begun, ended
        )

    def clock_bounds(self, summary: Summary, extent: LaneSpan) -> Bounds | None:
        """Return the pairs of readings in the lane headers, which bound the SMs' counters."""
        if not self.in_cycles:
            return None
        lanes = np.arange(len(self.heads))
        parts = []
        for mask, ns, cycles in ((extent.begun, 2, 3), (extent.ended, 4, 5)):
            good = mask & (self.heads[:, ns] < _LATEST)
            parts.append((lanes[good], self.heads[good, cycles], self.heads[good, ns]))
        lane, cycles_, ns_ = (np.concatenate(column).astype(np.int64) for column in zip(*parts, strict=True))
        if not len(lane):
            return None
        tick = max(1, int(np.gcd.reduce(ns_ - ns_[0])))
        return Bounds(lane, cycles_, ns_, ns_ + tick)

    def special(self, lane: U32, index: U32) -> TaggedRecords:
        """Say what instants of the core really are."""
        slot = self.slots_of(lane, index)
        words = self._at(slot)
        kind = layout.LS2_RECORD["kind"].of(words).astype(np.int64)
        kind[words & np.uint64(1) == 0] = -1
        return TaggedRecords(kind, layout.LS2_RECORD["token"].of(words).astype(np.int64), slot)

    def tokens(self, slots: I64) -> I64:
        """Return the tokens of records, int64 [n]."""
        found: I64 = layout.LS2_RECORD["token"].of(self._at(slots)).astype(np.int64)
        return found

    def payloads(self, slots: I64) -> tuple[npt.NDArray[np.uint64], Mask | None]:
        """Return the words behind records, uint64 [n]."""
        return self._at(slots + 1), None

    def values(self, slots: I64, tokens: I64) -> npt.NDArray[np.float64]:
        """Return the values of counters, float64 [n], from their words and their types."""
        raw = self._at(slots + 1)
        if self.header.record_words == 1:
            # The value stands in the next position, which in a ring may be the first one.
            lane = (slots - _FILE) // self.header.lane_words
            start = _FILE + lane * self.header.lane_words + _LANE
            raw = self._at(start + ((slots - start + 1) & (self.header.capacity - 1))) & ~np.uint64(3)
        floats, integers = raw.view(np.float64), raw.view(np.int64)
        if self.header.record_words == 1:
            integers = integers >> 2
        return np.where(tokens == layout.LS2_FLOAT, floats, integers.astype(np.float64))

    @property
    def has_special(self) -> bool:
        """True with records other than begins, ends and instants."""
        return bool(self.scanned["special"].any())

    def describe(self) -> Mapping[str, Any]:
        """Return what the file header says."""
        header = self.header

        def room(times: float) -> int:
            needed = max(1, int(self.scanned["offered"].max(initial=0)))
            capacity = 1 << (min(needed, layout.LS2_MAX_CAPACITY) - 1).bit_length()
            wanted = header.required_blocks * header.required_groups
            lanes = wanted if wanted <= layout.TIRX_MAX_LANES else header.lanes
            return _FILE + lanes * (_LANE + capacity * header.record_words)

        return {
            "stride_source": "lanes",
            "overflow_policy": "ring" if header.is_ring else "drop",
            "launch_id": header.launch,
            "ordinal": min(header.ordinal, (1 << 63) - 1),
            "anchors": header.anchors,
            "unallocated_lanes": header.refused,
            "required_blocks": header.required_blocks if header.required_blocks > header.num_blocks else None,
            "required_groups": header.required_groups if header.required_groups > header.num_groups else None,
            "device": f"GPU {header.ordinal}",
            "room": room,
        }

    def account(self, summary: Summary) -> tuple[int, int]:
        """Count headers and records; holes, unreadable words and what no lane counts are lost.

        What an earlier launch left, and values of counters that a ring has overwritten, carry nothing.
        """
        scanned, width = self.scanned, self.header.record_words
        records = int(summary["records"].sum())
        starts = _FILE + np.arange(len(self.heads), dtype=np.int64) * self.header.lane_words
        heads = int(np.minimum(_LANE, len(self.words) - starts).sum())
        missing = int(scanned["present"].sum()) - int(self._torn(summary).sum()) - records
        return _FILE + heads + records * width, missing * width + int((scanned["stale"] - self._older).sum())

    @cached_property
    def _older(self) -> I64:
        """Return how many words behind the records of each lane an earlier launch left, int64 [lanes].

        Records of it are stamped before the lane was begun, and other words belong to the record in front of them. Of
        a lane that was never begun all are older.
        """
        found = np.zeros(len(self.heads), np.int64)
        width, begins = self.header.record_words, self.heads[:, 3 if self.in_cycles else 2]
        for lane in np.flatnonzero(self.scanned["stale"] > 0).tolist():
            words = self._words_of(lane, lane + 1)[_FILE + _LANE :]
            words = words[int(self.scanned["present"][lane] + self.scanned["torn"][lane]) * width :]
            if self.scanned["state"][lane] == layout.UNUSED:
                found[lane] = np.count_nonzero(words)
                continue
            place = np.arange(len(words))
            is_record = (words & np.uint64(1) == 1) & (place % width == 0)
            of = np.maximum.accumulate(np.where(is_record, place, -1))
            age = (words >> np.uint64(32)).astype(np.int64) - int(begins[lane] & np.uint64(layout.STAMP_WRAP - 1))
            is_older = is_record & ((age + layout.STAMP_WRAP // 2) % layout.STAMP_WRAP < layout.STAMP_WRAP // 2)
            found[lane] = np.count_nonzero(words[(of >= 0) & is_older[of]])
        return found

    def _torn(self, summary: Summary) -> I64:
        """Return 1 for lanes whose last position stayed empty because a counter takes two, int64 [lanes]."""
        full = (self.header.record_words == 1) & (self.scanned["lost"] > 0) & (not self.header.is_ring)
        return np.asarray(full & (self._tail(summary) == 1), np.int64)

    def _tail(self, summary: Summary) -> I64:
        """Return how many positions behind a lane's last record are empty though they were counted, int64 [lanes]."""
        ring = 0 if self.overwritten is None else self.overwritten
        found: I64 = self.scanned["present"] + ring - summary["records"] - summary["missing"]
        return found

    def stats(self, summary: Summary) -> Iterator[tuple[str, int, int | None]]:
        """Yield what the lane headers and the words give reason to say."""
        scanned, header = self.scanned, self.header
        starts = _FILE + np.arange(len(self.heads), dtype=np.int64) * header.lane_words

        def first(mask: Mask) -> int | None:
            return int(starts[mask.argmax()]) if mask.any() else None

        strange = ~np.isin(scanned["state"], (layout.UNUSED, layout.RUNNING, layout.FINALIZED))
        yield "cuda_unallocated_lane", header.refused or 0, layout.LS2_HEADER["refused"].lsb // 64
        yield "cuda_bad_lane_header", int(np.count_nonzero(strange)), first(strange)
        bad = summary["bad"] > 0
        yield "cuda_corrupt_record", int(summary["bad"].sum()), first(bad)
        older = self._older
        yield "cuda_stale_words", int(older.sum()), first(older > 0)
        uncounted = scanned["stale"] - older
        yield "cuda_uncounted", int(uncounted.sum()), first(uncounted > 0)
        yield "cuda_torn_counter", int(scanned["torn"].sum()), first(scanned["torn"] > 0)
        # What is empty behind a lane's last record leaves no gap between records.
        tail = self._tail(summary) - self._torn(summary)
        yield "cuda_missing_tail", int(tail.sum()), first(tail > 0)
        yield "cuda_contradictory_header", len(header.contradictions), next(iter(header.contradictions), None)
        found = ls2_contradictions.of_lanes(
            self.grid, self.heads, scanned["state"], header.window, summary, self.extent(summary)
        )
        for name, lanes in (
            ("cuda_contradictory_lane", found.impossible),
            ("cuda_lane_elsewhere", found.elsewhere),
            ("cuda_other_warp", found.other_warp),
        ):
            yield name, int(np.count_nonzero(lanes)), first(lanes)

    def raw(self) -> tuple[str, Callable[[int], Table]]:
        """Return what makes the table of words."""
        return LS2_RECORDS.name, lambda before: ls2_records(
            self.words.whole(), before, lane_words=self.header.lane_words, record_words=self.header.record_words
        )

"""Reader of LS2, our own layout (docs/adr/0004): checks the header, then hands all lanes to the common rules."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.cuda import layout
from lanescope.devices.cuda.grid import UNKNOWN, Grid
from lanescope.devices.cuda.lanes import I64, U32, Decoded, Outputs
from lanescope.devices.cuda.tirx import MAX_SLOTS, Words
from lanescope.errors import InputError
from lanescope.trace import Flag

_FILE, _LANE = layout.LS2_FILE_WORDS, layout.LS2_LANE_WORDS
#: Columns of the core's table of lanes.
SCANNED = ("state", "offered", "stored", "present", "first", "lost", "stale", "begins", "marks", "special")
#: A reading beyond this is none.
_LATEST = np.uint64(1 << 62)


@dataclass(frozen=True, slots=True)
class Ls2Header:
    """What the file header says.

    Attributes:
        num_blocks, num_groups: the grid.
        record_words: 1, or 2 with a payload.
        clock: ``layout.GLOBALTIMER`` or ``layout.CLOCK64``.
        is_ring: the newest records are kept, else the oldest.
        capacity: positions of a lane.
        launch, ordinal: the host's numbers of the launch and of the GPU.
        anchors: (globaltimer, Unix time, bound of the error), all in ns.
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
            raise InputError("the buffer does not begin with the header of an LS2 buffer", hint="was it copied whole?")
        fields = layout.LS2_HEADER.decode(int.from_bytes(words[:_FILE].tobytes(), "little"))
        if fields["version"] != layout.LS2_VERSION:
            raise InputError(f"LS2 version {fields['version']} is not known", hint="a newer lanescope may know it")
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
            raise InputError("the header of the LS2 buffer contradicts itself", hint="docs/adr/0004 says what it holds")
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
        )


class Ls2Buffer:
    """An LS2 buffer.

    Args:
        words: uint64 [n], the whole buffer; a cut one is read as far as it goes.

    Raises:
        InputError: the header is none.

    Attributes:
        header: the file header.
        words: the words of the buffer; what stands behind is left out.
        cut: words that the header promises and that are not there.
        behind: words behind the buffer.
        heads: uint64 [lanes, 8], the lane headers.
        scanned: by the names of ``SCANNED``, int64 [lanes].
    """

    format = layout.LS2
    unit_bytes = 8
    stamp_bits = layout.STAMP_BITS

    def __init__(self, words: Words) -> None:
        self.header = header = Ls2Header.read(words)
        if len(words) > MAX_SLOTS:
            raise InputError(f"a buffer of {len(words)} words is too large", hint=f"the limit is {MAX_SLOTS}")
        self.words = words[: header.size]
        self.cut = header.size - len(self.words)
        self.behind = len(words) - len(self.words)
        lanes = min(header.lanes, -(-(len(self.words) - _FILE) // header.lane_words))
        self._table = np.zeros((lanes, core.CUDA_LS2_COLUMNS), np.int64)
        core.cuda_ls2_scan(self.words, header.capacity, header.record_words, header.is_ring, self._table)
        self.scanned = dict(zip(SCANNED, self._table.T, strict=True))
        self.heads = np.zeros((lanes, _LANE), np.uint64)
        at = _FILE + np.arange(lanes)[:, None] * header.lane_words + np.arange(_LANE)
        there = at < len(self.words)
        self.heads[there] = self.words[at[there]]

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
        )

    @cached_property
    def overwritten(self) -> I64:
        """1 for lanes whose position 0 stands for what a ring overwrote, int64 [lanes]."""
        return ((self.scanned["lost"] > 0) & self.header.is_ring).astype(np.int64)

    def slots_of(self, lane: U32 | I64, index: U32) -> I64:
        """Return the words at which records stand, int64 [n], from their lanes and positions in order of writing."""
        lanes = lane.astype(np.int64)
        at = self.scanned["first"][lanes] + np.maximum(index.astype(np.int64) - self.overwritten[lanes], 0)
        header = self.header
        return (  # type: ignore[no-any-return]
            _FILE + lanes * header.lane_words + _LANE + (at & (header.capacity - 1)) * header.record_words
        )

    def decode(self, *, split: bool, step_back: int) -> Decoded:
        """Decode all lanes; arguments as ``lanes.Buffer.decode`` describes them. The result is aligned."""
        scanned, header = self.scanned, self.header
        begins, marks = int(scanned["begins"].sum()), int(scanned["marks"].sum())
        present = int(scanned["present"].sum())
        out = Outputs(len(self.heads), slices=begins, instants=marks, gaps=present + len(self.heads))
        result = core.cuda_ls2_decode(
            self.words,
            header.capacity,
            header.record_words,
            header.is_ring,
            self._table,
            step_back,
            *out.arguments(),
        )
        decoded = out.done(result, stamp_wrap=layout.STAMP_WRAP)
        summary = decoded.summary
        finalized = scanned["state"] == layout.FINALIZED
        summary["finalizes"][:] = finalized
        # A count that only a finalized lane tells; without it a full lane may have lost something.
        filled = (scanned["stored"] == header.capacity) & ~finalized & (not header.is_ring)
        summary["full"][:] = ((scanned["lost"] > 0) & (not header.is_ring)) | filled
        return decoded

    def align(self, decoded: Decoded, anchor: int | None, step_back: int) -> npt.NDArray[np.bool_] | None:
        """Put all lanes on their full clocks, and note when they were finalized.

        Args:
            decoded: from ``decode``; its ticks move.
            anchor: not needed; the lane headers hold full readings.
            step_back: ticks by which a first stamp may lie before its lane's begin, or a last one behind its end.

        Returns:
            bool [lanes], where the turn of the counter is not certain; None: nowhere.
        """
        wrap, summary = layout.STAMP_WRAP, decoded.summary
        begin, end, known, ended = self.readings()
        first, last = summary["first"], summary["last"]
        forward = begin + (first - begin + step_back) % wrap - step_back - first
        backward = end - ((end - last + step_back) % wrap - step_back) - last
        lost_begin = self.overwritten != 0
        used = summary["records"] > 0
        turns = np.where(lost_begin & ended, backward, np.where(known, forward, 0))
        doubtful = used & (~known | (ended & ~lost_begin & (forward != backward)) | (lost_begin & ~ended))
        sure = used & known & ended & ~lost_begin & ~doubtful
        decoded.move(np.where(used, turns, 0))
        summary["finalize"][:] = np.where(ended, end, 0)
        # Both ends of the lane agree with what lies between: no silence hid a turn.
        ambiguous = np.uint32(Flag.EPOCH_AMBIGUOUS)
        if decoded.seen & Flag.EPOCH_AMBIGUOUS and sure.any():
            for rows in (decoded.slices, decoded.instants):
                rows.columns["flags"] &= np.where(rows.spread(sure), ~ambiguous, ~np.uint32(0))
            summary["jumps"][sure] = 0
        return doubtful if doubtful.any() else None

    def readings(self) -> tuple[I64, I64, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
        """Return each lane's clock when it was begun and when it was finalized, and where these are known."""
        at = 1 if self.header.clock == layout.CLOCK64 else 0
        begin, end = self.heads[:, 2 + at], self.heads[:, 4 + at]
        known = (self.scanned["state"] != layout.UNUSED) & (begin < _LATEST)
        ended = (self.scanned["state"] == layout.FINALIZED) & (end < _LATEST)
        return np.where(known, begin, 0).astype(np.int64), np.where(ended, end, 0).astype(np.int64), known, ended

    def special(self, lane: U32, index: U32) -> dict[str, npt.NDArray[Any]]:
        """Return what instants of the core really are.

        Args:
            lane: uint32 [n].
            index: uint32 [n].

        Returns:
            ``kind`` (``layout.LS2_KINDS``, -1 the value of a counter), ``token`` and ``slot``, int64 [n].
        """
        slot = self.slots_of(lane, index)
        words = self.words[slot]
        kind = layout.LS2_RECORD["kind"].of(words).astype(np.int64)
        kind[words & np.uint64(1) == 0] = -1
        return {"kind": kind, "token": layout.LS2_RECORD["token"].of(words).astype(np.int64), "slot": slot}

    def tokens(self, slots: I64) -> I64:
        """Return the tokens of records at words, int64 [n]."""
        return layout.LS2_RECORD["token"].of(self.words[slots]).astype(np.int64)  # type: ignore[no-any-return]

    def payloads(self, slots: I64) -> npt.NDArray[np.uint64] | None:
        """Return the payloads of records at words, uint64 [n]; None in buffers of one-word records."""
        if self.header.record_words == 1:
            return None
        return self.words[np.minimum(slots + 1, len(self.words) - 1)]

    def values(self, slots: I64, tokens: I64) -> npt.NDArray[np.float64]:
        """Return the values of counters, float64 [n], from their words and their types."""
        at = np.minimum(slots + 1, len(self.words) - 1)
        raw = self.words[at]
        if self.header.record_words == 1:
            # The value stands in the next position, which in a ring may be the first one.
            lane = (slots - _FILE) // self.header.lane_words
            start = _FILE + lane * self.header.lane_words + _LANE
            raw = self.words[start + ((slots - start + 1) & (self.header.capacity - 1))] & ~np.uint64(3)
        floats, integers = raw.view(np.float64), raw.view(np.int64)
        if self.header.record_words == 1:
            integers = integers >> 2
        return np.where(tokens == layout.LS2_FLOAT, floats, integers.astype(np.float64))

    @property
    def has_special(self) -> bool:
        """Whether there are records of more than begins, ends and instants."""
        return bool(self.scanned["special"].any())

    def account(self, decoded: Decoded) -> tuple[int, int, int]:
        """Return (words, understood, lost); the others carry nothing."""
        scanned, width = self.scanned, self.header.record_words
        records = int(decoded.summary["records"].sum())
        understood = _FILE + int(np.minimum(_LANE, len(self.words) - _FILE - self._lane_starts()).sum())
        understood += records * width
        lost = (int(scanned["present"].sum()) - records) * width + int(scanned["stale"].sum())
        return len(self.words), understood, lost

    def _lane_starts(self) -> I64:
        return np.arange(len(self.heads), dtype=np.int64) * self.header.lane_words

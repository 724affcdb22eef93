"""Reader of the TIRx v1 layout: checks the header, finds the stride, and hands all lanes to the common rules."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.lanes import Decoded, Outputs
from lanescope.devices.cuda.formats.layout import (
    BEGIN,
    KINDS,
    STAMP_BITS,
    STAMP_WRAP,
    TIRX_HEADER,
    TIRX_MAX_LANES,
    TIRX_RECORD,
    TIRX_V1,
)
from lanescope.devices.cuda.formats.word_source import LaneMajorStore, Words, WordStore, store_of
from lanescope.errors import InputError, UsageError

#: Beyond this positions do not fit the 32 bits that the core keeps them in.
MAX_SLOTS = 1 << 32
#: Strides that are tried when some words are damaged, so that no single one divides all distances.
MAX_CANDIDATES = 8
#: Slots among which strides are looked for where not all slots are in memory.
SAMPLE_SLOTS = 1 << 22
#: A buffer that is not in memory is cut, however few records it has, if it has more than so many times the slots.
_SPARSE = 4
UNWRITTEN = "buffer header not written"
_NO_SLOTS = np.empty(0, np.int64)


def _roles() -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8], int]:
    """Return the fields of a record, kinds by value, and the word of an empty slot, as the core takes them."""
    names = "time", "event", "kind", None, "lane"
    fields = [(0, 0, 64) if name is None else (0, TIRX_RECORD[name].lsb, TIRX_RECORD[name].width) for name in names]
    return np.array([*fields, (0, 0, 0)], np.int64), np.arange(len(KINDS), dtype=np.uint8), 0


_ROLES = _roles()


@frozen_class
class Geometry:
    """Positions of the records in a buffer.

    Attributes:
        num_blocks: from the header.
        num_groups: from the header.
        stride: slots between two records of a lane; 0: unknown, lanes are taken from the tags.
        source: ``given``, ``tight`` (as many as there are lanes), ``inferred`` or ``unknown``.
    """

    num_blocks: int
    num_groups: int
    stride: int = 0
    source: str = "unknown"

    @property
    def lanes(self) -> int:
        """Lanes of the grid."""
        return self.num_blocks * self.num_groups

    def capacity(self, slots: int) -> npt.NDArray[np.int64]:
        """Return for how many records each lane has room, int64 [lanes]."""
        first = np.arange(1, 1 + self.lanes, dtype=np.int64)
        return np.maximum(0, (slots - 1 - first) // self.stride + 1)


def header(words: Words | WordStore) -> Geometry:
    """Return what slot 0 says.

    Args:
        words: uint64 [n], the whole buffer or its beginning.

    Raises:
        InputError: the header is missing, or no kernel writes it.
    """
    if not len(words):
        raise InputError("buffer is shorter than its header", hint="check that the buffer was copied from the device")
    fields = TIRX_HEADER.decode(int(store_of(words).window(0, 1)[0]))
    blocks, groups = fields["num_blocks"], fields["num_groups"]
    if not blocks and not groups:
        is_empty = not any(piece.any() for _, piece in store_of(words).pieces(0, len(words), 1))
        raise InputError(
            "buffer contains only zeros: header not written" if is_empty else UNWRITTEN,
            hint="check that block 0 ran, profiling was compiled in, and the buffer was copied from the device",
        )
    if not blocks or not groups or blocks * groups > TIRX_MAX_LANES:
        raise InputError(
            f"invalid header: {blocks} blocks of {groups} groups",
            hint=f"check that slot 0 is the first word of the file: {TIRX_V1} supports 1 to {TIRX_MAX_LANES} lanes",
        )
    return Geometry(blocks, groups)


def check_size(slots: int, lanes: int) -> None:
    """Check that a buffer has a slot for each lane, and no more slots than positions can count.

    Args:
        slots: of the whole buffer, that of the header included.
        lanes: of the grid.

    Raises:
        InputError: it has fewer, or more.
    """
    if lanes > slots - 1:
        raise InputError(
            f"buffer is too short: {slots - 1} slots for {lanes} lanes",
            hint="save the complete buffer",
        )
    if slots > MAX_SLOTS:
        raise InputError(f"buffer is too large: {slots} slots, the limit is {MAX_SLOTS}", hint="use fewer slots")


@frozen_class
class Scan:
    """Result of a pass over all slots, for one stride.

    Attributes:
        used: words that are not zero.
        misplaced: words of them whose lane is not that of their slot.
        first_misplaced: slot of the first of those.
        last_used: slot of the last word that is not zero.
        counts: uint32 [lanes, 2], words of each lane that are not zero, and begins among them; misplaced ones too.
    """

    used: int
    misplaced: int
    first_misplaced: int
    last_used: int
    counts: npt.NDArray[np.uint32]


def scan(words: Words | WordStore, lanes: int, stride: int) -> Scan:
    """Count the words of a buffer and compare each one's lane with its slot."""
    store = store_of(words)
    counts = np.zeros((lanes, 2), np.uint32)
    used = misplaced = first_misplaced = last_used = 0
    for first, piece in store.pieces(1, len(store), stride):
        mine = np.empty_like(counts) if used or misplaced else counts
        more = core.cuda_tirx_scan(piece, first, stride, mine)
        if mine is not counts:
            counts += mine
        first_misplaced = first_misplaced if misplaced else more[2]
        used, misplaced, last_used = used + more[0], misplaced + more[1], more[3] or last_used
    return Scan(used, misplaced, first_misplaced, last_used, counts)


def find_stride(words: Words | WordStore, geometry: Geometry) -> tuple[Geometry, Scan]:
    """Find the stride, which the buffer does not hold.

    As a rule it is the number of lanes, and then most of the second row is filled like the first. Otherwise strides are
    tried: the greatest common divisor of all distances from the first slots, which is the stride of a sound buffer as
    soon as one lane has two records in a row; and the distances that are most frequent between neighbours of one lane,
    because damaged words spoil the divisor. That one is taken which leaves least to explain, misplaced words and holes,
    if it places more than half of the words. Of a buffer that is not in memory the first ``SAMPLE_SLOTS`` are judged.

    Args:
        words: uint64 [n], the whole buffer.
        geometry: from ``header``.

    Returns:
        The geometry with the stride, 0 if there is none, and what the slots hold under it.
    """
    lanes, store = geometry.lanes, store_of(words)
    tight = scan(store, lanes, lanes)
    rows = (store.window(1 + row * lanes, 1 + (row + 1) * lanes) for row in (0, 1))
    first, second = (int(np.count_nonzero(row)) for row in rows)
    if not tight.misplaced and (4 * second >= 3 * first or tight.last_used <= lanes):
        return Geometry(geometry.num_blocks, geometry.num_groups, lanes, "tight"), tight
    judged = store if store.is_in_memory else store.beginning(max(SAMPLE_SLOTS, 4 * lanes))
    slots, tags = _tagged(judged.whole(), lanes)
    order = np.argsort(tags, kind="stable")
    slots, tags = slots[order], tags[order]
    distances = np.diff(slots)[np.diff(tags) == 0]
    frequent, counts = np.unique(distances[distances >= lanes], return_counts=True)
    candidates = {lanes, *frequent[np.argsort(-counts, kind="stable")[:MAX_CANDIDATES]].tolist()}
    if (divisor := core.cuda_tirx_stride_divisor(judged.whole())) >= lanes:
        candidates.add(divisor)
    stride = min(sorted(candidates), key=lambda candidate: _unexplained(slots, tags, candidate))
    found = scan(store, lanes, stride)
    if 2 * found.misplaced >= found.used:
        return geometry, tight
    source = "tight" if stride == lanes else "inferred"
    return Geometry(geometry.num_blocks, geometry.num_groups, stride, source), found


def _unexplained(slots: npt.NDArray[np.int64], tags: npt.NDArray[np.int64], stride: int) -> int:
    """Return how many words a stride leaves without a place, and how many holes it leaves before others.

    Args:
        slots: int64 [n], by lane, then by slot.
        tags: int64 [n], their lanes.
        stride: the stride to judge.
    """
    distance = slots - 1 - tags
    placed = (distance % stride == 0) & (distance >= 0)
    index, lane = distance[placed] // stride, tags[placed]
    is_last = np.ones(len(lane), np.bool_)
    is_last[:-1] = lane[1:] != lane[:-1]
    positions = int((index[is_last] + 1).sum())
    return len(slots) - len(lane) + positions - len(lane)


def _tagged(words: Words, lanes: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the slots of the words that name a lane of the grid, and that lane, both int64 [n] in slot order."""
    slots = np.flatnonzero(words[1:]) + 1
    tags = TIRX_RECORD["lane"].of(words[slots]).astype(np.int64)
    inside = tags < lanes
    return slots[inside], tags[inside]


@dataclass
class TirxBuffer:
    """A buffer of the TIRx v1 layout.

    Attributes:
        words: the slots.
        geometry: where its records stand.
        found: what its slots hold.
        listed: slots of all records, less 1, lane after lane, int64 [n]; empty where the stride is known.
        starts: where each lane begins in ``listed``, int64 [lanes + 1].
        cuts: first positions of each lane that earlier launches left, int64 [lanes, launches], not falling; empty:
            nothing is known of any.
        keeps_earlier: those positions are decoded as well, as a further launch.
        lane_parts: the last answer of ``parts``.
    """

    words: WordStore
    geometry: Geometry
    found: Scan
    listed: npt.NDArray[np.int64] = field(default_factory=lambda: _NO_SLOTS)
    starts: npt.NDArray[np.int64] = field(default_factory=lambda: _NO_SLOTS)
    cuts: npt.NDArray[np.int64] = field(default_factory=lambda: _NO_SLOTS[:, None])
    keeps_earlier: bool = False
    lane_parts: list[tuple[int, int]] = field(default_factory=list)
    _by_lanes: LaneMajorStore | None = None

    format = TIRX_V1
    clock = "globaltimer_lo"

    @classmethod
    def read(cls, words: Words | WordStore, *, stride: int | None = None) -> TirxBuffer:
        """Check the header and find out where the records stand.

        Args:
            words: uint64 [n], the whole buffer.
            stride: slots between two records of a lane, when the caller knows it.

        Raises:
            InputError: the header is none, or the buffer is too short for its lanes.
            UsageError: the given stride is smaller than the number of lanes.
        """
        store = store_of(words)
        geometry = header(store)
        lanes = geometry.lanes
        check_size(len(store), lanes)
        if stride is None:
            geometry, found = find_stride(store, geometry)
        elif stride < lanes:
            raise UsageError(
                f"invalid stride {stride}: too small for {lanes} lanes", hint="remove --stride to detect it"
            )
        else:
            geometry = Geometry(geometry.num_blocks, geometry.num_groups, stride, "given")
            found = scan(store, lanes, stride)
        if not geometry.stride:
            # Records of a lane may stand anywhere, so all have to be at hand.
            store = WordStore(store.whole())
        buffer = cls(store, geometry, found)
        if not geometry.stride:
            slots, tags = _tagged(store.whole(), lanes)
            buffer.listed = slots[np.argsort(tags, kind="stable")] - 1
            buffer.starts = np.concatenate(([0], np.cumsum(np.bincount(tags, minlength=lanes)))).astype(np.int64)
        return buffer

    @property
    def unreadable(self) -> int:
        """Words that are no record of the lane of their slot."""
        return self.found.used - len(self.listed) if not self.geometry.stride else self.found.misplaced

    def slots_of(self, lane: npt.NDArray[np.uint32], index: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        """Return the slots of records, int64 [n], from their lanes and their positions in them."""
        if self.geometry.stride:
            return 1 + lane.astype(np.int64) + index.astype(np.int64) * self.geometry.stride
        found: npt.NDArray[np.int64] = 1 + self.listed[self.starts[lane] + index]
        return found

    def parts(self, limit: int) -> list[tuple[int, int]]:
        """Cut the lanes, first and last + 1, into runs of about ``limit`` slots."""
        lanes, stride = self.geometry.lanes, self.geometry.stride
        slots = self.found.last_used
        self.lane_parts = [(0, lanes)]
        self._by_lanes = None
        if stride and (self.found.used > limit or (slots > _SPARSE * limit and not self.words.is_in_memory)):
            width = max(1, limit // (slots // stride + 1))
            self.lane_parts = [(first, min(first + width, lanes)) for first in range(0, lanes, width)]
        return self.lane_parts

    def _slots(self, first: int, last: int) -> tuple[Words, int]:
        """Return the slots of lanes, row after row, and the length of a row.

        Nothing behind the last used slot matters but that it is empty, and a trailing row shows that.
        """
        lanes, stride = self.geometry.lanes, self.geometry.stride
        end = min(len(self.words), self.found.last_used + 1 + stride)
        if last - first == lanes:
            return self.words.window(1, end), stride
        rows = (end - 1) // stride
        behind = 1 + rows * stride  # a last row that is cut
        tail = self.words.window(behind + first, min(end, behind + last))
        if self.words.is_in_memory:
            body = self.words.window(1, behind).reshape(rows, stride)[:, first:last].reshape(-1)
        else:
            if self._by_lanes is None:
                self._by_lanes = LaneMajorStore(self.words, stride, rows, self.lane_parts)
            body = self._by_lanes.rows(first, last)
        return np.concatenate([body, tail]) if len(tail) else np.ascontiguousarray(body), last - first

    def table(self, first: int, last: int, rows: int) -> Words:
        """Return the first ``rows`` slots of lanes of a part, uint64 [rows, lanes]; those that are not there are 0."""
        words, width = self._slots(first, last)
        size = rows * width
        if len(words) < size:
            words = np.concatenate([words, np.zeros(size - len(words), np.uint64)])
        return words[:size].reshape(rows, width)[:, : last - first]

    def decode(self, *, split: bool, step_back: int, part: tuple[int, int] | None = None) -> Decoded:
        """Decode the lanes of a part, all of them when it is None; arguments as ``buffer.Buffer.decode`` has them."""
        first, last = part or (0, self.geometry.lanes)
        lanes, expected = last - first, np.arange(first, last, dtype=np.int64)
        is_full = np.zeros(lanes, np.uint8)
        if self.geometry.stride:
            slots, row = self._slots(first, last)
            used, begins = self.found.counts[first:last].astype(np.int64).T
            base = expected - first
            rows = np.maximum(0, (len(slots) - 1 - base) // row + 1)
            some = np.flatnonzero(rows)
            ends = slots[base[some] + (rows[some] - 1) * row]
            is_full[some] = (ends != 0) & (TIRX_RECORD["lane"].of(ends).astype(np.int64) == expected[some])
        else:
            slots, row = self.words.window(1, len(self.words))[self.listed], 1
            base, rows = self.starts[:-1], np.diff(self.starts)
            used = rows
            at = np.concatenate(([0], np.cumsum(TIRX_RECORD["kind"].of(slots) == BEGIN)))
            begins = at[self.starts[1:]] - at[base]
        counts = np.zeros((lanes, core.CUDA_LANE_COUNTS), np.int64)
        counts[:, 0], counts[:, 1] = begins, used - begins
        total, all_begins = int(used.sum()), int(begins.sum())
        out = Outputs(lanes, slices=all_begins, instants=total - all_begins, gaps=total + lanes)
        nothing = np.zeros(lanes, np.int64)
        result = core.cuda_decode_records(
            slots.view(np.uint8),
            (8 * base, nothing, nothing, np.concatenate(([0], np.cumsum(rows))), 8 * row),
            (*_ROLES, expected, 0, 0),
            counts,
            (
                np.zeros(lanes, np.uint8),
                is_full,
                np.ascontiguousarray(self.cuts[first:last]).reshape(-1),
                self.keeps_earlier,
            ),
            STAMP_BITS,
            step_back,
            split,
            *out.arguments(),
        )
        return out.done(result, stamp_wrap=STAMP_WRAP, base=first)

"""Records -> LS2 buffers, as a probe stores them; the exact inverse of ``ls2.py``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.layout import COUNTER, LS2_FLOAT, LS2_HEADER, LS2_LANE, LS2_RECORD
from lanescope.devices.cuda.formats.word_source import Words

I64 = npt.NDArray[np.int64]

#: A running lane's count lags behind by less than this.
COUNT_EVERY = 64


@dataclass(frozen=True, slots=True)
class Ls2Records:
    """Records of many lanes, those of one lane in write order.

    Attributes:
        lane: int64 [n].
        event: int64 [n].
        kind: int64 [n], of ``layout.LS2_KINDS``.
        time: int64 [n], the clock; the buffer keeps the low 32 bits.
        token: int64 [n].
        payload: uint64 [n], of counters the value as its 64 bits.
    """

    lane: I64
    event: I64
    kind: I64
    time: I64
    token: I64
    payload: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        return len(self.lane)

    def take(self, rows: Any) -> Ls2Records:
        """Return the records at indices or under a mask."""
        return Ls2Records(
            self.lane[rows], self.event[rows], self.kind[rows], self.time[rows], self.token[rows], self.payload[rows]
        )


@dataclass(frozen=True, slots=True)
class Ls2Setup:
    """The file header; fields as ``layout.LS2_HEADER`` names them. The last three are the kernel's."""

    num_blocks: int
    num_groups: int
    capacity: int
    record_words: int = 1
    clock: int = layout.GLOBALTIMER
    is_ring: bool = False
    launch: int = 0
    ordinal: int = 0
    anchors: tuple[tuple[int, int, int], ...] = ()
    version: int = layout.LS2_VERSION
    refused: int = 0
    required_blocks: int = 0
    required_groups: int = 0

    @property
    def lanes(self) -> int:
        """Lanes of the grid."""
        return self.num_blocks * self.num_groups

    @property
    def lane_words(self) -> int:
        """Words of a lane."""
        return layout.LS2_LANE_WORDS + self.capacity * self.record_words


def refuse(setup: Ls2Setup, blocks: int, block: I64, group: I64) -> Ls2Setup:
    """Return the file header after lanes were begun, as probes leave it: those beyond the buffer are counted.

    Args:
        setup: the header before.
        blocks: of the grid.
        block: int64 [n], of each lane that was begun.
        group: int64 [n], likewise.
    """
    no_block, no_group = block >= setup.num_blocks, group >= setup.num_groups
    return replace(
        setup,
        refused=setup.refused + int(np.count_nonzero(no_block | no_group)),
        required_blocks=max(setup.required_blocks, blocks if no_block.any() else 0),
        required_groups=max(setup.required_groups, int(group[no_group].max(initial=-1)) + 1),
    )


def pack(records: Ls2Records) -> Words:
    """Return the record words, uint64 [n].

    Raises:
        ValueError: a value does not fit its field.
    """
    words = np.ones(len(records), np.uint64)
    for name, values in (("event", records.event), ("kind", records.kind), ("token", records.token)):
        field = LS2_RECORD[name]
        if len(values) and not 0 <= int(values.min()) <= int(values.max()) <= field.mask:
            raise ValueError(f"{LS2_RECORD.name}.{name}: values exceed {field.width} bits")
        words |= values.astype(np.uint64) << np.uint64(field.lsb)
    time = LS2_RECORD["time"]
    return words | (records.time.astype(np.uint64) & np.uint64(time.mask)) << np.uint64(time.lsb)


def value_words(records: Ls2Records) -> Words:
    """Return the value words of counters in buffers of one-word records, uint64 [n]: 62 bits and the bits 10."""
    shifted = np.where(records.token == LS2_FLOAT, records.payload, records.payload << np.uint64(2))
    return (shifted & ~np.uint64(3)) | np.uint64(2)


def positions(records: Ls2Records, setup: Ls2Setup) -> tuple[I64, I64]:
    """Return each record's position in its lane, int64 [n], and the positions offered, int64 [lanes]."""
    width = np.where((records.kind == COUNTER) & (setup.record_words == 1), 2, 1)
    order = np.argsort(records.lane, kind="stable")
    behind = np.cumsum(width[order])
    offered = np.bincount(records.lane, weights=width, minlength=setup.lanes).astype(np.int64)
    before = np.cumsum(offered) - offered
    position = np.empty(len(records), np.int64)
    position[order] = behind - width[order] - before[records.lane[order]]
    return position, offered


def encode(
    records: Ls2Records, setup: Ls2Setup, heads: npt.NDArray[np.uint64]
) -> tuple[Words, npt.NDArray[np.bool_], I64]:
    """Store records as a probe does: within its lane, counting what it drops.

    Args:
        records: the records.
        setup: the file header.
        heads: uint64 [lanes, 8], the lane headers; the count of offered positions is filled in.

    Returns:
        The buffer, uint64 [n]; which records are in it, bool [n]; positions offered, int64 [lanes].

    Raises:
        ValueError: a value does not fit its field.
    """
    position, offered = positions(records, setup)
    single = setup.record_words == 1
    counters = (records.kind == COUNTER) & single
    capacity = setup.capacity
    if setup.is_ring:
        stored = position >= (offered - capacity)[records.lane]
        tail = counters & (position + 1 >= (offered - capacity)[records.lane])
    else:
        stored = position + counters < capacity
        tail = counters & stored
    words = np.zeros(layout.LS2_FILE_WORDS + setup.lanes * setup.lane_words, np.uint64)
    words[: layout.LS2_FILE_WORDS] = header_words(setup)
    lanes = words[layout.LS2_FILE_WORDS :].reshape(setup.lanes, setup.lane_words)
    lanes[:, : layout.LS2_LANE_WORDS] = heads
    finalized = heads[:, 0] == layout.FINALIZED
    lanes[:, 1] = np.where(finalized, offered, offered // COUNT_EVERY * COUNT_EVERY)
    at = layout.LS2_LANE_WORDS + (position & (capacity - 1)) * setup.record_words
    lanes[records.lane[stored], at[stored]] = pack(records)[stored]
    if single:
        behind = layout.LS2_LANE_WORDS + ((position[tail] + 1) & (capacity - 1))
        lanes[records.lane[tail], behind] = value_words(records.take(tail))
    else:
        lanes[records.lane[stored], at[stored] + 1] = records.payload[stored]
    return words, stored, offered


def header_words(setup: Ls2Setup) -> Words:
    """Return the file header, uint64 [16]."""
    anchors = [*setup.anchors, (0, 0, 0), (0, 0, 0)]
    fields = {
        "magic": layout.LS2_MAGIC,
        "version": setup.version,
        "record_words": setup.record_words,
        "clock": setup.clock,
        "policy": layout.RING if setup.is_ring else layout.DROP,
        "flags": 0,
        "num_blocks": setup.num_blocks,
        "num_groups": setup.num_groups,
        "capacity": setup.capacity,
        "launch": setup.launch,
        "ordinal": setup.ordinal,
        "refused": setup.refused,
        "required_blocks": setup.required_blocks,
        "required_groups": setup.required_groups,
        "reserved": 0,
    }
    for name, anchor in zip(("anchor", "anchor2"), anchors, strict=False):
        fields |= {f"{name}_{part}": value for part, value in zip(("ticks", "unix", "error"), anchor, strict=True)}
    return np.frombuffer(LS2_HEADER.encode(fields).to_bytes(LS2_HEADER.bits // 8, "little"), "<u8")


def lane_heads(lanes: int, **fields: Any) -> npt.NDArray[np.uint64]:
    """Return lane headers, uint64 [lanes, 8], from columns (arrays or scalars) named as ``layout.LS2_LANE`` does."""
    heads = np.zeros((lanes, layout.LS2_LANE_WORDS), np.uint64)
    for name, values in fields.items():
        field = LS2_LANE[name]
        word, shift = divmod(field.lsb, 64)
        heads[:, word] |= np.asarray(values, np.int64).astype(np.uint64) << np.uint64(shift)
    return heads

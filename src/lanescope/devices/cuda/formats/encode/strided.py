"""Records -> words: the exact inverse of the readers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats.layout import FLASHINFER_V2_RECORD, TIRX_HEADER, TIRX_RECORD
from lanescope.devices.cuda.formats.word_source import Words
from lanescope.source import npy

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Records:
    """Records of many lanes, those of one lane in write order.

    Attributes:
        lane: int64 [n].
        event: int64 [n].
        kind: int64 [n], ``layout.BEGIN`` and so on.
        time: int64 [n], ns; the buffer keeps the low 32 bits.
    """

    lane: I64
    event: I64
    kind: I64
    time: I64

    def __len__(self) -> int:
        return len(self.lane)


def pack(records: Records) -> Words:
    """Return the words of records, uint64 [n].

    Raises:
        ValueError: a lane, event or kind does not fit its field.
    """
    words = np.zeros(len(records), np.uint64)
    for name, values in (("lane", records.lane), ("event", records.event), ("kind", records.kind)):
        field = TIRX_RECORD[name]
        if len(values) and not 0 <= int(values.min()) <= int(values.max()) <= field.mask:
            raise ValueError(f"{TIRX_RECORD.name}.{name}: values exceed {field.width} bits")
        words |= values.astype(np.uint64) << np.uint64(field.lsb)
    time = TIRX_RECORD["time"]
    return words | (records.time.astype(np.uint64) & np.uint64(time.mask)) << np.uint64(time.lsb)


def to_flashinfer2(words: Words, *, num_blocks: int, num_groups: int, sm: I64) -> Words:
    """Retag a buffer of TIRx v1 words with a tight stride as FlashInfer's second probe does.

    Args:
        words: uint64 [n], header and records.
        num_blocks: from the header.
        num_groups: from the header.
        sm: int64 [blocks], the SM of each block.

    Returns:
        uint64 [n]; block numbers that do not fit their field run into that of the SM, as they do on the device.
    """
    lanes = (TIRX_RECORD["lane"].of(words)).astype(np.int64)
    block = np.minimum(lanes // num_groups, num_blocks - 1)
    tags = sm[block].astype(np.uint64) << np.uint64(FLASHINFER_V2_RECORD["sm"].lsb)
    tags |= block.astype(np.uint64) << np.uint64(FLASHINFER_V2_RECORD["block"].lsb)
    tag = np.uint64(TIRX_RECORD["lane"].mask << TIRX_RECORD["lane"].lsb)
    found: Words = np.where(words == 0, words, (words & ~tag) | (tags & tag))
    found[0] = words[0]
    return found


def positions(lane: I64) -> I64:
    """Return each record's position in its lane, int64 [n], counting in the order of the records."""
    order = np.argsort(lane, kind="stable")
    ordered = lane[order]
    first = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1))
    index = np.empty(len(lane), np.int64)
    index[order] = np.arange(len(lane)) - np.repeat(first, np.diff(first, append=len(lane)))
    return index


def header_word(num_blocks: int, num_groups: int) -> int:
    """Return the word of slot 0."""
    return TIRX_HEADER.encode({"num_blocks": num_blocks, "num_groups": num_groups})


def encode(
    records: Records, *, num_blocks: int, num_groups: int, stride: int = 0, slots: int = 0, index: I64 | None = None
) -> tuple[Words, npt.NDArray[np.bool_]]:
    """Store records as a bounds-checked probe does: what has no room is dropped.

    Args:
        records: the records.
        num_blocks: blocks of the grid.
        num_groups: groups per block.
        stride: slots between two records of a lane; 0: as many as there are lanes.
        slots: slots of the buffer, 0: as many as are needed.
        index: int64 [n], each record's position in its lane; counted when not given.

    Returns:
        The buffer, uint64 [slots], and which records are in it, bool [n].

    Raises:
        ValueError: a value does not fit its field.
    """
    stride = stride or num_blocks * num_groups
    slot = 1 + records.lane + (positions(records.lane) if index is None else index) * stride
    slots = slots or max(int(slot.max(initial=0)), num_blocks * num_groups) + 1
    stored = slot < slots
    words = np.zeros(slots, np.uint64)
    words[0] = header_word(num_blocks, num_groups)
    packed = pack(records)
    words[slot[stored]] = packed[stored]
    return words, stored


def restore(table: Any, *, num_blocks: int, num_groups: int, slots: int) -> Words:
    """Return the buffer, uint64 [slots], from ``trace.records["cuda_records"]`` and the geometry.

    Args:
        table: the fields of the words that are not zero.
        num_blocks: from ``cuda_buffers``.
        num_groups: from ``cuda_buffers``.
        slots: from ``cuda_buffers``.
    """
    words = np.zeros(slots, np.uint64)
    words[0] = header_word(num_blocks, num_groups)
    lane, event, time = (table.values(name).astype(np.int64) for name in ("lane", "event_id", "time"))
    words[table.values("slot")] = pack(Records(lane, event, table.codes("kind").astype(np.int64), time))
    return words


def to_npy(words: Words) -> bytes:
    """Return the words as the bytes of an ``.npy`` file."""
    return npy.make(len(words)) + words.astype("<u8", copy=False).tobytes()

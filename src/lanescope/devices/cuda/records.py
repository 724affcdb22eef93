"""The raw records of a buffer, field by field, for people who debug a decoder or a probe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.devices.cuda import layout
from lanescope.devices.cuda.layout import KINDS, LS2_KINDS, LS2_RECORD, PROTON_ENTRY, TIRX_RECORD
from lanescope.devices.cuda.schema import LS2_RECORDS, PROTON_ENTRIES, RECORDS
from lanescope.trace import Column, Dictionary, Table, TableSpec

if TYPE_CHECKING:
    from lanescope.devices.cuda.ls2 import Ls2Buffer
    from lanescope.devices.cuda.proton import ProtonBuffer
    from lanescope.devices.cuda.store import Words
    from lanescope.devices.cuda.tirx import TirxBuffer

__all__ = ["LS2_RECORDS", "PROTON_ENTRIES", "RECORDS", "ls2_records", "proton_entries", "strided_records"]


def strided_records(words: Words, buffer: TirxBuffer, name: str, before: int) -> Table:
    """Return the words of a strided buffer that are not zero.

    Args:
        words: uint64 [n], as they stand in the file.
        buffer: the same as a buffer of TIRx v1.
        name: the layout.
        before: bytes of the file in front of it.
    """
    slots = np.flatnonzero(words[1:]) + 1
    raw = words[slots]
    read = buffer.words.whole()
    lane = TIRX_RECORD["lane"].of(raw).astype(np.uint32)
    made = read[slots[slots < len(read)]]
    tags = TIRX_RECORD["lane"].of(made).astype(np.int64)
    geometry = buffer.geometry
    is_read = np.zeros(len(slots), np.bool_)
    fits = tags < geometry.lanes
    if geometry.stride:
        fits &= (slots[: len(tags)] - 1) % geometry.stride == tags
    is_read[: len(tags)] = fits
    if name == layout.FLASHINFER_V2:
        lane = ((slots - 1) % geometry.lanes).astype(np.uint32)
    values = {
        "slot": slots,
        "offset": before + slots * 8,
        "word": raw,
        "time": TIRX_RECORD["time"].of(raw).astype(np.uint32),
        "lane": lane,
        "event_id": TIRX_RECORD["event"].of(raw).astype(np.uint32),
        "is_read": is_read,
    }
    kinds = Dictionary(KINDS[kind] for kind in sorted(KINDS))
    return _table(RECORDS, values, kind=Column.array(TIRX_RECORD["kind"].of(raw).astype(np.int32), dictionary=kinds))


def ls2_records(buffer: Ls2Buffer, before: int) -> Table:
    """Return the words in the lanes of an LS2 buffer that are not zero, lane headers left out."""
    header = buffer.header
    start, width = layout.LS2_FILE_WORDS, header.lane_words
    words = buffer.words.whole()
    slots = np.flatnonzero(words[start:]) + start
    at = (slots - start) % width - layout.LS2_LANE_WORDS
    slots = slots[(at >= 0) & (at % header.record_words == 0)]
    raw = words[slots]
    is_record = raw & np.uint64(1) == 1
    payload, has_payload = np.zeros(len(slots), np.uint64), np.full(len(slots), header.record_words == 2)
    if header.record_words == 2:
        payload = words[np.minimum(slots + 1, len(words) - 1)]
    kinds = Dictionary([*(LS2_KINDS[kind] for kind in sorted(LS2_KINDS)), "value"])
    kind = np.where(is_record, LS2_RECORD["kind"].of(raw).astype(np.int64), len(LS2_KINDS))
    values: dict[str, Any] = {
        "slot": slots,
        "offset": before + slots * 8,
        "word": raw,
        "lane": ((slots - start) // width).astype(np.uint32),
        "time": LS2_RECORD["time"].of(raw).astype(np.uint32),
        "event_id": LS2_RECORD["event"].of(raw).astype(np.uint32),
        "token": LS2_RECORD["token"].of(raw).astype(np.uint32),
    }
    return _table(
        LS2_RECORDS,
        values,
        kind=Column.array(kind.astype(np.int32), dictionary=kinds),
        payload=Column.array(payload, valid=has_payload),
    )


def proton_entries(buffer: ProtonBuffer, before: int) -> Table:
    """Return the entries of all rings of a Proton file, in the order in which they were written."""
    stored, ring = buffer.stored()
    slots = buffer.slots_of(ring, stored)
    tag, low = buffer.words[slots].astype(np.uint64), buffer.words[slots + 1]
    names = Dictionary(["scope", "async", "mark", "metric", "unknown"])
    values: dict[str, Any] = {
        "slot": slots,
        "offset": before + slots * 4,
        "lane": ring.astype(np.uint32),
        "time": PROTON_ENTRY["time_high"].of(tag) << np.uint64(32) | low,
        "scope": PROTON_ENTRY["scope"].of(tag).astype(np.uint32),
        "is_end": PROTON_ENTRY["is_end"].of(tag) == 1,
        "value_type": PROTON_ENTRY["value_type"].of(tag).astype(np.uint32),
    }
    kind = np.minimum(PROTON_ENTRY["type"].of(tag), 4).astype(np.int32)
    return _table(PROTON_ENTRIES, values, type=Column.array(kind, dictionary=names))


def _table(spec: TableSpec, values: dict[str, Any], **columns: Column) -> Table:
    made = {name: Column.array(array) for name, array in values.items()} | columns
    return Table(spec, {name: made[name] for name in spec.names})

"""The raw records of a buffer, field by field, for people who debug a decoder or a probe."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.layout import KINDS, TIRX_RECORD
from lanescope.devices.cuda.formats.tirx import TirxBuffer
from lanescope.devices.cuda.formats.word_store import Words
from lanescope.trace import Column, Dictionary, Table
from lanescope.trace.schema import ColumnSpec, TableSpec

RECORDS = TableSpec(
    "cuda_records",
    "one non-zero word of the buffer, undecoded",
    (
        ColumnSpec("slot", "int64", "slot of the word; 0 is the header"),
        ColumnSpec("offset", "int64", "byte offset in the file", unit="bytes"),
        ColumnSpec("word", "uint64", "raw word"),
        ColumnSpec("time", "uint32", "timestamp as stored", unit="ns"),
        ColumnSpec("lane", "uint32", "lane number in the word"),
        ColumnSpec("event_id", "uint32", "event number in the word"),
        ColumnSpec("kind", "text", "record kind: `begin`, `end`, `instant`, `finalize`"),
        ColumnSpec("is_read", "bool", "whether it is a record of the lane of its slot"),
    ),
)


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
        index, lane_of = np.divmod(slots[: len(tags)] - 1, geometry.stride)
        fits &= lane_of == tags
        if len(buffer.cuts) and not buffer.keeps_earlier:
            fits[fits] = index[fits] < buffer.cuts[tags[fits]]
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
    return table_of(RECORDS, values, kind=Column.array(TIRX_RECORD["kind"].of(raw).astype(np.int32), dictionary=kinds))


def table_of(spec: TableSpec, values: dict[str, Any], **columns: Column) -> Table:
    """Return a table of raw records from arrays and columns by name."""
    made = {name: Column.array(array) for name, array in values.items()} | columns
    return Table(spec, {name: made[name] for name in spec.names})

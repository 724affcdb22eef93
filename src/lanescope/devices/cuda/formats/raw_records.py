"""The raw records of a buffer, field by field, for people who debug a decoder or a probe."""

from __future__ import annotations

from typing import Any

import numpy as np

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.layout import KINDS, TIRX_RECORD
from lanescope.devices.cuda.formats.tirx import TirxBuffer
from lanescope.devices.cuda.formats.word_source import Words
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
LS2_RECORDS = TableSpec(
    "cuda_ls2_records",
    "one non-zero word of a lane, unconverted; payloads are in the row of their record",
    (
        ColumnSpec("slot", "int64", "position in words"),
        ColumnSpec("offset", "int64", "position in the file", unit="bytes"),
        ColumnSpec("word", "uint64", "the word"),
        ColumnSpec("lane", "uint32", "lane that contains the word"),
        ColumnSpec("time", "uint32", "stored timestamp"),
        ColumnSpec("event_id", "uint32", "event number"),
        ColumnSpec(
            "kind",
            "text",
            "record kind: `begin`, `end`, `instant`, `counter`, `async_begin`, ..., `flow_in`, `value`",
        ),
        ColumnSpec("token", "uint32", "number that the record carries"),
        ColumnSpec("payload", "uint64", "second word; NULL in buffers of one-word records", nullable=True),
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
            fits[fits] = index[fits] < buffer.cuts[tags[fits], 0]
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


def ls2_records(words: Words, before: int, *, lane_words: int, record_words: int) -> Table:
    """Return the words in the lanes of an LS2 buffer that are not zero, lane headers left out.

    Args:
        words: uint64 [n], the buffer.
        before: bytes of the file in front of it.
        lane_words: words of a lane.
        record_words: words of a record.
    """
    start, width = layout.LS2_FILE_WORDS, lane_words
    slots = np.flatnonzero(words[start:]) + start
    at = (slots - start) % width - layout.LS2_LANE_WORDS
    slots = slots[(at >= 0) & (at % record_words == 0)]
    raw = words[slots]
    is_record = raw & np.uint64(1) == 1
    payload, has_payload = np.zeros(len(slots), np.uint64), np.full(len(slots), record_words == 2)
    if record_words == 2:
        payload = words[np.minimum(slots + 1, len(words) - 1)]
    kinds = Dictionary([*(layout.LS2_KINDS[kind] for kind in sorted(layout.LS2_KINDS)), "value"])
    kind = np.where(is_record, layout.LS2_RECORD["kind"].of(raw).astype(np.int64), len(layout.LS2_KINDS))
    values: dict[str, Any] = {
        "slot": slots,
        "offset": before + slots * 8,
        "word": raw,
        "lane": ((slots - start) // width).astype(np.uint32),
        "time": layout.LS2_RECORD["time"].of(raw).astype(np.uint32),
        "event_id": layout.LS2_RECORD["event"].of(raw).astype(np.uint32),
        "token": layout.LS2_RECORD["token"].of(raw).astype(np.uint32),
    }
    return table_of(
        LS2_RECORDS,
        values,
        kind=Column.array(kind.astype(np.int32), dictionary=kinds),
        payload=Column.array(payload, valid=has_payload),
    )


def table_of(spec: TableSpec, values: dict[str, Any], **columns: Column) -> Table:
    """Return a table of raw records from arrays and columns by name."""
    made = {name: Column.array(array) for name, array in values.items()} | columns
    return Table(spec, {name: made[name] for name in spec.names})

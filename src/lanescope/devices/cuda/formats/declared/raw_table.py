"""The table of raw records of a declared layout."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats.declared.records import Records
from lanescope.devices.cuda.formats.raw_records import table_of
from lanescope.trace import Column, Dictionary, Table
from lanescope.trace.schema import ColumnSpec, TableSpec

RECORDS = TableSpec(
    "cuda_declared_records",
    "one record of a buffer whose layout is declared in a file, as its declaration reads it",
    (
        ColumnSpec("slot", "int64", "position in units of the layout"),
        ColumnSpec("offset", "int64", "position in the file", unit="bytes"),
        ColumnSpec("lane", "uint32", "lane of the record"),
        ColumnSpec("time", "uint64", "stored timestamp, from the earliest one if it has 64 bits", unit="ticks"),
        ColumnSpec("end", "uint64", "likewise, of the end; NULL unless a record is a region", nullable=True),
        ColumnSpec("event_id", "int64", "event number"),
        ColumnSpec("kind", "text", "record kind: `begin`, `end`, `instant`, `finalize`, `unreadable`"),
        ColumnSpec("payload", "uint64", "value of the record; NULL if the layout has none", nullable=True),
        ColumnSpec("payload2", "uint64", "second value of the record; NULL if the layout has none", nullable=True),
    ),
)
_KINDS = ("begin", "end", "instant", "finalize", "unreadable", "empty", "ignored")


def make(records: Records, unit_bytes: int, before: int) -> Table:
    """Return the records that are not empty.

    Args:
        records: of the buffer.
        unit_bytes: bytes of a slot.
        before: bytes of the file before it.
    """
    rows = np.flatnonzero(records.kind < _KINDS.index("empty"))
    event = records.event[rows].astype(np.int64)
    count = len(rows)

    def optional(column: npt.NDArray[np.int64] | None) -> Column:
        stored = np.zeros(count, np.uint64) if column is None else column[rows].view(np.uint64)
        return Column.array(stored, valid=np.full(count, column is not None))

    values = {
        "slot": records.slot[rows],
        "offset": before + records.slot[rows] * unit_bytes,
        "lane": (np.searchsorted(records.start, rows, side="right") - 1).astype(np.uint32),
        "time": records.begin[rows].view(np.uint64),
        "event_id": event if records.ids is None else records.ids[event],
    }
    return table_of(
        RECORDS,
        values,
        kind=Column.array(records.kind[rows].astype(np.int32), dictionary=Dictionary(_KINDS)),
        end=optional(records.end),
        payload=optional(records.payload),
        payload2=optional(records.payload2),
    )

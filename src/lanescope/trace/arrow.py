"""Arrow export: a Table's columns as the buffers that the Arrow C stream interface hands to readers.

Arrays go out without a copy; validity becomes a bitmap, booleans are packed, texts become offsets and bytes.
Source: Apache Arrow, "The Arrow C data interface" and "The Arrow PyCapsule Interface".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from lanescope._native import core
from lanescope.trace.column import encoded_texts

if TYPE_CHECKING:
    from lanescope.trace.column import Array, Column, Encoded
    from lanescope.trace.schema import TableSpec

_FORMATS = {
    "int64": "l",
    "int32": "i",
    "uint64": "L",
    "uint32": "I",
    "uint16": "S",
    "uint8": "C",
    "float64": "g",
    "bool": "b",
    "text": "i",
    "utf8": "U",
}


def stream(spec: TableSpec, columns: Sequence[Column], length: int) -> object:
    """Return a capsule named ``arrow_array_stream`` that yields the rows of a table in record batches.

    Args:
        spec: the declaration of the table.
        columns: its columns, in the order of their declaration, ``length`` values each.
        length: number of rows.
    """
    pairs = zip(spec.columns, columns, strict=True)
    return core.arrow_stream([_column(each.name, each.type, each.nullable, column) for each, column in pairs], length)


def _column(name: str, type_: str, nullable: bool, column: Column) -> core.ArrowColumn:  # noqa: FBT001
    nulls, bitmap = 0, None
    if column.valid is not None:
        nulls = len(column) - int(np.count_nonzero(column.valid))
        bitmap = np.packbits(column.valid, bitorder="little") if nulls else None
    dictionary = None
    if type_ == "utf8":
        buffers = _buffers(column.encoded() or encoded_texts(column.values))
    else:
        values = np.ascontiguousarray(column.values)
        buffers = [np.packbits(values, bitorder="little") if type_ == "bool" else values]
        if type_ == "text":
            texts = column.dictionary.texts if column.dictionary is not None else []
            # A reader may look at the text under a null or an empty table's dictionary: there is always one.
            held = [None, *_buffers(encoded_texts(np.array(texts or [""], object)))]
            dictionary = core.ArrowColumn("", "U", False, len(texts) or 1, 0, held, None)  # noqa: FBT003
    return core.ArrowColumn(name, _FORMATS[type_], nullable, len(column), nulls, [bitmap, *buffers], dictionary)


def _buffers(encoded: Encoded) -> list[Array]:
    """Return the offsets (int64 [n + 1]) and bytes (uint8, never none) of large-utf8 texts."""
    data, begins = encoded
    return [begins, data if len(data) else np.zeros(1, np.uint8)]

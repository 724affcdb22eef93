"""Parquet files of tables whose columns are numbers and dictionaries: column by column, without rows in between.

Times and ids are differences, names are codes, and what is the same in all rows is one run.
Source: apache/parquet-format, README.md, Encodings.md, parquet.thrift.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.trace import Column, ColumnSpec, Table

Array = npt.NDArray[Any]

ROW_GROUP = 1 << 17
_MAGIC = b"PAR1"

# Physical types, converted types, encodings and page types, by their numbers in parquet.thrift.
_BOOLEAN, _INT32, _INT64, _DOUBLE, _BYTE_ARRAY = 0, 1, 2, 5, 6
_UTF8, _UINT_8 = 0, 11
_PLAIN, _RLE, _DELTA, _RLE_DICTIONARY = 0, 3, 5, 8
_DATA_PAGE, _DICTIONARY_PAGE = 0, 2
_OPTIONAL = 1
_UNCOMPRESSED, _GZIP = 0, 2
_LEVEL, _GZIP_WINDOW = 1, 31  # of zlib's interface: with the header of gzip
#: What is not made smaller than this share is left as it is: readers need not unpack it.
_WORTH = 0.9

#: Column type -> physical type, converted type (None: none).
_TYPES: dict[str, tuple[int, int | None]] = {
    "int64": (_INT64, None),
    "int32": (_INT32, None),
    "uint64": (_INT64, _UINT_8 + 3),
    "uint32": (_INT32, _UINT_8 + 2),
    "uint16": (_INT32, _UINT_8 + 1),
    "uint8": (_INT32, _UINT_8),
    "float64": (_DOUBLE, None),
    "bool": (_BOOLEAN, None),
    "text": (_BYTE_ARRAY, _UTF8),
}
#: What values are stored as.
_STORED: dict[int, npt.DTypeLike] = {_INT64: "<i8", _INT32: "<i4", _DOUBLE: "<f8"}


def is_for(table: Table) -> bool:
    """Return whether ``write_table`` can write a table: free text is for others."""
    return all(column.type in _TYPES for column in table.spec.columns)


def write_table(table: Table, path: Path) -> None:
    """Write a table that has rows as one file; each column is made once, one after the other.

    Raises:
        OSError: it cannot be written.
    """
    rows = len(table)
    borders = [*range(0, rows, ROW_GROUP), rows]
    spans = list(itertools.pairwise(borders))
    made: dict[int, list[_Chunk]] = {}
    chunks = []
    for spec in table.spec.columns:
        column = table.column(spec.name)
        if id(column) not in made:  # ticks are times where a cycle is drawn as a nanosecond
            made[id(column)] = _chunks(spec, column, spans)
        chunks.append(made[id(column)])
    with path.open("xb") as file:
        at = file.write(_MAGIC)
        groups = []
        for number, (begin, end) in enumerate(spans):
            columns = []
            for spec, parts in zip(table.spec.columns, chunks, strict=True):
                columns.append(parts[number].metadata(spec, at))
                at += file.write(parts[number].data)
            size = sum(parts[number].plain_size for parts in chunks)
            groups.append(_struct({1: _listed(_STRUCT, columns), 2: _i64(size), 3: _i64(end - begin)}))
        footer = _footer(table.spec.columns, groups, rows)
        file.write(footer + len(footer).to_bytes(4, "little") + _MAGIC)


# --- columns ---------------------------------------------------------------------------------------------------------


class _Chunk:
    """The pages of one column in one group of rows, compressed where that makes them smaller.

    Args:
        rows: how many there are.
        nulls: rows without a value.
        encoding: of the values.
        page: the page that holds them, or their numbers in a dictionary.
        dictionary: its page; None: there is none.
        bounds: the least and the largest value, as they would be stored; None: not known.
    """

    __slots__ = ("bounds", "codec", "data", "dictionary_bytes", "encoding", "nulls", "plain_size", "rows")

    def __init__(
        self,
        rows: int,
        nulls: int,
        encoding: int,
        page: _Page,
        dictionary: _Page | None = None,
        bounds: tuple[bytes, bytes] | None = None,
    ) -> None:
        from isal import isal_zlib

        pages = [page] if dictionary is None else [dictionary, page]
        bodies = [page.body for page in pages]
        packed = [isal_zlib.compress(body, _LEVEL, _GZIP_WINDOW) for body in bodies]
        is_worth_it = sum(map(len, packed)) < _WORTH * sum(map(len, bodies))
        written = [page.written(body) for page, body in zip(pages, packed if is_worth_it else bodies, strict=True)]
        self.rows = rows
        self.nulls = nulls
        self.encoding = encoding
        self.codec = _GZIP if is_worth_it else _UNCOMPRESSED
        self.data = b"".join(written)
        self.plain_size = len(self.data) + sum(map(len, bodies)) - sum(map(len, packed if is_worth_it else bodies))
        self.dictionary_bytes = 0 if dictionary is None else len(written[0])
        self.bounds = bounds

    def metadata(self, spec: ColumnSpec, at: int) -> _Value:
        """Return what the footer says of it, ``at`` where it begins."""
        fields = {
            1: _i32(_TYPES[spec.type][0]),
            2: _listed(_I32, [_i32(encoding) for encoding in sorted({_PLAIN, _RLE, self.encoding})]),
            3: _listed(_BINARY, [_binary(spec.name.encode())]),
            4: _i32(self.codec),
            5: _i64(self.rows),
            6: _i64(self.plain_size),
            7: _i64(len(self.data)),
            9: _i64(at + self.dictionary_bytes),
        }
        if self.dictionary_bytes:
            fields[11] = _i64(at)
        bounds = {} if self.bounds is None else {5: _binary(self.bounds[1]), 6: _binary(self.bounds[0])}
        fields[12] = _struct({3: _i64(self.nulls), **bounds})
        return _struct({2: _i64(at), 3: _struct(fields)})


def _chunks(spec: ColumnSpec, column: Column, spans: Sequence[tuple[int, int]]) -> list[_Chunk]:
    """Return the chunks of a column, one for each span of rows."""
    if column.is_unknown:
        return [_unknown(end - begin) for begin, end in spans]
    valid = column.valid
    is_same = column.constant_value is not None and valid is None
    values = None if is_same else column.read_once()
    texts = None if column.dictionary is None else column.dictionary.texts
    chunks = []
    for begin, end in spans:
        rows = end - begin
        known = None if valid is None else valid[begin:end]
        if values is None:
            part = np.array([column.constant_value], _dtype(spec))
        else:
            part = np.ascontiguousarray(values[begin:end])
            part = part if known is None else part[known]
        chunks.append(_chunk(spec, rows, part, known, texts, is_same=is_same))
    return chunks


def _unknown(rows: int) -> _Chunk:
    return _Chunk(rows, rows, _PLAIN, _page(rows, b"\0", b"", _PLAIN))


def _dtype(spec: ColumnSpec) -> npt.DTypeLike:
    return np.int32 if spec.type == "text" else spec.type


def _chunk(
    spec: ColumnSpec, rows: int, values: Array, known: Array | None, texts: list[str] | None, *, is_same: bool
) -> _Chunk:
    """Return a chunk of the values that are known; one value where all are the same."""
    if not len(values):
        return _unknown(rows)
    levels = b"\1" if known is None else _mask(known)
    physical = _TYPES[spec.type][0]
    nulls = 0 if known is None else rows - len(values)
    if texts is not None:
        used = np.zeros(len(texts), np.bool_)
        used[values] = True
        entries = np.flatnonzero(used)
        encoded = [texts[entry].encode("utf-8", "replace") for entry in entries.tolist()]
        plain = b"".join(len(text).to_bytes(4, "little") + text for text in encoded)
        numbers = np.zeros(len(texts), np.uint32)
        numbers[entries] = np.arange(len(entries), dtype=np.uint32)
        indices = (
            _run(rows) if len(entries) <= 1 and known is None else _codes(numbers[values], max(len(entries) - 1, 1))
        )
        dictionary = _dictionary(len(entries), plain)
        return _Chunk(rows, nulls, _RLE_DICTIONARY, _page(rows, levels, indices, _RLE_DICTIONARY), dictionary)
    if physical == _BOOLEAN:
        bits = np.broadcast_to(values, rows) if is_same else values
        data = np.packbits(bits, bitorder="little").tobytes()
        return _Chunk(rows, nulls, _PLAIN, _page(rows, levels, data, _PLAIN))
    stored = _stored(values, physical)
    bounds = None
    if physical != _DOUBLE:
        least, most = (_stored(np.array([bound]), physical).tobytes() for bound in (values.min(), values.max()))
        bounds = least, most
    if is_same:
        page = _page(rows, levels, _run(rows), _RLE_DICTIONARY)
        return _Chunk(rows, nulls, _RLE_DICTIONARY, page, _dictionary(1, stored.tobytes()), bounds)
    if physical == _DOUBLE:
        return _Chunk(rows, nulls, _PLAIN, _page(rows, levels, stored.tobytes(), _PLAIN))
    return _Chunk(rows, nulls, _DELTA, _page(rows, levels, _deltas(stored), _DELTA), bounds=bounds)


def _stored(values: Array, physical: int) -> Array:
    dtype = np.dtype(_STORED[physical])
    return values.view(dtype) if values.itemsize == dtype.itemsize else values.astype(dtype)


def _deltas(values: Array) -> bytes:
    words = values.view(f"<u{values.itemsize}")
    out = np.empty(core.parquet_delta_room(len(words), values.itemsize), np.uint8)
    return out[: core.parquet_deltas(words, out)].tobytes()


def _codes(codes: Array, most: int) -> bytes:
    out = np.empty(core.parquet_codes_room(len(codes)), np.uint8)
    return out[: core.parquet_codes(codes, most.bit_length(), out)].tobytes()


def _run(rows: int) -> bytes:
    """Return the indices of so many rows that all have the only entry of a dictionary."""
    return b"\1" + _varint(rows << 1) + b"\0"


def _mask(known: Array) -> bytes:
    """Return the levels of rows, 1 where the value is known: groups of eight bits."""
    packed = np.packbits(known, bitorder="little").tobytes()
    return _varint(len(packed) << 1 | 1) + packed


class _Page(NamedTuple):
    """A page that is not compressed yet: its type, what its header says of it alone, and its bytes."""

    kind: int
    header: dict[int, _Value]
    body: bytes

    def written(self, body: bytes) -> bytes:
        """Return the page with its body in the form in which it is written."""
        sizes = {2: _i32(len(self.body)), 3: _i32(len(body))}
        return _struct({1: _i32(self.kind), **sizes, **self.header})[1] + body


def _page(rows: int, levels: bytes, data: bytes, encoding: int) -> _Page:
    """Return a data page; levels of one byte are those of all rows."""
    if len(levels) == 1:
        levels = _varint(rows << 1) + levels
    header = {1: _i32(rows), 2: _i32(encoding), 3: _i32(_RLE), 4: _i32(_RLE)}
    return _Page(_DATA_PAGE, {5: _struct(header)}, len(levels).to_bytes(4, "little") + levels + data)


def _dictionary(entries: int, plain: bytes) -> _Page:
    return _Page(_DICTIONARY_PAGE, {7: _struct({1: _i32(entries), 2: _i32(_PLAIN)})}, plain)


def _footer(columns: Sequence[ColumnSpec], groups: list[_Value], rows: int) -> bytes:
    root = _struct({4: _binary(b"schema"), 5: _i32(len(columns))})
    elements = [root]
    for spec in columns:
        physical, converted = _TYPES[spec.type]
        fields = {1: _i32(physical), 3: _i32(_OPTIONAL), 4: _binary(spec.name.encode())}
        if converted is not None:
            fields[6] = _i32(converted)
        elements.append(_struct(fields))
    order = _struct({1: _struct({})})  # as their types say
    return _struct(
        {
            1: _i32(1),
            2: _listed(_STRUCT, elements),
            3: _i64(rows),
            4: _listed(_STRUCT, groups),
            6: _binary(b"lanescope"),
            7: _listed(_STRUCT, [order] * len(columns)),
        }
    )[1]


# --- the compact protocol of Thrift ----------------------------------------------------------------------------------

_I32, _I64, _BINARY, _LIST, _STRUCT = 5, 6, 8, 9, 12
#: A type and the bytes of a value.
_Value = tuple[int, bytes]


def _varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _i32(number: int) -> _Value:
    return _I32, _varint(number << 1)


def _i64(number: int) -> _Value:
    return _I64, _varint(number << 1)


def _binary(data: bytes) -> _Value:
    return _BINARY, _varint(len(data)) + data


def _listed(kind: int, values: Sequence[_Value]) -> _Value:
    count = len(values)
    head = bytes([count << 4 | kind]) if count < 15 else bytes([0xF0 | kind]) + _varint(count)
    return _LIST, head + b"".join(data for _, data in values)


def _struct(fields: dict[int, _Value]) -> _Value:
    """Return a structure: number -> field; numbers rise by less than 16."""
    made, last = bytearray(), 0
    for number in sorted(fields):
        kind, data = fields[number]
        made += bytes([number - last << 4 | kind]) + data
        last = number
    return _STRUCT, bytes(made) + b"\0"

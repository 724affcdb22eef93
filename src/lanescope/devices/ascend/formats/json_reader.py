"""A file as it stands: the native scanner with errors that name the place, and what it found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from lanescope._native import core
from lanescope.devices.ascend.formats.layout import LISTS, Layout
from lanescope.devices.ascend.formats.records import Bytes, Int32, Int64, Section, Tally, dtype_of
from lanescope.errors import InputError
from lanescope.trace.column import Array

#: Columns that the scanner fills before those of the cells.
_BEGIN, _END, _GROUP, _PRESENT, _FIXED = range(5)
#: Texts of a list that have a code; above it stands the offset of the text.
_MAX_TEXTS = 256
#: Columns of the buffer must not lie a power of two apart: the same row of all would share a few lines of the caches.
_ROWS_AT_ONCE = 4104
_MAX_GROWTH = 1 << 22
#: How far the first element of a list is looked for, to see in which units it counts.
_PEEKED_BYTES = 4096


class Cut(Exception):
    """The file ends inside the value that comes next: there is nothing to return."""


class File:
    """A records file as it stands, before anybody knows its format version.

    Attributes:
        path: for messages.
        size: bytes.
        levels: the values of the keys that may hold the level.
        metadata: the metadata object; None without.
        core_to_thread: the list that v1 has at its top.
        lists: what the scanner read, by the name of the layout.
        streams: of the schedulers (v4): what the producer tells, its phases, their metrics.
        producer: who made the rows of the schedulers (v4).
        schema_versions: what the objects of the schedulers say of their own form (v4).
        unknown: keys that are not of the format, with begin and end of their values.
        other: keys at the top that were stepped over.
        whole: the layouts of the lists that were read to their end, by name.
    """

    def __init__(self, path: str, size: int) -> None:
        self.path = path
        self.size = size
        self.levels: dict[str, Any] = {}
        self.metadata: Any = None
        self.core_to_thread: Any = None
        self.lists: dict[str, Section] = {}
        self.streams: list[tuple[dict[str, Any], Section, Section]] = []
        self.producer: Any = None
        self.schema_versions: list[Any] = []
        self.unknown: list[tuple[str, int, int]] = []
        self.other: set[str] = set()
        self.whole: set[str] = set()

    def take(self, layout: Layout, reader: Reader) -> None:
        """Read the list that comes next."""
        self.lists[layout.name] = reader.section(layout)
        if reader.cut is None:
            self.whole.add(layout.name)

    def counted(self) -> dict[str, Any]:
        """Return the metadata, which counter readings need; ``InputError`` if their frequency is not in it."""
        if not isinstance(self.metadata, dict):
            raise InputError(
                f"{self.path}: metadata not found, and with it the counter frequency", hint="record the capture again"
            )
        frequency = self.metadata.get("clock_freq_hz")
        if type(frequency) is not int or not 0 < frequency <= 1 << 62:
            raise InputError(
                f"{self.path}: invalid counter frequency {frequency!r}",
                hint="set metadata.clock_freq_hz to the frequency in Hz",
            )
        return self.metadata


class Reader:
    """A scanner whose faults are errors with their location.

    Args:
        text: bytes and a NUL, uint8 [size + 1].
        path: for messages.
        can_be_cut: read a file that ends too early as far as it goes: objects and lists end where it does, and a value
            that it ends inside raises ``Cut``. Else such a file is an error.

    Attributes:
        cut: of a file that ends too early: the byte behind the last value or element that was read. None of any other.
    """

    def __init__(self, text: Bytes, path: str, *, can_be_cut: bool = False, reached: list[int] | None = None) -> None:
        self._text = text
        self._path = path
        self._can_be_cut = can_be_cut
        self._reached = [0] if reached is None else reached
        self.cut: int | None = None
        self._key = ""
        self._scanner = core.AscendScanner(text)
        if not self._scanner.open():
            raise self._error()
        self._read = self._scanner.offset

    def cut_off(self) -> InputError:
        """Return the error for a file that ends too early."""
        where = f" inside `{self._key}`" if self._key else ""
        return InputError(
            f"{self._path}: file is truncated after byte {self._scanner.offset}{where}",
            hint="copy the complete file or record the capture again",
        )

    def _error(self) -> InputError:
        if self._scanner.fault == "truncated":
            return self.cut_off()
        where = f" inside `{self._key}`" if self._key else ""
        offset = self._scanner.offset
        what = "JSON nested too deeply" if self._scanner.fault == "depth" else "invalid JSON"
        return InputError(
            f"{self._path}: {what} at byte {offset}{where}", hint="pass the file as the collector wrote it"
        )

    def entries(self) -> Iterator[str]:
        """Yield the keys of the object; read or skip the value before asking for the next."""
        seen = set()
        while (span := _pair(self._scanner.key())) is not None:
            self._key = bytes(self._text[span[0] : span[1]]).decode("utf-8", "backslashreplace")
            if self._key in seen:
                raise InputError(f"{self._path}: duplicate key `{self._key}`", hint="remove one of the two")
            seen.add(self._key)
            yield self._key
        self._check()

    def fields(self) -> Iterator[str]:
        """Yield the keys of an object inside: as ``entries``, and the value that comes next is the object."""
        if not self._scanner.open():
            raise self._error()
        self._read = self._scanner.offset
        seen = set()
        while (span := _pair(self._scanner.key())) is not None:
            name = bytes(self._text[span[0] : span[1]]).decode("utf-8", "backslashreplace")
            if name in seen:
                raise InputError(f"{self._path}: duplicate key `{name}` in `{self._key}`", hint="remove one of the two")
            seen.add(name)
            yield name
        self._check()

    def items(self) -> Iterator[None]:
        """Go through the elements of the list that comes next; read or skip each before asking for the next."""
        if not self._scanner.open_list():
            raise self._error()
        self._read = self._scanner.offset
        while self._scanner.item():
            yield
        self._check()

    def _check(self) -> None:
        if self._scanner.fault:
            self._end(self._read)
        else:
            self._read = self._scanner.offset

    def _end(self, read: int) -> None:
        """Remember that the file ends too early and was read up to there; ``InputError`` at any other fault."""
        if not self._can_be_cut or self._scanner.fault != "truncated":
            raise self._error()
        self.cut = read if self.cut is None else self.cut

    def is_list(self) -> bool:
        """Return whether the next value is a list."""
        return bool(self._scanner.is_list())

    def is_object(self) -> bool:
        """Return whether the next value is an object."""
        return bool(self._scanner.is_object())

    def is_near(self, word: bytes) -> bool:
        """Return whether the next bytes contain a word."""
        at = self._scanner.offset
        return word in self._text[at : at + _PEEKED_BYTES].tobytes()

    def skip(self) -> tuple[int, int]:
        """Step over the next value; return where it begins and ends."""
        span = _pair(self._scanner.skip())
        if span is None:
            self._end(self._read)
            raise Cut
        if self._can_be_cut and span[1] == len(self._text) - 1 and chr(self._text[span[1] - 1]) in "0123456789":
            self.cut = self._read  # a number at the end of the file may have had more digits
            raise Cut
        self._read = span[1]
        return span

    def value(self) -> Any:
        """Return the next value as Python objects."""
        begin, end = self.skip()
        try:
            # Few bytes: what msgspec takes to be imported reads a thousand of them.
            return json.loads(self._text[begin:end].tobytes())
        except (RecursionError, ValueError) as error:
            raise InputError(
                f"{self._path}: cannot read `{self._key}`: {error}", hint="pass the file as the collector wrote it"
            ) from None

    def section(self, layout: Layout) -> Section:
        """Return the next list; of a file that ends inside it, the elements before the one that it ends in."""
        shape = _shape(layout.name)
        # The scanner fills one buffer that stays in the caches; from there each column goes to its own array.
        buffer = np.empty((shape.columns, _ROWS_AT_ONCE), np.uint64)
        columns = _Columns(layout, len(self._text))
        rows, done, first = 0, False, self._scanner.offset
        while not done:
            count, done = self._scanner.take(shape, layout.depth, buffer)
            if self._scanner.fault:
                self._end(self._scanner.torn)
                done = True
            rows += count
            self._reached[0] = self._scanner.offset
            if rows > columns.room:
                # As many rows as the rest of the file can hold; pages that are never written cost nothing.
                room = (len(self._text) - first) * rows // (self._scanner.offset - first)
                columns.grow(max(rows, min(room, 2 * rows + _MAX_GROWTH)))
            columns.put(buffer[:, :count], rows - count)
        self._read = self._scanner.offset
        return self._collect(layout, columns.cut(rows))

    def _collect(self, layout: Layout, filled: list[Array]) -> Section:
        begin, end, group, present = filled[:_FIXED]
        everywhere, anywhere = np.bitwise_and.reduce(present), np.bitwise_or.reduce(present)
        columns: dict[str, Array] = {}
        texts: list[str] = []
        for cell, values in zip(layout.cells, filled[_FIXED:], strict=True):
            bit = np.uint32(layout.bit(cell.name))
            if not anywhere & bit and cell.kind != "text":  # one 0 for all
                columns[cell.name] = np.broadcast_to(np.zeros((), values.dtype), values.shape)
                continue
            if not everywhere & bit:
                values[(present & bit) == 0] = 0
            if cell.kind == "text":
                values, texts = self._texts(values)
            columns[cell.name] = values
        good_bytes, bad_bytes, bad_count, bad_first, groups = self._scanner.tally()
        unknown = [
            (begin, count)
            for begin, end, count in self._scanner.others()
            if self._text[begin:end].tobytes().decode("utf-8", "surrogateescape") not in layout.unused
        ]
        tally = Tally(
            good_bytes,
            bad_bytes,
            bad_count,
            bad_first if bad_count else None,
            sum(count for _, count in unknown),
            unknown[0][0] if unknown else None,
        )
        return Section(layout, columns, present, group, groups, begin, end, tuple(texts), tally)

    def _texts(self, values: Int64) -> tuple[Int32, list[str]]:
        texts = [self._unescaped(begin, end) for begin, end in self._scanner.texts()]
        beyond = np.flatnonzero(values >= _MAX_TEXTS)
        if len(beyond):
            offsets, inverse = np.unique(values[beyond], return_inverse=True)
            values[beyond] = len(texts) + inverse
            for offset in (offsets - _MAX_TEXTS).tolist():
                end = offset + 1
                while self._text[end] != ord('"'):
                    end += 2 if self._text[end] == ord("\\") else 1
                texts.append(self._unescaped(offset + 1, end))
        return values.astype(np.int32), texts or [""]

    def _unescaped(self, begin: int, end: int) -> str:
        raw = self._text[begin:end].tobytes().decode("utf-8", "surrogateescape")
        text: str = json.loads(f'"{raw}"') if "\\" in raw else raw
        return text.encode("utf-8", "backslashreplace").decode()


class _Columns:
    """The columns of a list while it is read.

    Memory that is written for the first time costs more than what fills it, as the system clears it. So what is the
    same in all rows, or is not there, is not written.

    Args:
        layout: the list.
        size: bytes of the file.

    Attributes:
        room: rows that there is memory for.
    """

    def __init__(self, layout: Layout, size: int) -> None:
        offset = np.int64 if size >> 32 else np.uint32
        dtypes: list[Any] = [offset, offset, np.int32, np.uint32]
        # Codes of texts beyond the table hold an offset.
        dtypes += [np.int64 if cell.kind == "text" else dtype_of(cell) for cell in layout.cells]
        self._counts = [1] * _FIXED + [cell.count for cell in layout.cells]
        self._bits = [layout.bit(cell.name) for cell in layout.cells]
        self._arrays: list[Array] = [
            np.empty((count, 0), dtype) for count, dtype in zip(self._counts, dtypes, strict=True)
        ]
        self._is_flat = layout.depth == 1
        self._present: int | None = 0  # what is there of all rows so far; None: not the same of all
        self.room = 0

    def grow(self, room: int) -> None:
        """Make room for so many rows."""
        for place, array in enumerate(self._arrays):  # each is let go before the next one grows
            grown = np.empty((len(array), room), array.dtype)
            grown[:, : self.room] = array
            self._arrays[place] = grown
        self.room = room

    def put(self, values: Array, first: int) -> None:
        """Put rows, uint64 [columns, n], behind the ``first`` ones."""
        rows = slice(first, first + values.shape[1])
        begin, end, group, present = self._arrays[:_FIXED]
        begin[0, rows], end[0, rows] = values[_BEGIN], values[_END]
        if not self._is_flat:
            group[0, rows] = values[_GROUP]
        some, every = (int(reduce(values[_PRESENT])) for reduce in (np.bitwise_or.reduce, np.bitwise_and.reduce))
        if first == 0 and some == every:
            self._present = some
        if self._present is not None and (some != self._present or every != self._present):
            present[0, :first] = self._present
            self._present = None
        if self._present is None:
            present[0, rows] = values[_PRESENT]
        at = _FIXED
        for array, bit in zip(self._arrays[_FIXED:], self._bits, strict=True):
            if some & bit:  # of rows without it, whatever the memory holds is 0 in the end
                array[:, rows] = values[at : at + len(array)]
            at += len(array)

    def cut(self, rows: int) -> list[Array]:
        """Return so many rows, all that there are: [rows] of each column, [rows, count] of cells that are lists."""
        arrays: list[Array] = []
        for count, array in zip(self._counts, self._arrays, strict=True):
            if count > 1:  # each of its columns stays in one piece, as they are read one by one
                some = array[:, :rows]
                arrays.append((some if self.room < 2 * rows else some.copy()).T)
                continue
            array.resize(rows, refcheck=False)  # pages behind the last row go back
            arrays.append(array)
        if self._is_flat:
            arrays[_GROUP] = np.broadcast_to(np.int32(0), rows)
        if self._present is not None:
            arrays[_PRESENT] = np.broadcast_to(np.uint32(self._present), rows)
        return arrays


def _pair(span: Any) -> tuple[int, int] | None:
    return span  # type: ignore[no-any-return]


@cache
def _shape(name: str) -> Any:
    layout = next(layout for layout in LISTS if layout.name == name)
    cells = [
        ("" if not layout.is_object else c.name, c.kind, c.count, c.limit, c.is_required, list(c.words))
        for c in layout.cells
    ]
    return core.AscendShape(layout.is_object, cells)

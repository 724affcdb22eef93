"""The files of a capture as columns: what the native scanner found in them, before anybody concludes anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.ascend.frozen import frozen
from lanescope.devices.ascend.layout import (
    DEPS,
    LEVEL_KEYS,
    LISTS,
    MAX_I32,
    PHASES,
    RECORDS,
    SUBMITS,
    V1_PHASES,
    V1_SUBMITS,
    V1_TASKS,
    V4_AICPU,
    Cell,
    Layout,
)
from lanescope.errors import InputError
from lanescope.trace.column import Array, Mask

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
UInt32 = npt.NDArray[np.uint32]
UInt64 = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]

#: Columns that the scanner fills before those of the cells: begin, end, group, present.
_FIXED = 4
#: Texts of a list that have a code; above it stands the offset of the text.
_MAX_TEXTS = 256
_ROWS_AT_ONCE = 8192
_MAX_GROWTH = 1 << 22

#: How far the first element of a list is looked for, to see in which units it counts.
_PEEKED_BYTES = 4096


@frozen
class Tally:
    """What became of the bytes of a list: elements understood, elements not understood and where the first stands."""

    good_bytes: int = 0
    bad_bytes: int = 0
    bad_count: int = 0
    bad_first: int | None = None


@frozen
class Section:
    """The elements of one list.

    Attributes:
        layout: what an element looks like.
        columns: cell name to values [n], or [n, count] of cells that are lists. ``token`` uint64; ``text`` int32 codes
            of ``texts``; ``boolean`` bool; ``words`` uint32; numbers int32 or int64, as their limit asks. 0 where
            missing.
        present: uint32 [n], bit i set where cell i was there.
        group: int32 [n], index of the inner list; 0 in flat lists.
        groups: how many inner lists there are.
        begin: int64 [n], byte offset of the element in its file.
        end: int64 [n], the byte behind it.
        texts: the texts of the list's text cells.
        tally: what became of its bytes.
    """

    layout: Layout
    columns: dict[str, Array]
    present: UInt32
    group: Int32
    groups: int
    begin: Int64
    end: Int64
    texts: tuple[str, ...] = ()
    tally: Tally = Tally()

    def __len__(self) -> int:
        return len(self.present)

    def __getitem__(self, name: str) -> Array:
        """Return the values of a cell."""
        return self.columns[name]

    def has(self, name: str) -> Mask:
        """Return bool [n], where a cell was there."""
        mask: Mask = (self.present & np.uint32(self.layout.bit(name))) != 0
        return mask

    def take(self, rows: Array | slice) -> Section:
        """Return some of the elements (int64 [m], bool [n] or a range); bytes stay tallied as they were."""
        return Section(
            self.layout,
            {name: values[rows] for name, values in self.columns.items()},
            self.present[rows],
            self.group[rows],
            self.groups,
            self.begin[rows],
            self.end[rows],
            self.texts,
            self.tally,
        )


def section(layout: Layout, columns: dict[str, Any], *, group: Any = None, texts: Iterable[str] = ()) -> Section:
    """Make a section from columns; what ``columns`` leaves out is missing in all elements.

    Args:
        layout: the declaration.
        columns: cell name to values [n] or [n, count]; ``NAME_valid`` (bool [n]) marks where it is there.
        group: index of the inner list, int [n], not falling; None: one inner list.
        texts: the texts behind text cells.
    """
    length = len(next(iter(columns.values())))
    present = np.zeros(length, np.uint32)
    made = {}
    for cell in layout.cells:
        values = columns.get(cell.name)
        shape = (length,) if cell.count == 1 else (length, cell.count)
        if values is None:
            made[cell.name] = np.zeros(shape, _dtype(cell))
            continue
        valid = columns.get(f"{cell.name}_valid", True)
        made[cell.name] = np.where(
            valid if cell.count == 1 else np.reshape(np.broadcast_to(valid, length), (length, 1)),
            np.asarray(values).reshape(shape),
            0,
        ).astype(_dtype(cell))
        present |= np.where(valid, np.uint32(layout.bit(cell.name)), np.uint32(0))
    groups = np.zeros(length, np.int32) if group is None else np.asarray(group, np.int32)
    count = int(groups.max(initial=-1)) + 1
    offsets = np.zeros(length, np.int64)
    return Section(layout, made, present, groups, count if layout.depth == 2 else 0, offsets, offsets, tuple(texts))


def empty(layout: Layout) -> Section:
    """Return a section without elements."""
    return section(layout, {cell.name: np.empty((0, cell.count)) for cell in layout.cells})


def concat(layout: Layout, parts: Sequence[tuple[int, Section]]) -> Section:
    """Put lists one behind the other, each as the inner list of the number beside it; numbers do not fall."""
    if not parts:
        return empty(layout)
    sections = [part for _, part in parts]
    texts = list(dict.fromkeys(text for part in sections for text in part.texts)) or [""]
    place = {text: code for code, text in enumerate(texts)}
    columns = {}
    for cell in layout.cells:
        values = [part[cell.name] for part in sections]
        if cell.kind == "text":
            codes = [np.array([place[text] for text in part.texts] or [0], np.int32) for part in sections]
            values = [code[value] for code, value in zip(codes, values, strict=True)]
        columns[cell.name] = np.concatenate(values)
    tallies = [part.tally for part in sections]
    tally = Tally(
        sum(tally.good_bytes for tally in tallies),
        sum(tally.bad_bytes for tally in tallies),
        sum(tally.bad_count for tally in tallies),
        min((tally.bad_first for tally in tallies if tally.bad_first is not None), default=None),
    )
    return Section(
        layout,
        columns,
        np.concatenate([part.present for part in sections]),
        np.concatenate([np.full(len(part), number, np.int32) for number, part in parts]),
        parts[-1][0] + 1 if layout.depth == 2 else 0,
        np.concatenate([part.begin for part in sections]),
        np.concatenate([part.end for part in sections]),
        tuple(texts),
        tally,
    )


@frozen
class Stream:
    """One stream of records as its producer tells of it.

    Attributes:
        kind: ``aicore_task``, ``aicpu_task``, ``sched_phase`` or ``orch_phase``.
        index: core or thread.
        total: attempts to write a record; None: not told.
        dropped: those that the producer knows to have failed; None: not told.
        collected: records that arrived.
        producer: which processor wrote it; empty: not told.
        platform: on which chip; empty: not told.
        is_truncated: the producer stopped early; None: not told.
    """

    kind: str
    index: int
    total: int | None
    dropped: int | None
    collected: int
    producer: str = ""
    platform: str = ""
    is_truncated: bool | None = None

    @property
    def silent_loss(self) -> int | None:
        """Records that were written, not dropped, and did not arrive; negative: more arrived. None: not known."""
        return None if self.total is None else self.total - (self.dropped or 0) - self.collected


@frozen
class Records:
    """One capture of records, in the terms that all generations share.

    Attributes:
        level_key: the key that held the level.
        level: 1 to 4, see ``layout.LEVELS``.
        metadata: the metadata object as it stands; for v1, which has none, what it would hold.
        sections: the lists of ``layout.RECORDS`` by name; those that the file does not have are not in it.
        unknown: keys that are not of this format, with begin and end of their values.
        size: bytes of the file.
        generation: see ``generations``; empty: told by the shape of the rows.
        lists: the lists as they stand in the file; None: they are ``sections``.
        fanout: edges that stand in the records themselves (v1a).
        streams: what producers tell of their streams (v4, raw dumps).
        problems: what a reader met: stat, count, byte offset of the first.
        accounts: bytes decoded, of filler, and lost, where not every byte is text; None: as the lists tell.
    """

    level_key: str
    level: int
    metadata: dict[str, Any]
    sections: dict[str, Section]
    unknown: tuple[tuple[str, int, int], ...] = ()
    size: int = 0
    generation: str = ""
    lists: dict[str, Section] | None = None
    fanout: Deps | None = None
    streams: tuple[Stream, ...] = ()
    problems: tuple[tuple[str, int, int | None], ...] = ()
    accounts: tuple[int, int, int] | None = None

    def __getitem__(self, layout: Layout) -> Section:
        """Return a list, an empty one if the file has none."""
        return self.sections[layout.name] if layout.name in self.sections else empty(layout)

    @property
    def as_read(self) -> dict[str, Section]:
        """The lists as they stand in the file, by name."""
        return self.sections if self.lists is None else self.lists


@frozen
class Deps:
    """One task graph file.

    Attributes:
        tasks: its tasks.
        edges: its edges, as they stand: several a pair, self edges among them.
        size: bytes of the file.
    """

    tasks: Section
    edges: Section
    size: int = 0


def terminated(content: Bytes) -> Bytes:
    """Return a copy of the bytes with the NUL behind them that the scanner stops at."""
    text = np.zeros(len(content) + 1, np.uint8)
    text[:-1] = content
    return text


def read_records(text: Bytes, path: str) -> Records:
    """Read a records file.

    Args:
        text: its bytes and a NUL, uint8 [size + 1].
        path: for messages.

    Raises:
        InputError: it is no JSON object, is cut off, or is no records file of a known generation.
    """
    from lanescope.devices.ascend import generations

    reader = Reader(text, path)
    file = File(path, len(text) - 1)
    known = {layout.key: layout for layout in (*RECORDS, V1_TASKS)}
    for key in reader.entries():
        if key in known and reader.is_list():
            layout = known[key]
            if layout.name in _DECIMAL and reader.is_near(b'"start_time_us"'):
                layout = _DECIMAL[layout.name]
            file.lists[layout.name] = reader.section(layout)
        elif key in LEVEL_KEYS:
            file.levels[key] = reader.value()
        elif key == "metadata":
            file.metadata = reader.value()
        elif key == "core_to_thread":
            file.core_to_thread = reader.value()
        elif key == "scheduler_tasks" and reader.is_object():
            _read_scheduler_tasks(reader, file)
        elif key == "scheduler_records" and reader.is_object():
            from lanescope.devices.ascend import v4

            v4.read_streams(reader, file)
        else:
            begin, end = reader.skip()
            if (key not in known and key not in _V4_KEYS) or text[begin:end].tobytes() != b"null":
                file.unknown.append((key, begin, end))
            file.other.add(key)
    return generations.records(file, text)


class File:
    """A records file as it stands, before anybody knows its generation.

    Attributes:
        path: for messages.
        size: bytes.
        levels: the values of the keys that may hold the level.
        metadata: the metadata object; None without.
        core_to_thread: the list that v1 has at its top.
        lists: what the scanner read, by the name of the layout.
        streams: of the schedulers (v4): what the producer tells, its phases, their metrics.
        producer: who made the rows of the schedulers (v4).
        unknown: keys that are not of the format, with begin and end of their values.
        other: keys at the top that were stepped over.
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
        self.unknown: list[tuple[str, int, int]] = []
        self.other: set[str] = set()


#: Lists that v1 writes under the same key, in microseconds.
_DECIMAL = {PHASES.name: V1_PHASES, SUBMITS.name: V1_SUBMITS}
_V4_KEYS = ("scheduler_tasks", "scheduler_records")


def _read_scheduler_tasks(reader: Reader, file: File) -> None:
    for name in reader.fields():
        if name == V4_AICPU.key and reader.is_list():
            file.lists[V4_AICPU.name] = reader.section(V4_AICPU)
        elif name == "producer":
            file.producer = reader.value()
        else:
            file.unknown.append((f"scheduler_tasks.{name}", *reader.skip()))


def entries(text: Bytes, path: str) -> Iterator[tuple[str, int, int]]:
    """Yield the keys at the top of a file, and where the value of each begins and ends; arguments as ``read_records``.

    Raises:
        InputError: it is no JSON object, or is cut off.
    """
    reader = Reader(text, path)
    for key in reader.entries():
        yield key, *reader.skip()


def read_deps(text: Bytes, path: str) -> Deps:
    """Read a task graph file; arguments as ``read_records``.

    Raises:
        InputError: it is no JSON object, is cut off, or has neither tasks nor edges.
    """
    reader = Reader(text, path)
    known = {layout.name: layout for layout in DEPS}
    found: dict[str, Section] = {}
    for key in reader.entries():
        if key in known and reader.is_list():
            found[key] = reader.section(known[key])
        else:
            reader.skip()
    if not found:
        raise InputError(
            f"{path} is no task graph", hint="it has neither tasks nor edges: is it the deps.json of the run?"
        )
    tasks, edges = (found[layout.name] if layout.name in found else empty(layout) for layout in DEPS)
    return Deps(tasks, edges, len(text) - 1)


def read_names(content: bytes, path: str) -> tuple[dict[int, str], str | None]:
    """Read a name map: function names by number, and the orchestrator's name.

    Raises:
        InputError: it is no name map.
    """
    try:
        given = json.loads(content)
        names = given["callable_id_to_name"]
        orchestrator = given.get("orchestrator_name")
        return {int(number): str(name) for number, name in names.items()}, None if orchestrator is None else str(
            orchestrator
        )
    except (RecursionError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{path} is no name map: {error!r}", hint='it should hold {"callable_id_to_name": {"0": "name", ...}}'
        ) from None


class Reader:
    """A scanner whose faults are errors that name the place.

    Args:
        text: bytes and a NUL, uint8 [size + 1].
        path: for messages.
    """

    def __init__(self, text: Bytes, path: str) -> None:
        self._text = text
        self._path = path
        self._key = ""
        self._scanner = core.AscendScanner(text)
        if not self._scanner.open():
            raise self._error()

    def _error(self) -> InputError:
        where = f" inside `{self._key}`" if self._key else ""
        offset = self._scanner.offset
        if self._scanner.fault == "truncated":
            return InputError(
                f"{self._path} is cut off: it ends after byte {offset}{where}",
                hint="copy it again, or take the capture again",
            )
        what = "nested too deeply" if self._scanner.fault == "depth" else "no JSON"
        return InputError(f"{self._path} is {what} at byte {offset}{where}", hint="was it changed by hand?")

    def entries(self) -> Iterator[str]:
        """Yield the keys of the object; read or skip the value before asking for the next."""
        seen = set()
        while (span := _pair(self._scanner.key())) is not None:
            self._key = bytes(self._text[span[0] : span[1]]).decode("utf-8", "backslashreplace")
            if self._key in seen:
                raise InputError(f"{self._path} has `{self._key}` twice", hint="which of them holds? keep one")
            seen.add(self._key)
            yield self._key
        self._check()

    def fields(self) -> Iterator[str]:
        """Yield the keys of an object inside: as ``entries``, and the value that comes next is the object."""
        if not self._scanner.open():
            raise self._error()
        seen = set()
        while (span := _pair(self._scanner.key())) is not None:
            name = bytes(self._text[span[0] : span[1]]).decode("utf-8", "backslashreplace")
            if name in seen:
                raise InputError(
                    f"{self._path} has `{name}` twice inside `{self._key}`", hint="which of them holds? keep one"
                )
            seen.add(name)
            yield name
        self._check()

    def items(self) -> Iterator[None]:
        """Go through the elements of the list that comes next; read or skip each before asking for the next."""
        if not self._scanner.open_list():
            raise self._error()
        while self._scanner.item():
            yield
        self._check()

    def _check(self) -> None:
        if self._scanner.fault:
            raise self._error()

    def is_list(self) -> bool:
        """Tell whether the next value is a list."""
        return bool(self._scanner.is_list())

    def is_object(self) -> bool:
        """Tell whether the next value is an object."""
        return bool(self._scanner.is_object())

    def is_near(self, word: bytes) -> bool:
        """Tell whether a word stands in the next bytes."""
        at = self._scanner.offset
        return word in self._text[at : at + _PEEKED_BYTES].tobytes()

    def skip(self) -> tuple[int, int]:
        """Step over the next value; return where it begins and ends."""
        span = _pair(self._scanner.skip())
        if span is None:
            raise self._error()
        return span

    def value(self) -> Any:
        """Return the next value as Python objects."""
        begin, end = self.skip()
        try:
            # Few bytes: what msgspec takes to be imported reads a thousand of them.
            return json.loads(self._text[begin:end].tobytes())
        except (RecursionError, ValueError) as error:
            raise InputError(
                f"{self._path}: `{self._key}` cannot be read: {error}", hint="was it changed by hand?"
            ) from None

    def section(self, layout: Layout) -> Section:
        """Return the next list."""
        shape = _shape(layout.name)
        # The scanner fills one buffer that stays in the caches; from there each column goes to its own array.
        buffer = np.empty((shape.columns, _ROWS_AT_ONCE), np.uint64)
        columns = _columns(layout)
        rows, done, first = 0, False, self._scanner.offset
        while not done:
            count, done = self._scanner.take(shape, layout.depth, buffer)
            self._check()
            rows += count
            if rows > len(columns[0]):
                # As many rows as the rest of the file can hold; pages that are never written cost nothing.
                room = (len(self._text) - first) * rows // (self._scanner.offset - first)
                columns = [_grown(column, max(rows, min(room, 2 * rows + _MAX_GROWTH))) for column in columns]
            for column, values in zip(columns, buffer, strict=True):
                column[rows - count : rows] = values[:count]
        return self._collect(layout, [column[:rows] for column in columns])

    def _collect(self, layout: Layout, filled: list[Array]) -> Section:
        begin, end, group, present = filled[:_FIXED]
        columns: dict[str, Array] = {}
        texts: list[str] = []
        at = _FIXED
        for cell in layout.cells:
            missing = (present & np.uint32(layout.bit(cell.name))) == 0
            values = filled[at] if cell.count == 1 else np.stack(filled[at : at + cell.count], 1)
            at += cell.count
            if missing.any():
                values[missing] = 0
            if cell.kind == "text":
                values, texts = self._texts(values)
            columns[cell.name] = values
        good_bytes, bad_bytes, bad_count, bad_first, groups = self._scanner.tally()
        tally = Tally(good_bytes, bad_bytes, bad_count, bad_first if bad_count else None)
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


def _columns(layout: Layout) -> list[Array]:
    dtypes: list[np.dtype[Any]] = [np.dtype(kind) for kind in (np.int64, np.int64, np.int32, np.uint32)]
    for cell in layout.cells:
        # Codes of texts beyond the table hold an offset.
        dtypes += [np.dtype(np.int64) if cell.kind == "text" else _dtype(cell)] * cell.count
    return [np.empty(0, dtype) for dtype in dtypes]


def _grown(column: Array, rows: int) -> Array:
    grown = np.empty(rows, column.dtype)
    grown[: len(column)] = column
    return grown


def _pair(span: Any) -> tuple[int, int] | None:
    return span  # type: ignore[no-any-return]


def _dtype(cell: Cell) -> np.dtype[Any]:
    kinds = {"token": np.uint64, "boolean": np.bool_, "text": np.int32, "words": np.uint32}
    return np.dtype(kinds.get(cell.kind, np.int32 if cell.limit <= MAX_I32 else np.int64))


@cache
def _shape(name: str) -> Any:
    layout = next(layout for layout in LISTS if layout.name == name)
    cells = [
        ("" if not layout.is_object else c.name, c.kind, c.count, c.limit, c.is_required, list(c.words))
        for c in layout.cells
    ]
    return core.AscendShape(layout.is_object, cells)

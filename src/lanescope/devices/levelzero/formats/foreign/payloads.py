"""Fields of events, as CTF has them -> payloads, as THAPI's text has them; the readers of texts know what they mean."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.levelzero.formats.foreign import structures
from lanescope.devices.levelzero.formats.foreign.streams import Stream
from lanescope.devices.levelzero.formats.foreign.value_texts import is_word, written
from lanescope.wire import tsdl

Int64 = npt.NDArray[np.int64]
_UInt64 = npt.NDArray[np.uint64]
#: Name, form, value and extent of each event, labels of numbers, members of structures, texts that are written already.
_Field = tuple[str, str, _UInt64, _UInt64, list[tuple[int, str]], list[tuple[str, int, int]], bytes]

_FIELDS = "event.fields"


class _Form(NamedTuple):
    """How the native reader takes a field.

    Attributes:
        name: name of the form; empty if fields are written in Python.
        labels: of numbers.
        members: of structures: name, offset and size.
    """

    name: str
    labels: list[tuple[int, str]]
    members: list[tuple[str, int, int]]


def records(stream: Stream, row: int) -> core.LevelZeroColumns | None:
    """Return the fields of events of a stream, which are taken out of it where they are read.

    Args:
        stream: where they are from.
        row: their kind, a row of the reader's events.

    Returns:
        The fields of each event of the stream, as if all were of this kind; None if some have to be written in Python.
    """
    reader, walk = stream.trace.reader, stream.walk
    event = reader.events[row][1].name.partition(":")[2]
    wanted = reader.extraction(row, _FIELDS)
    leaves: list[tuple[str, str, int, list[tuple[int, str]], list[tuple[str, int, int]]]] = []
    for number, leaf in enumerate(wanted.leaves):
        if not _is_field(leaf):
            continue
        form = _form(event, leaf, stream.trace.about)
        if not form.name or any(leaf.name == other for other, *_ in leaves):
            return None
        leaves.append((leaf.name, form.name, number, form.labels, form.members))
    program = wanted.steps, wanted.choices, wanted.slots, wanted.packet, wanted.event, len(wanted.leaves)
    packets, firsts = (np.ascontiguousarray(walk.packet(name)) for name in ("offset", "first_event"))
    return core.LevelZeroColumns(leaves, walk.data, program, walk.places, packets, firsts)


def payloads(stream: Stream, row: int, rows: Int64) -> core.LevelZeroColumns:
    """Return the payloads of events.

    Args:
        stream: where they are from.
        row: their kind, a row of the reader's events.
        rows: which events, int64 [n]; all of that kind.

    Returns:
        Their fields. They are written as text only where a reader needs that.
    """
    event = stream.trace.reader.events[row][1].name.partition(":")[2]
    fields = [
        _field(event, column)
        for column in stream.trace.reader.columns(stream.walk, row, rows).values()
        if _is_field(column.leaf)
    ]
    return core.LevelZeroColumns(fields, stream.walk.data, len(rows))


def _is_field(leaf: tsdl.Leaf) -> bool:
    return leaf.root == _FIELDS and not leaf.name.startswith("_") and "." not in leaf.name


def _field(event: str, column: tsdl.Columns) -> _Field:
    name = column.leaf.name
    form = _form(event, column.leaf, column.about)
    if not form.name:
        texts = written(event, name, column)
        return _as_written(name, [text.partition(": ")[2] if text else None for text in texts])
    values, extents = np.ascontiguousarray(column.values), np.ascontiguousarray(column.extents)
    return name, form.name, values, extents, form.labels, form.members, b""


def _form(event: str, leaf: tsdl.Leaf, about: tsdl.Description) -> _Form:
    kind: Any = leaf.kind
    match kind:
        case tsdl.Integer():
            return _Form("signed_number" if kind.signed else "number", _labels(kind), [])
        case tsdl.Text():
            return _Form("text", [], [])
        # Arrays and structures that may begin within a byte are rare enough.
        case tsdl.Array() if tsdl.alignment(kind.element) % 8 == 0:
            members = structures.members_of(event, leaf.name)
            if members is not None:
                is_read = structures.is_of_numbers(members)
                return _Form("structure" if is_read else "", [], structures.places(members))
            element = kind.element
            if isinstance(element, tsdl.Integer) and not kind.is_text:
                big = about.big if element.big is None else element.big
                is_plain = not element.signed and not big and element.size % element.align == 0
                if is_plain and element.size in (32, 64):
                    return _Form(f"words{element.size}", [], [])
    return _Form("", [], [])


def _labels(kind: tsdl.Integer) -> list[tuple[int, str]]:
    """Return the names of numbers that can be told from a number or a list; the first label of a number is its name."""
    first = {number: label for label, number, last in reversed(kind.labels or ()) if number == last}
    return [(number & (1 << 64) - 1, label) for number, label in first.items() if is_word(label)]


def _as_written(name: str, texts: list[str | None]) -> _Field:
    encoded = [b"" if text is None else text.encode() for text in texts]
    begins = np.fromiter(accumulate((len(text) for text in encoded), initial=0), np.uint64, len(encoded) + 1)[:-1]
    extents = np.fromiter((0 if text is None else len(text.encode()) + 1 for text in texts), np.uint64, len(texts))
    return name, "written", begins, extents, [], [], b"".join(encoded)

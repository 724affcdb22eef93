"""Fields of events, as CTF has them -> payloads, as THAPI's text has them; the readers of texts know what they mean."""

from __future__ import annotations

from itertools import accumulate
from typing import Any

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
    fields = []
    for name, column in stream.trace.reader.columns(stream.walk, row, rows).items():
        root, _, name = name.partition(":")
        if root == "event.fields" and not name.startswith("_") and "." not in name:
            fields.append(_field(event, name, column))
    return core.LevelZeroColumns(fields, stream.walk.data, len(rows))


def _field(event: str, name: str, column: tsdl.Columns) -> _Field:
    values, extents = np.ascontiguousarray(column.values), np.ascontiguousarray(column.extents)
    form, labels = _form(column), list[tuple[int, str]]()
    members = structures.members_of(event, name) if isinstance(column.leaf.kind, tsdl.Array) else None
    if members is not None:
        form = "structure" if structures.is_of_numbers(members) else ""
        # Raw bytes, of which only those that begin with a byte are structures.
        form = "" if (values & np.uint64(7)).any() else form
    if not form:
        return _as_written(name, [text.partition(": ")[2] if text else None for text in written(event, name, column)])
    if members is not None:
        return name, form, values, extents, labels, structures.places(members), b""
    kind = column.leaf.kind
    if isinstance(kind, tsdl.Integer) and kind.labels:
        # The first label of a number is its name, as long as it can be told from a number or a list.
        first = {number: label for label, number, last in reversed(kind.labels) if number == last}
        labels = [(number & (1 << 64) - 1, label) for number, label in first.items() if is_word(label)]
    return name, form, values, extents, labels, [], b""


def _form(column: tsdl.Columns) -> str:
    """Return how the native writer takes a column; empty: it does not."""
    kind: Any = column.leaf.kind
    match kind:
        case tsdl.Integer():
            return "signed_number" if kind.signed else "number"
        case tsdl.Text():
            return "text"
        case tsdl.Array() if isinstance(kind.element, tsdl.Integer) and not kind.is_text:
            element = kind.element
            big = column.about.big if element.big is None else element.big
            is_plain = not element.signed and not big and element.size % element.align == 0
            if is_plain and element.size in (32, 64) and not (column.values & np.uint64(7)).any():
                return f"words{element.size}"
    return ""


def _as_written(name: str, texts: list[str | None]) -> _Field:
    encoded = [b"" if text is None else text.encode() for text in texts]
    begins = np.fromiter(accumulate((len(text) for text in encoded), initial=0), np.uint64, len(encoded) + 1)[:-1]
    extents = np.fromiter((0 if text is None else len(text.encode()) + 1 for text in texts), np.uint64, len(texts))
    return name, "written", begins, extents, [], [], b"".join(encoded)

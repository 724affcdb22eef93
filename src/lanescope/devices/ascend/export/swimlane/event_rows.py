"""Columns as the text of Chrome events: one template for each kind of event, filled in natively."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.declaration import frozen_class

#: Between two events of the list.
SEPARATOR = ",\n"
_ROWS_AT_ONCE = 1 << 11
_PLACE = re.compile(r"\$(\w+)")


@frozen_class
class Words:
    """A column of texts.

    Attributes:
        texts: the distinct ones, as they stand inside of a JSON text or value.
        index: int64 [n], which of them each row has.
    """

    texts: Sequence[str]
    index: npt.NDArray[np.int64]


class Numbers:
    """Numbers for events: each is given once."""

    def __init__(self) -> None:
        self._next = 1

    def take(self, count: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the first number of each row, int64 [n], when rows take so many (int [n]) one after the other."""
        ends = self._next + np.cumsum(count, dtype=np.int64)
        if len(ends):
            self._next = int(ends[-1])
        begins: npt.NDArray[np.int64] = ends - count
        return begins


Values = npt.NDArray[Any] | Words


def write(templates: str | Sequence[str], which: npt.NDArray[Any] | None = None, **columns: Values) -> Iterator[bytes]:
    """Yield the texts of events, some thousand at a time, with ``SEPARATOR`` between the events of each.

    Args:
        templates: the text of an event, or of several, with ``$name`` for the value of a column.
        which: int or bool [n], template of each row; None: there is one.
        columns: int64, uint64 or float64 [n], or texts.
    """
    templates = [templates] if isinstance(templates, str) else templates
    if not columns:
        return
    values, kinds, texts = _bits(columns)
    names = list(columns)
    lines = []
    for template in templates:
        parts = _PLACE.split(template)
        used = [names.index(name) for name in parts[1::2]]
        lines.append((parts[::2], used, "".join(kinds[column] for column in used)))
    writer = core.RowWriter(lines, texts)
    rows = len(values[0])
    chosen = np.zeros(rows, np.uint32) if which is None else which.astype(np.uint32)
    for first in range(0, rows, _ROWS_AT_ONCE):
        some = slice(first, min(first + _ROWS_AT_ONCE, rows))
        yield writer.format(chosen[some], np.stack([column[some] for column in values]), SEPARATOR)


def _bits(columns: dict[str, Values]) -> tuple[list[npt.NDArray[np.uint64]], list[str], list[str]]:
    """Return the columns as the bits of 64-bit numbers, their kinds, and all texts."""
    rows, kinds, texts = [], list[str](), list[str]()
    for values in columns.values():
        if isinstance(values, Words):
            rows.append((values.index + len(texts)).astype(np.int64).view(np.uint64))
            kinds.append("t")
            texts += values.texts
            continue
        kind = values.dtype.kind
        wide = values.astype({"f": np.float64, "u": np.uint64}.get(kind, np.int64), copy=False)
        rows.append(wide.view(np.uint64))
        kinds.append({"f": "f", "u": "u"}.get(kind, "i"))
    return rows, kinds, texts


def meta(name: str, pid: int, args: dict[str, Any], tid: int | None = None) -> str:
    """Return the event that names or sorts a process, or a lane."""
    event: dict[str, Any] = {"args": args, "cat": "__metadata", "name": name, "ph": "M", "pid": pid}
    return json.dumps(event | ({} if tid is None else {"tid": tid}))

"""Records whose roles are fields as they stand: one native pass reads what ``records.py`` computes by columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import Declaration, FieldSpec

#: Bits of the events of the decoder, and of kinds that are looked up by index.
_EVENT_BITS, _KIND_BITS = 16, 12
_WORD = 8


class Direct(NamedTuple):
    """What the pass reads.

    Attributes:
        begin: int64 [n], stamps.
        event: uint16 [n].
        kind: uint8 [n].
        stamp_bits: width of the stamps.
    """

    begin: npt.NDArray[np.int64]
    event: npt.NDArray[np.uint16]
    kind: npt.NDArray[np.uint8]
    stamp_bits: int


def read(declaration: Declaration, columns: Columns, codes: dict[int, int], unreadable: int) -> Direct | None:
    """Return the records, None where any role is more than a field.

    Args:
        declaration: the layout.
        columns: its records.
        codes: the decoder's kind for each value of the kind.
        unreadable: the kind of all other values.
    """
    fields = _fields(declaration)
    if fields is None:
        return None
    words, empty_value, expected = fields
    kind_bits = int(words[2][2])
    kinds = np.full(1 << kind_bits, unreadable, np.uint8)
    for value, code in codes.items():
        if 0 <= value < len(kinds):
            kinds[value] = code
    geometry, count = columns.geometry, len(columns)
    wanted = np.zeros(geometry.lanes, np.int64) if expected is None else geometry.lane_value(expected)
    value = 0 if empty_value is None else int(empty_value.value(geometry.scalars))
    if value < 0:
        return None
    found = Direct(np.empty(count, np.int64), np.empty(count, np.uint16), np.empty(count, np.uint8), int(words[0][2]))
    core.cuda_read_records(
        columns.main,
        geometry.base,
        columns.first,
        columns.ring,
        columns.start,
        geometry.stride,
        np.array(words, np.int64),
        kinds,
        value,
        wanted,
        found.begin.view(np.uint64),
        found.event,
        found.kind,
    )
    return found


def _fields(declaration: Declaration) -> tuple[list[tuple[int, int, int]], Any, Any] | None:
    """Return the words of stamp, event, kind, emptiness and agreement, and what the last two compare with."""
    record, roles = declaration.record, declaration.roles
    specs = {spec.name: spec for spec in (*record.fields, *record.views) if spec.byte is None}
    if declaration.is_spans or declaration.kind is None or declaration.state or record.size < _WORD:
        return None
    nothing = 0, 0, 0
    empty_value = expected = None
    words = []
    for expression, most in (
        (roles["time"], 64),
        (roles.get("id"), _EVENT_BITS),
        (declaration.kind[0], _KIND_BITS),
    ):
        spec = None if expression is None else specs.get(expression.name or "")
        if expression is not None and (spec is None or spec.width > most):
            return None
        words.append(nothing if spec is None else _word(spec, record.size))
    if record.empty is None:
        words.append(nothing)
    else:
        name, empty_value = record.empty.equality or ("", None)
        constant = empty_value is not None and not empty_value.names - {param.name for param in declaration.params}
        if name not in specs or not constant:
            return None
        words.append(_word(specs[name], record.size))
    if record.agree is None:
        words.append(nothing)
    else:
        name, expected = record.agree.equality or ("", None)
        if name not in specs or expected is None or expected.names & (set(specs) | {"k"}):
            return None
        words.append(_word(specs[name], record.size))
    return words, empty_value, expected


def _word(spec: FieldSpec, size: int) -> tuple[int, int, int]:
    """Return the first byte of a word inside the record that has the field, its shift and its width."""
    byte = min(spec.bit // 8, size - _WORD)
    return byte, spec.bit - 8 * byte, spec.width

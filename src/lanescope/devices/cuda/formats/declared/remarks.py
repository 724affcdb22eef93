"""What a declaration leaves out of the records that it fits: signs of a mistake, though no test fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from lanescope.devices.cuda.formats.declared.arrays import Arrays
from lanescope.devices.cuda.formats.declared.columns import Columns
from lanescope.devices.cuda.formats.declared.declaration import Declaration
from lanescope.devices.cuda.formats.declared.geometry import locate
from lanescope.devices.cuda.formats.declared.records import EMPTY, UNREADABLE, kinds

#: Bits of a field.
_WIDEST = 64
#: Timestamps of so many bits are whole integers.
_WHOLE = 63


def remarks(declaration: Declaration, arrays: Arrays, params: Mapping[str, int]) -> Iterator[str]:
    """Yield what a reader of the declaration should look at once more, a line each.

    Args:
        declaration: a layout that fits.
        arrays: the content.
        params: parameters that the user gave.
    """
    columns = Columns(declaration, arrays, locate(declaration, arrays, params))
    kind = kinds(declaration, columns)
    bits = declaration.clock.bits
    if bits < _WHOLE:
        time = columns.value(declaration.roles["begin" if declaration.is_spans else "time"])[kind < UNREADABLE]
        wide = int(np.count_nonzero(time >> bits))
        if wide:
            yield f"{wide:,} of {len(time):,} timestamps have bits beyond the {bits} of [clock], which are ignored"
    used = kind != EMPTY
    for low, width in _unread(declaration):
        found = int(np.bitwise_or.reduce(columns.bits(low, width)[used], initial=0))
        if found:
            last, first = low + found.bit_length() - 1, low + (found & -found).bit_length() - 1
            which = f"bits {last}..{first}" if last > first else f"bit {first}"
            yield f"no field reads {which} of records, not 0 in all of them"


def _unread(declaration: Declaration) -> Iterator[tuple[int, int]]:
    """Yield the bits of a record that no field and no view reads: the lowest one, and how many."""
    record = declaration.record
    if any(field.byte is not None for field in record.fields):
        return  # a record is where each of its fields is
    taken = np.zeros(8 * record.size, np.bool_)
    for field in (*record.fields, *record.views):
        taken[field.bit : field.bit + field.width] = True
    edges = np.flatnonzero(np.diff(taken, prepend=True, append=True))
    for first, last in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        for low in range(first, last, _WIDEST):
            yield low, min(_WIDEST, last - low)

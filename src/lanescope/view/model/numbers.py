"""Numbers of values by kind, with their units: what the page of a report prints in JavaScript too.

``tests/view/number_cases.json`` has cases that both must print alike. Tables of a terminal have the unit of cycles in
the header; here each value has it.
"""

from __future__ import annotations

import math

from lanescope.view.formatting import duration, escape, format_bytes, number, percent, three_digits
from lanescope.view.tables.cells import UNKNOWN

#: Kinds of values: a duration, or a moment, in the unit of the trace; all its digits; a number of things; a part of a
#: whole, 0 to 1; any other number; a size; what a counter has, in any unit.
KINDS = ("time", "exact", "count", "share", "number", "bytes", "value")
_LARGE = (("Gcyc", 1_000_000_000), ("Mcyc", 1_000_000), ("kcyc", 1_000))
#: From here on cycles have three digits.
_MANY = 10_000
#: Whole numbers below this are exact as floating-point numbers, too.
_EXACT = 2**53


def number_text(value: float | None, kind: str, unit: str = "") -> str:
    """Return a value as text.

    Args:
        value: None for one that is not known.
        kind: one of ``KINDS``.
        unit: of ``time`` and ``exact``: ``ns`` or ``cycles``, which are never shown as time; of ``value`` any.

    Example:
        >>> number_text(1_240_000, "time", "ns"), number_text(1_408, "exact", "ns"), number_text(0.931, "share")
        ('1.24 ms', '1,408 ns', '93.1%')
        >>> [number_text(value, "time", "cycles") for value in (1, 4_717, 86_000, 12_400_000)]
        ['1 cycle', '4,717 cycles', '86.0 kcyc', '12.4 Mcyc']
    """
    if value is None:
        return UNKNOWN
    # The page does not know whether a whole number was an integer, and has no negative zero.
    value = value + 0
    if kind == "number":
        value = float(value)
    elif kind in ("time", "count") and isinstance(value, float) and value.is_integer():
        value = int(value)
    if kind == "time":
        return duration(value) if unit == "ns" else _cycles(value)
    if kind == "exact":
        return f"{value:,} {_one_or_more(value, unit)}"
    if kind == "share":
        return percent(value)
    if kind == "bytes":
        return _bytes(int(value))
    if kind == "value":
        return _measured(value, unit)
    return number(value)


def _bytes(size: int) -> str:
    return f"{'-' if size < 0 else ''}{format_bytes(abs(size)).replace(' bytes', ' B').replace(' byte', ' B')}"


def _measured(value: float, unit: str) -> str:
    if not math.isfinite(value):
        return UNKNOWN
    if abs(value) < _EXACT and value == int(value):
        value = int(value)
    if unit in ("ns", "cycles"):
        return number_text(value, "time", unit)
    if unit == "bytes" and isinstance(value, int):
        return _bytes(value)
    text = number(value)
    return text if unit in ("", "1") else f"{text}%" if unit == "%" else f"{text} {escape(unit)}"


def _cycles(value: float) -> str:
    size = abs(value)
    if size >= _MANY:
        for name, step in _LARGE:
            if size >= step * 0.9995:  # what would be rounded up to the next unit belongs there
                return f"{three_digits(value / step)} {name}"
    return f"{number(value)} {_one_or_more(value, 'cycles')}"


def _one_or_more(value: float, unit: str) -> str:
    return "cycle" if unit == "cycles" and value == 1 else unit

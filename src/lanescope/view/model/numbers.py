"""Numbers of values by kind, with their units: what the page of a report prints in JavaScript too.

``tests/view/number_cases.json`` has cases that both must print alike. Tables of a terminal have the unit of cycles in
the header; here each value has it.
"""

from __future__ import annotations

from lanescope.view.formatting import duration, format_bytes, number, percent, three_digits
from lanescope.view.tables.cells import UNKNOWN

#: Kinds of values: a duration, or a moment, in the unit of the trace; all its digits; a number of things; a part of a
#: whole, 0 to 1; any other number; a size.
KINDS = ("time", "exact", "count", "share", "number", "bytes")
_LARGE = (("Gcyc", 1_000_000_000), ("Mcyc", 1_000_000), ("kcyc", 1_000))
#: From here on cycles have three digits.
_MANY = 10_000


def number_text(value: float | None, kind: str, unit: str = "") -> str:
    """Return a value as text.

    Args:
        value: None for one that is not known.
        kind: one of ``KINDS``.
        unit: of ``time`` and ``exact``: ``ns`` or ``cycles``, which are never shown as time.

    Example:
        >>> number_text(1_240_000, "time", "ns"), number_text(1_408, "exact", "ns"), number_text(0.931, "share")
        ('1.24 ms', '1,408 ns', '93.1%')
        >>> [number_text(value, "time", "cycles") for value in (1, 4_717, 86_000, 12_400_000)]
        ['1 cycle', '4,717 cycles', '86.0 kcyc', '12.4 Mcyc']
    """
    if value is None:
        return UNKNOWN
    if kind == "time":
        return duration(value) if unit == "ns" else _cycles(value)
    if kind == "exact":
        return f"{value:,} {_one_or_more(value, unit)}"
    if kind == "share":
        return percent(value)
    if kind == "bytes":
        return format_bytes(int(value)).replace(" bytes", " B").replace(" byte", " B")
    return number(value)


def _cycles(value: float) -> str:
    size = abs(value)
    if size >= _MANY:
        for name, step in _LARGE:
            if size >= step * 0.9995:  # what would be rounded up to the next unit belongs there
                return f"{three_digits(value / step)} {name}"
    return f"{number(value)} {_one_or_more(value, 'cycles')}"


def _one_or_more(value: float, unit: str) -> str:
    return "cycle" if unit == "cycles" and value == 1 else unit

"""Values of a table as text: one way for each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanescope.errors import UsageError
from lanescope.view.formatting import escape, format_bytes

if TYPE_CHECKING:
    from lanescope.view.tables.columns import Col

#: What is shown for a value that is not known.
UNKNOWN = "-"
#: Units that a person can ask for, how they are written, and how many ns they have.
UNITS = {"ns": ("ns", 1), "us": ("µs", 1_000), "ms": ("ms", 1_000_000), "s": ("s", 1_000_000_000)}
_STEPS = (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000))
#: Below this share one decimal shows nothing.
_SMALL = 0.0005
#: From here on, digits after the point are not shown.
_WHOLE = 1000
_BAR = " ▏▎▍▌▋▊▉█"


class Measured:
    """A value that is of another kind than the rest of its column: sizes below durations.

    Args:
        value: the number; None for one that is not known.
        kind: one of ``columns.KINDS``.
    """

    __slots__ = ("kind", "value")

    def __init__(self, value: Any, kind: str) -> None:
        self.value, self.kind = value, kind


def headline(column: Col, unit: str = "") -> str:
    """Return what is above a column, with the unit where cells have none.

    Args:
        column: the column.
        unit: key of ``UNITS`` that all durations are in; empty: each has its own.
    """
    if column.kind == "bar":
        return ""
    title = escape(column.title)
    if column.kind == "duration":
        return f"{title} [{UNITS[unit][0]}]" if unit else title
    known = column.unit if column.kind in ("cycles", "count") else ""
    return f"{title} [{escape(known)}]" if known else title


def cell(value: Any, column: Col, unit: str = "") -> str:
    """Return a value as its column shows it; texts are escaped.

    Args:
        value: None for one that is not known.
        column: the column, with its kind.
        unit: key of ``UNITS`` that all durations are in; empty: each has its own.

    Raises:
        UsageError: a unit of time for cycles, whose frequency is unknown.
    """
    if isinstance(value, Measured):
        from lanescope.view.tables.columns import Col

        shown = cell(value.value, Col(column.key, kind=value.kind), unit)
        # The header is that of the other kinds too.
        return f"{shown} {UNITS[unit][0]}" if unit and value.kind == "duration" and shown != UNKNOWN else shown
    if value is None:
        return UNKNOWN
    value = value.item() if hasattr(value, "item") else value  # a number of numpy
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, int | float):
        return escape(" ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
    kind = column.kind
    if isinstance(value, float) and value - value != 0:  # infinite, or not a number
        return UNKNOWN if value != value else f"{value}"
    if kind == "duration":
        return duration(value, unit)
    if kind == "cycles":
        if unit:
            raise UsageError(f"cannot show {column.unit or 'cycles'} in {unit}", hint="remove --unit")
        return f"{value:,.0f}"
    if kind == "percent":
        return percent(value)
    if kind == "bytes" and value >= 0:
        return format_bytes(round(value)).replace(" bytes", " B").replace(" byte", " B")
    if kind == "offset" and isinstance(value, int):
        return f"{value:#x}"
    if kind == "id" and isinstance(value, int):
        return str(value)
    return number(value)


def number(value: float) -> str:
    """Return a number with separators; of one that is not whole, three digits or all before the point.

    Example:
        >>> number(1234567), number(0.36221874973827844), number(1234.5), number(12.0)
        ('1,234,567', '0.362', '1,234', '12.0')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if abs(value) >= _WHOLE - 0.5:
        return f"{value:,.0f}" if abs(value) < 1e15 else f"{value:.3g}"
    return three_digits(value) if value == 0 or abs(value) >= 0.001 else f"{value:.3g}"


def percent(value: float) -> str:
    """Return a share with one decimal; one too small for it is not called nothing.

    Example:
        >>> percent(0.2468), percent(0.0001), percent(0.0), percent(1.0)
        ('24.7%', '<0.1%', '0.0%', '100.0%')
    """
    return "<0.1%" if 0 < value < _SMALL else f"{value:,.1%}"


def duration(value: float, unit: str = "") -> str:
    """Return a time in ns with three digits and the unit that fits, or in one unit with three decimals.

    Example:
        >>> duration(1_240_000), duration(608), duration(15_800_000), duration(0), duration(999_500)
        ('1.24 ms', '608 ns', '15.8 ms', '0 ns', '1.00 ms')
        >>> duration(1_240_123, "us"), duration(12, "ms"), duration(12, "ns")
        ('1,240.123', '<0.001', '12')
    """
    if unit:
        scaled = value / UNITS[unit][1]
        if unit == "ns":
            return number(value)
        return "<0.001" if 0 < scaled < 0.0005 else f"{scaled:,.3f}"
    size = abs(value)
    for name, step in _STEPS:
        if size >= step * 0.9995:  # what would be rounded up to the next unit belongs there
            return f"{three_digits(value / step)} {name}"
    return f"{value} ns" if isinstance(value, int) else f"{three_digits(value)} ns"


def length(value: int, unit: str) -> str:
    """Return a length of time as text: three digits for ns, all of them for cycles.

    Example:
        >>> length(18_560, "ns"), length(11_652_771, "cycles")
        ('18.6 µs', '11,652,771 cycles')
    """
    return duration(value) if unit == "ns" else f"{value:,} {unit}"


def three_digits(value: float) -> str:
    """Return three digits, or all before the point."""
    size = abs(value)
    decimals = 2 if size < 9.995 else 1 if size < 99.95 else 0
    if 0 < size < 0.0995:
        return f"{value:.3g}"
    return f"{value:,.{3 if 0 < size < 0.9995 else decimals}f}"


def bar(share: float, width: int) -> str:
    """Return a bar of block characters for a share of 0 to 1, in eighths of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return _BAR[8] * (eighths // 8) + (_BAR[eighths % 8] if eighths % 8 else "")

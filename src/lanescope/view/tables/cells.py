"""Values of a table as text: one way for each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanescope.errors import UsageError
from lanescope.view.formatting import UNITS, duration, escape, format_bytes, number, percent

if TYPE_CHECKING:
    from lanescope.view.tables.columns import Col

#: What is shown for a value that is not known.
UNKNOWN = "-"
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
        unit: key of ``formatting.UNITS`` that all durations are in; empty: each has its own.
    """
    if column.kind == "bar":
        return ""
    title = escape(column.title)
    if column.kind == "duration":
        return f"{title} [{UNITS[unit][0]}]" if unit else title
    known = column.unit if column.kind in ("cycles", "count") else ""
    if column.kind == "cycles" and title.endswith("cycles"):
        return title  # says what it counts
    return f"{title} [{escape(known)}]" if known else title


def cell(value: Any, column: Col, unit: str = "") -> str:
    """Return a value as its column shows it; texts are escaped.

    Args:
        value: None for one that is not known.
        column: the column, with its kind.
        unit: key of ``formatting.UNITS`` that all durations are in; empty: each has its own.

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


def bar(share: float, width: int) -> str:
    """Return a bar of block characters for a share of 0 to 1, in eighths of a character."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return _BAR[8] * (eighths // 8) + (_BAR[eighths % 8] if eighths % 8 else "")

"""Tables and traces as text, for those who print them, and as HTML, for notebooks."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from html import escape as html_escape
from typing import TYPE_CHECKING, Any, NamedTuple

from lanescope.trace.schema import CORE_TABLES
from lanescope.view.formatting import display_width, escape, fit_width, format_count, format_duration, format_total

if TYPE_CHECKING:
    from lanescope.trace import ColumnSpec, Table, Trace

#: Rows that are shown.
ROWS = 10
#: The widest text of a cell.
_TEXT = 40
_BETWEEN = 2
_CORE = frozenset(spec.name for spec in CORE_TABLES)
_NUMBERS = ("int64", "int32", "uint64", "uint32", "uint16", "uint8", "float64")
_UNKNOWN = "-"


class Cells(NamedTuple):
    """Part of a table, formatted.

    Attributes:
        names: of the columns.
        is_number: whether each of them is a number, and aligned to the right.
        rows: texts, [rows][columns].
        title: name and number of rows of the whole table.
        more: what is not shown; empty if all is.
    """

    names: list[str]
    is_number: list[bool]
    rows: list[list[str]]
    title: str
    more: str


def cells(table: Table, limit: int = ROWS) -> Cells:
    """Return the first rows of a table, formatted.

    Durations of analyses have three digits and their unit, shares are percentages, and ids are numbers as they are.
    Times and durations of the trace itself are numbers in its unit, exact.

    Args:
        table: the table.
        limit: how many rows.
    """
    count = len(table)
    shown = min(count, limit)
    some = table.take(range_of(shown)) if shown < count else table
    listed = [list(row.values()) for row in some.rows()]
    specs = table.spec.columns
    rows = [[_cell(value, spec, table) for value, spec in zip(row, specs, strict=True)] for row in listed]
    more = f"{format_count(count - shown, 'more row')}" if shown < count else ""
    title = f"{table.spec.name}: {format_total(count, 'row')}"
    return Cells([spec.name for spec in specs], [spec.type in _NUMBERS for spec in specs], rows, title, more)


def range_of(count: int) -> Any:
    """Return the numbers below ``count``, int64."""
    import numpy as np

    return np.arange(count)


def _cell(value: Any, spec: ColumnSpec, table: Table) -> str:
    """Return a value as it is shown."""
    if value is None:
        return _UNKNOWN
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, float):
        if spec.name.endswith("share") or spec.name.endswith("fraction"):
            return "<0.1%" if 0 < value < 0.001 else f"{value:.1%}"
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    if spec.unit == "ns" and table.spec.name not in _CORE and not table.spec.key and not spec.is_time:
        return format_duration(value)
    if spec.references or spec.name == "id" or spec.name.endswith("_id"):
        return str(value)
    return f"{value:,}"


def table_text(table: Table, width: int | None = None) -> str:
    """Return a table as aligned text: its name, its first rows, and what is not shown.

    Args:
        table: the table.
        width: characters of a line; the terminal's by default. What does not fit is named below.
    """
    room = width or shutil.get_terminal_size((120, 24)).columns
    found = cells(table)
    columns = list(zip(*found.rows, strict=True)) if found.rows else [() for _ in found.names]
    widths = [
        max([display_width(name), *(min(display_width(text), _TEXT if not is_number else 1 << 30) for text in column)])
        for name, is_number, column in zip(found.names, found.is_number, columns, strict=True)
    ]
    kept: list[int] = []
    used = 0
    for place, each in enumerate(widths):
        if kept and used + each + _BETWEEN > room:
            break
        kept.append(place)
        used += each + _BETWEEN
    lines = [found.title]
    if kept:
        lines.append(_line([found.names[at] for at in kept], kept, widths, found.is_number))
        lines.append((" " * _BETWEEN).join("─" * widths[at] for at in kept))
        lines += [_line([row[at] for at in kept], kept, widths, found.is_number) for row in found.rows]
    hidden = [name for at, name in enumerate(found.names) if at not in kept]
    notes = [found.more] if found.more else []
    notes += [f"hidden: {', '.join(hidden)}"] if hidden else []
    return "\n".join([*lines, *(["; ".join(notes)] if notes else [])])


def _line(texts: Sequence[str], places: Sequence[int], widths: Sequence[int], is_number: Sequence[bool]) -> str:
    parts = []
    for text, at in zip(texts, places, strict=True):
        if is_number[at]:
            parts.append(" " * (widths[at] - display_width(text)) + text)
        else:
            parts.append(fit_width(text, widths[at]))
    return (" " * _BETWEEN).join(parts).rstrip()


def table_html(table: Table) -> str:
    """Return a table as HTML: names and texts of a trace are escaped, and none of it is a script."""
    found = cells(table)

    def row(texts: Sequence[str], tag: str) -> str:
        sides = ("right" if is_number else "left" for is_number in found.is_number)
        inner = "".join(
            f'<{tag} style="text-align:{side}">{html_escape(text)}</{tag}>'
            for text, side in zip(texts, sides, strict=True)
        )
        return f"<tr>{inner}</tr>"

    body = "".join(row(texts, "td") for texts in found.rows)
    more = f"<p>{html_escape(found.more)}</p>" if found.more else ""
    return (
        f"<table><caption>{html_escape(escape(found.title))}</caption>"
        f"<thead>{row([escape(name) for name in found.names], 'th')}</thead><tbody>{body}</tbody></table>{more}"
    )


def trace_lines(trace: Trace) -> list[str]:
    """Return what a trace is, in lines: its inputs, its span, its tables, what was lost."""
    from lanescope.pipeline.diagnostics import described_losses
    from lanescope.pipeline.observers import Counts

    counts = Counts()
    counts.add(trace)
    found = counts.result()
    paths = [str(row["path"]) for row in trace.inputs.rows("path", "role") if row["role"] == "main"]
    lines = [", ".join(map(escape, paths)) or "a trace without inputs"]
    if found.begin is not None and found.end is not None:
        unit = trace.time.time_unit
        lines.append(f"{format_duration(found.end - found.begin, unit)}, from {found.begin:,} to {found.end:,} {unit}")
    lines.append(", ".join(f"{len(table):,} {name}" for name, table in trace.tables().items() if len(table)))
    from lanescope.analysis.windows.report import remark

    lines += [escape(remark(trace))] if remark(trace) else []
    lost = described_losses(trace)
    lines.append("data loss: " + (", ".join(f"{what} ({count:,})" for what, count in lost.items()) or "none"))
    return lines


def trace_html(trace: Trace) -> str:
    """Return what a trace is as HTML."""
    lines = trace_lines(trace)
    return f"<b>{html_escape(lines[0])}</b>" + "".join(f"<br>{html_escape(line)}" for line in lines[1:])

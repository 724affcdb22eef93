"""Tables and traces as text, for those who print them, and as HTML, for notebooks."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Sequence
from html import escape as html_escape
from typing import TYPE_CHECKING, Any

from lanescope.trace.schema import CORE_TABLES
from lanescope.view.formatting import escape, format_count, format_duration
from lanescope.view.table_output import Look
from lanescope.view.tables.cells import cell, headline
from lanescope.view.tables.columns import Col, declared
from lanescope.view.tables.layout import Layout, Room, wrapped

if TYPE_CHECKING:
    from lanescope.trace import Table, Trace

#: Rows that are shown.
ROWS = 10
#: A column whose texts are shown whole, without the others; and what shows it.
_SENTENCE, _COMMAND = "sentence", "command"
_CORE = frozenset(spec.name for spec in CORE_TABLES)


def _first_rows(table: Table) -> tuple[list[Col], list[list[Any]], str, str]:
    """Return columns, values [rows][columns], the name and number of rows of the whole table, and what is not shown.

    Columns have the names that ``table[name]`` takes. Durations of analyses have three digits and their unit, shares
    are percentages, and ids are numbers as they are. Times and durations of the trace itself are numbers in its unit,
    exact.
    """
    count = len(table)
    shown = min(count, ROWS)
    some = table.take(range_of(shown)) if shown < count else table
    is_exact = table.spec.name in _CORE or bool(table.spec.key)
    columns = []
    for spec in table.spec.columns:
        found = declared(spec)
        kind = "count" if found.kind in ("cycles", "duration") and (is_exact or spec.is_time) else found.kind
        columns.append(Col(spec.name, "", kind, "", found.priority))
    more = f"{format_count(count - shown, 'more row')}" if shown < count else ""
    title = f"{table.spec.name}: {format_count(count, 'row')}"
    return columns, [list(row.values()) for row in some.rows()], title, more


def range_of(count: int) -> Any:
    """Return the numbers below ``count``, int64."""
    import numpy as np

    return np.arange(count)


def table_text(table: Table, width: int | None = None) -> str:
    """Return a table as aligned text: its name, its first rows, and what is not shown.

    Args:
        table: the table.
        width: characters of a line; the terminal's by default. What does not fit is named below.
    """
    columns, rows, title, more = _first_rows(table)
    is_ascii = Look().room(sys.stdout).is_ascii
    room = Room(width or shutil.get_terminal_size((120, 24)).columns, is_ascii=is_ascii)
    if _SENTENCE in table.spec.names:
        return "\n".join([room.encoded(title), *_sentences(table, room), *([more] if more else [])])
    layout = Layout(columns, rows, room)
    lines = [room.encoded(title), *layout.head(), *layout.lines(rows)]
    notes = [more] if more else []
    notes += [f"hidden: {', '.join(layout.hidden)}"] if layout.hidden else []
    return "\n".join([*lines, *(["; ".join(notes)] if notes else [])])


def _sentences(table: Table, room: Room) -> Iterator[str]:
    """Yield the sentences of a table, whole, and the command of each below it."""
    for row in table.take(range_of(min(len(table), ROWS))).rows():
        yield from wrapped(room.encoded(escape(row[_SENTENCE])), room.width)
        if row.get(_COMMAND):
            yield f"    {room.encoded(escape(row[_COMMAND]))}"


def table_html(table: Table) -> str:
    """Return a table as HTML: names and texts of a trace are escaped, and none of it is a script."""
    columns, rows, title, more = _first_rows(table)

    def row(texts: Sequence[str], tag: str) -> str:
        sides = ("right" if column.is_right else "left" for column in columns)
        inner = "".join(
            f'<{tag} style="text-align:{side}">{html_escape(text)}</{tag}>'
            for text, side in zip(texts, sides, strict=True)
        )
        return f"<tr>{inner}</tr>"

    body = "".join(
        row([cell(value, column) for value, column in zip(values, columns, strict=True)], "td") for values in rows
    )
    left = f"<p>{html_escape(more)}</p>" if more else ""
    return (
        f"<table><caption>{html_escape(escape(title))}</caption>"
        f"<thead>{row([headline(column) for column in columns], 'th')}</thead><tbody>{body}</tbody></table>{left}"
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
    """Return what a trace is as HTML: facts, verdict, picture, names."""
    from lanescope.view.notebook import picture_html

    lines = trace_lines(trace)
    facts = f"<b>{html_escape(lines[0])}</b>" + "".join(f"<br>{html_escape(line)}" for line in lines[1:])
    return facts + picture_html(trace)

"""A comparison as one small HTML file that loads nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape as escape_html
from typing import TYPE_CHECKING, Any

from lanescope.view.comparison.text import (
    CONDITION_COLUMNS,
    condition_rows,
    group_columns,
    group_rows,
    heading,
    remarks,
)
from lanescope.view.formatting import escape
from lanescope.view.tables.cells import cell, headline

if TYPE_CHECKING:
    from lanescope.analysis.compare.comparison import Comparison
    from lanescope.view.tables.columns import Col

#: Nothing on the page may run or load, whatever a trace calls its slices.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body{font:14px/1.4 system-ui,sans-serif;margin:1.5em;max-width:none}table{border-collapse:collapse;margin:1em 0}
th,td{padding:.2em .7em;text-align:left;border-bottom:1px solid #ddd;overflow-wrap:break-word}
td:first-child{overflow-wrap:anywhere;min-width:14em}
td.number{text-align:right;white-space:nowrap}tr.named{background:#fff3d6}h2{font-size:1.1em}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}tr.named{background:#463a14}}
"""


def page(found: Comparison, metric: str, more: Sequence[str] = ()) -> Iterator[bytes]:
    """Yield the page of a comparison, piece by piece.

    Args:
        found: the comparison.
        metric: statistic that the table shows.
        more: further lines, such as conditions that failed.
    """
    yield (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>lanescope diff</title><style>{_STYLE}</style></head><body><h1>lanescope diff</h1>"
        f"<p>{_text(heading(found))}</p>"
    ).encode()
    for name, runs in zip("AB", found.runs, strict=True):
        yield f"<p>{name}: {_text(', '.join(runs))}</p>".encode()
    if found.conditions:
        yield b"<h2>Recorded under different conditions</h2>"
        yield from _table(CONDITION_COLUMNS, ([(text, False) for text in row] for row in condition_rows(found)))
    yield b"<ul>"
    for line in (*remarks(found), *more):
        yield f"<li>{_text(line)}</li>".encode()
    yield b"</ul><h2>Groups</h2>"
    columns = group_columns(found, metric)
    yield from _table(
        [headline(column) for column in columns],
        (map(_shown, row, columns) for row in group_rows(found, found.groups, metric)),
        [group.is_named for group in found.groups],
    )
    yield b"</body></html>\n"


def _table(
    columns: Sequence[str], rows: Iterable[Iterable[tuple[str, bool]]], is_named: Sequence[bool] = ()
) -> Iterator[bytes]:
    yield f"<table><thead><tr>{''.join(f'<th>{_text(name)}</th>' for name in columns)}</tr></thead><tbody>".encode()
    for number, row in enumerate(rows):
        mark = ' class="named"' if number < len(is_named) and is_named[number] else ""
        yield f"<tr{mark}>{''.join(map(_cell, row))}</tr>".encode()
    yield b"</tbody></table>"


def _shown(value: Any, column: Col) -> tuple[str, bool]:
    """Return a value as text, and whether it is to the right, as numbers are."""
    return "" if value is None else cell(value, column), column.is_right


def _cell(shown: tuple[str, bool]) -> str:
    text, is_number = shown
    mark = ' class="number"' if is_number else ""
    return f"<td{mark}>{_text(text)}</td>"


def _text(text: str) -> str:
    return escape_html(escape(text))

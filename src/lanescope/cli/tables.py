"""How verbs that report show their tables: as text that fits, or as CSV; and the flags that ask for it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.cli.console import echo
from lanescope.view.formatting import UNITS, escape
from lanescope.view.table_output import COLORS, Look, print_csv, show
from lanescope.view.tables.columns import Col, columns_of
from lanescope.view.tables.layout import wrapped

if TYPE_CHECKING:
    from lanescope.view.table_output import Columns


def add_formats(parser: argparse.ArgumentParser, schema: str, *, group: Any = None, is_timed: bool = True) -> None:
    """Add the flags of a verb that prints a table.

    Args:
        parser: parser of the verb.
        schema: name and version of its JSON document.
        group: group of formats that exclude each other; None: one of its own.
        is_timed: whether the table has durations.
    """
    formats = group or parser.add_mutually_exclusive_group()
    formats.add_argument("--json", action="store_true", help=f"one JSON document, schema {schema}")
    add_look(parser, formats, is_timed=is_timed)


def add_look(parser: argparse.ArgumentParser, formats: Any, *, is_timed: bool = True) -> None:
    """Add the flags for how a table is shown, and that for CSV to the formats."""
    formats.add_argument("--csv", action="store_true", help="the table as CSV (RFC 4180), exact")
    parser.add_argument("--wide", action="store_true", help="show all columns and whole names, also on a terminal")
    if is_timed:
        parser.add_argument("--unit", choices=tuple(UNITS), default="", help="one unit for all durations of the table")
    parser.add_argument("--color", choices=COLORS, default="auto", help="colors and bold text (default: auto)")


def look_of(args: argparse.Namespace) -> Look:
    """Return how the user wants tables shown."""
    given = vars(args)
    return Look(given.get("color", "auto"), is_wide=given.get("wide", False), unit=given.get("unit", ""))


def print_table(
    args: argparse.Namespace,
    columns: Columns,
    rows: Iterable[Sequence[Any]],
    *,
    about: str = "",
    title: str = "",
    notes: Iterable[str] = (),
) -> None:
    """Print the table of a verb on standard output, or as CSV, which has neither title nor notes."""
    if vars(args).get("csv", False):
        print_csv(*sections_of(columns, rows, is_csv=True))
    else:
        show(*sections_of(columns, rows), about=about, title=title, look=look_of(args), notes=notes)


def values_of(rows: Iterable[Mapping[str, Any]], names: Iterable[str]) -> list[list[Any]]:
    """Return rows as lists, [rows][names]; an empty text becomes None, as it says nothing."""
    names = list(names)
    return [[None if row[name] == "" else row[name] for name in names] for row in rows]


def sections_of(
    columns: Columns, rows: Iterable[Sequence[Any]], *, is_csv: bool = False
) -> tuple[list[Col], Iterable[Sequence[Any]]]:
    """Return the columns and rows of a table; where its sections measure different things, with the unit of each."""
    listed = columns_of(columns)
    if all(each.key != "section" for each in listed):
        return listed, rows
    from lanescope.view.tables import sections

    return (sections.with_unit if is_csv else sections.in_units)(listed, rows)


def print_wrapped(args: argparse.Namespace, line: str, indent: str = "  ") -> None:
    """Print a sentence on standard output: on as many lines of a terminal as it takes, on one elsewhere."""
    room = look_of(args).room(sys.stdout)
    for part in wrapped(escape(line), 0 if room.is_wide else room.width, indent):
        print(part)


def echo_left_out(args: argparse.Namespace, what: str) -> None:
    """State on standard error what CSV, which holds one table, leaves out."""
    if vars(args).get("csv", False):
        echo(f"{what}: not in the CSV table; use --json")

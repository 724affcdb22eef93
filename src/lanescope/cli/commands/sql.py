"""Query the tables of a capture with SQL (DuckDB). Without a query: list the tables and their columns."""

from __future__ import annotations

import argparse
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.cli.arguments import add_input, add_window
from lanescope.cli.console import print_json
from lanescope.cli.context import close, window_of
from lanescope.cli.reading import opened, passed
from lanescope.cli.signals import ending_at_once
from lanescope.errors import UsageError
from lanescope.families.family import Family
from lanescope.pipeline import session
from lanescope.pipeline.observers import Collect
from lanescope.view.table_output import show

if TYPE_CHECKING:
    from lanescope import Trace

EXAMPLES = (
    'lanescope sql capture.bin "select name, count(*), sum(dur) from slices group by 1"',
    "lanescope sql capture.bin",
)

_COLUMNS = tuple((name, "VARCHAR") for name in ("table", "column", "type", "unit", "meaning"))
#: Answers are shown in pieces: how long they are is up to the query.
_ROWS_AT_ONCE = 10_000


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    add_window(parser)
    parser.add_argument("query", metavar="QUERY", nargs="?", help="one SQL statement")
    parser.add_argument("--json", action="store_true", help="one JSON document, schema lanescope.sql/1")


def run(args: argparse.Namespace) -> int:
    """Print the answer."""
    from lanescope.io import duckdb_sql

    whole = Collect()
    with opened(args.input, args) as source:
        passed(source, args.input, observers=[whole])
    trace = whole.result()
    if args.query is None:
        _print(args, _COLUMNS, _declarations(trace), window_of(trace))
        return close(trace, args)
    # DuckDB looks for signals at times only, and in some plans never.
    with ending_at_once(), duckdb_sql.connect(trace, session.derived_tables(trace).values()) as connection:
        try:
            answer = connection.execute(args.query)
            description = (answer.description if answer is not None else None) or ()
            columns = [(str(name), str(type_)) for name, type_, *_ in description]
            _print(args, columns, _rows(answer) if columns else (), window_of(trace))
        except duckdb_sql.Error as error:
            raise _usage_error(str(error), args.input) from None
    return close(trace, args)


def _usage_error(text: str, path: str) -> UsageError:
    """Return the error for an invalid query."""
    hint = f"run 'lanescope sql {shlex.quote(path)}' to list tables and columns"
    missing = re.search(r'Table with name (\S+) does not exist!(?:\s*Did you mean "([^"]*)")?', text)
    if missing:
        near = f" (did you mean {missing[2].removeprefix('main.')!r}?)" if missing[2] else ""
        return UsageError(f"unknown table {missing[1]!r}{near}", hint=hint)
    lines = [line for line in text.splitlines() if line and not line.lstrip().startswith(("LINE", "^"))]
    return UsageError(f"invalid query: {' '.join(lines)}", hint=hint)


def _declarations(trace: Trace) -> Iterator[tuple[str, ...]]:
    specs = {name: table.spec for name, table in (session.derived_tables(trace) | trace.tables()).items()}
    # What the capture holds comes first.
    for name in dict.fromkeys((*trace.tables(), *specs)):
        for column in specs[name].columns:
            yield name, column.name, column.type, column.unit, column.doc


def _rows(answer: Any) -> Iterator[Sequence[Any]]:
    while rows := answer.fetchmany(_ROWS_AT_ONCE):
        yield from rows


def _print(
    args: argparse.Namespace,
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[Any]],
    window: dict[str, Any],
) -> None:
    if args.json:
        # Columns by position: a query may give two of them one name.
        print_json(
            "lanescope.sql/1",
            **window,
            columns=[{"name": name, "type": type_} for name, type_ in columns],
            rows=[[_json(value, type_) for value, (_, type_) in zip(row, columns, strict=True)] for row in rows],
        )
    elif columns:
        show([name for name, _ in columns], rows)


def _json(value: Any, type_: str) -> Any:
    """Return a value as JSON has it: ids of 64 bits without sign, and what JSON has no word for, become text."""
    if value is None or isinstance(value, bool | str) or (isinstance(value, int) and type_ != "UBIGINT"):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, list | tuple):
        return [_json(item, type_.removesuffix("[]")) for item in value]
    if isinstance(value, dict):
        return {str(name): _json(item, "") for name, item in value.items()}
    return str(value)

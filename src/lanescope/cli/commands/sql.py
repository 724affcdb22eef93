"""Query the tables of a capture with SQL (DuckDB). Without a query: list the tables and their columns."""

from __future__ import annotations

import argparse
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.cli.arguments import add_dataset, add_input, add_window, parse_window
from lanescope.cli.console import print_json
from lanescope.cli.context import close, window_of
from lanescope.cli.paging import add_paging, is_paged, streamed_part
from lanescope.cli.reading import collected, is_dataset, with_rest
from lanescope.cli.signals import ending_at_once
from lanescope.cli.tables import add_formats, print_table
from lanescope.errors import UsageError
from lanescope.families import registry
from lanescope.families.family import Family
from lanescope.pipeline import session
from lanescope.view.formatting import format_count
from lanescope.view.tables.columns import Col, is_id

if TYPE_CHECKING:
    from lanescope import Trace

EXAMPLES = (
    'lanescope sql capture.bin "select name, count(*), sum(dur) from slices group by 1"',
    "lanescope sql capture.bin",
)

_COLUMNS = tuple((name, "VARCHAR") for name in ("table", "column", "type", "unit", "meaning"))
_INTEGERS = frozenset(
    sign + size for sign in ("", "U") for size in ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
)
_FLOATS = ("DOUBLE", "FLOAT")
#: Answers are shown in pieces: how long they are is up to the query.
_ROWS_AT_ONCE = 10_000


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    add_window(parser)
    add_dataset(parser)
    parser.add_argument("query", metavar="QUERY", nargs="?", help="one SQL statement")
    parser.add_argument(
        "--perfetto-views",
        action=_PerfettoViews,
        nargs=0,
        help="print views of lanes, gaps, findings and flows for queries in Perfetto",
    )
    add_paging(parser)
    add_formats(parser, "lanescope.sql/1", is_timed=False)


class _PerfettoViews(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from lanescope.view import perfetto_views

        print(perfetto_views.sql())
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Print the answer."""
    if is_dataset(args.input):
        return _run_on_dataset(args)
    from lanescope.io import duckdb_sql

    trace = _read(args)
    if args.query is None:
        _print(args, _COLUMNS, _declarations(trace), window_of(trace))
        return close(trace, args)
    # DuckDB looks for signals at times only, and in some plans never.
    views = session.derived_tables(trace).values()
    # What is asked for in parts has to have its rows in one order each time.
    with ending_at_once(), duckdb_sql.connect(trace, views, is_repeatable=is_paged(args)) as connection:
        _answer(args, connection, window_of(trace))
    return close(trace, args)


def _read(args: argparse.Namespace) -> Trace:
    """Return the trace, or its part in the window; with the rest of it where the query needs that.

    Causes lead out of a window, and the time of lanes is told by slices that it does not select, too.
    """
    window = parse_window(args)
    if window is None or not args.query:
        return collected(args)
    needed = r"critical_path_|slack\b"
    if window.has_filter:
        from lanescope.analysis.derived import names_of_lanes

        families = (*registry.builtin(), *registry.plugin_families())
        needed += "".join(rf"|{re.escape(name)}\b" for name in names_of_lanes(families))
    return with_rest(args) if re.search(rf"\b({needed})", args.query, re.IGNORECASE) else collected(args)


def _run_on_dataset(args: argparse.Namespace) -> int:
    """Print the answer of a dataset."""
    from lanescope.cli import dataset_input
    from lanescope.io.dataset import tables

    catalog, records = dataset_input.selected(args)
    if args.query is None:
        found = {**tables.declarations(catalog, records), "captures": tables.CAPTURES, "failures": tables.FAILURES}
        rows = (
            (name, column.name, column.type, column.unit, column.doc)
            for name, spec in found.items()
            for column in (*(() if spec in tables.OF_CATALOG else tables.SHARED_COLUMNS), *spec.columns)
        )
        _print(args, _COLUMNS, rows, {})
        return dataset_input.close(args, records)
    with (
        ending_at_once(),
        tables.connect(catalog, records, args.query, is_repeatable=is_paged(args)) as connection,
    ):
        _answer(args, connection, {})
    return dataset_input.close(args, records)


def _answer(args: argparse.Namespace, connection: Any, window: dict[str, Any]) -> None:
    """Run the query, and print what it returns."""
    from lanescope.io import duckdb_sql

    try:
        answer = connection.execute(args.query)
        description = (answer.description if answer is not None else None) or ()
        columns = [(str(name), str(type_)) for name, type_, *_ in description]
        _print(args, columns, _rows(answer) if columns else (), window)
    except duckdb_sql.Error as error:
        raise _usage_error(str(error), args.input) from None


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
    if args.json or is_paged(args):
        rows, page = streamed_part(args, "sql", iter(rows))
    if args.json:
        # Columns by position: a query may give two of them one name.
        print_json(
            "lanescope.sql/1",
            **window,
            **page.described(),
            columns=[{"name": name, "type": type_} for name, type_ in columns],
            rows=[[_json(value, type_) for value, (_, type_) in zip(row, columns, strict=True)] for row in rows],
        )
    elif columns:
        counted = _Counted(rows)
        print_table(args, [_shown(*each) for each in columns], counted, notes=_note(counted, columns))
        if is_paged(args):
            page.state()


class _Counted:
    """Rows, and how many of them have gone by."""

    def __init__(self, rows: Iterable[Sequence[Any]]) -> None:
        self._rows, self.count = rows, 0

    def __iter__(self) -> Iterator[Sequence[Any]]:
        for row in self._rows:
            self.count += 1
            yield row


def _note(counted: _Counted, columns: Sequence[object]) -> Iterator[str]:
    """Yield what is below an answer, once all of it was shown."""
    yield f"{format_count(counted.count, 'row')}, {format_count(len(columns), 'column')}"


def _shown(name: str, type_: str) -> Col:
    """Return a column of an answer: values as they are, none of them a share or a duration."""
    if type_ in _INTEGERS:
        return Col(name, kind="id" if is_id(name) else "count")
    if type_ in _FLOATS:
        return Col(name, kind="ratio")
    return Col(name, kind="text", align="right" if type_.startswith("DECIMAL") else "")


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

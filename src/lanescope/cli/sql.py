"""Ask the tables of a capture in SQL (DuckDB). Without a query: list the tables and their columns."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lanescope.cli.common import add_input, close, print_json, read
from lanescope.devices import Family
from lanescope.errors import UsageError
from lanescope.view.tables import show

EXAMPLES = (
    'lanescope sql capture.bin "select name, count(*), sum(dur) from slices group by 1"',
    "lanescope sql capture.bin",
)


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    parser.add_argument("query", metavar="QUERY", nargs="?", help="one SQL statement")
    parser.add_argument("--json", action="store_true", help="one JSON document, schema lanescope.sql/1")


def run(args: argparse.Namespace) -> int:
    """Print the answer."""
    from lanescope.exchange import sql

    trace = read(args.input, args)
    if args.query is None:
        columns: list[str] = ["table", "column", "type", "unit", "meaning"]
        rows: list[Sequence[object]] = [
            (name, column.name, column.type, column.unit, column.doc)
            for name, table in trace.tables().items()
            for column in table.spec.columns
        ]
    else:
        with sql.connect(trace) as connection:
            try:
                answer = connection.execute(args.query)
                columns = [description[0] for description in answer.description or ()]
                rows = list(answer.fetchall())
            except sql.Error as error:
                raise UsageError(
                    f"SQL: {str(error).splitlines()[0]}", hint="`lanescope sql INPUT` lists tables and columns"
                ) from None
    if args.json:
        print_json("lanescope.sql/1", columns=columns, rows=rows)
    else:
        show(columns, rows)
    return close(trace, args)

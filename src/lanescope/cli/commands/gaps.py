"""List the longest stretches in which lanes waited or were idle, each with what ended it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lanescope.cli.arguments import add_input, add_window, positive
from lanescope.cli.console import print_json
from lanescope.cli.context import close, window_of
from lanescope.cli.reading import collected
from lanescope.families.family import Family
from lanescope.view.table_output import show

EXAMPLES = ("lanescope gaps capture.bin", "lanescope gaps --limit 5 capture.bin")

_LIMIT = 20


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    add_window(parser)
    parser.add_argument("--limit", metavar="N", type=positive, default=_LIMIT, help=f"rows (default: {_LIMIT})")
    parser.add_argument("--json", action="store_true", help="one JSON document, schema lanescope.gaps/1")


def run(args: argparse.Namespace) -> int:
    """Print the stretches."""
    from lanescope.pipeline import trace_queries

    trace = collected(args)
    table = trace_queries.longest_gaps(trace, args.limit)
    unit = trace.time.time_unit
    timed = [column.name for column in table.spec.columns if column.unit == unit]
    if args.json:
        rows = [
            {f"{name}_{unit}" if name in timed else name: value for name, value in row.items() if name != "id"}
            for row in table.rows()
        ]
        print_json("lanescope.gaps/1", unit=unit, **window_of(trace), rows=rows)
    else:
        columns = [name for name in table.spec.names if name not in ("id", "track_id", "ended_by_slice_id")]
        show(columns, [[row[name] for name in columns] for row in table.rows()], title=f"times in {unit}")
    return close(trace, args)

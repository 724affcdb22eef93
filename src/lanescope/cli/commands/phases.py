"""Show where the time of each lane went: busy by name, waiting by cause, idle, not recorded; adds up to 100%."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lanescope.cli.arguments import add_input, add_window, positive
from lanescope.cli.console import print_json
from lanescope.cli.context import close, window_of
from lanescope.cli.reading import collected
from lanescope.families.family import Family
from lanescope.view.table_output import show

EXAMPLES = ("lanescope phases capture.bin", "lanescope phases --by device capture.bin")

_BY = ("lane", "group", "device", "all")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    add_window(parser)
    parser.add_argument("--by", choices=_BY, default="device", help="owner whose lanes are summed (default: device)")
    parser.add_argument("--limit", metavar="N", type=positive, default=0, help="print only the first N rows")
    parser.add_argument("--json", action="store_true", help="one JSON document, schema lanescope.phases/1")


def run(args: argparse.Namespace) -> int:
    """Print the phases."""
    from lanescope.pipeline import trace_queries

    trace = collected(args)
    table = trace_queries.phases(trace, args.by)
    unit = trace.time.time_unit
    rows = [{name: value for name, value in row.items() if name != "id"} for row in table.rows()]
    rows = rows[: args.limit or None]
    if args.json:
        rows = [{f"total_{unit}" if name == "total" else name: value for name, value in row.items()} for row in rows]
        print_json("lanescope.phases/1", by=args.by, unit=unit, **window_of(trace), rows=rows)
    else:
        columns = [name for name in table.spec.names if name not in ("id", "track_id")]
        show(columns, [[row[name] for name in columns] for row in rows], title=f"times in {unit}")
    return close(trace, args)

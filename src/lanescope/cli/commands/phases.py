"""Show where the time of each lane went: busy by name, waiting by cause, idle, not recorded; adds up to 100%."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lanescope.cli.arguments import add_input, add_window
from lanescope.cli.console import print_json
from lanescope.cli.context import about, close, state_views, window_of
from lanescope.cli.paging import add_paging, table_part
from lanescope.cli.reading import lanes_of, selected_part
from lanescope.cli.tables import add_formats, print_table, values_of
from lanescope.families.family import Family

EXAMPLES = ("lanescope phases capture.bin", "lanescope phases --by device capture.bin")

_BY = ("lane", "group", "device", "all")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    add_window(parser)
    parser.add_argument("--by", choices=_BY, default="device", help="owner whose lanes are summed (default: device)")
    add_paging(parser, is_screenful=True)
    add_formats(parser, "lanescope.phases/1")


def run(args: argparse.Namespace) -> int:
    """Print the phases."""
    from lanescope.analysis.phases import selected_time
    from lanescope.pipeline import trace_queries

    lanes, counted = lanes_of(args)
    trace = lanes.trace
    table = trace_queries.phases(lanes, args.by)
    unit = trace.time.time_unit
    listed, page = table_part(args, "phases", table, is_screenful=True)
    part = selected_part(lanes, "that the lanes have", *selected_time(lanes, table))
    rows = [{name: value for name, value in row.items() if name != "id"} for row in listed]
    if args.json:
        rows = [{f"total_{unit}" if name == "total" else name: value for name, value in row.items()} for row in rows]
        print_json(
            "lanescope.phases/1", by=args.by, unit=unit, **window_of(trace), **page.described(), **part, rows=rows
        )
    else:
        columns = [column for column in table.spec.columns if column.name not in ("id", "track_id")]
        values = values_of(rows, [column.name for column in columns])
        print_table(args, columns, values, about=about(args, trace, counted))
        page.state()
    state_views(lanes)
    return close(trace, args)

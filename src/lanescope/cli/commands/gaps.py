"""List the longest stretches in which lanes waited or were idle, each with what ended it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lanescope.cli.arguments import add_input, add_window
from lanescope.cli.console import print_json
from lanescope.cli.context import about, close, state_views, window_of
from lanescope.cli.paging import add_paging, start, table_part
from lanescope.cli.reading import lanes_of, selected_part
from lanescope.cli.tables import add_formats, print_table, values_of
from lanescope.families.family import Family

EXAMPLES = ("lanescope gaps capture.bin", "lanescope gaps --limit 5 capture.bin")

_LIMIT = 20
#: More than any trace has.
_ALL = 1 << 62


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    add_window(parser)
    add_paging(parser, _LIMIT)
    add_formats(parser, "lanescope.gaps/1")


def run(args: argparse.Namespace) -> int:
    """Print the stretches."""
    from lanescope.analysis import phases

    lanes, counted = lanes_of(args)
    trace = lanes.trace
    last = start(args, "gaps") + args.limit if args.limit else _ALL
    found = phases.gaps(lanes.over_all_slices, last)
    table = found.table
    listed, page = table_part(args, "gaps", table, total=found.stretches)
    part = selected_part(
        lanes,
        "without work",
        found.total,
        found.whole_total,
        stretches=found.stretches,
        whole_stretches=found.whole_stretches,
    )
    unit = trace.time.time_unit
    timed = [column.name for column in table.spec.columns if column.unit == unit]
    if args.json:
        rows = [
            {f"{name}_{unit}" if name in timed else name: value for name, value in row.items() if name != "id"}
            for row in listed
        ]
        print_json("lanescope.gaps/1", unit=unit, **window_of(trace), **page.described(), **part, rows=rows)
    else:
        hidden = ("id", "track_id", "ended_by_slice_id")
        columns = [column for column in table.spec.columns if column.name not in hidden]
        values = values_of(listed, [column.name for column in columns])
        print_table(args, columns, values, about=about(args, trace, counted))
        page.state()
    state_views(lanes)
    return close(trace, args)

"""Add up the time of slices: by name, lane, device or category."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from lanescope.cli.common import add_input, close, natural, print_json, read
from lanescope.devices import Family
from lanescope.view.tables import is_terminal, show

EXAMPLES = ("lanescope summary capture.bin", "lanescope summary --by lane capture.bin")

_GROUPS = ("name", "lane", "device", "category")
_BAR = " ▏▎▍▌▋▊▉█"


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    own = [name for family in families for name in family.summaries]
    parser.add_argument("--by", choices=(*_GROUPS, *dict.fromkeys(own)), default="name", help="what makes a group")
    parser.add_argument("--limit", metavar="N", type=natural, default=0, help="only the first N groups")
    parser.add_argument("--json", action="store_true", help="one JSON document, schema lanescope.summary/1")


def run(args: argparse.Namespace) -> int:
    """Print the sums."""
    from lanescope.analysis.summary import summary

    trace = read(args.input, args)
    if args.by in _GROUPS:
        table = summary(trace, by=args.by)
    else:
        from lanescope import devices

        families = (*devices.in_tree(), *devices.strangers())
        table = next(family.summarise(args.by, trace) for family in families if args.by in family.summaries)
    rows = list(table.rows())[: args.limit or None]
    columns = [name for name in table.spec.names if name != "id"]
    if args.json:
        print_json("lanescope.summary/1", by=args.by, unit=trace.time.time_unit, rows=rows)
        return close(trace, args)
    values = [[row[name] for name in columns] for row in rows]
    if "share" in columns and is_terminal(sys.stdout):
        share = columns.index("share")
        columns = [*columns, ""]
        values = [[*row, bar(row[share] or 0.0)] for row in values]
    show(columns, values, title=f"times in {trace.time.time_unit}")
    return close(trace, args)


def bar(share: float, width: int = 20) -> str:
    """Return a bar of block characters for a share of 0 to 1."""
    eighths = round(min(max(share, 0.0), 1.0) * width * 8)
    return _BAR[8] * (eighths // 8) + (_BAR[eighths % 8] if eighths % 8 else "")

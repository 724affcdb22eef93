"""Ascend: show the tasks that a task waits for, and those that wait for it, to a depth."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lanescope.cli.common import add_input, close, non_negative_int, print_json, read
from lanescope.devices import Family
from lanescope.view.table_output import show

EXAMPLES = (
    "lanescope fan chip_swimlane_records.json r2t5",
    "lanescope fan chip_swimlane_records.json t12 --depth 3 --direction in",
)


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    parser.add_argument("task", metavar="TASK", help="task id: a number, or r2t5 for task 5 of ring 2")
    parser.add_argument(
        "--depth", metavar="N", type=non_negative_int, default=1, help="how many edges away; default: 1"
    )
    parser.add_argument("--direction", choices=("in", "out", "both"), default="both", help="producers, consumers, both")
    parser.add_argument("--json", action="store_true", help="one JSON document, schema lanescope.fan/1")


def run(args: argparse.Namespace) -> int:
    """Print the tasks."""
    from lanescope.devices.ascend.analysis.dependency_walk import fan

    trace = read(args.input, args)
    table = fan(trace, args.task, args.depth, args.direction)
    rows = list(table.rows())
    columns = [name for name in table.spec.names if name != "id"]
    if args.json:
        print_json("lanescope.fan/1", task=args.task, rows=[{**row, "task_id": str(row["task_id"])} for row in rows])
        return close(trace, args)
    show(columns, [[row[name] for name in columns] for row in rows], title=f"tasks around {args.task}")
    return close(trace, args)

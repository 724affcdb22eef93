"""Keep summaries of runs in a folder, and compare a run with them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from lanescope.cli.arguments import add_input, add_window
from lanescope.cli.compared_runs import (
    Runs,
    add_grouping,
    add_output,
    add_test,
    check_page,
    conditions_of,
    floor_of,
    report,
)
from lanescope.cli.console import echo, print_json
from lanescope.cli.tables import print_table
from lanescope.errors import UsageError
from lanescope.families.family import Family
from lanescope.view.formatting import escape, format_count
from lanescope.view.tables.cells import Measured

EXAMPLES = (
    "lanescope baseline add baseline run1.bin run2.bin run3.bin run4.bin",
    "lanescope baseline check baseline run5.bin",
)

_ACTIONS = ("add", "list", "check")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    parser.add_argument("action", metavar="ACTION", choices=_ACTIONS, help="add runs, list them, or check a run")
    parser.add_argument("folder", metavar="FOLDER", help="folder of run summaries")
    parser.add_argument("inputs", metavar="RUN", nargs="*", help="captures or run summaries")
    add_grouping(parser)
    add_test(parser)
    add_output(parser)
    add_input(parser, families, is_positional=False)
    add_window(parser)


def run(args: argparse.Namespace) -> int:
    """Add, list or check."""
    conditions_of(args)
    if bool(args.inputs) == (args.action == "list"):
        what = "takes no run" if args.inputs else "requires a run"
        raise UsageError(f"baseline {args.action} {what}", hint=f"see lanescope baseline --help for {args.action}")
    return {"add": _add, "list": _list, "check": _check}[args.action](args)


def _add(args: argparse.Namespace) -> int:
    from lanescope.pipeline import comparing

    runs = Runs(args)
    for each in runs.read(args.inputs):
        path = comparing.add_to_baseline(args.folder, each, overwrite=args.force)
        echo(f"wrote {escape(str(path))} ({format_count(len(each.groups), 'group')})")
    return runs.status


def _list(args: argparse.Namespace) -> int:
    from lanescope.pipeline import comparing

    kept = comparing.read_baseline(args.folder)
    columns = ("name", "sha256", "unit", "span", "busy", "groups", "by")
    rows = [[one.name, one.sha256, one.unit, one.span, one.total, len(one.groups), ",".join(one.by)] for one in kept]
    if args.json:
        print_json("lanescope.baseline/1", runs=[dict(zip(columns, row, strict=True)) for row in rows])
    elif args.csv:
        print_table(args, columns, rows)
    else:
        # Times in ns have their unit in the cell; where runs have another, there is a column for it.
        kept_columns = [
            at for at, name in enumerate(columns) if name != "unit" or any(one.unit != "ns" for one in kept)
        ]
        kinds = [("duration" if one.unit == "ns" else "count") for one in kept]
        shown = [
            [Measured(row[at], kind) if columns[at] in ("span", "busy") else row[at] for at in kept_columns]
            for row, kind in zip(rows, kinds, strict=True)
        ]
        print_table(args, [columns[at] for at in kept_columns], shown)
    return 0


def _check(args: argparse.Namespace) -> int:
    check_page(args, args.inputs)
    from lanescope.pipeline import comparing

    kept = comparing.read_baseline(args.folder)
    args.by = ",".join(kept[0].by)  # that of the baseline, whatever the default is
    runs = Runs(args)
    given = runs.read(args.inputs)
    # A run that is in the baseline itself would be compared with itself.
    hashes = {one.sha256 for one in given if one.sha256}
    others = [one for one in kept if one.sha256 not in hashes]
    if len(others) < len(kept):
        echo(f"excluded from the baseline: {len(kept) - len(others)} of the runs to check")
    if not others:
        raise UsageError(f"{args.folder} holds no other run", hint="add more runs with lanescope baseline add")
    status = report(comparing.compare(others, given, alpha=args.alpha, floor=floor_of(args)), args)
    return runs.status or status

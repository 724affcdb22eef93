"""Compare runs: which groups of slices are slower, faster, new or gone, with the run as the unit of evidence."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from lanescope.cli.arguments import add_dataset, add_input, add_window
from lanescope.cli.compared_runs import (
    Runs,
    add_grouping,
    add_output,
    add_test,
    asked_window,
    check_page,
    conditions_of,
    floor_of,
    report,
)
from lanescope.cli.console import echo, print_json
from lanescope.cli.tables import print_table
from lanescope.errors import UsageError
from lanescope.families.family import Family
from lanescope.view.formatting import format_count

EXAMPLES = (
    "lanescope diff before1.bin before2.bin -- after1.bin after2.bin",
    "lanescope diff --series day1.bin day2.bin day3.bin",
)


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    parser.usage = "lanescope diff [options] A... -- B..."
    add_input(parser, families, many=True)
    add_grouping(parser)
    add_test(parser)
    add_output(parser)
    parser.add_argument("--series", action="store_true", help="search runs in order for changes")
    add_window(parser)
    add_dataset(parser, names_runs=True)
    # argparse drops the mark between the sides; all that follows it is a run.
    marks = [at for at, argument in enumerate(arguments) if argument == "--"]
    parser.set_defaults(marks=len(marks), second=len(arguments) - marks[0] - 1 if marks else 0)


def run(args: argparse.Namespace) -> int:
    """Print the comparison."""
    conditions_of(args)  # an invalid one is an error before the work is done
    if args.series:
        return _series(args)
    first, second = _sides(args)
    check_page(args, args.inputs)
    from lanescope.pipeline import comparing

    runs = Runs(args)
    if len(runs.of_datasets(first)) == len(runs.of_datasets(second)) == 1:
        both = runs.read([*first, *second], has_sequences=True)
        sides = both[:1], both[1:]
    else:
        sides = runs.read(first), runs.read(second)
    status = report(comparing.compare(*sides, alpha=args.alpha, floor=floor_of(args)), args)
    return runs.status or status


def _sides(args: argparse.Namespace) -> tuple[list[str], list[str]]:
    inputs = list(args.inputs)
    if args.marks > 1:
        raise UsageError("more than one -- between runs", hint="use lanescope diff A... -- B...")
    flags = [
        name for name in inputs[len(inputs) - args.second :] if name.startswith("--") and not os.path.lexists(name)
    ]
    if flags:
        raise UsageError(f"option {flags[0]} after --", hint="write options before the runs")
    if not args.marks and len(inputs) == 2:
        return inputs[:1], inputs[1:]
    if not args.second or args.second == len(inputs):
        raise UsageError(
            f"{format_count(len(inputs), 'run')} without a second side",
            hint="use lanescope diff A... -- B..., or --series",
        )
    return inputs[: -args.second], inputs[-args.second :]


def _series(args: argparse.Namespace) -> int:
    if args.fail_if or args.html is not None or args.marks or args.format or args.cursor:
        raise UsageError("--series takes runs in order", hint="remove --fail-if, --html, --format, --cursor and --")
    from lanescope.analysis.compare.series import find_changes
    from lanescope.view.comparison.text import percent

    runs = Runs(args)
    found = find_changes(runs.read(args.inputs), alpha=args.alpha, floor=floor_of(args))
    if args.json:
        print_json("lanescope.diff_series/1", **asked_window(args), **found.to_dict())
    else:
        columns = ["run", "number", *found.by, "statistic", "change", "p"]
        change = (lambda share: share) if args.csv else percent
        rows = ([one.run, one.at + 1, *one.key, one.statistic, change(one.change), one.p] for one in found.changes)
        print_table(args, columns, rows, title=f"changes in {len(found.runs)} runs")
    if found.needed:
        echo(f"too few runs: a series of {len(found.runs)} cannot reach p <= {found.alpha:g}; record {found.needed}")
    else:
        echo(f"tested: {found.tested} groups; false alarms: at most {found.alpha:.0%} of series without a change")
    if found.untested:
        echo(f"not tested: {len(found.untested)} groups that some runs lack")
    return runs.status

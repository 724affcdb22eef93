"""Runs of commands that compare: captures, kept summaries, folders of them; and what is printed of a comparison."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.cli.arguments import add_format, parse_window, positive
from lanescope.cli.console import check_output, echo, print_json, print_written, warn
from lanescope.cli.context import close, each_read
from lanescope.cli.dataset_input import DatasetRun, dataset_runs, read_run
from lanescope.cli.paging import part
from lanescope.cli.tables import add_formats, echo_left_out, print_table
from lanescope.errors import UsageError
from lanescope.view.formatting import escape

if TYPE_CHECKING:
    from lanescope.analysis.compare.comparison import Comparison
    from lanescope.analysis.compare.fail_condition import FailCondition
    from lanescope.analysis.compare.run_summary import RunSummary

METRICS = ("total", "count", "mean", "median", "p99")
_ALPHA, _FLOOR, _LIMIT = 0.05, 0.01, 20


def add_grouping(parser: argparse.ArgumentParser) -> None:
    """Add the argument that asks for groups."""
    parser.add_argument(
        "--by",
        metavar="COLUMNS",
        default="name,lane_kind",
        help="identity of groups: name, lane_kind, lane, category, phase, task, kernel, TABLE.COLUMN "
        "(default: name,lane_kind)",
    )


def add_test(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the test, and those of the output."""
    parser.add_argument(
        "--alpha", metavar="P", type=_share, default=_ALPHA, help=f"chance of a false alarm (default: {_ALPHA})"
    )
    parser.add_argument(
        "--floor", metavar="CHANGE", type=_share, help="smallest change that is named, 2%% or 0.02 (default: 1%%)"
    )
    add_formats(parser, "lanescope.diff/1", is_timed=False)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of comparisons of two sides."""
    parser.add_argument(
        "--metric", choices=METRICS, help="statistic that is shown (default: total, of one capture per side mean)"
    )
    parser.add_argument("--limit", metavar="N", type=positive, help=f"rows (default: {_LIMIT}, or all that are named)")
    parser.add_argument("--cursor", metavar="CURSOR", default="", help="continue the answer that printed this cursor")
    add_format(parser)
    parser.add_argument("--html", metavar="FILE", help="write a page that loads nothing else")
    parser.add_argument("--force", action="store_true", help="overwrite existing output")
    parser.add_argument(
        "--fail-if",
        metavar="CONDITION",
        action="append",
        default=[],
        help='exit with status 1 if it holds: "p99(load) > +5%%", repeatable',
    )


def _share(text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError("expected a share below 1, such as 2% or 0.02")
    return value


def floor_of(args: argparse.Namespace) -> float:
    """Return the floor, that of the command line or the default."""
    return _FLOOR if args.floor is None else float(args.floor)


def columns_of(args: argparse.Namespace) -> list[str]:
    """Return the columns of the identity of groups."""
    return [name.strip().replace("-", "_") for name in args.by.split(",") if name.strip()]


def conditions_of(args: argparse.Namespace) -> list[FailCondition]:
    """Return the conditions of ``--fail-if``."""
    if not args.fail_if:
        return []
    from lanescope.analysis.compare.fail_condition import parse_condition

    return [parse_condition(text) for text in args.fail_if]


class Runs:
    """Reads runs and remembers the exit status that their losses ask for.

    Attributes:
        status: 4 under ``--strict`` if a run lost data, else 0.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self.status = 0

    def read(self, paths: Sequence[str], *, has_sequences: bool = False) -> list[RunSummary]:
        """Return the summaries of captures, of kept summaries, and of all that folders of those hold."""
        return [run for each in self._each(paths, has_sequences=has_sequences) for run in each]

    def of_datasets(self, paths: Sequence[str]) -> list[str | DatasetRun]:
        """Return arguments with the runs of datasets in place of those that name them; errors as ``dataset_runs``."""
        found: list[str | DatasetRun] = []
        for path in paths:
            runs = dataset_runs(path, self._args, takes_window=True) if "ranks" in self._args else None
            found += [path] if runs is None else runs
        return found

    def _each(self, paths: Sequence[str], *, has_sequences: bool) -> Iterator[list[RunSummary]]:
        from lanescope._native import core
        from lanescope.pipeline import comparing

        core.keep_freed_memory()  # a command ends with its work
        by = columns_of(self._args)
        found = self.of_datasets(paths)
        given = [path for path in found if isinstance(path, str)]
        captures = [path for path in given if not (comparing.is_summary(path) or comparing.is_baseline(path))]
        traces = each_read(captures, self._args) if captures else iter(())
        for path in found:
            if not isinstance(path, str):
                trace = read_run(path, self._args)
                self.status = max(self.status, close(trace, self._args, of=f"{path.name}: "))
                yield [comparing.summarize(trace, path.name, by, has_sequences=has_sequences)]
            elif comparing.is_summary(path):
                yield [comparing.read_summary(path)]
            elif comparing.is_baseline(path):
                yield comparing.read_baseline(path)
            else:
                name, trace = next(traces)
                self.status = max(self.status, close(trace, self._args, of=f"{name}: "))
                yield [comparing.summarize(trace, name, by, has_sequences=has_sequences)]
        for _ in traces:  # it checks the options behind the last one
            raise AssertionError


def asked_window(args: argparse.Namespace) -> dict[str, Any]:
    """Return the window of the captures as JSON documents have it, under its key; empty for whole captures."""
    window = parse_window(args)
    return {} if window is None else {"window": window.as_asked()}


def check_page(args: argparse.Namespace, inputs: Sequence[str]) -> None:
    """Refuse, before the work is done, a page that cannot be written."""
    if args.html is not None:
        check_output(args.html, inputs, force=args.force)


def report(found: Comparison, args: argparse.Namespace) -> int:
    """Print a comparison, and return the exit status of ``--fail-if``."""
    from lanescope.analysis.compare.fail_condition import judge
    from lanescope.view.comparison import text

    args.metric = args.metric or ("mean" if found.method == "pair" else "total")
    if args.json and args.format:
        raise UsageError("--json and --format are mutually exclusive", hint="use one of them")
    if not args.json and not args.format:
        _print(found, args)
    judged = [(each, judge(found, each, has_floor=args.floor is not None)) for each in conditions_of(args)]
    failures = []
    for condition, result in judged:
        for group in result.failed:
            effect = group.effects[condition.statistic]
            change = text.percent(effect.change) or group.verdict
            failures.append(f"{condition.text}: {', '.join(group.key)}: {change}")
    if args.format:
        from lanescope.cli import ci_output

        ci_output.print_comparison(args, found, failures)
    if args.json:
        content = found.to_dict()
        content["groups"], page = part(args, "diff", content["groups"], of="groups")
        content |= page.described()
        content["fail_if"] = [
            {
                "condition": condition.text,
                "failed": [dict(zip(found.by, group.key, strict=True)) for group in result.failed],
                "undecided": [
                    {"key": dict(zip(found.by, group.key, strict=True)), "reason": reason}
                    for group, reason in result.undecided
                ],
            }
            for condition, result in judged
        ]
        print_json("lanescope.diff/1", **asked_window(args), **content)
    if args.html is not None:
        _write_page(found, args, failures)
    for condition, result in judged:
        if result.undecided:
            names = ", ".join(f"{', '.join(group.key)} ({reason})" for group, reason in result.undecided[:3])
            count = len(result.undecided)
            if not any(sign in condition.pattern for sign in "*?["):
                raise UsageError(f"condition {condition.text!r} is undecided: {names}", hint="use a longer run")
            warn(f"condition {condition.text!r} is undecided for {count} of its groups: {names}")
    for line in failures:
        echo(f"failed: {escape(line)}")
    return int(bool(failures))


def _print_csv(found: Comparison, args: argparse.Namespace) -> None:
    """Print the groups as CSV: what their JSON objects hold, on one level."""
    groups, page = part(args, "diff", found.groups, of="groups")
    rows = [
        {**dict(zip(found.by, group.key, strict=True)), "verdict": group.verdict, "reason": group.reason,
         "runs_a": group.runs[0], "runs_b": group.runs[1],
         **{_named(name, part, found.unit): value for name, effect in group.effects.items()
            for part, value in effect._asdict().items()},
         **{f"{part}_{found.unit}": value for part, value in group.contribution._asdict().items()}}
        for group in groups
    ]  # fmt: skip
    columns = list(dict.fromkeys(name for row in rows for name in row)) or [*found.by, "verdict"]
    print_table(args, columns, [[row.get(name) for name in columns] for row in rows])
    page.state()
    if found.conditions:
        echo_left_out(args, "conditions that differ")


def _named(metric: str, part: str, unit: str) -> str:
    is_time = part in ("a", "b") and metric != "count"
    return f"{metric}_{part}_{unit}" if is_time else f"{metric}_{part}"


def _print(found: Comparison, args: argparse.Namespace) -> None:
    if args.csv:
        _print_csv(found, args)
        return
    from lanescope.view.comparison import text

    if found.conditions:
        title = "recorded under different conditions"
        print_table(args, text.CONDITION_COLUMNS, text.condition_rows(found), title=title)
        print()
    args.limit = args.limit or max(_LIMIT, len(found.named))
    rows, page = part(args, "diff", found.groups, of="groups")
    columns, listed = text.group_columns(found, args.metric), text.group_rows(found, rows, args.metric)
    print_table(args, columns, listed, title=text.heading(found))
    page.state()
    for line in text.remarks(found):
        echo(escape(line))


def _write_page(found: Comparison, args: argparse.Namespace, failures: Sequence[str]) -> None:
    from lanescope.io.atomic_file import atomic_writer
    from lanescope.view.comparison.page import page

    window = parse_window(args)
    lines = [f"failed: {line}" for line in failures]
    if window is not None:
        from lanescope.analysis.windows.report import asked_in_words

        lines.insert(0, f"window of each capture: {asked_in_words(window)}")
    size = 0
    with atomic_writer(args.html) as file:
        for part in page(found, args.metric, lines):
            size += file.write(part)
    print_written(args.html, size=size)

"""Collect captures in a dataset: hive-partitioned Parquet with one small record per capture.

Captures that the dataset has already are skipped, so an interrupted command is resumed by running it again. A file that
cannot be read does not stop the others: it is listed with its reason. `lanescope sql`, `summary`, `check` and `info`
take the dataset in place of a capture.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from lanescope.cli.arguments import add_input, parse_options, positive
from lanescope.cli.console import echo, print_json, warn
from lanescope.cli.context import listed
from lanescope.cli.tables import add_formats, print_table
from lanescope.errors import DataLossError, UsageError
from lanescope.families.family import Family
from lanescope.view.formatting import escape, format_bytes, format_count
from lanescope.view.tables.columns import column

if TYPE_CHECKING:
    from lanescope.pipeline.dataset.inputs import Inputs
    from lanescope.pipeline.dataset.one_capture import Outcome, Work

WINDOWLESS = "a dataset has whole captures: summary, check, explain and diff of it take one"
EXAMPLES = (
    "lanescope ingest capture.bin -o fleet",
    "lanescope ingest 'captu*.bin' -o fleet --jobs 8 --run job-17",
)


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families, many=True)
    parser.add_argument("-o", "--output", metavar="DATASET", required=True, help="folder or URL of the dataset")
    parser.add_argument("--run", metavar="NAME", help="run of these captures (default: the folder of each)")
    parser.add_argument("--jobs", metavar="N", type=positive, help="captures side by side (default: all cores)")
    parser.add_argument(
        "--on", metavar="PLACE", default="local", help="local (default), or dask://HOST:PORT of a Dask scheduler"
    )
    add_formats(parser, "lanescope.ingest/1", is_timed=False)


def run(args: argparse.Namespace) -> int:
    """Ingest, and list what could not be."""
    from lanescope.io.dataset import records, store
    from lanescope.pipeline.dataset import inputs
    from lanescope.pipeline.memory import parse_limit

    if args.on != "local" and not args.on.startswith("dask://"):
        raise UsageError(f"unknown place {args.on!r}", hint="use --on local or --on dask://HOST:PORT")
    if args.on != "local" and args.jobs is not None:
        raise UsageError("--jobs and --on are mutually exclusive", hint="start as many Dask workers instead")
    if args.memory is not None:
        parse_limit(args.memory)
    found = inputs.find(args.inputs)
    dataset = store.open_store(args.output)
    records.mark(dataset)
    dataset.sweep()
    outcomes = list(_watched(_outcomes(args, found), len(found.captures) + len(found.missing), is_quiet=args.quiet))
    dataset.sweep()  # after workers that ended in the middle
    outcomes.sort(key=lambda each: each.path)
    _print(args, outcomes, found)
    return _status(args, outcomes)


def _outcomes(args: argparse.Namespace, found: Inputs) -> Iterator[Outcome]:
    from lanescope.errors import InputError
    from lanescope.pipeline.dataset import workers
    from lanescope.pipeline.dataset.one_capture import Work, failed
    from lanescope.pipeline.memory import parse_limit

    options = parse_options(args)
    limit = None if args.memory is None else parse_limit(args.memory)
    works = [Work(path, args.output, args.family, options, args.run, limit) for path in found.captures]
    for path, reason in found.missing:
        error = InputError(f"{path}: {reason}", hint="check the path")
        yield workers.record_failure(Work(path, args.output), failed(path, error))
    yield from _placed(args, works)


def _placed(args: argparse.Namespace, works: Sequence[Work]) -> Iterator[Outcome]:
    from lanescope.pipeline.dataset import cluster, workers

    if args.on != "local":
        yield from cluster.ingest_on(args.on, works)
        return
    if args.memory is None:
        from lanescope._native import core

        core.keep_freed_memory()  # a command ends with its work
    yield from workers.ingest_local(works, args.jobs or workers.default_jobs())


def _watched(outcomes: Iterator[Outcome], total: int, *, is_quiet: bool) -> Iterator[Outcome]:
    """Pass outcomes on, with progress on a terminal."""
    is_shown, start, slices = sys.stderr.isatty() and not is_quiet, time.monotonic(), 0
    for done, outcome in enumerate(outcomes, 1):
        slices += outcome.slices if outcome.status == "ingested" else 0
        if is_shown:
            rate = slices / max(time.monotonic() - start, 1e-9)
            print(f"\r{done:,} of {total:,} captures, {rate:,.0f} slices/s\x1b[K", end="", file=sys.stderr, flush=True)
        yield outcome
    if is_shown:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _print(args: argparse.Namespace, outcomes: Sequence[Outcome], found: Inputs) -> None:
    counts = Counter(each.status for each in outcomes)
    if args.json:
        print_json(
            "lanescope.ingest/1",
            dataset=args.output,
            counts={status: counts[status] for status in ("ingested", "present", "failed")},
            ignored=found.ignored,
            captures=[{**each._asdict(), "lost": dict(each.lost)} for each in outcomes],
        )
        return
    shown = outcomes if args.csv else [each for each in outcomes if each.status == "failed"]
    if shown or args.csv:
        names = ("path", "status", "exit_status", "reason", "hint")
        columns = [column(name, "plain" if name == "exit_status" else "text") for name in names]
        print_table(args, columns, [[getattr(each, name) for name in names] for each in shown])
    for each in outcomes:
        if each.status == "present" and each.reason:
            warn(f"{each.path}: {each.reason}")
    lost: Counter[str] = Counter()
    for each in outcomes:
        lost.update(each.lost)
    if lost:
        warn(f"data loss: {listed(lost)}; run 'lanescope check' on the dataset for locations")
    if found.ignored:
        echo(f"ignored: {format_count(len(found.ignored), 'file')} in folders that are not captures")
    fresh = [each for each in outcomes if each.status == "ingested"]
    slices, size = sum(each.slices for each in fresh), sum(each.bytes for each in fresh)
    echo(
        f"wrote {escape(args.output)} ({format_count(len(fresh), 'new capture')}, {format_count(slices, 'slice')}, "
        f"{format_bytes(size)}; {counts['present']:,} present already, {counts['failed']:,} failed)"
    )


def _status(args: argparse.Namespace, outcomes: Sequence[Outcome]) -> int:
    """Return the highest status of a failed file; data loss under ``--strict`` wins over none."""
    worst = max((each.exit_status for each in outcomes), default=0)
    if not worst and args.strict and any(each.lost for each in outcomes):
        return DataLossError.exit_status
    return worst

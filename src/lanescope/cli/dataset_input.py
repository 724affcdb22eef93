"""Datasets as inputs of commands: the captures that the user selects, and warnings of what they lost."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lanescope.cli.arguments import parse_options, parse_window
from lanescope.cli.console import echo, warn
from lanescope.cli.context import listed
from lanescope.cli.reading import is_dataset
from lanescope.errors import DataLossError, InputError, UsageError
from lanescope.view.formatting import escape, format_count

if TYPE_CHECKING:
    from lanescope import Trace
    from lanescope.io.dataset.records import CaptureRecord, Catalog


def selected(
    args: argparse.Namespace,
    path: str | None = None,
    runs: Sequence[str] | None = None,
    *,
    takes_window: bool = False,
) -> tuple[Catalog, list[CaptureRecord]]:
    """Return the dataset that the user names, and the captures of the given runs and ranks.

    Args:
        args: the command line.
        path: the dataset; None: that of the command line.
        runs: globs of runs; None: those of the command line.
        takes_window: whether the command takes a window of a dataset.

    Raises:
        InputError: it is empty, or not a dataset.
        UsageError: options that only captures take; or no capture of this run and rank.
    """
    from lanescope.io.dataset.records import Catalog
    from lanescope.io.dataset.store import open_store

    path = args.input if path is None else path
    if args.family is not None or parse_options(args):
        raise UsageError(f"{path} is decoded already", hint="remove --family and decode options")
    if not takes_window and "where" in args and parse_window(args) is not None:
        raise UsageError("a dataset takes no window", hint="use conditions on ts and dur in 'lanescope sql'")
    catalog = Catalog(open_store(path))
    if not catalog.captures and not catalog.failed:
        raise InputError(f"{path} is empty", hint="run 'lanescope ingest CAPTURES -o DATASET' first")
    return catalog, catalog.selected(args.runs if runs is None else runs, args.ranks)


def state_window(args: argparse.Namespace, records: Sequence[CaptureRecord], refused: Mapping[str, UsageError]) -> None:
    """State on standard error of which part of the captures an answer is.

    Args:
        args: the command line.
        records: the captures.
        refused: captures that the window fits not at all, each with the error.
    """
    window = parse_window(args)
    if window is None:
        return
    from lanescope.analysis.windows.report import asked_in_words

    count = f"each of {format_count(len(records), 'capture')}"
    if refused:
        count = f"{len(records) - len(refused):,} of {format_count(len(records), 'capture')}"
        count += f" (the others: {next(iter(refused.values())).message})"
    echo(f"window: {escape(asked_in_words(window))}, in times of {escape(count)}; the accounting is of whole captures")


def window_document(args: argparse.Namespace) -> dict[str, Any]:
    """Return the window of a dataset as JSON documents have it, with its key; empty without one."""
    window = parse_window(args)
    return {} if window is None else {"window": window.as_asked()}


def close(args: argparse.Namespace, records: Sequence[CaptureRecord], status: int = 0) -> int:
    """Warn of data loss in the captures, and return the exit status that follows."""
    lost: Counter[str] = Counter()
    for record in records:
        lost.update(record.losses)
    if not lost:
        return status
    captures = sum(bool(record.losses) for record in records)
    warn(f"data loss in {captures:,} of {len(records):,} captures: {listed(lost)}")
    return DataLossError.exit_status if args.strict else status


def unit_of(records: Sequence[CaptureRecord]) -> str:
    """Return the time unit of captures.

    Raises:
        UsageError: they have several.
    """
    units = Counter(str(record.time["time_unit"]) for record in records)
    if len(units) > 1:
        told = ", ".join(f"{count:,} in {unit}" for unit, count in units.most_common())
        raise UsageError(f"captures have different time units: {told}", hint="use --runs or --ranks to select some")
    return next(iter(units), "ns")


class DatasetRun(NamedTuple):
    """A run of a dataset, as comparisons take it.

    Attributes:
        name: the dataset and the run, as the user may write them.
        catalog: the dataset.
        records: captures of the run.
    """

    name: str
    catalog: Catalog
    records: list[CaptureRecord]


def dataset_runs(path: str, args: argparse.Namespace, *, takes_window: bool = False) -> list[DatasetRun] | None:
    """Return the runs that an argument ``DATASET`` or ``DATASET#GLOB`` names, by name; None if it is not of a dataset.

    Args:
        path: the argument.
        args: the command line.
        takes_window: as ``selected`` takes it.

    Raises:
        InputError: the dataset is empty.
        UsageError: no run, or no capture of the given ranks, is called so; or an option that only captures take.
    """
    dataset, mark, glob = path.rpartition("#")
    if not mark or os.path.lexists(path) or not is_dataset(dataset):
        dataset, glob = path, "*"
        if not is_dataset(path):
            return None
    catalog, records = selected(args, dataset, [glob], takes_window=takes_window)
    runs: dict[str, list[CaptureRecord]] = {}
    for record in records:
        runs.setdefault(record.run, []).append(record)
    return [DatasetRun(f"{dataset}#{name}", catalog, runs[name]) for name in sorted(runs)]


def read_run(run: DatasetRun, args: argparse.Namespace) -> Trace:
    """Return the captures of a run as one trace: each on a time axis of its own where they share no clock.

    Of a window it is the part of each capture, in times of that capture; errors as of ``CaptureParts``.
    """
    from lanescope.pipeline import session
    from lanescope.pipeline.dataset.capture_parts import CaptureParts

    parts = CaptureParts(run.catalog, parse_window(args))
    found = session.merge([trace for _, trace in parts.each(run.records)], side_by_side=True)
    if parts.refused:
        state_window(args, run.records, parts.refused)
    return found


#: Ranks that a row lists.
_LISTED = 8


def listed_ranks(ranks: Sequence[int]) -> str:
    """Return the first of some ranks as text."""
    return ", ".join(map(str, ranks[:_LISTED])) + (", ..." if len(ranks) > _LISTED else "")

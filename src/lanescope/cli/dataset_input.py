"""Datasets as inputs of commands: the captures that the user selects, and warnings of what they lost."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lanescope.cli.arguments import parse_options, parse_window
from lanescope.cli.console import warn
from lanescope.cli.context import listed
from lanescope.errors import DataLossError, InputError, UsageError

if TYPE_CHECKING:
    from lanescope.io.dataset.records import CaptureRecord, Catalog


def selected(args: argparse.Namespace) -> tuple[Catalog, list[CaptureRecord]]:
    """Return the dataset that the user names, and the captures of the given runs and ranks.

    Raises:
        InputError: it is empty, or not a dataset.
        UsageError: options that only captures take; or no capture of this run and rank.
    """
    from lanescope.io.dataset.records import Catalog
    from lanescope.io.dataset.store import open_store

    if args.family is not None or parse_options(args):
        raise UsageError(f"{args.input} is decoded already", hint="remove --family and decode options")
    if "where" in args and parse_window(args) is not None:
        raise UsageError("a dataset takes no window", hint="use conditions on ts and dur in 'lanescope sql'")
    catalog = Catalog(open_store(args.input))
    if not catalog.captures and not catalog.failed:
        raise InputError(f"{args.input} is empty", hint="run 'lanescope ingest CAPTURES -o DATASET' first")
    return catalog, catalog.selected(args.runs, args.ranks)


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

"""Export a capture: Perfetto (.pftrace), Chrome JSON (.json, .json.gz), Parquet, VCD, picture, or its family's format.

Several captures with related clocks are merged into one timeline.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lanescope.cli.arguments import add_dataset, add_input, add_window, non_negative_int, parse_window, positive
from lanescope.cli.check_settings import add_settings, check_settings
from lanescope.cli.console import check_output, echo, format_row_counts, is_stdout, print_written, warn
from lanescope.cli.context import close, read_all
from lanescope.cli.reading import opened, passed
from lanescope.errors import UsageError
from lanescope.families.family import Family
from lanescope.pipeline.sinks import DRAWS_FINDINGS, PICTURES, SUFFIXES, format_of, make_sink
from lanescope.view.formatting import escape, format_count

if TYPE_CHECKING:
    from lanescope.cli.dataset_input import DatasetRun
    from lanescope.pipeline.sources import InMemory

EXAMPLES = ("lanescope convert capture.bin -o out.pftrace", "lanescope convert capture.bin -o out.parquet --force")

#: Formats whose files hold something of the hashes of the inputs: all of them, or of what is written in parts. Hashing
#: takes as long as reading.
_HASHES: Mapping[str, bool | Literal["parts"]] = {"perfetto": "parts", "parquet": True}

#: Tables that an overview has no rows of, and what their rows are called.
_NOT_DRAWN = {"instants": "instant", "counters": "sample", "flows": "flow"}


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families, many=True)
    add_window(parser)
    add_dataset(parser, names_runs=True)
    own = [export.name for family in families for export in family.exports]
    parser.add_argument(
        "-o", "--output", metavar="OUT", required=True, help="output file, whose suffix selects the format"
    )
    formats = sorted({*SUFFIXES.values(), *own})
    told = "output format (default: from the suffix): " + ", ".join(formats)
    parser.add_argument("--format", choices=formats, metavar="FORMAT", help=told)
    parser.add_argument("--force", action="store_true", help="overwrite existing output")
    parser.add_argument(
        "--side-by-side",
        action="store_true",
        help="accept captures without a common clock: each has a time axis of its own",
    )
    parser.add_argument(
        "--inside",
        metavar="KERNEL",
        help="kernels that recorded a capture without a common clock: part of their names, or NAME#K for the Kth",
    )
    parser.add_argument(
        "--no-compress",
        dest="compress",
        action="store_false",
        help="do not compress Perfetto traces: larger, slightly faster",
    )
    parser.add_argument(
        "--no-annotations",
        dest="annotations",
        action="store_false",
        help="do not add the findings of `lanescope check`",
    )
    parser.add_argument(
        "--overview",
        metavar="BUCKETS",
        nargs="?",
        type=_buckets,
        const=0,
        help="sums of short slices, exact by name and lane, in so many buckets of time",
    )
    pictures = parser.add_argument_group("pictures (.svg, .png)")
    pictures.add_argument("--width", metavar="PIXELS", type=_pixels, help="width (default: 1200)")
    pictures.add_argument(
        "--height",
        metavar="PIXELS",
        type=_pixels,
        help="largest height, which limits the number of lanes (default: as needed for 64 lanes)",
    )
    add_settings(parser)


def _pixels(text: str) -> int:
    value = non_negative_int(text)
    if not 100 <= value <= 20_000:
        raise argparse.ArgumentTypeError("must be 100 to 20000")
    return value


def _buckets(text: str) -> int:
    try:
        return positive(text)
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(f"{error} (inputs come before --overview)") from None


def run(args: argparse.Namespace) -> int:
    """Convert."""
    format_ = args.format or _format(args.output)
    if args.overview is not None and format_ not in SUFFIXES.values():
        raise UsageError(f"--format {format_} is of single slices", hint="remove --overview")
    if args.inside is not None and len(args.inputs) == 1:
        raise UsageError("--inside places one capture inside another", hint="pass both captures, or remove --inside")
    _check_target(args, format_)
    from lanescope.cli.dataset_input import dataset_runs
    from lanescope.pipeline.observers import Annotations
    from lanescope.pipeline.run import run as run_pipeline

    sink = make_sink(
        _target(args),
        format_,
        compress=args.compress,
        replace=args.force,
        is_gzip=args.output.endswith(".gz"),
        tell=warn,
        picture=_picture(args) if format_ in PICTURES else None,
    )
    annotate = None
    if args.annotations and format_ in DRAWS_FINDINGS and args.overview is None:
        found, limits = check_settings(args)
        annotate = Annotations(found.select, found.ignore, limits)
    of_dataset = [runs for path in args.inputs if (runs := dataset_runs(path, args, takes_window=True)) is not None]
    if args.overview is not None:
        report = run_pipeline(_overview(of_dataset, args), sink=sink)
    elif of_dataset:
        report = run_pipeline(_of_dataset(of_dataset, args), sink=sink, annotate=annotate)
    elif len(args.inputs) == 1:
        with opened(args.inputs[0], args, hashes=_HASHES.get(format_, False)) as source:
            report = passed(source, args.inputs[0], sink=sink, annotate=annotate)
    else:
        report = run_pipeline(_merged(args), sink=sink, annotate=annotate)
    rows = format_row_counts(report.rows) or "no events"
    if format_ == "parquet":
        rows += ", " + format_count(sum(map(bool, report.rows.values())), "table")
    assert report.written is not None
    if report.unmarked:
        warn(
            f"{format_count(report.unmarked, 'suspect row')} not marked: standard output cannot be written twice; "
            "use -o FILE"
        )
    print_written(args.output, rows, size=report.written.bytes)
    return close(report.last, args)


def _overview(of_dataset: Sequence[Sequence[DatasetRun]], args: argparse.Namespace) -> InMemory:
    """Return the overview of what is converted, and state what it is and lacks."""
    from lanescope.analysis.lanes_on_disk import LanesOnDisk
    from lanescope.analysis.overview import overview
    from lanescope.cli.context import state_views
    from lanescope.cli.reading import lanes_in
    from lanescope.pipeline.observers import Counts
    from lanescope.pipeline.run import run as run_pipeline
    from lanescope.pipeline.sources import InMemory
    from lanescope.view.formatting import format_duration

    lanes = LanesOnDisk(islands=check_settings(args).islands)
    if len(args.inputs) == 1 and not of_dataset:
        with opened(args.inputs[0], args) as source:
            shared, counted = lanes_in(source, args.inputs[0], lanes)
    else:
        counts = Counts()
        merged = _of_dataset(of_dataset, args) if of_dataset else _merged(args)
        run_pipeline(merged, observers=[lanes, counts])
        shared, counted = lanes.result(), counts.result()
    found = overview(shared.over_all_slices, args.overview)
    unit = found.trace.time.time_unit
    buckets = f"{format_count(found.buckets, 'bucket')} of at most {format_duration(found.width, unit)}"
    drawn = format_count(len(found.trace.slices), "slice")
    echo(f"overview: {format_count(found.stretches, 'stretch', 'stretches')} in {drawn}, {buckets}")
    if found.unfinished:
        echo(f"{format_count(found.unfinished, 'unfinished slice')}: drawn up to where they were last seen")
    left = [(counted.rows.get(name, 0), one) for name, one in _NOT_DRAWN.items()]
    if any(count for count, _ in left):
        echo(f"left out: {', '.join(format_count(count, one) for count, one in left if count)}")
    state_views(shared)
    return InMemory(found.trace)


def _picture(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options of a picture."""
    found, _ = check_settings(args)
    given = {"width": args.width, "height": args.height}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    return options | {"findings": args.annotations, "select": found.select, "ignore": found.ignore}


def _target(args: argparse.Namespace) -> Any:
    return sys.stdout.buffer if is_stdout(args.output) else Path(args.output)


def _format(output: str) -> str:
    format_ = format_of(output)
    if format_ is not None:
        return format_
    if is_stdout(output):
        raise UsageError("writing to standard output requires --format")
    raise UsageError(
        f"cannot infer the format from {Path(output).suffix or output!r}",
        hint="use --format or one of " + ", ".join(SUFFIXES),
    )


def _check_target(args: argparse.Namespace, format_: str) -> None:
    if is_stdout(args.output):
        if format_ == "parquet":
            raise UsageError("cannot write a Parquet dataset to standard output", hint="use -o DIR.parquet")
        if sys.stdout.isatty():
            raise UsageError("refusing to write binary output to a terminal", hint="use -o FILE or redirect stdout")
    elif format_ == "parquet":
        from lanescope.io import parquet

        check_output(args.output, args.inputs, force=args.force, is_folder=True)
        parquet.check_room(Path(args.output), replace=args.force)
    else:
        check_output(args.output, args.inputs, force=args.force)


def _of_dataset(found: Sequence[Sequence[DatasetRun]], args: argparse.Namespace) -> InMemory:
    """Put captures of one run of a dataset on one timeline, or what of it is in the window."""
    runs = found[0]
    if len(args.inputs) > 1 or len(runs) > 1:
        named = ", ".join(run.name for run in runs[:3])
        raise UsageError("a dataset is converted run by run", hint=f"use one of {named}")
    from lanescope.pipeline.dataset.merged import merged
    from lanescope.pipeline.sources import InMemory

    ((name, catalog, records),) = runs
    trace, placements = merged(catalog, records, parse_window(args), side_by_side=args.side_by_side)
    errors = [placement.error_ns for placement in placements]
    error = "unknown error" if None in errors else f"error at most {max(error or 0 for error in errors):,} ns"
    echo(f"{escape(name)}: {format_count(len(records), 'capture')} on one timeline ({error})")
    if ambiguous := sum(bool(placement.wrap_period) for placement in placements):
        warn(f"the offset of {format_count(ambiguous, 'capture')} is ambiguous: its counter wraps (LS302)")
    if axes := max(placement.axis for placement in placements):
        warn(f"no common clock: the captures are on {axes + 1} time axes, whose times are not comparable (LS305)")
    return InMemory(trace)


def _merged(args: argparse.Namespace) -> InMemory:
    """Decode several captures, tell where each of them lies, and put them on one timeline."""
    from lanescope.pipeline import session, trace_queries
    from lanescope.pipeline.sources import InMemory

    traces = read_all(args.inputs, args, is_windowed=False)
    placements = session.align(traces, side_by_side=args.side_by_side, inside=args.inside)
    for path, trace, placement in zip(args.inputs, traces, placements, strict=True):
        error = "unknown error" if placement.error_ns is None else f"error at most {placement.error_ns:,} ns"
        clock = f" (clock: {placement.clock}, {error})" if placement.clock else ""
        axis = f" of time axis {placement.axis + 1}" if any(one.axis for one in placements) else ""
        echo(f"{escape(path)}: starts at {placement.shift:,} {trace.time.time_unit}{axis}{clock}")
        if placement.wrap_period:
            period = (
                f"{placement.wrap_period / 1e9:.3g} s"
                if trace.time.time_unit == "ns"
                else f"{placement.wrap_period} cycles"
            )
            options = session.options_that_settle(trace, "clock")
            warn(
                f"{path}: the offset is ambiguous: the counter wraps every {period}, and the nearest wrap is assumed"
                " (rows are flagged, LS302)" + (f"; use {options} to resolve it" if options else "")
            )
    if axes := max(placement.axis for placement in placements):
        warn(f"no common clock: the captures are on {axes + 1} time axes, whose times are not comparable (LS305)")
    merged = session.merge(traces, side_by_side=args.side_by_side, inside=args.inside)
    return InMemory(trace_queries.windowed(merged, parse_window(args)))

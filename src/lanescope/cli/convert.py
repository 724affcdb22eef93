"""Write a capture as Perfetto (.pftrace), Chrome JSON (.json, .json.gz), Parquet, VCD or a family's own format.

Several captures become one timeline when their clocks allow it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.cli.arguments import add_input
from lanescope.cli.console import check_output, echo, format_row_counts, is_stdout
from lanescope.cli.context import close, read_all
from lanescope.cli.reading import opened, passed
from lanescope.errors import UsageError
from lanescope.families.family import Family
from lanescope.pipeline.sinks import DRAWS_FINDINGS, SUFFIXES, format_of, make_sink
from lanescope.view.formatting import escape

if TYPE_CHECKING:
    from lanescope.pipeline.sources import InMemory

EXAMPLES = ("lanescope convert capture.bin -o out.pftrace", "lanescope convert capture.bin -o out.parquet --force")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families, many=True)
    own = [export.name for family in families for export in family.exports]
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="where to; the suffix tells the format")
    formats = sorted({*SUFFIXES.values(), *own})
    told = "the format, when the suffix does not tell: " + ", ".join(formats)
    parser.add_argument("--format", choices=formats, metavar="FORMAT", help=told)
    parser.add_argument("--force", action="store_true", help="replace what is there")
    parser.add_argument(
        "--no-compress", dest="compress", action="store_false", help="Perfetto: larger, a little faster"
    )
    parser.add_argument(
        "--no-annotations", dest="annotations", action="store_false", help="do not draw what `check` finds"
    )


def run(args: argparse.Namespace) -> int:
    """Convert."""
    format_ = args.format or _format(args.output)
    _check_target(args, format_)
    from lanescope.pipeline.observers import Annotations
    from lanescope.pipeline.run import run as run_pipeline

    sink = make_sink(
        _target(args),
        format_,
        compress=args.compress,
        replace=args.force,
        is_gzip=args.output.endswith(".gz"),
        tell=lambda line: echo(f"lanescope: {escape(line)}"),
    )
    annotate = Annotations() if args.annotations and format_ in DRAWS_FINDINGS else None
    if len(args.inputs) == 1:
        with opened(args.inputs[0], args) as source:
            report = passed(source, args.inputs[0], sink=sink, annotate=annotate)
    else:
        report = run_pipeline(_merged(args), sink=sink, annotate=annotate)
    if format_ == "parquet":
        rows = ", ".join(f"{count} {name}" for name, count in report.rows.items() if count)
    else:
        rows = format_row_counts(report.rows) or "no events"
    assert report.written is not None
    echo(f"{escape(args.output)}: {rows}, {report.written.bytes} bytes")
    return close(report.last, args)


def _target(args: argparse.Namespace) -> Any:
    return sys.stdout.buffer if is_stdout(args.output) else Path(args.output)


def _format(output: str) -> str:
    format_ = format_of(output)
    if format_ is not None:
        return format_
    if is_stdout(output):
        raise UsageError("standard output has no suffix that tells a format", hint="say --format as well")
    raise UsageError(
        f"{output}: the suffix tells no format", hint="end it with " + ", ".join(SUFFIXES) + ", or say --format"
    )


def _check_target(args: argparse.Namespace, format_: str) -> None:
    if is_stdout(args.output):
        if format_ == "parquet":
            raise UsageError("Parquet is a folder of files", hint="say -o FOLDER.parquet")
        if sys.stdout.isatty():
            raise UsageError("a terminal is no place for a timeline", hint="say -o FILE, or pipe it")
    elif format_ == "parquet":
        from lanescope.io import parquet

        check_output(args.output, args.inputs, force=args.force, is_folder=True)
        parquet.check_room(Path(args.output), replace=args.force)
    else:
        check_output(args.output, args.inputs, force=args.force)


def _merged(args: argparse.Namespace) -> InMemory:
    """Decode several captures, tell where each of them lies, and put them on one timeline."""
    from lanescope.pipeline import session
    from lanescope.pipeline.sources import InMemory

    traces = read_all(args.inputs, args)
    for path, trace, placement in zip(args.inputs, traces, session.align(traces), strict=True):
        error = "unknown error" if placement.error_ns is None else f"an error of at most {placement.error_ns} ns"
        clock = f", by {placement.clock}, with {error}" if placement.clock else ""
        echo(f"{escape(path)}: its 0 is at {placement.shift} {trace.time.time_unit}{clock}")
        if placement.wrap_period:
            period = (
                f"{placement.wrap_period / 1e9:.3g} s"
                if trace.time.time_unit == "ns"
                else f"{placement.wrap_period} cycles"
            )
            options = session.options_that_settle(trace, "clock")
            echo(
                f"lanescope: {escape(path)}: this place is assumed, the nearest one: the counter wraps every {period},"
                " so it may be that far off, once or more (its rows are flagged, LS302)"
                + (f"; use {options} to place it for certain" if options else "")
            )
    return InMemory(session.merge(traces))

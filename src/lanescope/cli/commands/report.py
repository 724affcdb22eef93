"""Write a report: one HTML file with verdict, findings, timeline and tables; of two captures also what differs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lanescope.cli.arguments import add_input, add_window, parse_window
from lanescope.cli.console import check_output, is_stdout, print_written, warn
from lanescope.cli.context import close, read_all
from lanescope.cli.reading import collected, with_rest
from lanescope.errors import UsageError
from lanescope.families.family import Family

if TYPE_CHECKING:
    from lanescope import Trace

EXAMPLES = (
    "lanescope report capture.bin -o report.html",
    "lanescope report before1.bin after1.bin -o compared.html --max-size 5MB",
)
_UNITS = {"": 1, "b": 1, "k": 1000, "kb": 1000, "kib": 1024, "m": 1000**2, "mb": 1000**2, "mib": 1024**2, "g": 1000**3,
          "gb": 1000**3, "gib": 1024**3}  # fmt: skip
_DEFAULT = "2MB"
#: Captures that are side by side.
_CAPTURES = 2


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families, many=True)
    add_window(parser)
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="the HTML file, or - for standard output")
    parser.add_argument("--title", metavar="TEXT", default="", help="title of the page (default: name of the capture)")
    parser.add_argument(
        "--max-size",
        metavar="SIZE",
        type=_size,
        default=_size(_DEFAULT),
        help=f"size of the file at most, where slices allow it: 500KB, 5MB (default: {_DEFAULT})",
    )
    parser.add_argument("--force", action="store_true", help="overwrite existing output")


def _size(text: str) -> int:
    number = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
    unit = _UNITS.get(text[len(number) :].lower())
    try:
        size = int(float(number) * unit) if unit else 0
    except (ValueError, OverflowError):
        size = 0
    if size <= 0:
        raise argparse.ArgumentTypeError(f"must be a size, as 500KB or {_DEFAULT}")
    return size


def run(args: argparse.Namespace) -> int:
    """Write the file."""
    import sys

    if len(args.inputs) > _CAPTURES:
        raise UsageError(
            f"{len(args.inputs)} captures: a report has one, or two side by side",
            hint="compare many with 'lanescope diff', or put them on one timeline with 'lanescope convert'",
        )
    if not is_stdout(args.output):
        check_output(args.output, args.inputs, force=args.force)
    traces = _read(args)
    from lanescope.pipeline.memory import analyzed_on_disk
    from lanescope.view.report.write import write_report

    target = sys.stdout.buffer if is_stdout(args.output) else args.output
    other = traces[1] if len(traces) == _CAPTURES else None
    with analyzed_on_disk(*traces):
        made = write_report(traces[0], target, title=args.title, max_size=args.max_size, other=other)
    for sentence in made.left_out:
        warn(f"not in the file: {sentence}")
    if not is_stdout(args.output):
        from pathlib import Path

        print_written(args.output, made.contents, size=Path(args.output).stat().st_size)
    return max(close(trace, args) for trace in traces)


def _read(args: argparse.Namespace) -> list[Trace]:
    if len(args.inputs) == _CAPTURES:
        return read_all(args.inputs, args, keeps_whole=True)
    args.input = args.inputs[0]
    window = parse_window(args)
    return [with_rest(args) if window is not None and window.has_filter else collected(args)]

"""Print packets, records or rows of a capture, one per line, to debug a device or decoder."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from lanescope.cli.arguments import add_input, add_window, positive
from lanescope.cli.reading import opened
from lanescope.errors import UsageError
from lanescope.families.family import STAGES, Family
from lanescope.view.formatting import escape

if TYPE_CHECKING:
    from lanescope.pipeline.sources import CaptureSource

EXAMPLES = ("lanescope dump capture.bin --stage record --limit 20", "lanescope dump capture.bin --stage packet")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families, is_strict=False)
    add_window(parser)
    parser.add_argument("--stage", choices=STAGES, default="record", help="decode stage to print (default: record)")
    parser.add_argument("--limit", metavar="N", type=positive, help="print only the first N lines")


def run(args: argparse.Namespace) -> int:
    """Print the lines."""
    with opened(args.input, args) as source:
        for line in islice(stage_lines(source, args.stage), args.limit):
            print(escape(line))
    return 0


def stage_lines(source: CaptureSource, stage: str) -> Iterator[str]:
    """Return the lines of a stage.

    Args:
        source: the opened capture.
        stage: one of ``STAGES``: ``row`` is the same for all families, the others are the format's own.

    Raises:
        UsageError: an option or a stage that there is not; or a window for stages that have no times of the trace.
    """
    if stage == "row":
        from lanescope import Trace
        from lanescope.cli.context import state_window
        from lanescope.view.row_lines import row_lines

        trace = Trace.concat(source.batches())
        if source.has_window:
            state_window(trace)
        return row_lines(trace)
    if source.has_window:
        raise UsageError(f"a window requires rows, and --stage {stage} prints {stage}s", hint="use --stage row")
    return source.lines(stage)

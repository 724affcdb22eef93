"""Print packets, records or rows of a capture, one per line, to debug a device or decoder."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from lanescope.cli.arguments import add_input, parse_options, positive
from lanescope.families.family import STAGES, Family
from lanescope.families.options import resolve_options
from lanescope.pipeline import session
from lanescope.source import Capture
from lanescope.view.formatting import escape

EXAMPLES = ("lanescope dump capture.bin --stage record --limit 20", "lanescope dump capture.bin --stage packet")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families, is_strict=False)
    parser.add_argument("--stage", choices=STAGES, default="record", help="decode stage to print (default: record)")
    parser.add_argument("--limit", metavar="N", type=positive, help="print only the first N lines")


def run(args: argparse.Namespace) -> int:
    """Print the lines."""
    with session.capture(args.input) as capture:
        family, _ = session.detect_family(capture, args.family)
        for line in islice(stage_lines(capture, family, args.stage, parse_options(args)), args.limit):
            print(escape(line))
    return 0


def stage_lines(capture: Capture, family: Family, stage: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Return the lines of a stage.

    Args:
        capture: the opened capture.
        family: the family that reads it.
        stage: one of ``STAGES``: ``row`` is the same for all families, the others are the format's own.
        options: decode options as given.

    Raises:
        UsageError: an option or a stage that there is not.
    """
    if stage == "row":
        from lanescope.trace import Trace
        from lanescope.view.row_lines import row_lines

        return row_lines(Trace.concat(session.decode(capture, family, options)))
    settled = resolve_options(family.options, options, what=family.name)
    return family.format_of(capture).lines(stage, capture, settled)

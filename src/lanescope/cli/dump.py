"""Show packets, records or rows of a capture, one a line: for those who debug the device or the decoder."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import islice

from lanescope import devices
from lanescope.cli.common import add_input, parse_options, positive
from lanescope.devices import STAGES, Family
from lanescope.pipeline import session
from lanescope.view.formatting import escape

EXAMPLES = ("lanescope dump capture.bin --stage record --limit 20", "lanescope dump capture.bin --stage packet")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families, is_strict=False)
    parser.add_argument("--stage", choices=STAGES, default="record", help="how far decoded; default: record")
    parser.add_argument("--limit", metavar="N", type=positive, help="only the first N lines")


def run(args: argparse.Namespace) -> int:
    """Print the lines."""
    with session.capture(args.input) as capture:
        family, _ = session.detect_family(capture, args.family)
        options = devices.resolve_options(family.options, parse_options(args), what=f"family {family.name}")
        for line in islice(family.dump(capture, args.stage, options), args.limit):
            print(escape(line))
    return 0

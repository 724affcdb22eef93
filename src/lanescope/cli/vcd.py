"""Compare a capture with the waveforms of a simulator (VCD, FST): counts, and the first difference of each signal.

Lanes of the capture are signals, as `lanescope convert -o FILE.vcd` writes them. Exit status 1: something differs.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from lanescope.cli.common import add_input, close, non_negative_int, print_json, read
from lanescope.devices import Family
from lanescope.devices.base import time_in
from lanescope.errors import UsageError

EXAMPLES = (
    "lanescope vcd capture.bin simulated.vcd --period 1000 --landmark core_1_2.slot_0",
    "lanescope vcd capture.bin simulated.vcd --order",
)


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    parser.add_argument("wave", metavar="WAVE", help="waveforms of a simulator")
    parser.add_argument("--map", metavar="FILE", help="JSON object: name of our signal -> name of theirs")
    parser.add_argument(
        "--landmark", metavar="NAME[:N]", help="count time from the N-th rise of this signal of ours, and of theirs"
    )
    parser.add_argument(
        "--period", metavar="PS", type=_period, help="picoseconds of a cycle, if the capture counts those"
    )
    parser.add_argument(
        "--tolerance", metavar="N", type=non_negative_int, default=0, help="units that times may differ by"
    )
    parser.add_argument("--order", action="store_true", help="compare values and their order, not times")
    parser.add_argument("--json", action="store_true", help="one JSON document, schema lanescope.vcd/1")


def run(args: argparse.Namespace) -> int:
    """Compare."""
    from lanescope.io import vcd
    from lanescope.view.table_output import show

    found = vcd.compare(
        read_trace := read(args.input, args),
        vcd.Waveform(Path(args.wave)),
        names=_names(args.map),
        landmark=_landmark(args.landmark),
        period=args.period,
        tolerance=args.tolerance,
        is_order_only=args.order,
    )
    if args.json:
        print_json("lanescope.vcd/1", signals=[row._asdict() for row in found])
    else:
        show(vcd.Comparison._fields, found, title="signals")
    differs = any(row.difference is not None for row in found)
    return close(read_trace, args, 1 if differs else 0)


def _period(text: str) -> Fraction:
    try:
        value = time_in("ps", text)
    except (ValueError, ZeroDivisionError):
        value = Fraction(0)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in picoseconds, such as 1000 or 1ns")
    return value


def _landmark(text: str | None) -> tuple[str, int] | None:
    if text is None:
        return None
    name, colon, which = text.rpartition(":")
    if not colon:
        return text, 1
    if not (which.isascii() and which.isdecimal() and len(which) < 10 and int(which)):
        raise UsageError(f"--landmark {text}: {which!r} is not a count from 1", hint="say NAME or NAME:N")
    return name, int(which)


def _names(path: str | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no JSON: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise UsageError(f"{path} is no object of names", hint='such as {"core_1_2.slot_0": "top.core.event"}')
    return found

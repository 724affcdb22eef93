"""Say what a capture is, what is in it, and what is lost."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from lanescope.cli.common import add_input, close, print_json, read, rows_text, say, span_text
from lanescope.devices import Family
from lanescope.trace import Trace
from lanescope.view.tables import show
from lanescope.view.text import escape, time_text

EXAMPLES = ("lanescope info capture.bin", "lanescope info --json capture.bin")

_ACCOUNTING = ("layer", "scope", "unit", "total", "decoded", "filler", "lost")
_STATS = ("name", "severity", "count", "first_offset", "first_ts")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    parser.add_argument("--json", action="store_true", help="one JSON document, schema lanescope.info/1")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    trace = read(args.input, args)
    if args.json:
        print_json("lanescope.info/1", **_content(trace))
    else:
        _print(trace)
    return close(trace, args)


def _content(trace: Trace) -> dict[str, Any]:
    inputs = list(trace.inputs.rows())
    span = span_text(trace)
    return {
        "family": inputs[0]["family"] if inputs else "",
        "format": inputs[0]["format"] if inputs else "",
        "inputs": inputs,
        "time": {
            "unit": trace.time.time_unit,
            "epoch_kind": trace.time.epoch_kind,
            "epoch_ns": trace.time.epoch_ns,
            "begin": span[0] if span else None,
            "end": span[1] if span else None,
        },
        "rows": {name: len(table) for name, table in trace.tables().items()},
        "clocks": list(trace.clocks.rows()),
        "stats": list(trace.stats.rows()),
        "accounting": list(trace.accounting.rows()),
    }


def _print(trace: Trace) -> None:
    content = _content(trace)
    unit = trace.time.time_unit
    for row in content["inputs"]:
        print(f"{escape(row['path'])}: {row['family']}, {row['format']}, {row['size']} bytes ({row['part']})")
    begin, end = content["time"]["begin"], content["time"]["end"]
    if begin is not None:
        print(f"{time_text(end - begin, unit)} from {begin} to {end} {unit}, epoch: {trace.time.epoch_kind}")
    print(rows_text(trace) or "no events")
    print()
    show(_ACCOUNTING, ([row[name] for name in _ACCOUNTING] for row in content["accounting"]), title="accounting")
    if content["stats"]:
        print()
        show(_STATS, ([row[name] for name in _STATS] for row in content["stats"]), title="noted while decoding")
    if not content["rows"]["slices"] and not content["rows"]["instants"]:
        say("lanescope: nothing was decoded; `lanescope dump --stage packet` shows what the bytes look like")

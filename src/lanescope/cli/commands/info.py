"""Say what a capture is and why we think so, what is in it, and what became of every byte.

Each row of the accounting adds up: total = decoded + padding + lost. Of a folder with several captures, also in folders
below it, it lists them.
"""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lanescope.cli.arguments import add_input
from lanescope.cli.console import echo, format_row_counts, print_json, warn
from lanescope.cli.context import close
from lanescope.cli.reading import opened, passed
from lanescope.errors import InputError
from lanescope.families.family import Family
from lanescope.pipeline.diagnostics import empty_inputs, stat_meanings
from lanescope.pipeline.observers import Counted, Counts
from lanescope.view.formatting import escape, format_count, format_duration
from lanescope.view.table_output import show

if TYPE_CHECKING:
    from lanescope import Trace
    from lanescope.analysis.plausibility.attested_span import Apart
    from lanescope.pipeline.capture_folders import CaptureFolder
    from lanescope.pipeline.sources import CaptureSource

EXAMPLES = ("lanescope info capture.bin", "lanescope info --json capture.bin")

#: Columns of inputs that are printed: hashing the files takes as long as reading them.
_INPUTS = ("path", "family", "format", "size", "role")
_ACCOUNTING = ("input_id", "layer", "scope", "unit", "total", "decoded", "padding", "lost", "is_balanced")
_STATS = ("name", "severity", "count", "input_id", "first_offset", "first_ts", "meaning")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    parser.add_argument("--json", action="store_true", help="one JSON document, schema lanescope.info/1")


def run(args: argparse.Namespace) -> int:
    """Print it."""
    from lanescope.analysis.plausibility.attested_span import AttestedSpan

    if os.path.isdir(args.input):  # noqa: PTH112 (asked for every input)
        from lanescope.pipeline.capture_folders import captures_below

        folder = captures_below(args.input)
        if folder is not None:
            _list(folder, args)
            return 0
    counts, span = Counts(), AttestedSpan()
    with opened(args.input, args, hashes=args.json) as source:
        last = passed(source, args.input, refuses=False, observers=[counts, span]).last
        content = _content(counts.result(), span.result(), last, source, () if args.json else _INPUTS)
    if args.json:
        print_json("lanescope.info/1", **content)
    else:
        _print(content)
        if not content["rows"]["slices"] and not content["rows"]["instants"] and not any(empty_inputs(last)):
            warn("no events decoded; inspect the bytes with 'lanescope dump --stage packet'")
    return close(last, args)


def _list(folder: CaptureFolder, args: argparse.Namespace) -> None:
    """Print the captures of a folder."""
    captures = [each for each in folder.captures if args.family in (None, each.family)]
    if not captures:
        raise InputError(f"{args.input!r} contains no capture of family {args.family}", hint="run without --family")
    if args.json:
        listed = [each._asdict() for each in captures]
        print_json("lanescope.info.folder/1", folder=args.input, captures=listed, is_complete=folder.is_complete)
        return
    show(("path", "family", "format", "size"), captures, title="captures")
    command = shlex.join(["lanescope", "info", captures[0].path])
    echo(f"{format_count(len(captures), 'capture')} in {escape(args.input)}; open one with '{escape(command)}'")
    if not folder.is_complete:
        warn("not all folders were searched: too many files, or a folder that cannot be read; pass a folder below")


def _content(
    counted: Counted, apart: Apart | None, last: Trace, source: CaptureSource, columns: Sequence[str]
) -> dict[str, Any]:
    """Return the report, with these columns of the inputs, or all."""
    inputs, match = list(last.inputs.rows(*columns)), source.match
    meanings = stat_meanings(source.family)
    kinds = last.tracks.values("kind").tolist()
    return {
        "family": inputs[0]["family"] if inputs else "",
        "format": inputs[0]["format"] if inputs else match.format,
        "detection": {"score": match.score, "reason": match.reason},
        "inputs": inputs,
        "time": {
            "unit": last.time.time_unit,
            "epoch_kind": last.time.epoch_kind,
            "epoch_ns": last.time.epoch_ns,
            "start": counted.begin,
            "end": counted.end,
            "attested": apart and {"start": apart.start, "end": apart.end, "rows": apart.rows},
        },
        "tracks": {kind: kinds.count(kind) for kind in ("group", "lane", "counter")},
        "rows": counted.rows,
        "clocks": list(last.clocks.rows()),
        "stats": [{**row, "meaning": meanings.get(row["name"], "")} for row in last.stats.rows()],
        "accounting": [
            {**row, "is_balanced": row["total"] == row["decoded"] + row["padding"] + row["lost"]}
            for row in last.accounting.rows()
        ],
    }


def _print(content: dict[str, Any]) -> None:
    time, tracks = content["time"], content["tracks"]
    unit, begin, end = time["unit"], time["start"], time["end"]
    for row in content["inputs"]:
        print(f"{escape(row['path'])}: {row['family']}, {escape(row['format'])}, {row['size']} bytes ({row['role']})")
    print(f"detected: {escape(content['detection']['reason'])} (score {content['detection']['score']})")
    if begin is not None:
        length = format_duration(end - begin, unit)
        print(f"{length} from {begin} to {end} {unit} since {time['epoch_ns']} ns, epoch: {time['epoch_kind']}")
    if attested := time["attested"]:
        length = format_duration(attested["end"] - attested["start"], unit)
        print(
            f"{format_count(attested['rows'], 'row')} with implausible timestamps (LS501), without them {length} from "
            f"{attested['start']} to {attested['end']} {unit}; run 'lanescope check'"
        )
    counted = [format_count(count, kind) for kind, count in tracks.items() if count]
    print(f"{', '.join(counted) or 'no tracks'}; {format_row_counts(content['rows']) or 'no events'}")
    print()
    show(_ACCOUNTING, ([row[name] for name in _ACCOUNTING] for row in content["accounting"]), title="accounting")
    if content["stats"]:
        print()
        show(_STATS, ([row[name] for name in _STATS] for row in content["stats"]), title="decode diagnostics")

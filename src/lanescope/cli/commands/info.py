"""Say what a capture is and why we think so, what is in it, and what became of every byte.

Each row of the accounting adds up: total = decoded + padding + lost. It is that of the whole capture, also with a
window. Of a folder with several captures, also in folders below it, it lists them.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lanescope.cli.arguments import add_dataset, add_input, add_window, parse_window
from lanescope.cli.console import echo, format_row_counts, print_json, warn
from lanescope.cli.context import close, listed, window_of
from lanescope.cli.paging import add_paging, part
from lanescope.cli.reading import is_dataset, opened, passed
from lanescope.cli.tables import add_formats, echo_left_out, look_of, print_table
from lanescope.errors import InputError, UsageError
from lanescope.families.family import Family
from lanescope.pipeline.diagnostics import empty_inputs, meanings_of
from lanescope.pipeline.observers import Counted, Counts
from lanescope.view.formatting import escape, format_bytes, format_count, format_duration
from lanescope.view.tables.columns import Col, column

if TYPE_CHECKING:
    from lanescope import Trace
    from lanescope.analysis.plausibility.attested_span import Apart
    from lanescope.pipeline.capture_folders import CaptureFolder
    from lanescope.pipeline.sources import CaptureSource

EXAMPLES = ("lanescope info capture.bin", "lanescope info --json capture.bin")

#: Columns of inputs that are printed: hashing the files takes as long as reading them.
_INPUTS = ("path", "family", "format", "size", "role")
#: Columns of the accounting for programs, and what their values are.
_ACCOUNTING = {
    "input_id": "id", "layer": "id", "scope": "plain", "unit": "plain", "total": "count", "decoded": "count",
    "padding": "count", "lost": "count", "is_balanced": "plain",
}  # fmt: skip


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families)
    add_dataset(parser)
    add_window(parser)
    add_paging(parser)
    add_formats(parser, "lanescope.info/1", is_timed=False)


def run(args: argparse.Namespace) -> int:
    """Print it."""
    if is_dataset(args.input):
        from lanescope.cli import dataset_answers

        return dataset_answers.info(args)
    from lanescope.analysis.plausibility.attested_span import AttestedSpan

    if os.path.isdir(args.input):  # noqa: PTH112 (asked for every input)
        from lanescope.pipeline.capture_folders import captures_below

        folder = captures_below(args.input)
        if folder is not None:
            if parse_window(args) is not None:
                raise UsageError("a list of captures takes no window", hint="use it with one of them")
            _list(folder, args)
            return 0
    counts, span = Counts(), AttestedSpan()
    with opened(args.input, args, hashes=args.json) as source:
        last = passed(source, args.input, refuses=False, observers=[counts, span]).last
        content = _content(counts.result(), span.result(), last, source, () if args.json else _INPUTS)
        is_made = source.family is None
        given = _given(source, content["format"], getattr(args, "option_layout", None))
    content["stats"], page = part(args, "info", content["stats"], of="stats")
    if args.json:
        print_json("lanescope.info/1", **window_of(last), **page.described(), **content)
    else:
        _print(content, last, args, given, is_made=is_made)
        page.state()
        if not content["rows"]["slices"] and not content["rows"]["instants"] and not any(empty_inputs(last)):
            warn("no events decoded; inspect the bytes with 'lanescope dump --stage packet'")
    return close(last, args)


def _list(folder: CaptureFolder, args: argparse.Namespace) -> None:
    """Print the captures of a folder."""
    captures = [each for each in folder.captures if args.family in (None, each.family)]
    if not captures:
        raise InputError(f"{args.input!r} contains no capture of family {args.family}", hint="run without --family")
    found, page = part(args, "info", captures, of="captures")
    if args.json:
        listed = [each._asdict() for each in found]
        content = {"folder": args.input, **page.described(), "captures": listed, "is_complete": folder.is_complete}
        print_json("lanescope.info.folder/1", **content)
        return
    columns = [column("path", "text"), column("family", "text"), column("format", "text"), column("size", "bytes")]
    print_table(args, columns, found)
    page.state()
    import shlex

    command = shlex.join(["lanescope", "info", captures[0].path])
    echo(f"{format_count(len(captures), 'capture')} in {escape(args.input)}; open one with '{escape(command)}'")
    if not folder.is_complete:
        warn("not all folders were searched: too many files, or a folder that cannot be read; pass a folder below")


def _content(
    counted: Counted, apart: Apart | None, last: Trace, source: CaptureSource, columns: Sequence[str]
) -> dict[str, Any]:
    """Return the report, with these columns of the inputs, or all."""
    inputs, match = list(last.inputs.rows(*columns)), source.match
    meanings = meanings_of(last)
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


def _print(content: dict[str, Any], last: Trace, args: argparse.Namespace, given: str, *, is_made: bool) -> None:
    if args.csv:
        accounting = [[row[name] for name in _ACCOUNTING] for row in content["accounting"]]
        print_table(args, [column(*each) for each in _ACCOUNTING.items()], accounting)
        if content["stats"]:
            echo_left_out(args, "decode diagnostics")
        return
    from lanescope.view.tables.blocks import block, titled

    room = look_of(args).room(sys.stdout)
    main = content["inputs"][0]["path"] if content["inputs"] else args.input
    # A folder that lanescope wrote says what it was made of.
    print(titled(f"{args.input}, made of {main}" if is_made else main, room))
    for line in block(_overview(content, last, given), room):
        print(line)
    print()
    names = _names(content["inputs"])
    print_table(args, *_accounting(content["accounting"], names))
    if content["stats"]:
        print()
        print(titled("Decode diagnostics", room))
        for line in block([_diagnostic(row, names, content["time"]["unit"]) for row in content["stats"]], room):
            print(line)


def _overview(content: dict[str, Any], last: Trace, given: str) -> list[tuple[str, str]]:
    """Return what a capture is, as keys and values."""
    from lanescope.pipeline.diagnostics import described_contradictions, described_losses

    time, tracks, found = content["time"], content["tracks"], content["detection"]
    unit, begin, end = time["unit"], time["start"], time["end"]
    family = f" ({content['family']})" if content["family"] else ""
    why = given or f"score {found['score']}/100: {found['reason']}"
    rows = [("format", f"{content['format']}{family}, {why}")]
    files = [row for row in content["inputs"] if row["role"] == "main"]
    several = f" in {len(files):,} files" if len(files) > 1 else ""
    rows.append(("size", format_bytes(sum(row["size"] for row in files)) + several))
    others = [row for row in content["inputs"][1:] if row["role"] != "main"]
    rows += [("sidecar" if not at else "", f"{row['path']} ({row['role']})") for at, row in enumerate(others)]
    if begin is not None:
        rows.append(("duration", format_duration(end - begin, unit)))
        rows.append(("time", f"from {begin:,} to {end:,} {unit}, {_zero(time['epoch_kind'], time['epoch_ns'])}"))
    if attested := time["attested"]:
        without = f"{format_duration(attested['end'] - attested['start'], unit)} from {attested['start']:,}"
        rows.append((
            "suspect",
            f"{format_count(attested['rows'], 'row')} with implausible timestamps (LS501), without them {without} to "
            f"{attested['end']:,} {unit}; run 'lanescope check'",
        ))  # fmt: skip
    counted = [format_count(tracks[kind], kind) for kind in ("lane", "counter") if tracks[kind]]
    groups = f" in {format_count(tracks['group'], 'group')}" if tracks["group"] else ""
    there = f"{' and '.join(counted)}{groups}" if counted else groups.removeprefix(" in ") or "no tracks"
    where = " in the window" if window_of(last) else ""
    rows.append(("contents", f"{there}, {format_row_counts(content['rows']) or 'no events'}{where}"))
    rows.append(("data loss", listed(described_losses(last)) or "none"))
    if wrong := described_contradictions(last):
        rows.append(("inconsistent", listed(wrong)))
    return rows


def _given(source: CaptureSource, name: str, layout: str | None) -> str:
    """Say that the user gave the format, where recognition knows nothing of it or finds another; empty otherwise.

    Args:
        source: the capture.
        name: the format that was decoded.
        layout: the layout that was given.
    """
    match = source.match
    if not match.is_recognized:
        return f"as given (not recognized: {match.reason})"
    return "" if layout is None or name == match.format else f"as given (recognized: {match.format}, {match.reason})"


def _zero(kind: str, ns: int) -> str:
    """Return in words what times are counted from."""
    if kind == "first_event":
        return "counted from the first event" + (f", {ns:,} ns on its clock" if ns else "")
    clock = {"host_monotonic": "the start of the host's clock"}
    since = clock.get(kind, "the zero of the device's clock")
    if kind == "unix":
        seconds, ns = divmod(ns, 10**9)
        since = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"counted from {since}" + (f" + {ns:,} ns" if ns else "")


def _names(inputs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of inputs, without the folder that they share with the first."""
    folder = os.path.dirname(inputs[0]["path"]) if inputs else ""  # noqa: PTH120
    return [row["path"].removeprefix(f"{folder}/" if folder else "") for row in inputs]


def _accounting(rows: Sequence[dict[str, Any]], names: Sequence[str]) -> tuple[list[Col], list[list[Any]]]:
    """Return columns and rows of what became of every byte: input by input, each named once."""
    columns = [column("path", "text", header="Byte accounting"), column("unit", "plain")]
    # What the device dropped is in no file, and rows that do not add up are our mistake: both are rare.
    rare = [("scope", "input"), ("is_balanced", True)]
    shown = [name for name, usual in rare if any(row[name] != usual for row in rows)]
    counts = ("total", "decoded", "padding", "lost")
    columns += [*(Col(name, kind="count", priority=1) for name in counts), *(column(name, "plain") for name in shown)]
    told, last = [], None
    for row in sorted(rows, key=lambda row: (row["input_id"], row["layer"])):
        name = "" if row["input_id"] == last else names[row["input_id"]]
        last = row["input_id"]
        told.append([name, f"{row['unit']}s", *(row[count] for count in counts), *(row[each] for each in shown)])
    return columns, told


def _diagnostic(row: dict[str, Any], names: Sequence[str], unit: str) -> tuple[str, ...]:
    """Return one stat: how bad it is, its name, how often, and a sentence with where it was first seen."""
    places = []
    if row["first_offset"] is not None:
        of = f" of {names[row['input_id']]}" if len(names) > 1 and row["input_id"] is not None else ""
        places.append(f"{row['first_offset']:#x}{of}")
    if row["first_ts"] is not None:
        places.append(f"{row['first_ts']:,} {unit}")
    first = f", first at {', '.join(places)}" if places else ""
    return row["severity"].replace("_", " "), row["name"], f"{row['count']:,}", f"{row['meaning']}{first}"

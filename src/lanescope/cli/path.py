"""Show the path that AMD AIE cores took: from execution-mode trace and a listing of the program.

The listing is the text of llvm-objdump -d (llvm-aie), a Chess .lst, or JSON. No time is recorded in this mode: the
result is what was executed in which order and how often. Where frames and listing leave more than one path, the answer
says so. Without further flags: how far the path is known, functions, loops, and what the answer rests on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.cli.common import (
    add_input,
    check_output,
    close,
    echo,
    is_stdout,
    parse_options,
    positive,
    print_json,
    read,
)
from lanescope.devices import Family
from lanescope.errors import UsageError

if TYPE_CHECKING:
    from lanescope.devices.aie.path.path_tables import Paths
    from lanescope.trace import Table

EXAMPLES = (
    "lanescope path capture.bin --listing main.lst",
    "lanescope path capture.bin --listing main.lst --annotate",
)


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, [family for family in families if family.name == "aie"])
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--path", action="store_true", help="the path itself, a row for each straight stretch")
    what.add_argument("--annotate", action="store_true", help="the listing, each bundle with its visits")
    what.add_argument("--calls", action="store_true", help="the call tree")
    what.add_argument("--lcov", metavar="FILE", help="write coverage as an lcov tracefile")
    what.add_argument(
        "--timeline", metavar="FILE", help="write calls in order of execution (.pftrace, .json); no time is claimed"
    )
    what.add_argument("--json", action="store_true", help="one JSON document, schema lanescope.path/1")
    parser.add_argument("--core", metavar="COL,ROW", type=_place, help="only the core there; default: all")
    parser.add_argument(
        "--cap", metavar="N", type=positive, default=4000, help="guesses followed at a time; default: 4000"
    )
    parser.add_argument("--limit", metavar="N", type=positive, help="with --path: only the first N rows")
    parser.add_argument("--force", action="store_true", help="replace what is there")


def run(args: argparse.Namespace) -> int:
    """Walk, and show what was asked for."""
    if args.lcov or args.timeline:
        _check_target(args)
    from lanescope.devices.aie.path import options, schema
    from lanescope.devices.aie.path.path_tables import Paths

    trace = read(args.input, args)
    found = options.of_trace(trace)
    if found is None:
        raise UsageError("the path needs a listing of the program", hint="say --listing FILE")
    paths = Paths(trace, found.program, found.errata, cap=args.cap, core=args.core)
    if not paths.recordings:
        raise UsageError(
            f"{args.input} has no recording in execution mode{' of that core' if args.core else ''}",
            hint="only cores have it; `lanescope info` says what there is",
        )
    if args.annotate or args.calls:
        from lanescope.devices.aie.path import reports

        _print(reports.annotated(paths) if args.annotate else reports.call_lines(paths))
    elif args.path:
        _show(paths.table(schema.PATH), "the path", limit=args.limit, is_hex=True)
    elif args.json:
        _json(paths)
    elif args.lcov or args.timeline:
        _write(paths, args, Path(found.listing))
    else:
        _overview(paths)
    _print_uncertainty(paths)
    return close(trace, args)


def _place(text: str) -> tuple[int, int]:
    parts = text.split(",")
    if len(parts) != 2 or not all(part.strip().isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is not COL,ROW")
    return int(parts[0]), int(parts[1])


def _print(lines: Iterable[str]) -> None:
    from lanescope.view.formatting import escape

    for line in lines:
        print("\t".join(escape(part) for part in line.split("\t")))


def _show(table: Table, title: str, *, limit: int | None = None, is_hex: bool = False) -> None:
    from itertools import islice

    from lanescope.view.table_output import show

    addresses = {c.name for c in table.spec.columns if c.unit == "bytes" and c.name not in ("size", "offset")}
    names = [name for name in table.spec.names if name != "track_id"]
    rows = (
        [f"{row[name]:#x}" if name in addresses and row[name] is not None else row[name] for name in names]
        for row in islice(table.rows(), limit)
    )
    show(names, rows, title=title)


def _overview(paths: Paths) -> None:
    from lanescope.devices.aie.path import schema

    for spec, title in (
        (schema.WALKS, "how far the path is known, in frames"),
        (schema.FUNCTIONS, "functions"),
        (schema.LOOPS, "zero-overhead loops"),
        (schema.ASSUMPTIONS, "what this rests on"),
    ):
        table = paths.table(spec)
        if len(table):
            _show(table, title)
            print()


def _json(paths: Paths) -> None:
    from lanescope.devices.aie.path import schema

    tables = {
        spec.name.removeprefix("aie_path_").removeprefix("aie_"): [_clean(row) for row in paths.table(spec).rows()]
        for spec in schema.TABLES
        if spec.name.startswith("aie_path")
    }
    print_json("lanescope.path/1", listing=paths.program.source, **tables)


def _clean(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value.item() if hasattr(value, "item") else value for name, value in row.items()}


def _check_target(args: argparse.Namespace) -> None:
    """Refuse, before the walk, a file that cannot be or may not be written."""
    target = args.lcov or args.timeline
    if args.timeline and Path(target).suffix not in (".pftrace", ".json"):
        raise UsageError(f"{target}: the suffix tells no format of a timeline", hint="end it with .pftrace or .json")
    if not is_stdout(target):
        named = parse_options(args).get("listing")
        check_output(target, [args.input, *([named] if named else [])], force=args.force)


def _write(paths: Paths, args: argparse.Namespace, listing: Path) -> None:
    from lanescope.devices.aie.path import reports
    from lanescope.io.atomic_file import atomic_writer
    from lanescope.view.formatting import escape

    target = args.lcov or args.timeline
    if args.lcov:
        with atomic_writer(sys.stdout.buffer if is_stdout(target) else target) as file:
            size = sum(file.write(f"{line}\n".encode()) for line in reports.lcov(paths, listing))
        echo(f"{escape(target)}: {size} bytes")
        return
    trace = reports.timeline(paths)
    if target.endswith(".pftrace"):
        from lanescope.io import perfetto as writer
    else:
        from lanescope.io import chrome as writer  # type: ignore[no-redef]
    writer.write(trace, target)
    echo(f"{escape(target)}: {len(trace.slices)} calls in order; no time is claimed")


def _print_uncertainty(paths: Paths) -> None:
    from lanescope.devices.aie.path.walk.walker import REASONS

    reasons: dict[str, int] = {}
    places: dict[str, str] = {}
    for recording, walk in paths.walks:
        broken = [piece.reason for piece in walk.pieces if piece.reason]
        # What is unresolved behind a piece has broken off with it.
        for reason in broken + [lost.reason for lost in walk.unresolved if lost.reason not in broken]:
            reasons[reason] = reasons.get(reason, 0) + 1
        for lost in walk.unresolved:
            if lost.reason not in places:
                offset = int(paths.offsets(recording, [lost.first])[0])
                places[lost.reason] = f", first at byte {offset}" if offset >= 0 else ""
    for reason, count in reasons.items():
        times = f"{count} time{'s' if count > 1 else ''}{places.get(reason, '')}"
        echo(f"lanescope: the path breaks off {times}: {REASONS[reason]}")

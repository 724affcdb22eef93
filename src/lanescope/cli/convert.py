"""Write a capture as Perfetto (.pftrace), Chrome JSON (.json, .json.gz), Parquet, VCD or a family's own format.

Several captures become one timeline when their clocks allow it.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.cli.arguments import add_input
from lanescope.cli.console import check_output, echo, format_row_counts, is_stdout, row_counts
from lanescope.cli.context import batches, close, is_in_order, read, read_all
from lanescope.errors import UsageError
from lanescope.families.family import Family
from lanescope.view.formatting import escape

if TYPE_CHECKING:
    from lanescope.trace import Table, Trace

EXAMPLES = ("lanescope convert capture.bin -o out.pftrace", "lanescope convert capture.bin -o out.parquet --force")

#: Suffix -> format.
SUFFIXES = {
    ".pftrace": "perfetto",
    ".perfetto-trace": "perfetto",
    ".json": "chrome",
    ".json.gz": "chrome",
    ".parquet": "parquet",
    ".vcd": "vcd",
}


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
    parser.add_argument("--no-findings", dest="findings", action="store_false", help="do not draw what `check` finds")


def run(args: argparse.Namespace) -> int:
    """Convert."""
    format_ = args.format or _format(args.output)
    _check_target(args, format_)
    if format_ == "parquet":
        return _parquet(args)
    if format_ == "perfetto" and len(args.inputs) == 1:
        return _perfetto(args)
    trace = _whole(args)
    write = _writer(format_, trace, args)
    written = write(_target(args))
    echo(f"{escape(args.output)}: {format_row_counts(row_counts(trace)) or 'no events'}, {written} bytes")
    return close(trace, args)


def _target(args: argparse.Namespace) -> Any:
    return sys.stdout.buffer if is_stdout(args.output) else Path(args.output)


def _format(output: str) -> str:
    for suffix, format_ in SUFFIXES.items():
        if output.endswith(suffix):
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


def _whole(args: argparse.Namespace) -> Trace:
    if len(args.inputs) == 1:
        return read(args.inputs[0], args)
    from lanescope.pipeline import session

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
    return session.merge(traces)


def _writer(format_: str, trace: Trace, args: argparse.Namespace) -> Callable[[Any], int]:
    from lanescope.analysis import check

    if format_ in ("perfetto", "chrome"):
        findings = check.to_table(check.run(trace)) if args.findings else None
        if format_ == "perfetto":
            from lanescope.io import perfetto

            return lambda out: perfetto.write(trace, out, compress=args.compress, findings=findings).bytes
        from lanescope.io import chrome

        packed = args.output.endswith(".gz")
        return lambda out: chrome.write(trace, out, compress=packed, findings=findings).bytes
    if format_ == "vcd":
        from lanescope.io import vcd

        return lambda out: vcd.write(trace, out)
    from lanescope.families import registry

    families = (*registry.builtin(), *registry.plugin_families())
    export = next(export for family in families for export in family.exports if export.name == format_)
    for what in export.left_out(trace):
        echo(f"lanescope: {escape(what)}")

    def write(out: Any) -> int:
        from lanescope.io.atomic_file import atomic_writer

        count = 0
        with atomic_writer(out) as file:
            for block in export.blocks(trace):
                count += file.write(block)
        return count

    return write


def _perfetto(args: argparse.Namespace) -> int:
    """Write one capture: batch by batch, while the next one is decoded, where its family allows it."""
    from lanescope.analysis import check
    from lanescope.io import perfetto
    from lanescope.trace.trace import SHARED

    path = args.inputs[0]
    decoded = batches(path, args)
    first = next(decoded)
    in_parts = is_in_order(first)
    # What is not written batch by batch is in memory anyway, and standard input cannot be read again.
    keeps_all = args.findings and (not in_parts or path == "-")
    rows: Counter[str] = Counter()
    watch = check.StreamingChecker()
    kept: list[Trace] = []
    count = 0

    def passing() -> Iterator[Trace]:
        nonlocal count
        for count, batch in enumerate(chain([first], decoded), 1):  # noqa: B007
            for name, length in row_counts(batch).items():
                rows[name] = length if name in SHARED else rows[name] + length
            if args.findings:
                watch.add(batch)
            kept[:] = [*kept, batch] if keeps_all else [batch]
            yield batch

    def findings() -> Table:
        return check.to_table(watch.findings(lambda: kept if len(kept) == count else batches(path, args)))

    report = perfetto.write(
        passing(),
        _target(args),
        compress=args.compress,
        findings=findings if args.findings else None,
        in_parts=in_parts,
    )
    echo(f"{escape(args.output)}: {format_row_counts(rows) or 'no events'}, {report.bytes} bytes")
    return close(kept[-1], args)


def _parquet(args: argparse.Namespace) -> int:
    from lanescope.io import parquet

    last: list[Trace] = []

    def passing() -> Any:
        # One capture goes through piece by piece, in bounded memory.
        source = batches(args.inputs[0], args) if len(args.inputs) == 1 else iter([_whole(args)])
        for batch in source:
            last[:] = [batch]
            yield batch

    report = parquet.write(passing(), args.output, replace=args.force)
    rows = ", ".join(f"{count} {name}" for name, count in report.rows.items() if count)
    echo(f"{escape(args.output)}: {rows}, {report.bytes} bytes")
    return close(last[0], args)

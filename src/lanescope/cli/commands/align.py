"""Show the offset between each two clocks of a timeline, as an interval that contains it, and what it rests on.

Causes come before their effects, so launches limit the offset of two clocks from one side, and calls that waited for
work from the other. With -o the timeline is written with its clocks placed and their errors in the names of groups.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from lanescope.cli.arguments import add_input, add_window
from lanescope.cli.console import check_output, format_row_counts, print_json, print_written, warn
from lanescope.cli.context import close, read_all, window_of
from lanescope.cli.tables import add_formats, print_table, print_wrapped
from lanescope.families.family import Family
from lanescope.view.tables.columns import Col, declared

EXAMPLES = ("lanescope align capture.bin", "lanescope align --json capture.bin")

_METHODS = ("auto", "segments", "rate")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families, many=True)
    add_window(parser)
    parser.add_argument(
        "--at", metavar="TIME", type=int, help="moment of the offsets (default: where they are closest)"
    )
    parser.add_argument(
        "--rate",
        metavar="PPM",
        type=float,
        default=100.0,
        help="largest difference of two rates (default: 100)",
    )
    parser.add_argument(
        "--method", choices=_METHODS, default="auto", help="clocks run straight if all pairs allow it (default), or ..."
    )
    parser.add_argument("--reading-error", metavar="NS", type=int, help="error to assume of readings that state none")
    add_formats(parser, "lanescope.align/1", is_timed=False)
    parser.add_argument("-o", "--output", metavar="OUT", help="output file: the timeline with its clocks placed")
    parser.add_argument("--force", action="store_true", help="overwrite existing output")


def run(args: argparse.Namespace) -> int:
    """Print the offsets; the status is 1 if pairs contradict each other."""
    from lanescope.pipeline import session, trace_queries

    format_ = _checked_output(args)
    traces = read_all(args.inputs, args)
    trace = session.merge(traces, side_by_side=True) if len(traces) > 1 else traces[0]
    alignment = trace_queries.align(
        trace, rate_ppm=args.rate, at=args.at, method=args.method, reading_error=args.reading_error
    )
    table, unit = alignment.table(), trace.time.time_unit
    rows = [{name: value for name, value in row.items() if name != "id"} for row in table.rows()]
    if args.json:
        print_json("lanescope.align/1", unit=unit, rate_ppm=args.rate, **window_of(trace), rows=rows)
    elif rows:
        # Offsets are exact: their intervals are often narrower than three digits of them.
        columns = [declared(spec) for spec in table.spec.columns if spec.name != "id"]
        timed = ("duration", "cycles")
        columns = [Col(each.key, kind="count", unit=each.unit) if each.kind in timed else each for each in columns]
        # Sentences have lines of their own: a column of a narrow table would cut them.
        columns = [each for each in columns if args.csv or each.key != "detail"]
        print_table(args, columns, [[row[each.key] for each in columns] for row in rows])
        told = [row for row in rows if row["detail"] and not args.csv]
        if told:
            print()
        for row in told:
            print_wrapped(args, f"{row['first']} to {row['second']}: {row['detail']}")
    if not rows:
        warn("all lanes count on one clock: there are no offsets")
    if format_:
        report = trace_queries.save(alignment.place(), args.output, format_, replace=args.force)
        assert report.written is not None
        print_written(args.output, format_row_counts(report.rows) or "no events", size=report.written.bytes)
    return close(trace, args, int("contradiction" in table.values("status").tolist()))


def _checked_output(args: argparse.Namespace) -> str:
    """Return the format of the output; empty without one."""
    if args.output is None:
        return ""
    from lanescope.pipeline.session import format_named_by

    format_ = format_named_by(Path(args.output))
    check_output(args.output, args.inputs, force=args.force, is_folder=format_ == "parquet")
    return format_

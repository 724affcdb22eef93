"""Show what each nanosecond of a run waited for: the critical path, how sure it is, and what a change would gain."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.cli.arguments import add_input, add_window
from lanescope.cli.console import check_output, echo, is_stdout, print_json, print_written, warn
from lanescope.cli.context import about, close, window_of
from lanescope.cli.paging import add_paging, is_paged, part, table_part
from lanescope.cli.reading import collected
from lanescope.cli.tables import add_formats, echo_left_out, print_table, values_of
from lanescope.errors import UsageError
from lanescope.families.family import Family
from lanescope.view.formatting import escape, format_duration

if TYPE_CHECKING:
    from lanescope import Table, Trace
    from lanescope.analysis.critical_path.answer import CriticalPath, WindowPath

EXAMPLES = (
    "lanescope critical-path capture.bin",
    "lanescope critical-path capture.bin --what-if softmax_rows=0.8 -o path.pftrace",
)
#: Below so much of the window explained the path counts as not known.
_KNOWN = 0.5
_LIMIT = 12
#: Columns that are printed.
_COLUMNS = ("cause", "kind", "name", "role", "dur", "share", "parts", "busy_share", "slack_min")
_FORMATS = (".pftrace", ".json")
#: Arguments that ask for a part of the timeline.
_WINDOW = ("start", "end", "lane", "name", "min_dur", "where")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    parser.add_argument("--window", metavar="NAME#K", default="", help="the Kth slice of a name, or a run or launch")
    parser.add_argument("--sink", metavar="LANE", default="", help="lane at whose last end the path ends, a glob")
    parser.add_argument("--device", metavar="NAME", default="", help="device on which the path ends, a glob")
    parser.add_argument(
        "--what-if",
        metavar="NAME=F",
        action="append",
        default=[],
        help="answer for F times a name's work, or the floors of kind:NAME, repeatable",
    )
    parser.add_argument("--infer", action="store_true", help="add causes that follow from times only")
    parser.add_argument("--waits", metavar="REGEX", default="", help="names of further slices that wait")
    add_paging(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="draw the path into the timeline: .pftrace or .json")
    parser.add_argument("--force", action="store_true", help="overwrite existing output")
    add_formats(parser, "lanescope.critical_path/1")
    add_window(parser, names=("--from", "--to"))
    add_input(parser, families)  # last: a family has an option --device, which -O reaches


def run(args: argparse.Namespace) -> int:
    """Print the path."""
    if args.window and (args.start is not None or args.end is not None):
        raise UsageError("--window and --start or --end are mutually exclusive", hint="use one of them")
    if args.output is not None:
        if not args.output.endswith(_FORMATS):
            raise UsageError(f"cannot infer the format of {args.output!r}", hint="use .pftrace or .json")
        check_output(args.output, [args.input], force=args.force)
    from lanescope.pipeline.memory import analyzed_on_disk

    trace = collected(args, is_windowed=False)  # causes lead through all of it
    with analyzed_on_disk(trace):
        _answer(args, trace)
    return close(trace, args)


def _answer(args: argparse.Namespace, trace: Trace) -> None:
    """Find the path, print it, and draw it."""
    from lanescope.pipeline.trace_queries import critical_path

    asked = {name: getattr(args, name) for name in (*_WINDOW, "window", "sink", "device", "waits", "infer")}
    path = critical_path(trace, **asked)
    answers = path.what_if(args.what_if) if args.what_if else None
    if args.json:
        _print_json(args, path, answers)
    else:
        _print(args, path, answers, trace)
    if args.output is not None:
        from lanescope.analysis.critical_path.drawing import drawn
        from lanescope.pipeline import session

        report = session.write(drawn(path), args.output)
        assert report.written is not None
        if not is_stdout(args.output):
            print_written(args.output, size=report.written.bytes)


def _print(args: argparse.Namespace, path: CriticalPath, answers: Table | None, trace: Trace) -> None:
    chosen = path.shown
    rows = [row for row in path.summary.rows() if row["window"] == chosen.window.name]
    if args.csv:
        # All windows: a program chooses for itself.
        listed, page = table_part(args, "critical-path", path.summary)
        _print_columns(args, path.summary, path.summary.spec.names[1:], listed)
        page.state()
        if answers is not None:
            echo_left_out(args, "answers to --what-if")
        return
    args.limit = args.limit or _LIMIT
    listed, page = part(args, "critical-path", rows)
    _print_columns(args, path.summary, _COLUMNS, listed, _title(path, chosen), about(args, trace))
    page.state()
    for line in _lines(path, chosen):
        echo(escape(line))
    if chosen.explained < _KNOWN:
        warn(f"the path is not known: only {chosen.explained:.1%} of the window is explained")
    if answers is not None:
        print()
        _print_columns(args, answers, [name for name in answers.spec.names if name != "id"], title="what if")


def _print_columns(
    args: argparse.Namespace,
    table: Table,
    names: Sequence[str],
    rows: Sequence[Mapping[str, Any]] | None = None,
    title: str = "",
    above: str = "",
) -> None:
    """Print some columns of a table, of all rows or of some."""
    specs = {spec.name: spec for spec in table.spec.columns}
    listed = list(table.rows()) if rows is None else rows
    values = values_of(listed, names)
    print_table(args, [specs[name] for name in names], values, about=above, title=title)


def _title(path: CriticalPath, chosen: WindowPath) -> str:
    unit, window = path.made.cache.unit, chosen.window
    name = f"{window.name}, " if window.name else ""
    part = ""
    if path.selection is not None:
        part = f", {format_duration(path.selected_of(chosen), unit)} of it selected"
    return f"critical path: {name}{format_duration(chosen.length, unit)}{part}"


def _lines(path: CriticalPath, chosen: WindowPath) -> list[str]:
    """Return how the path was found, what it leaves open, and what it rests on."""
    from lanescope.analysis.critical_path.event_graph import CAUSES
    from lanescope.analysis.critical_path.selected_parts import is_alone

    made, window, unit = path.made, chosen.window, path.made.cache.unit
    tree = made.cache.time.tree
    lane = tree.path(int(made.graph.rows.lane[made.graph.nodes["row"][window.sink]]))
    lines = [
        f"window: {window.begin:,} to {window.end:,} {unit}",
        f"sink: {window.reason}, on {lane} at {int(made.graph.time[window.sink]):,} {unit}",
        f"explained: {chosen.explained:.1%} of the window (work, latency, resource); inferred: {chosen.inferred:.1%}",
    ]
    if path.selection is not None:
        dur = path.selected_of(chosen)
        lines.insert(
            1,
            f"selected: {path.selection.asked}: {dur:,} {unit}, {dur / max(chosen.length, 1):.1%} of the window;"
            " the path is that of all slices, shares are of the window",
        )
    if is_alone(path.trace):
        lines.append("the input is that of a window, without the rest: causes outside of it are not followed")
    for kind, count in chosen.at_ends.items():
        lines.append(
            f"estimated: {count:,} times on the path a cause of kind {kind!r} counts from the end of its slice,"
            " as viewers draw it: when in the slice it was is not recorded"
        )
    if window.passed_over:
        lines.append(
            f"passed over as sinks: {window.passed_over:,} slices without length, cause or effect,"
            f" the last at {window.passed_until:,} {unit}"
        )
    found = chosen.sensitivity()
    if found is not None:
        what = CAUSES[found.cause] + (f" of {found.kind}" if found.kind else "")
        part = f"sensitivity: {what} from {found.ts:,} for {format_duration(found.dur, unit)}"
        if found.other:
            shares = ", ".join(
                f"{CAUSES[cause]} {share:.1%}" for cause, share in enumerate(found.shares) if share >= 0.0005
            )
            lines.append(f"{part}; if the second latest cause ({found.other}) had bound it: {shares}")
        else:
            lines.append(f"{part}; no other cause is recorded")
    counts = {
        "slices with suspect timestamps": made.rows_suspect,
        "slices that partly overlap others": made.graph.rows_crossing,
        "slices that outlive the window": window.outlive,
        "causes later than their effects": sum(each.backward for each in path.edge_counts),
        "causes whose order clock errors leave undecided": sum(each.undecided for each in path.edge_counts),
        "causes on cycles": made.graph.edges_cyclic,
        "causes without slices": sum(made.edge_counts_unplaced),
    }
    listed = [f"{what} ({count:,})" for what, count in counts.items() if count]
    latest = max((each.backward_max_ns for each in path.edge_counts), default=0)
    if latest:
        listed.append(f"late by up to {format_duration(latest, unit)}")
    if listed:
        lines.append("excluded or apart: " + ", ".join(listed))
    for kind, (hits, at_random) in made.chance.items():
        lines.append(f"{kind}: {hits:,} hits, {at_random:,} at random times of the same idle time")
    if len(path.paths) > 1:
        names = ", ".join(each.window.name for each in path.paths[:6])
        which = "longest" if path.selection is None else "one with most selected"
        lines.append(f"{len(path.paths):,} windows have paths ({names}, ...); the {which} is shown, see --window")
    return lines


def _print_json(args: argparse.Namespace, path: CriticalPath, answers: Table | None) -> None:
    from lanescope.analysis.critical_path.event_graph import CAUSES

    made = path.made
    summary, page = table_part(args, "critical-path", path.summary, of="summary")
    named = {row["window"] for row in summary}
    windows: list[dict[str, Any]] = []
    for each in path.paths:
        if is_paged(args) and each.window.name not in named:
            continue
        window, found = each.window, each.sensitivity()
        row = int(made.graph.nodes["row"][window.sink])
        windows.append(
            {
                "name": window.name,
                "begin": window.begin,
                "end": window.end,
                "sink": {
                    "reason": window.reason,
                    "lane": made.cache.time.tree.path(int(made.graph.rows.lane[row])),
                    "slice_id": int(made.slice_of[row]),
                    "ts": int(made.graph.time[window.sink]),
                    "passed_over": window.passed_over,
                },
                "shares": {cause: share for cause, share in zip(CAUSES, each.shares, strict=True) if share},
                "explained": each.explained,
                "inferred": each.inferred,
                "outlive": window.outlive,
                "estimated": each.at_ends,
                **({} if path.selection is None else {"selected": path.selected_of(each)}),
                "sensitivity": None
                if found is None
                else {
                    "ts": found.ts,
                    "dur": found.dur,
                    "cause": CAUSES[found.cause],
                    "kind": found.kind,
                    "second_cause": found.other or None,
                    "shares": {cause: share for cause, share in zip(CAUSES, found.shares, strict=True) if share},
                },
            }
        )
    print_json(
        "lanescope.critical_path/1",
        unit=made.cache.unit,
        **page.described(),
        **window_of(path.trace if path.selection is None else path.selection.trace),
        windows=windows,
        summary=summary,
        edges=list(path.edges.rows()),
        rows_suspect=made.rows_suspect,
        rows_crossing=made.graph.rows_crossing,
        chance={kind: {"hits": hits, "at_random": at_random} for kind, (hits, at_random) in made.chance.items()},
        what_if=[] if answers is None else list(answers.rows()),
    )

"""Show where the time goes: by name, lane or instance; overlap of regions; causes of idle time."""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.analysis.groupings import (
    OF_LANES,
    REGIONS,
    SLICES,
    UNITS,
    families_with,
    family_of,
    region_answers,
    role_of,
)
from lanescope.cli.arguments import add_dataset, add_format, add_input, add_window, parse_window
from lanescope.cli.check_settings import add_settings, check_settings
from lanescope.cli.console import echo, print_json
from lanescope.cli.context import about, close, is_for_people, window_of
from lanescope.cli.paging import add_paging, part
from lanescope.cli.reading import is_dataset, lanes_in, opened, passed, selected_part, selecting, with_rest
from lanescope.cli.suspects_output import Suspects, described, of_groups, of_tables, print_suspects
from lanescope.cli.tables import add_formats, echo_left_out, look_of, print_table
from lanescope.errors import UsageError
from lanescope.families.family import Family
from lanescope.view.table_output import is_terminal
from lanescope.view.tables.columns import Col, columns_of

if TYPE_CHECKING:
    from lanescope import Table, Trace
    from lanescope.analysis.analysis_cache import AnalysisCache
    from lanescope.cli.check_settings import CheckSettings
    from lanescope.pipeline.observers import Counted
    from lanescope.pipeline.sources import CaptureSource
    from lanescope.view.analysis_report import Screen

EXAMPLES = ("lanescope summary capture.bin", "lanescope summary --by overlap capture.bin")

#: Groups and answers of datasets only.
_OF_DATASETS = ("rank", "run", "capture", "stragglers", "collectives")
#: Columns of a table that is followed, where there is room for a few only.
_FOLLOWED = ("section", "name", "count", "errors", "total", "average", "min", "max")
#: Draws the shares of a table; it has no header.
SHARE_BAR = Col("", kind="bar")


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    add_input(parser, families, many=True)
    add_window(parser)
    add_dataset(parser)
    own = [summary.name for family in families for summary in family.summaries]
    choices = dict.fromkeys((*SLICES, *REGIONS, *UNITS, *own, *_OF_DATASETS))
    text = f"grouping (default: name; --follow: tally): {', '.join(choices)}"
    parser.add_argument("--by", metavar="WHAT", choices=tuple(choices), help=text)
    add_paging(parser, is_screenful=True)
    parser.add_argument(
        "--within",
        metavar="UNIT",
        default="",
        help="instances whose lanes are analyzed together: block, sm, device, parent, lane, all",
    )
    parser.add_argument(
        "--classify",
        metavar="KIND=GLOB",
        type=_classes,
        action="append",
        default=[],
        help="names of regions that load, compute, store or wait",
    )
    parser.add_argument("--follow", action="store_true", help="repeat the tally while the capture grows")
    # What ``record --live`` starts: it is the program's terminal, and its keys are for the program.
    parser.add_argument("--beside", action="store_true", help=argparse.SUPPRESS)
    add_settings(parser)
    format = parser.add_mutually_exclusive_group()
    add_formats(parser, "lanescope.summary/1", group=format)
    add_format(format)


def run(args: argparse.Namespace) -> int:
    """Print the sums."""
    args.input = args.inputs[0]
    args.by = args.by or ("tally" if args.follow else "name")
    if is_dataset(args.input) and len(args.inputs) == 1:
        from lanescope.cli import dataset_answers

        return dataset_answers.summary(args)
    if args.by in _OF_DATASETS:
        raise UsageError(f"summary --by {args.by} requires a dataset", hint="run 'lanescope ingest' first")
    if args.follow:
        return _followed(args)
    if len(args.inputs) > 1:
        return _of_several(args)
    settings = check_settings(args)
    codes = settings.applied("LS5")
    with opened(args.input, args) as source:
        if args.by in SLICES and not families_with(args.by, source.info.families):
            from lanescope.analysis.plausibility.suspect_totals import SuspectTotals
            from lanescope.analysis.summary import Summary
            from lanescope.pipeline.observers import Counts

            sums, totals, counts = Summary(args.by), SuspectTotals(args.by, settings.thresholds, codes), Counts()
            observers = [sums, *([] if codes == [] else [totals]), *([counts] if is_for_people(args) else [])]
            last = passed(source, args.input, observers=observers).last
            table, unit = sums.result(), last.time.time_unit
            suspects = of_groups(table, args.by, args.limit, totals.result())
            _print_summary(args, table, last, suspects, about=about(args, last, counts.result()))
            if not args.json:
                print_suspects(suspects, unit)
            return close(last, args)
        from lanescope.analysis.analysis_cache import AnalysisCache
        from lanescope.pipeline.observers import Collect

        is_of_lanes = not families_with(args.by, source.info.families) and args.by in OF_LANES
        if is_of_lanes and args.by == "idle":
            found = _lanes_without_suspects(args, source, settings)
            if found is not None:
                shared, counted = found
                _regions(args, shared.over_all_slices, Suspects(), counted)
                return close(shared.trace, args)
        if is_of_lanes:
            source.keep_filtered()
        window = parse_window(args)
        if args.by == "overlap" and window is not None and window.has_filter:
            trace = with_rest(args)  # what hides a load may be left out
        else:
            whole = Collect()
            passed(source, args.input, observers=[whole])
            trace = whole.result()
        shared = AnalysisCache(trace, _merged(args.classify), settings.islands)
        selecting(shared, source)
    if is_of_lanes:
        shared = shared.over_all_slices  # a lane is not idle for what a trace was read without
    family_table, remarks = _family_summary(args, trace)
    if family_table is not None and window is not None and window.has_filter:
        # What a family makes of its sums is a verdict on a run: a few slices of it allow none.
        remarks = ["sums are of the selected slices alone: in time that is idle here, others may have run"]

    def tables_of(part: Trace, kept: Any) -> Sequence[Table]:
        if family_table is None:
            if kept is None:
                return region_answers(shared, args.by, args.within)
            rest = AnalysisCache(part, shared.given, settings.islands)
            rest.selected = None if shared.selected is None else shared.selected.where(kept)
            return region_answers(rest, args.by, args.within)
        other = family_table if kept is None else _family_summary(args, part)[0]
        return [family_table if other is None else other]

    suspects = Suspects() if codes == [] else of_tables(trace, tables_of, settings.thresholds, codes)
    if family_table is not None:
        _print_summary(args, family_table, trace, suspects, remarks, about=about(args, trace))
    else:
        _regions(args, shared, suspects)
    if not args.json:
        print_suspects(suspects, shared.unit)
    return close(trace, args)


def _lanes_without_suspects(
    args: argparse.Namespace, source: CaptureSource, settings: CheckSettings
) -> tuple[AnalysisCache, Counted] | None:
    """Read a capture whose slices need not be in memory; None where some are suspect, and all rows have to be known."""
    from lanescope.analysis.lanes_on_disk import LanesOnDisk
    from lanescope.analysis.plausibility.suspect_totals import SuspectTotals

    codes = settings.applied("LS5")
    suspects = SuspectTotals("name", settings.thresholds, codes)
    lanes = LanesOnDisk(_merged(args.classify), settings.islands)
    found = lanes_in(source, args.input, lanes, *([] if codes == [] else [suspects]))
    return None if codes != [] and suspects.has_some() else found


def _followed(args: argparse.Namespace) -> int:
    """Show the sums of a capture that grows on standard error, and print the last ones; 130 if interrupted.

    With ``--beside`` they are shown only, and at the end what showing them took.
    """
    from lanescope.families import registry
    from lanescope.view.refreshed_table import RefreshedTable

    if len(args.inputs) > 1:
        raise UsageError("--follow takes one capture")
    if parse_window(args) is not None:
        raise UsageError("--follow takes the whole capture", hint="remove --start, --end, --lane, --name, --where")
    families = families_with(args.by, [family.name for family in registry.builtin()])
    if not families:
        raise UsageError(f"summary --by {args.by} cannot follow a capture", hint="use --by tally")
    if args.beside:
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        os.nice(5)
    # Where a program writes to the same terminal, lines come between its lines: no place of the screen is free.
    shown = RefreshedTable(sys.stderr, _FOLLOWED, in_place=not (args.beside and is_terminal(sys.stdout)))
    table, status, looks = None, 0, 0
    try:
        for found in families[0].follow(args.by, args.input):
            table, looks = found, looks + 1
            shown.show(list(found.rows()))
    except KeyboardInterrupt:
        status = 130
    shown.clear()
    if args.beside:
        echo(f"live tally: {looks} looks, {time.process_time():.1f} s of processor time")
    elif table is not None:
        _print_summary(args, table, None, Suspects())
    return status


def _of_several(args: argparse.Namespace) -> int:
    """Print the sums of several captures of one family, reading one after the other."""
    from lanescope.cli.context import each_read
    from lanescope.families import registry

    families = families_with(args.by, [family.name for family in registry.builtin()])
    if not families:
        raise UsageError(f"summary --by {args.by} takes one capture", hint="run it once for each capture")
    status = 0
    last: list[Trace] = []

    def traces() -> Iterator[tuple[str, Trace]]:
        nonlocal status
        for path, trace in each_read(args.inputs, args):
            args.input = path
            status = max(status, close(trace, args))
            last[:] = [trace]
            yield path, trace

    table = families[0].summarise_all(args.by, traces())
    above = f"{len(args.inputs):,} captures: {', '.join(args.inputs)}"
    _print_summary(args, table, last[0], Suspects(), families[0].remarks(args.by, table), about=above)
    return status


def _print_summary(
    args: argparse.Namespace,
    table: Table,
    trace: Trace | None,
    suspects: Suspects,
    remarks: Sequence[str] = (),
    *,
    about: str = "",
) -> None:
    """Print sums by group: the common ones with the unit in the names of JSON keys, those of a family as they are.

    Args:
        args: the command line.
        table: the sums.
        trace: the trace, or the last batch of it; None: there is none, and times are in ns.
        suspects: what suspect rows make of them.
        remarks: sentences that say what the table means.
        about: the line of context above it.
    """
    unit = "ns" if trace is None else trace.time.time_unit
    window = {} if trace is None else window_of(trace)
    rows, page = part(args, "summary", list(table.rows()), is_screenful=True)
    columns = [name for name in table.spec.names if name != "id"]
    if args.json:
        if args.by in SLICES:
            key = {spec.name: f"{spec.name}_{unit}" if spec.unit == unit else spec.name for spec in table.spec.columns}
            rows = [{key[name]: value for name, value in row.items()} for row in rows]
        more = described(suspects, unit) | ({"remarks": list(remarks)} if remarks else {})
        print_json("lanescope.summary/1", by=args.by, unit=unit, **window, **page.described(), rows=rows, **more)
        return
    if args.format:
        from lanescope.cli import ci_output

        ci_output.print_sums(args, table.spec, list(table.rows()), trace, remarks)
        return
    declared: list[Col] = columns_of([spec for spec in table.spec.columns if spec.name != "id"])
    values = [[row[name] for name in columns] for row in rows]
    if "share" in columns and not args.csv:
        share = columns.index("share")
        declared.append(SHARE_BAR)
        values = [[*row, row[share] or 0.0] for row in values]
    print_table(args, declared, values, about=about)
    page.state()
    for remark in remarks:
        echo(remark)


def _family_summary(args: argparse.Namespace, trace: Trace) -> tuple[Table | None, list[str]]:
    """Return the summary of a family of the trace and what it means; None where the question is one for every trace."""
    family = family_of(trace, args.by)
    if family is None:
        return None, []
    table = family.summarise(args.by, trace)
    return table, family.remarks(args.by, table)


def _classes(text: str) -> tuple[str, str]:
    """Read ``KIND=GLOB,...``: a class of work, and the names of its regions."""
    from lanescope.analysis.work_classes import CLASSES

    kind, _, names = text.partition("=")
    if not names:
        raise argparse.ArgumentTypeError("expected KIND=GLOB,..., e.g. load='tma*,cp_*'")
    if kind not in CLASSES:
        raise argparse.ArgumentTypeError(f"unknown kind {kind!r} (choose from {', '.join(CLASSES)})")
    return kind, names


def _merged(classes: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return all globs of each class of work, with commas."""
    merged: dict[str, str] = {}
    for kind, names in classes:
        merged[kind] = f"{merged[kind]},{names}" if kind in merged else names
    return merged


def _regions(
    args: argparse.Namespace, shared: AnalysisCache, suspects: Suspects, counted: Counted | None = None
) -> None:
    """Print the answer of an analysis of regions; what suspect rows make of it is part of the JSON document."""
    from lanescope.analysis import idle_causes, occupancy, overlap, region_stats

    unit = shared.unit
    role = role_of(shared, args.by, args.within)
    is_text, above = is_for_people(args), about(args, shared.trace, counted)
    # What is drawn has no parts: those of a cursor are tables.
    drawn = is_text and not args.cursor and is_terminal(sys.stdout)
    more: dict[str, Any] = {
        **window_of(shared.trace),
        "within": role,
        **described(suspects, unit),
        **_selected(args, shared),
    }
    if args.by == "region":
        table = region_stats.regions(shared, role)
        if is_text:
            from lanescope.view.analysis_report import region_table, region_title

            found, page = part(args, "summary", list(table.rows()), is_screenful=True)
            print_table(args, *region_table(shared, table, role, found), about=above, title=region_title(role))
            page.state()
            return
    elif args.by == "overlap":
        table = overlap.overlap(shared, role)
        more["exposure"] = list(overlap.exposure(shared.over_all_slices, role).rows())
        if drawn:
            from lanescope.view.analysis_report import overlap_matrix

            overlap_matrix(shared, role, screen_of(args, above), args.limit)
            return
    elif args.by == "idle":
        table = idle_causes.causes(shared, role)
        if drawn:
            from lanescope.view import analysis_report

            analysis_report.idle_causes(table, unit, screen_of(args, above), args.limit)
            return
    elif args.by == "occupancy":
        resident = occupancy.occupancy(shared, role)
        active = occupancy.occupancy(shared)
        if drawn:
            from lanescope.view.analysis_report import occupancy_strips

            occupancy_strips(shared, [resident, active], screen_of(args, above), args.limit)
            return
        parts = [occupancy.occupancy_stats(shared, part) for part in (resident, active)]
        _print(args, parts, shared.trace, more, above)
        return
    else:
        del more["within"]
        table = occupancy.utilization(shared, args.by)
        if is_text:
            _show_units(table, args, unit, above)
            return
    _print(args, [table], shared.trace, more, above)


def _selected(args: argparse.Namespace, shared: AnalysisCache) -> dict[str, Any]:
    """State how much of the time of lanes, or of their idle time, is that of selected slices."""
    if shared.selected is None:
        return {}
    from lanescope.analysis import phases

    if args.by == "idle":
        found = phases.gaps(shared, 0)
        return selected_part(shared, "without work", found.total, found.whole_total)
    time = phases.selected_time(shared, phases.phases(shared, "all"))
    return selected_part(shared, "that the lanes have", *time)


def _print(args: argparse.Namespace, tables: Sequence[Table], trace: Trace, more: dict[str, Any], above: str) -> None:
    """Print tables of one shape as one, for scripts."""
    if args.format:
        from lanescope.cli import ci_output

        ci_output.print_sums(args, tables[0].spec, [row for table in tables for row in table.rows()], trace)
        return
    unit = trace.time.time_unit
    rows, page = part(args, "summary", [row for table in tables for row in table.rows()], is_screenful=True)
    columns = [name for name in tables[0].spec.names if name != "id"]
    if args.json:
        listed = [{name: row[name] for name in columns} for row in rows]
        print_json("lanescope.summary/1", by=args.by, unit=unit, **page.described(), rows=listed, **more)
    else:
        if more.get("exposure"):
            echo_left_out(args, "exposure of kinds of work")
        shown = columns_of([spec for spec in tables[0].spec.columns if spec.name != "id"])
        print_table(args, shown, [[row[name] for name in columns] for row in rows], about=above)
        page.state()


def _show_units(table: Table, args: argparse.Namespace, unit: str, above: str) -> None:
    from lanescope.view.analysis_report import unit_table, unit_words

    rows, page = part(args, "summary", list(table.rows()), is_screenful=True)
    print_table(args, *unit_table(table, args.by, unit, rows), about=above)
    page.state()
    screen_of(args).paragraph(*unit_words(table, args.by, unit))


def screen_of(args: argparse.Namespace, above: str = "") -> Screen:
    """Return standard output as what lines are drawn on, below a line of context."""
    from lanescope.view.analysis_report import Screen

    screen = Screen(sys.stdout, has_color=look_of(args).has_color(sys.stdout))
    if above:
        screen.wrap(above)
        screen.line()
    return screen

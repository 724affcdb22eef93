"""Reading captures, warnings of data loss, exit status; and the context of family commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.cli import console, progress
from lanescope.cli.arguments import parse_options, parse_window
from lanescope.cli.console import echo, warn
from lanescope.errors import DataLossError, InputError, UsageError
from lanescope.view.formatting import escape

if TYPE_CHECKING:
    from lanescope import ColumnSpec, Trace
    from lanescope.analysis.analysis_cache import AnalysisCache
    from lanescope.families.family import Family
    from lanescope.pipeline.observers import Counted


# --- reading ------------------------------------------------------------------------------------------------------


def read_all(
    paths: Sequence[str], args: argparse.Namespace, *, is_windowed: bool = True, keeps_whole: bool = False
) -> list[Trace]:
    """Decode several captures; each takes those options that its family knows.

    Args:
        paths: the captures.
        args: the command line.
        is_windowed: False: each is read as a whole, whatever window the user asks for.
        keeps_whole: where the window selects slices, each keeps the whole, for answers that need all of them.

    Raises:
        UsageError: an option that none of their families knows; or standard input twice.
    """
    return [trace for _, trace in each_read(paths, args, is_windowed=is_windowed, keeps_whole=keeps_whole)]


def each_read(
    paths: Sequence[str], args: argparse.Namespace, *, is_windowed: bool = True, keeps_whole: bool = False
) -> Iterator[tuple[str, Trace]]:
    """Do what ``read_all`` does, one capture after the other: yields names and traces; errors as there."""
    from lanescope import Trace
    from lanescope.pipeline import readable, session, trace_queries

    if paths.count("-") > 1:
        raise UsageError("standard input is specified twice", hint="use - once")
    given, known, window = parse_options(args), set[str](), parse_window(args) if is_windowed else None
    keeps = keeps_whole and window is not None and window.has_filter
    for path in paths:
        if session.is_parquet_dataset(path):
            yield path, trace_queries.windowed(session.open(path), window, keeps_whole=keeps)
            continue
        with session.capture(path) as capture, progress.reading(path) as shown:
            family = _family_of(capture, args.family, given)
            names = {option.name for option in family.options}
            known |= names
            own = {name: value for name, value in given.items() if name in names}
            trace = Trace.concat(session.decode(capture, family, own, progress=shown))
        readable.refuse_unreadable(trace, path)
        yield path, trace_queries.windowed(trace, window, keeps_whole=keeps)
    for name in given:
        if name not in known:
            raise UsageError(f"unknown option {name!r} (available: {', '.join(sorted(known)) or 'none'})")


def _family_of(capture: Any, family: str | None, given: Mapping[str, str]) -> Family:
    """Return the family of one of several captures: an option names that of captures that are not recognized."""
    from lanescope.pipeline import detection

    try:
        return detection.detect_family(capture, family)[0]
    except InputError:
        named = detection.named_family(capture, given) if family is None else None
        if named is None:
            raise
        return detection.detect_family(capture, named)[0]


# --- context of tables --------------------------------------------------------------------------------------------


def is_for_people(args: argparse.Namespace) -> bool:
    """Return whether the user asks for text, and for no form that programs read."""
    return not any(vars(args).get(form) for form in ("json", "csv", "format"))


def about(args: argparse.Namespace, trace: Trace, counted: Counted | None = None) -> str:
    """Return what a table is about: the capture, how long it is, its lanes and slices; nothing in forms for programs.

    Args:
        args: the command line, with the capture as ``input``.
        trace: the trace; or its last batch, with ``counted``.
        counted: what all batches have.
    """
    if not is_for_people(args):
        return ""
    from lanescope.pipeline.observers import Counts
    from lanescope.view.formatting import format_count, format_duration

    if counted is None:
        counts = Counts()
        counts.add(trace)
        counted = counts.result()
    told = []
    if counted.begin is not None and counted.end is not None:
        told.append(format_duration(counted.end - counted.begin, trace.time.time_unit))
    is_lane = trace.tracks.values("kind") == "lane"
    if _is_window(trace):
        from lanescope.analysis.track_tree import Tree
        from lanescope.analysis.windows.report import chosen_tracks

        is_lane = is_lane & chosen_tracks(trace, Tree(trace.tracks))
    told += [format_count(int(is_lane.sum()), "lane")]
    told += [format_count(counted.rows.get("slices", 0), "slice")]
    window = " in the window" if _is_window(trace) else ""
    return f"{args.input}: {', '.join(told)}{window}"


# --- loss ---------------------------------------------------------------------------------------------------------


def listed(counts: Mapping[str, int]) -> str:
    """Return counts by what is counted as text: ``dropped records (120), bytes lost (16)``."""
    return ", ".join(f"{what} ({count:,})" for what, count in counts.items())


def close(trace: Trace, args: argparse.Namespace, status: int = 0, *, of: str = "") -> int:
    """Warn of missing records, data loss, contradictions and ambiguous meanings, and return the resulting exit status.

    Of a trace that is that of a window it states so first.

    Args:
        trace: the trace.
        args: the command line.
        status: exit status without losses.
        of: what warnings begin with, where a command reads several captures.

    Raises:
        InputError: all of it was lost.
    """
    state_window(trace)
    from lanescope.pipeline import diagnostics
    from lanescope.pipeline.readable import refuse_unreadable

    for empty in diagnostics.empty_inputs(trace):
        warn(f"{empty.path}: {empty.number:,} {empty.meaning}")
    refuse_unreadable(trace, args.input if "input" in args else "the capture")
    ambiguous = listed(diagnostics.ambiguous_meanings(trace))
    if ambiguous:
        warn(f"{of}ambiguous identity or meaning: {ambiguous}; run 'lanescope check' for the reason")
    lost, wrong = diagnostics.described_losses(trace), diagnostics.described_contradictions(trace)
    for what, counts in (("data loss", lost), ("inconsistent data", wrong)):
        if counts:
            warn(f"{of}{what}: {listed(counts)}; run 'lanescope check' for locations")
    if not lost and not wrong:
        return status
    return DataLossError.exit_status if args.strict else status


def state_views(shared: AnalysisCache) -> None:
    """State how many lanes sums leave out, as they show what others show."""
    count = int(shared.views.sum())
    if count:
        echo(f"excluded: {count:,} lane{'' if count == 1 else 's'} with what other lanes show already")


def _is_window(trace: Trace) -> bool:
    """Whether a trace is that of a window, also of one that left nothing out."""
    if any('"windows"' in str(text) for text in trace.inputs.values("options").tolist()):
        return True
    return any(str(name).startswith("window_") for name in trace.stats.values("name").tolist())


def state_window(trace: Trace) -> None:
    """State what part of the timeline a trace is, or that it is an overview."""
    if _is_window(trace) or any('"overview"' in str(text) for text in trace.inputs.values("options").tolist()):
        from lanescope.analysis.windows.report import remark

        if said := remark(trace):
            echo(escape(said))


def window_of(trace: Trace) -> dict[str, Any]:
    """Return the window of a trace as JSON documents have it, under its key; empty for a whole trace."""
    if not _is_window(trace):
        return {}
    from lanescope.analysis.windows.report import described

    return {"window": described(trace)}


# --- commands of families -----------------------------------------------------------------------------------------


class Context:
    """The context of a family command, see ``lanescope.families.CommandContext``."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._opened: list[Trace] = []
        self._is_shown = False

    def open(self, path: str, **options: Any) -> Trace:
        """Decode a capture with the options of the command line and those given here."""
        from lanescope import Trace
        from lanescope.pipeline import readable, session, trace_queries

        given = {**parse_options(self._args), **options}
        with progress.reading(path) as shown:
            trace = Trace.concat(session.read(path, self._args.family, given, progress=shown))
        readable.refuse_unreadable(trace, path)
        trace = trace_queries.windowed(trace, parse_window(self._args), keeps_whole=True)
        self._opened.append(trace)
        return trace

    def chosen_tracks(self, trace: Trace) -> Any:
        """Return which tracks of an opened capture the window of the command line has."""
        from lanescope.analysis.track_tree import Tree
        from lanescope.analysis.windows.report import chosen_tracks

        return chosen_tracks(trace, Tree(trace.tracks))

    def read(self, path: str) -> Trace:
        """Decode a capture; the command itself reports data loss."""
        from lanescope.pipeline import session

        return session.open(path)

    def option(self, name: str) -> str | None:
        """Return the text that the command line gave for a decode option."""
        return parse_options(self._args).get(name)

    def show(
        self,
        columns: Sequence[str | ColumnSpec],
        rows: Iterable[Sequence[Any]],
        *,
        title: str = "",
        is_talk: bool = False,
        is_long: bool = False,
    ) -> None:
        """Show a table on standard output, or on standard error; as CSV if the command line asks for it."""
        from lanescope.cli.paging import SCREEN
        from lanescope.cli.tables import echo_left_out, look_of, print_table, sections_of
        from lanescope.view.formatting import format_count
        from lanescope.view.table_output import is_terminal, show

        if is_talk:
            show(*sections_of(columns, rows), title=title, file=sys.stderr, look=look_of(self._args))
            return
        if self._is_shown and vars(self._args).get("csv", False):
            echo_left_out(self._args, title)
            return
        if self._is_shown:
            print()
        self._is_shown = True
        listed = list(rows)
        is_cut = is_long and not self.is_csv() and is_terminal(sys.stdout)
        print_table(self._args, columns, listed[:SCREEN] if is_cut else listed, title=title)
        if is_cut and len(listed) > SCREEN:
            echo(f"{format_count(len(listed) - SCREEN, 'more row')}: use --json or --csv")

    def is_csv(self) -> bool:
        """Return whether the command line asks for CSV."""
        return bool(vars(self._args).get("csv", False))

    def lines(self, lines: Iterable[str]) -> None:
        """Print lines, escaped but for tabs."""
        for line in lines:
            print("\t".join(escape(part) for part in line.split("\t")))

    def json(self, schema: str, **content: Any) -> None:
        """Print one JSON document."""
        window = next((found for trace in self._opened if (found := window_of(trace))), {})
        console.print_json(schema, **window, **content)

    def echo(self, message: str) -> None:
        """Print a line on standard error, escaped."""
        echo(escape(message))

    def warn(self, message: str) -> None:
        """Print a warning on standard error, escaped."""
        warn(message)

    def wrote(self, target: str, *content: str, size: int) -> None:
        """Report a written output on standard error."""
        console.print_written(target, *content, size=size)

    def is_stdout(self, target: str | None) -> bool:
        """Return whether a target is standard output."""
        return target is None or console.is_stdout(target)

    def check_target(self, target: str | None, inputs: Sequence[str] = ()) -> None:
        """Refuse a file that cannot or may not be written."""
        if target is not None and not console.is_stdout(target):
            console.check_output(target, inputs, force=self._args.force)

    def write(self, target: str | None, blocks: Iterable[bytes], *, inputs: Sequence[str] = ()) -> int:
        """Write a file as a whole or not at all."""
        from pathlib import Path

        from lanescope.io.atomic_file import atomic_writer

        self.check_target(target, inputs)
        with atomic_writer(sys.stdout.buffer if target is None or console.is_stdout(target) else Path(target)) as file:
            return sum(file.write(block) for block in blocks)

    def convert(self, trace: Trace, target: str) -> int:
        """Write a trace as a timeline."""
        from pathlib import Path

        suffix = Path(target).suffix
        if suffix not in (".pftrace", ".json"):
            raise UsageError(f"cannot infer the format from {suffix!r}", hint="use .pftrace or .json")
        self.check_target(target)
        from lanescope.pipeline import session

        report = session.write(trace, target)
        assert report.written is not None
        return report.written.bytes

    def finish(self, status: int) -> int:
        """Warn of what the opened captures lack, and return the exit status that follows."""
        for trace in self._opened:
            status = close(trace, self._args, status)
        return status

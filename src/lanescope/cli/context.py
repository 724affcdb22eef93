"""Reading captures, warnings of data loss, exit status; and the context of family commands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from lanescope.cli import console
from lanescope.cli.arguments import parse_options
from lanescope.cli.console import echo, progress, warn
from lanescope.errors import DataLossError, UsageError
from lanescope.families import registry
from lanescope.view.formatting import escape

if TYPE_CHECKING:
    from lanescope.common.signals import Signal
    from lanescope.trace import Trace


# --- reading ------------------------------------------------------------------------------------------------------


def read_all(paths: Sequence[str], args: argparse.Namespace) -> list[Trace]:
    """Decode several captures; each takes those options that its family knows.

    Raises:
        UsageError: an option that none of their families knows; or standard input twice.
    """
    from lanescope.pipeline import readable, session
    from lanescope.trace import Trace

    if paths.count("-") > 1:
        raise UsageError("standard input is specified twice", hint="use - once")
    given, known = parse_options(args), set[str]()
    traces = []
    for path in paths:
        if session.is_parquet_dataset(path):
            traces.append(session.open(path))
            continue
        with session.capture(path) as capture, progress(path) as shown:
            family, _ = session.detect_family(capture, args.family)
            names = {option.name for option in family.options}
            known |= names
            own = {name: value for name, value in given.items() if name in names}
            traces.append(Trace.concat(session.decode(capture, family, own, progress=shown)))
        readable.refuse_unreadable(traces[-1], path)
    for name in given:
        if name not in known:
            raise UsageError(f"unknown option {name!r} (available: {', '.join(sorted(known)) or 'none'})")
    return traces


# --- loss ---------------------------------------------------------------------------------------------------------


def loss_counts(trace: Trace) -> dict[str, int]:
    """Return what a trace, or the last batch of a decode, has lost.

    By name: stats of severity ``data_loss`` and ``error``, then units of the accounting.
    """
    from lanescope.pipeline.run import losses

    return losses(trace)


def unsettled_labels(trace: Trace) -> dict[str, int]:
    """Return the stats of a trace, or of the last batch of a decode, about a configuration that leaves labels open."""
    from lanescope.trace.stats import CONFIG

    found: dict[str, int] = {}
    for row in trace.stats.rows():
        if row["name"].endswith(CONFIG):
            found[row["name"]] = found.get(row["name"], 0) + row["count"]
    return found


def _warn_of_no_records(trace: Trace) -> None:
    """Warn of captures without records."""
    from lanescope.trace.stats import NO_RECORDS

    for row in trace.stats.rows():
        if row["name"].endswith(NO_RECORDS):
            file = list(trace.inputs.rows())[row["input_id"]]
            meaning = {spec.name: spec.doc for spec in registry.family(file["family"]).stats}[row["name"]]
            warn(f"{file['path']}: {row['count']:,} {meaning}")


def close(trace: Trace, args: argparse.Namespace, status: int = 0) -> int:
    """Warn of missing records, data loss and ambiguous labels, and return the resulting exit status.

    Raises:
        InputError: all of it was lost.
    """
    _warn_of_no_records(trace)
    from lanescope.pipeline.readable import refuse_unreadable

    refuse_unreadable(trace, args.input if "input" in args else "the capture")
    unsettled = ", ".join(f"{name} {count:,}" for name, count in unsettled_labels(trace).items())
    if unsettled:
        warn(f"ambiguous labels: {unsettled}; run 'lanescope check' for the reason")
    lost = loss_counts(trace)
    if not lost:
        return status
    listed = ", ".join(f"{name} {count:,}" for name, count in lost.items())
    warn(f"data loss: {listed}; run 'lanescope check' for locations")
    return DataLossError.exit_status if args.strict else status


# --- commands of families -----------------------------------------------------------------------------------------


class Context:
    """The context of a family command, see ``lanescope.families.CommandContext``."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._args = args
        self._opened: list[Trace] = []

    def open(self, path: str, **options: Any) -> Trace:
        """Decode a capture with the options of the command line and those given here."""
        from lanescope.pipeline import readable, session
        from lanescope.trace import Trace

        given = {**parse_options(self._args), **options}
        with progress(path) as shown:
            trace = Trace.concat(session.read(path, self._args.family, given, progress=shown))
        readable.refuse_unreadable(trace, path)
        self._opened.append(trace)
        return trace

    def read(self, path: str) -> Trace:
        """Decode a capture; the command itself reports data loss."""
        from lanescope.pipeline import session

        return session.open(path)

    def option(self, name: str) -> str | None:
        """Return the text that the command line gave for a decode option."""
        return parse_options(self._args).get(name)

    def signals(self, trace: Trace) -> list[Signal]:
        """Return the lanes of a trace as signals."""
        from lanescope.io import vcd

        return vcd.signals(trace)

    def show(
        self, columns: Sequence[str], rows: Iterable[Sequence[Any]], *, title: str = "", is_talk: bool = False
    ) -> None:
        """Show a table on standard output, or on standard error."""
        from lanescope.view.table_output import show

        show(columns, rows, title=title, file=sys.stderr if is_talk else None)

    def lines(self, lines: Iterable[str]) -> None:
        """Print lines, escaped but for tabs."""
        for line in lines:
            print("\t".join(escape(part) for part in line.split("\t")))

    def json(self, schema: str, **content: Any) -> None:
        """Print one JSON document."""
        console.print_json(schema, **content)

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
        """Tell whether a target is standard output."""
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
        if suffix == ".pftrace":
            from lanescope.io import perfetto

            return perfetto.write(trace, target).bytes
        from lanescope.io import chrome

        return chrome.write(trace, target).bytes

    def finish(self, status: int) -> int:
        """Warn of what the opened captures lack, and return the exit status that follows."""
        for trace in self._opened:
            status = close(trace, self._args, status)
        return status

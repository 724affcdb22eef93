"""Run a program and record its calls of Level Zero, with those of its children.

The program keeps its output, its input and its exit status. What it recorded is a folder of CTF, one trace a process,
that all verbs read, and babeltrace2 too. A summary stands on standard error at the end.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.cli.common import echo, is_stdout
from lanescope.devices import Family
from lanescope.errors import LanescopeError, UsageError
from lanescope.view.formatting import escape, format_count
from lanescope.view.table_output import show

if TYPE_CHECKING:
    from lanescope.trace import Trace

EXAMPLES = (
    "lanescope record -- ./app --size 1000",
    "lanescope record -o run --filter '!zeEventQueryStatus' -- python train.py",
)

#: Rows of the summary, in each of its sections.
_MOST_ROWS = 12
#: Bytes of a recording that is summed up unasked: reading a larger one takes long, and much memory.
LARGEST_SUMMED = 256 << 20


def configure(parser: argparse.ArgumentParser, families: Sequence[Family], arguments: Sequence[str]) -> None:
    """Add the arguments."""
    parser.usage = "lanescope record [options] -- COMMAND [ARGUMENTS]"
    parser.add_argument(
        "-o", "--output", metavar="FOLDER", help="where to; default: lanescope-COMMAND-TIME in this folder"
    )
    parser.add_argument(
        "--filter",
        metavar="GLOB",
        action="append",
        default=[],
        help="write calls of these functions only, several with commas; !GLOB: all but these",
    )
    parser.add_argument(
        "--start-paused", action="store_true", help="record nothing before the program calls lanescope_start()"
    )
    parser.add_argument(
        "--no-host-calls",
        action="store_true",
        help="write operations of the device only, no entries and exits of calls",
    )
    parser.add_argument(
        "--no-timing",
        action="store_true",
        help="time no operations of the device: write what was appended, not when it ran",
    )
    parser.add_argument(
        "--host-read",
        action="store_true",
        help="read all timestamps from the host: add no queries of them to the program's command lists",
    )
    parser.add_argument(
        "--on-failure",
        choices=("degrade", "abort"),
        default="degrade",
        help="when the recorder cannot hand on the program's signal: go on with less (default), or end the program",
    )
    parser.add_argument(
        "--preload", action="store_true", help="preload the recorder, where a loader finds another tracing layer"
    )
    parser.add_argument("--no-summary", action="store_true", help="say nothing of what was recorded")
    parser.add_argument("--force", action="store_true", help="replace a recording that is there")
    parser.add_argument("command", metavar="COMMAND", nargs=argparse.REMAINDER, help="the program and its arguments")


def run(args: argparse.Namespace) -> int:
    """Run the program, and return its status; a signal that ended it ends us as well."""
    from lanescope.devices.levelzero.recorder import launcher

    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if not command:
        raise UsageError("there is no command", hint="write lanescope record -- COMMAND")
    for pattern in args.filter:
        if not pattern.replace("!", "").replace(",", ""):
            raise UsageError(f"--filter {pattern!r} names no function", hint="write --filter 'zeCommandList*'")
    if is_stdout(args.output):
        raise UsageError("a recording is a folder", hint="say -o FOLDER")
    folder = Path(args.output if args.output is not None else _default(command[0]))
    old = launcher.prepare_output_dir(folder, force=args.force)
    settings = launcher.Settings(
        folder,
        tuple(args.filter),
        args.start_paused,
        not args.no_host_calls,
        preload=args.preload,
        timing=not args.no_timing,
        host_read=args.host_read,
        abort=args.on_failure == "abort",
    )
    given = dict(os.environ)
    try:
        with launcher.environment(settings, given) as made:
            status = launcher.run(command, made)
        processes = launcher.remove_stale_files(folder)
        _report(args, folder, processes, given)
    finally:
        # Not what somebody has recorded there: an empty folder only.
        with contextlib.suppress(OSError):
            folder.rmdir()
        if launcher.settle_old(folder, old):
            echo(f"lanescope: {escape(str(folder))}: the recording that was there is kept")
    return launcher.exit_like(status)


def _report(args: argparse.Namespace, folder: Path, processes: int, given: Mapping[str, str]) -> None:
    """Say what was recorded, or why nothing was."""
    if not processes and any(folder.iterdir()):
        echo("lanescope: nothing was recorded, as nothing could be written")
    elif not processes:
        _diagnose_empty(given)
    elif not args.no_summary:
        is_something = _summary(folder, processes)
        if not (is_something or args.filter or args.start_paused or args.no_host_calls):
            _diagnose_empty(given)


def _default(program: str) -> str:
    name = os.path.basename(program) or "run"  # noqa: PTH119
    return f"lanescope-{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _diagnose_empty(given: Mapping[str, str]) -> None:
    from lanescope.devices.levelzero.recorder import launcher

    what, hint = launcher.diagnose_empty(given)
    echo(f"lanescope: nothing was recorded: {what}; {hint}")


def _summary(folder: Path, processes: int) -> bool:
    """Print what was recorded on standard error; whatever fails in it, the program's status stays.

    Returns:
        False: there is neither a call nor an operation in it.
    """
    where = escape(str(folder))
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > LARGEST_SUMMED:
        what = f"{size} bytes of {format_count(processes, 'process', 'processes')}"
        echo(f"lanescope: {where}: {what}, too many to sum up unasked: lanescope summary --by tally {where}")
        return True
    from lanescope.pipeline import session  # not before the program has ended: see ``record.run``

    try:
        return _show(session.open(folder), where, processes, size)
    except (LanescopeError, OSError, MemoryError) as error:
        echo(f"lanescope: {where} was written and cannot be summed up: {escape(str(error))}")
    except KeyboardInterrupt:
        echo(f"lanescope: {where} was written; its summary was interrupted: lanescope summary --by tally {where}")
    return True


def _show(trace: Trace, folder: str, processes: int, size: int) -> bool:
    _tally(trace, folder)
    threads = sum(role == "host_thread" for role in trace.tracks.values("role").tolist())
    calls = format_count(len(trace.details["levelzero_calls"]), "call")
    operations = format_count(len(trace.details["levelzero_operations"]), "operation")
    where = f"{format_count(threads, 'thread')} in {format_count(processes, 'process', 'processes')}"
    echo(f"lanescope: {folder}: {calls} and {operations} of {where}, {size} bytes")
    for row in trace.stats.rows():
        if row["severity"] in ("data_loss", "error"):
            meaning = _meanings().get(row["name"], "")
            echo(f"lanescope: {row['name']}: {row['count']}: {meaning}")
    return bool(len(trace.details["levelzero_calls"]) or len(trace.details["levelzero_operations"]))


def _tally(trace: Trace, folder: str) -> None:
    from lanescope.devices.levelzero.analysis.tally import tally

    columns = ("section", "name", "count", "errors", "total", "average", "min", "max", "share")
    found: list[list[Any]] = []
    seen: Counter[str] = Counter()
    for row in tally(trace).rows():
        seen[row["section"]] += 1
        if seen[row["section"]] <= _MOST_ROWS:
            found.append([row[name] for name in columns])
    if found:
        show(columns, found, title="times in ns", file=sys.stderr)
    more = seen.total() - len(found)
    if more:
        echo(f"and {more} more: lanescope summary --by tally {folder}")


def _meanings() -> dict[str, str]:
    from lanescope.devices import family

    return {spec.name: spec.doc for spec in family("levelzero").stats()}

"""Record a program."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.errors import LanescopeError, UsageError
from lanescope.families.command import Argument, CommandContext, Values

if TYPE_CHECKING:
    from lanescope.trace import Trace

#: Rows of the summary, in each of its sections.
_MOST_ROWS = 12
#: Bytes of a recording that is summed up unasked: reading a larger one takes long, and much memory.
LARGEST_SUMMED = 256 << 20


def run(context: CommandContext, values: Values) -> int:
    """Run a program and record its calls of Level Zero, with those of its children.

    The program keeps its output, its input and its exit status. What it recorded is a folder of CTF, one trace a
    process, that all verbs read, and babeltrace2 too. A summary stands on standard error at the end.
    """
    from lanescope.devices.levelzero.recorder import launcher

    command = values["command"]
    command = command[1:] if command[:1] == ["--"] else command
    if not command:
        raise UsageError("there is no command", hint="write lanescope record -- COMMAND")
    for pattern in values["filter"]:
        if not pattern.replace("!", "").replace(",", ""):
            raise UsageError(f"--filter {pattern!r} names no function", hint="write --filter 'zeCommandList*'")
    if values["output"] is not None and context.is_stdout(values["output"]):
        raise UsageError("a recording is a folder", hint="say -o FOLDER")
    folder = Path(values["output"] if values["output"] is not None else _default(command[0]))
    old = launcher.prepare_output_dir(folder, force=values["force"])
    settings = launcher.Settings(
        folder,
        tuple(values["filter"]),
        values["start_paused"],
        not values["no_host_calls"],
        preload=values["preload"],
        timing=not values["no_device_timestamps"],
        host_read=values["host_timestamps"],
        abort=values["on_failure"] == "abort",
    )
    given = dict(os.environ)
    try:
        with launcher.environment(settings, given) as made:
            status = launcher.run(command, made)
        processes = launcher.remove_stale_files(folder)
        _report(context, values, folder, processes, given)
    finally:
        # Not what somebody has recorded there: an empty folder only.
        with contextlib.suppress(OSError):
            folder.rmdir()
        if launcher.settle_old(folder, old):
            context.echo(f"lanescope: {folder}: the recording that was there is kept")
    return launcher.exit_like(status)


def _report(context: CommandContext, values: Values, folder: Path, processes: int, given: Mapping[str, str]) -> None:
    """Say what was recorded, or why nothing was."""
    if not processes and any(folder.iterdir()):
        context.echo("lanescope: nothing was recorded, as nothing could be written")
    elif not processes:
        _diagnose_empty(context, given)
    elif not values["no_summary"]:
        is_something = _summary(context, folder, processes)
        if not (is_something or values["filter"] or values["start_paused"] or values["no_host_calls"]):
            _diagnose_empty(context, given)


def _default(program: str) -> str:
    name = os.path.basename(program) or "run"  # noqa: PTH119
    return f"lanescope-{name}-{time.strftime('%Y%m%d-%H%M%S')}"


def _diagnose_empty(context: CommandContext, given: Mapping[str, str]) -> None:
    from lanescope.devices.levelzero.recorder import launcher

    what, hint = launcher.diagnose_empty(given)
    context.echo(f"lanescope: nothing was recorded: {what}; {hint}")


def _summary(context: CommandContext, folder: Path, processes: int) -> bool:
    """Print what was recorded on standard error; whatever fails in it, the program's status stays.

    Returns:
        False: there is neither a call nor an operation in it.
    """
    where = str(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > LARGEST_SUMMED:
        what = f"{size} bytes of {_counted(processes, 'process', 'es')}"
        context.echo(f"lanescope: {where}: {what}, too many to sum up unasked: lanescope summary --by tally {where}")
        return True
    try:
        return _show(context, context.read(str(folder)), where, processes, size)
    except (LanescopeError, OSError, MemoryError) as error:
        context.echo(f"lanescope: {where} was written and cannot be summed up: {error}")
    except KeyboardInterrupt:
        context.echo(
            f"lanescope: {where} was written; its summary was interrupted: lanescope summary --by tally {where}"
        )
    return True


def _show(context: CommandContext, trace: Trace, folder: str, processes: int, size: int) -> bool:
    from lanescope.devices.levelzero.schema import STATS

    _tally(context, trace, folder)
    threads = sum(role == "host_thread" for role in trace.tracks.values("role").tolist())
    calls = _counted(len(trace.details["levelzero_calls"]), "call")
    operations = _counted(len(trace.details["levelzero_operations"]), "operation")
    where = f"{_counted(threads, 'thread')} in {_counted(processes, 'process', 'es')}"
    context.echo(f"lanescope: {folder}: {calls} and {operations} of {where}, {size} bytes")
    for row in trace.stats.rows():
        if row["severity"] in ("data_loss", "error"):
            meaning = next((spec.doc for spec in STATS if spec.name == row["name"]), "")
            context.echo(f"lanescope: {row['name']}: {row['count']}: {meaning}")
    return bool(len(trace.details["levelzero_calls"]) or len(trace.details["levelzero_operations"]))


def _counted(count: int, one: str, ending: str = "s") -> str:
    return f"{count} {one}{'' if count == 1 else ending}"


def _tally(context: CommandContext, trace: Trace, folder: str) -> None:
    from lanescope.devices.levelzero.analysis.tally import tally

    columns = ("section", "name", "count", "errors", "total", "average", "min", "max", "share")
    found: list[list[Any]] = []
    seen: Counter[str] = Counter()
    for row in tally(trace).rows():
        seen[row["section"]] += 1
        if seen[row["section"]] <= _MOST_ROWS:
            found.append([row[name] for name in columns])
    if found:
        context.show(columns, found, title="times in ns", is_talk=True)
    more = seen.total() - len(found)
    if more:
        context.echo(f"and {more} more: lanescope summary --by tally {folder}")


ARGUMENTS = (
    Argument("--output", "where to; default: lanescope-COMMAND-TIME in this folder", metavar="FOLDER", short="-o"),
    Argument(
        "--filter",
        "write calls of these functions only, several with commas; !GLOB: all but these",
        metavar="GLOB",
        is_repeated=True,
    ),
    Argument("--start-paused", "record nothing before the program calls lanescope_start()", bool),
    Argument("--no-host-calls", "write operations of the device only, no entries and exits of calls", bool),
    Argument(
        "--no-device-timestamps", "time no operations of the device: write what was appended, not when it ran", bool
    ),
    Argument(
        "--host-timestamps",
        "read all timestamps from the host: add no queries of them to the program's command lists",
        bool,
    ),
    Argument(
        "--on-failure",
        "when the recorder cannot hand on the program's signal: go on with less, or end the program",
        default="degrade",
        choices=("degrade", "abort"),
    ),
    Argument("--preload", "preload the recorder, where a loader finds another tracing layer", bool),
    Argument("--no-summary", "say nothing of what was recorded", bool),
    Argument("command", "the program and its arguments", metavar="COMMAND", is_rest=True),
)

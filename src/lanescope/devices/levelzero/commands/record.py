"""Record a program."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.recorder import ranks
from lanescope.errors import LanescopeError, UsageError
from lanescope.families.command import Argument, CommandContext, Values

if TYPE_CHECKING:
    from lanescope.devices.levelzero.recorder.children import Children
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
        raise UsageError("no command given", hint="run lanescope record -- COMMAND [ARG...]")
    for pattern in values["filter"]:
        if not pattern.replace("!", "").replace(",", ""):
            raise UsageError(f"invalid value {pattern!r} for --filter: expected function names, e.g. 'zeCommandList*'")
    if values["output"] is not None and context.is_stdout(values["output"]):
        raise UsageError("cannot write a recording to standard output", hint="use -o DIR")
    rank = ranks.rank_of(os.environ)
    if rank is not None and not ranks.is_selected(rank, values["ranks"] or ""):
        launcher.replace_process(command)
    folder = Path(values["output"] if values["output"] is not None else _default(command[0]))
    if rank is not None:
        launcher.check_rank_folder(folder)
        folder /= ranks.folder_of(rank)
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
        event_resets=values["event_resets"],
        ranks=values["ranks"] or "",
        sample_ns=values["sample"] or 0,
    )
    given = dict(os.environ)
    try:
        with launcher.environment(settings, given) as made, _live(folder, is_wanted=values["live"]):
            children = launcher.watch(made)
            status = launcher.run(command, made, children)
        processes = launcher.remove_stale_files(folder)
        if processes or not children.unrecorded(folder):  # else those are the reason
            _report(context, values, folder, processes, given)
        _warn_untimed(context, folder, values)
        _name_unrecorded(context, folder, processes, children)
    finally:
        # Not what somebody has recorded there: an empty folder only.
        with contextlib.suppress(OSError):
            folder.rmdir()
        if launcher.settle_old(folder, old):
            context.warn(f"kept the previous recording in {folder}")
    return launcher.exit_like(status)


def _report(context: CommandContext, values: Values, folder: Path, processes: int, given: Mapping[str, str]) -> None:
    """Report what was recorded, or why the recording is empty."""
    if not processes and any(folder.iterdir()):
        context.warn("nothing recorded: the recorder could not write its files")
    elif not processes:
        _diagnose_empty(context, given, values["ranks"])
    elif not values["no_summary"] and ranks.rank_of(given) is not None:
        # As many tables as ranks, at the same time, are of no use.
        _wrote_rank(context, folder, processes)
    elif not values["no_summary"]:
        is_something = _summary(context, folder, processes)
        if not (is_something or values["filter"] or values["start_paused"] or values["no_host_calls"]):
            _diagnose_empty(context, given)


def _warn_untimed(context: CommandContext, folder: Path, values: Values) -> None:
    """Name what has no timestamps, however little else is printed; not what was not to be timed."""
    from lanescope.devices.levelzero.recorder import untimed

    for reason, count in untimed.read(folder).most_common():
        if reason != "not_timed" or not values["no_device_timestamps"]:
            context.warn(untimed.describe(reason, count, values["event_resets"]))


def _name_unrecorded(context: CommandContext, folder: Path, processes: int, children: Children) -> None:
    """Name processes that used Level Zero without the recorder, here and in the recording if there is one."""
    from lanescope.devices.levelzero.recorder.children import write

    found = children.unrecorded(folder)
    for child in found:
        context.warn(
            f"process {child.pid} ({child.program}) used Level Zero and was not recorded: "
            f"its environment lacks the recorder's {child.missing}; pass the environment on"
        )
    if processes:
        write(folder, found)


@contextlib.contextmanager
def _live(folder: Path, *, is_wanted: bool) -> Iterator[None]:
    """Mark the folder inside the ``with`` block, and show the tally meanwhile if it is wanted.

    Another process does so: this one must not start threads, and the program must not wait for it.
    """
    from lanescope.devices.levelzero.recorder import launcher

    shown = None
    try:
        with launcher.marked(folder):
            if is_wanted:
                shown = launcher.start_beside("summary", "--by", "tally", "--follow", "--beside", str(folder))
            yield
    finally:
        if shown is not None:
            launcher.end_beside(shown)


def _default(program: str) -> str:
    name = os.path.basename(program) or "run"  # noqa: PTH119
    # All ranks of one start go into one folder, however late one of them comes.
    job = ranks.job_of(os.environ) if ranks.rank_of(os.environ) is not None else ""
    return f"lanescope-{name}-{job or time.strftime('%Y%m%d-%H%M%S')}"


def _wrote_rank(context: CommandContext, folder: Path, processes: int) -> None:
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    context.wrote(str(folder), _counted(processes, "process", "es"), size=size)


def _diagnose_empty(context: CommandContext, given: Mapping[str, str], selected: str | None = None) -> None:
    from lanescope.devices.levelzero.recorder import launcher

    if selected and ranks.rank_of(given) is None:
        context.warn(f"nothing recorded: no process was one of the ranks {selected}; remove --ranks to record all")
        return
    what, hint = launcher.diagnose_empty(given)
    context.warn(f"nothing recorded: {what}; {hint}")


def _summary(context: CommandContext, folder: Path, processes: int) -> bool:
    """Print what was recorded on standard error; whatever fails in it, the program's status stays.

    Returns:
        False: there is neither a call nor an operation in it.
    """
    where = str(folder)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > LARGEST_SUMMED:
        context.wrote(where, _counted(processes, "process", "es"), size=size)
        context.echo(f"summary skipped (large recording): run 'lanescope summary --by tally {where}'")
        return True
    try:
        return _show(context, context.read(str(folder)), where, processes, size)
    except (LanescopeError, OSError, MemoryError) as error:
        context.warn(f"wrote {where}, but cannot summarize it: {error}")
    except KeyboardInterrupt:
        context.echo(f"wrote {where}; summary interrupted: run 'lanescope summary --by tally {where}' to repeat it")
    return True


def _show(context: CommandContext, trace: Trace, folder: str, processes: int, size: int) -> bool:
    from lanescope.devices.levelzero.schema import STATS

    _tally(context, trace, folder)
    _telemetry(context, trace)
    threads = sum(role == "host_thread" for role in trace.tracks.values("role").tolist())
    calls = _counted(len(trace.details["levelzero_calls"]), "call")
    operations = _counted(len(trace.details["levelzero_operations"]), "operation")
    where = f"{_counted(threads, 'thread')} in {_counted(processes, 'process', 'es')}"
    _cost(context, trace)
    context.wrote(folder, f"{calls} and {operations} of {where}", size=size)
    for row in trace.stats.rows():
        if row["severity"] in ("data_loss", "error"):
            meaning = next((spec.doc for spec in STATS if spec.name == row["name"]), "")
            context.warn(f"{row['count']:,} {meaning} ({row['name']})")
    _warn_of_killed(context, trace, folder)
    return bool(len(trace.details["levelzero_calls"]) or len(trace.details["levelzero_operations"]))


def _cost(context: CommandContext, trace: Trace) -> None:
    """Print what the recorder took of the calls that it wrote."""
    from lanescope.devices.levelzero.analysis.tally import HOST, RECORDER, entries

    own = whole = calls = 0
    for entry in entries(trace):
        if entry.section == HOST:
            whole += entry.total
            if entry.name == RECORDER:
                own, calls = entry.total, entry.count
    if calls:
        share = f", {own / whole:.1%} of their time" if whole else ""
        context.echo(f"the recorder took {own / 1e6:.3f} ms within {_counted(calls, 'recorded call')}{share}")


def _warn_of_killed(context: CommandContext, trace: Trace, folder: str) -> None:
    """Name what has no timestamps where a process could not leave its own counts."""
    stats = {row["name"]: row["count"] for row in trace.stats.rows()}
    count = sum(count for name, count in stats.items() if name.startswith("levelzero_untimed"))
    if count and "levelzero_abnormal_exit" in stats:
        context.warn(
            f"{_counted(count, 'operation')} without timestamps; run 'lanescope check {folder}' for the reason"
        )


def _counted(count: int, one: str, ending: str = "s") -> str:
    return f"{count:,} {one}{'' if count == 1 else ending}"


def _tally(context: CommandContext, trace: Trace, folder: str) -> None:
    from lanescope.devices.levelzero.analysis.tally import tally

    columns = ("section", "name", "count", "errors", "total", "average", "min", "max", "share")
    found: list[list[Any]] = []
    seen: Counter[str] = Counter()
    table = tally(trace)
    for row in table.rows():
        seen[row["section"]] += 1
        if seen[row["section"]] <= _MOST_ROWS:
            found.append([row[name] for name in columns])
    if found:
        context.show(columns, found, is_talk=True)
    more = seen.total() - len(found)
    if more:
        context.echo(f"... {more:,} more: run 'lanescope summary --by tally {folder}'")


def _interval(text: str) -> int:
    """Return a time in ns."""
    match = re.fullmatch(r"(\d{1,6})(us|ms|s)", text, re.ASCII)
    found = int(match[1]) * {"us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}[match[2]] if match else 0
    if not layout.SAMPLING_NS[0] <= found <= layout.SAMPLING_NS[1]:
        raise ValueError("expected a time of 1ms to 3600s, e.g. 50ms")
    return found


def _telemetry(context: CommandContext, trace: Trace) -> None:
    """Print the sums of the sensors, and what there is none of."""
    from lanescope.devices.levelzero.analysis.telemetry import telemetry

    if len(trace.details["levelzero_sensors"]):
        columns = ("device", "sensor", "unit", "samples", "min", "mean", "max")
        context.show(columns, [[row[name] for name in columns] for row in telemetry(trace).rows()], is_talk=True)
    for reason in sorted({row["reason"] for row in trace.records["levelzero.samplings"].rows() if row["reason"]}):
        context.warn(f"no sensors sampled: {reason}")
    kinds = trace.records["levelzero.sensor_kinds"].rows()
    for name, kind, result in sorted({(row["name"], row["kind"], row["result"]) for row in kinds if not row["count"]}):
        context.echo(f"{name}: no {kind} sensor ({result})")


ARGUMENTS = (
    Argument("--output", "output directory (default: lanescope-COMMAND-TIME)", metavar="FOLDER", short="-o"),
    Argument(
        "--filter",
        "functions to record, separated by commas (!GLOB: all but these)",
        metavar="GLOB",
        is_repeated=True,
    ),
    Argument("--start-paused", "start recording when the program calls lanescope_start()", bool),
    Argument("--no-host-calls", "record device operations only, no API calls", bool),
    Argument("--no-device-timestamps", "record no device timestamps: operations are appended, but not timed", bool),
    Argument(
        "--host-timestamps",
        "read all timestamps on the host, without queries in the program's command lists",
        bool,
    ),
    Argument(
        "--on-failure",
        "action if the recorder cannot forward the program's signal: continue with less detail, or abort",
        default="degrade",
        choices=("degrade", "abort"),
    ),
    Argument(
        "--event-resets",
        "timing of out-of-order lists if event resets of the driver fail: reset commands (auto), watch events, or off",
        default="auto",
        choices=("auto", "watch", "off"),
    ),
    Argument("--ranks", "ranks to record; other ranks run without the recorder", ranks.parsed, metavar="0,4-7"),
    Argument("--sample", "read sensors of devices at this interval: power, frequency, ...", _interval, metavar="50ms"),
    Argument("--live", "show the tally on standard error while the program runs", bool),
    Argument("--preload", "preload the recorder, for loaders that use another tracing layer", bool),
    Argument("--no-summary", "do not print a summary", bool),
    Argument("command", "the program and its arguments", metavar="COMMAND", is_rest=True),
)

"""Sum the calls of CTF traces of any size."""

from __future__ import annotations

import re
from pathlib import Path

from lanescope.errors import UsageError
from lanescope.families.command import Argument, CommandContext, Values
from lanescope.families.options import positive_int

_COLUMNS = ("section", "name", "count", "errors", "open", "total", "average", "min", "max")


def run(context: CommandContext, values: Values) -> int:
    """Sum recordings, and CTF traces of LTTng, THAPI or another producer, piece by piece.

    Memory does not grow with the trace. Of a recording, calls, operations and memory traffic are summed; of other
    traces entries and exits of functions, and other pairs of events. Their operations are not, as they need the whole
    trace: ``lanescope summary --by tally`` has them. JSON and CSV have times in nanoseconds.
    """
    from lanescope.devices.levelzero.analysis import windows
    from lanescope.devices.levelzero.formats import ctf_reader, layout

    folder = Path(values["folder"])
    if not folder.is_dir():
        raise UsageError(f"{folder}: not a directory", hint="pass the directory of a CTF trace")
    first = next(ctf_reader.folders_of(folder), None)
    if first is not None and re.search(layout.DOMAIN, (first / "metadata").read_bytes()):
        return _recording(context, folder, as_json=values["json"])
    found = windows.tally(folder, window=values["window"])
    rows = windows.rows_of(found)
    if values["json"]:
        context.json(
            "lanescope.levelzero-tally/1",
            rows=[dict(zip(_COLUMNS, row, strict=True)) for row in rows],
            events=found.events,
            unmatched=found.unmatched,
            untimed=found.untimed,
            backwards=found.backwards,
            others=found.others,
            lost_bytes=found.lost,
            discarded=found.discarded,
            missing_packets=found.missing_packets,
            unknown_counts=found.unknown_counts,
            wide_threads=found.wide,
        )
    else:
        context.show(_COLUMNS, rows)
    if found.others:
        names = ", ".join(list(found.others)[:5]) + (", ..." if len(found.others) > 5 else "")
        context.echo(f"{sum(found.others.values()):,} events are not calls: {names}")
    if found.unmatched:
        context.warn(f"{found.unmatched:,} returns without a call")
    if found.untimed:
        context.warn(f"{found.untimed:,} starts and ends of calls without a time: they are in no sum")
    if found.backwards:
        context.warn(f"{found.backwards:,} events earlier than the one before in their file count from its time")
    if found.wide:
        context.warn(f"{found.wide:,} events of processes or threads with impossible numbers count as of one")
    if found.unknown_counts:
        context.warn(f"{found.unknown_counts:,} packets with impossible counters: what is missing there is unknown")
    if found.lost or found.discarded or found.missing_packets:
        context.warn(
            f"data loss: {found.lost:,} bytes are not events, {found.discarded:,} events discarded, "
            f"{found.missing_packets:,} packets missing"
        )
    return 0


def _recording(context: CommandContext, folder: Path, *, as_json: bool) -> int:
    from lanescope.devices.levelzero.analysis import follow

    columns = follow.total(folder).rows()
    rows = [tuple(row[name] for name in _COLUMNS) for row in columns]
    if as_json:
        context.json("lanescope.levelzero-tally/1", rows=[dict(zip(_COLUMNS, row, strict=True)) for row in rows])
    else:
        context.show(_COLUMNS, rows)
    context.echo("run 'lanescope info' for data loss of the recording")
    return 0


ARGUMENTS = (
    Argument("folder", "directory of the CTF traces", metavar="DIR"),
    Argument("--window", "events of one file in memory", positive_int, 1 << 18, "EVENTS"),
    Argument("--json", "one JSON document, schema lanescope.levelzero-tally/1", bool),
)

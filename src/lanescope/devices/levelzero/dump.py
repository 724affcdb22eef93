"""Lines for people who look at a trace record by record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import merge
from typing import Any

from lanescope.devices.base import STAGES
from lanescope.devices.levelzero.decode import LevelZeroDecoder
from lanescope.devices.levelzero.events import Events
from lanescope.errors import UsageError
from lanescope.source import Capture
from lanescope.trace import Table, Trace

#: Longer lines are shown in pieces.
_LONGEST = 1 << 20


def dump(capture: Capture, stage: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a stage.

    Args:
        capture: the opened capture.
        stage: ``packet``: the lines of the text, with their offsets; ``record``: the rows of the event model in the
            order of the stream; ``row``: the calls and operations of the timeline.
        options: decode options.
    """
    if stage not in STAGES:
        raise UsageError(f"there is no stage {stage!r}", hint="there are " + ", ".join(STAGES))
    if stage == "packet":
        yield from _lines(capture)
        return
    decoder = LevelZeroDecoder(capture, options)
    for chunk in capture.main.chunks():
        decoder.feed(chunk)
    if stage == "record":
        yield from records(decoder.events())
    else:
        yield from rows(decoder.finish()[0])


def _lines(capture: Capture) -> Iterator[str]:
    offset, rest = 0, b""
    for chunk in capture.main.chunks():
        *lines, rest = (rest + bytes(chunk)).split(b"\n")
        for line in lines:
            yield f"{offset:#010x}  {line.decode(errors='replace')}"
            offset += len(line) + 1
        if len(rest) > _LONGEST:
            yield f"{offset:#010x}  {rest.decode(errors='replace')}"
            offset, rest = offset + len(rest), b""
    if rest:
        yield f"{offset:#010x}  {rest.decode(errors='replace')}"


def records(events: Events) -> Iterator[str]:
    """Yield a line for each row of the event model, in its order."""

    def of(name: str, table: Table) -> Iterator[tuple[int, str]]:
        for row in table.rows():
            fields = " ".join(f"{key}={value}" for key, value in row.items() if key != "seq" and value is not None)
            yield row["seq"], f"{row['seq']:>8}  {name:12}  {fields}"

    tables = [of(name, table) for name, table in events.items() if "seq" in table.spec.names]
    for _, line in merge(*tables):
        yield line


def rows(trace: Trace) -> Iterator[str]:
    """Yield a line for each slice of the timeline, in order of time, and for each stat."""
    names = trace.tracks.values("name").tolist()
    slices = sorted(trace.slices.rows(), key=lambda row: (row["ts"], row["id"]))
    for row in slices:
        length = "open" if row["dur"] is None else row["dur"]
        yield f"{row['ts']:>14}  {length:>12}  {names[row['track_id']]}  {row['name']}  {row['quality']}"
    for row in trace.stats.rows():
        yield f"{row['name']}  {row['severity']}  {row['count']}"

"""Rounds by the log of the host: calls of the runtime, with the times of the host and of the device in each.

Source: columns as in the table of rounds of hw-native-sys/simpler at 6ebaf77.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.devices.ascend.analysis.executions import Executions
from lanescope.devices.ascend.formats.strace import attributes_of
from lanescope.trace import Trace

#: The outermost span of a call, before and since August 2026; below it, spans are named alike.
_CALLS = ("simpler_run", "chip.run")
_WALL = "runner_run.device_wall"
#: Parts of the device's span: columns, and names.
_PARTS = {"orchestrator": f"{_WALL}.orch", "scheduler": f"{_WALL}.sched"}

Span = dict[str, Any]


def logged_rounds(trace: Trace, files: list[Executions]) -> Iterator[dict[str, Any]]:
    """Yield a row per call of the logs, by function and process, by start.

    Args:
        trace: a trace.
        files: executions of its records files.
    """
    calls: dict[tuple[int, int], dict[str, Span]] = {}
    # The log is of many calls, a file of one: which, is known if that is on the timeline.
    placed: dict[int, set[tuple[int, int]]] = {}
    for span in trace.details["ascend_host_spans"].rows():
        if span["run"]:
            if span["slice_id"] is not None:
                placed.setdefault(span["input_id"], set()).add((span["process"], span["run"]))
            # Of several spans of one name the first counts.
            named = calls.setdefault((span["process"], span["run"]), {})
            if span["name"] not in named or span["start_ns"] < named[span["name"]]["start_ns"]:
                named[span["name"]] = span
    series: dict[tuple[int, str], list[tuple[str, dict[str, Span]]]] = {}
    for (process, _), named in calls.items():
        for call in _CALLS:
            if call in named and named[call]["clock"] == "host":
                series.setdefault((process, named[call]["function"]), []).append((call, named))
    recorded = {
        call: runs
        for runs in files
        if not runs.has_epochs and len(placed.get(runs.file, ())) == 1
        for call in placed[runs.file]
    }
    for (process, function), listed in series.items():
        listed.sort(key=lambda pair: pair[1][pair[0]]["start_ns"])
        name = f"log: function {function}" + (f" of process {process}" if len(series) > 1 else "")
        before: tuple[str, dict[str, Span]] | None = None
        for call, named in listed:
            row = _row(call, named, listed[0], before)
            runs = recorded.get((process, named[call]["run"]))
            if runs is not None:
                row |= {"executions": len(runs), "tasks": len(distinct(runs.task))}
            yield {"group": str(named[call]["run"]), "series": name, **row}
            before = call, named


def _row(
    call: str, named: dict[str, Span], first: tuple[str, dict[str, Span]], before: tuple[str, dict[str, Span]] | None
) -> dict[str, Any]:
    """Return the times of a call; ``first`` is the first call of the series, ``before`` the one before it."""
    span, wall = named[call], named.get(f"{call}.{_WALL}")
    parts = {column: named.get(f"{call}.{name}") for column, name in _PARTS.items()}
    known = [part for part in parts.values() if part is not None]
    row: dict[str, Any] = {
        "executions": None,
        "tasks": None,
        "busy": None,
        "share": None,
        "start": span["start_ns"] - first[1][first[0]]["start_ns"],
        "length": span["duration_ns"],
        "device": None if wall is None else wall["duration_ns"],
        "pause": None,
        "period": None,
        "device_pause": None,
        # Both are on one clock of the device, which has an origin of its own in each call.
        "effective": max(part["start_ns"] + part["duration_ns"] for part in known)
        - min(part["start_ns"] for part in known)
        if known
        else None,
        **{column: None if part is None else part["duration_ns"] for column, part in parts.items()},
    }
    if before is not None:
        previous = before[1][before[0]]
        row["period"] = span["start_ns"] - previous["start_ns"]
        row["pause"] = span["start_ns"] - previous["start_ns"] - previous["duration_ns"]
        row["device_pause"] = _between(before[1].get(f"{before[0]}.{_WALL}"), wall)
    return row


def _between(one: Span | None, other: Span | None) -> int | None:
    """Return the time between two spans of a device, by its counter; None if that was not read, or of two devices."""
    if one is None or other is None:
        return None
    left, right = attributes_of(one["attributes"]), attributes_of(other["attributes"])
    same = ("dev_id", "dev_cnt_hz")
    if any(left.get(key) != right.get(key) for key in same):
        return None
    try:
        end, begin, frequency = int(left["dev_end_cycle"]), int(right["dev_start_cycle"]), int(right["dev_cnt_hz"])
    except (KeyError, ValueError):
        return None
    if min(end, begin, frequency) <= 0:
        return None
    ticks = begin - end
    length = abs(ticks) * 1_000_000_000 // frequency
    return (length if ticks >= 0 else -length) if length < 1 << 62 else None


def median_of(values: list[int]) -> int:
    """Return the middle one of some numbers, of two the lower."""
    return int(np.sort(values)[(len(values) - 1) // 2])

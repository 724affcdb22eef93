"""What the reader makes of a file, in the shape of the oracle's."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import lanescope
from lanescope.trace import Trace


def read(folder: Path, content: bytes | str, name: str = "any.json") -> Trace:
    """Return the trace of a file."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return lanescope.open(path, family="chrome")


def places(trace: Trace) -> list[tuple[str, str]]:
    """Return parent and name of each track."""
    names = trace.tracks.values("name").tolist()
    parents = trace.tracks["parent_id"].tolist()
    return [("" if parent is None else names[parent], name) for parent, name in zip(parents, names, strict=True)]


def slices(trace: Trace) -> list[Any]:
    """Return lane, time, duration, name and category of each slice, in the time of the file."""
    zero, where = trace.time.epoch_ns, places(trace)
    return [
        (where[row["track_id"]], row["ts"] + zero, row["dur"], row["name"], row["category"])
        for row in trace.slices.rows()
    ]


def instants(trace: Trace) -> Counter[Any]:
    """Return lane, time, name and category of all instants."""
    zero, where = trace.time.epoch_ns, places(trace)
    return Counter(
        (where[row["track_id"]], row["ts"] + zero, row["name"], row["category"]) for row in trace.instants.rows()
    )


def samples(trace: Trace) -> Counter[Any]:
    """Return counter, time and value of all samples."""
    zero, where = trace.time.epoch_ns, places(trace)
    return Counter((where[row["track_id"]], row["ts"] + zero, row["value"]) for row in trace.counters.rows())


def flows(trace: Trace) -> Counter[Any]:
    """Return both ends of all flows: lane, time, and the slice with its lane, begin, end, name and category."""
    zero, where = trace.time.epoch_ns, places(trace)
    known = [(lane, ts, None if dur is None else ts + dur, *rest) for lane, ts, dur, *rest in slices(trace)]
    found: Counter[Any] = Counter()
    for row in trace.flows.rows():
        ends = []
        for side in ("src", "dst"):
            at = row[f"{side}_slice_id"]
            ends.append((where[row[f"{side}_track_id"]], row[f"{side}_ts"] + zero, None if at is None else known[at]))
        found[tuple(ends)] += 1
    return found


def stats(trace: Trace) -> dict[str, int]:
    """Return the counts of stats by name."""
    return {row["name"]: row["count"] for row in trace.stats.rows()}

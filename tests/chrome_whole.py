"""Chrome trace events of a whole trace, as the writer made them before it took batches: its oracle.

Processes and threads are numbered, named and put in order before the first event.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from lanescope._native import core
from lanescope.io.event_args import drawn_events, drawn_samples
from lanescope.io.event_stream import EventStream, encode_utf8
from lanescope.trace import Dictionary, Table, Trace
from lanescope.trace.row_packing import rows_of

_EXACT_NS = 1 << 53


def whole_events(trace: Trace, findings: Table | None = None) -> tuple[list[dict[str, Any]], int]:
    """Return the events of a trace, and what was taken off their times."""
    drawing = EventStream(trace, findings)
    base = _base(drawing, trace)
    text = b",\n".join(_descriptors(trace, drawing))
    encoder = _encoder(trace, drawing, base)
    while block := encoder.fill(1 << 20):
        text += bytes(block)
    return json.loads(b"[" + text + b"]"), base


def drawn(events: list[dict[str, Any]], base: int, *, has_rows: bool = True) -> Counter[str]:
    """Return events without the numbers that a writer is free to choose: those of processes, threads and flows.

    Args:
        events: of one file.
        base: what was taken off their times.
        has_rows: whether it counts which of the threads of a track an event is on.
    """
    about: dict[tuple[int, int], dict[str, Any]] = {}
    flows: dict[Any, list[str]] = {}
    found: Counter[str] = Counter()
    for event in events:
        if event["ph"] == "M":
            about.setdefault((event["pid"], event["tid"]), {}).update({event["name"]: event["args"]})
    for event in events:
        if event["ph"] == "M":
            continue
        process, thread = about[event["pid"], 0], about[event["pid"], event["tid"]]
        place: tuple[Any, ...] = (process["process_name"], process["process_sort_index"], thread["thread_name"])
        if has_rows:
            place += (thread["thread_sort_index"],)
        else:
            place = (place[0], thread["thread_name"]["name"].split(" #")[0])
        rest = {key: value for key, value in event.items() if key not in ("pid", "tid", "id", "ts")}
        if not has_rows and event["ph"] == "C":
            rest["name"] = rest["name"].split(" #")[0]
        text = repr((place, round(event["ts"] * 1000) + base, sorted(rest.items(), key=repr)))
        if "id" in event:
            flows.setdefault(event["id"], []).append(text)
        else:
            found[text] += 1
    found.update(" -> ".join(sorted(ends)) for ends in flows.values())
    return found


def _base(drawing: EventStream, trace: Trace) -> int:
    times = [drawing.placement.begin, drawing.points.ts, trace.counters.values("ts")]
    filled = [column for column in times if len(column)]
    latest = max((int(column.max()) for column in filled), default=0)
    return min(int(column.min()) for column in filled) if latest > _EXACT_NS else 0


@dataclass(frozen=True, slots=True)
class _Threads:
    """Process and thread of each row of the drawing, and the path of its track below the process."""

    process: Any
    thread: Any
    name: list[str]


def _names(trace: Trace) -> list[str]:
    return [name.encode("utf-8", "replace").decode() for name in trace.tracks.values("name").tolist()]


def _threads(trace: Trace, drawing: EventStream) -> _Threads:
    tracks = trace.tracks
    parents = np.where(tracks.valid("parent_id"), rows_of(tracks.values("id"), tracks.values("parent_id")), -1).tolist()
    names = _names(trace)
    roots: list[int] = []
    paths: list[str] = []
    for row in range(len(tracks)):
        path, at = [names[row]], row
        while parents[at] >= 0:
            at = parents[at]
            path.append(names[at])
        roots.append(at)
        paths.append(" / ".join(reversed(path[:-1] or path)))
    process = [root + 1 for root in roots] + [len(tracks) + 1]
    paths.append("findings")
    track = drawing.lanes.track.tolist()
    label = [paths[t] + (f" #{row}" if row else "") for t, row in zip(track, drawing.lanes.row.tolist(), strict=True)]
    return _Threads(
        np.array([process[t] for t in track], np.uint32),
        np.arange(1, len(track) + 1, dtype=np.uint32) + len(tracks) + 1,  # no thread has the id of a process
        label,
    )


def _descriptors(trace: Trace, drawing: EventStream) -> Iterator[bytes]:
    """Yield the names of processes and threads, and their order."""
    threads = _threads(trace, drawing)
    names = _names(trace)
    suffix = " [cycles]" if trace.time.time_unit == "cycles" else ""
    sort_keys = trace.tracks.values("sort_key").tolist()
    # There is always one: what follows begins with a comma.
    yield _metadata("trace_name", 0, 0, name="lanescope")
    for process in dict.fromkeys(threads.process.tolist()):
        is_track = process <= len(names)
        yield _metadata("process_name", process, 0, name=names[process - 1] + suffix if is_track else "findings")
        yield _metadata("process_sort_index", process, 0, sort_index=sort_keys[process - 1] if is_track else len(names))
    order = np.lexsort((drawing.lanes.row, _tree_order(trace)[drawing.lanes.track]))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    for row, (process, thread) in enumerate(zip(threads.process.tolist(), threads.thread.tolist(), strict=True)):
        yield _metadata("thread_name", process, thread, name=threads.name[row])
        yield _metadata("thread_sort_index", process, thread, sort_index=int(rank[row]))


def _tree_order(trace: Trace) -> Any:
    """Return the place of each track when the tree is read from top to bottom; one more for findings."""
    tracks = trace.tracks
    children: dict[int, list[int]] = {}
    parents = np.where(tracks.valid("parent_id"), rows_of(tracks.values("id"), tracks.values("parent_id")), -1).tolist()
    for row in np.lexsort((np.arange(len(tracks)), tracks.values("sort_key"))).tolist():
        children.setdefault(parents[row], []).append(row)
    places = np.zeros(len(tracks) + 1, np.int64)
    places[-1] = len(tracks)
    stack, place = children.get(-1, [])[::-1], 0
    while stack:
        row = stack.pop()
        places[row] = place
        place += 1
        stack += children.get(row, [])[::-1]
    return places


def _metadata(kind: str, process: int, thread: int, **arguments: Any) -> bytes:
    return json.dumps(
        {"ph": "M", "pid": process, "tid": thread, "name": kind, "args": arguments}, separators=(",", ":")
    ).encode()


def _encoder(trace: Trace, drawing: EventStream, base: int) -> core.ChromeEncoder:
    spans, points = drawn_events(trace, drawing)
    threads = _threads(trace, drawing)
    lanes, order = drawing.lanes, drawing.lanes.file_order
    kinds = trace.flows.column("kind")
    dictionary = kinds.dictionary or Dictionary()
    return core.ChromeEncoder(
        spans,
        points,
        drawn_samples(trace, drawing),
        encode_utf8(drawing.names.texts),
        encode_utf8(drawing.categories.texts),
        encode_utf8(dictionary.texts),
        np.concatenate([np.zeros(1, np.int32), kinds.values]),  # ids of flows begin at 1
        threads.process[order],
        threads.thread[order],
        [threads.name[row] for row in order.tolist()],
        lanes.ranges[order],
        base,
    )

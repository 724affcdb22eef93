"""Folders of CTF of any producer -> streams of events in one order, each with its process and thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import FIRST_STREAM
from lanescope.errors import InputError
from lanescope.source import Capture, Source
from lanescope.wire import tsdl

Int64 = npt.NDArray[np.int64]

_METADATA = "metadata"
#: Beside the streams lie indexes to them, which say nothing else. Source: LTTng 2.13, ``index/*.idx``.
_INDEX = "index"
#: Fields that name the process and the thread of an event, the first that is there. Source: LTTng's contexts.
_PROCESS = ("vpid", "pid")
_THREAD = ("vtid", "tid", "thread")
_CPU = ("cpu_id",)
#: Traces in one folder, at most.
_MOST_TRACES = 4096


@dataclass(slots=True, eq=False)
class Trace:
    """One trace: a folder with a description.

    Attributes:
        source: the description.
        part: name of its folder within the capture.
        about: what it says.
        reader: reads its streams.
        host: name of the machine, empty if it is not recorded.
    """

    source: Source
    part: str
    about: tsdl.Description
    reader: tsdl.Reader
    host: str


@dataclass(slots=True, eq=False)
class Stream:
    """One file of a trace.

    Attributes:
        source: the file.
        part: its name within the capture.
        trace: its trace.
        number: its place among all files.
        walk: its packets and events.
        ts: int64 [events], ns since the Unix epoch.
        timed: bool [events], whether they have a time.
        thread: int32 [events], row of threads.
        seq: int64 [events], position among the events of all streams, from 1.
        wide: events whose process or thread has an impossible number.
    """

    source: Source
    part: str
    trace: Trace
    number: int
    walk: tsdl.Walk
    ts: Int64
    timed: npt.NDArray[np.bool_]
    thread: npt.NDArray[np.int32] = field(default_factory=lambda: np.empty(0, np.int32))
    seq: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    wide: int = 0


@dataclass(slots=True, eq=False)
class Foreign:
    """Everything that a folder holds.

    Attributes:
        traces: its traces.
        streams: their files.
        processes: host and process ID, -1 where it is not recorded.
        threads: process and thread ID, or a number below 0 as ``thread_name`` reads it.
        apart: how many streams have clocks that cannot be compared with that of the first.
    """

    traces: list[Trace]
    streams: list[Stream]
    processes: list[tuple[str, int]]
    threads: list[tuple[int, int]]
    apart: int


def read(capture: Capture) -> Foreign:
    """Read all traces of a capture.

    Raises:
        InputError: a description cannot be read, or the capture is a packed file.
    """
    if capture.main.container != "raw":
        raise InputError(f"{capture.main.path}: a CTF trace is a directory", hint="pass the directory")
    main = Path(capture.main.path)
    root = main.parent if capture.folder is None else capture.folder
    made = Foreign([], [], [], [], 0)
    processes: dict[tuple[str, int], int] = {}
    threads: dict[tuple[int, int], int] = {}
    for folder in [root] if capture.folder is None else _folders(root):
        part = folder.relative_to(root).as_posix() if folder != root else folder.name
        path = folder / _METADATA
        is_main = path == main
        source = capture.main if is_main else capture.open_sidecar(f"{part}/{_METADATA}", path)
        trace = _trace(source, part)
        if not is_main:
            source.close()
        made.traces.append(trace)
        for file in _files(folder):
            made.streams.append(_stream(capture, f"{part}/{file.name}", file, trace, len(made.streams)))
    for stream in made.streams:
        stream.thread = threads_of(stream, processes, threads)
    made.processes, made.threads = list(processes), list(threads)
    made.apart = _order(made.streams)
    return made


def traces(root: Path) -> Iterator[tuple[Trace, list[Path]]]:
    """Yield all traces below a folder, each with its files.

    Raises:
        InputError: a description cannot be read.
    """
    for folder in _folders(root):
        source = Source(folder / _METADATA, hashes=False)
        trace = _trace(source, folder.name)
        source.close()
        yield trace, _files(folder)


def _trace(source: Source, part: str) -> Trace:
    try:
        about = tsdl.describe(tsdl.metadata_text(bytes(source.read().data)))
        reader = tsdl.Reader(about, (*_PROCESS, *_THREAD, *_CPU))
    except tsdl.TsdlError as error:
        raise InputError(f"{source.path}: {error}", hint=error.hint) from None
    return Trace(source, part, about, reader, str(about.environment.get("hostname", "")))


def _folders(root: Path) -> Iterator[Path]:
    found = sorted(path.parent for path in root.rglob(_METADATA) if path.is_file())
    if len(found) > _MOST_TRACES:
        raise InputError(
            f"{root}: {len(found)} CTF traces", hint=f"pass a directory with at most {_MOST_TRACES} of them"
        )
    return iter(found)


def _files(folder: Path) -> list[Path]:
    """Return the streams of a folder: its files but for the description, hidden and empty ones."""
    return [
        path
        for path in sorted(folder.iterdir())
        if path.name != _METADATA and path.name[0] != "." and path.is_file() and path.stat().st_size
    ]


def _stream(capture: Capture, part: str, path: Path, trace: Trace, number: int) -> Stream:
    source = capture.open_sidecar(part, path)
    walk = trace.reader.read(source.read())
    source.close()  # there may be more streams than files may be open
    ts, timed = times_of(trace, walk)
    return Stream(source, part, trace, number, walk, ts, timed)


def times_of(trace: Trace, walk: tsdl.Walk) -> tuple[Int64, npt.NDArray[np.bool_]]:
    """Return the Unix time of each event, and whether it has one."""
    kinds = walk.packet("stream").astype(np.int64)
    present = np.flatnonzero(np.bincount(kinds, minlength=1)).tolist()
    clocks = [trace.about.clocks.get(trace.reader.streams[number].clock) for number in present]
    if len(present) == 1 and clocks[0] is not None:
        return unix_times(clocks[0], walk.times)
    ts, timed = np.zeros(len(walk.times), np.int64), np.zeros(len(walk.times), np.bool_)
    of_event = np.repeat(kinds, walk.packet("events").astype(np.int64))
    for number, clock in zip(present, clocks, strict=True):
        if clock is not None:
            rows = np.flatnonzero(of_event == number)
            ts[rows], timed[rows] = unix_times(clock, walk.times[rows])
    return ts, timed


def unix_times(clock: tsdl.Clock, cycles: npt.NDArray[np.uint64]) -> tuple[Int64, npt.NDArray[np.bool_]]:
    """Return Unix times in ns, rounded down, and which of them a timeline can hold."""
    begin, second = clock.origin_ns, np.uint64(clock.frequency)
    latest = int(cycles.max()) if len(cycles) else 0
    if clock.frequency == layout.NS_PER_SECOND and begin >= 0 and begin + latest < layout.LATEST_NS:
        return cycles.view(np.int64) + np.int64(begin), np.ones(len(cycles), np.bool_)
    fits = cycles < np.uint64(1 << 62)
    known = np.where(fits, cycles, np.uint64(0))
    if clock.frequency == layout.NS_PER_SECOND:
        ns = known.astype(np.int64)
        first = begin
    else:
        # Whole seconds, and the cycles of the last one: below 2^64 for all frequencies below 18 GHz.
        shift = clock.offset % clock.frequency
        first = (clock.offset_s + clock.offset // clock.frequency) * layout.NS_PER_SECOND
        known = known + np.uint64(shift)
        whole, rest = known // second, known % second
        if clock.frequency < 1 << 34:
            part = rest * np.uint64(layout.NS_PER_SECOND) // second
        else:
            part = (rest / float(clock.frequency) * layout.NS_PER_SECOND).astype(np.uint64)
        fits &= whole < np.uint64((1 << 62) // layout.NS_PER_SECOND)
        whole = np.where(fits, whole, np.uint64(0))
        ns = (whole * np.uint64(layout.NS_PER_SECOND) + part).astype(np.int64)
    if abs(first) >= 1 << 62:
        return np.zeros(len(cycles), np.int64), np.zeros(len(cycles), np.bool_)
    fits &= (ns <= np.int64(min(layout.LATEST_NS - first, np.iinfo(np.int64).max))) & (ns >= np.int64(-first))
    return np.where(fits, ns + np.int64(first), 0), fits


def threads_of(
    stream: Stream, processes: dict[tuple[str, int], int], threads: dict[tuple[int, int], int]
) -> npt.NDArray[np.int32]:
    """Return the thread of each event."""
    count, process_id = len(stream.walk.kinds), -1
    contexts = stream.walk.contexts
    # Of each combination of fields.
    combinations = len(stream.walk.carried) if len(contexts) else min(count, 1)
    pid, tid = _first(stream, _PROCESS), _first(stream, _THREAD)
    wrong = np.zeros(combinations, np.bool_)
    if pid is None:
        known = stream.trace.about.environment.get("vpid", stream.trace.about.environment.get("pid", -1))
        process_id = known if isinstance(known, int) and 0 <= known <= layout.MOST_PID else -1
    else:
        pid = _possible(pid, layout.MOST_PID, wrong)
    if tid is None:
        cpu = _first(stream, _CPU)
        tid = np.full(combinations, -1 - FIRST_STREAM - stream.number, np.int64)
        if cpu is not None:
            tid = -1 - _possible(cpu, FIRST_STREAM - 1, wrong)
    else:
        tid = _possible(tid, layout.MOST_PID, wrong)
    stream.wide = int(np.count_nonzero(wrong[contexts])) if wrong.any() else 0
    rows = np.empty(combinations, np.int32)
    # Threads are numbered as they come.
    owners = [process_id] * combinations if pid is None else pid.tolist()
    for row, (owner, number) in enumerate(zip(owners, tid.tolist(), strict=True)):
        process = processes.setdefault((stream.trace.host, owner), len(processes))
        rows[row] = threads.setdefault((process, number), len(threads))
    return core.ctf_lookup(rows, contexts) if len(contexts) else np.repeat(rows, count)


def _possible(numbers: Int64, most: int, wrong: npt.NDArray[np.bool_]) -> Int64:
    """Return numbers, ``most`` in the place of those that are not of 0 to ``most``, which become ``wrong``."""
    if not len(numbers) or (int(numbers.min()) >= 0 and int(numbers.max()) <= most):
        return numbers
    is_wrong = (numbers < 0) | (numbers > most)
    wrong |= is_wrong
    return np.where(is_wrong, most, numbers)


def _first(stream: Stream, names: Sequence[str]) -> Int64 | None:
    """Return the first of some context fields that the first event has, int64 [combinations]; None if it has none."""
    carried, known = stream.walk.carried, stream.trace.reader.carried
    for name in names:
        if name not in known:
            continue
        column = carried[:, known.index(name)]
        if len(column) and column[0] != tsdl.ABSENT:
            found: Int64 = column
            return found
    return None


def _order(streams: Sequence[Stream]) -> int:
    """Put the events of all streams into one order: by time, those of one stream as they stand.

    Returns:
        How many streams have clocks that cannot be compared with that of the first.
    """
    if not streams:
        return 0
    ts = streams[0].ts if len(streams) == 1 else np.concatenate([_ascending(stream.ts) for stream in streams])
    seq = np.arange(1, len(ts) + 1)
    if len(streams) > 1 and bool((ts[1:] < ts[:-1]).any()):
        seq[np.argsort(ts, kind="stable")] = seq.copy()
    at = 0
    for stream in streams:
        stream.seq = seq[at : at + len(stream.ts)]
        at += len(stream.ts)
    clocks = [_clocks(stream) for stream in streams]
    first = next((clock for found in clocks for clock in found), None)
    return sum(
        any(clock != first and not (first is not None and clock[0] and first[0]) for clock in found) for found in clocks
    )


def _ascending(ts: Int64) -> Int64:
    """Return times of which none is before an earlier one: those that are become that one's."""
    return np.maximum.accumulate(ts) if bool((ts[1:] < ts[:-1]).any()) else ts


def _clocks(stream: Stream) -> list[tuple[bool, str]]:
    """Return of each clock of a stream whether it is absolute, and what those have in common that it compares with."""
    about, found = stream.trace.about, list[tuple[bool, str]]()
    kinds = stream.walk.packet("stream")[stream.walk.packet("events") > 0].astype(np.int64)
    for row in np.flatnonzero(np.bincount(kinds, minlength=1)).tolist():
        clock = about.clocks.get(stream.trace.reader.streams[row].clock)
        if clock is None:
            continue
        # LTTng's own clock has the system's time for its offset. Source: babeltrace2, which takes it for absolute too.
        absolute = clock.is_absolute or str(about.environment.get("tracer_name", "")).startswith("lttng")
        found.append((absolute, clock.uid or f"{stream.trace.part}\0{clock.name}"))
    return found

"""One case in a process of its own: ``python benchmarks/case.py FAMILY STAGE FILE``; prints one JSON object.

Stages: what a user runs on a capture (``STAGES``), or what it is compared with (``OTHERS``). Times are processor
seconds of all threads, the least of some repeats; the first run is not counted, it pays for imports and page faults;
what the process held at most is read behind it.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from lanescope import Trace

#: Repeat until so much processor time is spent, or so often; a run that is longer than the last is not repeated.
ENOUGH_SECONDS, ENOUGH_TIMES, LONG_SECONDS = 0.3, 20, 2.0


class Nowhere:
    """A binary file that forgets: a writer is measured, not the disk under it."""

    def write(self, data: Any) -> int:
        """Take it."""
        return len(memoryview(data).cast("B"))


def peak_bytes() -> int:
    """Return the high-water mark of this process; what getrusage says includes the process that it was forked from."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def least(run: Callable[[], object], first: float = 0.0, enough: float = ENOUGH_SECONDS) -> float:
    """Return the processor seconds of one run; ``first`` is what an uncounted run took."""
    if first > LONG_SECONDS:  # what it paid once is lost in it
        return first
    taken: list[float] = []
    while not taken or (sum(taken) < enough and len(taken) < ENOUGH_TIMES):
        begin = time.process_time()
        run()
        taken.append(time.process_time() - begin)
    return min(taken)


def copying(size: int) -> float:
    """Return the seconds that a copy of so many bytes takes, both sides touched before: the bound of any program."""
    source, target = np.ones(max(size, 1), np.uint8), np.ones(max(size, 1), np.uint8)
    times = max(1, (1 << 22) // max(size, 1))  # a clock of microseconds needs more than a few kilobytes

    def copy() -> None:
        for _ in range(times):
            np.copyto(target, source)

    copy()
    return least(copy, enough=0.05) / times


def materialised(trace: Trace) -> int:
    """Have every column of every table made; return their bytes."""
    return sum(table.column(name).values.nbytes for table in trace.tables().values() for name in table.spec.names)


# What users run: from a file, or from a trace, to the bytes it makes (0: a table).


def stage(name: str, family: str, path: Path, scratch: Path) -> tuple[Trace, Callable[[], int]]:
    """Return the decoded trace, and the function that runs a stage and returns the bytes that it writes."""
    import lanescope

    def decode() -> int:
        materialised(lanescope.open(path, family))
        return 0

    trace = lanescope.open(path, family)
    if name == "decode":
        return trace, decode
    if name in ("perfetto", "perfetto zlib", "chrome"):
        from lanescope.io import chrome, perfetto

        write: Any = chrome.write if name == "chrome" else perfetto.write

        def export() -> int:
            written: int = write(trace, Nowhere(), compress=name == "perfetto zlib").bytes
            return written

        return trace, export
    if name == "parquet":
        from lanescope.io import parquet

        numbers = iter(range(1_000_000))
        return trace, lambda: parquet.write(trace, scratch / f"{next(numbers)}.parquet").bytes
    if name == "check":
        return trace, lambda: 0 * len(lanescope.check(trace))
    return trace, lambda: 0 * len(lanescope.summary(trace))


STAGES = ("decode", "check", "summary", "perfetto", "perfetto zlib", "chrome", "parquet")


def ours(name: str, family: str, path: Path) -> dict[str, Any]:
    """Measure one of ``STAGES``."""
    # The summary and the checks read the slices; everything else has a file on one side.
    with tempfile.TemporaryDirectory() as folder:
        before = peak_bytes()
        begin = time.process_time()
        trace, run = stage(name, family, path, Path(folder))
        decoded = time.process_time()
        written = run()
        after = time.process_time()
        peak = peak_bytes()
        taken = least(run, after - decoded if name != "decode" else max(after - decoded, decoded - begin))
    read = sum(file.stat().st_size for file in path.parent.iterdir() if "truth" not in file.name)
    slices = trace.slices
    table = sum(slices.column(column).values.nbytes for column in ("track_id", "ts", "dur", "name"))
    moved = written or (read if name == "decode" else table)
    return {
        "slices": len(slices),
        "seconds": taken,
        "memcpy_seconds": copying(moved),
        "bytes": read if name == "decode" else written,
        "idle_rss": before,
        "peak_rss": peak,
    }


# What it is compared with.


def events(family: str, path: Path) -> tuple[dict[str, np.ndarray], list[str]]:
    """Return begins and ends of all slices in order of time, and the names by code."""
    import lanescope

    slices = lanescope.open(path, family).slices
    known = slices.valid("dur")
    ts, dur, track = (slices.values(name)[known] for name in ("ts", "dur", "track_id"))
    name = slices.codes("name")[known]
    time_ = np.concatenate([ts, ts + dur])
    kind = np.repeat(np.array([0, 1], np.int8), len(ts))
    # Where one slice ends and another begins, the end comes first; long ones open before short ones.
    order = np.lexsort((np.concatenate([-dur, dur]), 1 - kind, time_))
    both = {"ts": time_, "kind": kind, "track": np.tile(track, 2), "name": np.tile(name, 2)}
    dictionary = slices.column("name").dictionary
    return {column: values[order] for column, values in both.items()}, list(dictionary.texts if dictionary else [])


def save_events(family: str, path: Path) -> int:
    """Leave ``events`` beside the capture, for programs that do not know us; return the number of slices."""
    columns, names = events(family, path)
    np.savez(path.parent / "truth-events.npz", **columns)
    (path.parent / "truth-names.json").write_text(json.dumps(names))
    return len(columns["ts"]) // 2


def bindings(family: str, path: Path) -> tuple[int, Callable[[], object]]:
    """Perfetto packets built and serialised with the official protobuf bindings, in the shortest form there is."""
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

    columns, _ = events(family, path)
    rows = list(zip(*(columns[name].tolist() for name in ("ts", "kind", "track", "name")), strict=True))
    begin, end = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END

    def build() -> bytes:
        trace = TraceProto()
        for ts, kind, track, name in rows:
            packet = trace.packet.add()
            packet.timestamp = ts
            packet.trusted_packet_sequence_id = 5
            event = packet.track_event
            event.track_uuid = track
            if kind:
                event.type = end
            else:
                event.type = begin
                event.name_iid = 1 + name
        written: bytes = trace.SerializeToString()
        return written

    return len(rows) // 2, build


def dumps(family: str, path: Path) -> tuple[int, Callable[[], object]]:
    """Chrome events as dicts through the standard library's JSON; the dicts are there before."""
    import lanescope

    slices = lanescope.open(path, family).slices
    rows = [
        {"ph": "X", "name": name, "pid": 1, "tid": track, "ts": ts / 1000, "dur": dur / 1000}
        for name, track, ts, dur in zip(
            slices.values("name").tolist(),
            *(slices.values(name).tolist() for name in ("track_id", "ts", "dur")),
            strict=True,
        )
    ]
    return len(rows), lambda: json.dumps({"traceEvents": rows})


def pyarrow(family: str, path: Path) -> tuple[int, Callable[[], object]]:
    """Write the same tables with pyarrow, the same compression: through the same Arrow export as anybody would."""
    import io

    import pyarrow as pa
    import pyarrow.parquet as pq

    import lanescope

    trace = lanescope.open(path, family)

    def write() -> None:
        for table in trace.tables().values():
            pq.write_table(pa.table(table), io.BytesIO(), compression="zstd")

    return len(trace.slices), write


def reference(family: str, path: Path) -> tuple[int, Callable[[], object]]:
    """Records with the slow codec that is made from the declared layout; no slices are made of them."""
    import lanescope

    slices = len(lanescope.open(path, family).slices)
    if family == "aie":
        from lanescope.devices.aie.formats.layout import MODE0
        from lanescope.devices.aie.formats.raw_frames import Packets, Words

        words = Words.of(np.frombuffer(path.read_bytes(), np.uint8))
        packets = Packets.of(words)
        streams = [words.values[packets.payload(source)].tolist() for source in range(len(packets.headers))]
        return slices, lambda: [sum(1 for _ in MODE0.decode(stream)) for stream in streams]
    if family == "cuda":
        from lanescope.devices.cuda.formats.layout import TIRX_RECORD

        records = np.load(path)[1:].tolist()
        return slices, lambda: [TIRX_RECORD.decode(word) for word in records if word]
    if family == "perfetto":
        from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto

        content = path.read_bytes()
        return slices, lambda: sum(packet.HasField("track_event") for packet in TraceProto.FromString(content).packet)
    if family in ("ascend", "chrome", "kineto"):
        texts = [file.read_bytes() for file in path.parent.iterdir() if file.suffix == ".json"]
        return slices, lambda: [json.loads(text) for text in texts]
    lines = path.read_text().splitlines()
    return slices, lambda: [plain_line(line) for line in lines]


def plain_line(line: str) -> tuple[list[str], str, dict[str, str]]:
    """Take one line of a text trace apart and no further: what stands before the name, the name, the fields."""
    head, _, fields = line.partition(": { ")
    *where, name = head.split(" - ")
    pairs = (field.partition(": ") for field in fields.rstrip(" }").split(", "))
    return where, name, {key: value for key, _, value in pairs}


OTHERS = {"bindings": bindings, "dumps": dumps, "pyarrow": pyarrow, "reference": reference}


def other(name: str, family: str, path: Path) -> dict[str, Any]:
    """Measure one of ``OTHERS``."""
    slices, run = OTHERS[name](family, path)
    return {"slices": slices, "seconds": least(run)}


def main(arguments: Iterator[str]) -> None:
    """Measure what is asked for."""
    family, name, path = next(arguments), next(arguments), Path(next(arguments))
    if name == "events":
        found: dict[str, Any] = {"slices": save_events(family, path)}
    else:
        found = (other if name in OTHERS else ours)(name, family, path)
    print(json.dumps(found))


if __name__ == "__main__":
    main(iter(sys.argv[1:]))

"""The Ascend family: swimlane captures of the task runtime."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lanescope.devices.base import Decoder, Family, Option, Simulation, non_negative_int, number, whole_hertz

if TYPE_CHECKING:
    from lanescope.source import Capture, Head, Match
    from lanescope.trace import StatSpec, Table, TableSpec, Trace


def _one_of(*words: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in words:
            raise ValueError("it is none of " + ", ".join(words))
        return text

    return parse


def _average(text: str) -> float:
    value = number(text)
    if value < 0:
        raise ValueError("it is negative")
    return value


class Ascend(Family):
    """Records that AI cores, their schedulers and the orchestrator of an Ascend chip keep, as the host wrote them."""

    name = "ascend"
    title = "Huawei Ascend swimlane: tasks on AI cores, scheduler phases, submits, dependencies"
    options = (
        Option("deps", str, "the task graph; deps.json beside the capture when not given", metavar="FILE|none"),
        Option("names", str, "the name map; name_map*.json beside the capture when not given", metavar="FILE|none"),
        Option(
            "rank",
            non_negative_int,
            "rank of the process; that of a folder rankN above the capture when not given",
            metavar="N",
        ),
        Option(
            "device",
            str,
            "name of the chip: captures of one share its counter, so they can be merged",
            metavar="NAME",
            settles="device",
        ),
        Option("index", non_negative_int, "raw dumps of bare buffers: their core or thread", metavar="N"),
        Option(
            "frequency",
            whole_hertz,
            "raw dumps that do not name their chip: of its counter",
            metavar="HZ",
            settles="frequency",
        ),
        Option("generation", str, "raw dumps that do not say theirs: v2, v3 or v3c", metavar="NAME"),
        Option("detail", _one_of("low", "full"), "low: only executions, phases, submits and edges", metavar="low|full"),
        Option(
            "arrows", _one_of("edge", "block"), "one for each edge, or for each pair of blocks", metavar="edge|block"
        ),
        Option("overhead", bool, "eight counters: idle cores, ready tasks, and where there are both"),
    )
    sim_options = (
        Option("tasks", non_negative_int, "tasks of the graph", 400),
        Option("generation", str, "v1a, v1b, v1c, v2, v3, v3c or v4", "v3", metavar="NAME"),
        Option("level", non_negative_int, "1 core timing, 2 and dispatches, 3 and scheduler phases, 4 and submits", 4),
        Option("aic", non_negative_int, "cube cores", 24),
        Option("aiv", non_negative_int, "vector cores", 48),
        Option("threads", non_negative_int, "scheduler threads", 3),
        Option("clock", whole_hertz, "frequency of the counter", 50_000_000, metavar="HZ"),
        Option("mix", number, "share of tasks with parts on cube and vector cores", 0.05),
        Option("spmd", number, "share of tasks that run as several blocks", 0.03),
        Option("dummy", number, "share of tasks without a kernel", 0.02),
        Option("alloc", number, "share of allocations", 0.02),
        Option("predicated", number, "share of tasks that are skipped (v3c, v4)", 0.01),
        Option("speculative", number, "share of waiting tasks that are staged early (v3, v3c, v4)", 0.15),
        Option("producers", _average, "producers of a task, on average", 1.4),
        Option("violations", non_negative_int, "tasks that do not wait for their producers", 0),
        Option("epochs", non_negative_int, "runs in the file (v4)", 1),
        Option("host", bool, "the host orchestrates (v3c)", default=False),
        Option("anchors", bool, "readings that join the host's clock", default=True),
        Option("deps", bool, "write the task graph", default=True),
        Option("names", bool, "write a name map", default=True),
        Option("drop_aicore", non_negative_int, "executions whose record is lost", 0),
        Option("drop_aicpu", non_negative_int, "dispatches whose record is lost", 0),
        Option("drop_both", non_negative_int, "dispatches that both streams lose", 0),
        Option("drop_phases", non_negative_int, "scheduler phases that are lost", 0),
        Option("overflow", non_negative_int, "buffers of single cores that are lost as a whole", 0),
        Option("buffer", non_negative_int, "records in a buffer", 1024),
        Option("clock_steps", non_negative_int, "cores whose clock steps", 0),
        Option("duplicates", non_negative_int, "rows that are written twice", 0),
        Option("ambiguous", non_negative_int, "rows that another one of the same key contradicts", 0),
        Option("bad_rows", non_negative_int, "elements that are no rows", 0),
        Option("unknown_kinds", non_negative_int, "phases of a kind that nobody knows", 0),
        Option("wrap", bool, "let the dispatch counters run through their end", default=False),
        Option("shuffle", bool, "rows in any order, as several collectors leave them", default=False),
        Option("truth", str, "rows: every execution; totals: sums only", "rows", metavar="WHAT"),
    )
    verbs: Mapping[str, str] = MappingProxyType({"fan": "lanescope.cli.fan"})
    exports = ("swimlane",)
    summaries = ("phase", "thread-phase", "scheduler", "core", "function", "setup")
    streaming = False
    # Text and columns of an execution with its phases, submit and edges.
    bytes_per_row = 1200

    def probe(self, head: Head) -> Match:
        """Look for the keys of a records file."""
        return _probe(head)

    def decode(self, capture: Capture, options: Mapping[str, Any]) -> Decoder:
        """Return a decoder for the capture."""
        from lanescope.devices.ascend.decoder import AscendDecoder

        return AscendDecoder(capture, options)

    def dump(self, capture: Capture, stage: str, options: Mapping[str, Any]) -> Iterator[str]:
        """Yield a line for each entry of the file, element of its lists, or row of the trace."""
        from lanescope.devices.ascend.dump import dump

        return dump(capture, stage, options)

    def simulate(self, options: Mapping[str, Any], seed: int) -> Simulation:
        """Run a task graph on a simulated chip."""
        from lanescope.devices.ascend.simulate import simulate

        return simulate(options, seed)

    def export(self, format: str) -> Callable[[Trace], Iterable[bytes]]:
        """Return the writer of one of ``exports``."""
        from lanescope.devices.ascend.export.swimlane import export

        return export

    def summarise(self, by: str, trace: Trace) -> Table:
        """Return one of ``summaries``."""
        from lanescope.devices.ascend.analysis.report import summarize

        return summarize(by, trace)

    def tables(self) -> tuple[TableSpec, ...]:
        """Return the declarations of the detail tables."""
        from lanescope.devices.ascend.schema import TABLES

        return TABLES

    def stats(self) -> tuple[StatSpec, ...]:
        """Return the declarations of the stats."""
        from lanescope.devices.ascend.schema import STATS

        return STATS

    def formats(self) -> Iterable[Any]:
        """Return the device's records."""
        from lanescope.devices.ascend.formats.device_structs import DEVICE_RECORDS

        return DEVICE_RECORDS


FAMILY = Ascend()

#: Keys of the level, newest first.
_LEVELS = ("chip_swimlane_level", "l2_swimlane_level", "l2_perf_level")
#: Other keys at the top of a records file, and keys of its metadata.
_KEYS = (
    *("aicore_tasks", "aicpu_tasks", "aicpu_scheduler_phases", "aicpu_orchestrator_phases", "scheduler_tasks"),
    *("scheduler_records", "host_orchestrator_phases", "clock_freq_hz", "core_types", "core_to_thread"),
)
_V1_KEYS = ("tasks", "start_time_us", "dispatch_time_us", "duration_us", "ring_id")
_DEPS_KEYS = ("kernel_ids", "edges", "tensors")
#: Bytes behind a key that are looked at: the first row fits.
_VALUE_BYTES = 256

#: A ready entry: core or thread, stream, address and sequence of the buffer, padding.
_ENTRY = struct.Struct("<IIQI12s")
_MAX_INDEX = 255
#: By the number of the stream in ready entries: bytes of a buffer and of a record, how many records it holds.
_BUFFERS = ((32064, 32, 1000), (1048640, 64, 16384), (524352, 32, 16384), (32832, 32, 1024))
_LEAST_REGION = 127104 + 152 * 192
_SURE, _SEEN = 8, 64
_NO_PADDING = bytes(12)


def _probe_dump(head: Head) -> Match:
    """Look for ready entries, or for records of one stream in a file of whole buffers."""
    from lanescope.source import Match

    data = head.data
    if len(data) < _ENTRY.size:
        return Match(0)
    number = _entry(data, 0)
    if number >= 0:
        used = _used(data[_ENTRY.size :], number)
        if used:
            return Match(95 if used >= _SURE else 60, "dump", f"a ready entry, {used} records behind it fit")
    if head.size >= _LEAST_REGION and len(data) == 1 << 16:
        entries = [_entry(data, at) for at in range(0, len(data), _ENTRY.size)]
        used = sum(number >= 0 for number in entries)
        if min(entries) >= -1 and used:
            return Match(95 if used >= _SURE else 60, "dump", f"a header with {used} ready entries")
    for number, (size, _, _) in enumerate(_BUFFERS):
        used = 0 if head.size % size else _used(data, number)
        if used:
            return Match(95 if used >= _SURE else 60, "dump", f"whole buffers, the first {used} records fit")
    return Match(0)


def _entry(data: bytes, at: int) -> int:
    """Return the stream of a ready entry; -1: it was never used; -2: it is none."""
    index, number, address, _, padding = _ENTRY.unpack_from(data, at)
    if number >= len(_BUFFERS) or index > _MAX_INDEX or padding != _NO_PADDING:
        return -2
    return int(number) if address else -1


def _used(data: bytes, number: int) -> int:
    """Return how many of the first records hold something; 0 if one cannot be of the stream."""
    _, size, most = _BUFFERS[number]
    used = 0
    for at in range(0, min(len(data) - size + 1, _SEEN * size, most * size), size):
        begin, end = struct.unpack_from("<QQ", data, at)
        if max(begin, end) >> 62 or (end and end < begin):
            return 0
        # What stands behind the stamps: padding, a kind, padding, the way from receive to start.
        tail = data[at + 20 : at + size]
        if number == 0:
            fits = tail == _NO_PADDING
        elif number == 3:
            fits = int.from_bytes(tail[8:], "little") <= begin
        else:
            fits = int.from_bytes(tail[:4], "little") <= 13 if number == 1 else not any(tail[8:])
        if not fits:
            return 0
        used += begin > 0
    return used


def _probe(head: Head) -> Match:
    from lanescope.source import Match

    # Searched for by bytes: patterns are slow to compile, and every capture is asked.
    data = head.data
    begin = data[:_VALUE_BYTES].lstrip()
    if not (begin.startswith(b"{") and begin[1:].lstrip().startswith(b'"')):
        return _probe_dump(head) if b"\0" in data[:4096] else Match(0)
    key = next((key for key in _LEVELS if _value(data, key)), "")
    keys = _present(data, _KEYS)
    if not key:
        old = _present(data, _V1_KEYS)
        if _value(data, "version")[:1] in (b"1", b"2", b"3", b"4") and len(old) >= 4 and not _present(data, _DEPS_KEYS):
            return Match(90, "v1a", f"keys version, {', '.join(old)}")
        # The level may stand behind the lists.
        return Match(min(30 + 20 * len(keys), 89), "", f"keys {', '.join(keys)}") if keys else Match(0)
    level = _value(data, key).split(b",")[0].split(b"}")[0].strip()
    if level not in (b"1", b"2", b"3", b"4"):
        return Match(60, "", f"{key} is no level")
    score = 98 if keys or _present(data, _V1_KEYS) else 70
    return Match(score, _generation(key, data, keys), f"keys {', '.join(sorted((key, *keys)))}")


def _value(data: bytes, key: str) -> bytes:
    """Return the begin of what stands behind a key and its colon; empty without the key."""
    quoted = b'"%b"' % key.encode()
    at = data.find(quoted)
    begin = at + len(quoted)
    behind = data[begin : begin + _VALUE_BYTES].lstrip() if at >= 0 else b""
    return behind[1:].lstrip() if behind.startswith(b":") else b""


def _present(data: bytes, keys: Iterable[str]) -> list[str]:
    return sorted(key for key in keys if _value(data, key))


def _generation(key: str, data: bytes, keys: Iterable[str]) -> str:
    row = _value(data, "aicore_tasks").replace(b" ", b"").replace(b"\n", b"")
    length = row.split(b"]")[0].count(b",") + 1 if row.startswith(b"[[") else 0
    if key == "l2_perf_level":
        return "v1b"
    if not row and b'"start_time_us"' in data:
        return "v1c"
    if length == 7 or not {"scheduler_tasks", "scheduler_records"}.isdisjoint(keys):
        return "v4"
    if length == 5:
        return "v2"
    return "v3c" if key == "chip_swimlane_level" else "v3"

"""Is it a capture of the task runtime? Judged by keys or by entries, with the standard library only."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lanescope.source.detection import Detection

if TYPE_CHECKING:
    from lanescope.source.detection import FileHead

#: Keys of the level, newest first.
_LEVELS = ("chip_swimlane_level", "l2_swimlane_level", "l2_perf_level")
#: Other keys at the top of a records file, and keys of its metadata.
_KEYS = (
    *("aicore_tasks", "aicpu_tasks", "aicpu_scheduler_phases", "aicpu_orchestrator_phases", "scheduler_tasks"),
    *("scheduler_records", "host_orchestrator_phases", "clock_freq_hz", "core_types", "core_to_thread"),
)
_V1_KEYS = ("tasks", "start_time_us", "dispatch_time_us", "duration_us", "ring_id")
_DEPS_KEYS = ("kernel_ids", "edges", "tensors")
#: Files next to a capture, and what all of each kind contain.
_TEXTS = (
    ("hardware counters", (b"thread_id,core_id,task_id,", b"event_type")),
    ("a log", (b"[STRACE] v=1 pid=",)),
)
_OBJECTS = (
    ("resources of scopes", (b'"task_window_start"', b'"dep_pool_end"', b'"phase"')),
    ("phases of the host", (b'"host_monotonic_ns"', b'"records"', b'"start_ns"')),
    ("a task graph", (b'"kernel_ids"', b'"edges"')),
    ("a task graph", (b'"kernel_ids"', b'"task_id"', b'"tasks"')),
    ("a name map", (b'"callable_id_to_name"',)),
)
#: Bytes behind a key that are looked at: the first row fits.
_VALUE_BYTES = 256

#: A ready entry: core or thread, stream, address and sequence of the buffer, padding.
_ENTRY = struct.Struct("<IIQI12s")
_MAX_INDEX = 255
#: By the number of the stream in ready entries: bytes of a buffer and of a record, how many records it holds.
_BUFFERS = ((32064, 32, 1000), (1048640, 64, 16384), (524352, 32, 16384), (32832, 32, 1024))
#: By the number of the stream: bytes before the count.
_COUNT_AT = (32000, 1048576, 524288, 32768)
#: The smallest header, and pools of one core and of the threads.
_LEAST_REGION = 127104 + 10 * 192
_SURE, _HINTED, _SEEN = 8, 4, 64
_NO_PADDING = bytes(12)
#: Stamps are below: years of a counter of 1 GHz.
_LATEST = 1 << 58


def _probe_dump(head: FileHead) -> Detection:
    """Look for a header, for ready entries, or for records of one stream in a file of whole buffers."""
    data = head.data
    if len(data) < _ENTRY.size:
        return Detection(0)
    if head.size >= _LEAST_REGION and len(data) == 1 << 16:
        used = _queued(data)
        if used:
            return Detection(95, "dump", f"a header with {used} ready entries")
    entries, used = _entries(data)
    if used or entries > 1:
        reason = f"{entries} ready entries" if entries > 1 else "a ready entry"
        return Detection(95 if used >= _SURE else 60, "dump", f"{reason}, {used} records behind fit")
    for number, (size, _, _) in enumerate(_BUFFERS):
        used = 0 if head.size % size else _used(data, number)
        if used:
            return Detection(95 if used >= _SURE else 60, "dump", f"whole buffers, the first {used} records fit")
    used = max(_used(data, number) for number in range(len(_BUFFERS)))
    if used < _HINTED:
        return Detection(0)
    return Detection(
        40,
        "",
        f"{used} records of Ascend device memory, but not whole buffers of one stream",
        "pass each buffer with its ready entry, or whole buffers of one core or thread",
    )


def _entries(data: bytes) -> tuple[int, int]:
    """Return how many ready entries with buffers data starts with, and how many records of those buffers fit."""
    at = found = used = 0
    while len(data) - at >= _ENTRY.size and (number := _entry(data, at)) >= 0:
        found += 1
        at += _ENTRY.size
        used += _used(data[at:], number)
        count = data[at + _COUNT_AT[number] : at + _COUNT_AT[number] + 4]
        if len(count) < 4 or not 1 <= int.from_bytes(count, "little") <= _BUFFERS[number][2]:
            break
        at += _BUFFERS[number][0]
    return found, used


def _queued(data: bytes) -> int:
    """Return how many entries of a queue of ready entries are in use; 0 if it is none."""
    used = 0
    for at in range(0, len(data), _ENTRY.size):
        number = _entry(data, at)
        if number < -1:
            return 0
        used += number >= 0
    return used


def _entry(data: bytes, at: int) -> int:
    """Return the stream of a ready entry; -1: it was never used; -2: it is none."""
    index, number, address, _, padding = _ENTRY.unpack_from(data, at)
    if number >= len(_BUFFERS) or index > _MAX_INDEX or padding != _NO_PADDING:
        return -2
    return int(number) if address else -1


def _used(data: bytes, number: int) -> int:
    """Return how many records a buffer of a stream begins with; 0 if its count, where it is seen, is impossible.

    Slots behind the count contain anything, as does padding.
    """
    _, size, most = _BUFFERS[number]
    count = data[_COUNT_AT[number] : _COUNT_AT[number] + 4]
    if len(count) == 4:
        most = int.from_bytes(count, "little") if int.from_bytes(count, "little") <= most else 0
    used = 0
    for at in range(0, min(len(data) - size + 1, _SEEN * size, most * size), size):
        begin, end = struct.unpack_from("<QQ", data, at)
        # A core's slot that no execution reached.
        if not begin and number == 3:
            continue
        last = data[at + 28 : at + 32]
        fits = 0 < begin < _LATEST and (begin <= end < _LATEST or not end)
        if number == 1:
            fits = fits and int.from_bytes(data[at + 20 : at + 24], "little") <= 13
        if number == 3:
            fits = fits and int.from_bytes(last, "little") <= begin
        if not fits:
            break
        used += 1
    return used


def detect(head: FileHead) -> Detection:
    """Look for the keys of a records file, or for ready entries and records of a dump."""
    # Searched for by bytes: patterns are slow to compile, and every capture is asked.
    data = head.data
    begin = data[:_VALUE_BYTES].lstrip()
    if not (begin.startswith(b"{") and begin[1:].lstrip().startswith(b'"')):
        return _probe_dump(head) if b"\0" in data[:4096] else _probe_sidecar(data, _TEXTS)
    key = next((key for key in _LEVELS if _value(data, key)), "")
    keys = _present(data, _KEYS)
    if not key:
        old = _present(data, _V1_KEYS)
        if _value(data, "version")[:1] in (b"1", b"2", b"3", b"4") and len(old) >= 4 and not _present(data, _DEPS_KEYS):
            return Detection(90, "v1a", f"keys version, {', '.join(old)}")
        # The level may stand behind the lists.
        if keys:
            return Detection(min(30 + 20 * len(keys), 89), "", f"keys {', '.join(keys)}")
        return _probe_sidecar(data, _OBJECTS)
    level = _value(data, key).split(b",")[0].split(b"}")[0].strip()
    if level not in (b"1", b"2", b"3", b"4"):
        return Detection(60, "", f"{key} is not a valid level")
    score = 98 if keys or _present(data, _V1_KEYS) else 70
    return Detection(score, _format_version(key, data, keys), f"keys {', '.join(sorted((key, *keys)))}")


def _probe_sidecar(data: bytes, kinds: Iterable[tuple[str, tuple[bytes, ...]]]) -> Detection:
    """Look for a file that lies next to a capture, and is none without it."""
    what = next((what for what, words in kinds if all(word in data for word in words)), "")
    if not what:
        return Detection(0)
    return Detection(
        40,
        "",
        f"{what} of an Ascend run, without its records",
        "pass chip_swimlane_records.json of the same run: files next to it are read as well",
    )


def _value(data: bytes, key: str) -> bytes:
    """Return the begin of what stands behind a key and its colon; empty without the key."""
    quoted = b'"%b"' % key.encode()
    at = data.find(quoted)
    begin = at + len(quoted)
    behind = data[begin : begin + _VALUE_BYTES].lstrip() if at >= 0 else b""
    return behind[1:].lstrip() if behind.startswith(b":") else b""


def _present(data: bytes, keys: Iterable[str]) -> list[str]:
    return sorted(key for key in keys if _value(data, key))


def _format_version(key: str, data: bytes, keys: Iterable[str]) -> str:
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

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


def _probe_dump(head: FileHead) -> Detection:
    """Look for ready entries, or for records of one stream in a file of whole buffers."""
    data = head.data
    if len(data) < _ENTRY.size:
        return Detection(0)
    number = _entry(data, 0)
    if number >= 0:
        used = _used(data[_ENTRY.size :], number)
        if used:
            return Detection(95 if used >= _SURE else 60, "dump", f"a ready entry, {used} records behind it fit")
    if head.size >= _LEAST_REGION and len(data) == 1 << 16:
        entries = [_entry(data, at) for at in range(0, len(data), _ENTRY.size)]
        used = sum(number >= 0 for number in entries)
        if min(entries) >= -1 and used:
            return Detection(95 if used >= _SURE else 60, "dump", f"a header with {used} ready entries")
    for number, (size, _, _) in enumerate(_BUFFERS):
        used = 0 if head.size % size else _used(data, number)
        if used:
            return Detection(95 if used >= _SURE else 60, "dump", f"whole buffers, the first {used} records fit")
    return Detection(0)


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


def detect(head: FileHead) -> Detection:
    """Look for the keys of a records file, or for ready entries and records of a dump."""
    # Searched for by bytes: patterns are slow to compile, and every capture is asked.
    data = head.data
    begin = data[:_VALUE_BYTES].lstrip()
    if not (begin.startswith(b"{") and begin[1:].lstrip().startswith(b'"')):
        return _probe_dump(head) if b"\0" in data[:4096] else Detection(0)
    key = next((key for key in _LEVELS if _value(data, key)), "")
    keys = _present(data, _KEYS)
    if not key:
        old = _present(data, _V1_KEYS)
        if _value(data, "version")[:1] in (b"1", b"2", b"3", b"4") and len(old) >= 4 and not _present(data, _DEPS_KEYS):
            return Detection(90, "v1a", f"keys version, {', '.join(old)}")
        # The level may stand behind the lists.
        return Detection(min(30 + 20 * len(keys), 89), "", f"keys {', '.join(keys)}") if keys else Detection(0)
    level = _value(data, key).split(b",")[0].split(b"}")[0].strip()
    if level not in (b"1", b"2", b"3", b"4"):
        return Detection(60, "", f"{key} is not a valid level")
    score = 98 if keys or _present(data, _V1_KEYS) else 70
    return Detection(score, _format_version(key, data, keys), f"keys {', '.join(sorted((key, *keys)))}")


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

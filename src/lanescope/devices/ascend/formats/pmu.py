"""Hardware counters of executions: ``pmu.csv``, one line each, the counters in columns of their own.

Source: hw-native-sys/simpler at 6ebaf77, runs of its simulated platforms (all counters are 0 there).
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.records import Bytes, Tally
from lanescope.errors import InputError

Int64 = npt.NDArray[np.int64]

#: Columns that are no counters.
_KEYS = ("thread_id", "core_id", "task_id", "func_id", "core_type", "event_type")
_NUMBER = re.compile(rb"0x[0-9a-fA-F]{1,16}|[0-9]{1,19}")
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{0,63}")
_MAX_COLUMNS = 64
#: Events that a core may have counted outside of the recorded stamps of an execution, and the most in a second of it.
MOST_OUTSIDE, MOST_A_SECOND = 10_000_000, 10_000_000_000


@frozen_class
class Pmu:
    """Counters of executions.

    Attributes:
        core, event_type: int64 [n].
        thread: int64 [n], of the scheduler, -1 where not recorded.
        function, core_type: int64 [n], -1 where not recorded; types are 0 for cube and 1 for vector cores.
        task_id: uint64 [n].
        counters: names.
        values: int64 [n, counters].
        tally: what of the file was read; a count of lines.
    """

    thread: Int64
    core: Int64
    event_type: Int64
    function: Int64
    core_type: Int64
    task_id: npt.NDArray[np.uint64]
    counters: tuple[str, ...]
    values: Int64
    tally: Tally

    def __len__(self) -> int:
        return len(self.core)


def read_pmu(text: Bytes, path: str) -> Pmu:
    """Read the counters; a line with other columns than the first, or with no numbers, is left out and counted.

    Args:
        text: the file, uint8.
        path: for messages.

    Raises:
        InputError: the first line does not name the columns.
    """
    lines = text.tobytes().split(b"\n")
    names = lines[0].rstrip(b"\r").split(b",")
    known = [name.decode() for name in names if _NAME.fullmatch(name)]
    is_valid = len(known) == len(names) == len(set(known)) <= _MAX_COLUMNS
    if not is_valid or not {"core_id", "task_id"} <= set(known):
        raise InputError(f"{path}: no counters found", hint="pass the pmu.csv of the run")
    texts: list[bytes] = []
    tasks: list[int] = []
    quick = _pattern(known)
    good, bad, count, first, at = len(lines[0]), 0, 0, None, len(lines[0]) + 1
    for line in lines[1:]:
        offset, at = at, at + len(line) + 1
        match = quick.fullmatch(line)
        if match:
            begin, end = match.span(1)
            row = line[:begin] + b"0" + line[end:], match[1]
        elif not line.strip():
            continue
        else:
            row = _row(line, known)
        if not row[1]:
            first = offset if first is None else first
            bad, count = bad + len(line), count + 1
            continue
        good += len(line)
        texts.append(row[0])
        tasks.append(_number(row[1]))
    # Parsed at once: a number at a time takes as long as decoding a capture.
    table = np.fromstring(b",".join(texts).decode(), np.int64, sep=",").reshape(len(texts), len(known))
    counters = tuple(name for name in known if name not in _KEYS)

    def column(name: str, default: int) -> Int64:
        return table[:, known.index(name)] if name in known else np.full(len(texts), default)

    return Pmu(
        thread=column("thread_id", -1),
        core=column("core_id", 0),
        event_type=column("event_type", 0),
        function=column("func_id", -1),
        core_type=column("core_type", -1),
        task_id=np.array(tasks, np.uint64),
        counters=counters,
        values=table[:, [known.index(name) for name in counters]],
        tally=Tally(good, bad, count, first),
    )


def encode_pmu(pmu: Pmu) -> bytes:
    """Return the file of counters, as ``read_pmu`` reads it; an unknown thread is 0."""
    lines = [",".join(("thread_id", "core_id", "task_id", "func_id", "core_type", *pmu.counters, "event_type"))]
    rows = zip(pmu.core.tolist(), pmu.task_id.tolist(), pmu.values.tolist(), pmu.event_type.tolist(), strict=True)
    keys = zip(pmu.function.tolist(), pmu.core_type.tolist(), strict=True)
    threads = np.maximum(pmu.thread, 0).tolist()
    for thread, (core, task, values, event), (function, kind) in zip(threads, rows, keys, strict=True):
        lines.append(f"{thread},{core},0x{task:016x},{function},{kind},{','.join(map(str, values))},{event}")
    return "\n".join([*lines, ""]).encode()


def _pattern(columns: list[str]) -> re.Pattern[bytes]:
    """Return what lines of recorders match; its one group is the task ID."""
    cells = {
        "core_id": rb"[0-9]{1,9}",
        "task_id": rb"(0x[0-9a-fA-F]{1,16}|[0-9]{1,19})",
        "func_id": rb"-1|[0-9]{1,9}",
    }
    return re.compile(b",".join(b"(?:%b)" % cells.get(name, rb"[0-9]{1,18}") for name in columns))


def _row(line: bytes, columns: list[str]) -> tuple[bytes, bytes]:
    """Return the cells of a line as decimals, with 0 as the task ID, and the task ID; both empty if it is not valid."""
    cells = line.rstrip(b"\r").split(b",")
    if len(cells) != len(columns) or not all(_NUMBER.fullmatch(cell) for cell in cells):
        return b"", b""
    task = cells[columns.index("task_id")]
    row = [0 if name == "task_id" else _number(cell) for name, cell in zip(columns, cells, strict=True)]
    if row[columns.index("core_id")] >= 1 << 31 or max(row) >= 1 << 63:
        return b"", b""
    return b",".join(b"%d" % value for value in row), task


def _number(cell: bytes) -> int:
    return int(cell, 16 if cell.startswith(b"0x") else 10)

"""Hardware counters of executions: ``pmu.csv``, one line each, the counters in columns of their own.

Source: hw-native-sys/simpler at 6ebaf77, runs of its simulated platforms (all counters are 0 there).
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.records import Bytes
from lanescope.errors import InputError
from lanescope.trace.declaration import frozen_class

Int64 = npt.NDArray[np.int64]

#: Columns that are no counters.
_KEYS = ("thread_id", "core_id", "task_id", "func_id", "core_type", "event_type")
_NUMBER = re.compile(rb"0x[0-9a-fA-F]{1,16}|[0-9]{1,19}")
_NAME = re.compile(rb"[A-Za-z_][A-Za-z0-9_]{0,63}")
_MAX_COLUMNS = 64


@frozen_class
class Pmu:
    """Counters of executions.

    Attributes:
        core, event_type: int64 [n].
        task_id: uint64 [n].
        counters: names.
        values: int64 [n, counters].
        good_bytes, bad_bytes, bad_lines, bad_first: as in ``HostPhases``.
    """

    core: Int64
    event_type: Int64
    task_id: npt.NDArray[np.uint64]
    counters: tuple[str, ...]
    values: Int64
    good_bytes: int
    bad_bytes: int
    bad_lines: int
    bad_first: int | None

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
    rows: list[list[int]] = []
    good, bad, count, first, at = len(lines[0]), 0, 0, None, len(lines[0]) + 1
    core = known.index("core_id")
    for line in lines[1:]:
        offset, at = at, at + len(line) + 1
        if not line.strip():
            continue
        row = _row(line, len(known))
        if (
            row is None
            or row[core] >= 1 << 31
            or any(value >= 1 << 63 for name, value in zip(known, row, strict=True) if name != "task_id")
        ):
            first = offset if first is None else first
            bad, count = bad + len(line), count + 1
            continue
        good += len(line)
        rows.append(row)
    table = np.array(rows, np.uint64).reshape(len(rows), len(known))
    column = {name: table[:, place] for place, name in enumerate(known)}
    counters = tuple(name for name in known if name not in _KEYS)
    event = column.get("event_type", np.zeros(len(rows), np.uint64))
    values = table[:, [known.index(name) for name in counters]].astype(np.int64)
    return Pmu(
        column["core_id"].astype(np.int64),
        event.astype(np.int64),
        column["task_id"],
        counters,
        values,
        good,
        bad,
        count,
        first,
    )


def _row(line: bytes, columns: int) -> list[int] | None:
    cells = line.rstrip(b"\r").split(b",")
    if len(cells) != columns or not all(_NUMBER.fullmatch(cell) for cell in cells):
        return None
    return [int(cell, 16 if cell.startswith(b"0x") else 10) for cell in cells]

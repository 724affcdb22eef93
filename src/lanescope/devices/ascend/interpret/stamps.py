"""The stamps of a capture, on either clock, which say where its time axis begins and ends."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.layout import AICORE, AICPU, LIFECYCLE, PHASES, SUBMITS
from lanescope.devices.ascend.formats.records import Records, Section
from lanescope.devices.ascend.interpret.execution_table import receives

Int64 = npt.NDArray[np.int64]


def device_stamps(records: Records) -> Iterable[Int64]:
    """Yield all device stamps that were taken (above 0), of all rows: those that will be dropped count for the base."""
    aicore = records[AICORE]
    receive, _ = receives(aicore)
    arrays = [receive, aicore["start_cycles"], aicore["end_cycles"]]
    arrays += [records[AICPU][name] for name in ("dispatch_cycles", "finish_cycles")]
    arrays += [records[layout][name] for layout in (PHASES, SUBMITS) for name in ("start_cycles", "end_cycles")]
    if LIFECYCLE.name in records.sections:
        arrays += [records[LIFECYCLE][cell.name] for cell in LIFECYCLE.cells if cell.unit == "cycles"]
    for values in arrays:
        taken = values[values > 0] if len(values) and values.min() <= 0 else values
        if len(taken):
            yield taken


def host_stamps(rows: Section) -> Iterable[Int64]:
    """Yield the stamps of a list of the host that were taken."""
    for name in ("start_host_ns", "end_host_ns"):
        taken = rows[name][rows[name] > 0]
        if len(taken):
            yield taken


def within(stamps: Sequence[Int64], limit: int) -> list[Int64]:
    """Return stamps without those beyond a limit."""
    return [values if values.max(initial=0) <= limit else values[values <= limit] for values in stamps]


def range_of(arrays: Iterable[Int64]) -> tuple[int, int] | None:
    """Return the first and the last of all stamps, None without any."""
    filled = [values for values in arrays if len(values)]
    if not filled:
        return None
    return min(int(values.min()) for values in filled), max(int(values.max()) for values in filled)

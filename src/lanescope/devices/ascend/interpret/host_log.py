"""Which spans of a host's log belong to a capture, and whether its clock is proven to be that of the capture."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.host_phases import HostPhases
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, HOST_SUBMITS, PHASES, SUBMITS, UPLOADS
from lanescope.devices.ascend.formats.records import Records
from lanescope.devices.ascend.formats.strace import HostLog
from lanescope.devices.ascend.interpret.clock import Alignment, align
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Lists with stamps of the device, and their stamps.
_DEVICE = (
    (AICORE, ("start_cycles", "end_cycles")),
    (AICPU, ("dispatch_cycles", "finish_cycles")),
    (PHASES, ("start_cycles", "end_cycles")),
    (SUBMITS, ("start_cycles", "end_cycles")),
)


@frozen_class
class PlacedLog:
    """A log next to a capture.

    Attributes:
        log: all of it.
        spans: rows of the spans that are placed on the timeline.
        messages: rows of the messages that are.
        of_others: how many spans of the host are of other runs than the capture's.
        reason: why no span is placed; empty if some are.
    """

    log: HostLog
    spans: Int64
    messages: Int64
    of_others: int
    reason: str


def place(log: HostLog, records: Records, phases: HostPhases | None) -> PlacedLog:
    """Find the run of a capture in a log.

    The clock of the log is that of the capture if everything that the capture places on a host's clock, executions
    included, lies inside the outermost span of exactly one run: two clocks of nanoseconds since some boot do not agree
    by chance. Nothing is placed without that proof.

    Args:
        log: the log.
        records: the capture.
        phases: what the host recorded of itself; None without.
    """
    none = np.empty(0, np.int64)
    is_host = ~log.of_device
    window = _window(records, phases)
    if isinstance(window, str):
        return PlacedLog(log, none, none, 0, window)
    first, last = window
    roots = np.flatnonzero(is_host & (log.depth == 0) & (log.run > 0))
    roots = roots[(log.begin[roots] <= first) & (log.begin[roots] + log.length[roots] >= last)]
    if phases is not None and len(phases):
        roots = roots[np.isin(log.process[roots], phases.process) & np.isin(log.run[roots], phases.run)]
    if len(roots) != 1:
        reason = "no run of the log contains the capture" if not len(roots) else "several runs contain the capture"
        return PlacedLog(log, none, none, 0, reason)
    root = roots[0]
    begin, end = log.begin[root], log.begin[root] + log.length[root]
    mine = is_host & (log.process == log.process[root]) & (log.run == log.run[root])
    # Spans of no run are of whoever drives the runs.
    mine |= is_host & (log.run == 0) & (log.begin < end) & (log.begin + log.length > begin)
    during: Mask = (log.message_at >= begin) & (log.message_at <= end)
    others = int(np.count_nonzero(is_host & ~mine))
    return PlacedLog(log, np.flatnonzero(mine), np.flatnonzero(during), others, "")


def _window(records: Records, phases: HostPhases | None) -> tuple[int, int] | str:
    """Return the first and last host time of a capture, each toward the other by the error; or why there is none."""
    frequency = records.metadata.get("clock_freq_hz")
    if type(frequency) is not int or frequency <= 0:
        return "the frequency of the counter is not known"
    device = [records[layout][name] for layout, names in _DEVICE for name in names]
    taken = [stamps[stamps > 0] for stamps in device]
    stamps = np.array([part(rows) for part in (np.min, np.max) for rows in taken if len(rows)], np.int64)
    found = align(records.metadata, frequency, (int(stamps.min()), int(stamps.max())) if len(stamps) else None)
    if not isinstance(found, Alignment):
        return found
    error = max(reading.error_ns for reading in found.readings)
    ends = []
    if len(stamps):
        low, high = found.host_ns(np.array([stamps.min(), stamps.max()])).tolist()
        ends += [(low + error, high - error)]
    host = [records[layout][name] for layout in (HOST_SUBMITS, UPLOADS) for name in ("start_host_ns", "end_host_ns")]
    host += [] if phases is None else [phases.begin, phases.end]
    ends += [(int(rows[rows > 0].min()), int(rows[rows > 0].max())) for rows in host if (rows > 0).any()]
    if not ends:
        return "nothing in the capture has a time"
    return min(low for low, _ in ends), max(high for _, high in ends)


def as_phases(placed: PlacedLog, phases: HostPhases | None) -> HostPhases | None:
    """Return the spans that are placed behind the phases of the host: both are drawn alike."""
    log, rows = placed.log, placed.spans
    if not len(rows):
        return phases
    spans = HostPhases(
        phase=log.name[rows],
        begin=log.begin[rows],
        end=log.begin[rows] + log.length[rows],
        detail=np.zeros(len(rows), np.uint64),
        process=log.process[rows],
        thread=log.thread[rows],
        run=log.run[rows],
        span=rows,
        dropped=0,
        unknown_keys=0,
        unknown_values=0,
        good_bytes=0,
        bad_bytes=0,
        bad_lines=0,
        bad_first=None,
    )
    return spans if phases is None else phases.with_rows(spans)

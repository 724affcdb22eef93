"""Which spans of a host's log belong to a capture, and whether its clocks are proven to be those of the capture.

The span of a device around a run has readings of the counter that the capture's records are stamped with; parts of it
count from the first of these parts, and when that began is not in the log.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.host_phases import HostPhases
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, HOST_SUBMITS, PHASES, SUBMITS, UPLOADS
from lanescope.devices.ascend.formats.records import Records, Tally
from lanescope.devices.ascend.formats.strace import HostLog
from lanescope.devices.ascend.interpret.clock import Alignment, align
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Attributes of the span of a device around a run: its counter at both ends, and how fast that counts.
_READINGS = "dev_start_cycle", "dev_end_cycle", "dev_cnt_hz"
#: The span of the host that waits for the device, and the parts of its names.
_RUNNER = ".runner_run"
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
        walls: spans of the device around the runs of the capture.
        contradictions: spans of the device that are of a run of the capture, and not around its records.
    """

    log: HostLog
    spans: Int64
    messages: Int64
    of_others: int
    reason: str
    walls: Walls
    contradictions: int


@frozen_class
class Walls:
    """Spans of a device around runs, by its counter.

    Attributes:
        row: int64 [n], rows of the log.
        begin, end: int64 [n], cycles.
        frequency: int64 [n], Hz.
    """

    row: Int64
    begin: Int64
    end: Int64
    frequency: Int64

    def take(self, which: Int64 | Mask) -> Walls:
        """Return some of them."""
        return Walls(self.row[which], self.begin[which], self.end[which], self.frequency[which])


def walls_of(log: HostLog) -> Walls:
    """Return the spans of devices that have readings of a counter."""
    rows = np.flatnonzero(log.of_device & np.array(["dev_start_cycle=" in text for text in log.attributes], np.bool_))
    begin, end, frequency = log.numbers(rows, *_READINGS).T
    # A phase without a stamp reads as 0.
    return Walls(rows, begin, end, frequency).take((begin > 0) & (end >= begin) & (frequency > 0))


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
    window, root = _window(records, phases), -1
    reason = window if isinstance(window, str) else ""
    if not isinstance(window, str):
        first, last = window
        roots = np.flatnonzero(is_host & (log.depth == 0) & (log.run > 0))
        roots = roots[(log.begin[roots] <= first) & (log.begin[roots] + log.length[roots] >= last)]
        if phases is not None and len(phases):
            roots = roots[np.isin(log.process[roots], phases.process) & np.isin(log.run[roots], phases.run)]
        if len(roots) == 1:
            root = int(roots[0])
        else:
            reason = "no run of the log contains the capture" if not len(roots) else "several runs contain the capture"
    walls, contradictions = _walls(log, records, root)
    if root < 0:
        return PlacedLog(log, none, none, 0, reason, walls, contradictions)
    begin, end = log.begin[root], log.begin[root] + log.length[root]
    mine = is_host & (log.process == log.process[root]) & (log.run == log.run[root])
    # Spans of no run are of whoever drives the runs.
    mine |= is_host & (log.run == 0) & (log.begin < end) & (log.begin + log.length > begin)
    during: Mask = (log.message_at >= begin) & (log.message_at <= end)
    others = int(np.count_nonzero(is_host & ~mine))
    return PlacedLog(log, np.flatnonzero(mine), np.flatnonzero(during), others, "", walls, contradictions)


def _walls(log: HostLog, records: Records, root: int) -> tuple[Walls, int]:
    """Return the spans of the device around the runs of a capture, and how many contradict its records.

    The counter is that of the capture if it counts as fast, and if everything that the device stamped in a run lies
    inside exactly one span: the spans of a device do not overlap. Chips of one host may have started together, so where
    several spans fit, the run has to be known by its host, or by its number.

    Args:
        log: the log.
        records: the capture.
        root: row of the outermost span of the run that the capture is proven to be of; -1: not known.
    """
    frequency = records.metadata.get("clock_freq_hz")
    every, contradictions = walls_of(log), 0
    if type(frequency) is not int or not (every.frequency == frequency).any():
        return every.take(np.empty(0, np.int64)), 0
    every = every.take(every.frequency == frequency)
    kept: list[int] = []
    joined = align(records.metadata, frequency, None)
    for epoch, first, last in extents(records):
        known = _identified(log, every, root, epoch)
        fits: Mask = (every.begin <= first) & (every.end >= last)
        if known is not None:
            contradictions += int(np.count_nonzero(known & ~fits))
            fits &= known
        found = np.flatnonzero(fits)
        if len(found) != 1:
            continue
        if isinstance(joined, Alignment) and not _is_in_time(log, every.take(found), joined):
            contradictions += 1
            continue
        kept.append(int(found[0]))
    return every.take(np.array(sorted(set(kept)), np.int64)), contradictions


def extents(records: Records) -> list[tuple[int, int, int]]:
    """Return number, first and last device stamp of each run of a capture."""
    numbers, stamps = [], []
    for layout, names in _DEVICE:
        rows = records[layout]
        for name in names:
            stamps.append(rows[name])
            numbers.append(np.where(rows.has("run_epoch"), rows["run_epoch"], -1))
    epoch, stamp = np.concatenate(numbers), np.concatenate(stamps)
    epoch, stamp = epoch[stamp > 0], stamp[stamp > 0]
    listed = distinct(epoch[epoch >= 0]).tolist()
    if len(listed) < 2:
        # Submissions may not say their run.
        return [(listed[0] if listed else 0, int(stamp.min()), int(stamp.max()))] if len(stamp) else []
    return [(number, int(stamp[epoch == number].min()), int(stamp[epoch == number].max())) for number in listed]


def _identified(log: HostLog, walls: Walls, root: int, epoch: int) -> Mask | None:
    """Return the spans of the device of a run of the capture, bool [n]; None: which they are is not known."""
    if root >= 0:
        named: Mask = (log.process[walls.row] == log.process[root]) & (log.run[walls.row] == log.run[root])
        return named
    if epoch <= 0:
        return None
    roots = np.flatnonzero(~log.of_device & (log.depth == 0) & (log.run > 0))
    roots = roots[log.numbers(roots, "run_epoch")[:, 0] == epoch]
    if len(distinct(log.process[roots])) != 1:
        return None
    numbered: Mask = (log.process[walls.row] == log.process[roots[0]]) & np.isin(log.run[walls.row], log.run[roots])
    return numbered


def _is_in_time(log: HostLog, wall: Walls, joined: Alignment) -> bool:
    """Tell whether a span of the device is within both readings of the clocks and the span of the host around it."""
    first, last = joined.first.cycles, joined.last.cycles if joined.last is not None else int(wall.end[0])
    if joined.last is not None and not first <= wall.begin[0] <= wall.end[0] <= last:
        return False
    row, error = wall.row[0], max(reading.error_ns for reading in joined.readings)
    outer = np.flatnonzero(
        ~log.of_device
        & (log.process == log.process[row])
        & (log.run == log.run[row])
        & np.array([name.endswith(_RUNNER) for name in log.name], np.bool_)
    )
    if len(outer) != 1:
        return True
    begin, end = joined.host_ns(np.array([wall.begin[0], wall.end[0]])).tolist()
    return bool(log.begin[outer[0]] - error <= begin and end <= log.begin[outer[0]] + log.length[outer[0]] + error)


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
        tally=Tally(),
    )
    return spans if phases is None else phases.with_rows(spans)

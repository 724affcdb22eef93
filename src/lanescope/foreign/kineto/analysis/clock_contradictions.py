"""Device times that contradict host times: starts before their launch, waits that returned before the end."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.foreign.kineto.formats import layout
from lanescope.trace import Trace

Ints = npt.NDArray[np.int64]

#: Calls that return when the copy that they started is done, if it goes to the host.
_BLOCKING_COPIES = frozenset({"cudaMemcpy", "hipMemcpy", "hipMemcpyWithStream", "hipMemcpyDtoH", "cuMemcpyDtoH_v2"})
_TO_HOST = ("DtoH", "DeviceToHost")


class Contradictions(NamedTuple):
    """What a trace has of them.

    Attributes:
        early: int64 [n], device rows that start before their call begins.
        late: int64 [m], device rows that end after a call returned that had waited for them.
        least_ns, most_ns: shifts of the device's times that the launches and the waits allow; None: no bound.
    """

    early: Ints
    late: Ints
    least_ns: int | None
    most_ns: int | None

    @property
    def words(self) -> str:
        """What is wrong, and which shift would mend it."""
        parts = []
        if len(self.early):
            parts.append(f"{len(self.early)} rows start before their call")
        if len(self.late):
            parts.append(f"{len(self.late)} rows end after a call returned that waited for them")
        low, high = self.least_ns, self.most_ns
        if low is not None and high is not None and low > high:
            return " and ".join(parts) + ": no constant shift of the device clock removes all"
        shift = low if low is not None and low > 0 else high
        return " and ".join(parts) + f": a shift of the device clock by {shift} ns removes all"


def contradictions(trace: Trace) -> Contradictions:
    """Find device rows whose times contradict those of the calls that started them or waited for them."""
    slices, flows = trace.slices, trace.flows
    nothing = np.empty(0, np.int64)
    rows = np.flatnonzero(flows.column("kind").texts == "submit") if len(flows) else nothing
    if not len(rows):
        return Contradictions(nothing, nothing, None, None)
    call, work = flows.values("src_slice_id")[rows], flows.values("dst_slice_id")[rows]
    ts, end = slices.values("ts"), slices.values("ts") + slices.values("dur")
    lead = ts[call] - ts[work]
    early, least = work[lead > 0], int(lead.max())
    pairs = [_waits(trace, call, work), _blocking_copies(trace, call, work)]
    returned, waited = (np.concatenate(part) for part in zip(*pairs, strict=True))
    slack = returned - end[waited]
    late = np.unique(waited[slack < 0], return_index=True)[0]
    return Contradictions(np.sort(early), late, least, int(slack.min()) if len(slack) else None)


def _named(trace: Trace, names: frozenset[str]) -> npt.NDArray[np.bool_]:
    column = trace.slices.column("name")
    texts = column.dictionary.texts if column.dictionary is not None else []
    found: npt.NDArray[np.bool_] = np.array([*(text in names for text in texts), False], np.bool_)[column.values]
    return found


def _waits(trace: Trace, call: Ints, work: Ints) -> tuple[Ints, Ints]:
    """Return times at which waits for the device returned, and the last row that each waited for.

    A wait is for all work of a device that its thread had started before. On a run with several devices the row of
    category `cuda_sync` with its correlation tells which one; waits without such a row are not judged there.
    """
    slices = trace.slices
    nothing = np.empty(0, np.int64)
    parents = trace.tracks.values("parent_id")[slices.values("track_id")[work]]
    waits = np.flatnonzero(_named(trace, layout.DEVICE_SYNCS) & slices.valid("dur"))
    is_one = bool((parents == parents[0]).all())
    devices = np.full(len(waits), parents[0]) if is_one else _devices_of(trace, waits)
    ts, dur, lane = (slices.values(name) for name in ("ts", "dur", "track_id"))
    returned, waited = [nothing], [nothing]
    for track, device in sorted(set(zip(lane[waits].tolist(), devices.tolist(), strict=True))):
        mine = np.flatnonzero((lane[call] == track) & (parents == device) & slices.valid("dur")[work])
        mine = mine[np.argsort(ts[call[mine]], kind="stable")]
        if not len(mine):
            continue
        ends = ts[work[mine]] + dur[work[mine]]
        highest = np.maximum.accumulate(ends)
        best = np.maximum.accumulate(np.where(ends == highest, np.arange(len(ends)), 0))
        these = waits[(lane[waits] == track) & (devices == device)]
        before = np.searchsorted(ts[call[mine]], ts[these]) - 1
        these, before = these[before >= 0], before[before >= 0]
        returned.append(ts[these] + dur[these])
        waited.append(work[mine[best[before]]])
    return np.concatenate(returned), np.concatenate(waited)


def _devices_of(trace: Trace, waits: Ints) -> Ints:
    """Return the device that each call waits for, the group of its lanes, int64 [n]; -1: not known."""
    slices, ops = trace.slices, trace.details.get("kineto_ops")
    found = np.full(len(waits), -1)
    column = slices.column("category")
    texts = column.dictionary.texts if column.dictionary is not None else []
    if ops is None or not len(ops):
        return found
    row, correlation = (values[ops.valid("correlation")] for values in map(ops.values, ("slice_id", "correlation")))
    is_sync = np.array([*(layout.CLASS_OF.get(text) == layout.SYNC for text in texts), False], np.bool_)
    syncs = np.flatnonzero(is_sync[column.values[row]])
    group = trace.tracks.values("parent_id")[slices.values("track_id")[row[syncs]]]
    by_number = dict(zip(correlation[syncs].tolist(), group.tolist(), strict=True))
    numbers = dict(zip(row.tolist(), correlation.tolist(), strict=True))
    for place, wait in enumerate(waits.tolist()):
        found[place] = by_number.get(numbers.get(wait, -1), -1)
    return found


def _blocking_copies(trace: Trace, call: Ints, work: Ints) -> tuple[Ints, Ints]:
    slices = trace.slices
    column = slices.column("name")
    texts = column.dictionary.texts if column.dictionary is not None else []
    to_host = np.array([*(any(word in text for word in _TO_HOST) for text in texts), False], np.bool_)
    is_blocking = _named(trace, _BLOCKING_COPIES)[call] & to_host[column.values[work]]
    is_blocking &= slices.valid("dur")[call] & slices.valid("dur")[work]
    mine = np.flatnonzero(is_blocking)
    return slices.values("ts")[call[mine]] + slices.values("dur")[call[mine]], work[mine]

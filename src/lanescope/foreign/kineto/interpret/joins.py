"""Which events belong together: by correlation, and by the numbers of flows."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.foreign.kineto.formats import layout
from lanescope.foreign.kineto.interpret.classes import Classes
from lanescope.trace.column import look_up
from lanescope.wire.trace_events import TraceEvents

Int64 = npt.NDArray[np.int64]


class Launches(NamedTuple):
    """Calls and the device work that they started.

    Attributes:
        call, work: int64 [n], events; one call may have several.
        unlaunched: int64 [m], device work with no call.
        repeated: int64 [k], calls of CUDA and ROCm with a correlation that an earlier one has.
    """

    call: Int64
    work: Int64
    unlaunched: Int64
    repeated: Int64


class Pairs(NamedTuple):
    """Flows of which both ends are there.

    Attributes:
        start, end: int64 [n], events.
        unmatched: int64 [m], ends without a partner.
    """

    start: Int64
    end: Int64
    unmatched: Int64


def join_launches(events: TraceEvents, classes: Classes) -> Launches:
    """Join device work with the calls of its correlation; of several calls the first in the file is taken."""
    values = events.values["correlation"]
    is_real = ~layout.is_no_id(values.value) & (events.phase[values.event] == ord("X"))
    event, number = values.event[is_real], values.value[is_real]
    is_call = classes.is_runtime[event]
    is_work = classes.is_work[event]
    calls, keys = event[is_call], number[is_call]
    if (keys[1:] < keys[:-1]).any():  # mostly calls are numbered in the order of the file
        sort = np.argsort(keys, kind="stable")
        calls, keys = calls[sort], keys[sort]
    first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=first[1:])
    repeated = calls[:0] if first.all() else np.sort(calls[~first])
    repeated = repeated[_of_categories(events, repeated, ("cuda_runtime", "cuda_driver", "Runtime"))]
    if not first.all():
        calls, keys = calls[first], keys[first]
    work, wanted = event[is_work], number[is_work]
    at = _places(keys, wanted)
    found = keys[at] == wanted if len(keys) else np.zeros(len(wanted), np.bool_)
    work_rows = np.flatnonzero(classes.is_work & events.of_phase("X"))
    launched = work[found]
    is_launched = np.zeros(len(events), np.bool_)
    is_launched[launched] = True
    alone = work_rows[~is_launched[work_rows]]
    return Launches(calls[at[found]] if len(keys) else launched, launched, alone, repeated)


def _places(keys: Int64, wanted: Int64) -> Int64:
    """Return where each wanted key stands among ``keys``, ascending, or anything if it is none of them."""
    last = max(len(keys) - 1, 0)
    low, high = (int(keys[0]), int(keys[-1])) if len(keys) else (0, 0)
    if high - low >= 4 * len(keys):
        return np.minimum(np.searchsorted(keys, wanted), last)
    # Mostly they are numbered one after another: a table is quicker than to search.
    table = np.zeros(high - low + 1, np.int32)
    table[keys - low] = np.arange(len(keys), dtype=np.int32)
    return table[np.clip(wanted, low, high) - low].astype(np.int64)


def _of_categories(events: TraceEvents, rows: Int64, names: tuple[str, ...]) -> npt.NDArray[np.bool_]:
    table = np.array([*(category in names for category in events.categories), False], np.bool_)
    return look_up(table, events.category[rows])


def join_flows(events: TraceEvents, categories: frozenset[str]) -> Pairs:
    """Join starts and ends of flows of some categories by their number, both in the order of the file."""
    table = np.array([*(category in categories for category in events.categories), False], np.bool_)
    mine = look_up(table, events.category)
    starts = np.flatnonzero(mine & events.of_phase("s"))
    ends = np.flatnonzero(mine & events.of_phase("f"))
    waiting: dict[tuple[int, int], deque[int]] = {}
    for row, key in zip(starts.tolist(), _ids(events, starts), strict=True):
        waiting.setdefault(key, deque()).append(row)
    pairs, alone = [], []
    for row, key in zip(ends.tolist(), _ids(events, ends), strict=True):
        queue = waiting.get(key)
        if queue:
            pairs.append((queue.popleft(), row))
        else:
            alone.append(row)
    alone += [row for queue in waiting.values() for row in queue]
    found = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    return Pairs(found[:, 0], found[:, 1], np.array(sorted(alone), np.int64))


def _ids(events: TraceEvents, rows: Int64) -> list[tuple[int, int]]:
    """Return number and kind of the id of each of ``rows``, zeros without one."""
    ids = events.ids
    at = np.minimum(np.searchsorted(ids.event, rows), max(len(ids.event) - 1, 0))
    if not len(ids.event):
        return [(0, 0)] * len(rows)
    has = ids.event[at] == rows
    value, kind = np.where(has, ids.value[at], np.uint64(0)), np.where(has, ids.kind[at], np.uint8(0))
    return list(zip(value.tolist(), kind.tolist(), strict=True))

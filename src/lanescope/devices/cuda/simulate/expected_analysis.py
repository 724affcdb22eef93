"""What the simulated kernel did with its time: what an analysis of its trace has to find, to the nanosecond.

Worked out from the kernel itself, record by record and block by block, not from intervals: nothing here is shared with
what it is compared to. Faults are left out of it; they change what is recorded, not what happened.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.devices.cuda.formats.layout import BEGIN, END
from lanescope.devices.cuda.simulate.sim_kernel import (
    EVENTS,
    I64,
    LOAD_K,
    LOAD_V,
    PV,
    QK,
    SOFTMAX,
    STAGES,
    STORE,
    WAIT_EMPTY,
    WAIT_FULL,
    WAIT_OUTPUT,
    Kernel,
)

#: No region: between two of them.
NONE = -1
LOADS = (LOAD_K, LOAD_V)
COMPUTES = (QK, SOFTMAX, PV)
WAITS = (WAIT_EMPTY, WAIT_FULL, WAIT_OUTPUT)


def expected(kernel: Kernel) -> dict[str, Any]:
    """Return where the time of a simulated kernel went; all numbers are ns, and exact.

    Returns:
        ``overlap``: [region, other, ns] of all pairs that share time within a block, of a region with itself its time;
        ``load_ns``, ``load_hidden_ns``: time in which a block loads, and the part of it in which it computes too;
        ``occupancy_ns``: region -> time of all lanes in it, each moment counted for the innermost region;
        ``resident_ns``: time of all blocks, each from its first stamp to its last;
        ``idle``: [block, group, kind, name, ns] of each lane; kind is ``wait`` or ``gap``, as is the name of a gap;
        ``charged``: [group, wait, producer group, producer, count, blocked, latency], waits of all blocks by whom they
        were for.
    """
    states = [innermost(events, kinds) for events, kinds in zip(kernel.events, kernel.kinds, strict=True)]
    masks, time = _together(kernel, states)
    used = sorted({event for state in states for event in state.tolist()} - {NONE})
    bit = {event: np.uint64(1 << event) for event in used}
    pairs = [
        [EVENTS[one], EVENTS[other], int(time[(masks & bit[one] != 0) & (masks & bit[other] != 0)].sum())]
        for one in used
        for other in used
    ]
    loads = np.bitwise_and(masks, np.uint64(sum(1 << event for event in LOADS))) != 0
    computes = np.bitwise_and(masks, np.uint64(sum(1 << event for event in COMPUTES))) != 0
    first = np.min([times[0] for times in kernel.times], axis=0)
    last = np.max([times[-1] for times in kernel.times], axis=0)
    return {
        "overlap": [pair for pair in pairs if pair[2]],
        "load_ns": int(time[loads].sum()),
        "load_hidden_ns": int(time[loads & computes].sum()),
        "occupancy_ns": _occupancy(kernel, states),
        "resident_ns": int((last - first).sum()),
        "idle": [row for group, state in enumerate(states) for row in _idle(kernel.times[group], state, group)],
        "charged": _charged(waits(kernel)),
    }


def innermost(events: I64, kinds: I64) -> I64:
    """Return the region that a lane is in behind each of its records, int64 [records], ``NONE`` for none."""
    stack: list[int] = []
    found = []
    for event, kind in zip(events.tolist(), kinds.tolist(), strict=True):
        if kind == BEGIN:
            stack.append(event)
        elif kind == END:
            stack.pop()
        found.append(stack[-1] if stack else NONE)
    return np.array(found, np.int64)


def _together(kernel: Kernel, states: list[I64]) -> tuple[npt.NDArray[np.uint64], I64]:
    """Return each set of regions that run at the same time in a block, a bit an event, and for how long, all blocks."""
    group = np.repeat(np.arange(len(states)), [len(times) for times in kernel.times])
    times = np.concatenate(kernel.times)
    order = np.argsort(times, axis=0, kind="stable")
    times = np.take_along_axis(times, order, axis=0)
    group = group[order]
    masks = np.zeros(times.shape, np.uint64)
    for number, state in enumerate(states):
        bits = np.array([0, *(0 if event == NONE else 1 << event for event in state.tolist())], np.uint64)
        masks |= bits[np.cumsum(group == number, axis=0)]
    length = np.diff(times, axis=0)
    found, inverse = np.unique(masks[:-1], return_inverse=True)
    total = np.zeros(len(found), np.int64)
    np.add.at(total, inverse.ravel(), length.ravel())
    return found, total


def _occupancy(kernel: Kernel, states: list[I64]) -> dict[str, int]:
    found: dict[str, int] = {}
    for times, state in zip(kernel.times, states, strict=True):
        length = np.diff(times, axis=0).sum(axis=1)
        for event in sorted(set(state[:-1].tolist()) - {NONE}):
            spent = int(length[state[:-1] == event].sum())
            if spent:
                found[EVENTS[event]] = found.get(EVENTS[event], 0) + spent
    return found


def _idle(times: I64, state: I64, group: int) -> list[list[Any]]:
    """Return [block, group, kind, name, ns] of the lanes of one group."""
    length = np.diff(times, axis=0)
    state = state[:-1]
    is_region = (state != NONE)[:, None] & (length > 0)
    at = np.arange(len(state))[:, None]
    before = np.maximum.accumulate(np.where(is_region, at, -1), axis=0)
    after = np.minimum.accumulate(np.where(is_region, at, len(state))[::-1], axis=0)[::-1]
    named = np.append(state, NONE)  # both ends: nothing
    total: dict[tuple[int, str, str], int] = {}
    rows, blocks = np.nonzero((length > 0) & np.isin(state, (NONE, *WAITS))[:, None])
    event = state[rows]
    is_gap = event == NONE
    left, right = (np.where(is_gap, named[beside[rows, blocks]], NONE) for beside in (before, after))
    shape = (times.shape[1], *(len(EVENTS) + 1,) * 3)
    keys = np.ravel_multi_index((blocks, event + 1, left + 1, right + 1), shape)
    found, inverse = np.unique(keys, return_inverse=True)
    spent = np.zeros(len(found), np.int64)
    np.add.at(spent, inverse, length[rows, blocks])
    blocks, *events = np.unravel_index(found, shape)
    rows_of = zip(blocks.tolist(), *((part - 1).tolist() for part in events), spent.tolist(), strict=True)
    for block, region, since, until, ns in rows_of:
        name = ("wait", EVENTS[region]) if region != NONE else ("bubble", _between(since, until))
        total[block, *name] = total.get((block, *name), 0) + ns
    return [[block, group, kind, name, ns] for (block, kind, name), ns in total.items()]


def _between(left: int, right: int) -> str:
    if left == NONE:
        return f"before {EVENTS[right]}" if right != NONE else "nothing ran"
    return f"between {EVENTS[left]} and {EVENTS[right]}" if right != NONE else f"after {EVENTS[left]}"


# --- waits --------------------------------------------------------------------------------------------------------


class Wait(NamedTuple):
    """The waits of one group at one barrier; int64 [tiles, blocks] each, rows of tiles without a producer left out.

    Attributes:
        group: who waits.
        event: in which region.
        begin, end: when.
        producer: event of the region that is waited for.
        producer_group: int64, whose it is.
        done: when it ended.
    """

    group: int
    event: int
    begin: I64
    end: I64
    producer: int
    producer_group: I64
    done: I64


def waits(kernel: Kernel) -> list[Wait]:
    """Return which groups waited for which; none waits in a kernel whose groups all do everything."""
    setup = kernel.setup
    if setup.role(0) == "all":
        return []
    computing = [group for group in range(setup.groups) if setup.role(group) == "compute"]
    last = STORE if setup.groups == 2 else PV
    ends = np.stack([_stamps(kernel, group, last, END) for group in computing])  # [computing, tiles, blocks]
    slowest = ends.argmax(axis=0)
    done, by = ends.max(axis=0), np.array(computing)[slowest]
    found = [_wait(kernel, 0, WAIT_EMPTY, last, by, done, after=STAGES)]
    loaded = _stamps(kernel, 0, LOAD_V, END)
    found.append(_wait(kernel, computing[0], WAIT_FULL, LOAD_V, np.zeros_like(loaded), loaded))
    for before, group in pairwise(computing):
        turn = _stamps(kernel, before, QK, END)
        found.append(_wait(kernel, group, WAIT_FULL, QK, np.full_like(turn, before), turn))
    if setup.groups > 2:
        found.append(_wait(kernel, setup.groups - 1, WAIT_OUTPUT, PV, by, done))
    return found


def _stamps(kernel: Kernel, group: int, event: int, kind: int) -> I64:
    """Return the stamps of one event, int64 [tiles, blocks]."""
    found: I64 = kernel.times[group][(kernel.events[group] == event) & (kernel.kinds[group] == kind)]
    return found


def _wait(kernel: Kernel, group: int, event: int, producer: int, by: I64, done: I64, *, after: int = 0) -> Wait:
    """Put a barrier together whose producer is as many tiles ahead as ``after`` says."""
    tiles = max(len(done) - after, 0)
    begin, end = (_stamps(kernel, group, event, kind)[after:] for kind in (BEGIN, END))
    return Wait(group, event, begin, end, producer, by[:tiles], done[:tiles])


def _charged(found: list[Wait]) -> list[list[Any]]:
    rows = []
    for wait in found:
        done = np.clip(wait.done, wait.begin, wait.end)
        for group in distinct(wait.producer_group).tolist():
            mine = (wait.producer_group == group) & (wait.end > wait.begin)
            blocked, latency = int((done - wait.begin)[mine].sum()), int((wait.end - done)[mine].sum())
            names = (EVENTS[wait.event], group, EVENTS[wait.producer])
            if mine.any():
                rows.append([wait.group, *names, int(np.count_nonzero(mine)), blocked, latency])
    return rows

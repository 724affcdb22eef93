"""Files next to a capture: hardware counters of executions, and resources of the scopes of the orchestration."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.pmu import Pmu, encode_pmu
from lanescope.devices.ascend.formats.scope_stats import RINGED, VERSION, ScopeStats, encode_scope_stats
from lanescope.devices.ascend.simulate.chip import Run

Int64 = npt.NDArray[np.int64]

#: The default group of counters, and its number.
_COUNTERS = (
    *("pmu_total_cycles", "vec_busy_cycles", "cube_busy_cycles", "scalar_busy_cycles"),
    *("mte1_busy_cycles", "mte2_busy_cycles", "mte3_busy_cycles", "icache_miss", "icache_req"),
)
_PIPES = 2
#: Capacities of the resources of each of the rings, and of the shared one.
_CAPACITY, _RINGS = np.array([1 << 14, 1 << 28, 1 << 14, 1 << 16]), 4
#: Tasks of an inner scope; bytes of the heap and entries of the pool that a task takes at most; how often a scope sees
#: that everything before it is released.
_SCOPE_TASKS, _MOST_OF_TASK, _RELEASED = 16, (1 << 16, 4), 0.5
_OUTER = "orchestration.cpp:12"


def pmu_file(run: Run, random: np.random.Generator) -> bytes:
    """Return counters of all executions, in the order in which the schedulers saw their ends."""
    order = np.argsort(run.finish, kind="stable")
    total = (run.end - run.start)[order]
    shares = random.uniform(size=(len(order), len(_COUNTERS)))
    shares[:, 0] = 1
    return encode_pmu(
        Pmu(
            core=run.core[order],
            event_type=np.full(len(order), _PIPES),
            task_id=run.token[order],
            counters=_COUNTERS,
            values=(shares * total[:, None]).astype(np.int64),
            good_bytes=0,
            bad_bytes=0,
            bad_lines=0,
            bad_first=None,
        )
    )


def scope_file(tasks: int, random: np.random.Generator) -> bytes:
    """Return the boundaries of an outer scope and of inner ones that submit so many tasks, one after the other."""
    rows: list[tuple[str, bool, int, Int64, Int64]] = []
    none = np.zeros(len(RINGED), np.int64)
    head, tail = none, none
    rows.append((_OUTER, True, 0, none, none))
    for number, first in enumerate(range(0, max(tasks, 1), _SCOPE_TASKS)):
        site = f"orchestration.cpp:{20 + number % 3}"
        rows.append((site, True, 1, tail, head))
        count = min(_SCOPE_TASKS, tasks - first)
        # What earlier scopes used may be released while this one runs.
        tail = head if random.random() < _RELEASED else tail
        head = head + np.array([count, *(count * random.integers(0, _MOST_OF_TASK))])
        tail = np.maximum(tail, head - _CAPACITY[: len(RINGED)])
        rows.append((site, False, 1, tail, head))
    rows.append((_OUTER, False, 0, none, none))
    sites, begins, depths, tails, heads = zip(*rows, strict=True)
    depth = np.array(depths, np.int64)
    return encode_scope_stats(
        ScopeStats(
            site=np.array(sites, object),
            is_begin=np.array(begins, np.bool_),
            depth=depth,
            ring=depth,
            tail=np.array(tails, np.int64),
            head=np.array(heads, np.int64),
            entries=random.integers(0, 1 << 10, len(rows)),
            capacity=np.tile(_CAPACITY, (_RINGS, 1)),
            version=VERSION,
            is_fatal=False,
            dropped=0,
            total=len(rows),
            unknown_keys=0,
            good_bytes=0,
            bad_bytes=0,
            bad_lines=0,
            bad_first=None,
        )
    )

"""Files next to a capture: hardware counters, resources of the scopes of the orchestration, the log of the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.pmu import Pmu, encode_pmu
from lanescope.devices.ascend.formats.records import Tally
from lanescope.devices.ascend.formats.scope_stats import RINGED, VERSION, ScopeStats, encode_scope_stats
from lanescope.devices.ascend.formats.strace import HostLog, encode_log
from lanescope.devices.ascend.simulate.chip import Run
from lanescope.devices.ascend.simulate.phases import window

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
    order = np.lexsort((run.start, run.finish))
    total = (run.end - run.start)[order]
    shares = random.uniform(size=(len(order), len(_COUNTERS)))
    shares[:, 0] = 1
    return encode_pmu(
        Pmu(
            thread=run.thread_of[run.core[order]],
            core=run.core[order],
            event_type=np.full(len(order), _PIPES),
            function=run.function[order],
            core_type=run.engine[order],
            task_id=run.token[order],
            counters=_COUNTERS,
            values=(shares * total[:, None]).astype(np.int64),
            tally=Tally(),
        )
    )


def scope_file(rings: Int64, random: np.random.Generator) -> bytes:
    """Return the boundaries of an outer scope, and of inner ones, one in the other, that submit the tasks of a run.

    Args:
        rings: int64 [tasks], ring of each task in the order of submission; tasks of ring 0 are of the outer scope.
        random: for what nothing else determines.
    """
    rows: list[tuple[str, bool, int, Int64, Int64]] = []
    deepest = int(rings.max(initial=0)) + 1
    tail, head = (np.zeros((deepest, len(RINGED)), np.int64) for _ in range(2))
    inside: list[str] = []

    def enter(site: str) -> None:
        rows.append((site, True, len(inside), tail[len(inside)].copy(), head[len(inside)].copy()))
        inside.append(site)

    def leave() -> None:
        site, depth = inside.pop(), len(inside)
        # What earlier scopes used may be released while this one runs.
        if random.random() < _RELEASED:
            tail[depth] = head[depth]
        tail[depth] = np.maximum(tail[depth], head[depth] - _CAPACITY[: len(RINGED)])
        rows.append((site, False, depth, tail[depth].copy(), head[depth].copy()))

    enter(_OUTER)
    for number, ring in enumerate(rings.tolist()):
        # A scope of some tasks, or of as many as follow on its ring.
        while len(inside) - 1 > ring or (ring and len(inside) - 1 == ring and number % _SCOPE_TASKS == 0):
            leave()
        while len(inside) - 1 < ring:
            enter(f"orchestration.cpp:{20 + len(inside)}")
        head[ring] += np.array([1, *random.integers(0, _MOST_OF_TASK)])
    while inside:
        leave()
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
            tally=Tally(),
        )
    )


def log_file(
    run: Run, pool: list[dict[str, Any]], host: dict[str, Any] | None, random: np.random.Generator, base: int
) -> bytes:
    """Return the log of a host: spans of the run of the capture, and of one of the same process after it.

    Args:
        run: what the device did.
        pool: what the host recorded of itself; empty if the device orchestrates.
        host: where the counter of the device begins on the clock of the host; None if that is in no file.
        random: for what nothing else determines.
        base: reading of the counter when the run began; later logs have it.
    """
    zero = int(random.integers(1 << 40, 1 << 44)) if host is None else host["device_zero_host_ns"]
    wall = window(run) * 1_000_000_000 // run.scenario.clock
    first, last = (pool[0]["start_ns"], pool[-1]["end_ns"]) if pool else (zero - 300_000, zero - 200_000)
    spans: list[tuple[int, int, str, int, int, str, int]] = []

    def add(number: int, depth: int, name: str, begin: int, end: int, attributes: str = "") -> None:
        # A line is written when its span has ended; spans of the device come with what the host learns then.
        written = spans[-1][-1] + 100 if "clk=dev" in attributes else end
        spans.append((number, depth, name, begin, end - begin, attributes, written))

    # Twice as long as the device's part, which the counter may take longer for than its nominal frequency says.
    for number, shift in ((1, 0), (2, 2 * wall + 3_000_000)):
        epoch = f" run_epoch={number}" if run.scenario.format_version == "v4" else ""
        begin, bound, done = first - 20_000 + shift, last + 1000 + shift, zero + 2 * wall + 500_000 + shift
        add(number, 1, "chip.run.bind", begin + 5000, bound)
        add(number, 1, "chip.run.runner_run", bound + 2000, done)
        add(number, 2, "chip.run.runner_run.device_wall", 0, wall, _readings(run, base, number - 1))
        add(number, 1, "chip.run.validate", done + 1000, done + 20_000)
        add(number, 0, "chip.run", begin, done + 30_000, f"run_id=0 slot_id=0{epoch}")
    numbers, depths, names, begins, lengths, attributes, written = zip(*spans, strict=True)
    count = len(spans)
    message = f"[CLOCK_ANCHOR] v=1 pid=1000 mono_ns={first - 5_000_000} wall_ns={1_700_000_000_000_000_000 + first}"
    texts = ["submitted the task graph", message]
    return encode_log(
        HostLog(
            process=np.full(count, 1000),
            thread=np.full(count, 1000),
            run=np.array(numbers, np.int64),
            function=np.full(count, "1f", object),
            depth=np.array(depths, np.int64),
            name=np.array(names, object),
            begin=np.array(begins, np.int64),
            length=np.array(lengths, np.int64),
            of_device=np.array([text.startswith("clk=dev") for text in attributes], np.bool_),
            attributes=np.array(attributes, object),
            written=np.array(written, np.int64),
            message_at=np.array([last, first - 5_000_000], np.int64),
            message_thread=np.full(2, "0x7f00", object),
            message_level=np.array(["INFO", "TIMING"], object),
            message_source=np.array(["bind", "clock_anchor"], object),
            message_text=np.array(texts, object),
            dropped=0,
            tally=Tally(),
        )
    )


def _readings(run: Run, base: int, calls: int) -> str:
    """Return the attributes of the span of the device: of later versions with its counter at both ends."""
    scenario, length = run.scenario, window(run)
    if scenario.format_version != "v4" or scenario.epochs > 1:
        return "clk=dev"
    begin = base + calls * (2 * length + scenario.clock // 1000)
    readings = f"dev_start_cycle={begin} dev_end_cycle={begin + length} dev_cnt_hz={scenario.clock}"
    return f"clk=dev dev_id=0 {readings}"

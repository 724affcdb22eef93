"""What a reader must find in a simulated capture."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.ascend.formats.layout import AICORE, AICPU, LIFECYCLE, PHASES, STAGES, SUBMITS
from lanescope.devices.ascend.formats.records import Section
from lanescope.devices.ascend.interpret.names import function_name
from lanescope.devices.ascend.simulate.chip import Run
from lanescope.devices.ascend.simulate.recorder import Recorded
from lanescope.devices.ascend.simulate.workload import NAMES
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

_NS = 1_000_000_000
#: Before every stamp; those of a clock that stepped back may lie before the begin of the run.
_NEVER = -(1 << 62)


def truth(run: Run, found: Recorded, sections: dict[str, Section]) -> dict[str, Any]:
    """Return the truth: sums, losses, violations, and each execution where the scenario asks for rows."""
    s, tasks = run.scenario, run.tasks
    here, joined = found.has_aicore, found.has_aicore & found.has_aicpu & ~found.contradicted
    once = here & ~found.contradicted
    # Nodes are no producers of their graph's consumers: only the graph is named by edges.
    last_end = _last_end(run, here & ~run.is_node)
    gate = _gates(run, last_end)
    broken, by_clock = _violations(run, found, last_end)
    setup = run.start - run.receive - gate

    def mean(ticks: Int64, where: Mask, *, is_known: bool = True) -> float | None:
        lengths = ticks[where] * _NS // s.clock
        return float(lengths.sum()) / len(lengths) if is_known and len(lengths) else None

    def pairs(edges: Mask) -> list[list[int]]:
        listed: list[list[int]] = np.stack(
            [tasks.task_id[tasks.pred[edges]], tasks.task_id[tasks.succ[edges]]], 1
        ).tolist()
        return listed

    made: dict[str, Any] = {
        "format_version": s.format_version,
        "level": s.level,
        "clock": s.clock,
        "base_cycles": smallest(run, sections),
        "tasks": len(tasks),
        "totals": {
            "executions": int(here.sum()),
            "duration_ns": mean(run.end - run.start, once),
            "propagation_ns": mean(run.receive - run.dispatch, joined, is_known=s.has_receive),
            "local_setup_ns": mean(setup, once, is_known=s.has_receive),
            "tail_ns": mean(run.finish - run.end, joined),
            "gated": int((gate > 0)[here].sum()),
            "staged": int(run.staged[here].sum()),
        },
        "violations": pairs(broken & ~by_clock),
        "violations_by_clock": pairs(by_clock),
        "losses": _losses(run, found),
        "clock_steps": {"clocks": found.steps, "rows": int((found.stepped & once).sum())},
    }
    if LIFECYCLE.name in sections:
        made["stages"] = _stages(sections[LIFECYCLE.name])
    if s.truth == "rows":
        made["rows"] = _rows(run, found, gate)
    return made


def _last_end(run: Run, rows: Mask) -> Int64:
    last = np.full(len(run.tasks), _NEVER)
    np.maximum.at(last, run.task[rows], run.end[rows])
    return last


def _gates(run: Run, last_end: Int64) -> Int64:
    """Return for how long each execution waited on its core, as far as the ends of its producers tell."""
    tasks = run.tasks
    ready = np.full(len(tasks), _NEVER)
    if run.scenario.deps:
        np.maximum.at(ready, tasks.succ, last_end[tasks.pred])
    ready = ready[run.task]
    stays = run.staged & (not run.scenario.stamps_again)
    return np.where(stays & (run.receive < ready) & (ready <= run.start), ready - run.receive, 0)


def _violations(run: Run, found: Recorded, last_end: Int64) -> tuple[Mask, Mask]:
    """Return which edges the stamps say were violated, and which of those only rows of a stepped clock say so."""
    s = run.scenario
    stays = run.staged & (not s.stamps_again)
    begun = np.where(stays, run.start, run.receive) if s.has_receive else run.start

    def broken(rows: Mask, last_end: Int64) -> Mask:
        first = np.full(len(run.tasks), np.iinfo(np.int64).max)
        np.minimum.at(first, run.task[rows], begun[rows])
        has_rows = np.zeros(len(run.tasks), np.bool_)
        has_rows[run.task[rows]] = True
        pred, succ = run.tasks.pred, run.tasks.succ
        return has_rows[pred] & has_rows[succ] & (last_end[pred] > first[succ])

    here = found.has_aicore & ~run.is_node
    everything = broken(here, last_end)
    sound = here & ~found.stepped
    return everything, everything & ~broken(sound, _last_end(run, sound))


def _losses(run: Run, found: Recorded) -> dict[str, Any]:
    s = run.scenario
    either = found.has_aicore | found.has_aicpu
    holes = 0
    if not s.is_v1:
        # By the counters as they ran: the truth does not depend on how they are written.
        lane = ((run.epoch - 1) * s.cores + run.core)[either]
        number = run.counter[either]
        low = np.full(int(lane.max(initial=-1)) + 1, np.iinfo(np.int64).max)
        high = np.zeros(len(low), np.int64)
        np.minimum.at(low, lane, number)
        np.maximum.at(high, lane, number)
        count = np.bincount(lane, minlength=len(low))
        holes = int((high - low + 1 - count)[count > 0].sum())
    lonely = found.has_aicore & ~found.has_aicpu & ~found.contradicted
    return {
        "aicore_unmatched": int(lonely.sum()) if s.level > 1 else 0,
        "aicpu_unmatched": int((found.has_aicpu & ~found.has_aicore).sum()),
        "holes": holes,
        "duplicates": min(s.duplicates, int(found.has_aicore.sum())),
        "ambiguous": int(found.contradicted.sum()),
        "bad_rows": s.bad_rows,
    }


def _rows(run: Run, found: Recorded, gate: Int64) -> dict[str, Any]:
    s, tasks = run.scenario, run.tasks
    known = NAMES if s.names else {}
    # Nobody names the functions of nodes.
    kinds = np.where(run.is_node, -1, run.function) * 2 + 2 + (tasks.blocks > 1)[run.task]
    texts = [
        function_name(number // 2 - 1, known, is_spmd=bool(number % 2))
        for number in range(int(kinds.max(initial=0)) + 1)
    ]
    return {
        "core": run.core.tolist(),
        "reg_task_id": found.reg_task_id.tolist(),
        "run_epoch": run.epoch.tolist(),
        "task_id": run.token.tolist(),
        "name": np.array(texts, object)[kinds].tolist() if s.deps else None,
        "has_aicore": found.has_aicore.tolist(),
        "has_aicpu": found.has_aicpu.tolist(),
        "is_ambiguous": found.contradicted.tolist(),
        "is_stepped": found.stepped.tolist(),
        "staged": run.staged.tolist(),
        "gate": gate.tolist(),
        **{
            stamp: (found.base + getattr(run, stamp)).tolist()
            for stamp in ("dispatch", "receive", "start", "end", "finish")
        },
    }


def _stages(rows: Section) -> list[dict[str, Any]]:
    """Return what each thread of a control processor did: its stages and their stamps, in turn."""
    return [
        {"thread": int(thread), "stage": name, "begin": int(rows[begin][at]), "end": int(rows[end][at])}
        for at, thread in enumerate(rows["aicpu_thread_id"])
        for name, begin, end in STAGES
        if rows[begin][at]
    ]


def smallest(run: Run, sections: dict[str, Section]) -> int:
    """Return the smallest reading of the counter in the file."""
    stamps = [
        values[values > 0] if layout is LIFECYCLE else values
        for layout in (AICORE, AICPU, PHASES, SUBMITS, LIFECYCLE)
        if layout.name in sections
        for column, values in sections[layout.name].columns.items()
        if column.endswith("_cycles") and column != "receive_to_start_cycles"
    ]
    aicore = sections[AICORE.name]
    if run.scenario.has_receive:
        stamps.append(aicore["start_cycles"] - aicore["receive_to_start_cycles"])
    return min((int(values.min()) for values in stamps if len(values)), default=0)

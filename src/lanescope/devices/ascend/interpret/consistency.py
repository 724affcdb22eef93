"""What every chip keeps, whatever it runs: where a capture does not, its stamps or its counters are wrong."""

from __future__ import annotations

import numpy as np

from lanescope.devices.ascend.formats.layout import PHASE_KINDS
from lanescope.devices.ascend.formats.versions import Erratum
from lanescope.devices.ascend.interpret.execution_table import Executions
from lanescope.devices.ascend.interpret.resolve import Interpreter, thread_of_core
from lanescope.trace.column import Mask

#: Stamps of cores and schedulers are taken from one counter, but not at one place: so much they may disagree.
_TOLERANCE_NS = 1000
#: Kinds of phases in which a thread works.
_WORK = tuple(kind for kind, known in PHASE_KINDS.items() if known.role == "outer" and kind != "idle")
#: Dispatches that a core holds at once: one runs, one waits.
_PLACES = 2


def disordered(told: Interpreter, suspect: Mask) -> Mask:
    """Return which executions have stamps out of order, bool [executions], where no step of a clock explains it.

    Args:
        told: the capture.
        suspect: bool [executions], rows of a clock that stepped.
    """
    runs = told.runs
    slack = max(_TOLERANCE_NS * told.frequency // 1_000_000_000, 1)
    found = np.zeros(len(runs), np.bool_)
    stamps = [runs.dispatch, runs.receive, runs.start, runs.end, runs.finish]
    latest = stamps[0]
    for stamp in stamps[1:]:
        known = stamp > 0
        found |= known & (latest > stamp + slack)
        latest = np.where(known, np.maximum(latest, stamp), latest)
    return found & ~suspect


def overcommitted_cores(runs: Executions) -> Mask:
    """Return which executions were dispatched to a core that held two already, bool [executions]."""
    found = np.zeros(len(runs), np.bool_)
    joined = np.flatnonzero((runs.dispatch > 0) & (runs.finish > 0))
    if len(joined) <= _PLACES or not runs.has_counter:
        return found
    lane = runs.core[joined] if runs.epoch is None else runs.epoch[joined] << 16 | runs.core[joined]
    key = lane << 32 | runs.counter[joined]
    if not bool((key[1:] > key[:-1]).all()):
        order = np.argsort(key, kind="stable")
        joined, key = joined[order], key[order]
    behind, ahead = joined[_PLACES:], joined[:-_PLACES]
    follows = key[_PLACES:] - key[:-_PLACES] == _PLACES
    found[behind[follows & (runs.dispatch[behind] < runs.finish[ahead])]] = True
    return found


def outside_phase(told: Interpreter) -> tuple[Mask, Mask]:
    """Return which executions were dispatched, and which were seen to finish, while no phase of their thread ran.

    Both bool [executions]; all False where the capture has no phases, or does not say whose cores are whose.
    """
    runs, phases = told.runs, told.phases
    dispatched, finished = np.zeros((2, len(runs)), np.bool_)
    threads = thread_of_core(told.records.metadata)
    work = np.flatnonzero(told.is_kind(*_WORK) | (phases.has("kind") & ~told.is_kind(*PHASE_KINDS)))
    if not len(work) or not len(threads):
        return dispatched, finished
    lane = np.append(threads, -1)[np.minimum(runs.core, len(threads))]
    group = phases.group[work]
    for thread in np.flatnonzero(np.bincount(group)).tolist():
        mine = work[group == thread]
        begin, end = phases["start_cycles"][mine], phases["end_cycles"][mine]
        if not bool((begin[1:] >= begin[:-1]).all()):
            order = np.argsort(begin, kind="stable")
            begin, end = begin[order], end[order]
        reach = np.maximum.accumulate(end)
        rows = np.flatnonzero(lane == thread)
        for stamps, found in ((runs.dispatch, dispatched), (runs.finish, finished)):
            stamp = stamps[rows]
            at = np.searchsorted(begin, stamp, side="right")
            found[rows] = (stamp > 0) & ((at == 0) | (reach[at - 1] < stamp))
    return dispatched, finished


def duplicate_submits(told: Interpreter) -> int:
    """Return how many submits name a task that was submitted before."""
    if Erratum.SUBSTEPS in told.errata:
        return 0
    repeated = 0
    for rows in (told.submits, told.host_submits):
        if len(rows):
            repeated += len(rows) - int(np.count_nonzero(np.bincount(told.index(rows))))
    return repeated

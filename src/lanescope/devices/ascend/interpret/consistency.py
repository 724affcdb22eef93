"""What every chip keeps, whatever it runs: where a capture does not, its stamps or its counters are wrong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.intervals import order as in_order
from lanescope.devices.ascend.formats.layout import MAX_CORE, PHASE_KINDS, PHASES
from lanescope.devices.ascend.formats.versions import Erratum
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.execution_table import Executions
from lanescope.devices.ascend.interpret.graph import by_lane_and_time, reach
from lanescope.devices.ascend.interpret.resolve import Interpreter, thread_of_core
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Stamps of cores and schedulers are taken from one counter, but not at one place: so much they may disagree.
_TOLERANCE_NS = 1000
#: Kinds of phases in which a thread works.
_WORK = tuple(kind for kind, known in PHASE_KINDS.items() if known.role == "outer" and kind != "idle")
#: Versions of files with a list of phases for every scheduler thread.
_ALL_THREADS = ("v2", "v3", "v3c")
#: Largest number of a scheduler thread that is believed; chips have a handful.
_THREADS = 255
#: Dispatches that a core holds at once: one runs, one waits.
_PLACES = 2


def disordered(runs: Executions, frequency: int, suspect: Mask) -> Mask:
    """Return which executions have stamps out of order, bool [executions], where no step of a clock explains it.

    Args:
        runs: the executions.
        frequency: of the counter, Hz.
        suspect: bool [executions], rows of a clock that stepped.
    """
    slack = max(_TOLERANCE_NS * frequency // 1_000_000_000, 1)
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
    lane = told.run_thread
    group = phases.group[work].astype(np.int64)
    begin, end = phases["start_cycles"][work], phases["end_cycles"][work]
    if not by_lane_and_time(group, begin):
        order = in_order(group, begin)
        group, begin, end = group[order], begin[order], end[order]
    ended = np.append(reach(group, end), 0)
    works = np.append(np.bincount(group) > 0, False)
    last = len(works) - 1  # of all threads without phases, and of -1
    is_known = works[np.minimum(lane, last)]
    for stamps, found in ((runs.dispatch, dispatched), (runs.finish, finished)):
        at = core.ascend_last_of_lane(group, begin, lane, stamps)
        found[:] = is_known & (stamps > 0) & ((at < 0) | (ended[at] < stamps))
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


def on_wrong_kind(told: Interpreter) -> Mask:
    """Return which executions ran on a type of core for which the task graph names no kernel, bool [executions].

    Barriers, allocations and the tasks that contain a graph have no kernel and run on no core; the nodes of a graph do
    not stand in the task graph.
    """
    runs = told.runs
    without = (runs.function < 0) & (runs.core_type != graphs.UNKNOWN)
    if told.deps is None or not without.any():
        return np.zeros(len(runs), np.bool_)
    # Of two vector kernels it may not be known which one ran.
    is_either = told.graph.has_two_vectors[runs.task] & (runs.core_type == graphs.AIV)
    found: Mask = without & ~is_either & told.graph.is_listed[runs.task]
    return found


def before_submit(told: Interpreter, suspect: Mask) -> Mask:
    """Return which executions are older than the submission of their task, bool [executions].

    Submissions of a host are of another clock and do not count.

    Args:
        told: the capture.
        suspect: bool [executions], rows of a clock that stepped.
    """
    runs, submits = told.runs, told.submits
    if not len(submits) or not len(runs):
        return np.zeros(len(runs), np.bool_)
    begin = np.zeros(len(told.graph), np.int64)
    # Of several submissions of a task the first one is used.
    begin[told.index(submits)[::-1]] = submits["start_cycles"][::-1]
    took = np.where(runs.receive > 0, runs.receive, runs.start)
    seen = np.where(runs.dispatch > 0, runs.dispatch, took)
    slack = max(_TOLERANCE_NS * told.frequency // 1_000_000_000, 1)
    found: Mask = seen + slack < begin[runs.task]
    return found & ((runs.dispatch > 0) | ~suspect)


def contradicted_cores(told: Interpreter) -> list[int]:
    """Return the cores about which metadata and records disagree, rising.

    Those without a type, of an unknown one, or beyond ``num_cores``, those of an impossible thread, and those whose
    scheduler thread has no list of phases. Collectors write a list for every thread; the streams of v4 and of raw dumps
    do not show threads without records, and of v1 it is not known.
    """
    metadata, runs = told.records.metadata, told.runs
    threads, found = thread_of_core(metadata), set()
    cores, types = metadata.get("num_cores"), metadata.get("core_types")
    if cores is not None and (type(cores) is not int or not 0 <= cores <= MAX_CORE + 1):
        # A number that no chip has contradicts whatever core would be the last one.
        found.add(MAX_CORE)
    if isinstance(types, list):
        found |= {core for core, kind in enumerate(types) if kind not in (*graphs.CORE_TYPES[:-1], None)}
    listed = metadata.get("core_to_thread")
    if isinstance(listed, list):
        found |= {core for core, thread in enumerate(listed) if type(thread) is not int or not -1 <= thread <= _THREADS}
    if type(cores) is int and 0 <= cores <= MAX_CORE + 1:
        if isinstance(types, list):
            found |= set(range(*sorted((cores, len(types)))))
        for core in (runs.core, told.orphans["core_id"]):
            if int(core.max(initial=-1)) >= cores:
                found |= set(core[core >= cores].tolist())
        found |= set(range(cores, len(threads)))
    if len(threads):
        found |= set(runs.core[runs.core >= len(threads)].tolist())
        # What ran was dispatched by some thread.
        listed_cores = runs.core[runs.core < len(threads)]
        found |= set(listed_cores[threads[listed_cores] < 0].tolist())
    if _has_all_threads(told):
        found |= set(np.flatnonzero(threads >= told.phases.groups).tolist())
    return sorted(found)


def _has_all_threads(told: Interpreter) -> bool:
    """Return whether each scheduler thread has a list of phases, even one without records."""
    records = told.records
    is_whole = PHASES.name in records.sections and PHASES.name not in records.partial
    return is_whole and told.format_version in _ALL_THREADS and records.accounts is None

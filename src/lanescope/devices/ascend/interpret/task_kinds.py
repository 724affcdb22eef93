"""Kinds of tasks, decided once: what each task of a capture is, and whether a record of it should exist.

Neither the task graph file nor the records say what a task is; both together do, by rules that depend on the runtime
and on the recording level. Everything that distinguishes kinds takes them from here.

Source: hw-native-sys/simpler at 6ebaf77, captures of its simulated platforms at all levels and of both runtimes.

| task | task graph file | record at run time, on-device orchestration | record at run time, on the host |
| --- | --- | --- | --- |
| kernel | listed with a function | executions | executions |
| dummy | listed without one | ``dummy_task`` from level 3 on | none |
| alloc | not listed, producer of ``creator`` edges | none | none |
| skipped | listed with a function | ``predicated_skip`` from level 3 on | none |
| graph | listed without a function | does not exist | ``graph_prepare`` from level 3 on |
| node | not listed, no edges | does not exist | executions; number derived from the graph's |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.layout import GRAPH_KIND
from lanescope.devices.ascend.formats.records import Deps, Records
from lanescope.devices.ascend.formats.versions import HOST_BUILT, RINGS, on_host
from lanescope.devices.ascend.interpret import graph as graphs
from lanescope.devices.ascend.interpret.graph import Graph
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]
UInt8 = npt.NDArray[np.uint8]

#: Kinds, and their codes.
KINDS = ("unknown", "kernel", "dummy", "alloc", "skipped", "graph", "node")
UNKNOWN, KERNEL, DUMMY, ALLOC, SKIPPED, GRAPH, NODE = range(len(KINDS))
#: What there is at run time of a task: a record; none, as this runtime writes none at this level; none, although one
#: was due; none, and what is known does not decide between the last two.
RECORD_STATES = ("recorded", "none", "lost", "undecidable")
RECORDED, NO_RECORD, LOST, UNDECIDABLE = range(len(RECORD_STATES))

#: Kinds of phases that name a task.
_DUMMY, _SKIP = "dummy_task", "predicated_skip"
MARKERS = (_DUMMY, _SKIP, GRAPH_KIND)
#: Level from which scheduler phases, and with them markers, are recorded; and submissions.
_PHASES, _SUBMITS = 3, 4
#: Format versions of a time before predicates, and those without markers of dummies.
_WITHOUT_PREDICATES = ("v1a", "v1b", "v1c", "v2")


@frozen_class
class Evidence:
    """What a capture tells of its tasks.

    Attributes:
        graph: the task graph, or the ids alone.
        has_rows: bool [tasks], executions are recorded.
        is_dummy, is_skip, is_prepared: bool [tasks], a phase ``dummy_task``, ``predicated_skip``, ``graph_prepare``
            names the task.
        is_submitted: bool [tasks], an orchestrator record names it.
        level: recording level.
        has_deps: whether the capture has a task graph.
        runtime: ``versions.HOST_BUILT``, ``versions.RINGS``; empty: not known.
        marks_dummies: whether each dummy that ran is named by a phase in this format version.
        marks_graphs: whether each graph is named by a phase in this format version: in version 4, schedulers on cores
            have none for that.
        knows_predicates: whether tasks can be skipped in this format version.
        may_list_allocations: whether task graphs of this format version may list allocations, as tasks without a
            function: only captures of version 3c prove that they do not.
        is_complete: no record is known to be missing.
        has_all_submits: tasks that no orchestrator record names were not submitted.
    """

    graph: Graph
    has_rows: Mask
    is_dummy: Mask
    is_skip: Mask
    is_prepared: Mask
    is_submitted: Mask
    level: int
    has_deps: bool
    runtime: str = ""
    marks_dummies: bool = True
    marks_graphs: bool = True
    knows_predicates: bool = True
    may_list_allocations: bool = False
    is_complete: bool = True
    has_all_submits: bool = False

    @classmethod
    def of(
        cls,
        graph: Graph,
        executed: Int64,
        marked: Mapping[str, Int64],
        submitted: Iterable[Int64],
        *,
        format_version: str,
        level: int,
        runtime: str,
        has_deps: bool,
        is_complete: bool,
        has_all_submits: bool,
    ) -> Evidence:
        """Return the evidence in an interpreted capture.

        Args:
            graph: the task graph, or the ids alone.
            executed: int64 [executions], the task of each.
            marked: int64 [phases], the task that each phase of the kinds ``MARKERS`` names, by kind; -1 without.
            submitted: int64, the tasks of each list of orchestrator records.
            format_version: name of the format version.
            level: see ``Evidence``, as for all others.
            runtime: see there.
            has_deps: see there.
            is_complete: see there.
            has_all_submits: see there.
        """

        def named(kind: str) -> Mask:
            return _mask(len(graph), marked[kind][marked[kind] >= 0])

        is_old = format_version in _WITHOUT_PREDICATES
        return cls(
            graph=graph,
            has_rows=_mask(len(graph), executed),
            is_dummy=named(_DUMMY),
            is_skip=named(_SKIP),
            is_prepared=named(GRAPH_KIND),
            is_submitted=_mask(len(graph), *submitted),
            level=level,
            has_deps=has_deps,
            runtime=runtime,
            marks_dummies=not is_old and bool((marked[_DUMMY] >= 0).all()),
            marks_graphs=format_version != "v4",
            knows_predicates=not is_old,
            may_list_allocations=format_version != "v3c",
            is_complete=is_complete,
            has_all_submits=has_all_submits,
        )


@frozen_class
class TaskKinds:
    """What each task of a graph is.

    Attributes:
        kind: uint8 [tasks], codes of ``KINDS``.
        record: uint8 [tasks], codes of ``RECORD_STATES``.
    """

    kind: UInt8
    record: UInt8

    def counts(self) -> dict[str, int]:
        """Return the number of tasks of each kind that occurs."""
        return {KINDS[code]: int(count) for code, count in enumerate(np.bincount(self.kind)) if count}


def runtime(
    records: Records, format_version: str, kinds: Iterable[str], deps: Deps | None, *, has_submits: bool
) -> str:
    """Return which runtime wrote a capture: ``versions.HOST_BUILT``, ``versions.RINGS``, or nothing if it is not known.

    Only version 4 says it, and with orchestrator records version 3c. Else the phases tell, and the edges: only the
    runtime with rings writes ``flags`` in 3c. Before 3c, the other runtime is not known to have written captures.

    Args:
        records: the records file.
        format_version: name of its format version.
        kinds: those of its phases.
        deps: the task graph; None without.
        has_submits: whether an orchestrator on the device recorded anything.
    """
    said, kinds = records.metadata.get("runtime"), set(kinds)
    if said in (HOST_BUILT, RINGS):
        return str(said)
    if on_host(records) or GRAPH_KIND in kinds:
        return HOST_BUILT
    if has_submits or not kinds.isdisjoint((_DUMMY, _SKIP)) or format_version != "v3c":
        return RINGS if format_version != "v4" else ""
    if deps is None or not len(deps.edges):
        return ""
    if deps.edges.has("flags").any():
        return RINGS
    return HOST_BUILT if deps.edges.has("source").all() else ""  # a file that leaves out more says nothing


def decide(evidence: Evidence) -> TaskKinds:
    """Decide what each task is, and whether a record of it should exist.

    Args:
        evidence: see ``Evidence``; all masks are of the tasks of its graph.
    """
    graph = evidence.graph
    kind = np.full(len(graph), UNKNOWN, np.uint8)
    record = np.full(len(graph), UNDECIDABLE, np.uint8)

    def settle(where: Mask, code: int, state: int) -> None:
        mine = where & is_open
        kind[mine], record[mine] = code, state
        is_open[mine] = False

    is_open = np.ones(len(graph), np.bool_)
    settle(_nodes(evidence), NODE, RECORDED)
    settle(evidence.has_rows, KERNEL, RECORDED)
    settle(evidence.is_dummy, DUMMY, RECORDED)
    settle(evidence.is_skip, SKIPPED, RECORDED)
    settle(evidence.is_prepared, GRAPH, RECORDED)
    settle(_outer(evidence), GRAPH, LOST if evidence.marks_graphs and evidence.level >= _PHASES else NO_RECORD)
    settle(graph.has_no_kernel, *_without_kernel(evidence))
    settle(graph.is_listed, *_without_execution(evidence))
    if evidence.has_deps:
        # The orchestrator itself carries out an allocation, before it submits its consumers.
        allocates = evidence.is_submitted if evidence.has_all_submits else graph.is_creator | evidence.is_submitted
        settle(allocates, ALLOC, NO_RECORD)
    elif (
        evidence.runtime == RINGS
        and evidence.level >= _SUBMITS
        and evidence.is_complete
        and evidence.marks_dummies  # else it may be the dummy that an incomplete marker means
    ):
        settle(evidence.is_submitted, ALLOC, NO_RECORD)
    return TaskKinds(kind, record)


def _without_kernel(evidence: Evidence) -> tuple[int, int]:
    """Return kind and record of tasks that are listed without a function, and that no record names."""
    has_phases = evidence.level >= _PHASES
    if evidence.runtime == RINGS:
        if not has_phases:
            return DUMMY, NO_RECORD
        is_due = evidence.marks_dummies and not evidence.may_list_allocations
        return DUMMY, LOST if is_due else UNDECIDABLE
    if not has_phases:
        return UNKNOWN, UNDECIDABLE  # a dummy, or a graph without a recorded node
    return DUMMY, NO_RECORD if evidence.runtime == HOST_BUILT else UNDECIDABLE


def _without_execution(evidence: Evidence) -> tuple[int, int]:
    """Return kind and record of tasks that are listed with a function, and that no record names."""
    marks_skips = evidence.runtime == RINGS and evidence.level >= _PHASES
    if marks_skips or not evidence.knows_predicates:
        return KERNEL, LOST
    return UNKNOWN, UNDECIDABLE  # skipped, or lost


def _nodes(evidence: Evidence) -> Mask:
    """Return which tasks are nodes of graphs, bool [tasks]."""
    graph = evidence.graph
    if evidence.runtime == RINGS:
        return np.zeros(len(graph), np.bool_)
    if evidence.runtime == HOST_BUILT:
        found: Mask = evidence.has_rows & ~graph.is_listed & graphs.are_node_ids(graph.ids)
        return found
    # Where the runtime is not known, the graph that a node belongs to has to be there, or the id is of no ring.
    return (_parents(evidence) >= 0) | (evidence.has_rows & ~graph.is_listed & graphs.are_in_node_space(graph.ids))


def _outer(evidence: Evidence) -> Mask:
    """Return which tasks without a function have nodes, bool [tasks]."""
    if evidence.runtime == RINGS:
        return np.zeros(len(evidence.graph), np.bool_)
    parent = _parents(evidence)
    return _mask(len(evidence.graph), parent[parent >= 0])


def _parents(evidence: Evidence) -> npt.NDArray[np.int64]:
    """Return the graph of each recorded node that is not listed, int64 [tasks], -1 for other tasks."""
    graph = evidence.graph
    parent = graphs.parents(graph, np.flatnonzero(graph.has_no_kernel))
    return np.where(evidence.has_rows & ~graph.is_listed, parent, -1)


def _mask(count: int, *places: npt.NDArray[np.int64]) -> Mask:
    found = np.zeros(count, np.bool_)
    for place in places:
        found[place] = True
    return found

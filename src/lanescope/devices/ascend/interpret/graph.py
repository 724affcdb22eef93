"""The task graph: which tasks there are, what they run, who waits for whom, and when they could have run.

Tasks have a dense index here: the place of their id among all ids that the capture knows, in rising order.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.common.intervals import bounds
from lanescope.common.intervals import order as in_order
from lanescope.declaration import frozen_class, replace
from lanescope.devices.ascend.formats.layout import CREATOR, WAIT
from lanescope.devices.ascend.formats.records import Deps, UInt64
from lanescope.devices.ascend.interpret.sorted_index import SortedIndex, union
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: Halves of a task id: ring and number. Nodes of a graph are on one ring, and their lowest bits tell them apart.
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_NODE_RING, NODE_BITS = np.uint64(1), np.uint64(10)
_SPACE, _OWNER = np.uint64(62), np.uint64((1 << 20) - 1)
#: Types of a core, as codes: the slots of ``kernel_ids`` that it runs follow from it.
AIC, AIV, UNKNOWN = 0, 1, 2
#: Beside the types, as slots: the second vector kernel of a task, and one of two of which it is not known which.
AIV1, AIV_UNKNOWN = 3, 4
CORE_TYPES = ("aic", "aiv", "")


@frozen_class
class Graph:
    """The task graph of a run; without a deps file nothing but the ids.

    Attributes:
        ids: uint64 [tasks], rising.
        is_listed: bool [tasks], the deps file has the task.
        kernels: int64 [tasks, 3], functions of the slots AIC, AIV0, AIV1; -1: not used, or not known.
        blocks: int64 [tasks], blocks that a task runs as; 0: not known.
        is_early: bool [tasks], its consumers may be staged before it ends.
        is_creator: bool [tasks], an edge says that the task created a tensor of its consumer.
        pred, succ: int64 [edges], one a pair, in the order of the file, without self edges and those that only keep
            memory alive.
        says_early: whether the deps file knows ``is_early`` at all.
        repeated, own, retaining: edges left out: further ones of a pair, self edges, and those that order nothing.
        runs: where a capture holds several runs: of which the tasks are; the same id is another task in each.
    """

    ids: UInt64
    is_listed: Mask
    kernels: Int64
    blocks: Int64
    is_early: Mask
    is_creator: Mask
    pred: Int64
    succ: Int64
    says_early: bool = False
    repeated: int = 0
    own: int = 0
    retaining: int = 0
    runs: Runs | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def index(self, ids: UInt64, epoch: Int64 | None = None) -> Int64:
        """Return the dense index of ids (of runs) that are in the graph, int64 [n]."""
        if self.runs is None or epoch is None:
            return self._places.of(ids)
        return np.searchsorted(self.runs.keys, self.runs.key(ids, epoch))

    @cached_property
    def _places(self) -> SortedIndex:
        return SortedIndex.among(self.ids)

    @cached_property
    def has_no_kernel(self) -> Mask:
        """Tasks listed without any function, bool [tasks]: barriers and allocations."""
        first, second, third = (self.kernels[:, slot] < 0 for slot in range(3))
        found: Mask = self.is_listed & first & second & third
        return found

    @cached_property
    def has_two_vectors(self) -> Mask:
        """Tasks with a function in both vector slots, bool [tasks]."""
        found: Mask = (self.kernels[:, 1] >= 0) & (self.kernels[:, 2] >= 0)
        return found


@frozen_class
class Runs:
    """The tasks of a graph of several runs.

    Attributes:
        ids: uint64, distinct task ids, rising.
        epochs: int64, distinct runs, rising.
        keys: int64 [tasks], run and id of each task as one number, rising.
        left_out: edges that are not in the graph because it would be larger than all that was recorded.
    """

    ids: UInt64
    epochs: Int64
    keys: Int64
    left_out: int = 0

    def key(self, ids: UInt64, epoch: Int64) -> Int64:
        """Return run and id as one number, int64 [n]."""
        return np.searchsorted(self.epochs, epoch) * len(self.ids) + np.searchsorted(self.ids, ids)


#: Edges of a graph of several runs for each task in it, beyond those of the file.
_EDGES_PER_TASK = 16


def by_run(graph: Graph, ids: Iterable[UInt64], epochs: Iterable[Int64]) -> Graph:
    """Return the graph of a capture with several runs, each of which ran (a part of) the same graph.

    Args:
        graph: the graph of one run; it has all ids.
        ids: task ids that were recorded, arrays of any order and repetition.
        epochs: int64, the run of each.
    """
    ids, epochs = list(ids), list(epochs)
    runs = Runs(graph.ids, distinct(np.concatenate(epochs)), np.empty(0, np.int64))
    keys = distinct(np.concatenate([runs.key(*pair) for pair in zip(ids, epochs, strict=True)]))
    task = keys % max(len(graph), 1)
    # Each recorded task brings the edges that end at it, where their other end was recorded in the same run.
    order = np.argsort(graph.succ, kind="stable")
    first, last = (np.searchsorted(graph.succ[order], task, side=side) for side in ("left", "right"))
    total = np.cumsum(last - first)
    room = len(graph.pred) + _EDGES_PER_TASK * len(keys)
    kept = int(np.searchsorted(total, room, side="right"))
    count = (last - first)[:kept]
    succ = np.repeat(np.arange(kept), count)
    edge = order[np.repeat(first[:kept] - (np.cumsum(count) - count), count) + np.arange(len(succ))]
    key = keys[succ] - task[succ] + graph.pred[edge]
    pred = np.minimum(np.searchsorted(keys, key), max(len(keys) - 1, 0))
    met = np.flatnonzero(keys[pred] == key) if len(keys) else np.empty(0, np.int64)
    met = met[np.lexsort((edge[met], (keys // max(len(graph), 1))[succ[met]]))]
    left_out = int(total[-1] - total[kept - 1]) if 0 < kept < len(keys) else 0
    return replace(
        graph,
        ids=graph.ids[task],
        is_listed=graph.is_listed[task],
        kernels=graph.kernels[task],
        blocks=graph.blocks[task],
        is_early=graph.is_early[task],
        is_creator=graph.is_creator[task],
        pred=pred[met],
        succ=succ[met],
        runs=replace(runs, keys=keys, left_out=left_out),
    )


def build(deps: Deps | None, ids: Iterable[UInt64]) -> Graph:
    """Make the graph of a run.

    Args:
        deps: the task graph file; None: only the ids are known.
        ids: task ids met elsewhere in the capture, arrays of any order and repetition.
    """
    if deps is None:
        known = union(list(ids)).ids
        none = np.empty(0, np.int64)
        no = np.zeros(len(known), np.bool_)
        kernels, blocks = np.full((len(known), 3), -1, np.int64), np.zeros(len(known), np.int64)
        return Graph(known, no, kernels, blocks, no, no, none, none)
    pred, succ = deps.edges["pred"], deps.edges["succ"]
    task = deps.tasks["task_id"]
    places = union([task, pred, succ, *ids])
    known = places.ids
    listed = places.of(task)[::-1]  # of a task that is listed twice the first entry holds
    is_listed = np.zeros(len(known), np.bool_)
    is_listed[listed] = True
    kernels = np.full((len(known), 3), -1, np.int64)
    kernels[listed] = deps.tasks["kernel_ids"][::-1]
    blocks = np.zeros(len(known), np.int64)
    says_blocks = deps.tasks.has("block_num")
    if says_blocks.any():
        blocks[listed] = np.where(says_blocks, deps.tasks["block_num"], 1)[::-1]
    is_early = np.zeros(len(known), np.bool_)
    is_early[listed] = deps.tasks["early_dispatch"][::-1]

    orders = ~deps.edges.has("flags") | ((deps.edges["flags"] & WAIT) != 0)
    is_own = pred == succ
    rows = np.flatnonzero(orders & ~is_own)
    first, second = places.of(pred[rows]), places.of(succ[rows])
    kept: Int64 = core.ascend_first_edges(first, second, len(known))
    return Graph(
        known,
        is_listed,
        kernels,
        blocks,
        is_early,
        _creators(deps, places.of(pred), len(known)),
        first[kept],
        second[kept],
        bool(deps.tasks.has("early_dispatch").any()),
        len(rows) - len(kept),
        int(np.count_nonzero(is_own)),
        int(np.count_nonzero(~orders & ~is_own)),
    )


def _creators(deps: Deps, pred: Int64, tasks: int) -> Mask:
    """Return which tasks created a tensor, bool [tasks]: an edge says so."""
    found = np.zeros(tasks, np.bool_)
    if CREATOR in deps.edges.texts:
        is_creation = deps.edges["source"] == deps.edges.texts.index(CREATOR)
        found[pred[is_creation & deps.edges.has("source")]] = True
    return found


def number_mask(ids: UInt64) -> UInt64:
    """Return the bits of ids of nodes that number the nodes of one graph, uint64 [n]."""
    return np.where(are_in_node_space(ids), _LOW, np.uint64((1 << int(NODE_BITS)) - 1))


def are_node_ids(ids: UInt64) -> Mask:
    """Return which ids a host that builds graphs gives to nodes: those of ring 1, in version 4 of space 1, bool [n]."""
    found: Mask = (ids >> _HALF == _NODE_RING) | are_in_node_space(ids)
    return found


def are_in_node_space(ids: UInt64) -> Mask:
    """Return which ids are of the space that version 4 gives to nodes alone, bool [n]."""
    found: Mask = ids >> _SPACE == _NODE_RING
    return found


def rings(graph: Graph) -> Mask:
    """Return which tasks wait for each other in a ring, or stand between two such rings, bool [tasks].

    No order of the tasks keeps the edges of a ring, so the graph, or the ids in it, are not those of one run.

    Complexity:
        One look at each edge where ids rise as tasks are submitted; else linear in the tasks and edges.
    """
    found = np.zeros(len(graph), np.bool_)
    # A ring comes back from its last task to its first.
    if (graph.pred >= graph.succ).any():
        core.ascend_cycles(graph.pred, graph.succ, found)
    return found


def parents(graph: Graph, outer: Int64) -> Int64:
    """Return the task that each node of a graph belongs to, int64 [tasks], -1 for tasks that are not nodes.

    A host that builds graphs numbers the nodes of a task on ring 1: its own number, and ten bits for the node. Version
    4 has a space for nodes, with the lowest 20 bits of the number of their task; where several graphs of a run have
    these bits, it is not known which one is meant.

    Args:
        graph: the task graph.
        outer: int64, tasks that are graphs, any order and repetition.
    """
    found = np.full(len(graph), -1, np.int64)
    outer = distinct(outer[graph.ids[outer] >> _HALF == 0]) if len(outer) else outer
    for nodes, shift, bits in (
        (np.flatnonzero(graph.ids >> _HALF == _NODE_RING), NODE_BITS, _LOW >> NODE_BITS),
        (np.flatnonzero(are_in_node_space(graph.ids)), _HALF, _OWNER),
    ):
        if not len(nodes) or not len(outer):
            continue
        wanted = _of_run(graph, nodes, graph.ids[nodes] >> shift & bits)
        # A number that has more bits than a node can name is of no node.
        known = _of_run(graph, outer, graph.ids[outer] & (_LOW if shift == NODE_BITS else bits))
        order = np.argsort(known, kind="stable")
        low, high = (np.searchsorted(known[order], wanted, side=side) for side in ("left", "right"))
        found[nodes] = np.where(high - low == 1, outer[order[np.minimum(low, len(outer) - 1)]], -1)
    return found


def _of_run(graph: Graph, task: Int64, number: UInt64) -> Int64:
    """Return numbers of tasks as numbers that differ between the runs of a capture, int64 [n]."""
    if graph.runs is None:
        return number.astype(np.int64)
    run = graph.runs.keys[task] // max(len(graph.runs.ids), 1)
    return (run << 32) | number.astype(np.int64)


def vector_halves(core_types: npt.NDArray[np.uint8]) -> npt.NDArray[np.int8]:
    """Return which vector core of its cluster each core is, int8 [cores]: 0 or 1; -1 of others and if not known.

    The runtime forms clusters in order of the cores' numbers, of a cube core and two vector cores each.

    Args:
        core_types: uint8 [cores], ``AIC``, ``AIV`` or ``UNKNOWN``.
    """
    cube, vector = core_types == AIC, core_types == AIV
    cubes, vectors = np.count_nonzero(cube), np.count_nonzero(vector)
    first = int(np.argmax(vector)) if vectors else len(core_types)
    if vectors == 2 * cubes and (cube | vector).all():
        number = np.cumsum(vector) - 1
    elif cube[:first].all() and cubes == first and vectors <= 2 * cubes:
        # Some vector cores are not known, as they ran nothing: their numbers follow those of all cube cores.
        number = np.arange(len(core_types)) - first
    else:
        number = np.full(len(core_types), -1)
    found: npt.NDArray[np.int8] = np.where(vector & (number >= 0), number % 2, -1).astype(np.int8)
    return found


def slots(
    graph: Graph, task: Int64, core_type: npt.NDArray[np.uint8], half: npt.NDArray[np.int8]
) -> npt.NDArray[np.uint8]:
    """Return what each row ran of its task, uint8 [rows]: a type of core, or ``AIV1``, or ``AIV_UNKNOWN``.

    A task of several slots goes to one cluster, AIV0 to the first of its vector cores; a task of one slot to any core.

    Args:
        graph: the task graph.
        task: int64 [rows], index of the task.
        core_type: uint8 [rows], ``AIC``, ``AIV`` or ``UNKNOWN``.
        half: int8 [rows], the ``vector_halves`` of its core.
    """
    if not graph.has_two_vectors.any():
        return core_type
    found = core_type.copy()
    rows = np.flatnonzero((core_type == AIV) & graph.has_two_vectors[task])
    # By the half, of which -1 is the last.
    found[rows] = np.array((AIV, AIV1, AIV_UNKNOWN), np.uint8)[half[rows]]
    return found


def functions(graph: Graph, task: Int64, slot: npt.NDArray[np.uint8]) -> Int64:
    """Return the function that each row ran, int64 [rows]; -1 where it is not known.

    Where only the slot is not known (raw dumps have no types of cores), a task of a single function has run it.

    Args:
        graph: the task graph.
        task: int64 [rows], index of the task.
        slot: uint8 [rows], the ``slots``.
    """
    kernels = graph.kernels
    vector = np.where(kernels[:, 1] >= 0, kernels[:, 1], kernels[:, 2])
    found = np.where(slot == AIC, kernels[:, 0][task], vector[task])
    second, unknown = (np.flatnonzero(slot == kind) for kind in (AIV1, AIV_UNKNOWN))
    found[second] = kernels[:, 2][task[second]]
    found[unknown] = np.where(kernels[:, 1] == kernels[:, 2], vector, -1)[task[unknown]]
    is_unknown = slot == UNKNOWN
    if is_unknown.any():
        only = np.where(np.count_nonzero(kernels >= 0, axis=1) == 1, kernels.max(axis=1, initial=-1), -1)
        found = np.where(is_unknown, only[task], found)
    return np.maximum(found, -1)


def is_spmd(graph: Graph, task: Int64, core_type: npt.NDArray[np.uint8]) -> Mask:
    """Return which tasks run one function as several blocks, bool [tasks].

    The deps file says so; where it does not speak of blocks, a task with several rows on cores of one type does.
    """
    if graph.blocks.any():
        return graph.blocks > 1
    count = np.bincount(task, minlength=len(graph))
    per_type = [np.bincount(task[core_type == kind], minlength=len(graph)) for kind in (AIC, AIV, UNKNOWN)]
    found: Mask = (count > 1) & (np.maximum.reduce(per_type) == count)
    return found


def blocks(task: Int64, slot: npt.NDArray[np.uint8], start: Int64) -> Int64:
    """Return the ordinal of each row among those of its task and slot, by start, int64 [rows]."""
    key = task * (AIV_UNKNOWN + 1) + slot
    ordinal = np.zeros(len(key), np.int64)
    # Most tasks have one row, which is the first.
    rows = np.flatnonzero(np.bincount(key)[key] > 1) if len(key) else np.empty(0, np.int64)
    rows = rows[in_order(key[rows], start[rows])]
    first = np.ones(len(rows), np.bool_)
    first[1:] = key[rows][1:] != key[rows][:-1]
    begin = np.flatnonzero(first)
    ordinal[rows] = np.arange(len(rows)) - np.repeat(begin, np.diff(begin, append=len(rows)))
    return ordinal


def extreme(task: Int64, value: Int64, tasks: int, *, largest: bool) -> tuple[Int64, Int64]:
    """Return the largest (smallest) value among the rows of each task, and the first row that has it.

    Args:
        task: int64 [rows], index of the task.
        value: int64 [rows], not below 0.
        tasks: how many tasks there are.
        largest: the largest or the smallest.

    Returns:
        int64 [tasks] values, 0 without rows; int64 [tasks] rows, -1 without.
    """
    best: Int64
    row: Int64
    best, row = core.ascend_extremes(np.ascontiguousarray(task), np.ascontiguousarray(value), tasks, largest)
    return best, row


def ready(graph: Graph, last_end: Int64) -> Int64:
    """Return when the last producer of each task had ended, int64 [tasks], cycles; 0: not known.

    Producers without rows (barriers, allocations, lost ones) do not count: what they waited for is not in their ends.

    Args:
        graph: the task graph.
        last_end: int64 [tasks], largest end of the task's rows, 0 without rows.
    """
    found: Int64 = core.ascend_latest_before(graph.pred, graph.succ, last_end)
    return found


def by_lane_and_time(lane: Int64, time: Int64) -> bool:
    """Return whether lanes do not fall, nor times within a lane, int64 [n] each."""
    return bool(((lane[1:] > lane[:-1]) | ((lane[1:] == lane[:-1]) & (time[1:] >= time[:-1]))).all())


def reach(lane: Int64, end: Int64) -> Int64:
    """Return the latest end so far on the lane of each row, int64 [n]; lanes do not fall."""
    found = np.empty(len(end), np.int64)
    for first, last in pairwise(bounds(lane) if len(lane) else [0]):
        np.maximum.accumulate(end[first:last], out=found[first:last])
    return found


@frozen_class
class Intervals:
    """Phases of the scheduler threads, for asking whether a stamp lies in one.

    Attributes:
        thread: int64 [n].
        start: int64 [n], cycles.
        end: int64 [n], cycles; the interval is closed.
    """

    thread: Int64
    start: Int64
    end: Int64

    def contain(self, thread: Int64, stamp: Int64) -> Mask:
        """Return whether each stamp lies in an interval of its thread, bool [m]."""
        lane, start, end = self.thread, self.start, self.end
        if not by_lane_and_time(lane, start):
            order = in_order(lane, start)
            lane, start, end = lane[order], start[order], end[order]
        at = core.ascend_last_of_lane(*map(np.ascontiguousarray, (lane, start, thread, stamp)))
        found: Mask = (at >= 0) & (np.append(reach(lane, end), 0)[at] >= stamp)
        return found


def may_be_staged(graph: Graph, forbids: Mask, ended: Int64, submitted: Int64) -> Mask:
    """Return which tasks the runtime may have staged before their producers ended, bool [tasks].

    Each producer that the runtime waits for has to allow it. It does not wait for those that were finished and released
    when the task was submitted. Where the graph has no such permission, any task may be staged.

    Args:
        graph: the task graph.
        forbids: bool [tasks], the task does not allow it.
        ended: int64 [tasks], cycles, when the task had ended; 0 where unknown.
        submitted: int64 [tasks], cycles, when its submission began; 0 where unknown.
    """
    allowed = np.ones(len(graph), np.bool_)
    if graph.says_early:
        edges = np.flatnonzero(forbids[graph.pred])
        pred, succ = graph.pred[edges], graph.succ[edges]
        may_be_released = (ended[pred] > 0) & (ended[pred] <= submitted[succ])
        allowed[succ[~may_be_released]] = False
    return allowed

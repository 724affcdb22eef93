"""Event graph: begins and ends of slices as nodes, lanes as chains, causes as edges; bound to its native twin."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints, union
from lanescope.families.causes import CauseKind

Mask = npt.NDArray[np.bool_]
Int32 = npt.NDArray[np.int32]

#: What became of a cause: an edge; its source is later than its target; it lies on a cycle; it joins a node to itself.
KEPT, BACKWARD, CYCLIC, SELF = range(4)
#: So many lags of a kind must be known before the shortest counts as what it costs at least.
ENOUGH = 20
#: Pieces of a lane between two nodes.
NONE, WORK, WAIT, IDLE = range(4)
#: What binds a node besides an edge.
CHAIN, NOTHING = -1, -2
#: Slack of what nothing in the window depends on.
FREE = 1 << 62
#: Which lags causes that do not bind keep, by the name of the slack that results.
LAGS = {"slack": 0, "slack_safe": 2, "slack_max": 1}
#: Bounds of an answer.
BOUNDS = {"nominal": 0, "low": 1, "high": 2}
#: Where a part of a path went.
CAUSES = (
    "work",
    "wait without cause",
    "latency",
    "delay beyond",
    "lane idle",
    "resource",
    "unknown",
    "no known cause",
    "after last end",
)
_NESTINGS = {"free": 0, "disjoint": 1, "nested": 2}


class GraphRows(NamedTuple):
    """Rows of a graph; arrays [rows].

    Attributes:
        lane: int64, lane of the row.
        begin: int64.
        end: int64, not before the begin.
        name: int64, code of its name, dense.
        waits: bool, whether it waits.
    """

    lane: Ints
    begin: Ints
    end: Ints
    name: Ints
    waits: Mask


class GraphEdges(NamedTuple):
    """Causes of a graph; arrays [causes].

    Attributes:
        source: int64, row of the cause.
        source_ts: int64, its moment.
        target: int64, row of the effect.
        target_ts: int64, its moment.
        kind: int64, index into the kinds.
        device: int64, the effect's device: lags are compared within one.
    """

    source: Ints
    source_ts: Ints
    target: Ints
    target_ts: Ints
    kind: Ints
    device: Ints


class UnknownTimes(NamedTuple):
    """Times in which the state of lanes is not known, disjoint and rising.

    Attributes:
        first: int64 [lanes + 1], where those of each lane begin.
        begin: int64 [n].
        end: int64 [n].
    """

    first: Ints
    begin: Ints
    end: Ints

    @classmethod
    def of(cls, intervals: Intervals, lanes: int) -> UnknownTimes:
        """Return those of intervals of lanes; they may overlap."""
        found = union(intervals)
        first = np.searchsorted(found.group, np.arange(lanes + 1))
        return cls(_ints(first), _ints(found.begin), _ints(found.end))


class PathParts(NamedTuple):
    """Parts of a path in order of time, without holes between them; arrays [parts].

    Attributes:
        begin: int64.
        end: int64.
        cause: uint8, index into ``CAUSES``.
        kind: int32, kind of the edge; -1 where it is none.
        row: int32, the row that worked or waited, or whose begin or end ends the part.
        source: int32, the row that an edge comes from; -1 where it is none.
        node: int32, the node that ends the part, or ended what it was cut from.
        steps: int32 [steps], nodes of the path, the last first.
    """

    begin: Ints
    end: Ints
    cause: npt.NDArray[np.uint8]
    kind: Int32
    row: Int32
    source: Int32
    node: Int32
    steps: Int32


class EventGraph:
    """The event graph of rows and their causes.

    Args:
        rows: the rows.
        edges: the causes.
        kinds: their kinds; those that bind before others come first.
        nestings: of each lane ``free``, ``disjoint`` or ``nested``.
        floors: what a cause of a kind costs at least, by name; else the shortest lag where 20 are known.
        wait_floor: what a wait costs at least; else the shortest of its name that had nothing to wait for, where 20 of
            that name are known.
    """

    def __init__(
        self,
        rows: GraphRows,
        edges: GraphEdges,
        kinds: tuple[CauseKind, ...],
        nestings: list[str],
        *,
        floors: dict[str, int] | None = None,
        wait_floor: int | None = None,
    ) -> None:
        self.rows = rows
        self.kinds = kinds
        self.lanes = len(nestings)
        pairs = edges.kind * (int(edges.device.max(initial=0)) + 1) + edges.device
        groups = distinct(pairs)
        given = {place: (floors or {}).get(kind.name, -1) for place, kind in enumerate(kinds)}
        group_kinds = (groups // (int(edges.device.max(initial=0)) + 1)).tolist()
        names = int(rows.name.max(initial=-1)) + 1
        self.native = core.CauseGraph(
            lane=_ints(rows.lane),
            begin=_ints(rows.begin),
            end=_ints(rows.end),
            name=_ints(rows.name),
            waits=_bytes(rows.waits),
            source=_ints(edges.source),
            source_time=_ints(edges.source_ts),
            target=_ints(edges.target),
            target_time=_ints(edges.target_ts),
            kind=_ints(edges.kind),
            group=_ints(np.searchsorted(groups, pairs)),
            nesting=_bytes([_NESTINGS[nesting] for nesting in nestings]),
            blocking=_bytes([kind.is_blocking for kind in kinds]),
            floors=_ints([given[kind] for kind in group_kinds]),
            wait_floors=_ints(np.full(names, -1 if wait_floor is None else wait_floor)),
        )
        self.rows_crossing, self.edges_backward, self.backward_max, self.edges_cyclic = self.native.counts()

    @cached_property
    def nodes(self) -> dict[str, Any]:
        """Columns of the nodes: time, row, event, linked, owner, piece, binding; read-only."""
        return self.native.nodes()

    @cached_property
    def before(self) -> Int32:
        """The node before each on its chain, int32 [nodes]; -1 for the first ones."""
        linked = self.nodes["linked"]
        return np.where(linked != 0, np.arange(-1, len(linked) - 1, dtype=np.int32), np.int32(-1))

    @cached_property
    def edges(self) -> dict[str, Any]:
        """Columns of the edges: source, target, kind, given, floor; and the fate of each cause given."""
        return self.native.edges()

    @cached_property
    def time(self) -> Ints:
        """The time of each node, int64 [nodes]."""
        return self.native.times()

    @cached_property
    def begin_of(self) -> Int32:
        """The node of each row's begin, int32 [rows]."""
        return self.native.begin_of()

    @cached_property
    def end_of(self) -> Int32:
        """The node of each row's end, int32 [rows]."""
        return self.native.end_of()

    @cached_property
    def own_work(self) -> Ints:
        """Work of each row in its own pieces, int64 [rows]."""
        return self.native.own_work()

    def walk(
        self,
        begin: int,
        end: int,
        sink: int,
        *,
        cut: int = -1,
        gaps: UnknownTimes | None = None,
        idle: UnknownTimes | None = None,
        swapped: tuple[int, int] | None = None,
    ) -> PathParts:
        """Walk back from a node to the window's begin: each nanosecond of the window belongs to one part.

        Args:
            begin: begin of the window.
            end: end of the window, not before the node.
            sink: the node.
            cut: the node whose piece reaches over the window's end; -1: nothing runs there.
            gaps: times not known, which cut all parts but work.
            idle: times not known or not recorded, which cut those without a row.
            swapped: a node, and what binds it instead.
        """
        known = UnknownTimes(np.zeros(self.lanes + 1, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))
        node, binding = swapped or (-1, NOTHING)
        resources = _bytes([kind.is_resource for kind in self.kinds])
        found = self.native.walk(
            begin, end, sink, cut, resources, *(gaps or known), *(idle or gaps or known), node, binding
        )
        *columns, steps = found
        begins, ends, causes, kinds, rows, sources, nodes = (column[::-1] for column in columns)
        return PathParts(begins, ends, causes, kinds, rows, sources, nodes, steps)

    def replay(
        self,
        share: Int32 | None = None,
        factors: Sequence[tuple[int, int]] = (),
        bound: str = "nominal",
        more: Ints | None = None,
    ) -> Ints:
        """Return the time of each node after a change of the lengths of work; without one, that of the trace.

        Args:
            share: int32 [rows], which of the factors the work of a row is multiplied with; -1: none.
            factors: numerators and denominators.
            bound: ``nominal``, ``low`` or ``high``.
            more: int64 [edges], what each edge costs beyond what it did, not below minus its floor; None: nothing.
        """
        shares = np.empty(0, np.int32) if share is None else np.ascontiguousarray(share, np.int32)
        nums, dens = _ints([num for num, _ in factors]), _ints([den for _, den in factors])
        return self.native.replay(shares, nums, dens, BOUNDS[bound], _ints([] if more is None else more))

    def slack(self, sink: int | None = None, kind: str = "slack") -> Ints:
        """Return how much later each node may be before the sink is, int64 [nodes]; ``FREE``: any time.

        Args:
            sink: the node; None: before any node is later than the last one.
            kind: one of ``LAGS``: causes that do not bind keep their floors, cost nothing, or all that they took.
        """
        return self.native.slack(-1 if sink is None else sink, LAGS[kind])

    def row_slack(self, slack: Ints) -> Ints:
        """Return the slack of rows, int64 [rows]: of the end of their own first piece."""
        return slack[self.begin_of + 1]


def _ints(values: Any) -> Ints:
    return np.ascontiguousarray(values, np.int64)


def _bytes(values: Any) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(values, np.uint8)

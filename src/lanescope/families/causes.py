"""What a family's traces show of causes: which event waited for which, and which slices are waits or views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from lanescope.trace import Trace

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


class CauseKind(NamedTuple):
    """One kind of cause.

    Attributes:
        name: as tables show it: ``launch``.
        rank: which of two causes that arrive together counts, the smaller: 0 return, 1 signal and dependency, 2
            barrier, 3 launch and dispatch, 4 submit, 5 resource, 8 inferred, 9 recording.
        is_blocking: the piece of the lane before the effect waits, whatever slice it belongs to.
        is_resource: the effect waits for something that the cause had taken.
        ends_wait: an effect inside a slice that waits is that wait's end.
        is_inferred: the capture does not name the cause; it follows from times and orders.
        is_at_end: the capture names the cause, and not when in its slice it let the effect go: its end is taken.
    """

    name: str
    rank: int
    is_blocking: bool = False
    is_resource: bool = False
    ends_wait: bool = False
    is_inferred: bool = False
    is_at_end: bool = False

    @property
    def quality(self) -> str:
        """Quality of what the causes tell: ``exact``, ``estimated`` or ``inferred``."""
        return "inferred" if self.is_inferred else "estimated" if self.is_at_end else "exact"


class CauseEdges(NamedTuple):
    """Causes of one kind; arrays of one length.

    Attributes:
        kind: their kind.
        source: int64, slice of the cause.
        source_ts: int64, when it let the effect go, in the trace's time unit: begin or end of the slice, or between.
        target: int64, slice of the effect.
        target_ts: int64, what waited for it: begin or end of the slice, or between.
        unplaced: how many of them the capture names without saying which slices they join.
    """

    kind: CauseKind
    source: Int64
    source_ts: Int64
    target: Int64
    target_ts: Int64
    unplaced: int = 0

    @classmethod
    def of_flows(cls, kind: CauseKind, trace: Trace, name: str) -> CauseEdges:
        """Return the flows of one kind as causes, from and to where they are drawn.

        Args:
            kind: what they become.
            trace: the trace.
            name: kind of the flows.
        """
        flows = trace.flows
        mine = flows.values("kind") == name
        rows = np.flatnonzero(mine & flows.valid("src_slice_id") & flows.valid("dst_slice_id"))
        return cls(
            kind,
            flows.values("src_slice_id")[rows],
            flows.values("src_ts")[rows],
            flows.values("dst_slice_id")[rows],
            flows.values("dst_ts")[rows],
            int(np.count_nonzero(mine)) - len(rows),
        )


class NaturalWindow(NamedTuple):
    """A window that has a path of its own: a run, a launch, an instance of an annotation.

    Attributes:
        name: what it is called: ``epoch 2``.
        begin: its begin, in the trace's time unit.
        end: its end.
        sink: the slice whose end the path ends with, None for the last that ends in it.
    """

    name: str
    begin: int
    end: int
    sink: int | None = None


class Causes(NamedTuple):
    """What a trace shows of causes.

    Attributes:
        edges: the causes, by kind.
        waits: bool [slices], slices that wait; besides calls that are known to.
        word_waits: slices whose names have a word for waiting wait, too.
        views: bool [slices], slices that show what others show already, or what does not work: left out of the graph.
        windows: windows that have a path of their own; empty: the whole trace is one.
        chance: of kinds that only ``--infer`` adds, how many hits there are and how many at random times.
        hint: why the trace has no causes and what answers instead, begun with a verb; empty where it may have some.
    """

    edges: tuple[CauseEdges, ...] = ()
    waits: Mask | None = None
    word_waits: bool = False
    views: Mask | None = None
    windows: tuple[NaturalWindow, ...] = ()
    chance: Mapping[str, tuple[int, int]] = {}
    hint: str = ""


class CauseFinder(Protocol):
    """What a family declares: finds the causes that a trace shows."""

    def __call__(self, trace: Trace, *, infer: bool) -> Causes:
        """Return them; with ``infer`` also what follows from times only."""

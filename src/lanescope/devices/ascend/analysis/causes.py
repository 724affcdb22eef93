"""Causes that a capture of the swimlane shows: dependencies, submissions, dispatches, completions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints, known_extents
from lanescope.families import CauseEdges, CauseKind, Causes, NaturalWindow
from lanescope.trace import Trace

#: What becomes of flows of each kind. Those to a phase of a scheduler count from its begin, unless they come later: the
#: phase began because of them, or it was at work already.
_KINDS = {
    "dependency": (CauseKind("dependency", 1), False),
    "ready": (CauseKind("ready", 1), True),
    "complete": (CauseKind("complete", 2), True),
    "dispatch": (CauseKind("dispatch", 3), False),
    "submit": (CauseKind("submit", 4), True),
}
_FLIGHT = "flight"


def causes(trace: Trace, *, infer: bool) -> Causes:
    """Return what a trace shows of causes. What is in flight shows what cores and schedulers show already.

    Args:
        trace: the trace.
        infer: nothing can be added: flows name the thread where exactly one can have been it.
    """
    shown = views(trace)[trace.slices.values("track_id")]
    edges = {name: _edges(trace, name, kind, to_begin=to_begin) for name, (kind, to_begin) in _KINDS.items()}
    edges["dependency"] = _until_dispatch(edges, shown)
    return Causes(tuple(edges.values()), views=shown, windows=_epochs(trace))


def views(trace: Trace) -> npt.NDArray[np.bool_]:
    """Return which lanes show what is in flight, bool [tracks]."""
    is_flight: npt.NDArray[np.bool_] = trace.tracks.values("role") == _FLIGHT
    return is_flight


def _edges(trace: Trace, name: str, kind: CauseKind, *, to_begin: bool) -> CauseEdges:
    edges = CauseEdges.of_flows(kind, trace, name)
    if not to_begin:
        return edges
    begin = trace.slices.values("ts")[edges.target]
    return edges._replace(target_ts=np.where(edges.source_ts <= begin, begin, edges.target_ts))


def _until_dispatch(edges: dict[str, CauseEdges], is_view: npt.NDArray[np.bool_]) -> CauseEdges:
    """Return the dependencies, each to what waited for it.

    A core waits for a producer only if its task was sent before the producer had ended. Else the dispatch did, where
    the phase of a scheduler shows it: nothing that is late behind it is to be laid at the producer. Where phases also
    show how the end was seen and that the task became ready by it, they are the causes, one after the other.

    Args:
        edges: edges of each kind; those of dependencies end at cores.
        is_view: which slices show what others show, bool [slices].
    """
    found, dispatch, complete, ready = (edges[name] for name in ("dependency", "dispatch", "complete", "ready"))
    if not len(found.source) or not len(dispatch.source):
        return found
    count = len(is_view)
    sent = _place_of(dispatch.target, count)[found.target]  # -1: none
    is_sent = (sent >= 0) & ~is_view[dispatch.source[sent]] & (found.source_ts <= dispatch.source_ts[sent])
    kept = np.ones(len(sent), np.bool_)
    if len(complete.source) and len(ready.source):
        seen = _place_of(complete.source, count)[found.source]
        rows = np.flatnonzero(is_sent & (seen >= 0))
        steps = complete.target[seen[rows]] * count + dispatch.source[sent[rows]]
        kept[rows] = ~np.isin(steps, ready.source * count + ready.target)
    target = np.where(is_sent, dispatch.source[sent], found.target)[kept]
    target_ts = np.where(is_sent, dispatch.source_ts[sent], found.target_ts)[kept]
    source, source_ts = found.source[kept], found.source_ts[kept]
    return found._replace(source=source, source_ts=source_ts, target=target, target_ts=target_ts)


def _place_of(slices: Ints, count: int) -> Ints:
    """Return where each slice of a trace is in a list, int64 [count]; -1 if nowhere."""
    place = np.full(count, -1, np.int64)
    place[slices] = np.arange(len(slices))
    return place


def _epochs(trace: Trace) -> tuple[NaturalWindow, ...]:
    """Return a window for each run of the file, if there are several: from its first dispatch to its last end."""
    tasks = trace.details.get("ascend_tasks")
    if tasks is None or not tasks.valid("run_epoch").any():
        return ()
    known = np.flatnonzero(tasks.valid("run_epoch"))
    slices, epoch = tasks.values("slice_id")[known], tasks.values("run_epoch")[known]
    extents = known_extents(trace.slices)
    dispatch = tasks.values("dispatch_ts")[known]
    begin = np.where(tasks.valid("dispatch_ts")[known], dispatch, extents.begin[slices])
    begin = np.minimum(begin, extents.begin[slices])
    numbers: Ints = distinct(epoch)
    if len(numbers) < 2:
        return ()
    found = []
    for number in numbers.tolist():
        rows = np.flatnonzero(epoch == number)
        last = slices[rows[int(extents.end[slices[rows]].argmax())]]
        found.append(NaturalWindow(f"epoch {number}", int(begin[rows].min()), int(extents.end[last]), int(last)))
    return tuple(found)

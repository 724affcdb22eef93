"""What a Perfetto trace shows of causes: its flows, from where a slice let them go."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.common.intervals import known_extents
from lanescope.families.causes import CauseEdges, CauseKind, Causes
from lanescope.trace import Trace
from lanescope.trace.column import Mask
from lanescope.trace.row_packing import rows_of


def causes(trace: Trace, *, infer: bool = False) -> Causes:
    """Return the flows of a trace as causes.

    A flow is written with the begin of the slice that it comes from, whenever in it the effect was let go. Where the
    slice had ended by the time of the effect it counts from its end, as viewers draw it: the slice is work, no delay.
    Nothing in the file says so: such flows are a kind of their own, whose moment counts as estimated.

    Args:
        trace: the trace.
        infer: nothing can be added.
    """
    dictionary = trace.flows.column("kind").dictionary
    names = dict.fromkeys(dictionary.texts if dictionary is not None else ())
    is_own = _own_slices(trace)
    edges = (CauseEdges.of_flows(CauseKind(name, 1), trace, name) for name in names)
    parts = (part for each in edges if len(each.source) or each.unplaced for part in _by_moment(trace, each, is_own))
    return Causes(tuple(parts))


def _own_slices(trace: Trace) -> Mask:
    """Return which slices are on lanes of this family, bool [slices]: others may be merged in."""
    inputs, tracks, slices = trace.inputs, trace.tracks, trace.slices
    mine = inputs.values("id")[inputs.values("family") == "perfetto"]
    is_own = np.append(np.isin(tracks.values("input_id"), mine) & tracks.valid("input_id"), False)
    track = slices.values("track_id")
    return is_own[np.where((track >= 0) & (track < len(tracks)), track, len(tracks))]


def _by_moment(trace: Trace, edges: CauseEdges, is_own: Mask) -> Iterator[CauseEdges]:
    """Yield the flows of own slices as recorded, then from the end of those that had ended when the effect began."""
    row = rows_of(trace.slices.values("id"), edges.source)
    kept = row >= 0
    kept[kept] = is_own[row[kept]]
    unplaced = edges.unplaced + int(np.count_nonzero(row < 0))
    row = row[kept]
    source, source_ts, target, target_ts = (
        column[kept] for column in (edges.source, edges.source_ts, edges.target, edges.target_ts)
    )
    _, begin, end = known_extents(trace.slices)
    had_ended = trace.slices.valid("dur")[row] & (source_ts == begin[row]) & (end[row] <= target_ts)
    source_ts = np.where(had_ended, end[row], source_ts)
    at_end = edges.kind._replace(name=f"{edges.kind.name} from end", is_at_end=True)
    for kind, mine, missing in ((edges.kind, ~had_ended, unplaced), (at_end, had_ended, 0)):
        if mine.any() or missing:
            yield CauseEdges(kind, source[mine], source_ts[mine], target[mine], target_ts[mine], missing)

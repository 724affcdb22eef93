"""What a Perfetto trace shows of causes: its flows, from where a slice let them go."""

from __future__ import annotations

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

    Args:
        trace: the trace.
        infer: nothing can be added.
    """
    dictionary = trace.flows.column("kind").dictionary
    names = dict.fromkeys(dictionary.texts if dictionary is not None else ())
    is_own = _own_slices(trace)
    edges = (CauseEdges.of_flows(CauseKind(name, 1), trace, name) for name in names)
    return Causes(tuple(_from_ends(trace, each, is_own) for each in edges if len(each.source) or each.unplaced))


def _own_slices(trace: Trace) -> Mask:
    """Return which slices are on lanes of this family, bool [slices]: others may be merged in."""
    inputs, tracks, slices = trace.inputs, trace.tracks, trace.slices
    mine = inputs.values("id")[inputs.values("family") == "perfetto"]
    is_own = np.append(np.isin(tracks.values("input_id"), mine) & tracks.valid("input_id"), False)
    track = slices.values("track_id")
    return is_own[np.where((track >= 0) & (track < len(tracks)), track, len(tracks))]


def _from_ends(trace: Trace, edges: CauseEdges, is_own: Mask) -> CauseEdges:
    """Return the flows of own slices, each from the end of its slice where that had ended by the time of the effect."""
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
    return CauseEdges(edges.kind, source, source_ts, target, target_ts, unplaced)

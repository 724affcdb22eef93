"""The attested window of a trace: the hull of the timestamps that LS501 does not suspect.

Beyond it nothing is known of any lane, whatever the decoder says was recorded: that too was told by timestamps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from lanescope.analysis.plausibility.rules.islands import exact_islands, sampled_islands
from lanescope.analysis.plausibility.shapes import Shapes, host_lanes
from lanescope.analysis.plausibility.stamps import Stamps, outside
from lanescope.analysis.track_tree import Tree
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Intervals, Ints
from lanescope.common.islands import IslandThresholds, Witnesses, joined
from lanescope.trace import Table, Trace


class Attested(NamedTuple):
    """What of a trace is attested.

    Attributes:
        window: first and last timestamp that is not suspect; None where none is.
        rows: int64 [n] rising, slices with a suspect timestamp.
    """

    window: tuple[int, int] | None
    rows: Ints


def attested(trace: Trace, tree: Tree, limits: IslandThresholds | None = None) -> Attested:
    """Return the attested window of a whole trace, and the slices that reach beyond it; None: default thresholds."""
    stamps = Stamps()
    stamps.add(trace.slices, trace.instants)
    used = distinct(np.concatenate([table.values("track_id") for table in (trace.slices, trace.instants)]))
    tables = (trace.slices, False), (trace.instants, True)
    return found_by(stamps, used, tree, limits, lambda: ((np.arange(len(one)), one, kind) for one, kind in tables))


def found_by(
    stamps: Stamps,
    used: Ints,
    tree: Tree,
    limits: IslandThresholds | None,
    tables: Callable[[], Iterable[tuple[Ints, Table, bool]]],
) -> Attested:
    """Return what is attested by the timestamps of all batches of a trace.

    Args:
        stamps: the timestamps.
        used: tracks with slices or instants.
        tree: the tracks.
        limits: thresholds; None: the defaults.
        tables: returns all slices and instants once more, in pieces: their rows in the whole table, the rows, and
            whether they are instants. Asked only where a sample does not tell.
    """
    limits = limits or IslandThresholds()
    shapes = Shapes()
    shapes.add(tree)
    witnesses = Witnesses(int(np.count_nonzero((used >= 0) & (used < len(tree)))), shapes.device, host_lanes(tree))
    islands, core = sampled_islands(stamps, witnesses, limits)
    if core is not None:
        apart = joined(*(outside(core, rows, table, is_instant=kind) for rows, table, kind in tables()))
        islands = exact_islands(stamps, core, apart, witnesses, limits)
    if not len(islands.far.row):
        return Attested(None, np.empty(0, np.int64))
    return Attested(islands.window, distinct(islands.far.row[~islands.far.is_instant]))


def beside(suspects: Intervals, covered: Intervals, window: tuple[int, int]) -> Intervals:
    """Return the time next to suspect slices, up to the slices before and after them on their lanes.

    Args:
        suspects: extents of the suspect slices.
        covered: time that slices cover: by lane, disjoint, sorted.
        window: first and last time of the trace.
    """
    found: list[tuple[int, int, int]] = []
    for lane in distinct(suspects.group).tolist():
        first, last = np.searchsorted(covered.group, [lane, lane + 1])
        begin, end = covered.begin[first:last], covered.end[first:last]
        starts = suspects.begin[suspects.group == lane]
        before = np.concatenate([[window[0]], end])
        after = np.concatenate([begin, [window[1]]])
        # A slice of no length is in no covered time: it stands between two, at the same place in both lists.
        at = np.searchsorted(begin, starts, "right")
        inside = (at > 0) & (starts <= before[at])
        found += [
            (lane, int(before[i]), int(after[i])) for i in distinct(np.concatenate([at, at[inside] - 1])).tolist()
        ]
    lane_ids, begins, ends = (
        (np.array(column, np.int64) for column in zip(*found, strict=True))
        if found
        else (np.empty(0, np.int64) for _ in range(3))
    )
    filled = begins < ends
    return Intervals(lane_ids, begins, ends).take(filled)

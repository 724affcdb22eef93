"""Effects of findings without slices as evidence: sums with and without the lanes concerned, or a count.

Such evidence, a stat or a gap, does not name the slices that are wrong or missing. What is wrong is on the lanes
concerned, so sums without them are a bound. Where no lane is known, the count as a share of what was counted is one:
at least so much is concerned.
"""

from __future__ import annotations

import numpy as np

from lanescope.analysis.check.impact import Impact
from lanescope.analysis.check.model import CheckContext
from lanescope.analysis.plausibility.profile import Profile
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.families.rules import Violation
from lanescope.trace.column import Mask

#: Columns of evidence tables that name tracks.
_TRACKS = ("track_id", "src_track_id", "dst_track_id")


class LaneImpacts:
    """Impacts of the findings of one rule, each set of lanes summed once.

    Args:
        subject: the trace.
    """

    def __init__(self, subject: CheckContext) -> None:
        self._subject = subject
        self._known: dict[bytes, Impact] = {}

    def of(self, hit: Violation) -> Impact:
        """Return what a violation does to totals."""
        fraction = _counted_fraction(self._subject, hit)
        lanes = concerned_lanes(self._subject, hit)
        key = lanes.tobytes()
        if key not in self._known:
            self._known[key] = _without(self._subject.plausibility.profile, lanes, self._subject.covered)
        return self._known[key]._replace(counted_fraction=fraction)


def concerned_lanes(subject: CheckContext, hit: Violation) -> Ints:
    """Return the lanes that a violation concerns, int64 [n] rising: those of its rows, else its own; if known."""
    tracks = _tracks_of_rows(subject, hit)
    if not len(tracks) and hit.track_id is not None:
        tracks = np.array([hit.track_id], np.int64)
    return distinct(subject.tree.spread(distinct(tracks))[1]) if len(tracks) else tracks


def _tracks_of_rows(subject: CheckContext, hit: Violation) -> Ints:
    """Return the tracks that the evidence names, int64 [n]."""
    none = np.empty(0, np.int64)
    tables = subject.trace.tables()
    if hit.table not in tables:
        return none
    table = tables[hit.table]
    rows = hit.rows[hit.rows < len(table)]
    if hit.table == "tracks":
        return rows
    if not len(rows):
        return none
    if hit.table == "stats" and not table.valid("track_id")[rows].all():
        return _gaps_of_stats(subject, rows)
    if hit.table in ("clocks", "anchors"):
        return subject.tree.on_clocks(rows if hit.table == "clocks" else table.values("clock_id")[rows])
    found = [table.values(name)[rows][table.valid(name)[rows]] for name in _TRACKS if name in table.spec.names]
    return np.concatenate(found) if found else none


def _gaps_of_stats(subject: CheckContext, rows: Ints) -> Ints:
    """Return the tracks of the gaps at the byte offsets of stats without a track, int64 [n]."""
    stats, gaps = subject.trace.stats, subject.trace.gaps
    found = np.zeros(len(gaps), np.bool_)
    for row in rows.tolist():
        at = gaps.valid("first_offset") & gaps.valid("input_id")
        for name in ("first_offset", "input_id"):
            at &= bool(stats.valid(name)[row]) & (gaps.values(name) == stats.values(name)[row])
        found |= at
    tracks: Ints = gaps.values("track_id")[found]
    return tracks


def _counted_fraction(subject: CheckContext, hit: Violation) -> float | None:
    """Return the count as a fraction of the units, events or lanes that were counted; None if that is unknown."""
    table = subject.trace.tables().get(hit.table)
    if table is None or len(hit.rows) != 1 or hit.rows[0] >= len(table):
        return None
    [row] = list(table.take(hit.rows).rows())
    if hit.table == "accounting":
        return row["lost"] / row["total"] if row["total"] else None
    if hit.table != "stats" or row.get("share_of") not in ("events", "lanes"):
        return None
    total = subject.events if row["share_of"] == "events" else subject.device_lanes
    return row["count"] / total if 0 < row["count"] <= total else None


def _without(profile: Profile, lanes: Ints, covered: Ints) -> Impact:
    """Return sums with and without the slices of some lanes."""
    used = profile.count > 0
    rest = used.copy()
    rest[lanes] = False
    slices, total, busy = int(profile.count.sum()), int(profile.total.sum()), int(covered.sum())
    return Impact(
        slices_fraction=int(profile.count[lanes].sum()) / max(slices, 1),
        total=total,
        total_without=total - int(profile.total[lanes].sum()),
        total_clipped=None,
        window=_window(profile, used),
        window_without=_window(profile, rest),
        changes_order=False,
        basis="lanes" if len(lanes) else "count",
        lanes=len(lanes),
        busy_fraction=int(covered[lanes].sum()) / busy if busy and len(lanes) else None,
    )


def _window(profile: Profile, lanes: Mask) -> int:
    """Return the time from the first start to the last end on some lanes, bool [tracks]."""
    if not lanes.any():
        return 0
    return max(int(profile.end[lanes].max()) - int(profile.start[lanes].min()), 0)

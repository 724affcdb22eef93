"""Orders of moments on different clocks: decided where the errors of these clocks allow only one."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import INT64_MAX
from lanescope.common.time_domains import TrackRoots
from lanescope.trace import Table, Trace

Int64 = npt.NDArray[np.int64]

#: How far the rates of two clocks may differ from the declared ones, where no anchors measure them: parts per million.
#: Quartz oscillators are specified to some 20 to 50 each.
DRIFT_PPM: Final = 100
#: Error of a clock of which nothing is known: no difference of two times exceeds the sum of two of them.
UNKNOWN_ERROR: Final = 1 << 61


class ClockErrors:
    """How far times of different clocks of a trace may be apart from what they show.

    Clocks of one capture are as far off as their anchors state, one step, and the drift beyond these anchors. Captures
    of a merged trace are off by the error of their place, too. Of captures on time axes of their own, and of lanes that
    an alignment could not place, no order to others is known.

    Args:
        trace: the trace.
    """

    def __init__(self, trace: Trace) -> None:
        tracks, stats, anchors = trace.tracks, trace.stats, trace.anchors
        count = len(trace.clocks)
        # One more of each: for no clock, and for no track.
        self._clock = np.append(np.where(tracks.valid("clock_id"), tracks.values("clock_id"), count), count)
        roots = TrackRoots(tracks)
        self._root = np.append(roots.root if roots.is_merged else np.zeros(len(tracks), np.int64), -1)
        self._place = np.append(_place_errors(tracks, stats, roots.root), 0)
        self._error = _steps(trace)
        self._first, self._last = np.full(count + 1, INT64_MAX), np.full(count + 1, -INT64_MAX)
        known = (anchors.values("clock_id") >= 0) & (anchors.values("clock_id") < count)
        clock, ts = anchors.values("clock_id")[known], anchors.values("ts")[known]
        stated = np.zeros(count + 1, np.int64)
        np.maximum.at(stated, clock, np.where(anchors.valid("error_ns"), anchors.values("error_ns"), 0)[known])
        self._error += stated
        np.minimum.at(self._first, clock, ts)
        np.maximum.at(self._last, clock, ts)
        lost = stats.values("track_id")[(stats.values("name") == "unplaced_lanes") & stats.valid("track_id")]
        self._error[self._clock[lost]] = UNKNOWN_ERROR

    def between(self, first: Int64, first_ts: Int64, second: Int64, second_ts: Int64) -> Int64:
        """Return by how much the difference of two times may be off, int64 [n]: 0 for lanes on one clock.

        Args:
            first: tracks, int64 [n]; -1 for none.
            first_ts: times on them, int64 [n], in the trace's time unit.
            second: other tracks, likewise.
            second_ts: times on those.
        """
        a, b = (np.clip(track, -1, len(self._clock) - 1) for track in (first, second))
        is_apart = self._root[a] != self._root[b]
        error = np.zeros(len(first), np.int64)
        for track, ts in ((a, first_ts), (b, second_ts)):
            own = self._at(self._clock[track], ts)
            error += np.minimum(own + np.where(is_apart, self._place[track], 0), UNKNOWN_ERROR)
        found: Int64 = np.where(is_apart | (self._clock[a] != self._clock[b]), error, 0)
        return found

    def order(self, first: Int64, first_ts: Int64, second: Int64, second_ts: Int64) -> npt.NDArray[np.int8]:
        """Return which moments come first, int8 [n]: -1 the first ones, 1 the second ones, 0 undecided or the same.

        Arguments are those of ``between``; times are within 2**61.
        """
        apart = second_ts - first_ts
        decided = np.abs(apart) > self.between(first, first_ts, second, second_ts)
        return np.where(decided, -np.sign(apart), 0).astype(np.int8)

    def _at(self, clock: Int64, ts: Int64) -> Int64:
        """Return the possible error of times, int64 [n]: stated error, one step, and drift beyond the anchors."""
        first, last = self._first[clock], self._last[clock]
        outside = np.where(first <= last, np.maximum(np.maximum(first - ts, ts - last), 0), 0)
        error: Int64 = (
            self._error[clock] + outside // 1_000_000 * DRIFT_PPM + outside % 1_000_000 * DRIFT_PPM // 1_000_000
        )
        return error


def _place_errors(tracks: Table, stats: Table, root: Int64) -> Int64:
    """Return how far the capture of each track may be from its place, int64 [tracks]."""
    by_input: dict[int, int] = {}
    names = stats.values("name")
    for name in ("placement_error", "unknown_placement", "unaligned_capture"):
        for row in np.flatnonzero((names == name) & stats.valid("input_id")).tolist():
            more = int(stats.values("count")[row]) if name == "placement_error" else UNKNOWN_ERROR
            at = int(stats.values("input_id")[row])
            by_input[at] = min(by_input.get(at, 0) + more, UNKNOWN_ERROR)
    errors = np.zeros(len(tracks), np.int64)
    for at, error in by_input.items():
        errors[root[np.flatnonzero(tracks.valid("input_id") & (tracks.values("input_id") == at))]] = error
    found: Int64 = errors[root]
    return found


def _steps(trace: Trace) -> Int64:
    """Return the resolution of each clock, rounded up to ns, and 0 for no clock, int64 [clocks + 1]."""
    clocks = trace.clocks
    steps = np.zeros(len(clocks) + 1, np.int64)
    if trace.time.time_unit != "ns":
        return steps
    rate = clocks.values("frequency_num") / np.maximum(clocks.values("frequency_den"), 1)
    known = np.flatnonzero(clocks.valid("frequency_num") & clocks.valid("frequency_den") & (rate >= 1))
    ticks = np.where(clocks.valid("resolution_ticks"), clocks.values("resolution_ticks"), 1)
    steps[known] = np.ceil(np.clip(ticks[known] * (1e9 / rate[known]), 0, 1e9)).astype(np.int64)
    return steps

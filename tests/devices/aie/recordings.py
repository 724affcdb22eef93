"""Which recording a row of a trace is of: recordings of one unit share its tracks, one behind the other."""

import numpy as np


class Recordings:
    """The recordings of a trace, rows of ``aie_segments``; times are cycles.

    Args:
        trace: the trace.
    """

    def __init__(self, trace):
        self.rows = list(trace.details["aie_segments"].rows())
        self._parents = trace.tracks["parent_id"].tolist()
        self._by_track = {}
        for index, row in enumerate(self.rows):
            self._by_track.setdefault(row["track_id"], []).append((row["begin_cycles"], index))
        for members in self._by_track.values():
            members.sort()

    def of(self, track, ts):
        """Return the index of the recording of a row: of a unit's group or one of its lanes, None for other tracks."""
        members = self._by_track.get(track) or self._by_track.get(self._parents[track])
        if members is None:
            return None
        return members[max(np.searchsorted([begin for begin, _ in members], ts, side="right") - 1, 0)][1]

    def begin(self, index):
        """Return the cycle at which a recording begins."""
        return self.rows[index]["begin_cycles"]

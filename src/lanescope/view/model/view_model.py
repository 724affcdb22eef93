"""One model of a trace for all that draws it: terminal, report, pictures, notebook."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.analysis import check
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.analysis.partition import BUSY
from lanescope.analysis.track_tree import Tree
from lanescope.errors import LanescopeError, UsageError
from lanescope.trace import Trace
from lanescope.view.model.findings import RolledFinding, rolled
from lanescope.view.model.palette import colours
from lanescope.view.model.strips import Strips
from lanescope.view.model.tables import ViewTable, tables
from lanescope.view.model.tree import TreeRow, tree_rows
from lanescope.view.model.words import verdict

if TYPE_CHECKING:
    from lanescope.analysis.critical_path.answer import CriticalPath

Ints = npt.NDArray[np.int64]

#: Units, the first of which that a trace knows is what its lanes are compared in.
_UNITS = ("block", "subdevice", "device")
#: Slices up to which the critical path is computed.
_PATH = 20_000_000


class Side(NamedTuple):
    """One of the captures.

    Attributes:
        letter: what it is called; ``capture``: name of its file.
        low: its first time, on its own clock, which is time 0 here; ``span``: its length.
        slices, lanes: how many it has.
    """

    letter: str
    capture: str
    low: int
    span: int
    slices: int
    lanes: int


class ViewModel:
    """What is drawn and shown of a trace; each part is made when it is first read.

    Args:
        trace: the trace, or a window of it.
        select: codes, or beginnings of codes, of the rules to apply; empty: all.
        ignore: codes to leave out.
    """

    def __init__(self, trace: Trace, *, select: Sequence[str] = (), ignore: Sequence[str] = ()) -> None:
        self.trace = trace
        self.shared = AnalysisCache(trace)
        self._select, self._ignore = select, ignore

    @property
    def unit(self) -> str:
        """Unit of times."""
        return self.shared.unit

    @property
    def window(self) -> tuple[int, int]:
        """First and last time."""
        return self.shared.time.window

    @property
    def span(self) -> int:
        """Length of the trace, 1 at least."""
        return max(self.window[1] - self.window[0], 1)

    @property
    def tracks(self) -> Tree:
        """The tracks."""
        return self.shared.time.tree

    @cached_property
    def role(self) -> str:
        """What a unit is, whose lanes are compared."""
        return self.shared.known(*_UNITS)

    @cached_property
    def strips(self) -> Strips:
        """Slices in drawing order."""
        return Strips(self.shared.time)

    @cached_property
    def used(self) -> set[int]:
        """Tracks that have anything to draw."""
        trace, found = self.trace, np.zeros(len(self.tracks), np.bool_)
        for table in (trace.slices, trace.instants, trace.counters, trace.gaps, trace.coverage):
            track = np.asarray(table.values("track_id"))
            found[track[(track >= 0) & (track < len(found))]] = True
        return set(np.flatnonzero(found).tolist())

    @cached_property
    def tree(self) -> list[TreeRow]:
        """Rows of the lane list."""
        return tree_rows(self.tracks, self.used)

    @cached_property
    def by_frequency(self) -> Ints:
        """Codes of the names that slices have, int64, the most frequent first."""
        texts = self.shared.names.texts
        counts = np.bincount(self.shared.name_of, minlength=len(texts)) if len(texts) else np.empty(0, np.int64)
        order = np.argsort(-counts, kind="stable")
        found: Ints = order[: int(np.count_nonzero(counts))]
        return found

    @cached_property
    def names(self) -> list[str]:
        """Names of slices, the most frequent first."""
        texts = self.shared.names.texts
        return [texts[code] for code in self.by_frequency.tolist()]

    @cached_property
    def kinds(self) -> list[str]:
        """Kind of work of each name."""
        known = self.shared.kinds
        return [known[name] for name in self.names]

    @cached_property
    def colours(self) -> list[int]:
        """Number of the colour of each name, see ``palette``."""
        return colours(self.names, self.kinds)

    @cached_property
    def name_of(self) -> Ints:
        """Place in ``names`` of each slice, int64 [slices]."""
        place = np.zeros(len(self.shared.names.texts), np.int64)
        place[self.by_frequency] = np.arange(len(self.by_frequency))
        found: Ints = place[self.shared.name_of] if len(place) else np.empty(0, np.int64)
        return found

    @cached_property
    def busy(self) -> list[float | None]:
        """Part of the span that slices of each track cover; None unless it is a lane."""
        states = self.shared.lane_states
        is_lane = self.trace.tracks.values("kind") == "lane"
        return [int(states[track, BUSY]) / self.span if is_lane[track] else None for track in range(len(self.tracks))]

    @cached_property
    def findings(self) -> list[RolledFinding]:
        """Findings by rule, the worst first."""
        found = check.run(self.trace, select=self._select, ignore=self._ignore)
        return rolled(found, self.trace)

    @cached_property
    def words(self) -> list[tuple[str, str]]:
        """The verdict: what each sentence is about, and the sentence."""
        return verdict(self.trace, self.shared, self.role)

    @cached_property
    def path(self) -> CriticalPath | None:
        """The critical path; None where no causes are recorded, slices are not there, or there are too many for it."""
        if not 0 < len(self.trace.slices) <= _PATH:
            return None
        from lanescope.analysis.critical_path.answer import CriticalPath
        from lanescope.analysis.critical_path.selection import path_of
        from lanescope.analysis.critical_path.windows import WindowChoice

        try:
            origin = self.trace.origin
            if origin is not None and len(origin.whole.slices) <= _PATH:
                return path_of(self.shared, WindowChoice())
            if origin is not None and origin.has_filter:
                return None
            _ = self.shared.over_all_slices  # a path through some slices alone is none
            return CriticalPath(self.shared)
        except LanescopeError:
            return None

    @property
    def side(self) -> list[int]:
        """0 or 1 by track, where two captures are side by side; else empty."""
        return []

    @property
    def sides(self) -> list[Side]:
        """The captures, where two are side by side; else empty."""
        return []

    @property
    def left_out(self) -> list[str]:
        """Sentences: what is not computed."""
        said, origin = [], self.trace.origin
        # A path leads through slices outside of a window, and through those that it does not select.
        if len((self.trace if origin is None else origin.whole).slices) > _PATH:
            if origin is None or origin.has_filter or len(self.trace.slices) > _PATH:
                said.append(
                    f"The critical path: it is computed for {_PATH:,} slices at most. A window (--start, --end) has it."
                )
            else:
                said.append(
                    f"Causes outside of the window: the critical path is that of {_PATH:,} slices at most, "
                    "so it follows those inside only."
                )
        try:
            _ = self.shared.over_all_slices
        except UsageError as error:
            said.append(f"Lanes, idle time, phases and the critical path: {error.message}.")
        return said

    @cached_property
    def tables(self) -> list[ViewTable]:
        """Tables that have rows."""
        return tables(self.shared, self.role, self.path)

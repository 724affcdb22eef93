"""The plausibility rules over one trace, as a whole or batch by batch.

One pass gives the profile. The slices that rules suspect are named by position, or by lane and time; a second pass, or
a look at the whole table, finds them. So do the slices of lanes out of order, which are sorted first, and the
timestamps outside the window in which most of them lie, where the profile has no more than a sample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lanescope.analysis.plausibility.context import PlausibilityContext
from lanescope.analysis.plausibility.folding import folded
from lanescope.analysis.plausibility.profile import Profile
from lanescope.analysis.plausibility.profiler import Profiler
from lanescope.analysis.plausibility.rules import (
    dominant_records,
    duplicates,
    foreign_names,
    lone_gaps,
    rates,
    shared_stops,
    shifted_lanes,
    silent_lanes,
    standing_clock,
)
from lanescope.analysis.plausibility.rules.islands import (
    exact_islands,
    far_lanes,
    island_suspicions,
    sampled_islands,
)
from lanescope.analysis.plausibility.stamps import outside
from lanescope.analysis.plausibility.suspicion import Suspicion
from lanescope.analysis.plausibility.thresholds import Thresholds
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.common.islands import Islands, Witnesses, joined
from lanescope.declaration import replace
from lanescope.families.rules import Violation
from lanescope.trace import Table, Trace
from lanescope.trace.column import Mask

PlausibilityRule = Callable[[PlausibilityContext], Iterable[Suspicion]]

#: Rules after LS501 that read columns of the profile which hold for lanes in any order.
RULES: tuple[PlausibilityRule, ...] = (
    standing_clock.constant,
    silent_lanes.silent_lanes,
    duplicates.repeated,
    shifted_lanes.shifted_lanes,
    rates.implausible_rates,
    foreign_names.foreign_names,
    dominant_records.dominant_records,
    shared_stops.shared_stops,
)
#: Rules that read gaps, runs or distinct timestamps (``Profile.is_ordered``): they compare the lanes that came in order
#: with each other, and the others with all.
ORDERED_RULES: tuple[PlausibilityRule, ...] = (
    lone_gaps.lone_gaps,
    standing_clock.stuck_or_coarse,
    duplicates.copied_lanes,
)

#: Positions of rows in the whole trace, rising, and the rows.
Placed = tuple[Ints, Table]


class Plausibility:
    """What the plausibility rules find in a trace.

    ``add`` all batches. Where ``needs_rows``, the rows that ``wanted`` names must be kept from a second look at them.
    Then ``judge`` gets those rows, and ``violations`` gives the result.

    Args:
        thresholds: of the rules.

    Attributes:
        window: first and last timestamp that LS501 does not suspect: the attested window; after ``judge``.
        suspicions: what was found; after ``judge``. After ``needs_rows`` what the first pass tells of it.
    """

    def __init__(self, thresholds: Thresholds | None = None) -> None:
        self._thresholds = thresholds or Thresholds()
        self._profiler = Profiler()
        self._provisional: list[Suspicion] = []
        self._core: tuple[int, int] | None = None  # timestamps outside it are wanted
        self._unordered: Mask = np.empty(0, np.bool_)
        self.window = (0, 0)
        self.suspicions: list[Suspicion] = []
        self._by_code: dict[str, list[Violation]] = {}

    @classmethod
    def of_trace(cls, trace: Trace, thresholds: Thresholds | None = None) -> Plausibility:
        """Return what the rules find in a whole trace."""
        found = cls(thresholds)
        found.add(trace)
        found.judge_whole(trace)
        return found

    @cached_property
    def profile(self) -> Profile:
        """Sums over the batches, once all have been added; what needs order says nothing of lanes out of order."""
        return self._profiler.profile()

    def name_codes(self, slices: Table) -> npt.NDArray[np.int32]:
        """Return the names of slices as the profile numbers them, int32 [n]."""
        return self._profiler.name_codes(slices)

    def add(self, batch: Trace) -> None:
        """Add the rows of the next batch."""
        self._profiler.add(batch)

    def needs_rows(self) -> bool:
        """Find out, after the last batch, whether rows have to be looked at again."""
        self._provisional = self._found(self.profile, self._first_islands())
        self.suspicions = self._provisional
        return not self.is_settled or any(one.ranges or one.rows is not None for one in self._provisional)

    @property
    def is_settled(self) -> bool:
        """Whether the first pass found all suspicions, and ``judge`` can only find their rows; after ``needs_rows``."""
        return self._core is None and not self._unordered.any()

    def _first_islands(self) -> Islands:
        """Return what stands apart as far as one pass tells, and note what a second one has to look at."""
        self._unordered = self._profiler.unordered
        profile = self.profile
        islands, self._core = sampled_islands(profile.stamps, _witnesses(profile), self._thresholds.islands)
        self.window = islands.window
        return islands

    def wanted(self, name: str, positions: Ints, rows: Table) -> Mask:
        """Return which rows ``judge`` needs, bool [n].

        Args:
            name: ``slices`` or ``instants``.
            positions: where the rows stand in the whole trace, int64 [n] rising.
            rows: the rows.
        """
        found: Mask = np.zeros(len(rows), np.bool_)
        for one in self._provisional:
            found |= one.among(name, positions, rows)
        if self._core is not None:
            at = outside(self._core, np.arange(len(rows)), rows, is_instant=name == "instants").row
            found[at] = True
        if name == "slices" and self._unordered.any():
            track = rows.values("track_id")
            is_known = (track >= 0) & (track < len(self._unordered))
            found |= is_known & self._unordered[np.where(is_known, track, 0)]
        return found

    def judge_whole(self, trace: Trace, order: Callable[[], Ints] | None = None) -> None:
        """Judge the trace that was added as one batch; ``order`` returns that of its slices, where it is at hand."""
        islands = self._first_islands()
        if self.is_settled:
            self._provisional = self._found(self.profile, islands)
        tables = trace.slices, trace.instants
        slices, instants = ((np.arange(len(table)), table) for table in tables)
        self.judge(slices, instants, order)

    def judge(self, slices: Placed, instants: Placed, order: Callable[[], Ints] | None = None) -> None:
        """Apply the rules.

        Args:
            slices: the wanted slices at least, and where they stand in the whole trace.
            instants: the wanted instants at least.
            order: returns the slices by lane and time, int64 [slices]; None: they are sorted where that is needed.
        """
        tables = {"slices": slices, "instants": instants}
        if self.is_settled:
            self.suspicions = self._provisional
        else:
            self._judge_again(slices, instants, order)
        self._by_code = {}
        for one in self.suspicions:
            self._by_code.setdefault(one.code, []).append(_violation(one, tables))

    def _judge_again(self, slices: Placed, instants: Placed, order: Callable[[], Ints] | None) -> None:
        """Apply the rules with what the first pass could not tell."""
        profile, limits = self._profiler.profile(*slices, order), self._thresholds.islands
        if self._core is None:
            islands, _ = sampled_islands(profile.stamps, _witnesses(profile), limits)
        else:
            apart = joined(
                outside(self._core, *slices, is_instant=False), outside(self._core, *instants, is_instant=True)
            )
            islands = exact_islands(profile.stamps, self._core, apart, _witnesses(profile), limits)
        self.window = islands.window
        self.suspicions = self._found(profile, islands)

    def violations(self, code: str) -> list[Violation]:
        """Return what a rule found; rows of slices and instants count among those that ``judge`` got."""
        return self._by_code.get(code, [])

    def _found(self, profile: Profile, islands: Islands) -> list[Suspicion]:
        """Return what all rules find, what many lanes share folded into one."""
        limits = self._thresholds
        found = list(island_suspicions(islands, profile, limits.islands))
        rows = [one.rows for one in found if one.table == "slices" and one.rows is not None]
        context = PlausibilityContext(
            profile,
            limits,
            far_lanes(islands, len(profile.tree)),
            distinct(np.concatenate(rows)) if rows else np.empty(0, np.int64),
        )
        everything = replace(context, profile=_judging(profile, profile.is_lane))
        ordered = replace(context, profile=_judging(profile, profile.is_lane & profile.is_ordered))
        for rule in RULES:
            found += rule(everything)
        for rule in ORDERED_RULES:
            found += rule(ordered)
        if profile.judged[profile.is_lane].all() and not profile.is_ordered.all():
            found += _on(~profile.is_ordered, (one for rule in ORDERED_RULES for one in rule(everything)))
        return folded(found, profile)


def _witnesses(profile: Profile) -> Witnesses:
    """Return who tells of time."""
    lanes = int(np.count_nonzero((profile.count > 0) | (profile.instants > 0)))
    return Witnesses(lanes, profile.device, profile.is_host)


def _judging(profile: Profile, lanes: Mask) -> Profile:
    """Return the profile with other lanes to judge."""
    return Profile(**{**vars(profile), "judged": lanes})


def _on(lanes: Mask, found: Iterable[Suspicion]) -> Iterator[Suspicion]:
    """Yield what concerns one of the lanes (bool [tracks])."""
    return (one for one in found if one.track_id is not None and lanes[one.track_id])


def _violation(one: Suspicion, tables: dict[str, Placed]) -> Violation:
    """Return a suspicion as rules report it, with rows that count in the given tables."""
    table = "slices" if one.ranges else one.table
    if table in tables:
        positions, rows = tables[table]
        suspect = np.flatnonzero(one.among(table, positions, rows))
        first = rows.values("ts")[suspect].min(initial=np.iinfo(np.int64).max) if len(suspect) else None
    else:
        suspect, first = (np.empty(0, np.int64) if one.rows is None else one.rows), None
    ts = one.ts if one.ts is not None or first is None else int(first)
    count = one.count if one.count is not None or len(suspect) else 1
    return Violation(
        detail=one.detail,
        table=table,
        rows=suspect,
        count=count,
        severity=one.severity,
        track_id=one.track_id,
        ts=ts,
    )

"""Intermediate results of one trace, computed once for all analyses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lanescope.analysis.instances import ALL, LANE, PARENT, Instances, combine, residency, roles, units
from lanescope.analysis.lane_time import LaneTime
from lanescope.analysis.partition import LeafIntervals, Partition, by_state, leaf_intervals, partition
from lanescope.analysis.producer_votes import ProducerVotes
from lanescope.analysis.windows.report import chosen_tracks
from lanescope.analysis.work_classes import CLASSES, WAIT, classes
from lanescope.common.intervals import INT64_MAX, Intervals, Ints, join
from lanescope.errors import InputError, MissingDependencyError, UsageError
from lanescope.families import registry
from lanescope.trace import Dictionary, Trace
from lanescope.trace.column import Mask

if TYPE_CHECKING:
    from lanescope.analysis.lanes_on_disk import SlicesOnDisk
    from lanescope.analysis.windows.selected import SelectedSlices
    from lanescope.common.islands import IslandThresholds

Result = TypeVar("Result")


class AnalysisCache:
    """Intermediate results of one trace. Analyses take it in place of the trace.

    Attributes:
        trace: the trace.
        given: patterns of names by kind of work, see ``work_classes.classify``.
        time: the trace's lane times.
        kept: results of functions that are ``once``, by function and role.
        votes: for which regions waits that are alike mostly wait, where lanes of others tell, too; None: these tell.
        own_votes: what these lanes tell, once waits were attributed.
        selected: what a window selects of the slices, where analyses look at all of them; None: all are.
        on_disk: the slices, where they are on disk and the trace has none (``lanes_on_disk``); None where it has them.

    Args:
        islands: thresholds of LS501, which decide where evidence ends; None: the defaults.
    """

    def __init__(self, trace: Trace, given: Mapping[str, str] = {}, islands: IslandThresholds | None = None) -> None:
        self.trace = trace
        self.given = given
        self.time = LaneTime(trace, islands=islands)
        self.kept: dict[tuple[Callable[..., Any], str], Any] = {}
        self.votes: ProducerVotes | None = None
        self.own_votes = ProducerVotes.joined([])
        self.on_disk: SlicesOnDisk | None = None
        self.selected: SelectedSlices | None = None

    @cached_property
    def over_all_slices(self) -> AnalysisCache:
        """What analyses of lanes take: all slices of the window, and which of them it selects.

        Raises:
            UsageError: slices were left out by name, duration or condition, and are not in memory.
        """
        from lanescope.analysis.windows.selected import over_all_slices

        if self.selected is not None:
            return self
        found = over_all_slices(self.trace)
        if found is None:
            return self
        made = AnalysisCache(found[0], self.given, self.time.islands)
        made.selected = found[1]
        return made

    @property
    def unit(self) -> str:
        """The trace's time unit."""
        return self.trace.time.time_unit

    @property
    def window(self) -> int:
        """Time from the first to the last timestamp of the trace.

        Raises:
            InputError: it takes more than 63 bits.
        """
        first, last = self.time.window
        if last - first > INT64_MAX:
            raise InputError(f"times from {first:,} to {last:,} are too far apart", hint="use --start and --end")
        return last - first

    @property
    def attested(self) -> tuple[int, int]:
        """First and last timestamp that is not implausibly far from all others (rule LS501)."""
        return self.time.attested.window or self.time.window

    @cached_property
    def views(self) -> Mask:
        """Which lanes show what others show already, as their families declare it; bool [tracks]."""
        trace, tracks = self.trace, self.trace.tracks
        found = np.zeros(len(tracks), np.bool_)
        families = trace.inputs.values("family")
        for name in dict.fromkeys(str(name) for name in families.tolist()):
            try:
                views = registry.family(name).views
            except (UsageError, MissingDependencyError):  # read from a folder; its family is not installed
                continue
            if views is not None:
                inputs = trace.inputs.values("id")[families == name]
                found |= views(trace) & np.isin(tracks.values("input_id"), inputs) & tracks.valid("input_id")
        return found

    @cached_property
    def chosen(self) -> Mask:
        """Which tracks no window left out, bool [tracks]."""
        return chosen_tracks(self.trace, self.time.tree)

    @cached_property
    def lanes(self) -> Ints:
        """Tracks that are lanes, no views of others, and not left out by a window; int64, in drawing order."""
        lanes = self.time.tree.lanes
        return lanes[self.chosen[lanes] & ~self.views[lanes]] if len(lanes) else lanes

    def whole_instances(self, of: Ints) -> Ints:
        """Return ``of``, the instance of each track, int64 [tracks], but -1 where a window left out a lane of it.

        What runs there beside what was chosen is not known.
        """
        lanes = self.time.tree.lanes
        partial = of[lanes[~self.chosen[lanes]]] if len(lanes) else lanes
        return np.where(np.isin(of, partial), -1, of) if len(partial) else of

    @property
    def names(self) -> Dictionary:
        """The names of slices."""
        return self.trace.slices.column("name").dictionary or Dictionary()

    @cached_property
    def name_of(self) -> Ints:
        """The code of the name of each slice, int64 [slices]."""
        return self.trace.slices.codes("name").astype(np.int64)

    def name_codes(self, texts: Dictionary) -> Ints:
        """Return the code of the name of each slice among other texts, int64 [slices]."""
        return np.array([texts.code(text) for text in self.names.texts], np.int64)[self.name_of]

    @cached_property
    def pieces(self) -> LeafIntervals:
        """Innermost region of each lane over time."""
        return leaf_intervals(self.time)

    @cached_property
    def known_pieces(self) -> LeafIntervals:
        """Those of them outside gaps."""
        return self.pieces.outside(self.time.gaps)

    @cached_property
    def kind_of(self) -> Ints:
        """The kind of work of each name of slices, int64 [names], indices into ``CLASSES``; errors as ``classes``."""
        return classes(self.trace, self.pieces, self.given)

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of work of each region by its name."""
        return {text: CLASSES[kind] for text, kind in zip(self.names.texts, self.kind_of.tolist(), strict=True)}

    @cached_property
    def partition(self) -> Partition:
        """Division of the time of each lane into states; errors as ``window``."""
        _ = self.window
        return partition(self.time, self.kind_of == CLASSES.index(WAIT), self.pieces)

    @cached_property
    def lane_partition(self) -> Partition:
        """The part of ``partition`` that is of lanes; errors as ``window``."""
        is_lane = np.zeros(len(self.time.tree), np.bool_)
        is_lane[self.lanes] = True
        mine = is_lane[self.partition.lane]
        return self.partition if mine.all() else self.partition.take(mine)

    @cached_property
    def lane_states(self) -> Ints:
        """How long every track is in each state, int64 [tracks, states]; regions that wait count as busy."""
        return by_state(partition(self.time), len(self.time.tree))

    def forget(self) -> None:
        """Let go what takes much memory and can be found again."""
        for name in ("pieces", "known_pieces", "partition"):
            vars(self).pop(name, None)
        self.time = LaneTime(self.trace, self.time.tree, self.time.islands)
        self.kept.clear()

    def known(self, *wanted: str) -> str:
        """Return the first of the units ``wanted`` that the trace knows, else the group right above a lane."""
        return self.first_known(wanted) or PARENT

    def first_known(self, wanted: tuple[str, ...]) -> str | None:
        """Return the first of the units ``wanted`` that the trace knows, None if it knows none."""
        known = {ALL, PARENT, LANE, *roles(self.trace)}
        return next((role for role in wanted if role in known), None)


def once(make: Callable[[AnalysisCache, str], Result]) -> Callable[[AnalysisCache, str], Result]:
    """Have what a function returns for a role kept in the ``AnalysisCache`` that it is asked of."""

    @wraps(make)
    def found(shared: AnalysisCache, role: str = PARENT) -> Result:
        if (make, role) not in shared.kept:
            shared.kept[make, role] = make(shared, role)
        result: Result = shared.kept[make, role]
        return result

    return found


@once
def instances(shared: AnalysisCache, role: str = PARENT) -> Instances:
    """Return the instances of a role; errors as ``units``."""
    return units(shared.time, role)


@once
def resident(shared: AnalysisCache, role: str = PARENT) -> Intervals:
    """Return the ``residency`` of the instances of a role."""
    return residency(shared.time, instances(shared, role))


def instance_states(shared: AnalysisCache, role: str = PARENT) -> Partition:
    """Return the division of the time of each instance of a role into states."""
    found, known = instances(shared, role), resident(shared, role)
    if shared.attested != shared.time.window:
        # Beyond the attested window an instance is not vacant: no lane tells.
        (first, last), (low, high) = shared.time.window, shared.attested
        every = np.arange(len(found))
        for begin, end in ((first, low), (high, last)):
            known = join(known, Intervals(every, np.full(len(every), begin), np.full(len(every), end)))
    return combine(shared.partition, found, known, shared.time.window)


def clipped(shared: AnalysisCache, intervals: Intervals) -> Intervals:
    """Return what of the intervals lies in the attested window, row by row; those outside have no length."""
    low, high = shared.attested
    begin, end = np.clip(intervals.begin, low, high), np.clip(intervals.end, low, high)
    return Intervals(intervals.group, begin, end)

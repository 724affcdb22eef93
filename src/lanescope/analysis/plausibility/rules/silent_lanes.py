"""LS504: a lane is silent, or ends or starts where its siblings go on."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np

from lanescope.analysis.plausibility.context import PlausibilityContext
from lanescope.analysis.plausibility.shapes import siblings
from lanescope.analysis.plausibility.siblings import Floats, deviation, group_sizes, median, median_of_others
from lanescope.analysis.plausibility.suspicion import LaneRange, Suspicion
from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.declaration import frozen_class
from lanescope.trace.column import Mask

CODE = "LS504"

_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
#: Longer numbers are handles, and do not count lanes.
_DIGITS = 6
#: Missing numbers that a message names.
_NAMED = 4
#: Brothers with which a lane is compared: fewer prove nothing, more are blocks of one grid.
_BROTHERS = (3, 64)


def silent_lanes(context: PlausibilityContext) -> Iterator[Suspicion]:
    """Find lanes, and children of groups, without the records that others like them have."""
    search = _Search(context)
    yield from search.missing_children()
    profile = context.profile
    lanes = np.flatnonzero(profile.is_lane & profile.judged & ~profile.is_host)
    for group in siblings(profile.shape, lanes):
        if len(group) >= search.limits.min_lanes:
            yield from search.silent(group)
            yield from search.unnumbered(group)
            yield from search.short(group)


@frozen_class
class _Evenness:
    """Whether siblings have about as many slices each, so that a lane without any stands out.

    Attributes:
        used: numbers of slices, of those that have some.
        is_enough: whether there are enough lanes with enough slices.
        is_even: and they differ little; ``is_regular``: and none has much less than the others.
    """

    used: Ints
    is_enough: bool
    is_even: bool
    is_regular: bool

    @property
    def severity(self) -> str:
        return "warning" if self.is_regular else "notice"


class _Search:
    """The lanes of a profile, with what has been reported of them so far."""

    def __init__(self, context: PlausibilityContext) -> None:
        self.profile, self.limits = context.profile, context.thresholds.silent_lanes
        self._stray = context.stray_lanes
        self._told: set[int] = set()
        profile = self.profile
        lanes = profile.lanes()
        base = int(profile.start[lanes].min()) if len(lanes) else 0
        self._start, self._end = profile.start - base, profile.end - base
        self._brothers = np.full((2, len(profile.tree)), np.nan)
        if len(lanes):
            parents = profile.parent[lanes]
            size = group_sizes(parents)
            is_judged = (size >= _BROTHERS[0]) & (size <= _BROTHERS[1])
            for found, times in zip(self._brothers, (self._start, self._end), strict=True):
                found[lanes] = np.where(is_judged, median_of_others(times[lanes], parents), np.nan)

    # --- nothing at all -----------------------------------------------------------------------------------------

    def missing_children(self) -> Iterator[Suspicion]:
        """Find groups that lack a lane that all others like them have, of one kind or else of one name."""
        profile = self.profile
        kinds = [profile.shapes[shape].rpartition("/")[2] for shape in profile.shape.tolist()]
        yield from self._lacking(kinds, is_name=False)
        yield from self._lacking(profile.tree.names, is_name=True)

    def _lacking(self, kinds: list[str], *, is_name: bool) -> Iterator[Suspicion]:
        """Find groups without a child of some kind.

        Args:
            kinds: kind of each track.
            is_name: whether lanes of one name are meant: nearly all of them must have the same number of records.
        """
        profile, limits = self.profile, self.limits
        used = profile.is_lane & ~profile.is_host & (profile.parent >= 0) & (profile.count + profile.instants > 0)
        most: dict[int, dict[str, int]] = defaultdict(dict)
        for lane in np.flatnonzero(used).tolist():
            counts = most[int(profile.parent[lane])]
            counts[kinds[lane]] = max(counts.get(kinds[lane], 0), int(profile.count[lane]))
        alike: dict[int, list[int]] = defaultdict(list)
        for parent in most:
            alike[int(profile.shape[parent])].append(parent)
        for parents in alike.values():
            if len(parents) < limits.min_lanes:
                continue
            having = Counter(kind for parent in parents for kind in most[parent])
            for kind, count in having.items():
                if self._few(len(parents) - count, len(parents)):
                    numbers = np.array([most[parent][kind] for parent in parents if kind in most[parent]], np.int64)
                    found = self._evenness(numbers)
                    usual = _most_common(numbers)[1]
                    if found.is_enough and (not is_name or usual >= limits.count_share * len(numbers)):
                        lacking = [parent for parent in parents if kind not in most[parent]]
                        yield from self._without(lacking, kind, found)

    def _without(self, parents: list[int], kind: str, found: _Evenness) -> Iterator[Suspicion]:
        for parent in parents:
            if parent not in self._told:
                self._told.add(parent)
                detail = (
                    f"no {kind} with records: each of {len(found.used)} others like {self.profile.path(parent)} "
                    f"has one, with {int(found.used.min())} or more"
                )
                yield Suspicion(CODE, detail, found.severity, track_id=parent, count=1)

    def silent(self, group: Ints) -> Iterator[Suspicion]:
        """Find lanes without a record among even siblings."""
        profile = self.profile
        found = self._evenness(profile.count[group])
        silent = group[(profile.count[group] == 0) & (profile.instants[group] == 0)]
        silent = silent[~np.isin(profile.parent[silent], np.array(list(self._told), np.int64))]
        if not found.is_even or not self._few(len(silent), len(group)):
            return
        for lane in silent.tolist():
            detail = f"no records: each of {len(found.used)} siblings has {int(found.used.min())} or more"
            # The last of several threads often has another duty, as the last block of a grid has less work.
            severity = "notice" if lane in (group[0], group[-1]) else found.severity
            yield Suspicion(CODE, detail, severity, track_id=lane, count=1)

    def unnumbered(self, group: Ints) -> Iterator[Suspicion]:
        """Find numbers without a lane among even siblings that are numbered on."""
        profile = self.profile
        found = self._evenness(profile.count[group])
        if not found.is_even or len(found.used) < len(group):
            return
        numbers = _numbers([profile.path(lane) for lane in group.tolist()])
        if numbers is None:
            return
        all_numbers = np.arange(numbers.min(), numbers.max() + 1)
        missing = all_numbers[~np.isin(all_numbers, numbers)]
        if not self._few(len(missing), len(numbers)):
            return
        named = ", ".join(map(str, missing[:_NAMED].tolist())) + (", ..." if len(missing) > _NAMED else "")
        detail = (
            f"no lane {named} among {len(group)} siblings like {profile.path(int(group[0]))}, "
            f"each of which has {int(found.used.min())} or more records"
        )
        parents = distinct(profile.parent[group])
        parent = int(parents[0]) if len(parents) == 1 and parents[0] >= 0 else int(profile.device[group[0]])
        yield Suspicion(CODE, detail, found.severity, track_id=parent, count=len(missing))

    def _evenness(self, counts: Ints) -> _Evenness:
        """Return how even lanes are that have so many slices each."""
        limits = self.limits
        used = counts[counts > 0]
        least, middle = (int(used.min()), median(used)) if len(used) else (0, 0.0)
        is_enough = len(used) >= limits.min_lanes - 1 and least >= limits.min_slices and middle >= limits.median_slices
        spread = deviation(np.log(used), 0.0)[1] if is_enough else 0.0
        is_even = is_enough and spread <= limits.even_deviation and least >= limits.even_share * middle
        return _Evenness(used, is_enough, is_even, is_even and least >= limits.regular_share * middle)

    def _few(self, count: int, total: int) -> bool:
        """Return whether some of the lanes are few enough to be missing by accident."""
        return 0 < count <= max(1.0, self.limits.silent_share * total)

    # --- fewer than the others ----------------------------------------------------------------------------------

    def short(self, group: Ints) -> Iterator[Suspicion]:
        """Find lanes that end early or start late with fewer slices, or have another number of slices than the rest."""
        profile, limits = self.profile, self.limits
        lanes = group[(profile.count[group] >= limits.end_slices) & ~self._stray[group]]
        if len(lanes) < limits.min_lanes:
            return
        counts = profile.count[lanes]
        logarithms = np.log(counts)
        middle, spread = deviation(logarithms, 0.05)
        if spread > limits.even_deviation:
            return
        usual = float(np.exp(middle))
        is_less = (logarithms < middle - limits.end_deviations * spread) & (counts < limits.end_count * usual)
        is_certain = np.full(len(lanes), spread <= limits.certain_deviation)
        if not self._are_equal(counts):
            # Numbers that vary do so by chance, the more the smaller they are.
            is_less &= usual - counts > limits.end_missing * np.sqrt(usual)
            is_certain &= usual - counts > limits.certain_missing * np.sqrt(usual)
        edges = {int(lane) for lane in (lanes[0], lanes[-1], group[0], group[-1])}
        has_brothers = bool(np.isfinite(self._brothers[:, lanes]).all())
        starts, ends = self._brothers if has_brothers else np.zeros((2, len(profile.tree)))
        extent = max(median(profile.extent[lanes]), 1.0)
        for way, off in (
            ("ends {:.0%} of its siblings' extent early", self._end[lanes] - ends[lanes]),
            ("starts {:.0%} of its siblings' extent late", starts[lanes] - self._start[lanes]),
        ):
            missing, is_low = self._off(off, is_less, counts, extent)
            for at in np.flatnonzero(is_low).tolist():
                lane = int(lanes[at])
                self._told.add(lane)
                detail = (
                    f"{way.format(missing[at] / extent)}, with {counts[at]} records: "
                    f"the others have {counts[~is_low].min()} or more"
                )
                severity = "warning" if is_certain[at] and lane not in edges else "notice"
                yield Suspicion(CODE, detail, severity, track_id=lane, ranges=(LaneRange(lane),), count=1)
        if len(lanes) >= limits.count_lanes and self._are_equal(counts):
            yield from self._odd_counts(lanes, counts, edges)

    def _are_equal(self, counts: Ints) -> bool:
        """Return whether nearly all lanes have the same number of slices."""
        return _most_common(counts)[1] >= self.limits.count_share * len(counts) - 1

    def _off(self, off: Ints | Floats, is_less: Mask, counts: Ints, extent: float) -> tuple[Floats, Mask]:
        """Return how much of their siblings' extent lanes lack, and which of them lack too much."""
        limits = self.limits
        middle, spread = deviation(off, 0.02 * extent + self.profile.quantum)
        missing: Floats = np.asarray(middle - off, np.float64)
        is_low = is_less & (missing > limits.end_deviations * spread) & (missing > limits.end_extent * extent)
        few = int(np.count_nonzero(is_low))
        is_few = 0 < few <= limits.silent_share * len(off) + 1 and len(off) - few >= limits.min_lanes - 1
        if not is_few or counts[is_low].max() > limits.end_gap * counts[~is_low].min():
            is_low = np.zeros(len(off), np.bool_)
        return missing, is_low

    def _odd_counts(self, lanes: Ints, counts: Ints, edges: set[int]) -> Iterator[Suspicion]:
        """Find lanes with another number of slices than nearly all siblings, which have the same."""
        usual, agreeing = _most_common(counts)
        for lane, count in zip(lanes.tolist(), counts.tolist(), strict=True):
            is_odd = abs(count - usual) > self.limits.count_difference * usual
            if is_odd and lane not in self._told and lane not in edges:
                detail = f"{count} records: {agreeing} of {len(lanes)} siblings have {usual} each"
                yield Suspicion(CODE, detail, "notice", track_id=lane, ranges=(LaneRange(lane),), count=1)


def _most_common(values: Ints) -> tuple[int, int]:
    """Return the most common value and how often it occurs."""
    found, numbers = np.unique(values, return_counts=True)
    return int(found[np.argmax(numbers)]), int(numbers.max())


def _numbers(paths: list[str]) -> Ints | None:
    """Return the one number in which paths differ, int64 [n]; None where they differ in several, or in long ones."""
    parts = [_NUMBER.findall(path) for path in paths]
    if len({len(numbers) for numbers in parts}) != 1:
        return None
    varying = [column for column in zip(*parts, strict=True) if len(set(column)) > 1]
    if len(varying) != 1 or any(len(number) > _DIGITS or number.startswith("0x") for number in varying[0]):
        return None
    return np.array([int(number) for number in varying[0]], np.int64)

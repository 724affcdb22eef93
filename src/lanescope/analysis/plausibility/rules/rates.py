"""LS507: a clock rate, or a time unit, that cannot be."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lanescope.analysis.plausibility.context import PlausibilityContext
from lanescope.analysis.plausibility.profile import Profile
from lanescope.analysis.plausibility.shapes import siblings
from lanescope.analysis.plausibility.siblings import median
from lanescope.analysis.plausibility.suspicion import LaneRange, Suspicion, times_text
from lanescope.analysis.plausibility.thresholds import RateThresholds
from lanescope.common.intervals import Ints, group_starts
from lanescope.errors import LanescopeError
from lanescope.families import registry
from lanescope.families.family import ClockSpec

_CODE = "LS507"
#: A lower and an upper share of the lengths of a lane that must both have moved, and by how much of the middle.
_TAIL, _MOVED = 10, 0.6
#: Smallest usual deviation of the logarithms of lengths between siblings.
_LEAST_DEVIATION = 0.05
#: Values of a group, and steps of 1, in keys of sorts.
_GROUP_BITS, _UNIT = 32, 1 << 24

Floats = npt.NDArray[np.float64]


def implausible_rates(context: PlausibilityContext) -> Iterator[Suspicion]:
    """Yield clocks with implausible rates, an implausible unit, and lanes whose lengths are out of scale."""
    profile, limits = context.profile, context.thresholds.rates
    yield from _declared_rates(profile)
    yield from _anchored_rates(profile, limits)
    yield from _unit(profile, limits)
    yield from _lane_rates(context, limits)


def _declared_rates(profile: Profile) -> Iterator[Suspicion]:
    """Yield clocks with a rate that the family says such counters do not have."""
    # The capture does not declare a rate that the decoder estimated: LS305 reports it.
    specs = [spec for family in profile.families for spec in _specs(family) if spec.estimated not in profile.stats]
    names, declared = profile.clocks.values("name").tolist(), profile.clocks.valid("frequency_num")
    alike: dict[tuple[str, float], list[int]] = {}
    for clock in np.flatnonzero(declared).tolist():
        alike.setdefault((names[clock], _rate(profile, clock)), []).append(clock)
    for (name, rate), rows in alike.items():
        ranges = [one for spec in specs if name.startswith(spec.name) for one in spec.rates_hz]
        if ranges and not any(low <= rate <= high for low, high in ranges):
            usual = " or ".join(f"{low / 1e6:.6g} to {high / 1e6:.6g} MHz" for low, high in ranges)
            detail = f"{name} has a rate of {rate / 1e6:.6g} MHz; such counters have {usual}"
            yield Suspicion(_CODE, detail, "warning", rows=np.array(rows), table="clocks")


def _specs(family: str) -> tuple[ClockSpec, ...]:
    """Return the counters that a family declares; none where it is not installed."""
    try:
        return registry.family(family).clocks
    except LanescopeError:
        return ()


def _anchored_rates(profile: Profile, limits: RateThresholds) -> Iterator[Suspicion]:
    """Yield clocks whose first and last anchor contradict the declared rate."""
    clocks, anchors = profile.clocks, profile.anchors
    if profile.time_unit != "ns":
        return
    names, declared = clocks.values("name").tolist(), clocks.valid("frequency_num")
    for clock in np.flatnonzero(declared).tolist():
        rate = _rate(profile, clock)
        rows = np.flatnonzero(anchors.values("clock_id") == clock)
        if len(rows) < 2 or rate <= 0:
            continue
        rows = rows[np.lexsort((anchors.values("ts")[rows], anchors.values("ticks")[rows]))]
        first, last = (
            tuple(int(anchors.values(name)[row]) for name in ("ticks", "ts", "error_ns")) for row in (rows[0], rows[-1])
        )
        ticks, ns = last[0] - first[0], last[1] - first[1]
        if ticks <= 0 or ns <= 0:
            continue
        measured = ticks * 1e9 / ns
        tolerance = limits.anchor_tolerance + (first[2] + last[2] + 2e9 / rate) / ns
        if abs(rate / measured - 1) > tolerance:
            detail = f"the anchors of {names[clock]} give {measured / 1e6:.6g} MHz, {rate / 1e6:.6g} MHz is declared"
            yield Suspicion(_CODE, detail, "warning", rows=rows[[0, -1]], table="anchors", count=1, ts=first[1])


def _rate(profile: Profile, clock: int) -> float:
    """Return the declared rate of a clock in Hz; 0 without one."""
    clocks = profile.clocks
    den = int(clocks.values("frequency_den")[clock]) if clocks.valid("frequency_den")[clock] else 1
    return int(clocks.values("frequency_num")[clock]) / max(den, 1)


def _unit(profile: Profile, limits: RateThresholds) -> Iterator[Suspicion]:
    """Yield timestamps that are multiples of more than any clock's resolution."""
    is_judged = profile.time_unit == "ns" and profile.stamps.count >= limits.unit_stamps
    if is_judged and profile.quantum > limits.unit_step_ns:
        detail = f"all timestamps are multiples of {profile.quantum} ns: a wrong unit or rate"
        yield Suspicion(_CODE, detail, "warning", count=1, table="clocks")


def _lane_rates(context: PlausibilityContext, limits: RateThresholds) -> Iterator[Suspicion]:
    """Yield lanes whose slices all are many times as long, or as short, as those of the same names on siblings."""
    profile = context.profile
    lanes, middle, low, high, count = _relative_lengths(profile, limits)
    is_compared = profile.judged[lanes] & ~context.stray_lanes[lanes]
    at = np.full(len(profile.tree), -1)
    at[lanes] = np.arange(len(lanes))
    for group in siblings(profile.shape, lanes[is_compared]):
        if len(group) < limits.lane_siblings:
            continue
        here = at[group]
        usual = median(middle[here])
        deviation = max(1.4826 * median(np.abs(middle[here] - usual)), _LEAST_DEVIATION)
        away = np.abs(middle[here] - usual)
        for k in np.flatnonzero((away > limits.lane_deviations * deviation) & (away > np.log(limits.lane_ratio))):
            others, one = np.delete(here, k), here[k]
            if away[k] < 2 * np.delete(away, k).max() or profile.is_host[group[k]]:
                continue
            tails = low[one] - median(low[others]), high[one] - median(high[others])
            if min(map(abs, tails)) < _MOVED * away[k] or tails[0] * tails[1] <= 0:
                continue
            ratio = float(np.exp(middle[one] - usual))
            detail = (
                f"{count[one]:,} slices take {times_text(ratio)} times as long as those of the same names "
                f"on {len(others):,} lanes like it"
            )
            lane = int(group[k])
            yield Suspicion(_CODE, detail, "warning", track_id=lane, ranges=(LaneRange(lane),))


def _relative_lengths(profile: Profile, limits: RateThresholds) -> tuple[Ints, Floats, Floats, Floats, Ints]:
    """Return how long the slices of each lane are against others of their names on lanes of the shape.

    Returns:
        lanes (int64 [n] rising), the median, the 10th and the 90th percentile of the logarithms (float64 [n] each), and
        how many slices each lane has in the sample (int64 [n]).
    """
    pairs = profile.pairs
    is_used = pairs.sample >= 4 * max(profile.quantum, 1)
    owner, length = pairs.sample_pair[is_used], np.log(pairs.sample[is_used].astype(np.float64))
    shapes = int(profile.shape.max(initial=0)) + 1
    _, group_of_pair = np.unique(pairs.name * shapes + profile.shape[pairs.track], return_inverse=True)
    group, value = _sorted_groups(group_of_pair[owner], length)
    first = np.flatnonzero(group_starts(group))
    count = np.diff(np.append(first, len(group)))
    usual = np.full(len(group_of_pair), np.nan)
    is_common = count >= limits.lane_slices
    usual[group[first[is_common]]] = _medians(value, first[is_common], count[is_common])
    relative = length - usual[group_of_pair[owner]]
    is_known = ~np.isnan(relative)
    lane, value = _sorted_groups(pairs.track[owner[is_known]], relative[is_known])
    first = np.flatnonzero(group_starts(lane))
    count = np.diff(np.append(first, len(lane)))
    first, count = first[count >= limits.lane_slices], count[count >= limits.lane_slices]
    tail = count // _TAIL
    middle = _medians(value, first, count)
    return lane[first], middle, value[first + tail], value[first + count - 1 - tail], count


def _medians(value: Floats, first: Ints, count: Ints) -> Floats:
    """Return the median of each group of sorted values, from where it begins and how many there are."""
    medians: Floats = (value[first + (count - 1) // 2] + value[first + count // 2]) / 2
    return medians


def _sorted_groups(group: Ints, value: Floats) -> tuple[Ints, Floats]:
    """Return groups (below 2^31) and values (within 64 of 0) sorted by group, then value; values to 6e-8."""
    half = 1 << (_GROUP_BITS - 1)
    key = (group << _GROUP_BITS) + (np.rint(value * _UNIT).astype(np.int64) + half)
    key.sort()  # of one array of integers, which is much faster than a sort by two keys
    return key >> _GROUP_BITS, ((key & (2 * half - 1)) - half) / _UNIT

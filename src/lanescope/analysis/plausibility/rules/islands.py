"""LS501: few records far from everything else."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from lanescope.analysis.plausibility.stamps import Stamps
from lanescope.analysis.plausibility.suspicion import Suspicion, exact, times_text
from lanescope.common.distinct import distinct
from lanescope.common.intervals import bounds
from lanescope.common.islands import NO_POINTS, Islands, IslandThresholds, Points, Witnesses, find_islands, joined
from lanescope.trace.column import Mask

if TYPE_CHECKING:
    from lanescope.analysis.plausibility.profile import Profile

#: Powers of two of ticks that a counter of usual width wraps at.
_WRAPS = (31, 32, 40, 48)


def sampled_islands(
    stamps: Stamps, witnesses: Witnesses, limits: IslandThresholds
) -> tuple[Islands, tuple[int, int] | None]:
    """Return what stands apart as far as the sample tells.

    Returns:
        The islands; and None where they are exact, else the window outside which every timestamp has to be looked at.
    """
    window = (stamps.first, stamps.last) if stamps.count else (0, 0)
    nothing = Islands(window, NO_POINTS)
    if stamps.count < limits.min_stamps or stamps.is_spread():
        return nothing, None
    sample = stamps.sample()
    islands = find_islands(sample, witnesses, limits)
    if stamps.is_complete:
        return islands, None
    low, high = islands.window
    farthest = max(low - window[0], window[1] - high)
    if not len(islands.far.row) and farthest <= min(limits.gap_rests, limits.core_spans) * (high - low):
        return nothing, None
    return nothing, (low, high)


def exact_islands(
    stamps: Stamps, core: tuple[int, int], outside: Points, witnesses: Witnesses, limits: IslandThresholds
) -> Islands:
    """Return what stands apart, from the sample within the ``core`` and every timestamp outside it."""
    sample = stamps.sample()
    inside = sample.take((sample.time >= core[0]) & (sample.time <= core[1]))
    return find_islands(joined(inside, outside), witnesses, limits, core)


def island_suspicions(islands: Islands, profile: Profile, limits: IslandThresholds) -> Iterator[Suspicion]:
    """Yield what stands apart, lane by lane."""
    far = islands.far
    for table in ("slices", "instants"):
        mine = far.take(far.is_instant == (table == "instants"))
        mine = mine.take(np.argsort(mine.track, kind="stable"))
        for first, last in pairwise(bounds(mine.track)):
            part = mine.take(np.arange(first, last))
            if 0 <= int(part.track[0]) < len(profile.tree):
                yield _suspicion(islands.window, table, part, profile, limits)


def _suspicion(
    window: tuple[int, int], table: str, far: Points, profile: Profile, limits: IslandThresholds
) -> Suspicion:
    """Return what the far timestamps of one lane mean."""
    lane = int(far.track[0])
    low, high = window
    core = max(high - low, 1)
    distance = max(int(far.time.max()) - high, low - int(far.time.min()))
    rows = distinct(far.row)
    total = int(profile.count[lane] if table == "slices" else profile.instants[lane])
    spans = distance / core
    is_reaching = len(rows) == len(far.row) and (bool(far.is_end.all()) or _is_all_closed(table, lane, profile))
    wrap = _wrap(distance, core, float(profile.tick[lane]))
    away = exact(distance, profile.time_unit)
    times = f"{times_text(spans)} times its length"
    some = f"{len(rows):,} of {total:,} {table}"
    if is_reaching:
        detail = f"{some} {_verb(len(rows), 'reach')} {away} beyond the rest of the trace, {times}"
    elif len(rows) == total:
        detail = f"the whole lane is {away} away from the rest of the trace, {times}"
    else:
        verb = "is" if len(rows) == 1 else "are"
        what = "a clock step, or stray records"
        detail = f"{some} {verb} {away} away from the rest of the trace, {times}: {what}"
    if wrap:
        detail += f"; about 2^{wrap} ticks: a missed wrap"
    is_grave = spans > limits.warning_spans or wrap
    severity = "warning" if is_grave and not profile.is_host[lane] else "notice"
    return Suspicion("LS501", detail, severity, track_id=lane, rows=rows, table=table)


def _is_all_closed(table: str, lane: int, profile: Profile) -> bool:
    """Tell whether each row of a lane has a start and an end."""
    return table == "slices" and bool(profile.closed[lane] == profile.count[lane])


def _verb(count: int, verb: str) -> str:
    return verb if count != 1 else f"{verb}es" if verb.endswith("ch") else f"{verb}s"


def _wrap(distance: int, core: int, tick: float) -> int:
    """Return the width of a counter whose wrap explains the distance; 0 without one."""
    for bits in _WRAPS:
        if distance > 8 * core and abs(distance - tick * 2.0**bits) < 2 * core:
            return bits
    return 0


def far_lanes(islands: Islands, tracks: int) -> Mask:
    """Return which tracks have far timestamps, bool [tracks]."""
    found: Mask = np.zeros(tracks, np.bool_)
    track = islands.far.track
    found[track[(track >= 0) & (track < tracks)]] = True
    return found

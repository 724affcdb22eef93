"""What a plausibility rule is handed.

A rule is a function that takes a ``PlausibilityContext`` and yields ``Suspicion``s::

    def silent_lanes(context: PlausibilityContext) -> Iterator[Suspicion]:
        profile, limits = context.profile, context.thresholds.silent_lanes
        for lanes in siblings(profile.shape, profile.lanes(with_host=False)):
            ...
            yield Suspicion("LS504", detail, "warning", track_id=lane, ranges=(LaneRange(lane),))

Rules look at lanes in ``profile.judged`` only (``profile.lanes()`` does), and leave out ``stray_lanes`` where a stray
timestamp would be compared. Findings on many lanes of a shape are folded into one afterwards, by the caller.
"""

from __future__ import annotations

from lanescope.analysis.plausibility.profile import Profile
from lanescope.analysis.plausibility.thresholds import Thresholds
from lanescope.common.intervals import Ints
from lanescope.declaration import frozen_class
from lanescope.trace.column import Mask


@frozen_class
class PlausibilityContext:
    """A profile and what earlier rules found.

    Attributes:
        profile: the profile.
        thresholds: all thresholds.
        stray_lanes: bool [tracks], lanes with slices that LS501 suspects. LS502, LS504, LS506 and LS507 leave them out.
        stray_rows: int64 [n] rising, positions of those slices in the whole trace.
    """

    profile: Profile
    thresholds: Thresholds
    stray_lanes: Mask
    stray_rows: Ints

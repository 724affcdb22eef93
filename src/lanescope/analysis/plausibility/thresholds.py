"""Thresholds of the plausibility rules, with the defaults that were measured."""

from __future__ import annotations

from typing import Annotated

from lanescope.common.islands import Count, Distance, Share
from lanescope.common.islands import IslandThresholds as IslandThresholds
from lanescope.declaration import frozen_class

# Types of thresholds, each with the lowest and the highest value.

#: Number of lanes that are compared with each other.
Siblings = Annotated[int, (2, 1_000_000_000)]
#: How many times as large one has to be as the other.
Ratio = Annotated[float, (1, 1e12)]


@frozen_class
class StandingClockThresholds:
    """LS503: a clock that stands, or ticks too coarsely.

    Attributes:
        min_slices: slices of a lane without which one timestamp is not judged.
        min_trace_slices: slices of the trace without which all lanes are not judged together.
        run: slices of no length at one time from which on the clock stood.
        run_ratio: how many times the usual run of the siblings that has to be.
        coarse_slices: slices of a lane without which steps are not judged.
        coarse_empty: share of slices of no length from which on they are.
        coarse_values: timestamps per distinct value from which on the clock is coarse.
        sibling_share: share of coarse siblings below which a lane stands out.
    """

    min_slices: Count = 4
    min_trace_slices: Count = 8
    run: Count = 12
    run_ratio: Ratio = 4.0
    coarse_slices: Count = 12
    coarse_empty: Share = 0.5
    coarse_values: Ratio = 6.0
    sibling_share: Share = 0.25


@frozen_class
class DuplicateThresholds:
    """LS505: the same records twice.

    Attributes:
        min_steps: shorter slices may be equal by chance, in steps of the lane's clock.
        free_slices: slices of a lane that permits overlap from which on it is a warning.
        free_steps: length from which on fewer of them are a notice, in steps of the clock.
        lane_slices: slices of a lane without which it is not compared with its siblings.
        lane_steps: extent of a lane without which it is not, in steps of the clock.
    """

    min_steps: Count = 8
    free_slices: Count = 4
    free_steps: Count = 512
    lane_slices: Count = 12
    lane_steps: Count = 64


@frozen_class
class RateThresholds:
    """LS507: a rate that cannot be.

    Attributes:
        unit_step_ns: multiples of more than this are an implausible resolution, in ns.
        unit_stamps: timestamps without which that is not judged.
        anchor_tolerance: difference from the declared rate that anchors may show, as a share.
        lane_slices: slices of a lane, and of a name, without which lengths are not compared.
        lane_siblings: lanes of a shape without which they are not.
        lane_ratio: how many times as long, or as short, the lengths of a lane have to be.
        lane_deviations: how many times the usual deviation that has to be.
    """

    unit_step_ns: Count = 4096
    unit_stamps: Count = 64
    anchor_tolerance: Share = 1e-3
    lane_slices: Count = 8
    lane_siblings: Siblings = 4
    lane_ratio: Ratio = 3.0
    lane_deviations: Distance = 8.0


@frozen_class
class LoneGapThresholds:
    """LS502: a gap that no sibling has.

    Attributes:
        min_slices: lanes with fewer slices are not compared.
        min_lanes: siblings without which none is, the lane itself included.
        ratio: how many times the largest gap of the siblings it has to be.
        deviations: the same for its logarithm, in deviations of the logarithms of the siblings' largest gaps.
        min_extent: length of the gap, as a share of the siblings' median extent.
        min_shift: how much later the lane has to end, or earlier to start, than all siblings, as a share of the gap.
        warning_extent: from this length on it is a warning, in median extents.
        min_side: for a warning, how long the lane goes on after the gap (or went before it), as a share of its extent
            without the gap.
    """

    min_slices: Count = 8
    min_lanes: Siblings = 4
    ratio: Ratio = 8.0
    deviations: Distance = 6.0
    min_extent: Distance = 0.25
    min_shift: Share = 0.5
    warning_extent: Distance = 1.0
    min_side: Share = 0.02


@frozen_class
class SilentLaneThresholds:
    """LS504: a lane is silent, or ends or starts where its siblings go on.

    Attributes:
        min_lanes: siblings, or groups of one shape, without which none is judged.
        min_slices: slices that every sibling of a silent lane has at least.
        median_slices: slices that half of them have at least.
        even_deviation: deviation of the logarithm of their numbers up to which siblings are even.
        even_share: the smallest number in medians from which on they are even; ``regular_share``: and regular.
        silent_share: more lanes than this share (and than one) are not silent by accident.
        end_slices: lanes with fewer slices are not asked where they end.
        end_deviations: how many usual deviations early a lane has to end.
        end_extent: how early it has to end, as a share of the siblings' median extent.
        end_count: number of its slices, in medians, below which it does.
        end_gap: number of its slices, in those of the smallest sibling, below which it does.
        certain_deviation: deviation up to which that is a warning.
        end_missing: where numbers differ, how many slices have to be missing, in square roots of their median.
        certain_missing: the same for a warning.
        count_lanes: siblings without which an odd count is not judged.
        count_share: share of them that have the same count.
        count_difference: difference from it that is odd, as a share.
    """

    min_lanes: Siblings = 4
    min_slices: Count = 3
    median_slices: Count = 8
    even_deviation: Distance = 0.35
    even_share: Share = 0.25
    regular_share: Share = 0.5
    silent_share: Share = 0.1
    end_slices: Count = 6
    end_deviations: Distance = 6.0
    end_extent: Share = 0.25
    end_count: Distance = 0.8
    end_gap: Distance = 0.9
    certain_deviation: Distance = 0.1
    end_missing: Distance = 2.0
    certain_missing: Distance = 3.0
    count_lanes: Siblings = 6
    count_share: Share = 0.9
    count_difference: Distance = 0.1


@frozen_class
class ShiftThresholds:
    """LS506: a lane shifted as a whole.

    Attributes:
        min_slices: lanes with fewer slices are not compared.
        min_lanes: siblings without which none is, the lane itself included.
        deviations: how many usual deviations start and end have to be off.
        min_extent: how far, as a share of the siblings' median extent.
        max_stretch: difference between the two shifts, as a share of the smaller one.
        ratio: how many times the largest shift of the others it has to be.
        max_lanes: share of the siblings up to which they are the exception.
        next_wave: against siblings, larger shifts are taken for the next wave of blocks, in median extents.
    """

    min_slices: Count = 4
    min_lanes: Siblings = 5
    deviations: Distance = 8.0
    min_extent: Distance = 0.25
    max_stretch: Distance = 0.5
    ratio: Ratio = 2.0
    max_lanes: Share = 0.2
    next_wave: Distance = 0.9


@frozen_class
class ForeignNameThresholds:
    """LS508: records on a lane of another kind.

    Attributes:
        min_lanes: lanes that a shape needs so that a name can be at home there.
        home_share: share of its lanes that have a name that is at home there.
        rare_share: share of the lanes of another shape (or one lane) up to which a name is strange there.
        own_share: share of the slices of that shape whose names are at home there.
        home_slices: slices of the name that lanes at its home have on average.
    """

    min_lanes: Count = 3
    home_share: Share = 0.8
    rare_share: Share = 0.1
    own_share: Share = 0.3
    home_slices: Distance = 3.0


@frozen_class
class DominantRecordThresholds:
    """LS509: one record decides.

    Attributes:
        min_slices: slices of a name and shape without which none decides.
        longest_share: share of them, the longest, among which the jump is looked for.
        ratio: how many times as long as the next one they are.
        name_share: share of the time of the name that they make up.
        trace_share: share of the time of all names that they make up.
        shared_lanes: share of the lanes with the name from which on they are no exception.
        late_ratio: how many times as long as on its siblings a slice is that makes its lane end late.
        late_deviations: the same for its logarithm, in deviations of the logarithms of the siblings' longest ones.
        late_slices: lanes with fewer slices are not compared.
        late_siblings: siblings without which none does.
        late_extent: how long it is, in median extents of the siblings.
        late_shift: how much later the lane ends, or earlier it starts, than all siblings, as a share of it.
    """

    min_slices: Count = 16
    longest_share: Share = 0.01
    ratio: Ratio = 32.0
    name_share: Share = 0.5
    trace_share: Share = 0.05
    shared_lanes: Share = 0.5
    late_ratio: Ratio = 10.0
    late_deviations: Distance = 6.0
    late_slices: Count = 8
    late_siblings: Siblings = 3
    late_extent: Distance = 1.5
    late_shift: Share = 0.5


@frozen_class
class SharedStopThresholds:
    """LS510: recorders that stop on one signal.

    Attributes:
        min_lanes: recorders without which none is compared.
        agreeing: share of them that stop together.
        near_steps: distance up to which they do, in steps of the clock.
        from_start: distance of the stop from 0, in those distances.
        warning_lanes: recorders that stop together from which on it is a warning.
    """

    min_lanes: Siblings = 3
    agreeing: Share = 0.6
    near_steps: Count = 64
    from_start: Count = 1000
    warning_lanes: Count = 3


@frozen_class
class Thresholds:
    """All thresholds, by what they are about.

    Example:
        >>> Thresholds(islands=IslandThresholds(warning_spans=24)).islands.warning_spans
        24
    """

    islands: IslandThresholds = IslandThresholds()
    standing_clock: StandingClockThresholds = StandingClockThresholds()
    duplicates: DuplicateThresholds = DuplicateThresholds()
    rates: RateThresholds = RateThresholds()
    lone_gaps: LoneGapThresholds = LoneGapThresholds()
    silent_lanes: SilentLaneThresholds = SilentLaneThresholds()
    shifts: ShiftThresholds = ShiftThresholds()
    foreign_names: ForeignNameThresholds = ForeignNameThresholds()
    dominant_records: DominantRecordThresholds = DominantRecordThresholds()
    shared_stops: SharedStopThresholds = SharedStopThresholds()

"""Thresholds of the plausibility rules, with the defaults that were measured."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class IslandThresholds:
    """LS501: few records far from everything else.

    Attributes:
        min_stamps: fewer timestamps are not judged.
        core_spans: timestamps further than this from the core are far, in lengths of the core.
        gap_rests: gaps longer than this split the trace, in lengths of the rest.
        lone_gap_rests: the same where more than two lanes, or 2 %, stand apart.
        max_lanes: more lanes do not stand apart, as a share of all.
        max_stamps: more timestamps of such lanes do not stand apart, as a share of all.
        warning_spans: from this distance on it is a warning, in lengths of the core.
    """

    min_stamps: int = 32
    core_spans: float = 8.0
    gap_rests: float = 4.0
    lone_gap_rests: float = 8.0
    max_lanes: float = 0.34
    max_stamps: float = 0.10
    warning_spans: float = 100.0


@dataclass(frozen=True, slots=True)
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

    min_slices: int = 4
    min_trace_slices: int = 8
    run: int = 12
    run_ratio: float = 4.0
    coarse_slices: int = 12
    coarse_empty: float = 0.5
    coarse_values: float = 6.0
    sibling_share: float = 0.25


@dataclass(frozen=True, slots=True)
class DuplicateThresholds:
    """LS505: the same records twice.

    Attributes:
        min_steps: shorter slices may be equal by chance, in steps of the lane's clock.
        free_slices: slices of a lane that permits overlap from which on it is a warning.
        free_steps: length from which on fewer of them are a notice, in steps of the clock.
        lane_slices: slices of a lane without which it is not compared with its siblings.
        lane_steps: extent of a lane without which it is not, in steps of the clock.
    """

    min_steps: int = 8
    free_slices: int = 4
    free_steps: int = 512
    lane_slices: int = 12
    lane_steps: int = 64


@dataclass(frozen=True, slots=True)
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

    unit_step_ns: int = 4096
    unit_stamps: int = 64
    anchor_tolerance: float = 1e-3
    lane_slices: int = 8
    lane_siblings: int = 4
    lane_ratio: float = 3.0
    lane_deviations: float = 8.0


@dataclass(frozen=True, slots=True)
class Thresholds:
    """All thresholds, by what they are about.

    Example:
        >>> Thresholds(islands=IslandThresholds(warning_spans=24)).islands.warning_spans
        24
    """

    islands: IslandThresholds = field(default_factory=IslandThresholds)
    standing_clock: StandingClockThresholds = field(default_factory=StandingClockThresholds)
    duplicates: DuplicateThresholds = field(default_factory=DuplicateThresholds)
    rates: RateThresholds = field(default_factory=RateThresholds)

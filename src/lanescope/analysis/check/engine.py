"""Evaluation of rules: select them, apply them, assess their violations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np

from lanescope.analysis.check.common_rules import accounting, clock, flow, identity, lane, plausibility
from lanescope.analysis.check.impact import Impact, beyond_next_start, impacts
from lanescope.analysis.check.lane_impact import LaneImpacts
from lanescope.analysis.check.model import CheckContext, Evidence, Finding, Location
from lanescope.common.intervals import Intervals, Ints, union
from lanescope.errors import LanescopeError, MissingDependencyError, UsageError
from lanescope.families import plugin_rules, registry
from lanescope.families.declaration import UPDATE, described
from lanescope.families.rules import SEVERITIES, Rule, Violation

#: All rules, by code.
RULES: tuple[Rule, ...] = (
    *accounting.RULES,
    *lane.RULES,
    *flow.RULES,
    *clock.RULES,
    *identity.RULES,
    *plausibility.RULES,
)

#: So many rows of evidence are looked up in the order of their table: where the memory is limited, it is on disk.
_MANY = 1 << 16


def rules_of(families: Iterable[str]) -> tuple[Rule, ...]:
    """Return the rules that families declare; one that is not here, or is broken, has none."""
    found: list[Rule] = []
    for name in families:
        with suppress(UsageError, MissingDependencyError):
            found += registry.family(name).rules
    return tuple(found)


def rules(select: Iterable[str] = (), ignore: Iterable[str] = (), *, families: Iterable[str] = ()) -> tuple[Rule, ...]:
    """Return the rules that codes, or beginnings of codes (``LS1``), choose.

    Args:
        select: what to take; empty: all.
        ignore: what to leave out of that.
        families: whose rules there are besides those for all traces. Without any, those of all families that there are,
            if a choice fits none of the others.

    Raises:
        UsageError: a choice fits no rule of any family.
    """
    wanted, unwanted = tuple(select), tuple(ignore)
    there = (*RULES, *plugin_rules.plugin_rules().rules, *rules_of(families))
    strange = [choice for choice in (*wanted, *unwanted) if not any(rule.code.startswith(choice) for rule in there)]
    if strange:
        everywhere = rules_of(family.name for family in (*registry.builtin(), *registry.plugin_families()))
        for choice in strange:
            if not any(rule.code.startswith(choice) for rule in everywhere):
                raise UsageError(f"unknown rule {choice!r}", hint="use rule codes or prefixes, e.g. LS101, LS1")
        there = there if families else (*there, *everywhere)
    return tuple(
        rule
        for rule in there
        if (not wanted or rule.code.startswith(wanted)) and not (unwanted and rule.code.startswith(unwanted))
    )


def evaluate(subject: CheckContext, chosen: Sequence[Rule]) -> list[Finding]:
    """Return what the chosen rules find, the worst first, then by code, lane and time."""
    return rank([finding for rule in chosen for finding in assess(subject, rule, apply(rule, subject))])


def rank(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, the worst first, then by code; the others in their order."""
    return sorted(findings, key=lambda finding: (-SEVERITIES.index(finding.severity), finding.code))


def apply(rule: Rule, subject: CheckContext) -> list[Violation]:
    """Return what a rule reports.

    A rule of another package that fails is itself a violation.

    Raises:
        MissingDependencyError: a rule of a family fails.
    """
    package = plugin_rules.plugin_rules().packages.get(rule.code)
    if package is not None and package[0] is rule:
        return plugin_rules.applied(rule, package[1], subject)
    try:
        return list(rule.check(subject))
    except Exception as error:
        if rule in RULES or isinstance(error, LanescopeError):
            raise
        what = f"rule {rule.code} of a device family failed: {described(error)}"
        raise MissingDependencyError(what, hint=f"{UPDATE}, or use --ignore {rule.code}") from error


def assess(subject: CheckContext, rule: Rule, hits: Sequence[Violation]) -> list[Finding]:
    """Return what a rule reported as findings: with its words, the place, and the share of time."""
    inputs = subject.trace.inputs.values("path")
    times, times_of_lane = _affected(subject, hits)
    effects, others = _impacts(subject, rule, hits), LaneImpacts(subject)
    lanes = subject.covered
    total = int(lanes.sum())
    found = []
    for number, (hit, time, time_here) in enumerate(zip(hits, times.tolist(), times_of_lane.tolist(), strict=True)):
        is_time = hit.table == "slices"
        lane_time = int(lanes[hit.track_id]) if hit.track_id is not None and 0 <= hit.track_id < len(lanes) else 0
        affected_lane_fraction = time_here / lane_time if is_time and lane_time else None
        found.append(
            Finding(
                code=rule.code,
                severity=hit.severity or rule.severity,
                title=rule.title,
                detail=hit.detail,
                location=Location(
                    track_id=hit.track_id,
                    track="" if hit.track_id is None else subject.tree.path(hit.track_id),
                    ts=hit.ts,
                    input_id=hit.input_id,
                    input=str(inputs[hit.input_id]) if hit.input_id is not None and hit.input_id < len(inputs) else "",
                    offset=hit.offset,
                ),
                count=len(hit.rows) if hit.count is None else hit.count,
                affected_fraction=time / total if is_time and total else None,
                affected_lane_fraction=affected_lane_fraction,
                evidence=Evidence(hit.table, hit.rows),
                help=rule.help,
                impact=effects[number]._replace(busy_fraction=time / total if total else None)
                if number in effects
                else others.of(hit),
                stat=hit.stat,
            )
        )
    return found


def _impacts(subject: CheckContext, rule: Rule, hits: Sequence[Violation]) -> dict[int, Impact]:
    """Return what the hits with slices as evidence do to totals, by their number."""
    numbers = [number for number, hit in enumerate(hits) if hit.table == "slices" and len(hit.rows)]
    if not numbers:
        return {}
    rows = np.concatenate([_rising(hits[number].rows) for number in numbers])
    number = np.repeat(np.arange(len(numbers)), [len(hits[one].rows) for one in numbers])
    slices = subject.trace.slices
    extents = subject.extents.take(rows)
    extents = extents._replace(end=np.where(slices.valid("dur")[rows], extents.end, extents.begin))
    clipped = np.full(len(numbers), -1)
    lanes = np.array([-1 if hits[one].track_id is None else hits[one].track_id for one in numbers])
    if rule.code == "LS101":
        is_disjoint = subject.disciplines["disjoint"][lanes]
        clipped[is_disjoint] = beyond_next_start(number, extents, len(numbers))[is_disjoint]
    sums = subject.plausibility
    names = sums.name_codes(slices)[rows].astype(np.int64)
    found = impacts(sums.profile, number, len(numbers), subject.slice_positions(rows), names, extents, clipped)
    return dict(zip(numbers, found, strict=True))


def _affected(subject: CheckContext, hits: Sequence[Violation]) -> tuple[Ints, Ints]:
    """Return the time that each hit's slices cover, lane by lane, and that on the hit's own lane; int64 [hits].

    0 without slices.
    """
    times, times_of_lane = np.zeros((2, len(hits)), np.int64)
    mine = [(number, _rising(hit.rows)) for number, hit in enumerate(hits) if hit.table == "slices" and len(hit.rows)]
    if mine:
        lane, begin, end = subject.extents.take(np.concatenate([rows for _, rows in mine]))
        number = np.repeat([number for number, _ in mine], [len(rows) for _, rows in mine])
        first = int(lane.min())
        lanes = int(lane.max()) - first + 1
        both, begin, end = union(Intervals(number * lanes + (lane - first), begin, end))
        number, lane = both // lanes, both % lanes + first
        own = np.array([-1 if hit.track_id is None else hit.track_id for hit in hits])
        np.add.at(times, number, end - begin)
        is_own = lane == own[number]
        np.add.at(times_of_lane, number[is_own], (end - begin)[is_own])
    return times, times_of_lane


def _rising(rows: Ints) -> Ints:
    """Return rows of evidence in an order that looks them up quickly: of many those of a lane are together then."""
    return np.sort(rows) if len(rows) > _MANY else rows

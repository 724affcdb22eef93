"""Verdicts on simulated runs of each family, decoded from their captures, and on runs made by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import exp
from statistics import fmean

import numpy as np
import pytest

import lanescope
from analysis.compare import repeated_runs
from analysis.compare.rates import draw
from analysis.compare.rates import judge as judge_sides
from analysis.compare.repeated_runs import PHASES, run
from effort import some
from lanescope import UsageError
from lanescope.analysis.compare.fail_condition import judge, parse_condition
from lanescope.analysis.compare.run_summary import GroupStatistics, RunSummary
from lanescope.analysis.compare.series import find_changes
from lanescope.analysis.compare.verdicts import compare_runs


def named(comparison: lanescope.analysis.compare.comparison.Comparison) -> dict[str, str]:
    return {group.key[0]: group.verdict for group in comparison.named}


@pytest.mark.parametrize("family", sorted(PHASES))
def test_one_slower_phase_is_named_and_nothing_else(family: str) -> None:
    """Rates over seeds: full effort tries 40, a quick run the first few, which are known to come out right."""
    seeds = range(some(40, 2))
    counts = sum((judge_sides(family, draw(family, seed, 5), 5) for seed in seeds), Counter[str]())
    assert counts["right"] >= 0.9 * len(seeds)
    assert counts["silent"] >= 0.9 * len(seeds)


def made(
    groups: dict[str, tuple[int, int]], name: str = "run", conditions: dict | None = None, unit: str = "ns"
) -> RunSummary:
    """A run with groups of so many slices and so much time."""
    statistics = {
        (key,): GroupStatistics(slices, 0, total, total // slices, total // slices)
        for key, (slices, total) in groups.items()
    }
    return RunSummary(name, "", ("name",), unit, 10**6, statistics, conditions or {})


def varied(count: int, seed: int, groups: dict[str, tuple[int, float]]) -> list[RunSummary]:
    drawn = np.random.default_rng(seed)
    return [
        made({key: (slices, int(total * exp(drawn.normal(0, 0.003)))) for key, (slices, total) in groups.items()})
        for _ in range(count)
    ]


BASE = {"load": (100, 1e6), "mma": (100, 3e6), "store": (50, 5e5)}


def test_counts_are_told_apart_from_time_per_slice() -> None:
    a = varied(5, 1, BASE)
    more = varied(5, 2, BASE | {"load": (110, 1.1e6)})
    assert named(compare_runs(a, more)) == {"load": "more"}
    slower = varied(5, 2, BASE | {"load": (110, 1.3e6)})
    found = compare_runs(a, slower)
    assert named(found) == {"load": "slower"}
    assert found.named[0].reason == "count +10.0%"
    hidden = varied(5, 2, BASE | {"load": (110, 1e6)})
    assert named(compare_runs(a, hidden)) == {"load": "faster"}
    part = found.named[0].contribution
    assert part.count_effect > 0
    assert part.count_effect + part.per_slice_effect == part.change


def test_groups_that_appear_and_vanish() -> None:
    a, b = varied(5, 1, BASE), varied(5, 2, {"load": BASE["load"], "mma": BASE["mma"], "copy": (7, 7e4)})
    assert named(compare_runs(a, b)) == {"store": "vanished", "copy": "appeared"}


def test_a_group_of_some_runs_only_is_not_tested() -> None:
    a, b = varied(5, 1, BASE), varied(5, 2, BASE)
    b[0] = made({"rare": (1, 10**7), "load": (100, 10**6), "mma": (100, 3 * 10**6), "store": (50, 500_000)})
    found = compare_runs(a, b)
    assert [(group.verdict, group.reason) for group in found.groups if group.key == ("rare",)] == [
        ("not tested", "in 0 of 5 and 1 of 5 runs")
    ]


def test_too_few_runs_give_effects_and_the_number_needed() -> None:
    found = compare_runs(varied(3, 1, BASE), varied(3, 2, BASE | {"load": (100, 2e6)}))
    assert (found.method, found.needed, found.named) == ("too_few", 4, ())
    assert 0.9 < next(group for group in found.groups if group.key == ("load",)).effects["total"].change < 1.1
    assert "record 4 runs per side" in " ".join(found.notes)


def test_the_floor_holds_small_changes_back() -> None:
    steady = [made({"load": (10, 10**6 + at)}) for at in range(5)]
    later = [made({"load": (10, 1_005_000 + at)}) for at in range(5)]
    assert named(compare_runs(steady, later)) == {}
    assert named(compare_runs(steady, later, floor=0.004)) == {"load": "slower"}


def test_conditions_that_differ_come_with_the_comparison() -> None:
    quiet, lossy = {"losses": {}, "clocks": {"c frequency": "1/1 Hz"}}, {"losses": {"dropped": 3}, "clocks": {}}
    a = [replace(run, conditions=quiet) for run in varied(4, 1, BASE)]
    b = [replace(run, conditions=lossy) for run in varied(4, 2, BASE)]
    found = compare_runs(a, b).conditions
    assert [(one.kind, one.name, one.a, one.b) for one in found] == [
        ("losses", "dropped", (None,), (3,)),
        ("clocks", "c frequency", ("1/1 Hz",), (None,)),
    ]
    assert not compare_runs(a, a).conditions


def test_unlike_runs_are_refused() -> None:
    with pytest.raises(UsageError, match="times in cycles"):
        compare_runs([made(dict.fromkeys("ab", (1, 5)))], [made(dict.fromkeys("ab", (1, 5)), unit="cycles")])
    with pytest.raises(UsageError, match="grouped by"):
        compare_runs([made({"a": (1, 5)})], [replace(made({"a": (1, 5)}), by=("lane",))])


def test_one_run_against_several_uses_prediction_intervals() -> None:
    wrong = right = 0
    tries = some(200, 40)
    for seed in range(tries):
        known = varied(6, seed, BASE)
        wrong += bool(compare_runs(known, varied(1, 5000 + seed, BASE)).named)
        slower = compare_runs(known, varied(1, 9000 + seed, BASE | {"mma": (100, 3.3e6)}))
        assert slower.method == "prediction"
        right += named(slower) == {"mma": "slower"}
    assert wrong <= 0.05 * tries
    assert right >= 0.9 * tries


def test_one_capture_against_one_never_regresses() -> None:
    a, b = run("cuda", 1), run("cuda", 2, 1.1)
    found = compare_runs([a], [b])
    assert found.method == "pair"
    assert named(found) == {"qk": "differs in these two captures"}
    assert "regress" not in str(found.to_dict())
    same = compare_runs([a], [a])
    assert not same.named
    assert "copies of a run" in " ".join(same.notes)


def test_of_two_captures_of_equal_work_few_groups_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices vary, and blocks as a whole; without what only several runs show."""
    monkeypatch.setattr(repeated_runs, "COMMON", 0.0)
    monkeypatch.setattr(repeated_runs, "OWN", 0.0)
    tries = some(100, 10)
    wrong = sum(
        bool(compare_runs([run("cuda", 2 * at)], [run("cuda", 2 * at + 1)], floor=0.0).named) for at in range(tries)
    )
    assert wrong <= 0.1 * tries + 2


def test_a_series_names_the_run_of_the_change() -> None:
    runs = [
        replace(one, name=f"run {at}")
        for at, one in enumerate(varied(6, 1, BASE) + varied(6, 2, BASE | {"mma": (100, 3.2e6)}))
    ]
    found = find_changes(runs)
    assert [(one.key, one.statistic, one.at, one.run) for one in found.changes] == [(("mma",), "total", 6, "run 6")]
    assert fmean([one.change for one in found.changes]) == pytest.approx(0.0667, abs=0.01)
    short = find_changes(runs[:5])
    assert (short.needed, short.changes) == (8, ())


def test_false_alarms_of_series() -> None:
    tries = some(200, 20)
    wrong = sum(bool(find_changes(varied(10, seed, BASE), floor=0.0).changes) for seed in range(tries))
    assert wrong <= 0.1 * tries


def test_conditions_hold_or_are_undecided() -> None:
    found = compare_runs(varied(5, 1, BASE), varied(5, 2, BASE | {"load": (100, 1.08e6)}))
    assert [group.key for group in judge(found, parse_condition("total(*) > +5%"), has_floor=False).failed] == [
        ("load",)
    ]
    assert not judge(found, parse_condition("total(load) > 10%"), has_floor=False).failed
    assert not judge(found, parse_condition("total(load) < -5%"), has_floor=False).failed
    with pytest.raises(UsageError, match="matches none"):
        judge(found, parse_condition("total(nothing) > 5%"), has_floor=False)
    few = compare_runs(varied(2, 1, BASE), varied(2, 2, BASE))
    with pytest.raises(UsageError, match="requires 4 runs"):
        judge(few, parse_condition("total(load) > 5%"), has_floor=True)
    pair = compare_runs([run("cuda", 1)], [run("cuda", 2, 1.1)])
    with pytest.raises(UsageError, match="requires --floor"):
        judge(pair, parse_condition("mean(qk) > 5%"), has_floor=False)
    assert judge(pair, parse_condition("mean(qk) > 5%"), has_floor=True).failed


@pytest.mark.parametrize(
    "text", ["p98(load) > 5%", "total(load) > 5", "total() > 5%", "total(a) > -5%", "total(a) = 5%"]
)
def test_invalid_conditions_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid condition"):
        parse_condition(text)


def test_a_condition_does_not_hold_for_what_is_not_significant() -> None:
    noisy = [made({"load": (10, total)}) for total in (1000, 1500, 800, 1300, 900)]
    later = [made({"load": (10, total)}) for total in (1200, 1700, 900, 1500, 1000)]
    found = compare_runs(noisy, later)
    assert found.groups[0].effects["total"].change > 0.1
    assert not judge(found, parse_condition("total(load) > 5%"), has_floor=True).failed

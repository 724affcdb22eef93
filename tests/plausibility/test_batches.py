"""What plausibility rules find does not depend on how a trace comes in batches."""

import numpy as np
import pytest

from lanescope.analysis import check
from lanescope.analysis.plausibility import stamps
from lanescope.pipeline.run import run
from lanescope.trace import TimeBase, TraceBuilder
from passes import Passes, cut
from plausibility import captures
from plausibility.columns import Columns
from plausibility.lies import LIES

FAMILIES = ("aie", "cuda", "ascend", "levelzero")


def streamed(batches, **chosen):
    """What a checker finds in batches that come one by one."""
    checker = check.StreamingChecker(**chosen)
    run(Passes(batches), observers=[checker])
    return checker.result()


def same(found, expected):
    assert [finding.to_dict() for finding in found] == [finding.to_dict() for finding in expected]
    for finding, other in zip(found, expected, strict=True):
        assert finding.evidence.ids.tolist() == other.evidence.ids.tolist()


@pytest.fixture(scope="module")
def columns():
    made = {}

    def of(family, seed):
        if (family, seed) not in made:
            made[family, seed] = Columns.of(captures.simulated(family, seed))
        return made[family, seed]

    return of


@pytest.mark.parametrize("number", range(len(LIES)), ids=[lie.name for lie in LIES])
def test_a_lie_is_found_alike_in_any_batches(columns, number):
    rng = np.random.default_rng(number)
    family, seed = FAMILIES[number % len(FAMILIES)], 7 + number % 3
    damaged = LIES[number].make(columns(family, seed), rng)
    trace = (columns(family, seed) if damaged is None else damaged).to_trace()
    expected = check.run(trace)
    for cuts in (rng.random(3), (0.5,)):
        same(streamed(cut(trace, cuts)), expected)


def island(count, lanes=4, far=10**9):
    """A trace of ``count`` slices on each lane, of which one slice is far away."""
    builder = TraceBuilder(TimeBase())
    for number in range(lanes):
        lane = builder.track(f"lane {number}", kind="lane", role="core")
        ts = 100 * np.arange(count) + 7 * number
        ts[-1] += far * (number == 2)
        builder.append("slices", track_id=lane, ts=ts, dur=40 + number, name="a")
    return builder.finish()


@pytest.mark.parametrize("sample", [16, 100, 1 << 18])
def test_a_sample_is_enough_to_find_what_stands_apart(monkeypatch, sample):
    monkeypatch.setattr(stamps, "SAMPLE", sample)
    trace = island(500)
    expected = [finding for finding in check.run(trace) if finding.code == "LS501"]
    assert [finding.evidence.ids.tolist() for finding in expected] == [[1499]]
    assert [finding.to_dict() for finding in streamed(cut(trace, (0.3, 0.31, 0.9))) if finding.code == "LS501"] == [
        finding.to_dict() for finding in expected
    ]


def test_thresholds_reach_the_rules():
    trace, strict = island(50), check.Thresholds()
    islands = check.Thresholds(islands=type(strict.islands)(warning_spans=1e9))
    for found in (check.run(trace, thresholds=islands), streamed(cut(trace, (0.5,)), thresholds=islands)):
        assert [finding.severity for finding in found if finding.code == "LS501"] == ["notice"]
    assert [finding.severity for finding in check.run(trace) if finding.code == "LS501"] == ["warning"]

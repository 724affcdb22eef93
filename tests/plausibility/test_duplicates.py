"""LS505: the same records twice."""

import numpy as np
import pytest

from lanescope.analysis import check
from lanescope.trace import TimeBase, TraceBuilder
from plausibility.kernels import found, kernel


def twice(rows, *, nesting="nested", role="core", length=0, lanes=5):
    """Lanes of which the second has some slices again."""
    builder = TraceBuilder(TimeBase())
    device = builder.track("gpu 0", kind="group", role="device")
    for number in range(lanes):
        lane = builder.track(f"lane {number}", kind="lane", role=role, nesting=nesting, parent=device)
        ts = 1000 * np.arange(30) + 7 * number
        dur = np.full(30, length) if length else 300 + 11 * np.arange(30)
        again = np.array(rows if number == 1 else [], np.int64)
        ts, dur = np.concatenate([ts, ts[again]]), np.concatenate([dur, dur[again]])
        sort = np.argsort(ts, kind="stable")
        builder.append("slices", track_id=lane, ts=ts[sort], dur=dur[sort], name="a")
    return builder.finish()


def test_even_lanes_have_none():
    assert found(kernel(), "LS505") == []
    assert found(twice([]), "LS505") == []


def test_the_repetition_is_the_evidence():
    trace = twice([4, 9])
    assert found(trace, "LS505") == [("warning", "gpu 0/lane 1", [35, 41])]
    [finding] = check.run(trace, select=["LS505"])
    assert finding.detail == "2 of 32 slices repeat another one: same start, end and name"
    assert finding.impact.total - finding.impact.total_without == (300 + 44) + (300 + 99)


@pytest.mark.parametrize(
    ("rows", "more", "expected"),
    [
        ([3], {"role": "host_thread"}, []),
        ([3], {"nesting": "free", "length": 400}, []),
        ([3], {"nesting": "free", "length": 600}, ["notice"]),
        ([3, 4, 5, 6], {"nesting": "free", "length": 400}, ["warning"]),
        ([3], {"length": 7}, []),
        ([3], {"length": 8}, ["warning"]),
    ],
)
def test_what_may_be_chance(rows, more, expected):
    assert [severity for severity, _, _ in found(twice(rows, **more), "LS505")] == expected


def test_another_name_or_end_is_another_record():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("lane", kind="lane", role="core", nesting="nested")
    builder.append("slices", track_id=lane, ts=[0, 0, 0, 501], dur=[100, 100, 99, 20], name=["a", "b", "a", "a"])
    assert found(builder.finish(), "LS505") == []


def test_a_lane_with_the_slices_of_a_sibling():
    def copy(number, start, end):
        return (1000 * np.arange(40) + 3, 1000 * np.arange(40) + 503) if number in (1, 4) else (start, end)

    trace = kernel(change=copy)
    assert found(trace, "LS505") == [("warning", "gpu 0/lane 4", list(range(160, 200)))]
    [finding] = check.run(trace, select=["LS505"])
    assert finding.detail == "has the same 40 slices at the same times as gpu 0/lane 1"
    # A few slices may agree by chance.
    assert found(kernel(slices=8, change=lambda n, s, e: tuple(part[:8] for part in copy(n, s, e))), "LS505") == []


def test_lanes_out_of_order_are_judged_sorted():
    trace = twice([4, 9])
    rows = np.random.default_rng(0).permutation(len(trace.slices))
    builder = TraceBuilder(TimeBase())
    device = builder.track("gpu 0", kind="group", role="device")
    for number in range(5):
        builder.track(f"lane {number}", kind="lane", role="core", nesting="nested", parent=device)
    slices = trace.slices.take(rows)
    columns = {name: slices.values(name) for name in ("track_id", "ts", "dur")}
    builder.append("slices", **columns, name="a")
    [finding] = check.run(builder.finish(), select=["LS505"])
    assert sorted(slices.values("ts")[finding.evidence.ids].tolist()) == [4007, 9007]

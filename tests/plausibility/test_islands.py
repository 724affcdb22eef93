"""LS501: what stands apart from the rest of a trace, and what is true although it does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.analysis import check
from lanescope.common.islands import IslandThresholds, Points, Witnesses, find_islands, is_spread
from lanescope.trace import TimeBase, TraceBuilder
from plausibility.kernels import found, kernel, on

SPAN = 40_000


def test_an_even_trace_has_none():
    assert found(kernel(), "LS501") == []


@pytest.mark.parametrize(("spans", "severity"), [(12, "notice"), (150, "warning"), (1e6, "warning")])
def test_one_end_far_away(spans, severity):
    def late(start, end):
        end[-1] += spans * SPAN
        return start, end

    trace = kernel(change=on(3, late))
    assert found(trace, "LS501") == [(severity, "gpu 0/lane 3", [159])]
    [finding] = check.run(trace, select=["LS501"])
    assert finding.detail.startswith("1 of 40 slices reaches ")
    assert " times its length" in finding.detail


def test_a_step_of_a_clock_names_the_rows_after_it():
    def step(start, end):
        later = np.arange(len(start)) >= 25
        return start + later * 10**9, end + later * 10**9

    trace = kernel(change=on(1, step))
    assert found(trace, "LS501") == [("warning", "gpu 0/lane 1", list(range(65, 80)))]
    assert "a clock step" in check.run(trace, select=["LS501"])[0].detail


@pytest.mark.parametrize("bits", [31, 32, 40, 48])
def test_a_missed_wrap_is_named_though_it_is_near(bits):
    trace = kernel(change=on(0, lambda start, end: (start + 2**bits, end + 2**bits)))
    [finding] = check.run(trace, select=["LS501"])
    assert finding.detail.startswith("the whole lane is ")
    assert finding.detail.endswith(f"about 2^{bits} ticks: a missed wrap")
    assert finding.severity == "warning"


def test_a_ladder_of_bad_ends_cannot_hide_itself():
    def ladder(start, end):
        end[:5] += (SPAN * 10.0 ** np.arange(1.2, 6.2)).astype(np.int64)
        return start, end

    assert found(kernel(change=on(2, ladder), nesting="free"), "LS501") == [
        ("warning", "gpu 0/lane 2", [80, 81, 82, 83, 84])
    ]


def test_lanes_of_the_host_are_never_warned_of():
    trace = kernel(change=on(0, lambda start, end: (start + 10**9, end + 10**9)), role="host_thread")
    assert [severity for severity, _, _ in found(trace, "LS501")] == ["notice"]


def test_two_devices_or_host_and_device_are_true():
    for second in ("device", "host"):
        builder = TraceBuilder(TimeBase())
        tops = [builder.track(f"gpu {n}", kind="group", role="device") for n in range(2)]
        for number in range(8):
            is_far = number in (6, 7)
            role = "host_thread" if second == "host" and number == 7 else "core"
            lane = builder.track(
                f"lane {number}", kind="lane", role=role, parent=tops[second == "device" and number == 7]
            )
            ts = 1000 * np.arange(6 if is_far else 40) + number + 10**9 * is_far
            builder.append("slices", track_id=lane, ts=ts, dur=500, name="a")
        assert found(builder.finish(), "LS501") == []


def test_two_launches_are_true():
    trace = kernel(change=lambda number, start, end: (start + (start > 20_000) * 10**9, end + (start > 20_000) * 10**9))
    assert found(trace, "LS501") == []


def test_instants_are_named_where_a_lane_has_no_suspect_slice():
    builder = TraceBuilder(TimeBase())
    for number in range(4):
        lane = builder.track(f"lane {number}", kind="lane", role="core")
        ts = 1000 * np.arange(40) + number
        ts[7] += 10**9 * (number == 2)
        builder.append("instants", track_id=lane, ts=ts, name="i")
    [finding] = check.run(builder.finish(), select=["LS501"])
    assert (finding.location.track, finding.evidence.table, finding.evidence.ids.tolist()) == (
        "lane 2",
        "instants",
        [87],
    )
    assert finding.impact.basis == "lanes"  # that have no slices whose totals could change
    assert finding.impact.total == 0


def test_many_lanes_are_one_finding_above_them():
    trace = kernel(60, 40, lambda number, start, end: (start, end + (number < 10) * (np.arange(40) == 39) * 10**9))
    [finding] = check.run(trace, select=["LS501"])
    assert (finding.location.track, finding.count) == ("gpu 0", 10)
    assert finding.detail.startswith("10 lanes like gpu #/lane #; gpu 0/lane 0: 1 of 40 slices reaches ")


def test_suspects_silence_rules_about_the_same_lane():
    def step(start, end):
        later = np.arange(len(start)) >= 25
        return start + later * 10**9, end + later * 10**9

    codes = {finding.code for finding in check.run(kernel(change=on(1, step)))}
    assert codes == {"LS501"}


# --- against the words of the rule ------------------------------------------------------------------------------------


def stated(points, lanes):
    """The window that the rule's two stages leave of (time, lane) by time; one device."""
    kept = sorted(points)
    count = len(kept)
    ends = max(count // 100 if count >= 64 else 0, min(8, count // 16))
    low, high = kept[ends][0], kept[count - 1 - ends][0]
    length = max(high - low, 1)
    if lanes >= 3:
        kept = [one for one in kept if low - 8 * length <= one[0] <= high + 8 * length]
    for _ in range(64):
        if len(kept) < 16:
            break
        gaps = [after[0] - before[0] for before, after in zip(kept, kept[1:])]  # noqa: B905, RUF007
        gap = max(gaps)
        at = gaps.index(gap) + 1
        rest = max(kept[-1][0] - kept[0][0] - gap, 1)
        few = kept[:at] if at < len(kept) - at else kept[at:]
        share, on_lanes = len(few) / count, len({lane for _, lane in few})
        is_lone = on_lanes <= max(2, 0.02 * lanes)
        is_far = (is_lone and gap > 4 * rest) or (
            gap > 8 * rest and on_lanes <= 0.34 * lanes and (share <= 0.1 or on_lanes <= 0.1 * lanes)
        )
        is_far |= not is_lone and gap > 8 * rest and share <= 0.01
        if not is_far or share > 0.5 or (lanes < 3 and share > 0.02):
            break
        kept = kept[at:] if at < len(kept) - at else kept[:at]
    return kept[0][0], kept[-1][0]


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 5)), min_size=32, max_size=80),
    st.lists(st.tuples(st.integers(-(10**6), 10**6), st.integers(0, 5)), max_size=6),
)
@settings(max_examples=some(300))
def test_the_window_is_what_the_stages_leave(core, strays):
    points = core + strays
    time, track = (np.array(column, np.int64) for column in zip(*points, strict=True))
    ones, no = np.ones(len(time), np.int64), np.zeros(len(time), np.bool_)
    lanes = len(set(track.tolist()))
    witnesses = Witnesses(lanes, np.zeros(6, np.int64), np.zeros(6, np.bool_))
    islands = find_islands(Points(time, track, np.arange(len(time)), ones, no, no), witnesses, IslandThresholds())
    assert islands.window == stated(points, lanes)
    far = (time < islands.window[0]) | (time > islands.window[1])
    assert sorted(islands.far.row.tolist()) == np.flatnonzero(far).tolist()


@given(st.lists(st.integers(0, 10**6), min_size=64, max_size=200))
@settings(max_examples=some(200))
def test_what_is_spread_has_no_gap_that_dwarfs_the_rest(times):
    time = np.sort(np.array(times, np.int64))
    ones, no = np.ones(len(time), np.int64), np.zeros(len(time), np.bool_)
    points = Points(time, ones, ones, ones, no, no)
    if is_spread(points, int(time[0]), int(time[-1])):
        largest = int(np.diff(time).max(initial=0))
        assert largest <= 4 * (int(time[-1] - time[0]) - largest)


def test_timestamps_at_both_ends_of_63_bits():
    trace = kernel(change=on(1, lambda start, end: (np.append(start[:-1], 2**62), np.append(end[:-1], 2**62 + 10))))
    assert [lane for _, lane, _ in found(trace, "LS501")] == ["gpu 0/lane 1"]

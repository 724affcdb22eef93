"""What findings do to totals is what loops over the slices that remain give."""

import numpy as np
import pytest
from hypothesis import given

from effort import TRACES
from lanescope import testing
from lanescope.analysis import check
from lanescope.analysis.check.lane_impact import concerned_lanes
from lanescope.trace import Flag, TimeBase, TraceBuilder
from lanescope.trace.stats import StatSpec


def rest(trace, evidence):
    """(sum of lengths, window, totals by name, totals by track) of the slices that are not evidence."""
    slices = trace.slices
    ts, dur, closed = (column.tolist() for column in (slices.values("ts"), slices.values("dur"), slices.valid("dur")))
    last, has_last = slices.values("last_known_ts").tolist(), slices.valid("last_known_ts").tolist()
    names, tracks = slices.values("name").tolist(), slices.values("track_id").tolist()
    total, starts, ends, by_name, by_track = 0, [], [], {}, {}
    for row in range(len(ts)):
        if row in evidence or not 0 <= tracks[row] < len(trace.tracks):
            continue
        length = max(dur[row], 0) if closed[row] else 0
        starts.append(ts[row])
        ends.append(ts[row] + length if closed[row] else max(ts[row], last[row] if has_last[row] else ts[row]))
        total += length
        by_name[names[row]] = by_name.get(names[row], 0) + length
        by_track[tracks[row]] = by_track.get(tracks[row], 0) + length
    return total, max(ends) - min(starts) if ends else 0, by_name, by_track


def violation(finding):
    """Return what the rule reported."""
    return check.Violation(table=finding.evidence.table, rows=finding.evidence.ids, track_id=finding.location.track_id)


@given(testing.traces(**TRACES))
def test_sums_with_and_without_the_evidence(trace):
    total, window, by_name, by_track = rest(trace, ())
    for finding in check.run(trace):
        impact = finding.impact
        assert impact is not None
        evidence = set(finding.evidence.ids.tolist())
        if impact.basis != "slices":
            assert finding.evidence.table != "slices" or not evidence
            lanes = concerned_lanes(check.CheckContext(trace), violation(finding))
            assert impact.basis == ("lanes" if len(lanes) else "count")
            evidence = set(np.flatnonzero(np.isin(trace.slices.values("track_id"), lanes)).tolist())
        left = rest(trace, evidence)
        assert (impact.total, impact.total_without) == (total, left[0])
        assert (impact.window, impact.window_without) == (window, left[1])
        for before, after in () if impact.basis != "slices" else ((by_name, left[2]), (by_track, left[3])):
            largest = sorted(before, key=lambda key: -before[key])[:5]
            rest_of_them = {key: after.get(key, 0) for key in before}
            is_other = [rest_of_them[key] for key in largest] != sorted(rest_of_them.values(), reverse=True)[:5]
            assert impact.changes_order or not is_other


def clash():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core 0", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=[0, 101, 203, 310], dur=[90, 9000, 95, 91], name=["a", "b", "a", "c"])
    return builder.finish()


def test_overlapping_slices_are_left_out_or_shortened():
    [finding] = check.run(clash(), select=["LS101"])
    impact = finding.impact
    assert (impact.total, impact.total_without, impact.total_clipped) == (9276, 90, 90 + 102 + 95 + 91)
    assert (impact.window, impact.window_without) == (9101, 90)
    assert (impact.slices_fraction, impact.changes_order, impact.is_large) == (0.75, True, True)


def test_nested_lanes_have_nothing_to_shorten():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core 0", kind="lane", role="core", nesting="nested")
    builder.append("slices", track_id=lane, ts=[0, 50], dur=[90, 90], name="a")
    [finding] = check.run(builder.finish(), select=["LS101"])
    assert finding.impact.total_clipped is None
    assert not finding.impact.changes_order


def test_slices_of_no_lane_are_in_no_sum():
    builder = TraceBuilder(TimeBase())
    builder.append("slices", track_id=99, ts=[10, 30], dur=1, name="a", flags=int(Flag.BELOW_RESOLUTION))
    [finding] = check.run(builder.finish(), select=["LS303"])
    assert (finding.count, finding.impact.total, finding.impact.lanes) == (2, 0, 0)
    assert (finding.impact.window, finding.impact.window_without) == (0, 0)


@pytest.mark.parametrize("cells", [0, 1000])
def test_lanes_are_counted_once_in_a_table_and_by_sorting(cells, monkeypatch):
    monkeypatch.setattr("lanescope.analysis.check.impact._MOST_CELLS", cells)
    builder = TraceBuilder(TimeBase())
    clocks = [builder.clock(name=name, device="d", frequency=None) for name in ("one", "other")]
    for number, clock in enumerate((0, 1, 1, 0, 1)):
        lane = builder.track(f"core {number}", kind="lane", role="core", clock_id=clocks[clock])
        builder.append("slices", track_id=lane, ts=[number, 20], dur=1, name="a", flags=int(Flag.BELOW_RESOLUTION))
    findings = check.run(builder.finish(), select=["LS303"])
    assert sorted((len(finding.evidence.ids), finding.impact.lanes) for finding in findings) == [(4, 2), (6, 3)]


LOST = StatSpec("lost_records", "data_loss", "lost records")
GUESSED = StatSpec("guessed_times", "notice", "guessed times", finding="LS305 warning", share_of="events")


def three_lanes():
    """A builder with two lanes of a core, 30 and 50 ns of work, and 20 ns of work on another core."""
    builder = TraceBuilder(TimeBase(), stats=(LOST, GUESSED))
    builder.input(capture="run", path="run.bin", size=100, sha256="", family="cuda", format="x")
    builder.add_bytes(decoded=100)
    core = builder.track("core 0", kind="group", role="core")
    lanes = [builder.track(name, kind="lane", role="group", parent=core) for name in ("load", "compute")]
    lanes.append(builder.track("core 1", kind="lane", role="core"))
    for lane, ts, dur in zip(lanes, (0, 10, 30), (30, 50, 20), strict=True):
        builder.append("slices", track_id=lane, ts=[ts], dur=[dur], name=["work"])
    return builder, core, lanes


def impact_of(builder, code="LS002"):
    [finding] = check.run(builder.finish(), select=[code])
    return finding.impact


def test_a_stat_of_a_lane_or_a_group_bounds_the_totals_by_those_of_its_lanes():
    builder, core, lanes = three_lanes()
    builder.add_stat(LOST.name, count=3, track_id=lanes[1], input_id=0)
    impact = impact_of(builder)
    assert (impact.basis, impact.lanes, impact.busy_fraction, impact.slices_fraction) == ("lanes", 1, 0.5, 1 / 3)
    assert (impact.total, impact.total_without, impact.window, impact.window_without) == (100, 50, 60, 50)
    builder, core, lanes = three_lanes()
    builder.add_stat(LOST.name, count=3, track_id=core, input_id=0)
    impact = impact_of(builder)
    assert (impact.basis, impact.lanes, impact.busy_fraction, impact.is_large) == ("lanes", 2, 0.8, True)
    assert (impact.total_without, impact.window_without) == (20, 20)


def test_a_stat_without_a_lane_has_the_lanes_of_all_gaps_at_its_place():
    builder, _, lanes = three_lanes()
    builder.add_stat(LOST.name, count=3, input_id=0, first_offset=40)
    for lane, offset in zip(lanes, (40, 8, 40), strict=True):
        builder.append("gaps", track_id=lane, ts=[70], dur=[5], cause=["lost"], input_id=0, first_offset=offset)
    impact = impact_of(builder)
    assert (impact.basis, impact.lanes, impact.total_without) == ("lanes", 2, 50)


def test_where_only_a_count_is_known_it_is_a_lower_bound():
    builder, _, _ = three_lanes()
    builder.add_stat(GUESSED.name, count=2, input_id=0)
    impact = impact_of(builder, "LS305")
    assert (impact.basis, impact.lanes, impact.busy_fraction) == ("count", 0, None)
    assert (impact.total, impact.total_without, impact.counted_fraction) == (100, 100, 2 / 3)
    assert impact.is_large
    builder, _, _ = three_lanes()
    builder.add_stat(GUESSED.name, count=1, input_id=0)
    assert impact_of(builder, "LS305").counted_fraction == 1 / 3
    builder, _, _ = three_lanes()
    builder.add_dropped(unit="record", unit_bytes=8, recorded=995, dropped=5)
    impact = impact_of(builder)
    assert (impact.basis, impact.counted_fraction, impact.is_large) == ("count", 0.005, False)


def test_a_backward_flow_concerns_the_lanes_at_both_ends():
    builder, _, (first, second, _) = three_lanes()
    builder.append("flows", kind="dependency", src_track_id=[second], src_ts=[60], dst_track_id=[first], dst_ts=[0])
    impact = impact_of(builder, "LS201")
    assert (impact.basis, impact.lanes, impact.total_without) == ("lanes", 2, 20)

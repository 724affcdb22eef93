"""What findings do to totals is what loops over the slices that remain give."""

from hypothesis import given

from effort import TRACES
from lanescope import testing
from lanescope.analysis import check
from lanescope.trace import TimeBase, TraceBuilder


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


@given(testing.traces(**TRACES))
def test_sums_with_and_without_the_evidence(trace):
    total, window, by_name, by_track = rest(trace, ())
    for finding in check.run(trace):
        impact = finding.impact
        if finding.evidence.table != "slices" or not len(finding.evidence.ids):
            assert impact is None
            continue
        evidence = set(finding.evidence.ids.tolist())
        left = rest(trace, evidence)
        assert (impact.total, impact.total_without) == (total, left[0])
        assert (impact.window, impact.window_without) == (window, left[1])
        for before, after in ((by_name, left[2]), (by_track, left[3])):
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

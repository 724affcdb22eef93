"""Totals by batch: which slices are part of them, and where they look twice; ``watched`` compares all others."""

import pytest

from analysis.test_check_streaming import one_lane, watched
from lanescope.analysis import check
from lanescope.trace import Flag, TimeBase, Trace, TraceBuilder


@pytest.mark.parametrize("beyond", [0, 1, 98])
def test_slices_of_no_lane_are_part_of_totals(beyond):
    builder = TraceBuilder(TimeBase())
    builder.track("core 0", kind="lane", role="core")
    builder.append("slices", track_id=[0, 0, 1 + beyond], ts=[0, 10, 30], dur=[20, 7, 8], name="a")
    found, _ = watched([builder.batch(), builder.finish()])  # compares the totals
    assert [one.code for one in found] == ["LS101"]


@pytest.mark.parametrize(("start", "looks"), [(12, False), (95, True)])
def test_evidence_within_another_slice_takes_no_second_look_for_totals(start, looks):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core 0", kind="lane", role="core", nesting="nested")
    builder.append("slices", track_id=lane, ts=[0, 10], dur=[100, 50], name=["outer", "inner"])
    builder.append("slices", track_id=lane, ts=start, dur=5, name="short", flags=int(Flag.BELOW_RESOLUTION))
    builder.append("slices", track_id=lane, ts=200, dur=50, name="next")
    trace = builder.finish()
    checker = check.StreamingChecker()
    totals = check.StreamingTotals(checker)
    checker.add(trace)
    totals.add(trace)
    assert (checker.wants_replay(), totals.wants_replay()) == (False, looks)
    if looks:  # it ends with the outer one, so it may take time of its own
        totals.replay(trace)
    [finding] = checker.result()
    assert finding.evidence.ids.tolist() == [2]
    assert totals.result([finding]) == (check.totals(trace), check.totals(trace, [finding]))


@pytest.mark.parametrize(("nesting", "is_late"), [("disjoint", False), ("nested", True)])
def test_totals_take_no_second_look_at_lanes_of_which_the_checker_has_all_that_matters(nesting, is_late):
    rows = [(0, 10), (20, 5), (10, 10) if is_late else (30, 10), (45, 5)]
    flags = [0, int(Flag.BELOW_RESOLUTION), 0, 0]
    batches = one_lane(rows, nesting=nesting, cuts=(2,), flags=flags)
    checker = check.StreamingChecker()
    totals = check.StreamingTotals(checker)
    for batch in batches:
        checker.add(batch)
        totals.add(batch)
    assert (checker.wants_replay(), totals.wants_replay()) == (is_late, False)
    for batch in batches if is_late else ():
        checker.replay(batch)
    found, whole = checker.result(), Trace.concat(batches)
    assert {row for one in found for row in one.evidence.ids.tolist()} == {1}
    assert totals.result(found) == (check.totals(whole), check.totals(whole, found))

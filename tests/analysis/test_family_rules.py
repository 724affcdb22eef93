"""Rules of a family find the same in batches as in the whole trace: a fault of several batches is one finding."""

from types import SimpleNamespace

import numpy as np
import pytest

from analysis.test_check_streaming import same, watched
from lanescope.analysis import check
from lanescope.families import Rule, Violation, registry
from lanescope.trace import TimeBase, Trace, TraceBuilder


def _long(context):
    slices = context.trace.slices
    rows = np.flatnonzero(slices.values("dur") > 100)
    yield from context.violations("slices", rows, lambda _: "above 100 ns")


def _odd(context):
    instants = context.trace.instants
    rows = np.flatnonzero(instants.values("name") == "odd")
    if len(rows):
        first = int(instants.values("ts")[rows].min())
        where = {"table": "instants", "rows": rows, "ts": first, "input_id": 0, "offset": 8 * first}
        yield Violation("odd marks", count=2 * len(rows), severity="error", **where)


def _counted(context):
    yield Violation(f"{len(context.trace.slices)} slices", rows=np.arange(1), track_id=0, ts=0)


ROWS = [Rule("TOY101", "long", "warning", "", "", _long, "rows"), Rule("TOY102", "odd", "notice", "", "", _odd, "rows")]
WHOLE = Rule("TOY201", "counted", "notice", "", "", _counted)


@pytest.fixture
def family(monkeypatch):
    """Return a function that makes rules those of the family of the capture."""
    known = registry.family

    def install(*rules):
        toy = SimpleNamespace(name="toy", rules=rules, stats=(), clocks=())
        monkeypatch.setattr(registry, "plugin_families", lambda: (toy,))
        monkeypatch.setattr(registry, "family", lambda name: toy if name == "toy" else known(name))

    return install


def batches():
    """Long slices of two lanes and odd instants, in the first two of three batches."""
    builder = TraceBuilder(TimeBase())
    builder.input(capture="run", path="toy.bin", size=8, sha256="", family="toy", format="toy")
    builder.add_bytes(decoded=8)
    lanes = [builder.track(f"core {number}", kind="lane", role="core") for number in range(2)]
    builder.append("slices", track_id=lanes[1], ts=[0, 60], dur=[50, 300], name="a")
    builder.append("slices", track_id=lanes[0], ts=0, dur=200, name="b")
    builder.append("instants", track_id=lanes[0], ts=[40, 50], name=["even", "odd"])
    found = [builder.batch()]
    builder.append("slices", track_id=lanes[1], ts=[400, 500], dur=[20, 400], name="a")
    builder.append("instants", track_id=lanes[1], ts=[30, 20], name="odd")
    found.append(builder.batch())
    builder.append("slices", track_id=lanes[0], ts=300, dur=30, name="b")
    return [*found, builder.finish()]


def facts(found):
    return [
        (one.code, one.severity, one.location.track, one.location.ts, one.count, one.evidence.ids.tolist())
        for one in found
    ]


def test_what_several_batches_have_of_a_fault_is_one_finding(family):
    family(*ROWS)
    whole = Trace.concat(batches())
    found, _ = watched(batches(), select=["TOY"])
    same(found, check.run(whole, select=["TOY"]))
    assert facts(found) == [
        ("TOY102", "error", "", 20, 6, [1, 2, 3]),
        ("TOY101", "warning", "core 0", 0, 1, [2]),
        ("TOY101", "warning", "core 1", 60, 2, [1, 4]),
    ]
    assert (found[0].location.input, found[0].location.offset) == ("toy.bin", 160)
    assert [one.affected_fraction for one in found] == [None, 200 / 1000, 700 / 1000]
    assert [one.affected_lane_fraction for one in found] == [None, 200 / 230, 700 / 770]
    assert [(one.impact.total, one.impact.total_without) for one in found[1:]] == [(1000, 800), (1000, 300)]
    assert [(one.impact.window, one.impact.window_without) for one in found[1:]] == [(900, 900), (900, 420)]
    assert [facts(watched(batches(), ignore=["LS", code])[0]) for code in ("TOY101", "TOY102")] == [
        facts(found[:1]),
        facts(found[1:]),
    ]


def test_a_rule_that_judges_the_whole_trace_sees_all_batches(family):
    family(*ROWS, WHOLE)
    found, _ = watched(batches(), select=["TOY"])
    same(found, check.run(Trace.concat(batches()), select=["TOY"]))
    assert [one.detail for one in found] == ["odd marks", "above 100 ns", "above 100 ns", "6 slices"]


@pytest.mark.parametrize("is_late", [False, True])
@pytest.mark.parametrize("nesting", ["disjoint", "nested", "free"])
def test_sums_without_what_they_report_hold_on_lanes_of_any_kind(family, nesting, is_late):
    """``watched`` compares them with sums over the whole trace."""
    family(*ROWS)
    builder = TraceBuilder(TimeBase())
    builder.input(capture="run", path="toy.bin", size=8, sha256="", family="toy", format="toy")
    builder.add_bytes(decoded=8)
    lane = builder.track("core 0", kind="lane", role="core", nesting=nesting)
    builder.append("slices", track_id=lane, ts=[0, 10, 600], dur=[500, 20, 30], name="a")
    batches = [builder.batch()]
    builder.append("slices", track_id=lane, ts=[640, 400 if is_late else 950], dur=[300, 20], name="a")
    found, looked = watched([*batches, builder.finish()], select=["TOY"])
    assert (looked, facts(found)) == (is_late, [("TOY101", "warning", "core 0", 0, 2, [0, 3])])

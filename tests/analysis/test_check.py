"""Every rule finds exactly the injected faults, and nothing in a valid trace."""

from collections import defaultdict
from dataclasses import FrozenInstanceError, fields, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

from analysis import oracles
from effort import TRACES
from lanescope import StatSpec, UsageError, testing
from lanescope.analysis import check
from lanescope.devices.ascend.schema import STATS as STATS_OF_ASCEND
from lanescope.trace import Column, Flag, Table, TableSpec, TimeBase, Trace, TraceBuilder
from lanescope.trace.stats import STAT_RULES

STATS = (
    StatSpec("test_odd", "notice", "unusual", silent="a test"),
    StatSpec("test_lost", "data_loss", "something is missing"),
    StatSpec("test_wrong", "error", "something contradicts itself"),
    StatSpec("test_hint_unmatched", "info", "no partner, as expected", finding="LS401"),
    StatSpec("test_end_unmatched", "data_loss", "no partner", finding="LS401"),
    StatSpec("test_task_duplicate", "error", "met twice", finding="LS402"),
    StatSpec("test_queue_degraded", "notice", "not all is known", finding="LS403"),
    StatSpec("test_column_config", "notice", "several fit", finding="LS404"),
)


class Made:
    """A builder with one input and a lane of each nesting."""

    def __init__(self, time_unit="ns"):
        self.builder = TraceBuilder(TimeBase(time_unit=time_unit), stats=STATS)
        self.input = self.builder.input(capture="r", path="r.bin", size=80, sha256="", family="t", format="t")
        self.device = self.builder.track("device", kind="group", role="device")
        self.lanes = {
            word: self.builder.track(word, kind="lane", role="core", nesting=word, parent=self.device)
            for word in ("disjoint", "nested", "free")
        }

    def slices(self, lane, rows, **columns):
        """Append (ts, dur) pairs and return the id of the first."""
        ts, dur = zip(*rows, strict=True)
        known = [d is not None for d in dur]
        return self.builder.append(
            "slices",
            track_id=self.lanes[lane],
            ts=list(ts),
            dur=np.array([d or 0 for d in dur]),
            dur_valid=np.array(known),
            **{"name": [f"s{i}" for i in range(len(rows))], **columns},
        )

    def finish(self, lost=0):
        self.builder.add_accounting(
            input_id=0, layer=0, unit="byte", unit_bytes=1, total=80, decoded=80 - lost, lost=lost
        )
        return self.builder.finish()


def found(trace, *select):
    """(code, severity, lane, count, evidence ids) of each finding."""
    return [
        (f.code, f.severity, f.location.track.removeprefix("device/"), f.count, f.evidence.ids.tolist())
        for f in check.run(trace, select=select)
    ]


def replaced(trace, table, **columns):
    """The trace with other values in some columns of a table: what no builder would let pass."""
    old = trace.tables()[table]
    made = {name: old.column(name) for name in old.spec.names}
    made |= {name: Column.array(np.array(values)) for name, values in columns.items()}
    return Trace(trace.time, {**trace.tables(), table: Table(old.spec, made)}, trace.details)


@given(testing.valid_traces(**TRACES))
def test_a_sound_trace_has_no_findings(trace):
    found = check.run(trace)
    assert {(one.code, one.severity, one.evidence.table) for one in found} <= {("LS305", "notice", "tracks")}
    assert all(
        set(trace.slices["quality"][trace.slices["track_id"] == lane].tolist()) - {"exact"}
        for one in found
        for lane in one.evidence.ids
    )


# --- LS0xx ------------------------------------------------------------------------------------------------------------


def test_ls001_sums_that_do_not_add_up():
    trace = replaced(Made().finish(), "accounting", decoded=[79])
    ((code, severity, _, count, rows),) = found(trace)
    assert (code, severity, count, rows) == ("LS001", "error", 1, [0])
    (finding,) = check.run(trace)
    assert "80 bytes, but 79 decoded + 0 padding + 0 lost" in finding.detail
    assert finding.location.input == "r.bin"


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"total": [79], "decoded": [79]}, "79 of 80 bytes"),
        ({"layer": [1]}, "layers"),
        ({"input_id": [3]}, "unknown input"),
        ({"decoded": [81], "lost": [-1]}, "80 bytes, but 81 decoded + 0 padding + -1 lost"),
    ],
)
def test_ls001_other_ways_to_go_wrong(columns, words):
    findings = check.run(replaced(Made().finish(), "accounting", **columns), select=["LS001"])
    assert any(words in finding.detail for finding in findings)


def test_ls001_an_input_without_accounting():
    trace = Made().finish()
    trace = Trace(trace.time, {**trace.tables(), "accounting": Table.empty(trace.accounting.spec)})
    assert found(trace) == [("LS001", "error", "", 1, [])]


@pytest.mark.parametrize(
    ("dropped", "stats", "rows"),
    [
        ({"aicpu_tasks record": 5}, {"ascend_missing_dispatch": 5}, []),
        ({"aicpu_tasks record": 5}, {"ascend_missing_dispatch": 4}, [0]),
        ({"aicpu_tasks record": 5}, {"ascend_invalid_row": 5}, [0]),  # another loss of as many
        ({"aicpu_tasks record": 5}, {"ascend_bad_delta": 5}, [0]),  # not a loss
        ({"aicpu_tasks record": 5}, {"ascend_aicpu_unmatched": 5}, [0]),  # of another rule
        ({"aicpu_tasks record": 5, "aicore_tasks record": 5}, {"ascend_missing_dispatch": 5}, []),
        ({"aicpu_tasks record": 5, "aicore_tasks record": 6}, {"ascend_missing_dispatch": 5}, [1]),
        ({"aicpu_tasks 0 record": 4, "aicpu_tasks 1 record": 3}, {"ascend_dropped": 7}, []),
        ({"aicpu_tasks 0 record": 7}, {"ascend_dropped": 3, "ascend_unaccounted_records": 4}, []),
        ({"aicpu_tasks 0 record": 4, "host_orchestrator_phases record": 4}, {"ascend_dropped": 4}, [1]),
    ],
)
def test_ls002_a_loss_that_a_stat_counts_too_is_one_finding(dropped, stats, rows):
    builder = TraceBuilder(TimeBase(), stats=STATS_OF_ASCEND)
    builder.input(capture="run", path="run.json", size=8, sha256="", family="ascend", format="x")
    builder.add_bytes(decoded=8)
    for name, count in stats.items():
        builder.add_stat(name, count, input_id=0)
    for unit, count in dropped.items():
        builder.add_dropped(unit=unit, unit_bytes=8, recorded=4, dropped=count)
    findings = check.run(builder.finish(), select=["LS002"])
    reported = [int(finding.evidence.ids[0]) for finding in findings if finding.evidence.table == "accounting"]
    assert sorted(row - 1 for row in reported) == rows
    of_stats = {finding.stat: finding.count for finding in findings if finding.evidence.table == "stats"}
    assert of_stats == {name: count for name, count in stats.items() if name != "ascend_aicpu_unmatched"}


def test_ls002_a_stat_of_another_input_counts_another_loss():
    made = Made()
    made.builder.add_stat("test_lost", 5)
    made.builder.add_dropped(unit="record", unit_bytes=8, recorded=4, dropped=5)
    assert {f.evidence.table for f in check.run(made.finish())} == {"accounting", "stats"}


def test_ls002_loss_and_contradictions():
    made = Made()
    made.builder.add_stat("test_odd", 7)
    made.builder.add_stat("test_lost", 3, input_id=0, track_id=made.lanes["nested"], first_offset=64, first_ts=5)
    made.builder.add_stat("test_wrong", 2)
    made.builder.add_accounting(
        input_id=0, layer=0, scope="producer", unit="record", unit_bytes=8, total=9, decoded=4, lost=5
    )
    trace = made.finish(lost=16)
    assert found(trace) == [
        ("LS002", "error", "", 2, [2]),
        ("LS002", "warning", "", 5, [0]),
        ("LS002", "warning", "", 16, [1]),
        ("LS002", "warning", "nested", 3, [1]),
    ]
    findings = check.run(trace)
    assert [finding.detail for finding in findings] == [
        "something contradicts itself",
        "5 of 9 records dropped by the device",
        "16 of 80 bytes lost",
        "something is missing",
    ]
    assert [finding.stat for finding in findings] == ["test_wrong", "", "", "test_lost"]
    assert [finding.to_dict()["stat"] for finding in findings] == ["test_wrong", None, None, "test_lost"]
    assert check.to_table(findings)["stat"].tolist() == ["test_wrong", "", "", "test_lost"]
    place = findings[3].location
    assert (place.ts, place.input, place.offset) == (5, "r.bin", 64)
    assert findings[3].affected_fraction is None


@pytest.mark.parametrize("code", STAT_RULES)
def test_a_stat_is_a_finding_of_the_rule_that_it_declares(code):
    spec = StatSpec("toy_odd", "notice", "odd objects of a run: kept, see manual", finding=code)
    builder = TraceBuilder(TimeBase(), stats=[spec])
    builder.add_stat("toy_odd", 3)
    (finding,) = check.run(builder.finish())
    assert (finding.code, finding.severity, finding.count) == (code, "warning", 3)
    assert (finding.detail, finding.stat) == ("odd objects of a run", "toy_odd")


@pytest.mark.parametrize(
    ("severity", "finding", "expected"),
    [
        ("info", "LS305", "notice"),
        ("data_loss", "", "warning"),
        ("error", "LS402", "error"),
        ("notice", "LS105 error", "error"),
        ("error", "LS404 notice", "notice"),
    ],
)
def test_the_severity_of_a_finding_follows_that_of_its_stat_unless_it_is_declared(severity, finding, expected):
    builder = TraceBuilder(TimeBase(), stats=[StatSpec("toy_odd", severity, "odd objects", finding=finding)])
    builder.add_stat("toy_odd", 3)
    assert [found.severity for found in check.run(builder.finish())] == [expected]


def test_a_silent_stat_is_no_finding():
    builder = TraceBuilder(TimeBase(), stats=[StatSpec("toy_odd", "notice", "odd objects", silent="a lawful case")])
    builder.add_stat("toy_odd", 3)
    assert check.run(builder.finish()) == []


def _without(trace, *columns):
    spec = trace.stats.spec
    older = TableSpec(spec.name, spec.doc, tuple(column for column in spec.columns if column.name not in columns))
    stats = Table(older, {name: trace.stats.column(name) for name in older.names})
    return Trace(trace.time, {**trace.tables(), "stats": stats})


def test_a_stored_trace_without_the_rule_of_a_stat_falls_back_to_its_severity():
    made = Made()
    for name in ("test_odd", "test_lost", "test_wrong", "test_hint_unmatched"):
        made.builder.add_stat(name, 3)
    found = check.run(_without(made.finish(), "rule", "finding_severity", "share_of"))
    assert [(one.code, one.severity, one.stat) for one in found] == [
        ("LS002", "error", "test_wrong"),
        ("LS002", "warning", "test_lost"),
        ("LS404", "notice", "test_odd"),
    ]


def test_a_stored_trace_without_the_column_falls_back_to_the_name_of_the_stat():
    made = Made()
    made.builder.add_stat("test_lost", 3)
    (finding,) = check.run(_without(made.finish(), "counted"), select=["LS002"])
    assert finding.detail == "test_lost"


def test_a_stat_without_a_time_is_where_its_gap_is():
    made = Made()
    gaps = {"ts": [7, 3, 5], "dur": 2, "cause": "bad_bytes", "input_id": 0, "first_offset": [64, 8, 8]}
    made.builder.append("gaps", track_id=[made.lanes[word] for word in ("free", "nested", "free")], **gaps)
    builder = made.builder
    builder.add_stat("test_lost", 3, input_id=0, first_offset=8)
    builder.add_stat("test_wrong", 3, input_id=0, first_offset=64, track_id=made.device)
    builder.add_stat("test_end_unmatched", 3, input_id=0, first_offset=8, track_id=made.lanes["free"])
    builder.add_stat("test_wrong", 4, input_id=0, first_offset=9)
    builder.add_stat("test_lost", 5)
    builder.add_stat("test_lost", 6, input_id=0, first_offset=8, first_ts=1, track_id=made.lanes["disjoint"])
    builder.add_stat("test_wrong", 7, input_id=0, first_offset=8, track_id=made.lanes["disjoint"])
    trace = made.finish()
    findings = [finding for finding in check.run(trace) if finding.evidence.table == "stats"]
    places = {
        int(finding.evidence.ids[0]): (finding.location.track.rpartition("/")[2], finding.location.ts)
        for finding in findings
    }
    assert places == {
        0: ("nested", 3),
        1: ("free", 7),
        2: ("free", 5),
        3: ("", None),
        4: ("", None),
        5: ("disjoint", 1),
        6: ("disjoint", None),
    }
    drawn = [row["ts"] for row in check.to_table(findings).rows() if row["ts"] is not None]
    assert sorted(drawn) == [1, 3, 5, 7]


# --- LS1xx ------------------------------------------------------------------------------------------------------------


@given(testing.traces(**TRACES))
def test_ls101_equals_trying_every_pair(trace):
    rows = list(trace.slices.rows())
    expected = {}
    for lane in trace.tracks.rows():
        mine = [row for row in rows if row["track_id"] == lane["id"]]
        clashing = oracles.clashing(mine, lane["nesting"]) if lane["kind"] == "lane" else set()
        if clashing:
            expected[lane["id"]] = clashing
    findings = check.run(trace, select=["LS101"])
    clashing = defaultdict(set)
    for finding in findings:  # those of a lane that a suspect clock explains are one of their own
        clashing[finding.location.track_id] |= set(finding.evidence.ids.tolist())
    assert clashing == expected
    everything = oracles.covered(rows)
    for finding in findings:
        evidence = [rows[row] for row in finding.evidence.ids]
        lane = [row for row in rows if row["track_id"] == finding.location.track_id]
        assert finding.count == len(evidence)
        assert finding.location.ts == min(row["ts"] for row in evidence)
        assert finding.affected_fraction == oracles.covered(evidence) / everything
        assert finding.affected_lane_fraction == oracles.covered(evidence) / oracles.covered(lane)


def test_ls101_on_each_discipline():
    crossed = [(0, 30), (20, 20), (50, 10), (60, 5), (60, 0)]
    nested = [(0, 30), (5, 10), (15, 15), (30, 5)]
    made = Made()
    made.slices("disjoint", crossed)
    made.slices("nested", crossed)
    made.slices("free", crossed)
    assert found(made.finish()) == [
        ("LS101", "warning", "disjoint", 2, [0, 1]),
        ("LS101", "warning", "nested", 2, [5, 6]),
    ]
    made = Made()
    made.slices("disjoint", nested)
    made.slices("nested", nested)
    trace = made.finish()
    assert found(trace) == [("LS101", "warning", "disjoint", 3, [0, 1, 2])]
    (finding,) = check.run(trace)
    assert finding.detail == "s1 starts 25 ns before s0 ends"


@pytest.mark.parametrize("beyond", [0, 1, 7])
def test_ls101_slices_of_no_lane_overlap_nothing(beyond):
    made = Made()
    first = made.slices("disjoint", [(0, 10), (5, 10), (0, 10), (5, 10)])
    trace = made.finish()
    lane, nowhere = made.lanes["disjoint"], len(trace.tracks) + beyond
    broken = replaced(trace, "slices", track_id=[lane, lane, nowhere, nowhere])
    assert found(broken, "LS101") == [("LS101", "warning", "disjoint", 2, [first, first + 1])]


def test_ls101_names_a_pair_that_crosses():
    made = Made(time_unit="cycles")
    made.slices("nested", [(0, 100), (0, 20), (10, 20), (95, 10)])
    (finding,) = check.run(made.finish())
    assert finding.count == 4
    assert finding.detail == "s3 starts 5 cycles before s0 ends"


def test_ls101_counts_an_open_slice_as_far_as_it_was_seen():
    made = Made()
    made.slices("disjoint", [(0, None), (20, None), (40, 5)], last_known_ts=[21, 40, 0], last_known_ts_valid=[1, 1, 0])
    assert found(made.finish(), "LS101") == [("LS101", "warning", "disjoint", 2, [0, 1])]


def test_ls102_impossible_lengths():
    made = Made()
    made.slices("disjoint", [(0, 5), (10, -5), (20, 5)], dur_ticks=[5, 5, -5])
    made.slices(
        "free", [((1 << 63) - 10, 20), (0, None), (0, None)], last_known_ts=[0, -1, 1], last_known_ts_valid=[0, 1, 1]
    )
    made.builder.append("gaps", track_id=made.lanes["nested"], ts=[0, 5], dur=[5, -1], cause="overrun")
    trace = made.finish()
    assert found(trace, "LS102") == [
        ("LS102", "error", "disjoint", 2, [1, 2]),
        ("LS102", "error", "free", 2, [4, 3]),
        ("LS102", "error", "nested", 1, [1]),
    ]
    assert [finding.detail for finding in check.run(trace, select=["LS102"])] == [
        "2 with negative duration",
        "1 ending beyond 63 bits, 1 last known before start",
        "1 with negative duration",
    ]


def test_ls102_longer_than_the_recording():
    made = Made()
    made.slices("disjoint", [(0, 40), (40, 61)])
    made.slices("nested", [(0, 101)])
    made.slices("free", [(0, 1000)])
    made.builder.append("coverage", track_id=made.lanes["disjoint"], ts=[0, 40], dur=[20, 20])
    made.builder.append("coverage", track_id=made.lanes["nested"], ts=0, dur=101)
    assert found(made.finish()) == [("LS102", "error", "disjoint", 1, [1])]


def test_ls103_open_and_cut():
    made = Made()
    made.slices("disjoint", [(0, 5), (10, 5), (20, None)], flags=[0, int(Flag.TRUNCATED), int(Flag.UNFINISHED)])
    made.builder.append("gaps", track_id=made.lanes["disjoint"], ts=15, dur=3, cause="overrun")
    made.slices("free", [(0, None), (0, None)], flags=[int(Flag.NEGATIVE_DURATION), 0])
    trace = made.finish()
    assert found(trace, "LS103") == [
        ("LS103", "notice", "disjoint", 2, [1, 2]),
        ("LS103", "notice", "free", 1, [4]),
    ]
    assert [finding.detail for finding in check.run(trace, select=["LS103"])] == [
        "1 slice unfinished, 1 slice truncated",
        "1 slice unfinished",
    ]


def test_ls103_what_the_edges_of_a_recording_truncate_is_one_finding_per_device():
    builder = TraceBuilder(TimeBase())
    lanes = []
    for device in ("one", "two"):
        top = builder.track(device, kind="group", role="device")
        lanes += [builder.track(f"core {n}", kind="lane", role="core", parent=top) for n in range(2)]
    for lane, ts in zip(lanes, (9, 5, 0, 4), strict=True):
        builder.append("slices", track_id=lane, ts=[ts, 20], dur=5, name="a", flags=[int(Flag.TRUNCATED), 0])
    builder.append("slices", track_id=lanes[2], ts=30, dur=None, name="a", flags=int(Flag.UNFINISHED))
    builder.append("gaps", track_id=lanes[3], ts=10, dur=3, cause="overrun")
    findings = check.run(builder.finish(), select=["LS103"])
    assert sorted((one.location.track, one.detail, one.evidence.ids.tolist(), one.location.ts) for one in findings) == [
        ("one/core 1", "2 slices truncated by the start or the end of recording, 2 lanes", [2, 0], 5),
        ("two/core 0", "1 slice truncated by the start or the end of recording", [4], 0),
        ("two/core 0", "1 slice unfinished", [8], 30),
        ("two/core 1", "1 slice truncated", [6], 4),
    ]


def test_ls104_rows_after_gaps():
    made = Made()
    made.slices("disjoint", [(0, 5), (30, 5), (40, 5), (90, 5)])
    made.slices("free", [(0, 5), (30, 5)], flags=[0, int(Flag.AFTER_GAP)])
    made.builder.append("instants", track_id=made.lanes["disjoint"], ts=[3, 35], name="i")
    made.builder.append(
        "gaps",
        track_id=made.lanes["disjoint"],
        ts=[10, 50, 60, 95],
        dur=[20, 10, 5, 5],
        cause=["overrun", "bad_bytes", "overrun", "overrun"],
        lost_count=[3, 4, 0, 0],
        lost_count_valid=[1, 1, 0, 0],
        input_id=0,
        first_offset=[16, 32, 40, 48],
    )
    trace = made.finish()
    assert found(trace, "LS104") == [
        ("LS104", "notice", "disjoint", 2, [1, 3]),
        ("LS104", "notice", "free", 1, [5]),
        ("LS104", "notice", "disjoint", 1, [1]),
    ]
    first = check.run(trace, select=["LS104"])[0]
    assert first.detail == "4 gaps (overrun, bad_bytes), at least 7 records lost"
    assert (first.location.input, first.location.offset, first.location.ts) == ("r.bin", 16, 30)


def test_ls104_a_gap_of_a_group_concerns_its_lanes():
    made = Made()
    made.slices("disjoint", [(0, 5), (30, 5)])
    made.slices("nested", [(2, 5)])
    made.builder.append("gaps", track_id=made.device, ts=10, dur=5, cause="overrun")
    trace = made.finish()
    assert found(trace) == [("LS104", "notice", "disjoint", 1, [1])]
    (finding,) = check.run(trace)
    assert (finding.detail, finding.location.input) == ("1 gap (overrun)", "")


def test_ls104_a_gap_of_no_length_has_a_first_slice_after_it_too():
    made = Made()
    made.slices("disjoint", [(0, 5), (10, 5), (30, 5), (40, 5)])
    lanes = [made.lanes["disjoint"], made.lanes["disjoint"], made.device]
    made.builder.append("gaps", track_id=lanes, ts=[10, 35, 20], dur=[0, 0, 0], cause="overrun")
    # Of one within a longer gap nothing is known before that ends.
    made.slices("nested", [(2, 2), (26, 5), (32, 5)])
    made.builder.append("gaps", track_id=made.lanes["nested"], ts=20, dur=10, cause="overrun")
    assert found(made.finish(), "LS104") == [
        ("LS104", "notice", "disjoint", 3, [1, 2, 3]),
        ("LS104", "notice", "nested", 1, [6]),
    ]


def test_ls104_what_begins_in_a_gap_without_an_end_contradicts_it():
    made = Made()
    made.slices("disjoint", [(0, 5), (10, 5), (30, 5), (40, 5)])
    gap = {"dur": 0, "dur_valid": [False], "cause": "paused"}
    made.builder.append("gaps", track_id=made.lanes["disjoint"], ts=10, **gap)
    # What is cut short begins with the last that was recorded.
    made.slices("nested", [(2, 2), (26, 5)])
    made.builder.append("gaps", track_id=made.lanes["nested"], ts=26, **gap)
    # No time is behind the last of 64 bits.
    made.slices("free", [(3, 5)])
    made.builder.append("gaps", track_id=made.lanes["free"], ts=(1 << 63) - 1, **gap)
    assert found(made.finish(), "LS104") == [("LS104", "notice", "disjoint", 1, [2])]


# --- LS2xx ------------------------------------------------------------------------------------------------------------


def _flows(made, rows, src="disjoint", dst="nested"):
    src_ts, dst_ts = zip(*rows, strict=True)
    made.builder.append(
        "flows",
        kind="dispatch",
        src_track_id=made.lanes[src],
        src_ts=src_ts,
        dst_track_id=made.lanes[dst],
        dst_ts=dst_ts,
    )


def test_ls201_effects_before_causes():
    made = Made()
    _flows(made, [(10, 10), (10, 9), (20, 30), (50, 5)])
    _flows(made, [(10, 9)], dst="free")
    trace = made.finish()
    assert found(trace) == [("LS201", "warning", "nested", 2, [3, 1]), ("LS201", "warning", "free", 1, [4])]
    assert [finding.detail for finding in check.run(trace)] == ["up to 45 ns early", "up to 1 ns early"]


def test_ls201_is_a_notice_within_the_stated_error_of_two_clocks():
    """Stated 3 and 4 ns, and a step of 1 ns each."""
    builder = TraceBuilder(TimeBase())
    clocks = [builder.clock(name=n, device=n, frequency=Fraction(10**9)) for n in ("host", "device")]
    builder.anchor(clock_id=clocks[0], ticks=0, ts=0, error_ns=3)
    builder.anchor(clock_id=clocks[1], ticks=0, ts=0, error_ns=4)
    builder.anchor(clock_id=clocks[1], ticks=9, ts=9, error_ns=2)
    host, device = (builder.track(f"lane {c}", kind="lane", role="core", clock_id=c) for c in clocks)
    builder.append("flows", kind="signal", src_track_id=host, src_ts=[10, 10], dst_track_id=device, dst_ts=[3, 0])
    builder.append("flows", kind="signal", src_track_id=host, src_ts=10, dst_track_id=host, dst_ts=9)
    assert found(builder.finish()) == [
        ("LS201", "warning", "lane 0", 1, [2]),
        ("LS201", "warning", "lane 1", 1, [1]),
        ("LS201", "notice", "lane 1", 1, [0]),
    ]


def test_ls201_is_a_notice_within_the_resolution_and_the_drift_of_two_clocks():
    """10 MHz: a step of 100 ns; 1 ms beyond the only anchor: a drift of 100 ns at most; none between two anchors."""

    def severities(early, anchors=(0,), ts=1_000_000):
        builder = TraceBuilder(TimeBase())
        host, device = (builder.clock(name=n, device=n, frequency=Fraction(f)) for n, f in (("h", 10**9), ("d", 10**7)))
        for at in anchors:
            builder.anchor(clock_id=device, ticks=at // 100, ts=at)
        cause, effect = (builder.track(f"lane {c}", kind="lane", role="core", clock_id=c) for c in (host, device))
        builder.append("flows", kind="signal", src_track_id=cause, src_ts=ts + early, dst_track_id=effect, dst_ts=[ts])
        return [finding.severity for finding in check.run(builder.finish(), select=["LS201"])]

    assert severities(100 + 100 + 1) == ["notice"]
    assert severities(100 + 100 + 2) == ["warning"]
    assert severities(100 + 1, anchors=(0, 2_000_000)) == ["notice"]
    assert severities(100 + 2, anchors=(0, 2_000_000)) == ["warning"]
    assert severities(100 + 2, anchors=()) == ["warning"]
    assert severities(0) == []


# --- LS3xx ------------------------------------------------------------------------------------------------------------


def test_ls301_negative_slices():
    made = Made()
    made.slices("disjoint", [(0, 5), (10, None)], flags=[0, int(Flag.NEGATIVE_DURATION)])
    assert found(made.finish()) == [("LS301", "warning", "disjoint", 1, [1])]


@given(testing.traces(**TRACES))
def test_ls301_finds_the_rows_whose_time_falls_while_their_counter_rises(trace):
    for table in ("slices", "instants"):
        rows = [row for row in trace.tables()[table].rows() if row["ts_ticks"] is not None]
        expected = {
            late["id"]
            for early in rows
            for late in rows
            if early["track_id"] == late["track_id"]
            and early["ts_ticks"] < late["ts_ticks"]
            and early["ts"] > late["ts"]
        }
        findings = [
            finding
            for finding in check.run(trace, select=["LS301"])
            if finding.evidence.table == table and "falls" in finding.detail
        ]
        assert {row for finding in findings for row in finding.evidence.ids.tolist()} == expected


@pytest.mark.parametrize(
    ("flag", "code", "severity"),
    [(Flag.WRAP_AMBIGUOUS, "LS302", "warning"), (Flag.CLOCK_SUSPECT, "LS304", "warning")],
)
def test_flags_of_slices_and_instants_are_reported_by_lane(flag, code, severity):
    made = Made()
    made.slices("disjoint", [(0, 10), (10, 10), (20, 20)], flags=[0, int(flag), int(flag | Flag.INFERRED_START)])
    made.slices("nested", [(0, 60)])
    made.builder.append("instants", track_id=made.lanes["free"], ts=[1, 2], name="i", flags=[int(flag), 0])
    trace = made.finish()
    assert found(trace) == [(code, severity, "disjoint", 2, [1, 2]), (code, severity, "free", 1, [0])]
    findings = check.run(trace)
    assert (findings[0].affected_fraction, findings[0].affected_lane_fraction) == (0.3, 0.75)
    assert (findings[1].affected_fraction, findings[1].affected_lane_fraction) == (None, None)


SHORT = int(Flag.BELOW_RESOLUTION)


@pytest.mark.parametrize(("length", "severity"), [(9, "notice"), (10, "warning")])
def test_ls303_weighs_by_share_of_the_lane(length, severity):
    made = Made()
    made.slices("nested", [(0, length), (length, 100 - length)], flags=[SHORT, 0])
    trace = made.finish()
    assert found(trace) == [("LS303", severity, "nested", 1, [0])]
    assert check.run(trace)[0].detail == f"longest: {length} ns"


@pytest.mark.parametrize(("rest", "severity"), [(9900, "warning"), (99_000, "notice")])
def test_ls303_warns_of_no_lane_that_did_next_to_nothing(rest, severity):
    made = Made()
    made.slices("nested", [(0, 20), (20, 60)], flags=[SHORT, 0])
    made.slices("disjoint", [(0, rest)])
    assert [finding.severity for finding in check.run(made.finish(), select=["LS303"])] == [severity]


def test_ls303_is_one_finding_a_clock_and_not_one_a_lane():
    builder = TraceBuilder(TimeBase())
    clocks = [builder.clock(name=name, device="d", frequency=None) for name in ("coarse", "fine", "idle")]
    devices = [builder.track(f"gpu {i}", kind="group", role="device") for i in range(2)]
    groups = [builder.track("sm", kind="group", role="sm", parent=devices[0], clock_id=clocks[0])]
    # A lane has its own clock, else that of a group above it, else none; those without are told apart by device.
    homes = [(groups[0], None)] * 3 + [(devices[0], clocks[1])] + [(devices[0], None)] + [(devices[1], None)] * 2
    lanes = [
        builder.track(f"lane {i}", kind="lane", role="core", parent=parent, clock_id=clock)
        for i, (parent, clock) in enumerate(homes)
    ]
    for lane, short in zip(lanes, [2, 6, 4, 20, 3, 1, 1], strict=True):
        builder.append(
            "slices", track_id=lane, ts=[10 + lane, 110], dur=[short, 100 - short], name="s", flags=[SHORT, 0]
        )
    builder.append("slices", track_id=lanes[1], ts=[5], dur=[0], name="s", flags=[SHORT])
    trace = builder.finish()
    findings = check.run(trace)
    assert [(f.severity, f.location.track, f.location.ts, f.count, f.affected_lane_fraction) for f in findings] == [
        ("warning", "gpu 0/lane 3", 16, 1, 0.2),
        ("notice", "gpu 0/sm/lane 1", 5, 4, 0.06),
        ("notice", "gpu 0/lane 4", 17, 1, 0.03),
        ("notice", "gpu 1/lane 5", 18, 2, 0.01),
    ]
    assert {finding.code for finding in findings} == {"LS303"}
    assert [f.affected_fraction for f in findings] == [short / 700 for short in (20, 12, 3, 2)]
    assert [f.detail for f in findings] == [
        "longest: 20 ns",
        "longest: 6 ns; 3 lanes of coarse, worst lane: 2 short, 6.00% of its busy time",
        "longest: 3 ns",
        "longest: 1 ns; 2 lanes, worst lane: 1 short, 1.00% of its busy time",
    ]
    assert findings[1].evidence.ids.tolist() == [0, 2, 4, 14]  # as they stand in the table


@given(testing.traces())
def test_ls303_finds_every_short_slice_once(trace):
    flagged = np.flatnonzero(trace.slices["flags"] & np.uint32(SHORT)).tolist()
    findings = check.run(trace, select=["LS303"])
    assert sorted(row for finding in findings for row in finding.evidence.ids.tolist()) == flagged
    ts, tracks = trace.slices["ts"], trace.slices["track_id"]
    for finding in findings:
        rows = finding.evidence.ids
        here = rows[tracks[rows] == finding.location.track_id]
        assert (np.diff(rows) > 0).all()
        assert finding.location.ts == ts[here].min()


def test_ls304_anchors_that_run_backwards():
    builder = TraceBuilder(TimeBase())
    for name in ("good", "bad"):
        clock = builder.clock(name=name, device="d", frequency=None)
        for ticks, ts in ((10, 10), (30, 30), (20, 40 if name == "bad" else 20)):
            builder.anchor(clock_id=clock, ticks=ticks, ts=ts)
    trace = builder.finish()
    assert found(trace) == [("LS304", "warning", "", 1, [4])]
    assert check.run(trace)[0].detail == "anchors of bad run backwards"
    assert check.run(trace)[0].location.ts == 30


def test_ls304_ticks_within_one_nanosecond_do_not_run_backwards():
    builder = TraceBuilder(TimeBase())
    clock = builder.clock(name="fast", device="d", frequency=None)
    for ticks, ts in ((10, 5), (11, 5), (12, 6)):
        builder.anchor(clock_id=clock, ticks=ticks, ts=ts)
    assert found(builder.finish(), "LS304") == []


# --- LS4xx ------------------------------------------------------------------------------------------------------------


def test_ls401_to_ls404_report_stats_by_their_ending():
    made = Made()
    made.builder.add_stat("test_hint_unmatched", 4)
    made.builder.add_stat("test_end_unmatched", 2, track_id=made.lanes["free"])
    made.builder.add_stat("test_task_duplicate", 3)
    made.builder.add_stat("test_queue_degraded", 1, track_id=made.lanes["free"])
    made.builder.add_stat("test_column_config", 2)
    assert found(made.finish()) == [
        ("LS402", "error", "", 3, [2]),
        ("LS401", "warning", "free", 2, [1]),
        ("LS403", "warning", "free", 1, [3]),
        ("LS404", "warning", "", 2, [4]),
        ("LS401", "notice", "", 4, [0]),
    ]


def test_ls402_two_tracks_of_one_path():
    builder = TraceBuilder(TimeBase())
    for name in ("a", "b", "a"):
        builder.track(name, kind="lane", role="core")
    builder.track("a", kind="counter", role="counter")
    assert found(builder.finish()) == [("LS402", "warning", "a", 1, [0, 2])]


# --- all together -----------------------------------------------------------------------------------------------------


@given(testing.traces(**TRACES))
def test_findings_of_any_trace_are_well_formed(trace):
    findings = check.run(trace)
    ranks = [check.SEVERITIES.index(finding.severity) for finding in findings]
    assert ranks == sorted(ranks, reverse=True)
    for finding in findings:
        rows = finding.evidence.ids
        assert finding.count > 0
        assert len(set(rows.tolist())) == len(rows)
        assert ((rows >= 0) & (rows < len(trace.tables()[finding.evidence.table]))).all()
        for share in (finding.affected_fraction, finding.affected_lane_fraction):
            assert share is None or 0 <= share <= 1
        assert finding.evidence.sample == rows[: check.SAMPLE].tolist()
    table = check.to_table(findings)
    assert [row["code"] for row in table.rows()] == [finding.code for finding in findings]
    assert [row["ts"] for row in table.rows()] == [finding.location.ts for finding in findings]


@given(testing.traces(**TRACES))
def test_totals_with_and_without_bound_what_is_true(trace):
    rows = list(trace.slices.rows())
    findings = check.run(trace)
    doubted = {row for f in findings if f.evidence.table == "slices" for row in f.evidence.ids.tolist()}
    for totals, mine in (
        (check.totals(trace), rows),
        (check.totals(trace, findings), [row for row in rows if row["id"] not in doubted]),
    ):
        assert totals.slices == len(mine)
        assert totals.open == sum(row["dur"] is None for row in mine)
        assert totals.total == sum(row["dur"] or 0 for row in mine)
        assert totals.covered == oracles.covered(mine)


def test_the_sample_is_capped_and_the_count_is_not():
    made = Made()
    made.slices("disjoint", [(10 * i, 11) for i in range(50)])
    trace = made.finish()
    (finding,) = check.run(trace)
    assert (finding.count, finding.evidence.sample) == (50, list(range(20)))
    assert finding.to_dict()["evidence"] == {"table": "slices", "rows": 50, "sample": list(range(20))}
    assert check.totals(trace, [finding]).slices == 0
    for one in (finding, finding.evidence):  # told apart as objects: arrays cannot be hashed
        assert len({one, one, replace(one)}) == 2


def test_what_a_check_returns_stays_as_it_is():
    made = Made()
    made.slices("disjoint", [(0, 20), (10, 20)])
    trace = made.finish()
    (finding,) = check.run(trace)
    for one in (finding, finding.location, finding.evidence, check.totals(trace)):
        assert not hasattr(one, "__dict__")  # nor is there room for more
        for field in fields(one):
            with pytest.raises(FrozenInstanceError):
                setattr(one, field.name, None)


def test_rules_are_chosen_by_code_and_by_beginning():
    chosen = {rule.code for rule in check.rules(["LS3", "LS101"], ["LS302"])}
    assert chosen == {"LS101", "LS301", "LS303", "LS304", "LS305"}
    assert check.rules() == check.RULES
    for choice in ("LS9", "XX", "LS1011"):
        with pytest.raises(UsageError, match=choice):
            check.rules([choice])
        with pytest.raises(UsageError, match=choice):
            check.rules([], [choice])


def test_codes_are_unique_and_in_order():
    codes = [rule.code for rule in check.RULES]
    assert codes == sorted(set(codes))


def test_a_large_sound_trace_of_each_kind_is_clean():
    for nested in (False, True):
        assert check.run(testing.large_trace(20_000, lanes=7, nested=nested)) == []

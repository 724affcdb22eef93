"""The golden captures, against values worked out by hand from their files: one tick is 20 ns."""

import numpy as np
import pytest

from devices.ascend.helpers import CASES, NAMINGS, edges, golden, lane, listing, stats, tasks
from lanescope.trace import Flag

RING_1, RING_2 = 1 << 32, 2 << 32


@pytest.mark.parametrize("naming", NAMINGS)
def test_chain(naming):
    trace = golden("v2_chain", naming)
    # The base is the first dispatch, 1000050.
    assert trace.details["ascend_runs"]["base_ticks"].tolist() == [1_000_050]
    assert trace.time.epoch_ns == 1_000_050 * 20
    assert trace.time.epoch_kind == "device"
    assert lane(trace, "AIC_0") == [("QK", 1000, 10_000)]
    assert lane(trace, "AIV_2") == [("SF", 14_000, 3000)]
    assert lane(trace, "AIC_1") == [("func_2_c", 19_000, 8000)]
    # In the order of the file, which is by core.
    assert tasks(trace, "dispatch_ts", "finish_ts", "head_ns", "tail_ns") == [
        ("QK(t0)", 0, 11_800, 1000, 800),
        ("func_2_c(t2)", 18_200, 28_000, 800, 1000),
        ("SF(t1)", 12_800, 17_600, 1200, 600),
    ]
    assert trace.inputs["format"].tolist() == ["v2", "deps", "name_map"]


@pytest.mark.parametrize("naming", NAMINGS)
def test_what_five_columns_do_not_say_is_unknown(naming):
    trace = golden("v2_chain", naming)
    assert tasks(trace, "receive_ts", "propagation_ns", "local_setup_ns", "gate_wait_ns", "may_be_staged") == [
        ("QK(t0)", None, None, None, None, None),
        ("func_2_c(t2)", None, None, None, None, None),
        ("SF(t1)", None, None, None, None, None),
    ]
    assert trace.details["ascend_tasks"]["effective_start_source"].tolist() == ["start"] * 3
    assert "setup" not in trace.slices["name"].tolist()


@pytest.mark.parametrize("naming", NAMINGS)
def test_annotations_of_one_pair_are_one_edge(naming):
    trace = golden("v2_chain", naming)
    assert edges(trace) == [(0, 1, 11_000, 14_000), (1, 2, 17_000, 19_000)]
    (run,) = trace.details["ascend_runs"].rows()
    assert (run["edges"], run["edges_repeated"], run["edges_to_self"]) == (2, 1, 0)


@pytest.mark.parametrize("naming", NAMINGS)
def test_the_earliest_stamp_is_a_receive(naming):
    trace = golden("v3_cold_first", naming)
    # 700200 - 180; the first task is received at 0, not below.
    assert trace.details["ascend_runs"]["base_ticks"].tolist() == [700_020]
    assert trace.slices["ts"].min() == 0
    assert tasks(trace, "receive_ts", "local_setup_ns", "duration_ns") == [
        ("func_3_d(r2t5)", 0, 3600, 14_000),
        ("func_4_e(r2t7)", 18_600, 0, 7000),
        ("func_27_ab_spmd(r2t6)", 18_780, 20, 4000),
        ("func_27_ab_spmd(r2t6)", 18_300, 700, 4400),
        ("func_5_f(r2t8)", 25_960, 40, 2000),
    ]
    assert lane(trace, "AIC_0") == [
        ("setup", 0, 3600),
        ("func_3_d", 3600, 14_000),
        ("func_4_e", 18_600, 7000),
    ]
    assert lane(trace, "AIV_2") == [
        ("setup", 18_300, 700),
        ("func_27_ab_spmd", 19_000, 4400),
        ("setup", 25_960, 40),
        ("func_5_f", 26_000, 2000),
    ]
    assert lane(trace, "AIC_3") == []


@pytest.mark.parametrize("naming", NAMINGS)
def test_level_1_knows_nothing_of_the_schedulers(naming):
    trace = golden("v3_cold_first", naming)
    columns = ("dispatch_ts", "finish_ts", "propagation_ns", "head_ns", "tail_ns")
    assert {row[1:] for row in tasks(trace, *columns)} == {(None,) * 5}
    # Missing dispatch records are no loss at a level that has none.
    assert stats(trace) == {}


@pytest.mark.parametrize("naming", NAMINGS)
def test_blocks_of_a_task_are_counted_by_start(naming):
    trace = golden("v3_cold_first", naming)
    assert tasks(trace, "task_id", "core", "core_type", "block", "blocks")[2:4] == [
        ("func_27_ab_spmd(r2t6)", RING_2 + 6, 1, "aiv", 0, 2),
        ("func_27_ab_spmd(r2t6)", RING_2 + 6, 2, "aiv", 1, 2),
    ]


def test_an_edge_leaves_the_last_block_and_enters_at_the_first_receive():
    # r2t6 ends on core 2 at 701190; r2t6 is received first on core 2 at 700935, before r2t8.
    assert edges(golden("v3_cold_first", "l2")) == [
        (5, 6, 17_600, 18_300),
        (5, 7, 17_600, 18_600),
        (6, 8, 23_400, 25_960),
        (7, 8, 25_600, 25_960),
    ]


def test_without_proof_a_chip_capture_is_judged_at_the_start():
    # Level 1 has no phases and this graph no flags: any task may have waited on its core, r2t7 had no setup.
    assert edges(golden("v3_cold_first", "chip")) == [
        (5, 6, 17_600, 18_800),
        (5, 7, 17_600, 18_600),
        (6, 8, 23_400, 26_000),
        (7, 8, 25_600, 26_000),
    ]


ORDER = ("matmul(r1t1)", "matmul(r1t5)", "proj(r1t3)", "norm(r1t6)", "softmax(r1t2)", "softmax(r1t5)")


@pytest.mark.parametrize("naming", NAMINGS)
def test_every_row_is_an_execution(naming):
    trace = golden("v3_spec_dummy", naming)
    assert trace.inputs["format"][0] == {"l2": "v3", "chip": "v3c"}[naming]
    assert tuple(label for (label,) in tasks(trace)) == ORDER
    assert trace.details["ascend_runs"]["base_ticks"].tolist() == [5_000_000]
    assert [row[1:] for row in tasks(trace, "core", "reg_task_id", "duration_ns", "tail_ns")] == [
        (0, 0, 12_000, 800),
        (0, 1, 8000, 800),
        (1, 0, 10_000, 900),
        (2, 0, 4000, 700),
        (2, 1, 6000, 880),
        (3, 0, 4000, 1000),
    ]
    assert trace.details["ascend_runs"]["orchestrator"].tolist() == ["SpecDemo"]


@pytest.mark.parametrize(
    ("naming", "expected"),
    [
        # l2: received again at the doorbell: (5001428 - 5000900) ticks on the way, 2 ticks setup, no wait.
        ("l2", (18_000, 28_560, 10_560, 40, 0, "receive")),
        # chip: received at pickup, 5000922; its producer ended at 5001326: 404 ticks wait, 104 ticks setup.
        ("chip", (18_000, 18_440, 440, 2080, 8080, "start")),
    ],
)
def test_a_task_that_was_staged_early(naming, expected):
    trace = golden("v3_spec_dummy", naming)
    columns = (
        "dispatch_ts",
        "receive_ts",
        "propagation_ns",
        "local_setup_ns",
        "gate_wait_ns",
        "effective_start_source",
    )
    assert tasks(trace, *columns)[2] == ("proj(r1t3)", *expected)
    bars = {"l2": [("setup", 28_560, 40)], "chip": [("gate_wait", 18_440, 8080), ("setup", 26_520, 2080)]}[naming]
    assert lane(trace, "AIC_1") == [*bars, ("proj", 28_600, 10_000)]


def test_what_was_concluded_says_so():
    trace = golden("v3_spec_dummy", "chip")
    on_core_1 = trace.slices["track_id"] == trace.slices["track_id"][2]
    quality = dict(zip(trace.slices["name"][on_core_1], trace.slices["quality"][on_core_1], strict=True))
    assert quality == {"gate_wait": "estimated", "setup": "estimated", "proj": "exact"}
    assert stats(trace) == {"ascend_gate_wait": 1}
    assert trace.details["ascend_tasks"]["may_be_staged"].tolist() == [False, False, True, False, False, False]


@pytest.mark.parametrize("naming", NAMINGS)
def test_the_violation_stands_in_the_flows_and_nothing_else_does(naming):
    trace = golden("v3_spec_dummy", naming)
    early = [edge for edge in edges(trace) if edge[3] < edge[2]]
    # r1t6 is received at 6.4 us, its producer r1t1 ends at 17.6 us.
    assert early == [(1, 6, 17_600, 6400)]


@pytest.mark.parametrize("naming", NAMINGS)
def test_tasks_without_a_kernel_have_a_place(naming):
    trace = golden("v3_spec_dummy", naming)
    placed = {edge[:2]: edge[2:] for edge in edges(trace)}
    assert len(placed) == 7
    assert placed[0, 1] == (600, 2600)  # the allocation r1t0 is over with its submit
    assert placed[2, 4] == (26_520, 41_000)  # the barrier r1t4 stands at its marker
    assert placed[3, 4] == (38_600, 41_000)
    assert placed[4, 5] == (41_000, 42_800)


@pytest.mark.parametrize("naming", NAMINGS)
def test_the_mix_task_runs_on_both_engines(naming):
    trace = golden("v3_spec_dummy", naming)
    assert tasks(trace, "core_type", "propagation_ns", "local_setup_ns")[1] == ("matmul(r1t5)", "aic", 400, 0)
    assert tasks(trace, "core_type", "propagation_ns", "local_setup_ns")[5] == ("softmax(r1t5)", "aiv", 520, 2400)


@pytest.mark.parametrize("naming", NAMINGS)
def test_scheduler_phases(naming):
    trace = golden("v3_spec_dummy", naming)
    bars = lane(trace, "Sched_0")
    assert len(bars) == 12
    # The inner one lies in its parent, though it stands before it in the file.
    assert bars[3:5] == [("complete", 18_300, 1400), ("resolve", 18_440, 1160)]
    assert ("release", 30_000, 800) in bars
    assert bars[-1] == ("dispatch", 53_000, 0)
    second = lane(trace, "Sched_1")
    assert ("resolve", 41_020, 1020) in second
    assert (("dummy", 40_900, 1220) in second) == (naming == "chip")
    assert ("dummy_task", 41_000, 0) in second
    assert trace.tracks["nesting"][trace.tracks["name"] == "Sched_0"].tolist() == ["nested"]


@pytest.mark.parametrize("naming", NAMINGS)
def test_what_has_no_width_by_design_is_not_too_short(naming):
    trace = golden("v3_spec_dummy", naming)
    points = trace.slices["dur"] == 0
    assert sorted(trace.slices["name"][points]) == ["dispatch", "dummy task", "dummy_task"]
    assert not (trace.slices["flags"][points] & Flag.BELOW_RESOLUTION).any()


def test_a_run_is_named_by_its_folder():
    assert set(golden("v3_spec_dummy", "chip").inputs["capture"]) == {"v3_spec_dummy"}


@pytest.mark.parametrize("naming", NAMINGS)
def test_sums_over_phases(naming):
    trace = golden("v3_spec_dummy", naming)
    phases = trace.details["ascend_phases"]
    names = trace.slices["name"][phases["slice_id"]]
    dispatch, complete = names == "dispatch", names == "complete"
    assert phases.valid("pop_hit").tolist() == dispatch.tolist()
    assert (phases["pop_hit"].sum(), phases["pop_miss"].sum()) == (5, 29)
    assert phases["tasks_processed"][dispatch].sum() == 5
    assert phases["tasks_processed"][complete].sum() == 6


def test_the_dummy_of_v3_is_found_by_half_of_its_id():
    for naming, flag in (("l2", Flag.INFERRED_IDENTITY), ("chip", 0)):
        trace = golden("v3_spec_dummy", naming)
        phases = trace.details["ascend_phases"]
        (row,) = np.flatnonzero(phases.valid("task_id"))
        slice_id = phases["slice_id"][row]
        assert trace.slices["name"][slice_id] == "dummy_task"
        assert phases["task_id"][row] == RING_1 + 4
        assert trace.slices["flags"][slice_id] == flag


def test_depths_are_as_recorded():
    trace = golden("v3_spec_dummy", "l2")
    phases = trace.details["ascend_phases"]
    assert phases["shared_start_aic"][0] == 1
    assert phases.valid("local_start_aic").all()
    assert not golden("v3_spec_dummy", "chip").details["ascend_phases"].valid("local_start_aic").any()
    names, counters = trace.tracks["name"], trace.counters
    depths = {}
    for row in counters.rows():
        depths.setdefault(names[row["track_id"]], []).append((row["ts"], row["value"]))
    # The complete from 18.3 to 19.7 us differs at its end: that is not a copy of its start.
    assert depths == {
        "shared_ready_queue AIC": [(2300, 0)],
        "shared_ready_queue AIV": [(2300, 0), (19_700, 1), (20_100, 0)],
        "shared_ready_queue MIX": [(2300, 0)],
    }


def test_depths_of_the_newer_naming_change_with_the_phases():
    trace = golden("v3_spec_dummy", "chip")
    names = trace.tracks["name"]
    depths = {}
    for row in trace.counters.rows():
        depths.setdefault(names[row["track_id"]], []).append((row["ts"], row["value"]))
    assert depths["shared_ready_queue AIV"] == [(2300, 0), (19_700, 1), (20_100, 0)]
    assert depths["shared_ready_queue MIX"] == [(2300, 0), (42_120, 1), (42_500, 0)]


@pytest.mark.parametrize("naming", NAMINGS)
def test_submits(naming):
    trace = golden("v3_spec_dummy", naming)
    assert lane(trace, "Orch_0")[3] == ("submit", 2100, 700)
    submits = trace.details["ascend_submits"]
    assert submits["task"].tolist() == [f"r1t{number}" for number in range(7)]
    assert submits["submit_idx"].tolist() == list(range(7))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("naming", NAMINGS)
def test_every_byte_is_accounted_for(case, naming):
    trace = golden(case, naming)
    for row in trace.accounting.rows():
        assert row["decoded"] + row["padding"] + row["lost"] == row["total"] == trace.inputs["size"][row["input_id"]]
        assert row["lost"] == 0
        assert row["scope"] == "input"


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("naming", NAMINGS)
@pytest.mark.parametrize("chunk", [1, 7, 4096])
def test_how_the_file_is_cut_changes_nothing(case, naming, chunk):
    assert listing(golden(case, naming, chunk=chunk)) == listing(golden(case, naming))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("naming", NAMINGS)
def test_the_one_clock(case, naming):
    trace = golden(case, naming)
    (clock,) = trace.clocks.rows()
    assert (clock["frequency_num"], clock["frequency_den"]) == (50_000_000, 1)
    (anchor,) = trace.anchors.rows()
    assert (anchor["ticks"], anchor["ts"]) == (trace.details["ascend_runs"]["base_ticks"][0], 0)

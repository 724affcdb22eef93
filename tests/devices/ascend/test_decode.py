"""What may be wrong with a capture, one case each: a stat, a flag, a null or a gap, never silence."""

import gc
import json

import pytest

from devices.ascend.helpers import (
    GOLDEN,
    decode,
    decode_file,
    decode_simulated,
    gaps,
    golden,
    graph,
    lane,
    read,
    recorded,
    records,
    simulated,
    stats,
    tasks,
)
from lanescope.devices.ascend.formats.records import Deps, Records
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.devices.ascend.schema import STATS
from lanescope.errors import InputError, UsageError
from lanescope.trace import Flag


def row(core, task, counter, start, end, delta=2):
    return [core, task, counter, start, end, delta]


ROW = row(0, 5, 1, 100, 200)
CPU = [0, 1, 90, 210]


def accounts(trace):
    """Return (total, decoded, padding, lost) of each input file."""
    rows = [row for row in trace.accounting.rows() if row["scope"] == "input"]
    return {row["input_id"]: (row["total"], row["decoded"], row["padding"], row["lost"]) for row in rows}


def flags(trace, name="task"):
    return [row["flags"] for row in trace.slices.rows() if row["name"] == name]


def test_an_execution_that_never_ended_is_open():
    trace = decode(records([row(0, 5, 1, 100, 0)], [[0, 1, 90, 0]]))
    (bar,) = [bar for bar in trace.slices.rows() if bar["name"] == "task"]
    assert (bar["ts"], bar["dur"], bar["dur_ticks"], bar["last_known_ts"]) == (200, None, None, 200)
    assert bar["flags"] == Flag.UNFINISHED
    assert tasks(trace, "duration_ns", "finish_ts", "tail_ns", "propagation_ns") == [
        ("task(t5)", None, None, None, 160)
    ]


def test_an_end_before_the_begin_is_negative():
    trace = decode(records([row(0, 5, 1, 100, 95)], [CPU]))
    (bar,) = [bar for bar in trace.slices.rows() if bar["name"] == "task"]
    assert (bar["dur"], bar["last_known_ts"], bar["flags"]) == (None, None, Flag.NEGATIVE_DURATION)
    assert tasks(trace, "duration_ns") == [("task(t5)", -100)]


def test_a_slot_that_was_never_written_has_no_place():
    trace = decode(records([ROW, row(0, 0, 2, 0, 0, 0)], [CPU, [0, 2, 300, 400]]))
    assert [label for (label,) in tasks(trace)] == ["task(t5)"]
    # Its dispatch is there, so the place of the loss is known.
    assert stats(trace) == {"ascend_missing_start": 1, "ascend_aicpu_unmatched": 1}
    assert gaps(trace) == [("AIC_0", (300 - 90) * 20, 100 * 20, 1)]


def test_stamps_that_were_not_taken_are_unknown():
    trace = decode(records([ROW], [[0, 1, 0, 0]]))
    assert tasks(trace, "dispatch_ts", "finish_ts", "propagation_ns", "tail_ns") == [
        ("task(t5)", None, None, None, None)
    ]
    assert stats(trace) == {"ascend_missing_timestamp": 1}


def test_a_delta_longer_than_the_start_is_old():
    trace = decode(records([row(0, 5, 1, 100, 200, 150)], [CPU]))
    assert tasks(trace, "receive_ts", "local_setup_ns", "head_ns") == [("task(t5)", None, None, 200)]
    assert stats(trace) == {"ascend_bad_delta": 1}


def test_a_stamp_too_far_away_has_no_time():
    far = (1 << 62) - 1
    trace = decode(records([ROW, row(0, 6, 2, far, far, 0)], [CPU, [0, 2, 300, far]]))
    assert [label for (label,) in tasks(trace)] == ["task(t5)"]
    assert stats(trace) == {"ascend_timestamp_out_of_range": 2}
    assert trace.coverage["dur"].max() == (300 - 90) * 20


def test_a_fast_counter_has_room_for_the_largest_stamp():
    far = (1 << 62) - 1
    trace = decode(records([row(0, 6, 2, far - 10, far, 0)], [[0, 2, far - 30, far]], clock=10**9))
    assert lane(trace, "AIC_0") == [("task", 20, 10)]


def test_rows_with_and_without_a_receive_stamp():
    trace = decode(records([ROW, [0, 6, 2, 300, 400]], [CPU, [0, 2, 290, 410]]))
    assert tasks(trace, "receive_ticks", "local_setup_ticks") == [("task(t5)", 98, 2), ("task(t6)", None, None)]
    assert stats(trace) == {"ascend_mixed_rows": 1}
    assert trace.inputs["format"][0] == "v3"


def test_what_is_no_row_is_lost_to_the_byte():
    content = records(
        [ROW, "x", [1, 2], {"a": [0]}, row(0, 6, 2, 300, 400), [0, 1, 2, 3, 4.5], None], [CPU, [0, 2, 290, 410]]
    )
    trace = decode(content)
    raw = json.dumps(content).encode()
    bad = len('"x"') + len("[1, 2]") + len('{"a": [0]}') + len("[0, 1, 2, 3, 4.5]") + len("null")
    total, decoded, padding, lost = accounts(trace)[0]
    assert (total, lost) == (len(raw), bad)
    assert decoded == sum(len(json.dumps(item)) for item in (ROW, row(0, 6, 2, 300, 400), CPU, [0, 2, 290, 410]))
    assert padding == total - decoded - lost
    (stat,) = trace.stats.rows()
    assert (stat["name"], stat["count"], stat["first_offset"]) == ("ascend_invalid_row", 5, raw.index(b'"x"'))


@pytest.mark.parametrize(
    "bad",
    [
        [70_000, 5, 1, 100, 200, 0],
        [-1, 5, 1, 100, 200, 0],
        [0, 5, 1 << 32, 100, 200, 0],
        [0, 5, 1, 1 << 62, 200, 0],
        [0, 5, 1, -5, 200, 0],
        [0, 5, 1, 100, 200, 1 << 32],
        [0, 1 << 64, 1, 100, 200, 0],
        [0, 5, 1, 100],
        [0, 5, 1, 100, 200, 0, 7, 8],
    ],
)
def test_numbers_that_cannot_be_are_not_understood(bad):
    assert stats(decode(records([bad], level=1))) == {"ascend_invalid_row": 1}


def test_a_negative_task_id_is_its_twos_complement():
    assert tasks(decode(records([row(0, -1, 1, 100, 200)], level=1)), "task_id") == [
        ("task(r255t4294967295)", 2**64 - 1)
    ]


def test_an_unknown_key():
    content = {**records([ROW], [CPU]), "notes": {"a": [1, 2]}}
    trace = decode(content)
    assert stats(trace) == {"ascend_unknown_section": 1}
    assert accounts(trace)[0][3] == len('{"a": [1, 2]}')


def test_a_list_that_is_none():
    content = records([ROW], [CPU], aicpu_scheduler_phases="none", aicpu_orchestrator_phases=None)
    trace = decode(content)
    assert stats(trace) == {"ascend_bad_section": 1}
    assert accounts(trace)[0][3] == len('"none"')


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"l2_swimlane_level": 0}, "level 0"),
        ({"l2_swimlane_level": 5}, "level 5"),
        ({"l2_swimlane_level": True}, "level True"),
        ({"l2_swimlane_level": "3"}, "level '3'"),
        ({"l2_swimlane_level": None, "chip_swimlane_level": 2}, "more than one swimlane level"),
        ({"metadata": None}, "metadata not found"),
        ({"metadata": []}, "metadata not found"),
        ({"metadata": {}}, "frequency None"),
        ({"metadata": {"clock_freq_hz": 0}}, "frequency 0"),
        ({"metadata": {"clock_freq_hz": -5}}, "frequency -5"),
        ({"metadata": {"clock_freq_hz": 5e7}}, "frequency 50000000.0"),
        ({"metadata": {"clock_freq_hz": 1 << 63}}, "frequency"),
        ({"scheduler_tasks": {"records": [CPU]}}, "more than one format version"),
        ({"tasks": []}, "more than one format version"),
        ({"l2_perf_level": 2}, "more than one"),
        ({"edges": []}, "no swimlane level"),
    ],
)
def test_what_cannot_be_read_at_all_is_refused(change, message):
    with pytest.raises(InputError) as caught:
        read({**records([ROW], [CPU]), **change})
    assert message in str(caught.value)
    assert caught.value.hint


def test_no_level_at_all():
    content = records()
    del content["l2_swimlane_level"]
    with pytest.raises(InputError, match="no swimlane level"):
        read(content)


@pytest.mark.parametrize(
    "metadata",
    [
        {"core_types": "aic", "core_to_thread": 3},
        {"core_types": [1, None, "aiv"], "core_to_thread": [-1, "x", 2**70]},
        {"core_types": []},
        {"num_cores": -3, "host_capture": [], "clock_anchors": "x"},
        {"host_capture": {"expected_records": "x", "recorded_records": -1}},
    ],
)
def test_strange_metadata_costs_names_at_most(metadata):
    content = records([ROW], [CPU], level=3, metadata=metadata, host_orchestrator_phases=[[]])
    trace = decode(content, deps=graph({5: (0, -1, -1)}))
    assert len(trace.details["ascend_tasks"]) == 1


def test_lanes_are_those_of_the_chip():
    trace = decode(records([ROW], [CPU], cores=("aic", "aiv", "aiv")))
    names = trace.tracks["name"][trace.tracks["kind"] == "lane"].tolist()
    # Once as the schedulers see them, once as they are.
    assert names == ["AIC_0", "AIV_1", "AIV_2"] * 2
    assert len(trace.coverage) == 6


def test_threads_without_records_have_lanes():
    trace = decode(
        records([ROW], [CPU], level=3, aicpu_scheduler_phases=[[], [{"start_cycles": 95, "end_cycles": 99}], []])
    )
    assert trace.tracks["name"][trace.tracks["role"] == "scheduler"].tolist() == [
        "Scheduler",
        "Sched_0",
        "Sched_1",
        "Sched_2",
    ]
    assert lane(trace, "Sched_1") == [("unknown", 100, 80)]


def test_thousands_of_empty_threads_have_none():
    phases = [[] for _ in range(5000)] + [[{"kind": "scan", "start_cycles": 95, "end_cycles": 99}]]
    trace = decode(records([ROW], [CPU], level=3, aicpu_scheduler_phases=phases))
    assert lane(trace, "Sched_5000") == [("scan", 100, 80)]
    assert len(trace.tracks) < 20


def test_an_empty_capture():
    trace = decode(records(level=4, aicpu_scheduler_phases=[], aicpu_orchestrator_phases=[]))
    assert len(trace.slices) == len(trace.coverage) == len(trace.anchors) == 0
    assert stats(trace) == {}
    assert decode({"chip_swimlane_level": 1, "metadata": {"clock_freq_hz": 5}}).inputs["format"].tolist() == ["v3c"]


def test_the_base_is_the_smallest_stamp_of_anything():
    phases, submits = [{"start_cycles": 70, "end_cycles": 75}], [{"task_id": 5, "start_cycles": 60, "end_cycles": 65}]
    bases = [
        decode(records([ROW], [CPU], **more)).details["ascend_runs"]["base_ticks"][0]
        for more in (
            {},
            {"level": 3, "aicpu_scheduler_phases": [phases]},
            {"level": 4, "aicpu_scheduler_phases": [phases], "aicpu_orchestrator_phases": [submits]},
        )
    ]
    assert bases == [90, 70, 60]
    assert decode(records([ROW], level=1)).details["ascend_runs"]["base_ticks"][0] == 98
    # A row that is left out later counts: it was recorded.
    assert decode(records([ROW], [CPU, [1, 7, 40, 0]])).details["ascend_runs"]["base_ticks"][0] == 40


def test_a_broken_neighbour_is_lost_and_the_rest_stays():
    trace = decode(records([ROW], [CPU]), deps=b'{"tasks": [', beside={"name_map_x.json": b"[]"})
    assert len(trace.details["ascend_tasks"]) == 1
    assert stats(trace) == {"ascend_unreadable_sidecar": 2}
    assert accounts(trace) == {0: accounts(trace)[0], 1: (11, 0, 0, 11), 2: (2, 0, 0, 2)}


@pytest.mark.parametrize(
    "content",
    [b'{"tasks": [', b"{}", b"[]", b"", b'{"callable_id_to_name": {"x": 1}}', b'{"callable_id_to_name": [1]}'],
)
@pytest.mark.parametrize("option", ["deps", "names"])
def test_a_broken_file_that_was_asked_for_is_an_error(tmp_path, option, content):
    path = tmp_path / "mine.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        decode_file(GOLDEN / "v2_chain" / "l2_swimlane_records.json", **{option: str(path)})
    assert caught.value.hint


def test_neighbours_that_are_not_wanted_or_not_there():
    path = GOLDEN / "v3_spec_dummy" / "l2_swimlane_records.json"
    trace = decode_file(path, deps="none", names="none")
    assert "dependency" not in trace.flows["kind"].tolist()
    assert trace.inputs["role"].tolist() == ["main"]
    assert json.loads(trace.inputs["options"][0]) == {"deps": "none", "names": "none"}
    with pytest.raises(InputError, match="no such file"):
        decode_file(path, deps="/nowhere/deps.json")
    with pytest.raises(UsageError, match="unknown option"):
        decode_file(path, dependencies="x")


def test_a_graph_from_elsewhere(tmp_path):
    path, main = tmp_path / "graph.json", tmp_path / "l2_swimlane_records.json"
    path.write_text(json.dumps(graph({5: (4, -1, -1)})))
    (tmp_path / "deps.json").write_text(json.dumps(graph({5: (9, -1, -1)})))
    main.write_text(json.dumps(records([ROW], [CPU])))
    assert tasks(decode_file(main))[0] == ("func_9_j(t5)",)
    assert tasks(decode_file(main, deps=str(path)))[0] == ("func_4_e(t5)",)


def test_raw_records_stay_reachable():
    trace = golden("v3_spec_dummy", "l2")
    assert set(trace.records) == {
        "ascend.aicore_tasks",
        "ascend.aicpu_tasks",
        "ascend.aicpu_scheduler_phases",
        "ascend.aicpu_orchestrator_phases",
    }
    content = (GOLDEN / "v3_spec_dummy" / "l2_swimlane_records.json").read_bytes()
    listed = json.loads(content)
    rows = list(trace.records["ascend.aicore_tasks"].rows())
    assert [list(row.values())[2:8] for row in rows] == listed["aicore_tasks"]
    assert [row["run_epoch"] for row in rows] == [None] * 6
    for row in rows:
        assert json.loads(content[row["offset"] : content.index(b"]", row["offset"]) + 1]) == list(row.values())[2:8]
    phases = list(trace.records["ascend.aicpu_scheduler_phases"].rows())
    flat = [phase for inner in listed["aicpu_scheduler_phases"] for phase in inner]
    assert [row["kind"] for row in phases] == [phase["kind"] for phase in flat]
    assert [row["pop_hit"] for row in phases] == [phase.get("pop_hit") for phase in flat]
    assert [[row[f"local_at_end_{i}"] for i in range(3)] for row in phases] == [p["local_at_end"] for p in flat]


def test_arrow_takes_every_table():
    import pyarrow

    trace = golden("v3_spec_dummy", "chip")
    for name, table in trace.tables().items():
        assert pyarrow.table(table).num_rows == len(table), name
    tables = pyarrow.table(trace.details["ascend_tasks"])
    assert str(tables.schema.field("task_id").type) == "uint64"
    assert tables.column("may_be_staged").to_pylist() == [False, False, True, False, False, False]
    none = pyarrow.table(golden("v2_chain", "l2").details["ascend_tasks"])
    assert none.column("propagation_ns").to_pylist() == [None] * 3


def test_sql_gives_the_averages_of_the_simulator(tmp_path, capsys):
    from lanescope.cli import main

    for seed, format_version in enumerate(("v3", "v3c")):
        simulation = simulated(seed, format_version=format_version, tasks=300, aic=4, aiv=8)
        for name, content in simulation.files.items():
            (tmp_path / name).write_bytes(content)
        path = str(tmp_path / next(iter(simulation.files)))
        assert main(["sql", "--csv", path, "select avg(propagation_ns), avg(local_setup_ns) from ascend_tasks"]) == 0
        _, figures = capsys.readouterr().out.splitlines()
        totals = simulation.truth["totals"]
        assert [float(text) for text in figures.split(",")] == [totals["propagation_ns"], totals["local_setup_ns"]]


def test_every_stat_is_declared_once_and_documented():
    names = [stat.name for stat in STATS]
    assert len(set(names)) == len(names)
    assert all(stat.doc and stat.name.startswith("ascend_") for stat in STATS)


def test_a_core_whose_records_stop_is_not_recorded_any_longer():
    """Nothing tells that a single stream is complete: core 1 stops early, core 2 has no record at all."""
    rows = [row(0, 5, 1, 100, 200), row(1, 6, 1, 110, 150), row(0, 7, 2, 300, 400)]
    trace = decode(records(rows, level=1, cores=("aic", "aiv", "aiv")))
    assert recorded(trace) == {"AIC_0": (400 - 98) * 20, "AIV_1": (150 - 98) * 20}


def test_a_core_on_which_both_streams_end_alike_was_recorded_to_the_end():
    rows = [row(0, 5, 1, 100, 200), row(1, 6, 1, 110, 150), row(0, 7, 2, 300, 400)]
    dispatches = [[0, 1, 90, 210], [1, 1, 95, 160], [0, 2, 290, 410]]
    trace = decode(records(rows, dispatches, cores=("aic", "aiv", "aiv")))
    end = (410 - 90) * 20
    assert recorded(trace) == recorded(trace, "flight") == {"AIC_0": end, "AIV_1": end, "AIV_2": end}


@pytest.mark.parametrize("lost", ["execution", "dispatch"])
def test_a_core_on_which_the_streams_end_differently_ends_with_its_evidence(lost):
    rows = [row(0, 5, 1, 100, 200), row(1, 6, 1, 110, 150), row(0, 7, 2, 300, 400), row(1, 8, 2, 200, 220)]
    dispatches = [[0, 1, 90, 210], [1, 1, 95, 160], [0, 2, 290, 410], [1, 2, 190, 230]]
    (rows if lost == "execution" else dispatches).pop()
    last = {"execution": 230, "dispatch": 220}[lost]
    assert recorded(decode(records(rows, dispatches))) == {"AIC_0": (410 - 90) * 20, "AIV_1": (last - 90) * 20}


def test_a_scheduler_whose_phases_stop_is_not_recorded_any_longer():
    phases = [[{"kind": "scan", "start_cycles": 95, "end_cycles": 120}], [{"start_cycles": 95, "end_cycles": 300}], []]
    trace = decode(records([ROW], [CPU], level=3, aicpu_scheduler_phases=phases))
    assert recorded(trace, "scheduler") == {"Sched_0": (120 - 90) * 20, "Sched_1": (300 - 90) * 20}


@pytest.mark.parametrize("options", [{}, {"host": True, "graphs": 0.2}, {"pmu": True, "scopes": True, "log": True}])
def test_a_trace_without_its_records_keeps_nothing_else_of_the_files(options):
    gc.collect()  # of other tests
    trace = decode_simulated(simulated(format_version="v3c", tasks=60, **options))
    assert trace.records["ascend.aicore_tasks"]
    trace = trace.without_records()
    gc.collect()
    assert not trace.records
    assert [kept for kept in gc.get_objects() if isinstance(kept, Interpreter | Records | Deps)] == []
    assert all(table.values(name) is not None for table in trace.tables().values() for name in table.spec.names)

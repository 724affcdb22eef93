"""Every format version by its shape: what each says, what it lacks, and what its stamps mean."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.ascend.helpers import (
    CASES,
    GOLDEN,
    decode,
    edges,
    golden,
    graph,
    interpret,
    lane,
    read,
    read_cut,
    recorded,
    records,
    simulated,
    stats,
    tasks,
)
from devices.ascend.test_encode import assert_same
from effort import cuts
from lanescope import cli
from lanescope.analysis import check
from lanescope.devices.ascend.formats.encode import encode_records
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, PHASES, RECORDS, SUBMITS
from lanescope.devices.ascend.formats.v1 import as_v1
from lanescope.devices.ascend.formats.versions import FORMAT_VERSIONS, Erratum
from lanescope.errors import InputError
from lanescope.pipeline import session
from lanescope.source import CERTAIN

FIXTURES = Path(__file__).parent / "fixtures"
FILES = {
    "v1a": FIXTURES / "v1a" / "l2_perf_records.json",
    "v1b": FIXTURES / "v1b" / "l2_perf_records.json",
    "v1c": FIXTURES / "v1c" / "l2_swimlane_records.json",
    "v2": GOLDEN / "v2_chain" / "l2_swimlane_records.json",
    "v3": GOLDEN / "v3_spec_dummy" / "l2_swimlane_records.json",
    "v3c": GOLDEN / "v3_spec_dummy" / "chip_swimlane_records.json",
    "v4": FIXTURES / "v4" / "chip_swimlane_records.json",
}
OLD = ("v1a", "v1b", "v1c")


def run_of(trace):
    (run,) = trace.details["ascend_runs"].rows()
    return run


def fixture(name):
    return json.loads(FILES[name].read_bytes())


# --- all of them ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_each_is_recognised_and_read(name):
    (first, *_) = session.detect(FILES[name])
    assert (first.family, first.format, first.score >= CERTAIN) == ("ascend", name, True)
    trace = session.open(FILES[name])
    assert run_of(trace)["format_version"] == name
    # Nobody has shown us such a file: its rows are counted.
    is_published = FORMAT_VERSIONS[name].status == "published"
    assert is_published == (name in (*OLD, "v4"))
    assert (stats(trace).get("unverified_encoding", 0) > 0) == is_published
    assert all(row["lost"] == 0 for row in trace.accounting.rows() if row["scope"] == "input")


@pytest.mark.parametrize("name", FILES)
def test_one_command_for_each(name, tmp_path, capsys):
    assert cli.main(["info", str(FILES[name])]) == 0
    assert f"format     {name} (ascend), " in capsys.readouterr().out
    assert cli.main(["convert", str(FILES[name]), "-o", str(tmp_path / "run.pftrace")]) == 0
    assert (tmp_path / "run.pftrace").stat().st_size > 0
    assert cli.main(["check", str(FILES[name]), "--fail-on", "never"]) == 0


@pytest.mark.parametrize("name", FILES)
def test_every_truncated_file_is_read_as_far_as_it_goes(name):
    content = FILES[name].read_bytes().rstrip()
    whole = read(content)
    found = [read_cut(content, size, whole) for size in (0, *cuts(len(content), 3), len(content) - 1)]
    assert found[0] is None
    assert found[-1] is not None  # nothing but the last bracket is missing


def test_only_what_a_format_version_has_is_known():
    unknown = {
        name: [row["receive_ticks"] for row in session.open(path).details["ascend_tasks"].rows()]
        for name, path in FILES.items()
    }
    assert {name for name, stamps in unknown.items() if all(stamp is None for stamp in stamps)} == {*OLD, "v2"}
    assert {name for name, known in FORMAT_VERSIONS.items() if not known.has_receive} == {*OLD, "v2"}
    for name, path in FILES.items():
        rows = session.open(path).details["ascend_tasks"].rows()
        is_known = [(row["reg_task_id"] is not None, row["run_epoch"] is not None) for row in rows]
        assert set(is_known) == {(name not in OLD, name == "v4")}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("v1a", "dispatch_per_batch end_after_fin joined microseconds slot_not_reserved substeps"),
        ("v2", "depth_copied dispatch_per_batch end_after_fin half_ids slot_not_reserved"),
        ("v3", "depth_copied dispatch_per_batch end_after_fin half_ids receive_at_doorbell slot_not_reserved"),
        ("v3c", "dispatch_per_batch end_before_fin receive_at_pickup"),
        ("v4", "counter_per_run dispatch_per_batch end_before_fin receive_at_pickup streams_left_out"),
    ],
)
def test_errata_are_named(name, says):
    assert run_of(session.open(FILES[name]))["errata"] == says


def test_every_format_version_has_one_meaning_of_the_end():
    for known in FORMAT_VERSIONS.values():
        assert len(known.errata & {Erratum.END_AFTER_FIN, Erratum.END_BEFORE_FIN}) == 1


def test_lists_of_two_format_versions_are_refused():
    old, new = fixture("v1c"), fixture("v4")
    with pytest.raises(InputError, match="more than one format version"):
        read({**old, "aicore_tasks": [[0, 1, 1, 10, 20, 1]]})
    with pytest.raises(InputError, match="more than one format version"):
        read({**new, "aicpu_scheduler_phases": [[{"kind": "x", "start_cycles": 1, "end_cycles": 2}]]})
    with pytest.raises(InputError, match="more than one format version"):
        read({**new, "aicpu_tasks": [[0, 1, 1, 2]]})


# --- v1 ---------------------------------------------------------------------------------------------------------------


def test_v1_times_are_those_of_the_file():
    trace = session.open(FILES["v1a"])
    assert trace.time.epoch_kind == "first_event"
    assert tasks(trace, "dispatch_ts", "receive_ts", "finish_ts", "duration_ns", "head_ns", "tail_ns") == [
        ("task(t0)", 1000, None, 8000, 5000, 1500, 500),
        ("task(r1t1)", 1000, None, 9480, 6000, 2020, 460),
        ("task(r1t2)", 10_000, None, 12_620, 1000, 1000, 620),
    ]
    assert lane(trace, "AIV_2") == [("task", 3020, 6000)]
    assert lane(trace, "Sched_0") == [("dispatch", 900, 200), ("idle", 1100, 6800), ("complete", 7900, 1700)]
    assert trace.details["ascend_phases"]["pop_miss"].tolist() == [1, None, None, 0]
    assert trace.details["ascend_phases"].valid("pop_miss").tolist() == [True, False, False, True]


def test_v1a_steps_of_a_submit_keep_their_names():
    trace = session.open(FILES["v1a"])
    assert lane(trace, "Orch_0") == [("orch_sync", 0, 200), ("orch_insert", 200, 200), ("submit", 400, 300)]


def test_v1a_edges_stand_in_the_tasks():
    trace = session.open(FILES["v1a"])
    assert edges(trace) == [(0, 2, 7500, 11_000), (1, 2, 9020, 11_000)]
    assert (run_of(trace)["edges"], run_of(trace)["edges_repeated"]) == (2, 1)
    with_file = decode(fixture("v1a"), name="l2_perf_records.json", deps=graph({0: (1, -1, -1)}, [(0, 1)]))
    assert run_of(with_file)["edges"] == 1


def test_v1_level_1_knows_no_dispatch():
    trace = session.open(FILES["v1b"])
    assert tasks(trace, "dispatch_ts", "finish_ts", "tail_ns") == [
        ("task(t7)",) + (None,) * 3,
        ("task(t8)",) + (None,) * 3,
    ]
    assert lane(trace, "AIV_1") == [("task", 0, 4250), ("task", 4300, 700)]
    assert "ascend_aicore_unmatched" not in stats(trace)


def test_v1_a_dispatch_of_zero_is_the_base_where_it_was_finished():
    trace = session.open(FILES["v1c"])
    assert tasks(trace, "dispatch_ts", "finish_ts") == [("func_5_f(t1)", 0, 1900), ("func_6_g(t2)", None, None)]
    assert stats(trace)["ascend_aicore_unmatched"] == 1


def test_v1_rows_that_repeat_are_counted_once():
    content = fixture("v1a")
    content["tasks"].append(content["tasks"][0])
    trace = decode(content, name="l2_perf_records.json")
    assert len(trace.details["ascend_tasks"]) == 3
    assert stats(trace)["ascend_row_duplicate"] == 2  # in both streams that it represents
    assert "ascend_missing_dispatch" not in stats(trace)


@pytest.mark.parametrize("fanout", ["x", {"a": 1}, [1, "2"], [1.5], [[1]], 7])
def test_v1_fanout_that_is_none(fanout):
    content = fixture("v1a")
    content["tasks"][0]["fanout"] = fanout
    with pytest.raises(InputError, match="fanout"):
        read(content)


@pytest.mark.parametrize("value", [-1.0, 1.2345, 1e3, "1.0", True, None, [1.0], 1e300])
def test_v1_times_that_cannot_be_are_not_understood(value):
    content = fixture("v1b")
    content["tasks"][0]["start_time_us"] = value
    text = json.dumps(content).replace("1000.0", "1e3") if value == 1e3 else json.dumps(content)
    trace = decode(text.encode(), name="l2_perf_records.json")
    assert stats(trace)["ascend_invalid_row"] == 1
    assert len(trace.details["ascend_tasks"]) == 1


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=5), st.integers(0, 3))
def test_v1_decimals_are_exact(stamps, decimals):
    unit = 10 ** (3 - decimals)
    texts = [f"{ns // 1000}.{ns % 1000:03d}"[: None if decimals == 3 else decimals - 3] for ns in stamps]
    texts = [text.removesuffix(".") for text in texts]
    rows = ",".join(f'{{"task_id":1,"core_id":0,"start_time_us":{text},"end_time_us":{text}}}' for text in texts)
    found = read(f'{{"l2_perf_level":1,"tasks":[{rows}]}}'.encode())[AICORE]
    assert (found["start_cycles"] - 1).tolist() == [ns // unit * unit for ns in stamps]


# --- v4 ---------------------------------------------------------------------------------------------------------------


def test_v4_runs_of_one_file_are_told_apart():
    trace = session.open(FILES["v4"])
    assert tasks(trace, "run_epoch", "reg_task_id", "dispatch_ticks", "finish_ticks", "ready_ticks") == [
        ("func_3_d(r0t5)", 1, 1, 1_000_050, 1_000_330, None),
        ("func_3_d(r0t5)", 2, 1, 1_002_040, 1_002_330, None),
        ("func_4_e(r0t6)", 1, 1, 1_000_350, 1_000_650, 1_000_300),
        ("func_4_e(r0t6)", 2, 1, 1_002_350, 1_002_650, 1_002_300),
    ]
    assert not {"ascend_key_duplicate", "ascend_missing_dispatch", "ascend_aicore_unmatched"} & set(stats(trace))
    # The base is the first dispatch phase, 1000040: each edge once a run, within its run.
    ns = [((stamp - 1_000_040) * 20) for stamp in (1_000_300, 1_000_390, 1_002_300, 1_002_390)]
    assert sorted(edges(trace))[:2] == [(5, 6, *ns[:2]), (5, 6, *ns[2:])]
    assert run_of(trace)["epochs"] == 2


def test_v4_streams_are_known_by_their_number():
    trace = session.open(FILES["v4"])
    phases = trace.details["ascend_phases"]
    assert phases["thread"].tolist() == [0, 0, 0, 2, 2]
    assert [row["pop_miss"] for row in phases.rows()] == [2, None, 5, None, None]
    assert [row["shared_end_aiv"] for row in phases.rows()] == [0, 1, 0, None, None]
    assert [name for name, *_ in lane(trace, "Sched_2")] == ["worksteal", "dummy_task"]
    assert phases["task_id"][4] == 9


def test_v4_what_the_schedulers_dropped_is_accounted_for():
    trace = session.open(FILES["v4"])
    rows = [row for row in trace.accounting.rows() if row["scope"] == "producer"]
    assert [(row["unit"].split()[-2], row["total"], row["decoded"], row["lost"]) for row in rows] == [
        ("0", 3, 3, 0),
        ("2", 6, 2, 4),
    ]
    assert {name: stats(trace)[name] for name in ("ascend_dropped", "ascend_unaccounted_records")} == {
        "ascend_dropped": 3,
        "ascend_unaccounted_records": 1,
    }
    (_, second) = trace.details["ascend_record_streams"].rows()
    assert (second["index"], second["dropped"], second["unaccounted"], second["is_truncated"]) == (2, 3, 1, True)


def test_v4_what_a_truncated_file_lacks_was_not_lost_by_the_schedulers(tmp_path):
    content = FILES["v4"].read_bytes()
    second = content.index(b'"records"', content.index(b'"scheduler_id": 2'))
    path = tmp_path / FILES["v4"].name
    path.write_bytes(content[: second + 12])
    trace = session.open(path)
    assert stats(trace)["truncated"] == 1
    assert "ascend_unaccounted_records" not in stats(trace)
    told = {row["index"]: row for row in trace.details["ascend_record_streams"].rows()}
    missing = sum(row["unaccounted"] for row in told.values())
    assert stats(trace)["ascend_records_cut"] == missing > 0
    lost = sum(row["lost"] for row in trace.accounting.rows() if row["scope"] == "producer")
    assert lost == sum(row["dropped"] for row in told.values())


def test_v4_bounded_clock():
    trace = session.open(FILES["v4"])
    assert trace.time.epoch_kind == "host_monotonic"
    assert trace.time.epoch_ns == 500_000_000 + 40 * 20
    (anchor,) = [row for row in trace.anchors.rows() if row["ticks"] == 1_000_000]
    assert (anchor["ts"], anchor["error_ns"]) == (-800, 4000)


@pytest.mark.parametrize(
    "change",
    [
        {"status": "unaligned"},
        {"host_anchor_ns": None},
        {"device_anchor_cycles": "x"},
        {"host_anchor_ns": 1 << 62},
        {"host_anchor_min_ns": 600_000_000},
        {"host_anchor_ns": 1, "host_anchor_min_ns": 1, "device_anchor_cycles": 1 << 40},
    ],
)
def test_v4_clocks_that_are_not_joined(change):
    content = fixture("v4")
    content["metadata"]["clock_alignment"] |= change
    assert decode(content).time.epoch_kind == "device"


def test_v4_host_builds_the_graph():
    trace = session.open(FIXTURES / "v4_host" / "chip_swimlane_records.json")
    assert tasks(trace, "effective_start_source", "local_setup_ticks", "may_be_staged") == [
        ("task(g3t2)", "receive", 400, None),
        ("task(p3)", "receive", 250, None),
    ]
    assert "receive_at_doorbell" in run_of(trace)["errata"]
    assert stats(trace)["ascend_host_clock_unaligned"] == 1


def test_v4_without_a_runtime():
    content = fixture("v4")
    del content["metadata"]["runtime"]
    assert stats(decode(content))["ascend_unknown_runtime"] == 1


def test_v4_metrics_that_name_no_record():
    content = fixture("v4")
    metrics = content["scheduler_records"]["streams"][0]["metrics"]
    metrics += [{"record_index": 3, "pop_hit": 5}, {"record_index": 0, "pop_hit": 6}]
    trace = decode(content)
    assert stats(trace)["ascend_metric_unmatched"] == 2
    assert trace.details["ascend_phases"]["pop_hit"].tolist() == [1, None, 1, None, None]
    content["scheduler_records"]["streams"][0]["records"].insert(0, "x")
    assert stats(decode(content))["ascend_metric_unmatched"] == 5


def test_v4_metrics_of_unknown_names_are_counted():
    content = fixture("v4")
    before = stats(decode(content))
    metrics = content["scheduler_records"]["streams"][0]["metrics"]
    metrics[0] |= {"claim_retries": 2, "spins": 1}
    assert stats(decode(content)) == before | {"ascend_unknown_key": 2}
    [finding] = [found for found in check.run(decode(content)) if found.stat == "ascend_unknown_key"]
    assert (finding.code, finding.severity) == ("LS003", "notice")


@pytest.mark.parametrize(
    ("capture", "is_complete"),
    [
        ({"committed": 1, "dropped": 0, "truncated": False}, True),
        ({"committed": 2, "dropped": 0, "truncated": False}, False),
        ({"committed": 1, "dropped": 1, "truncated": False}, False),
        ({"committed": 1, "dropped": 0, "truncated": True}, False),
        ({}, False),
    ],
)
def test_v4_schedulers_all_of_whose_records_arrived_were_recorded_to_the_end(capture, is_complete):
    content = fixture("v4")
    stream = content["scheduler_records"]["streams"][0]
    del stream["records"][1:]
    stream["capture"] = capture
    trace = decode(content)
    end = max(recorded(trace).values())
    ((_, ts, dur),) = lane(trace, "Sched_0")
    assert recorded(trace, "scheduler")["Sched_0"] == (end if is_complete else ts + dur)


def test_v4_streams_without_a_usable_number_stand_behind_the_others():
    content = fixture("v4")
    streams = content["scheduler_records"]["streams"]
    streams[0]["scheduler_id"] = 2
    streams[0]["producer"] = "aicore"
    streams.append({**streams[1], "scheduler_id": -4})
    assert sorted(set(decode(content).details["ascend_phases"]["thread"].tolist())) == [2, 3, 4]


@pytest.mark.parametrize(
    ("value", "lost"),
    [
        ({"streams": "x"}, 3),
        ({"streams": [1, "x"]}, 4),
        ({"more": 1, "streams": []}, 1),
        ({"streams": [{"records": 5}]}, 1),
    ],
)
def test_v4_streams_that_are_none_are_lost_to_the_byte(value, lost):
    trace = decode({**fixture("v4"), "scheduler_records": value})
    assert trace.accounting["lost"][0] == lost
    assert stats(trace)["ascend_unknown_section"] >= 1


def test_v4_a_hole_of_one_run_is_none_of_the_other():
    content = fixture("v4")
    content["aicore_tasks"] += [[0, 7, 4, 1000700, 1000800, 5, 1]]
    content["scheduler_tasks"]["records"] += [[0, 4, 1000690, 1000810, 1]]
    trace = decode(content)
    assert stats(trace)["ascend_missing_dispatch"] == 2


def test_more_runs_than_a_graph_may_have():
    # Each of many runs would bring all edges of a dense graph: they grow no faster than the file.
    side = 60
    edges_ = [(pred, side + succ) for pred in range(side) for succ in range(side)]
    rows = [
        [0, task, task, 1000 * epoch + task + 1, 1000 * epoch + task + 2, 0, epoch]
        for epoch in range(1, 40)
        for task in range(2 * side)
    ]
    content = records(rows, level=1, key="chip_swimlane_level", metadata={"runtime": "tensormap_and_ringbuffer"})
    trace = decode(content, deps=graph({}, edges_))
    assert len(trace.flows) <= len(edges_) + 16 * len(rows)
    assert stats(trace)["ascend_edges_omitted"] + run_of(trace)["edges"] == len(edges_) * 39


@pytest.mark.parametrize("case", CASES)
def test_format_versions_of_one_capture_agree(case):
    first, second = golden(case, "l2"), golden(case, "chip")
    assert tasks(first, "duration_ticks", "dispatch_ticks", "finish_ticks") == tasks(
        second, "duration_ticks", "dispatch_ticks", "finish_ticks"
    )


def test_readers_arrive_at_the_same_lists():
    for name in FILES:
        told = interpret(FILES[name].read_bytes())
        assert {told.aicore.layout, told.aicpu.layout, told.phases.layout, told.submits.layout} == {
            AICORE,
            AICPU,
            PHASES,
            SUBMITS,
        }


# --- written again ----------------------------------------------------------------------------------------------------


def same(first, second):
    for name in {**first.sections, **second.sections}:
        layout = next(layout for layout in RECORDS if layout.name == name)
        assert_same(first[layout], second[layout])


@pytest.mark.parametrize("name", FILES)
def test_what_is_written_reads_back(name):
    found = read(FILES[name].read_bytes())
    again = read(encode_records(found))
    assert (again.format_version, again.level_key, again.level) == (found.format_version, found.level_key, found.level)
    assert again.streams == found.streams
    same(found, again)


@pytest.mark.parametrize("key", ["version", "l2_perf_level", "l2_swimlane_level"])
@pytest.mark.parametrize("clock", [50_000_000, 1_000_000_000])
def test_a_counter_as_v1_wrote_it(key, clock):
    found = read(next(iter(simulated(3, tasks=80, format_version="v2", clock=clock).files.values())))
    old = read(encode_records(as_v1(found, key)))
    assert old.format_version == {"version": "v1a", "l2_perf_level": "v1b"}.get(key, "v1c")
    base = min(
        int(found[layout][name].min())
        for layout, name in ((AICPU, "dispatch_cycles"), (PHASES, "start_cycles"), (SUBMITS, "start_cycles"))
    )
    for column in ("start_cycles", "end_cycles"):
        stamps = found[AICORE][column]
        assert sorted(old[AICORE][column].tolist()) == sorted(((stamps - base) * (10**9 // clock) + 1).tolist())
    assert old[PHASES]["pop_hit"].tolist() == found[PHASES]["pop_hit"].tolist()


@pytest.mark.parametrize(("runtime", "role"), [("host_build_graph", "outer"), ("tensormap_and_ringbuffer", "inner")])
def test_v4_schedulers_on_cores_resolve_outside_of_other_phases(runtime, role):
    def phase(kind, start, end, loop):
        return {
            "start_cycles": start,
            "end_cycles": end,
            "run_epoch": 1,
            "loop_iter": loop,
            "kind": kind,
            "tasks_processed": 1,
        }

    listed = [phase("state_probe", 1000, 1100, 1), phase("complete", 1100, 1200, 1), phase("resolve", 1200, 1700, 1)]
    listed += [phase("idle", 1700, 1900, 2), phase("resolve", 1950, 1980, 3), phase("dispatch", 1900, 2000, 3)]
    content = records([[0, 1, 1, 900, 1150, 0, 1]], level=3, key="chip_swimlane_level", metadata={"runtime": runtime})
    content["scheduler_records"] = {
        "streams": [{"producer": "aicore", "scheduler_id": 0, "records": listed, "metrics": []}]
    }
    trace = decode(content)
    (thread,) = trace.details["ascend_threads"].rows()
    assert (thread["window_ticks"], thread["busy_ticks"], thread["idle_ticks"]) == (1000, 800, 200)
    phases = trace.details["ascend_phases"]
    names = trace.slices["name"][phases["slice_id"]]
    assert set(phases["role"][names == "resolve"].tolist()) == {role}

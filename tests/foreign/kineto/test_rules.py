"""Simulated runs against their truth: healthy ones have no finding, and each fault has its own."""

import json

import numpy as np
import pytest

import lanescope
from lanescope.analysis import check
from lanescope.errors import InputError, UsageError
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.foreign.kineto import decoder
from lanescope.foreign.kineto.analysis.breakdown import breakdown, device_work
from lanescope.foreign.kineto.formats import layout
from lanescope.pipeline import detection, sources
from lanescope.testing import assert_same


@pytest.fixture
def simulated(tmp_path):
    def simulated(seed=1, **options):
        family = registry.family("kineto")
        done = family.simulate(resolve_options(family.sim_options, options, what="simulator"), seed)
        ((name, content),) = done.files.items()
        (tmp_path / name).write_bytes(content)
        return lanescope.open(tmp_path / name), done.truth

    return simulated


@pytest.fixture
def written(tmp_path):
    def written(events, **members):
        path = tmp_path / "trace.json"
        path.write_text(json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": 0, **members, "traceEvents": events}))
        return lanescope.open(path)

    return written


def row(name, category, ts, dur, pid=0, tid=7, **args):
    return {"ph": "X", "cat": category, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(ts, dur, correlation, **changes):
    return row("k", "kernel", ts, dur, correlation=correlation) | changes


def call(ts, dur, correlation, name="cudaLaunchKernel"):
    return row(name, "cuda_runtime", ts, dur, pid=100, tid=100, correlation=correlation)


def found(trace):
    return {finding.code: finding for finding in check.run(trace)}


def stats(trace):
    return {stat["name"]: stat["count"] for stat in trace.stats.rows()}


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("options", [{}, {"absolute": True}, {"ranks": 1, "python": False, "streams": 3}])
def test_simulated_runs_are_read_as_they_were_and_are_healthy(simulated, seed, options):
    trace, truth = simulated(seed, **options)
    assert trace.time.epoch_ns == truth["epoch_ns"]
    lanes = trace.tracks.values("name")[trace.slices.values("track_id")]
    threads = [lane.removeprefix("stream ").removeprefix("thread ").split(" ")[0] for lane in lanes.tolist()]
    names, categories = (trace.slices.column(name).texts.tolist() for name in ("name", "category"))
    ts, dur = (trace.slices.values(name).tolist() for name in ("ts", "dur"))
    rows = zip(names, ts, dur, threads, categories, strict=True)
    assert (
        sorted([name, ts, dur, thread] for name, ts, dur, thread, category in rows if category != "Trace")
        == truth["rows"]
    )
    busy = dict.fromkeys(truth["busy_ns"], 0) | {
        key: row[f"{'busy' if key == 'all' else key}_ns"] for row in breakdown(trace).rows() for key in truth["busy_ns"]
    }
    assert busy == truth["busy_ns"]
    assert len(device_work(trace).row) == truth["work"]
    assert np.count_nonzero(trace.flows.column("kind").texts == "submit") == truth["launches"]
    # Absolute times with decimals are more than a float64 holds.
    assert {code: finding.severity for code, finding in found(trace).items()} == (
        {"LS305": "notice"} if options.get("absolute") else {}
    )


@pytest.mark.parametrize(
    ("fault", "code"),
    [("overlaps", "KINETO101"), ("clamped", "KINETO102"), ("early", "KINETO201"), ("fast_copies", "KINETO401")],
)
@pytest.mark.parametrize("count", [1, 3])
def test_faults_are_found(simulated, fault, code, count):
    trace, truth = simulated(5, **{fault: count})
    assert truth["faults"] == {fault: count}
    findings = [finding for finding in check.run(trace) if finding.code == code]
    assert sum(finding.count for finding in findings) == count


def test_overlap_blames_the_row_that_is_too_long(simulated):
    trace, _ = simulated(5, overlaps=2)
    rows = [each for finding in check.run(trace, select=["KINETO101"]) for each in finding.evidence.ids.tolist()]
    assert len(rows) == 2
    assert (trace.slices.values("dur")[rows] > 40_000_000).all()


def test_launches_at_the_start_without_execution_are_a_warning(simulated):
    trace, _ = simulated(1, unexecuted=8)
    finding = found(trace)["KINETO202"]
    assert (finding.count, finding.severity) == (8, "warning")
    assert "start of the record" in finding.detail
    few, _ = simulated(1, unexecuted=2)
    assert found(few)["KINETO202"].severity == "notice"


def test_device_rows_without_a_launch_are_counted(simulated):
    trace, _ = simulated(1, unlaunched=4)
    assert stats(trace)["kineto_unlaunched"] == 4
    assert found(trace)["LS401"].severity == "notice"


def test_the_log_of_the_profiler_is_quoted(simulated):
    trace, _ = simulated(1, log_error=True)
    assert "a simulated one" in found(trace)["KINETO001"].detail


def test_unreadable_events_are_lost_and_no_others(simulated):
    whole, _ = simulated(1)
    trace, _ = simulated(1, unreadable=3)
    assert stats(trace)["kineto_unreadable_event"] == 3
    assert len(trace.slices) == len(whole.slices)
    account, _ = trace.accounting.rows()
    assert account["lost"] > 0
    assert account["lost"] + account["decoded"] == account["total"]


def test_a_torn_file_is_read_to_the_last_whole_event(simulated):
    trace, _ = simulated(1, torn=True)
    assert stats(trace)["truncated"] == 1
    assert "kineto_unreadable_event" not in stats(trace)
    assert len(trace.slices) > 100
    assert found(trace)["LS002"].severity == "warning"


def test_times_without_a_base_have_no_date(simulated):
    trace, _ = simulated(1, base=False)
    assert trace.time.epoch_kind == "first_event"
    assert found(trace)["LS305"].severity == "warning"
    assert stats(trace)["kineto_missing_base"] == 1


def test_a_base_that_is_no_multiple_of_three_months_is_suspect(written):
    good = written([row("a", "cpu_op", 1, 1)], baseTimeNanoseconds=200 * layout.BASE_STEP)
    assert "kineto_irregular_base" not in stats(good)
    assert good.time.epoch_ns == 200 * layout.BASE_STEP + 1000
    bad = written([row("a", "cpu_op", 1, 1)], baseTimeNanoseconds=200 * layout.BASE_STEP + 1)
    assert stats(bad)["kineto_irregular_base"] == 1


def test_times_that_floats_cannot_hold_are_counted(tmp_path):
    path = tmp_path / "trace.json"
    text = (
        '{"schemaVersion":1,"deviceProperties":[],"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","pid":1,"tid":1,'
    )
    path.write_text(text + '"ts":1700000000000000.001,"dur":1},{"ph":"X","cat":"cpu_op","name":"b","pid":1,"tid":1,'
                    '"ts":1700000000000001.500,"dur":1}]}')  # fmt: skip
    trace = lanescope.open(path)
    assert stats(trace)["kineto_inexact_float"] == 1
    assert trace.slices.values("ts").tolist() == [0, 1499]
    assert trace.time.epoch_ns == 1_700_000_000_000_000_001


#: Overlaps of 4 us and of 100 us of the first row with the second one.
SHORT, LONG = 6, 100


@pytest.mark.parametrize(
    ("rows", "is_fault"),
    [
        ([kernel(0, 10, 1), kernel(10 - 4, 10, 2)], False),
        ([kernel(0, 200, 1), kernel(100, 200, 2)], True),
        ([kernel(0, 200, 1), kernel(100, 200, 1)], False),
        ([kernel(0, 200, 1), kernel(0, 200, 2)], False),
        ([kernel(0, 200, 1), kernel(100, 200, 2, tid=8)], False),
    ],
)
def test_legal_overlaps_on_a_stream(written, rows, is_fault):
    trace = written([*rows, *(call(-20, 1, number) for number in (1, 2))])
    assert ("KINETO101" in found(trace)) == is_fault
    assert "LS101" not in found(trace)


def test_waits_that_returned_before_the_device_was_done(written):
    events = [call(0, 5, 1), kernel(80, 100, 1), call(20, 100, 2, "cudaDeviceSynchronize")]
    detail = found(written(events))["KINETO201"].detail
    assert (
        detail
        == "1 rows end after a call returned that waited for them: a shift of the device clock by -60000 ns removes all"
    )
    early = [call(100, 5, 3), kernel(95, 3, 3)]
    assert "no constant shift" in found(written([*events, *early]))["KINETO201"].detail
    assert "KINETO201" not in found(
        written([call(0, 5, 1), kernel(10, 100, 1), call(20, 90, 2, "cudaDeviceSynchronize")])
    )


def test_blocking_copies_to_the_host(written):
    copy = kernel(10, 100, 1, cat="gpu_memcpy", name="Memcpy DtoH (Device -> Pageable)")
    assert found(written([call(0, 20, 1, "hipMemcpyWithStream"), copy]))["KINETO201"].count == 1
    assert "KINETO201" not in found(written([call(0, 20, 1, "cudaMemcpyAsync"), copy]))
    host = copy | {"name": "Memcpy HtoD (Pageable -> Device)"}
    assert "KINETO201" not in found(written([call(0, 20, 1, "hipMemcpyWithStream"), host]))


def test_one_launch_of_several_rows(written):
    two = [kernel(10, 5, 1), kernel(20, 5, 1)]
    assert found(written([call(0, 5, 1), *two]))["KINETO203"].count == 2
    assert "KINETO203" not in found(written([call(0, 5, 1, "cudaGraphLaunch"), *two]))


def test_bandwidth_that_contradicts_size_and_time(written):
    def copied(rate, dur=10.001):
        return written([call(0, 5, 1), row("Memcpy DtoD", "gpu_memcpy", 10, dur, correlation=1, bytes=10_000,
                                           **{"memory bandwidth (GB/s)": rate})])  # fmt: skip

    assert "KINETO401" not in found(copied(1.0))
    assert "bandwidth that the producer gives" in found(copied(2.0))["KINETO401"].detail
    # Of 10 us in whole microseconds anything from 9 to 11 us may be true.
    assert "KINETO401" not in found(copied(1.1, dur=10))


def test_threads_have_three_lanes(written):
    trace = written(
        [
            row("f", "python_function", 0, 10, pid=100, tid=100),
            row("step", "user_annotation", 1, 20, pid=100, tid=100),
            row("op", "cpu_op", 2, 3, pid=100, tid=100),
            call(3, 1, 1),
        ]
    )
    lanes = trace.tracks.values("name")[trace.slices.values("track_id")].tolist()
    assert lanes == ["thread 100 Python", "thread 100 annotations", "thread 100", "thread 100"]
    assert set(trace.tracks.values("nesting")[trace.slices.values("track_id")].tolist()) == {"nested"}
    assert set(found(trace)) == {"LS404"}  # nothing names the thread


def test_crossing_host_rows_are_noticed_and_kept(written):
    trace = written([row("a", "cpu_op", 0, 10, pid=1, tid=1), row("b", "cpu_op", 5, 10, pid=1, tid=1)])
    assert found(trace)["KINETO103"].count == 1
    assert trace.slices.values("dur").tolist() == [10_000, 10_000]


@pytest.mark.parametrize(
    ("event", "stat"),
    [
        ({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": "soon", "dur": 1}, "kineto_missing_time"),
        ({"ph": "B", "name": "a", "pid": 1, "tid": 1, "ts": 1}, "kineto_unknown_phase"),
        ({"ph": "C", "name": "a", "pid": 1, "ts": 1, "args": {"": "x"}}, "kineto_odd_counter"),
        ({"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1}, "kineto_unfinished"),
        (row("a", "cpu_op", 1, -2, pid=1), "kineto_negative_duration"),
        (row("a", "cpu_op", 1.00004, 2, pid=1), "kineto_rounded_time"),
        (row("a", "new_category", 1, 2, pid=1), "kineto_unknown_category"),
        (kernel(1, 2, 1) | {"args": {"stream": "seven"}}, "kineto_odd_argument"),
        (
            {"ph": "s", "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 1, "tid": 1, "ts": 1},
            "kineto_unmatched_backward",
        ),
        (row("\ud800", "cpu_op", 1, 2, pid=1), "kineto_damaged_text"),
    ],
)
def test_what_the_producer_never_writes_is_counted(written, event, stat):
    sound = row("sound", "cpu_op", 0, 1, pid=9, tid=9)
    assert stat not in stats(written([sound]))
    trace = written([sound, event])
    assert stats(trace)[stat] == 1
    assert len(trace.slices) >= 1


def test_repeated_calls_and_flows_without_rows_are_counted(written):
    flows = [
        {"ph": phase, "id": 1, "cat": "fwdbwd", "name": "fwdbwd", "pid": 1, "tid": 1, "ts": ts}
        for phase, ts in (("s", 1), ("f", 5))
    ]
    trace = written([call(0, 1, 1), call(3, 1, 1), kernel(10, 1, 1), *flows, row("a", "cpu_op", 5, 1, pid=1, tid=1)])
    counts = stats(trace)
    assert (counts["kineto_repeated_call"], counts["kineto_unplaced_flow"]) == (1, 1)
    submit, dependency = trace.flows.rows()
    assert (submit["src_slice_id"], submit["dst_slice_id"]) == (0, 2)
    assert (dependency["src_slice_id"], dependency["dst_slice_id"]) == (None, 3)


def test_a_file_without_rows_is_empty(written):
    assert stats(written([]))["kineto_empty"] == 1
    assert found(written([]))["LS004"].severity == "warning"


def test_metadata_that_is_no_json_is_kept_as_text(tmp_path):
    path = tmp_path / "trace.json"
    path.write_text('{"schemaVersion": 1, "deviceProperties": [], "odd": [1 2], "traceEvents": [], "odd": {]}')
    trace = lanescope.open(path)
    assert stats(trace)["kineto_unreadable_bytes"] > 0
    path.write_text('{"schemaVersion": 1, "deviceProperties": [], "odd": [1 2], "traceEvents": []}')
    trace = lanescope.open(path)
    assert stats(trace)["kineto_unreadable_metadata"] == 1
    assert {row["key"]: row["value"] for row in trace.details["kineto_metadata"].rows()}["odd"] == "[1 2]"


def test_memory_and_other_counters(written):
    memory = {
        "ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": 1, "tid": 1, "ts": 2,
        "args": {"Total Allocated": 8, "Total Reserved": 16, "Device Id": 0, "Device Type": 1, "Bytes": 8},
    }  # fmt: skip
    counter = {
        "ph": "C",
        "cat": "hardware_counters",
        "name": "busy",
        "pid": "GPU 0 Counters",
        "ts": 3,
        "args": {"": 0.5},
    }
    trace = written([kernel(0, 1, 1), memory, counter])
    tracks = trace.tracks
    found = [
        (tracks.values("name")[track], tracks.values("name")[tracks.values("parent_id")[track]], value)
        for track, value in zip(trace.counters.values("track_id"), trace.counters.values("value").tolist(), strict=True)
    ]
    assert found == [
        ("allocated memory", "device 0", 8.0),
        ("reserved memory", "device 0", 16.0),
        ("busy", "process GPU 0 Counters", 0.5),
    ]


def test_what_is_no_such_file_is_refused_in_one_line(tmp_path):
    path = tmp_path / "trace.json"
    for text, words in (
        ("[1, 2", "no list|unrecognized|contains"),
        ("hello", "is not JSON"),
        ('{"a": 1}', "contains no list"),
    ):
        path.write_text(text)
        if text.startswith("["):
            trace = lanescope.open(path, family="kineto")
            assert len(trace.slices) == 0
            continue
        with pytest.raises(InputError, match=words) as raised:
            lanescope.open(path, family="kineto")
        assert raised.value.hint


def test_summaries_of_traces_without_devices_are_refused(written):
    with pytest.raises(UsageError, match="no kernels or copies"):
        breakdown(written([row("a", "cpu_op", 0, 1)]))


def test_waits_on_one_of_several_devices_are_judged_by_the_row_of_the_wait(written):
    events = [
        *(call(0, 5, 1), kernel(10, 15, 1, pid=0)),
        *(call(6, 5, 2), kernel(80, 100, 2, pid=1)),
        call(20, 100, 3, "cudaDeviceSynchronize"),
    ]
    assert "KINETO201" not in found(written(events))  # nothing says which device it waits for
    wait = row("Device Sync", "cuda_sync", 20, 100, pid=0, tid=-1, correlation=3)
    assert "KINETO201" not in found(written([*events, wait]))
    detail = found(written([*events, wait | {"pid": 1}]))["KINETO201"].detail
    assert detail.startswith("1 rows end after a call returned that waited for them")


def test_rows_on_another_stream_or_device_than_their_arguments_name(written):
    def lanes(**args):
        one = kernel(10, 5, 1)
        return stats(written([call(0, 5, 1), one | {"args": {**one["args"], **args}}])).get("kineto_other_lane", 0)

    assert [lanes(), lanes(stream=7, device=0), lanes(stream=8), lanes(device=1), lanes(stream=8, device=1)] == [
        *(0, 0, 1, 1, 1)
    ]
    # Streams of calls, and of other devices, have nothing to do with their lane.
    assert not stats(written([call(0, 5, 1) | {"args": {"correlation": 1, "stream": 3}}])).get("kineto_other_lane")
    assert not stats(written([row("r", "mtia_ccp_events", 0, 5, stream=3)])).get("kineto_other_lane")


def test_a_duration_that_the_phase_does_not_have(written):
    assert stats(written([kernel(0, 5, 1) | {"ph": "i"}]))["kineto_odd_duration"] == 1
    assert "kineto_odd_duration" not in stats(written([kernel(0, 5, 1)]))


def test_launch_configurations_that_the_device_contradicts(written):
    def launched(**changes):
        args = {"device": 0, "grid": [216, 1, 1], "block": [64, 2, 1], "blocks per SM": 2, "warps per SM": 8.0}
        args |= {"est. achieved occupancy %": 50, **changes}
        device = {"id": 0, "numSms": 108, "warpSize": 32}
        return found(
            written([call(0, 5, 1), row("k", "kernel", 10, 5, correlation=1, **args)], deviceProperties=[device])
        )

    assert "KINETO402" not in launched()
    changes = ({"grid": [217, 1, 1]}, {"block": [64, 3, 1]}, {"blocks per SM": 2.1}, {"warps per SM": 9})
    for change in (*changes, {"est. achieved occupancy %": 101}):
        assert launched(**change)["KINETO402"].count == 1, change
    assert "KINETO402" not in launched(device=3, grid=[217, 1, 1])  # of which nothing is known


def test_groups_that_contradict_their_sizes(written):
    def run(rank=1, world=2, ranks=(0, 1), size=2, text="[0, 1]"):
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "nccl", "pg_size": size, "ranks": ranks}
        info = {"rank": rank, "world_size": world, "pg_config": [group]}
        args = {"Collective name": "allreduce", "Group size": 2, "Process Group Ranks": text}
        return found(written([row("k", "kernel", 0, 5, **args)], distributedInfo=info))

    assert "KINETO403" not in run()
    assert "KINETO403" not in run(text="[0, 1, 2, ...]")
    for changed in ({"rank": 2}, {"world": 1}, {"size": 3}, {"ranks": (0, 2)}, {"text": "[0]"}):
        assert "KINETO403" in run(**changed), changed


def test_collectives_of_other_ranks_than_their_group(written):
    def run(name="0", text="[0, 1]"):
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "nccl", "pg_size": 2, "ranks": [0, 1]}
        info = {"rank": 1, "world_size": 4, "pg_config": [group]}
        args = {"Collective name": "allreduce", "Group size": 2, "Process Group Name": name}
        rows = [row("k", "kernel", 0, 5, **args, **{"Process Group Ranks": each}) for each in ("[0, 1]", text)]
        rows[1]["ts"] = 7
        return found(written(rows, distributedInfo=info))

    assert "KINETO403" not in run()
    assert "KINETO403" not in run(text="[1, 0]")
    assert "KINETO403" not in run(name="7", text="[2, 3]")  # of which nothing is known
    assert run(text="[2, 3]")["KINETO403"].count == 1


def test_collectives_that_call_their_group_otherwise(written):
    def run(text, name="0"):
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": "nccl", "pg_size": 2, "ranks": [0, 1]}
        info = {"rank": 1, "world_size": 4, "pg_config": [group]}
        args = {"Collective name": "allreduce", "Process Group Name": name, "Process Group Description": text}
        return found(written([row("k", "kernel", 0, 5, **args)], distributedInfo=info))

    for text, name in (("default_pg", "0"), ("", "0"), ("pipeline", "7")):
        assert "KINETO403" not in run(text, name)
    assert (run("pipeline")["KINETO403"].count, run("pipeline")["KINETO403"].severity) == (1, "notice")


def test_device_rows_of_another_graph_than_their_launch(written):
    def run(*graphs):
        rows = [call(0, 5, 1, "cudaGraphLaunch"), call(6, 2, 2, "cudaGraphLaunch")]
        for at, (correlation, graph) in enumerate(graphs):
            args = {} if graph is None else {"graph id": graph}
            rows.append(row("k", "kernel", 10 + 9 * at, 5, correlation=correlation, **args))
        return found(written(rows))

    assert "KINETO205" not in run((1, 4), (1, 4), (2, 5), (1, None), (9, 6))
    finding = run((1, 4), (1, 4), (1, 5), (2, 5))["KINETO205"]
    assert (finding.count, finding.severity, finding.evidence.ids.tolist()) == (1, "notice", [4])
    assert run((1, 5), (1, 4), (2, 5))["KINETO205"].evidence.ids.tolist() == [2]


def test_device_rows_of_another_operator_than_their_call(written):
    def run(of_call, of_row):
        rows = [call(0, 5, 1), row("k", "kernel", 10, 5, correlation=1)]
        for each, number in zip(rows, (of_call, of_row), strict=True):
            if number is not None:
                each["args"]["External id"] = number
        return found(written(rows))

    assert run(3, 4)["KINETO204"].count == 1
    for same in ((3, 3), (3, None), (None, 3), (None, None)):  # absent means that nothing is linked
        assert "KINETO204" not in run(*same)


def test_batches_of_any_size_are_the_same_trace(simulated, tmp_path, monkeypatch):
    whole, _ = simulated(ranks=2)
    (path,) = tmp_path.iterdir()
    written = []
    for size in (1 << 18, 7):
        monkeypatch.setattr(decoder, "_BATCH", size)
        assert_same(lanescope.open(path), whole)
        lanescope.convert(path, tmp_path / f"{size}.pftrace")
        written.append((tmp_path / f"{size}.pftrace").read_bytes())
    with detection.capture(path) as capture:
        batches = list(sources.decode(capture, registry.family("kineto"), {}))
    assert [len(batch.slices) for batch in batches[:-1]] == [7] * (len(whole.slices) // 7)
    assert written[0] == written[1]

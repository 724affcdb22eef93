"""Figures that files of others must give, to the nanosecond."""

from decimal import Decimal
from math import ceil, floor

import numpy as np
import pytest

import lanescope
from foreign.kineto import oracle
from lanescope.analysis import check
from lanescope.analysis.critical_path.answer import CriticalPath
from lanescope.errors import UsageError
from lanescope.foreign.kineto.analysis.breakdown import (
    breakdown,
    breakdown_before_last_step,
    combinations_before_last_step,
)


@pytest.fixture
def opened(corpus):
    return lambda name: lanescope.open(corpus / "foreign" / f"{name}.json.gz")


def texts(table, column):
    return table.column(column).texts


def named(trace, *names):
    """Rows of slices with one of some names, by time."""
    rows = np.flatnonzero(np.isin(texts(trace.slices, "name"), names))
    return rows[np.argsort(trace.slices.values("ts")[rows], kind="stable")]


def categories(trace, *names):
    return np.flatnonzero(np.isin(texts(trace.slices, "category"), names))


def only(table):
    (row,) = table.rows()
    return row


def test_launches_of_a_distributed_run(opened):
    trace = opened("hta/nccl_data")
    work = categories(trace, "kernel", "gpu_memcpy", "gpu_memset")
    assert (len(work), len(categories(trace, "cuda_runtime"))) == (3774, 8740)
    flows = trace.flows
    submit = texts(flows, "kind") == "submit"
    assert sorted(flows.values("dst_slice_id")[submit].tolist()) == sorted(work.tolist())
    (missing,) = [finding for finding in check.run(trace) if finding.code == "KINETO202"]
    assert (missing.count, missing.severity) == (3, "notice")
    assert len(trace.records["kineto.events"]) == 40573


def test_breakdown_of_a_distributed_run(opened):
    trace = opened("hta/nccl_data")
    row = only(breakdown(trace))
    assert row["window_ns"] == 660_551_005
    assert row["idle_ns"] == 503_050_991
    assert row["compute_ns"] == 115_655_847
    assert row["communication_ns"] == 46_876_493
    assert row["hidden_ns"] == 7_317_025
    assert round(row["hidden_share"] * 100, 4) == 15.6092
    row = only(breakdown_before_last_step(trace))
    assert row["rows"] == 2516
    assert row["window_ns"] == 435_587_561
    assert row["idle_ns"] == 336_419_714
    assert row["compute_ns"] == 76_935_828
    assert row["busy_ns"] - row["compute_ns"] == 22_232_019
    assert round(row["hidden_share"] * 100, 4) == 14.7625


def test_collectives(opened):
    trace = opened("hta/nccl_data")
    table = trace.details["kineto_collectives"]
    kernels = np.isin(table.values("slice_id"), categories(trace, "kernel"))
    assert np.count_nonzero(kernels) == 21
    lanes = set(trace.slices.values("track_id")[table.values("slice_id")[kernels]].tolist())
    assert [trace.tracks.values("name")[lane] for lane in lanes] == ["stream 40"]
    assert set(texts(table, "collective")[kernels].tolist()) == {"allreduce", "broadcast"}
    reduced = kernels & (table.values("in_elements") == 2_049_000)
    assert table.values("out_elements")[reduced].tolist() == [2_049_000] * 3
    assert set(texts(table, "collective")[reduced].tolist()) == {"allreduce"}
    for column, value in (
        ("group_name", "0"),
        ("group_description", "default_pg"),
        ("group_ranks", "[0, 1]"),
    ):
        assert set(texts(table, column)[kernels].tolist()) == {value}
    assert np.count_nonzero(texts(trace.flows, "kind") == "dependency") == 543
    assert only(trace.details["kineto_runs"])["world_size"] == 2


def test_breakdown_of_a_file_in_whole_microseconds(opened):
    trace = opened("hta/trace_diff_control")
    row = only(breakdown_before_last_step(trace))
    assert row["rows"] == 7875
    figures = [row["window_ns"], row["idle_ns"], row["compute_ns"], row["busy_ns"] - row["compute_ns"]]
    assert figures == [383_404_000, 62_119_000, 234_760_000, 86_525_000]
    assert round(row["hidden_share"] * 100, 2) == 47.03
    row = only(breakdown(trace))
    figures = [row["window_ns"], row["idle_ns"], row["compute_ns"], row["busy_ns"] - row["compute_ns"]]
    assert figures == [464_594_000, 76_007_000, 281_336_000, 107_251_000]
    assert round(row["hidden_share"] * 100, 4) == 46.2372


def test_what_ran_together(opened):
    rows = combinations_before_last_step(opened("hta/trace_diff_control")).rows()
    found = {row["kinds"]: row["total_ns"] // 1000 for row in rows}
    assert found == {
        "compute": 151_685,
        "communication": 69_110,
        "compute + communication": 55_152,
        "compute + memory": 20_762,
        "memory": 16_328,
        "compute + communication + memory": 7_161,
        "communication + memory": 1_087,
    }
    assert sum(found.values()) == 383_404 - 62_119


def test_nothing_is_lost_to_rounding(opened):
    trace = opened("hta/amd_trace")
    row = only(breakdown(trace))
    figures = [row["window_ns"], row["idle_ns"], row["compute_ns"], row["memory_ns"]]
    assert figures == [8_911_887, 8_762_845, 110_881, 38_161]
    assert row["rows"] == np.count_nonzero(texts(trace.flows, "kind") == "submit") == 16
    assert "kineto_unlaunched" not in texts(trace.stats, "name")


def of_plain_reader(path, *, is_rounded):
    """Figures of device rows whose call began before the last step, us; rounded: each row inwards to whole us."""
    events = oracle.complete(oracle.load(path))
    steps = [event["ts"] for event in events if event["name"].startswith("ProfilerStep")]
    calls = {}
    for event in events:
        if event.get("cat") in oracle.CALLS:
            calls.setdefault(oracle.arguments(event).get("correlation"), event)
    rows = []
    for event in events:
        call = calls.get(oracle.arguments(event).get("correlation", -1))
        if event.get("cat") not in oracle.DEVICE or call is None or (steps and call["ts"] >= max(steps)):
            continue
        begin, end = event["ts"], event["ts"] + event["dur"]
        if is_rounded:
            begin, end = ceil(begin), floor(end)
        kind = "communication" if "nccl" in event["name"] else "compute" if event["cat"] == "kernel" else "memory"
        rows.append((begin, max(begin, end), kind))

    def covered(*kinds):
        total, reached = 0, rows[0][0] - 10**9
        for begin, end, _ in sorted(row for row in rows if row[2] in kinds):
            total += max(end - max(begin, reached), 0)
            reached = max(reached, end)
        return total

    busy = covered("compute", "communication", "memory")
    compute, communication = covered("compute"), covered("communication")
    hidden = communication + compute - covered("compute", "communication")
    window = max(end for _, end, _ in rows) - min(begin for begin, _, _ in rows)
    share = round(float(hidden / communication) * 100, 2) if communication else None
    return len(rows), window, window - busy, compute, busy - compute, share


@pytest.mark.parametrize(
    ("name", "of_hta"),
    [
        ("hta/nccl_data", (2516, 435_586, 338_781, 75_169, 21_636, 14.31)),
        ("hta/trace_diff_control", (7875, 383_404, 62_119, 234_760, 86_525, 47.03)),
        ("hta/amd_trace", (16, 8_911, 8_780, 96, 35, None)),
    ],
)
def test_figures_of_holistic_trace_analysis_are_those_of_rows_rounded_inwards(corpus, opened, name, of_hta):
    """Rounding is all that tells its figures from ours: the rows are the same."""
    path = corpus / "foreign" / f"{name}.json.gz"
    assert of_plain_reader(path, is_rounded=True) == of_hta
    trace = opened(name)
    row = only(breakdown_before_last_step(trace) if name != "hta/amd_trace" else breakdown(trace))
    share = None if not row["communication_ns"] else round(row["hidden_share"] * 100, 2)
    ours = [row["window_ns"], row["idle_ns"], row["compute_ns"], row["busy_ns"] - row["compute_ns"]]
    assert (row["rows"], *(Decimal(ns) / 1000 for ns in ours), share) == of_plain_reader(path, is_rounded=False)


def measured(trace):
    """The second instance of the annotation that measures the forward pass, its rows and what they launched."""
    names = {name for name in texts(trace.slices, "name").tolist() if name.endswith("|measure|forward]")}
    annotation = int(named(trace, *names)[1])
    ts, dur = trace.slices.values("ts"), trace.slices.values("dur")
    first, last = int(ts[annotation]), int(ts[annotation] + dur[annotation])
    host = categories(trace, "cpu_op", "cuda_runtime")
    inside = host[(ts[host] >= first) & (ts[host] + dur[host] <= last)]
    flows = trace.flows
    launched = flows.values("dst_slice_id")[np.isin(flows.values("src_slice_id"), inside)]
    return annotation, inside, launched


def test_rows_of_an_annotation(opened):
    trace = opened("hta/critical_path_simple_add")
    ts, dur = trace.slices.values("ts"), trace.slices.values("dur")
    annotation, host, launched = measured(trace)
    assert int(dur[annotation]) == 243_351_000
    rows = np.concatenate([host, launched])
    assert int((ts[rows] + dur[rows]).max() - ts[rows].min()) == 242_881_000


def test_own_time_of_nested_rows_and_delays_of_kernels(opened):
    trace = opened("hta/critical_path_simple_add")
    ts, dur = trace.slices.values("ts") // 1000, trace.slices.values("dur") // 1000
    names = texts(trace.slices, "name")
    _, host, _ = measured(trace)

    def inside(row, name):
        found = [each for each in host.tolist() if names[each] == name and ts[row] <= ts[each] < ts[row] + dur[row]]
        return found[0]

    def before_and_behind(outer, inner):
        return int(ts[inner] - ts[outer]), int(ts[outer] + dur[outer] - ts[inner] - dur[inner])

    parts = []
    for relu in (row for row in host.tolist() if names[row] == "aten::relu_"):
        clamp = inside(relu, "aten::clamp_min_")
        call = inside(clamp, "cudaLaunchKernel")
        parts.append((*before_and_behind(relu, clamp), *before_and_behind(clamp, call), int(dur[call])))
    assert (15, 32, 14, 15, 17) in parts
    # The kernel of a transform on a stream of its own, and the one after it.
    flows, lanes = trace.flows, trace.slices.values("track_id")
    (flow,) = [
        row
        for row in np.flatnonzero(texts(flows, "kind") == "submit").tolist()
        if flows.values("src_slice_id")[row] in host
        and trace.tracks.values("name")[lanes[flows.values("dst_slice_id")[row]]] == "stream 20"
        and "fft2d_r2c" in names[flows.values("dst_slice_id")[row]]
    ]
    kernel = flows.values("dst_slice_id")[flow]
    assert (flows.values("dst_ts")[flow] - flows.values("src_ts")[flow]) // 1000 == 27
    behind = ts[(lanes == lanes[kernel]) & (ts > ts[kernel])]
    assert behind.min() - ts[kernel] - dur[kernel] == 7


def test_difference_of_an_iteration(opened):
    base, test = opened("hta/trace_compare_base"), opened("hta/trace_compare_test")

    def host_names(trace):
        lanes = trace.tracks.values("role")[trace.slices.values("track_id")] == "host_thread"
        (step,) = named(trace, "ProfilerStep#1010")
        ts, dur = trace.slices.values("ts"), trace.slices.values("dur")
        mine = lanes & (ts >= ts[step]) & (ts < ts[step] + dur[step])
        return set(texts(trace.slices, "name")[mine].tolist())

    added = host_names(test) - host_names(base)
    assert added == {"AddmmBackward0", "All2All_Pooled_Req", "CatBackward0"}
    assert host_names(base) - host_names(test) == {"nccl:all_reduce"}
    assert len(host_names(base) & host_names(test)) == 5
    assert (base.slices.values("dur")[named(base, "nccl:all_reduce")] // 1000).tolist() == [66, 67]
    assert (test.slices.values("dur")[named(test, "nccl:all_reduce")] // 1000).tolist() == [66]
    work = [len(categories(trace, "kernel", "gpu_memcpy", "gpu_memset")) for trace in (base, test)]
    assert work == [18, 17]


def test_a_file_that_was_cut_has_notices_only(opened):
    trace = opened("hta/trace_compare_base")
    (step,) = named(trace, "ProfilerStep#1010")
    dur = trace.slices.values("dur")
    assert int(dur[step]) == 122_149_000
    durations = {name: dur[named(trace, name)].tolist() for name in texts(trace.slices, "name").tolist()}
    assert 4000 in durations["cudaEventQuery"]
    assert 4000 in durations["cudaLaunchKernel"]
    assert 0 in durations["aten::empty"]
    assert 0 in durations["aten::as_strided"]
    (stat,) = [row for row in trace.stats.rows() if row["name"] == "kineto_unlaunched"]
    assert stat["count"] == 16
    assert {finding.severity for finding in check.run(trace)} == {"notice"}


def test_waits_of_streams_for_events(opened):
    trace = opened("hta/cuda_event_sync_multi_stream")
    work = categories(trace, "kernel", "gpu_memcpy", "gpu_memset")
    lanes = trace.tracks.values("name")[trace.slices.values("track_id")[work]]
    assert {name: lanes.tolist().count(name) for name in set(lanes.tolist())} == {
        "stream 20": 2,
        "stream 24": 2,
        "stream 28": 2,
    }
    syncs = trace.details["kineto_syncs"]
    assert len(syncs) == 5
    assert int(np.count_nonzero(syncs.valid("wait_event"))) == 4
    assert sorted(syncs.values("wait_correlation")[syncs.valid("wait_correlation")].tolist()) == [32, 62, 1385]
    # Four calls record an event; the waits name three of them.
    assert len(named(trace, "cudaEventRecord")) == 4
    roles = trace.tracks.values("name")[trace.slices.values("track_id")[syncs.values("slice_id")]]
    assert all(str(name).endswith(" sync") for name in roles.tolist())
    # Order is all that a wait gives: no edge of one takes time.
    graph = CriticalPath(trace).made.graph
    kinds = [kind.name for kind in graph.kinds]
    waits = np.isin(graph.edges["kind"], [kinds.index(name) for name in ("sync", "stream wait")])
    assert np.count_nonzero(waits) > 0
    assert not graph.edges["floor"][waits].any()


def test_a_step_that_ends_after_the_record(opened):
    trace = opened("hta/triton_example")
    (kernel,) = categories(trace, "kernel")
    assert trace.slices.values("dur")[kernel] == 1760
    (host, *_) = [row for row in named(trace, "triton_poi_fused_add_cos_sin_0").tolist() if row != kernel]
    args = trace.details["kineto_args"]
    (text,) = args.values("args")[args.values("slice_id") == host].tolist()
    assert '"kernel_backend": "triton"' in text
    (flow,) = trace.flows.rows()
    call = flow["src_slice_id"]
    assert texts(trace.slices, "name")[call] == "cuLaunchKernel"
    assert texts(trace.slices, "category")[call] == "cuda_driver"
    ops = trace.details["kineto_ops"]
    assert ops.values("correlation")[ops.values("slice_id") == call].tolist() == [35]
    found = [finding for finding in check.run(trace) if finding.code == "KINETO104"]
    (finding,) = found
    assert finding.severity == "warning"
    (row,) = finding.evidence.ids.tolist()
    assert texts(trace.slices, "name")[row].startswith("ProfilerStep")
    assert trace.slices.values("dur")[row] // 10**6 == 13_336


def test_work_of_another_accelerator(opened):
    trace = opened("hta/mtia_inference")
    work = categories(trace, "mtia_ccp_events")
    assert len(work) == 1313
    ops = trace.details["kineto_ops"]
    known = ops.values("correlation")[np.isin(ops.values("slice_id"), work) & ops.valid("correlation")]
    assert len(work) - len(known) == 322
    # Rows without a correlation are no group.
    assert int(np.count_nonzero(np.unique(known, return_counts=True)[1] > 1)) == 110
    assert set(trace.tracks.values("nesting")[trace.slices.values("track_id")[work]].tolist()) == {"free"}
    crossing = [finding for finding in check.run(trace) if finding.code == "KINETO103"]
    assert sum(finding.count for finding in crossing) == 13


def test_totals_of_devices_are_absent_without_devices(opened):
    trace = opened("hta/cpu_only")
    assert len(trace.records["kineto.events"]) == 30
    with pytest.raises(UsageError, match="no kernels or copies"):
        breakdown(trace)


def test_graph_launches(opened):
    trace = opened("tracelens/vllm_piecewise_graph_execution")
    row = only(breakdown(trace))
    assert (row["rows"], row["window_ns"], row["idle_ns"]) == (423, 156_466_417, 380_624)
    flows = trace.flows
    calls = texts(trace.slices, "name")[flows.values("src_slice_id")]
    graphs = calls == "hipGraphLaunch"
    assert int(np.count_nonzero(graphs)) == 361
    assert len(np.unique(flows.values("src_slice_id")[graphs], return_counts=True)[0]) == 25
    assert "kineto_missing_names" in texts(trace.stats, "name")

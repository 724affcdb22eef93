"""The rows of the timeline: tracks, flows, counters, details."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from devices.levelzero.helpers import Script, operations, simulated, stats
from lanescope.analysis import check
from lanescope.devices.levelzero.ctf_decoder import complete_threads
from lanescope.devices.levelzero.emit.timeline import Timeline, both, steps
from lanescope.devices.levelzero.family import FAMILY
from lanescope.devices.levelzero.formats.text_scanner import TextReader
from lanescope.devices.levelzero.interpret.resolved import attributed
from lanescope.devices.levelzero.schema import DETAILS, STATS
from lanescope.io import perfetto
from lanescope.testing import assert_consistent
from lanescope.trace import Flag, TimeBase, TraceBuilder


def paths(trace) -> list[str]:
    names, parents = trace.tracks["name"].tolist(), trace.tracks["parent_id"].tolist()
    known = trace.tracks.valid("parent_id").tolist()

    def path(track: int) -> str:
        return f"{path(parents[track])} > {names[track]}" if known[track] else names[track]

    return [path(track) for track in range(len(names))]


def busy(tmp_path):
    """A kernel and a copy at the same time on one device, a barrier on a sub-device."""
    script = Script().device(0xD0)
    about = {"timerResolution": 80, "uuid": "01000000-0000-0000-0200-000000000000", "subdeviceId": 1}
    about |= {"timestampValidBits": 64, "kernelTimestampValidBits": 32}
    script.record("lttng_ust_ze_properties:subdevice", hDevice=0xD0, hSubDevice=0xD1, pDeviceProperties_val=about)
    script.immediate(1, 0xD0, in_order=True).immediate(2, 0xD0, ordinal=1).immediate(3, 0xD1)
    script.call("zeKernelCreate", desc_val={"pKernelName": '"mma"'}, out_phKernel_val=0x70)
    script.pair(0)
    script.append("LaunchKernel", 0x4, cl=1, hKernel=0x70)
    script.append("MemoryCopy", 0x5, cl=2, dstptr="0x1000", srcptr="0x2000", size=100)
    script.append("Barrier", 0x6, cl=3)
    script.result(0x4, 200, 400).result(0x5, 300, 500).result(0x6, 600, 610)
    return script.open(tmp_path)


def test_tracks(tmp_path) -> None:
    trace = busy(tmp_path)
    assert paths(trace) == [
        "testhost",
        "testhost > process 10",
        "testhost > process 10 > thread 1",
        "GPU",
        "GPU > list 0x1, ordinal 0, index 0",
        "GPU > list 0x2, ordinal 1, index 0",
        "GPU > sub-device 1",
        "GPU > sub-device 1 > list 0x3, ordinal 0, index 0",
        "GPU > outstanding operations",
        "GPU > bytes in flight",
        "GPU > copies and kernels at once",
    ]
    disciplines = dict(zip(paths(trace), trace.tracks["nesting"].tolist(), strict=True))
    assert disciplines["testhost > process 10 > thread 1"] == "nested"
    assert disciplines["GPU > list 0x1, ordinal 0, index 0"] == "disjoint"
    assert disciplines["GPU > list 0x2, ordinal 1, index 0"] == "free"
    assert_consistent(trace)
    assert [finding.stat for finding in check.run(trace)] == ["levelzero_rounded_clock_rate"]


def test_counters(tmp_path) -> None:
    trace = busy(tmp_path)
    by_track = {}
    for row in trace.counters.rows():
        by_track.setdefault(trace.tracks["name"][row["track_id"]], []).append((row["ts"], row["value"]))
    rows = operations(trace)
    begins, ends = [row["ts"] for row in rows], [row["ts"] + row["dur"] for row in rows]
    submits = [row["submit_ts"] for row in rows]
    changes = sorted([(ts, 1) for ts in submits] + [(ts, -1) for ts in ends])
    assert by_track["outstanding operations"] == [
        (ts, float(sum(change for _, change in changes[: place + 1]))) for place, (ts, _) in enumerate(changes)
    ]
    assert by_track["bytes in flight"] == [(submits[1], 100.0), (ends[1], 0.0)]
    assert by_track["copies and kernels at once"] == [(begins[1], 1.0), (ends[0], 0.0)]


def test_overlap_in_the_summary(tmp_path) -> None:
    row = next(FAMILY.summarise("overlap", busy(tmp_path)).rows())
    assert (row["device"], row["kernels"], row["copies"], row["both"], row["share"]) == (
        "GPU",
        16_000,
        16_000,
        8000,
        0.5,
    )


def test_flows(tmp_path) -> None:
    trace = busy(tmp_path)
    slices = list(trace.slices.rows())
    found = {
        (slices[row["src_slice_id"]]["name"], slices[row["dst_slice_id"]]["name"], row["kind"])
        for row in trace.flows.rows()
    }
    assert found == {
        ("zeCommandListAppendLaunchKernel", "mma", "dispatch"),
        ("zeCommandListAppendMemoryCopy", "zeCommandListAppendMemoryCopy(M2M)", "dispatch"),
        ("zeCommandListAppendBarrier", "zeCommandListAppendBarrier", "dispatch"),
    }
    for row in trace.flows.rows():
        assert (row["src_ts"], row["src_track_id"]) == (
            slices[row["src_slice_id"]]["ts"],
            slices[row["src_slice_id"]]["track_id"],
        )
        assert (row["dst_ts"], row["dst_track_id"]) == (
            slices[row["dst_slice_id"]]["ts"],
            slices[row["dst_slice_id"]]["track_id"],
        )


def test_flows_of_a_regular_list(tmp_path) -> None:
    """From the Execute that dispatched each run, and from the Append that recorded it."""
    script = Script().regular(1).append("Barrier", 0x4)
    for _ in range(2):
        script.execute(0x9, 1).result(0x4)
    trace = script.open(tmp_path)
    names = trace.slices["name"]
    found = [(row["kind"], names[row["src_slice_id"]], row["dst_slice_id"]) for row in trace.flows.rows()]
    first, second = (row["slice_id"] for row in operations(trace))
    execute, append = "zeCommandQueueExecuteCommandLists", "zeCommandListAppendBarrier"
    assert found == [
        ("dispatch", execute, first),
        ("dispatch", execute, second),
        ("dependency", append, first),
        ("dependency", append, second),
    ]


def test_queues_of_executions(tmp_path) -> None:
    script = (
        Script()
        .device()
        .call("zeCommandQueueCreate", hDevice=0xD0, desc_val={"ordinal": 3, "index": 2}, out_phCommandQueue_val=0x9)
    )
    script.regular(1).append("Barrier", 0x4).execute(0x9, 1).result(0x4)
    trace = script.open(tmp_path)
    assert "GPU > queue 0x9, ordinal 3, index 2" in paths(trace)
    row = operations(trace)[0]
    assert (row["ordinal"], row["queue_index"]) == (3, 2)


def test_a_list_that_is_emptied_or_recycled(tmp_path) -> None:
    """A Reset begins new contents; a handle that comes back is another list."""
    script = Script().device().regular(1)
    script.append("Barrier", 0x4).execute(0x9, 1).result(0x4)
    script.call("zeCommandListReset", hCommandList=1).append("MemoryRangesBarrier", 0x4).execute(0x9, 1).result(0x4)
    script.call("zeCommandListDestroy", hCommandList=1).immediate(1).append("Barrier", 0x4).result(0x4)
    trace = script.open(tmp_path)
    rows = operations(trace)
    executes = [row["ts"] for row in trace.slices.rows() if "Execute" in row["name"]]
    assert [row["submit_ts"] for row in rows] == [*executes, rows[2]["append_ts"]]
    lanes = [trace.tracks["name"][row["track_id"]] for row in rows]
    assert lanes == ["queue 0x9", "queue 0x9", "list 0x1, ordinal 0, index 0"]


def test_errors_of_operations(tmp_path) -> None:
    script = Script().append("Barrier", 0x4).result(0x4, 5, 9, timestampStatus="ZE_RESULT_ERROR_DEVICE_LOST")
    trace = script.open(tmp_path)
    row = operations(trace)[0]
    assert (row["error"], row["dur"], row["quality"], row["ts"]) == (True, None, "inferred", row["submit_ts"])
    assert row["flags"] & Flag.UNFINISHED
    assert stats(trace)["levelzero_result_error"] == 1


def test_one_device_of_two_processes(tmp_path) -> None:
    """By its UUID; each process has its own handle for it, and its own queue with the same number."""
    script = Script()
    for pid, handle in ((10, 0xD0), (11, 0xE0)):
        script.pid = pid
        script.device(handle).immediate(1, handle).append("Barrier", 0x4).result(0x4)
    trace = script.open(tmp_path)
    assert [path for path in paths(trace) if path.startswith("GPU")][:3] == [
        "GPU",
        "GPU > list 0x1, ordinal 0, index 0",
        "GPU > list 0x1, ordinal 0, index 0, process 11",
    ]
    assert_consistent(trace)


def test_steps() -> None:
    begin, end = np.array([0, 5, 5]), np.array([10, 5, 7])
    ts, value = steps(begin, end, np.array([1.0, 1.0, 2.0]))
    assert (ts.tolist(), value.tolist()) == ([0, 5, 7, 10], [1.0, 3.0, 1.0, 0.0])


def test_both() -> None:
    ts, value = both(*(np.array(column) for column in ([0, 20], [10, 30], [5, 22, 25], [12, 25, 26])))
    assert (ts.tolist(), value.tolist()) == ([5, 10, 22, 26], [1.0, 0.0, 1.0, 0.0])
    assert not len(both(*(np.array(column) for column in ([0], [10], [10], [12])))[0])


@pytest.mark.parametrize("style", ["numbered", "thapi"])
def test_perfetto_draws_it(style, tmp_path, trace_processor) -> None:
    """The trace processor finds each operation, and each arrow."""
    import lanescope

    simulation = FAMILY.simulate(simulated(style=style, ops=200), 1)
    name, content = next(iter(simulation.files.items()))
    (tmp_path / name).write_bytes(content)
    trace = lanescope.open(tmp_path / name)
    perfetto.write(trace, tmp_path / "out.pftrace")
    kernels, flows, counters = trace_processor(
        tmp_path / "out.pftrace",
        "select count(*) as n from slice where category = 'kernel'",
        "select count(*) as n from flow",
        "select count(distinct track_id) as n from counter",
    )
    assert kernels[0]["n"] == sum(row["kind"] == "kernel" for row in operations(trace))
    assert flows[0]["n"] == len(trace.flows)
    assert counters[0]["n"] == len(set(trace.counters["track_id"].tolist()))


def recorded(trace) -> dict[str, tuple[int, int]]:
    """Return for which time each lane was recorded, by its name."""
    names = trace.tracks["name"].tolist()
    return {names[row["track_id"]]: (row["ts"], row["ts"] + row["dur"]) for row in trace.coverage.rows()}


def two_threads() -> Script:
    """Thread 1 submits to a queue and stops; thread 2 goes on; another process stops early."""
    script = Script().device(0xD0).pair(0).immediate(1)
    script.append("MemoryFill", 0x5, size=8).result(0x5, 10, 20)
    script.pid, script.tid = 20, 3
    script.call("zeInit")
    script.pid, script.tid = 10, 2
    return script.call("zeEventQueryStatus").call("zeEventQueryStatus")


def test_a_thread_whose_records_stop_is_not_recorded_any_longer(tmp_path) -> None:
    trace = two_threads().open(tmp_path)
    found = recorded(trace)
    last = {name: span[1] for name, span in found.items()}
    calls = {row["name"]: row for row in trace.slices.rows() if row["category"] == "api"}
    assert {span[0] for span in found.values()} == {0}
    assert last["thread 3"] == calls["zeInit"]["ts"] + calls["zeInit"]["dur"]
    assert last["thread 1"] == calls["zeInit"]["ts"] - 1000  # its result was the record before
    assert last["thread 2"] == max(last.values())
    # The queue belongs to the process: its second thread would have recorded more operations.
    (queue,) = (name for name in last if name.startswith("list 0x1"))
    assert last[queue] == last["thread 2"]


def test_a_thread_that_was_recorded_to_its_end_is_idle_behind_its_records() -> None:
    reader = TextReader()
    reader.feed(two_threads().text)
    found = attributed(reader.finish())
    builder = TraceBuilder(TimeBase(), details=DETAILS, stats=STATS)
    builder.input(capture="a", path="a", size=0, sha256="", family="levelzero", format="ctf")
    Timeline(builder, found, zero=found.origin(), input_id=0).draw(np.array([True, False, True]))
    last = {name: span[1] for name, span in recorded(builder.batch()).items()}
    assert last["thread 1"] == last["thread 2"] == max(last.values())
    assert last["thread 3"] < last["thread 1"]


def test_a_stream_left_open_guarantees_nothing() -> None:
    """Streams: one that was closed, one of a process that ended, one that a kill left open."""

    def stream(process, is_open, *threads):
        return SimpleNamespace(process=process, is_open=is_open, thread=np.array(threads, np.int64))

    recording = SimpleNamespace(
        events={"threads": range(5)},
        processes=[SimpleNamespace(ended=True), SimpleNamespace(ended=False)],
        streams=[stream(0, True, 0, 0), stream(1, False, 1), stream(1, True, 2, 3, 3), stream(1, True)],
    )
    assert complete_threads(recording).tolist() == [True, True, True, False, True]

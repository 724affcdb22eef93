"""Dumps of device memory: structs, buffers, pools, and what did not arrive."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import CASES, GOLDEN, decode, read, stats, tasks
from devices.ascend.test_encode import assert_same
from effort import some
from lanescope import cli
from lanescope.devices.ascend.family import FAMILY
from lanescope.devices.ascend.formats import device_dump
from lanescope.devices.ascend.formats.device_structs import (
    AICORE_BUFFER,
    AICORE_RECORD,
    AICPU_BUFFER,
    AICPU_RECORD,
    PHASE_BUFFER_V3,
    PHASE_BUFFER_V3C,
    PHASE_RECORD_V3,
    PHASE_RECORD_V3C,
    POOL,
    QUEUE_ENTRY,
    REGIONS,
    SUBMIT_BUFFER,
    SUBMIT_RECORD,
)
from lanescope.devices.ascend.formats.encode_dump import encode_dump
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, PHASES, SUBMITS
from lanescope.devices.ascend.formats.records import Records, section
from lanescope.errors import InputError, UsageError
from lanescope.pipeline import session
from lanescope.source import CERTAIN, HEAD_BYTES, MINE, FileHead
from lanescope.wire.strategies import values

LISTS = (AICORE, AICPU, PHASES, SUBMITS)
CORE = {"task_token_raw": 5, "reg_task_id": 1, "start_time": 100, "end_time": 200, "receive_to_start_cycles": 7}
CPU = {"dispatch_time": 80, "finish_time": 210, "reg_task_id": 1}


def buffer(layout, rows, count=None):
    """Return a buffer, by the struct codec."""
    record = layout["records"].type
    raw = b"".join(record.encode(row) for row in rows)
    raw = raw.ljust(layout["count"].offset, b"\0")
    return (raw + struct.pack("<I", len(rows) if count is None else count)).ljust(layout.size, b"\0")


def entry(stream, index, seq=0):
    kind = QUEUE_ENTRY["kind"].values
    (number,) = [code for code, name in kind.items() if name == stream]
    return QUEUE_ENTRY.encode({"core_index": index, "kind": number, "buffer_ptr": 4096, "buffer_seq": seq})


def read_dump(content, **options):
    return device_dump.read_dump(np.frombuffer(content, np.uint8), "dump.bin", options)


def decode_dump(content, **options):
    return decode(content, name="dump.bin", **options)


def accounts(trace):
    return {
        row["unit"]: (row["total"], row["decoded"], row["lost"])
        for row in trace.accounting.rows()
        if row["scope"] == "producer"
    }


# --- structs ----------------------------------------------------------------------------------------------------------


def test_sizes_are_those_of_the_compiled_headers():
    assert [s.size for s in (AICPU_BUFFER, AICORE_BUFFER, PHASE_BUFFER_V3, SUBMIT_BUFFER)] == [
        *(32064, 32832, 1048640, 524352)
    ]
    assert [s["count"].offset for s in (AICPU_BUFFER, AICORE_BUFFER, PHASE_BUFFER_V3C, SUBMIT_BUFFER)] == [
        *(32000, 32768, 1048576, 524288)
    ]
    assert {(r.platform, r.format_version): r.header.size for r in REGIONS} == {
        ("a2a3", "v3"): 127104,
        ("a2a3", "v3c"): 127168,
        ("a5", "v3"): 340672,
        ("a5", "v3c"): 233152,
    }
    newest = {(r.platform, r.format_version): r.header for r in REGIONS}
    assert [newest["a2a3", "v3c"][name].offset for name in ("queue_heads", "num_cores", "core_to_thread")] == [
        *(126976, 127008, 127028)
    ]
    assert newest["a2a3", "v3c"]["rq_freeze_active"].offset == 127100
    assert [newest["a5", "v3c"][name].offset for name in ("queue_heads", "num_cores", "core_to_thread")] == [
        *(232960, 233000, 233020)
    ]
    assert newest["a5", "v3c"]["rq_freeze_active"].offset == 233128


@given(st.lists(values(AICORE_RECORD), min_size=1, max_size=4), st.integers(0, 255))
def test_records_of_cores_as_their_struct_says(rows, index):
    found = read_dump(entry("aicore_task", index) + buffer(AICORE_BUFFER, rows))
    limit = 1 << 62
    good = [row for row in rows if 0 < row["start_time"] < limit and row["end_time"] < limit]
    cells = found[AICORE]
    assert cells["core_id"].tolist() == [index] * len(good)
    for name, cell in (
        ("start_time", "start_cycles"),
        ("end_time", "end_cycles"),
        ("task_token_raw", "task_token_raw"),
        ("reg_task_id", "reg_task_id"),
        ("receive_to_start_cycles", "receive_to_start_cycles"),
    ):
        assert cells[cell].tolist() == [row[name] for row in good]
    beyond = sum(row["start_time"] >= limit or row["end_time"] >= limit for row in rows)
    assert found.accounts == (
        32 * len(good),
        len(entry("aicore_task", 0)) + 32832 - 32 * (len(good) + beyond),
        32 * beyond,
    )


@given(
    st.lists(values(PHASE_RECORD_V3), min_size=1, max_size=3),
    st.lists(values(PHASE_RECORD_V3C), min_size=1, max_size=3),
)
@settings(max_examples=some(40))
def test_phases_as_their_structs_say(first, newest):
    for rows, layout, format_version in ((first, PHASE_BUFFER_V3, "v3"), (newest, PHASE_BUFFER_V3C, "v3c")):
        record = layout["records"].type
        found = read_dump(entry("sched_phase", 2) + buffer(layout, rows), format_version=format_version)[PHASES]
        good = [row for row in rows if max(row["start_time"], row["end_time"]) < 1 << 62]
        assert found.group.tolist() == [2] * len(good)
        assert found["shared_at_end"].tolist() == [row["shared_depth_at_end"] for row in good]
        names = [record["kind"].values.get(row["kind"], f"kind_{row['kind']}") for row in good]
        assert [found.texts[code] for code in found["kind"].tolist()] == names
        assert found.has("pop_hit").tolist() == [name == "dispatch" for name in names]
        if format_version == "v3c":
            is_task = [name in ("dummy_task", "predicated_skip", "graph_prepare") for name in names]
            assert found.has("task_id").tolist() == is_task
            ids = [row["pop_miss_or_ring_id"] << 32 | row["pop_hit_or_local_id"] for row in good]
            assert found["task_id"].tolist() == [task if there else 0 for task, there in zip(ids, is_task, strict=True)]
        else:
            assert found["local_at_start"].tolist() == [row["local_depth_at_start"] for row in good]


@given(st.lists(values(AICPU_RECORD), min_size=1, max_size=4), st.lists(values(SUBMIT_RECORD), min_size=1, max_size=4))
@settings(max_examples=some(40))
def test_dispatches_and_submits_as_their_structs_say(dispatches, submits):
    # A sound buffer before them: a file that begins with records that cannot be is searched for the first that can.
    found = read_dump(
        entry("aicore_task", 3)
        + buffer(AICORE_BUFFER, [CORE])
        + entry("aicpu_task", 3)
        + buffer(AICPU_BUFFER, dispatches)
        + entry("orch_phase", 0)
        + buffer(SUBMIT_BUFFER, submits)
    )
    good = [row for row in dispatches if max(row["dispatch_time"], row["finish_time"]) < 1 << 62]
    assert found[AICPU]["finish_cycles"].tolist() == [row["finish_time"] for row in good]
    good = [row for row in submits if max(row["start_time"], row["end_time"]) < 1 << 62]
    assert found[SUBMITS]["task_id"].tolist() == [row["task_id"] for row in good]
    assert found[SUBMITS]["submit_idx"].tolist() == [row["submit_idx"] for row in good]


# --- whole dumps ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("region", REGIONS, ids=lambda region: region.header.name)
@pytest.mark.parametrize("case", CASES[1:])
def test_what_was_collected_reads_back_from_a_dump(case, region):
    naming = "l2" if region.format_version == "v3" else "chip"
    found = read((GOLDEN / case / f"{naming}_swimlane_records.json").read_bytes())
    content = encode_dump(found, region)
    again = read_dump(content)
    assert again.metadata["clock_freq_hz"] == region.frequency
    assert (again.format_version, again.level) == (region.format_version, found.level)
    for layout in LISTS:
        first = found[layout]
        order = np.argsort(first["core_id"], kind="stable") if layout in (AICORE, AICPU) else slice(None)
        assert_same(first.take(order), again[layout])
    assert sum(again.accounts) == len(content)
    assert all(stream.unaccounted == 0 for stream in again.streams)
    # Written again, a dump is the same to the byte.
    assert encode_dump(again, region) == content


def test_a_dump_says_what_the_records_file_says():
    path = GOLDEN / "v3_spec_dummy" / "chip_swimlane_records.json"
    deps = (path.parent / "deps.json").read_bytes()
    first = decode(path.read_bytes(), deps=deps)
    second = decode_dump(encode_dump(read(path.read_bytes()), REGIONS[0]), deps=deps)
    names = ("task", "core", "dispatch_ts", "receive_ts", "finish_ts", "duration_ns", "gate_wait_ns")

    def rows(trace):
        return sorted(tuple(row[name] for name in names) for row in trace.details["ascend_tasks"].rows())

    assert rows(first) == rows(second)
    assert second.inputs["format"][0] == "v3c"


def test_many_buffers_of_a_stream_keep_their_order():
    count = 2500
    rows = section(
        AICORE,
        {
            "core_id": np.repeat([4, 1], count),
            "task_token_raw": np.arange(2 * count),
            "reg_task_id": np.tile(np.arange(count), 2) + 1,
            "start_cycles": np.arange(2 * count) * 10 + 100,
            "end_cycles": np.arange(2 * count) * 10 + 105,
            "receive_to_start_cycles": np.full(2 * count, 2),
        },
    )
    content = encode_dump(Records("x", 1, {"num_cores": 5}, {AICORE.name: rows}), REGIONS[0])
    found = read_dump(content)[AICORE]
    assert found["core_id"].tolist() == [1] * count + [4] * count
    assert found["reg_task_id"].tolist() == [*range(1, count + 1)] * 2
    assert "ascend_missing_dispatch" not in stats(decode_dump(content))


@pytest.mark.parametrize(
    ("buffers", "layout", "rows", "cell", "expected"),
    [
        (AICORE_BUFFER, AICORE, [CORE] * 9, "start_cycles", 100),
        (AICPU_BUFFER, AICPU, [CPU] * 9, "dispatch_cycles", 80),
    ],
)
def test_bare_buffers_of_one_stream(buffers, layout, rows, cell, expected, tmp_path):
    rows = [{**row, "reg_task_id": number} for number, row in enumerate(rows)]
    content = buffer(buffers, rows) + buffer(buffers, rows[:2])
    path = tmp_path / "dump.bin"
    path.write_bytes(content)
    (first, *_) = session.detect(path)
    assert (first.family, first.format, first.score >= CERTAIN) == ("ascend", "dump", True)
    found = read_dump(content, index=6)[layout]
    assert found["core_id"].tolist() == [6] * 11
    assert found[cell].tolist() == [expected] * 11
    trace = session.open(path, index=6)
    assert trace.time.time_unit == "cycles"
    assert trace.clocks["frequency_num"].tolist() == [None]
    assert session.open(path, index=6, frequency=50_000_000).time.time_unit == "ns"
    assert cli.main(["convert", str(path), "-o", str(tmp_path / "dump.pftrace")]) == 0


def test_format_version_of_a_dump():
    record = dict.fromkeys(("loop_iter", "tasks_processed", "pop_hit", "pop_miss"), 0)
    depths = {f"{where}_depth_at_{when}": [0, 0, 0] for where in ("local", "shared") for when in ("start", "end")}
    phase = {"start_time": 5, "end_time": 9, "kind": 1, **record, **depths}
    plain = entry("sched_phase", 0) + buffer(PHASE_BUFFER_V3, [phase])
    first = entry("sched_phase", 0) + buffer(PHASE_BUFFER_V3, [{**phase, "shared_depth_at_end": [0, 2, 0]}])
    newest = entry("sched_phase", 0) + buffer(PHASE_BUFFER_V3, [{**phase, "kind": 11}])
    assert read_dump(first).format_version == "v3"
    assert read_dump(newest).format_version == "v3c"
    assert "ascend_format_version_assumed" not in stats(decode_dump(first))
    assert stats(decode_dump(plain))["ascend_format_version_assumed"] == 1
    assert read_dump(plain, format_version="v3").format_version == "v3"
    core = entry("aicore_task", 0) + buffer(AICORE_BUFFER, [CORE])
    assert tasks(decode_dump(core, format_version="v2"), "receive_ticks") == [("task(t5)", None)]
    with pytest.raises(UsageError, match="v9"):
        read_dump(plain, format_version="v9")


# --- losses -----------------------------------------------------------------------------------------------------------


def test_every_stream_is_reconciled():
    found = read((GOLDEN / "v3_spec_dummy" / "l2_swimlane_records.json").read_bytes())
    losses = {
        ("aicore_task", 0): (1, 3),
        ("aicpu_task", 2): (0, 2),
        ("sched_phase", 1): (5, 0),
        ("orch_phase", 0): (0, 1),
    }
    trace = decode_dump(encode_dump(found, REGIONS[1], losses=losses))
    told = {(row["stream"], row["index"]): row for row in trace.details["ascend_record_streams"].rows()}
    for key, row in told.items():
        dropped, silent = losses.get(key, (0, 0))
        assert (row["dropped"], row["unaccounted"]) == (dropped, silent)
        assert row["collected"] + row["dropped"] + row["unaccounted"] == row["attempted"]
    assert set(losses) <= set(told)
    assert {name: stats(trace)[name] for name in ("ascend_dropped", "ascend_unaccounted_records")} == {
        "ascend_dropped": 6,
        "ascend_unaccounted_records": 6,
    }
    # The stream of the cores is among them, which the collector leaves out.
    assert accounts(trace)["aicore_tasks 0 record"] == (6, 2, 4)


def test_more_records_than_were_written():
    found = read((GOLDEN / "v3_cold_first" / "chip_swimlane_records.json").read_bytes())
    content = bytearray(encode_dump(found, REGIONS[0]))
    at = REGIONS[0].header.size + found.metadata["num_cores"] * POOL.size + POOL["total_record_count"].offset
    assert struct.unpack_from("<I", content, at)[0] > 0
    struct.pack_into("<I", content, at, 0)
    trace = decode_dump(bytes(content))
    assert stats(trace)["ascend_extra_records"] > 0


def test_slots_that_were_never_written():
    rows = [CORE, dict.fromkeys(CORE, 0), {**CORE, "reg_task_id": 2, "start_time": 300, "end_time": 310}]
    trace = decode_dump(entry("aicore_task", 0) + buffer(AICORE_BUFFER, rows, count=1024))
    assert trace.details["ascend_tasks"]["reg_task_id"].tolist() == [1, 2]
    assert "ascend_missing_start" not in stats(trace)
    (row,) = [row for row in trace.accounting.rows() if row["scope"] == "input"]
    assert (row["decoded"], row["lost"]) == (64, 0)


def test_a_broken_buffer_is_lost_and_the_next_one_found():
    good = entry("aicpu_task", 1) + buffer(AICPU_BUFFER, [CPU])
    broken = bytearray(good)
    struct.pack_into("<I", broken, 32 + AICPU_BUFFER["count"].offset, 1001)
    trace = decode_dump(good + bytes(broken) + good)
    assert stats(trace)["ascend_bad_buffer"] == 1
    (row,) = [row for row in trace.accounting.rows() if row["scope"] == "input"]
    assert (row["decoded"], row["lost"]) == (64, len(broken))


def test_a_dump_that_is_cut_off_loses_its_last_buffer():
    good = entry("aicore_task", 1) + buffer(AICORE_BUFFER, [CORE])
    whole = good + entry("aicore_task", 2) + buffer(AICORE_BUFFER, [CORE])
    for size in (len(good) + 1, len(good) + 32, len(good) + 1000, len(whole) - 1):
        found = read_dump(whole[:size])
        assert found.accounts[2] == size - len(good)
        assert len(found[AICORE]) == 1


# --- anything else ----------------------------------------------------------------------------------------------------


SMALL = entry("aicore_task", 1) + buffer(AICORE_BUFFER, [CORE]) + entry("aicpu_task", 1) + buffer(AICPU_BUFFER, [CPU])


@given(
    edits=st.lists(
        st.tuples(st.integers(0, len(SMALL) - 1), st.binary(min_size=1, max_size=40)), min_size=1, max_size=6
    ),
    cut=st.integers(0, len(SMALL)),
)
@settings(max_examples=some(120))
def test_any_bytes_are_accounted_for(edits, cut):
    content = bytearray(SMALL)
    for at, new in edits:
        content[at : at + len(new)] = new
    content = bytes(content[: len(content) - cut // 2])
    try:
        trace = decode_dump(content)
    except InputError as error:
        refused, trace = str(error), None
    if trace is None:
        assert "\n" not in refused
        return
    for row in trace.accounting.rows():
        assert row["decoded"] + row["padding"] + row["lost"] == row["total"]
        assert min(row["decoded"], row["padding"], row["lost"]) >= 0
    assert trace.slices["ts"].min(initial=0) >= 0


@given(st.binary(max_size=3000))
def test_noise_is_no_dump(noise):
    assert FAMILY.detect(FileHead(noise, len(noise), "x.bin")).score < MINE
    with pytest.raises(InputError):
        read_dump(noise)


def test_zeros_and_large_noise_are_no_dump():
    random = np.random.default_rng(3)
    for size in (32064, 32832, 1048640, 524352, REGIONS[0].size(72)):
        for content in (bytes(size), random.integers(0, 256, size, np.uint8).tobytes()):
            assert FAMILY.detect(FileHead(content[:HEAD_BYTES], size, "x.bin")).score < MINE


@pytest.mark.parametrize("region", REGIONS, ids=lambda region: region.header.name)
def test_dumps_are_recognised(region):
    found = read((GOLDEN / "v3_spec_dummy" / "chip_swimlane_records.json").read_bytes())
    content = encode_dump(found, region)
    match = FAMILY.detect(FileHead(content[:HEAD_BYTES], len(content), "dump.bin"))
    assert (match.score >= CERTAIN, match.format) == (True, "dump")


def test_stages_of_a_dump(tmp_path, capsys):
    found = read((GOLDEN / "v3_spec_dummy" / "chip_swimlane_records.json").read_bytes())
    path = tmp_path / "dump.bin"
    path.write_bytes(encode_dump(found, REGIONS[0]))
    for stage, least in (("packet", 2 + 2 * 11), ("record", 6 + 6 + 19 + 7), ("row", 30)):
        assert cli.main(["dump", "--stage", stage, str(path)]) == 0
        assert len(capsys.readouterr().out.splitlines()) >= least
    assert cli.main(["info", str(path)]) == 0

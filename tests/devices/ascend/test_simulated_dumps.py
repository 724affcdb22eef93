"""Simulated dumps of a device that was in use before: garbage in padding and old slots, few cores, both chips."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import decode, decode_file, decode_simulated, listing, read, simulated, stats
from devices.ascend.test_encode import assert_same
from effort import some
from lanescope import cli
from lanescope.devices.ascend.family import FAMILY
from lanescope.devices.ascend.formats import device_dump, dump_parts
from lanescope.devices.ascend.formats.device_structs import POOL, QUEUE_ENTRY, REGIONS
from lanescope.devices.ascend.formats.encode_dump import encode_dump
from lanescope.devices.ascend.formats.field_map.device_dumps import dump_map
from lanescope.devices.ascend.formats.layout import AICORE, AICPU, PHASES, SUBMITS
from lanescope.devices.ascend.formats.records import Records, Section, section
from lanescope.errors import InputError, UsageError
from lanescope.source import HEAD_BYTES, MINE, FileHead

LISTS = (AICORE, AICPU, PHASES, SUBMITS)
FEW = {"aic": 2, "aiv": 4, "threads": 2}
CLOCKS = {"a2a3": 50_000_000, "a5": 1_000_000_000, "buffers": 50_000_000}


def content_of(simulation):
    return next(iter(simulation.files.values()))


def dumped(content, **options):
    return device_dump.read_dump(np.frombuffer(content, np.uint8), "dump.bin", options)


def tables(trace):
    """Return every table but that of the files, which lie in another folder each time."""
    return {name: rows for name, rows in listing(trace).items() if name != "inputs"}


def by_lane(section):
    """Return a list in the order of a dump: by core, else by thread."""
    if section.layout not in (AICORE, AICPU):
        return section
    return section.take(np.argsort(section["core_id"], kind="stable"))


@given(
    seed=st.integers(1, 1000),
    level=st.integers(1, 4),
    dump=st.sampled_from(["a2a3", "a5", "buffers"]),
    version=st.sampled_from(["v3", "v3c"]),
    tasks=st.integers(1, 60),
)
@settings(max_examples=some(60, 12))
def test_a_dump_holds_the_rows_of_the_records_file(seed, level, dump, version, tasks):
    options = {**FEW, "tasks": tasks, "level": level, "format_version": version}
    told = read(content_of(simulated(seed, clock=CLOCKS[dump], **options)))
    content = content_of(simulated(seed, dump=dump, **options))
    if not content:
        # Nothing but tasks without a kernel: no buffer was handed over.
        assert not sum(len(told[layout]) for layout in LISTS)
        return
    found = dumped(content, format_version=version)
    for layout in LISTS:
        rows = by_lane(told[layout])
        if layout is PHASES and len(rows):
            # The file has a list for each thread of the platform, a dump pools for those that schedule.
            assert rows.groups >= found[layout].groups == rows.group.max() + 1
            rows = Section(**{**rows.__dict__, "groups": found[layout].groups})
        assert_same(rows, found[layout])
    assert found.accounts[2] == 0
    assert sum(found.accounts) == len(content)
    assert all(stream.unaccounted == 0 for stream in found.streams)
    # A header whose first threads have handed over nothing begins with zeros, like much else.
    if any(content[:HEAD_BYTES]):
        match = FAMILY.detect(FileHead(content[:HEAD_BYTES], len(content), "dump.bin"))
        assert (match.score >= MINE, match.format) == (True, "dump")
    if dump != "buffers":
        assert found.metadata == {
            name: told.metadata[name]
            for name in ("clock_freq_hz", "num_cores", "core_to_thread")
            if name in told.metadata
        }


def test_many_buffers_that_were_used_before():
    options = {"aic": 1, "aiv": 1, "threads": 1, "tasks": 6000, "mix": 0.0, "spmd": 0.0}
    for level in (1, 2):
        told = read(content_of(simulated(3, level=level, format_version="v3c", **options)))
        for dump in ("a2a3", "buffers"):
            content = content_of(simulated(3, level=level, dump=dump, format_version="v3c", **options))
            found = dumped(content)
            assert len(list(dump_parts.split_sections(np.frombuffer(content, np.uint8)).buffers)) > 4
            assert_same(by_lane(told[AICORE]), found[AICORE])
            assert stats(decode(content, name="dump.bin")).keys() <= {"ascend_format_version_assumed"}


@pytest.mark.parametrize("dump", ["a2a3", "a5"])
def test_losses_are_those_that_the_pools_count(dump):
    lost = {"drop_aicore": 7, "drop_aicpu": 5, "drop_both": 2, "drop_phases": 4}
    made = simulated(5, tasks=300, format_version="v3c", dump=dump, **FEW, **lost)
    trace = decode_simulated(made)
    missing = Counter()
    for row in trace.details["ascend_record_streams"].rows():
        missing[row["stream"], "dropped"] += row["dropped"]
        missing[row["stream"], "unaccounted"] += row["unaccounted"]
    assert missing == Counter(
        {
            ("aicore_task", "unaccounted"): 9,
            ("aicpu_task", "dropped"): 7,
            ("sched_phase", "dropped"): made.truth["losses"]["phases"],
        }
    )
    assert made.truth["losses"]["phases"] > 0


def test_without_a_header_only_holes_are_losses():
    made = simulated(5, tasks=300, format_version="v3c", dump="buffers", **FEW)
    content = content_of(made)
    pieces = dump_parts.split_sections(np.frombuffer(content, np.uint8)).pieces
    for stream in ("aicore_task", "aicpu_task"):
        kept = b"".join(content[piece.begin : piece.end] for piece in pieces if piece.stream != stream)
        trace = decode(kept, name="dump.bin")
        assert trace.accounting["lost"].sum() == 0
        assert not {row["severity"] for row in trace.stats.rows()} & {"data_loss", "error"}


def test_a_buffer_that_is_missing_between_others_of_a_thread_is_a_loss():
    phase = {"kind": 0, "texts": ("complete",), "tasks_processed": 1, "start_cycles": 5, "end_cycles": 6}
    count = 3 * 16384 + 100
    columns = {name: np.full(count, value) for name, value in phase.items() if name != "texts"}
    columns |= {name: np.zeros((count, 3), np.int64) for name in ("shared_at_start", "shared_at_end")}
    columns["start_cycles"] = 1000 + 10 * np.arange(count)
    columns["end_cycles"] = columns["start_cycles"] + 5
    columns["loop_iter"] = np.arange(count)
    rows = section(PHASES, columns, group=np.zeros(count, np.int64), texts=phase["texts"])
    content = encode_dump(Records("x", 3, {}, {PHASES.name: rows}), None)
    unit = len(content) // 4
    for missing, lost in (((), 0), ((1,), 16384), ((1, 2), 32768), ((0,), 0), ((3,), 0)):
        kept = b"".join(content[unit * place : unit * (place + 1)] for place in range(4) if place not in missing)
        assert stats(decode(kept, name="dump.bin")).get("ascend_unaccounted_records", 0) == lost


def test_what_memory_held_before_changes_nothing():
    told = read(content_of(simulated(2, tasks=80, format_version="v3c", **FEW)))
    for region in (None, REGIONS[0]):
        clean = encode_dump(told, region)
        for seed in range(4):
            used = encode_dump(told, region, used=np.random.default_rng(seed))
            assert len(used) == len(clean)
            assert used != clean
            first, second = dumped(clean), dumped(used)
            for layout in LISTS:
                assert_same(first[layout], second[layout])
            assert (first.streams, first.accounts) == (second.streams, second.accounts)


# --- the slow, obvious reader -----------------------------------------------------------------------------------------


def reference(content, region):
    """Read a dump with the struct codec, a record at a time: records by stream and index, and the pools in use."""
    head = region.header.decode(content[: region.header.size])
    cores, at = head["num_cores"], region.header.size
    pools = {}
    for lane in (
        *(("aicpu_task", core) for core in range(cores)),
        *(("aicore_task", core) for core in range(cores)),
        *(("sched_phase", thread) for thread in range(region.threads)),
        *(("orch_phase", thread) for thread in range(region.threads)),
    ):
        pools[lane] = POOL.decode(content[at : at + POOL.size])
        at += POOL.size
    found = {}
    while at < len(content):
        entry = QUEUE_ENTRY.decode(content[at : at + QUEUE_ENTRY.size])
        lane = QUEUE_ENTRY["kind"].values[entry["kind"]], entry["core_index"]
        buffer = dump_parts.buffer_of(lane[0], region.format_version)
        at += QUEUE_ENTRY.size
        record = buffer["records"].type
        count = int.from_bytes(content[at + buffer["count"].offset :][:4], "little")
        if lane[0] == "aicore_task" and head["level"] == 1:
            count = min(count, pools[lane]["total_record_count"] - 1024 * entry["buffer_seq"])
        places = range(at, at + record.size * count, record.size)
        found.setdefault(lane, []).extend(record.decode(content[place : place + record.size]) for place in places)
        at += buffer.size
    assert at == len(content)
    return found, {lane: pool for lane, pool in pools.items() if pool["total_record_count"]}


@pytest.mark.parametrize("level", [1, 4])
@pytest.mark.parametrize("region", REGIONS, ids=lambda region: region.header.name)
def test_the_struct_codec_finds_the_same(region, level):
    version = region.format_version
    content = content_of(simulated(4, tasks=60, level=level, format_version=version, dump=region.platform, **FEW))
    rows, pools = reference(content, region)
    found = dumped(content)
    names = {
        "aicore_task": (AICORE, {"start_time": "start_cycles", "task_token_raw": "task_token_raw"}),
        "aicpu_task": (AICPU, {"dispatch_time": "dispatch_cycles", "reg_task_id": "reg_task_id"}),
        "sched_phase": (PHASES, {"end_time": "end_cycles", "shared_depth_at_end": "shared_at_end"}),
        "orch_phase": (SUBMITS, {"task_id": "task_id", "submit_idx": "submit_idx"}),
    }
    for stream, (layout, members) in names.items():
        lanes = sorted(lane for lane in rows if lane[0] == stream)
        for member, cell in members.items():
            expected = [
                row[member] for lane in lanes for row in rows[lane] if layout is not AICORE or row["start_time"]
            ]
            assert found[layout][cell].tolist() == expected
    assert {(stream.kind, stream.index): stream.total for stream in found.streams} == {
        lane: pool["total_record_count"] for lane, pool in pools.items()
    }


# --- any bytes, any pieces --------------------------------------------------------------------------------------------

SMALL = {**FEW, "tasks": 12, "level": 2, "format_version": "v3c", "dump": "a2a3"}


@given(
    edits=st.lists(
        st.tuples(
            st.integers(0, 1 << 20) | st.integers(126976, 127168 + 20 * 192 + 200), st.binary(min_size=1, max_size=40)
        ),
        min_size=1,
        max_size=4,
    ),
    cut=st.integers(0, 1 << 20),
)
@settings(max_examples=some(100, 25))
def test_any_bytes_of_a_used_dump_are_accounted_for(edits, cut):
    content = bytearray(content_of(simulated(6, **SMALL)))
    for at, new in edits:
        at %= len(content)
        content[at : at + len(new)] = new[: len(content) - at]
    content = bytes(content[: len(content) - (cut if cut < len(content) // 2 else 0)])
    try:
        trace = decode(content, name="dump.bin")
    except InputError as error:
        refused, trace = str(error), None
    if trace is None:
        assert "\n" not in refused
        return
    rows = list(trace.accounting.rows())
    assert next(row["total"] for row in rows if row["scope"] == "input") == len(content)
    for row in rows:
        assert row["decoded"] + row["padding"] + row["lost"] == row["total"]
        assert min(row["decoded"], row["padding"], row["lost"]) >= 0


def test_pieces_of_any_size_give_the_same_trace():
    made = simulated(6, **SMALL)
    whole = tables(decode_simulated(made))
    for chunk in (1 << 16, 33333, 4096):
        assert tables(decode_simulated(made, chunk=chunk)) == whole


def test_a_damaged_header_loses_itself_but_no_buffer():
    content = bytearray(content_of(simulated(6, **SMALL)))
    told = dumped(bytes(content))
    region = REGIONS[0]
    content[region.header["level"].offset] = 9
    found = dumped(bytes(content))
    assert found.accounts[2] == region.size(6)
    for layout in (AICORE, AICPU):
        assert_same(told[layout], found[layout])


def test_a_damaged_header_of_a_long_run_holds_no_buffers():
    """Its queues are full of entries, and look like records."""
    made = simulated(8, dump="a2a3", tasks=6000, level=2, aic=24, aiv=48, format_version="v3c", truth="totals")
    content = bytearray(content_of(made))
    told = dumped(bytes(content))
    content[REGIONS[0].header["level"].offset] = 9
    found = dumped(bytes(content))
    assert found.accounts[2] == REGIONS[0].size(72)
    assert len(found[AICORE]) == len(told[AICORE])


def test_fields_of_a_dump_lie_where_the_codec_reads_them():
    content = content_of(simulated(6, **{**SMALL, "level": 1}))
    rows, pools = reference(content, REGIONS[0])
    sites = {(one.record, one.name): one for one in dump_map("dump.bin", content).fields}

    def values(record, name):
        (first, bits), *more = sites[record, name].pieces
        assert (first, more) == (0, [])
        places = [at // 8 for at in sites[record, name].begin]
        return [int.from_bytes(content[at : at + bits // 8], "little") for at in places]

    # Slots that no execution reached are no records.
    starts = [row["start_time"] for lane in rows for row in rows[lane] if row["start_time"]]
    assert values("ascend.aicore_task", "start_time") == starts
    assert values("ascend.header_a2a3_v3c", "num_cores") == [6]
    assert sum(values("ascend.pool", "total_record_count")) == sum(row["total_record_count"] for row in pools.values())
    # The pools of threads that do not orchestrate are never filled.
    assert len(values("ascend.pool", "free_head")) == 2 * 6 + 4
    assert sorted(values("ascend.ready_entry", "core_index")) == sorted(index for _, index in rows)


def test_dumps_that_no_device_leaves_are_refused():
    for options, message in (
        ({"dump": "a9"}, "unknown dump"),
        ({"dump": "a2a3", "format_version": "v4"}, "requires format version"),
        ({"dump": "a5", "format_version": "v3c", "duplicates": 2}, "cannot be combined"),
        ({"dump": "a2a3", "format_version": "v3c", "aic": 60}, "at most 72 cores"),
        ({"dump": "a5", "format_version": "v3c", "threads": 6}, "5 scheduler threads"),
    ):
        with pytest.raises(UsageError, match=message):
            simulated(1, tasks=5, **options)


def bytes_of(trace):
    (account,) = (row for row in trace.accounting.rows() if row["scope"] == "input")
    assert account["total"] == account["decoded"] + account["padding"] + account["lost"]
    return account["total"], account["lost"]


@pytest.mark.parametrize("level", [1, 2, 3, 4])
@pytest.mark.parametrize("dump", ["a2a3", "a5"])
def test_records_of_a_buffer_that_the_dump_ends_in_are_those_that_pools_count(tmp_path, dump, level):
    options = {"format_version": "v3c", "tasks": 60, "level": level, "deps": False, "names": False}
    content = content_of(simulated(3, dump=dump, **options))
    path = tmp_path / "dump.bin"

    def cut(size):
        path.write_bytes(content[:size])
        return decode_file(path)

    path.write_bytes(content)
    whole = decode_file(path)
    *_, last = dump_parts.split_sections(np.frombuffer(content, np.uint8)).buffers
    size = dump_parts.record_dtype(last.stream, "v3c")[0].itemsize
    # Nothing is missing but padding.
    for end in (len(content) - 1, last.end - 64, last.begin + cut_at(content, last) * size):
        trace = cut(end)
        assert {name: rows for name, rows in tables(trace).items() if name != "accounting"} == {
            name: rows for name, rows in tables(whole).items() if name != "accounting"
        }
        assert bytes_of(trace) == (end, 0)
    trace = cut(last.begin + cut_at(content, last) * size - 1)
    counted = stats(trace)
    assert counted["truncated"] == counted["ascend_records_cut"] == 1
    # They were in the file before it was cut: the device lost none.
    assert "ascend_unaccounted_records" not in counted
    assert not any(row["lost"] for row in trace.accounting.rows() if row["scope"] == "producer")
    assert bytes_of(trace)[1] == size - 1 + (cut_at(content, last) == 1) * dump_parts.QUEUE_ENTRY.size


def cut_at(content, buffer):
    """Return how many records the last buffer of a dump holds."""
    array = np.frombuffer(content, np.uint8)
    return dump_parts.valid_count(array, dump_parts.split_sections(array), buffer)


def test_buffers_that_end_in_one_are_truncated(tmp_path):
    content = content_of(simulated(3, format_version="v3c", tasks=60, dump="buffers", deps=False, names=False))
    path = tmp_path / "dump.bin"
    path.write_bytes(content[:-1])
    trace = decode_file(path)
    assert stats(trace)["truncated"] == 1
    assert "ascend_bad_buffer" not in stats(trace)
    assert bytes_of(trace)[1] > 0


def test_a_dump_that_ends_in_its_pools_is_named(tmp_path, capsys):
    (content,) = simulated(3, format_version="v3c", tasks=60, dump="a5", deps=False, names=False).files.values()
    path = tmp_path / "dump.bin"
    path.write_bytes(content[:240_000])
    assert cli.main(["info", str(path)]) == 3
    assert "ends within the pools of device memory: 240,000 of " in capsys.readouterr().err

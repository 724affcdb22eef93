"""CTF of other producers: THAPI's by its meaning, LTTng's as calls and points, losses with their place."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import tempfile
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanescope
import published_schemas
from devices.levelzero import thapi_ctf
from devices.levelzero.helpers import Script, opened, simulated
from lanescope.cli import main
from lanescope.devices.levelzero.analysis import windows
from lanescope.devices.levelzero.analysis.tally import entries
from lanescope.devices.levelzero.family import FAMILY
from lanescope.devices.levelzero.formats.foreign.events import pairs_of
from lanescope.devices.levelzero.formats.foreign.packet_counters import PacketCounters, discarded_steps, missing_steps
from lanescope.devices.levelzero.formats.foreign.streams import unix_times
from lanescope.errors import InputError
from lanescope.wire import tsdl
from wire import foreign, lttng_session
from wire.fragments_writer import transcribed
from wire.lttng_session import BIN, NEWEST, ROOT
from wire.tsdl_writer import Writer

needs_lttng = pytest.mark.skipif(not lttng_session.available(), reason="no LTTng: make test-tools")
needs_bt2 = pytest.mark.skipif(not (BIN / "bt2-python").exists(), reason="no bt2: make test-tools")

needs_newest = pytest.mark.skipif(not (NEWEST / "lttng").exists(), reason="no newest LTTng: make test-tools")


def stats(trace) -> dict[str, int]:
    """Return the stats by name, those of all files together."""
    found: dict[str, int] = {}
    for row in trace.stats.rows():
        found[row["name"]] = found.get(row["name"], 0) + row["count"]
    return found


def rows(trace, table="slices"):
    """Return rows without what a reader names differently: inputs, and the begin of time."""
    source = trace.details[table] if table in trace.details else getattr(trace, table)
    return [{key: value for key, value in row.items() if key != "input_id"} for row in source.rows()]


@pytest.mark.parametrize("seed", range(4))
def test_thapi_by_ctf_is_thapi_by_text(seed, tmp_path):
    """Calls, operations, kernels, devices and copies are the same in both forms."""
    lines = next(iter(FAMILY.simulate(simulated(style="thapi", ops=150), seed).files.values()))
    text = opened(lines, tmp_path)
    thapi_ctf.write(lines, tmp_path / "trace")
    trace = lanescope.open(tmp_path / "trace")
    assert len(rows(text)) > 300
    for table in ("slices", "tracks", "levelzero_calls", "levelzero_operations", "levelzero_queues", "flows"):
        assert rows(trace, table) == rows(text, table), table
    assert {k: v for k, v in stats(text).items() if k != "levelzero_missing_date"} == stats(trace)


def test_thapi_by_ctf_2_is_thapi_by_ctf_1_8(tmp_path):
    lines = next(iter(FAMILY.simulate(simulated(style="thapi", ops=150), 5).files.values()))
    thapi_ctf.write(lines, tmp_path / "first")
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    described = tsdl.describe((tmp_path / "first/metadata").read_text())
    (tmp_path / "second/metadata").write_text(transcribed(described, 5))
    first, second = lanescope.open(tmp_path / "first"), lanescope.open(tmp_path / "second")
    assert len(rows(first, "levelzero_operations")) > 100
    for table in ("slices", "tracks", "levelzero_calls", "levelzero_operations", "levelzero_queues", "flows"):
        assert rows(second, table) == rows(first, table), table
    assert stats(second) == stats(first)


def test_calls_of_other_apis(tmp_path):
    script = Script()
    for provider, function, result in (
        ("mpi", "MPI_Send", {"mpiResult": 15}),
        ("cuda", "cuMemcpyHtoD_v2", {"cuResult": 0}),
    ):
        script.record(f"lttng_ust_{provider}:{function}_entry", ByteCount=64)
        script.record(f"lttng_ust_{provider}:{function}_exit", **result)
    script.record("lttng_ust_ze:zeInit_entry", flags=0).record(
        "lttng_ust_ze:zeInit_exit", zeResult="ZE_RESULT_NOT_READY"
    )
    text = opened(script.text, tmp_path)
    thapi_ctf.write(script.text, tmp_path / "trace")
    trace = lanescope.open(tmp_path / "trace")
    assert rows(trace, "levelzero_calls") == rows(text, "levelzero_calls")
    assert [row["result"] for row in rows(trace, "levelzero_calls")] == [
        "MPI 15",
        "CUDA_SUCCESS",
        "ZE_RESULT_NOT_READY",
    ]


@pytest.fixture(scope="module")
def recorded():
    """Record LTTng traces: of one user, of processes, with an overflow, in rotated files."""
    folder = Path(tempfile.mkdtemp(prefix="lanescope-lttng-"))
    folder.chmod(0o755)
    program = lttng_session.build(folder)
    made = {}
    for name, arguments, options in (
        ("plain", ("40",), {}),
        ("overflow", ("20", "5000"), {"channel": ("--subbuf-size", "4096", "--num-subbuf", "2")}),
        ("pid", ("10",), {"channel": ("--buffers-pid",), "contexts": ("vtid", "procname", "ip", "vpid")}),
        (
            "files",
            ("300",),
            {"channel": ("--subbuf-size", "4096", "--tracefile-size", "8192", "--tracefile-count", "64")},
        ),
    ):
        (folder / name).mkdir()
        made[name] = lttng_session.record(folder / name, program, *arguments, **options)
    yield made
    shutil.rmtree(folder)


@needs_lttng
@needs_bt2
@pytest.mark.parametrize("name", ["plain", "overflow", "pid", "files"])
def test_lttng_event_by_event_as_babeltrace2_reads_it(name, recorded):
    folder = recorded[name]
    seen = foreign.babeltrace(folder)[str(folder)]
    assert seen["error"] is None
    foreign.same_events(foreign.events(folder), seen["events"])
    trace = lanescope.open(folder)
    found = stats(trace)
    discarded = seen["discarded"]["events"]
    assert name != "overflow" or discarded
    lost = sum(row["lost_count"] or 0 for row in trace.gaps.rows() if row["cause"] == "discarded")
    assert found.get("levelzero_discarded", 0) == lost
    # On a busy machine LTTng's own counter once went back; babeltrace2 takes that for a step of almost 64 bits.
    went_back = discarded >= 1 << 63
    assert (found.get("levelzero_packet_counter", 0) > 0) == went_back
    assert went_back or lost == discarded
    calls = [event for event in seen["events"] if event[2].endswith(("_entry", "_begin"))]
    points = [event for event in seen["events"] if event[2] in ("program:numbers", "program:texts", "program:nothing")]
    if not lost:
        assert len(trace.slices) == len(calls)
    assert len(trace.instants) == len(points)
    zero = trace.time.epoch_ns
    assert sorted(np.asarray(trace.instants["ts"]) + zero) == [event[0] for event in points]


@needs_lttng
def test_calls_of_lttng_are_nested_on_their_thread(recorded):
    trace = lanescope.open(recorded["plain"])
    names = [row["name"] for row in trace.slices.rows()]
    assert (names.count("program:work"), names.count("program:step")) == (80, 80)
    lanes = [row["name"] for row in trace.tracks.rows() if row["kind"] == "lane"]
    assert len(lanes) == 2
    assert all(name.startswith("thread ") for name in lanes)
    with_fields = lanescope.open(recorded["plain"], fields=True)
    texts = [row["fields"] for row in with_fields.details["levelzero_events"].rows()]
    assert sum("four: " in text and "two: [ 1, 2 ]" in text for text in texts) == 80
    assert not len(trace.details["levelzero_events"])


@needs_lttng
@needs_bt2
@pytest.mark.parametrize("name", ["plain", "overflow"])
def test_lttng_rewritten_by_babeltrace2_is_the_same(name, recorded, tmp_path):
    out = tmp_path / "rewritten"
    command = [BIN / "babeltrace2", recorded[name], "-c", "sink.ctf.fs", f'--params=path="{out}",quiet=true']
    subprocess.run(command, check=True, capture_output=True)
    seen = foreign.babeltrace(out)[str(out)]
    foreign.same_events(foreign.events(out), seen["events"])
    first, second = lanescope.open(recorded[name]), lanescope.open(out)
    assert rows(first) == rows(second)
    assert rows(first, "instants") == rows(second, "instants")
    assert stats(first) == stats(second)


@pytest.mark.parametrize("tools", [pytest.param(BIN, marks=needs_bt2), pytest.param(NEWEST, marks=needs_newest)])
@pytest.mark.parametrize("name", ["recording_saxpy", "recording_resubmit"])
def test_our_own_recording_rewritten_by_babeltrace2(name, tools, tmp_path):
    """The newest version writes CTF 2, and cannot read its own description of a recording: the original has to do."""
    source, out = ROOT / "tests/mutations/data" / name, tmp_path / "rewritten"
    command = [tools / "babeltrace2", source, "-c", "sink.ctf.fs", f'--params=path="{out}",quiet=true']
    subprocess.run(command, check=True, capture_output=True)
    expected = foreign.babeltrace(out)[str(out)]["events"] if tools == BIN else foreign.events(source)
    foreign.same_events(foreign.events(out), expected)
    first, second = lanescope.open(source), lanescope.open(out)
    for table in ("slices", "levelzero_calls", "levelzero_operations", "flows", "counters"):
        assert rows(first, table) == rows(second, table), table
    assert stats(first) == stats(second)


def test_big_endian_traces_of_several_files_and_clocks_in_one_folder(tmp_path):
    count = 0
    for seed, order in ((1, "be"), (2, "le")):
        writer = Writer(seed, order)
        writer.save(tmp_path / f"trace{seed}")
        (tmp_path / f"trace{seed}/index").mkdir()
        (tmp_path / f"trace{seed}/index/stream_0.idx").write_bytes(b"an index")
        (tmp_path / f"trace{seed}/.hidden").write_bytes(b"hidden")
        count += len(writer.events)
    trace = lanescope.open(tmp_path)
    assert len(trace.instants) == count
    lanes = [row["name"] for row in trace.tracks.rows() if row["kind"] == "lane"]
    assert lanes
    assert all(name.startswith("CPU ") for name in lanes)


CLOCKS = """/* CTF 1.8 */ typealias integer {{ size = 8; }} := u8;
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{ u8 stream_id; }}; }};
clock {{ name = c; freq = 1000; {c} }}; clock {{ name = d; freq = 3; {d} }};
stream {{ id = 1; packet.context := struct {{ u8 packet_size; }};
  event.header := struct {{ integer {{ size = 8; map = clock.c.value; }} timestamp; }}; }};
stream {{ id = 2; packet.context := struct {{ u8 packet_size; }};
  event.header := struct {{ integer {{ size = 8; map = clock.{second}.value; }} timestamp; }}; }};
event {{ name = e; stream_id = 1; }}; event {{ name = f; stream_id = 2; }};
"""
UID = 'uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564";'


@pytest.mark.parametrize(
    ("c", "d", "second", "apart"),
    [
        ("", "", "c", 0),
        ("", "", "d", 1),
        ("absolute = true;", "", "d", 1),
        ("absolute = true;", "absolute = true;", "d", 0),
        (UID, UID, "d", 0),
    ],
)
@pytest.mark.parametrize("in_one_file", [False, True])
def test_clocks_of_one_trace_that_nothing_connects_are_reported(c, d, second, apart, in_one_file, tmp_path):
    """Each file, and each kind of stream in it, has the clock of its own kind."""
    (tmp_path / "metadata").write_text(CLOCKS.format(c=c, d=d, second=second))
    packets = bytes((1, 24, 5)), bytes((2, 24, 6))
    for number, data in enumerate([b"".join(packets)] if in_one_file else packets):
        (tmp_path / f"stream_{number}").write_bytes(data)
    trace = lanescope.open(tmp_path)
    assert len(trace.instants) == 2
    assert stats(trace).get("levelzero_foreign_clocks", 0) == apart


def test_lost_bytes_are_counted(tmp_path):
    writer = Writer(3)
    writer.save(tmp_path / "trace")
    path = tmp_path / "trace/stream_0"
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(bytes(data) + b"junk")
    found = stats(lanescope.open(tmp_path / "trace"))
    assert found["levelzero_invalid_event"] >= 4


def test_events_without_a_clock_are_counted_as_lost(tmp_path):
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace/metadata").write_text(
        "/* CTF 1.8 */ typealias integer { size = 8; } := u8;"
        "trace { major = 1; minor = 8; byte_order = le; }; event { name = e; fields := struct { u8 a; }; };"
    )
    (tmp_path / "trace/stream").write_bytes(b"abc")
    assert stats(lanescope.open(tmp_path / "trace"))["levelzero_untimed_event"] == 3


def test_a_description_that_cannot_be_read_is_one_line(tmp_path):
    (tmp_path / "metadata").write_text("/* CTF 1.8 */\ntrace { major = 1; minor = 8; };\nwhat is this;")
    with pytest.raises(InputError, match="line 3 of the metadata: unknown declaration 'what'"):
        lanescope.open(tmp_path)


def test_pairs_are_those_whose_partner_is_there():
    names = ["a_entry", "a_exit", "b_start", "c_begin", "c_end", "syscall_entry_read", "syscall_exit_read", "d_end"]
    assert set(pairs_of(names)) == set(names) - {"b_start", "d_end"}
    assert pairs_of(names)["syscall_exit_read"] == ("syscall read", True)


@pytest.mark.parametrize("frequency", [1_000_000_000, 1_000_000, 12_500_000, 19_200_000, 3_000_000_019, 1 << 35])
def test_times_are_exact(frequency):
    clock = tsdl.Clock("c", frequency, 1_500_000_000, 77)
    cycles = np.array([0, 1, frequency - 78, frequency, 123_456_789_012_345], np.uint64)
    ts, fits = unix_times(clock, cycles)
    exact = [clock.ns(int(value)) for value in cycles]
    assert fits.all()
    assert all(abs(a - b) <= (frequency > 1 << 34) for a, b in zip(ts.tolist(), exact, strict=True))
    assert not unix_times(clock, np.array([1 << 63], np.uint64))[1].any()


def test_counters_of_discarded_events_wrap():
    assert discarded_steps(np.array([3, 3, 7], np.uint64), 64).tolist() == [3, 0, 4]
    assert discarded_steps(np.array([250, 4], np.uint64), 8).tolist() == [250, 10]
    assert discarded_steps(np.array([1 << 40, 1 << 63, 3], np.uint64), 64).tolist() == [1 << 40, -1, -1]
    assert missing_steps(np.array([0, 1 << 32, 1 << 50, 9, 10]), -1).tolist() == [0, (1 << 32) - 1, -1, 0, 0]


@needs_lttng
def test_a_folder_that_moved_is_read_too(recorded, tmp_path):
    """A copy of one trace alone, without its folders above, and a trace in a folder of a host as iprof keeps it."""
    (metadata,) = recorded["plain"].rglob("metadata")
    shutil.copytree(metadata.parent, tmp_path / "alone")
    shutil.copytree(recorded["plain"], tmp_path / "thapi/host")
    counts = {len(lanescope.open(path).slices) for path in (recorded["plain"], tmp_path / "alone", tmp_path / "thapi")}
    assert len(counts) == 1


def sums(trace) -> dict[str, tuple[int, ...]]:
    """Return the host calls of the whole trace: calls, errors, open, total, least and most."""
    return {
        entry.name: (entry.count, entry.errors, entry.open, entry.total, entry.min, entry.max)
        for entry in entries(trace)
        if entry.section == "host"
    }


def in_windows(folder, window) -> dict[str, tuple[int, ...]]:
    return {row[1]: (*row[2:6], *row[7:]) for row in windows.rows_of(windows.tally(folder, window=window))}


@needs_lttng
@pytest.mark.parametrize("name", ["plain", "overflow", "files"])
def test_sums_by_windows_are_those_of_the_whole(name, recorded):
    whole = sums(lanescope.open(recorded[name]))
    assert whole["program:work"][0] >= 20
    losses = dict.fromkeys(("levelzero_discarded", "levelzero_missing_packet"), 0)
    for row in lanescope.open(recorded[name]).stats.rows():
        if row["name"] in losses:
            losses[row["name"]] += row["count"]
    assert losses["levelzero_discarded"] or name != "overflow"  # how many the others lose is up to the machine
    for window in (1, 50, 1 << 20):
        assert in_windows(recorded[name], window) == whole
        found = windows.tally(recorded[name], window=window)
        assert (found.discarded, found.missing_packets, found.backwards) == (*losses.values(), 0)


@given(
    steps=st.lists(st.tuples(st.integers(0, 300), st.integers(1, 4)), min_size=1, max_size=30),
    cuts=st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=6),
)
def test_counters_of_packets_go_on_over_windows_and_rotated_files(steps, cuts):
    """The counter of discarded events has 8 bits, so a step of more than 255 is not seen as a whole."""
    counts = np.cumsum([step % 256 for step, _ in steps]) % 256
    numbers = np.cumsum([step for _, step in steps])
    context = SimpleNamespace(fields=[("events_discarded", SimpleNamespace(size=8))])
    trace = SimpleNamespace(reader=SimpleNamespace(streams={0: SimpleNamespace(packet_context=context)}))
    files = [PacketCounters()]
    for begin, end in pairwise(sorted({0, len(steps), *(cut % len(steps) for cut, _ in cuts)})):
        if begin and {cut % len(steps): is_new for cut, is_new in cuts}.get(begin):
            files.append(PacketCounters())
        columns = {
            "begin": numbers[begin:end],
            "stream": np.zeros(end - begin, np.int64),
            "instance": np.zeros(end - begin, np.int64),
            "discarded": counts[begin:end].astype(np.uint64),
            "sequence": numbers[begin:end].astype(np.uint64),
        }
        walk = SimpleNamespace(
            packets=columns["begin"], packet=columns.__getitem__, has=lambda _, n=end - begin: np.ones(n, np.bool_)
        )
        files[-1].add(SimpleNamespace(walk=walk, trace=trace, number=len(files)))
    expected = sum(step % 256 for step, _ in steps), int(numbers[-1] - numbers[0]) - len(steps) + 1
    assert PacketCounters.joined(reversed(files)) == (*expected, 0)


@pytest.mark.parametrize("lost", [False, True])
def test_sums_of_thapi_by_windows(lost, tmp_path, monkeypatch):
    """Also where returns are missing: what is around them ends them, in whatever window."""
    lines = next(iter(FAMILY.simulate(simulated(style="thapi", ops=150, threads=3), 3).files.values())).splitlines(True)
    if lost:
        lines = [line for number, line in enumerate(lines) if b"_exit" not in line or number % 7]
    thapi_ctf.write(b"".join(lines), tmp_path / "trace")
    # A file of small packets: windows end between packets.
    packets = split(tmp_path / "trace/channel0_0", 40)
    assert packets > 20
    whole = sums(lanescope.open(tmp_path / "trace"))
    assert any(found[2] for found in whole.values()) or not lost
    for window, piece in ((1, 1 << 20), (100, 1 << 20), (1, 1), (100, 5000), (1 << 18, 3000)):
        monkeypatch.setattr(windows, "_LEAST_PIECE", piece)
        monkeypatch.setattr(windows, "_MOST_PIECE", piece)
        assert in_windows(tmp_path / "trace", window) == whole


def test_a_file_that_shrinks_is_an_error(tmp_path, monkeypatch, capsys):
    """Mapped, it would end the process."""
    content = next(iter(FAMILY.simulate(simulated(style="thapi", ops=150), 3).files.values()))
    thapi_ctf.write(content, tmp_path / "channel")
    split(tmp_path / "channel/channel0_0", 40)
    monkeypatch.setattr(windows, "_MOST_PIECE", 4096)
    monkeypatch.setattr(windows, "_LEAST_PIECE", 4096)
    path = tmp_path / "channel/channel0_0"
    whole = windows.PacketCounters.add

    def cut(self, stream):
        path.write_bytes(path.read_bytes()[:6000])
        whole(self, stream)

    monkeypatch.setattr(windows.PacketCounters, "add", cut)
    assert main(["levelzero-tally", "--window", "10", str(tmp_path)]) == 3
    assert "channel0_0: became shorter while it was read" in capsys.readouterr().err


COUNTED = """/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le;
        packet.header := struct { integer { size = 32; align = 8; } magic;
                                  integer { size = 64; align = 8; } stream_instance_id; }; };
clock { name = c; freq = 1000000000; offset_s = 1700000000; absolute = true; };
stream { packet.context := struct {
           integer { size = 64; align = 8; } content_size; integer { size = 64; align = 8; } packet_size;
           integer { size = 64; align = 8; } events_discarded; integer { size = 64; align = 8; } packet_seq_num;
           integer { size = 64; align = 8; map = clock.c.value; } timestamp_begin; };
         event.header := struct { integer { size = 64; align = 8; map = clock.c.value; } timestamp; };
         event.context := struct { integer { size = 64; align = 8; signed = true; } vpid;
                                   integer { size = 64; align = 8; signed = true; } vtid; }; };
event { name = "tick"; fields := struct { }; };
"""


def counted(folder, packets, *, files=1):
    """Write a trace of packets: discarded events, number, and processes and threads of events; of one stream."""
    folder.mkdir()
    (folder / "metadata").write_text(COUNTED)
    made, now = [b""] * files, 0
    for at, (discarded, number, events) in enumerate(packets):
        body, begin = b"", now
        for pid, tid in events:
            now += 10
            body += struct.pack("<Qqq", now, pid, tid)
        size = 8 * (52 + len(body))
        header = struct.pack("<IQQQQQQ", 0xC1FC1FC1, 0, size, size, discarded, number, begin)
        made[at * files // len(packets)] += header + body
    for number, content in enumerate(made):
        (folder / f"stream_{number}").write_bytes(content)
    return folder


def test_a_file_that_holds_nothing_but_the_count_of_discarded_events(tmp_path):
    """They are missing behind the last event of the file before."""
    trace = lanescope.open(counted(tmp_path / "t", [(0, 0, [(1, 1)]), (7, 1, [])], files=2))
    assert stats(trace)["levelzero_discarded"] == 7
    assert [(row["lost_count"], row["ts"], row["dur"]) for row in trace.gaps.rows()] == [(7, 0, 0)]


def test_counters_that_jump_impossibly_far_are_counted(tmp_path, capsys):
    one = [(1, 1)]
    folder = counted(tmp_path / "t", [(0, 0, one), (5, 1, one), (1 << 50, 1 << 40, one), (9, 3, one), (10, 4, one)])
    trace = lanescope.open(folder)
    found = stats(trace)
    assert (found["levelzero_packet_counter"], found["levelzero_discarded"]) == (3, 6)
    assert "levelzero_missing_packet" not in found
    assert [row["lost_count"] for row in trace.gaps.rows()] == [5, 1]
    assert main(["levelzero-tally", "--json", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert (json.loads(out)["unknown_counts"], json.loads(out)["discarded"]) == (3, 6)
    assert "3 packets with impossible counters" in err


def test_processes_and_threads_with_impossible_numbers_are_counted(tmp_path, capsys):
    events = [(1, 1), (1, 2**31 - 1), (2**31, 1), (-1, 1), (1, -5), (1, 1 << 62)]
    folder = counted(tmp_path / "t", [(0, 0, events)])
    trace = lanescope.open(folder)
    assert stats(trace)["levelzero_wide_thread"] == 4
    lanes = [row["name"] for row in trace.tracks.rows() if row["kind"] == "lane"]
    assert lanes == ["thread 1", "thread 2147483647", "thread 1"]
    assert main(["levelzero-tally", "--json", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["wide_threads"] == 4
    assert "4 events of processes or threads with impossible numbers" in err


def split(path, events) -> int:
    """Cut the one packet of a file into packets of so many events; return how many there are."""
    about = tsdl.describe((path.parent / "metadata").read_text())
    data = path.read_bytes()
    walk = tsdl.Reader(about).read(np.frombuffer(data, np.uint8))
    places = [*(walk.places // np.uint64(8)).tolist()[::events], len(data)]
    made = b""
    for begin, end in pairwise(places):
        size = 8 * (36 + end - begin)
        made += data[:20] + size.to_bytes(8, "little") * 2 + data[begin:end]
    path.write_bytes(made)
    return len(places) - 1


def test_the_command_prints_sums_and_what_is_left_out(tmp_path, capsys):
    writer = Writer(3)
    writer.save(tmp_path / "trace")
    script = Script()
    script.record("lttng_ust_mpi:MPI_Send_entry").record("lttng_ust_mpi:MPI_Send_exit", mpiResult=15)
    thapi_ctf.write(script.text, tmp_path / "other")
    assert main(["levelzero-tally", "--json", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    found = json.loads(out)
    assert published_schemas.errors(found) == []
    assert [(row["name"], row["count"], row["errors"]) for row in found["rows"]] == [("MPI_Send", 1, 1)]
    assert found["events"] == len(writer.events) + 2
    assert "events are not calls: kind" in err
    assert main(["levelzero-tally", str(tmp_path / "none")]) == 2
    assert "not a directory" in capsys.readouterr().err


def test_counters_go_on_from_file_to_file(tmp_path):
    """Rotated files of one stream: what the file before had discarded is not counted again, missing packets are."""
    writer = next(writer for seed in range(99) if (writer := Writer(seed)) and counters(writer)[1] > 0)
    packets, discarded = counters(writer)
    writer.save(tmp_path / "trace")
    whole = stats(lanescope.open(tmp_path / "trace"))
    assert whole["levelzero_discarded"] == discarded
    data = writer.streams["stream_0"]
    for number, (begin, end) in enumerate(pairwise([*packets, len(data)])):
        (tmp_path / f"trace/stream_0_{number}").write_bytes(data[begin:end])
    (tmp_path / "trace/stream_0").unlink()
    assert stats(lanescope.open(tmp_path / "trace")) == whole
    (tmp_path / "trace/stream_0_1").unlink()
    assert stats(lanescope.open(tmp_path / "trace"))["levelzero_missing_packet"] == 1


def counters(writer) -> tuple[list[int], int]:
    """Return where the packets of the first of three begin, and the events discarded in all; no packets: 0."""
    reader = tsdl.Reader(tsdl.describe(writer.text))
    walks = [reader.read(np.frombuffer(data, np.uint8)) for data in writer.streams.values()]
    packets = walks[0].packet("offset").tolist()
    return packets, sum(int(walk.packet("discarded")[-1]) for walk in walks) if len(packets) == 3 else 0

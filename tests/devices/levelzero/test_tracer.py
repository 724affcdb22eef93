"""Operations that the recorder timed, as a timeline: joined with calls, named, placed, and what is missing is said."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import lanescope
from lanescope.analysis import check
from lanescope.devices.levelzero.formats import ctf_reader
from lanescope.devices.levelzero.recorder import untimed
from lanescope.source import Capture
from lanescope.trace import Flag
from native.recorder_build import build

# The first test of a session compiles the driver and the programs.
pytestmark = pytest.mark.timeout(1200)

ROOT = Path(__file__).parents[3]


@pytest.fixture
def timed(fake_ze, tmp_path):
    """Return a function that records a program; it gives what was printed, the recording, and what the driver ran."""

    def timed(*command, options=(), env=(), status=0, **quirks):
        folder, truth = tmp_path / "recording", tmp_path / "truth"
        truth.unlink(missing_ok=True)
        words = [sys.executable, "-m", "lanescope", "record", "--force", "-o", folder, *options, "--"]
        environment = {**fake_ze.environment(truth=truth, **quirks), **dict(env)}
        done = subprocess.run(
            [*words, *map(str, command)], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == status, done.stderr
        lines = [json.loads(line) for line in truth.read_text().splitlines()] if truth.exists() else []
        assert not [line for line in lines if line["kind"] == "mistake"]
        return done, folder, lines

    return timed


def events_of(folder):
    with Capture(folder) as capture:
        return ctf_reader.read(capture).events


def stats_of(trace):
    return {row["name"]: row["count"] for row in trace.stats.rows()}


def operations_of(trace):
    """Return the device operations with their slices, as dicts."""
    slices = {row["id"]: row for row in trace.slices.rows()}
    return [{**slices[row["slice_id"]], **row} for row in trace.details["levelzero_operations"].rows()]


def clock_error(trace):
    """Return by how many ns the clocks may differ: readings of them that a busy machine held up are far apart."""
    errors = [anchor["error_ns"] for anchor in trace.anchors.rows()]
    assert errors
    assert all(error is not None and error >= 0 for error in errors)
    return 1_000_000 + max(errors)


TICKS = ("global_start", "global_end", "context_start", "context_end")
UNTIMED = ("zeCommandListAppendSignalEvent", "zeCommandListAppendWaitOnEvents", "zeCommandListAppendEventReset")
TRUE_TICKS = ("start", "end", "context_start", "context_end")


@pytest.mark.parametrize("options", [(), ("--host-timestamps",)], ids=["inline", "host read"])
@pytest.mark.parametrize("what", ["saxpy", "mixed", "threads", "copies", "resubmit", "fence", "unordered"])
def test_every_operation_has_the_ticks_that_the_driver_gave_it(fake_ze, timed, what, options):
    done, folder, truth = timed(fake_ze.app, what, 3, options=options)
    assert done.stdout == f"{what}: right\n"
    trace = lanescope.open(folder)
    found = Counter((op["function"], *(op[name] for name in TICKS)) for op in operations_of(trace))
    marked = [line for line in truth if line["mark"] or line["kernel"]]
    # Commands that the recorder adds have no mark; one that signals an event and does nothing else is not timed.
    true = Counter((line["api"], *(line[name] for name in TRUE_TICKS)) for line in marked if line["api"] not in UNTIMED)
    assert not true - found
    everything = Counter((line["api"], *(line[name] for name in TRUE_TICKS)) for line in truth)
    assert not found - everything
    hows = set(events_of(folder)["appends"]["how"].tolist())
    assert "INLINE" not in hows if options else hows <= {"INLINE", "CHAINED", "BARE", "UNTIMED"}
    bad = {row["name"] for row in trace.stats.rows() if row["severity"] in ("error", "data_loss")}
    assert not bad


def test_operations_stand_within_their_calls_and_arrows_lead_to_them(fake_ze, timed):
    _, folder, truth = timed(fake_ze.app, "mixed", 4)
    trace = lanescope.open(folder)
    operations = operations_of(trace)
    assert len(operations) == 40
    slack = clock_error(trace)
    calls = {row["id"]: row for row in trace.slices.rows()}
    for op in operations:
        assert op["append_slice_id"] is not None
        assert calls[op["append_slice_id"]]["name"] == op["function"]
        # Nothing runs before it was given to the device, as far as the clocks can tell.
        assert op["ts"] >= op["submit_ts"] - slack
        assert op["ts"] + op["dur"] <= op["readback_ts"] + slack
        assert not op["flags"] & Flag.CLOCK_SUSPECT
    arrows = Counter(trace.flows["kind"].tolist())
    executed = sum(calls[op["submit_slice_id"]]["name"] == "zeCommandQueueExecuteCommandLists" for op in operations)
    # In each round a launch waits for the fill, and the query for two launches; the fill waits for the host.
    assert arrows == {"dispatch": 40, "dependency": executed, "signal": 4 * 3}
    signals = [row for row in trace.flows.rows() if row["kind"] == "signal"]
    assert all(row["src_ts"] <= row["dst_ts"] for row in signals)
    sources = Counter(calls[row["src_slice_id"]]["name"] for row in signals)
    assert sources == {"add": 8, "zeCommandListAppendMemoryFill(D)": 4}
    assert executed == 8
    names = Counter(op["name"] for op in operations)
    assert names["add"] == 12
    assert names["busy_300"] == 4
    assert names["zeCommandListAppendMemoryCopy(D2H)"] == 4
    copies = [line for line in truth if line["mark"] == "copy back"]
    assert {op["bytes"] for op in operations if op["kind"] == "copy"} == {line["bytes"] for line in copies}
    # A lane for each immediate list and one for the queue, all below the device.
    lanes = {trace.tracks["name"][op["track_id"]].split(" 0x")[0] for op in operations}
    assert lanes == {"list", "queue"}


def test_timing_switched_off_adds_no_command(fake_ze, timed):
    _, folder, truth = timed(fake_ze.app, "mixed", 2, options=["--no-device-timestamps"])
    events = events_of(folder)
    assert set(events["appends"]["how"].tolist()) == {"UNTIMED"}
    assert len(events["results"]) == 0
    own = [line for line in truth if not line["mark"] and "QueryKernelTimestamps" in line["api"]]
    assert not own


def test_appends_where_nothing_is_timed_are_counted_without_a_lock(fake_ze, tmp_path):
    """Those of eight threads: each one is recorded, and counted once for its list and once for the process."""
    programs, threads, count = build(fake_ze.levelzero), 8, 3_000
    folder = tmp_path / "recording"
    words = [sys.executable, "-m", "lanescope", "record", "--no-device-timestamps", "--no-summary", "-o", folder, "--"]
    environment = {**fake_ze.environment(), "ZE_ENABLE_ALT_DRIVERS": str(programs / "librecorder_timed_stub.so")}
    command = [*words, programs / "recorder_timed", "barrier", str(threads), str(count)]
    subprocess.run(command, env=environment, check=True, capture_output=True, timeout=120)
    events = events_of(folder)
    appends, degradations = events["appends"], events["degradations"]
    lists = Counter(appends["list"].tolist())
    assert sorted(lists.values()) == [count] * threads
    assert len(set(appends["op_id"].tolist())) == threads * count
    assert set(appends["reason"].tolist()) == set(degradations["reason"].tolist()) == {"not_timed"}
    assert sorted(degradations["count"].tolist()) == [count] * threads
    (text,) = [path.read_text() for path in folder.glob("*/.untimed")]
    assert text == f"not_timed {threads * count}\n"


def test_operations_behind_a_wrap_of_the_counter_stand_where_they_ran(fake_ze, timed):
    # The wrap is 50 ms after the first reading, which a busy machine may repeat; the kernels alone last 60 ms.
    _, folder, _ = timed(fake_ze.app, "mixed", 20, frequency=100_000, start=-5000)
    first = int(events_of(folder)["clock_pairs"]["device_ticks"][0]) & 0xFFFFFFFF
    trace = lanescope.open(folder)
    operations, slack = operations_of(trace), clock_error(trace)
    assert first > 1 << 31
    assert any(op["global_end"] < 1 << 31 for op in operations)
    for op in operations:
        assert not op["flags"] & (Flag.CLOCK_SUSPECT | Flag.WRAP_AMBIGUOUS)
        assert op["submit_ts"] - slack <= op["ts"] <= op["readback_ts"] + slack


def test_what_the_driver_refuses_is_done_otherwise_and_said(fake_ze, timed):
    """No query: the host reads. No copy either: a barrier hands the signal on. The program sees no difference."""
    done, folder, _ = timed(fake_ze.app, "unordered", 3, query_limit=1)
    assert done.stdout == "unordered: right\n"
    trace = lanescope.open(folder)
    reasons = Counter(events_of(folder)["degradations"]["reason"].tolist())
    assert reasons["query_refused"] > 0
    assert reasons["copy_refused"] == 0
    assert "levelzero_degraded" in stats_of(trace)
    assert "LS403" in [finding.code for finding in check.run(trace)]
    assert "levelzero_unsynchronized" not in stats_of(trace)
    done, folder, _ = timed(fake_ze.app, "unordered", 3, query_limit=1, fail="zeCommandListAppendMemoryCopy:1-")
    assert done.stdout == "unordered: right\n"
    events = events_of(folder)
    assert Counter(events["degradations"]["reason"].tolist())["copy_refused"] > 0
    timed_ones = sum(how != "UNTIMED" for how in events["appends"]["how"].tolist())
    assert len(events["results"]) == timed_ones > 0


def test_without_memory_operations_go_through_untouched(fake_ze, timed):
    done, folder, _ = timed(fake_ze.app, "saxpy", 3, fail="zeMemAllocHost:1-")
    assert done.stdout == "saxpy: right\n"
    events = events_of(folder)
    rows = list(zip(events["appends"]["how"].tolist(), events["appends"]["reason"].tolist(), strict=True))
    assert rows
    assert set(rows) <= {("UNTIMED", "no_memory"), ("UNTIMED", "not_timed")}
    assert len(events["results"]) == 0
    assert "no_memory" in events["degradations"]["reason"].tolist()


def test_unsynchronized_work_is_collected_at_the_end(fake_ze, timed):
    """What had ended at the exit has a result; what had not is said to be lost, by the check too."""
    done, folder, _ = timed(build(fake_ze.levelzero) / "recorder_leave")
    assert done.stdout == "left\n"
    trace = lanescope.open(folder)
    assert len(operations_of(trace)) == 10
    assert stats_of(trace)["levelzero_unsynchronized"] == 1
    assert events_of(folder)["losses"]["reason"].tolist() == ["not_drained"]
    assert "levelzero_unsynchronized" in [finding.stat for finding in check.run(trace)]


def test_a_signal_that_cannot_be_handed_on_is_never_given_up_silently(fake_ze, timed):
    """Degrade: the program gets the driver's code and a line says why; abort: it ends there."""
    fail = ",".join(f"zeCommandListAppend{what}:1-" for what in ("QueryKernelTimestamps", "MemoryCopy", "Barrier"))
    quirks = {"fail": fail, "host_reset": "works"}
    done, folder, _ = timed(fake_ze.app, "mixed", 1, status=1, **quirks)
    assert "lanescope: warning: zeCommandListAppendBarrier failed with 0x70000002" in done.stderr
    assert "chain_failed" in events_of(folder)["degradations"]["reason"].tolist()
    words = [sys.executable, "-m", "lanescope", "record", "--force", "--on-failure", "abort", "-o", folder, "--"]
    done = subprocess.run(
        [*words, fake_ze.app, "mixed", "1"],
        env=fake_ze.environment(**quirks),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == -6


@pytest.mark.parametrize(("world", "call"), [("works", 1), ("sticky", 1), ("sticky", 2)])
def test_a_probe_that_is_answered_late_leaves_nothing_behind(fake_ze, timed, tmp_path, world, call):
    """The program finds its context as it left it; its operations are timed by its own events then."""
    stats = tmp_path / "stats"
    fail = f"zeEventHostSynchronize:{call}=1"
    done, folder, _ = timed(fake_ze.app, "resubmit", 3, host_reset=world, fail=fail, stats=stats)
    assert done.stdout == "resubmit: right\n"
    counts = json.loads(stats.read_text())
    assert counts["calls.zeContextDestroy"] > 0
    assert [counts.get(f"live.{kind}", 0) for kind in ("event", "pool", "list", "context")] == [0] * 4
    assert stats_of(lanescope.open(folder)) == {}, done.stderr


@pytest.mark.parametrize("world", ["sticky", "view"])
@pytest.mark.parametrize("options", [(), ("--host-timestamps",)], ids=["inline", "host read"])
def test_unordered_lists_that_run_again_are_timed_where_resets_do_nothing(fake_ze, timed, world, options):
    """By commands in front of each run after the first: the record of the run has their number, and the end tells."""
    done, folder, truth = timed(fake_ze.app, "resubmit", 3, options=options, host_reset=world)
    assert done.stdout == "resubmit: right\n"
    assert "lanescope: warning: 4 executions of out-of-order command lists started later: " in done.stderr
    assert "without timestamps" not in done.stderr
    trace = lanescope.open(folder)
    assert len(operations_of(trace)) == 72
    assert "UNTIMED" not in events_of(folder)["appends"]["how"].tolist()
    assert stats_of(trace)["levelzero_prologue"] == 4
    assert not {"levelzero_untimed", "levelzero_untimed_resets", "levelzero_degraded"} & stats_of(trace).keys()
    (finding,) = [one for one in check.run(trace) if one.stat == "levelzero_prologue"]
    assert (finding.code, finding.severity) == ("LS403", "notice")
    # Two lives with two later runs of six operations each.
    assert sum(line["api"] == "zeCommandListAppendEventReset" for line in truth) == 4 * 6 + 1
    lines = subprocess.run(
        [sys.executable, "-m", "lanescope", "dump", "--stage", "packet", folder],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    runs = [int(found) for found in re.findall(r"list_run.*prologue\D+(\d+)", lines)]
    assert Counter(runs) == {0: 8, 6: 4}


def test_where_resets_work_no_command_is_added(fake_ze, timed):
    _, folder, truth = timed(fake_ze.app, "resubmit", 3, host_reset="works")
    assert not [line for line in truth if "Reset" in line["api"] or "SignalEvent" in line["api"]]
    assert "levelzero_prologue" not in stats_of(lanescope.open(folder))


def test_a_prologue_that_the_driver_refuses_is_replaced_by_a_wait(fake_ze, timed):
    fail = "zeCommandListAppendSignalEvent:1-"
    done, folder, _ = timed(fake_ze.app, "resubmit", 3, host_reset="sticky", fail=fail)
    assert done.stdout == "resubmit: right\n"
    assert len(operations_of(lanescope.open(folder))) == 72
    assert "prologue_refused" in events_of(folder)["degradations"]["reason"].tolist()
    # Nothing is left then that would keep the program's signals from coming early: it is told, by the code of its call.
    fail = "zeCommandListAppendEventReset:2-"
    done, folder, _ = timed(fake_ze.app, "resubmit", 3, host_reset="sticky", fail=fail, status=1)
    assert "zeCommandQueueExecuteCommandLists returned 0x70000002" in done.stderr
    assert "lanescope: warning: reset of events failed with 0x70000002" in done.stderr


def test_old_drivers_get_a_barrier_instead_of_an_ordered_list(fake_ze, timed):
    done, folder, _ = timed(fake_ze.app, "resubmit", 3, host_reset="sticky", api="1.6")
    assert done.stdout == "resubmit: right\n"
    assert len(operations_of(lanescope.open(folder))) == 72
    assert events_of(folder)["degradations"]["reason"].tolist().count("prologue_barrier") == 2


def test_watching_adds_no_command(fake_ze, timed):
    """Operations without an event, and those whose event has timestamps: here all of them."""
    done, folder, truth = timed(fake_ze.app, "resubmit", 3, options=["--event-resets", "watch"], host_reset="sticky")
    assert done.stdout == "resubmit: right\n"
    events = events_of(folder)
    regular = {row["list"] for row in events["lists"].rows() if row["immediate"] is False and not row["in_order"]}
    hows = Counter(row["how"] for row in events["appends"].rows() if row["list"] in regular)
    assert hows == {"WATCH": 2, "BARE": 10}
    assert len(operations_of(lanescope.open(folder))) == 72
    assert sum(line["api"] == "zeCommandListAppendEventReset" for line in truth) == 1
    assert "without timestamps" not in done.stderr


def test_unordered_lists_that_run_again_can_be_left_alone(fake_ze, timed):
    done, folder, _ = timed(fake_ze.app, "resubmit", 3, options=["--event-resets", "off"], host_reset="sticky")
    assert done.stdout == "resubmit: right\n"
    appends, lists = events_of(folder)["appends"], events_of(folder)["lists"]
    regular = {row["list"] for row in lists.rows() if row["immediate"] is False and not row["in_order"]}
    for row in appends.rows():
        if row["list"] in regular:
            assert (row["how"], row["reason"]) == ("UNTIMED", "out_of_order_no_reset")


@pytest.mark.parametrize("options", [(), ("--no-summary",)], ids=["summary", "no summary"])
def test_what_is_not_timed_is_said_at_the_end_and_by_the_check(fake_ze, timed, options):
    options = [*options, "--event-resets", "off"]
    done, folder, _ = timed(fake_ze.app, "resubmit", 3, options=options, host_reset="sticky")
    assert (
        "lanescope: warning: 12 operations without timestamps: in out-of-order command lists, as event resets of this "
        "driver do not work (out_of_order_no_reset); omit --event-resets off\n"
    ) in done.stderr
    trace = lanescope.open(folder)
    assert stats_of(trace)["levelzero_untimed_resets"] == 12
    assert not {"levelzero_untimed", "levelzero_degraded"} & stats_of(trace).keys()
    (finding,) = [one for one in check.run(trace) if one.stat == "levelzero_untimed_resets"]
    assert (finding.code, finding.severity, finding.count) == ("LS403", "warning", 12)


def test_what_was_not_wanted_is_not_complained_of(fake_ze, timed):
    done, _, _ = timed(fake_ze.app, "resubmit", 3, options=["--no-device-timestamps"], host_reset="sticky")
    assert "without timestamps" not in done.stderr
    done, _, _ = timed(fake_ze.app, "resubmit", 3, host_reset="works")
    assert "without timestamps" not in done.stderr


def test_operations_of_a_killed_program_without_timestamps_are_said(fake_ze, tmp_path):
    """It could not count them itself: the recording tells."""
    folder = tmp_path / "recording"
    words = [sys.executable, "-m", "lanescope", "record", "-o", folder, "--event-resets", "off", "--"]
    command = [*words, fake_ze.app, "resubmit", "100000000"]
    environment = fake_ze.environment(host_reset="sticky")
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            # Its list is executed again and again: all of its operations have been appended then.
            while not list(folder.glob("*/metadata")) or not len(events_of(folder)["runs"]):
                assert process.poll() is None
                time.sleep(0.01)
        finally:
            pids = [int(made.parent.name.rpartition("-")[2]) for made in folder.glob("*/metadata")]
            os.kill(*pids or [process.pid], signal.SIGKILL)
            _, err = process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert f"6 operations without timestamps; run 'lanescope check {folder}' for the reason" in err
    assert untimed.read(folder) == {}


def test_reasons_have_words_for_all_that_the_recorder_knows():
    source = (ROOT / "native/recorder/levelzero/api/enums.hpp").read_text()
    known = set(re.findall(r'"([a-z_]+)"', source[source.index("reason_names") : source.index("enum class Scope")]))
    assert untimed.REASONS.keys() <= known
    text = untimed.describe("no_memory", 1)
    assert text.startswith("1 operation without timestamps: as the driver had no event or memory for them (no_memory)")
    text = untimed.describe("user_query_untranslated", 2)
    assert text.startswith("2 queries of timestamps by the program may return those of a command of the recorder")


@pytest.mark.parametrize("what", ["barrier", "kernel", "copy"])
def test_a_timed_operation_is_small_and_memory_stays_flat(fake_ze, tmp_path, what):
    """10^5 operations, a wait after each hundred: at most 100 bytes each, and no memory after the first 10^4."""
    programs = build(fake_ze.levelzero)
    folder, count = tmp_path / "recording", 100_000
    environment = {**fake_ze.environment(), "ZE_ENABLE_ALT_DRIVERS": str(programs / "librecorder_timed_stub.so")}
    words = [sys.executable, "-m", "lanescope", "record", "--no-summary", "-o", folder, "--"]
    command = [*words, programs / "recorder_timed", what, "1", str(count)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    early, late = map(float, done.stdout.split()[3:])
    assert late - early < 256
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= 100 * count
    events = events_of(folder)
    assert len(events["results"]) == len(np.unique(events["results"]["op_id"])) == count


def test_eight_threads_lose_nothing(fake_ze, tmp_path):
    programs = build(fake_ze.levelzero)
    folder, count = tmp_path / "recording", 20_000
    environment = {**fake_ze.environment(), "ZE_ENABLE_ALT_DRIVERS": str(programs / "librecorder_timed_stub.so")}
    words = [sys.executable, "-m", "lanescope", "record", "--no-summary", "-o", folder, "--"]
    command = [*words, programs / "recorder_timed", "kernel", "8", str(count)]
    subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    events = events_of(folder)
    assert np.array_equal(np.sort(events["results"]["op_id"]), np.sort(events["appends"]["op_id"]))
    assert len(events["results"]) == 8 * count
    assert len(events["losses"]) == 0

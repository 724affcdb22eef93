"""Programs under ``lanescope record`` do what they do without it, and what they did stands in the recording."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import lanescope
import lanescope.levelzero
from effort import SANITIZED as CORE_SANITIZED
from effort import some
from lanescope.cli import main
from lanescope.devices.levelzero.analysis.tally import RECORDER, tally
from lanescope.devices.levelzero.formats import ctf_reader
from lanescope.devices.levelzero.recorder import launcher
from lanescope.errors import LanescopeError, MissingDependencyError, UsageError
from lanescope.source import Capture

# The first test of a session compiles the driver and the programs.
pytestmark = pytest.mark.timeout(1200)

ROOT = Path(__file__).parents[3]
#: ``make kill-test`` and ``make sanitize`` ask for more.
KILLS = int(os.environ.get("LANESCOPE_KILLS") or some(40))
SANITIZED = int(os.environ.get("LANESCOPE_SANITIZED", "1"))
FUNCTIONS = ROOT / "native/recorder/levelzero/api/functions.def"


def execute(command, environment):
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def events_of(folder):
    with Capture(folder) as capture:
        return ctf_reader.read(capture)


def calls_of(events):
    """Return what was entered and left, in order, thread by thread."""
    table = events["calls"]
    found = {}
    for thread, function, is_exit, result in zip(
        table["thread_id"].tolist(),
        table["function"].tolist(),
        table["is_exit"].tolist(),
        table["result"].tolist(),
        strict=True,
    ):
        found.setdefault(thread, []).append((function, is_exit, result))
    return sorted(found.values())


def babeltrace(require_tool, folder):
    done = subprocess.run(
        [require_tool("babeltrace2"), folder], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


# --- whole programs -----------------------------------------------------------------------------------------------


def test_a_program_keeps_its_output_and_what_it_did_is_told(fake_ze, recording, require_tool, tmp_path):
    done = recording(fake_ze.app, "saxpy")
    assert (done.status, done.out) == (0, "saxpy: right\n")
    assert re.search(r"^host +zeCommandListAppendLaunchKernel +4 ", done.err, re.MULTILINE)
    assert re.search(r"^device +saxpy +4 ", done.err, re.MULTILINE)
    assert f"wrote {done.folder} (" in done.err
    trace = lanescope.open(done.folder)
    # Every line that the reference reader of CTF prints is an event of the recorder.
    assert babeltrace(require_tool, done.folder).count("\n") == sum(
        len(stream.events.classes) for stream in events_of(done.folder).streams
    )
    assert "api" in set(trace.slices["category"].tolist())
    assert "levelzero_unfinished_call" not in trace.stats["name"].tolist()
    command = [sys.executable, "-m", "lanescope", "convert", done.folder, "-o", tmp_path / "out.pftrace"]
    assert subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0
    assert (tmp_path / "out.pftrace").stat().st_size > 1000


@pytest.mark.parametrize("what", ["saxpy", "mixed", "threads", "copies", "resubmit", "fence"])
def test_every_way_in_sees_the_same(fake_ze, recording, newest, what):
    """Linked or opened by name or path, as a layer or preloaded, under Debian's loader, the newest and our own."""
    loader, newer = fake_ze.levelzero / "lib/libze_loader.so.1", fake_ze.folder / "loader"
    ways = [
        {"command": (fake_ze.app, what, 3)},
        {"command": (fake_ze.app_dlopen, "--dlopen", what, 3)},
        {"command": (fake_ze.app_dlopen, f"--dlopen={loader}", what, 3)},
        {"command": (fake_ze.app, what, 3), "options": ["--preload"]},
        {"command": (fake_ze.app_dlopen, "--dlopen", what, 3), "options": ["--preload"]},
        {"command": (fake_ze.app_dlopen, f"--dlopen={loader}", what, 3), "options": ["--preload"]},
        {"command": (fake_ze.app, what, 3), "loader": newer},
    ]
    if what in ("saxpy", "mixed"):
        path = f"--dlopen={newest.loader}"
        ways += [
            {"command": newest(fake_ze.app, what, 3)},
            {"command": newest(fake_ze.app_dlopen, "--dlopen", what, 3)},
            {"command": newest(fake_ze.app_dlopen, path, what, 3)},
            {"command": newest(fake_ze.app_dlopen, path, what, 3), "options": ["--preload"]},
        ]
        for way in ways[-4:]:
            way["loader"] = newest.none
    found = []
    for way in ways:
        done = recording(*way.pop("command"), execute="inline", **way)
        assert (done.status, done.out) == (0, f"{what}: right\n"), done.err
        events = events_of(done.folder).events
        appends = Counter(zip(events["appends"]["function"].tolist(), events["appends"]["waits"].tolist(), strict=True))
        # Debian's loader calls zeInit of its drivers once more; how often a program polls is the machine's affair.
        calls = Counter(
            call for thread in calls_of(events) for call in thread if call[0] not in ("zeInit", "zeEventQueryStatus")
        )
        found.append((calls, appends, len(events["lists"]), len(events["runs"]), len(events["allocations"])))
    for other in found[1:]:
        assert other == found[0]


def test_appends_are_told_with_what_they_were_given(fake_ze, recording):
    done = recording(fake_ze.app, "mixed", "4")
    events = events_of(done.folder).events
    appends, lists = events["appends"], events["lists"]
    assert (appends["op_id"] > 0).all()
    assert len(np.unique(appends["op_id"])) == len(appends)
    assert set(appends["how"].tolist()) <= {"UNTIMED", "INLINE", "CHAINED", "BARE"}
    kernels = appends.where(appends.valid("kernel"))
    assert set(kernels["kernel"].tolist()) <= set(events["kernels"]["kernel"].tolist())
    assert (kernels["groups_x"] > 0).sum() == kernels.valid("groups_x").sum() > 0
    copies = appends.where(appends.valid("bytes"))
    assert len(copies) > 0
    assert (copies["bytes"] > 0).all()
    created = lists.where(np.array([action == "create" for action in lists["action"]]))
    assert set(appends["list"].tolist()) <= set(created["list"].tolist())
    assert set(events["runs"]["list"].tolist()) <= set(created["list"].tolist())
    # Each operation lies within its call, and each run of a list between its entry and exit.
    trace = lanescope.open(done.folder)
    assert not [row for row in trace.stats.rows() if row["severity"] in ("error", "data_loss")]


@pytest.mark.parametrize("is_ours", [True, False])
def test_functions_newer_than_debians_loader_are_recorded(fake_ze, recording, newest, is_ours):
    command = (fake_ze.folder / "fake_ze_api_versions", fake_ze.driver)
    if is_ours:
        done = recording(*command, loader=fake_ze.folder / "loader")
    else:
        done = recording(*newest(*command), loader=newest.none)
    assert done.status == 0, done.err
    trace = lanescope.open(done.folder)
    assert {"zeCommandListHostSynchronize", "zeCommandListAppendLaunchKernelWithArguments"} <= set(
        trace.slices["name"].tolist()
    )


def test_what_fails_is_told_as_it_failed(fake_ze, recording):
    done = recording(fake_ze.app, "saxpy", fail="zeMemAllocDevice:1")
    assert done.status != 0
    table = events_of(done.folder).events["calls"]
    results = [
        result
        for function, result, is_exit in zip(table["function"], table["result"], table["is_exit"], strict=True)
        if function == "zeMemAllocDevice" and is_exit
    ]
    assert results[0] == "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY"
    # What was not made is not remembered.
    assert len(events_of(done.folder).events["allocations"]) == 0


def test_the_recorders_own_time_stands_apart(fake_ze, recording):
    """Each call has it, the tally has it as a line of its own, and the end says what it was in all."""
    done = recording(fake_ze.app, "saxpy")
    trace = lanescope.open(done.folder)
    calls, slices = trace.details["levelzero_calls"], trace.slices
    rows = calls["slice_id"]
    own, whole = calls["recorder_ns"], slices["dur"][rows]
    assert calls.valid("recorder_ns").all()
    assert (own > 0).all()
    assert (own <= whole).all()
    # Making the first list, the recorder asks the driver whether resets work: most of that time is its own.
    names = np.array(slices["name"][rows].tolist())
    first = np.flatnonzero(names == "zeCommandListCreateImmediate")[0]
    assert own[first] > whole[first] / 2
    found = {row["name"]: row for row in tally(trace).rows() if row["section"] == "host"}
    assert (found[RECORDER]["count"], found[RECORDER]["total"]) == (len(own), own.sum())
    assert sum(row["total"] for row in found.values()) == whole.sum()
    barriers = names == "zeCommandListAppendBarrier"
    assert found["zeCommandListAppendBarrier"]["total"] == (whole - own)[barriers].sum()
    assert f"the recorder took {own.sum() / 1e6:.3f} ms within {len(own)} recorded calls" in done.err


def test_a_recorder_that_does_not_measure_itself_is_named(fake_ze, recording):
    done = recording(fake_ze.app, "saxpy")
    (about,) = done.folder.glob("*/metadata")
    about.write_text(about.read_text().replace(" recorder_ns;", " another_ns;"))
    trace = lanescope.open(done.folder)
    assert not trace.details["levelzero_calls"].valid("recorder_ns").any()
    assert RECORDER not in {row["name"] for row in tally(trace).rows()}
    stats = {row["name"]: row["count"] for row in trace.stats.rows()}
    assert stats["levelzero_recorder_unmeasured"] == 1


def test_more_time_of_the_recorder_than_a_call_took_is_found(fake_ze, recording):
    done = recording(fake_ze.app, "saxpy")
    (stream,) = done.folder.glob("*/stream_0")
    found = events_of(done.folder)
    (process,) = found.processes
    numbers = {event.name: number for number, event in process.reader.about.events.items()}
    events = found.streams[0].events
    at = int(events.payloads[np.flatnonzero(events.classes == numbers["zeInit_exit"])[0]])
    content = bytearray(stream.read_bytes())
    content[at : at + 4] = (4_000_000_000).to_bytes(4, "little")
    stream.write_bytes(content)
    stats = {row["name"]: row["count"] for row in lanescope.open(done.folder).stats.rows()}
    assert stats["levelzero_recorder_time"] == 1


def test_events_are_small(fake_ze, recording):
    done = recording(fake_ze.app, "threads", "2")
    streams = events_of(done.folder).streams
    events = sum(len(stream.events.classes) for stream in streams)
    assert events > 500
    assert sum(stream.source.size for stream in streams) <= 40 * events


# --- what is recorded ---------------------------------------------------------------------------------------------


def test_filters_choose_calls_and_nothing_else(fake_ze, recording):
    done = recording(fake_ze.app, "saxpy", options=["--filter", "zeEvent*,!zeEventHost*", "--filter", "zeInit"])
    events = events_of(done.folder).events
    names = set(events["calls"]["function"].tolist())
    assert names
    assert all(name == "zeInit" or (name.startswith("zeEvent") and "Host" not in name) for name in names)
    assert len(events["appends"]) > 0
    done = recording(fake_ze.app, "saxpy", options=["--filter", "!zeEvent*"])
    names = set(events_of(done.folder).events["calls"]["function"].tolist())
    assert "zeInit" in names
    assert not any(name.startswith("zeEvent") for name in names)


def test_without_host_calls_operations_remain(fake_ze, recording):
    whole = events_of(recording(fake_ze.app, "saxpy").folder).events
    done = recording(fake_ze.app, "saxpy", options=["--no-host-calls"])
    events = events_of(done.folder).events
    assert len(events["calls"]) == 0
    for name in ("appends", "lists", "kernels", "allocations", "devices"):
        assert len(events[name]) == len(whole[name]) > 0, name


def test_regions_are_recorded_and_pauses_are_said(programs, recording):
    def asked(done):
        names = events_of(done.folder).events["calls"]["function"].tolist()
        return names.count("zeDriverGetApiVersion") // 2

    program = programs / "recorder_regions"
    done = recording(program)
    assert (done.out, asked(done)) == ("1 1\n", 10 + 20 + 40)
    done = recording(program, options=["--start-paused"])
    assert (done.out, asked(done)) == ("1 1\n", 20 + 40)
    trace = lanescope.open(done.folder)
    gaps = [row for row in trace.gaps.rows() if row["cause"] == "paused"]
    assert len(gaps) == 2
    assert all(row["dur"] is not None for row in gaps)
    for row in trace.slices.rows():
        assert not any(gap["ts"] < row["ts"] < gap["ts"] + gap["dur"] for gap in gaps)


def test_a_python_program_marks_regions(fake_ze, recording, tmp_path):
    script = tmp_path / "program.py"
    script.write_text(
        "import ctypes, lanescope.levelzero as levelzero\n"
        "loader = ctypes.CDLL('libze_loader.so.1')\n"
        "loader.zeInit(0)\n"
        "print(levelzero.start()); loader.zeInit(0); loader.zeInit(0); print(levelzero.stop()); loader.zeInit(0)\n"
    )
    done = recording(sys.executable, script, options=["--start-paused"])
    assert (done.status, done.out) == (0, "True\nTrue\n")
    assert events_of(done.folder).events["calls"]["function"].tolist() == ["zeInit"] * 4


def test_regions_of_a_program_that_is_not_recorded_do_nothing(programs, fake_ze, monkeypatch):
    done = execute([programs / "recorder_regions"], fake_ze.environment())
    assert (done.returncode, done.stdout) == (0, "0 0\n")
    monkeypatch.delenv("LANESCOPE_ZE_LIBRARY", raising=False)
    assert (lanescope.levelzero.start(), lanescope.levelzero.stop()) == (False, False)
    monkeypatch.setenv("LANESCOPE_ZE_LIBRARY", "/nowhere/lib.so")
    assert not lanescope.levelzero.start()


def test_children_are_followed(programs, recording):
    """A child that goes on, a child that runs another program, and threads that come one after the other."""
    done = recording(programs / "recorder_forks", "5", programs / "recorder_regions")
    assert done.status == 0, done.err
    found = events_of(done.folder)
    events = found.events
    assert len(found.processes) == 3
    assert all(process.ended for process in found.processes)
    calls = Counter(zip(events.process("calls").tolist(), events["calls"]["function"].tolist(), strict=True))
    inits = sorted(count // 2 for (_, name), count in calls.items() if name == "zeInit")
    # Debian's loader calls zeInit of the driver once more in each process that loads it: 3 + 40 + 4, 5, and 1.
    assert [count - 1 if count in (48, 2) else count for count in inits] == [1, 5, 47]
    # Threads that come one after the other take turns in two streams; each is told by its number.
    parent = next(p for p, name in calls if calls[p, name] >= 94 and name == "zeInit")
    streams = [stream for stream in found.streams if stream.process == parent]
    assert len(streams) == 2
    threads = {int(thread) for stream in streams for thread in stream.events.packet("thread").tolist()}
    assert len(threads) >= 2


#: Milliseconds that a child lives, many times what is between two looks at the children, however busy the machine is.
LONG_ENOUGH = "4000"


def test_a_child_without_the_recorders_environment_is_named(fake_ze, programs, recording, require_tool, capsys):
    """By its number, on standard error, in the recording and by the check; a child that uses no Level Zero is not."""
    plain = fake_ze.environment()
    cleaned = ["env", "-i", *(f"{name}={plain[name]}" for name in ("LD_LIBRARY_PATH", "ZE_ENABLE_ALT_DRIVERS"))]
    script = '"$0" saxpy; env -i sleep 0.2; "$@" & echo $!; wait'
    done = recording("sh", "-c", script, fake_ze.app, *cleaned, programs / "recorder_leave", LONG_ENOUGH)
    assert done.out.splitlines()[0::2] == ["saxpy: right", "left"], done.err
    pid = done.out.splitlines()[1]
    said = [line for line in done.err.splitlines() if "was not recorded" in line]
    assert len(said) == 1
    assert f"process {pid} ({programs / 'recorder_leave'})" in said[0]
    assert "LANESCOPE_ZE_OUTPUT" in said[0]
    found = events_of(done.folder)
    assert [process.unrecorded for process in found.processes if process.part.endswith(f"-{pid}")] == [
        "LANESCOPE_ZE_OUTPUT"
    ]
    assert len(found.processes) == 2
    stats = {row["name"]: row["count"] for row in lanescope.open(done.folder).stats.rows()}
    assert stats["levelzero_unrecorded_process"] == 1
    assert "levelzero_abnormal_exit" not in stats
    main(["check", "--json", str(done.folder)])
    findings = json.loads(capsys.readouterr().out)["findings"]
    (told,) = [found for found in findings if "without the environment" in found["detail"]]
    assert told["code"] == "LS002"
    assert f"-{pid}/metadata" in told["location"]["input"]
    assert "saxpy" in babeltrace(require_tool, done.folder)
    assert launcher.is_recording(done.folder)


def test_a_child_that_lost_a_part_of_the_environment_is_named(fake_ze, programs, recording):
    lost = {"LD_LIBRARY_PATH": f"LD_LIBRARY_PATH={fake_ze.levelzero / 'lib'}", "ZE_ENABLE_TRACING_LAYER": ""}
    for name, given in lost.items():
        change = ["env", given] if given else ["env", "-u", name]
        words = [*change, programs / "recorder_leave", LONG_ENOUGH]
        done = recording("sh", "-c", '"$0" saxpy; "$@"', fake_ze.app, *words)
        assert done.status == 0
        assert f"lacks the recorder's {name};" in done.err


# --- how it runs --------------------------------------------------------------------------------------------------


#: Gives a program dispositions of signals, whatever the test run itself was given: ``INT=ignore``, then the command.
DISPOSED = """
import os, signal, sys
for place, word in enumerate(sys.argv[1:], 1):
    name, equals, how = word.partition("=")
    if not equals:
        break
    signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_IGN if how == "ignore" else signal.SIG_DFL)
os.execvp(sys.argv[place], sys.argv[place:])
"""


def disposed(*command, **dispositions):
    """Return a command that starts with these dispositions: all others of those that are passed on as new."""
    passed = dict.fromkeys(("INT", "QUIT", "TERM", "HUP", "USR1", "USR2", "CHLD", "PIPE", "XFSZ"), "new")
    given = [f"{name}={how}" for name, how in {**passed, **dispositions}.items()]
    return [sys.executable, "-c", DISPOSED, *given, *map(str, command)]


def record_of(folder, *command):
    if CORE_SANITIZED:
        pytest.skip("where the core is sanitized, no recorder is built: `make sanitize` and `make matrix` do that")
    return [sys.executable, "-m", "lanescope", "record", "-o", folder, "--", *command]


def test_status_and_signals_are_the_programs(fake_ze, recording):
    assert recording("sh", "-c", "exit 7").status == 7
    done = recording("sh", "-c", '"$0" saxpy; kill -TERM $$', fake_ze.app)
    assert (done.status, done.out) == (-signal.SIGTERM, "saxpy: right\n")
    assert "zeCommandListAppendLaunchKernel" in done.err
    assert recording("sh", "-c", "kill -SEGV $$").status == -signal.SIGSEGV
    # SIGPIPE does what it does everywhere else.
    assert recording("sh", "-c", "kill -PIPE $$; echo alive").out == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP])
def test_a_signal_to_us_reaches_the_program(number, tmp_path):
    script = "trap 'echo got it; exit 3' TERM INT USR1 HUP; echo ready; while :; do sleep 0.01; done"
    command = disposed(*record_of(tmp_path / "r", "sh", "-c", script))
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
        assert (out, process.returncode) == ("got it\n", 3)


def test_a_signal_to_the_group_arrives_once(tmp_path):
    """As without us: the program is in the group itself. One to us alone is forwarded, once."""
    program = """
import os, signal, time
count = 0
def got(*_):
    global count
    count += 1
    print(count, flush=True)
signal.signal(signal.SIGUSR1, got)
signal.signal(signal.SIGTERM, lambda *_: exit(count))
print("ready", os.getpgrp(), flush=True)
while True:
    time.sleep(1)
"""
    command = disposed(*record_of(tmp_path / "r", sys.executable, "-u", "-c", program))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"ready {process.pid}\n"
        sent = 0
        for number in range(12):
            send = process.send_signal if number % 3 == 2 else lambda n: os.killpg(process.pid, n)
            send(signal.SIGUSR1)
            sent += 1
            assert process.stdout.readline() == f"{sent}\n"
            time.sleep(0.02)  # time enough for a second one to come
        os.killpg(process.pid, signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
        assert (out, process.returncode) == ("", sent)


def test_a_recorder_that_was_stopped_goes_on(tmp_path):
    """Ctrl-Z and fg: the program gets no signal twice, and none that was not sent."""
    program = """
import signal
count = 0
def got(*_):
    global count
    count += 1
    print(count, flush=True)
signal.signal(signal.SIGUSR1, got)
signal.signal(signal.SIGTERM, lambda *_: exit(count))
print("ready", flush=True)
while True:
    signal.pause()
"""
    command = disposed(*record_of(tmp_path / "r", sys.executable, "-u", "-c", program))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True) as process:
        try:
            assert process.stdout.readline() == "ready\n"
            for number in range(1, 4):
                process.send_signal(signal.SIGUSR1)
                assert process.stdout.readline() == f"{number}\n"
                process.send_signal(signal.SIGSTOP)
                while Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
                    time.sleep(0.01)
                time.sleep(0.1)  # longer than the recorder waits at a time
                process.send_signal(signal.SIGCONT)
                time.sleep(0.1)  # time enough for a second one to come
                assert process.poll() is None
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=120)
            assert (out, process.returncode) == ("", 3)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_a_signal_finds_no_other_thread_of_ours(tmp_path):
    """A thread that does not block them would take signals: there must be none while a program runs."""
    done = execute(record_of(tmp_path / "r", "sh", "-c", "ls /proc/$PPID/task | wc -l"), os.environ)
    assert done.stdout.split() == ["1"]


def test_what_is_ignored_stays_ignored(tmp_path):
    """As ``nohup`` and shells that start something in the background want it."""
    program = "import signal; print(*(signal.getsignal(s) == signal.SIG_IGN for s in (2, 3, 1, 17)))"
    command = record_of(tmp_path / "r", sys.executable, "-c", program)
    background = execute(disposed(*command, INT="ignore", QUIT="ignore", HUP="ignore"), os.environ)
    assert (background.returncode, background.stdout) == (0, "True True True False\n")
    # Nobody can wait for programs whose end is ignored: we could not tell how it ended.
    careless = execute(disposed(*command[:-1], f"{program}; raise SystemExit(5)", CHLD="ignore"), os.environ)
    assert (careless.returncode, careless.stdout) == (5, "False False False False\n")


def test_names_with_blanks_and_colons_work(fake_ze, tmp_path, monkeypatch):
    strange = tmp_path / "a b:c;d $ORIGIN"
    strange.mkdir()
    shutil.copy(launcher.library(), strange)
    shutil.copy(launcher.library(launcher.PRELOADED), strange)
    monkeypatch.setattr(launcher, "library", lambda name=launcher.LAYER: strange / name)
    for preload in (False, True):
        output = tmp_path / f"out: {preload}"
        output.mkdir()
        settings = launcher.Settings(output, preload=preload)
        with launcher.environment(settings, fake_ze.environment()) as made:
            assert launcher.run([str(fake_ze.app), "saxpy"], made) == 0
        assert len(events_of(output).events["calls"]) > 50
    # What was made for it is gone.
    assert not Path(made["LANESCOPE_ZE_LIBRARY"]).exists()


def test_a_loader_with_a_layer_of_its_own_takes_ours_when_it_is_preloaded(programs, recording):
    done = recording(programs / "recorder_rpath")
    # The program's own lanescope_start() found the recorder; its calls did not.
    assert "0 calls" in done.err
    assert "use --preload" in done.err
    done = recording(programs / "recorder_rpath", options=["--preload"])
    assert (done.status, done.out) == (0, "1 1\n")
    assert len(events_of(done.folder).events["calls"]) > 100


def test_a_folder_for_the_loader_keeps_what_else_is_in_it(fake_ze, recording, newest):
    env = {"ZEL_LIBRARY_PATH": str(newest.loader.parent), "ZE_ENABLE_VALIDATION_LAYER": "1"}
    command = ("env", "LD_DEBUG=files", *newest(fake_ze.app, "saxpy"))
    done = recording(*command, loader=newest.none, env=env)
    assert (done.status, done.out) == (0, "saxpy: right\n")
    assert re.search(r"calling init: .*/libze_validation_layer\.so", done.err)
    assert len(events_of(done.folder).events["calls"]) > 50


def test_a_layer_that_the_program_wants_too_is_loaded(fake_ze, tmp_path):
    given = {**fake_ze.environment(), "ZE_ENABLE_TRACING_LAYER": "1"}
    with launcher.environment(launcher.Settings(tmp_path), given) as made:
        stock = Path(made["LANESCOPE_ZE_CHAIN"])
        assert stock.samefile(fake_ze.levelzero / "lib" / launcher.LAYER)
        assert launcher.run([str(fake_ze.app), "saxpy"], made) == 0
    assert len(events_of(tmp_path).events["calls"]) > 50


@pytest.mark.parametrize("is_newest", [False, True], ids=["1.8", "1.32"])
@pytest.mark.parametrize("style", ["old", "new"])
def test_a_program_that_traces_itself_sees_what_it_sees_alone(fake_ze, programs, recording, newest, style, is_newest):
    """Its callbacks are called for its own calls, with its own events, and for none of the recorder's."""
    words = newest(programs / "recorder_tracers", style) if is_newest else (programs / "recorder_tracers", style)
    loader = newest.none if is_newest else None
    # An older loader must be told beforehand.
    env = {"ZEL_LIBRARY_PATH": str(newest.loader.parent)} if is_newest else {"ZE_ENABLE_TRACING_LAYER": "1"}
    alone = execute([*map(str, words)], {**fake_ze.environment(loader), **env})
    assert (alone.returncode, alone.stdout) == (0, "5 5 5 0\n")
    done = recording(*words, loader=loader, env=env)
    assert (done.status, done.out) == (0, alone.stdout), done.err
    appends = events_of(done.folder).events["appends"]
    assert appends["how"].tolist() == ["INLINE"] * 5


@pytest.mark.parametrize(("how", "told"), [("one", set()), ("two", {"tables_refilled"})])
def test_tables_that_a_loader_fills_anew_are_told_where_other_threads_may_call(programs, recording, newest, how, told):
    """What goes past the recorder meanwhile cannot be seen; a loader may fill them more than once."""
    done = recording(*newest(programs / "recorder_refill", how), loader=newest.none)
    assert (done.status, done.out) == (0, "1\n"), done.err
    degradations = events_of(done.folder).events["degradations"]
    assert set(degradations["reason"].tolist()) == told
    trace = lanescope.open(done.folder)
    assert ("levelzero_degraded" in trace.stats["name"].tolist()) == bool(told)


@pytest.mark.parametrize("is_newest", [False, True], ids=["1.8", "1.32"])
def test_one_call_of_zeinit_is_one_call(fake_ze, recording, newest, is_newest):
    """The check that a loader makes of a driver is not the program's."""
    words = newest(fake_ze.app, "saxpy") if is_newest else (fake_ze.app, "saxpy")
    done = recording(*words, loader=newest.none if is_newest else None)
    (calls,) = calls_of(events_of(done.folder).events)
    assert [(name, is_exit) for name, is_exit, _ in calls if name == "zeInit"] == [("zeInit", False), ("zeInit", True)]


def test_why_nothing_was_recorded_is_said(fake_ze, recording, tmp_path):
    done = recording("true")
    assert (done.status, "called no Level Zero function" in done.err, done.folder.exists()) == (0, True, False)
    done = recording("true", env={"ZE_ENABLE_ALT_DRIVERS": "/nowhere/driver.so"})
    assert "found no driver (zeInit: 0x78000001)" in done.err
    done = recording("true", env={"LD_LIBRARY_PATH": str(tmp_path)})
    if "Level Zero loader not found" not in done.err:  # this machine has one of its own
        assert "nothing recorded" in done.err
    done = recording("/nowhere/program")
    assert (done.status, done.folder.exists()) == (2, False)
    assert "no such file" in done.err


def test_folders_of_others_are_left_alone(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    with pytest.raises(UsageError, match="--force"):
        launcher.prepare_output_dir(tmp_path / "mine", force=False)
    with pytest.raises(UsageError, match="is not a recording"):
        launcher.prepare_output_dir(tmp_path / "mine", force=True)
    with pytest.raises(UsageError, match="is not a directory"):
        launcher.prepare_output_dir(tmp_path / "mine/file", force=True)
    assert (tmp_path / "mine/file").exists()


@pytest.fixture
def old_recording(tmp_path):
    """A recording of one process that is there already."""
    (tmp_path / "run/1").mkdir(parents=True)
    (tmp_path / "run/1/metadata").write_text("old")
    return tmp_path / "run"


def test_a_recording_that_is_replaced_stays_until_there_is_a_new_one(old_recording):
    old = launcher.prepare_output_dir(old_recording, force=True)
    assert old is not None
    assert list(old_recording.iterdir()) == []
    assert (old / "1/metadata").read_text() == "old", "a kill from here on leaves both"
    (old_recording / "2").mkdir()
    assert not launcher.settle_old(old_recording, old)
    assert [path.name for path in old_recording.iterdir()] == ["2"]
    assert [path.name for path in old_recording.parent.iterdir()] == ["run"]


@pytest.mark.parametrize("command", ["/nowhere/program", "true"])
def test_a_program_that_records_nothing_replaces_no_recording(old_recording, command, capsys):
    from lanescope.cli import main

    main(["record", "--force", "-o", str(old_recording), "--", command])
    assert f"kept the previous recording in {old_recording}" in capsys.readouterr().err
    assert (old_recording / "1/metadata").read_text() == "old"
    assert [path.name for path in old_recording.parent.iterdir()] == ["run"]


def test_an_installation_without_the_recorder_says_so():
    with pytest.raises(MissingDependencyError):
        launcher.library("nothing.so")


# --- the end of a process -----------------------------------------------------------------------------------------


def written(output):
    """Return how many bytes of events a running program has written, most of them in packets that are being filled."""
    heads = [path.read_bytes()[:48] for path in output.glob("*/*.live")]
    content = [int.from_bytes(head[40:48], "little") // 8 for head in heads if len(head) == 48]
    return sum(content) + sum(path.stat().st_size for path in output.glob("*/stream_*[0-9]"))


def test_a_killed_program_leaves_all_but_the_event_under_way(fake_ze, require_tool, tmp_path):
    """Killed at any moment: every recording reads without a lost byte, before and after it is tidied.

    Every other one dies early, mostly before it has written anything where the machine is busy; the others once they
    have written so much.
    """
    moments = random.Random(7)
    seen = read = checked = 0
    for round_ in range(KILLS):
        output = tmp_path / f"{round_}"
        output.mkdir()
        with launcher.environment(launcher.Settings(output), fake_ze.environment()) as made:
            process = subprocess.Popen([fake_ze.app, "mixed", "1000"], env=made, stdout=subprocess.DEVNULL)
            if round_ % 2:
                time.sleep(moments.uniform(0.003, 0.04))
            else:
                enough = moments.randrange(20_000, 150_000)
                while written(output) < enough:
                    assert process.poll() is None
                    time.sleep(0.001)
            process.kill()
            process.wait()
        if not list(output.glob("*/metadata")):
            continue
        seen += 1
        found = events_of(output)
        before = [stream.events.classes for stream in found.streams]
        assert not any(process.ended for process in found.processes)
        assert sum(stream.events.lost for stream in found.streams) == 0
        read += sum(map(len, before))
        launcher.remove_stale_files(output)
        assert not list(output.glob("*/*.live"))
        after = events_of(output).streams
        assert sum(len(stream.events.classes) for stream in after) == sum(map(len, before))
        if round_ % 10 == 0:
            checked += 1
            assert babeltrace(require_tool, output).count("\n") == sum(map(len, before))
            if before and len(np.concatenate(before)):
                stats = lanescope.open(output).stats["name"].tolist()
                assert "levelzero_abnormal_exit" in stats
        shutil.rmtree(output)
    assert seen >= KILLS // 2
    assert read > 50 * KILLS
    assert checked > KILLS / 20


def stream_case(programs, tmp_path, case):
    """Run a case of ``recorder_streams``; return what it wrote, and what it said."""
    environment = {**os.environ, "LANESCOPE_ZE_OUTPUT": str(tmp_path / "out")}
    done = execute([programs / "recorder_streams", case], environment)
    assert done.returncode == 0, done.stderr
    return (events_of(tmp_path / "out") if list(tmp_path.glob("out/*/metadata")) else None), done.stderr


def values_of(found):
    """Return the numbers that the cases note: the addresses of freed memory."""
    return found.events["allocations"]["base"].astype(np.int64).tolist()


def test_long_pauses_keep_their_length(programs, tmp_path, require_tool):
    found, _ = stream_case(programs, tmp_path, "pauses")
    assert values_of(found) == list(range(7))
    ts = found.events["allocations"]["ts"]
    # The last clock reading was older than the one before; the order of the thread's events is kept.
    assert np.diff(ts).tolist() == [0, 5 * 10**9, 10 * 10**9, 15 * 10**9, 20 * 10**9, 25 * 10**9 - 1000]
    babeltrace(require_tool, tmp_path / "out")


def test_stamps_are_the_clocks(programs):
    """By the counter of the processor or not: every stamp is within a microsecond of the clock."""
    done = execute([programs / "recorder_streams", "stamps"], {**os.environ, "LANESCOPE_ZE_OUTPUT": "/nowhere"})
    wrong, is_counted = done.stdout.split()
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    is_kept_so = os.uname().machine == "x86_64" and source.exists() and source.read_text() == "tsc\n"
    assert (wrong, is_counted) == ("0", "1" if is_kept_so else "0")


def test_packets_follow_one_another(programs, tmp_path, require_tool):
    found, _ = stream_case(programs, tmp_path, "packets")
    assert values_of(found) == list(range(40_000))
    (stream,) = found.streams
    assert stream.events.packet("sequence").tolist() == list(range(len(stream.events.packets)))
    assert len(stream.events.packets) > 3
    assert not list((tmp_path / "out").glob("*/*.live"))
    assert babeltrace(require_tool, tmp_path / "out").count("\n") == len(stream.events.classes)
    (process,) = found.processes
    # The record that counts does not count itself.
    assert process.statistics["events"] == len(stream.events.classes) - 1
    assert process.statistics["discarded"] == 0


def test_events_that_are_written_together_are_as_those_that_come_alone(programs, tmp_path):
    found, _ = stream_case(programs, tmp_path, "blocks")
    values = values_of(found)
    assert values == list(range(len(values)))
    assert len(values) >= 40_000
    (stream,) = found.streams
    assert stream.events.packet("sequence").tolist() == list(range(len(stream.events.packets)))
    assert len(stream.events.packets) > 3
    (process,) = found.processes
    assert process.statistics["events"] == len(stream.events.classes) - 1
    assert process.statistics["discarded"] == 1


def test_an_event_within_an_event_is_counted_as_lost(programs, tmp_path):
    found, _ = stream_case(programs, tmp_path, "signals")
    assert values_of(found) == [0, 1, 2]
    assert found.processes[0].statistics["discarded"] == 1
    trace = lanescope.open(tmp_path / "out")
    assert {row["name"]: row["count"] for row in trace.stats.rows()}["levelzero_discarded"] == 1


def test_a_full_disk_costs_events_and_says_how_many(programs, tmp_path):
    found, said = stream_case(programs, tmp_path, "full")
    values = values_of(found)
    lost = found.processes[0].statistics["discarded"]
    assert (values[0], values[-1]) == (0, 2)
    assert lost > 1000
    assert len(values) == 40_002 - lost
    assert said.count("\n") == 1
    assert "the program continues" in said
    trace = lanescope.open(tmp_path / "out")
    gaps = [row for row in trace.gaps.rows() if row["cause"] == "discarded"]
    assert sum(row["lost_count"] for row in gaps) == lost
    producer = [row for row in trace.accounting.rows() if row["scope"] == "producer"]
    assert [row["lost"] for row in producer] == [lost]


def test_no_room_at_all_leaves_the_program_alone(programs, tmp_path):
    found, said = stream_case(programs, tmp_path, "none")
    assert "the program continues" in said
    assert found is None


def test_a_trace_that_cannot_be_written_is_no_program_without_calls(fake_ze, recording):
    done = recording("sh", "-c", 'ulimit -f 8; exec "$0" saxpy', fake_ze.app)
    assert (done.status, done.out) == (0, "saxpy: right\n")
    assert "cannot write " in done.err
    assert "called no function" not in done.err


def test_threads_take_turns_in_streams(programs, tmp_path):
    found, _ = stream_case(programs, tmp_path, "threads")
    assert sorted(values_of(found)) == [*range(11), 11, 12]
    assert len(found.streams) == 2  # as many as there were threads at one time
    # The main thread comes only now, to say this.
    assert found.processes[0].statistics["threads"] == 12


def test_a_forked_child_writes_into_a_folder_of_its_own(programs, tmp_path):
    found, _ = stream_case(programs, tmp_path, "child")
    by_process = {}
    table = found.events["allocations"]
    for process, value in zip(found.events.process("allocations").tolist(), table["base"].tolist(), strict=True):
        by_process.setdefault(process, []).append(value)
    assert sorted(by_process.values()) == [[1, 3, 4], [2]]
    assert all(process.ended for process in found.processes)


def test_a_process_that_leaves_without_us_is_cut_short(programs, tmp_path):
    found, _ = stream_case(programs, tmp_path, "gone")
    assert values_of(found) == [1, 2]
    assert not found.processes[0].ended
    trace = lanescope.open(tmp_path / "out")
    assert [row["cause"] for row in trace.gaps.rows()] == ["cut_short"]


def test_closed_descriptors_and_another_folder_do_not_matter(programs, tmp_path):
    found, _ = stream_case(programs, tmp_path, "closed")
    assert values_of(found) == [0, *range(40_000)]


# --- recordings as captures ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kept(fake_ze, tmp_path_factory):
    """A recording of two processes."""
    folder = tmp_path_factory.mktemp("kept") / "run"
    folder.mkdir()
    for what in ("saxpy", "threads"):
        with launcher.environment(launcher.Settings(folder), fake_ze.environment()) as made:
            assert launcher.run([str(fake_ze.app), what, "2"], made) == 0
    return folder


def test_a_folder_its_parts_and_its_description_can_be_named(kept):
    whole = lanescope.open(kept)
    parts = sorted(kept.iterdir())
    one = [lanescope.open(part) for part in parts]
    assert len(whole.slices) == sum(len(trace.slices) for trace in one)
    assert len(lanescope.open(parts[0] / "metadata").slices) == len(one[0].slices)
    assert lanescope.detect(kept)[0].format == "lanescope_ctf"
    assert sum(whole.inputs["size"].tolist()) == sum(path.stat().st_size for path in kept.rglob("*") if path.is_file())
    with pytest.raises(UsageError, match="contains its date"):
        lanescope.open(kept, start_date="2026-01-01")


def test_there_may_be_more_streams_than_open_files(kept, tmp_path):
    copy = tmp_path / "many"
    shutil.copytree(sorted(kept.iterdir())[0], copy)
    for number in range(1, 100):
        shutil.copy(copy / "stream_0", copy / f"stream_{number}")
    words = ["sh", "-c", 'ulimit -n 40; exec "$0" "$@"', sys.executable, "-m", "lanescope", "info", copy]
    done = execute(words, os.environ)
    # That the copies repeat each other's operations is said besides.
    assert done.returncode == 0, done.stderr


def test_how_often_threads_waited_is_said(kept, tmp_path):
    copy = tmp_path / "waited"
    shutil.copytree(sorted(kept.iterdir())[0], copy)
    (process,), streams = (found := events_of(copy)).processes, found.streams
    number = next(n for n, kind in process.reader.about.events.items() if kind.name == "lanescope_ze:statistics")
    (stream,) = (stream for stream in streams if number in stream.events.classes)
    at = int(stream.events.payloads[stream.events.classes == number][0])
    data = bytearray(Path(stream.source.path).read_bytes())
    for waits in (0, 7):  # the last field of the record
        data[at + 32 : at + 36] = waits.to_bytes(4, "little")
        Path(stream.source.path).write_bytes(data)
        counted = {row["name"]: row["count"] for row in lanescope.open(copy).stats.rows()}
        assert counted.get("levelzero_recorder_contention", 0) == waits


def test_large_recordings_are_not_summed_up_unasked(fake_ze, tmp_path, monkeypatch, capfd):
    for name, value in fake_ze.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("lanescope.devices.levelzero.commands.record.LARGEST_SUMMED", 1000)
    folder = tmp_path / "large"
    assert main(["record", "-o", str(folder), "--", str(fake_ze.app), "saxpy"]) == 0
    out, err = capfd.readouterr()
    assert out == "saxpy: right\n"
    assert f"run 'lanescope summary --by tally {folder}'" in err
    assert "zeInit" not in err
    assert main(["summary", "--by", "tally", str(folder)]) == 0
    assert "zeInit" in capfd.readouterr().out


def test_every_stage_is_shown(kept):
    for stage, wanted in (
        ("packet", r"zeInit_exit  recorder_ns=\d+ zeResult=ZE_RESULT_SUCCESS"),
        ("record", r"calls +ts=\d+ thread_id=0 function=zeInit"),
        ("row", r"slice  .*thread \d+  dur=\d+ name=zeInit"),
    ):
        command = [sys.executable, "-m", "lanescope", "dump", "--stage", stage, kept]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert re.search(wanted, done.stdout)


def test_damaged_recordings_are_read_as_far_as_they_go(kept, tmp_path):
    chance = random.Random(5)
    files = [path.relative_to(kept) for path in sorted(kept.rglob("*")) if path.is_file()]
    lost = refused = 0
    for round_ in range(60):
        copy = tmp_path / f"{round_}"
        shutil.copytree(kept, copy)
        # One round in three meets a description.
        choice = [path for path in files if (path.name == "metadata") == (round_ % 3 == 0)]
        path = copy / chance.choice(choice)
        data = bytearray(path.read_bytes())
        for _ in range(chance.randint(1, 8)):
            at = chance.randrange(len(data))
            if chance.random() < 0.3:
                del data[at : at + chance.randint(1, 200)]
            else:
                data[at] = chance.randrange(256)
            if not data:
                break
        path.write_bytes(data)
        try:
            trace = lanescope.open(copy)
        except LanescopeError:
            refused += 1
        else:
            lost += any(row["lost"] for row in trace.accounting.rows())
        shutil.rmtree(copy)
    assert lost > 5
    assert refused > 2


def test_a_trace_of_another_producer_is_read_as_such(kept, tmp_path):
    copy = tmp_path / "other"
    shutil.copytree(kept, copy)
    for path in copy.glob("*/metadata"):
        path.write_bytes(path.read_bytes().replace(b'domain = "lanescope_ze"', b'domain = "ust"'))
    for family in (None, "levelzero"):
        trace = lanescope.open(copy, family=family)
        assert set(trace.inputs.values("format")) == {"ctf"}
        assert not len(trace.details.get("levelzero_operations", ()))


# --- the table of functions ---------------------------------------------------------------------------------------

CALL = re.compile(r"^(CALL|PLACE)\((\w+), (\w+), (\d+)(.*?)\)$", re.MULTILINE | re.DOTALL)


def test_the_table_agrees_with_the_drivers():
    theirs = re.findall(
        r"^(?:HERE|NEWER|ENTRY)\((\w+), (\w+), (\d+)\)", (ROOT / "tests/native/fake_ze/functions.def").read_text(), re.M
    )
    assert [(table, name, minor) for _, table, name, minor, _ in CALL.findall(FUNCTIONS.read_text())] == theirs


def size_of(declared):
    """Return the bytes of a parameter as the headers declare it."""
    kind = declared.replace("const ", "").strip()
    if "*" in kind or kind.endswith(("_fn_t", "_callback_t")):
        return 8
    if kind.endswith("_handle_t"):
        return 64 if "ipc" in kind else 8
    sizes = {"uint32_t": 4, "uint64_t": 8, "size_t": 8, "ze_bool_t": 1, "ze_group_count_t": 12, "ze_group_size_t": 12}
    return sizes.get(kind, 4)  # what is left are flags and enumerations


@pytest.mark.parametrize(("tool", "version"), [("levelzero", 4), ("levelzero-newest", 17)])
def test_the_table_agrees_with_the_headers(require_tool, tool, version):
    """Of the oldest API that is supported, and of one that has all functions that the table has."""
    headers = require_tool(tool) / "include/level_zero"
    api, tables = (headers / "ze_api.h").read_text(), (headers / "ze_ddi.h").read_text()
    ours = {"u8": 1, "u32": 4, "u64": 8, "usize": 8, "Ipc": 64, "Groups": 12}
    members = {}
    for kind, table, name, minor, parameters in CALL.findall(FUNCTIONS.read_text()):
        if int(minor) > version:
            continue
        members.setdefault(table, []).append(name)
        found = re.search(rf"ZE_APICALL\n{name}\((.*?)\n    \);", api, re.DOTALL)
        assert found is not None, name
        if kind == "PLACE":
            continue
        lines = [re.sub(r"///<.*", "", line).strip().rstrip(",") for line in found[1].splitlines()]
        declared = [line.rpartition(" ") for line in lines if re.match(r"\w[\w *]*\s\**\w+$", line)]
        words = [word.strip() for word in parameters.split(",") if word.strip()]
        given = list(zip(words[::2], words[1::2], strict=True))
        assert [name for _, name in given] == [last.lstrip("*") for _, _, last in declared], name
        assert [ours.get(type_, 8) for type_, _ in given] == [size_of(type_) for type_, _, _ in declared], name
    # The places in the tables; newer headers have more at the ends.
    declared = re.findall(r"typedef struct _ze_(\w+)_dditable_t\n\{(.*?)\n\}", tables, re.DOTALL)
    theirs = {re.sub("_", "", name): re.findall(r"ze_pfn(\w+)_t ", body) for name, body in declared}
    for table, names in members.items():
        assert [f"ze{name}" for name in theirs[table.lower()]][: len(names)] == names
        assert version > 4 or len(theirs[table.lower()]) == len(names)


def test_every_kind_of_record_is_explained():
    kinds = set(re.findall(r"^RECORD\((\w+),", (ROOT / "native/recorder/levelzero/api/records.def").read_text(), re.M))
    page = (ROOT / "docs/howto/record.md").read_text().partition("### Kinds of records")[2]
    rows = re.findall(r"^\| (`.*?`) \| .* \| .* \|$", page, re.M)
    assert kinds == {name.strip("`") for row in rows for name in row.split(", ")}


def test_results_are_named_as_in_the_headers(require_tool):
    header = (require_tool("levelzero-newest") / "include/level_zero/ze_api.h").read_text()
    named = re.findall(r'\{(\w+), "(ZE_RESULT_\w+)"\},', (ROOT / "native/recorder/levelzero/api/enums.hpp").read_text())
    values = re.findall(r"^ +(ZE_RESULT_\w+) = (\w+),", header, re.M)
    theirs = {int(value, 0): name for name, value in values if "FORCE_UINT32" not in name}
    assert {int(value, 0): name for value, name in named}.items() <= theirs.items()
    assert len(named) > 60


# --- sanitizers ---------------------------------------------------------------------------------------------------


def assert_clean(done):
    found = "Sanitizer" in done.stderr or "runtime error" in done.stderr
    assert (done.returncode, found) == (0, False), done.stderr


@pytest.mark.parametrize("sanitize", ["address,undefined", "thread"])
def test_sanitizers_find_nothing(levelzero, tmp_path, monkeypatch, sanitize):
    from native.fake_ze_build import build as build_fake_ze
    from native.recorder_build import build

    fake_ze, programs = build_fake_ze(levelzero, sanitize), build(levelzero, sanitize)
    monkeypatch.setattr(launcher, "library", lambda name=launcher.LAYER: programs / "recorder" / name)
    options = {"ASAN_OPTIONS": "detect_leaks=0", "TSAN_OPTIONS": "halt_on_error=1"}
    whats = ("saxpy", "mixed", "threads", "copies", "resubmit", "fence") if SANITIZED > 1 else ("mixed", "threads")
    commands = [[fake_ze.app, what, "3"] for what in whats for _ in range(SANITIZED)]
    commands += [[programs / "recorder_forks", "5", programs / "recorder_regions"]]
    for number, command in enumerate(commands):
        output = tmp_path / f"{number}"
        output.mkdir()
        with launcher.environment(launcher.Settings(output), {**fake_ze.environment(), **options}) as made:
            assert_clean(execute(command, made))
        assert len(events_of(output).events["calls"]) > 5
    for case in ("pauses", "packets", "blocks", "signals", "full", "none", "threads", "child", "closed"):
        environment = {**os.environ, **options, "LANESCOPE_ZE_OUTPUT": str(tmp_path / case)}
        assert_clean(execute([programs / "recorder_streams", case], environment))

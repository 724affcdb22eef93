"""Programs that break recorders do what they do without one, and their recordings can be read."""

from __future__ import annotations

import os
import subprocess
from collections import Counter

import pytest

import lanescope
from lanescope.devices.levelzero.formats import ctf_reader
from lanescope.source import Capture

pytestmark = pytest.mark.timeout(1200)

#: Calls that the driver refuses before it looks at what it was given.
UNSEEN = ",".join(
    (
        "zeCommandListCreate:2-",
        "zeCommandListCreateImmediate:1-",
        "zeCommandQueueCreate:2-",
        "zeCommandQueueExecuteCommandLists:1-",
        "zeCommandListAppendQueryKernelTimestamps:1-",
    )
)
#: What a process does -> processes in its recording, and whether the driver gets to the end of all of them.
WAYS = {
    "spawn": (13, False),
    "thread": (1, False),
    "now": (1, False),
    "abort": (1, False),
    "exit": (1, True),
    "signals": (1, True),
    "crowd": (1, True),
    "inits": (1, True),
    "close": (1, True),
}


def alone(fake_ze, *command, **quirks):
    """Run a program without the recorder."""
    environment = fake_ze.environment(**quirks)
    return subprocess.run(
        list(map(str, command)), env=environment, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize("what", [(), ("unseen",)], ids=["seen", "unseen"])
def test_a_call_that_the_driver_refuses_returns_what_it_returns_alone(fake_ze, programs, recording, what):
    """Null pointers, pointers that lead nowhere, structures of which only the begin is there."""
    quirks = {"mistakes": "report", **({"fail": UNSEEN} if what else {})}
    plain = alone(fake_ze, programs / "recorder_refusals", *what, **quirks)
    assert plain.stdout.endswith("refusals: done\n")
    assert plain.stdout.count(" 0x7") > 40
    for options in ((), ("--event-resets", "watch"), ("--no-host-calls",)):
        done = recording(programs / "recorder_refusals", *what, options=options, **quirks, host_reset="sticky")
        assert (done.status, done.out) == (0, plain.stdout), options


@pytest.mark.parametrize("way", WAYS)
def test_a_hostile_program_is_left_alone(fake_ze, programs, recording, way):
    plain = alone(fake_ze, programs / "recorder_hostile", way)
    done = recording(programs / "recorder_hostile", way)
    status = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
    assert (done.status if done.status >= 0 else 128 - done.status, done.out) == (status, plain.stdout), done.err
    with Capture(done.folder) as capture:
        found = ctf_reader.read(capture)
    processes, is_ended = WAYS[way]
    assert len(found.processes) == processes
    assert all(process.ended for process in found.processes) == is_ended
    stats = {row["name"] for row in lanescope.open(done.folder).stats.rows()}
    assert ("levelzero_abnormal_exit" in stats) != is_ended
    calls = Counter(found.events["calls"]["function"].tolist())
    if way == "inits":
        assert calls["zeInit"] == 2 * 10_001
    if way == "crowd":
        assert len(found.events["appends"]) == 600 * 4


@pytest.mark.parametrize("is_newest", [False, True])
def test_a_program_that_empties_its_environment_is_named(programs, recording, newest, is_newest):
    """Debian's loader does not even look for the recorder then; the newest finds it, and does not use it."""
    words = newest(programs / "recorder_hostile", "bare") if is_newest else (programs / "recorder_hostile", "bare")
    done = recording(*words, loader=newest.none if is_newest else None)
    assert (done.status, done.out) == (0, "own 3\n"), done.err
    (said,) = (line for line in done.err.splitlines() if "warning" in line)
    assert ("ld-linux-x86-64.so.2)" if is_newest else "recorder_hostile)") in said
    assert "used Level Zero and was not recorded: its environment lacks the recorder's ZE_ENABLE_TRACING_LAYER" in said
    assert not os.path.lexists(done.folder)

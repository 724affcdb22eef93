"""CTF 2 as LTTng and babeltrace2 of Debian testing write it, event by event as that babeltrace2 reads it."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

import lanescope
from wire import foreign, lttng_session
from wire.lttng_session import NEWEST
from wire.tsdl_writer import Writer

pytestmark = [
    pytest.mark.skipif(
        not ((NEWEST / "lttng").exists() and lttng_session.available()), reason="no newest LTTng: make test-tools"
    ),
    pytest.mark.full,
]

SESSIONS = {
    "plain": (("40",), {}),
    "overflow": (("20", "5000"), {"channel": ("--subbuf-size", "4096", "--num-subbuf", "2")}),
    "pid": (("10",), {"channel": ("--buffers-pid",), "contexts": ("vtid", "procname", "ip", "vpid")}),
    "files": (
        ("300",),
        {"channel": ("--subbuf-size", "4096", "--tracefile-size", "8192", "--tracefile-count", "64")},
    ),
}


@pytest.fixture(scope="module")
def recorded():
    """Record all sessions, in a folder that all users may enter."""
    folder = Path(tempfile.mkdtemp(prefix="lanescope-ctf2-"))
    folder.chmod(0o755)
    program = lttng_session.build(folder)
    made = {}
    for name, (arguments, options) in SESSIONS.items():
        (folder / name).mkdir()
        made[name] = lttng_session.record(folder / name, program, *arguments, newest=True, **options)
    yield made
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", SESSIONS)
def test_sessions_of_lttng(name, recorded):
    folder = recorded[name]
    (metadata, *_) = folder.rglob("metadata")
    assert metadata.read_bytes().startswith(b"\x1e")
    seen = foreign.babeltrace(folder, tools=NEWEST)[str(folder)]
    assert seen["error"] is None
    foreign.same_events(foreign.events(folder), seen["events"])
    trace = lanescope.open(folder)
    lost = sum(row["count"] for row in trace.stats.rows() if row["name"] == "levelzero_discarded")
    assert lost == seen["discarded"]["events"]
    assert lost > 0 or name != "overflow"
    points = [
        event[0] for event in seen["events"] if event[2] in ("program:numbers", "program:texts", "program:nothing")
    ]
    assert sorted(np.asarray(trace.instants["ts"]) + trace.time.epoch_ns) == points
    if not lost:
        calls = [event for event in seen["events"] if event[2].endswith(("_entry", "_begin"))]
        assert len(trace.slices) == len(calls)


def test_random_traces_rewritten_by_babeltrace2(tmp_path):
    """Those that it can read, which are about half: others end in assertions of its own."""
    compared = 0
    for seed in range(24):
        source, out = tmp_path / f"trace{seed}", tmp_path / f"rewritten{seed}"
        Writer(seed, ("le", "be")[seed % 2], least=1).save(source)
        command = [NEWEST / "babeltrace2", source, "-c", "sink.ctf.fs", f'--params=path="{out}",quiet=true']
        if subprocess.run(command, check=False, capture_output=True).returncode:
            continue
        (metadata,) = out.rglob("metadata")
        assert json.loads(metadata.read_text().split("\x1e")[1])["version"] == 2
        foreign.same_events(foreign.events(source), foreign.events(out))
        compared += 1
    assert compared >= 8

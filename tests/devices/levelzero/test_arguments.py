"""Structures that calls are given are fields of the recording, whatever the program's pointers are."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import lanescope
from lanescope.cli import main
from lanescope.devices.levelzero.formats.descriptors import FLAGS, flags

pytestmark = pytest.mark.timeout(1200)

#: Calls that the driver refuses unseen.
REFUSED = "zeEventPoolCreate:2-6,zeModuleCreate:1-3"


@pytest.fixture
def recorded(fake_ze, tmp_path):
    """Return a function that records a program, and returns its output and the folder."""

    def recorded(*command, options=(), **quirks):
        words = [sys.executable, "-m", "lanescope", "record", "-o", tmp_path / "run", *options, "--", *command]
        environment = fake_ze.environment(**quirks)
        done = subprocess.run(
            list(map(str, words)), env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout, tmp_path / "run"

    return recorded


def arguments_of(folder):
    """Return the arguments of each call that has some, without those that it has not, by function and in order."""
    trace = lanescope.open(folder)
    names = trace.slices.values("name")
    found = {}
    for row in trace.details["levelzero_arguments"].rows():
        name = str(names[row["slice_id"]])
        given = {key: value for key, value in row.items() if key != "slice_id" and value is not None}
        found.setdefault(name, []).append(given)
    return found


def test_structures_are_arguments_of_calls(programs, recorded, require_tool):
    out, folder = recorded(programs / "recorder_arguments", fail=REFUSED)
    assert out == "arguments: right\n"
    found = arguments_of(folder)
    assert found["zeMemAllocShared"] == [
        {
            "flags": "0",
            "host_flags": "BIAS_WRITE_COMBINED",
            "ordinal": 0,
            "bytes": 4096,
            "alignment": 256,
            "extensions": "EXTERNAL_MEMORY_EXPORT_DESC, RELAXED_ALLOCATION_LIMITS_EXP_DESC",
            "state": "read",
        }
    ]
    assert found["zeEventPoolCreate"][0] == {"flags": "HOST_VISIBLE|KERNEL_TIMESTAMP", "count": 7, "state": "read"}
    # A chain in a circle is cut, and types without a name are numbers.
    assert found["zeEventCreate"] == [
        {
            "index": 3,
            "signal": "HOST",
            "wait": "DEVICE|HOST",
            "extensions": ", ".join(["0x1234"] * 16 + ["not read"]),
            "state": "read",
        }
    ]
    # Neither text goes beyond its page; of the last one nothing is there.
    assert found["zeModuleCreate"] == [
        {"format": "NATIVE", "bytes": 12, "build_flags": text, "state": "read"} for text in ("xxxxx", "xxxx", "")
    ]
    # The reference reader of CTF reads the same, to the last event.
    done = subprocess.run([require_tool("babeltrace2"), folder], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert 'desc_stype = ( "EVENT_POOL_DESC" : container = 16 ), desc_flags = 5, desc_count = 7' in done.stdout


def test_pointers_that_lead_nowhere_are_not_followed(programs, recorded):
    """The driver refuses these calls before it reads a structure, so nothing may happen to the program."""
    _, folder = recorded(programs / "recorder_arguments", fail=REFUSED)
    (_, missing, nowhere, half, chain, other) = arguments_of(folder)["zeEventPoolCreate"]
    assert missing == {"state": "null"}
    assert nowhere == {"state": "unreadable"}
    assert half == {"state": "unreadable"}
    assert (chain["count"], chain["extensions"]) == (7, "not read")
    assert other["extensions"].startswith("DEVICE_MEM_ALLOC_DESC, EXTERNAL_MEMORY_EXPORT_DESC, ")
    # All of them failed, and are calls as any other.
    calls = lanescope.open(folder).details["levelzero_calls"]
    assert sum(bool(error) for error in calls["error"].tolist()) == 8


def test_queues_lists_and_kernels(fake_ze, recorded):
    _, folder = recorded(fake_ze.app, "mixed", "2")
    found = arguments_of(folder)
    assert {row["mode"] for row in found["zeCommandQueueCreate"]} == {"ASYNCHRONOUS"}
    assert {row["priority"] for row in found["zeCommandQueueCreate"]} == {"NORMAL"}
    assert "IN_ORDER" in {row["flags"] for row in found["zeCommandListCreate"]}
    assert {row["ordinal"] for row in found["zeCommandListCreateImmediate"]} == {0, 1}
    names = lanescope.open(folder).slices.values("name").tolist()
    for function, rows in found.items():
        assert len(rows) == names.count(function)


def test_arguments_in_sql_and_on_the_timeline(programs, recorded, capsys, tmp_path):
    _, folder = recorded(programs / "recorder_arguments", fail=REFUSED)
    query = (
        "select s.name, a.signal, a.wait from levelzero_arguments a join slices s on s.id = a.slice_id "
        "where a.wait is not null"
    )
    assert main(["sql", str(folder), query, "--json"]) == 0
    assert "DEVICE|HOST" in json.dumps(json.loads(capsys.readouterr().out))
    assert main(["convert", str(folder), "-o", str(tmp_path / "out.json")]) == 0
    events = json.loads((tmp_path / "out.json").read_text())["traceEvents"]
    (event,) = [event for event in events if event.get("name") == "zeEventCreate"]
    assert "DEVICE|HOST" in json.dumps(event["args"])


def test_without_host_calls_there_are_none(fake_ze, recorded):
    _, folder = recorded(fake_ze.app, "mixed", "2", options=["--no-host-calls"])
    assert arguments_of(folder) == {}


def test_flags_keep_what_is_unknown():
    names = FLAGS["zeEventPoolCreate", "desc_flags"]
    assert flags(0b1011, names) == "HOST_VISIBLE|IPC|KERNEL_MAPPED_TIMESTAMP"
    assert flags(1 << 31 | 1, names) == "HOST_VISIBLE|0x80000000"
    assert flags(0, names) == "0"
    assert flags(3, ()) == "0x3"

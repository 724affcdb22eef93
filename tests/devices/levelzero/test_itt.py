"""Events and tasks of ITT as host intervals: what THAPI's own tests of them expect, in texts of our own."""

from __future__ import annotations

import json
import re

import pytest

import lanescope
from devices.levelzero import thapi_ctf
from devices.levelzero.helpers import Script, opened, stats
from lanescope.devices.levelzero.analysis.tally import iprof_json
from lanescope.devices.levelzero.export.bt_text import blocks

ITT = "lttng_ust_itt:__itt_"


def script_of(letters: str) -> Script:
    """Write events: a capital letter starts one, a small one ends it."""
    script = Script()
    for number, name in enumerate("AB"):
        script.record(f"{ITT}event_create", ittResult=number, name=number, namelen=7, name_val=f'"Event {name}"')
    for letter in letters:
        which = "start" if letter.isupper() else "end"
        script.record(f"{ITT}event_{which}", ittResult=0, event="ab".index(letter.lower()))
    return script


def intervals(trace) -> list[tuple[str, int, int]]:
    """Return name, begin (number of the record) and length of each interval, in the order of their ends."""
    text = b"".join(blocks(trace)).decode()
    found = re.findall(r'ts = (\d+), backend = 9 \}, \{ name = "([^"]*)", dur = (\d+), err = false', text)
    assert len(found) == text.count("lttng:host")
    return [(name, (int(ts) - trace.time.epoch_ns) // 1000, int(dur) // 1000) for ts, name, dur in found]


@pytest.mark.parametrize(
    ("letters", "expected"),
    [
        ("Aa", [("Event A", 0, 1)]),
        ("AaBb", [("Event A", 0, 1), ("Event B", 2, 1)]),
        ("ABba", [("Event B", 1, 1), ("Event A", 0, 3)]),
        ("ABab", [("Event A", 0, 2), ("Event B", 1, 2)]),
        ("AAaa", [("Event A", 1, 1), ("Event A", 0, 3)]),
        ("AAa", [("Event A", 1, 1)]),
        ("bAa", [("Event A", 0, 1)]),
        ("AaAa", [("Event A", 0, 1), ("Event A", 2, 1)]),
    ],
)
@pytest.mark.parametrize("form", ["text", "ctf"])
def test_events_nest_by_kind_and_overlap_by_kinds(letters, expected, form, tmp_path) -> None:
    script = script_of(letters)
    if form == "text":
        trace = opened(script.text, tmp_path)
    else:
        thapi_ctf.write(script.text, tmp_path / "trace")
        trace = lanescope.open(tmp_path / "trace")
    assert intervals(trace) == expected
    assert "levelzero_exit_unmatched" not in stats(trace)
    assert stats(trace).get("levelzero_unfinished_call", 0) == (letters == "AAa")


def test_tasks_are_nested_in_their_domain(tmp_path) -> None:
    script = Script()
    script.record(f"{ITT}string_handle_create", ittResult="0x20", str="0x1", str_val='"by handle"')
    for domain, name, field in ((0, "0x10", '"task A"'), (0, "0x20", '"other"'), (1, "0x30", '"task C"')):
        fields = {"domain": domain, "taskid": "__itt_null", "parentid": "__itt_null", "name": name}
        script.record(f"{ITT}task_begin", **fields, name__strA_val=field)
    for domain in (0, 0, 1):
        script.record(f"{ITT}task_end", domain=domain)
    trace = opened(script.text, tmp_path)
    assert intervals(trace) == [("by handle", 1, 2), ("task A", 0, 4), ("task C", 2, 3)]
    assert set(json.loads(b"".join(iprof_json(trace)))["host"]["5"]) == {"by handle", "task A", "task C"}
    assert {row["tid"] for row in trace.details["levelzero_threads"].rows()} == {1}


def test_what_is_not_read_is_lost_and_named(tmp_path) -> None:
    script = Script().record(f"{ITT}pause").record(f"{ITT}task_end", domain=5)
    found = stats(opened(script.text, tmp_path))
    assert (found["levelzero_unknown_record"], found["levelzero_invalid_field"]) == (1, 1)

"""Names of events and groups, from wherever they come."""

from __future__ import annotations

import enum
import json

import pytest

from devices.cuda.helpers import buffer, decode, stats
from lanescope.errors import InputError, UsageError

WORDS = buffer([[("B", 0, 10), ("E", 0, 20), ("B", 2, 30), ("E", 2, 40), ("F", 0, 50)]] * 2)
EXPECTED = ["load", "store", "load", "store"]


class Events(enum.Enum):
    LOAD = 0
    COMPUTE = 1
    STORE = 2


@pytest.mark.parametrize(
    "events",
    [
        "load,compute,store",
        " load , compute , store ",
        ["load", "compute", "store"],
        ("load", "", "store"),
        {0: "load", 2: "store"},
        {"0": "load", "2": "store"},
        {"load": 0, "compute": 1, "store": 2},
    ],
)
def test_from_an_option(events):
    trace = decode(WORDS, events=events)
    assert trace.slices["name"].tolist() == EXPECTED
    assert stats(trace) == {}


def test_from_an_enum():
    assert decode(WORDS, events=Events).slices["name"].tolist() == ["LOAD", "STORE"] * 2


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("names.txt", "load\ncompute\nstore\n"),
        ("names.json", '["load", "compute", "store"]'),
        ("names.json", '{"load": 0, "store": 2}'),
        ("names.json", '{"0": "load", "2": "store"}'),
        ("names.json", '{"events": ["load", "", "store"], "groups": ["g", "h"]}'),
    ],
)
def test_from_a_file(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    trace = decode(WORDS, events=str(tmp_path / name))
    assert trace.slices["name"].tolist() == EXPECTED
    assert trace.inputs["role"].tolist() == ["main", "events"]
    assert [(row["input_id"], row["decoded"]) for row in trace.accounting.rows() if row["input_id"] == 1] == [
        (1, len(text))
    ]
    if "groups" in text:
        assert trace.tracks["name"].tolist()[2:4] == ["g", "h"]


def test_from_beside_the_capture():
    beside = {"run.events.json": json.dumps(["load", "compute", "store"]).encode(), "other.events.json": b"[]"}
    assert decode(WORDS, beside=beside).slices["name"].tolist() == EXPECTED
    assert decode(WORDS, beside=beside, events="a,b,c").slices["name"].tolist() == ["a", "c"] * 2


def test_name_of_the_capture_is_no_pattern():
    beside = {"run[1].events.json": b'["load", "", "store"]', "run1.events.json": b'["no", "", "no"]'}
    assert decode(WORDS, name="run[1].npy", beside=beside).slices["name"].tolist() == EXPECTED


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"3", b"[1, 2]", b'{"a": "b"}', b'{"a": 1, "b": 1}', b'{"1": "a", "01": "b"}', b"\xff\xfe",
     b"[" * 100_000, b'["' + b"x" * (1 << 20) + b'"]'],
)  # fmt: skip
def test_bad_neighbour_is_counted_and_not_used(text):
    trace = decode(WORDS, beside={"run.events.json": text})
    assert stats(trace) == {"cuda_unreadable_names": 1}
    assert trace.slices["name"].tolist() == ["event_0", "event_2"] * 2
    lost = [row["lost"] for row in trace.accounting.rows() if row["input_id"] == 1]
    assert lost == [len(text)]


def test_bad_file_that_was_asked_for(tmp_path):
    (tmp_path / "names.json").write_text("3")
    with pytest.raises(InputError, match="invalid event names"):
        decode(WORDS, events=str(tmp_path / "names.json"))
    with pytest.raises(InputError, match="no such file"):
        decode(WORDS, events=str(tmp_path / "none.json"))


@pytest.mark.parametrize(
    "options",
    [
        {"events": 3},
        {"events": [1, 2]},
        {"groups": 3},
        {"groups": {"a": "b"}},
        {"events": b"load"},
        {"events": {"a": 1, "b": 1}},
    ],
)
def test_values_that_are_no_names(options):
    with pytest.raises(UsageError, match=f"invalid value for --{next(iter(options))}"):
        decode(WORDS, **options)


@pytest.mark.parametrize(
    "options",
    [{"stride": "x"}, {"stride": "0"}, {"stride": -1}, {"anchor": 1.5}, {"anchor": 1 << 63}, {"launch_ns": "-1"},
     {"after_finalize": "both"}, {"after_finalize": 3}, {"unknown": 1}],
)  # fmt: skip
def test_options_that_are_none(options):
    with pytest.raises(UsageError):
        decode(WORDS, **options)


def test_numbers_may_be_hexadecimal():
    assert decode(WORDS, anchor="0x10").anchors["ticks"].tolist() == [(1 << 32) + 10]


def test_group_names():
    assert decode(WORDS, groups="load, store").tracks["name"].tolist() == ["GPU", "block 0", "load", "store"]
    assert decode(WORDS, groups=["load"], device="cuda:1").tracks["name"].tolist() == [
        "cuda:1", "block 0", "load", "group 1",
    ]  # fmt: skip

"""The host's side of probe buffers: sizes, headers, names, what comes back."""

from __future__ import annotations

import enum

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.encode import ls2
from lanescope.devices.cuda.formats.ls2 import Ls2Buffer, Ls2Header
from lanescope.devices.cuda.formats.tirx import TirxBuffer
from lanescope.devices.cuda.probes.buffer import BufferPlan, Events
from lanescope.errors import UsageError

plans = st.fixed_dictionaries(
    {
        "events": st.just(["load", "compute"]),
        "blocks": st.one_of(st.integers(1, 9), st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))),
        "groups": st.one_of(st.integers(1, 4), st.just(["producer", "consumer"])),
        "records_per_lane": st.integers(1, 70),
        "payload": st.booleans(),
        "ring": st.booleans(),
        "clock": st.sampled_from(["globaltimer", "clock64"]),
    }
)


@given(plans, st.integers(0, 2**64 - 1), st.integers(0, 7))
def test_readers_find_what_the_plan_says(options, launch, ordinal):
    plan = BufferPlan.of(**options)
    words = plan.new(launch=launch, ordinal=ordinal, anchors=[(5, 6, 7)])
    plan.anchor(words, (8, 9, 10), 1)
    header = Ls2Header.read(words)
    assert len(words) == header.size == plan.words
    assert (header.num_blocks, header.num_groups) == (plan.blocks, len(plan.groups))
    assert header.capacity == plan.records_per_lane >= options["records_per_lane"] > plan.records_per_lane // 2
    assert (header.record_words, header.is_ring) == (1 + options["payload"], options["ring"])
    assert header.clock == ("globaltimer", "clock64").index(options["clock"])
    assert (header.launch, header.ordinal, header.anchors) == (launch, ordinal, ((5, 6, 7), (8, 9, 10)))
    assert not words[layout.LS2_FILE_WORDS :].any()
    assert Ls2Buffer(words).cut == Ls2Buffer(words).behind == 0


@given(plans, st.data())
def test_a_lane_holds_as_many_records_as_it_says(options, data):
    """The reader sees each of them, under its name, in its lane; and one more is counted as lost."""
    plan = BufferPlan.of(**options | {"clock": "globaltimer", "ring": False})
    lane, count = data.draw(st.integers(0, plan.lanes - 1)), plan.records_per_lane + 1
    time = 1000 + 32 * np.arange(count)
    rows = [np.full(count, lane), np.ones(count, np.int64), np.full(count, layout.INSTANT), time, np.zeros(count, int)]
    heads = ls2.lane_heads(plan.lanes, state=3, begin_ns=1000, end_ns=1 << 20)
    setup = plan._setup(0, 0, ())
    words = ls2.encode(ls2.Ls2Records(*rows, np.zeros(count, np.uint64)), setup, heads)[0]
    trace = plan.decode(words)
    assert trace.instants["name"].tolist() == ["compute"] * plan.records_per_lane
    lanes = trace.details["cuda_lanes"]
    assert lanes["dropped"][lane] == lanes["dropped"].sum() == 1
    names = trace.tracks["name"][lanes["track_id"]]
    assert set(names.tolist()) == set(plan.groups)


def test_tirx_buffers_have_room_for_the_finalize():
    plan = BufferPlan.of(events=["a"], blocks=3, groups=2, records_per_lane=5, layout="tirx")
    words = plan.new()
    assert len(words) == 1 + 6 * 6
    words[0] = 2 << 32 | 3
    for lane in range(6):
        for k, kind in enumerate([0, 1, 0, 1, 2, 3]):
            words[1 + lane + k * plan.stride] = (100 + k) << 32 | lane << 12 | kind
    assert TirxBuffer.read(words, stride=plan.stride).unreadable == 0
    trace = plan.decode(words)
    assert (len(trace.slices), len(trace.instants)) == (12, 6)
    assert not trace.details["cuda_lanes"]["is_full"].any()


def test_events_are_names_and_numbers():
    class Color(enum.Enum):
        RED = 3
        BLUE = 7

    for events in (Events(Color), Events({"RED": 3, "BLUE": 7}), Events({3: "RED", 7: "BLUE"})):
        assert (events["RED"], events.BLUE, dict(events)) == (3, 7, {"RED": 3, "BLUE": 7})
        assert events.names == {3: "RED", 7: "BLUE"}
    with pytest.raises(AttributeError, match="unknown event 'GREEN'"):
        _ = Events(Color).GREEN


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"events": 5}, "names must be"),
        ({"events": ["a", "a"]}, "duplicate event name"),
        ({"events": {"a": 1 << 16}}, "at most 65535"),
        ({"blocks": 0}, "expected a grid"),
        ({"blocks": (4, -1)}, "expected a grid"),
        ({"groups": 0}, "0 lanes"),
        ({"blocks": 1 << 20, "groups": 2}, "lanes"),
        ({"records_per_lane": 0}, "must be a positive integer"),
        ({"records_per_lane": 1 << 30, "blocks": 32}, "bytes"),
        ({"layout": "proton"}, "unknown layout"),
        ({"layout": "tirx", "payload": True}, "require layout 'ls2'"),
        ({"layout": "tirx", "events": {"a": 1024}}, "at most 1023"),
        ({"clock": "sundial"}, "unknown clock"),
    ],
)
def test_what_cannot_be_is_refused(wrong, says):
    with pytest.raises(UsageError, match=says):
        BufferPlan.of(**{"events": ["a"], "blocks": 1} | wrong)

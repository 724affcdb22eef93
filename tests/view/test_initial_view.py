"""The viewer opens what can be looked at."""

import re

import numpy as np

from devices.cuda.helpers import decode_simulation, simulate
from lanescope.io.viewer_names import shown_names
from lanescope.trace import TimeBase, TraceBuilder
from lanescope.view.initial_view import ROWS, groups_to_open, initial_view


def opened(trace):
    """Return the rows that are drawn, and the names of open groups."""
    pattern = re.compile(groups_to_open(trace.tracks))
    tracks = list(trace.tracks.rows())
    open_ids = {None}
    names = []
    shown = 0
    for track in sorted(tracks, key=lambda t: t["id"]):
        if track["parent_id"] in open_ids:
            shown += 1
            if track["kind"] == "group" and pattern.match(track["name"]):
                open_ids.add(track["id"])
                names.append(track["name"])
    return shown, names


def test_a_small_trace_is_open():
    trace = decode_simulation(simulate(1, blocks=4))
    assert opened(trace)[0] == len(trace.tracks)


def test_of_a_large_one_the_first_blocks_are():
    trace = decode_simulation(simulate(1, tiles=2))
    assert len(trace.tracks) == 529
    shown, names = opened(trace)
    assert names[:3] == ["GPU", "block 0", "block 1"]
    assert 20 < len(names) <= ROWS // 3 + 1
    assert names[1:] == [f"block {number}" for number in range(len(names) - 1)]
    assert shown == 1 + 132 + 3 * (len(names) - 1)


def test_names_are_taken_as_they_are():
    builder = TraceBuilder(TimeBase())
    for at in range(300):
        group = builder.track(f"a.b (x{at})", kind="group", role="core")
        for lane in range(2):
            builder.track(f"lane {lane}", kind="lane", role="core", parent=group)
    shown, names = opened(builder.finish())
    assert names == ["a.b (x0)"]  # 300 groups are more than enough without any open
    assert shown == 302


def test_cycles_are_written_as_whole_numbers():
    assert initial_view(TraceBuilder(TimeBase(0, "unix", "cycles")).finish())["time_format"] == "traceNsLocale"
    assert initial_view(TraceBuilder(TimeBase()).finish())["time_format"] == ""


def test_names_are_matched_as_they_are_shown():
    builder = TraceBuilder(TimeBase(0, "unix", "cycles"))
    for name, role in (("GPU 0", "device"), ("simhost", "host")):
        group = builder.track(name, kind="group", role=role)
        for lane in range(300 if role == "device" else 3):
            builder.track(f"lane {lane}", kind="lane", role="core", parent=group)
    trace = builder.finish()
    pattern = re.compile(groups_to_open(trace.tracks))
    shown = shown_names(trace.tracks, trace.time)
    tops = [shown[row] for row in np.flatnonzero(~trace.tracks.valid("parent_id")).tolist()]
    assert tops == ["GPU 0 [cycles: 1 cycle as 1 ns]", " simhost [cycles: 1 cycle as 1 ns]"]
    builder = TraceBuilder(TimeBase(0, "unix", "cycles"))
    for number in range(200):
        group = builder.track(f"queue 0x5500000c1{number:03x}", kind="group", role="device")
        for lane in range(2):
            builder.track(f"lane {lane}", kind="lane", role="core", parent=group)
    assert re.compile(groups_to_open(builder.finish().tracks)).match("queue 0 [cycles: 1 cycle as 1 ns]")
    assert pattern.match("GPU 0")

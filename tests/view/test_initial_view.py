"""The viewer opens what can be looked at."""

import re

from devices.cuda.helpers import decode_simulation, simulate
from lanescope.trace import TimeBase, TraceBuilder
from lanescope.view.initial_view import ROWS, groups_to_open


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

"""The lane strip: what it shows of small traces, and that no trace can break it."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import TRACES
from lanescope import testing
from lanescope.analysis import check
from lanescope.trace import Flag, TimeBase, TraceBuilder
from lanescope.view.formatting import display_width
from lanescope.view.lane_strip import lane_strip

SGR = re.compile(r"\x1b\[[0-9;]+m")


def small():
    """Two lanes of a device, one with a gap and a clash, one that hangs, and a counter."""
    builder = TraceBuilder(TimeBase())
    device = builder.track("npu", kind="group", role="device")
    core = builder.track("core 0", kind="lane", role="core", parent=device)
    queue = builder.track("queue", kind="lane", role="queue", parent=device, nesting="nested")
    power = builder.track("power", kind="counter", role="counter", unit="W")
    builder.append(
        "slices",
        track_id=core,
        ts=[0, 100_000, 380_000],
        dur=[100_000, 20_000, 20_000],
        name=["mma 1", "load", "mma 2"],
    )
    builder.append("slices", track_id=core, ts=390_000, dur=10_000, name="load")
    builder.append("gaps", track_id=core, ts=150_000, dur=50_000, cause="overrun")
    builder.append("coverage", track_id=core, ts=0, dur=400_000)
    builder.append("slices", track_id=queue, ts=[50_000, 60_000], dur=[150_000, 30_000], name=["launch", "wait"])
    builder.append(
        "slices", track_id=queue, ts=250_000, dur=None, last_known_ts=300_000, name="launch", flags=int(Flag.UNFINISHED)
    )
    builder.append("instants", track_id=core, ts=300_000, name="sync")
    builder.append("counters", track_id=power, ts=[0, 200_000], value=[10.0, 40.0])
    return builder.finish()


def drawn(trace, **options):
    return lane_strip(trace, **{"width": 72, "ascii_only": False, **options})


SMALL = """\
               0 µs          100           200            300
         busy  ╵             ╵             ╵              ╵
npu
  core 0  35%  █████████████████▁   ╱╱╱╱╱╱╱╱             ╷           ▇██
                                                LS104 ×1 ▲  LS101 ×2 ▲
  queue   50%  ·······▇████████████████████▄      ▃██████▆╌╌╌╌╌╌╌╌╌╌╌╌╌╌
                                                  ▲ LS103 ×1
power          ▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▅████████████████████ to 40 W

launch 59%   mma # 35%   load 9%   wait 9%
╱ gap: lost, unknown   ╌ may still run   · not recorded   ╷ instant
▲ LS101 warning overlapping slices on a serial lane, ×2 on 1 lane
▲ LS103 notice unfinished slices, ×1 on 1 lane
▲ LS104 notice first events after a gap, ×2 on 1 lane"""  # noqa: RUF001 (signs are meant)

ONE_LANE = """\
                 0 us       100        200       300
           busy  |          |          |         |
npu/core 0  35%  @@@@@@@@@@@@@   //////          '       :@@
power            :::::::::::::::::::::+@@@@@@@@@@@@@ to 40 W

launch 59%   mma # 35%   load 9%   wait 9%
/ gap: lost, unknown   ' instant
1 more lane with 59% of the busy time not drawn"""

LATE = """\
           0 cycles     1000         2000
     busy  ╵            ╵            ╵
tile  67%  █████████████             █████████████

x 100%
0 on the axis is 5,000 cycles"""


def test_a_small_trace():
    trace = small()
    assert drawn(trace, findings=check.run(trace)) == SMALL


def test_with_room_for_one_lane_the_one_with_a_gap_is_drawn_and_its_group_needs_no_heading():
    assert drawn(small(), rows=1, ascii_only=True, width=60) == ONE_LANE


def test_cycles_stay_cycles_and_late_traces_say_where_they_begin():
    builder = TraceBuilder(TimeBase(time_unit="cycles"))
    lane = builder.track("tile", kind="lane", role="tile")
    builder.append("slices", track_id=lane, ts=[5000, 7000], dur=[1000, 1000], name="x")
    assert drawn(builder.finish(), width=50) == LATE


def colored_cells(line):
    """The character and style of each column of a coloured line."""
    style, found = "", []
    for part in re.split(r"(\x1b\[[0-9;]+m)", line):
        if part.startswith("\x1b["):
            style = "" if part == "\x1b[0m" else part
        else:
            found += [(character, style) for character in part]
    return found


def test_the_innermost_name_gives_a_cell_its_colour():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("lane", kind="lane", role="core", nesting="nested")
    builder.append("slices", track_id=lane, ts=[0, 100, 150], dur=[400, 100, 20], name=["outer", "inner", "core"])
    lines = drawn(builder.finish(), color=True).split("\n")
    row = [style for character, style in colored_cells(lines[2]) if character == "█"]
    # 61 columns for 400 ns: 15 of outer, 8 of inner, 3 of core, 4 of inner, the rest of outer.
    swatches = [style for character, style in colored_cells(lines[-1]) if character == "■"]
    outer, inner, core = swatches
    assert len(set(swatches)) == 3
    assert row == [outer] * 15 + [inner] * 8 + [core] * 3 + [inner] * 4 + [outer] * 31


def test_names_that_differ_in_digits_share_a_colour_and_names_keep_theirs():
    def styles(*names):
        builder = TraceBuilder(TimeBase())
        lane = builder.track("lane", kind="lane", role="core")
        builder.append(
            "slices", track_id=lane, ts=[100 * i for i in range(len(names))], dur=[90] * len(names), name=list(names)
        )
        row = drawn(builder.finish(), color=True).split("\n")[2]
        return list(dict.fromkeys(style for character, style in colored_cells(row) if character == "█"))

    load, mma = styles("load", "mma 1", "mma 22", "mma")
    assert styles("store", "mma 5")[-1] == mma
    assert styles("mma 7", "load") == [mma, load]
    assert len(styles("slot 1", "slot 2")) == 2  # nothing else tells them apart


def test_no_color_in_the_environment_wins(monkeypatch):
    trace = small()
    assert "\x1b" in lane_strip(trace, color=True, width=80)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in lane_strip(trace, color=True, width=80)


def test_names_cannot_speak_to_the_terminal():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("a\x1b[2Jb\u202ec", kind="lane", role="core")
    builder.append("slices", track_id=lane, ts=0, dur=5, name="\x1b]0;title\x07")
    text = lane_strip(builder.finish(), width=90, ascii_only=False)
    assert "a\\x1b[2Jb\\u202ec" in text
    assert "\\x1b]0;title\\x07 100%" in text
    assert "\x1b" not in text


def test_lanes_with_warnings_are_drawn_first_then_the_busiest_of_each_role():
    builder = TraceBuilder(TimeBase())
    for number in range(10):
        lane = builder.track(f"core {number}", kind="lane", role="core")
        builder.append("slices", track_id=lane, ts=0, dur=100 - number, name="x")
    queue = builder.track("queue", kind="lane", role="queue")
    builder.append("slices", track_id=queue, ts=0, dur=1, name="x")
    builder.append("slices", track_id=8, ts=50, dur=5, name="x")
    builder.track("empty", kind="lane", role="core")
    trace = builder.finish()
    text = drawn(trace, findings=check.run(trace), rows=4)
    assert re.findall(r"^(.*?) +<?\d+%  ", text, re.MULTILINE) == ["core 0", "core 1", "core 8", "queue"]
    assert "\n7 more lanes with 69% of the busy time not drawn\n" in text
    assert len(re.findall(r"^(.*?) +<?\d+%  ", drawn(trace), re.MULTILINE)) == 11


def test_the_height_of_a_block_is_the_share_of_its_cell_and_any_work_is_seen():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("lane", kind="lane", role="core")
    eighths = [(800 * n, 100 * n) for n in range(1, 9)]
    builder.append("slices", track_id=lane, ts=[ts for ts, _ in eighths], dur=[dur for _, dur in eighths], name="x")
    builder.append("slices", track_id=lane, ts=8000, dur=1, name="x")
    builder.append("coverage", track_id=lane, ts=0, dur=800 * 33)
    assert drawn(builder.finish(), width=11 + 33).split("\n")[2] == "lane  14%   ▁▂▃▄▅▆▇█ ▁"


def test_nothing_to_draw():
    assert drawn(TraceBuilder(TimeBase()).finish()) == "no lane has anything to draw"


@pytest.mark.parametrize("color", [False, True])
@given(trace=testing.traces(**TRACES), width=st.integers(20, 130), rows=st.integers(1, 6))
def test_any_trace_can_be_drawn(color, trace, width, rows):
    text = lane_strip(trace, findings=check.run(trace), width=width, rows=rows, color=color, ascii_only=False)
    bare = SGR.sub("", text)
    assert (bare != text) <= color
    for line in bare.split("\n"):
        assert display_width(line) <= max(width, 40)
        assert line.isprintable()
        assert line == line.rstrip()
    plain = lane_strip(trace, width=width, rows=rows, ascii_only=True)
    assert plain.isascii()
    assert not np.any([character < " " for character in plain.replace("\n", "")])


def test_impossible_times_do_not_break_the_drawing():
    builder = TraceBuilder(TimeBase())
    lane = builder.track("lane", kind="lane", role="core", nesting="nested")
    builder.append("slices", track_id=lane, ts=[0, 5, (1 << 63) - 10], dur=[5, -7, 500], name="x")
    builder.append("gaps", track_id=lane, ts=3, dur=-4, cause="overrun")
    trace = builder.finish()
    text = drawn(trace, findings=check.run(trace))
    assert "LS102 error impossible duration" in text


@pytest.mark.parametrize(
    ("values", "unit", "text"),
    [
        ([0, 2**20], "bytes", "to 1.0 MiB"),
        ([3, 99], "1", "to 99"),
        ([-5, 7], "W", "-5 W to 7 W"),
        ([0, 1500], "ns", "to 1.50 µs"),
    ],
)
def test_a_counter_says_its_values_as_the_report_does(values, unit, text):
    builder = TraceBuilder(TimeBase())
    lane = builder.track("core", kind="lane", role="core")
    counter = builder.track("level", kind="counter", role="counter", unit=unit)
    builder.append("slices", track_id=lane, ts=[0], dur=[100], name="work")
    builder.append("counters", track_id=counter, ts=[0, 50], value=values)
    drawn = lane_strip(builder.finish(), width=100, ascii_only=False)
    assert next(line for line in drawn.splitlines() if line.startswith("level")).rstrip().endswith(f" {text}")

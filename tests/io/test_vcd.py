"""Traces as value change dumps, and against those of a simulator."""

import contextlib
import json
import re
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lanescope
from lanescope import cli
from lanescope.devices.aie.analysis import wave_diff
from lanescope.errors import InputError, UsageError
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.io import vcd
from lanescope.trace import TimeBase, TraceBuilder
from lanescope.trace.signals import UNKNOWN, signals


def trace_of(slices=(), instants=(), gaps=(), unit="cycles"):
    builder = TraceBuilder(TimeBase(epoch_kind="first_event", time_unit=unit))
    group = builder.track("core (1, 2)", kind="group", role="tile")
    lane = builder.track("slot 0 LOCK_STALL", kind="lane", role="slot", parent=group, nesting="free")
    if slices:
        begin, dur = (np.array(column, np.int64) for column in zip(*slices, strict=True))
        builder.append("slices", track_id=lane, ts=begin, dur=dur, name=["stall"] * len(begin))
    if instants:
        times = np.array(instants, np.int64)
        builder.append("instants", track_id=lane, ts=times, name=["call"] * len(times))
    for begin, dur in gaps:
        builder.append("gaps", track_id=group, ts=np.array([begin]), dur=np.array([dur]), cause=["overrun"])
    return builder.finish()


def written(trace, path):
    vcd.write(trace, path)
    return wave_diff.Waveform(path)


STALL = "core_1_2.slot_0_LOCK_STALL"


@pytest.mark.parametrize("before", [[], [(2, 3)]])
def test_a_slice_without_an_end_leaves_a_wire_unknown_from_its_last_known_time_on(before):
    builder = TraceBuilder(TimeBase(epoch_kind="first_event", time_unit="cycles"))
    lane = builder.track("slot", kind="lane", role="slot")
    for begin, dur in before:
        builder.append("slices", track_id=lane, ts=begin, dur=dur, name="stall")
    builder.append("slices", track_id=lane, ts=10, dur=0, dur_valid=[False], name="stall", last_known_ts=14)
    (wire,) = signals(builder.finish())
    changes = list(zip(wire.times.tolist(), wire.values.tolist(), strict=True))
    assert changes == [*((time, value) for begin, dur in before for time, value in ((begin, 1), (begin + dur, 0))),
                       (10, 1), (14, UNKNOWN)]  # fmt: skip


def test_a_gap_without_a_known_end_leaves_a_wire_unknown_from_its_begin_on():
    builder = TraceBuilder(TimeBase(epoch_kind="first_event", time_unit="cycles"))
    lane = builder.track("slot", kind="lane", role="slot")
    builder.append("slices", track_id=lane, ts=np.array([5, 30]), dur=np.array([10, 10]), name=["stall"] * 2)
    builder.append("gaps", track_id=lane, ts=np.array([20]), cause=["overrun"])
    (wire,) = signals(builder.finish())
    assert (wire.times.tolist(), wire.values.tolist()) == ([5, 15, 20], [1, 0, UNKNOWN])


@given(
    slices=st.lists(st.tuples(st.integers(0, 200), st.integers(1, 40)), min_size=1, max_size=15),
    instants=st.lists(st.integers(0, 300), max_size=15),
    gaps=st.lists(st.tuples(st.integers(0, 200), st.integers(1, 50)), max_size=3),
)
def test_a_wire_is_one_while_a_slice_runs_and_unknown_in_gaps(slices, instants, gaps, tmp_path_factory):
    trace = trace_of(slices, instants, gaps)
    wave = written(trace, tmp_path_factory.mktemp("vcd") / "a.vcd")
    lane = wave.signal(STALL)
    for time in range(300):
        i = int(np.searchsorted(lane.times, time, side="right")) - 1
        value = int(lane.values[i]) if i >= 0 else 0
        if any(begin <= time < begin + dur for begin, dur in gaps):
            assert value == UNKNOWN
        else:
            assert value == any(begin <= time < begin + dur for begin, dur in slices)
    if instants and not gaps:
        count = wave.signal(f"{STALL}.call")
        assert int(count.values[-1]) == len(instants)
    # A trace equals what was written of it.
    assert all(row.difference is None for row in wave_diff.compare(signals(trace), wave, period=Fraction(1000)))


def test_a_slot_that_watched_and_never_saw_its_event_is_zero_but_where_nothing_is_known(tmp_path):
    builder = TraceBuilder(TimeBase(epoch_kind="first_event", time_unit="cycles"))
    group = builder.track("core (1, 2)", kind="group", role="tile")
    names = ("DMA_S2MM_0_STALLED", "LOCK_STALL")
    _, busy = (builder.track(name, kind="lane", role="slot", parent=group) for name in names)
    builder.append("slices", track_id=busy, ts=np.array([10]), dur=np.array([5]), name=["stall"])
    builder.append("gaps", track_id=group, ts=np.array([20]), dur=np.array([4]), cause=["overrun"])
    wave = written(builder.finish(), tmp_path / "a.vcd")
    signal = wave.signal("core_1_2.DMA_S2MM_0_STALLED")
    assert (signal.times.tolist(), signal.values.tolist()) == ([0, 20, 24], [0, UNKNOWN, 0])


@given(slices=st.lists(st.tuples(st.integers(0, 500), st.integers(1, 30)), min_size=2, max_size=12), data=st.data())
def test_an_injected_difference_is_found_where_it_is(slices, data, tmp_path_factory):
    path = tmp_path_factory.mktemp("vcd") / "a.vcd"
    trace = trace_of(slices)
    written(trace, path)
    lines = path.read_text().splitlines()
    first = lines.index("$end", lines.index("$dumpvars")) + 1
    stamps = [i for i, line in enumerate(lines) if i >= first and line.startswith("#")]
    if not stamps:
        return
    at = data.draw(st.sampled_from(stamps))
    time = int(lines[at][1:])
    later = [int(lines[i][1:]) for i in stamps if i > at]
    if later and later[0] == time + 1:
        return
    lines[at] = f"#{time + 1}"
    path.write_text("\n".join(lines) + "\n")
    (row,) = wave_diff.compare(signals(trace), wave_diff.Waveform(path), period=Fraction(1000))
    assert row.difference is not None
    assert (row.our_time, row.their_time) == (time, time + 1)
    assert row.our_value == row.their_value
    assert (
        wave_diff.compare(signals(trace), wave_diff.Waveform(path), period=Fraction(1000), tolerance=1)[0].difference
        is None
    )
    assert wave_diff.compare(signals(trace), wave_diff.Waveform(path), is_order_only=True)[0].difference is None


def test_a_missing_change_is_a_difference_of_counts(tmp_path):
    trace = trace_of([(10, 5), (30, 5), (50, 5)])
    wave = written(trace_of([(10, 5), (30, 5)]), tmp_path / "a.vcd")
    (row,) = wave_diff.compare(signals(trace), wave, period=Fraction(1000))
    assert row == wave_diff.Comparison(STALL, STALL, 6, 4, 4, 50, 1, None, None)


def test_times_are_counted_from_a_landmark_and_by_the_period(tmp_path):
    ours = trace_of([(100, 5), (130, 5), (150, 5)])
    # A simulator that starts elsewhere, at 0.8 ns a cycle.
    text = (
        "$timescale 1 ps $end\n$scope module top $end\n$var wire 1 ! stall $end\n$upscope $end\n$enddefinitions $end\n"
    )
    changes = [(cycle * 800 + 77_000, value) for cycle, value in ((0, 1), (5, 0), (30, 1), (35, 0), (50, 1), (55, 0))]
    (tmp_path / "b.vcd").write_text(text + "#0\n0!\n" + "".join(f"#{time}\n{value}!\n" for time, value in changes))
    wave, names = wave_diff.Waveform(tmp_path / "b.vcd"), {STALL: "top.stall"}
    (row,) = wave_diff.compare(signals(ours), wave, names=names, period=Fraction(800))
    assert row.difference == 0
    for which in (1, 2, 3):
        (row,) = wave_diff.compare(signals(ours), wave, names=names, period=Fraction(800), sync_on=(STALL, which))
        assert row.difference is None
    with pytest.raises(UsageError, match="3 rises"):
        wave_diff.compare(signals(ours), wave, names=names, period=Fraction(800), sync_on=(STALL, 4))
    with pytest.raises(UsageError, match="unknown signal"):
        wave_diff.compare(signals(ours), wave, names={STALL: "top.other"}, period=Fraction(800))
    with pytest.raises(UsageError, match="--map"):
        wave_diff.compare(signals(ours), wave, period=Fraction(800))


def test_addresses_of_program_flow_are_a_vector(tmp_path):
    capture = tmp_path / "flow.bin"
    simulated = registry.family("aie").simulate(
        resolve_options(registry.family("aie").sim_options, {"mode": "2", "records": "50", "tiles": "1"}, what="sim"),
        3,
    )
    capture.write_bytes(next(iter(simulated.files.values())))
    trace = lanescope.open(capture)
    wave = written(trace, tmp_path / "flow.vcd")
    (name,) = [name for name in wave.names if name.endswith(".flow.pc")]
    flow = trace.details["aie_program_flow"]
    pcs = flow["pc"][flow.valid("pc")].tolist()
    seen = [value for value in wave.signal(name).values.tolist() if value != UNKNOWN]
    assert seen == [pc for i, pc in enumerate(pcs) if not i or pcs[i - 1] != pc]


@pytest.mark.parametrize("text", ["", "hello", "$timescale 1 ns $end\n", "$enddefinitions $end\n#0\n1!\n"])
def test_what_is_no_waveform_is_refused(text, tmp_path, capfd):
    (tmp_path / "a.vcd").write_text(text)
    with pytest.raises((InputError, UsageError)):
        wave_diff.compare(signals(trace_of([(1, 2)])), wave_diff.Waveform(tmp_path / "a.vcd"), period=Fraction(1000))
    with pytest.raises(InputError, match="not a file"):
        wave_diff.Waveform(tmp_path / "none.vcd")


GOLDEN = Path(__file__).parent / "golden"
WAVEFORMS = sorted(GOLDEN.glob("wave-*.fst"))


@pytest.mark.parametrize("path", WAVEFORMS, ids=lambda path: path.stem)
def test_files_of_gtkwave_are_read_in_each_packing(path):
    wave, expected = wave_diff.Waveform(path), wave_diff.Waveform(GOLDEN / "wave.vcd")
    assert (wave.tick, sorted(wave.names)) == (expected.tick, sorted(expected.names))
    changes = 0
    for name in expected.names:
        found, wanted = wave.signal(name), expected.signal(name)
        assert (found.bits, found.times.tolist(), found.values.tolist()) == (
            wanted.bits, wanted.times.tolist(), wanted.values.tolist(),
        )  # fmt: skip
        changes += len(wanted.times)
    assert changes > 100


@pytest.mark.parametrize("path", WAVEFORMS, ids=lambda path: path.stem)
def test_a_cut_file_of_gtkwave_is_refused(path, tmp_path, capfd):
    content = path.read_bytes()
    for size in range(1, len(content), 37):
        (tmp_path / "cut.fst").write_bytes(content[:size])
        with pytest.raises(InputError):
            wave_diff.Waveform(tmp_path / "cut.fst")


def test_the_commands_write_and_compare(tmp_path, capsys):
    with contextlib.chdir(tmp_path):
        assert cli.main(["sim", "aie", "--seed", "3", "--records", "60", "-o", "run.bin"]) == 0
        assert cli.main(["convert", "run.bin", "-o", "run.vcd"]) == 0
        assert cli.main(["aie-wavediff", "run.bin", "run.vcd", "--period", "1000"]) == 0
        text = (tmp_path / "run.vcd").read_text()
        stamps = re.findall(r"^#(\d+)$", text, re.MULTILINE)
        changed = next(int(a) for a, b in pairwise(stamps[10:]) if int(b) > int(a) + 1)
        (tmp_path / "other.vcd").write_text(text.replace(f"#{changed}\n", f"#{changed + 1}\n"))
        capsys.readouterr()
        assert cli.main(["aie-wavediff", "run.bin", "other.vcd", "--period", "1000", "--json"]) == 1
        found = json.loads(capsys.readouterr().out)["signals"]
        assert {row["our_time"] for row in found if row["difference"] is not None} == {changed}
        assert cli.main(["aie-wavediff", "run.bin", "other.vcd", "--period", "1000", "--tolerance", "1"]) == 0
        assert cli.main(["aie-wavediff", "run.bin", "other.vcd", "--ignore-time"]) == 0
        assert cli.main(["aie-wavediff", "run.bin", "other.vcd", "--period", "0"]) == 2
        (tmp_path / "map.json").write_text("[]")
        assert cli.main(["aie-wavediff", "run.bin", "other.vcd", "--ignore-time", "--map", "map.json"]) == 2
        assert cli.main(["aie-wavediff", "run.bin", "other.vcd", "--ignore-time", "--sync-on", "a:b"]) == 2


@given(
    slices=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), min_size=1, max_size=8),
    others=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), min_size=1, max_size=8),
    gaps=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=2),
    edges=st.tuples(st.integers(0, 70), st.integers(1, 30)),
)
def test_a_stretch_of_time_differs_where_a_moment_in_it_does(slices, others, gaps, edges, tmp_path_factory):
    """Against the values of both signals at each moment."""
    begin, end = edges[0], edges[0] + edges[1]
    ours = trace_of(slices, gaps=gaps)
    wave = written(trace_of(others), tmp_path_factory.mktemp("vcd") / "a.vcd")

    def at(signal, time):
        place = int(np.searchsorted(signal.times, time, side="right")) - 1
        return int(signal.values[place]) if place >= 0 else 0

    (mine,) = signals(ours)
    theirs = wave.signal(STALL)
    values = [(at(mine, time), at(theirs, time)) for time in range(begin, end)]
    (row,) = wave_diff.compare(signals(ours), wave, period=Fraction(1000), begin=begin, end=end)
    if all(one != UNKNOWN for one, _ in values):
        assert (row.difference is None) == all(one == other for one, other in values)
    (same,) = wave_diff.compare(
        signals(ours), written(ours, tmp_path_factory.mktemp("vcd") / "b.vcd"), begin=begin, end=end
    )
    assert same.difference is None


def test_a_stretch_of_time_and_some_lanes_are_compared(tmp_path, capsys):
    with contextlib.chdir(tmp_path):
        assert cli.main(["sim", "aie", "--seed", "3", "--records", "60", "-o", "run.bin"]) == 0
        assert cli.main(["convert", "run.bin", "-o", "run.vcd"]) == 0
        text = (tmp_path / "run.vcd").read_text()
        stamps = re.findall(r"^#(\d+)$", text, re.MULTILINE)
        changed = next(int(a) for a, b in pairwise(stamps[10:]) if int(b) > int(a) + 1)
        (tmp_path / "other.vcd").write_text(text.replace(f"#{changed}\n", f"#{changed + 1}\n"))
        verb = ["aie-wavediff", "run.bin", "other.vcd", "--period", "1000"]
        capsys.readouterr()
        assert cli.main([*verb, "--json"]) == 1
        rows = json.loads(capsys.readouterr().out)["signals"]
        assert cli.main([*verb, "--end", str(changed)]) == 0
        assert f"window: start to {changed:,} cycles" in capsys.readouterr().err
        assert cli.main([*verb, "--start", str(changed + 1)]) == 0
        assert cli.main([*verb, "--start", str(changed), "--end", str(changed + 2)]) == 1
        assert cli.main([*verb, "--start", str(changed), "--tolerance", "1"]) == 0
        capsys.readouterr()
        trace = lanescope.open("run.bin")
        lane = next(str(name) for name in trace.tracks["name"][trace.tracks["kind"] == "lane"])
        assert cli.main([*verb, "--lane", lane, "--json"]) in (0, 1)
        of_lane = json.loads(capsys.readouterr().out)
        assert of_lane["window"]["asked"] == [{"lane": [lane]}]
        assert 0 < len(of_lane["signals"]) < len(rows)
        assert all(row in rows for row in of_lane["signals"])
        assert cli.main([*verb, "--min-dur", "3"]) == 2
        assert "signals are compared whole" in capsys.readouterr().err
        assert cli.main(["aie-wavediff", "run.bin", "other.vcd", "--ignore-time", "--end", "9"]) == 2

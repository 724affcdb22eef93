"""Decoding a simulated dump gives the ground truth, whatever faults were injected."""

import concurrent.futures
import struct
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest

import lanescope
from devices.aie.recordings import Recordings
from effort import some
from lanescope._native import core
from lanescope.devices.aie import decoder as decode
from lanescope.devices.aie.family import FAMILY
from lanescope.devices.aie.interpret import shard_state
from lanescope.families.options import resolve_options
from lanescope.source import Capture
from lanescope.trace import Flag, Trace

FAULTS = (
    {},
    *({"mode": mode, **faults} for mode in (1, 2) for faults in ({}, {"overruns": 3}, {"lost_tail": 5, "runs": 2})),
    {"mode": 2, "burst": 64, "overruns": 1},
    {"mode": 1, "stale": 6, "text": True},
    {"burst": 64},
    {"overruns": 3},
    {"lost_tail": 5},
    {"runs": 2},
    {"stale": 6},
    {"runs": 2, "overruns": 1, "lost_tail": 3, "stale": 0},
    {"text": True, "overruns": 1},
    {"tiles": 8, "zeros": 3, "overruns": 2},
    {"tiles": 4, "shared_stop": True},
    {"runs": 2, "overruns": 3, "shared_stop": True},
)


FLOW = ("kind", "pc", "count", "trips", "is_wrapped")


@pytest.fixture
def simulated(tmp_path):
    def run(seed, **options):
        chosen = resolve_options(FAMILY.sim_options, {"tiles": 3, "records": 120} | options, what="the simulator")
        simulation = FAMILY.simulate(chosen, seed)
        path = tmp_path / next(iter(simulation.files))
        path.write_bytes(next(iter(simulation.files.values())))
        return lanescope.open(path), simulation.truth

    return run


def decoded(trace):
    """What the trace says of each recording: who, and the rows of its lanes."""
    names = trace.tracks["name"].tolist()
    recordings = Recordings(trace)
    slices, gaps = defaultdict(list), defaultdict(set)
    for row in trace.slices.rows():
        lane = row["track_id"]
        index = recordings.of(lane, row["ts"])
        begin = row["ts_ticks"] - recordings.begin(index)
        slices[index].append((int(names[lane].split()[1]), begin, row["dur_ticks"], row["flags"]))
    for row in trace.gaps.rows():
        index = recordings.of(row["track_id"], row["ts"])
        begin = row["ts"] - recordings.begin(index)
        gaps[index].add((begin, None if row["dur"] is None else begin + row["dur"], row["cause"]))
    for table, fields in (("aie_pc_events", ("pc", "cycles", "mask")), ("aie_program_flow", FLOW)):
        instants = trace.instants.take(trace.details[table]["instant_id"])
        for instant, row in zip(instants.rows(), trace.details[table].rows(), strict=True):
            lane = instant["track_id"]
            told = (int(names[lane].split()[1]),) if table == "aie_pc_events" else ()
            index = recordings.of(lane, instant["ts"])
            begin = (instant["ts_ticks"] or instant["ts"]) - recordings.begin(index)
            slices[index].append((*told, begin, *(row[field] for field in fields), instant["flags"]))
            assert instant["quality"] == "estimated"
    return {
        (s["packet_type"], s["col"], s["row"], s["packet_id"], s["segment_index"]): (
            s,
            slices[index] if s["mode"] == 2 else sorted(slices[index]),
            sorted(gaps[index]),
        )
        for index, s in enumerate(recordings.rows)
    }


def who(recording):
    return tuple(recording[name] for name in ("type", "column", "row", "id", "ordinal"))


def rows(recording):
    if recording["mode"] == 1:
        return sorted(zip(*recording["events"].values(), strict=True))
    if recording["mode"] == 2:
        return [flow_row(*row) for row in zip(*recording["flow"].values(), strict=True)]
    slices = recording["slices"]
    return sorted(zip(slices["slot"], slices["start"], slices["dur"], slices["flags"], strict=True))


def flow_row(kind, ts, value, count, flags):
    pc = value if kind in ("start", "restart", "new_pc") else None
    trips, is_wrapped = (value & (1 << 28) - 1, value >> 28 == 1) if kind == "loop" else (None, None)
    return (ts, kind, pc, count, trips, is_wrapped, flags)


@pytest.mark.parametrize("faults", FAULTS, ids=lambda faults: "+".join(faults) or "none")
@pytest.mark.parametrize("seed", range(some(20, 4)))
def test_decoding_equals_the_truth(simulated, seed, faults):
    trace, truth = simulated(seed, **faults)
    found = decoded(trace)
    assert set(found) == {who(recording) for recording in truth["recordings"]}
    for recording in truth["recordings"]:
        segment, slices, gaps = found[who(recording)]
        assert slices == rows(recording)
        assert segment["start_timer"] == recording["start_timer"]
        assert segment["has_stop"] == (recording["stop"] is not None)
        assert segment["mode"] == recording["mode"]
        assert segment["dur_cycles"] == recording["cycles"]
        assert segment["restarts"] == recording["restarts"]
        assert segment["packets"] == recording["packets"]
        assert [list(gap[:2]) for gap in gaps if gap[2] == "overrun"] == recording["gaps"]
    stats = Counter()
    for row in trace.stats.rows():
        stats[row["name"]] += row["count"]
    restarts = sum(recording["restarts"] for recording in truth["recordings"])
    assert stats["aie_restart"] == restarts
    assert stats["aie_missing_stop"] == sum(recording["stop"] is None for recording in truth["recordings"])
    assert trace.accounting["lost"].tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(some(100)))
def test_damaged_headers_are_counted_and_located(simulated, seed):
    trace, truth = simulated(seed, bad_headers=0.05, records=300)
    damaged = truth["bad_headers"]
    stats = [row for row in trace.stats.rows() if row["name"] == "aie_bad_header"]
    skipped = sum(row["count"] for row in stats)
    # A sound packet between two damaged ones has nothing around it that would confirm it, and is not believed.
    between = {offset + 32 for offset in damaged} & {offset - 32 for offset in damaged} - set(damaged)
    assert len(damaged) <= skipped <= len(damaged) + len(between)
    assert [row["first_offset"] for row in stats] == sorted(damaged)[:1]
    # A skipped packet costs its words, and at most those behind it that repeat what was in it.
    words_lost = trace.accounting["lost"][1] - 8 * skipped
    assert 0 <= words_lost <= sum(row["count"] for row in trace.stats.rows() if row["name"] == "aie_orphan_repeat")
    # What a lost packet held is unknown; nothing is made up in its place.
    for recording in truth["recordings"]:
        segment, slices, _ = decoded(trace)[who(recording)]
        if segment["is_lossless"]:
            assert slices == rows(recording)
        exact = {row[:3] for row in rows(recording)}
        sound = [row for row in slices if row[3] == 0]
        assert not damaged or len(sound) <= len(exact)


def test_the_same_seed_gives_the_same_bytes():
    options = resolve_options(FAMILY.sim_options, {}, what="the simulator")
    first, second = (FAMILY.simulate(options, 5) for _ in range(2))
    assert dict(first.files) == dict(second.files)
    assert first.truth == second.truth


def test_what_touches_a_loss_says_so(simulated):
    trace, _ = simulated(3, overruns=3, records=400)
    flags = trace.slices["flags"]
    assert np.count_nonzero(flags & Flag.TRUNCATED)
    assert np.count_nonzero(flags & Flag.AFTER_GAP)


@pytest.mark.parametrize("noted", [shard_state._EVENTS, core.AieTimeline.EVENT_ROOM + 1])
@pytest.mark.parametrize("mode", [0, 2])
def test_one_thread_or_many_make_the_same_rows(simulated, monkeypatch, mode, noted):
    """Blocks are large enough here to be decoded side by side; there may be room for few notes at a time."""
    options = {"tiles": 5, "records": 10_000, "runs": 8, "mode": mode, "overruns": 2}
    monkeypatch.setattr(shard_state, "_EVENTS", noted)
    many, truth = [], None
    for cores, step in ((1, shard_state._STEP), (4, 64)):
        monkeypatch.setattr(decode, "_CORES", cores)
        monkeypatch.setattr(decode, "_ALONE_BYTES", 0)
        monkeypatch.setattr(shard_state, "_STEP", step)
        trace, truth = simulated(9, **options)
        many.append(trace)
    assert sum(recording["packets"] for recording in truth["recordings"]) > 2 * decode._LARGE_BLOCK
    for name, table in many[0].tables().items():
        for column in table.spec.names:
            if column not in ("path", "sha256"):
                assert np.array_equal(table[column], many[1].tables()[name][column]), (name, column)
    told = decoded(many[0])
    for recording in truth["recordings"]:
        if recording["mode"] == 0:
            assert len(told[who(recording)][1]) == len(recording["slices"]["slot"])


class AsLateAsPossible:
    """An executor whose work begins when somebody waits for it: what it reads must still be there."""

    def __init__(self, _: int) -> None:
        pass

    def submit(self, function, *arguments):
        return SimpleNamespace(result=lambda: function(*arguments))

    def shutdown(self) -> None:
        pass


@pytest.mark.parametrize("blanks", [0, 5000])
def test_a_block_that_is_decoded_late_reads_its_own_words(tmp_path, monkeypatch, blanks):
    """Of text, a block may hold nothing but blank lines: then nothing is begun, and the one before still runs."""
    options = resolve_options(FAMILY.sim_options, {"tiles": 3, "records": 4000}, what="the simulator")
    data = next(iter(FAMILY.simulate(options, 4).files.values()))
    lines = [b"%08x\n" % word for (word,) in struct.iter_unpack("<I", data)]
    lines.insert(len(lines) // 3, b"\n" * blanks)
    lines.insert(len(lines) // 2, b"\n" * blanks)
    path = tmp_path / "run.txt"
    path.write_bytes(b"".join(lines))
    monkeypatch.setattr(decode, "_CORES", 2)
    monkeypatch.setattr(decode, "_LARGE_BLOCK", 1)
    monkeypatch.setattr(decode, "_ALONE_BYTES", 0)
    monkeypatch.setattr(shard_state, "_STEP", 5)
    found = []
    for executor in (concurrent.futures.ThreadPoolExecutor, AsLateAsPossible):
        monkeypatch.setattr(concurrent.futures, "ThreadPoolExecutor", executor)
        with Capture(path) as capture:
            decoder = decode.AieDecoder(capture, {}, block_bytes=2000)
            batches = [batch for chunk in capture.main.chunks(2000) for batch in decoder.feed(chunk)]
            found.append(Trace.concat([*batches, *decoder.finish()]))
    for name, table in found[0].tables().items():
        for column in table.spec.names:
            assert np.array_equal(table[column], found[1].tables()[name][column]), (name, column)


@pytest.mark.parametrize("is_shared", [True, False])
def test_units_that_stop_on_one_broadcast_agree(simulated, is_shared):
    trace, truth = simulated(3, tiles=4, shared_stop=is_shared)
    cycles = {recording["cycles"] for recording in truth["recordings"]}
    assert (len(cycles) == 1) == is_shared
    assert set(trace.details["aie_segments"]["dur_cycles"].tolist()) == cycles
    assert bool(trace.details["aie_alignment"]["dur_skew_cycles"].any()) != is_shared

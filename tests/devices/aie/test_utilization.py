"""Tiles as groups of their modules, and how busy their ports and DMA channels are: against a count of cycles."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from devices.aie.test_invocations import dump, opened
from effort import some
from lanescope.devices.aie.formats import encode
from lanescope.io import perfetto

CORE, MEM, MEMTILE = encode.header(0, 1, 2, 1), encode.header(1, 1, 2, 2), encode.header(3, 1, 1, 3)
PORTS = {"0": "DMA:0 master"}
TILES = [
    {"type": "core", "col": 1, "row": 2, "events": ["PORT_RUNNING_0", "INSTR_EVENT_0", "LOCK_STALL"], "ports": PORTS},
    {"type": "mem", "col": 1, "row": 2, "events": ["DMA_S2MM_0_STALLED_LOCK", "DMA_S2MM_0_START_TASK"]},
    {"type": "memtile", "col": 1, "row": 1, "events": ["PORT_RUNNING_0"], "ports": {"0": "DMA:0 slave"}},
]


def counters(trace):
    """Path of each counter, with its samples."""
    names, parents = trace.tracks["name"].tolist(), trace.tracks["parent_id"].tolist()
    found = {}
    for row in trace.counters.rows():
        track = row["track_id"]
        assert trace.tracks["unit"][track] == "%"
        found.setdefault((names[parents[track]], names[track]), []).append((row["ts"], row["value"]))
    return found


def counted(runs, slot, window):
    """The same by cycles: the first one after Start is 1."""
    state = np.concatenate([[0], *(np.full(cycles, mask >> slot & 1) for mask, cycles in runs)])
    state = np.pad(state, (0, -len(state) % window))
    share = np.concatenate([[0], state.reshape(-1, window).sum(axis=1) * 100 / window, [0]])
    return [(k * window, share[k + 1]) for k in range(len(share) - 1) if share[k + 1] != share[k]]


RUNS = [(0, 40), (1, 100), (0, 60), (5, 7), (2, 3), (0, 200), (1, 2)]


def test_ports_and_channels_have_counters(tmp_path):
    words = np.concatenate([dump(RUNS, header) for header in (CORE, MEM, MEMTILE)])
    found = counters(opened(tmp_path, words, tiles=TILES))
    assert set(found) == {
        ("core (1, 2)", "PORT_RUNNING_0 (DMA:0 master)"),
        ("mem (1, 2)", "DMA_S2MM_0_STALLED_LOCK"),
        ("memtile (1, 1)", "PORT_RUNNING_0 (DMA:0 slave)"),
    }
    assert all(samples == counted(RUNS, 0, 16) for samples in found.values())


@given(
    st.lists(st.tuples(st.sampled_from([0, 1, 3]), st.integers(1, 3000)), min_size=1, max_size=40),
    st.lists(st.integers(1, 400), max_size=3),
    st.integers(16, 200),
)
@settings(max_examples=some(60))
def test_shares_equal_a_count_of_cycles_however_the_dump_is_cut(tmp_path_factory, runs, cuts, block):
    words = dump(runs, CORE)
    trace = opened(tmp_path_factory.mktemp("run"), words, tiles=TILES[:1], cuts=cuts, block_bytes=block)
    last = max((at for at, (mask, _) in zip(np.cumsum([n for _, n in runs]), runs, strict=True) if mask & 1), default=0)
    window = 16
    while last + 1 > 512 * window:
        window *= 2
    expected = counted(runs, 0, window)
    assert counters(trace) == ({("core (1, 2)", "PORT_RUNNING_0 (DMA:0 master)"): expected} if expected else {})


def test_runs_add_up_on_one_axis(tmp_path):
    edges = {"start": "BROADCAST_15", "stop": "BROADCAST_14", "reset": "BROADCAST_15"}
    words = np.concatenate([dump(RUNS, CORE), dump(RUNS, CORE, timer=1600)])
    ((_, samples),) = counters(opened(tmp_path, words, tiles=[TILES[0] | edges])).items()
    first = counted(RUNS, 0, 16)
    assert samples == [*first, *((at + 1600, share) for at, share in first)]


def test_a_tile_is_a_group_of_its_modules_where_both_are_configured(tmp_path):
    words = np.concatenate([dump(RUNS, header) for header in (MEM, CORE, MEMTILE)])
    trace = opened(tmp_path, words, tiles=TILES)
    names, parents = trace.tracks["name"].tolist(), trace.tracks["parent_id"].tolist()
    above = {name: None if parents[i] is None else names[parents[i]] for i, name in enumerate(names)}
    assert above["core (1, 2)"] == above["mem (1, 2)"] == "tile (1, 2)"
    assert above["tile (1, 2)"] is above["memtile (1, 1)"] is None
    (tmp_path / "run.config.json").write_text(json.dumps({"tiles": TILES[1:]}))
    trace = lanescope.open(tmp_path / "run.bin", family="aie")
    assert "tile (1, 2)" not in trace.tracks["name"].tolist()


@pytest.mark.parametrize("frequency", [None, 1_000_000_000])
def test_viewers_draw_them(tmp_path, trace_processor, frequency):
    words = np.concatenate([dump(RUNS, header) for header in (CORE, MEM, MEMTILE)])
    trace = opened(tmp_path, words, tiles=TILES, **({"frequency_hz": frequency} if frequency else {}))
    perfetto.write([trace], tmp_path / "run.pftrace")
    (rows,) = trace_processor(
        tmp_path / "run.pftrace",
        "select t.name, max(c.value) most from counter c join counter_track t on t.id = c.track_id"
        " group by 1 order by 1",
    )
    assert [(row["name"], float(row["most"])) for row in rows] == [
        ("DMA_S2MM_0_STALLED_LOCK", 100.0),
        ("PORT_RUNNING_0 (DMA:0 master)", 100.0),
        ("PORT_RUNNING_0 (DMA:0 slave)", 100.0),
    ]

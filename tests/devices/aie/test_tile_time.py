"""Where the time of tiles and invocations went, against sums over cycles."""

import json

import numpy as np
import pytest

import lanescope
from lanescope.devices.aie.analysis import tile_time
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.encode import Frames

EVENTS = ["INSTR_EVENT_0", "INSTR_EVENT_1", "INSTR_VECTOR", "MEMORY_STALL", "STREAM_STALL", "LOCK_STALL"]
BEGIN, END, VECTOR, MEMORY, STREAM, LOCK = (1 << slot for slot in range(6))
DMA = ["DMA_S2MM_0_STALLED_LOCK", "DMA_MM2S_0_STREAM_BACKPRESSURE", "DMA_MM2S_0_MEMORY_STARVATION"]
CORE, MEM = encode.header(0, 1, 2, 1), encode.header(1, 1, 2, 2)


def recording(header, runs, timer=100):
    mask, cycles = zip(*runs, strict=True)
    frames = encode.encode_runs(np.array(mask, np.uint8), np.array(cycles, np.int64), stop=True, idle=3)
    return encode.packets(header, encode.pack(Frames.join([encode.start(timer), frames]))).ravel()


def opened(tmp_path, *parts, core=EVENTS, mem=DMA):
    tiles = [{"type": "core", "col": 1, "row": 2, "events": core}, {"type": "mem", "col": 1, "row": 2, "events": mem}]
    for tile in tiles:
        tile |= {"start": "BROADCAST_15", "reset": "BROADCAST_15"}
    (tmp_path / "run.config.json").write_text(json.dumps({"tiles": tiles}))
    (tmp_path / "run.bin").write_bytes(np.concatenate(parts).astype("<u4").tobytes())
    return lanescope.open(tmp_path / "run.bin")


def kernel(*inside):
    return [(BEGIN, 1), *inside, (END, 1)]


def only(table):
    (row,) = table.rows()
    return row


#: What happens before, in and between two invocations; what limits the tile.
LIMITS = {
    "compute": ([(VECTOR, 60), (0, 30)], [(0, 5)], "compute"),
    "memory": ([(VECTOR, 10), (MEMORY, 60)], [(0, 5)], "memory"),
    "stream": ([(VECTOR, 10), (STREAM, 60)], [(STREAM, 20)], "stream"),
    "lock": ([(VECTOR, 40)], [(LOCK, 200)], "lock"),
    "unknown": ([(VECTOR, 40)], [(0, 200)], "unknown"),
}


@pytest.mark.parametrize("which", LIMITS)
def test_what_limits_a_tile(tmp_path, which):
    inside, between, bound = LIMITS[which]
    # What lies before the first invocation and after the last one does not count.
    runs = [(LOCK, 5000), *kernel(*inside), *between, *kernel(*inside), (LOCK, 5000)]
    row = only(tile_time.summarize(opened(tmp_path, recording(CORE, runs))))
    inner, outer = sum(c for _, c in inside), sum(c for _, c in between)
    window = 2 * (inner + 1) + 1 + outer
    assert (row["group"], row["bound"], row["invocations"]) == ("(1, 2)", bound, 2)
    # An invocation ends with the cycle of its end event, which lies outside.
    assert row["window"] == window
    assert row["kernel_cycles"] == 2 * (inner + 1)

    def cycles(mask):
        return 2 * sum(c for m, c in inside if m & mask) + sum(c for m, c in between if m & mask)

    for name, mask in (("vector", VECTOR), ("memory", MEMORY), ("stream", STREAM), ("lock", LOCK)):
        assert row[f"{name}_cycles"] == cycles(mask), name
    stalled = 2 * sum(c for m, c in inside if m & (MEMORY | STREAM | LOCK))
    assert row["compute_cycles"] == 2 * (inner + 1) - stalled
    assert row["unexplained_cycles"] == 1 + sum(c for m, c in between if not m)
    assert row["untraced"] == ""
    assert 0 < row["share"] <= 1


def test_time_that_an_untraced_stall_may_explain_is_no_compute(tmp_path):
    runs = [*kernel((0, 90)), (0, 5), *kernel((0, 90))]
    row = only(tile_time.summarize(opened(tmp_path, recording(CORE, runs), core=EVENTS[:2])))
    assert (row["bound"], row["untraced"]) == ("unknown", "memory, stream, lock")
    assert [row[f"{name}_cycles"] for name in ("vector", "memory", "stream", "lock")] == [None] * 4
    (sentence,) = tile_time.remarks(tile_time.summarize(opened(tmp_path, recording(CORE, runs), core=EVENTS[:2])))
    assert "LOCK_STALL" in sentence
    # A vector instruction that is issued does not stall.
    runs = [*kernel((VECTOR, 80)), (0, 5), *kernel((VECTOR, 80))]
    assert only(tile_time.summarize(opened(tmp_path, recording(CORE, runs), core=EVENTS[:3])))["bound"] == "compute"


def test_stalls_of_each_invocation(tmp_path):
    core = [*kernel((MEMORY, 7), (VECTOR, 5)), (LOCK, 20), *kernel((STREAM, 4), (LOCK, 6)), (0, 9)]
    # The memory module counts from the same Start: its first ten cycles, then five of each kind.
    mem = [(1, 10), (0, 20), (2, 5), (4, 5), (0, 20)]
    trace = opened(tmp_path, recording(CORE, core), recording(MEM, mem))
    (table,) = tile_time.invocation_stalls(trace)
    rows = list(table.table.rows())
    begins = trace.slices["ts"][[row["slice_id"] for row in rows]].tolist()
    assert begins == [1, 35]
    shown = ("vector", "memory", "stream", "lock", "dma_lock", "dma_stream", "dma_memory")
    assert [[row[f"{name}_cycles"] for name in shown] for row in rows] == [
        [5, 7, 0, 0, 10, 0, 0],
        [0, 0, 4, 6, 0, 1, 5],
    ]
    row = only(tile_time.summarize(trace))
    assert (row["lock_cycles"], row["dma_lock_cycles"], row["dma_stream_cycles"]) == (26, 10, 5)


def test_stalls_of_what_is_not_traced_are_unknown(tmp_path):
    trace = opened(tmp_path, recording(CORE, kernel((VECTOR, 5))), core=EVENTS[:2])
    (table,) = tile_time.invocation_stalls(trace)
    assert set(only(table.table).values()) == {only(table.table)["slice_id"], None}


def test_runs_add_up(tmp_path):
    runs = [*kernel((MEMORY, 50)), (0, 5), *kernel((MEMORY, 50)), (0, 1)]
    one = only(tile_time.summarize(opened(tmp_path, recording(CORE, runs))))
    two = only(tile_time.summarize(opened(tmp_path, recording(CORE, runs), recording(CORE, runs, timer=9000))))
    for name in ("invocations", "window", "kernel_cycles", "memory_cycles", "unexplained_cycles"):
        assert two[name] == 2 * one[name], name


def test_without_invocations_the_window_is_what_was_recorded(tmp_path):
    runs = [(0, 4), (LOCK, 80), (0, 16)]
    row = only(tile_time.summarize(opened(tmp_path, recording(CORE, runs), core=EVENTS[2:])))
    # The slots are others here: bit 5 is none, so nothing is known but the window.
    assert (row["bound"], row["invocations"], row["kernel_cycles"]) == ("unknown", None, None)
    core = ["NONE"] * 5 + ["LOCK_STALL"]
    row = only(tile_time.summarize(opened(tmp_path, recording(CORE, runs), core=core)))
    assert (row["bound"], row["lock_cycles"], row["untraced"]) == ("lock", 80, "memory, stream")


def test_every_capture_has_a_summary(corpus):
    for path in sorted((corpus / "aie").glob("*.bin")):
        table = tile_time.summarize(lanescope.open(path))
        assert {row["bound"] for row in table.rows()} <= {"unknown"}, "nothing names their slots"


def test_the_command_says_it(tmp_path, capsys):
    from lanescope.cli import main

    opened(tmp_path, recording(CORE, [*kernel((MEMORY, 50)), (0, 5)]))
    assert main(["summary", "--by", "tile", str(tmp_path / "run.bin")]) == 0
    told = capsys.readouterr()
    assert "memory bound: (1, 2)" in told.out + told.err
    assert main(["sql", str(tmp_path / "run.bin"), "select memory_cycles from aie_invocation_stalls"]) == 0
    assert "50" in capsys.readouterr().out

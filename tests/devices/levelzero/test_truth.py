"""Simulated programs: what the decoder finds is what happened."""

from __future__ import annotations

import json

import numpy as np
import pytest

from devices.levelzero.helpers import opened, operations, simulated, stats
from lanescope.analysis import check
from lanescope.devices.levelzero.family import FAMILY
from lanescope.devices.levelzero.simulate.machine import PAIR_ERROR_NS, START_NS
from lanescope.devices.levelzero.simulate.simulator import SHARING
from lanescope.testing import assert_accounted, assert_consistent

#: Readings of both clocks are late by up to this, and ticks are this long.
ERROR_NS = PAIR_ERROR_NS + 2 * 80


def run(tmp_path, seed=1, **options):
    simulation = FAMILY.simulate(simulated(**options), seed)
    name, content = next(iter(simulation.files.items()))
    return opened(content, tmp_path, name), simulation.truth


def compare(trace, truth, *, skew_ppm=20.0):
    """Check every operation, by the place of its result in the stream."""
    rows = {row["readback_seq"]: row for row in operations(trace)}
    wanted = truth["operations"]
    assert sorted(rows) == sorted(wanted["seq"])
    zero = trace.time.epoch_ns - truth["start_ns"]
    uuids = {
        row["track_id"]: row["subdevice_uuid"] or row["device_uuid"] for row in trace.details["levelzero_queues"].rows()
    }
    pids = {row["track_id"]: (row["pid"], row["tid"]) for row in trace.details["levelzero_threads"].rows()}
    columns = ("seq", "name", "process", "thread", "device", "start", "end", "run", "bytes")
    for seq, name, process, thread, device, start, end, number, size in zip(
        *(wanted[column] for column in columns), strict=True
    ):
        row = rows[seq]
        assert (row["name"], row["execution_index"], row["bytes"] or 0, row["quality"]) == (name, number, size, "exact")
        assert (pids[row["thread_track_id"]], uuids[row["track_id"]]) == ((process, thread), device)
        # Until the clock was measured it is believed to be exact.
        bound = ERROR_NS + 2 * abs(row["ts"]) * skew_ppm * 1e-6
        assert abs(row["ts"] + zero - start) <= bound
        assert abs(row["dur"] - (end - start)) <= 2 * 80 + (end - start) * 1e-3
    assert trace.slices["name"].tolist().count("zeCommandListAppendSignalEvent") == truth["signals"]


@pytest.mark.parametrize("style", ["numbered", "thapi"])
@pytest.mark.parametrize("sharing", SHARING)
def test_every_way_to_share_events(style, sharing, tmp_path) -> None:
    trace, truth = run(tmp_path, style=style, sharing=sharing, ops=700)
    compare(trace, truth)
    assert_consistent(trace)
    assert_accounted(trace, lost=0)
    assert not [finding for finding in check.run(trace) if finding.code != "LS303"]


@pytest.mark.parametrize("style", ["numbered", "thapi"])
def test_processes_threads_and_devices(style, tmp_path) -> None:
    trace, truth = run(tmp_path, style=style, processes=3, threads=3, devices=3, ops=1200)
    compare(trace, truth)
    roles = trace.tracks["role"].tolist()
    assert (roles.count("process"), roles.count("host_thread"), roles.count("device")) == (3, 9, 3)


@pytest.mark.parametrize("kernel_bits", [24, 32, 40])
@pytest.mark.parametrize("skew_ppm", [-150.0, 0.0, 150.0])
def test_skewed_clocks_that_wrap(kernel_bits, skew_ppm, tmp_path) -> None:
    """Two seconds, so that 24 bits wrap more than once: no time is off by more than the readings."""
    options = {"pause_us": 40_000.0, "wrap_after_ms": 30.0, "ops": 1500, "list_ops": 50}
    trace, truth = run(tmp_path, kernel_bits=kernel_bits, skew_ppm=skew_ppm, bits=max(kernel_bits, 40), **options)
    compare(trace, truth, skew_ppm=150.0)
    found = stats(trace)
    assert set(found) == {"levelzero_missing_date"}
    ticks = [(row["ts_ticks"], row["global_start"]) for row in operations(trace)]
    assert {unwrapped % (1 << kernel_bits) - raw for unwrapped, raw in ticks} == {0}
    if kernel_bits == 24:
        assert len({unwrapped >> 24 for unwrapped, _ in ticks}) >= 2


def test_lost_results_with_numbers(tmp_path) -> None:
    """Numbers say which results are lost; the others are all exact."""
    trace, truth = run(tmp_path, lost=0.05, ops=800)
    compare(trace, truth)
    assert truth["lost"] > 20
    assert stats(trace)["levelzero_unsynchronized"] == truth["lost"]
    assert "levelzero_operation_unmatched" not in stats(trace)


@pytest.mark.parametrize("sharing", SHARING)
def test_lost_results_without_numbers(sharing, tmp_path) -> None:
    """No name is wrong and called certain: what may be another's is marked."""
    trace, truth = run(tmp_path, style="thapi", sharing=sharing, lost=0.02, ops=1500)
    wanted = dict(zip(truth["operations"]["seq"], truth["operations"]["name"], strict=True))
    wrong = [row for row in operations(trace) if row["name"] != wanted.get(row["readback_seq"])]
    assert {row["quality"] for row in wrong} <= {"inferred"}
    found = stats(trace)
    assert found.get("levelzero_operation_unmatched", 0) + found.get("levelzero_interleaved_duplicate", 0) > 0


@pytest.mark.full
def test_twelve_thousand_fills(tmp_path) -> None:
    """Nothing but fills, on events that are shared and used again."""
    trace, truth = run(tmp_path, style="thapi", fills_only=True, ops=12_000, runs=1, sharing="mixed")
    assert sum(truth["counts"].values()) == 12_000
    assert len(operations(trace)) == 12_000
    assert {row["kind"] for row in operations(trace)} == {"fill"}


def test_same_seed_same_bytes() -> None:
    one, other, third = (FAMILY.simulate(simulated(ops=200), seed) for seed in (1, 1, 2))
    assert one.files == other.files
    assert json.dumps(one.truth) == json.dumps(other.truth)
    assert one.files != third.files


def test_simulator_is_sound() -> None:
    """Its own promises: begins before ends, after the start; in-order lists never overlap."""
    truth = FAMILY.simulate(simulated(ops=600), 3).truth["operations"]
    start, end = np.array(truth["start"]), np.array(truth["end"])
    assert (end > start).all()
    assert (start > 0).all()
    assert START_NS % 86_400_000_000_000 == 43_200_000_000_000

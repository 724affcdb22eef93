"""Lanes with more records than a part has: the same rows, some at a time, in little memory."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lanescope
from devices.cuda.helpers import simulate, stats
from devices.cuda.test_large import differing
from lanescope.devices.cuda import decoder
from lanescope.devices.cuda.emit import batches
from lanescope.devices.cuda.formats import lanes

RECORDS = 4_000_000


def nested(count):
    """Kinds and events of one lane: regions in regions, and one that is open to the end."""
    at = np.arange(count, dtype=np.uint64)
    kind = np.array([0, 0, 1, 1], np.uint64)[at % 4]
    event = np.array([1, 2, 2, 1], np.uint64)[at % 4]
    kind[0], event[0] = 0, 7
    return at, kind, event


def tirx(count):
    at, kind, event = nested(count)
    words = kind | event << np.uint64(2) | (at * np.uint64(32) & np.uint64(0xFFFF_FFFF)) << np.uint64(32)
    return np.concatenate(([np.uint64(1 | 1 << 32)], words)).tobytes(), {"layout": "tirx"}


def mirage(count):
    data, _ = tirx(count)
    return data, {"layout": "mirage-mpk"}


def nuggets(count):
    words = np.zeros((count, 4), np.uint64)
    words[:, 0] = 1_761_000_000_000_000_000 + 100 * np.arange(count)
    words[:, 1], words[:, 2] = 50 + np.arange(count) % 7, np.arange(count) % 5
    data = np.concatenate(([np.uint64(count + 9)], words.reshape(-1))).tobytes()
    return data, {"layout": "nuggets-legacy", "layout_params": {"max_events": count}}


def npkit(count):
    words = np.zeros((count, 2), np.uint64)
    at = np.arange(count, dtype=np.uint64)
    words[:, 0] = np.uint64(16) + at % np.uint64(2) | (at % np.uint64(1000)) << np.uint64(8)
    words[:, 1] = 5_497_558_138_880 + 90 * at
    words[:2] = [[1, 10**14], [2, 5_497_558_138_880]]
    return words.tobytes(), {"layout": "npkit", "layout_params": {"gpu_mhz": 2000}}


def packed(count):
    """An archive that is compressed."""
    file = io.BytesIO()
    np.savez_compressed(file, buffer=np.frombuffer(tirx(count)[0], np.uint64))
    return file.getvalue(), {"layout": "mirage-mpk"}


FILES = {"tirx": tirx, "mirage": mirage, "nuggets": nuggets, "npkit": npkit}


@pytest.mark.parametrize("name", FILES)
def test_the_rows_are_those_of_one_piece(name, tmp_path, monkeypatch):
    data, options = FILES[name](5000)
    (tmp_path / "one.bin").write_bytes(data)
    whole = lanescope.open(tmp_path / "one.bin", "cuda", **options)
    monkeypatch.setattr(batches, "PIECE_ROWS", 300)
    monkeypatch.setattr(lanes, "MOST_IN_MEMORY", 300)
    for size in (decoder.WHOLE_BYTES, 0):
        monkeypatch.setattr(decoder, "WHOLE_BYTES", size)
        pieces = list(lanescope.iter_batches(tmp_path / "one.bin", "cuda", **options))
        assert len(pieces) == -(-len(whole.slices) // 300)
        found = lanescope.open(tmp_path / "one.bin", "cuda", **options)
        assert set(differing(found, whole)) <= {"stats"}
        # A lane that is decoded by columns has its file read at once.
        assert {**stats(found), "cuda_read_whole": 0} == {**stats(whole), "cuda_read_whole": 0}


@pytest.mark.parametrize(
    "faults", ["two_writers", "clock_step", "holes", "corrupt", "crossing", "stray_ends", "reruns", "overflow", "wrap"]
)
def test_the_rows_of_damaged_lanes_are_those_of_one_piece(faults, tmp_path, monkeypatch):
    simulation = simulate(7, blocks=1, tiles=60, layout="tirx", **{faults: 1})
    name, data = next(iter(simulation.files.items()))
    words = (
        np.frombuffer(data[-(len(data) // 8 * 8) :], np.uint64)
        if not name.endswith(".npy")
        else np.load(io.BytesIO(data))
    )
    # One lane of the buffer, as a buffer of its own.
    groups = int(words[0]) >> 32
    lane = words[1:][:: groups * (int(words[0]) & 0xFFFF_FFFF)].copy()
    (tmp_path / "one.bin").write_bytes(np.concatenate(([np.uint64(1 | 1 << 32)], lane)).tobytes())
    whole = lanescope.open(tmp_path / "one.bin", "cuda", layout="tirx")
    monkeypatch.setattr(batches, "PIECE_ROWS", 13)
    monkeypatch.setattr(lanes, "MOST_IN_MEMORY", 13)
    assert len(list(lanescope.iter_batches(tmp_path / "one.bin", "cuda", layout="tirx"))) > 3
    assert not differing(lanescope.open(tmp_path / "one.bin", "cuda", layout="tirx"), whole)


PEAK = """
import sys
from pathlib import Path
import lanescope
rows = sum(len(batch.slices) for batch in lanescope.iter_batches(sys.argv[1], "cuda", **eval(sys.argv[2])))
status = Path("/proc/self/status").read_text().splitlines()
print(rows, next(line for line in status if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.full
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")  # noqa: PTH110
@pytest.mark.parametrize("make", [*FILES.values(), packed])
def test_a_lane_of_millions_of_records_takes_less_than_200_mib(make, tmp_path):
    count = 1 << 21 if make is npkit else RECORDS
    data, options = make(count)
    path = tmp_path / ("one.npz" if make is packed else "one.bin")
    path.write_bytes(data)
    done = subprocess.run(
        [sys.executable, "-c", PEAK, str(path), repr(options)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    rows, peak = map(int, done.stdout.split())
    assert rows >= count // 2 - 1
    assert peak < 200 << 10


@pytest.mark.full
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")  # noqa: PTH110
@pytest.mark.parametrize("command", ["check", "summary", "parquet", "pftrace"])
def test_commands_hold_a_limit_of_256_mib_on_such_a_lane(command, tmp_path):
    (tmp_path / "one.bin").write_bytes(tirx(RECORDS)[0])
    arguments = [command, "one.bin"]
    if command in ("parquet", "pftrace"):
        arguments = ["convert", "one.bin", "-o", f"out.{command}"]
    program = [str(Path(sys.executable).with_name("lanescope")), *arguments, "--layout", "tirx", "--memory", "256MiB"]
    done = subprocess.run(
        program, capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert done.returncode in (0, 1), done.stderr  # findings
    assert "needs more memory" not in done.stderr

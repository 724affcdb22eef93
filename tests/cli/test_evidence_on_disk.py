"""Evidence of findings is on disk where the memory is limited: the findings are the same, the memory does not grow."""

import json
import os

import numpy as np
import pytest

from cli.spilling import few_rows_to_disk
from effort import SANITIZED
from lanescope.analysis.check import kept_rows
from lanescope.devices.cuda.formats.encode import strided
from lanescope.devices.cuda.formats.layout import BEGIN, END

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")  # noqa: PTH110

LANES, RESOLUTION = 24, 32

CAPTURES = {
    "run.npy": ("cuda", "-O", "tiles=4", "-O", "corrupt=2", "-O", "crossing=4", "-O", "two_writers=1", "--seed", "5"),
    "run.bin": ("aie", "--tiles", "2", "--records", "3000", "--overruns", "2", "--bad-headers", "0.01", "--seed", "5"),
}


@pytest.fixture
def on_disk(monkeypatch):
    return few_rows_to_disk(monkeypatch, kept_rows)


@pytest.mark.parametrize("name", CAPTURES)
def test_findings_within_a_limit_are_those_without(call, on_disk, name):
    assert call("sim", *CAPTURES[name], "-o", name).status == 0
    for options in (("--json",), ("--show", "LS", "--csv")):
        usual = call("check", name, *options)
        assert not on_disk
        limited = call("check", name, *options, "--memory", "8GiB")
        assert (limited.status, limited.out) == (usual.status, usual.out)
        assert on_disk
        on_disk.clear()


@pytest.mark.parametrize("suffix", ["pftrace", "json"])
def test_drawings_within_a_limit_have_the_same_findings(call, on_disk, suffix):
    assert call("sim", *CAPTURES["run.npy"], "-o", "run.npy").status == 0
    drawn = []
    for limit in ((), ("--memory", "8GiB")):
        assert not on_disk
        assert call("convert", "run.npy", "-o", f"out.{suffix}", "--force", *limit).status == 0
        drawn.append(json.loads(call("check", f"out.{suffix}", "--json").out)["findings"])
    assert on_disk
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) > 2


def dense(slices: int) -> bytes:
    """Return a buffer all of whose slices are below the resolution of the clock, so that each is evidence."""
    each = slices // LANES
    at = np.arange(2 * each)
    kind, tick = np.where(at % 2, END, BEGIN), 1 + 3 * (at // 2) + at % 2
    lane = np.tile(np.arange(LANES), 2 * each)
    records = strided.Records(lane, 0 * lane, np.repeat(kind, LANES), np.repeat(RESOLUTION * tick, LANES))
    return strided.to_npy(np.append(np.uint64(3 << 32 | LANES // 3), strided.pack(records)))


PEAK = """
import sys
from lanescope import cli
status = cli.main(sys.argv[1:])
line = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(line.split()[1]) >> 10, file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.skipif(bool(SANITIZED), reason="sanitizers take memory of their own")
def test_half_a_million_rows_of_evidence_fit_into_the_smallest_limit(shell, tmp_path):
    """They took 300 MiB, with nothing of the capture among it."""
    (tmp_path / "run.npy").write_bytes(dense(600_000))
    program = ["-c", PEAK]
    arguments = ("check", "run.npy", "--json", "--fail-on", "never", "--quiet")
    limited = shell(*arguments, "--memory", "192MiB", program=program)
    assert limited.status == 0, limited.err
    assert int(limited.err.split()[-1]) <= 192
    usual = shell(*arguments, program=program)
    assert limited.out == usual.out
    short = json.loads(usual.out)["findings"][0]
    assert (short["code"], short["count"], short["evidence"]["rows"]) == ("LS303", 600_000, 600_000)

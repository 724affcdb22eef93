"""AIE: memory and time of a long dump to Parquet; ``LANESCOPE_BENCH_MIB`` is its length, 128 if it does not say."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_aie import dump
from measure import Row

MIB = int(os.environ.get("LANESCOPE_BENCH_MIB", "128"))

#: What a fresh process runs: VmHWM is its own, what getrusage says includes the process that started it.
_CONVERT = """
import sys, time
begin = time.monotonic()
from lanescope.cli import main
main(["convert", "--force", sys.argv[1], "-o", sys.argv[2]])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(time.monotonic() - begin, int(peak.split()[1]) / 1024)
"""


def run() -> list[Row]:
    """Measure: one dump after the other, as a recorder leaves them that is started again and again."""
    data = dump()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "long.bin"
        with source.open("wb") as file:
            while file.tell() < MIB << 20:
                file.write(data)
        target = Path(folder) / "long.parquet"
        command = [sys.executable, "-c", _CONVERT, str(source), str(target)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        taken, peak = map(float, done.stdout.split())
        size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
    return [
        Row(
            "peak memory, to Parquet",
            peak,
            "MiB",
            512,
            note=f"{MIB} MiB in {taken:.0f} s, {size / 2**20:.0f} MiB written",
        )
    ]

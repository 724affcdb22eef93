"""Chrome trace events: memory of each command on a large file, read in windows and as a whole.

``LANESCOPE_BENCH_MIB`` is the length of the text, 320 if it is not set: files above 256 MiB are read in windows.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import bench_kineto_memory
import foreign_files
from measure import Row


def run() -> list[Row]:
    """Measure: dense events without arguments."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "run.json"
        foreign_files.chrome(source, bench_kineto_memory.MIB << 20)
        return bench_kineto_memory.measure(source, "dense events")

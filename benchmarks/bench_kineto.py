"""PyTorch profiler: a file to a trace, plain and packed, beside what else reads such files."""

from __future__ import annotations

import tempfile
from pathlib import Path

from isal import igzip

import foreign_files
import reading
from measure import Row

MIB = 64
_OTHERS = {
    "json": "json.loads", "orjson": "orjson", "msgspec": "msgspec (exact times)",
    "simdjson": "pysimdjson (parsed only)", "hta": "HTA's load", "trace processor": "trace processor (WASM)",
}  # fmt: skip


def run() -> list[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = Path(folder) / "run.json", Path(folder) / "run.json.gz"
        foreign_files.kineto(plain, MIB << 20)
        packed.write_bytes(igzip.compress(plain.read_bytes(), 1))
        rows = reading.rows(plain, 500, _OTHERS, "plain")
        return rows + reading.rows(packed, 300, {"json": "json.loads", "orjson": "orjson"}, "gzip")

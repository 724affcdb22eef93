"""Chrome trace events: dense events without arguments to a trace, beside what else reads such files."""

from __future__ import annotations

import tempfile
from pathlib import Path

import foreign_files
import reading
from measure import Row

MIB = 64
_OTHERS = {"json": "json.loads", "orjson": "orjson", "msgspec": "msgspec (exact times)",
           "simdjson": "pysimdjson (parsed only)", "trace processor": "trace processor (WASM)"}  # fmt: skip


def run() -> list[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chrome.json"
        foreign_files.chrome(path, MIB << 20)
        return reading.rows(path, 300, _OTHERS, "dense events")

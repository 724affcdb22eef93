"""Perfetto traces to a trace: those of an SDK and our own, beside the bindings and the trace processor."""

from __future__ import annotations

import tempfile
from pathlib import Path

import foreign_files
import reading
from measure import Row

SLICES = 2_000_000
_OTHERS = {"bindings": "bindings (parsed only)", "trace processor": "trace processor (WASM)"}


def run() -> list[Row]:
    """Measure."""
    with tempfile.TemporaryDirectory() as folder:
        own, sdk = Path(folder) / "own.pftrace", Path(folder) / "sdk.pftrace"
        foreign_files.perfetto_file(own, SLICES)
        foreign_files.perfetto_of_sdk(sdk, SLICES // 8)
        return reading.rows(own, 300, _OTHERS, "ours") + reading.rows(sdk, 300, _OTHERS, "of an SDK")

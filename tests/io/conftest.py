"""Batches as a device family makes them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from lanescope.devices.aie import decoder as aie
from lanescope.devices.aie.family import FAMILY
from lanescope.families.options import resolve_options
from lanescope.source import Capture
from lanescope.trace import Trace


@pytest.fixture
def decoded(tmp_path, monkeypatch) -> list[Trace]:
    """Two AIE recordings that lost packets, in many batches."""
    options = {"tiles": 2, "records": 6000, "overruns": 2, "bad_headers": 0.01, "zeros": 40}
    made = FAMILY.simulate(resolve_options(FAMILY.sim_options, options, what="the simulator"), 5)
    path = tmp_path / "run.bin"
    path.write_bytes(next(iter(made.files.values())))
    monkeypatch.setattr(aie, "BATCH_ROWS", 300)
    with Capture(path) as capture:
        decoder = aie.AieDecoder(capture, {"frequency": Fraction(1_000_000_000)}, block_bytes=1 << 10)
        found = [batch for chunk in capture.main.chunks(1 << 10) for batch in decoder.feed(chunk)]
        found += decoder.finish()
    assert len(found) > 10
    assert sum(len(batch.slices) > 0 for batch in found) > 10
    return found

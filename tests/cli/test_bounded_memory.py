"""How many batches a command holds at a time: a few, however many the capture has."""

from __future__ import annotations

import weakref

import pytest

from lanescope.devices.aie import decoder
from lanescope.pipeline.sources import CaptureSource
from lanescope.source import Source

#: The one that is made, the one before it, and what a sink lays out and encodes meanwhile.
MOST = 5


@pytest.fixture
def alive(monkeypatch):
    """Count the batches whose times are in memory, whenever a batch is made."""
    counts = []
    made = []
    batches = CaptureSource.batches

    def watched(self, progress=None):
        for batch in batches(self, progress):
            if len(batch.slices):
                made.append(weakref.ref(batch.slices.values("ts")))
            counts.append(sum(ref() is not None for ref in made))
            yield batch
            del batch

    monkeypatch.setattr(CaptureSource, "batches", watched)
    return counts


@pytest.fixture
def capture(call, monkeypatch):
    """Make a capture that lost packets, and have it decoded in many batches."""
    options = ("--tiles", "2", "--records", "6000", "--overruns", "2", "--bad-headers", "0.01", "--seed", "5")
    assert call("sim", "aie", *options, "-o", "run.bin").status == 0
    monkeypatch.setattr(decoder, "BATCH_ROWS", 300)
    monkeypatch.setattr(decoder.AieDecoder.__init__, "__kwdefaults__", {"block_bytes": 1 << 10})
    monkeypatch.setattr(Source.chunks, "__defaults__", (1 << 10,))  # a decoder returns all batches of one at once
    return "run.bin"


@pytest.mark.parametrize(
    "command",
    [
        "info",
        "check",
        "check --json",
        "check --sarif",
        "summary",
        "summary --by lane",
        "summary --by category --json",
        "convert -o out.json",
        "convert -o out.json.gz",
        "convert -o out.pftrace",
        "convert -o out.pftrace --no-compress",
        "convert -o out.parquet",
    ],
)
def test_few_batches_are_alive(call, capture, alive, command):
    verb, *options = command.split()
    assert call(verb, capture, *options).status in (0, 1)
    assert len(alive) > 12
    assert max(alive) <= MOST


@pytest.mark.parametrize("command", ["sql", "summary --by region"])
def test_what_needs_the_whole_trace_holds_it(call, capture, alive, command):
    """The count would tell: these commands are listed in ``pipeline.run``."""
    verb, *options = command.split()
    call(verb, capture, *options)
    assert max(alive) > 12

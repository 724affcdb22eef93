"""AIE mode 0: a dump of 16 MiB of mixed frames to slices, beside memcpy and the reference codec."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from lanescope.devices import settle
from lanescope.devices.aie.decode import AieDecoder
from lanescope.devices.aie.family import FAMILY
from lanescope.devices.aie.layout import MODE0
from lanescope.devices.aie.records import Packets, Words
from lanescope.source import Capture
from measure import Row, seconds

BYTES = 16 << 20
#: The reference codec takes seconds a megabyte.
REFERENCE_WORDS = 20_000


def dump() -> bytes:
    """Two tiles' recordings, interleaved; the frames are those of the simulator's usual mixture."""
    options = settle(FAMILY.sim_options, {"tiles": 2, "records": 6_000_000, "zeros": 0}, what="the simulator")
    data = next(iter(FAMILY.simulate(options, 1).files.values()))
    return data[: BYTES // 32 * 32]


def run() -> list[Row]:
    """Measure."""
    data = dump()
    words = Words.of(np.frombuffer(data, np.uint8))
    packets = Packets.of(words)
    payload = np.concatenate([words.values[packets.payload(source)] for source in range(len(packets.headers))])
    part = payload[:REFERENCE_WORDS].tolist()
    target = np.empty(len(data), np.uint8)
    source = np.frombuffer(data, np.uint8)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.bin"
        path.write_bytes(data)
        records = 0

        def decode() -> None:
            nonlocal records
            with Capture(path) as capture:
                decoder = AieDecoder(capture, {"config": None, "frequency": None})
                batches = []
                for chunk in capture.main.chunks():
                    batches += decoder.feed(chunk)
                batches += decoder.finish()
                records = int(batches[-1].details["aie_segments"]["frames"].sum())

        def reference() -> None:
            for _ in MODE0.decode(part):
                pass

        ours, copy, slow = seconds(decode, lambda: np.copyto(target, source), reference)
    megabytes = len(data) / 1e6
    slow_rate = 4 * len(part) / 1e6 / slow.least
    return [
        Row(
            "records to slices",
            records / 1e6 / ours.least,
            "M records/s",
            60,
            higher_is_better=True,
            note=f"{records / 1e6:.1f} M records, {megabytes:.1f} MB, {megabytes / ours.least:.0f} MB/s with hash",
        ),
        Row("memcpy beside it", ours.least / copy.least, "x", note=f"memcpy {megabytes / copy.least:.0f} MB/s"),
        Row("reference codec", slow_rate, "MB/s", 0.3, higher_is_better=True, note=f"{len(part)} words"),
        Row("beside the reference codec", megabytes / ours.least / slow_rate, "x"),
    ]

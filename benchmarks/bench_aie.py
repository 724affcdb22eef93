"""AIE: dumps of mixed frames to slices (mode 0) and decisions (mode 2), beside memcpy and the reference codec."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lanescope.devices import settle
from lanescope.devices.aie import encode, model_execution
from lanescope.devices.aie.decode import AieDecoder
from lanescope.devices.aie.family import FAMILY
from lanescope.devices.aie.layout import FILLERS, FRAMES, MODE0
from lanescope.devices.aie.records import Items, Packets, Words
from lanescope.source import CHUNK_BYTES, Capture
from measure import Row, seconds

BYTES = 16 << 20
#: The reference codec takes seconds a megabyte.
REFERENCE_WORDS = 20_000


def dump() -> bytes:
    """Two tiles' recordings, interleaved; the frames are those of the simulator's usual mixture."""
    options = settle(FAMILY.sim_options, {"tiles": 2, "records": 6_000_000, "zeros": 0}, what="the simulator")
    data = next(iter(FAMILY.simulate(options, 1).files.values()))
    return data[: BYTES // 32 * 32]


def execution() -> tuple[bytes, int, int]:
    """One core's recording in mode 2, its frames, and how many of them are no fillers."""
    payload = model_execution.record(np.random.Generator(np.random.PCG64(1)), 6_000_000, 0).payload
    kinds = Items.of(payload).frame
    told = np.count_nonzero(~np.isin(kinds, [FRAMES.index(name) for name in FILLERS]))
    packets = encode.packets(encode.header(0, 1, 2, 1), payload)
    return packets.astype("<u4").tobytes(), len(kinds), int(told)


def decoding(data: bytes, path: Path) -> Callable[[], None]:
    """Return what decodes ``data``, from memory; ``path`` is only what the decoder asks for name and size."""
    path.write_bytes(data)
    capture = Capture(path)
    _ = capture.main.sha256  # hashing is no part of decoding
    view = memoryview(data)

    def decode() -> None:
        decoder = AieDecoder(capture, {"config": None, "frequency": None})
        for at in range(0, len(data), CHUNK_BYTES):
            decoder.feed(view[at : at + CHUNK_BYTES])
        decoder.finish()

    return decode


def run() -> list[Row]:
    """Measure."""
    data = dump()
    words = Words.of(np.frombuffer(data, np.uint8))
    packets = Packets.of(words)
    streams = [words.values[packets.payload(source)] for source in range(len(packets.headers))]
    payload = np.concatenate(streams)
    kinds = np.concatenate([Items.of(stream).frame for stream in streams])
    frames, fillers = len(kinds), int(np.count_nonzero(kinds == FRAMES.index("filler")))
    part = payload[:REFERENCE_WORDS].tolist()
    target = np.empty(len(data), np.uint8)
    source = np.frombuffer(data, np.uint8)

    def reference() -> None:
        for _ in MODE0.decode(part):
            pass

    with tempfile.TemporaryDirectory() as folder:
        ours, copy, slow = seconds(
            decoding(data, Path(folder) / "run.bin"), lambda: np.copyto(target, source), reference
        )
        flow, flow_frames, told = execution()
        (flowing,) = seconds(decoding(flow, Path(folder) / "flow.bin"))
    megabytes = len(data) / 1e6
    slow_rate = 4 * len(part) / 1e6 / slow.least
    return [
        Row(
            "records to slices",
            frames / 1e6 / ours.least,
            "M records/s",
            60,
            higher_is_better=True,
            note=f"{frames / 1e6:.1f} M frames; {(frames - fillers) / 1e6 / ours.least:.1f} M/s without the fillers",
        ),
        Row(
            "bytes to slices",
            megabytes / ours.least,
            "MB/s",
            note=f"{megabytes:.1f} MB in memory, hashing not included",
        ),
        Row(
            "mode 2 to decisions",
            flow_frames / 1e6 / flowing.least,
            "M records/s",
            80,
            higher_is_better=True,
            note=f"{flow_frames / 1e6:.1f} M frames; {told / 1e6 / flowing.least:.1f} M/s without the fillers",
        ),
        Row("memcpy beside it", ours.least / copy.least, "x", note=f"memcpy {megabytes / copy.least:.0f} MB/s"),
        Row("reference codec", slow_rate, "MB/s", 0.3, higher_is_better=True, note=f"{len(part)} words"),
        Row("beside the reference codec", megabytes / ours.least / slow_rate, "x"),
    ]

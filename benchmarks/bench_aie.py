"""AIE: dumps of mixed frames to slices (mode 0) and decisions (mode 2), beside memcpy and the reference codec."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import lanescope
from case import least
from lanescope.devices.aie import decoder as decoding_module
from lanescope.devices.aie.decoder import AieDecoder
from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.formats.layout import FILLERS, FRAMES, MODE0
from lanescope.devices.aie.formats.raw_frames import Items, Packets, Words
from lanescope.devices.aie.simulate import ref_mode2
from lanescope.io import perfetto
from lanescope.source import CHUNK_BYTES, Capture
from measure import Row, seconds

BYTES = 16 << 20
#: Of the dump of many short ones; the simulated part of it is repeated.
RECORDINGS, _REPEATED = 49_152, 48
CORES = decoding_module._CORES
#: The reference codec takes seconds a megabyte.
REFERENCE_WORDS = 20_000


def dump() -> bytes:
    """Two tiles' recordings, interleaved; the frames are those of the simulator's usual mixture."""
    simulation = lanescope.simulate("aie", tiles=2, records=6_000_000, zeros=0)
    data = next(iter(simulation.files.values()))
    return data[: BYTES // 32 * 32]


def short_recordings() -> bytes:
    """Two tiles' recordings, ``RECORDINGS`` in all, of about 330 bytes each; no two of a run have one length."""
    simulation = lanescope.simulate("aie", tiles=2, runs=RECORDINGS // 2 // _REPEATED, records=225, zeros=0)
    return next(iter(simulation.files.values())) * _REPEATED


def execution() -> tuple[bytes, int, int]:
    """One core's recording in mode 2, its frames, and how many of them are no padding."""
    payload = ref_mode2.record(np.random.Generator(np.random.PCG64(1)), 6_000_000, 0).payload
    kinds = Items.of(payload).frame
    told = np.count_nonzero(~np.isin(kinds, [FRAMES.index(name) for name in FILLERS]))
    packets = encode.packets(encode.header(0, 1, 2, 1), payload)
    return packets.astype("<u4").tobytes(), len(kinds), int(told)


def decoding(data: bytes, path: Path, cores: int = 1) -> Callable[[], None]:
    """Return what decodes ``data``, from memory, on so many cores; the decoder asks ``path`` for name and size only."""
    path.write_bytes(data)
    capture = Capture(path)
    _ = capture.main.sha256  # hashing is no part of decoding
    view = memoryview(data)

    def decode() -> None:
        decoding_module._CORES = cores
        decoder = AieDecoder(capture, {"config": None, "frequency": None})
        for at in range(0, len(data), CHUNK_BYTES):
            decoder.feed(view[at : at + CHUNK_BYTES])
        decoder.finish()

    return decode


def side_by_side(data: bytes, path: Path) -> tuple[Callable[[], None], Callable[[], None]]:
    """Return what decodes ``data`` twice, one after the other and at the same time: what two cores are worth here."""
    one, other = (decoding(data, path.with_suffix(suffix)) for suffix in (".one", ".other"))

    def in_turn() -> None:
        one()
        other()

    def at_once() -> None:
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(one), pool.submit(other)]:
                done.result()

    return in_turn, at_once


def to_perfetto(data: bytes, folder: Path, *, compress: bool) -> Callable[[], None]:
    """Return what makes a Perfetto file of a dump, as ``convert --no-annotations`` does, without its start."""
    source, target = folder / "dump.bin", folder / "dump.pftrace"
    source.write_bytes(data)

    def convert() -> None:
        decoding_module._CORES = CORES
        perfetto.write(lanescope.iter_batches(source, "aie"), target, compress=compress, in_parts=True)

    return convert


def command(folder: Path, *arguments: str) -> Callable[[], None]:
    """Return what converts the dump in a process of its own, its start and all, to a file that is not there yet.

    The command waits for the disk where it replaces a file.
    """
    target = folder / "by-command.pftrace"
    words = [sys.executable, "-m", "lanescope", "convert", str(folder / "dump.bin"), "-o", str(target), *arguments]

    def convert() -> None:
        target.unlink(missing_ok=True)
        subprocess.run(words, check=True, capture_output=True)

    return convert


def run() -> list[Row]:
    """Measure."""
    data = dump()
    words = Words.of(np.frombuffer(data, np.uint8))
    packets = Packets.of(words)
    streams = [words.values[packets.payload(source)] for source in range(len(packets.headers))]
    payload = np.concatenate(streams)
    kinds = np.concatenate([Items.of(stream).frame for stream in streams])
    frames, padding = len(kinds), int(np.count_nonzero(kinds == FRAMES.index("padding")))
    part = payload[:REFERENCE_WORDS].tolist()
    target = np.empty(len(data), np.uint8)
    source = np.frombuffer(data, np.uint8)

    def reference() -> None:
        for _ in MODE0.decode(part):
            pass

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.bin"
        alone = decoding(data, path)
        ours, both, in_turn, at_once, copy, slow = seconds(
            alone,
            decoding(data, path, CORES),
            *side_by_side(data, path),
            lambda: np.copyto(target, source),
            reference,
        )
        processor = least(alone)
        files = seconds(
            to_perfetto(data, Path(folder), compress=True),
            to_perfetto(data, Path(folder), compress=False),
            command(Path(folder), "--no-annotations"),
        )
        flow, flow_frames, told = execution()
        (flowing,) = seconds(decoding(flow, Path(folder) / "flow.bin"))
        many = short_recordings()
        short = least(decoding(many, Path(folder) / "many.bin"))
    megabytes = len(data) / 1e6
    slow_rate = 4 * len(part) / 1e6 / slow.least
    return [
        Row(
            "records to slices, one core",
            frames / 1e6 / processor,
            "M records/s",
            110,
            higher_is_better=True,
            note=f"{frames / 1e6:.1f} M frames by processor time; {(frames - padding) / 1e6 / processor:.1f} M/s "
            f"without the padding; {frames / 1e6 / ours.least:.1f} M/s by the clock",
        ),
        Row(
            "two sources, all cores against one",
            ours.least / both.least,
            "x",
            higher_is_better=True,
            note=f"{frames / 1e6 / both.least:.1f} M/s",
        ),
        Row(
            "two sources, beside two decodes that share nothing",
            ours.least / both.least / (in_turn.least / at_once.least),
            "x",
            0.92,
            higher_is_better=True,
            note=f"share of what those gain at the same time, {in_turn.least / at_once.least:.2f}x",
        ),
        *(
            Row(
                name,
                taken.least,
                "s",
                0.5,
                note=f"{megabytes:.1f} MB to a file, {told}; {taken.least / copy.least:.0f} times memcpy of the dump",
            )
            for name, taken, told in zip(
                ("to a Perfetto file", "to a Perfetto file, raw", "to a Perfetto file, whole command"),
                files,
                ("compressed, without the start of Python", "without the start of Python", "--no-annotations"),
                strict=True,
            )
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
            100,
            higher_is_better=True,
            note=f"{flow_frames / 1e6:.1f} M frames; {told / 1e6 / flowing.least:.1f} M/s without the padding",
        ),
        Row(
            f"{RECORDINGS:,} recordings to slices, one core",
            short,
            "s",
            1,
            note=f"{len(many) / 1e6:.1f} MB, by processor time; as many bytes of two recordings take "
            f"{processor * len(many) / len(data):.2f} s",
        ),
        Row("memcpy beside it", ours.least / copy.least, "x", note=f"memcpy {megabytes / copy.least:.0f} MB/s"),
        Row("reference codec", slow_rate, "MB/s", 0.3, higher_is_better=True, note=f"{len(part)} words"),
        Row("beside the reference codec", megabytes / ours.least / slow_rate, "x"),
    ]

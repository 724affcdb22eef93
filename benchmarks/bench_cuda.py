"""CUDA probe buffers: a million records decoded, and decoded and written, beside what people use today."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import lanescope
import peers
from lanescope import Trace
from lanescope.devices import cuda
from lanescope.devices.cuda.family import FAMILY
from lanescope.devices.cuda.simulate.sim_kernel import EVENTS
from lanescope.source import Capture
from measure import Row, seconds

#: 132 blocks of three groups, 24 records of a block in each tile: a little over a million.
TILES = 317
#: The file that declares the same layout, read as one of a user's own.
DECLARED = {"layout": str(Path(cuda.__file__).parent / "formats/declared/shipped/tirx-v1.toml")}
#: The peer takes seconds, so it gets few turns.
PEER_TURNS = 2


def plain_loop(words: np.ndarray) -> dict[tuple[int, int], list[tuple[str, int]]]:
    """Decode as the format's tutorial shows it: slot by slot, open begins in a dict."""
    groups = int(words[0]) >> 32
    begun: dict[tuple[int, int, int], int] = {}
    found: dict[tuple[int, int], list[tuple[str, int]]] = {}
    for slot in range(1, len(words)):
        word = int(words[slot])
        if word == 0:
            continue
        time_ns, lane, event, kind = word >> 32, word >> 12 & 0xFFFFF, word >> 2 & 0x3FF, word & 3
        block, group = lane // groups, lane % groups
        if kind == 0:
            begun[block, group, event] = time_ns
        elif kind == 1:
            spans = found.setdefault((block, group), [])
            spans.append((EVENTS[event], time_ns - begun[block, group, event]))
    return found


#: Feeds the peer record by record with as little around it as can be: a track for each lane and event.
_FEED = """
import sys, time
import numpy as np
from tg4perfetto import TraceGenerator
words = np.load(sys.argv[1])
names = sys.argv[3].split(",")
start = time.perf_counter()
trace = TraceGenerator(sys.argv[2])
groups = int(words[0]) >> 32
blocks, tracks = {}, {}
for slot in range(1, len(words)):
    word = int(words[slot])
    if word == 0:
        continue
    stamp, lane, event, kind = word >> 32, word >> 12 & 0xFFFFF, word >> 2 & 0x3FF, word & 3
    track = tracks.get((lane, event))
    if track is None:
        block = blocks.get(lane // groups)
        if block is None:
            block = blocks[lane // groups] = trace.create_group("block_%d" % (lane // groups))
        track = tracks[lane, event] = block.create_group("group_%d" % (lane % groups)).create_track()
    if kind == 0:
        track.open(stamp, names[event])
    elif kind == 1:
        track.close(stamp)
trace.flush()
print(time.perf_counter() - start)
"""


#: Calls the exporter that comes with the probes of TIRx, which feeds the same peer. Its module imports a GPU profiler
#: that the exporter never uses; an empty one stands in for it.
_EXPORT = """
import sys, time, types, warnings
for name in ("triton", "triton.profiler"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["triton"].profiler = sys.modules["triton.profiler"]
warnings.simplefilter("ignore")
import numpy as np, torch
from tvm.tirx.bench import export_to_perfetto_trace
buffer = torch.from_numpy(np.load(sys.argv[1]).view(np.int64))
names = ["event_%d" % number for number in range(1024)]
start = time.perf_counter()
export_to_perfetto_trace(buffer, sys.argv[2], names)
print(time.perf_counter() - start)
"""


def peer_seconds(capture: Path, folder: Path) -> tuple[float | None, str]:
    """Return how long the peer takes for the records of a capture, imports and reading not counted, and its version.

    None, and why, where it cannot be had.
    """
    given = (_FEED, capture, folder / "peer.pftrace", ",".join(EVENTS))
    try:
        return min(float(peers.run(*given)) for _ in range(PEER_TURNS)), peers.version("tg4perfetto")
    except peers.MissingPeerError as error:
        return None, str(error)


def exporter_seconds(capture: Path, folder: Path) -> tuple[float | None, str]:
    """Return the same of the exporter that users of these probes call today, which feeds that peer."""
    try:
        printed = peers.run(_EXPORT, capture, folder / "exporter.pftrace", group=peers.LARGE)
    except peers.MissingPeerError as error:
        return None, str(error)
    return float(printed), peers.version("apache-tvm")


def every_column(batches: list[Trace]) -> None:
    """Have every column of the core tables made."""
    for batch in batches:
        for table_name, table in batch.tables().items():
            for name in () if table_name in batch.details else table.spec.names:
                table.column(name).values  # noqa: B018 (made by reading)


def convert(capture: Path, out: Path, *, compress: bool) -> None:
    """Decode and write."""
    from lanescope.io import perfetto

    out.unlink(missing_ok=True)  # giving back the pages of an old file would be counted else
    with out.open("wb") as file:
        perfetto.write(lanescope.iter_batches(capture, "cuda"), file, compress=compress)


def peak_mib(capture: Path, out: Path) -> float:
    """Return the largest memory of a process that decodes and writes, MiB.

    Its own high-water mark: what getrusage says includes the process that it was forked from.
    """
    code = (
        "import sys, bench_cuda; from pathlib import Path; bench_cuda.convert(*map(Path, sys.argv[1:]), compress=True)"
    )
    code += "; print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
    command = [sys.executable, "-c", code, str(capture), str(out)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return int(done.stdout) / 1024


def run() -> list[Row]:
    """Measure."""
    (simulated,) = seconds(lambda: lanescope.simulate("cuda", tiles=TILES), repeats=3)
    simulation = lanescope.simulate("cuda", tiles=TILES)
    records = simulation.truth["records"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for file, data in simulation.files.items():
            (folder / file).write_bytes(data)
        capture, out = folder / "attention.npy", folder / "out.pftrace"
        words = np.load(capture)
        with Capture(capture) as source:
            decoder = FAMILY.decode(source, {option.name: option.default for option in FAMILY.options})
            decoder.feed(memoryview(source.main.read()))
            declaring = FAMILY.decode(source, {option.name: option.default for option in FAMILY.options} | DECLARED)
            declaring.feed(memoryview(source.main.read()))
        loop, decoded, declared, made, opened, plain, packed = seconds(
            lambda: plain_loop(words),
            lambda: list(decoder.finish()),
            lambda: list(declaring.finish()),
            lambda: every_column(list(decoder.finish())),
            lambda: lanescope.open(capture, "cuda"),
            lambda: convert(capture, out, compress=False),
            lambda: convert(capture, out, compress=True),
        )
        memory = peak_mib(capture, out)
        peer_time, peer = peer_seconds(capture, folder)
        exporter_time, exporter = exporter_seconds(capture, folder)

    def beside(seconds_: float, other: float | None) -> float | None:
        return None if other is None else other / seconds_

    peer_note = peer if peer_time is None else f"{peer}: {peer_time:.2f} s, record by record"
    exporter_note = exporter if exporter_time is None else f"{exporter}: {exporter_time:.2f} s, record by record"
    return [
        Row(
            "decode, beside a plain Python loop",
            loop.least / decoded.least,
            "x",
            80,
            higher_is_better=True,
            note=f"{records} records in memory: {1e3 * decoded.least:.1f} ms, loop {1e3 * loop.least:.0f} ms",
        ),
        Row(
            "decode by the declaration of the layout, beside its reader",
            declared.least / decoded.least,
            "x",
            1.3,
            note=f"{1e3 * declared.least:.1f} ms; reader {1e3 * decoded.least:.1f} ms, which also finds the stride",
        ),
        Row(
            "decode and make every column of the core tables, beside that loop",
            loop.least / made.least,
            "x",
            higher_is_better=True,
            note=f"{1e3 * made.least:.1f} ms; columns that follow from others are made when they are first read",
        ),
        Row(
            "read, hash and decode a file",
            records / opened.least / 1e6,
            "M records/s",
            higher_is_better=True,
            note=f"{1e3 * opened.least:.1f} ms, {loop.least / opened.least:.0f} x the loop without its reading",
        ),
        Row(
            "decode and Perfetto file, beside the exporter of TIRx over tg4perfetto",
            beside(plain.least, exporter_time),
            "x",
            200,
            higher_is_better=True,
            note=f"{1e3 * plain.least:.0f} ms, not compressed; {exporter_note}",
        ),
        Row(
            "decode and Perfetto file, beside the barest loop over tg4perfetto",
            beside(plain.least, peer_time),
            "x",
            higher_is_better=True,
            note=f"{1e3 * plain.least:.0f} ms, not compressed; {peer_note}",
        ),
        Row(
            "decode and compressed Perfetto file, beside that loop",
            beside(packed.least, peer_time),
            "x",
            higher_is_better=True,
            note=f"{1e3 * packed.least:.0f} ms; {peer_note}",
        ),
        Row("peak memory of decoding and writing", memory, "MiB", 250, note="whole process"),
        Row("simulate with truth", records / simulated.least / 1e6, "M records/s", 1, higher_is_better=True),
    ]

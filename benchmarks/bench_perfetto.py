"""A million slices as a Perfetto trace, beside the official protobuf bindings that build the same packets."""

from __future__ import annotations

import io
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as TraceProto
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import TrackEvent

from lanescope import TimeBase, Trace, TraceBuilder
from lanescope.io import perfetto
from lanescope.trace.row_packing import pack_rows
from measure import Row, seconds

SLICES, LANES, NAMES = 1_000_000, 72, 50
#: The bindings take seconds for a million, so they get a part of it; their time grows with the number of packets.
PART = 50_000


def realistic(*, slices: int = SLICES, category: str = "") -> Trace:
    """72 lanes, slices of some microseconds with pauses between them, all in one table in order of time."""
    random = np.random.default_rng(7)
    builder = TraceBuilder(TimeBase())
    device = builder.track("device 0", kind="group", role="device")
    tracks = [builder.track(f"core {i}", kind="lane", role="core", parent=device) for i in range(LANES)]
    shape = (LANES, slices // LANES)
    pause = random.lognormal(7.2, 1.0, shape).astype(np.int64) + 1
    dur = random.lognormal(8.0, 1.0, shape).astype(np.int64) + 20
    ts = (1_000_000 + np.cumsum(pause + dur, axis=1) - dur).reshape(-1)
    in_time = np.argsort(ts, kind="stable")
    names = builder.names.codes(f"kernel_with_a_usual_name_{i}" for i in range(NAMES))
    builder.append(
        "slices",
        track_id=np.repeat(np.array(tracks), shape[1])[in_time],
        ts=ts[in_time],
        dur=dur.reshape(-1)[in_time],
        name=names[random.integers(0, NAMES, len(ts))],
        category=category,
    )
    return builder.finish()


def with_bindings() -> bytes:
    """Build and serialise the two packets of each slice, in the shortest form that the format has."""
    trace = TraceProto()
    begin, end = TrackEvent.TYPE_SLICE_BEGIN, TrackEvent.TYPE_SLICE_END
    for number in range(PART):
        packet = trace.packet.add()
        packet.timestamp = 1500
        packet.trusted_packet_sequence_id = 5
        event = packet.track_event
        event.type = begin
        event.name_iid = 1 + number % NAMES
        packet = trace.packet.add()
        packet.timestamp = 3000
        packet.trusted_packet_sequence_id = 5
        packet.track_event.type = end
    return trace.SerializeToString()


def run() -> list[Row]:
    """Measure."""
    trace = realistic()
    count = len(trace.slices)

    def write(*, compress: bool) -> perfetto.WriteReport:
        return perfetto.write(trace, io.BytesIO(), compress=compress)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out.pftrace"

        def to_file() -> None:
            path.unlink(missing_ok=True)
            perfetto.write(trace, path, compress=False)

        times = seconds(
            with_bindings,
            lambda: write(compress=False),
            lambda: write(compress=True),
            to_file,
            lambda: pack_rows(trace.slices, trace.tracks),
        )
    bindings, raw, compressed, file, placed = (time.least for time in times)
    bindings *= count / PART
    plain, smaller = write(compress=False), write(compress=True)
    labelled = perfetto.write(realistic(category="compute"), io.BytesIO(), compress=True)

    def speed(taken: float) -> str:
        return f"{taken * 1e3:.0f} ms, {count / taken / 1e6:.1f} M slices/s"

    peer = f"bindings: {bindings:.2f} s a million (protobuf {version('protobuf')}, {PART} scaled), both into memory"
    return [
        Row("raw, times the bindings", bindings / raw, "x", 100, higher_is_better=True, note=f"{speed(raw)}; {peer}"),
        Row("raw, size of a slice", plain.bytes / count, "B", 25, note=f"{count} slices, {LANES} lanes, {NAMES} names"),
        Row(
            "compressed, times the bindings",
            bindings / compressed,
            "x",
            20,
            higher_is_better=True,
            note=speed(compressed),
        ),
        Row("zlib, size of a slice", smaller.bytes / count, "B", 9),
        Row("raw into a new file, times the bindings", bindings / file, "x", higher_is_better=True, note=speed(file)),
        Row("layout.place alone", count / placed / 1e6, "M/s", higher_is_better=True),
        Row("with a category, raw size of a slice", labelled.raw_bytes / count, "B"),
        Row("with a category, zlib size of a slice", labelled.bytes / count, "B"),
    ]

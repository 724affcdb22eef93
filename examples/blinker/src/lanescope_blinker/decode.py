"""Bytes -> records -> trace: one lane a lamp, one slice from on to off."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from lanescope.common import pair_fifo, sequence_gaps, unwrap
from lanescope.source import Capture
from lanescope.trace import ColumnSpec, StatSpec, TableSpec, TimeBase, Trace, TraceBuilder, ticks_to_ns
from lanescope_blinker.layout import HEADER, RECORD, RECORD_BYTES

CHANGES = TableSpec(
    "blinker_changes",
    "which records made a slice",
    (
        ColumnSpec("slice_id", "int64", "the slice", references="slices"),
        ColumnSpec("sequence", "uint16", "sequence number of its `on`", is_argument=True),
    ),
    key="slice_id",
)
TABLES = (CHANGES,)
STATS = (
    StatSpec("blinker_lost", "data_loss", "the sequence numbers have a hole: the controller dropped records"),
    StatSpec("blinker_unpaired", "notice", "an `off` without `on`, or an `on` while on: its partner is not there"),
)


class BlinkerDecoder:
    """Holds the whole capture: it is small."""

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture = capture
        self._options = options
        self._data = bytearray()

    def feed(self, data: memoryview) -> list[Trace]:
        """Keep the bytes."""
        self._data += data
        return []

    def finish(self) -> list[Trace]:
        """Decode."""
        whole = len(self._data) >= HEADER.size
        header = HEADER.decode(bytes(self._data[: HEADER.size])) if whole else {"lamps": 0, "tick_hz": 0}
        body = memoryview(self._data)[HEADER.size :]
        count = len(body) // RECORD_BYTES
        words = np.frombuffer(body[: count * RECORD_BYTES], "<u8")

        frequency = Fraction(header["tick_hz"]) if header["tick_hz"] else None
        builder = TraceBuilder(
            TimeBase(epoch_kind="first_event", time_unit="ns" if frequency else "cycles"),
            details=(CHANGES,),
            stats=STATS,
        )
        main = self._capture.main
        input_id = builder.input(
            capture=self._capture.name,
            path=main.path,
            size=main.size,
            sha256=main.sha256,
            family="blinker",
            format="blinker-1",
            options=self._options,
        )
        used = HEADER.size + count * RECORD_BYTES if whole else 0
        if builder.add_bytes(decoded=used):  # the others are lost
            builder.add_stat("truncated", input_id=input_id, first_offset=used)

        clock = builder.clock(name="tick", device="blinker", frequency=frequency, counter_bits=32)
        device = builder.track("blinker", kind="group", role="device", input_id=input_id)
        names = self._options.get("lamps") or []
        lamps = RECORD["lamp"].of(words).astype(np.int64)
        lane_count = max(header["lamps"], int(lamps.max(initial=-1)) + 1)
        lanes = np.array(
            [
                builder.track(
                    names[i] if i < len(names) else f"lamp {i}", kind="lane", role="lamp", parent=device, clock_id=clock
                )
                for i in range(lane_count)
            ],
            np.int64,
        )

        # The timestamp wraps, but controllers write at least once in 2^32 ticks.
        ticks = unwrap(RECORD["time"].of(words), bits=32)
        ticks -= ticks[:1]
        ts = ticks_to_ns(ticks, frequency) if frequency else ticks
        # A dropped record may have concerned any lamp: each gap is a gap on every lane, and cuts what was on.
        sequence = RECORD["sequence"].of(words).astype(np.uint16)
        dropped = sequence_gaps(sequence, bits=16)
        offsets = HEADER.size + np.arange(count) * RECORD_BYTES
        dropped.add_gaps(builder, lanes, ts, offsets, cause="dropped", stat="blinker_lost", input_id=input_id)
        is_off = RECORD["state"].of(words) == 0
        pairs = pair_fifo(lamps, is_off, is_open_once=True, cut_before=dropped.between(np.arange(count)))
        slices = builder.add_pairs(
            pairs, lanes[lamps], ts, ticks, name="on", unpaired="blinker_unpaired", input_id=input_id
        )
        builder.append("blinker_changes", slice_id=slices, sequence=sequence[pairs.start])
        builder.add_coverage(lanes, ts[:1], ts[-1:])
        return [builder.finish()]

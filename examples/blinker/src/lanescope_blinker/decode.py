"""Bytes -> records -> trace: one lane a lamp, one slice from on to off."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from lanescope.source import Capture
from lanescope.trace import ColumnSpec, Flag, StatSpec, TableSpec, TimeBase, Trace, TraceBuilder, ticks_to_ns
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
        builder.add_accounting(
            input_id=input_id, layer=0, unit="byte", unit_bytes=1, total=main.size, decoded=used, lost=main.size - used
        )
        if used < main.size:
            builder.add_stat("truncated", input_id=input_id, first_offset=used)

        clock = builder.clock(name="tick", device="blinker", frequency=frequency, counter_bits=32)
        device = builder.track("blinker", kind="group", role="device", input_id=input_id)
        names = self._options.get("lamps") or []
        lamps = RECORD["lamp"].of(words).astype(np.int64)
        lane_count = max(header["lamps"], int(lamps.max(initial=-1)) + 1)
        lanes = [
            builder.track(
                names[i] if i < len(names) else f"lamp {i}", kind="lane", role="lamp", parent=device, clock_id=clock
            )
            for i in range(lane_count)
        ]

        # The stamp wraps, the difference of two neighbours does not: controllers write at least once in 2^32 ticks.
        stamps = RECORD["time"].of(words).astype(np.uint32)
        ticks = np.concatenate([np.zeros(min(count, 1), np.int64), np.cumsum(np.diff(stamps).astype(np.int64))])
        ts = ticks_to_ns(ticks, frequency) if frequency else ticks
        sequence = RECORD["sequence"].of(words).astype(np.uint16)
        lost_before = np.concatenate([np.zeros(min(count, 1), np.uint16), np.diff(sequence) - np.uint16(1)])

        rows = _pair(lamps, RECORD["state"].of(words), lost_before)
        begin, end = rows["begin"], rows["end"]
        known = end >= 0
        first = builder.append(
            "slices",
            track_id=np.array(lanes, np.int64)[lamps[begin]],
            ts=ts[begin],
            ts_ticks=ticks[begin],
            dur=ts[end] - ts[begin],
            dur_valid=known,
            dur_ticks=ticks[end] - ticks[begin],
            dur_ticks_valid=known,
            name="on",
            flags=rows["flags"],
            last_known_ts=np.full(len(begin), ts[-1] if count else 0),
            last_known_ts_valid=~known,
        )
        builder.append("blinker_changes", slice_id=first + np.arange(len(begin)), sequence=sequence[begin])
        builder.add_stat("blinker_unpaired", rows["unpaired"], input_id=input_id)
        # What a dropped record said may concern any lamp: each hole is a gap on every lane.
        holes = np.flatnonzero(lost_before)
        offsets = HEADER.size + holes * RECORD_BYTES
        if len(holes):
            builder.add_stat(
                "blinker_lost",
                int(lost_before.sum(dtype=np.int64)),
                input_id=input_id,
                first_offset=int(offsets[0]),
                first_ts=int(ts[holes[0]]),
            )
            each = len(lanes)
            builder.append(
                "gaps",
                track_id=np.tile(np.array(lanes, np.int64), len(holes)),
                ts=np.repeat(ts[holes - 1], each),
                dur=np.repeat(ts[holes] - ts[holes - 1], each),
                cause="dropped",
                lost_count=np.repeat(lost_before[holes].astype(np.int64), each),
                input_id=input_id,
                first_offset=np.repeat(offsets, each),
            )
        if count:
            builder.append("coverage", track_id=np.array(lanes, np.int64), ts=0, dur=ts[-1])
        return [builder.finish()]


def _pair(lamps: Any, states: Any, lost_before: Any) -> dict[str, Any]:
    """Pair each lamp's on and off; a hole ends what was open, because its off may have been lost."""
    begin, end, flags, unpaired = [], [], [], 0
    lit: dict[int, int] = {}
    for i, (lamp, state, lost) in enumerate(zip(lamps.tolist(), states.tolist(), lost_before.tolist(), strict=True)):
        if lost:
            for start in lit.values():
                begin.append(start)
                end.append(i - 1)
                flags.append(int(Flag.TRUNCATED))
            lit.clear()
        if state and lamp not in lit:
            lit[lamp] = i
        elif not state and lamp in lit:
            begin.append(lit.pop(lamp))
            end.append(i)
            flags.append(0)
        else:
            unpaired += 1
    for start in lit.values():
        begin.append(start)
        end.append(-1)
        flags.append(int(Flag.UNFINISHED))
    return {
        "begin": np.array(begin, np.int64),
        "end": np.array(end, np.int64),
        "flags": np.array(flags, np.uint32),
        "unpaired": unpaired,
    }

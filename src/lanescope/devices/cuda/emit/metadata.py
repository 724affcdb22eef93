"""What a trace says besides its rows: inputs, clocks and anchors, stats, accounting."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.emit.trace_assembly import TraceAssembly
from lanescope.devices.cuda.interpret import names
from lanescope.devices.cuda.schema import BUFFERS

I64 = npt.NDArray[np.int64]

#: Steps of the timer a second: it counts nanoseconds.
_TIMER_HZ = 1_000_000_000
#: More steps back or stray ends than this share of a lane's pairs look like a second writer; a single one does not.
TWO_WRITERS_SHARE = 0.01
#: How much larger than the present one a buffer is suggested to be when lanes were full.
_MORE_ROOM = 1.5


def inputs(making: TraceAssembly) -> int:
    """Add the files of the capture; return the id of the buffer's."""
    builder, capture = making.builder, making.capture
    main = capture.main
    input_id = builder.input(
        capture=capture.name,
        path=main.path,
        size=making.content.size,
        sha256=main.content_hash,
        family="cuda",
        format=making.buffer.format,
        options={name: value for name, value in making.options.items() if value is not None},
    )
    beside = capture.parts.get(names.PART)
    if beside is not None:
        part = builder.input(
            capture=capture.name,
            role=names.PART,
            path=beside.path,
            size=beside.size,
            sha256=beside.content_hash,
            family="cuda",
            format="event-names",
        )
        builder.add_bytes(decoded=beside.size if making.names.usable else 0, input_id=part)
        builder.add_stat("cuda_unreadable_names", int(not making.names.usable), input_id=part)
    return input_id


def clocks(making: TraceAssembly) -> I64:
    """Add the clocks and their anchors; return the clock of each lane, int64 [lanes]."""
    builder, buffer, device = making.builder, making.buffer, making.device
    _host(making)
    if not buffer.in_cycles:
        bits = 64 if buffer.is_full_clock else buffer.stamp_bits
        clock = builder.clock(
            name=buffer.clock, device=device, frequency=_TIMER_HZ, counter_bits=bits, resolution_ticks=making.step
        )
        if buffer.is_full_clock:
            builder.anchor(clock_id=clock, ticks=making.t0, ts=0, error_ns=making.step)
        elif making.options["anchor"] is not None or making.options["host_anchor"] is not None:
            # Only the full counter is the same in two captures: 32 bits of it name a moment every 4.29 s.
            full = builder.clock(name="globaltimer", device=device, frequency=_TIMER_HZ, counter_bits=64)
            builder.anchor(clock_id=full, ticks=making.t0, ts=0, error_ns=making.step)
        elif making.placed.any():
            builder.anchor(clock_id=clock, ticks=making.t0, ts=0, error_ns=making.step)
        return np.broadcast_to(np.int64(clock), len(making.grid))
    timeline = making.timeline
    if timeline is not None and not timeline.is_declared:
        full = builder.clock(name="globaltimer", device=device, frequency=_TIMER_HZ, counter_bits=64)
        errors = timeline.error_ns[making.placed]
        error = int(errors.max()) if len(errors) and (errors >= 0).all() else None
        builder.anchor(clock_id=full, ticks=making.t0, ts=0, error_ns=error)
    counters, word = buffer.counters, "block"
    if counters is None:
        counters, word = making.grid.sm, "SM"
    counters = np.zeros(len(making.grid), np.int64) if counters is None else counters
    is_common = buffer.counters is not None and not counters.any()
    units, first, row = np.unique(counters, return_index=True, return_inverse=True)
    ids = []
    for unit, lane in zip(units.tolist(), first.tolist(), strict=True):
        clock = builder.clock(
            name=buffer.clock,
            device=f"{device} {word} {unit}" if unit >= 0 and not is_common else device,
            frequency=None if timeline is None else timeline.frequency_hz,
            counter_bits=64 if buffer.is_full_clock else buffer.stamp_bits,
            resolution_ticks=making.step,
        )
        if timeline is not None and timeline.error_ns[lane] >= 0:
            builder.anchor(
                clock_id=clock,
                ticks=int(timeline.origin[lane]),
                ts=int(timeline.zero[lane]) - making.t0,
                error_ns=int(timeline.error_ns[lane]),
            )
        elif timeline is None and is_common and making.placed.any():
            # One counter of the whole device is the same in two captures, whatever its rate.
            builder.anchor(clock_id=clock, ticks=making.axis_origin(lane), ts=0, error_ns=making.step)
        ids.append(clock)
    return np.array(ids, np.int64)[row]


def _host(making: TraceAssembly) -> None:
    """Add the host's readings of its own clock and the GPU's timer."""
    given = making.options["host_anchor"]
    anchors = [given] if given is not None else list(making.buffer.describe().get("anchors", ()))
    if not anchors or making.is_unplaced:
        return
    # Hosts agree on the Unix time; how well, the error says. Traces that count from its epoch are joined to it too.
    clock = making.builder.clock(name="unix", device="", frequency=_TIMER_HZ)
    for ticks, unix, error in anchors:
        stated = None if error is None else int(error) + (making.step or 0)
        making.builder.anchor(clock_id=clock, ticks=unix, ts=ticks - making.t0, error_ns=stated)


def add(making: TraceAssembly) -> None:
    """Add the stats of the whole buffer, its row of details and its accounting."""
    _lane_stats(making)
    _clock_stats(making)
    _describe(making)
    _account(making)


def _lane_stats(making: TraceAssembly) -> None:
    summary, options = making.summary, making.options
    if len(making.empty):
        making.stats.add_rows("cuda_empty_lane", making.empty, track=making.tree.lane)
    else:
        making.stats.add("cuda_empty_lane", int(np.count_nonzero(~making.known)))
    if not making.known.any():
        # Lanes that records name are none without records.
        making.stats.add("cuda_no_records", max(1, len(making.known)))
    after = int(summary["after_finalize"].sum())
    making.stats.add("cuda_after_finalize", after)
    if options["after_finalize"] == "ignore":
        making.stats.add("cuda_ignored_after_finalize", after)
    # Holes and a second launch bring stray ends and steps back of their own, and so does a ring.
    alone = (summary["launches"] == 1) & (summary["missing"] == 0)
    pairs = summary["slices"] - summary["open"]
    strays = np.maximum(summary["backward"], summary["unmatched"])
    many = strays > np.maximum(1, TWO_WRITERS_SHARE * pairs)
    making.stats.add("cuda_multiple_writers", int(np.count_nonzero(alone & many)))
    finalized = summary["finalizes"] > 0
    if finalized.any():
        left = np.flatnonzero((summary["records"] > 0) & ~finalized & (summary["full"] == 0))
        if len(left):
            last = making.lane_ns(left[:1], summary["last"][left[:1]]) - making.t0
            alone_of = int(making.tree.lane[left[0]]) if len(left) == 1 else None
            making.stats.add("cuda_unfinalized_lane", len(left), ts=int(last[0]), track=alone_of)
    lost, counted = making.grid.lost, making.grid.counted
    if lost is not None:
        # Of a lane that did not count, or not to its end, it is the least.
        exact = int(lost.sum() if counted is None else lost[counted].sum())
        making.stats.add("cuda_dropped", exact)
        making.stats.add("cuda_dropped_at_least", int(lost.sum()) - exact)


def _clock_stats(making: TraceAssembly) -> None:
    summary, options, buffer = making.summary, making.options, making.buffer
    wraps, wrap = int(summary["wraps"].sum()), 1 << buffer.stamp_bits
    making.stats.add("cuda_wrap", wraps)
    making.stats.add("cuda_clock_reversal", int(summary["backward"].sum()))
    jumps = np.where(making.turns.sure, 0, summary["jumps"]) if making.turns.sure is not None else summary["jumps"]
    doubtful = 0 if making.turns.doubtful is None else int(np.count_nonzero(making.turns.doubtful))
    # Without readings of the whole counter all lanes share one doubt.
    making.stats.add("cuda_wrap_ambiguous", int(jumps.sum()) + (doubtful if buffer.is_full_clock else min(doubtful, 1)))
    if making.timeline is not None:
        making.stats.add("cuda_clock_mismatch", int(np.count_nonzero(making.timeline.contradicts)))
        making.stats.add("cuda_rate_estimated", int(making.timeline.is_estimated))
    is_common = buffer.counters is not None and not buffer.counters.any()
    making.stats.add("cuda_unaligned_sms", int(making.is_unplaced and not is_common))
    launch_ns = options["launch_ns"]
    if buffer.is_full_clock or buffer.in_cycles:
        return
    used = summary["records"] > 0
    if launch_ns is not None and used.any():
        extent = int(summary["max"][used].max() - summary["min"][used].min())
        making.stats.add("cuda_launch_exceeds_wrap", int(launch_ns >= wrap))
        making.stats.add("cuda_launch_duration_mismatch", int(abs(launch_ns - extent) > wrap // 2))
    elif launch_ns is None:
        making.stats.add("cuda_wrap_assumed", wraps)


def _describe(making: TraceAssembly) -> None:
    described = dict(making.buffer.describe())
    described.pop("anchors", None)
    described.pop("device", None)
    room = described.pop("room", None)
    full = bool(making.summary["full"].any()) or (making.grid.lost is not None and bool(making.grid.lost.any()))
    full |= bool(making.grid.refused)
    making.builder.append(
        BUFFERS.name,
        input_id=making.input_id,
        num_blocks=making.grid.num_blocks,
        num_groups=making.grid.num_groups,
        slots=making.buffer.slots,
        t0_ticks=making.t0,
        suggested_slots=room(_MORE_ROOM) if full and room is not None else None,
        **described,
    )


def _account(making: TraceAssembly) -> None:
    content, buffer = making.content, making.buffer
    slots, unit = buffer.slots, buffer.unit_bytes
    understood, lost = buffer.account(making.summary)
    behind = making.builder.add_bytes(
        decoded=slots * unit, padding=making.before + buffer.envelope, input_id=making.input_id
    )
    making.builder.add_accounting(
        input_id=making.input_id,
        layer=1,
        unit="slot",
        unit_bytes=unit,
        total=slots,
        decoded=understood,
        padding=slots - understood - lost,
        lost=lost,
    )
    refused = making.grid.refused
    if refused is not None:
        begun = int(np.count_nonzero(making.known))
        making.builder.add_dropped(unit="lane", unit_bytes=1, recorded=begun, dropped=refused, input_id=making.input_id)
    end = making.before + slots * unit + buffer.envelope
    making.stats.add("cuda_trailing_bytes", behind, offset=end)
    making.stats.add("truncated", -(-max(content.cut, buffer.cut) // unit), offset=end)
    for name, count, slot in buffer.stats(making.summary):
        making.stats.add(name, count, offset=None if slot is None else making.before + slot * unit)

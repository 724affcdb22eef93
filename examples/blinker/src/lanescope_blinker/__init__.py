"""The blinker: a made-up controller of lamps that records when each lamp goes on and off."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from lanescope.common import pair_fifo, sequence_gaps, unwrap
from lanescope.families import DecodeContext, Export, Family, Format, Option, Rule, RuleContext, Simulation, Simulator
from lanescope.families.options import fraction, int_in, positive_int
from lanescope.source import Capture, Detection, FileHead
from lanescope.trace import StatSpec, TableSpec, Trace, TraceBuilder, argument, ref, ticks_to_ns, usable_frequency
from lanescope.wire import Field, Member, Record, Struct, dump_lines

HEADER = Struct(
    "blinker.header",
    size=16,
    members=(
        Member("magic", 0, "u32", "the bytes BLNK", default=0x4B4E4C42),
        Member("version", 4, "u16", "version of the format", default=1),
        Member("lamps", 6, "u16", "number of lamps"),
        Member("tick_hz", 8, "u32", "frequency of the timestamps; 0: unknown", unit="Hz"),
        Member("dropped", 12, "u32", "records that the controller dropped before the first one", default=0),
    ),
    doc="once, at the start of the file",
    source="made up for this example",
)
RECORD = Record(
    "blinker.record",
    bits=64,
    fields=(
        Field("time", lsb=0, width=32, doc="timestamp; wraps", unit="ticks"),
        Field("lamp", lsb=32, width=8, doc="number of the lamp"),
        Field("kind", lsb=40, width=2, values={0: "off", 1: "on", 2: "flash", 3: "level"}, doc="what happened"),
        Field("value", lsb=42, width=6, doc="brightness, for a level", default=0),
        Field("sequence", lsb=48, width=16, doc="counts all records; a missing number is a dropped record"),
    ),
    doc="one change of one lamp",
    source="made up for this example",
)
OFF, ON, FLASH, LEVEL = range(4)


def detect(head: FileHead) -> Detection:
    """Magic and version decide."""
    return Detection(95 if head.data[:6] == b"BLNK\x01\x00" else 0, "blinker-1", "begins with BLNK, version 1")


CHANGES = TableSpec(
    "blinker_changes",
    "the record that started a slice",
    (ref("slice_id", "slices", "the slice"), argument("sequence", "uint16", "sequence number of its `on`")),
    key="slice_id",
)
STATS = (
    StatSpec("blinker_frequency", "notice", "headers without a usable frequency: times are in ticks"),
    StatSpec("blinker_lost", "data_loss", "missing sequence numbers: the controller dropped records"),
    StatSpec("blinker_unpaired", "notice", "`off` without `on`, or `on` of a lamp that is on: the partner is missing"),
)


def decode(data: memoryview, context: DecodeContext) -> TraceBuilder:
    """Decode a capture: one lane per lamp, one slice from on to off."""
    header = HEADER.decode(bytes(data[: HEADER.size]).ljust(HEADER.size, b"\0"))  # a truncated header: zeros
    count = max(len(data) - HEADER.size, 0) // 8
    words = np.frombuffer(data[HEADER.size :][: 8 * count], "<u8")
    time, lamp, kind, value, sequence = (field.of(words).astype(np.int64) for field in RECORD.fields)

    # Time: unwrapped ticks, counted from the first record, then nanoseconds if the header states a frequency.
    ticks = unwrap(time, bits=32)
    ticks -= ticks[:1]
    frequency = usable_frequency(header["tick_hz"], ticks)
    ts = ticks_to_ns(ticks, frequency) if frequency else ticks
    builder = context.builder(frequency=frequency)
    builder.add_stat("blinker_frequency", int(frequency is None), input_id=0, first_offset=8)

    # Every byte is decoded, padding, or lost.
    used = HEADER.size + 8 * count if len(data) >= HEADER.size else 0
    if builder.add_bytes(decoded=used):
        builder.add_stat("truncated", input_id=0, first_offset=used)

    # Tracks: a lane per lamp; a counter for those that report their brightness.
    clock = builder.clock(name="tick", device="blinker", frequency=frequency, counter_bits=32)
    device = builder.track("blinker", kind="group", role="device", input_id=0)
    add_track = partial(builder.track, role="lamp", parent=device, clock_id=clock)
    names = [f"lamp {i}" for i in range(max(header["lamps"], int(lamp.max(initial=-1)) + 1))]
    names[: len(context.options["lamps"])] = context.options["lamps"][: len(names)]
    lanes = np.array([add_track(name, kind="lane") for name in names], np.int64)
    levels = {i: add_track(f"{names[i]} level", kind="counter") for i in np.unique(lamp[kind == LEVEL]).tolist()}

    # Losses: a dropped record may have concerned any lamp, so that it is a gap on every lane.
    losses = sequence_gaps(sequence, bits=16)
    offsets = HEADER.size + 8 * np.arange(count)
    losses.add_gaps(builder, lanes, ts, offsets, cause="dropped", stat="blinker_lost")
    if header["dropped"]:
        builder.add_dropped(unit="record", unit_bytes=8, recorded=count, dropped=header["dropped"])
    builder.add_coverage(lanes, ts[:1], ts[-1:])

    # Slices: from on to off of one lamp. What is on where records are missing is truncated there.
    rows = np.flatnonzero(kind <= ON)
    pairs = pair_fifo(lamp[rows], kind[rows] == OFF, is_open_once=True, cut_before=losses.between(rows))
    slices = builder.add_pairs(pairs, lanes[lamp[rows]], ts[rows], ticks[rows], name="on", unpaired="blinker_unpaired")
    builder.append("blinker_changes", slice_id=slices, sequence=sequence[rows][pairs.start])

    rows = np.flatnonzero(kind == FLASH)
    builder.append("instants", track_id=lanes[lamp[rows]], ts=ts[rows], ts_ticks=ticks[rows], name="flash")
    rows = np.flatnonzero(kind == LEVEL)
    builder.append("counters", track_id=[levels[i] for i in lamp[rows].tolist()], ts=ts[rows], value=value[rows])
    return builder


def records(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Show the header and each record, for `lanescope dump`."""
    data = capture.main.read().data
    yield from dump_lines(HEADER, data[: HEADER.size])
    yield from dump_lines(RECORD, data[HEADER.size :], offset=HEADER.size)


def find_flicker(context: RuleContext) -> Iterable[Any]:
    """Find slices below 1 ms, for `lanescope check`."""
    slices = context.trace.slices
    rows = np.flatnonzero(slices.valid("dur") & (slices.values("dur") < 1_000_000))
    yield from context.violations("slices", rows, detail=lambda mine: f"{len(mine)} times on for less than 1 ms")


FLICKER = Rule(
    "BLINKER101", "flicker", "notice", "A lamp was on for less than 1 ms.", "Check its contact.", find_flicker, "rows"
)


def as_csv(trace: Trace) -> Iterator[bytes]:
    """Write slices as text, for `lanescope convert --format blinker-csv`."""
    yield b"lamp,start_ns,dur_ns\n"
    names = trace.tracks["name"]
    for row in trace.slices.rows():
        yield f"{names[row['track_id']]},{row['ts']},{'' if row['dur'] is None else row['dur']}\n".encode()


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Return a capture with wraps, losses, flashes and levels, and what really happened."""
    random, changes, before = np.random.default_rng(seed), options["changes"], options["before"]
    ticks = np.cumsum(random.integers(1, 1 << 20, changes)) + (1 << 32) - (1 << 22)  # the timestamps wrap soon
    lamp = random.integers(0, options["lamps"], changes).tolist()
    kept = random.random(changes) >= options["drop"]
    kept[[0, -1]] = True  # the file starts with the first of them; nothing would show a loss after the last
    is_extra = random.random(changes) < options["extra"]
    start_ns = ((ticks - ticks[0]) * 1000).tolist()
    lit: dict[int, int] = {}
    truth: dict[str, list[list[int]]] = {"spans": [], "flashes": [], "levels": []}
    written = []
    for i in range(changes):
        kind = FLASH + i % 2 if is_extra[i] else OFF if lamp[i] in lit else ON
        if kind == ON:
            lit[lamp[i]] = start_ns[i]
        elif kind == OFF:
            truth["spans"].append([lamp[i], lit.pop(lamp[i]), start_ns[i]])
        else:
            truth["levels" if kind == LEVEL else "flashes"].append([lamp[i], start_ns[i]])
        fields = {"time": int(ticks[i]) & 0xFFFFFFFF, "lamp": lamp[i], "kind": kind, "sequence": (before + i) & 0xFFFF}
        written.append(RECORD.encode(fields).to_bytes(8, "little"))
    header = HEADER.encode({"lamps": options["lamps"], "tick_hz": 1_000_000, "dropped": before})
    body = b"".join(record for record, is_kept in zip(written, kept, strict=True) if is_kept)
    return Simulation({"run.blink": header + body}, {**truth, "open": len(lit), "lost": before + int((~kept).sum())})


FAMILY = Family(
    name="blinker",
    title="Lamp controller of the documentation's recipe",
    formats=(Format("blinker-1", detect, decode_file=decode, layouts=(HEADER, RECORD), stages={"record": records}),),
    options=(Option("lamps", lambda text: text.split(","), "names of the lamps, in order", [], "A,B,..."),),
    tables=(CHANGES,),
    stats=STATS,
    rules=(FLICKER,),
    exports=(Export("blinker-csv", "one line per slice: lamp, start, duration", as_csv),),
    simulator=Simulator(
        simulate,
        options=(
            Option("changes", positive_int, "number of records", 1000),
            Option("lamps", int_in(1, 256), "number of lamps", 4),
            Option("drop", fraction, "fraction of records that are dropped", 0.0),
            Option("before", int_in(0, 1 << 30), "records that are dropped before the first one", 0),
            Option("extra", fraction, "fraction of records that are flashes and levels", 0.0),
        ),
        demo={"changes": 200, "extra": 0.1},
    ),
)

"""Trace dumps -> Trace batches.

The native core does the work: hex text to words, words to packets, packets to slices with the state of every source.
This module hands it blocks and arrays, makes tracks, and at the end turns what was noted into rows. Nothing that the
core decides depends on how the input was cut.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from fractions import Fraction
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.aie import config, schema
from lanescope.devices.aie.formats.detect import BINARY, TEXT, is_text
from lanescope.devices.aie.formats.events import MODULES
from lanescope.devices.aie.formats.layout import (
    EVENT_PC,
    FLOW_KINDS,
    HEADER,
    INCOMPLETE_RUN,
    LOST_RUN,
    MODE2,
    ORPHAN_RUN,
    ZEROS_RUN,
    module_name,
)
from lanescope.devices.aie.interpret.column_shift import column_shift
from lanescope.devices.aie.interpret.derived_state import DerivedState
from lanescope.devices.aie.interpret.shard_state import Decoding, Shard, Work
from lanescope.errors import UsageError
from lanescope.trace import Column, Flag, TimeBase, TraceBuilder, ticks_to_ns

if TYPE_CHECKING:
    from lanescope.source import Capture, Source
    from lanescope.trace import Trace

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]

BLOCK_BYTES = 1 << 20
#: Slices that are collected before they go out as a batch.
BATCH_ROWS = 1 << 20
#: Sources are dealt out to so many shards, which may be decoded side by side.
SHARDS = core.AIE_PARTS
#: Packets of a block that are worth several threads.
_LARGE_BLOCK = 1 << 12
_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: Entries of a scan: more than the packets of a block.
_ENTRIES = 1 << 16
#: No AI engine runs slower or faster.
_HERTZ = (1_000, 1_000_000_000_000)
_TICK_LIMIT = 1 << 60

# What the core notes besides slices, and the columns of a note.
_SEGMENT, _SLOT, _RESTART, _GAP, _OPEN_GAP, _END = range(6)
_WHAT, _OF, _TICK, _VALUE, _DETAIL, _LOST, _OFFSET = range(7)
#: Columns of a recording in the core; pairs of count and first offset follow, one for each of ``SEGMENT_STATS``.
_SEGMENT_COLUMNS = (
    "source",
    "ordinal",
    "mode",
    "timer",
    "offset",
    "begin",
    "packets",
    "frames",
    "restarts",
    "end",
    "ending",
    "is_exact",
)
_STOP, _RESTARTED = schema.ENDINGS.index("stop"), schema.ENDINGS.index("restarted")
_OTHER_MODE = "other_mode"
_EXECUTION, _RESERVED = 2, 3
_AFTER_GAP, _MORE = 1 << 4, 15 << 3  # in a tag; the second: all but slot and segment
_LOOP = FLOW_KINDS.index("loop")
_LAST_WITH_PC = FLOW_KINDS.index("new_pc")


@dataclass(slots=True)
class _Lanes:
    """Tracks and names by lane number: recording * 8 + slot."""

    track: I64 = field(default_factory=lambda: np.full(512, -1, np.int64))
    name: I32 = field(default_factory=lambda: np.zeros(512, np.int32))
    category: I32 = field(default_factory=lambda: np.zeros(512, np.int32))

    def reserve(self, lanes: int) -> None:
        """Make room; arrays that slices already refer to are left as they are."""
        if lanes > len(self.track):
            self.track = np.concatenate([self.track, np.full_like(self.track, -1)])
            self.name = np.concatenate([self.name, np.zeros_like(self.name)])
            self.category = np.concatenate([self.category, np.zeros_like(self.category)])


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """What a shard wrote, and what it knew by then.

    Attributes:
        slices: begin, length and tag; None: there are none.
        points: tick, count, value and tag; None: there are none.
        segments: recording in the shard -> recording in the dump.
        may_have_flags: whether any tag of the shard so far has more than slot and segment.
    """

    slices: tuple[npt.NDArray[Any], ...] | None
    points: tuple[npt.NDArray[Any], ...] | None
    segments: I64
    may_have_flags: bool

    def has_flags(self, tag: U32) -> bool:
        """Tell whether any of these tags has more than slot and segment."""
        return self.may_have_flags and bool(np.bitwise_or.reduce(tag) & _MORE)

    def tags(self, tag: U32) -> U32:
        """Return tags with the recordings of the dump in place of those of the shard."""
        if np.array_equal(self.segments, np.arange(len(self.segments))):
            return tag
        moved: U32 = (self.segments.astype(np.uint32) << 7)[tag >> 7] | (tag & 127)
        return moved


class AieDecoder:
    """Decodes one dump.

    Args:
        capture: the capture; a neighbour ``NAME.config.json`` is used unless a configuration is given.
        options: ``config``, ``mlir``, ``colshift`` and ``frequency``; any may be None.
        block_bytes: how much input is decoded at a time.

    Raises:
        UsageError: the configuration cannot be read, or no AI engine has that frequency.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any], *, block_bytes: int = BLOCK_BYTES) -> None:
        self._block_bytes = block_bytes
        self._capture = capture.name
        self._config, config_source = config.find(capture, path=options.get("config"), mlir_path=options.get("mlir"))
        given = options.get("frequency")
        self._frequency = _hertz(self._config.frequency if given is None else given)
        self._colshift, fitting = column_shift(capture.main, self._config, options.get("colshift"))
        self._text = core.AieText() if is_text(capture.main.head().data) else None

        self._builder = TraceBuilder(
            TimeBase(epoch_kind="first_event", time_unit="cycles" if self._frequency is None else "ns"),
            details=schema.TABLES,
            stats=schema.STATS,
        )
        self._input = self._builder.input(
            capture=capture.name,
            path=capture.main.path,
            size=capture.main.size,
            sha256=capture.main.sha256,
            family="aie",
            format=BINARY if self._text is None else TEXT,
            options={name: value for name, value in options.items() if value is not None},
        )
        if config_source is not None:
            self._add_part("config", config_source)
        for part in schema.PROGRAM_FILES:
            if options.get(part):
                self._add_part(part, capture.use(part, options[part]))
        if fitting > 1:
            self._builder.add_stat("aie_ambiguous_config", fitting, input_id=self._input)
        unread = sum(self._config.unread.values())
        if unread:
            self._builder.add_stat("aie_unread_config", unread, input_id=self._input)
        # Without a device: each run counts from its own start, so no two captures share this clock.
        self._clock = self._builder.clock(name="module clock", device="", frequency=self._frequency, counter_bits=56)
        # Units start on one broadcast and count from there; where that lies on another clock is not recorded.
        self._builder.anchor(clock_id=self._clock, ticks=0, ts=0)

        self._scanner = core.AieScanner()
        self._shards = [Shard(core.AieTimeline(self._tick_limit())) for _ in range(SHARDS)]
        self._helpers: ThreadPoolExecutor | None = None
        self._work = Work([])
        self._waiting = bytearray()
        self._blocks = [np.empty(0, np.uint32) for _ in range(2)]
        self._words = np.empty(0, np.uint32)  # not yet consumed: packets behind them decide what they are
        self._offsets = np.empty(0, np.int64)  # where those lie, in text
        self._base = 0  # where the first of them lies, in binary
        self._fed = 0
        self._noted: list[I64] = []
        self._groups: list[int] = []
        self._traces: list[int] = []
        self._slots: list[tuple[str, ...]] = []
        self._ordinals: dict[int, int] = {}
        self._names: dict[str, int] = {}  # names of tiles and the source that has each
        self._lanes = _Lanes()
        self._derived = DerivedState(self._builder, self._config, self._input, self._ts, self._add_track)
        self._modes: list[int] = []
        self._most_rows = core.AieTimeline.SLICE_ROOM + 4 * capture.main.size  # that anything but Repeats may bring
        self._entries = np.empty((_ENTRIES, 4), np.int32)
        # Those of one block are decoded while the next ones are dealt out.
        self._dealt = [np.empty((SHARDS, _ENTRIES, 4), np.int32) for _ in range(2)]
        _register_records(self._builder, capture)

    def _add_part(self, part: str, source: Source) -> None:
        """Record a file beside the dump, which is read as a whole."""
        of_part = self._builder.input(
            capture=self._capture,
            part=part,
            path=source.path,
            size=source.size,
            sha256=source.sha256,
            family="aie",
            format=f"aie-{part}",
        )
        self._builder.add_bytes(decoded=source.size, input_id=of_part)

    def _tick_limit(self) -> int:
        """Return a tick whose nanoseconds fit 63 bits with room to spare."""
        if self._frequency is None:
            return _TICK_LIMIT
        return min(_TICK_LIMIT, (1 << 61) * self._frequency.numerator // (1_000_000_000 * self._frequency.denominator))

    # --- input ------------------------------------------------------------------------------------------------

    def feed(self, data: memoryview) -> list[Trace]:
        """Take the next bytes; a batch comes when enough slices are together."""
        self._fed += len(data)
        if self._waiting or len(data) < self._block_bytes:
            self._waiting += data
            if len(self._waiting) < self._block_bytes:
                return []
            data = memoryview(self._waiting)
        return self._decode_bytes(np.frombuffer(data, np.uint8))

    def finish(self) -> list[Trace]:
        """Decode the rest, end all recordings and account for every byte."""
        batches = self._decode_bytes(np.frombuffer(self._waiting, np.uint8), is_last=True)
        batches += self._finalize()
        for shard in self._busy():
            is_done = 0
            while not is_done:
                if (full := self._make_room()) is not None:
                    batches.append(self._batch(full))
                is_done, *counts = shard.timeline.finish(*shard.outputs())
                self._take([(shard, shard.take(*counts))])
        if self._helpers is not None:
            self._helpers.shutdown()
        self._flush(self._taken())
        self._report()
        return [*batches, self._builder.finish()]

    def _decode_bytes(self, data: U8, *, is_last: bool = False) -> list[Trace]:
        rest = 0
        if self._text is None:
            rest = len(data) % 4
            words = data[: len(data) - rest].view("<u4")
        else:
            words, offsets = self._read_text(data, is_last=is_last)
            self._offsets = np.concatenate([self._offsets, offsets])
        words = self._prepend_pending(words)
        batches, done = self._decode_words(words, is_last=is_last)
        self._words = words[done:].copy()
        self._offsets = self._offsets[done:]
        self._base += 4 * done
        self._waiting = bytearray(data[len(data) - rest :])
        return batches

    def _prepend_pending(self, words: U32) -> U32:
        """Return the words that wait and those behind them, in memory of our own: the caller fills its buffer again."""
        waiting = len(self._words)
        count = waiting + len(words)
        if len(self._blocks[0]) < count:
            self._blocks[0] = np.empty(count + 4 * core.AieScanner.LOOKAHEAD, np.uint32)
        block = self._blocks[0][:count]
        block[:waiting], block[waiting:] = self._words, words
        return block

    def _read_text(self, data: U8, *, is_last: bool) -> tuple[U32, I64]:
        reader = self._text
        assert reader is not None
        words, offsets = np.empty(len(data) // 2 + 2, np.uint32), np.empty(len(data) // 2 + 2, np.int64)
        count = reader.read(data, words, offsets)
        if is_last:
            count += reader.finish(words[count:], offsets[count:])
        return words[:count], offsets[:count]

    def _decode_words(self, words: U32, *, is_last: bool) -> tuple[list[Trace], int]:
        """Decode as many words as can be decided; return batches and how many words that were.

        What was begun with the last block is waited for, and this one is begun. Shards and blocks are the same however
        many threads there are, and so are the rows.
        """
        batches: list[Trace] = []
        done = 0
        while done < len(words):
            rest, offsets, base = words[done:], self._offsets[done:], self._base + 4 * done
            taken, count = self._scanner.scan(rest, is_last, base, offsets, self._entries)
            if not taken:
                break
            dealt = self._dealt[0]
            self._dealt.reverse()
            counts = core.aie_deal(self._entries[:count], dealt.reshape(-1, 4))
            batches += self._finalize()
            busy = self._busy()
            todo = [
                Decoding(shard, rest, entries[:count], base, offsets)
                for shard, entries, count in zip(busy, dealt, counts, strict=False)
                if count
            ]
            batches += self._start(todo, is_large=count >= _LARGE_BLOCK)
            done += taken
        if done:  # by now nothing but this block is read
            self._blocks.reverse()
        return batches, done

    def _start(self, todo: list[Decoding], *, is_large: bool) -> list[Trace]:
        """Begin to decode what a block holds, if it is worth the help of others; return a batch if one was full."""
        full = self._make_room()
        self._work = Work(todo)
        if is_large and len(todo) > 1 and _CORES > 1:
            if self._helpers is None:
                self._helpers = ThreadPoolExecutor(min(_CORES, SHARDS) - 1)
            self._work.begin(self._helpers, _CORES - 1)
        return [] if full is None else [self._batch(full)]

    def _finalize(self) -> list[Trace]:
        """End what was begun, and see to what had no room; return the batches that were full."""
        batches: list[Trace] = []
        while todo := self._work.decodings:
            self._work.finish()
            self._take([(decoding.shard, np.concatenate(decoding.noted)) for decoding in todo])
            self._work = Work([])
            left = [decoding.rest() for decoding in todo if decoding.left]
            if left:
                batches += self._start(left, is_large=True)
        return batches

    # --- slices -----------------------------------------------------------------------------------------------

    def _busy(self) -> list[Shard]:
        """Return the shards that have sources, and somewhere to write to."""
        busy = self._shards[: len(self._scanner.headers)]
        for shard in busy:
            if not shard.slices.columns:
                self._reserve(shard, len(busy))
        return busy

    def _reserve(self, shard: Shard, sharing: int) -> None:
        """Reserve new arrays for one of so many shards."""
        shard.reserve(core.AieTimeline.SLICE_ROOM + min(BATCH_ROWS // sharing, self._most_rows))

    def _make_room(self) -> list[_Rows] | None:
        """See to it that every shard can write; return the rows so far if they had to make room."""
        busy = self._busy()
        arenas = [arena for shard in busy for arena in (shard.slices, shard.points)]
        rows = sum(arena.used + arena.recent for arena in arenas)
        has_room = rows <= BATCH_ROWS and all(shard.has_room for shard in busy)
        for arena in arenas:
            arena.recent = 0
        if has_room:
            return None
        taken = self._taken()
        for shard in busy:
            self._reserve(shard, len(busy))
        return taken

    def _taken(self) -> list[_Rows]:
        """Take what the shards wrote."""
        return [
            _Rows(
                slices=shard.slices.take() if shard.slices.used else None,
                points=shard.points.take() if shard.points.used else None,
                segments=shard.segments,
                may_have_flags=shard.timeline.has_flags,
            )
            for shard in self._shards
        ]

    def _batch(self, taken: list[_Rows]) -> Trace:
        self._flush(taken)
        return self._builder.batch()

    def _flush(self, taken: list[_Rows]) -> None:
        """Hand slices and points over. Most columns are made when somebody reads them."""
        for rows in taken:
            if rows.slices is not None:
                begin, duration, tag = rows.slices
                self._add_slices(begin, duration, tag, rows)
                if self._derived.needs_slices:
                    self._derived.take(begin, duration, rows.tags(tag))
            if rows.points is not None:
                tick, times, value, tag = rows.points
                self._add_points(tick, times, value, rows.tags(tag), has_flags=rows.has_flags(tag))

    def _add_slices(self, begin: I64, duration: I64, tag: U32, rows: _Rows) -> None:
        count, segments = len(tag), rows.segments
        builder, lanes, frequency = self._builder, self._lanes, self._frequency
        track, name, category = lanes.track, lanes.name, lanes.category

        def told(of: Callable[[I64], npt.NDArray[Any]]) -> Callable[[], npt.NDArray[Any]]:
            """Return what makes a column from lanes: where tags are few, by a table of them."""

            def make() -> npt.NDArray[Any]:
                if len(segments) << 7 > count:
                    return of(segments[tag >> 7] << 3 | tag & 7)
                tags = np.arange(len(segments) << 7)
                return np.take(of(segments[tags >> 7] << 3 | tags & 7), tag)

            return make

        ticks, length = Column.array(begin), Column.array(duration)
        ts, dur = ticks, length
        if frequency is not None:
            ts = start = Column.derived(count, lambda: ticks_to_ns(begin, frequency))
            dur = Column.derived(count, lambda: ticks_to_ns(begin + duration, frequency) - start.values)
        quality: Any = "exact"
        flags: Any = 0
        if rows.has_flags(tag):
            qualities = builder.dictionary("slices", "quality")
            codes = qualities.codes(schema.QUALITIES)
            bits = np.array([0, Flag.TRUNCATED, Flag.AFTER_GAP, Flag.TRUNCATED | Flag.AFTER_GAP], np.uint32)
            quality = Column.derived(count, lambda: codes[tag >> 5 & 3], dictionary=qualities)
            flags = Column.derived(count, lambda: bits[tag >> 3 & 3])
        builder.append(
            "slices",
            track_id=Column.derived(count, told(lambda lane: track[lane])),
            ts=ts,
            dur=dur,
            ts_ticks=ticks,
            dur_ticks=length,
            name=Column.derived(count, told(lambda lane: name[lane]), dictionary=builder.names),
            category=Column.derived(count, told(lambda lane: category[lane]), dictionary=builder.categories),
            quality=quality,
            flags=flags,
        )

    def _add_points(self, tick: I64, times: I64, value: U32, tag: U32, *, has_flags: bool) -> None:
        """Hand over what modes 1 and 2 tell: its order is known, its time has a lower bound."""
        count = len(tag)
        builder, frequency, track, name = self._builder, self._frequency, self._lanes.track, self._lanes.name
        category = self._lanes.category

        def lane() -> npt.NDArray[np.integer[Any]]:
            return tag >> 7 << 3 | tag & 7

        flags: Any = 0
        if has_flags:
            flags = Column.derived(count, lambda: np.where(tag & _AFTER_GAP, Flag.AFTER_GAP, 0).astype(np.uint32))
        first = builder.append(
            "instants",
            track_id=Column.derived(count, lambda: track[lane()]),
            ts=Column.array(tick) if frequency is None else Column.derived(count, lambda: ticks_to_ns(tick, frequency)),
            name=Column.derived(count, lambda: name[lane()], dictionary=builder.names),
            category=Column.derived(count, lambda: category[lane()], dictionary=builder.categories),
            quality="estimated",
            flags=flags,
        )
        modes = np.array(self._modes, np.uint8)
        if {1, 2} <= set(self._modes):
            is_flow = modes[tag >> 7] == _EXECUTION
            pc_rows, flow_rows = np.flatnonzero(~is_flow), np.flatnonzero(is_flow)
            self._add_pc_events(Column.array(first + pc_rows), times[pc_rows], value[pc_rows])
            self._add_flow(Column.array(first + flow_rows), times[flow_rows], value[flow_rows], tag[flow_rows])
        elif _EXECUTION in self._modes:
            self._add_flow(_counting(first, count), times, value, tag)
        else:
            self._add_pc_events(_counting(first, count), times, value)

    def _add_pc_events(self, instant: Column, cycles: I64, value: U32) -> None:
        count = len(instant)
        if not count:
            return
        self._builder.append(
            "aie_pc_events",
            instant_id=instant,
            pc=Column.derived(count, lambda: EVENT_PC["pc"].of(value).astype(np.int32)),
            cycles=Column.array(cycles),
            mask=Column.derived(count, lambda: EVENT_PC["mask"].of(value).astype(np.uint8)),
        )

    def _add_flow(self, instant: Column, times: I64, value: U32, tag: U32) -> None:
        count = len(instant)
        if not count:
            return
        kinds = self._builder.dictionary("aie_program_flow", "kind")
        codes = kinds.codes(FLOW_KINDS)
        kind = (tag & 7).astype(np.uint8)
        loop = MODE2["loop"]
        has_pc, is_loop = kind <= _LAST_WITH_PC, kind == _LOOP
        self._builder.append(
            "aie_program_flow",
            instant_id=instant,
            kind=Column.derived(count, lambda: codes[kind], dictionary=kinds),
            pc=Column.derived(count, lambda: np.where(has_pc, value, 0).astype(np.int32), valid=has_pc),
            count=Column.array(times),
            trips=Column.derived(
                count, lambda: np.where(is_loop, loop["count"].of(value), 0).astype(np.int64), valid=is_loop
            ),
            is_wrapped=Column.derived(count, lambda: is_loop & (loop["is_wrapped"].of(value) != 0), valid=is_loop),
        )

    # --- recordings and their tracks --------------------------------------------------------------------------

    def _take(self, noted: list[tuple[Shard, I64]]) -> None:
        """Take what the core noted, and make the tracks that it needs, in the order of the dump."""
        made = [(row[_OFFSET], number, row) for number, (_, events) in enumerate(noted) for row in _tracks_of(events)]
        for _, number, row in sorted(made, key=itemgetter(0, 1)):
            shard = noted[number][0]
            if row[_WHAT] == _SEGMENT:
                shard.segments = np.append(shard.segments, len(self._groups))
                self._add_segment(row[_DETAIL] >> 8, row[_DETAIL] >> 1 & 3)
            else:
                self._add_lane(int(shard.segments[row[_OF]]), row[_VALUE])
        for shard, events in noted:
            if len(events):
                kept = events[events[:, _WHAT] != _SLOT]
                kept[:, _OF] = shard.segments[kept[:, _OF]]
                self._noted.append(kept)
                gaps = kept[_is_gap(kept)]
                self._derived.add_gaps(gaps[:, (_OF, _TICK)].tolist())
                self._add_gaps(gaps)

    def _add_segment(self, source: int, mode: int) -> None:
        """Make the group of a recording, and lanes for the slots that are known to watch something."""
        header = HEADER.decode(self._scanner.headers[source])
        packet_type, col, row = header["type"], header["column"], header["row"]
        module = module_name(packet_type)
        ordinal = self._ordinals[source] = self._ordinals.get(source, 0) + 1
        name = f"{module} ({col - self._colshift}, {row})"
        if self._names.setdefault(name, source) != source:
            name += f" id {header['id']}"
        if ordinal > 1:
            name += f" #{ordinal}"
        group = self._builder.track(
            name,
            kind="group",
            role="tile",
            input_id=self._input,
            clock_id=self._clock,
            sort_key=((col << 5 | row) << 3 | packet_type) << 32 | header["id"] << 24 | ordinal,
        )
        segment = len(self._groups)
        self._groups.append(group)
        self._modes.append(mode)
        self._traces.append(self._add_track("trace", "trace", group, config.SLOTS))
        design_col = col - self._colshift
        slots = self._config.slot_names(module, design_col, row) if module in MODULES else ("",) * config.SLOTS
        self._slots.append(slots)
        self._lanes.reserve(config.SLOTS * len(self._groups))
        code = self._builder.categories.code(module)
        self._lanes.category[config.SLOTS * segment : config.SLOTS * len(self._groups)] = code
        if mode == _EXECUTION:
            lanes = slice(config.SLOTS * segment, config.SLOTS * segment + len(FLOW_KINDS))
            self._lanes.track[lanes] = self._add_track("flow", "flow", group, 0)
            self._lanes.name[lanes] = self._builder.names.codes(kind.replace("_", " ") for kind in FLOW_KINDS)
        else:
            for slot, watched in enumerate(slots):
                if watched:
                    self._add_lane(segment, slot)
        place = (module, design_col, row)
        if place not in self._config.units:
            if place in self._config.contradictions:
                self._builder.add_stat("aie_contradictory_config", track_id=group, input_id=self._input)
            elif self._config.places:
                self._builder.add_stat("aie_unknown_tile", track_id=group, input_id=self._input)
        self._derived.add_recording(place, mode, group)

    def _add_lane(self, segment: int, slot: int) -> None:
        lane = config.SLOTS * segment + slot
        if self._lanes.track[lane] >= 0:
            return
        slots = self._slots[segment]
        name = slots[slot] or f"slot {slot}"
        if slots[slot] in slots[:slot]:
            name += f" (slot {slot})" if slots[slot] else ""
        self._lanes.track[lane] = self._add_track(name, "slot", self._groups[segment], slot)
        self._lanes.name[lane] = self._builder.names.code(name)

    def _add_track(self, name: str, role: str, group: int, sort_key: int) -> int:
        return self._builder.track(
            name,
            kind="lane",
            role=role,
            parent=group,
            input_id=self._input,
            clock_id=self._clock,
            sort_key=sort_key,
        )

    # --- the end ----------------------------------------------------------------------------------------------

    def _report(self) -> None:
        segments = np.empty((len(self._groups), core.AIE_SEGMENT_COLUMNS), np.int64)
        for shard in self._shards:
            mine = np.empty((shard.timeline.segment_count, core.AIE_SEGMENT_COLUMNS), np.int64)
            shard.timeline.segments(mine)
            segments[shard.segments] = mine
        columns = dict(zip(_SEGMENT_COLUMNS, segments.T, strict=False))
        notes = segments[:, len(_SEGMENT_COLUMNS) :].reshape(len(segments), len(schema.SEGMENT_STATS), 2)
        events = np.concatenate(self._noted) if self._noted else np.empty((0, core.AIE_EVENT_COLUMNS), np.int64)
        groups = np.array(self._groups, np.int64)
        self._add_instants(events, columns)
        self._add_other_modes(columns, groups)
        self._add_coverage(events, columns, groups)
        self._add_segments(columns, notes, groups)
        self._add_stats(events, columns, notes)
        self._derived.finish(self._groups, self._lanes.track, columns, has_stop=columns["ending"] == _STOP)
        self._account()

    def _ts(self, ticks: I64) -> I64:
        return ticks if self._frequency is None else ticks_to_ns(ticks, self._frequency)

    def _add_instants(self, events: I64, columns: Mapping[str, I64]) -> None:
        """Start, restart and Stop, on the tile's lane ``trace``."""
        what, detail = events[:, _WHAT], events[:, _DETAIL]
        is_stop = (what == _END) & (detail == _STOP)
        is_start = what == _SEGMENT
        is_restart = (what == _RESTART) | (is_start & (detail & 1 == 1))
        chosen = is_stop | is_start | is_restart
        if not chosen.any():
            return
        is_stop, is_restart, rows = is_stop[chosen], is_restart[chosen], events[chosen]
        segment, ticks = rows[:, _OF], np.ascontiguousarray(rows[:, _TICK])
        names = self._builder.names.codes(("Start", "Restart", "Stop"))
        exact, estimated, inferred = self._builder.dictionary("instants", "quality").codes(schema.QUALITIES)
        mode = columns["mode"][segment]
        is_exact = ((columns["is_exact"][segment] == 1) & (mode == 0)) | ~(is_stop | is_restart)
        self._builder.append(
            "instants",
            track_id=np.array(self._traces, np.int64)[segment],
            ts=self._ts(ticks),
            ts_ticks=ticks,
            ts_ticks_valid=(mode == 0) | ~(is_stop | (is_restart & (mode == _EXECUTION))),
            name=names[np.where(is_stop, 2, is_restart.astype(np.int64))],
            category="trace",
            quality=np.where(
                is_exact, exact, np.where(is_restart | (columns["restarts"][segment] > 0), inferred, estimated)
            ).astype(np.int32),
            flags=np.where(is_restart, np.uint32(Flag.AFTER_GAP), np.uint32(0)),
        )

    def _add_gaps(self, gaps: I64) -> None:
        """Add gaps as they are noted; they go out no later than what follows them.

        They lie on the tile's group, as they concern all its lanes.
        """
        if not len(gaps):
            return
        begin, end = self._ts(gaps[:, _TICK]), self._ts(gaps[:, _VALUE])
        lost = gaps[:, _LOST]
        self._builder.append(
            "gaps",
            track_id=np.array(self._groups, np.int64)[gaps[:, _OF]],
            ts=begin,
            dur=end - begin,
            dur_valid=gaps[:, _WHAT] == _GAP,
            cause=self._builder.dictionary("gaps", "cause").codes(schema.CAUSES)[gaps[:, _DETAIL]],
            lost_count=lost,
            lost_count_valid=lost > 0,
            input_id=self._input,
            first_offset=gaps[:, _OFFSET],
        )

    def _add_other_modes(self, columns: Mapping[str, I64], groups: I64) -> None:
        """A recording in a mode that nobody knows is one gap."""
        others = np.flatnonzero(columns["mode"] == _RESERVED)
        if len(others):
            self._builder.append(
                "gaps",
                track_id=groups[others],
                ts=0,
                dur=None,
                cause=_OTHER_MODE,
                lost_count=None,
                input_id=self._input,
                first_offset=columns["offset"][others],
            )

    def _add_coverage(self, events: I64, columns: Mapping[str, I64], groups: I64) -> None:
        """From Start to Stop, or to the last known cycle, without the gaps; only mode 0 tells of every cycle."""
        gaps = events[_is_gap(events)]
        gaps = gaps[columns["mode"][gaps[:, _OF]] == 0]
        recorded = np.flatnonzero(columns["mode"] == 0)
        # In order of recording and time: what is known ends where a gap begins, and begins again where one ends.
        segment = np.concatenate([recorded, gaps[:, _OF], gaps[:, _OF], recorded])
        tick = np.concatenate([columns["begin"][recorded], gaps[:, _TICK], gaps[:, _VALUE], columns["end"][recorded]])
        turn = np.concatenate(
            (
                np.full(len(recorded), -1),
                np.arange(len(gaps)) * 2,
                np.arange(len(gaps)) * 2 + 1,
                np.full(len(recorded), 2 * len(gaps)),
            )
        )
        order = np.lexsort((turn, segment))
        segment, tick = segment[order][::2], self._ts(tick[order])
        ts, dur = tick[::2], tick[1::2] - tick[::2]
        keep = dur > 0
        if keep.any():
            self._builder.append("coverage", track_id=groups[segment[keep]], ts=ts[keep], dur=dur[keep])

    def _add_segments(self, columns: Mapping[str, I64], notes: I64, groups: I64) -> None:
        if not len(groups):
            return
        builder = self._builder
        headers = np.array(self._scanner.headers, np.uint32)[columns["source"]]
        packet_type = HEADER["type"].of(headers)
        modules = [module_name(number) for number in packet_type.tolist()]
        start_lost = [spec.name for spec in schema.SEGMENT_STATS].index("aie_missing_start")
        builder.append(
            "aie_segments",
            track_id=groups,
            module=modules,
            col=HEADER["column"].of(headers),
            row=HEADER["row"].of(headers),
            packet_type=packet_type,
            packet_id=HEADER["id"].of(headers),
            ordinal=columns["ordinal"],
            mode=columns["mode"],
            start_timer=columns["timer"],
            start_timer_valid=columns["mode"] < _EXECUTION,
            start_pc=columns["timer"],
            start_pc_valid=columns["mode"] == _EXECUTION,
            start_offset=columns["offset"],
            has_start=notes[:, start_lost, 0] == 0,
            has_stop=columns["ending"] == _STOP,
            ending=builder.dictionary("aie_segments", "ending").codes(schema.ENDINGS)[columns["ending"]],
            cycles=columns["end"],
            cycles_valid=columns["mode"] == 0,
            is_exact=(columns["is_exact"] == 1) & (columns["mode"] != _RESERVED),
            packets=columns["packets"],
            frames=columns["frames"],
            restarts=columns["restarts"],
        )

    def _add_stats(self, events: I64, columns: Mapping[str, I64], notes: I64) -> None:
        for spec, (count, first) in zip(schema.SCAN_STATS, self._scanner.tallies, strict=True):
            self._stat(spec.name, count, first)
        over_limit = [shard.timeline.over_limit for shard in self._shards]
        first = min((first for count, first in over_limit if count), default=0)
        self._stat("aie_segment_limit", sum(count for count, _ in over_limit), first)
        if self._text is not None:
            self._stat("aie_bad_line", *self._text.bad_lines)
        for segment, note in np.argwhere(notes[:, :, 0]).tolist():
            count, first = notes[segment, note].tolist()
            name = schema.SEGMENT_STATS[note].name
            self._stat(name, count, first, segment)
            if name in ("aie_restart", "aie_missing_start") and columns["mode"][segment] in (0, _EXECUTION):
                # No capture that we know holds a restart of another mode than 1.
                self._stat("unverified_encoding", count, first, segment)
        ended = events[(events[:, _WHAT] == _END) & (events[:, _DETAIL] != _STOP)]
        for row in ended.tolist():
            segment = row[_OF]
            if columns["mode"][segment] != _RESERVED:
                self._stat("aie_missing_stop", 1, None, segment)
            if row[_DETAIL] == _RESTARTED:
                self._stat("aie_overlapping_segment", 1, row[_OFFSET], segment)

    def _stat(self, name: str, count: int, first: int | None, segment: int | None = None) -> None:
        group = None if segment is None else self._groups[segment]
        self._builder.add_stat(name, count, track_id=group, input_id=self._input, first_offset=first)

    def _account(self) -> None:
        """Bytes, then words: each word of a line or of four bytes is decoded, padding or lost."""
        builder = self._builder
        decoded, padding, lost = map(sum, zip(*(shard.timeline.words for shard in self._shards), strict=True))
        words = self._scanner.words
        padding += words[ZEROS_RUN]
        lost += words[LOST_RUN] + words[ORPHAN_RUN] + words[INCOMPLETE_RUN]
        unit_bytes, bytes_decoded, bytes_filler, bytes_lost = 4, self._fed - self._fed % 4, 0, self._fed % 4
        if self._text is None:
            self._stat("truncated", int(bytes_lost > 0), bytes_decoded)
        else:
            unit_bytes = 8
            bytes_decoded, bytes_filler, bytes_lost = self._text.bytes
            # A placeholder stood for each line that is no word; wherever it was met, it counted as lost.
            lost -= self._text.bad_lines[0]
        builder.add_accounting(
            input_id=self._input,
            layer=0,
            unit="byte",
            unit_bytes=1,
            total=self._fed,
            decoded=bytes_decoded,
            padding=bytes_filler,
            lost=bytes_lost,
        )
        builder.add_accounting(
            input_id=self._input,
            layer=1,
            unit="word",
            unit_bytes=unit_bytes,
            total=decoded + padding + lost,
            decoded=decoded,
            padding=padding,
            lost=lost,
        )


def _tracks_of(events: I64) -> list[list[int]]:
    """Return the rows that begin recordings, or assert a slot for the first time."""
    rows: list[list[int]] = events[events[:, _WHAT] <= _SLOT].tolist()
    return rows


def _is_gap(events: I64) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (events[:, _WHAT] == _GAP) | (events[:, _WHAT] == _OPEN_GAP)
    return found


def _counting(first: int, count: int) -> Column:
    return Column.derived(count, lambda: np.arange(first, first + count, dtype=np.int64))


def _hertz(value: Any) -> Fraction | None:
    if value is None:
        return None
    try:
        frequency = Fraction(repr(value) if isinstance(value, float) else value)
    except (ValueError, TypeError, ZeroDivisionError):
        raise UsageError(f"frequency {value!r} is no number of Hz", hint="say --frequency 1.8e9") from None
    if not _HERTZ[0] <= frequency <= _HERTZ[1]:
        raise UsageError(f"no AI engine runs at {value} Hz", hint="say --frequency 1.8e9")
    return frequency


def _register_records(builder: TraceBuilder, capture: Capture) -> None:
    from lanescope.devices.aie.formats.raw_frames import frames_of_file

    path = capture.main.path
    builder.records("aie.frame", lambda: frames_of_file(path))

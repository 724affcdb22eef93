"""Trace dumps -> Trace batches.

The native core does the work: hex text to words, words to packets, packets to slices with the state of every source.
This module hands it blocks and arrays; ``emit`` turns what it wrote and noted into tracks and rows. Nothing that the
core decides depends on how the input was cut.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.aie import config, schema
from lanescope.devices.aie.emit.recordings import Noted, Recordings
from lanescope.devices.aie.emit.rows import RowEmitter, ShardRows, register_records
from lanescope.devices.aie.emit.runs import Runs
from lanescope.devices.aie.emit.summary import STOP, Summary
from lanescope.devices.aie.emit.tracks import TileTracks
from lanescope.devices.aie.formats.detect import BINARY, PAYLOAD, TEXT, is_text
from lanescope.devices.aie.interpret import notes, stream_place
from lanescope.devices.aie.interpret.column_shift import column_shift, has_shared_tiles
from lanescope.devices.aie.interpret.derived_state import DerivedState
from lanescope.devices.aie.interpret.shard_state import Decoding, Shard, Work
from lanescope.errors import UsageError
from lanescope.trace import TimeBase, TraceBuilder

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor
    from fractions import Fraction

    from lanescope.source import Capture, Source
    from lanescope.trace import Trace
    from lanescope.trace.streams import TracePart

I64 = npt.NDArray[np.int64]
U32 = npt.NDArray[np.uint32]
U8 = npt.NDArray[np.uint8]

BLOCK_BYTES = 1 << 20
#: Slices that are collected before they go out as a batch. What a larger one takes goes back to the system, which
#: clears it anew.
BATCH_ROWS = 1 << 19
#: Sources are dealt out to so many shards, which may be decoded side by side.
SHARDS = core.AIE_PARTS
#: Packets of a block that are worth several threads.
_LARGE_BLOCK = 1 << 12
#: So much is decoded by one thread if what runs several has to be imported first: that takes as long.
_ALONE_BYTES = 4 << 20
_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
#: Entries of a scan: more than the packets of a block.
_ENTRIES = 1 << 16
#: No AI engine runs slower or faster.
_HERTZ = (1_000, 1_000_000_000_000)
_TICK_LIMIT = 1 << 60


class AieDecoder:
    """Decodes one dump.

    Args:
        capture: the capture; ``NAME.config.json`` next to it is used unless a configuration is given.
        options: ``config``, ``mlir``, ``sequence``, ``column_shift`` and ``frequency``; any may be None.
        block_bytes: how much input is decoded at a time.

    Raises:
        UsageError: the configuration cannot be read, or no AI engine has that frequency.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any], *, block_bytes: int = BLOCK_BYTES) -> None:
        self._block_bytes = block_bytes
        self._capture = capture.name
        self._config, config_source = config.find(capture, options)
        given = options.get("frequency")
        self._frequency = _hertz(self._config.frequency if given is None else given)
        shift, fitting = column_shift(capture.main, self._config, options.get("column_shift"))
        self._text = core.AieText() if is_text(capture.main.head().data) else None
        self._header = stream_place.header_of(capture, options, self._config)
        self._unframed = np.empty(0, np.uint32), np.empty(0, np.int64)
        self._headers_added = 0
        self._read = 0
        self._word_count = 0

        self._builder = TraceBuilder(
            TimeBase(epoch_kind="first_event", time_unit="cycles" if self._frequency is None else "ns"),
            details=schema.TABLES,
            stats=schema.STATS,
        )
        self._input = self._builder.input(
            capture=capture.name,
            path=capture.main.path,
            size=capture.main.size,
            sha256=capture.main.content_hash,
            family="aie",
            format=PAYLOAD if self._header is not None else BINARY if self._text is None else TEXT,
            options={name: value for name, value in options.items() if value is not None},
        )
        if config_source is not None:
            self._add_part("config", config_source)
        for part in schema.PROGRAM_FILES:
            if options.get(part):
                self._add_part(part, capture.open_sidecar(part, options[part]))
        if fitting > 1:
            self._builder.add_stat("aie_ambiguous_config", fitting, input_id=self._input)
        unread = sum(self._config.unread.values())
        if unread:
            self._builder.add_stat("aie_unread_config", unread, input_id=self._input)
        if apart := len(self._config.reset_apart):
            self._builder.add_stat("aie_timer_reset_apart", apart, input_id=self._input)
        # Without a device: each run counts from its own start, so no two captures share this clock.
        self._clock = self._builder.clock(name="module clock", device="", frequency=self._frequency, counter_bits=56)
        # Units start on one broadcast and count from there; where that lies on another clock is not recorded.
        self._builder.anchor(clock_id=self._clock, ticks=0, ts=0)

        self._helpers: ThreadPoolExecutor | None = None
        self._work = Work([])
        self._waiting = bytearray()
        self._blocks = [np.empty(0, np.uint32) for _ in range(2)]
        self._words = np.empty(0, np.uint32)  # not yet consumed: packets behind them decide what they are
        self._offsets = np.empty(0, np.int64)  # where those lie, in text
        self._base = 0  # where the first of them lies, in binary
        self._fed = 0
        self._noted: list[I64] = []
        self._tracks = TileTracks(
            self._builder,
            shift,
            input_id=self._input,
            clock_id=self._clock,
            has_shared_tiles=self._header is None and has_shared_tiles(capture.main),
        )
        self._runs = Runs(self._config, self._tracks, self._tick_limit())
        if len(self._runs.cuts) and self._header is not None:
            raise UsageError(
                f"{capture.main.path}: packets without headers cannot be divided into slices",
                hint="record with keep_pkt_header on the trace route",
            )
        self._scanner = core.AieScanner(self._runs.cuts)
        self._shards = [Shard(number, core.AieTimeline(self._tick_limit())) for number in range(SHARDS)]
        self._rows = RowEmitter(self._builder, self._tracks, self._frequency)
        self._summary = Summary(self._builder, self._tracks, self._input, self._rows.to_ts)
        self._derived = DerivedState(self._builder, self._tracks, self._input, self._rows.to_ts)
        self._recordings = Recordings(self._scanner, self._runs, self._tracks, self._derived)
        self._most_rows = core.AieTimeline.SLICE_ROOM + 4 * capture.main.size  # that anything but Repeats may bring
        self._entries = np.empty((_ENTRIES, 4), np.int32)
        # Those of one block are decoded while the next ones are dealt out.
        self._dealt = [np.empty((SHARDS, _ENTRIES, 4), np.int32) for _ in range(2)]
        register_records(self._builder, capture, self._header)

    def _add_part(self, part: str, source: Source) -> None:
        """Record a sidecar file, which is read completely."""
        of_part = self._builder.input(
            capture=self._capture,
            role=part,
            path=source.path,
            size=source.size,
            sha256=source.content_hash,
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

    def limit(self, part: TracePart) -> None:
        """Make no rows of slices outside of a part of the timeline."""
        self._rows.part = part

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
                if not self._has_room():
                    batches.append(self._batch(self._make_room()))
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
            self._offsets = np.concatenate([self._offsets, offsets]) if self._header is None else self._offsets
        if self._header is not None:
            if self._text is None:
                offsets = self._read + 4 * np.arange(len(words), dtype=np.int64)
                self._read += 4 * len(words)
            words, offsets = self._add_headers(words, offsets, self._header, is_last=is_last)
            self._offsets = np.concatenate([self._offsets, offsets])
        self._word_count += len(words)
        words = self._prepend_pending(words)
        batches, done = self._decode_words(words, is_last=is_last)
        self._words = words[done:].copy()
        self._offsets = self._offsets[done:]
        self._base += 4 * done
        self._waiting = bytearray(data[len(data) - rest :])
        return batches

    def _add_headers(self, words: U32, offsets: I64, header: int, *, is_last: bool) -> tuple[U32, I64]:
        """Return whole packets of a stream without headers, and at the end the rest; what is left waits."""
        from lanescope.devices.aie.formats import payload

        words = np.concatenate([self._unframed[0], words])
        offsets = np.concatenate([self._unframed[1], offsets])
        whole = len(words) if is_last else len(words) // payload.GROUP * payload.GROUP
        self._unframed = words[whole:], offsets[whole:]
        words, offsets, added = payload.with_headers(words[:whole], offsets[:whole], header)
        self._headers_added += added
        return words, offsets

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
            noted, left = self._end()
            if left:
                self._take(noted)
                batches += [*self._start(left, is_large=True), *self._finalize()]
                noted = []
            busy = self._busy()
            todo = [
                Decoding(shard, rest, entries[:count], base, offsets)
                for shard, entries, count in zip(busy, dealt, counts, strict=False)
                if count
            ]
            batches += self._start(todo, is_large=count >= _LARGE_BLOCK, noted=noted)
            done += taken
        if done:  # by now nothing but this block is read
            self._blocks.reverse()
        return batches, done

    def _start(self, todo: list[Decoding], *, is_large: bool, noted: Noted = ()) -> list[Trace]:
        """Begin to decode what a block holds, if it is worth the help of others; return a batch if one was full.

        What was noted of the block before is taken meanwhile, unless it belongs to the batch.
        """
        is_full = not self._has_room()
        if is_full:
            self._take(noted)
        full = self._make_room() if is_full else None
        self._work = Work(todo)
        is_ready = "concurrent.futures.thread" in sys.modules or self._fed >= _ALONE_BYTES
        if is_large and len(todo) > 1 and _CORES > 1 and is_ready:
            if self._helpers is None:
                from concurrent.futures import ThreadPoolExecutor

                self._helpers = ThreadPoolExecutor(min(_CORES, SHARDS) - 1)
            self._work.begin(self._helpers, _CORES - 1)
        if full is None:
            self._take(noted)
            return []
        return [self._batch(full)]

    def _end(self) -> tuple[Noted, list[Decoding]]:
        """End what was begun; return what the core noted, and what had no room."""
        todo = self._work.decodings
        noted = self._work.finish()
        self._work = Work([])
        return noted, [decoding.rest() for decoding in todo if decoding.left]

    def _finalize(self) -> list[Trace]:
        """End what was begun, and see to what had no room; return the batches that were full."""
        batches: list[Trace] = []
        while self._work.decodings:
            noted, left = self._end()
            self._take(noted)
            if left:
                batches += self._start(left, is_large=True)
        return batches

    # --- slices -----------------------------------------------------------------------------------------------

    def _busy(self) -> list[Shard]:
        """Return the shards that have sources, and somewhere to write to."""
        busy = self._shards[: self._scanner.source_count]
        for shard in busy:
            if not shard.slices.columns:
                self._reserve(shard, len(busy))
        return busy

    def _reserve(self, shard: Shard, sharing: int) -> None:
        """Reserve new arrays for one of so many shards."""
        shard.reserve(core.AieTimeline.SLICE_ROOM + min(BATCH_ROWS // sharing, self._most_rows))

    def _has_room(self) -> bool:
        """Return whether every shard can write what the next block is likely to bring."""
        busy = self._busy()
        arenas = [arena for shard in busy for arena in (shard.slices, shard.points)]
        rows = sum(arena.used + arena.recent for arena in arenas)
        has_room = rows <= BATCH_ROWS and all(shard.has_room for shard in busy)
        for arena in arenas:
            arena.recent = 0
        return has_room

    def _make_room(self) -> list[ShardRows]:
        """See to it that every shard can write; return the rows so far, which had to make room."""
        busy = self._busy()
        taken = self._taken()
        for shard in busy:
            self._reserve(shard, len(busy))
        return taken

    def _taken(self) -> list[ShardRows]:
        """Take what the shards wrote."""
        return [
            ShardRows(
                slices=shard.slices.take() if shard.slices.used else None,
                points=shard.points.take() if shard.points.used else None,
                segments=shard.segments.values,
                may_have_flags=shard.timeline.has_flags,
            )
            for shard in self._shards
        ]

    def _batch(self, taken: list[ShardRows]) -> Trace:
        self._flush(taken)
        return self._builder.batch()

    def _flush(self, taken: list[ShardRows]) -> None:
        """Hand slices and points over. Most columns are made when somebody reads them."""
        for rows in taken:
            if rows.slices is not None:
                begin, duration, tag = rows.slices
                self._rows.add_slices(begin, duration, tag, rows)
                if self._derived.needs_slices:
                    self._derived.take(begin, duration, rows.tags(tag))
            if rows.points is not None:
                tick, times, value, tag = rows.points
                self._rows.add_points(tick, times, value, rows.tags(tag), has_flags=rows.has_flags(tag))
        self._derived.settle()

    def _take(self, noted: Noted) -> None:
        """Take what the core noted: recordings with their tracks, then gaps."""
        self._recordings.take(noted)
        for shard, events in noted:
            if len(events):
                kept = events[events[:, notes.KIND] != notes.SLOT]
                kept[:, notes.RECORDING] = shard.segments.values[kept[:, notes.RECORDING]]
                self._noted.append(kept)
                gaps = kept[notes.is_gap(kept)]
                self._derived.add_gaps(gaps[:, (notes.RECORDING, notes.TICK)].tolist())
                self._summary.add_gaps(gaps)

    # --- the end ----------------------------------------------------------------------------------------------

    def _report(self) -> None:
        tracks, runs, summary = self._tracks, self._runs, self._summary
        segments = np.empty((len(tracks.members), core.AIE_SEGMENT_COLUMNS), np.int64)
        for shard in self._shards:
            local = np.empty((shard.timeline.segment_count, core.AIE_SEGMENT_COLUMNS), np.int64)
            shard.timeline.segments(local)
            local[:, 0] = local[:, 0] * SHARDS + shard.number
            segments[shard.segments.values] = local
        columns = dict(zip(notes.SEGMENT_COLUMNS, segments.T, strict=False))
        counts = segments[:, len(notes.SEGMENT_COLUMNS) :].reshape(len(segments), len(schema.SEGMENT_STATS), 2)
        events = np.concatenate(self._noted) if self._noted else np.empty((0, core.AIE_EVENT_COLUMNS), np.int64)
        groups = tracks.groups
        summary.add_instants(events, columns)
        summary.add_other_modes(columns, groups)
        summary.add_coverage(events, columns, groups)
        placed = {"run": runs.numbers, "distance": runs.distances.values}
        summary.add_segments(columns, counts, groups, self._scanner.headers, placed)
        runs.finish(self._builder, self._input, self._word_count, is_whole=self._header is None)
        over_limit = [shard.timeline.over_limit for shard in self._shards]
        summary.add_input_stats(self._scanner.tallies, over_limit, self._text)
        summary.add_segment_stats(events, columns, counts)
        units = {number: (source.known, tracks.place_of(source.header)) for number, source in runs.sources.items()}
        starts = runs.parts, runs.ordinals.values
        self._derived.finish(columns, units, has_stop=columns["ending"] == STOP, runs=starts)
        shard_words = [shard.timeline.words for shard in self._shards]
        summary.add_accounting(self._fed, shard_words, self._scanner.words, self._text, self._headers_added)


def _hertz(value: Any) -> Fraction | None:
    if value is None:
        return None
    from fractions import Fraction

    try:
        frequency = Fraction(repr(value) if isinstance(value, float) else value)
    except (ValueError, TypeError, ZeroDivisionError):
        raise UsageError(f"invalid value {value!r} for --frequency: expected a frequency in Hz, e.g. 1.25e9") from None
    if not _HERTZ[0] <= frequency <= _HERTZ[1]:
        raise UsageError(f"invalid value {value} for --frequency: must be {_HERTZ[0]:,} to {_HERTZ[1]:,} Hz")
    return frequency

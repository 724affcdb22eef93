"""Bytes -> words -> trace, for every layout of in-kernel probes.

A buffer is small beside the memory of its host and nothing in it can be placed before all of it is known (stride, turn
of the counter, resolution), so the decoder keeps the words and gives one batch at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda import names, npy
from lanescope.devices.cuda.lanes import I64, STEP_BACK, Decoded, Rows
from lanescope.devices.cuda.layout import KINDS, STAMP_BITS, STAMP_WRAP, TIRX_RECORD, WORD_BYTES
from lanescope.devices.cuda.schema import BUFFERS, LANES, MARKS, RECORDS, REGIONS, STATS, TABLES
from lanescope.devices.cuda.tirx import TirxBuffer
from lanescope.errors import InputError, UsageError
from lanescope.source import Capture
from lanescope.trace import Column, Dictionary, Flag, Table, TimeBase, Trace, TraceBuilder

#: The stamps count nanoseconds.
FREQUENCY = 1_000_000_000
#: More steps back or stray ends than this share of a lane's pairs look like a second writer; a single one does not.
TWO_WRITERS_SHARE = 0.01
#: How much larger than the present one a buffer is suggested to be when lanes were full.
_MORE_ROOM = 1.5

REGION, MARK, UNMATCHED = "region", "mark", "unmatched_end"

#: Flags of slices that are counted as a stat each.
_FLAG_STATS = {
    Flag.OPEN_END: "cuda_open_region",
    Flag.NEGATIVE: "cuda_negative",
    Flag.CROSSES: "cuda_crossing",
    Flag.BELOW_RESOLUTION: "cuda_below_resolution",
}


class CudaDecoder:
    """Decodes one probe buffer.

    Args:
        capture: the capture; names of events are taken from beside it when no others are given.
        options: as ``family.Cuda.options`` declares them.

    Raises:
        UsageError: an option's value is none.
        InputError: the given file of names cannot be read.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture = capture
        self._options = dict(options)
        self._check_options()
        self._names = names.given(capture, options["events"], options["groups"])
        self._data = np.empty(0, np.uint8)
        self._size = 0

    def _check_options(self) -> None:
        for name in ("stride", "anchor", "launch_ns"):
            value = self._options[name]
            if value is not None and (not isinstance(value, int) or not 0 <= value < 1 << 62):
                raise UsageError(f"option {name}: {value!r} is not usable", hint="give a number that is not negative")
        if self._options["multi"] not in ("split", "ignore"):
            raise UsageError(f"option multi: {self._options['multi']!r} is not usable", hint="say split or ignore")

    def feed(self, data: memoryview) -> list[Trace]:
        """Keep the bytes."""
        end = self._size + len(data)
        whole = self._capture.main.size
        if len(data) == end == whole:
            self._data = np.frombuffer(data, np.uint8)
        else:
            if end > len(self._data):
                grown = np.empty(max(end, whole, 2 * len(self._data)), np.uint8)
                grown[: self._size] = self._data[: self._size]
                self._data = grown
            self._data[self._size : end] = np.frombuffer(data, np.uint8)
        self._size = end
        return []

    def finish(self) -> list[Trace]:
        """Decode the buffer.

        Raises:
            InputError: the file is no array of 64-bit words, or its first word is no header that a kernel writes.
            UsageError: the given stride is too small.
        """
        from lanescope.devices.cuda import content, formats, layout
        from lanescope.devices.cuda.make import Maker

        data = self._data[: self._size]
        found = content.content_of(data)
        name = self._options["layout"] or formats.layout_of(found)
        if name != layout.TIRX_V1 or self._options.get("_general"):
            buffer = formats.read(found, {**self._options, "layout": name})
            return list(Maker(self._capture, self._options, self._names, buffer, found).batches())
        words = words_of(data)
        tirx = TirxBuffer.read(words.words, stride=self._options["stride"])
        return [_Maker(self._capture, self._options, self._names, tirx, words).make()]


@dataclass(frozen=True, slots=True)
class Content:
    """The words of a file.

    Attributes:
        words: uint64 [n]; what is behind the last whole word is left out.
        before: bytes in front of them.
        behind: bytes behind them.
        cut: words that the file's header promises and that are not there.
    """

    words: npt.NDArray[np.uint64]
    before: int
    behind: int
    cut: int

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.before + len(self.words) * WORD_BYTES + self.behind


def words_of(data: npt.NDArray[np.uint8]) -> Content:
    """Find the words of a file; they are not copied, unless they are not aligned.

    Args:
        data: uint8 [n], an ``.npy`` file of uint64, or nothing but little-endian words.

    Raises:
        InputError: an ``.npy`` file of another type.
    """
    header = npy.parse(data[: npy.MAX_HEADER + 12].tobytes())
    before = cut = 0
    count = len(data) // WORD_BYTES
    if header is not None:
        if header.descr != "<u8":
            raise InputError(
                f"the .npy file holds {header.descr!r}, a probe buffer is '<u8'",
                hint="save it as it is on the device: numpy.save(path, buffer.view('<u8'))",
            )
        before = header.size
        count = min(header.count, (len(data) - before) // WORD_BYTES)
        cut = header.count - count
    body = data[before : before + count * WORD_BYTES]
    if body.ctypes.data % WORD_BYTES:
        body = body.copy()
    return Content(body.view("<u8"), before, len(data) - before - count * WORD_BYTES, cut)


class _Maker:
    """Makes the trace of one buffer."""

    def __init__(
        self,
        capture: Capture,
        options: dict[str, Any],
        given: names.Given,
        buffer: TirxBuffer,
        content: Content,
    ) -> None:
        self.capture, self.options, self.names = capture, options, given
        self.buffer, self.content, self.before = buffer, content, content.before
        self.geometry = buffer.geometry
        self.builder = TraceBuilder(TimeBase(epoch_kind="first_event"), details=TABLES, stats=STATS)

    def make(self) -> Trace:
        """Return the trace."""
        decoded = self.buffer.decode(split=self.options["multi"] == "split", step_back=STEP_BACK)
        self.input_id = self._inputs()  # asks for the digest of the file, which is made meanwhile
        certain = decoded.align(self.options["anchor"])
        self.t0 = decoded.earliest
        self.relaunched = bool((decoded.summary["launches"] > 1).any())
        self.track_of = self._tracks(decoded)
        self._slices(decoded, certain=certain)
        self._instants(decoded, certain=certain)
        self._gaps(decoded)
        self._coverage(decoded)
        self._lane_details(decoded)
        self._clock_stats(decoded, certain=certain)
        self._account(decoded)
        buffer, before = self.buffer, self.before
        self.builder.records(RECORDS.name, lambda: records_table(buffer, before))
        return self.builder.finish()

    # --- inputs and tracks --------------------------------------------------------------------------------------

    def _inputs(self) -> int:
        main = self.capture.main
        input_id = self.builder.input(
            capture=self.capture.name,
            path=main.path,
            size=self.content.size,
            sha256=main.sha256,
            family="cuda",
            format=self.buffer.format,
            options={name: value for name, value in self.options.items() if value is not None},
        )
        beside = self.capture.parts.get(names.PART)
        if beside is not None:
            part = self.builder.input(
                capture=self.capture.name,
                part=names.PART,
                path=beside.path,
                size=beside.size,
                sha256=beside.sha256,
                family="cuda",
                format="event-names",
            )
            lost = 0 if self.names.usable else beside.size
            self.builder.account(
                input_id=part,
                layer=0,
                unit="byte",
                unit_bytes=1,
                total=beside.size,
                decoded=beside.size - lost,
                lost=lost,
            )
            self.builder.stat("cuda_bad_names", int(not self.names.usable), input_id=part)
        return input_id

    def _tracks(self, decoded: Decoded) -> I64:
        """Add the tree of tracks; return each lane's track, int64 [lanes], -1 for lanes that nothing is known of."""
        clock = self.builder.clock(
            name=self.buffer.clock,
            device=(self.options["device"] or "GPU"),
            frequency=FREQUENCY,
            counter_bits=STAMP_BITS,
            tick_step=decoded.tick_step,
        )
        if self.options["anchor"] is not None:
            # Only the full counter is the same in two captures: 32 bits of it name a moment every 4.29 s.
            full = self.builder.clock(
                name="globaltimer", device=(self.options["device"] or "GPU"), frequency=FREQUENCY, counter_bits=64
            )
            self.builder.anchor(clock_id=full, ticks=self.t0, ts=0, error_ns=decoded.tick_step)
        device = self.builder.track((self.options["device"] or "GPU"), kind="group", role="device", input_id=self.input_id)
        track_of = np.full(self.geometry.lanes, -1, np.int64)
        known = (decoded.summary["records"] > 0) | (decoded.summary["missing"] > 0)
        block, parent = -1, device
        for lane in np.flatnonzero(known).tolist():
            if lane // self.geometry.num_groups != block:
                block = lane // self.geometry.num_groups
                parent = self.builder.track(
                    f"block {block}", kind="group", role="block", parent=device, input_id=self.input_id, sort_key=block
                )
            group = lane % self.geometry.num_groups
            track_of[lane] = self.builder.track(
                self.names.groups.get(group, f"group {group}"),
                kind="lane",
                role="group",
                parent=parent,
                input_id=self.input_id,
                discipline="nested",
                clock_id=clock,
                sort_key=group,
            )
        self._stat("cuda_empty_lane", int(np.count_nonzero(~known)))
        return track_of

    # --- rows ---------------------------------------------------------------------------------------------------

    def _slices(self, decoded: Decoded, *, certain: bool) -> None:
        rows, seen = decoded.slices, decoded.seen
        begin, dur, flags = rows["begin"], rows["dur"], rows["flags"]
        count = len(rows)
        if not count:
            return
        if not certain:
            flags |= np.uint32(Flag.EPOCH_AMBIGUOUS)
        valid = last_seen = is_open = end_valid = None
        quality: Any = "exact"
        if seen & (Flag.OPEN_END | Flag.NEGATIVE):
            is_open = (flags & np.uint32(Flag.OPEN_END)) != 0
            end_valid = ~is_open
            valid = end_valid & ((flags & np.uint32(Flag.NEGATIVE)) == 0)
            last_seen = np.where(is_open, begin - self.t0 + dur, 0)
            dur = np.where(valid, dur, 0)
        if seen & Flag.INFERRED_IDENTITY:
            qualities = self.builder.dictionary("slices", "quality")
            inferred = (flags & np.uint32(Flag.INFERRED_IDENTITY)) != 0
            quality = np.where(inferred, qualities.code("inferred"), qualities.code("exact")).astype(np.int32)
        length = Column.array(dur, valid=valid)
        t0, track_of = self.t0, self.track_of
        first = self.builder.append(
            "slices",
            track_id=Column.derived(count, lambda: rows.spread(track_of)),
            ts=Column.derived(count, lambda: begin - t0),
            dur=length,
            ts_ticks=Column.array(begin),
            dur_ticks=length,
            name=self._names(rows, "begin_index", "begin"),
            category=REGION,
            quality=quality,
            flags=flags if seen or not certain else 0,
            last_seen_ts=last_seen,
            last_seen_ts_valid=is_open,
        )
        for flag, stat in _FLAG_STATS.items():
            if seen & flag:
                self._stat_rows(stat, (flags & np.uint32(flag)) != 0, rows, "begin_index", "begin")
        slots_of, begin_index, end_index = self.buffer.slots_of, rows["begin_index"], rows["end_index"]

        def end_slots() -> I64:
            slots = slots_of(rows.lane, end_index)
            return slots if end_valid is None else np.where(end_valid, slots, 0)

        self.builder.append(
            REGIONS.name,
            slice_id=_counting(first, count),
            begin_slot=Column.derived(count, lambda: slots_of(rows.lane, begin_index)),
            end_slot=Column.derived(count, end_slots, valid=end_valid),
            **self._identity(rows),
        )

    def _instants(self, decoded: Decoded, *, certain: bool) -> None:
        rows = decoded.instants
        tick, index = rows["tick"], rows["index"]
        count = len(rows)
        if not count:
            return
        is_end = rows["is_end"] != 0
        marks, ends = self.builder.categories.code(MARK), self.builder.categories.code(UNMATCHED)
        slots_of = self.buffer.slots_of
        first = self.builder.append(
            "instants",
            track_id=rows.spread(self.track_of),
            ts=tick - self.t0,
            ts_ticks=tick,
            name=self._names(rows, "index", "tick", is_end),
            category=np.where(is_end, ends, marks).astype(np.int32),
            flags=rows["flags"] | np.uint32(0 if certain else Flag.EPOCH_AMBIGUOUS),
        )
        self._stat_rows("cuda_end_unmatched", is_end, rows, "index", "tick")
        self.builder.append(
            MARKS.name,
            instant_id=_counting(first, count),
            slot=Column.derived(count, lambda: slots_of(rows.lane, index)),
            **self._identity(rows),
        )

    def _identity(self, rows: Rows) -> dict[str, Any]:
        """Return the columns that say whose record a row is."""
        event, count, groups = rows["event"], len(rows), np.uint32(self.geometry.num_groups)
        return {
            "launch": rows["launch"] if self.relaunched else 0,
            "block": Column.derived(count, lambda: (rows.lane // groups).astype(np.int64)),
            "group": Column.derived(count, lambda: (rows.lane % groups).astype(np.int64)),
            "event_id": Column.derived(count, lambda: event.astype(np.int64)),
        }

    def _names(self, rows: Rows, index: str, tick: str, is_end: npt.NDArray[np.bool_] | None = None) -> Column:
        """Return the names of events as a column of codes; ends without begin are called ``end NAME?``."""
        event, known, dictionary = rows["event"], self.names.events, self.builder.names
        used = rows.events()
        code_of = np.zeros((2, 1 + max(used, default=0)), np.int32)
        ended = set() if is_end is None else set(rows.events(is_end))
        marked = set(used) if is_end is None else set(rows.events(~is_end))
        for number in used:
            name = (known or {}).get(number) or f"event_{number}"
            if number in marked:
                code_of[0, number] = dictionary.code(name)
            if number in ended:
                code_of[1, number] = dictionary.code(f"end {name}?")
        if known is not None:
            unknown = [number for number in used if number not in known]
            if unknown:
                self._stat_rows("cuda_unknown_event", np.isin(event, unknown), rows, index, tick)
        if is_end is None:
            return Column.derived(len(event), lambda: code_of[0, event], dictionary=dictionary)
        return Column.derived(len(event), lambda: code_of[is_end.astype(np.intp), event], dictionary=dictionary)

    def _gaps(self, decoded: Decoded) -> None:
        rows, summary = decoded.gaps, decoded.summary
        lane, index, dur = rows["lane"], rows["index"], rows["dur"]
        if len(lane):
            resumed = dur >= 0
            has_time = summary["records"][lane] > 0
            bad = self.builder.dictionary("gaps", "cause").code("bad_bytes")
            hole = self.builder.dictionary("gaps", "cause").code("hole")
            self.builder.append(
                "gaps",
                track_id=self.track_of[lane],
                ts=np.where(has_time, rows["tick"] - self.t0, 0),
                dur=dur,
                dur_valid=resumed,
                cause=np.where(rows["bad"] > 0, bad, hole).astype(np.int32),
                lost_count=rows["missing"],
                input_id=self.input_id,
                first_offset=self._offsets(lane, index),
            )
            empty = rows["missing"] > rows["bad"]
            if empty.any():
                at = int(empty.argmax())
                self._stat(
                    "cuda_hole",
                    int((rows["missing"] - rows["bad"]).sum()),
                    offset=int(self._offsets(lane[at : at + 1], index[at : at + 1])[0]),
                    ts=int(rows["tick"][at] - self.t0) if has_time[at] else None,
                )
        full = np.flatnonzero(summary["full"])
        if len(full):
            is_open = summary["open"][full]
            self.builder.append(
                "gaps",
                track_id=self.track_of[full],
                ts=summary["last"][full] - self.t0,
                cause="overrun",
                lost_count=is_open,
                lost_count_valid=is_open > 0,
                input_id=self.input_id,
            )
            first_ts = int(summary["last"][full[0]] - self.t0)
            self._stat("cuda_lane_full", len(full), ts=first_ts)
            self._stat("cuda_lost_at_least", int(is_open.sum()), ts=first_ts)

    def _coverage(self, decoded: Decoded) -> None:
        summary = decoded.summary
        used = np.flatnonzero(summary["records"])
        if len(used):
            self.builder.append(
                "coverage",
                track_id=self.track_of[used],
                ts=summary["min"][used] - self.t0,
                dur=summary["max"][used] - summary["min"][used],
            )

    def _lane_details(self, decoded: Decoded) -> None:
        summary, geometry, slots = decoded.summary, self.geometry, len(self.buffer.words)
        known = np.flatnonzero(self.track_of >= 0)
        has_time = summary["records"][known] > 0
        capacity = geometry.capacity(slots) if geometry.stride else None
        full = summary["full"].any()
        self.builder.append(
            BUFFERS.name,
            input_id=self.input_id,
            num_blocks=geometry.num_blocks,
            num_groups=geometry.num_groups,
            slots=slots,
            stride=geometry.stride or None,
            stride_source=geometry.source,
            t0_ticks=self.t0,
            suggested_slots=1 + geometry.stride * int(np.ceil(_MORE_ROOM * int(capacity.max())))
            if full and capacity is not None
            else None,
        )
        if not len(known):
            return
        finalized = summary["finalizes"][known] > 0
        self.builder.append(
            LANES.name,
            track_id=self.track_of[known],
            block=known // geometry.num_groups,
            group=known % geometry.num_groups,
            capacity=None if capacity is None else capacity[known],
            first_ts=summary["first"][known] - self.t0,
            first_ts_valid=has_time,
            last_ts=summary["last"][known] - self.t0,
            last_ts_valid=has_time,
            finalize_ts=summary["finalize"][known] - self.t0,
            finalize_ts_valid=finalized,
            unreadable=summary["bad"][known],
            unmatched_ends=summary["unmatched"][known],
            open_regions=summary["open"][known],
            is_full=summary["full"][known] != 0,
            **{name: summary[name][known] for name in ("records", "launches", "missing", "backward", "wraps")},
        )

    # --- facts --------------------------------------------------------------------------------------------------

    def _clock_stats(self, decoded: Decoded, *, certain: bool) -> None:
        summary = decoded.summary
        self._stat("cuda_wrap", int(summary["wraps"].sum()))
        backward = int(summary["backward"].sum())
        if backward:
            suspect = (decoded.slices["flags"] & np.uint32(Flag.CLOCK_SUSPECT)) != 0
            at = int(suspect.argmax()) if suspect.any() else None
            ts = None if at is None else int(decoded.slices["begin"][at] - self.t0)
            self._stat("cuda_backward", backward, ts=ts)
        self._stat("cuda_epoch_ambiguous", int(summary["jumps"].sum()) + int(not certain))
        # Holes and a second launch bring stray ends and steps back of their own.
        alone = (summary["launches"] == 1) & (summary["missing"] == 0)
        pairs = summary["slices"] - summary["open"]
        strays = np.maximum(summary["backward"], summary["unmatched"])
        self._stat(
            "cuda_two_writers", int(np.count_nonzero(alone & (strays > np.maximum(1, TWO_WRITERS_SHARE * pairs))))
        )
        after = int(summary["after_finalize"].sum())
        self._stat("cuda_after_finalize", after)
        if self.options["multi"] == "ignore":
            self._stat("cuda_ignored", after)
        finalized = summary["finalizes"] > 0
        if finalized.any():
            left = (summary["records"] > 0) & ~finalized & (summary["full"] == 0)
            self._stat("cuda_unfinalized_lane", int(np.count_nonzero(left)))
        launch_ns = self.options["launch_ns"]
        if launch_ns is not None:
            extent = decoded.latest - decoded.earliest
            self._stat("cuda_wrap_undecidable", int(launch_ns >= STAMP_WRAP))
            self._stat("cuda_launch_disagrees", int(abs(launch_ns - extent) > STAMP_WRAP // 2))

    def _account(self, decoded: Decoded) -> None:
        buffer, geometry = self.buffer, self.geometry
        slots = len(buffer.words)
        records = int(decoded.summary["records"].sum())
        holes = int((decoded.gaps["missing"].astype(np.int64) - decoded.gaps["bad"]).sum())
        lost = buffer.found.used - records + holes
        self.builder.account(
            input_id=self.input_id,
            layer=0,
            unit="byte",
            unit_bytes=1,
            total=self.content.size,
            decoded=slots * WORD_BYTES,
            filler=self.before,
            lost=self.content.behind,
        )
        self.builder.account(
            input_id=self.input_id,
            layer=1,
            unit="slot",
            unit_bytes=WORD_BYTES,
            total=slots,
            decoded=1 + records,
            filler=slots - 1 - records - lost,
            lost=lost,
        )
        end = self.before + slots * WORD_BYTES
        self._stat("cuda_trailing_bytes", self.content.behind, offset=end)
        self._stat("truncated", self.content.cut, offset=end)
        self._stat("cuda_stride_inferred", int(geometry.source == "inferred"))
        self._stat("cuda_stride_unknown", int(not geometry.stride))
        if buffer.unreadable:
            offset = self.before + buffer.found.first_misplaced * WORD_BYTES
            self._stat("cuda_corrupt_record", buffer.unreadable, offset=offset)

    def _offsets(self, lane: npt.NDArray[np.uint32], index: npt.NDArray[np.uint32]) -> I64:
        """Return where records stand in the file, int64 [n] bytes."""
        return self.before + self.buffer.slots_of(lane, index) * WORD_BYTES

    def _stat(self, name: str, count: int, *, offset: int | None = None, ts: int | None = None) -> None:
        self.builder.stat(name, count, input_id=self.input_id, first_offset=offset, first_ts=ts)

    def _stat_rows(self, name: str, mask: npt.NDArray[np.bool_], rows: Rows, index: str, tick: str) -> None:
        """Count the rows under ``mask``, with the place of the first."""
        count = int(np.count_nonzero(mask))
        if count:
            at = int(mask.argmax())
            lane = np.searchsorted(np.cumsum(rows.counts), [at], side="right").astype(np.uint32)
            offset = int(self._offsets(lane, rows[index][at : at + 1])[0])
            self._stat(name, count, offset=offset, ts=int(rows[tick][at] - self.t0))


def records_table(buffer: TirxBuffer, before: int) -> Table:
    """Return the words of a buffer that are not zero, field by field.

    Args:
        buffer: the buffer.
        before: bytes of the file in front of it.
    """
    slots = np.flatnonzero(buffer.words[1:]) + 1
    words = buffer.words[slots]
    lane = TIRX_RECORD["lane"].of(words).astype(np.uint32)
    geometry = buffer.geometry
    is_read = lane < geometry.lanes
    if geometry.stride:
        is_read &= (slots - 1) % geometry.stride == lane
    kinds = Dictionary(KINDS[kind] for kind in sorted(KINDS))
    values: dict[str, Any] = {
        "slot": slots,
        "offset": before + slots * WORD_BYTES,
        "word": words,
        "time": TIRX_RECORD["time"].of(words).astype(np.uint32),
        "lane": lane,
        "event_id": TIRX_RECORD["event"].of(words).astype(np.uint32),
        "is_read": is_read,
    }
    columns = {name: Column.array(array) for name, array in values.items()}
    columns["kind"] = Column.array(TIRX_RECORD["kind"].of(words).astype(np.int32), dictionary=kinds)
    return Table(RECORDS, {name: columns[name] for name in RECORDS.names})


def _counting(first: int, count: int) -> Column:
    return Column.derived(count, lambda: np.arange(first, first + count, dtype=np.int64))

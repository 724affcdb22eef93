"""Where the declared fields of a dump lie: headers, and the frames of every source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from lanescope.devices.aie.formats.canonical import departures
from lanescope.devices.aie.formats.layout import (
    FRAME_SETS,
    HEADER,
    PACKET_RUN,
    PACKET_WORDS,
    SYNC_CYCLES,
    decode_stream,
)
from lanescope.devices.aie.formats.raw_frames import Packets, Words
from lanescope.families.field_sites import CUT, FieldMap, FieldSites, RecordSites, Value, bit_sites
from lanescope.wire import Frame, Record

_WORD_BITS = 32
#: Streams that end within so many cycles of each other were stopped by one signal.
_TOGETHER = 8


class _Stream:
    """The payload of one source."""

    def __init__(self, words: Sequence[int], at: Sequence[int]) -> None:
        self.words = list(words)
        self.at = list(at)
        self.frames = list(decode_stream(self.words))
        self.ends_at = _cycles(self.frames)


class _Dump:
    """A dump taken apart, and what a healthy unit could have written in its place."""

    def __init__(self, content: bytes) -> None:
        words = Words.of(np.frombuffer(content, np.uint8))
        packets = Packets.of(words)
        values = words.values.tolist()
        self.packets: list[tuple[int, int]] = [
            (first + PACKET_WORDS * number, source)
            for first, count, run, source in packets.entries.tolist()
            if run == PACKET_RUN
            for number in range(count // PACKET_WORDS)
        ]
        self.streams = []
        for source in range(len(packets.headers)):
            at = packets.payload(source).tolist()
            self.streams.append(_Stream([values[place] for place in at], at))
        ends = [stream.ends_at for stream in self.streams]
        self.is_stopped_together = [
            end is not None and sum(other is not None and abs(other - end) <= _TOGETHER for other in ends) > 2
            for end in ends
        ]

    def reason(self, source: int, words: Sequence[int]) -> str:
        """Return why the payload of a source could be this one as well."""
        before = self.streams[source]
        frames = list(decode_stream(words))
        if not is_sound(frames) or [mode for mode, _ in frames][-1:] != [mode for mode, _ in before.frames][-1:]:
            return ""
        ends_at = _cycles(frames)
        if ends_at is not None and self.is_stopped_together[source]:
            assert before.ends_at is not None
            if abs(ends_at - before.ends_at) > _TOGETHER:
                return ""
            return "a sound stream of frames that stops with the others"
        return "a sound stream of frames, and nothing else tells its length"


def is_sound(frames: Sequence[tuple[int, Frame]]) -> bool:
    """Tell whether a trace unit could have written these frames: all known, as it encodes, nothing after Stop."""
    is_open = False
    for _, frame in frames:
        if frame.record is None:
            return False
        name, values = frame.record.name, frame.values
        if name == "start":
            is_open = True
        elif frame.raw == frame.record.prefix_bits and name in ("padding", "filler0", "filler1"):
            continue
        elif not is_open:
            return False
        elif name == "stop":
            is_open = False
        if values.get("reserved", 0) or (name == "stop" and values["mask"]):
            return False
    return not any(departures(frames))


def _cycles(frames: Sequence[tuple[int, Frame]]) -> int | None:
    """Return the cycles from the last Start to its Stop in mode 0; None where the stream does not say."""
    total, last, found = 0, 0, None
    for mode, frame in frames:
        if frame.record is None or mode:
            return None
        name, values = frame.record.name, frame.values
        if name == "start":
            total = last = 0
        elif name == "sync":
            total += SYNC_CYCLES
        elif name == "stop":
            found = total + values["cycles"] + 1
        elif "cycles" in values:
            last = values["cycles"] + 1
            total += last
        elif "repeats" in values:
            total += last * values["repeats"]
    return found


def field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a binary dump, the first of ``files``."""
    name, content = next(iter(files.items()))
    dump = _Dump(content)
    headers = [_WORD_BITS * first for first, _ in dump.packets]
    lanes = [source for _, source in dump.packets]
    found = FieldMap([bit_sites(HEADER.name, declared, name, headers, lanes) for declared in HEADER.fields])
    for mode, record in dict.fromkeys(_kinds(dump)):
        found.fields += _sites(name, dump, mode, record)
    found.records.append(_packets(name, dump))
    return found


def _kinds(dump: _Dump) -> Iterator[tuple[int, Record]]:
    for stream in dump.streams:
        for mode, frame in stream.frames:
            if frame.record is not None:
                yield mode, frame.record


def _sites(file: str, dump: _Dump, mode: int, record: Record) -> Iterator[FieldSites]:
    """Yield the fields of one kind of frame, its prefix among them."""
    begin, lane, where = [], [], []
    for source, stream in enumerate(dump.streams):
        for of, frame in stream.frames:
            if of == mode and frame.record is not None and frame.record.name == record.name:
                # A frame larger than a word takes whole words, the upper one first.
                first = stream.at[frame.word] * _WORD_BITS
                begin.append(first if frame.bits > _WORD_BITS else first + _WORD_BITS - frame.bit - frame.bits)
                lane.append(source)
                where.append(frame)
    prefix = (record.bits - len(record.prefix), len(record.prefix))
    title = f"{FRAME_SETS[mode].name}.{record.name}"
    parts = [("prefix", "Which frame it is.", *prefix)]
    parts += [(declared.name, declared.doc, declared.lsb, declared.width) for declared in record.fields]
    for name, doc, lsb, width in parts:
        pieces = _pieces(record.bits, lsb, width)

        def possible(values: Mapping[int, Value], lsb: int = lsb, width: int = width) -> str:
            source = lane[next(iter(values))]
            words = list(dump.streams[source].words)
            for index, value in values.items():
                assert isinstance(value, int)
                raw = where[index].raw & ~(((1 << width) - 1) << lsb) | value << lsb
                _put(words, where[index], raw)
            return dump.reason(source, words)

        yield FieldSites(title, name, doc, file, begin, pieces, lane=lane, possible=possible)


def _put(words: list[int], frame: Frame, raw: int) -> None:
    """Write the bits of a frame at its place."""
    count = max(frame.bits // _WORD_BITS, 1)
    shift = 0 if count > 1 else _WORD_BITS - frame.bit - frame.bits
    mask = (1 << frame.bits) - 1
    for number in range(count):
        down = _WORD_BITS * (count - 1 - number)
        old = words[frame.word + number]
        words[frame.word + number] = (old & ~(mask >> down << shift) | raw >> down << shift) & 0xFFFFFFFF


def _pieces(bits: int, lsb: int, width: int) -> tuple[tuple[int, int], ...]:
    """Return where a field lies in the words of its frame: of two, the upper one comes first."""
    if bits <= _WORD_BITS:
        return ((lsb, width),)
    low = min(width, max(0, _WORD_BITS - lsb))
    lower = ((_WORD_BITS + lsb, low),) if low else ()
    return (*lower, (max(lsb - _WORD_BITS, 0), width - low)) if width > low else lower


def _packets(file: str, dump: _Dump) -> RecordSites:
    begin = [4 * first for first, _ in dump.packets]
    lane = [source for _, source in dump.packets]
    order = [lane[:index].count(source) for index, source in enumerate(lane)]

    def possible(change: str, index: int) -> str:
        source, number = lane[index], order[index]
        if change == CUT:
            return ""
        words = dump.streams[source].words
        size = PACKET_WORDS - 1
        parts = [words[at : at + size] for at in range(0, len(words), size)]
        if change == "dropped":
            del parts[number]
        elif change == "duplicated":
            parts.insert(number, parts[number])
        elif number + 1 < len(parts):
            parts[number : number + 2] = parts[number + 1], parts[number]
        reason = dump.reason(source, [word for part in parts for word in part])
        return reason and f"packets have no number: {reason}"

    ends = [at + 4 * PACKET_WORDS for at in begin]
    return RecordSites("aie.packet", file, begin, ends, lane, possible=possible)

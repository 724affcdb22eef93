"""Raw records: every frame of a dump as it lies in the file, for those who debug the decoder or the hardware."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.aie.formats.detect import is_text
from lanescope.devices.aie.formats.layout import FRAMES, MODE0, MODE1, MODE2, NO_FRAME, PACKET_RUN, PACKET_WORDS, START
from lanescope.trace import Column, Dictionary, Table
from lanescope.trace.schema import ColumnSpec, TableSpec, ticks

if TYPE_CHECKING:
    from lanescope.source import Source


#: The raw records of a dump.
FRAME_TABLE = TableSpec(
    "aie.frame",
    "one frame, or one piece of payload that is not a frame, undecoded",
    (
        ColumnSpec("offset", "int64", "byte offset of the word with the start of the frame", unit="bytes"),
        ColumnSpec("bit", "uint8", "bits of that word before the frame, from the most significant one"),
        ColumnSpec("bits", "uint8", "size of the frame in bits"),
        ColumnSpec("header", "uint32", "header word of the packet"),
        ColumnSpec("name", "text", "frame name, or the reason why the bits are not a frame"),
        ColumnSpec("raw", "uint64", "bits of the frame including its prefix"),
        ColumnSpec("mask", "uint8", "asserted events, bit i for slot i; NULL for frames without events", nullable=True),
        ticks("cycles", "idle cycles before the frame; NULL for frames without timing", nullable=True),
        ColumnSpec("repeats", "int64", "number of additional repetitions; NULL for other frames", nullable=True),
        ColumnSpec("mode", "uint8", "trace mode of a Start; NULL for other frames", nullable=True),
        ColumnSpec(
            "is_restart", "bool", "whether a Start continues after lost frames; NULL for other frames", nullable=True
        ),
        ticks("timer", "timer of the module in a Start; NULL for other frames", nullable=True),
        ColumnSpec(
            "pc",
            "int32",
            "address of an event, a target, or a Start in mode 2; NULL for other frames",
            nullable=True,
            unit="bytes",
        ),
        ColumnSpec("trips", "int64", "trip count of a loop modulo 2**28; NULL for other frames", nullable=True),
        ColumnSpec(
            "is_wrapped",
            "bool",
            "whether the trip count of a loop is 2**28 or more; NULL for other frames",
            nullable=True,
        ),
    ),
)


I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The words of a dump.

    Attributes:
        values: uint32 [n].
        offsets: int64 [n], where each lies in the file.
    """

    values: U32
    offsets: I64

    @classmethod
    def of(cls, content: U8, header: int | None = None) -> Words:
        """Read the words of a binary dump or of hex text, uint8 [bytes]; a rest of less than a word is left out.

        Args:
            content: of the file.
            header: that is put in front of the packets of a stream without headers.
        """
        found = cls._of_file(content)
        if header is None:
            return found
        from lanescope.devices.aie.formats.payload import with_headers

        return cls(*with_headers(found.values, found.offsets, header)[:2])

    @classmethod
    def _of_file(cls, content: U8) -> Words:
        if not is_text(content[: 1 << 16].tobytes()):
            count = len(content) // 4
            return cls(content[: 4 * count].view("<u4"), 4 * np.arange(count, dtype=np.int64))
        room = len(content) // 2 + 2
        values, offsets = np.empty(room, np.uint32), np.empty(room, np.int64)
        reader = core.AieText()
        count = reader.read(content, values, offsets)
        count += reader.finish(values[count:], offsets[count:])
        return cls(values[:count], offsets[:count])


@dataclass(frozen=True, slots=True, eq=False)
class Packets:
    """Classification of the words.

    Attributes:
        entries: int32 [n, 4]: first word, count, kind of run, source; they cover all words in order.
        headers: header words of the sources, in order of their first packet.
    """

    entries: I32
    headers: tuple[int, ...]

    @classmethod
    def of(cls, words: Words) -> Packets:
        """Split words into packets and the rest."""
        entries = np.empty((len(words.values) + 2, 4), np.int32)
        scanner = core.AieScanner()
        _, count = scanner.scan(words.values, is_last=True, base=0, offsets=words.offsets, entries=entries)
        return cls(entries[:count], tuple(scanner.headers))

    def payload(self, source: int) -> I64:
        """Return the indices of the payload words of a source, int64 [words], in order."""
        chosen = (self.entries[:, 2] == PACKET_RUN) & (self.entries[:, 3] == source)
        first = self.entries[chosen, 0].astype(np.int64)
        indices: I64 = (first[:, None] + np.arange(1, PACKET_WORDS)).ravel()
        return indices


@dataclass(frozen=True, slots=True, eq=False)
class Items:
    """The frames of one stream of payload words, and the pieces between them that are none; nothing is left out.

    Attributes:
        word: uint32 [n], index of the word in which each begins.
        bit: uint8 [n], bits of that word before it.
        bits: uint8 [n], its size.
        frame: uint8 [n], index into ``FRAMES + NO_FRAME``.
        raw: uint64 [n], its bits.
    """

    word: U32
    bit: U8
    bits: U8
    frame: U8
    raw: U64

    @classmethod
    def of(cls, payload: U32, mode: int = 0) -> Items:
        """Split payload words of one source, uint32 [n]; ``mode`` holds before the first Start."""
        room = 8 * len(payload)
        word, raw = np.empty(room, np.uint32), np.empty(room, np.uint64)
        bit, bits, frame = np.empty((3, room), np.uint8)
        n = core.aie_read_records(np.ascontiguousarray(payload, np.uint32), mode, word, bit, bits, frame, raw)
        return cls(word[:n], bit[:n], bits[:n], frame[:n], raw[:n])


_NAMES = FRAMES + NO_FRAME
_START = FRAMES.index("start")
_EXECUTION = 2
#: The declarations by frame number; frames that modes share look alike in all of them.
_RECORDS = tuple(
    next(s[name] for s in (MODE0, MODE1, MODE2) if name in {record.name for record in s.records}) for name in FRAMES
)
_FIELDS = ("mask", "cycles", "repeats", "pc", "trips", "is_wrapped")
_FIELDS_OF_TABLE = {"slot": "mask", "count": "trips"}


def frames(words: Words) -> Table:
    """Return the frames of all sources in the order of the file."""
    packets = Packets.of(words)
    columns: dict[str, list[npt.NDArray[Any]]] = {name: [] for name in ("at", "header", *Items.__slots__)}
    for source, header in enumerate(packets.headers):
        at = packets.payload(source)
        items = Items.of(words.values[at])
        for name in Items.__slots__:
            columns[name].append(getattr(items, name))
        columns["at"].append(at[items.word])
        columns["header"].append(np.full(len(items.word), header, np.uint32))
    if not packets.headers:
        return Table.empty(FRAME_TABLE)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    order = np.lexsort((joined["bit"], joined["at"]))
    return _table(words, {name: values[order] for name, values in joined.items()})


def frames_of(source: Source, header: int | None = None) -> Table:
    """Return the frames of a file; ``header`` as in ``Words.of``."""
    return frames(Words.of(source.read(), header))


def _table(words: Words, items: dict[str, npt.NDArray[Any]]) -> Table:
    """Make the table: the fields of each frame from its bits."""
    raw, frame = items["raw"], items["frame"]
    count = len(raw)
    fields = {name: (np.zeros(count, np.int64), np.zeros(count, np.bool_)) for name in _FIELDS}
    is_start = frame == _START
    for number, record in enumerate(_RECORDS):
        chosen = (frame == number) & ~is_start
        for declared in record.fields:
            name = _FIELDS_OF_TABLE.get(declared.name, declared.name)
            if name in fields and chosen.any():
                value = declared.of(raw[chosen]).astype(np.int64)
                fields[name][0][chosen] = 1 << value if declared.name == "slot" else value
                fields[name][1][chosen] = True
    has_timer = is_start & (items["bits"] == START.bits)
    # A Start without a timer is one word: its fields lie where the upper half of the long one has them.
    start = np.where(has_timer, raw, raw << np.uint64(32))
    has_anchor = is_start & (START["mode"].of(start) == _EXECUTION)
    anchor = MODE2["start"]["pc"].of(raw).astype(np.int64)
    fields["pc"] = np.where(has_anchor, anchor, fields["pc"][0]), fields["pc"][1] | has_anchor
    columns = {
        "offset": Column.array(words.offsets[items["at"]]),
        "bit": Column.array(items["bit"]),
        "bits": Column.array(items["bits"]),
        "header": Column.array(items["header"]),
        "name": Column.array(frame.astype(np.int32), dictionary=Dictionary(_NAMES)),
        "raw": Column.array(raw),
        "mask": _nullable(*fields["mask"], np.uint8),
        "cycles": _nullable(*fields["cycles"], np.int64),
        "repeats": _nullable(*fields["repeats"], np.int64),
        "mode": _nullable(START["mode"].of(start), is_start, np.uint8),
        "is_restart": _nullable(START["restart"].of(start), is_start, np.bool_),
        "timer": _nullable(START["timer"].of(start), has_timer, np.int64),
        "pc": _nullable(*fields["pc"], np.int32),
        "trips": _nullable(*fields["trips"], np.int64),
        "is_wrapped": _nullable(*fields["is_wrapped"], np.bool_),
    }
    return Table(FRAME_TABLE, columns)


def _nullable(values: npt.NDArray[Any], valid: npt.NDArray[np.bool_], dtype: npt.DTypeLike) -> Column:
    return Column.array(np.where(valid, values, 0).astype(dtype), valid=valid)

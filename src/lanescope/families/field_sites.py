"""Where the declared fields of a format lie in one capture, so that a tool can find and change each of them.

A format lists its *sites*: each field with the place of every value in the file, and each record with the bytes of
every instance. ``possible`` says which values a healthy device could have written at a place, all else being as
recorded: no reader can detect a change to one of these.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

#: A value at a site: a number, or text that is not one.
Value = int | bytes
#: From values by index of their sites to the reason why a healthy device could have written them, all at once and all
#: else being as recorded; empty: it could not.
Possible = Callable[[Mapping[int, Value]], str]
#: From a change to records and the index of the record to the reason why the result could be sound; empty: it is not.
PossibleChange = Callable[[str, int], str]

#: Changes to whole records.
DROPPED, DUPLICATED, EXCHANGED, CUT = CHANGES = ("dropped", "duplicated", "exchanged", "cut")

_INTEGER = re.compile(rb"-?\d+|0[xX][0-9a-fA-F]+")
_DECIMAL = re.compile(rb"(-?\d+)\.(\d+)")


def never(*_: object) -> str:
    """Say that no other value is possible."""
    return ""


def each(reason: Callable[[int, Value], str]) -> Possible:
    """Say that values are possible where each of them is; ``reason`` takes the index of a site and its value."""

    def possible(values: Mapping[int, Value]) -> str:
        reasons = [reason(index, value) for index, value in values.items()]
        return reasons[0] if all(reasons) else ""

    return possible


@dataclass(frozen=True, slots=True, eq=False)
class FieldSites:
    """The places of one field in a file.

    Attributes:
        record: the record that it is part of.
        name: the field.
        doc: one line, what a value means.
        file: name of the file.
        begin: where each value begins: of bits, in bits from the start of the file (bit 0 is the least significant one
            of byte 0); of text, in bytes.
        pieces: bits of a value as (bits from ``begin``, width), the lowest first; empty: the value is text.
        end: of text, the byte after each value.
        lane: the stream of each value: neighbors are sought there.
        is_padded: numbers in text keep their count of digits.
        possible: which other values are possible.
    """

    record: str
    name: str
    doc: str
    file: str
    begin: Sequence[int]
    pieces: tuple[tuple[int, int], ...] = ()
    end: Sequence[int] = ()
    lane: Sequence[int] = ()
    is_padded: bool = False
    possible: Possible = never

    def __len__(self) -> int:
        return len(self.begin)

    @property
    def width(self) -> int:
        """Bits of a value; 0 of text."""
        return sum(width for _, width in self.pieces)

    def read(self, content: bytes, index: int) -> Value:
        """Return the value at a site: of text a number where it is one, decimals as a number without their point."""
        if not self.pieces:
            raw = content[self.begin[index] : self.end[index]]
            decimal = _DECIMAL.fullmatch(raw)
            if decimal:
                return int(decimal[1] + decimal[2])
            return int(raw, 0 if raw[:2] in (b"0x", b"0X") else 10) if _INTEGER.fullmatch(raw) else raw
        value = shift = 0
        for offset, width in self.pieces:
            value |= _bits(content, self.begin[index] + offset, width) << shift
            shift += width
        return value

    def write(self, content: bytes, index: int, value: Value) -> bytes:
        """Return the content with another value at a site; numbers in text are written as those before."""
        if not self.pieces:
            begin, end = self.begin[index], self.end[index]
            raw = value if isinstance(value, bytes) else self._text(content[begin:end], value)
            return content[:begin] + raw + content[end:]
        assert isinstance(value, int)
        made = bytearray(content)
        for offset, width in self.pieces:
            _set_bits(made, self.begin[index] + offset, width, value & ((1 << width) - 1))
            value >>= width
        return bytes(made)

    def _text(self, before: bytes, value: int) -> bytes:
        if before[:2] in (b"0x", b"0X"):
            return b"0x%0*x" % (len(before) - 2, value)
        decimal = _DECIMAL.fullmatch(before)
        if decimal:
            digits = b"%0*d" % (len(decimal[2]) + 1, abs(value))
            return (b"-" if value < 0 else b"") + digits[: -len(decimal[2])] + b"." + digits[-len(decimal[2]) :]
        return b"%0*d" % (len(before), value) if self.is_padded else b"%d" % value


@dataclass(frozen=True, slots=True, eq=False)
class RecordSites:
    """The places of the records of one kind in a file.

    Attributes:
        record: what they are called.
        file: name of the file.
        begin, end: bytes of each.
        lane: the stream of each.
        joint: what stands between two records of a lane, and goes with one that is dropped.
        is_slot: records have fixed places: one that is dropped leaves zeros, a duplicate takes the place of the next.
        possible: which changes can leave a sound capture.
    """

    record: str
    file: str
    begin: Sequence[int]
    end: Sequence[int]
    lane: Sequence[int]
    joint: bytes = b""
    is_slot: bool = False
    possible: PossibleChange = never

    def __len__(self) -> int:
        return len(self.begin)


@dataclass(slots=True)
class FieldMap:
    """All sites of a capture.

    Attributes:
        fields: of fields.
        records: of records.
    """

    fields: list[FieldSites] = field(default_factory=list)
    records: list[RecordSites] = field(default_factory=list)


class DeclaredField(Protocol):
    """What a field of a record declares: ``lanescope.wire.Field`` does."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def doc(self) -> str:
        """What a value means."""

    @property
    def lsb(self) -> int:
        """Its lowest bit in the word."""

    @property
    def width(self) -> int:
        """Number of bits."""


def bit_sites(
    record: str,
    declared: DeclaredField,
    file: str,
    begin: Sequence[int],
    lane: Sequence[int],
    possible: Possible = never,
) -> FieldSites:
    """Return the sites of a field of a ``Record`` whose words begin at the bits ``begin`` of a file."""
    pieces = ((declared.lsb, declared.width),)
    return FieldSites(record, declared.name, declared.doc, file, begin, pieces, lane=lane, possible=possible)


def _bits(content: bytes, begin: int, width: int) -> int:
    first, last = begin // 8, (begin + width + 7) // 8
    return int.from_bytes(content[first:last], "little") >> begin % 8 & ((1 << width) - 1)


def _set_bits(content: bytearray, begin: int, width: int, value: int) -> None:
    first, last = begin // 8, (begin + width + 7) // 8
    word = int.from_bytes(content[first:last], "little")
    mask = ((1 << width) - 1) << begin % 8
    content[first:last] = (word & ~mask | value << begin % 8).to_bytes(last - first, "little")

"""Prefix-coded frames inside words, and the slow, obvious codec of such a stream.

A frame begins in the highest free bits of a word and does not cross into the next one; what is left of a word is
filled. Only a frame larger than a word takes several, and then whole ones. Because of this rule a decoder that meets a
code it does not know is back in step at the next word.
"""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from lanescope.declaration import frozen_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from lanescope.wire.record import Record

#: Longest prefix: the decoder's lookup table has two to this power entries.
MAX_PREFIX_BITS = 12


class Frame(NamedTuple):
    """One item of a decoded stream; the ``bits`` of all items sum to the bits of the stream.

    Attributes:
        word: index of the word in which it begins.
        bit: bits of that word before it; 0 is the most significant one.
        bits: its size.
        record: its declaration, None where the bits could not be understood.
        raw: its bits as a number, prefix included.
        values: field name to value; empty where ``record`` is None.
        error: empty, or why ``record`` is None: ``unknown_code``, ``crosses_word`` (the code's frame is larger than
            what is left of the word), ``misaligned`` (a frame of several words begins inside one), ``truncated`` (such
            a frame lacks words at the end of the stream).
    """

    word: int
    bit: int
    bits: int
    record: Record | None
    raw: int
    values: dict[str, int]
    error: str = ""


@frozen_class
class FrameSet:
    """The frames that may share one stream of words.

    Attributes:
        name: what the stream is called.
        records: the frames, each with a prefix; no prefix begins another one.
        padding: name of the record that fills a word up; it has no fields.
        doc: one line, what the stream says.
        word_bits: size of a word.

    Raises:
        ValueError: two frames cannot be told apart, or the padding cannot fill every rest; the message says which.

    Example:
        >>> from lanescope.wire import Field, Record
        >>> one = Record("one", bits=8, prefix="0", fields=(Field("value", lsb=0, width=7),))
        >>> two = Record("two", bits=16, prefix="10", fields=(Field("value", lsb=0, width=14),))
        >>> stream = FrameSet("demo", (one, two, Record("padding", bits=8, prefix="11111110")), padding="padding")
        >>> [hex(word) for word in stream.encode([(one, {"value": 5})] * 3 + [(two, {"value": 9})])]
        ['0x50505fe', '0x8009fefe']
        >>> [(frame.word, frame.bit, frame.record.name, frame.values) for frame in stream.decode([0x8009FEFE])]
        [(0, 0, 'two', {'value': 9}), (0, 16, 'padding', {}), (0, 24, 'padding', {})]
        >>> next(stream.decode([0xC0000000])).error
        'unknown_code'
        >>> stream.unassigned_prefixes
        ('110', '1110', '11110', '111110', '1111110', '11111111')
    """

    name: str
    records: tuple[Record, ...]
    padding: str
    doc: str = ""
    word_bits: int = 32

    def __post_init__(self) -> None:
        """Check the code."""
        object.__setattr__(self, "records", tuple(self.records))
        if len(self._by_name) != len(self.records):
            raise ValueError(f"{self.name}: duplicate record name")
        if self.padding not in self._by_name:
            raise ValueError(f"{self.name}: padding record {self.padding!r} not found")
        padding = self[self.padding]
        if padding.fields:
            raise ValueError(f"{self.name}/{padding.name}: padding must have no fields")
        for record in self.records:
            path = f"{self.name}/{record.name}"
            if not 1 <= len(record.prefix) <= min(MAX_PREFIX_BITS, self.word_bits):
                raise ValueError(f"{path}: invalid prefix {record.prefix!r}: expected 1 to {MAX_PREFIX_BITS} bits")
            if record.bits > self.word_bits and record.bits % self.word_bits:
                raise ValueError(f"{path}: {record.bits} bits exceed one word and are not a multiple of words")
            if record.bits % padding.bits or self.word_bits % padding.bits:
                raise ValueError(f"{path}: {padding.name} of {padding.bits} bits cannot fill the rest of a word")
        ordered = sorted(self.records, key=lambda record: record.prefix)
        for first, second in itertools.pairwise(ordered):
            if second.prefix.startswith(first.prefix):
                raise ValueError(
                    f"{self.name}: {first.prefix} {first.name} is a prefix of {second.prefix} {second.name}"
                )

    @cached_property
    def _by_name(self) -> dict[str, Record]:
        return {record.name: record for record in self.records}

    @cached_property
    def _lookup(self) -> tuple[Record | None, ...]:
        """The record that the next bits begin, by their value."""
        depth = max(len(record.prefix) for record in self.records)
        lookup: list[Record | None] = [None] * (1 << depth)
        for record in self.records:
            free = depth - len(record.prefix)
            first_code = int(record.prefix, 2) << free
            lookup[first_code : first_code + (1 << free)] = [record] * (1 << free)
        return tuple(lookup)

    def __getitem__(self, name: str) -> Record:
        """Return the record ``name``; ``KeyError`` if there is none."""
        return self._by_name[name]

    @property
    def unassigned_prefixes(self) -> tuple[str, ...]:
        """The shortest prefixes that begin no frame, in order."""
        prefixes = [record.prefix for record in self.records]
        found: list[str] = []
        open_codes = ["1", "0"]
        while open_codes:
            code = open_codes.pop()
            if any(code.startswith(prefix) for prefix in prefixes):
                continue
            if any(prefix.startswith(code) for prefix in prefixes):
                open_codes += [code + "1", code + "0"]
            else:
                found.append(code)
        return tuple(found)

    def decode(self, words: Sequence[int]) -> Iterator[Frame]:
        """Split a stream into frames; what cannot be understood becomes an item with an error.

        After an error the decoder goes on at the next word. It never raises for bad bits.

        Args:
            words: unsigned, ``word_bits`` wide, in order (list, ``memoryview.cast("I")``, uint32 array).

        Yields:
            Frames in order, padding included.
        """
        size = self.word_bits
        full = (1 << size) - 1
        lookup = self._lookup
        depth = len(lookup).bit_length() - 1
        shift = size - depth
        count = len(words)
        index = 0
        while index < count:
            word = int(words[index])
            bit = 0
            taken = 1
            while bit < size:
                record = lookup[(word << bit & full) >> shift]
                error = ""
                bits = size - bit
                if record is None:
                    error = "unknown_code"
                elif record.bits > size:
                    if bit:
                        error = "misaligned"
                    else:
                        taken = min(record.bits // size, count - index)
                        bits = taken * size
                        for more in words[index + 1 : index + taken]:
                            word = word << size | int(more)
                        if bits < record.bits:
                            error = "truncated"
                elif record.bits > bits:
                    error = "crosses_word"
                else:
                    bits = record.bits
                raw = word >> (taken * size - bit - bits) & ((1 << bits) - 1)
                if error or record is None:
                    yield Frame(index, bit, bits, None, raw, {}, error)
                    break
                yield Frame(index, bit, bits, record, raw, record.unpack(raw))
                bit += bits
            index += taken

    def encode(self, frames: Iterable[tuple[Record, Mapping[str, int]]], *, pad_words: int = 1) -> list[int]:
        """Lay frames into words: append; what does not fit in the rest of a word begins a new one after padding.

        Args:
            frames: (record of this set, values) in order; padding may stand among them.
            pad_words: padding words are added until the count of words is a multiple of it (the payload of a packet).

        Returns:
            The words, the last one filled up.

        Raises:
            ValueError: a record is not of this set, or a value does not fit.
        """
        size = self.word_bits
        padding = self[self.padding]
        words: list[int] = []
        word = used = 0
        for record, values in frames:
            if self._by_name.get(record.name) is not record:
                raise ValueError(f"{self.name}: unknown record {record.name}")
            raw = record.encode(values)
            if used and used + record.bits > size:
                words.append(_fill(word, used, padding, size))
                word = used = 0
            word = word << record.bits | raw
            used += record.bits
            if used % size == 0:
                words += [word >> shift & ((1 << size) - 1) for shift in range(used - size, -1, -size)]
                word = used = 0
        if used:
            words.append(_fill(word, used, padding, size))
        words += [_fill(0, 0, padding, size)] * (-len(words) % pad_words)
        return words


def _fill(word: int, used: int, padding: Record, size: int) -> int:
    """Append padding to the ``used`` bits of a word until it is full."""
    while used < size:
        word = word << padding.bits | padding.prefix_bits
        used += padding.bits
    return word

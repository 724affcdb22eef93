"""Words of bit fields, declared as data, and the slow, obvious codec that follows from the declaration."""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lanescope.declaration import frozen_class

if TYPE_CHECKING:
    from collections.abc import Iterable

#: What we know of a row: ``documented`` by its maker, ``observed`` by us in hardware captures, ``published`` by others
#: and never seen by us, ``unknown``.
STATUSES = ("documented", "observed", "published", "unknown")

#: Of fields whose values have no names.
NO_NAMES: Mapping[int, str] = MappingProxyType({})

_NAME = re.compile(r"[a-z][a-z0-9_]*")


@frozen_class
class Field:
    """A run of bits inside a word.

    Reserved bits are fields like any other: a record must declare every one of its bits, so none is lost.

    Attributes:
        name: lower case, unique in its record.
        lsb: its lowest bit; bit 0 is the least significant one of the word.
        width: number of bits.
        doc: one line, what a value means.
        values: names of values, where the field is an enumeration; other values stay legal.
        unit: ``cycles``, ``ns``, ``bytes`` or empty.
        signed: two's complement.
        default: what encoding writes when the value is not given (reserved bits, constants); None: it must be given.
        status: one of ``STATUSES``, empty: that of its record.

    Raises:
        ValueError: the declaration contradicts itself.

    Example:
        >>> event = Field("event", lsb=2, width=10)
        >>> event.of(0b1101)
        3
    """

    name: str
    lsb: int
    width: int
    doc: str = ""
    values: Mapping[int, str] = NO_NAMES
    unit: str = ""
    signed: bool = False
    default: int | None = None
    status: str = ""

    def __hash__(self) -> int:
        return hash((self.name, self.lsb, self.width))

    def __post_init__(self) -> None:
        """Refuse what no word can hold."""
        check_name(self.name)
        check_status(self.status or "unknown", self.name)
        if self.lsb < 0 or self.width < 1:
            raise ValueError(f"{self.name}: lsb {self.lsb} and width {self.width} select no bits")
        for value in (*self.values, *(() if self.default is None else (self.default,))):
            check_integer(value, self.width, self.name, signed=self.signed)

    @property
    def mask(self) -> int:
        """As many one bits as the field is wide, at bit 0."""
        return (1 << self.width) - 1

    def of(self, word: Any) -> Any:
        """Cut the field out of a word, sign not extended.

        Args:
            word: an int, or an unsigned numpy array that is wide enough.

        Returns:
            The same type as ``word``.
        """
        return (word >> self.lsb) & self.mask

    def label(self, value: int) -> str:
        """Return the declared name of ``value``, or the number as text."""
        return self.values.get(value, str(value))


@frozen_class
class Record:
    """A word of bit fields, perhaps behind a prefix code in its highest bits.

    Attributes:
        name: what it is called, unique in its format.
        bits: size of the word.
        fields: the fields; together with the prefix they cover each bit once.
        doc: one line, what it means.
        source: where the layout is written down.
        status: one of ``STATUSES``.
        prefix: the highest bits as text of 0 and 1, where records share a stream and tell themselves apart by it.

    Raises:
        ValueError: a bit is declared twice or never, or lies outside; the message names it.

    Example:
        >>> marker = Record("marker", bits=16, fields=(
        ...     Field("kind", lsb=0, width=2, values={0: "begin", 1: "end"}),
        ...     Field("event", lsb=2, width=10),
        ...     Field("reserved", lsb=12, width=4, default=0),
        ... ))
        >>> marker.decode(0x1005)
        {'kind': 1, 'event': 1, 'reserved': 1}
        >>> hex(marker.encode({"kind": 1, "event": 1}))
        '0x5'
        >>> marker.encode({"kind": 1, "event": 1024})
        Traceback (most recent call last):
        ValueError: marker.event: 1024 does not fit in 10 unsigned bits
    """

    name: str
    bits: int
    fields: tuple[Field, ...] = ()
    doc: str = ""
    source: str = ""
    status: str = "documented"
    prefix: str = ""

    def __post_init__(self) -> None:
        """Check that prefix and fields cover the word exactly."""
        object.__setattr__(self, "fields", tuple(self.fields))
        check_status(self.status, self.name)
        if set(self.prefix) - {"0", "1"}:
            raise ValueError(f"{self.name}: invalid prefix {self.prefix!r}: expected 0 and 1 only")
        spans = [(f.lsb, f.lsb + f.width, f.name) for f in self.fields]
        if self.prefix:
            spans.append((self.bits - len(self.prefix), self.bits, "(prefix)"))
        check_cover(self.name, self.bits, spans, unit="bit")

    @cached_property
    def _extracts(self) -> tuple[tuple[str, int, int], ...]:
        return tuple((field.name, field.lsb, field.mask) for field in self.fields)

    @cached_property
    def _signed(self) -> tuple[Field, ...]:
        return tuple(field for field in self.fields if field.signed)

    def __getitem__(self, name: str) -> Field:
        """Return the field ``name``; ``KeyError`` if there is none."""
        for item in self.fields:
            if item.name == name:
                return item
        raise KeyError(f"{self.name}.{name}")

    @property
    def prefix_bits(self) -> int:
        """The prefix at its place in the word."""
        return int(self.prefix, 2) << (self.bits - len(self.prefix)) if self.prefix else 0

    def matches(self, word: int) -> bool:
        """Return whether ``word`` has the size and the prefix of this record."""
        return 0 <= word < 1 << self.bits and word >> (self.bits - len(self.prefix)) == int(self.prefix or "0", 2)

    def decode(self, word: int) -> dict[str, int]:
        """Split a word into its fields.

        Args:
            word: unsigned, ``bits`` wide, prefix included.

        Returns:
            Field name to value, in the order of declaration; reserved bits are there too.

        Raises:
            ValueError: the word is too wide or has another prefix.
        """
        word = check_integer(word, self.bits, self.name)
        if not self.matches(word):
            raise ValueError(f"{self.name}: {word:#x} does not start with {self.prefix}")
        return self.unpack(word)

    def unpack(self, word: int) -> dict[str, int]:
        """Do what ``decode`` does for a word that is known to match."""
        values = {name: word >> lsb & mask for name, lsb, mask in self._extracts}
        for item in self._signed:
            if values[item.name] >> (item.width - 1):
                values[item.name] -= 1 << item.width
        return values

    def encode(self, values: Mapping[str, int], *, path: str = "") -> int:
        """Put fields together to a word: the exact inverse of ``decode``.

        Args:
            values: field name to value; fields with a default may be absent.
            path: what messages call the record; its name by default.

        Returns:
            The word, unsigned, prefix included.

        Raises:
            ValueError: a value is missing, does not fit or belongs to no field; the message has its path.
        """
        path = path or self.name
        check_keys(path, values, {f.name: f.default is not None for f in self.fields})
        word = self.prefix_bits
        for item in self.fields:
            value = values.get(item.name, item.default)
            number = check_integer(value, item.width, f"{path}.{item.name}", signed=item.signed)
            word |= (number & item.mask) << item.lsb
        return word


def check_name(name: str) -> None:
    """Refuse names that could be no column of a table."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"invalid field name {name!r}: expected lower case letters, digits and _")


def check_status(status: str, path: str) -> None:
    """Refuse a status that no reader would know."""
    if status not in STATUSES:
        raise ValueError(f"{path}: unknown status {status!r} (choose from {', '.join(STATUSES)})")


def check_integer(value: Any, bits: int, path: str, *, signed: bool = False) -> int:
    """Return ``value`` as an int that fits in ``bits``; ``ValueError`` with the path if it does not."""
    try:
        number = operator.index(value)
    except TypeError as error:
        raise ValueError(f"{path}: invalid value {value!r}: expected an integer") from error
    low, high = (-(1 << bits - 1), 1 << bits - 1) if signed else (0, 1 << bits)
    if not low <= number < high:
        raise ValueError(f"{path}: {number} does not fit in {bits} {'signed' if signed else 'unsigned'} bits")
    return number


def check_keys(path: str, values: Mapping[str, Any], optional: Mapping[str, bool]) -> None:
    """Refuse values of unknown fields and the absence of fields that are not optional."""
    if not isinstance(values, Mapping):
        raise ValueError(f"{path}: invalid value {values!r}: expected a mapping of names to values")  # noqa: TRY004 (one class for bad values)
    for name in values:
        if name not in optional:
            raise ValueError(f"{path}.{name}: unknown field (choose from {', '.join(optional) or 'none'})")
    for name, is_optional in optional.items():
        if name not in values and not is_optional:
            raise ValueError(f"{path}.{name}: missing value")


def check_cover(path: str, size: int, spans: Iterable[tuple[int, int, str]], *, unit: str) -> None:
    """Refuse spans (begin, end, name) that do not cover [0, size) exactly once, or share a name."""
    end = 0
    last = ""
    names: set[str] = set()
    for begin, stop, name in sorted(spans):
        if name in names:
            raise ValueError(f"{path}.{name}: declared twice")
        if begin < end:
            raise ValueError(f"{path}.{name}: overlaps {last} at {unit} {begin}")
        if begin > end:
            raise ValueError(f"{path}: {unit}s {end} to {begin - 1} are undeclared: declare them as reserved")
        names.add(name)
        end, last = stop, name
    if end > size:
        raise ValueError(f"{path}.{last}: ends at {unit} {end - 1} of {size}")
    if end < size:
        raise ValueError(f"{path}: {unit}s {end} to {size - 1} are undeclared: declare them as reserved")

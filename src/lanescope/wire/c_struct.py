"""C structs of fixed layout, little endian, declared as data, and the codec and numpy dtype that follow from it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lanescope.declaration import frozen_class
from lanescope.wire.record import NO_NAMES, Record, check_cover, check_integer, check_keys, check_name, check_status

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np

#: Integer types of a member: size in bytes and sign.
INTEGERS = {f"{sign}{8 * size}": (size, sign == "i") for sign, size in itertools.product("ui", (1, 2, 4, 8))}


@frozen_class
class Member:
    """A named place in a struct.

    Padding is a member like any other (``Member("padding", 20, "u8", count=12, default=0)``): it is kept.

    Attributes:
        name: lower case, unique in its struct.
        offset: bytes from the begin of the struct.
        type: ``u8`` to ``u64``, ``i8`` to ``i64``, a ``Record`` (a word of bit fields), or a ``Struct``.
        doc: one line, what a value means.
        count: length of an array, None for a single value.
        values: names of values, where the member is an enumeration; other values stay legal.
        unit: ``cycles``, ``ns``, ``bytes`` or empty.
        default: what encoding writes (to each element) when the value is not given; None: it must be given.
        status: one of ``STATUSES``, empty: that of its struct.

    Raises:
        ValueError: the declaration contradicts itself.

    Example:
        >>> Member("depth", offset=48, type="i16", count=3).size
        6
    """

    name: str
    offset: int
    type: str | Record | Struct
    doc: str = ""
    count: int | None = None
    values: Mapping[int, str] = NO_NAMES
    unit: str = ""
    default: int | None = None
    status: str = ""

    def __hash__(self) -> int:
        return hash((self.name, self.offset, self.count))

    def __post_init__(self) -> None:
        """Refuse a type without a size in bytes."""
        check_name(self.name)
        check_status(self.status or "unknown", self.name)
        if self.offset < 0 or (self.count is not None and self.count < 1):
            raise ValueError(f"{self.name}: offset {self.offset} and count {self.count} select no bytes")
        numbers = (*self.values, *(() if self.default is None else (self.default,)))
        if isinstance(self.type, str):
            if self.type not in INTEGERS:
                raise ValueError(f"{self.name}: unknown type {self.type!r} (choose from {', '.join(INTEGERS)})")
            size, signed = INTEGERS[self.type]
            for value in numbers:
                check_integer(value, 8 * size, self.name, signed=signed)
        elif numbers:
            raise ValueError(f"{self.name}: named values and a default require an integer")
        if isinstance(self.type, Record) and self.type.bits not in (8, 16, 32, 64):
            raise ValueError(f"{self.name}: {self.type.name} of {self.type.bits} bits must take 1, 2, 4 or 8 bytes")

    @property
    def element_size(self) -> int:
        """Bytes of one element."""
        if isinstance(self.type, str):
            return INTEGERS[self.type][0]
        return self.type.bits // 8 if isinstance(self.type, Record) else self.type.size

    @property
    def size(self) -> int:
        """Bytes in all."""
        return self.element_size * (1 if self.count is None else self.count)

    def label(self, value: int) -> str:
        """Return the declared name of ``value``, or the number as text."""
        return self.values.get(value, str(value))


@frozen_class
class Struct:
    """A little-endian C struct whose members cover every byte once.

    A union is two structs over the same bytes: ``array.view(other.dtype)`` looks at rows the other way.

    Attributes:
        name: what it is called, unique in its format.
        size: bytes, trailing padding included.
        members: the members; padding is declared too.
        doc: one line, what a struct is.
        source: where the layout is written down.
        status: one of ``STATUSES``.

    Raises:
        ValueError: a byte is declared twice or never, or lies outside; the message names it.

    Example:
        >>> task = Struct("task", size=16, members=(
        ...     Member("start_cycles", 0, "u64"), Member("depth", 8, "i16", count=2), Member("id", 12, "u32")))
        >>> raw = task.encode({"start_cycles": 7, "depth": [-1, 2], "id": 3})
        >>> task.decode(raw)
        {'start_cycles': 7, 'depth': [-1, 2], 'id': 3}
        >>> import numpy as np
        >>> np.frombuffer(raw * 2, task.dtype)["depth"].tolist()
        [[-1, 2], [-1, 2]]
    """

    name: str
    size: int
    members: tuple[Member, ...]
    doc: str = ""
    source: str = ""
    status: str = "documented"

    def __post_init__(self) -> None:
        """Check that the members cover the struct exactly."""
        object.__setattr__(self, "members", tuple(self.members))
        check_status(self.status, self.name)
        spans = [(m.offset, m.offset + m.size, m.name) for m in self.members]
        check_cover(self.name, self.size, spans, unit="byte")

    def __getitem__(self, name: str) -> Member:
        """Return the member ``name``; ``KeyError`` if there is none."""
        for member in self.members:
            if member.name == name:
                return member
        raise KeyError(f"{self.name}.{name}")

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy structured type of the same layout; words of bit fields appear as unsigned integers."""
        import numpy as np

        formats: list[Any] = []
        for member in self.members:
            kind: Any
            if isinstance(member.type, Struct):
                kind = member.type.dtype
            else:
                sign = member.type[0] if isinstance(member.type, str) else "u"
                kind = np.dtype(f"<{sign}{member.element_size}")
            formats.append(kind if member.count is None else (kind, (member.count,)))
        return np.dtype(
            {
                "names": [member.name for member in self.members],
                "formats": formats,
                "offsets": [member.offset for member in self.members],
                "itemsize": self.size,
            }
        )

    def decode(self, buffer: bytes | bytearray | memoryview) -> dict[str, Any]:
        """Split a struct into its members.

        Args:
            buffer: exactly ``size`` bytes.

        Returns:
            Member name to value: int, dict (bit fields, nested struct) or list of them (arrays); padding included.

        Raises:
            ValueError: the buffer has another size, or a nested word has another prefix.
        """
        view = memoryview(buffer).cast("B")
        if len(view) != self.size:
            raise ValueError(f"{self.name}: expected {self.size} bytes, got {len(view)}")
        values: dict[str, Any] = {}
        for member in self.members:
            step = member.element_size
            begins = range(member.offset, member.offset + member.size, step)
            elements = [_decode_element(member.type, view[begin : begin + step]) for begin in begins]
            values[member.name] = elements[0] if member.count is None else elements
        return values

    def encode(self, values: Mapping[str, Any]) -> bytes:
        """Put members together to a struct: the exact inverse of ``decode``.

        Args:
            values: member name to value, as ``decode`` returns them; members with a default may be absent.

        Returns:
            ``size`` bytes.

        Raises:
            ValueError: a value is missing, does not fit or belongs to no member; the message has its path.
        """
        return self._encode(values, self.name)

    def _encode(self, values: Mapping[str, Any], path: str) -> bytes:
        check_keys(path, values, {m.name: m.default is not None for m in self.members})
        out = bytearray(self.size)
        for member in self.members:
            here = f"{path}.{member.name}"
            length = 1 if member.count is None else member.count
            elements: Sequence[Any] = [member.default] * length
            if member.name in values:
                elements = [values[member.name]] if member.count is None else values[member.name]
            if not isinstance(elements, Sequence) or len(elements) != length:
                raise ValueError(f"{here}: invalid value {elements!r}: expected a list of {length}")
            for position, element in enumerate(elements):
                place = here if member.count is None else f"{here}[{position}]"
                begin = member.offset + position * member.element_size
                out[begin : begin + member.element_size] = _encode_element(member.type, element, place)
        return bytes(out)


def _decode_element(kind: str | Record | Struct, view: memoryview) -> Any:
    if isinstance(kind, Struct):
        return kind.decode(view)
    if isinstance(kind, Record):
        return kind.decode(int.from_bytes(view, "little"))
    return int.from_bytes(view, "little", signed=INTEGERS[kind][1])


def _encode_element(kind: str | Record | Struct, value: Any, path: str) -> bytes:
    if isinstance(kind, Struct):
        return kind._encode(value, path)
    if isinstance(kind, Record):
        return kind.encode(value, path=path).to_bytes(kind.bits // 8, "little")
    size, signed = INTEGERS[kind]
    return check_integer(value, 8 * size, path, signed=signed).to_bytes(size, "little", signed=signed)

"""Lines for people who look at a file unit by unit, made from the declaration of its layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lanescope.wire.c_struct import Member, Struct
from lanescope.wire.record import Record


def dump_lines(layout: Record | Struct, data: bytes | bytearray | memoryview, *, offset: int = 0) -> Iterator[str]:
    """Yield a line for each unit: its offset, its bytes, the name of the layout, and the fields with named values.

    Args:
        layout: what each unit is: a record of 8, 16, 32 or 64 bits, or a struct; little endian.
        data: units one after the other; an incomplete last one gets a line that says so.
        offset: of the data in the file.

    Example:
        >>> from lanescope.wire import Field
        >>> flag = Record("flag", bits=8, fields=(
        ...     Field("lamp", lsb=0, width=4), Field("state", lsb=4, width=4, values={0: "off", 1: "on"})))
        >>> list(dump_lines(flag, bytes([0x13]), offset=16))
        ['0x00000010  13  flag  lamp=3 state=on']
    """
    view = memoryview(data).cast("B")
    size = layout.bits // 8 if isinstance(layout, Record) else layout.size
    for at in range(0, len(view), size):
        raw = view[at : at + size]
        place = f"{offset + at:#010x}  {raw.hex(' ')}  {layout.name}"
        if len(raw) < size:
            yield f"{place}  incomplete: {len(raw)} of {size} bytes"
        elif isinstance(layout, Record):
            yield f"{place}  {' '.join(_fields(layout, layout.unpack(int.from_bytes(raw, 'little'))))}"
        else:
            yield f"{place}  {' '.join(_fields(layout, layout.decode(raw)))}"


def _fields(layout: Record | Struct, values: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Yield ``name=value`` for each field, those of nested words and structs by their path."""
    for name, value in values.items():
        item = layout[name]
        if isinstance(item, Member) and not isinstance(item.type, str):
            for number, element in enumerate(value if item.count else [value]):
                place = f"{path}{name}[{number}]." if item.count else f"{path}{name}."
                yield from _fields(item.type, element, place)
        else:
            yield f"{path}{name}=" + ",".join(map(item.label, value if isinstance(value, list) else [value]))

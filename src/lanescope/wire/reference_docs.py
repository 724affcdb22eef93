"""The reference tables of the documentation, made from the declared layouts (Markdown)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope.wire.frame_codec import FrameSet
from lanescope.wire.record import Field, Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from lanescope.wire.c_struct import Member, Struct


def table(layout: Record | Struct | FrameSet) -> str:
    """Return the Markdown of one layout: position, meaning, confidence and source of each field.

    Bits are counted as in ``Field``: 0 is the least significant one. Offsets and sizes of structs are bytes. The
    fields of a frame set come in a second table, one row for all frames that share the meaning.

    Example:
        >>> word = Record("word", bits=8, source="manual 2.1", fields=(
        ...     Field("kind", lsb=0, width=1, doc="What it marks.", values={0: "begin", 1: "end"}),
        ...     Field("count", lsb=1, width=7, unit="cycles", status="observed")))
        >>> print(table(word))
        | bits | name | meaning | status |
        |---|---|---|---|
        | 7:1 | `count` | in cycles | observed |
        | 0 | `kind` | What it marks. 0 = `begin`, 1 = `end` | documented |
        <BLANKLINE>
        Source: manual 2.1
    """
    if isinstance(layout, Record):
        return _with_source(_record_table(layout), layout.source)
    if isinstance(layout, FrameSet):
        return _frame_set_tables(layout)
    rows = [
        (str(m.offset), str(m.size), f"`{m.name}`", _type(m), _meaning(m), m.status or layout.status)
        for m in sorted(layout.members, key=lambda member: member.offset)
    ]
    return _with_source(_markdown(("offset", "size", "name", "type", "meaning", "status"), rows), layout.source)


def _record_table(record: Record) -> str:
    rows: list[tuple[str, ...]] = []
    if record.prefix:
        rows.append((_bits(record.bits - len(record.prefix), len(record.prefix)), f"`{record.prefix}`", "prefix", ""))
    rows += [
        (_bits(f.lsb, f.width), f"`{f.name}`", _meaning(f), f.status or record.status)
        for f in sorted(record.fields, key=lambda item: -item.lsb)
    ]
    return _markdown(("bits", "name", "meaning", "status"), rows)


def _frame_set_tables(frame_set: FrameSet) -> str:
    frames: list[tuple[str, ...]] = []
    users: dict[tuple[str, str, str], list[str]] = {}
    for record in frame_set.records:
        fields = sorted(record.fields, key=lambda item: -item.lsb)
        layout = " ".join([f"`{record.prefix}`", *(f"{f.name}[{f.width}]" for f in fields)])
        frames.append((f"`{record.name}`", str(record.bits), layout, record.doc, record.status, record.source))
        for item in fields:
            key = f"`{item.name}`", _meaning(item), item.status or "that of its frame"
            users.setdefault(key, []).append(f"`{record.name}`")
    parts = [_markdown(("frame", "bits", "layout, highest bit first", "meaning", "status", "source"), frames)]
    if users:
        rows = [(name, ", ".join(names), meaning, status) for (name, meaning, status), names in users.items()]
        parts.append(_markdown(("field", "frames", "meaning", "status"), rows))
    codes = ", ".join(f"`{code}`" for code in frame_set.unassigned_prefixes) or "none"
    parts.append(
        f"Words of {frame_set.word_bits} bits are filled up with `{frame_set.padding}`. Unassigned codes: {codes}."
    )
    return "\n\n".join(parts)


def _bits(lsb: int, width: int) -> str:
    return str(lsb) if width == 1 else f"{lsb + width - 1}:{lsb}"


def _type(member: Member) -> str:
    name = member.type if isinstance(member.type, str) else f"`{member.type.name}`"
    return name if member.count is None else f"{name}[{member.count}]"


def _meaning(item: Field | Member) -> str:
    names = ", ".join(f"{value} = `{name}`" for value, name in item.values.items())
    return " ".join(part for part in (item.doc, f"in {item.unit}" if item.unit else "", names) if part)


def _with_source(text: str, source: str) -> str:
    return f"{text}\n\nSource: {source}" if source else text


def _markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    cells = [[cell.replace("|", "\\|").replace("\n", " ") for cell in line] for line in lines]
    text = "\n".join(f"| {' | '.join(line)} |" for line in cells)
    return text.replace("| --- " * len(header) + "|", "|---" * len(header) + "|", 1)

"""What a capture holds, line by line: the entries of the file, the elements of its lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lanescope.devices.ascend.decoder import is_binary, read
from lanescope.devices.ascend.formats.files import entries
from lanescope.devices.ascend.formats.records import Bytes, Section
from lanescope.devices.ascend.interpret.sidecars import load

if TYPE_CHECKING:
    from lanescope.source import Capture

_SHOWN_BYTES = 60


def packet_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each entry of the records file, or each buffer of a dump."""
    text, path = load(capture.main), capture.main.path
    if is_binary(text):
        from lanescope.devices.ascend.formats.dump_parts import split_sections

        found = split_sections(text[:-1], options.get("index") or 0)
        for piece in () if found is None else found.pieces:
            raw = text[piece.begin : min(piece.end, piece.begin + _SHOWN_BYTES // 4)].tobytes().hex(" ")
            of = f"  {piece.stream} {piece.index} seq={piece.seq}" if piece.stream else ""
            yield f"{piece.begin:#010x}  {raw}...  {piece.what}{of}  bytes={piece.end - piece.begin}"
        return
    for key, begin, end in entries(text, path):
        raw = _text(text, begin, min(end, begin + _SHOWN_BYTES))
        yield f"{begin:#010x}  {raw}{'...' if end - begin > _SHOWN_BYTES else ''}  {key}  bytes={end - begin}"


def record_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each element of the lists, in the order of the file."""
    text, path = load(capture.main), capture.main.path
    shown = _hex if is_binary(text) else _text
    records = read(text, path, options)
    sections = [section for section in records.as_read.values() if len(section)]
    for section in sorted(sections, key=lambda section: int(section.begin[0])):
        masks = {cell.name: section.has(cell.name) for cell in section.layout.cells}
        for row, (begin, end) in enumerate(zip(section.begin.tolist(), section.end.tolist(), strict=True)):
            place = f"[{section.group[row]}]" if section.layout.depth == 2 else ""
            fields = " ".join(f"{name}={_value(section, name, row)}" for name, mask in masks.items() if mask[row])
            yield f"{begin:#010x}  {shown(text, begin, end)}  {section.layout.name}{place}  {fields}"
        tally = section.tally
        if tally.bad_first is not None:
            yield f"{tally.bad_first:#010x}  not understood: {tally.bad_count} elements, {tally.bad_bytes} bytes"
    if records.cut is not None:
        yield f"{records.cut:#010x}  cut off: {records.size - records.cut} bytes"


def _value(section: Section, name: str, row: int) -> str:
    value = section[name][row]
    return section.texts[value] if section.layout[name].kind == "text" else str(value.tolist())


def _hex(text: Bytes, begin: int, end: int) -> str:
    return text[begin:end].tobytes().hex(" ")


def _text(text: Bytes, begin: int, end: int) -> str:
    return " ".join(text[begin:end].tobytes().decode("utf-8", "backslashreplace").split())

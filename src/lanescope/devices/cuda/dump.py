"""Lines for people who look at a buffer word by word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.decoder import with_layout
from lanescope.devices.cuda.formats import layout, layout_detection
from lanescope.devices.cuda.formats.buffer import Buffer
from lanescope.devices.cuda.formats.layout import (
    FLASHINFER_V2_RECORD,
    LS2_HEADER,
    PROTON_HEADER,
    TIRX_HEADER,
    TIRX_RECORD,
)
from lanescope.devices.cuda.formats.strided import StridedBuffer
from lanescope.devices.cuda.formats.word_source import WordSource, content_of
from lanescope.source import Capture

#: Fields that most records leave empty.
_RARE = ("token", "payload", "value_type", "is_end", "end")


def packet_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each word."""
    content = content_of(capture.main.read())
    width = 4 if (options["layout"] or layout_detection.layout_of(content)) == layout.PROTON else 8
    yield from _packets(content.words(width), content.before)


def record_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each word with its fields; those say so that are no record of their slot's lane."""
    content = content_of(capture.main.read())
    buffer = layout_detection.read(content, with_layout(capture, options))
    if isinstance(buffer, StridedBuffer):
        yield from _strided(buffer, content.before)
    else:
        yield from _records(buffer, content)


def _line(slot: int, before: int, word: int, text: str, width: int = 8) -> str:
    raw = word.to_bytes(width, "little").hex(" ")
    return f"{before + slot * width:#010x}  {raw}  {text}"


def _packets(words: npt.NDArray[Any], before: int) -> Iterator[str]:
    """Yield a line for each word that is not zero, and one for each run of zeros."""
    width = words.itemsize
    at = 0
    for slot in np.flatnonzero(words).tolist():
        if slot > at:
            yield _empty(at, slot, before, width)
        text = f"slot {slot} " + ("header" if slot == 0 else "record") if width == 8 else f"word {slot}"
        yield _line(slot, before, int(words[slot]), text, width)
        at = slot + 1
    if at < len(words):
        yield _empty(at, len(words), before, width)


def _empty(first: int, last: int, before: int, width: int) -> str:
    count = last - first
    where = f"slots {first} to {last - 1}" if count > 1 else f"slot {first}"
    return f"{before + first * width:#010x}  {'':{3 * width - 1}}  {where} empty"


def _strided(buffer: StridedBuffer, before: int) -> Iterator[str]:
    """Yield a line for the header and for each word that is not zero."""
    header = int(buffer.words.window(0, 1)[0])
    yield _line(0, before, header, "header  " + _fields(TIRX_HEADER.decode(header)))
    geometry = buffer.tirx.geometry
    groups, stride = geometry.num_groups, geometry.stride
    record = FLASHINFER_V2_RECORD if buffer.format == layout.FLASHINFER_V2 else TIRX_RECORD
    _, make = buffer.raw()
    for row in make(before).rows():
        fields = record.decode(row["word"])
        name = TIRX_RECORD["kind"].label(fields.pop("kind"))
        if record is FLASHINFER_V2_RECORD:
            place = f"group={row['lane'] % groups}"
        else:
            place = f"block={row['lane'] // groups} group={row['lane'] % groups}"
        place += f" index={(row['slot'] - 1) // stride}" if stride else ""
        wrong = "" if row["is_read"] else "  NOT OF THIS LANE" if stride else "  NO SUCH LANE"
        yield _line(row["slot"], before, row["word"], f"{name:8}  {_fields(fields)} {place}{wrong}")


def _records(buffer: Buffer, content: WordSource) -> Iterator[str]:
    """Yield a line for the file header, and one for each record of a layout whose lanes lie end to end."""
    data, before = content.words(1), content.before
    if buffer.format in (layout.LS2, layout.PROTON):
        header = LS2_HEADER if buffer.format == layout.LS2 else PROTON_HEADER
        fields = header.decode(int.from_bytes(data[: header.bits // 8].tobytes(), "little"))
        yield f"{before:#010x}  header  " + _fields({name: value for name, value in fields.items() if value})
    _, make = buffer.raw()
    for row in make(before + buffer.main_at).rows():
        kind = row.pop("kind", None) or row.pop("type", "")
        shown = {name: value for name, value in row.items() if name not in ("slot", "offset", "word")}
        shown = {name: value for name, value in shown.items() if value or name not in _RARE}
        raw = data[row["offset"] - before :][:8].tobytes().hex(" ")
        yield f"{row['offset']:#010x}  {raw}  {kind:11}  {_fields(shown)}"


def _fields(fields: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in fields.items())

"""The stages of decoding as text: packets, frames."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lanescope.devices.aie.formats import raw_frames
from lanescope.devices.aie.formats.layout import HEADER, PACKET_RUN, RUNS, ZEROS_RUN, module_of

if TYPE_CHECKING:
    from lanescope.source import Capture

#: Longer runs of words are shown by their beginning.
_SHOWN_WORDS = 8


def packet_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each packet and each run of other words: byte offset, words, what they are, header."""
    words = raw_frames.Words.of(capture.main.read(), _header(capture, options))
    packets = raw_frames.Packets.of(words)
    for first, count, run, source in packets.entries.tolist():
        shown = 1 if run == ZEROS_RUN else min(count, _SHOWN_WORDS)
        raw = " ".join(f"{word:08x}" for word in words.values[first : first + shown].tolist())
        more = f" +{count - shown}" if count > shown else ""
        fields = f"words={count}"
        if source >= 0:
            header = HEADER.decode(packets.headers[source])
            place = " ".join(f"{name}={header[name]}" for name in ("column", "row", "id"))
            fields = f"{module_of(header)} {place}"
            fields += "" if run == PACKET_RUN else f" words={count}"
        yield f"{int(words.offsets[first]):#010x}  {raw}{more}  {RUNS[run]}  {fields}"


def _header(capture: Capture, options: Mapping[str, Any]) -> int | None:
    from lanescope.devices.aie import config
    from lanescope.devices.aie.interpret import stream_place

    known, _ = config.find(capture, options)
    return stream_place.header_of(capture, options, known)


def record_lines(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each frame: byte offset and bit, bits, name, module, fields."""
    shown = ("mask", "cycles", "repeats", "mode", "is_restart", "timer", "pc", "trips", "is_wrapped")
    for row in raw_frames.frames_of(capture.main, _header(capture, options)).rows():
        header = HEADER.decode(row["header"])
        values = {name: row[name] for name in shown if row[name] is not None}
        if "mask" in values:
            values["mask"] = f"{values['mask']:08b}"
        fields = " ".join(f"{name}={int(value) if name != 'mask' else value}" for name, value in values.items())
        where = f"{module_of(header)} ({header['column']}, {header['row']})"
        raw = f"{row['raw']:0{-(-row['bits'] // 4)}x}"
        yield f"{row['offset']:#010x}.{row['bit']:02}  {raw}  {row['name']}  {where} {fields}".rstrip()

"""Lines for people who look at a buffer word by word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lanescope.devices.base import STAGES
from lanescope.devices.cuda.decode import CudaDecoder, records_table, words_of
from lanescope.devices.cuda.layout import TIRX_HEADER, TIRX_RECORD, WORD_BYTES
from lanescope.devices.cuda.tirx import TirxBuffer, Words
from lanescope.errors import UsageError
from lanescope.source import Capture
from lanescope.trace import Flag, Trace


def dump(capture: Capture, stage: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a stage.

    Args:
        capture: the opened capture.
        stage: ``packet``: the words; ``record``: their fields, and which are no record of their slot's lane; ``row``:
            the rows of the trace.
        options: decode options.
    """
    if stage not in STAGES:
        raise UsageError(f"there is no stage {stage!r}", hint="there are " + ", ".join(STAGES))
    if stage == "row":
        decoder = CudaDecoder(capture, options)
        for chunk in capture.main.chunks():
            decoder.feed(chunk)
        yield from _rows(decoder.finish()[0])
        return
    content = words_of(capture.main.read())
    if stage == "packet":
        yield from _packets(content.words, content.before)
    else:
        yield from _records(TirxBuffer.read(content.words, stride=options["stride"]), content.before)


def _line(slot: int, before: int, word: int, text: str) -> str:
    raw = word.to_bytes(WORD_BYTES, "little").hex(" ")
    return f"{before + slot * WORD_BYTES:#010x}  {raw}  {text}"


def _packets(words: Words, before: int) -> Iterator[str]:
    """Yield a line for each word that is not zero, and one for each run of zeros."""
    at = 0
    for slot in np.flatnonzero(words).tolist():
        if slot > at:
            yield _empty(at, slot, before)
        yield _line(slot, before, int(words[slot]), f"slot {slot} " + ("header" if slot == 0 else "record"))
        at = slot + 1
    if at < len(words):
        yield _empty(at, len(words), before)


def _empty(first: int, last: int, before: int) -> str:
    count = last - first
    where = f"slots {first} to {last - 1}" if count > 1 else f"slot {first}"
    return f"{before + first * WORD_BYTES:#010x}  {'':{3 * WORD_BYTES - 1}}  {where} empty"


def _records(buffer: TirxBuffer, before: int) -> Iterator[str]:
    """Yield a line for the header and for each word that is not zero."""
    header = int(buffer.words[0])
    yield _line(0, before, header, "header  " + _fields(TIRX_HEADER.decode(header)))
    groups, stride = buffer.geometry.num_groups, buffer.geometry.stride
    for row in records_table(buffer, before).rows():
        fields = TIRX_RECORD.decode(row["word"])
        name = TIRX_RECORD["kind"].label(fields.pop("kind"))
        place = f"block={row['lane'] // groups} group={row['lane'] % groups}"
        place += f" index={(row['slot'] - 1) // stride}" if stride else ""
        wrong = "" if row["is_read"] else "  NOT OF THIS LANE" if stride else "  NO SUCH LANE"
        yield _line(row["slot"], before, row["word"], f"{name:8}  {_fields(fields)} {place}{wrong}")


def _fields(fields: Mapping[str, int]) -> str:
    return " ".join(f"{name}={value}" for name, value in fields.items())


def _rows(trace: Trace) -> Iterator[str]:
    """Yield a line for each slice, instant, gap and stat."""
    names = dict(zip(trace.tracks["id"].tolist(), trace.tracks["name"].tolist(), strict=True))
    parents = dict(zip(trace.tracks["id"].tolist(), trace.tracks["parent_id"].tolist(), strict=True))

    def lane(track: int) -> str:
        return f"{names[parents[track]]} / {names[track]}"

    for row, region in zip(trace.slices.rows(), trace.details["cuda_regions"].rows(), strict=True):
        dur = "open" if row["dur"] is None else row["dur"]
        end = "-" if region["end_slot"] is None else region["end_slot"]
        yield (
            f"slice {row['id']}  {lane(row['track_id'])}  ts={row['ts']} dur={dur} {row['name']}"
            f"  slots {region['begin_slot']} {end}{_flags(row['flags'])}"
        )
    for row, mark in zip(trace.instants.rows(), trace.details["cuda_marks"].rows(), strict=True):
        yield (
            f"instant {row['id']}  {lane(row['track_id'])}  ts={row['ts']} {row['name']}"
            f"  slot {mark['slot']}{_flags(row['flags'])}"
        )
    for row in trace.gaps.rows():
        yield (
            f"gap {row['id']}  {lane(row['track_id'])}  ts={row['ts']} dur={row['dur']} {row['cause']}"
            f" lost={row['lost_count']}"
        )
    for row in trace.stats.rows():
        yield f"stat {row['name']} {row['count']} ({row['severity']})"


def _flags(flags: int) -> str:
    names = [flag.name.lower() for flag in Flag if flags & flag and flag.name]
    return f"  [{' '.join(names)}]" if names else ""

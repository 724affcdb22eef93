"""The stages of decoding as text: packets, frames, rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.devices.aie.decoder import AieDecoder
from lanescope.devices.aie.formats import raw_frames
from lanescope.devices.aie.formats.layout import HEADER, PACKET_RUN, RUNS, ZEROS_RUN, module_name
from lanescope.errors import UsageError
from lanescope.trace import Trace

if TYPE_CHECKING:
    from lanescope.source import Capture

#: Longer runs of words are shown by their beginning.
_SHOWN_WORDS = 8
#: Tables that say more of an instant, and what is shown of it all.
_DETAILS = ("aie_pc_events", "aie_program_flow")
_ROW_FIELDS = (
    *("dur", "name", "cause", "lost_count", "first_offset"),
    *("pc", "cycles", "count", "trips", "is_wrapped", "quality", "flags"),
)


def dump(capture: Capture, stage: str, options: Mapping[str, Any]) -> Iterator[str]:
    """Yield one line a unit: byte offset (rows: time), raw words or bits, name, fields."""
    if stage == "packet":
        return _packets(capture)
    if stage == "record":
        return _records(capture)
    if stage == "row":
        return _rows(capture, options)
    raise UsageError(f"there is no stage {stage!r}", hint="there are packet, record and row")


def _packets(capture: Capture) -> Iterator[str]:
    words = raw_frames.Words.of(capture.main.read())
    packets = raw_frames.Packets.of(words)
    for first, count, run, source in packets.entries.tolist():
        shown = 1 if run == ZEROS_RUN else min(count, _SHOWN_WORDS)
        raw = " ".join(f"{word:08x}" for word in words.values[first : first + shown].tolist())
        more = f" +{count - shown}" if count > shown else ""
        fields = f"words={count}"
        if source >= 0:
            header = HEADER.decode(packets.headers[source])
            place = " ".join(f"{name}={header[name]}" for name in ("column", "row", "id"))
            fields = f"{module_name(header['type'])} {place}"
            fields += "" if run == PACKET_RUN else f" words={count}"
        yield f"{int(words.offsets[first]):#010x}  {raw}{more}  {RUNS[run]}  {fields}"


def _records(capture: Capture) -> Iterator[str]:
    shown = ("mask", "cycles", "repeats", "mode", "is_restart", "timer", "pc", "trips", "is_wrapped")
    for row in raw_frames.frames_of(capture.main).rows():
        header = HEADER.decode(row["header"])
        values = {name: row[name] for name in shown if row[name] is not None}
        if "mask" in values:
            values["mask"] = f"{values['mask']:08b}"
        fields = " ".join(f"{name}={int(value) if name != 'mask' else value}" for name, value in values.items())
        where = f"{module_name(header['type'])} ({header['column']}, {header['row']})"
        raw = f"{row['raw']:0{-(-row['bits'] // 4)}x}"
        yield f"{row['offset']:#010x}.{row['bit']:02}  {raw}  {row['name']}  {where} {fields}".rstrip()


def _rows(capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
    decoder = AieDecoder(capture, options)
    batches: list[Trace] = []
    for chunk in capture.main.chunks():
        batches += decoder.feed(chunk)
    trace = Trace.concat([*batches, *decoder.finish()])
    names, parents = trace.tracks.values("name").tolist(), trace.tracks.values("parent_id").tolist()
    has_parent = trace.tracks.valid("parent_id").tolist()
    lanes = [f"{names[parents[i]]} / {name}" if has_parent[i] else name for i, name in enumerate(names)]
    # In the order of time; where two begin together, in the order in which they were decoded.
    tables = (trace.slices, trace.instants, trace.gaps)
    told = {row.pop("instant_id"): row for name in _DETAILS for row in trace.details[name].rows()}
    order = np.argsort(np.concatenate([table.values("ts") for table in tables]), kind="stable")
    rows = [(table.spec.name[:-1], row) for table in tables for row in table.rows()]
    for index in order.tolist():
        kind, row = rows[index]
        if kind == "instant":
            row = {**row, **told.get(row["id"], {})}
        fields = " ".join(
            f"{name}={row[name]}" for name in _ROW_FIELDS if name in row and row[name] not in (None, 0, "exact")
        )
        yield f"{row['ts']}  {kind}  {lanes[row['track_id']]}  {fields}"

"""Where the declared fields of a dump of device memory lie, by struct."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lanescope.devices.ascend.formats import dump_parts
from lanescope.devices.ascend.formats.device_structs import AICORE_RECORD, AICPU_RECORD, POOL, QUEUE_ENTRY
from lanescope.devices.ascend.formats.field_map.json_files import PossibleValues
from lanescope.devices.ascend.formats.layout import AICORE, AICPU
from lanescope.families.field_sites import FieldMap, FieldSites, Possible, RecordSites, never
from lanescope.wire import Member, Struct


def dump_map(file: str, content: bytes) -> FieldMap:
    """Return the sites of a dump: header, pools that are used, entries, and the valid records of each buffer."""
    whole = np.frombuffer(content, np.uint8)
    found = dump_parts.split_sections(whole)
    made = FieldMap()
    if found is None:
        return made
    places: dict[str, tuple[Struct, list[int], list[int]]] = {}
    for number, piece in enumerate(found.pieces):
        if piece.what == "header" and found.region is not None:
            places[found.region.header.name] = found.region.header, [0], [0]
        elif piece.what == "pools":
            used = _used_pools(content, piece)
            places[POOL.name] = POOL, used, list(range(len(used)))
        elif piece.what == "entry":
            _, begin, lane = places.setdefault(QUEUE_ENTRY.name, (QUEUE_ENTRY, [], []))
            begin.append(piece.begin)
            lane.append(0)
        elif piece.what == "buffer":
            buffer = dump_parts.buffer_of(piece.stream, found.format_version or "v3c")
            record = buffer["records"].type
            assert isinstance(record, Struct)
            count = dump_parts.valid_count(whole, found, piece)
            _, begin, lane = places.setdefault(record.name, (record, [], []))
            begin += [piece.begin + record.size * row for row in range(count)]
            lane += [number] * count
            made.fields.append(_member(buffer.name, buffer["count"], file, [piece.begin], [number]))
    made.fields = _merged(made.fields)
    frequency = 0 if found.region is None else found.region.frequency
    times = _dump_times(content, places, [piece.index for piece in found.pieces], frequency)
    for struct, begin, lane in places.values():
        for member in struct.members:
            if member.type == "u8" and "padding" in member.name:
                continue
            sites = _member(struct.name, member, file, begin, lane)
            made.fields.append(replace(sites, possible=times.get((struct.name, member.name), never)))
        if len(begin) > 1 and struct is not POOL:
            ends = [at + struct.size for at in begin]
            made.records.append(RecordSites(struct.name, file, begin, ends, lane, is_slot=True))
    return made


#: Members that are the times of the JSON files.
_DUMPED = {
    AICORE_RECORD: (AICORE, {"start_time": "start_cycles", "end_time": "end_cycles"}),
    AICPU_RECORD: (AICPU, {"dispatch_time": "dispatch_cycles", "finish_time": "finish_cycles"}),
}


#: Members in the order of the rows of the JSON files.
_COLUMNS = {
    AICORE.name: ("task_token_raw", "reg_task_id", "start_time", "end_time", "receive_to_start_cycles"),
    AICPU.name: ("reg_task_id", "dispatch_time", "finish_time"),
}


def _dump_times(
    content: bytes, places: Mapping[str, tuple[Struct, list[int], list[int]]], index: Sequence[int], frequency: int
) -> dict[tuple[str, str], Possible]:
    """Return which times are possible in the records of both streams; lanes are numbers of pieces."""
    rows: dict[str, Any] = {AICORE.key: [], AICPU.key: [], "metadata": {"clock_freq_hz": frequency}}
    for struct, (layout, _) in _DUMPED.items():
        _, begin, lane = places.get(struct.name, (struct, [], []))
        for at, piece in zip(begin, lane, strict=True):
            row = struct.decode(content[at : at + struct.size])
            rows[layout.key].append([index[piece], *(row[name] for name in _COLUMNS[layout.name])])
    possible = PossibleValues(rows)
    found: dict[tuple[str, str], Possible] = {
        (AICORE_RECORD.name, "task_token_raw"): lambda values: "a task id that nothing else tells"
    }
    for struct, (layout, names) in _DUMPED.items():
        numbers = range(len(rows[layout.key]))
        for member, name in {**names, "receive_to_start_cycles": "receive_to_start_cycles"}.items():
            found[struct.name, member] = possible.dispatch_time(layout, name, numbers)
    return found


def _used_pools(content: bytes, piece: dump_parts.Piece) -> list[int]:
    return [at for at in range(piece.begin, piece.end, POOL.size) if any(content[at : at + POOL.size])]


def _merged(fields: Sequence[FieldSites]) -> list[FieldSites]:
    """Join the sites of one member in several buffers."""
    found: dict[str, list[FieldSites]] = {}
    for sites in fields:
        found.setdefault(sites.record, []).append(sites)
    return [
        FieldSites(
            first.record,
            first.name,
            first.doc,
            first.file,
            [at for sites in of for at in sites.begin],
            first.pieces,
            lane=[lane for sites in of for lane in sites.lane],
        )
        for of in found.values()
        for first in of[:1]
    ]


def _member(record: str, member: Member, file: str, begin: Sequence[int], lane: Sequence[int]) -> FieldSites:
    """Return the sites of a member; each element of an array is one, as far as the array is used."""
    size = member.element_size
    count = min(member.count or 1, 4)
    places = [8 * (at + member.offset + size * element) for at in begin for element in range(count)]
    lanes = [number for number in lane for _ in range(count)]
    return FieldSites(record, member.name, member.doc, file, places, ((0, 8 * size),), lane=lanes)

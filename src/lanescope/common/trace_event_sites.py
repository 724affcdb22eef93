"""Where the fields of trace events in JSON lie: those of each kind of event, and of what stands next to the list."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, NamedTuple

from lanescope.families.field_sites import FieldMap, FieldSites, Possible, PossibleChange, RecordSites
from lanescope.wire.json_spans import spans

#: The list of events of an object.
LIST = "traceEvents"


class Cell(NamedTuple):
    """One value.

    Attributes:
        event: number of its event; -1: it stands next to the list.
        path: keys that lead to it, from the event or from the outermost object.
        begin, end: its bytes; of a text the quotes belong to it.
    """

    event: int
    path: tuple[str | int, ...]
    begin: int
    end: int


def event_sites(
    files: Mapping[str, bytes],
    kind_of: Callable[[Mapping[str, Any]], str],
    possible: Callable[[str, str, Sequence[Cell], Sequence[Mapping[str, Any]]], Possible],
    possible_change: Callable[[str, Sequence[int], Sequence[Mapping[str, Any]]], PossibleChange],
) -> FieldMap:
    """Return the sites of a file of trace events, the first of ``files``.

    Args:
        files: contents by their names.
        kind_of: what an event is called in the ledger.
        possible: which values of a field are possible, given its record, its name, its cells and all events. Fields
            next to the list are those of the record ``file``.
        possible_change: which changes to whole events of a kind are possible, given the kind, the numbers of its events
            and all events.
    """
    file, content = next(iter(files.items()))
    whole = json.loads(content, parse_float=Decimal)
    events = whole if isinstance(whole, list) else whole[LIST]
    kinds = [kind_of(event) for event in events]
    depth = 1 if isinstance(whole, list) else 2
    fields: dict[tuple[str, str], list[Cell]] = {}
    records: dict[str, list[Cell]] = {}
    for span in spans(content):
        is_event = len(span.path) >= depth and (depth == 1 or span.path[0] == LIST)
        number = span.path[depth - 1] if is_event else -1
        assert isinstance(number, int)
        path = span.path[depth:] if is_event else span.path
        cell = Cell(number, path, span.begin, span.end)
        if is_event and not path:
            records.setdefault(kinds[number], []).append(cell)
        elif span.is_leaf:
            name = ".".join(part for part in path if isinstance(part, str))
            fields.setdefault((kinds[number] if is_event else "file", name), []).append(cell)
    places: dict[tuple[str, str], int] = {}
    lanes = [places.setdefault((str(event.get("pid")), str(event.get("tid"))), len(places)) for event in events]
    made = FieldMap()
    for (record, name), cells in fields.items():
        made.fields.append(
            FieldSites(
                record,
                name,
                f"{name} of {record}.",
                file,
                [cell.begin for cell in cells],
                end=[cell.end for cell in cells],
                lane=[lanes[cell.event] if cell.event >= 0 else 0 for cell in cells],
                possible=possible(record, name, cells, events),
            )
        )
    for kind, cells in records.items():
        numbers = [cell.event for cell in cells]
        made.records.append(
            RecordSites(
                kind,
                file,
                [cell.begin for cell in cells],
                [cell.end for cell in cells],
                # Of each kind only neighbors in the file are exchanged or repeated.
                [0] * len(cells),
                joint=b",",
                possible=possible_change(kind, numbers, events),
            )
        )
    return made

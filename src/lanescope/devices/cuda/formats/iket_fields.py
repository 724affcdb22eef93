"""Where the fields of an IKET file lie: the values of its launches, their events, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from lanescope.devices.cuda.formats.iket_contradictions import PAYLOAD_TYPES, RANGE_TYPES
from lanescope.families.field_sites import (
    DROPPED,
    EXCHANGED,
    FieldMap,
    FieldSites,
    Possible,
    RecordSites,
    Value,
    each,
    never,
)
from lanescope.wire.json_spans import spans

_EVENTS = ("ranges", "markers", "warpLifetimes")
_NAMES = ("kernelName", "rangeName", "markerName", "stringTable", "rangeNameIdx", "markerNameIdx")
_TIMES = ("startTs", "endTs", "timestamp")
_PLACES = ("gpcId", "tpcId", "smId", "ctaId", "warpId", "locIdx", "warpLocIdxs")
_MOST = 1 << 63


def field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a file, the first of ``files``."""
    return fields_of_json(files, _EVENTS, _possible)


def fields_of_json(
    files: Mapping[str, bytes],
    lists: Collection[str],
    possible: Callable[[str, str], Possible],
    unordered: Collection[str] = (),
) -> FieldMap:
    """Return the sites of a JSON file, the first of ``files``.

    Args:
        files: contents by their names.
        lists: names of the lists whose items are records.
        possible: which values of a record's field are possible, and why.
        unordered: those of the lists whose order means nothing.
    """
    file, content = next(iter(files.items()))
    fields: dict[tuple[str, str], list[tuple[int, int]]] = {}
    records: dict[str, list[tuple[int, int]]] = {}
    for span in spans(content):
        names = [part for part in span.path if isinstance(part, str)]
        if span.is_leaf:
            fields.setdefault((".".join(names[:-1]) or "file", names[-1]), []).append((span.begin, span.end))
        elif names and isinstance(span.path[-1], int) and names[-1] in lists:
            records.setdefault(".".join(names), []).append((span.begin, span.end))
    made = FieldMap()
    for (record, name), places in fields.items():
        begin, end = (list(values) for values in zip(*places, strict=True))
        doc, lane = f"{name} of {record}.", [0] * len(begin)
        sites = FieldSites(record, name, doc, file, begin, end=end, lane=lane, possible=possible(record, name))
        made.fields.append(sites)
    for record, places in records.items():
        begin, end = (list(values) for values in zip(*places, strict=True))
        lane, changes = [0] * len(begin), _reordered if record in unordered else _dropped
        made.records.append(RecordSites(record, file, begin, end, lane, joint=b",", possible=changes))
    return made


def _dropped(change: str, _: int) -> str:
    return "events are not counted" if change == DROPPED else ""


def _reordered(change: str, index: int) -> str:
    return "in any order" if change == EXCHANGED else _dropped(change, index)


def _possible(record: str, name: str) -> Possible:
    """Return which values nothing else in a file bounds, but what ``iket_contradictions`` compares."""
    if name in _NAMES:
        return each(lambda _, value: "another name" if _is_natural(value) or isinstance(value, bytes) else "")
    if name in ("gridId", "contextId", "payloadVal"):
        return each(lambda _, value: "a number that nothing else tells" if isinstance(value, int) else "")
    if name == "rangeType":
        return each(lambda _, value: "another kind of range" if value in RANGE_TYPES else "")
    if name == "payloadType":
        return each(lambda _, value: "another type that holds the payload" if value in (0, *PAYLOAD_TYPES) else "")
    if name.startswith(("gridDim", "blockDim")):
        return each(lambda _, value: "a size that has room for all events" if _is_natural(value) else "")
    if name in _TIMES and record.endswith("warpLifetimes"):
        return each(lambda _, value: "a lifetime with all events of its warp" if _is_natural(value) else "")
    if name in _TIMES:
        return each(lambda _, value: "a time within the lifetime of its warp" if _is_natural(value) else "")
    if name in _PLACES:
        return each(lambda _, value: "another place of the grid that fits the others" if _is_natural(value) else "")
    return never


def _is_natural(value: Value) -> bool:
    return isinstance(value, int) and 0 <= value < _MOST

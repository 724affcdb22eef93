"""Reader of the JSON that NVIDIA's in-kernel event tracer (IKET) writes, in both forms: with tables, and without.

The numbers are nanoseconds of the GPU's timer from an origin of the file's own. They may be larger than 2^53, so they
stay integers. Source: the tool's published documentation, and the code of programs that read its files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeGuard

from lanescope.devices.cuda.formats.iket_contradictions import RANGE_TYPES, is_outside_grid, payload_fits
from lanescope.devices.cuda.formats.iket_contradictions import found as contradictions
from lanescope.devices.cuda.formats.iket_records import Event, Launch, Place
from lanescope.errors import InputError

#: Steps of the timer: the number of the event is in its lowest five bits.
RESOLUTION_NS = 32
START_END, PUSH_POP, SEVERAL = 1, 2, 3
_LARGEST = 1 << 63
_MOST_COORDINATE = 1 << 31
_PAYLOAD_TYPES = {
    1: "int8",
    2: "uint8",
    3: "int16",
    4: "uint16",
    5: "int32",
    6: "uint32",
    7: "int64",
    9: "fp4",
    10: "fp8",
    11: "float16",
    12: "bfloat16",
    13: "float32",
    14: "float64",
    15: "pointer",
}


def read(data: bytes | memoryview) -> tuple[list[Launch], int, int]:
    """Return the launches of a file, how many entries are unreadable, and how often something contradicts another.

    Raises:
        InputError: it is not JSON, or of another version.
    """
    import msgspec

    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"invalid JSON: {error}", hint="copy the complete file") from None
    if not isinstance(content, dict):
        raise InputError("IKET file is not a JSON object", hint="use the file iket_pid_P.trace.json")
    version = (content.get("meta") or {}).get("version", 1) if isinstance(content.get("meta") or {}, dict) else None
    if version != 1:
        raise InputError(f"unsupported IKET version {version!r}", hint="use a file of version 1")
    launches = content.get("launches")
    graphs = content.get("graphLaunches")
    if not isinstance(launches, list) and not isinstance(graphs, dict):
        raise InputError("IKET file has neither launches nor graphLaunches", hint="use the file iket_pid_P.trace.json")
    reader = _Reader(_list(content.get("stringTable")), _list(content.get("locationTable")))
    found = [reader.launch(launch, None) for launch in _list(launches)]
    for key, of_graph in (graphs if isinstance(graphs, dict) else {}).items():
        found += [reader.launch(launch, str(key)) for launch in _list(of_graph)]
    made = [launch for launch in found if launch is not None]
    return made, reader.bad, reader.wrong + sum(contradictions(made))


class _UnreadableError(Exception):
    """An entry lacks what it needs."""


class _Reader:
    def __init__(self, strings: Sequence[Any], locations: Sequence[Any]) -> None:
        self._strings, self._locations = strings, locations
        self.bad = 0
        self.wrong = 0
        self._launch: dict[str, Any] = {}
        #: Places of the table, of this launch, and what is wrong about each.
        self._places: dict[int, tuple[Place, int]] = {}

    def launch(self, value: Any, graph: str | None) -> Launch | None:
        if not isinstance(value, dict):
            self.bad += 1
            return None
        self._launch, self._places = value, {}
        grid = [value.get(f"gridDim{axis}") for axis in "XY"]
        sizes = [size if _is_natural(size) and size else 1 for size in grid]
        made = Launch(
            str(value.get("kernelName", "kernel")),
            self._number(value.get("gridId")),
            self._number(value.get("contextId")),
            graph,
        )
        made.ranges = list(self._events(value.get("ranges"), self._range, sizes))
        made.markers = list(self._events(value.get("markers"), self._marker, sizes))
        made.lifetimes = list(self._events(value.get("warpLifetimes"), self._lifetime, sizes))
        return made

    def _events(self, values: Any, read: Any, grid: list[int]) -> Iterator[Event]:
        for value in _list(values):
            try:
                yield read(_object(value), grid)
            except _UnreadableError:
                self.bad += 1

    def _range(self, value: Mapping[str, Any], grid: list[int]) -> Event:
        indices = value.get("warpLocIdxs")
        places = _list(value.get("warpLocs")) if indices is None else [self._location(at) for at in _list(indices)]
        if not places:
            raise _UnreadableError
        if indices is None:
            first, last = (self._placed(place, grid) for place in (places[0], places[-1]))
        else:
            first, last = (self._placed_at(at, grid) for at in (indices[0], indices[-1]))
        begin = _time(value.get("startTs"))
        end = None if value.get("endTs") is None else _time(value["endTs"])
        events = [event for event in _list(value.get("internalEvents")) if isinstance(event, dict)]
        payload, payload_type = _payload(events[0]) if events else (None, None)
        times = [_time(event.get("timestamp")) for event in events]
        # The first event is the start; the others lie between it and the end.
        self.wrong += bool(times and times[0] != begin)
        self.wrong += sum(time < begin or (end is not None and time > end) for time in times[1:])
        self.wrong += not all(payload_fits(event.get("payloadType", 0), event.get("payloadVal")) for event in events)
        inner = tuple(time for time in times[1:] if time != end)
        kind = value.get("rangeType")
        self.wrong += kind is not None and kind not in RANGE_TYPES
        name = self._name(value, "rangeName", "rangeNameIdx")
        of = kind if kind in (START_END, PUSH_POP, SEVERAL) else START_END
        return Event(name, begin, end, first, last, of, payload, payload_type, inner)

    def _marker(self, value: Mapping[str, Any], grid: list[int]) -> Event:
        place = self._one_place(value, "location", grid)
        payload, payload_type = _payload(value)
        self.wrong += not payload_fits(value.get("payloadType", 0), value.get("payloadVal"))
        name = self._name(value, "markerName", "markerNameIdx")
        return Event(name, _time(value.get("timestamp")), None, place, place, 0, payload, payload_type)

    def _lifetime(self, value: Mapping[str, Any], grid: list[int]) -> Event:
        place = self._one_place(value, "warpLocation", grid)
        begin, end = _time(value.get("startTs")), _time(value.get("endTs"))
        if end < begin:
            raise _UnreadableError
        return Event("warp", begin, end, place, place)

    def _number(self, value: Any) -> int | None:
        is_number = _is_natural(value) and value < _LARGEST
        self.wrong += value is not None and not is_number
        return value if is_number else None

    def _placed(self, value: Any, grid: list[int]) -> Place:
        place = _place(value, grid)
        self.wrong += is_outside_grid(value["ctaId"], place.warp, self._launch)
        units = zip(("smId", "tpcId", "gpcId"), (place.sm, place.tpc, place.gpc), strict=True)
        self.wrong += sum(unit is None and value.get(key) is not None for key, unit in units)
        return place

    def _placed_at(self, at: int, grid: list[int]) -> Place:
        """Return a place of the table, which many events of a launch name; it is wrong in each of them."""
        if at not in self._places:
            before = self.wrong
            place = self._placed(self._location(at), grid)
            self._places[at] = place, self.wrong - before
            return place
        place, wrong = self._places[at]
        self.wrong += wrong
        return place

    def _one_place(self, value: Mapping[str, Any], key: str, grid: list[int]) -> Place:
        if "locIdx" not in value:
            return self._placed(value.get(key), grid)
        self._location(value["locIdx"])
        return self._placed_at(value["locIdx"], grid)

    def _location(self, at: Any) -> Any:
        if not _is_natural(at) or at >= len(self._locations):
            raise _UnreadableError
        return self._locations[at]

    def _name(self, value: Mapping[str, Any], key: str, index: str) -> str:
        found = value.get(key)
        at = value.get(index)
        if found is None and _is_natural(at) and at < len(self._strings):
            found = self._strings[at]
        if not isinstance(found, str):
            raise _UnreadableError
        return found


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _UnreadableError
    return value


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_natural(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _time(value: Any) -> int:
    if not _is_natural(value) or value >= _LARGEST:
        raise _UnreadableError
    return int(value)


def _place(value: Any, grid: list[int]) -> Place:
    if not isinstance(value, dict):
        raise _UnreadableError
    cta, warp = value.get("ctaId"), value.get("warpId")
    if not (
        isinstance(cta, list) and len(cta) == len("xyz") and all(_is_natural(n) for n in cta) and _is_natural(warp)
    ):
        raise _UnreadableError
    if max(*cta, warp) >= _MOST_COORDINATE or max(grid) >= _MOST_COORDINATE:
        raise _UnreadableError
    x, y, z = cta
    block = (z * grid[1] + y) * grid[0] + x
    units = [value.get(key) for key in ("smId", "tpcId", "gpcId")]
    if block >= _LARGEST:
        raise _UnreadableError
    return Place(block, int(warp), *(unit if _is_natural(unit) and unit < _MOST_COORDINATE else None for unit in units))


def _payload(value: Mapping[str, Any]) -> tuple[str | None, str | None]:
    kind = value.get("payloadType", 0)
    if not kind or value.get("payloadVal") is None:
        return None, None
    return str(value["payloadVal"]), _PAYLOAD_TYPES.get(kind, f"type {kind}")

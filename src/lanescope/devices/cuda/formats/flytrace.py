"""Reader of the JSON that FlyDSL's tracer saves (``flytrace.raw.v1``): the records of each wave, by name and kind.

Ticks are those of ``s_memrealtime``, whole. Source: ROCm/FlyDSL at 6568413, python/flydsl/extension/_flytrace_rocm.py
and _flytrace_export.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.iket_records import Event, Launch, Place
from lanescope.errors import InputError

MAGIC = "flytrace.raw.v1"
_LARGEST = 1 << 62
_MOST_COORDINATE = 1 << 21
#: What ranges are to the rows: nested in their lane, or on a track of their own as they may overlap.
_OVERLAPPING, _NESTED = 1, 2
_OPENS = {"push": "stack", "range_start": "range", "boundary": "boundary"}
_CLOSES = {"pop": "stack", "range_end": "range", "end": "boundary", "boundary": "boundary"}
#: Kinds of records.
KINDS = tuple(dict.fromkeys((*_OPENS, *_CLOSES, "mark")))


@frozen_class
class Flytrace:
    """What a file holds.

    Attributes:
        launches: one for each kernel, in the order of the file.
        hz: rate of the ticks.
        bad: waves, their compute units and records that cannot be read.
        bad_bytes: what these waves and records take of the file.
        unmatched: ends without a start.
        recorded: records of all waves that can be read.
        dropped: records that had no room.
        wrong: waves whose counts contradict their records.
    """

    launches: list[Launch]
    hz: int
    bad: int
    bad_bytes: int
    unmatched: int
    recorded: int
    dropped: int
    wrong: int


def read(data: bytes | memoryview) -> Flytrace:
    """Return what a file holds.

    Raises:
        InputError: it is not JSON, or not of this form.
    """
    import msgspec

    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"invalid JSON: {error}", hint="copy the complete file") from None
    if not isinstance(content, dict) or content.get("format") != MAGIC:
        raise InputError(f"not a JSON object of the format {MAGIC}", hint="use the file that capture.save writes")
    hz, waves = content.get("clock_hz"), content.get("waves")
    if not _is_natural(hz) or not hz or not isinstance(waves, list):
        raise InputError("FlyDSL file lacks clock_hz or waves", hint="use the file that capture.save writes")
    reader = _Reader(waves)
    launches = reader.read()
    return Flytrace(
        launches,
        hz,
        reader.bad,
        _bytes_of(data, reader.bad_places),
        reader.unmatched,
        reader.recorded,
        reader.dropped,
        reader.wrong,
    )


def _bytes_of(data: bytes | memoryview, bad: Mapping[int, list[int]]) -> int:
    """Return the bytes of records, given as positions for each wave, and of whole waves: those without positions."""
    if not bad:
        return 0
    found, waves = 0, _parts(data, "waves")
    for number, positions in bad.items():
        parts = [waves[number]]
        if positions:
            events = _parts(waves[number], "events")
            parts = [events[at] for at in positions]
        found += sum(map(len, parts))
    return found


def _parts(text: bytes | memoryview, key: str) -> list[bytes]:
    """Return the text of each item of the list that an object has under a key."""
    import msgspec

    values = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
    return [bytes(part) for part in msgspec.json.decode(values[key], type=list[msgspec.Raw])]


class _Reader:
    def __init__(self, waves: list[Any]) -> None:
        self._waves = [(number, wave) for number, wave in enumerate(waves) if _is_wave(wave)]
        self.bad_places: dict[int, list[int]] = {n: [] for n, wave in enumerate(waves) if not _is_wave(wave)}
        self.bad = len(self.bad_places)
        self.unmatched = self.recorded = self.dropped = self.wrong = 0

    def read(self) -> list[Launch]:
        kernels: dict[str, list[tuple[int, Mapping[str, Any]]]] = {}
        for number, wave in self._waves:
            kernels.setdefault(wave["kernel"], []).append((number, wave))
        launches = []
        for kernel, waves in kernels.items():
            launch = Launch(kernel, None, None, None)
            # The size of the grid is not stored: that of the smallest one that has all of these blocks numbers them.
            grid = [1 + max(wave["block"][axis] for _, wave in waves) for axis in (0, 1)]
            for number, wave in waves:
                self._wave(launch, number, wave, grid)
            launches.append(launch)
        return launches

    def _wave(self, launch: Launch, number: int, wave: Mapping[str, Any], grid: list[int]) -> None:
        x, y, z = wave["block"]
        hardware = wave.get("hardware")
        compute_unit = hardware.get("cu") if isinstance(hardware, dict) else None
        if not (compute_unit is None or _is_natural(compute_unit)):
            self.bad, compute_unit = self.bad + 1, None
        place = Place((z * grid[1] + y) * grid[0] + x, wave["wave"], compute_unit)
        launch.lifetimes.append(Event("", wave["epoch"], wave["end_tick"], place, place))
        self.recorded += len(wave["events"])
        dropped = wave["attempted_events"] - len(wave["events"])
        self.dropped += max(0, dropped)
        self.wrong += dropped < 0 or wave.get("overflow", dropped > 0) != (dropped > 0)
        open_: dict[Any, list[Mapping[str, Any]]] = {}
        for record in self._records(number, wave):
            kind = record["kind"]
            if kind == "mark":
                launch.markers.append(_event(record, None, place, 0))
            of = _CLOSES.get(kind)
            if of is not None:
                starts = open_.get(_key(record, of))
                if starts:
                    type_ = _OVERLAPPING if of == "range" else _NESTED
                    launch.ranges.append(_event(starts.pop(), record["tick"], place, type_))
                elif kind != "boundary":
                    self.unmatched += 1
            of = _OPENS.get(kind)
            if of is not None:
                open_.setdefault(_key(record, of), []).append(record)
        for key, starts in open_.items():
            type_ = _OVERLAPPING if key[0] == "range" else _NESTED
            launch.ranges += [_event(start, None, place, type_) for start in starts]

    def _records(self, number: int, wave: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the records of a wave that can be read: those in order, and within its life."""
        last = wave["epoch"]
        for at, record in enumerate(wave["events"]):
            is_one = isinstance(record, dict) and isinstance(record.get("name"), str) and record.get("kind") in KINDS
            if is_one and _is_natural(record.get("tick")) and last <= record["tick"] <= wave["end_tick"]:
                last = record["tick"]
                yield record
            else:
                self.bad += 1
                self.bad_places.setdefault(number, []).append(at)


def _key(record: Mapping[str, Any], of: str) -> tuple[Any, ...]:
    """Return what a start and its end have in common: ranges have a number or a name, others follow each other."""
    if of != "range":
        return (of,)
    number = record.get("range_id")
    return (of, number if _is_natural(number) else record["name"])


def _event(record: Mapping[str, Any], end: int | None, place: Place, type_: int) -> Event:
    payload = record.get("payload")
    has_payload = isinstance(payload, int) and not isinstance(payload, bool)
    shown, kind = (str(payload), "int32") if has_payload else (None, None)
    return Event(record["name"], record["tick"], end, place, place, type_, shown, kind)


def _is_wave(wave: Any) -> bool:
    if (
        not isinstance(wave, dict)
        or not isinstance(wave.get("kernel"), str)
        or not isinstance(wave.get("events"), list)
    ):
        return False
    block = wave.get("block")
    if (
        not isinstance(block, list)
        or len(block) != 3
        or not all(_is_natural(at) and at < _MOST_COORDINATE for at in block)
    ):
        return False
    numbers = ("wave", "epoch", "end_tick", "attempted_events")
    return all(_is_natural(wave.get(name)) for name in numbers) and wave["epoch"] <= wave["end_tick"]


def _is_natural(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _LARGEST

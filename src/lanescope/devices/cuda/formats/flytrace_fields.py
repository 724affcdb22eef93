"""Where the fields of a file of FlyDSL's tracer lie: those of its waves and of their records."""

from __future__ import annotations

from collections.abc import Mapping

from lanescope.devices.cuda.formats.flytrace import KINDS
from lanescope.devices.cuda.formats.iket_fields import fields_of_json
from lanescope.families.field_sites import FieldMap, Possible, Value, each, never

_LISTS = ("waves", "events")
_MOST = 1 << 62

#: What nothing else in a file bounds, and why.
_FREE = {
    "kernel": "another name",
    "name": "another name",
    "arch": "another name",
    "backend": "another name",
    "payload": "a number that nothing else tells",
    "site": "a number that nothing else tells",
    "ordinal": "a number that nothing else tells",
    "clock_hz": "another rate",
    "block": "another place of the grid",
    "wave": "another place of the grid",
    "cu": "another place of the grid",
    "range_id": "another range that is open",
    "tick": "a time between those of its neighbors",
    "epoch": "a life with all records of its wave",
    "end_tick": "a life with all records of its wave",
}


def field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a file, the first of ``files``."""
    return fields_of_json(files, _LISTS, _possible, ("waves",))


def _possible(_: str, name: str) -> Possible:
    if name == "kind":
        kinds = [f'"{kind}"'.encode() for kind in KINDS]
        return each(lambda _, value: "another kind of record" if value in kinds else "")
    if name not in _FREE:
        return never
    reason = _FREE[name]
    if reason == "another name":
        return each(lambda _, value: reason if isinstance(value, bytes) else "")
    is_optional = name == "payload"
    return each(lambda _, value: reason if _is_number(value) or (is_optional and value == b"null") else "")


def _is_number(value: Value) -> bool:
    return isinstance(value, int) and abs(value) < _MOST

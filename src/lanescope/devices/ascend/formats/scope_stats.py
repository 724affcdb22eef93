"""Resources at the boundaries of scopes: ``scope_stats.jsonl``, one JSON object a line, the first about the run.

Source: hw-native-sys/simpler at 6ebaf77, a run of its simulated platform and its manual of scope stats (version 6).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.records import Bytes, Tally
from lanescope.errors import InputError
from lanescope.trace.column import Mask

Int64 = npt.NDArray[np.int64]

#: The version that this was written for; before it, positions in the heap wrapped.
VERSION = 6
#: Resources of a ring: each has positions of its tail and its head, and a capacity for each ring.
RINGED = ("task_window", "heap", "dep_pool")
#: The resource of all rings: entries in use.
SHARED = "tensormap"
RESOURCES = (*RINGED, SHARED)
BEGIN, END = "begin", "end"
#: Keys of the lines of boundaries, and of the first line.
_POSITIONS = tuple(f"{name}_{side}" for name in RINGED for side in ("start", "end"))
_KEYS = frozenset(("site", "phase", "depth", "ring", SHARED, *_POSITIONS))
_RUN_KEYS = frozenset(("version", "fatal", "dropped", "total", *(f"{name}_max" for name in RESOURCES)))
_MOST = (1 << 62) - 1


@frozen_class
class ScopeStats:
    """Boundaries of scopes, in the order in which they were recorded.

    Attributes:
        site: object [n], file and line of the scope.
        is_begin: bool [n].
        depth, ring: int64 [n].
        tail, head: int64 [n, resources of rings], first position in use and the next free one.
        entries: int64 [n], of the shared resource in use.
        capacity: int64 [rings, resources], -1 where it is not known.
        version: of the file, 0 without.
        is_fatal: whether the run failed: what was recorded after that is of no use.
        dropped: records that the recorder dropped.
        total: records that it tried to write; None if not recorded.
        unknown_keys: keys that no known writer has.
        tally: what of the file was read; a count of lines.
    """

    site: npt.NDArray[np.object_]
    is_begin: Mask
    depth: Int64
    ring: Int64
    tail: Int64
    head: Int64
    entries: Int64
    capacity: Int64
    version: int
    is_fatal: bool
    dropped: int
    total: int | None
    unknown_keys: int
    tally: Tally

    def __len__(self) -> int:
        return len(self.depth)


def read_scope_stats(text: Bytes, path: str) -> ScopeStats:
    """Read the boundaries; a line that is not valid as a whole is left out and counted.

    The first line is about the run. If it is not valid, what it says is unknown.

    Args:
        text: the file, uint8.
        path: for messages.

    Raises:
        InputError: no line is valid.
    """
    import msgspec

    to_run, to_row = _types()
    run: Any = None
    rows: list[Any] = []
    good, bad, count, first, unknown, at = 0, 0, 0, None, 0, 0
    for line in text.tobytes().split(b"\n"):
        offset, at = at, at + len(line) + 1
        if not line.strip():
            continue
        try:
            found = msgspec.json.decode(line)
            # Only the first line of a file may be about the run.
            is_run = run is None and not rows and isinstance(found, dict) and "version" in found
            made = msgspec.convert(found, to_run if is_run else to_row)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            first = offset if first is None else first
            bad, count = bad + len(line), count + 1
            continue
        good += len(line)
        unknown += len(found.keys() - (_RUN_KEYS if is_run else _KEYS))
        if is_run:
            run = made
        else:
            rows.append(made)
    if not good:
        raise InputError(f"{path}: no scopes found", hint="pass the scope_stats.jsonl of the run")
    positions = _array([[getattr(row, name) for name in _POSITIONS] for row in rows]).reshape(len(rows), len(RINGED), 2)
    return ScopeStats(
        site=np.fromiter((row.site for row in rows), object, len(rows)),
        is_begin=np.array([row.phase == BEGIN for row in rows], np.bool_),
        depth=_array([row.depth for row in rows]),
        ring=_array([row.ring for row in rows]),
        tail=positions[:, :, 0],
        head=positions[:, :, 1],
        entries=_array([row.tensormap for row in rows]),
        capacity=_capacity(run),
        version=0 if run is None else run.version,
        is_fatal=run is not None and run.fatal,
        dropped=0 if run is None else run.dropped,
        total=None if run is None else run.total,
        unknown_keys=unknown,
        tally=Tally(good, bad, count, first),
    )


def encode_scope_stats(scopes: ScopeStats) -> bytes:
    """Return the file of boundaries, as ``read_scope_stats`` reads it."""
    import json

    run: dict[str, Any] = {
        "version": scopes.version,
        "fatal": scopes.is_fatal,
        "dropped": scopes.dropped,
        "total": len(scopes) + scopes.dropped if scopes.total is None else scopes.total,
    }
    run |= {f"{name}_max": scopes.capacity[:, place].tolist() for place, name in enumerate(RINGED)}
    if len(scopes.capacity):
        run[f"{SHARED}_max"] = int(scopes.capacity[0, -1])
    lines = [run]
    for row in range(len(scopes)):
        line = {
            "site": scopes.site[row],
            "phase": BEGIN if scopes.is_begin[row] else END,
            "depth": int(scopes.depth[row]),
            "ring": int(scopes.ring[row]),
        }
        for place, name in enumerate(RINGED):
            line |= {f"{name}_start": int(scopes.tail[row, place]), f"{name}_end": int(scopes.head[row, place])}
        lines.append(line | {SHARED: int(scopes.entries[row])})
    return b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def _capacity(run: Any) -> Int64:
    """Return the capacity of each resource by ring, int64 [rings, resources], -1 where it is not known."""
    lists = [[] if run is None else getattr(run, f"{name}_max") for name in RINGED]
    rings = max(map(len, lists))
    found = np.full((rings, len(RESOURCES)), -1, np.int64)
    for place, values in enumerate(lists):
        found[: len(values), place] = values
    if run is not None and run.tensormap_max is not None:
        found[:, -1] = run.tensormap_max
    return found


def _array(values: list[Any]) -> Int64:
    return np.array(values, np.int64)


@cache
def _types() -> tuple[Any, Any]:
    """Return the types of the first line and of the others: they say what is valid."""
    from typing import Annotated, Literal

    import msgspec

    number = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]
    small = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
    rings = Annotated[list[number], msgspec.Meta(max_length=256)]
    run = msgspec.defstruct(
        "run",
        [
            # No writer began at 0: that is not known of the first line.
            ("version", Annotated[int, msgspec.Meta(ge=1, le=(1 << 31) - 1)]),
            ("fatal", bool, False),
            ("dropped", number, 0),
            ("total", number | None, None),
            *((f"{name}_max", rings, msgspec.field(default_factory=list)) for name in RINGED),
            (f"{SHARED}_max", number | None, None),
        ],
    )
    row = msgspec.defstruct(
        "row",
        [
            ("site", str),
            ("phase", Literal["begin", "end"]),
            ("depth", small),
            ("ring", Annotated[int, msgspec.Meta(ge=0, le=255)]),
            *((name, number) for name in _POSITIONS),
            (SHARED, number),
        ],
    )
    return run, row

"""Counters: memory of devices, which instants tell, and values of counter events."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.foreign.kineto.emit.tracks import Tracks
from lanescope.trace import TraceBuilder
from lanescope.wire.trace_events import TraceEvents

Int64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

#: Types of devices in memory instants. Source: PyTorch, c10/core/DeviceType.h.
_CPU_TYPE = 0
_MEMORY = ("allocated", "reserved")


class _Values(NamedTuple):
    """Values of one kind; arrays [n].

    Attributes:
        event: int64.
        key: int64 [n, 3], what tells the counters of the kind apart.
        value: float64.
    """

    event: Int64
    key: Int64
    value: npt.NDArray[np.float64]


class Counters:
    """The counters of a file; first all events are seen, then tracks are made, then values are added."""

    def __init__(self) -> None:
        # By kind: the two of memory, then counter events. The track by key, in the order of the file.
        self._tracks: list[dict[tuple[int, ...], int]] = [{} for _ in range(len(_MEMORY) + 1)]

    def see(self, events: TraceEvents) -> None:
        """Take note of the counters of some events."""
        for known, values in zip(self._tracks, _values(events), strict=True):
            for key in _first_of_each(values.key):
                known.setdefault(key, -1)

    def make_tracks(self, events: TraceEvents, tracks: Tracks, device_places: Mask) -> None:
        """Make a track for each counter that was seen."""
        for known, name in zip(self._tracks, _MEMORY, strict=False):
            for key in known:
                kind, number, place = key
                label = f"{name} memory"
                on_device = kind != _CPU_TYPE and number >= 0
                # Without rows of that device the counters belong to the process that allocates.
                parent = tracks.device_group(number) if on_device else None
                if parent is None:
                    parent = tracks.group(events.places[place].process, on_device=False)
                    label = f"{label} of device {number}" if on_device else label
                known[key] = tracks.counter(parent, label, "bytes")
        for key in self._tracks[-1]:
            place, code, series = key
            parent = tracks.group(events.places[place].process, on_device=bool(device_places[place]))
            name = events.names[code] if code >= 0 else "counter"
            self._tracks[-1][key] = tracks.counter(parent, f"{name} {events.texts[series]}".strip(), "")

    def add(self, builder: TraceBuilder, events: TraceEvents, ts: Int64) -> None:
        """Add the values of some events, in the order of the file; ``ts``: int64 [n], times of the events."""
        found = _values(events)
        track = [
            np.array([known[key] for key in map(tuple, values.key.tolist())], np.int64)
            for known, values in zip(self._tracks, found, strict=True)
        ]
        event = np.concatenate([values.event for values in found])
        if not len(event):
            return
        sort = np.argsort(event, kind="stable")
        value = np.concatenate([values.value for values in found])
        builder.append("counters", track_id=np.concatenate(track)[sort], ts=ts[event[sort]], value=value[sort])


def _values(events: TraceEvents) -> list[_Values]:
    """Return the values of each kind of counters."""
    found = []
    for name in _MEMORY:
        given = events.values[name]
        keep = events.has_ts[given.event] & (events.phase[given.event] == ord("i"))
        event = given.event[keep]
        device = (events.values[part].of(event, -1) for part in ("device_type", "device_number"))
        key = np.stack([*device, events.place[event].astype(np.int64)], axis=1)
        found.append(_Values(event, key, given.value[keep].astype(np.float64)))
    event, series, value = events.series
    keep = events.has_ts[event]
    event, series, value = event[keep], series[keep], value[keep]
    place, name_code = events.place[event].astype(np.int64), events.name[event].astype(np.int64)
    found.append(_Values(event, np.stack([place, name_code, series.astype(np.int64)], axis=1), value))
    return found


def _first_of_each(keys: Int64) -> list[tuple[int, ...]]:
    """Return the keys without repetitions, in the order in which they come."""
    return list(dict.fromkeys(map(tuple, keys.tolist())))

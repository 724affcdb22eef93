"""Counters: which of them each sample belongs to."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.foreign.chrome.formats import layout
from lanescope.foreign.chrome.formats.events import Events, Int64
from lanescope.foreign.chrome.interpret.pairs import codes_of
from lanescope.foreign.chrome.interpret.places import Places


def counters_of(events: Events, places: Places) -> tuple[Int64, list[tuple[str, str]]]:
    """Return the counter of each sample that has a time, int64 [n], and process and name of each counter.

    Counters are in the order of the file; several may have one name.
    """
    rows = events.series_row
    has_time = (events.flags[rows] & layout.HAS_TIME) != 0
    rows, series = rows[has_time], events.series_name[has_time]
    if not len(rows):
        return rows, []
    has_id = (events.flags[rows] & layout.HAS_ID) != 0
    place = np.where(has_id, np.searchsorted(events.id_row, rows), len(events.id_row))
    value, kind = np.append(events.id_value, 0)[place], np.append(events.id_kind, 0)[place]
    of_place = places.place[events.lane[rows]]
    group = codes_of(process_codes(places)[of_place], events.name[rows], series, value, kind)
    first = np.full(int(group.max()) + 1, len(rows))
    np.minimum.at(first, group, np.arange(len(rows)))
    order = np.argsort(first)
    found = []
    for at in first[order].tolist():
        name, line = events.names[events.name[rows[at]]], events.texts[series[at]]
        identity = f" {id_texts(events, value[at : at + 1], kind[at : at + 1])[0]}" if has_id[at] else ""
        name += identity + (f" {line}" if line and line != "value" else "")
        found.append((places.keys[of_place[at]][0], name))
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return number[group], found


def process_codes(places: Places) -> Int64:
    """Return a number for the process of each place, int64 [places]."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(process, len(numbers)) for process, _ in places.keys], np.int64)


def id_texts(events: Events, value: npt.NDArray[np.uint64], kind: npt.NDArray[np.uint8]) -> npt.NDArray[np.object_]:
    """Return ids as texts: hexadecimal if the file gives a number, object [n]."""
    made = np.empty(len(value), object)
    made[:] = [
        events.texts[number] if what & layout.TEXT_ID else hex(number)
        for number, what in zip(value.tolist(), kind.tolist(), strict=True)
    ]
    return made

"""Signals and their value changes: the lanes of a trace as signals, and the waveforms of simulators.

A lane of slices is a wire that is 1 while one runs; instants of a name are an integer that counts them; addresses that
they carry are a vector. While a gap says that nothing is known, all of these are unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.trace.trace import Trace

I64 = npt.NDArray[np.int64]

#: In place of a value: it is not known.
UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """One signal and when it changes.

    Attributes:
        name: scopes and name, with dots between.
        bits: its width; 0: an integer.
        times: int64 [n], rising, in the time unit of its trace or file.
        values: int64 [n], from each time on; ``UNKNOWN`` where it is not known. No two in a row are equal.
    """

    name: str
    bits: int
    times: I64
    values: I64


def last_of_each(times: I64, values: I64) -> tuple[I64, I64]:
    """Of several values at one time the last counts."""
    keep = np.append(times[1:] != times[:-1], np.ones(min(1, len(times)), np.bool_))
    return times[keep], values[keep]


def only_changes(times: I64, values: I64) -> tuple[I64, I64]:
    """Return the changes at which the value becomes another one."""
    keep = np.append(np.ones(min(1, len(values)), np.bool_), values[1:] != values[:-1])
    return times[keep], values[keep]


def signals(trace: Trace, only: npt.NDArray[np.bool_] | None = None) -> list[Signal]:
    """Return a trace as signals, in the order of its tracks; ``only``: those of some tracks, bool [tracks]."""
    names = _names(trace)
    unknown = _unknown(trace)
    nothing = np.zeros((0, 2), np.int64)
    found: dict[tuple[int, int], Signal] = {}

    def add(track: int, order: int, suffix: str, bits: int, times: I64, values: I64) -> None:
        name = names[track] + suffix
        times, values = _drop_unknown(*last_of_each(times, values), unknown.get(track, nothing))
        found[track, order] = Signal(name, bits, *only_changes(times, values))

    for track, rows in _grouped(trace.slices.values("track_id")):
        add(track, 0, "", 1, *_levels(trace, rows))
    codes = trace.instants.codes("name")
    dictionary = trace.instants.column("name").dictionary
    texts = dictionary.texts if dictionary is not None else []
    pcs = _addresses(trace)
    for track, rows in _grouped(trace.instants.values("track_id")):
        times = trace.instants.values("ts")[rows]
        order = np.argsort(times, kind="stable")
        rows, times = rows[order], times[order]
        for i, (code, chosen) in enumerate(_grouped(codes[rows])):
            counted = np.arange(1, len(chosen) + 1, dtype=np.int64)
            add(track, 1 + i, "." + _identifier(texts[code]), 0, times[chosen], counted)
        with_pc = pcs[rows] >= 0
        if with_pc.any():
            add(track, 1 << 30, ".pc", 14, times[with_pc], pcs[rows][with_pc])
    # A lane that is there and never ran anything: a slot that watched for an event that never came.
    drawn = {track for track, _ in found}
    for track in np.flatnonzero(trace.tracks.values("kind") == "lane").tolist():
        if track not in drawn:
            add(track, 0, "", 1, nothing[:, 0], nothing[:, 1])
    return [found[key] for key in sorted(found) if only is None or only[key[0]]]


def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_$]+", "_", name).strip("_") or "_"


def _names(trace: Trace) -> list[str]:
    """Dotted names of all tracks; siblings of one name are numbered."""
    parents, has_parent = trace.tracks.values("parent_id").tolist(), trace.tracks.valid("parent_id").tolist()
    found: list[str] = []
    taken: set[str] = set()
    for i, name in enumerate(trace.tracks.values("name").tolist()):
        scope = found[parents[i]] + "." if has_parent[i] and parents[i] < i else ""
        full = base = scope + _identifier(str(name))
        number = 2
        while full in taken:
            full, number = f"{base}_{number}", number + 1
        taken.add(full)
        found.append(full)
    return found


def _grouped(keys: npt.NDArray[np.integer[Any]]) -> Iterator[tuple[int, I64]]:
    """Yield each key, ascending, with the rows that have it, rising."""
    order = np.argsort(keys, kind="stable")
    bounds = np.flatnonzero(np.diff(keys[order])) + 1
    for rows in np.split(order, bounds) if len(order) else ():
        yield int(keys[rows[0]]), rows


def _levels(trace: Trace, rows: I64) -> tuple[I64, I64]:
    """When a lane begins and ends to run anything; unknown from the last known time of an unfinished slice."""
    begin = trace.slices.values("ts")[rows]
    is_closed = trace.slices.valid("dur")[rows]
    last_seen = np.where(trace.slices.valid("last_known_ts")[rows], trace.slices.values("last_known_ts")[rows], begin)
    end = np.where(is_closed, begin + trace.slices.values("dur")[rows], last_seen)
    times = np.concatenate([begin, end])
    steps = np.repeat(np.array([1, -1]), len(rows))
    order = np.argsort(times, kind="stable")
    times, levels = times[order], np.cumsum(steps[order])
    values = (levels > 0).astype(np.int64)
    if not is_closed.all():
        times = np.append(times, times[-1])
        values = np.append(values, UNKNOWN)
    return times, values


def _addresses(trace: Trace) -> I64:
    """The address that each instant carries, -1: none."""
    found = np.full(len(trace.instants), -1, np.int64)
    for table in trace.details.values():
        if table.spec.key == "instant_id" and "pc" in table.spec.names:
            valid = table.valid("pc")
            found[table.values("instant_id")[valid]] = table.values("pc")[valid]
    return found


def _unknown(trace: Trace) -> dict[int, I64]:
    """Stretches in which nothing is known, [n, 2] of first and behind the last moment, by lane."""
    gaps = trace.gaps
    if not len(gaps):
        return {}
    parents = trace.tracks.values("parent_id")
    has_parent = trace.tracks.valid("parent_id")
    end = np.where(gaps.valid("dur"), gaps.values("ts") + gaps.values("dur"), np.iinfo(np.int64).max)
    found: dict[int, I64] = {}
    for track, rows in _grouped(gaps.values("track_id")):
        spans = np.stack([gaps.values("ts")[rows], end[rows]], axis=1)
        for lane in [track, *np.flatnonzero(has_parent & (parents == track)).tolist()]:
            found[lane] = np.concatenate([found[lane], spans]) if lane in found else spans
    return found


def _drop_unknown(times: I64, values: I64, spans: I64) -> tuple[I64, I64]:
    """Remove changes in unknown stretches."""
    for begin, end in spans.tolist():
        if end <= begin:
            continue
        inside = (times >= begin) & (times < end)
        i = int(np.searchsorted(times, end, side="right")) - 1
        after = values[i : i + 1] if i >= 0 else np.zeros(1, np.int64)
        ends = [end] if end < np.iinfo(np.int64).max and not (times == end).any() else []
        added = np.array([begin, *ends], np.int64)
        told = np.concatenate([[UNKNOWN], after[: len(ends)]])
        times, values = np.concatenate([times[~inside], added]), np.concatenate([values[~inside], told])
        order = np.argsort(times, kind="stable")
        times, values = times[order], values[order]
    return times, values

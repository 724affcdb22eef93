"""Value change dumps (VCD): traces as waveforms.

A lane of slices is a wire that is 1 while one runs; instants of a name are an integer that counts them; addresses that
they carry are a vector. While a gap says that nothing is known, all of these are ``x``. Writing takes pyvcd (the extra
``wave``).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.common.signals import I64, UNKNOWN, Signal, last_of_each, only_changes
from lanescope.errors import MissingDependencyError
from lanescope.io.atomic_file import Output
from lanescope.io.file_sink import BlocksSink, drive
from lanescope.trace import Trace
from lanescope.trace.streams import StreamInfo

_PICOSECONDS = 10**12


def signals(trace: Trace) -> list[Signal]:
    """Return a trace as signals, in the order of its tracks."""
    names = _names(trace)
    unknown = _unknown(trace)
    nothing = np.zeros((0, 2), np.int64)
    found: dict[tuple[int, int], Signal] = {}

    def add(track: int, order: int, suffix: str, bits: int, times: I64, values: I64) -> None:
        name = names[track] + suffix
        times, values = _drop_unknown(*last_of_each(times, values), unknown.get(track, nothing))
        found[track, order] = Signal(name, bits, *only_changes(times, values))

    for track, rows in _by_track(trace.slices.values("track_id")):
        add(track, 0, "", 1, *_levels(trace, rows))
    codes = trace.instants.codes("name")
    dictionary = trace.instants.column("name").dictionary
    texts = dictionary.texts if dictionary is not None else []
    pcs = _addresses(trace)
    for track, rows in _by_track(trace.instants.values("track_id")):
        times = trace.instants.values("ts")[rows]
        order = np.argsort(times, kind="stable")
        rows, times = rows[order], times[order]
        for i, code in enumerate(distinct(codes[rows]).tolist()):
            chosen = codes[rows] == code
            counted = np.arange(1, int(chosen.sum()) + 1, dtype=np.int64)
            add(track, 1 + i, "." + _identifier(texts[code]), 0, times[chosen], counted)
        with_pc = pcs[rows] >= 0
        if with_pc.any():
            add(track, 1 << 30, ".pc", 14, times[with_pc], pcs[rows][with_pc])
    return [found[key] for key in sorted(found)]


class VcdSink(BlocksSink):
    """Writes a VCD file, from the whole trace.

    Args:
        out: a path, written under a temporary name and renamed; or a binary file object.
    """

    def __init__(self, out: Output) -> None:
        super().__init__(out, lambda trace: [_encoded(trace)])


def write(trace: Trace, out: Output) -> int:
    """Write a trace as a VCD file; return its bytes. One unit of a trace in cycles is written as 1 ns.

    Raises:
        MissingDependencyError: pyvcd is not installed.
    """
    return drive(VcdSink(out), [trace], StreamInfo(is_whole=True)).bytes


def _encoded(trace: Trace) -> bytes:
    try:
        from vcd import VCDWriter
    except ImportError:
        raise MissingDependencyError("writing VCD requires pyvcd", hint="run pip install 'lanescope[wave]'") from None
    known = signals(trace)
    text = io.StringIO()
    comment = "1 ns is one cycle" if trace.time.time_unit == "cycles" else ""
    with VCDWriter(text, timescale="1 ns", version="lanescope", comment=comment) as writer:
        variables = [
            writer.register_var(
                signal.name.rpartition(".")[0],
                signal.name.rpartition(".")[2],
                "integer" if not signal.bits else "wire" if signal.bits == 1 else "reg",
                size=signal.bits or 64,
                init=0 if signal.bits < 2 else "x",
            )
            for signal in known
        ]
        for time, which, value in _in_order(known):
            writer.change(variables[which], time, "x" if value == UNKNOWN else value)
    return text.getvalue().encode()


def _in_order(known: Sequence[Signal]) -> Iterator[tuple[int, int, int]]:
    if not known:
        return
    times = np.concatenate([signal.times for signal in known])
    values = np.concatenate([signal.values for signal in known])
    which = np.repeat(np.arange(len(known)), [len(signal.times) for signal in known])
    order = np.argsort(times, kind="stable")
    yield from zip(times[order].tolist(), which[order].tolist(), values[order].tolist(), strict=True)


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


def _by_track(tracks: I64) -> Iterator[tuple[int, I64]]:
    order = np.argsort(tracks, kind="stable")
    bounds = np.flatnonzero(np.diff(tracks[order])) + 1
    for rows in np.split(order, bounds) if len(order) else ():
        yield int(tracks[rows[0]]), rows


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
        times = np.append(times, max(int(times[-1]), int(end[~is_closed].max())))
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
    for track, rows in _by_track(gaps.values("track_id")):
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

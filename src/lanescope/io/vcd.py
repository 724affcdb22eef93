"""Value change dumps (VCD): traces as waveforms, and traces against the waveforms of a simulator.

A lane of slices is a wire that is 1 while one runs; instants of a name are an integer that counts them; addresses that
they carry are a vector. While a gap says that nothing is known, all of these are ``x``. Writing takes pyvcd, reading
pywellen (the extra ``wave``).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.errors import InputError, MissingDependencyError, UsageError
from lanescope.io.atomic_file import Output
from lanescope.io.file_sink import BlocksSink, drive
from lanescope.trace import Trace
from lanescope.trace.streams import StreamInfo

I64 = npt.NDArray[np.int64]

#: In place of a value: it is not known.
UNKNOWN = -1
_PICOSECONDS = 10**12


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


def signals(trace: Trace) -> list[Signal]:
    """Return a trace as signals, in the order of its tracks."""
    names = _names(trace)
    unknown = _unknown(trace)
    nothing = np.zeros((0, 2), np.int64)
    found: dict[tuple[int, int], Signal] = {}

    def add(track: int, order: int, suffix: str, bits: int, times: I64, values: I64) -> None:
        name = names[track] + suffix
        times, values = _drop_unknown(*_last_of_each(times, values), unknown.get(track, nothing))
        found[track, order] = Signal(name, bits, *_changes(times, values))

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
        for i, code in enumerate(np.unique(codes[rows]).tolist()):
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
        raise MissingDependencyError("writing VCD needs pyvcd", hint="pip install 'lanescope[wave]'") from None
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
    """When a lane begins and ends to run anything; from where an open slice was last seen, nobody knows."""
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


def _last_of_each(times: I64, values: I64) -> tuple[I64, I64]:
    """Of several values at one time the last counts."""
    keep = np.append(times[1:] != times[:-1], np.ones(min(1, len(times)), np.bool_))
    return times[keep], values[keep]


def _drop_unknown(times: I64, values: I64, spans: I64) -> tuple[I64, I64]:
    """Take out what lies in unknown stretches."""
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


def _changes(times: I64, values: I64) -> tuple[I64, I64]:
    keep = np.append(np.ones(min(1, len(values)), np.bool_), values[1:] != values[:-1])
    return times[keep], values[keep]


# --- a simulator's waveforms


class Waveform:
    """A waveform file of a simulator.

    Args:
        path: VCD, FST or GHW.

    Raises:
        InputError: it cannot be read.
        MissingDependencyError: pywellen is not installed.
    """

    def __init__(self, path: Path) -> None:
        try:
            import pywellen
        except ImportError:
            raise MissingDependencyError(
                "reading waveforms needs pywellen", hint="pip install 'lanescope[wave]'"
            ) from None
        if not path.is_file():
            raise InputError(f"{path} is no file")
        self.path = path
        self._file = self._translate_errors(lambda: pywellen.Waveform(str(path), multi_threaded=False))
        self._variables = {
            str(variable.full_name): variable for variable in self._translate_errors(self._file.all_vars)
        }
        scale = self._file.timescale
        if scale is None or scale.unit.to_exponent() is None:
            raise InputError(f"{path} names no time scale")
        #: Picoseconds of one tick.
        self.tick = Fraction(scale.factor) * Fraction(10) ** scale.unit.to_exponent() * _PICOSECONDS

    @property
    def names(self) -> list[str]:
        """Names of its signals."""
        return list(self._variables)

    def signal(self, name: str) -> Signal:
        """Return one signal; values that are not known in each bit are ``UNKNOWN``."""
        variable = self._variables[name]
        changes = self._translate_errors(lambda: list(variable.tv))
        times = np.array([time for time, _ in changes], np.int64)
        values = np.array([_number(value) for _, value in changes], np.int64)
        return Signal(name, int(variable.bitwidth or 0), *_changes(*_last_of_each(times, values)))

    def _translate_errors(self, make: Any) -> Any:
        """Call the reader; what it stumbles over is no waveform."""
        try:
            return make()
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:
            # Its panics are no Exception.
            told = str(error).split("\n", 1)[0]
            raise InputError(f"{self.path} is no waveform that can be read: {told}") from None


def _number(value: Any) -> int:
    if isinstance(value, bool | int):
        return int(value) if 0 <= value < 1 << 63 else UNKNOWN
    return int(value, 2) if isinstance(value, str) and re.fullmatch("[01]{1,63}", value) else UNKNOWN


class Comparison(NamedTuple):
    """One signal of a trace against one of a simulator.

    Attributes:
        ours, theirs: their names.
        our_changes, their_changes: how often each changed, where ours is known.
        difference: the first change that differs, from 0; None: there is none.
        our_time, our_value: time and value of ours there, in the trace's unit; None: it has no such change.
        their_time, their_value: the same of theirs, on the trace's time axis.
    """

    ours: str
    theirs: str
    our_changes: int
    their_changes: int
    difference: int | None
    our_time: int | None
    our_value: int | None
    their_time: float | None
    their_value: int | None


def compare(
    trace: Trace,
    wave: Waveform,
    *,
    names: Mapping[str, str] = {},
    landmark: tuple[str, int] | None = None,
    period: Fraction | None = None,
    tolerance: int = 0,
    is_order_only: bool = False,
) -> list[Comparison]:
    """Compare signals of a trace with those of a simulator.

    Args:
        trace: the trace.
        wave: the simulator's waveforms.
        names: our name -> theirs; without any, signals of the same name, or with the same last parts, are compared.
        landmark: a signal of ours and which of its rises both sides count time from; else both begin at 0.
        period: picoseconds of one time unit of the trace; needed for one that counts cycles.
        tolerance: by how many units of the trace times may differ.
        is_order_only: times are not compared, only values and their order.

    Raises:
        UsageError: a name that one side does not have, or nothing to compare; no period; no such landmark.
    """
    if period is None:
        if trace.time.time_unit == "cycles" and not is_order_only:
            raise UsageError("the trace counts cycles, the simulator picoseconds", hint="say --period PS")
        period = Fraction(1000)
    ours = {signal.name: signal for signal in signals(trace)}
    pairs = _paired(list(ours), wave, names)
    scale = wave.tick / period
    offset = Fraction(0)
    if landmark is not None:
        name, which = landmark
        if name not in pairs:
            raise UsageError(f"the landmark {name} is not compared", hint="there are " + ", ".join(pairs))
        here = _rise(ours[name], which)
        offset = _rise(wave.signal(pairs[name]), which) * scale - here
    return [
        _compared(ours[name], wave.signal(other), scale, offset, tolerance, is_order_only=is_order_only)
        for name, other in pairs.items()
    ]


def _paired(ours: Sequence[str], wave: Waveform, names: Mapping[str, str]) -> dict[str, str]:
    theirs = set(wave.names)
    if names:
        for name, other in names.items():
            if name not in ours:
                raise UsageError(f"the trace has no signal {name}", hint="it has " + ", ".join(ours[:20]))
            if other not in theirs:
                raise UsageError(f"{wave.path} has no signal {other}", hint="its names have dots between scopes")
        return dict(names)
    pairs = {}
    for name in ours:
        fitting = [other for other in wave.names if other == name or other.endswith("." + name)]
        if len(fitting) == 1:
            pairs[name] = fitting[0]
    if not pairs:
        raise UsageError(f"no signal of {wave.path} has the name of one of ours", hint="say --map FILE")
    return pairs


def _rise(signal: Signal, which: int) -> int:
    before = np.append(0, signal.values[:-1])
    rises = np.flatnonzero((signal.values > 0) & (signal.values > before))
    if not 1 <= which <= len(rises):
        raise UsageError(f"{signal.name} has {len(rises)} rises, no number {which}")
    return int(signal.times[rises[which - 1]])


def _compared(
    ours: Signal, theirs: Signal, scale: Fraction, offset: Fraction, tolerance: int, *, is_order_only: bool
) -> Comparison:
    here = list(zip(map(Fraction, ours.times.tolist()), ours.values.tolist(), strict=True))
    there = [
        (time * scale - offset, value)
        for time, value in zip(theirs.times.tolist(), theirs.values.tolist(), strict=True)
    ]
    unknown = _spans(here)
    if not is_order_only:
        there = [(time, value) for time, value in there if not any(a <= time < b for a, b in unknown)]
    # Where ours is not known nothing is compared; before anything was known, both are at rest.
    here = _known_edges(here)
    there = _known_edges(there)
    for i in range(max(len(here), len(there))):
        mine = here[i] if i < len(here) else None
        other = there[i] if i < len(there) else None
        is_same = mine is not None and other is not None and mine[1] == other[1]
        if is_same and not is_order_only and mine is not None and other is not None:
            is_same = abs(mine[0] - other[0]) <= tolerance
        if not is_same:
            return Comparison(
                ours.name,
                theirs.name,
                len(here),
                len(there),
                i,
                int(mine[0]) if mine else None,
                mine[1] if mine else None,
                float(other[0]) if other else None,
                other[1] if other else None,
            )
    return Comparison(ours.name, theirs.name, len(here), len(there), None, None, None, None, None)


def _spans(changes: Sequence[tuple[Fraction, int]]) -> list[tuple[Fraction, Fraction | float]]:
    ends: list[Fraction | float] = [*(time for time, _ in changes[1:]), float("inf")]
    return [(time, end) for (time, value), end in zip(changes, ends, strict=True) if value == UNKNOWN]


def _known_edges(changes: Sequence[tuple[Fraction, int]]) -> list[tuple[Fraction, int]]:
    """Changes between known values, from rest on."""
    found = []
    last = 0
    for time, value in changes:
        if value not in (UNKNOWN, last):
            found.append((time, value))
            last = value
    return found

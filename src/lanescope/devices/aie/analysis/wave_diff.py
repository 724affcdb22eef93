"""A trace against the waveforms of a simulator. Reading those takes pywellen (the extra ``wave``)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lanescope.errors import InputError, MissingDependencyError, UsageError
from lanescope.trace.signals import UNKNOWN, Signal, last_of_each, only_changes

_PICOSECONDS = 10**12
#: So many bytes tell the form of a waveform file.
_HEAD_BYTES = 4096


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
                "reading waveforms requires pywellen", hint="run pip install 'lanescope[wave]'"
            ) from None
        if not path.is_file():
            raise InputError(f"cannot open {str(path)!r}: not a file")
        _require_form(path)
        self.path = path
        self._file = self._translate_errors(lambda: pywellen.Waveform(str(path), multi_threaded=False))
        self._variables = {
            str(variable.full_name): variable for variable in self._translate_errors(self._file.all_vars)
        }
        scale = self._file.timescale
        if scale is None or scale.unit.to_exponent() is None:
            raise InputError(f"{path}: time scale not found")
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
        if any(time >= 1 << 63 for time, _ in changes):
            raise InputError(f"cannot read {self.path}: invalid waveform: time of signal {name!r} exceeds 63 bits")
        times = np.array([time for time, _ in changes], np.int64)
        values = np.array([_number(value) for _, value in changes], np.int64)
        return Signal(name, int(variable.bitwidth or 0), *only_changes(*last_of_each(times, values)))

    def _translate_errors(self, make: Any) -> Any:
        """Call the reader; its errors mean that the file is not a waveform."""
        try:
            return make()
        except (KeyboardInterrupt, SystemExit, MemoryError):
            raise
        except BaseException as error:
            # Its panics are no Exception.
            told = str(error).split("\n", 1)[0]
            raise InputError(f"cannot read {self.path}: invalid waveform: {told}") from None


def _require_form(path: Path) -> None:
    """Refuse what is none of VCD, GHW and FST: of other bytes pywellen follows lengths of blocks without an end.

    Raises:
        InputError: it is none of them, or a block of FST does not end within the file.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
        if head.lstrip()[:1] == b"$" or head.startswith(b"GHDLwave"):
            return
        size, place = path.stat().st_size, 0
        while place < size:
            # A block of FST: its kind, and its length without that byte, from the length itself on.
            file.seek(place + 1)
            length = int.from_bytes(file.read(8), "big")
            if length < 8 or place + 1 + length > size:
                raise InputError(
                    f"cannot read {path}: invalid waveform: not VCD, FST or GHW",
                    hint="use the waveform file of the simulator, complete",
                )
            place += 1 + length


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
        our_time, our_value: time, in the trace's unit, and value of our change; None: our signal has no such change.
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
    signals: Iterable[Signal],
    wave: Waveform,
    *,
    names: Mapping[str, str] = {},
    sync_on: tuple[str, int] | None = None,
    period: Fraction = Fraction(1000),
    tolerance: int = 0,
    is_order_only: bool = False,
    begin: int | None = None,
    end: int | None = None,
) -> list[Comparison]:
    """Compare the signals of a trace with those of a simulator.

    Args:
        signals: those of the trace.
        wave: the simulator's waveforms.
        names: our name -> theirs; without any, signals of the same name, or with the same last parts, are compared.
        sync_on: one of our signals and the index of the rise that both sides count time from; else both start at 0.
        period: picoseconds of one time unit of the trace.
        tolerance: by how many units of the trace times may differ.
        is_order_only: times are not compared, only values and their order.
        begin: compare from this time of the trace on; None: from the first. A value that is held there is a change.
        end: compare up to this time; None: up to the last.

    Raises:
        UsageError: a name that one side does not have, or nothing to compare; no such signal or rise to synchronize on.
    """
    ours = {signal.name: signal for signal in signals}
    pairs = _paired(list(ours), wave, names)
    scale = wave.tick / period
    offset = Fraction(0)
    if sync_on is not None:
        name, which = sync_on
        if name not in pairs:
            raise UsageError(f"--sync-on: signal {name!r} is not compared", hint="use one of " + ", ".join(pairs))
        here = _rise(ours[name], which)
        offset = _rise(wave.signal(pairs[name]), which) * scale - here
    return [
        _compared(ours[name], wave.signal(other), scale, offset, tolerance, is_order_only, (begin, end))
        for name, other in pairs.items()
    ]


def _paired(ours: Sequence[str], wave: Waveform, names: Mapping[str, str]) -> dict[str, str]:
    theirs = set(wave.names)
    if names:
        for name, other in names.items():
            if name not in ours:
                raise UsageError(f"unknown signal {name!r} in the trace (available: {', '.join(ours[:20])})")
            if other not in theirs:
                raise UsageError(
                    f"unknown signal {other!r} in {wave.path}", hint="use full names with dots between scopes"
                )
        return dict(names)
    pairs = {}
    for name in ours:
        fitting = [other for other in wave.names if other == name or other.endswith("." + name)]
        if len(fitting) == 1:
            pairs[name] = fitting[0]
    if not pairs:
        raise UsageError(f"no signal of {wave.path} matches a lane", hint="use --map FILE")
    return pairs


def _rise(signal: Signal, which: int) -> int:
    before = np.append(0, signal.values[:-1])
    rises = np.flatnonzero((signal.values > 0) & (signal.values > before))
    if not 1 <= which <= len(rises):
        raise UsageError(f"{signal.name} has {len(rises)} rises, no number {which}")
    return int(signal.times[rises[which - 1]])


def _compared(
    ours: Signal,
    theirs: Signal,
    scale: Fraction,
    offset: Fraction,
    tolerance: int,
    is_order_only: bool,  # noqa: FBT001
    edges: tuple[int | None, int | None],
) -> Comparison:
    here = list(zip(map(Fraction, ours.times.tolist()), ours.values.tolist(), strict=True))
    there = [
        (time * scale - offset, value)
        for time, value in zip(theirs.times.tolist(), theirs.values.tolist(), strict=True)
    ]
    here, there = _within(here, *edges), _within(there, *edges)
    if edges[0] is not None:
        here, there = _joined(here, there, edges[0] + tolerance), _joined(there, here, edges[0] + tolerance)
    unknown = _spans(here)
    if not is_order_only:
        there = [(time, value) for time, value in there if not any(a <= time < b for a, b in unknown)]
    # Where ours is not known nothing is compared; before anything was known, both are at rest.
    here = _known_edges(here)
    there = _known_edges(there)
    last = edges[1]
    for i in range(max(len(here), len(there))):
        mine = here[i] if i < len(here) else None
        other = there[i] if i < len(there) else None
        is_same = mine is not None and other is not None and mine[1] == other[1]
        if is_same and not is_order_only and mine is not None and other is not None:
            is_same = abs(mine[0] - other[0]) <= tolerance
        if last is not None and (alone := mine or other) is not None and (mine is None or other is None):
            # The other side may have it behind the end.
            is_same = alone[0] + tolerance >= last
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


def _within(changes: list[tuple[Fraction, int]], begin: int | None, end: int | None) -> list[tuple[Fraction, int]]:
    """Return the changes in a stretch of time; the value that is held at its begin is one."""
    if end is not None:
        changes = [change for change in changes if change[0] < end]
    if begin is None:
        return changes
    held = next((value for time, value in reversed(changes) if time <= begin), 0)
    return [(Fraction(begin), held), *(change for change in changes if change[0] > begin)]


def _joined(
    changes: list[tuple[Fraction, int]], others: list[tuple[Fraction, int]], until: int
) -> list[tuple[Fraction, int]]:
    """Return changes from a begin on; a first one up to ``until`` that makes what the other side holds is at the begin.

    That of the other side may lie before the begin.
    """
    if len(changes) < 2 or changes[1][0] > until or changes[0][1] == others[0][1] or changes[1][1] != others[0][1]:
        return changes
    return [(changes[0][0], changes[1][1]), *changes[2:]]


def _spans(changes: Sequence[tuple[Fraction, int]]) -> list[tuple[Fraction, Fraction | float]]:
    ends: list[Fraction | float] = [*(time for time, _ in changes[1:]), float("inf")]
    return [(time, end) for (time, value), end in zip(changes, ends, strict=False) if value == UNKNOWN]


def _known_edges(changes: Sequence[tuple[Fraction, int]]) -> list[tuple[Fraction, int]]:
    """Changes between known values, from rest on."""
    found = []
    last = 0
    for time, value in changes:
        if value not in (UNKNOWN, last):
            found.append((time, value))
            last = value
    return found

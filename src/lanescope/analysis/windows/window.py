"""What a window asks for, and the times in it as texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from lanescope.declaration import frozen_class
from lanescope.errors import UsageError

#: Units of times, in ns.
_UNITS = {"ns": 1, "us": 1_000, "µs": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
_TIME = re.compile(r"(@-?|[+-]?)([0-9]{1,19}(?:\.[0-9]{1,18})?)(ns|us|µs|ms|s)?")
_ORDINAL = re.compile(r"-?[0-9]{1,18}")
#: Times of a trace have 64 bits.
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
_WAYS = (
    "use 1.5ms, 12us or 34567 (ns), -1ms (before the end), +1ms (after the first time), @-1ms (before time 0) or NAME#K"
)


class Instance(NamedTuple):
    """The slice that a time refers to: that of a name, in order of their starts, from 0; from the last if negative."""

    name: str
    ordinal: int


class Moment(NamedTuple):
    """A time as it was asked for.

    Attributes:
        text: as it was asked for.
        origin: what ``offset`` counts from: ``zero`` (time 0 of the trace), ``first`` or ``last`` time of any row, or
            ``slice``.
        offset: in the unit of the trace.
        instance: the slice, where the origin is one.
    """

    text: str
    origin: str = "zero"
    offset: int = 0
    instance: Instance | None = None


@frozen_class
class Window:
    """A part of a trace: times in ``[start, end)``, on some lanes, of some names.

    Attributes:
        start: first moment; None: from the first time on.
        end: first moment after it; None: up to the last time.
        lanes: globs; a lane is in it if one matches its name or path, or that of a group above it. Empty: all lanes.
        names: globs of the names of slices and instants. Empty: all.
        min_dur: shortest duration of a slice as recorded, in the unit of the trace; 0: any.
        where: SQL condition on the rows of ``slices`` as recorded; empty: none.
    """

    start: Moment | None = None
    end: Moment | None = None
    lanes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    min_dur: Moment | None = None
    where: str = ""

    @property
    def has_filter(self) -> bool:
        """Whether it selects slices by name, duration or condition."""
        return bool(self.names or self.where or (self.min_dur is not None and self.min_dur.offset))

    def as_asked(self) -> dict[str, object]:
        """Return what was asked for, by the name of the option."""
        asked: dict[str, object] = {
            "start": self.start and self.start.text,
            "end": self.end and self.end.text,
            "lane": list(self.lanes),
            "name": list(self.names),
            "min_dur": self.min_dur and self.min_dur.text,
            "where": self.where,
        }
        return {name: value for name, value in asked.items() if value}


def make_window(
    *,
    start: str | int | None = None,
    end: str | int | None = None,
    lane: str | Sequence[str] | None = None,
    name: str | Sequence[str] | None = None,
    min_dur: str | int | None = None,
    where: str | None = None,
) -> Window:
    """Return the window that texts ask for.

    Args:
        start: first moment, see ``moment``.
        end: first moment after it.
        lane: one glob, or several of which one has to match.
        name: one glob, or several.
        min_dur: shortest duration of a slice.
        where: SQL condition.

    Raises:
        UsageError: a time is none.

    Example:
        >>> make_window(start="1.5ms", lane="core*").start.offset
        1500000
    """
    shortest = None if min_dur is None else moment("--min-dur", min_dur)
    if shortest is not None and (shortest.origin != "zero" or shortest.offset < 0):
        raise UsageError(f"invalid --min-dur {shortest.text!r}: expected a duration", hint="use 1.5us or 1500 (ns)")
    return Window(
        None if start is None else moment("--start", start),
        None if end is None else moment("--end", end),
        _globs(lane),
        _globs(name),
        shortest,
        (where or "").strip(),
    )


def _globs(given: str | Sequence[str] | None) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given or ())


def moment(option: str, given: str | int) -> Moment:
    """Read a time.

    ``1.5ms`` and ``34567`` (without a unit: ns, or cycles where the trace counts these) are times of the trace, as
    ``slices.ts`` has them; ``-1ms`` is so long before its last time, ``+1ms`` after its first one. ``NAME#K`` is the
    Kth slice of that name, from 0: it starts a window where it starts, and ends one where it ends. A negative integer
    in Python counts from the last time as well; ``@-1ms`` is a time of the trace before 0.

    Args:
        option: the option, for the message.
        given: the text, or an integer.

    Raises:
        UsageError: it is none of these.
    """
    text = str(given)
    found = _TIME.fullmatch(text.strip())
    if found is not None:
        sign, number, unit = found.groups()
        exact = Fraction(number) * _UNITS.get(unit, 1)
        if exact > HIGHEST:
            raise UsageError(f"invalid {option} {text!r}: it is larger than 2^63 - 1", hint=_WAYS)
        if exact.denominator != 1:
            raise UsageError(f"invalid {option} {text!r}: expected whole nanoseconds", hint=_WAYS)
        origin = {"+": "first", "-": "last"}.get(sign, "zero")
        return Moment(text, origin, int(exact) * (-1 if sign.endswith("-") else 1))
    name, mark, ordinal = text.rpartition("#")
    if mark and name and _ORDINAL.fullmatch(ordinal):
        return Moment(text, "slice", instance=Instance(name, int(ordinal)))
    raise UsageError(f"invalid {option} {text!r}: expected a time", hint=_WAYS)


def has_unit(asked: Moment) -> bool:
    """Return whether a time has a unit of seconds, which a trace in cycles cannot convert."""
    return asked.instance is None and asked.text.strip()[-1:] == "s"

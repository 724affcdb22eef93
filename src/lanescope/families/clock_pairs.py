"""What a family's traces show of the offsets between clocks: causes on one clock with effects on another, readings."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from lanescope.trace import Trace

Int64 = npt.NDArray[np.int64]
_NOTHING: Int64 = np.empty(0, np.int64)


class Orders(NamedTuple):
    """Causes on one clock and their effects on another; arrays of one length.

    Attributes:
        cause_ts: int64, moment of the cause, in the trace's time unit: not later than what it let go.
        effect_ts: int64, moment of the effect: not earlier than what it waited for.
        cause: int64, slice of the cause, -1 where it is not a slice.
        effect: int64, slice of the effect, likewise.
    """

    cause_ts: Int64
    effect_ts: Int64
    cause: Int64
    effect: Int64

    @classmethod
    def none(cls) -> Orders:
        """Return no orders."""
        return cls(_NOTHING, _NOTHING, _NOTHING, _NOTHING)

    @classmethod
    def joined(cls, parts: Iterable[Orders]) -> Orders:
        """Return all orders of several."""
        every = [cls.none(), *parts]
        return cls(*(np.concatenate([part[place] for part in every]) for place in range(4)))

    @classmethod
    def read(cls, first_ts: Int64, second_ts: Int64, error: Int64) -> tuple[Orders, Orders]:
        """Return readings of two clocks at once, as orders either way: the second is off by ``error`` at most."""
        nothing = np.full(len(first_ts), -1, np.int64)
        forward = cls(first_ts, second_ts + error, nothing, nothing)
        return forward, cls(second_ts - error, first_ts, nothing, nothing)

    def take(self, rows: npt.NDArray[np.int64] | npt.NDArray[np.bool_]) -> Orders:
        """Return some of them."""
        return Orders(*(column[rows] for column in self))


class TimeDomain(NamedTuple):
    """Lanes that count on one clock.

    Attributes:
        name: as tables show it: ``host``, ``GPU 0``; unique in the trace.
        tracks: int64, the lanes; none for a clock that was only read.
        is_host: whether lanes of a host count on it: offsets count from such a clock.
    """

    name: str
    tracks: Int64
    is_host: bool = False


class ClockPairs(NamedTuple):
    """What joins two clocks.

    Attributes:
        first: the clock that offsets count from.
        second: the other one; its offset is what it shows less what the first one shows.
        forward: causes on the first clock with effects on the second.
        backward: causes on the second clock with effects on the first.
        lacks: what to record so that the missing side is known, begun with a verb; empty where a capture may have both.
        readings: times of both clocks at one moment, int64 each, whose error the capture does not state.
        base: added to times of the first clock that the orders hold, which may be too large for sums.
    """

    first: TimeDomain
    second: TimeDomain
    forward: Orders
    backward: Orders
    lacks: str = ""
    readings: tuple[Int64, Int64] = (_NOTHING, _NOTHING)
    base: int = 0


#: What a family declares: from a trace to what joins its clocks.
PairFinder = Callable[["Trace"], Iterable[ClockPairs]]

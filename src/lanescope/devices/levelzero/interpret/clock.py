"""Device ticks -> host time: exact ratios, wrapped counters, readings of both clocks.

A device's counter is as wide as its driver says, and timestamps of operations may be narrower than readings of the
clock. An operation runs between its submission and the moment its timestamps were read: that window selects the
wrap period of the counter. If none fits, the operation stays in the period next to the window and is marked: a clock
that is off by a tick must not move it by a whole period.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, Mask
from lanescope.common.wrapping_counters import at_or_after, nearest
from lanescope.declaration import frozen_class, replace
from lanescope.devices.levelzero.formats.layout import NS_PER_SECOND
from lanescope.trace import Flag

if TYPE_CHECKING:
    from fractions import Fraction

UInt64 = npt.NDArray[np.uint64]

#: How far a window may be off, ns: readings of two clocks are never made at the same moment.
TOLERANCE_NS = 10_000_000
#: Readings closer than this say more about their own jitter than about the clock's rate.
_SPACING_NS = 100_000_000
#: Two readings contradict each other when their rate is off by more than this share, beyond what jitter explains.
_RATE_ERROR = 0.01
_JITTER_NS = 1_000_000
#: Times beyond this are no times; all are counted from somewhere in the trace.
_FAR = 1 << 59


@frozen_class
class Pairs:
    """Readings of both clocks, unwrapped, in order of time; at least 50 ms apart. All arrays are [n].

    Attributes:
        ticks: int64, device clock; congruent to the raw reading modulo its width.
        ns: int64, host clock.
        error_ns: bound of what is known of their errors: how far the two halves of a reading may lie apart, and how far
            readings that were left out lie from the line through these; None when neither is known.
        suspect: how many readings contradicted the others.
    """

    ticks: Int64
    ns: Int64
    error_ns: int | None
    suspect: int


class Clock:
    """The clock of one device.

    Args:
        frequency: ticks a second, as the driver says it.
        is_rounded: whether the driver gave whole nanoseconds per tick.
        bits: valid bits of readings of the clock.
        kernel_bits: valid bits of timestamps of operations.
        host_ns: int64 [n], host times of readings, at least one, counted from somewhere in the trace.
        ticks: uint64 [n], device clock at those times.
        errors: int64 [n], largest difference of the two, ns; None if unknown.

    Attributes:
        pairs: the readings that count.
    """

    def __init__(
        self,
        frequency: Fraction | int,
        *,
        is_rounded: bool,
        bits: int,
        kernel_bits: int,
        host_ns: Int64,
        ticks: UInt64,
        errors: Int64 | None = None,
    ) -> None:
        self.frequency, self.is_rounded = frequency, is_rounded
        self.bits, self.kernel_bits = bits, kernel_bits
        self.pairs = unwrap(host_ns, ticks, frequency, bits)
        if errors is not None:
            bound = max(int(errors.max()), self.pairs.error_ns or 0)
            self.pairs = replace(self.pairs, error_ns=bound)
        ns, unwrapped = self.pairs.ns, self.pairs.ticks
        span_ns, span = int(ns[-1] - ns[0]), int(unwrapped[-1] - unwrapped[0])
        self.is_measured = span_ns >= _SPACING_NS // 2 and span > 0
        self._far_ns = min(_FAR, _FAR * NS_PER_SECOND * frequency.denominator // frequency.numerator)
        # Away from the readings the clock goes on at the rate that was measured, else at the one that is said.
        rise = (span_ns, span) if self.is_measured else (NS_PER_SECOND * frequency.denominator, frequency.numerator)
        edge = [[part // gcd(*rise)] for part in rise]
        self._rise_ns = np.concatenate([edge[0], np.diff(ns), edge[0]]).astype(np.int64)
        self._rise = np.concatenate([edge[1], np.diff(unwrapped), edge[1]]).astype(np.int64)

    def to_ns(self, ticks: Int64) -> Int64:
        """Convert unwrapped ticks to host time, int64 [n]; monotone, floors."""
        return self._interpolate(ticks, self.pairs.ticks, self.pairs.ns, self._rise_ns, self._rise)

    def to_ticks(self, ns: Int64) -> Int64:
        """Convert host time to unwrapped ticks, int64 [n]; monotone, floors; times too far away count as a bound."""
        ns = np.clip(ns, self.pairs.ns[0] - self._far_ns, self.pairs.ns[0] + self._far_ns)
        return self._interpolate(ns, self.pairs.ns, self.pairs.ticks, self._rise, self._rise_ns)

    @staticmethod
    def _interpolate(values: Int64, begins: Int64, results: Int64, up: Int64, over: Int64) -> Int64:
        segment = np.searchsorted(begins, values, side="right")
        near = np.maximum(segment - 1, 0)
        return results[near] + mul_div(values - begins[near], up[segment], over[segment])

    def place(
        self, start: UInt64, end: UInt64, earliest: Int64, latest: Int64, tolerance: int = TOLERANCE_NS
    ) -> Placed:
        """Find when operations ran.

        Args:
            start: uint64 [n], raw ticks at their begin.
            end: uint64 [n], raw ticks at their end.
            earliest: int64 [n], when they were submitted, ns.
            latest: int64 [n], when their timestamps were read, ns.
            tolerance: how far those may be off, ns.
        """
        width = min(self.bits, self.kernel_bits)
        low = self.to_ticks(earliest - tolerance)
        until = latest + tolerance
        if width < 62:
            # The first moment in the window that reads as these ticks, and the last one before the window.
            turn = 1 << width
            after = at_or_after(start, low, width)
            begin, before = after.copy(), after - turn
            after_ns, before_ns = self._bounded(after), self._bounded(before)
            fits = after_ns <= until
            nearer = ~fits & (earliest - before_ns < after_ns - latest)
            begin[nearer] = before[nearer]
            next_ns = self._bounded(after + turn)
            ambiguous = fits & (next_ns <= until)
            begin_ns = np.where(nearer, before_ns, after_ns)
        else:
            # So wide a counter does not wrap within an operation: more than half a period ahead means before.
            begin = nearest(start, low, width)
            begin_ns = self._bounded(begin)
            fits = (begin >= low) & (begin_ns <= until)
            ambiguous = np.zeros(len(begin), np.bool_)
        length = _modulo(end - start, self.kernel_bits)
        negative = length >= np.uint64(1 << (self.kernel_bits - 1))
        known = np.where(length < np.uint64(_FAR), length, 0).astype(np.int64)
        end_ns = self._bounded(begin + known)
        negative &= (end_ns > until) | (length >= np.uint64(_FAR))
        suspect = ~fits | (~negative & (end_ns > until))
        # What no clock can mean is put at its submission.
        absurd = np.abs(begin_ns) >= _FAR
        begin_ns = np.where(absurd, earliest, begin_ns)
        begin = np.where(absurd, self.to_ticks(earliest), begin)
        end_ns = np.where(absurd, earliest, end_ns)
        flags = np.zeros(len(begin), np.uint32)
        flags[suspect | absurd] |= np.uint32(Flag.CLOCK_SUSPECT)
        flags[ambiguous] |= np.uint32(Flag.WRAP_AMBIGUOUS)
        flags[negative] |= np.uint32(Flag.NEGATIVE_DURATION)
        flags[~negative & (length < np.uint64(2))] |= np.uint32(Flag.BELOW_RESOLUTION)
        has_length = ~negative & ~absurd & (np.abs(end_ns) < _FAR)
        return Placed(
            begin,
            np.where(has_length, known, 0),
            begin_ns,
            np.where(has_length, end_ns, begin_ns),
            has_length,
            flags,
            self._estimated(begin),
        )

    def _bounded(self, ticks: Int64) -> Int64:
        """Return host time like ``to_ns``, and times too far away to be times as a bound."""
        distance = np.abs(ticks.astype(np.float64) - float(self.pairs.ticks[0]))
        ns = distance * (NS_PER_SECOND / float(self.frequency)) * (1 + 2 * _RATE_ERROR)
        far = (ns >= _FAR) | (distance >= 4 * _FAR)
        if not far.any():
            return self.to_ns(ticks)
        sign = np.where(ticks < self.pairs.ticks[0], -_FAR, _FAR)
        return np.where(far, sign, self.to_ns(np.where(far, self.pairs.ticks[0], ticks)))

    def _estimated(self, ticks: Int64) -> Mask:
        """Return which times depend on an inexact rate, bool [n]."""
        if not self.is_rounded or self.is_measured:
            return np.zeros(len(ticks), np.bool_)
        away: Mask = ticks != self.pairs.ticks[0]
        return away


@frozen_class
class Placed:
    """When operations ran. All arrays are [n].

    Attributes:
        ticks: int64, unwrapped ticks at the begin.
        length: int64, ticks from begin to end, 0 where that is not known.
        begin: int64, ns.
        end: int64, ns; the begin where the end is not known.
        has_length: bool, whether the end is known.
        flags: uint32, bits of ``Flag``.
        estimated: bool, whether the rate of the clock is an estimate there.
    """

    ticks: Int64
    length: Int64
    begin: Int64
    end: Int64
    has_length: Mask
    flags: npt.NDArray[np.uint32]
    estimated: Mask


def unwrap(host_ns: Int64, ticks: UInt64, frequency: Fraction | int, bits: int) -> Pairs:
    """Put readings of a wrapping counter on one line, and keep those that tell its rate.

    Args:
        host_ns: int64 [n], at least one.
        ticks: uint64 [n], valid in their lowest ``bits``.
        frequency: ticks a second.
        bits: width of the counter.
    """
    order = np.argsort(host_ns, kind="stable")
    ns, raw = host_ns[order], _modulo(ticks[order], bits)
    rate = float(frequency) / NS_PER_SECOND
    rise = _rise(raw, ns, rate, bits)
    expected = np.diff(ns) * rate
    wrong = np.abs(rise - expected) > np.abs(expected) * _RATE_ERROR + _JITTER_NS * rate + 2
    suspect = 0
    if wrong.any():
        keep = _agreeing(raw, ns, rate, bits)
        suspect = len(ns) - len(keep)
        ns, raw = ns[keep], raw[keep]
        rise = _rise(raw, ns, rate, bits)
    line = np.empty(len(ns), np.int64)
    # Any number that reads as the first reading will do; a small one leaves room for those that follow.
    first = int(raw[0])
    line[0] = first - (1 << bits) if bits > 60 and first >= 1 << (bits - 1) else first
    line[1:] = line[0] + np.cumsum(rise)
    spaced = np.ones(len(ns), np.bool_)
    bucket = (ns - ns[0]) // _SPACING_NS
    spaced[1:] = bucket[1:] != bucket[:-1]
    chosen = np.flatnonzero(spaced)
    apart = np.ones(len(chosen), np.bool_)
    apart[1:] = (np.diff(ns[chosen]) >= _SPACING_NS // 2) & (np.diff(line[chosen]) > 0)
    chosen = chosen[apart]
    chosen = chosen[np.concatenate([[True], np.diff(line[chosen]) > 0])]
    return Pairs(line[chosen], ns[chosen], _residual(line, ns, chosen), suspect)


def _rise(raw: UInt64, ns: Int64, rate: float, bits: int) -> Int64:
    """Return the ticks between readings: of all numbers that wrap to the difference, the one next to the expected."""
    expected = np.rint(np.clip(np.diff(ns) * rate, -_FAR, _FAR)).astype(np.int64)
    return nearest(raw[1:] - raw[:-1], expected, bits)


def _agreeing(raw: UInt64, ns: Int64, rate: float, bits: int) -> Int64:
    """Return the rows of the readings that agree with the last one kept; the first is kept."""
    turn = 1 << bits
    kept = [0]
    values, times = raw.tolist(), ns.tolist()
    for row in range(1, len(values)):
        last = kept[-1]
        expected = (times[row] - times[last]) * rate
        off = (values[row] - values[last] - round(expected)) % turn
        off = min(off, turn - off)
        if off <= abs(expected) * _RATE_ERROR + _JITTER_NS * rate + 2:
            kept.append(row)
    return np.array(kept, np.int64)


def _residual(line: Int64, ns: Int64, chosen: Int64) -> int | None:
    """Return how far readings lie from the line through the chosen ones, ns; None when all are chosen or one is."""
    if len(chosen) == len(line) or len(chosen) < 2:
        return None
    ticks, times = (line - line[0]).astype(np.float64), (ns - ns[0]).astype(np.float64)
    drawn = np.interp(ticks, ticks[chosen], times[chosen])
    inside = (ns >= ns[chosen[0]]) & (ns <= ns[chosen[-1]])
    return int(np.ceil(np.abs(drawn - times)[inside].max()))


def mul_div(values: Int64, num: Int64, den: Int64) -> Int64:
    """Return floor(values * num / den), exact however large the product is, int64 [n].

    Args:
        values: int64 [n].
        num: int64 [n], >= 0.
        den: int64 [n], > 0.

    Raises:
        OverflowError: never; results beyond 63 bits wrap, so callers bound them first.
    """
    if not len(values):
        return values
    whole, rest = np.divmod(num, den)
    largest = int(np.abs(values).max())
    if largest * int(rest.max()) < 1 << 62:
        return values * whole + values * rest // den
    digit = 62 - int(den.max()).bit_length()
    if digit < 1:
        parts = zip(values.tolist(), rest.tolist(), den.tolist(), strict=True)
        return values * whole + np.array([v * r // d for v, r, d in parts], np.int64)
    magnitude, negative = np.abs(values), values < 0
    quotient = np.zeros(len(values), np.int64)
    remainder = np.zeros(len(values), np.int64)
    for shift in range((largest.bit_length() - 1) // digit * digit, -1, -digit):
        part = (magnitude >> shift) & ((1 << digit) - 1)
        step, remainder = np.divmod((remainder << digit) + part * rest, den)
        quotient = (quotient << digit) + step
    return values * whole + np.where(negative, -quotient - (remainder > 0), quotient)


def _modulo(values: UInt64, bits: int) -> UInt64:
    return values if bits == 64 else values & np.uint64((1 << bits) - 1)

"""Offsets between the clocks of a trace, as a table: intervals that contain them, and what they rest on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lanescope.analysis.align.chains import Between, Chain, Loop, chains
from lanescope.analysis.align.interval import METHODS, RATE_PPM, Interval, OneBound, from_orders, offset_interval
from lanescope.analysis.align.limits import FAR, Contradiction, Limits, Pairs
from lanescope.analysis.align.sources import clock_pairs
from lanescope.analysis.windows.report import described
from lanescope.common.time_domains import lanes_of_clocks
from lanescope.errors import UsageError
from lanescope.families.clock_pairs import ClockPairs, Orders
from lanescope.trace import ColumnSpec, Flag, Table, TableSpec, Trace

#: What a row states. ``holds``: the times as shown are possible; ``off``: they are not; ``read``: where the time axis
#: lies on a clock without lanes; ``contradiction``: two pairs that no clock satisfies; ``one bound``: one side only;
#: ``unknown``: nothing limits the offset.
STATUSES = ("holds", "off", "read", "contradiction", "one bound", "unknown")

#: Names of slices are shown up to this length; those of kernels in C++ may have thousands of characters.
_LONGEST = 60


def _number(name: str, doc: str, *, unit: str = "") -> ColumnSpec:
    return ColumnSpec(name, "int64", doc, nullable=True, unit=unit)


ALIGNMENT = TableSpec(
    "alignment",
    "offset between two clocks: time of the second less time of the first",
    (
        ColumnSpec("id", "int64", "row number"),
        ColumnSpec("first", "utf8", "clock that the offset counts from"),
        ColumnSpec("second", "utf8", "clock with the offset"),
        ColumnSpec("status", "text", "holds, off, read, contradiction, one bound, unknown"),
        ColumnSpec("method", "text", "straight, segments, rate, chain; empty without an interval"),
        _number("offset", "middle of the interval; NULL without one", unit="ns"),
        _number("half_width", "how far the offset may be from the middle at that moment", unit="ns"),
        _number("least", "lower limit of the offset; NULL if nothing limits it", unit="ns"),
        _number("most", "upper limit; NULL if nothing limits it", unit="ns"),
        _number("at", "moment of the limits on the first clock: where they are closest, unless given", unit="ns"),
        _number("error", "greatest error of the times of the second clock over all pairs, once placed", unit="ns"),
        ColumnSpec("rate_least_ppm", "float64", "lowest rate difference, parts per million", nullable=True),
        ColumnSpec("rate_most_ppm", "float64", "highest rate difference", nullable=True),
        ColumnSpec("forward", "int64", "pairs with the cause on the first clock"),
        ColumnSpec("backward", "int64", "pairs with the cause on the second clock"),
        ColumnSpec("binding", "int64", "pairs that limit the offset at some moment"),
        ColumnSpec("least_by", "utf8", "pair of the lower limit; of a contradiction, one of the two pairs"),
        ColumnSpec("most_by", "utf8", "pair of the upper limit; of a contradiction, the other one"),
        ColumnSpec("detail", "utf8", "missing or contradictory records, in words"),
    ),
)


class Found(NamedTuple):
    """Two clocks, what joins them, and what that says of the offset.

    Attributes:
        pairs: what joins them.
        result: the interval, one bound, or a contradiction.
        holds: whether an offset of 0 at all times satisfies all pairs.
        left_out: how many pairs were not used: their rows have a suspect clock, impossible times, or are cut.
    """

    pairs: ClockPairs
    result: Interval | OneBound | Contradiction
    holds: bool
    left_out: int

    @property
    def names(self) -> tuple[str, str]:
        """Names of both clocks."""
        return self.pairs.first.name, self.pairs.second.name


class Alignment:
    """Offsets between the clocks of a trace.

    Args:
        trace: the trace.
        rate_ppm: how far the rates of two clocks may differ, in parts per million.
        at: the moment that is asked for, in the trace's time unit; None: where the limits are closest.
        method: one of ``METHODS``.
        reading_error: how far readings whose error a capture does not state may be off, in the trace's time unit;
            None: they say nothing.

    Attributes:
        trace: the trace.
        rate: how far the rates may differ, exact.
        found: what joins each two clocks.

    Raises:
        UsageError: an unknown method, or a rate difference that is not positive.
    """

    def __init__(
        self,
        trace: Trace,
        *,
        rate_ppm: float = RATE_PPM,
        at: int | None = None,
        method: str = "auto",
        reading_error: int | None = None,
    ) -> None:
        if method not in METHODS:
            raise UsageError(f"unknown method {method!r} (choose from {', '.join(METHODS)})")
        if not 0 < rate_ppm < 1_000_000:
            raise UsageError(f"invalid rate difference {rate_ppm!r}: expected parts per million above 0")
        self.trace = trace
        if reading_error is not None and reading_error < 0:
            raise UsageError(f"invalid error of readings {reading_error}: expected 0 or more")
        self.rate = Fraction(str(rate_ppm)) / 1_000_000
        self._reading_error = reading_error
        self.found = [self._judged(pairs, at, method) for pairs in clock_pairs(trace, self.rate)]

    def __repr__(self) -> str:
        """Return the offsets as aligned text."""
        return f"<Alignment: {len(self.found)} pairs of clocks>\n{self.table()!r}"

    def _repr_html_(self) -> str:
        """Return the offsets as HTML, for notebooks."""
        return self.table()._repr_html_()

    def _judged(self, pairs: ClockPairs, at: int | None, method: str) -> Found:
        forward, backward = pairs.forward, pairs.backward
        if self._reading_error is not None:
            first, second = pairs.readings
            both = Orders.read(first, second, np.full(len(first), self._reading_error, np.int64))
            forward, backward = Orders.joined([forward, both[0]]), Orders.joined([backward, both[1]])
        given = len(forward.cause) + len(backward.cause)
        forward, backward = self._sound(forward), self._sound(backward)
        left_out = given - len(forward.cause) - len(backward.cause)
        pairs = pairs._replace(forward=forward, backward=backward)
        numbers = np.arange(len(forward.cause_ts)), len(forward.cause_ts) + np.arange(len(backward.cause_ts))
        limits = from_orders(
            (forward.cause_ts, forward.effect_ts, numbers[0]), (backward.cause_ts, backward.effect_ts, numbers[1])
        )
        moment = None if at is None else at - pairs.base
        result = offset_interval(limits, rate=self.rate, at=moment, method=method)
        return Found(pairs, result, _holds(limits, pairs), left_out)

    def _sound(self, orders: Orders) -> Orders:
        """Return the orders without those of rows that a window cuts, or with a suspect clock, and of times far from 0.

        A slice that a window cuts neither begins nor ends where it is cut; sums of times too far from 0 do not fit.
        """
        keep = (np.abs(orders.cause_ts) < FAR // 2) & (np.abs(orders.effect_ts) < FAR // 2)
        doubtful = np.uint32(Flag.CLOCK_SUSPECT | Flag.CUT)
        suspect = np.append((self.trace.slices.values("flags") & doubtful) != 0, False)
        return orders.take(keep & ~suspect[orders.cause] & ~suspect[orders.effect])

    @cached_property
    def contradictions(self) -> list[Found]:
        """The clocks of which two pairs contradict each other."""
        return [found for found in self.found if isinstance(found.result, Contradiction)]

    @cached_property
    def reference(self) -> str:
        """The clock that others are placed against: the first one of the first pair."""
        return next((found.names[0] for found in self.found if not found.pairs.base), "")

    @cached_property
    def chained(self) -> Mapping[str, Chain] | Loop:
        """Offsets of all clocks against the reference over what joins them, at one moment; or a contradiction.

        Limits of two clocks hold at a reading of the first one, which is known as well as its own offset is: they are
        widened by what the rates may add meanwhile.
        """
        readings = self._readings()
        edges: dict[tuple[str, str], Between] = {}
        for found in self.found:
            if found.pairs.base or found.names[0] not in readings:
                continue
            moment, spread = readings[found.names[0]]
            between = self._between(found, moment, spread)
            if between is not None:
                edges[found.names] = between
        return chains(edges, self.reference)

    def _readings(self) -> dict[str, tuple[int, int]]:
        """Return what each clock shows at one moment, and how far that may be off, along the first way to it."""
        intervals = [found for found in self.found if isinstance(found.result, Interval) and not found.pairs.base]
        start = next((found.result.at for found in intervals if isinstance(found.result, Interval)), 0)
        known = {self.reference: (start, 0)}
        for _ in intervals:
            for found in intervals:
                first, second = found.names
                for near, far, sign in ((first, second, 1), (second, first, -1)):
                    if near in known and far not in known:
                        assert isinstance(found.result, Interval)
                        moment, spread = known[near]
                        at = moment if sign > 0 else moment - int(found.result.offset)
                        between = self._between(found, at, spread)
                        if between is None or between.least is None or between.most is None:
                            continue
                        offset = sign * (between.least + between.most) // 2
                        known[far] = moment + offset, spread + between.most - between.least + 1
        for found in self.found:  # clocks that only one bound joins show about the same
            for near, far in (found.names, found.names[::-1]):
                if near in known and far not in known:
                    known[far] = known[near]
        return known

    def _between(self, found: Found, moment: int, spread: int) -> Between | None:
        """Return the limits of two clocks at a moment of the first that is known up to ``spread``."""
        more = math.ceil(self.rate * spread)
        result = found.result
        if isinstance(result, Interval):
            away = math.ceil(self.rate * abs(moment - result.at)) + more
            return Between(result.least - away, result.most + away)
        if isinstance(result, OneBound):
            away = math.ceil(self.rate * abs(moment - result.at)) + more
            least = None if result.least is None else result.least - away
            return Between(least, None if result.most is None else result.most + away)
        return None

    def place(self) -> Trace:
        """Return the trace with its clocks placed, see ``lanescope.analysis.align.placing.placed``."""
        from lanescope.analysis.align.placing import placed

        return placed(self)

    def table(self) -> Table:
        """Return a row for each two clocks that something joins, then those that are joined to the first over others.

        Times are in the trace's unit.
        """
        rows = [self._row(found) for found in self.found]
        direct = {frozenset(found.names) for found in self.found}
        around = self.chained
        if isinstance(around, Loop):
            rows.append(
                _blank(around.clocks[0], around.clocks[-2])
                | {
                    "status": "contradiction",
                    "method": "chain",
                    "detail": f"{' -> '.join(around.clocks)}: offsets miss each other by {around.by:,}",
                }
            )
        else:
            for name, chain in around.items():
                if name != self.reference and frozenset((self.reference, name)) not in direct:
                    rows.append(_chain_row(self.reference, name, chain))
        nothing = self._outside or "no record joins them"
        rows += [_blank(*names) | {"status": "unknown", "detail": nothing} for names in self._unjoined()]
        for number, row in enumerate(rows):
            row["id"] = number
        return Table.from_arrays(ALIGNMENT, {spec.name: [row[spec.name] for row in rows] for spec in ALIGNMENT.columns})

    @cached_property
    def _outside(self) -> str:
        """Say that a window left out what may tell more: then a capture need not lack it; empty without one."""
        window = described(self.trace)
        is_part = window is not None and any(window[name] for name in ("excluded", "filtered_slices", "open_flows"))
        return "nothing in this window; what it excludes may limit it: align the whole capture" if is_part else ""

    def _unjoined(self) -> list[tuple[str, str]]:
        """Return the reference, or a host's clock without one, and each clock that no record joins to any other."""
        joined = np.zeros(len(self.trace.tracks), bool)
        for found in self.found:
            joined[found.pairs.first.tracks] = joined[found.pairs.second.tracks] = True
        alone = [domain for domain in lanes_of_clocks(self.trace)[0].values() if not joined[domain.tracks].any()]
        alone.sort(key=lambda domain: not domain.is_host)
        names = [domain.name for domain in alone]
        start = [self.reference] if self.reference else names[:1]
        return [(start[0], name) for name in names if name not in start]

    def _row(self, found: Found) -> dict[str, object]:
        pairs, result = found.pairs, found.result
        row = _blank(*found.names)
        row["forward"], row["backward"] = len(pairs.forward.cause_ts), len(pairs.backward.cause_ts)
        if isinstance(result, Contradiction):
            row["status"] = "contradiction"
            row["most_by"], row["least_by"] = self._pair(pairs, result.above), self._pair(pairs, result.below)
            row["detail"] = f"the two pairs miss each other by {result.by:,}"
            row["binding"] = 2
        elif isinstance(result, OneBound):
            has_bound = result.by >= 0
            row["status"] = "one bound" if has_bound else "unknown"
            row["detail"] = self._outside or pairs.lacks or "nothing limits the other side"
            if len(pairs.readings[0]) and self._reading_error is None:
                row["detail"] = f"no reading has a stated error (of {len(pairs.readings[0]):,}): use --reading-error"
            if has_bound:
                row["least"] = None if result.least is None else result.least - pairs.base
                row["most"] = None if result.most is None else result.most - pairs.base
                row["at"], row["binding"] = result.at + pairs.base, 1
                row["least_by" if result.most is None else "most_by"] = self._pair(pairs, result.by)
        else:
            least, most = result.least - pairs.base, result.most - pairs.base
            row |= {
                "status": "read" if pairs.base else "holds" if found.holds else "off",
                "method": result.method,
                "offset": (least + most) // 2,
                "half_width": (most - least + 1) // 2,
                "least": least,
                "most": most,
                "at": result.at + pairs.base,
                "error": result.error,
                "rate_least_ppm": float(result.rate_least * 1_000_000),
                "rate_most_ppm": float(result.rate_most * 1_000_000),
                "binding": result.binding,
                "least_by": self._pair(pairs, result.least_by[0]),
                "most_by": self._pair(pairs, result.most_by[0]),
                "detail": f"{result.segments} segments" if result.method == "segments" else "",
            }
        if found.left_out:
            more = (
                f"{found.left_out:,} pairs of rows with a suspect clock, impossible times or cut by a window excluded"
            )
            row["detail"] = "; ".join(filter(None, [str(row["detail"]), more]))
        return row

    def _pair(self, pairs: ClockPairs, number: int) -> str:
        """Return what a pair is: the slice of its cause, and that of its effect."""
        orders, place = pairs.forward, number
        moments = orders.cause_ts
        if number >= len(pairs.forward.cause_ts):
            orders, place = pairs.backward, number - len(pairs.forward.cause_ts)
            moments = orders.effect_ts
        cause, effect = (self._slice(int(side[place])) for side in (orders.cause, orders.effect))
        if not cause and not effect:
            return f"reading at {int(moments[place]) + pairs.base:,}"
        return f"{cause or 'reading'} -> {effect or 'reading'}"

    def _slice(self, row: int) -> str:
        if row < 0:
            return ""
        name = str(self.trace.slices.take(np.array([row])).values("name")[0])
        shown = name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."
        return f"{shown} (slice {row})"


def _holds(limits: Pairs, pairs: ClockPairs) -> bool:
    """Return whether an offset of 0 satisfies all pairs."""
    return not pairs.base and all(_allows_zero(side) for side in limits)


def _allows_zero(side: Limits) -> bool:
    return not len(side.most) or int(side.most.min()) >= 0


def _blank(first: str, second: str) -> dict[str, object]:
    row: dict[str, object] = {spec.name: None for spec in ALIGNMENT.columns}
    row |= dict.fromkeys(("status", "method", "least_by", "most_by", "detail"), "")
    return row | {"first": first, "second": second, "forward": 0, "backward": 0, "binding": 0}


def _chain_row(reference: str, name: str, chain: Chain) -> dict[str, object]:
    row = _blank(reference, name) | {"least": chain.least, "most": chain.most}
    row["least_by"], row["most_by"] = " -> ".join(chain.least_by), " -> ".join(chain.most_by)
    if chain.least is None or chain.most is None:
        return row | {"status": "one bound", "detail": "nothing limits the other side"}
    middle, half = (chain.least + chain.most) // 2, (chain.most - chain.least + 1) // 2
    status = "holds" if chain.least <= 0 <= chain.most else "off"
    return row | {"status": status, "method": "chain", "offset": middle, "half_width": half}


def statuses(table: Table) -> Sequence[str]:
    """Return the status of each row."""
    return [str(status) for status in table.values("status").tolist()]

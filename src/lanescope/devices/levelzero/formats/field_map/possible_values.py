"""Which other values the fields of a Level Zero trace could hold, whichever way they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from lanescope.devices.levelzero.formats import layout
from lanescope.families.field_sites import DROPPED, DUPLICATED, Possible, PossibleChange, Value, each, never

#: Counts and names that a program chooses, and what only names: nothing else in a trace depends on them.
_COUNTS = frozenset(
    (
        *("ordinal", "commandQueueGroupOrdinal", "index", "simd", "maxSubgroupSize", "code", "count"),
        *(f"{name}{axis}" for name in ("groupCount", "groupSize") for axis in "XYZ"),
        *(f"{name}_{axis}" for name in ("groups", "group") for axis in "xyz"),
        *("subdevice", "subdeviceId", "compute", "quiet"),
    )
)
_FACTS = frozenset(("pid", "thread", "offset", "offset_s", "error_ns", "lock_waits"))
_SIZES = frozenset(
    ("size", "bytes", "handle", "dstptr", "srcptr", "ptr", "pptr_val", "base", "hContext", "context", "dst", "src")
)
_NAMES = frozenset(("name", "pKernelName", "pName_val", "uuid", "hostname", "boot", "dst", "src"))
#: What may be another one of those that the trace has.
_ONE_OF_MANY = frozenset(("kernel", "hKernel", "memory"))
TICKS = ("global_start", "global_end", "context_start", "context_end")
TICK_NAMES = {"globalStart": "global_start", "globalEnd": "global_end", "contextStart": "context_start"}
TICK_NAMES |= {"contextEnd": "context_end", **{name: name for name in TICKS}}
_MOST_COUNT, _MOST_SIZE = (1 << 32) - 1, (1 << 63) - 1
NS = 1_000_000_000
#: Timestamps of operations have 32 bits in the captures that are changed.
_WRAP = 1 << 32
#: One part in so many: a rate that is farther off is another one.
_RATE_TOLERANCE = 1000
_READINGS = (f"{layout.PROPERTIES}:device_timer", f"{layout.OURS}:clock_pair")
#: Each device of the small captures has at least two readings left when one is gone.
_ENOUGH_READINGS = 8
_CHOSEN, _TOLD_ONCE = "a parameter that the program chose", "a name that nothing else tells"
_FACT = "a fact about the recording that nothing else tells"
_WINDOW = "between the append and the reading of the result"


def possible_of(name: str, seen: frozenset[Value], *, is_append: bool = False) -> Possible:
    """Return which values of a field are possible, by its name alone.

    Args:
        name: the field.
        seen: its values in the trace.
        is_append: it belongs to a call whose result the operations contradict or bear out.
    """

    def possible(index: int, value: Value) -> str:
        if isinstance(value, int) and name in _FACTS:
            return _FACT if 0 <= value <= _MOST_COUNT else ""
        if isinstance(value, int) and name in _COUNTS | _SIZES:
            return _CHOSEN if 0 <= value <= (_MOST_SIZE if name in _SIZES else _MOST_COUNT) else ""
        if isinstance(value, bytes) and name in _NAMES:
            is_name = _PRINTED.fullmatch(value) is not None
            return _TOLD_ONCE if is_name else ""
        if name in _ONE_OF_MANY:
            return "another one that the trace knows" if value in seen else ""
        if name == "zeResult" and not is_append:
            known = value in seen or value in layout.RESULTS or value in _RESULT_WORDS
            return "another result that a call may have" if known else ""
        return ""

    is_told = name in _COUNTS | _FACTS | _SIZES | _NAMES | _ONE_OF_MANY or (name == "zeResult" and not is_append)
    return each(possible) if is_told else never


#: A name, with its quotes or without.
_PRINTED = re.compile(rb'"(?:[\x20-\x21\x23-\x5b\x5d-\x7e]|\\["\\])*"|[\x20-\x21\x23-\x5b\x5d-\x7e]*')
_RESULT_WORDS = frozenset(word.encode() for word in layout.RESULTS.values())


class ClockReadings:
    """Where the device's clocks stood at host times, as far as the trace itself tells.

    Attributes:
        pairs: device, host time, ticks.
        appends: when the operation of a number or event was appended.
        rates: ticks per nanosecond that devices declare, for those with one reading.
    """

    def __init__(
        self, pairs: Sequence[tuple[int, int, int]], appends: Mapping[Any, int], rates: Mapping[int, float] = {}
    ) -> None:
        self.pairs, self.appends, self.rates = pairs, appends, rates

    def window(self, first: int, last: int, ticks: int) -> tuple[int, int]:
        """Return the ticks between two host times on the device whose clock fits ``ticks``; (1, 0) where none does."""
        for device in {device for device, *_ in self.pairs}:
            mine = [(time, value) for of, time, value in self.pairs if of == device]
            (begin, low), (end, high) = mine[0], mine[-1]
            rate = (high - low) / (end - begin) if end > begin else self.rates.get(device, 0)
            found = round(low + (first - begin) * rate), round(low + (last - begin) * rate)
            if rate > 0 and (ticks - found[0] & _WRAP - 1) <= found[1] - found[0]:
                return found
        return 1, 0


def record_name(provider: str, event: str) -> str:
    """Return the declared name of a record: those of API calls are alike."""
    call = event.rpartition("_")[2]
    return f"{provider}:FUNCTION_{call}" if provider == layout.API else f"{provider}:{event}"


def possible_rate(rates: Sequence[int]) -> Possible:
    """Return which rates of a device's clock are possible: those that differ by less than clocks of one kind do."""

    def possible(index: int, value: Value) -> str:
        is_near = isinstance(value, int) and abs(value - rates[index]) * _RATE_TOLERANCE <= rates[index]
        return "within what clocks of one kind differ" if is_near else ""

    return each(possible)


def possible_change(record: str, count: int) -> PossibleChange:
    """Return which changes to the records of one kind can leave a sound trace.

    Args:
        record: the kind.
        count: how many the trace has.
    """

    def possible(change: str, index: int) -> str:
        if record.startswith(f"{layout.PROPERTIES}:") and change == DUPLICATED:
            return "properties that may be read again"
        if record in _READINGS and change == DROPPED and count > _ENOUGH_READINGS:
            return "a reading of the clocks: they are not counted, and others are left"
        return ""

    return possible


def possible_tick(
    clocks: ClockReadings, row: Mapping[str, int], part: str, value: Value, append: int | None, read: int
) -> str:
    """Return why an operation may have run at other ticks: after its append, before its result was read."""
    if append is None or not isinstance(value, int):
        return ""
    made = {**row, part: value}
    if any(not 0 <= ticks < _WRAP for ticks in made.values()):
        return ""
    ran, active = (made[f"{clock}_end"] - made[f"{clock}_start"] & _WRAP - 1 for clock in ("global", "context"))
    if max(ran, active) >= _WRAP // 2:
        return ""
    if part.startswith("context"):
        return "the context's clock: no more than the time by the global one" if active <= ran else ""
    low, high = clocks.window(append, read, row[part])
    return _WINDOW if (value - low & _WRAP - 1) <= high - low else ""

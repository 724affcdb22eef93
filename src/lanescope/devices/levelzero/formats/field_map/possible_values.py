"""Which other values the fields of a Level Zero trace could hold, whichever way they are written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.host_apis import HOST_APIS
from lanescope.families.field_sites import CUT, DROPPED, DUPLICATED, Possible, PossibleChange, Value, each, never

#: Counts and names that a program chooses, and what only names: nothing else in a trace depends on them.
_COUNTS = frozenset(
    (
        *("ordinal", "commandQueueGroupOrdinal", "index", "simd", "maxSubgroupSize", "code", "count"),
        *(f"{name}{axis}" for name in ("groupCount", "groupSize") for axis in "XYZ"),
        *(f"{name}_{axis}" for name in ("groups", "group") for axis in "xyz"),
        *("subdevice", "subdeviceId", "compute", "quiet", "flags"),
    )
)
_FACTS = frozenset(("pid", "thread", "offset", "offset_s", "error_ns", "lock_waits", "recorder_ns"))
_SIZES = frozenset(("size", "bytes"))
_ADDRESSES = frozenset(
    ("handle", "dstptr", "srcptr", "ptr", "pptr_val", "base", "hContext", "context", "dst", "src", "signal")
)
_BITS = frozenset(("timestamp_bits", "kernel_timestamp_bits"))
#: The decoder checks that operations of in-order lists do not overlap and keep their order.
_ORDERS = frozenset(("in_order",))
#: The decoder checks that an operation ran after its list was made and it was appended, and before it was read.
_OWNERS = frozenset(("hEvent", "op_id", "list_id"))
_NAMES = frozenset(("name", "pKernelName", "pName_val", "uuid", "hostname", "boot", "dst", "src"))
#: What may be another one of those that the trace has.
_ONE_OF_MANY = frozenset(("kernel", "hKernel", "phKernel_val", "memory", "device", "hDevice"))
RATE_PARTS = ("ticks_per_second_num", "ticks_per_second_den")
TICKS = ("global_start", "global_end", "context_start", "context_end")
TICK_NAMES = {"globalStart": "global_start", "globalEnd": "global_end", "contextStart": "context_start"}
TICK_NAMES |= {"contextEnd": "context_end", **{name: name for name in TICKS}}
_MOST_COUNT, _MOST_SIZE, _MOST_ADDRESS = layout.MOST_COUNT, layout.MOST_SIZE, (1 << 64) - 1
NS = 1_000_000_000
#: Ticks by which two clocks that are read one after the other may differ.
_LATE = layout.CONTEXT_TICKS
#: Timestamps of operations have 32 bits in the captures that are changed.
_WRAP = 1 << 32
#: One part in so many: a rate that is farther off is another one.
_RATE_TOLERANCE = 1000
#: Descriptions that say the same again; the recorder of a process writes each once.
_TOLD_AGAIN = (f"{layout.OURS}:device", f"{layout.OURS}:kernel")
_READINGS = (f"{layout.PROPERTIES}:device_timer", f"{layout.OURS}:clock_pair")
#: Each device of the small captures has at least two readings left when one is gone.
_ENOUGH_READINGS = 8
#: From so many on, readings measure the rate of a clock.
_FEWEST_READINGS = 2
_CHOSEN, _TOLD_ONCE = "a parameter that the program chose", "a name that nothing else tells"
_FACT = "a fact about the recording that nothing else tells"
_WINDOW = "between the append and the reading of the result"
_WIDE_ENOUGH = "a width that holds all timestamps of the device"
_ANY_ORDER = "operations of a list without an order that ran one after the other, or of one with it"
_OTHER_OWNER = "another one that the trace knows, which had begun then and had not ended"
_OTHER_RATE = "a rate that such clocks have: the readings of this one are too close together to contradict it"
#: Rates of the clocks of devices, in Hz.
_RATES = (1e6, 2.5e9)
_OPAQUE = "an address or handle, of which the API says nothing"


def possible_of(name: str, seen: frozenset[Value], *, is_append: bool = False) -> Possible:
    """Return which values of a field are possible, by its name alone.

    Args:
        name: the field.
        seen: its values in the trace.
        is_append: it belongs to a call whose result the operations contradict or bear out.
    """
    parameter, _, field = name.rpartition("desc_")
    if parameter in ("", "alt", "device_", "host_") and name.removeprefix(parameter).startswith("desc_"):
        return each(_possible_argument(name, field))
    if name in _OF_SENSORS:
        return each(_possible_of_sensor(name, seen))

    def possible(index: int, value: Value) -> str:
        if isinstance(value, int) and name in _FACTS:
            return _FACT if 0 <= value <= _MOST_COUNT else ""
        if isinstance(value, int) and name in _BITS:
            return _WIDE_ENOUGH if 1 <= value <= layout.MOST_BITS else ""
        if isinstance(value, int) and name in _ORDERS:
            return _ANY_ORDER if 0 <= value <= 1 else ""
        if isinstance(value, int) and name in _ADDRESSES:
            return _OPAQUE if 0 <= value <= _MOST_ADDRESS else ""
        if name in _OWNERS:
            return _OTHER_OWNER if value in seen else ""
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

    numbers = _COUNTS | _FACTS | _SIZES | _ADDRESSES | _BITS | _ORDERS
    is_told = name in numbers | _NAMES | _ONE_OF_MANY | _OWNERS or (name == "zeResult" and not is_append)
    return each(possible) if is_told else never


#: Largest numbers of parts of descriptors: bits of flags and scopes, enumerations. Source: ze_api.h of API 1.17.
_MOST_OF = {
    "altdesc_flags": 7,
    "device_desc_flags": 7,
    "host_desc_flags": 31,
    "desc_flags": 15,
    "signal": 7,
    "wait": 7,
    "mode": 2,
    "priority": 2,
    "format": 1,
    "state": 2,
    "inputSize": _MOST_SIZE,
}
_OF_SENSORS = frozenset(
    ("alignment", "interval_ns", "failed", "missed", "value", "reference", "sensor", "part", "kind")
)
_MEASURED = "a measured value: only impossible rates are noticed"
_IN_DESCRIPTOR = "a part of a descriptor that the program chose, and that nothing else tells"


def _possible_argument(name: str, field: str) -> Callable[[int, Value], str]:
    most = _MOST_OF.get(name, _MOST_OF.get(field, _MOST_COUNT))
    least = 1 if field == "count" else 0

    def possible(index: int, value: Value) -> str:
        if isinstance(value, bytes):
            return _TOLD_ONCE if _PRINTED.fullmatch(value) else ""
        return _IN_DESCRIPTOR if least <= value <= most else ""

    return possible


def _possible_of_sensor(name: str, seen: frozenset[Value]) -> Callable[[int, Value], str]:
    numbers = [value for value in seen if isinstance(value, int)]

    def possible(index: int, value: Value) -> str:
        if name == "kind":
            return "another kind of sensor, of which as many are declared" if value in seen else ""
        if isinstance(value, bytes):
            return _TOLD_ONCE if _PRINTED.fullmatch(value) else ""
        if name == "alignment":
            return _CHOSEN if value >= 0 and value & (value - 1) == 0 else ""
        if name == "interval_ns":
            return _CHOSEN if layout.SAMPLING_NS[0] <= value <= layout.SAMPLING_NS[1] else ""
        if name == "sensor":
            return "another one that the trace knows" if 0 <= value <= max(numbers) else ""
        return (_MEASURED if name in ("value", "reference") else _FACT) if 0 <= value < 1 << 64 else ""

    return possible


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
            # The rate of a clock that was read once is declared, not measured.
            off = 0 if end > begin else max(abs(first - begin), abs(last - begin)) * rate / _RATE_TOLERANCE
            found = round(low + (first - begin) * rate - off), round(low + (last - begin) * rate + off)
            if rate > 0 and (ticks - found[0] & _WRAP - 1) <= found[1] - found[0]:
                return found
        return 1, 0

    def reading(self, device: int, first: int, last: int) -> tuple[int, int]:
        """Return the ticks of a device's clock between two host times; (1, 0) where its rate is not known."""
        mine = [(time, value) for of, time, value in self.pairs if of == device]
        if not mine:
            return 1, 0
        (begin, low), (end, high) = mine[0], mine[-1]
        rate = (high - low) / (end - begin) if end > begin else self.rates.get(device, 0)
        return (round(low + (first - begin) * rate), round(low + (last - begin) * rate)) if rate > 0 else (1, 0)


def record_name(provider: str, event: str) -> str:
    """Return the declared name of a record: those of API calls are alike."""
    call = event.rpartition("_")[2]
    is_call = provider in layout.APIS or provider in HOST_APIS
    return f"{provider}:FUNCTION_{call}" if is_call else f"{provider}:{event}"


def possible_rate(rates: Sequence[tuple[int, int]], part: str) -> Possible:
    """Return which rates of a device's clock are possible.

    Args:
        rates: numerator and denominator of each.
        part: ``ticks_per_second_num`` or ``ticks_per_second_den``, the one that is changed.
    """

    def possible(index: int, value: Value) -> str:
        num, den = rates[index]
        if not isinstance(value, int) or value <= 0 or not num or not den:
            return ""
        before, after = num / den, value / den if part == "ticks_per_second_num" else num / value
        if abs(after - before) * _RATE_TOLERANCE <= before:
            return "within what clocks of one kind differ"
        return _OTHER_RATE if _RATES[0] <= after <= _RATES[1] else ""

    return each(possible)


class Reading(NamedTuple):
    """A reading of a device's clock, taken between two host times."""

    device: int
    since: int
    until: int
    ticks: int


def possible_reading(made: Reading, others: Sequence[Reading]) -> str:
    """Return why a reading may show other ticks: some rate of such a clock joins it with all others of its device."""
    if len(others) < _FEWEST_READINGS:
        return ""
    first, last = others[0], others[-1]
    rate = (last.ticks - first.ticks) / (last.until - first.until)
    for other in others:
        before, after = (made, other) if made.until < other.until else (other, made)
        passed = after.ticks - before.ticks
        least, most = (after.since - before.until) * rate, (after.until - before.since) * rate
        if not least * (1 - 1 / _RATE_TOLERANCE) - 1 <= passed <= most * (1 + 1 / _RATE_TOLERANCE) + 1:
            return ""
    return "between the record before and that of the reading, at a rate that clocks of one kind have"


def possible_pair(row: Mapping[str, int], part: str, value: Value, rate: float) -> str:
    """Return why a reading of both clocks may hold another value: the reading itself says how far it may be off.

    Args:
        row: the reading.
        part: ``host_ns`` or ``device_ticks``.
        value: the other value.
        rate: ticks per nanosecond.
    """
    if not isinstance(value, int) or rate <= 0:
        return ""
    # A counter shows whole ticks, so its value is up to one behind.
    off = abs(value - row[part]) if part == "host_ns" else max(abs(value - row[part]) - 1, 0) / rate
    return "within the error that the reading states" if off <= row["error_ns"] else ""


def possible_change(record: str, count: int, cuts: Sequence[bool] = ()) -> PossibleChange:
    """Return which changes to the records of one kind can leave a sound trace.

    Args:
        record: the kind.
        count: how many the trace has.
        cuts: of each, whether the trace could end before it; without any, it could not.
    """
    cuts = cuts or [False] * count

    def possible(change: str, index: int) -> str:
        if record.startswith(f"{layout.PROPERTIES}:") and change == DUPLICATED:
            return "properties that may be read again"
        if record in _TOLD_AGAIN and change == DUPLICATED:
            return "what a program tells again that runs itself again by exec"
        if change == CUT and cuts[index]:
            return "a text of a program that ended there: no call was open, and all results had been read"
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
        return "the context's clock: no more than the time by the global one" if active <= ran + _LATE else ""
    low, high = clocks.window(append, read, row[part])
    return _WINDOW if (value - low & _WRAP - 1) <= high - low else ""

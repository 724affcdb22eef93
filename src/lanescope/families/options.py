"""Options of families, keyword arguments and flags of the command line, and how their text is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lanescope.errors import UsageError

if TYPE_CHECKING:
    from fractions import Fraction


class Option(NamedTuple):
    """One option of a family: a keyword argument of ``lanescope.open``, a flag of the command line.

    Attributes:
        name: a Python name; the flag is ``--name`` with dashes.
        parse: from the command line's text to the value; ``ValueError`` says what is wrong. ``bool`` makes a switch.
        help: one line.
        default: the value when it is not given.
        metavar: placeholder of the value in the help.
        settles: what it tells a merge of several captures: ``clock`` (how its clock lies to others), ``device`` (whose
            clock it is), ``frequency``, or nothing. A merge that is refused for want of it names the option.
        claims: giving it names the family: captures are then not asked whose they are.
    """

    name: str
    parse: Callable[[str], Any]
    help: str
    default: Any = None
    metavar: str = ""
    settles: str = ""
    claims: bool = False

    @property
    def flag(self) -> str:
        """The command line flag."""
        return "--" + self.name.replace("_", "-")

    def value(self, given: Any) -> Any:
        """Return the option's value from text or from a Python value; ``UsageError`` if it cannot be."""
        if not isinstance(given, str):
            return given
        if self.parse is bool:
            if given.lower() in ("1", "true", "yes", "on", "0", "false", "no", "off"):
                return given.lower() in ("1", "true", "yes", "on")
            raise UsageError(f"invalid value {given!r} for {self.flag}: expected yes or no")
        try:
            return self.parse(given)
        except (ValueError, TypeError, ZeroDivisionError) as error:
            raise UsageError(f"invalid value {given!r} for {self.flag}: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    """Return what is wrong with a value; Python's own texts explain nothing to users."""
    return "expected a number" if type(error) is not ValueError or str(error).startswith(_PYTHONS) else str(error)


#: How messages of Python's own conversions start.
_PYTHONS = ("invalid literal", "could not convert", "Invalid literal", "cannot convert")
#: Numbers that users give lie within this: counts and times of 64 bits with a sign.
_LARGEST = 2**63 - 1
_SMALLEST = 1e-30
#: Unit -> how many of the smallest one it is.
_HERTZ = {"Hz": 1, "kHz": 10**3, "MHz": 10**6, "GHz": 10**9}
_PICOSECONDS = {"ps": 1, "ns": 10**3, "us": 10**6, "µs": 10**6, "ms": 10**9, "s": 10**12}


def whole(text: str) -> int:
    """Read a whole number of either sign; for ``Option.parse``."""
    try:
        value = int(text, 0)
    except ValueError:
        raise ValueError("must be an integer") from None
    if abs(value) > _LARGEST:
        raise ValueError("too large")
    return value


def non_negative_int(text: str) -> int:
    """Read a count, 0 or more; for ``Option.parse``."""
    try:
        value = whole(text)
    except ValueError:
        value = -1
    if value < 0:
        raise ValueError("must be a non-negative integer")
    return value


def number(text: str) -> float:
    """Read a finite number; for ``Option.parse``."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError("expected a number") from None
    if not abs(value) < float("inf"):
        raise ValueError("must be finite")
    return value


def hertz(text: str) -> Fraction:
    """Read a frequency, exactly: ``1GHz``, ``12.5 MHz``, or a number of Hz such as ``1e9``; for ``Option.parse``."""
    value = _in_unit(text, _HERTZ, "Hz", "a frequency in Hz, e.g. 1.25e9")
    if value <= 0:
        raise ValueError("must be positive")
    return value


def whole_hertz(text: str) -> int:
    """Read a frequency of a whole number of Hz, written as ``hertz`` reads it; for ``Option.parse``."""
    return _whole(hertz(text), "Hz")


def mega_hertz(text: str) -> float:
    """Read a frequency in MHz, or with a unit as ``hertz`` reads it; for ``Option.parse``."""
    value = _in_unit(text, _HERTZ, "MHz", "a frequency in MHz, e.g. 1980")
    if value <= 0:
        raise ValueError("must be positive")
    return float(value / 10**6)


def time_in(unit: str, text: str) -> Fraction:
    """Read a time of 0 or more in a unit (``ns``), exactly; another one may stand behind it (``10us``)."""
    value = _in_unit(text, _PICOSECONDS, unit, f"a time in {unit}, e.g. 1000 or 10us")
    if value < 0:
        raise ValueError("must not be negative")
    return value / _PICOSECONDS[unit]


def nanoseconds(text: str) -> int:
    """Read a time in whole nanoseconds, or with a unit; for ``Option.parse``."""
    return _whole(time_in("ns", text), "ns")


def microseconds(text: str) -> float:
    """Read a time in microseconds, or with a unit; for ``Option.parse``."""
    return float(time_in("us", text))


def milliseconds(text: str) -> float:
    """Read a time in milliseconds, or with a unit; for ``Option.parse``."""
    return float(time_in("ms", text))


def _whole(value: Fraction, unit: str) -> int:
    if value.denominator != 1:
        raise ValueError(f"must be an integer in {unit}")
    return int(value)


def _in_unit(text: str, units: Mapping[str, int], usual: str, expected: str) -> Fraction:
    """Return a number with a unit, the usual one when there is none, in the smallest of the units."""
    from fractions import Fraction

    found = text.strip()
    figures = found.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ")
    by_name = {name.lower(): size for name, size in units.items()}
    size = by_name.get(found[len(figures) :].lower() or usual.lower())
    if not figures or size is None:
        raise ValueError(f"expected {expected} (units: {', '.join(units)})" if figures else f"expected {expected}")
    figures = figures.rstrip()
    if "/" not in figures:
        # A huge exponent would take for ever as an exact ratio, a tiny one as well.
        try:
            about = abs(number(figures))
        except ValueError:
            raise ValueError(f"expected {expected}") from None
        if about > _LARGEST:
            raise ValueError("too large")
        if about < _SMALLEST:
            return Fraction(0)
    try:
        return Fraction(figures) * size
    except ValueError:
        raise ValueError(f"expected {expected}") from None


def positive_int(text: str) -> int:
    """Read a size, 1 or more; for ``Option.parse``."""
    try:
        value = whole(text)
    except ValueError:
        value = 0
    if value < 1:
        raise ValueError("must be a positive integer")
    return value


def int_in(low: int, high: int) -> Callable[[str], int]:
    """Return a function that reads a whole number from ``low`` to ``high``; for ``Option.parse``."""

    def parse(text: str) -> int:
        value = whole(text)
        if not low <= value <= high:
            raise ValueError(f"must be between {low} and {high}")
        return value

    return parse


def fraction(text: str) -> float:
    """Read a number from 0 to 1; for ``Option.parse``."""
    value = number(text)
    if not 0 <= value <= 1:
        raise ValueError("must be between 0 and 1")
    return value


def resolve_options(options: Sequence[Option], given: Mapping[str, Any], *, what: str) -> dict[str, Any]:
    """Return every option's value, defaults filled in.

    Raises:
        UsageError: a name in ``given`` is none of ``options``; the message lists the available ones.
    """
    known = {option.name: option for option in options}
    for name in given:
        if name not in known:
            raise UsageError(f"unknown option {name!r} for {what} (available: {', '.join(known) or 'none'})")
    return {name: option.value(given.get(name, option.default)) for name, option in known.items()}

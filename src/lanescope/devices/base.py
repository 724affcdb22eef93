"""What a device family is: the seam between one vendor's bytes and the common timeline.

A family's ``family.py`` imports nothing but the standard library and this module, so that all families can be listed,
probed and shown in ``--help`` at no cost; the methods import what they need when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from lanescope.errors import UsageError

if TYPE_CHECKING:
    from fractions import Fraction

    from lanescope.source import Capture, Head, Match
    from lanescope.trace import LazyTable, StatSpec, Table, TableSpec, Trace

#: Stages that ``dump`` shows: the wire's units, decoded fields, rows of the trace.
STAGES = ("packet", "record", "row")


class Option(NamedTuple):
    """One option of a family: a keyword argument of ``lanescope.open``, a flag of the command line.

    Attributes:
        name: a Python name; the flag is ``--name`` with dashes.
        parse: from the command line's text to the value; ``ValueError`` says what is wrong. ``bool`` makes a switch.
        help: one line.
        default: the value when it is not given.
        metavar: what stands for the value in the help.
        settles: what it tells a merge of several captures: ``clock`` (how its clock lies to others), ``device`` (whose
            clock it is), ``frequency``, or nothing. A merge that is refused for want of it names the option.
    """

    name: str
    parse: Callable[[str], Any]
    help: str
    default: Any = None
    metavar: str = ""
    settles: str = ""

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
            raise UsageError(f"option {self.name}: {given!r} is neither yes nor no")
        try:
            return self.parse(given)
        except (ValueError, TypeError, ZeroDivisionError) as error:
            raise UsageError(f"option {self.name}: {given!r} is not usable: {error}", hint=self.help) from None


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
        raise ValueError("it is not a whole number") from None
    if abs(value) > _LARGEST:
        raise ValueError("it is too large")
    return value


def non_negative_int(text: str) -> int:
    """Read a count, 0 or more; for ``Option.parse``."""
    value = whole(text)
    if value < 0:
        raise ValueError("it is negative")
    return value


def number(text: str) -> float:
    """Read a finite number; for ``Option.parse``."""
    try:
        value = float(text)
    except ValueError:
        raise ValueError("it is not a number") from None
    if not abs(value) < float("inf"):
        raise ValueError("it is not a finite number")
    return value


def hertz(text: str) -> Fraction:
    """Read a frequency, exactly: ``1GHz``, ``12.5 MHz``, or a number of Hz such as ``1e9``; for ``Option.parse``."""
    value = _in_unit(text, _HERTZ, "Hz")
    if value <= 0:
        raise ValueError("a frequency is more than 0")
    return value


def whole_hertz(text: str) -> int:
    """Read a frequency of a whole number of Hz, written as ``hertz`` reads it; for ``Option.parse``."""
    return _whole(hertz(text), "Hz")


def mega_hertz(text: str) -> float:
    """Read a frequency in MHz, or with a unit as ``hertz`` reads it; for ``Option.parse``."""
    value = _in_unit(text, _HERTZ, "MHz")
    if value <= 0:
        raise ValueError("a frequency is more than 0")
    return float(value / 10**6)


def time_in(unit: str, text: str) -> Fraction:
    """Read a time of 0 or more in a unit (``ns``), exactly; another one may stand behind it (``10us``)."""
    value = _in_unit(text, _PICOSECONDS, unit)
    if value < 0:
        raise ValueError("it is negative")
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
        raise ValueError(f"it is not a whole number of {unit}")
    return int(value)


def _in_unit(text: str, units: Mapping[str, int], usual: str) -> Fraction:
    """Return a number with a unit, the usual one when there is none, in the smallest of the units."""
    from fractions import Fraction

    found = text.strip()
    figures = found.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZµ")
    by_name = {name.lower(): size for name, size in units.items()}
    size = by_name.get(found[len(figures) :].lower() or usual.lower())
    if not figures:
        raise ValueError("it is not a number")
    if size is None:
        raise ValueError("its unit is none of " + ", ".join(units))
    figures = figures.rstrip()
    if "/" not in figures:
        # A huge exponent would take for ever as an exact ratio, a tiny one as well.
        if abs(number(figures)) > _LARGEST:
            raise ValueError("it is too large")
        if abs(number(figures)) < _SMALLEST:
            return Fraction(0)
    try:
        return Fraction(figures) * size
    except ValueError:
        raise ValueError("it is not a number") from None


def positive_int(text: str) -> int:
    """Read a size, 1 or more; for ``Option.parse``."""
    value = non_negative_int(text)
    if value < 1:
        raise ValueError("it must be at least 1")
    return value


def fraction(text: str) -> float:
    """Read a number from 0 to 1; for ``Option.parse``."""
    value = number(text)
    if not 0 <= value <= 1:
        raise ValueError("it is not between 0 and 1")
    return value


def resolve_options(options: Sequence[Option], given: Mapping[str, Any], *, what: str) -> dict[str, Any]:
    """Return every option's value, defaults filled in.

    Raises:
        UsageError: a name in ``given`` is none of ``options``; the message lists those there are.
    """
    known = {option.name: option for option in options}
    for name in given:
        if name not in known:
            raise UsageError(f"{what} has no option {name!r}", hint="it knows " + (", ".join(known) or "none"))
    return {name: option.value(given.get(name, option.default)) for name, option in known.items()}


@dataclass(frozen=True, slots=True)
class View:
    """A table that an analysis makes of a trace of the family, when somebody asks for it.

    Attributes:
        name: begins with the family's name: ``cuda_overlap``.
        analysis: which analysis makes it, a name of ``lanescope.analysis.derived.ANALYSES``.
        role: what a unit is to it; of several the first that the trace knows. The table is empty when it knows none.
        doc: what a row is, in the family's words; empty: the analysis' own.
        columns: names of columns in the family's words, by the analysis' own; None leaves a column out.
    """

    name: str
    analysis: str
    role: tuple[str, ...]
    doc: str = ""
    columns: Mapping[str, str | None] = field(default_factory=dict)


class Decoder(Protocol):
    """Bytes in, trace batches out; how the input is cut never changes the rows."""

    def feed(self, data: memoryview) -> list[Trace]:
        """Take the next bytes of the main file.

        The view is only valid during the call, unless it is the whole file: that stays, and nobody changes it.
        """

    def finish(self) -> Iterable[Trace]:
        """End of input: return the rest, with stats and accounting in the last batch."""


class Simulation(NamedTuple):
    """A simulated capture and what really happened in it.

    Attributes:
        files: content by file name; the first is the main file.
        truth: what a decoder must find, JSON-able, in the family's own terms.
    """

    files: Mapping[str, bytes]
    truth: Mapping[str, Any]


class Family:
    """One device family: subclass it in ``family.py``, register the object as ``lanescope.devices`` entry point.

    Attributes:
        name: short, lower case, unique: ``aie``.
        title: what a reader of ``--help`` sees.
        options: decode options.
        sim_options: options of the simulator.
        streaming: False when the family must hold a whole capture in memory to decode it; it is fed all of it at once.
        seeking: the decoder reads the main file by itself, what it needs when it needs it, and is fed nothing; such a
            family does not stream.
        in_order: True when slices and instants of a lane come in order of time over all batches, and flows stay within
            one: such batches can be drawn one by one.
        bytes_per_row: memory per row while decoding, for families that do not stream.
        verbs: further command line verbs of the family, as module paths of ``lanescope.cli`` style modules.
        exports: formats that only users of this family's other tools need: ``convert --format NAME``.
        summaries: groupings that only this family has: ``summary --by NAME``.
        views: tables that analyses make of the family's traces on request, for SQL.
        demo: simulator options that show the family well in ``lanescope demo``.
    """

    name: str = ""
    title: str = ""
    options: tuple[Option, ...] = ()
    sim_options: tuple[Option, ...] = ()
    streaming: bool = True
    seeking: bool = False
    in_order: bool = False
    bytes_per_row: int = 0
    verbs: Mapping[str, str] = {}
    exports: tuple[str, ...] = ()
    summaries: tuple[str, ...] = ()
    views: tuple[View, ...] = ()
    demo: Mapping[str, Any] = {}

    def probe(self, head: Head) -> Match:
        """Say how surely the input is this family's; random and all-zero heads score below 50."""
        raise NotImplementedError

    def decode(self, capture: Capture, options: Mapping[str, Any]) -> Decoder:
        """Return a decoder for the capture; neighbours are opened with ``capture.use``."""
        raise NotImplementedError

    def dump(self, capture: Capture, stage: str, options: Mapping[str, Any]) -> Iterator[str]:
        """Yield one line per unit of a stage: offset, raw bytes, name, fields."""
        raise UsageError(f"{self.name} has no dump of stage {stage!r}")

    def simulate(self, options: Mapping[str, Any], seed: int) -> Simulation:
        """Make a capture and its truth; the same options and seed give the same bytes."""
        raise UsageError(f"{self.name} has no simulator")

    def export(self, format: str) -> Callable[[Trace], Iterable[bytes]]:
        """Return the writer of one of ``exports``: from a trace to the blocks of a file."""
        raise UsageError(f"{self.name} has no export {format!r}")

    def left_out(self, format: str, trace: Trace) -> Iterable[str]:
        """Say what of a trace one of ``exports`` has no place for, a line for each thing, and what shows it instead."""
        return ()

    def summarise(self, by: str, trace: Trace) -> Table:
        """Return one of ``summaries``."""
        raise UsageError(f"{self.name} has no summary by {by!r}")

    def tables(self) -> Sequence[TableSpec]:
        """Return the declarations of the family's detail tables."""
        return ()

    def made_of(self, trace: Trace) -> Sequence[LazyTable]:
        """Return further tables that the family makes of one of its traces, each when it is first read."""
        return ()

    def made_tables(self) -> Sequence[TableSpec]:
        """Return the declarations of these tables."""
        return ()

    def stats(self) -> Sequence[StatSpec]:
        """Return the declarations of the family's stats."""
        return ()

    def formats(self) -> Iterable[Any]:
        """Return the family's wire formats (``lanescope.wire`` declarations) for the reference pages."""
        return ()

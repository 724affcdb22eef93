"""What a device family declares: the seam between one vendor's bytes and the common timeline.

All of it is data. A family's ``family.py`` imports nothing but the standard library and this room, so that all families
can be listed and shown in help at no cost; what does the work is named by reference and imported when it is needed.
A family of one module gives the objects themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from lanescope.errors import UsageError
from lanescope.families.declaration import Reference, declared_class, load

if TYPE_CHECKING:
    from lanescope.families.bounds import Bound
    from lanescope.families.causes import CauseFinder
    from lanescope.families.clock_pairs import PairFinder
    from lanescope.families.command import Argument, CommandContext, Values
    from lanescope.families.field_sites import FieldMap
    from lanescope.families.kernel_spans import KernelSpans
    from lanescope.families.limit import Limit
    from lanescope.families.options import Option
    from lanescope.families.rules import Rule
    from lanescope.families.whole_file import DecodeContext
    from lanescope.source import Capture, Detection, FileHead
    from lanescope.trace import LazyTable, StatSpec, Table, TableSpec, Trace, TraceBuilder
    from lanescope.trace.column import Mask
    from lanescope.trace.streams import TracePart

#: The version of this seam; a family that was written for another one is not used.
API = 1
#: Stages that ``dump`` shows: the wire's units, decoded fields, rows of the trace. All traces have the last one.
STAGES = ("packet", "record", "row")


class Decoder(Protocol):
    """Bytes in, trace batches out; how the input is cut never changes the rows."""

    def feed(self, data: memoryview) -> list[Trace]:
        """Take the next bytes of the main file.

        The view is only valid during the call, unless it is the whole file: it then stays valid and unchanged.
        """

    def finish(self) -> Iterable[Trace]:
        """End of input: return the rest, with stats and accounting in the last batch."""


@runtime_checkable
class PartDecoder(Protocol):
    """A decoder that need not make the rows outside of a window; it still accounts for all bytes."""

    def limit(self, part: TracePart) -> None:
        """Leave out what is outside of a part of the timeline; called before the first byte."""


class Simulation(NamedTuple):
    """A simulated capture and what really happened in it.

    Attributes:
        files: content by file name; the first is the main file.
        truth: what a decoder must find, JSON-able, in the family's own terms.
    """

    files: Mapping[str, bytes]
    truth: Mapping[str, Any]


@declared_class
class Format:
    """Files of a family that one decoder reads.

    Attributes:
        name: short, unique in the family.
        detect: says how surely the input is of this format; random and all-zero heads score below 50. The ``format``
            of its answer may name a version of the format.
        decode: makes a decoder of an opened capture and the decode options; neighbours are opened with ``capture.use``.
            Either this or ``decode_file`` is given.
        decode_file: decodes a whole file, given its bytes and a ``DecodeContext``, into a builder of the context.
        layouts: the wire formats (``lanescope.wire`` declarations) for the reference pages.
        fields: where its declared fields lie in a capture, given the content of its files by name, the main file
            first; ``lanescope.testing.mutations`` changes them one at a time.
        stages: what yields the lines of a stage of ``dump``, one a unit: offset, raw bytes, name, fields; called with
            the opened capture and the decode options. The stage ``row`` needs none.
        is_streaming: the decoder takes the main file piece by piece; else it is fed all of it at once.
        random_access: the decoder reads the main file by itself, what it needs when it needs it, and is fed nothing.
        emits_sorted: slices and instants of a lane come in order of time over all batches, and flows stay within one:
            such batches can be drawn one by one.
        keeps_lanes_whole: where only the capture tells: whether each lane comes in one batch, but for gaps, and flows
            stay within one. Such batches are drawn one by one where memory is short.
        bytes_per_row: memory per row while decoding, for formats that do not stream.
        advise: what a user may do with a file that no family recognizes, begun with a verb; empty: nothing.
    """

    name: str
    detect: Reference[Callable[[FileHead], Detection]]
    decode: Reference[Callable[[Capture, Mapping[str, Any]], Decoder] | None] = Reference(None)
    decode_file: Reference[Callable[[memoryview, DecodeContext], TraceBuilder] | None] = Reference(None)
    layouts: Reference[tuple[Any, ...]] = Reference(())
    fields: Reference[Callable[[Mapping[str, bytes]], FieldMap] | None] = Reference(None)
    stages: Mapping[str, str | Callable[[Capture, Mapping[str, Any]], Iterator[str]]] = {}
    is_streaming: bool = False
    random_access: bool = False
    emits_sorted: bool = False
    keeps_lanes_whole: Reference[Callable[[Capture, Mapping[str, Any]], bool] | None] = Reference(None)
    bytes_per_row: int = 0
    advise: Reference[Callable[[FileHead], str] | None] = Reference(None)

    def lines(self, stage: str, capture: Capture, options: Mapping[str, Any]) -> Iterator[str]:
        """Yield the lines of a stage of ``dump``.

        Raises:
            UsageError: the format has no such stage; the hint lists those it has.
        """
        return self.stage(stage)(capture, options)

    def stage(self, name: str) -> Callable[[Capture, Mapping[str, Any]], Iterator[str]]:
        """Return what yields the lines of a stage; errors as ``lines``."""
        found = self.stages.get(name)
        if found is None:
            there = ", ".join((*self.stages, STAGES[-1]))
            raise UsageError(f"unknown stage {name!r} for format {self.name} (choose from {there})")
        lines: Callable[[Capture, Mapping[str, Any]], Iterator[str]] = load(found) if isinstance(found, str) else found
        return lines


@declared_class
class Derived:
    """A table that is made of a trace of the family when somebody asks for it.

    Either an analysis makes it, or ``make`` does.

    Attributes:
        name: begins with the family's name: ``cuda_overlap``.
        analysis: which analysis makes it, a name of ``lanescope.analysis.derived.ANALYSES``.
        roles: what a unit is to it; of several the first that the trace knows. The table is empty when it knows none.
        doc: what a row is, in the family's words; empty: the analysis' own.
        columns: names of columns in the family's words, by the analysis' own; None leaves a column out.
        specs: declarations of the tables that ``make`` returns; several where they share work.
        make: returns the tables, each made when it is first read; none where the trace does not have them.
    """

    name: str
    analysis: str = ""
    roles: tuple[str, ...] = ()
    doc: str = ""
    columns: Mapping[str, str | None] = {}
    specs: Reference[tuple[TableSpec, ...]] = Reference(())
    make: Reference[Callable[[Trace], Iterable[LazyTable]] | None] = Reference(None)


def _nothing(of: Trace | Table) -> Iterable[Any]:
    return ()


@declared_class
class Summary:
    """A grouping that only this family has: ``summary --by NAME``.

    Attributes:
        name: lower case, with dashes.
        doc: what a row is.
        make: from a trace to the table; ``UsageError`` where the trace is not of its kind. A column ``suspect`` is time
            of rows with implausible timestamps that is not in the column ``busy``.
        remarks: from the table to sentences that say what it means.
        follow: from the path of a capture that still grows to the table again and again, until it has grown.
        across: from names and traces of several captures, each read when its turn comes, to one table.
    """

    name: str
    doc: str
    make: Reference[Callable[[Trace], Table]]
    remarks: Reference[Callable[[Table], Iterable[str]]] = Reference(_nothing)
    across: Reference[Callable[[Iterable[tuple[str, Trace]]], Table] | None] = Reference(None)
    follow: Reference[Callable[[str], Iterable[Table]] | None] = Reference(None)


@declared_class
class Export:
    """A format that only users of this family's other tools need: ``convert --format NAME``.

    Attributes:
        name: the format.
        doc: what it is.
        blocks: from a trace to the blocks of a file.
        left_out: says what of a trace the format has no place for, a line for each thing, and what shows it instead.
    """

    name: str
    doc: str
    blocks: Reference[Callable[[Trace], Iterable[bytes]]]
    left_out: Reference[Callable[[Trace], Iterable[str]]] = Reference(_nothing)


@declared_class
class Command:
    """A command that a family adds to the command line: ``lanescope NAME``.

    Attributes:
        name: begins with the family's name: ``aie-path``.
        help: one line. The docstring of ``run`` is the rest of what its help page says.
        run: takes the context and the values of the arguments, returns the exit status.
        arguments: besides those that the house adds.
        examples: command lines that work.
        takes_capture: the house adds an argument ``input`` and what decoding takes: options of the family, --strict.
        has_output: the house adds --force, which ``CommandContext.write`` obeys.
        runs_programs: the environment stays as it is, for the programs that the command starts.
        windowless: why it takes no window; empty: the house adds the arguments that ask for one, and ``open`` of its
            context returns that part, which keeps the whole as its ``origin``.
    """

    name: str
    help: str
    run: Reference[Callable[[CommandContext, Values], int]]
    arguments: Reference[tuple[Argument, ...]] = Reference(())
    examples: tuple[str, ...] = ()
    takes_capture: bool = False
    has_output: bool = False
    runs_programs: bool = False
    windowless: str = ""


@declared_class
class Simulator:
    """Makes captures whose truth is known.

    Attributes:
        run: from option values and a seed to a capture; the same give the same bytes.
        options: its options.
        demo: values of some of them that show the family well in ``lanescope demo``.
    """

    run: Reference[Callable[[Mapping[str, Any], int], Simulation]]
    options: tuple[Option, ...] = ()
    demo: Mapping[str, Any] = {}


@declared_class
class ClockSpec:
    """Counters of one kind: rule LS507 compares the rate of each clock with what such counters have.

    Attributes:
        name: names of clocks begin with it.
        rates_hz: lowest and highest rate in Hz; several where kinds of devices differ.
        estimated: name of the stat of captures whose rates are estimates, which LS507 does not judge; empty: none.
    """

    name: str
    rates_hz: tuple[tuple[float, float], ...]
    estimated: str = ""


@declared_class
class Family:
    """One device family: an object of this class is registered as ``lanescope.devices`` entry point.

    Names of its tables and stats, and codes of its rules, begin with its name;
    ``lanescope.testing.check_family`` tests that and what else all families promise.

    Attributes:
        name: short, lower case, unique: ``aie``.
        title: what a reader of help sees.
        formats: what it reads; where detection tells nothing, the first.
        api: the version of this seam that it was written for.
        options: decode options.
        tables: declarations of its detail tables.
        derived: tables that are made of its traces on request, for SQL.
        stats: declarations of its stats.
        rules: what ``check`` examines its traces for beyond what it does for all.
        clocks: the counters of its devices.
        limits: what its captures may be unable to prove, beyond what holds for all.
        summaries: groupings of its own.
        exports: formats of its own.
        commands: commands of its own.
        simulator: makes captures whose truth is known.
        kernels: the executions of kernels that a tool of the host saw in a trace: other captures may lie inside.
        launches: the executions that kernels recorded themselves, if all lanes count on one clock of the device.
        bounds: what limits a run, as far as its own records tell.
        causes: from a trace, and whether to add what follows from times only, to what it shows of causes, along which
            the critical path walks. Without it, the flows of the trace are its causes.
        clock_pairs: from a trace to what joins its clocks: causes on one and effects on another. Without it, the flows
            of the trace do.
        views: from a trace to which lanes show what other lanes show already, bool [tracks]: sums of lanes leave them
            out.
        sidecars: endings of sidecar files, after the capture's name, that make a capture the family's own.
    """

    name: str
    title: str
    formats: tuple[Format, ...]
    api: int = API
    options: tuple[Option, ...] = ()
    tables: Reference[tuple[TableSpec, ...]] = Reference(())
    derived: Reference[tuple[Derived, ...]] = Reference(())
    stats: Reference[tuple[StatSpec, ...]] = Reference(())
    rules: Reference[tuple[Rule, ...]] = Reference(())
    clocks: tuple[ClockSpec, ...] = ()
    limits: Reference[tuple[Limit, ...]] = Reference(())
    summaries: tuple[Summary, ...] = ()
    exports: tuple[Export, ...] = ()
    commands: tuple[Command, ...] = ()
    simulator: Simulator | None = None
    kernels: Reference[Callable[[Trace], KernelSpans | None] | None] = Reference(None)
    launches: Reference[Callable[[Trace], KernelSpans | None] | None] = Reference(None)
    bounds: Reference[Callable[[Trace], Iterable[Bound]]] = Reference(_nothing)
    causes: Reference[CauseFinder | None] = Reference(None)
    clock_pairs: Reference[PairFinder | None] = Reference(None)
    views: Reference[Callable[[Trace], Mask] | None] = Reference(None)
    sidecars: tuple[str, ...] = ()

    def detect(self, head: FileHead) -> Detection:
        """Return the detection of the format that matches best."""
        return max((match for _, match in self._asked(head)), key=lambda match: match.score)

    def format_of(self, capture: Capture) -> Format:
        """Return the format that reads a capture; where none recognises it, the first."""
        if len(self.formats) == 1:
            return self.formats[0]
        return max(self._asked(capture.main.head()), key=lambda asked: asked[1].score)[0]

    def decode(self, capture: Capture, options: Mapping[str, Any]) -> Decoder:
        """Return the decoder that the capture's format has."""
        return self.decoder(self.format_of(capture), capture, options)

    def decoder(self, format: Format, capture: Capture, options: Mapping[str, Any]) -> Decoder:
        """Return the decoder of one of ``formats`` for a capture.

        Args:
            format: the format.
            capture: the opened capture.
            options: the value of each decode option.
        """
        if format.decode is not None:
            return format.decode(capture, options)
        from lanescope.families.whole_file import DecodeContext, WholeFileDecoder

        assert format.decode_file is not None, f"format {format.name} declares no decoder"
        context = DecodeContext(self.name, format.name, self.tables, self.stats, capture, options)
        return WholeFileDecoder(format.decode_file, context)

    def summarise(self, by: str, trace: Trace) -> Table:
        """Return one of ``summaries``."""
        for summary in self.summaries:
            if summary.name == by:
                return summary.make(trace)
        raise UsageError(f"{self.name} has no summary by {by!r}")

    def summarise_all(self, by: str, traces: Iterable[tuple[str, Trace]]) -> Table:
        """Return one of ``summaries`` of several captures, by their names.

        Raises:
            UsageError: it takes one capture only.
        """
        for summary in self.summaries:
            if summary.name == by and summary.across is not None:
                return summary.across(traces)
        raise UsageError(f"summary --by {by} takes one capture", hint="run it once for each capture")

    def follow(self, by: str, path: str) -> Iterable[Table]:
        """Return one of ``summaries`` of a capture that grows, again and again.

        Raises:
            UsageError: it cannot be followed.
        """
        for summary in self.summaries:
            if summary.name == by and summary.follow is not None:
                return summary.follow(path)
        raise UsageError(f"summary --by {by} cannot follow a capture", hint="remove --follow")

    def remarks(self, by: str, table: Table) -> list[str]:
        """Return sentences that say what one of ``summaries`` means."""
        return [text for summary in self.summaries if summary.name == by for text in summary.remarks(table)]

    def simulate(self, options: Mapping[str, Any], seed: int) -> Simulation:
        """Make a capture and its truth; the same options and seed give the same bytes."""
        if self.simulator is None:
            raise UsageError(f"{self.name} has no simulator")
        return self.simulator.run(options, seed)

    @property
    def sim_options(self) -> tuple[Option, ...]:
        """Options of the simulator; none without one."""
        return () if self.simulator is None else self.simulator.options

    def _asked(self, head: FileHead) -> list[tuple[Format, Detection]]:
        kept = _ASKED.get(id(self))
        if kept is not None and kept[0] is self and kept[1] == head:
            return kept[2]
        from lanescope.source.detection import Detection

        asked = [(format, format.detect(head)) for format in self.formats]
        for format, match in asked:
            if not isinstance(match, Detection):  # a family of another package may be written without types
                raise TypeError(f"format {format.name} returned {match!r}, not a Detection")
        if len(_ASKED) == _MOST_ASKED:
            _ASKED.clear()
        _ASKED[id(self)] = self, head, asked
        return asked


#: What the formats of a family, by its id, said of the head that it was last asked about: a command asks three times.
_ASKED: dict[int, tuple[Family, FileHead, list[tuple[Format, Detection]]]] = {}
_MOST_ASKED = 16

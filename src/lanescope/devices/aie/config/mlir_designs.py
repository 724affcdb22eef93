"""What an MLIR text says of its trace units, design by design, and the configuration that follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise

from lanescope.declaration import replace
from lanescope.devices.aie.config.made_events import registers_of
from lanescope.devices.aie.config.model import SLOTS, Config, Place, Run, Unit, agreed, strip_trailing_zeros
from lanescope.devices.aie.config.register_writes import Write, from_writes
from lanescope.devices.aie.config.validators import ConfigError, event_number, port_selection
from lanescope.devices.aie.formats import events, registers

#: No design has more runtime sequences that set up a trace.
_MAX_SEQUENCES = 256
#: What MLIR texts call devices begins with these.
DEVICES = {"npu1": "aie2", "npu2": "aie2p", "xcve2": "aie2", "aie2p": "aie2p", "aie2": "aie2"}


@dataclass(slots=True)
class TraceOp:
    """An ``aie.trace`` operation whose body is being read.

    Attributes:
        symbol: its name.
        tile: column and row.
        depth: of the braces around it.
        unit: what it says so far; the kind of module may come late, so names wait for it.
        names: names or numbers of the events of its slots.
        ports: (slot, bundle, channel, is it a master).
        edges: start and stop: a name, a number, or a broadcast channel.
        combos: combo events: number -> event, how it joins them, event.
        made_edges: edge events: number -> event, which edges.
    """

    symbol: str
    tile: tuple[int, int]
    depth: int
    module: str = ""
    mode: int | None = None
    packet_id: int | None = None
    names: list[str | int] = field(default_factory=list)
    ports: list[tuple[int, str, int, bool]] = field(default_factory=list)
    edges: dict[str, tuple[str, str | int]] = field(default_factory=dict)
    combos: dict[int, tuple[str | int, str, str | int]] = field(default_factory=dict)
    made_edges: dict[int, tuple[str | int, str]] = field(default_factory=dict)


@dataclass(slots=True)
class LoweredTrace:
    """An ``aie.trace.config`` operation whose body is being read."""

    symbol: str
    tile: tuple[int, int]
    depth: int
    module: str
    values: dict[str, int] = field(default_factory=dict)
    ports: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Slice:
    """Where in the trace buffer of a runtime sequence one that it runs records.

    Attributes:
        device: name of its design, "" if it is not named.
        sequence: its name, the same.
        offset: byte offset in the buffer.
        size: bytes.
    """

    device: str
    sequence: str
    offset: int
    size: int


@dataclass(slots=True)
class RuntimeSequence:
    """A runtime sequence: the register writes in it, the traces that it starts, and the slices of its buffer."""

    name: str
    slices: list[Slice] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)
    started: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Design:
    """An ``aie.device`` operation; what stands outside of any is one more."""

    name: str = ""
    device: str = ""
    traces: list[TraceOp] = field(default_factory=list)
    lowered: list[LoweredTrace] = field(default_factory=list)
    sequences: list[RuntimeSequence] = field(default_factory=lambda: [RuntimeSequence("")])

    def event(self, module: str, event: str | int) -> int:
        """Return the number of an event that is given by name or number."""
        if isinstance(event, int):
            return event & 0xFF
        return event_number(self.family(), module, event)

    def family(self) -> str:
        """Return the generation whose event names hold: aie2 or aie2p."""
        word = self.device
        for prefix, device in DEVICES.items():
            if word.startswith(prefix):
                return device
        if word.startswith("xcvc"):
            raise ConfigError(f"unsupported device {word!r}: first-generation AI Engine", "use an AIE2 or AIE2P design")
        return "aie2"

    def full_name(self, sequence: RuntimeSequence) -> str:
        """Return ``device:sequence``, with the names that mlir-aie gives to what has none."""
        return f"{self.name or 'main'}:{sequence.name or 'sequence'}"

    def parts(self) -> Iterator[tuple[str, Config]]:
        """Yield what each runtime sequence of the design sets up, by name; without any, what is declared."""
        symbols = {symbol for sequence in self.sequences for symbol in sequence.started}

        def is_started(symbol: str, by: RuntimeSequence) -> bool:
            names = {symbol, symbol.removesuffix("_config")}
            # What no sequence starts by name is taken to be set up by all of them.
            return not names & symbols or bool(names & by.started)

        used = [sequence for sequence in self.sequences if sequence.writes or sequence.started]
        if len(used) > _MAX_SEQUENCES:
            raise ConfigError(
                f"too many runtime sequences: {len(used)} configure a trace, the limit is {_MAX_SEQUENCES}",
                "pass the MLIR text of one design",
            )
        if not (used or self.traces or self.lowered):
            return
        device = self.family()
        lowered = [(made.symbol, self._written(made)) for made in self.lowered]
        writes = [write for _, made in lowered for write in made]
        writes += [write for sequence in used for write in sequence.writes]
        written = from_writes(device, writes).places
        declared = [(trace.symbol, self._unit(trace, written)) for trace in self.traces]
        for sequence in used or self.sequences[:1]:
            units = [unit for symbol, unit in declared if is_started(symbol, sequence)]
            below = [write for symbol, made in lowered if is_started(symbol, sequence) for write in made]
            yield self.full_name(sequence), _part(device, units, below, sequence.writes)

    def _unit(self, trace: TraceOp, written: Set[Place]) -> Unit:
        """Return what a declaration says; an unknown name does not matter where registers give the number.

        Args:
            trace: the declaration.
            written: units that register writes of the design set up.
        """
        col, row = trace.tile
        module = trace.module or module_in_row(row)

        def event(name: str | int) -> int:
            try:
                return self.event(module, name)
            except ConfigError:
                if (module, col, row) in written:
                    return 0
                raise

        ports: list[int | None] = [None] * SLOTS
        for slot, bundle, channel, is_master in trace.ports:
            ports[slot] = self._selection(module, bundle, channel, is_master=is_master)
        edges = {what: self._edge(module, *edge) for what, edge in trace.edges.items()}
        combos = {
            number: (event(first), logic, event(second)) for number, (first, logic, second) in trace.combos.items()
        }
        made_edges = {number: (event(of), trigger) for number, (of, trigger) in trace.made_edges.items()}
        packet_id = trace.packet_id if trace.packet_id is not None and 0 <= trace.packet_id < 32 else None
        return Unit(
            module,
            col,
            row,
            strip_trailing_zeros(event(name) for name in trace.names),
            tuple(ports),
            mode=trace.mode if module == "core" else 0,
            start=edges.get("start"),
            stop=edges.get("stop"),
            # mlir-aie resets the timer with what starts the trace.
            reset=edges.get("start"),
            packet_id=packet_id,
            packet_type=events.MODULES.index(module),
            logic=registers_of(self.family(), module, combos, made_edges),
        )

    def _edge(self, module: str, kind: str, value: str | int) -> int:
        if kind == "broadcast":
            value = f"BROADCAST_A_{value}" if module == "shim" else f"BROADCAST_{value}"
        elif isinstance(value, str):
            value = value.rpartition("::")[2]
        return self.event(module, value)

    def _selection(self, module: str, bundle: str, channel: int, *, is_master: bool) -> int:
        kind = "master" if is_master else "slave"
        known = registers.ports(module)
        named = next((name for name in known if name.lower() == f"{bundle}:{channel} {kind}".lower()), None)
        return port_selection(module, named or f"{bundle[:20]}:{channel} {kind}")

    def _written(self, lowered: LoweredTrace) -> list[Write]:
        values = dict(lowered.values)
        for slot, port in lowered.ports:
            name = registers.PORT_NAMES[slot // 4]
            is_master = values.get(name, 0) >> (8 * (slot % 4) + 5) & 1 == 1
            bundle, _, channel = port.partition(":")
            number = int(channel) if channel.isdecimal() and len(channel) < 4 else 0
            selection = self._selection(lowered.module, bundle, number, is_master=is_master)
            values[name] = values.get(name, 0) & ~(0x1F << 8 * (slot % 4)) | (selection & 0x1F) << 8 * (slot % 4)
        writes = []
        for name, value in values.items():
            register = registers.register(lowered.module, name)
            if register is not None:
                writes.append(Write(*lowered.tile, register, value))
        return writes


def configuration_of(designs: Sequence[Design], unread: Mapping[str, int], chosen: str | None = None) -> Config:
    """Return what the designs of a text set up.

    Args:
        designs: the designs.
        unread: statements that concern the trace and were not read, and how many of each.
        chosen: ``device:sequence`` that was run; None: see ``mlir_parser.read``.

    Raises:
        ConfigError: nothing, or names that no device has; the chosen sequence does not exist or has no trace; slices of
            a buffer that overlap.
    """
    parts: dict[str, Config] = {}
    for design in designs:
        for name, part in design.parts():
            if part.places:
                parts[name if name not in parts else f"{name} ({len(parts) + 1})"] = part
    if not parts:
        names = ", ".join(unread)[:200]
        raise ConfigError(
            "no trace configuration found" + (f" (unsupported: {names})" if names else ""),
            "use input_with_addresses.mlir from aiecc",
        )
    devices = {part.device for part in parts.values()}
    if len(devices) > 1:
        raise ConfigError(
            f"contradictory devices {' and '.join(sorted(devices))}: event names differ",
            "pass the MLIR text of one design",
        )
    callers = {
        design.full_name(sequence): sequence.slices
        for design in designs
        for sequence in design.sequences
        if sequence.slices
    }
    if chosen is None and len(callers) > 1:
        raise ConfigError(
            f"{len(callers)} sequences divide their trace buffer: {_listed(callers)}",
            "use --sequence DEVICE:SEQUENCE with the one that was run",
        )
    if chosen is not None and chosen not in callers and chosen not in parts:
        all_names = [design.full_name(sequence) for design in designs for sequence in design.sequences[1:]]
        what = "has no trace" if chosen in all_names else "not found"
        raise ConfigError(f"runtime sequence {chosen!r} {what}", f"use one of {_listed([*callers, *parts])}")
    caller = next(iter(callers), None) if chosen is None else chosen
    made = agreed(parts) if chosen is None or chosen in callers else parts[chosen]
    made = replace(made, unread={**made.unread, **unread})
    return made if caller not in callers else replace(made, runs=_runs(caller, callers[caller], parts))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(names))[:400]


def _runs(caller: str, slices: Sequence[Slice], parts: Mapping[str, Config]) -> tuple[Run, ...]:
    """Return the runs that share the buffer of a sequence, each with the configuration of what ran.

    Args:
        caller: name of the sequence.
        slices: of its buffer.
        parts: configuration by the name of design and sequence.

    Raises:
        ConfigError: slices overlap.
    """
    ordered = sorted(slices, key=lambda each: (each.offset, each.size))
    for before, after in pairwise(ordered):
        if before.offset + before.size > after.offset:
            what = f"trace slices of {caller} overlap: {before.offset}+{before.size} and {after.offset}+{after.size}"
            raise ConfigError(what, "pass the MLIR text of the build that was run")
    known: dict[tuple[str, str], Config] = {}
    runs: list[Run] = []
    for index, each in enumerate(ordered):
        key = each.device, each.sequence
        if key not in known:
            fitting = {
                name: part
                for name, part in parts.items()
                if each.device in ("", name.partition(":")[0]) and each.sequence in ("", name.partition(":")[2])
            }
            known[key] = agreed(fitting) if fitting else Config(next(iter(parts.values())).device)
        design = ":".join(filter(None, key))
        follows = index > 0 and bool(each.device) and each.device == ordered[index - 1].device
        runs.append(Run(design, each.offset, each.size, known[key], follows))
    return tuple(runs)


def _part(device: str, declared: list[Unit], lowered: list[Write], writes: list[Write]) -> Config:
    """Return what one sequence sets up: by declarations, by what these are lowered to, by its register writes."""
    units: dict[Place, Unit] = {}
    twice: dict[Place, str] = {}
    for unit in declared:
        if units.setdefault(unit.place, unit) != unit:
            twice[unit.place] = "declared twice, in different ways"
    above = from_writes(device, lowered, declared=units.values())
    made = from_writes(device, writes, declared=above.units.values())
    # Where registers say all that a unit watches, what was declared does not matter.
    told, told_below = _fully_written([*lowered, *writes]), _fully_written(writes)
    contradictions = {place: what for place, what in twice.items() if place not in told}
    contradictions |= {place: what for place, what in above.contradictions.items() if place not in told_below}
    refused = contradictions.keys() - (above.units.keys() - twice.keys())
    return replace(
        made,
        units={place: unit for place, unit in made.units.items() if place not in refused},
        trigger=above.trigger if made.trigger is None else made.trigger,
        contradictions={**contradictions, **made.contradictions},
    )


def _fully_written(writes: Iterable[Write]) -> set[Place]:
    """Return the units of which register writes say all that they watch."""
    halves: dict[Place, set[str]] = {}
    for write in writes:
        if write.register.name.startswith("Trace_Event"):
            halves.setdefault((write.register.module, write.col, write.row), set()).add(write.register.name)
    return {place for place, names in halves.items() if len(names) == 2}


def module_in_row(row: int) -> str:
    """Return the kind of module that a row of an NPU has, where nothing else tells."""
    return "shim" if row == 0 else "memtile" if row == 1 else "core"

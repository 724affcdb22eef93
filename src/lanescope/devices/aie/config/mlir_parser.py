"""Trace configurations in MLIR texts, read without MLIR.

A design's text says up to three times what its trace units do: as ``aie.trace`` operations, as the
``aie.trace.config`` that these are lowered to, and as the register writes of the runtime sequence, whose operands are
attributes or constants. All are read; what is lower says more. A text may hold several designs (``aie.device``), each
with several runtime sequences; what they say is kept apart, and a unit is settled where they agree. Everything else in
the text is passed over, counted if it concerns the trace, and text that is not well formed is read as far as it goes:
each token is looked at a bounded number of times.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from lanescope.devices.aie.config.mlir_writer import MLIR_MODES, MLIR_TYPES
from lanescope.devices.aie.config.model import SLOTS, Config, Place, Unit, agreed, strip_trailing_zeros
from lanescope.devices.aie.config.register_writes import Write, from_writes, unread_at, write_at
from lanescope.devices.aie.config.validators import ConfigError, event_number, port_selection
from lanescope.devices.aie.formats import events, registers

#: Longer texts are not configurations.
_MAX_CHARACTERS = 1 << 27
_MAX_DIGITS = 20
#: No design has more runtime sequences that set up a trace.
_MAX_SEQUENCES = 256
#: What MLIR texts call devices begins with these.
DEVICES = {"npu1": "aie2", "npu2": "aie2p", "xcve2": "aie2", "aie2p": "aie2p", "aie2": "aie2"}
#: What begins names of values, symbols, blocks, attributes and types.
_SIGILS = "%@^#!"
_WORD32 = (1 << 32) - 1

# What may stand between tokens goes with the one before it.
_SKIP = r"(?>[ \t\r\n\f\v]+|//[^\n]*)*"
_TOKEN = re.compile(
    r"""
    (?: "(?P<text>(?:[^"\\\n]|\\.)*)"?
      | (?P<number>-?(?:0[xX][0-9A-Fa-f]+|[0-9]+)(?![\w.]))
      | (?P<word>[%@^\#!]?[\w$][\w$.]*(?:::[\w$.]+)*)
      | (?P<mark>.)
    )"""
    + _SKIP,
    re.VERBOSE | re.DOTALL,
)
_MODES = {name.lower(): number for number, name in enumerate(MLIR_MODES)}
_MODES |= {name.replace("-", "").lower(): number for number, name in enumerate(MLIR_MODES)}
#: Operations of a trace that label nothing.
_WITHOUT_LABELS = ("aie.trace.host_config",)
_MODULES = {word: module for module, word in MLIR_TYPES.items()} | {"shim": "shim"}


class _Token(NamedTuple):
    kind: str
    text: str


_END = _Token("end", "")


def _tokens(text: str) -> Iterator[_Token]:
    begin = re.match(_SKIP, text)
    for match in _TOKEN.finditer(text, begin.end() if begin else 0):
        kind = match.lastgroup or "text"
        yield _Token(kind, match[kind])


@dataclass(slots=True)
class _Trace:
    """An ``aie.trace`` operation whose body is being read.

    Attributes:
        symbol: its name.
        tile: column and row.
        depth: of the braces around it.
        unit: what it says so far; the kind of module may come late, so names wait for it.
        names: names or numbers of the events of its slots.
        ports: (slot, bundle, channel, is it a master).
        edges: start and stop: a name, a number, or a broadcast channel.
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


@dataclass(slots=True)
class _Lowered:
    """An ``aie.trace.config`` operation whose body is being read."""

    symbol: str
    tile: tuple[int, int]
    depth: int
    module: str
    values: dict[str, int] = field(default_factory=dict)
    ports: list[tuple[int, str]] = field(default_factory=list)


@dataclass(slots=True)
class _Sequence:
    """A runtime sequence: the register writes in it, and the traces that it starts."""

    name: str
    writes: list[Write] = field(default_factory=list)
    started: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Design:
    """An ``aie.device`` operation; what stands outside of any is one more."""

    name: str = ""
    device: str = ""
    traces: list[_Trace] = field(default_factory=list)
    lowered: list[_Lowered] = field(default_factory=list)
    sequences: list[_Sequence] = field(default_factory=lambda: [_Sequence("")])


def read(text: str) -> Config:
    """Return the configuration that an MLIR text holds.

    Args:
        text: the text; the later the stage of compilation, the more it says.

    Raises:
        ConfigError: it holds none, or one that names what no device has.
    """
    if len(text) > _MAX_CHARACTERS:
        raise ConfigError("MLIR text is too long", "use input_with_addresses.mlir of the build")
    scanner = _Scanner(text)
    scanner.run()
    return scanner.result()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._ahead: deque[_Token] = deque()  # tokens that were looked at and not taken
        self._operation = ""  # the one at hand
        self._depth = 0
        self._design = _Design()
        self._designs = [self._design]
        self._unread: Counter[str] = Counter()
        self._constants: dict[str, int] = {}
        self._tiles: dict[str, tuple[int, int]] = {}
        self._trace: _Trace | None = None
        self._config: _Lowered | None = None
        self._result = ""  # the value that the operation at hand defines
        self._handlers: dict[str, Callable[[], None]] = {
            "aie.device": self._read_device,
            "aie.runtime_sequence": self._read_sequence,
            "aiex.runtime_sequence": self._read_sequence,
            "func.func": self._read_sequence,
            "aie.tile": self._read_tile,
            "aie.logical_tile": self._read_logical_tile,
            "arith.constant": self._read_constant,
            "aiex.npu.write32": self._read_write,
            "aiex.npu.maskwrite32": self._read_write,
            "aie.trace": self._read_trace,
            "aie.trace.config": self._read_config,
            "aie.trace.reg": self._read_register,
            "aie.trace.mode": self._read_mode,
            "aie.trace.packet": self._read_packet,
            "aie.trace.event": self._read_event,
            "aie.trace.port": self._read_port,
            "aie.trace.start": lambda: self._read_edge("start"),
            "aie.trace.stop": lambda: self._read_edge("stop"),
            "aie.trace.start_config": self._read_start,
        }

    # --- tokens ---------------------------------------------------------------------------------------------------

    def _peek(self, ahead: int = 0) -> _Token:
        while len(self._ahead) <= ahead:
            self._ahead.append(next(self._tokens, _END))
        return self._ahead[ahead]

    def _next(self) -> _Token:
        return self._ahead.popleft() if self._ahead else next(self._tokens, _END)

    def _skip(self, mark: str) -> bool:
        """Take a mark if it is next."""
        if self._peek() == ("mark", mark):
            self._next()
            return True
        return False

    def _number(self) -> int | None:
        """Take a number if it is next; None as well if no register could hold it."""
        token = self._peek()
        if token.kind != "number":
            return None
        self._next()
        if len(token.text) > _MAX_DIGITS:
            return None
        return int(token.text, 16 if "x" in token.text.lower() else 10)

    def _word(self) -> str:
        """Take a word or a text if it is next."""
        if self._peek().kind in ("word", "text"):
            return self._next().text
        return ""

    def _pairs(self) -> dict[str, str | int]:
        """Take ``name = value`` pairs: in braces, or as they stand on a line; values are numbers or words.

        A pair ends the list when no further one follows; nothing is taken back, so no token is read twice.
        """
        found: dict[str, str | int] = {}
        opened = 0
        while True:
            token = self._peek()
            if token in (("mark", "{"), ("mark", "<"), ("mark", ",")):
                self._next()
                opened += token.text != ","
                continue
            if token.kind != "word" or token.text[0] in _SIGILS or self._peek(1) != ("mark", "="):
                break
            self._next()
            self._next()
            value = self._value()
            if value is not None:
                found[token.text] = value
            if self._skip(":"):
                self._next()
        while opened and (self._skip("}") or self._skip(">")):
            opened -= 1
        self._depth += opened  # what is left open is closed later
        return found

    def _value(self) -> str | int | None:
        number = self._number()
        if number is not None:
            return number
        if self._skip("<"):
            number = self._number()
            value: str | int = number if number is not None else self._word()
            while self._peek().kind == "word":  # <kind NAME>
                value = self._next().text
            self._skip(">")
            return value
        if self._peek().kind == "number":
            self._next()
            return None
        return self._word() or None

    # --- the text -------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go through all tokens once."""
        while (token := self._next()) is not _END:
            if token.kind == "mark":
                if token.text == "{":
                    self._depth += 1
                elif token.text == "}":
                    self._close()
            elif token.kind == "word" and token.text[0] == "%":
                self._defines(token.text)
            elif token.text in self._handlers and (token.kind == "word" or self._peek() == ("mark", "(")):
                self._operation = token.text
                self._handlers[token.text]()
                self._result = ""
            elif token.text.startswith("aie.trace.") and token.text not in _WITHOUT_LABELS:
                self._unread[token.text] += 1

    def _close(self) -> None:
        self._depth -= 1
        if self._trace is not None and self._depth <= self._trace.depth:
            self._trace = None
        if self._config is not None and self._depth <= self._config.depth:
            self._config = None

    def _defines(self, name: str) -> None:
        """Note ``%name =``: whatever the name meant before, it does no more."""
        if self._peek() == ("mark", "="):
            self._result = name
            self._constants.pop(name, None)
            self._tiles.pop(name, None)

    def _read_device(self) -> None:
        self._skip("(")
        device = self._word()
        self._skip(")")
        self._design = _Design(self._symbol(), device)
        self._designs.append(self._design)

    def _read_sequence(self) -> None:
        self._design.sequences.append(_Sequence(self._symbol() or f"sequence {len(self._design.sequences)}"))

    def _read_start(self) -> None:
        self._design.sequences[-1].started.add(self._symbol())

    def _symbol(self) -> str:
        """Take a symbol if it is next; without its ``@``."""
        if self._peek().kind == "word" and self._peek().text.startswith("@"):
            return self._next().text[1:]
        return ""

    def _read_logical_tile(self) -> None:
        """Take a tile of a kind, whose place may be left to a later stage of compilation."""
        if self._skip("<"):
            self._word()
            self._skip(">")
        self._read_tile()

    def _read_tile(self) -> None:
        name = self._result
        numbers: list[int | None] = []
        if self._skip("("):
            numbers = [self._number()]
            if self._skip(","):
                numbers.append(self._number())
            self._skip(")")
        pairs = self._pairs()
        if len(numbers) < 2:
            numbers = [_int(pairs.get("col")), _int(pairs.get("row"))]
        col, row = numbers
        if name and col is not None and row is not None and 0 <= col < 128 and 0 <= row < 32:
            self._tiles[name] = col, row

    def _read_constant(self) -> None:
        name = self._result
        value = self._number()
        if value is None and self._skip("("):
            self._skip(")")
            value = _int(self._pairs().get("value"))
        if name and value is not None:
            self._constants[name] = value

    def _operands(self) -> list[str]:
        """Take ``(%a, %b)``."""
        found: list[str] = []
        if self._skip("("):
            while self._peek().kind == "word" and self._peek().text[0] in "%@":
                found.append(self._next().text)
                if not self._skip(","):
                    break
            self._skip(")")
        return found

    def _read_write(self) -> None:
        is_masked = self._operation.endswith("maskwrite32")
        names = ("address", "value", "mask") if is_masked else ("address", "value")
        operands = [self._constants.get(name) for name in self._operands()]
        said: dict[str, str | int] = {n: v for n, v in zip(names, operands, strict=False) if v is not None}
        said |= self._pairs()
        address, value = _int(said.get("address")), _int(said.get("value"))
        if address is None:
            return  # known when the program runs, or to nobody
        col, row = _int(said.get("column")), _int(said.get("row"))
        if not (0 <= (col or 0) < 128 and 0 <= (row or 0) < 32 and 0 <= address <= _WORD32):
            return
        write = write_at(address, (value or 0) & _WORD32, col=col, row=row)
        mask = _int(said.get("mask"))
        if write is None:
            if name := unread_at(address, 1 if value is None else value):
                self._unread[f"{self._operation} of {name}"] += 1
        elif value is None:
            self._unread[f"{self._operation} of {write.register.name} without a constant"] += 1
        else:
            if is_masked and mask is not None:
                write = replace(write, value=self._masked(write, mask & _WORD32))
            self._design.sequences[-1].writes.append(write)

    def _masked(self, write: Write, mask: int) -> int:
        """Return what a register holds after a masked write."""
        before = 0
        for earlier in reversed(self._design.sequences[-1].writes[-256:]):
            if (earlier.col, earlier.row, earlier.register) == (write.col, write.row, write.register):
                before = earlier.value
                break
        return before & ~mask & _WORD32 | write.value & mask

    # --- declarations ---------------------------------------------------------------------------------------------

    def _tile_of(self) -> tuple[int, int] | None:
        operands = self._operands()
        tile = self._tiles.get(operands[0]) if operands else None
        if tile is None:
            self._unread[f"{self._operation} on a tile without a position"] += 1
        return tile

    def _read_trace(self) -> None:
        symbol = self._symbol()
        tile = self._tile_of()
        self._trace = None
        if tile is not None:
            self._trace = _Trace(symbol, tile, self._depth)
            self._design.traces.append(self._trace)

    def _read_mode(self) -> None:
        number = self._number()
        word = "" if number is not None else self._word()
        if self._trace is not None:
            self._trace.mode = number if number in (0, 1, 2) else _MODES.get(word.lower())
            if self._trace.mode is None:
                self._unread[self._operation] += 1

    def _read_packet(self) -> None:
        pairs = self._pairs()
        if self._trace is not None:
            self._trace.packet_id = _int(pairs.get("id"))
            word = str(pairs.get("type", ""))
            self._trace.module = _MODULES.get(word.lower(), "")
            if word and not self._trace.module:
                self._unread[self._operation] += 1

    def _read_event(self) -> None:
        value = self._value()
        if self._trace is None:
            return
        if value is None or len(self._trace.names) >= SLOTS:
            self._unread[self._operation] += 1
        else:
            self._trace.names.append(value if isinstance(value, int) else value.rpartition("::")[2])

    def _read_port(self) -> None:
        slot = _int(self._value())
        pairs = self._pairs()
        channel = _int(pairs.get("channel"))
        if self._trace is None:
            return
        if slot is None or not 0 <= slot < SLOTS or channel is None:
            self._unread[self._operation] += 1
            return
        is_master = str(pairs.get("direction", pairs.get("master", ""))).lower() in ("s2mm", "true", "1")
        self._trace.ports.append((slot, str(pairs.get("port", "")), channel, is_master))

    def _read_edge(self, what: str) -> None:
        pairs = self._pairs()
        if self._trace is None:
            return
        for kind in ("broadcast", "event"):
            if kind in pairs:
                self._trace.edges[what] = kind, pairs[kind]
        if pairs.keys().isdisjoint(("broadcast", "event")):
            self._unread[self._operation] += 1

    # --- registers of aie.trace.config ------------------------------------------------------------------------------

    def _read_config(self) -> None:
        symbol = self._symbol()
        tile = self._tile_of()
        module = _MODULES.get(str(self._pairs_before_body().get("packet_type", "")).lower(), "")
        self._config = None
        if tile is not None:
            self._config = _Lowered(symbol, tile, self._depth, module or _module_in(tile[1]))
            self._design.lowered.append(self._config)

    def _pairs_before_body(self) -> dict[str, str | int]:
        if self._peek().kind == "word" and self._peek(1) == ("mark", "="):
            name = self._next().text
            self._next()
            value = self._value()
            return {} if value is None else {name: value}
        return {}

    def _read_register(self) -> None:
        pairs = self._pairs()
        if self._config is None:
            return
        module, values = self._config.module, self._config.values
        name = str(pairs.get("register", ""))
        register = registers.register(module, name)
        if register is None:
            self._unread[f"{self._operation} of {name or 'no register'}"] += 1
            return
        value = pairs.get("value", 0)
        said = register.fields.get(str(pairs.get("field", "")))
        if said is None:
            mask = _int(pairs.get("mask"))
            number = (_int(value) or 0) & _WORD32
            keep = 0 if mask is None else ~mask & _WORD32
            values[name] = values.get(name, 0) & keep | number & ~keep
            return
        bits = register.record[said]
        if isinstance(value, str) and said.endswith("_id") and ":" in value:
            self._config.ports.append((int(said[4]), value))
            return
        number = self._event(module, value) if isinstance(value, str) else value
        values[name] = values.get(name, 0) & ~(bits.mask << bits.lsb) | (number & bits.mask) << bits.lsb

    # --- the result -----------------------------------------------------------------------------------------------

    def _event(self, module: str, event: str | int) -> int:
        if isinstance(event, int):
            return event & 0xFF
        return event_number(self._family(), module, event)

    def _family(self) -> str:
        word = self._design.device
        for prefix, device in DEVICES.items():
            if word.startswith(prefix):
                return device
        if word.startswith("xcvc"):
            raise ConfigError(f"unsupported device {word!r}: first-generation AI Engine", "use an AIE2 or AIE2P design")
        return "aie2"

    def result(self) -> Config:
        """Return what was found.

        Raises:
            ConfigError: nothing, or names that no device has.
        """
        parts: dict[str, Config] = {}
        for design in self._designs:
            self._design = design
            for name, part in self._parts():
                if part.places:
                    parts[name if name not in parts else f"{name} ({len(parts) + 1})"] = part
        if not parts:
            unread = ", ".join(self._unread)[:200]
            raise ConfigError(
                "no trace configuration found" + (f" (unsupported: {unread})" if unread else ""),
                "use input_with_addresses.mlir from aiecc",
            )
        devices = {part.device for part in parts.values()}
        if len(devices) > 1:
            raise ConfigError(
                f"contradictory devices {' and '.join(sorted(devices))}: event names differ",
                "pass the MLIR text of one design",
            )
        made = agreed(parts)
        return replace(made, unread={**made.unread, **self._unread})

    def _parts(self) -> Iterator[tuple[str, Config]]:
        """Yield what each runtime sequence of the design at hand sets up, by name; without any, what is declared."""
        design = self._design
        symbols = {symbol for sequence in design.sequences for symbol in sequence.started}

        def is_started(symbol: str, by: _Sequence) -> bool:
            names = {symbol, symbol.removesuffix("_config")}
            # What no sequence starts by name is taken to be set up by all of them.
            return not names & symbols or bool(names & by.started)

        used = [sequence for sequence in design.sequences if sequence.writes or sequence.started]
        if len(used) > _MAX_SEQUENCES:
            raise ConfigError(
                f"too many runtime sequences: {len(used)} configure a trace, the limit is {_MAX_SEQUENCES}",
                "pass the MLIR text of one design",
            )
        if not (used or design.traces or design.lowered):
            return
        device = self._family()
        lowered = [(made.symbol, self._written(made)) for made in design.lowered]
        writes = [write for _, made in lowered for write in made]
        writes += [write for sequence in used for write in sequence.writes]
        written = from_writes(device, writes).places
        declared = [(trace.symbol, self._unit(trace, written)) for trace in design.traces]
        for sequence in used or design.sequences[:1]:
            units = [unit for symbol, unit in declared if is_started(symbol, sequence)]
            below = [write for symbol, made in lowered if is_started(symbol, sequence) for write in made]
            name = f"{design.name or 'device'}:{sequence.name or 'sequence'}"
            yield name, _part(device, units, below, sequence.writes)

    def _unit(self, trace: _Trace, written: Set[Place]) -> Unit:
        """Return what a declaration says; an unknown name does not matter where registers give the number.

        Args:
            trace: the declaration.
            written: units that register writes of the design set up.
        """
        col, row = trace.tile
        module = trace.module or _module_in(row)

        def event(name: str | int) -> int:
            try:
                return self._event(module, name)
            except ConfigError:
                if (module, col, row) in written:
                    return 0
                raise

        ports: list[int | None] = [None] * SLOTS
        for slot, bundle, channel, is_master in trace.ports:
            ports[slot] = self._selection(module, bundle, channel, is_master=is_master)
        edges = {what: self._edge(module, *edge) for what, edge in trace.edges.items()}
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
        )

    def _edge(self, module: str, kind: str, value: str | int) -> int:
        if kind == "broadcast":
            value = f"BROADCAST_A_{value}" if module == "shim" else f"BROADCAST_{value}"
        elif isinstance(value, str):
            value = value.rpartition("::")[2]
        return self._event(module, value)

    def _selection(self, module: str, bundle: str, channel: int, *, is_master: bool) -> int:
        kind = "master" if is_master else "slave"
        known = registers.ports(module)
        named = next((name for name in known if name.lower() == f"{bundle}:{channel} {kind}".lower()), None)
        return port_selection(module, named or f"{bundle[:20]}:{channel} {kind}")

    def _written(self, lowered: _Lowered) -> list[Write]:
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
    told, told_below = _count_frames([*lowered, *writes]), _count_frames(writes)
    contradictions = {place: what for place, what in twice.items() if place not in told}
    contradictions |= {place: what for place, what in above.contradictions.items() if place not in told_below}
    refused = contradictions.keys() - (above.units.keys() - twice.keys())
    return replace(
        made,
        units={place: unit for place, unit in made.units.items() if place not in refused},
        trigger=above.trigger if made.trigger is None else made.trigger,
        contradictions={**contradictions, **made.contradictions},
    )


def _count_frames(writes: Iterable[Write]) -> set[Place]:
    """Return the units of which register writes say all that they watch."""
    halves: dict[Place, set[str]] = {}
    for write in writes:
        if write.register.name.startswith("Trace_Event"):
            halves.setdefault((write.register.module, write.col, write.row), set()).add(write.register.name)
    return {place for place, names in halves.items() if len(names) == 2}


def _int(value: str | int | None) -> int | None:
    return value if isinstance(value, int) else None


def _module_in(row: int) -> str:
    """Return the kind of module that a row of an NPU has, where nothing else tells."""
    return "shim" if row == 0 else "memtile" if row == 1 else "core"

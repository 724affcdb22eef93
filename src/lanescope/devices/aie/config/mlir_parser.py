"""Trace configurations in MLIR texts, read without MLIR.

A design's text says up to three times what its trace units do: as ``aie.trace`` operations, as the
``aie.trace.config`` that these are lowered to, and as the register writes and control packets of the runtime sequence,
whose operands are attributes or constants. All are read; what is lower says more. A text may hold several designs
(``aie.device``), each with several runtime sequences; what they say is kept apart, and a unit is settled where they
agree. Everything else in the text is passed over, counted if it concerns the trace, and text that is not well formed is
read as far as it goes: each token is looked at a bounded number of times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from lanescope.devices.aie.config.mlir_designs import (
    Design,
    LoweredTrace,
    RuntimeSequence,
    Slice,
    TraceOp,
    configuration_of,
    module_in_row,
)
from lanescope.devices.aie.config.mlir_writer import MLIR_MODES, MLIR_TYPES
from lanescope.devices.aie.config.model import SLOTS, Config
from lanescope.devices.aie.config.register_writes import Write, unread_at, write_at
from lanescope.devices.aie.config.validators import ConfigError
from lanescope.devices.aie.formats import registers
from lanescope.devices.aie.formats.control_packets import READ
from lanescope.devices.aie.formats.mlir_text import END, Tokens

#: Longer texts are not configurations.
_MAX_CHARACTERS = 1 << 27
_WORD32 = (1 << 32) - 1
_MODES = {name.lower(): number for number, name in enumerate(MLIR_MODES)}
_MODES |= {name.replace("-", "").lower(): number for number, name in enumerate(MLIR_MODES)}
#: Operations of a trace that label nothing.
_WITHOUT_LABELS = ("aie.trace.host_config",)
_MODULES = {word: module for module, word in MLIR_TYPES.items()} | {"shim": "shim"}


def read(text: str, sequence: str | None = None) -> Config:
    """Return the configuration that an MLIR text holds.

    Args:
        text: the text; the later the stage of compilation, the more it says.
        sequence: ``device:sequence`` that was run; None: what all sequences of the text agree on, or the only one that
            divides its buffer among those that it runs.

    Raises:
        ConfigError: it holds none, or one that names what no device has.
    """
    if len(text) > _MAX_CHARACTERS:
        raise ConfigError("MLIR text is too long", "use input_with_addresses.mlir of the build")
    scanner = _Scanner(text)
    scanner.run()
    return configuration_of(scanner.designs, scanner.unread, sequence)


class _Scanner:
    def __init__(self, text: str) -> None:
        self._tokens = Tokens(text)
        self._operation = ""  # the one at hand
        self._design = Design()
        self.designs = [self._design]
        self.unread: Counter[str] = Counter()
        self._constants: dict[str, int] = {}
        self._tiles: dict[str, tuple[int, int]] = {}
        self._trace: TraceOp | None = None
        self._config: LoweredTrace | None = None
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
            "aiex.control_packet": self._read_control_packet,
            "aie.trace": self._read_trace,
            "aie.trace.config": self._read_config,
            "aie.trace.reg": self._read_register,
            "aie.trace.mode": self._read_mode,
            "aie.trace.packet": self._read_packet,
            "aie.trace.event": self._read_event,
            "aie.trace.port": self._read_port,
            "aie.trace.combo_event": self._read_combo,
            "aie.trace.edge_event": self._read_made_edge,
            "aie.trace.start": lambda: self._read_edge("start"),
            "aie.trace.stop": lambda: self._read_edge("stop"),
            "aie.trace.start_config": self._read_start,
            "trace_slices": self._read_slices,
            "aie.trace_slices": self._read_slices,
        }

    # --- the text -------------------------------------------------------------------------------------------------

    def run(self) -> None:
        """Go through all tokens once."""
        while (token := self._tokens.next()) is not END:
            if token.kind == "mark":
                if token.text == "{":
                    self._tokens.depth += 1
                elif token.text == "}":
                    self._close()
            elif token.kind == "word" and token.text[0] == "%":
                self._defines(token.text)
            elif token.text in self._handlers and (token.kind == "word" or self._tokens.peek() == ("mark", "(")):
                self._operation = token.text
                self._handlers[token.text]()
                self._result = ""
            elif token.text.startswith("aie.trace.") and token.text not in _WITHOUT_LABELS:
                self.unread[token.text] += 1

    def _close(self) -> None:
        self._tokens.depth -= 1
        if self._trace is not None and self._tokens.depth <= self._trace.depth:
            self._trace = None
        if self._config is not None and self._tokens.depth <= self._config.depth:
            self._config = None

    def _defines(self, name: str) -> None:
        """Note ``%name =``: whatever the name meant before, it does no more."""
        if self._tokens.peek() == ("mark", "="):
            self._result = name
            self._constants.pop(name, None)
            self._tiles.pop(name, None)

    def _read_device(self) -> None:
        self._tokens.skip("(")
        device = self._tokens.word()
        self._tokens.skip(")")
        self._design = Design(self._tokens.symbol(), device)
        self.designs.append(self._design)

    def _read_sequence(self) -> None:
        self._design.sequences.append(
            RuntimeSequence(self._tokens.symbol() or f"sequence {len(self._design.sequences)}")
        )

    def _read_start(self) -> None:
        self._design.sequences[-1].started.add(self._tokens.symbol())

    def _read_slices(self) -> None:
        """Take ``= [...]``: where in the buffer of this sequence those that it runs record; in two spellings."""
        if not self._tokens.skip("=") or not self._tokens.skip("["):
            return
        while True:
            if self._tokens.peek().kind == "word":
                self._tokens.next()  # #aie.trace_slice
            pairs = self._tokens.pairs()
            if not pairs:
                break
            device, sequence = (str(pairs.get(name, "")).removeprefix("@") for name in ("device", "sequence"))
            offset, size = _int(pairs.get("offset")), _int(pairs.get("size"))
            if offset is None or size is None or offset < 0 or size <= 0:
                self.unread["trace_slices without offset and size"] += 1
            else:
                self._design.sequences[-1].slices.append(Slice(device, sequence, offset, size))
            self._tokens.skip(",")
        self._tokens.skip("]")

    def _read_logical_tile(self) -> None:
        """Take a tile of a kind, whose place may be left to a later stage of compilation."""
        if self._tokens.skip("<"):
            self._tokens.word()
            self._tokens.skip(">")
        self._read_tile()

    def _read_tile(self) -> None:
        name = self._result
        numbers: list[int | None] = []
        if self._tokens.skip("("):
            numbers = [self._tokens.number()]
            if self._tokens.skip(","):
                numbers.append(self._tokens.number())
            self._tokens.skip(")")
        pairs = self._tokens.pairs()
        if len(numbers) < 2:
            numbers = [_int(pairs.get("col")), _int(pairs.get("row"))]
        col, row = numbers
        if name and col is not None and row is not None and 0 <= col < 128 and 0 <= row < 32:
            self._tiles[name] = col, row

    def _read_constant(self) -> None:
        name = self._result
        value = self._tokens.number()
        if value is None and self._tokens.skip("("):
            self._tokens.skip(")")
            value = _int(self._tokens.pairs().get("value"))
        if name and value is not None:
            self._constants[name] = value

    def _read_write(self) -> None:
        is_masked = self._operation.endswith("maskwrite32")
        names = ("address", "value", "mask") if is_masked else ("address", "value")
        operands = [self._constants.get(name) for name in self._tokens.operands()]
        said: dict[str, str | int] = {n: v for n, v in zip(names, operands, strict=False) if v is not None}
        said |= self._tokens.pairs()
        address, value = _int(said.get("address")), _int(said.get("value"))
        if address is None:
            return  # known at run time only
        col, row = _int(said.get("column")), _int(said.get("row"))
        if not (0 <= (col or 0) < 128 and 0 <= (row or 0) < 32 and 0 <= address <= _WORD32):
            return
        write = write_at(address, (value or 0) & _WORD32, col=col, row=row)
        mask = _int(said.get("mask"))
        if write is None:
            if name := unread_at(address, 1 if value is None else value):
                self.unread[f"{self._operation} of {name}"] += 1
        elif value is None:
            self.unread[f"{self._operation} of {write.register.name} without a constant"] += 1
        else:
            if is_masked and mask is not None:
                write = replace(write, value=self._masked(write, mask & _WORD32))
            self._design.sequences[-1].writes.append(write)

    def _read_control_packet(self) -> None:
        """Take a packet that a DMA sends to a tile: writes to registers from an address on, or a read."""
        arrays: dict[str, list[int]] = {}
        said = self._tokens.pairs(arrays)
        address = _int(said.get("address"))
        if address is None or not 0 <= address <= _WORD32 or said.get("opcode", 0) == READ:
            return
        for index, word in enumerate(arrays.get("data", ())):
            at, value = address + 4 * index & _WORD32, word & _WORD32
            write = write_at(at, value)
            if write is not None:
                self._design.sequences[-1].writes.append(write)
            if name := unread_at(at, value):
                self.unread[f"{self._operation} of {name}"] += 1
            elif write is not None and "mcast_pkt_id" in said:
                self.unread[f"{self._operation} to several tiles"] += 1

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
        operands = self._tokens.operands()
        tile = self._tiles.get(operands[0]) if operands else None
        if tile is None:
            self.unread[f"{self._operation} on a tile without a position"] += 1
        return tile

    def _read_trace(self) -> None:
        symbol = self._tokens.symbol()
        tile = self._tile_of()
        self._trace = None
        if tile is not None:
            self._trace = TraceOp(symbol, tile, self._tokens.depth)
            self._design.traces.append(self._trace)

    def _read_mode(self) -> None:
        number = self._tokens.number()
        word = "" if number is not None else self._tokens.word()
        if self._trace is not None:
            self._trace.mode = number if number in (0, 1, 2) else _MODES.get(word.lower())
            if self._trace.mode is None:
                self.unread[self._operation] += 1

    def _read_packet(self) -> None:
        pairs = self._tokens.pairs()
        if self._trace is not None:
            self._trace.packet_id = _int(pairs.get("id"))
            word = str(pairs.get("type", ""))
            self._trace.module = _MODULES.get(word.lower(), "")
            if word and not self._trace.module:
                self.unread[self._operation] += 1

    def _read_event(self) -> None:
        value = self._tokens.value()
        if self._trace is None:
            return
        if value is None or len(self._trace.names) >= SLOTS:
            self.unread[self._operation] += 1
        else:
            self._trace.names.append(_event(value))

    def _read_combo(self) -> None:
        number, first = _int(self._tokens.value()), self._tokens.value()
        logic = self._tokens.word()
        second = self._tokens.value()
        if self._trace is None:
            return
        if number not in (0, 1, 2) or logic not in registers.LOGIC or first is None or second is None:
            self.unread[self._operation] += 1
        else:
            self._trace.combos[number] = _event(first), logic, _event(second)

    def _read_made_edge(self) -> None:
        number, pairs = _int(self._tokens.value()), self._tokens.pairs()
        event, trigger = pairs.get("event"), str(pairs.get("trigger", ""))
        if self._trace is None:
            return
        if number not in (0, 1) or event is None or trigger not in ("RISING", "FALLING", "BOTH"):
            self.unread[self._operation] += 1
        else:
            self._trace.made_edges[number] = _event(event), trigger

    def _read_port(self) -> None:
        slot = _int(self._tokens.value())
        pairs = self._tokens.pairs()
        channel = _int(pairs.get("channel"))
        if self._trace is None:
            return
        if slot is None or not 0 <= slot < SLOTS or channel is None:
            self.unread[self._operation] += 1
            return
        is_master = str(pairs.get("direction", pairs.get("master", ""))).lower() in ("s2mm", "true", "1")
        self._trace.ports.append((slot, str(pairs.get("port", "")), channel, is_master))

    def _read_edge(self, what: str) -> None:
        pairs = self._tokens.pairs()
        if self._trace is None:
            return
        for kind in ("broadcast", "event"):
            if kind in pairs:
                self._trace.edges[what] = kind, pairs[kind]
        if pairs.keys().isdisjoint(("broadcast", "event")):
            self.unread[self._operation] += 1

    # --- registers of aie.trace.config ------------------------------------------------------------------------------

    def _read_config(self) -> None:
        symbol = self._tokens.symbol()
        tile = self._tile_of()
        module = _MODULES.get(str(self._pairs_before_body().get("packet_type", "")).lower(), "")
        self._config = None
        if tile is not None:
            self._config = LoweredTrace(symbol, tile, self._tokens.depth, module or module_in_row(tile[1]))
            self._design.lowered.append(self._config)

    def _pairs_before_body(self) -> dict[str, str | int]:
        if self._tokens.peek().kind == "word" and self._tokens.peek(1) == ("mark", "="):
            name = self._tokens.next().text
            self._tokens.next()
            value = self._tokens.value()
            return {} if value is None else {name: value}
        return {}

    def _read_register(self) -> None:
        pairs = self._tokens.pairs()
        if self._config is None:
            return
        module, values = self._config.module, self._config.values
        name = str(pairs.get("register", ""))
        register = registers.register(module, name)
        if register is None:
            self.unread[f"{self._operation} of {name or 'no register'}"] += 1
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
        number = self._design.event(module, value) if isinstance(value, str) else value
        values[name] = values.get(name, 0) & ~(bits.mask << bits.lsb) | (number & bits.mask) << bits.lsb


def _event(value: str | int) -> str | int:
    """Return an event without the name of its kind."""
    return value if isinstance(value, int) else value.rpartition("::")[2]


def _int(value: str | int | None) -> int | None:
    return value if isinstance(value, int) else None

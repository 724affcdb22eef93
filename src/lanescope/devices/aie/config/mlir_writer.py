"""Configurations as MLIR: ``aie.trace`` operations, or the register writes of a runtime sequence."""

from __future__ import annotations

from collections.abc import Iterable

from lanescope.devices.aie.config import made_events
from lanescope.devices.aie.config.model import PACKET_TYPES, Config, Unit
from lanescope.devices.aie.config.register_writes import start_writes, stop_writes
from lanescope.devices.aie.config.validators import ConfigError
from lanescope.devices.aie.formats import events, registers

#: MLIR's words for modes and for kinds of modules.
MLIR_MODES = ("Event-Time", "Event-PC", "Execution")
MLIR_TYPES = {"core": "core", "mem": "mem", "shim": "shimtile", "memtile": "memtile"}
_MLIR_DEVICES = {"aie2": "npu1", "aie2p": "npu2"}


def to_mlir(known: Config) -> str:
    """Return the configuration as ``aie.trace`` operations, which mlir-aie compiles.

    Raises:
        ConfigError: the operations cannot say it.
    """
    tiles, traces = _Tiles(), []
    for unit in known.units.values():
        name = f"{unit.module}_{unit.col}_{unit.row}"
        if unit.packet_type not in (None, PACKET_TYPES[unit.module]):
            raise ConfigError(f"{name}: MLIR cannot express packet type {unit.packet_type}", "remove packet_type")
        if unit.reset not in (None, unit.start):
            raise ConfigError(f"{name}: MLIR cannot express a timer reset after the start", "remove reset")
        lines = [f"aie.trace @{name}({tiles.value(unit)}) {{"]
        if unit.module == "core" and unit.mode is not None:
            lines.append(f'  aie.trace.mode "{MLIR_MODES[unit.mode]}"')
        number = "" if unit.packet_id is None else f"id={unit.packet_id} "
        lines.append(f"  aie.trace.packet {number}type={MLIR_TYPES[unit.module]}")
        for slot, selection in enumerate(unit.ports):
            if selection is not None:
                lines.append(f"  aie.trace.port<{slot}> {_mlir_port(name, unit, selection)}")
        combos, edges = made_events.watched(known, unit)
        lines += [
            f'  aie.trace.combo_event<{number}> <"{first}"> {logic} <"{second}">'
            for number, (first, logic, second) in combos.items()
        ]
        lines += [
            f'  aie.trace.edge_event<{number}> event=<"{event}"> trigger={trigger}'
            for number, (event, trigger) in edges.items()
        ]
        lines += [f'  aie.trace.event<"{_mlir_event(known, name, unit, event)}">' for event in unit.events]
        for what in ("start", "stop"):
            event = getattr(unit, what)
            if event is not None:
                lines.append(f"  aie.trace.{what} {_mlir_edge(_mlir_event(known, name, unit, event))}")
        traces += [*lines, "}"]
    sequence = [f"//   aie.trace.start_config @{unit.module}_{unit.col}_{unit.row}" for unit in known.units.values()]
    body = [
        *tiles.lines,
        *traces,
        "// In the runtime sequence, before anything else:",
        "//   aie.trace.host_config buffer_size = 65536",
        *sequence,
    ]
    return _module(known, body)


def to_mlir_writes(known: Config) -> str:
    """Return the register writes as ``aiex.npu.write32`` operations of a runtime sequence."""
    body = ["aie.runtime_sequence() {"]
    for title, writes in (("before the run", start_writes(known)), ("after the last wait", stop_writes(known))):
        if writes:
            body.append(f"  // {title}")
        for write in writes:
            said = ", ".join(f"{name} {value}" for name, value in write.description(known.device).items())
            body.append(
                f"  aiex.npu.write32 {{address = {write.register.offset} : ui32, column = {write.col} : i32, "
                f"row = {write.row} : i32, value = {write.value} : ui32}}  // {write.register.name}: {said}"
            )
    return _module(known, [*body, "}"])


def _module(known: Config, body: Iterable[str]) -> str:
    lines = [
        "module {",
        f"  aie.device({_MLIR_DEVICES[known.device]}) {{",
        *(f"    {line}" for line in body),
        "  }",
        "}",
    ]
    return "\n".join(lines) + "\n"


class _Tiles:
    """The tiles that are named so far."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def value(self, unit: Unit) -> str:
        value = f"%tile_{unit.col}_{unit.row}"
        line = f"{value} = aie.tile({unit.col}, {unit.row})"
        if line not in self.lines:
            self.lines.append(line)
        return value


def _mlir_port(name: str, unit: Unit, selection: int) -> str:
    bundle, _, rest = registers.port_name(unit.module, selection).partition(":")
    channel, _, kind = rest.partition(" ")
    if not kind:
        raise ConfigError(f"{name}: MLIR cannot express port {selection:#x}")
    return f"port={bundle} channel={channel} direction={'S2MM' if kind == 'master' else 'MM2S'}"


def _mlir_event(known: Config, name: str, unit: Unit, number: int) -> str:
    word = events.names(known.device, unit.module).get(number)
    if word is None:
        raise ConfigError(f"{name}: MLIR cannot express event {number}")
    return word


def _mlir_edge(event: str) -> str:
    channel = event.removeprefix("BROADCAST_A_").removeprefix("BROADCAST_")
    return f"broadcast={channel}" if channel.isdigit() else f'event=<"{event}">'

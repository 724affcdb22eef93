"""Configurations as register writes and as MLIR, and back.

A trace unit is set up by a handful of register writes. mlir-aie makes them from ``aie.trace`` operations; a host may
also do them itself. What starts and stops the units is broadcast by a shim tile (the *trigger*), from user events that
the host generates there: event 1 at the beginning, event 0 after its last wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from lanescope.devices.aie import config, events, registers
from lanescope.devices.aie.config import Config, ConfigError, Place, Unit
from lanescope.devices.aie.registers import CONTROL_NAMES, PORT_NAMES, Register
from lanescope.errors import UsageError

SCHEMA = "lanescope.aie-registers/1"

#: Broadcast channels that mlir-aie uses.
_START_CHANNEL, _STOP_CHANNEL = 15, 14
_TYPES = {module: number for number, module in enumerate(events.MODULES)}
#: MLIR's words for modes and for kinds of modules.
MLIR_MODES = ("Event-Time", "Event-PC", "Execution")
MLIR_TYPES = {"core": "core", "mem": "mem", "shim": "shimtile", "memtile": "memtile"}
_MLIR_DEVICES = {"aie2": "npu1", "aie2p": "npu2"}


@dataclass(frozen=True, slots=True)
class Write:
    """One register write.

    Attributes:
        col: column in the design.
        row: row.
        register: the register.
        value: 32 bits.
    """

    col: int
    row: int
    register: Register
    value: int

    @property
    def fields(self) -> dict[str, int]:
        """The register's fields, reserved ones left out where they are 0."""
        decoded = self.register.record.decode(self.value)
        return {name: value for name, value in decoded.items() if value or not name.startswith("reserved")}

    def said(self, device: str) -> dict[str, str | int]:
        """Return the fields with events, modes and ports by their names."""
        known = events.names(device, self.register.module)
        words: dict[str, str | int] = {}
        for name, value in self.fields.items():
            is_event = name in ("start", "stop", "reset", "event") or (name.startswith("event") and name[5:].isdigit())
            if is_event:
                words[name] = known.get(value, value)
            elif name.startswith("port") and name.endswith("_id"):
                selection = value | self.fields[name.replace("_id", "_master")] * registers.MASTER
                words[name[:-3]] = registers.port_name(self.register.module, selection)
            elif not name.startswith("port"):
                words[name] = self.register.record[name].values.get(value, value)
        return words


# --- what is left open --------------------------------------------------------------------------------------------


def complete(known: Config) -> Config:
    """Return a configuration in which all units say everything, as mlir-aie would choose it.

    Units start on broadcast 15 and stop on 14 (the trigger's own shim: on the user events behind them), reset their
    timers when they start, and get packet ids in the order of columns and rows, and the conventional packet types.

    Raises:
        ConfigError: there are more units than packet ids.
    """
    units = []
    for unit in config.with_packet_ids(known.units.values()):
        start = _start(known, unit, _START_CHANNEL, "USER_EVENT_1") if unit.start is None else unit.start
        stop = _start(known, unit, _STOP_CHANNEL, "USER_EVENT_0") if unit.stop is None else unit.stop
        made = replace(
            unit,
            start=start,
            stop=stop,
            reset=start if unit.reset is None else unit.reset,
            mode=unit.mode or 0,
            packet_type=_TYPES[unit.module] if unit.packet_type is None else unit.packet_type,
            ports=_settled(known, unit, unit.ports),
        )
        units.append(made)
    return replace(known, units={unit.place: unit for unit in units})


def _start(known: Config, unit: Unit, channel: int, user_event: str) -> int:
    if unit.module == "shim":
        name = user_event if unit.col == known.trigger else f"BROADCAST_A_{channel}"
    else:
        name = f"BROADCAST_{channel}"
    return events.number(known.device, unit.module, name)


def _settled(known: Config, unit: Unit, ports: Iterable[int | None]) -> tuple[int | None, ...]:
    """Return port selections as their registers say them: 0 where nothing is selected but an event looks at it.

    A selection of 0 that no event looks at cannot be told from none.
    """
    settled = list(ports)
    watched = {events.port_slot(known.event_name(unit.module, number)) for number in unit.events}
    for first in (0, 4):
        group = range(first, first + 4)
        is_written = any(settled[slot] is not None for slot in group)
        for slot in group:
            if slot in watched and is_written:
                settled[slot] = settled[slot] or 0
            elif not settled[slot]:
                settled[slot] = None
    return tuple(settled)


# --- to registers -------------------------------------------------------------------------------------------------


def unit_writes(unit: Unit) -> list[Write]:
    """Return the writes that set up one unit; what it does not state is 0."""
    slots = unit.slots
    said: dict[str, dict[str, int]] = {
        "Trace_Control0": {"stop": unit.stop or 0, "start": unit.start or 0},
        "Trace_Control1": {"packet_type": unit.packet_type or 0, "packet_id": unit.packet_id or 0},
        "Trace_Event0": {f"event{i}": slots[i] for i in range(4)},
        "Trace_Event1": {f"event{i}": slots[i] for i in range(4, 8)},
    }
    if unit.module == "core":
        said["Trace_Control0"]["mode"] = unit.mode or 0
    for half, name in enumerate(PORT_NAMES):
        chosen = unit.ports[4 * half : 4 * half + 4]
        if any(port is not None for port in chosen):
            said[name] = {}
            for slot, port in enumerate(chosen, 4 * half):
                said[name][f"port{slot}_id"] = (port or 0) & 0x1F
                said[name][f"port{slot}_master"] = (port or 0) // registers.MASTER
    if unit.reset is not None:
        said["Timer_Control"] = {"reset": unit.reset}
    writes = []
    for name, fields in said.items():
        register = registers.register(unit.module, name)
        if register is None:
            raise ConfigError(f"{unit.module} ({unit.col}, {unit.row}) has no {name}")
        try:
            value = register.record.encode(fields)
        except ValueError as error:
            raise ConfigError(f"{unit.module} ({unit.col}, {unit.row}): {error}") from None
        writes.append(Write(unit.col, unit.row, register, value))
    return writes


def begin_writes(known: Config) -> list[Write]:
    """Return the writes before a run, in order: all units, then the trigger that starts them.

    Raises:
        ConfigError: the trigger cannot start all of them.
    """
    writes = [write for unit in known.units.values() for write in unit_writes(unit)]
    if known.trigger is not None:
        user = events.number(known.device, "shim", "USER_EVENT_1")
        own = known.units.get(("shim", known.trigger, 0))
        if own is None:  # a traced shim says itself what resets its timer
            writes.append(_shim(known, "Timer_Control", {"reset": user}))
        writes += _fire(known, "start", user)
    return writes


def end_writes(known: Config) -> list[Write]:
    """Return the writes after a run: the trigger stops the units, which also flushes what they hold."""
    if known.trigger is None:
        return []
    return _fire(known, "stop", events.number(known.device, "shim", "USER_EVENT_0"))


def _fire(known: Config, what: str, user_event: int) -> list[Write]:
    channels = set()
    for unit in known.units.values():
        event = getattr(unit, what) or 0
        if unit.module == "shim" and unit.col == known.trigger and event == user_event:
            continue
        name = known.event_name(unit.module, event)
        channel = name.removeprefix("BROADCAST_A_" if unit.module == "shim" else "BROADCAST_")
        if not channel.isdigit():
            raise ConfigError(
                f"{unit.module} ({unit.col}, {unit.row}) has {what} {name}, which no trigger can broadcast",
                "let it be BROADCAST_0 to BROADCAST_15, or leave out trigger",
            )
        channels.add(int(channel))
    if len(channels) > 1:
        raise ConfigError(
            f"units {what} on broadcasts {', '.join(map(str, sorted(channels)))}, a trigger has one", "use one for all"
        )
    writes = [_shim(known, f"Event_Broadcast{channel}_A", {"event": user_event}) for channel in channels]
    return [*writes, _shim(known, "Event_Generate", {"event": user_event})]


def _shim(known: Config, name: str, fields: Mapping[str, int]) -> Write:
    register = registers.register("shim", name)
    assert register is not None
    assert known.trigger is not None
    return Write(known.trigger, 0, register, register.record.encode(fields))


# --- from registers -----------------------------------------------------------------------------------------------


def from_writes(device: str, writes: Iterable[Write], *, declared: Iterable[Unit] = ()) -> Config:
    """Return what register writes, in order, set up.

    Args:
        device: ``aie2`` or ``aie2p``.
        writes: the writes; the last to a register stands.
        declared: what units are known to be besides; registers that are written say more than that.
    """
    values: dict[Place, dict[str, int]] = {}
    units = {unit.place: unit for unit in declared}
    trigger = None
    user = events.number(device, "shim", "USER_EVENT_1")
    for write in writes:
        module, name = write.register.module, write.register.name
        values.setdefault((module, write.col, write.row), {})[name] = write.value
        if name.startswith("Event_Broadcast") and write.fields["event"] == user:
            trigger = write.col
    known = Config(device)
    for place, written in values.items():
        # Only who was told how to trace is traced; timers and port selections serve others, too.
        if place in units or not written.keys().isdisjoint(CONTROL_NAMES):
            units[place] = _with_registers(known, units.get(place, Unit(*place)), written)
    return Config(device, units=units, trigger=trigger)


def _with_registers(known: Config, unit: Unit, written: Mapping[str, int]) -> Unit:
    fields: dict[str, int] = {}
    for name, value in written.items():
        register = registers.register(unit.module, name)
        if register is not None and name in (*CONTROL_NAMES, *PORT_NAMES, "Timer_Control"):
            fields.update(register.record.decode(value))
    slots = [fields.get(f"event{i}", number) for i, number in enumerate(unit.slots)]
    ports = list(unit.ports)
    for slot in range(registers.SLOTS):
        if f"port{slot}_id" in fields:
            ports[slot] = fields[f"port{slot}_id"] | fields[f"port{slot}_master"] * registers.MASTER
    is_started = "start" in fields
    made = replace(
        unit,
        events=config.stripped(slots),
        start=fields.get("start", unit.start),
        stop=fields.get("stop", unit.stop),
        mode=fields.get("mode", 0) if is_started else unit.mode,
        reset=fields.get("reset", unit.reset),
        packet_id=fields.get("packet_id", unit.packet_id),
        packet_type=fields.get("packet_type", unit.packet_type),
    )
    return replace(made, ports=_settled(known, made, ports))


# --- registers as a JSON document ---------------------------------------------------------------------------------


def to_document(known: Config) -> dict[str, Any]:
    """Return the register writes as a JSON value, with what they mean beside them."""
    content = config.to_json(known)
    del content["tiles"]
    content.pop("trigger", None)
    for part, writes in (("begin", begin_writes(known)), ("end", end_writes(known))):
        content[part] = [
            {
                "col": write.col,
                "row": write.row,
                "module": write.register.module,
                "register": write.register.name,
                "address": f"{write.register.offset:#x}",
                "value": f"{write.value:#010x}",
                "fields": write.said(known.device),
            }
            for write in writes
        ]
    return {"schema": SCHEMA, **content}


def from_document(content: Mapping[str, Any]) -> Config:
    """Return the configuration of a document of register writes: ``col``, ``row``, ``address`` and ``value`` count.

    Raises:
        ConfigError: it makes no sense, or sets up no trace.
    """
    schema = content.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise ConfigError(f"it is of schema {str(schema)[:60]!r}", f"this version reads {SCHEMA}")
    head = {name: content[name] for name in ("device", "frequency_hz", "colshift") if name in content}
    known = config.parse({**head, "tiles": []})
    writes = []
    for part in ("begin", "end"):
        listed = content.get(part, [])
        if not isinstance(listed, list):
            raise ConfigError(f"{part} is no list")
        for index, entry in enumerate(listed):
            where = f"{part} {index + 1}"
            if not isinstance(entry, dict):
                raise ConfigError(f"{where}: it is no object", "write {...}")
            address = _number(entry.get("address"), f"{where}: address")
            value = _number(entry.get("value"), f"{where}: value")
            write = write_at(address, value, col=entry.get("col"), row=entry.get("row"), where=where)
            if write is not None:
                writes.append(write)
    made = from_writes(known.device, writes)
    if not made.units:
        raise ConfigError("it writes no register of a trace unit")
    return replace(known, units=made.units, trigger=made.trigger)


def write_at(address: int, value: int, *, col: Any = None, row: Any = None, where: str = "") -> Write | None:
    """Return a write to a tile's register, None if it is none of a trace's.

    Without column and row they are part of the address.

    Raises:
        ConfigError: column or row are no such numbers.
    """
    if col is None and row is None:
        col = address >> registers.COLUMN_SHIFT & 0x1F
        row = address >> registers.ROW_SHIFT & 0x1F
    col = config.integer(col or 0, 127, f"{where} col".strip())
    row = config.integer(row or 0, 31, f"{where} row".strip())
    register = registers.at(row, address & registers.OFFSET_MASK)
    return None if register is None else Write(col, row, register, value)


def _number(value: Any, what: str) -> int:
    if isinstance(value, str) and len(value) <= 12:
        try:
            value = int(value, 0)
        except ValueError:
            raise ConfigError(f"{what} {value!r} is no number") from None
    return config.integer(value, (1 << 32) - 1, what)


# --- MLIR ---------------------------------------------------------------------------------------------------------


def to_mlir(known: Config) -> str:
    """Return the configuration as ``aie.trace`` operations, which mlir-aie compiles.

    Raises:
        ConfigError: the operations cannot say it.
    """
    tiles, traces = _Tiles(), []
    for unit in known.units.values():
        name = f"{unit.module}_{unit.col}_{unit.row}"
        if unit.packet_type not in (None, _TYPES[unit.module]):
            raise ConfigError(f"{name}: MLIR has no word for packet type {unit.packet_type}", "leave out packet_type")
        if unit.reset not in (None, unit.start):
            raise ConfigError(f"{name}: MLIR resets timers at the start only", "leave out reset")
        lines = [f"aie.trace @{name}({tiles.value(unit)}) {{"]
        if unit.module == "core" and unit.mode is not None:
            lines.append(f'  aie.trace.mode "{MLIR_MODES[unit.mode]}"')
        number = "" if unit.packet_id is None else f"id={unit.packet_id} "
        lines.append(f"  aie.trace.packet {number}type={MLIR_TYPES[unit.module]}")
        for slot, selection in enumerate(unit.ports):
            if selection is not None:
                lines.append(f"  aie.trace.port<{slot}> {_mlir_port(name, unit, selection)}")
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
    for title, writes in (("before the run", begin_writes(known)), ("after the last wait", end_writes(known))):
        if writes:
            body.append(f"  // {title}")
        for write in writes:
            said = ", ".join(f"{name} {value}" for name, value in write.said(known.device).items())
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
        raise ConfigError(f"{name}: MLIR has no word for port {selection:#x}")
    return f"port={bundle} channel={channel} direction={'S2MM' if kind == 'master' else 'MM2S'}"


def _mlir_event(known: Config, name: str, unit: Unit, number: int) -> str:
    word = events.names(known.device, unit.module).get(number)
    if word is None:
        raise ConfigError(f"{name}: MLIR has no word for event {number}")
    return word


def _mlir_edge(event: str) -> str:
    channel = event.removeprefix("BROADCAST_A_").removeprefix("BROADCAST_")
    return f"broadcast={channel}" if channel.isdigit() else f'event=<"{event}">'


# --- files --------------------------------------------------------------------------------------------------------


def read(path: Path) -> Config:
    """Read a configuration in any of its forms: JSON, registers, MLIR.

    Raises:
        UsageError: it cannot be read, or makes no sense.
    """
    try:
        with path.open("rb") as file:
            head = file.read(1 << 12)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", hint="name a JSON or MLIR file") from None
    return config.load(path) if head.lstrip()[:1] in (b"{", b"[") else config.load_mlir(path)


def describe(known: Config) -> list[tuple[str, int, int, str, str, str, str]]:
    """Return a row for each register write: when, column, row, register, address, value, what it means."""
    rows = []
    for part, writes in (("begin", begin_writes(known)), ("end", end_writes(known))):
        for write in writes:
            said = " ".join(f"{name}={value}" for name, value in write.said(known.device).items())
            address, value = f"{write.register.offset:#x}", f"{write.value:#010x}"
            rows.append((part, write.col, write.row, write.register.name, address, value, said))
    return rows


__all__ = [
    "Write",
    "begin_writes",
    "complete",
    "describe",
    "end_writes",
    "from_document",
    "from_writes",
    "read",
    "to_document",
    "to_mlir",
    "to_mlir_writes",
    "unit_writes",
    "write_at",
]

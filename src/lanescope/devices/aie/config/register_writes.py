"""Configurations as register writes, and back.

A trace unit is set up by a handful of register writes. mlir-aie makes them from ``aie.trace`` operations; a host may
also do them itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lanescope.declaration import replace
from lanescope.devices.aie.config.model import Config, Place, Unit, strip_trailing_zeros
from lanescope.devices.aie.config.validators import ConfigError, integer
from lanescope.devices.aie.formats import events, registers
from lanescope.devices.aie.formats.registers import CONTROL_NAMES, LOGIC_INPUTS, LOGIC_NAMES, PORT_NAMES, Register

_EVENT_FIELD = re.compile("start|stop|reset|(event|edge)[0-9]?|input_[a-d]")


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

    def description(self, device: str) -> dict[str, str | int]:
        """Return the fields with events, modes and ports by their names."""
        known = events.names(device, self.register.module)
        words: dict[str, str | int] = {}
        for name, value in self.fields.items():
            is_event = _EVENT_FIELD.fullmatch(name) is not None
            if is_event:
                words[name] = known.get(value, value)
            elif name.startswith("port") and name.endswith("_id"):
                selection = value | self.fields[name.replace("_id", "_master")] * registers.MASTER
                words[name[:-3]] = registers.port_name(self.register.module, selection)
            elif not name.startswith("port"):
                words[name] = self.register.record[name].values.get(value, value)
        return words


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
    for name, value in unit.logic.items():  # before the slots that watch what they make
        register = registers.register(unit.module, name)
        if register is not None:
            writes.append(Write(unit.col, unit.row, register, value))
    for name, fields in said.items():
        register = registers.register(unit.module, name)
        if register is None:
            raise ConfigError(f"{unit.module} ({unit.col}, {unit.row}): register {name} not found")
        try:
            value = register.record.encode(fields)
        except ValueError as error:
            raise ConfigError(f"{unit.module} ({unit.col}, {unit.row}): {error}") from None
        writes.append(Write(unit.col, unit.row, register, value))
    return writes


def start_writes(known: Config) -> list[Write]:
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


def stop_writes(known: Config) -> list[Write]:
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
                f"{unit.module} ({unit.col}, {unit.row}): {what} {name} cannot be broadcast by a trigger",
                "use BROADCAST_0 to BROADCAST_15 or remove trigger",
            )
        channels.add(int(channel))
    if len(channels) > 1:
        raise ConfigError(
            f"units {what} on broadcasts {', '.join(map(str, sorted(channels)))}: a trigger supports only one",
            "use one broadcast for all units",
        )
    writes = [_shim(known, f"Event_Broadcast{channel}_A", {"event": user_event}) for channel in channels]
    return [*writes, _shim(known, "Event_Generate", {"event": user_event})]


def _shim(known: Config, name: str, fields: Mapping[str, int]) -> Write:
    register = registers.register("shim", name)
    assert register is not None
    assert known.trigger is not None
    return Write(known.trigger, 0, register, register.record.encode(fields))


def from_writes(device: str, writes: Iterable[Write], *, declared: Iterable[Unit] = ()) -> Config:
    """Return what register writes, in order, set up.

    A unit that is set up twice, in different ways, records under both: it is a contradiction, not a unit.

    Args:
        device: ``aie2`` or ``aie2p``.
        writes: the writes, of one sequence; what is cleared later was set all the same.
        declared: what units are known to be besides; registers that are written say more than that.
    """
    values: dict[Place, dict[str, int]] = {}
    units = {unit.place: unit for unit in declared}
    rewritten: dict[Place, list[str]] = {}
    trigger = None
    user = events.number(device, "shim", "USER_EVENT_1")
    for write in writes:
        module, name = write.register.module, write.register.name
        place = module, write.col, write.row
        written = values.setdefault(place, {})
        before = written.get(name, 0)
        if name in (*CONTROL_NAMES, *PORT_NAMES, *LOGIC_NAMES):
            if _is_contradictory(write.register, before, write.value):
                rewritten.setdefault(place, []).append(name)
            written[name] = _kept(write.register, before, write.value)
        else:
            written[name] = write.value
        if name.startswith("Event_Broadcast") and write.fields["event"] == user:
            trigger = write.col
    known = Config(device)
    for place, written in values.items():
        # Only who was told how to trace is traced; timers and port selections serve others, too.
        if place in units or not written.keys().isdisjoint(CONTROL_NAMES):
            units[place] = _with_registers(known, units.get(place, Unit(*place)), written)
    contradictions: dict[Place, str] = {}
    for place, names in rewritten.items():
        if (unit := units.pop(place, None)) is None:
            continue
        contradictions[place] = f"{', '.join(dict.fromkeys(names))} written again, with another value"
        if set(names) == {"Trace_Control1"}:
            units[place] = replace(unit, packet_id=None, packet_type=None)
    return Config(device, units=units, trigger=trigger, contradictions=contradictions)


def _settings(register: Register) -> list[int]:
    """Return the bits of a register that are set together, as masks."""
    if register.name in PORT_NAMES:
        return [0x3F << 8 * i for i in range(4)]
    return [of.mask << of.lsb for of in register.record.fields if not of.name.startswith("reserved")]


def _is_contradictory(register: Register, before: int, after: int) -> bool:
    """Return whether a register write replaces a different earlier value.

    What is 0 was not said yet, or is cleared after the run; but ports are never cleared, as one of them has number 0.
    """
    changed = [mask for mask in _settings(register) if before & mask and (before ^ after) & mask]
    return any(after & mask or register.name in PORT_NAMES for mask in changed)


def _kept(register: Register, before: int, after: int) -> int:
    """Return what a register says after another write; what is cleared was said all the same."""
    return after | sum(before & mask for mask in _settings(register) if not after & mask)


def _with_registers(known: Config, unit: Unit, written: Mapping[str, int]) -> Unit:
    fields: dict[str, int] = {}
    for name, value in written.items():
        register = registers.register(unit.module, name)
        if register is not None and name in (*CONTROL_NAMES, *PORT_NAMES, "Timer_Control"):
            fields.update(register.record.decode(value))
    logic = {name: written[name] for name in LOGIC_NAMES if written.get(name)}
    slots = [fields.get(f"event{i}", number) for i, number in enumerate(unit.slots)]
    ports = list(unit.ports)
    for slot in range(events.SLOTS):
        if f"port{slot}_id" in fields:
            ports[slot] = fields[f"port{slot}_id"] | fields[f"port{slot}_master"] * registers.MASTER
    is_started = "start" in fields
    made = replace(
        unit,
        events=strip_trailing_zeros(slots),
        start=fields.get("start", unit.start),
        stop=fields.get("stop", unit.stop),
        mode=fields.get("mode", 0) if is_started else unit.mode,
        reset=fields.get("reset", unit.reset),
        packet_id=fields.get("packet_id", unit.packet_id),
        packet_type=fields.get("packet_type", unit.packet_type),
        logic={**unit.logic, **logic},
    )
    return replace(made, ports=settled(known, made, ports))


def settled(known: Config, unit: Unit, ports: Iterable[int | None]) -> tuple[int | None, ...]:
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


def write_at(address: int, value: int, *, col: Any = None, row: Any = None, where: str = "") -> Write | None:
    """Return a write to a tile's register, None if it is none of a trace's.

    Without column and row they are part of the address.

    Raises:
        ConfigError: column or row are no such numbers.
    """
    if col is None and row is None:
        col = address >> registers.COLUMN_SHIFT & 0x1F
        row = address >> registers.ROW_SHIFT & 0x1F
    col = integer(col or 0, 127, "col", where=where)
    row = integer(row or 0, 31, "row", where=where)
    register = registers.at(row, address & registers.OFFSET_MASK)
    if register is None or (register.name == LOGIC_INPUTS and _holds_combos(register, value)):
        return None
    return Write(col, row, register, value)


def _holds_combos(register: Register, value: int) -> bool:
    """Return whether combo event 0 would join combo events: they stand in place of what it joins."""
    first = events.number(events.DEVICES[0], register.module, "COMBO_EVENT_0")
    known = register.record.decode(value)
    return any(first <= known[name] < first + 4 for name in ("input_a", "input_b"))


def unread_at(address: int, value: int) -> str:
    """Return the name of the register at an address if it concerns a trace and is not read, "" for other writes."""
    return registers.UNREAD.get(address & registers.OFFSET_MASK, "") if value else ""


def describe(known: Config) -> list[tuple[str, int, int, str, str, str, str]]:
    """Return a row for each register write: when, column, row, register, address, value, what it means."""
    rows = []
    for part, writes in (("start", start_writes(known)), ("stop", stop_writes(known))):
        for write in writes:
            said = " ".join(f"{name}={value}" for name, value in write.description(known.device).items())
            address, value = f"{write.register.offset:#x}", f"{write.value:#010x}"
            rows.append((part, write.col, write.row, write.register.name, address, value, said))
    return rows

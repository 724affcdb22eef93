"""What trace units were told to record: a small JSON file beside the capture.

::

    {
      "device": "aie2",
      "frequency_hz": 1000000000,
      "start": "BROADCAST_15",
      "stop": "BROADCAST_14",
      "tiles": [
        {"type": "core", "col": 0, "row": 2, "events": ["INSTR_EVENT_0", "INSTR_EVENT_1", "PORT_RUNNING_0"],
         "ports": {"0": "DMA:0 master"}}
      ]
    }

``col`` and ``row`` are those of the design; a packet's column is that plus ``colshift``, since the runtime may place a
design at any free column. When it is left out, decoding finds the shift that fits the capture best.
``events`` are names or numbers, slot 0 first. Everything but ``tiles`` may be left out; what ``lanescope aie-config``
needs besides is in ``TILE_KEYS`` and ``KEYS``.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lanescope.devices.aie import events, registers
from lanescope.devices.aie.layout import MODES
from lanescope.errors import UsageError

if TYPE_CHECKING:
    from lanescope.source import Capture, Source

SLOTS = registers.SLOTS
Place = tuple[str, int, int]

#: What a configuration may say, and what a tile in it may say.
KEYS = {
    "device": "aie2 or aie2p",
    "frequency_hz": "clock of the array",
    "colshift": "column of packets minus column of the design",
    "mode": "trace mode of all cores",
    "start": "event at which all units start, such as BROADCAST_15",
    "stop": "event at which they stop",
    "trigger": "column of the shim tile that broadcasts start and stop",
    "first_packet_id": "packet id of the first unit that has none of its own",
    "tiles": "the traced units",
}
TILE_KEYS = {
    "type": "core, mem (the memory module of a core's tile), shim or memtile",
    "col": "column in the design",
    "row": "row",
    "events": "what slots 0 to 7 watch: names or numbers",
    "ports": "which port the PORT events of each number watch: name, such as DMA:0 master, or selection byte",
    "mode": "event-time, event-pc or execution; others than event-time only for cores",
    "start": "event that starts it",
    "stop": "event that stops it",
    "reset": "event that resets its timer; by itself that which starts it",
    "packet_id": "0 to 31",
    "packet_type": "0 to 7; by convention 0 core, 1 mem, 2 shim, 3 memtile",
}
#: What MLIR texts call devices begins with these.
DEVICES = {"npu1": "aie2", "npu2": "aie2p", "xcve2": "aie2", "aie2p": "aie2p", "aie2": "aie2"}


@dataclass(frozen=True, slots=True)
class Unit:
    """One trace unit. What is not stated is None.

    Attributes:
        module: kind of module, one of ``events.MODULES``.
        col: column in the design.
        row: row.
        events: event numbers of slots 0.. (0: nothing); zeros at the end are left out.
        ports: for PORT events 0 to 7, the selection byte: number of the port, and ``registers.MASTER`` for a master.
        mode: trace mode.
        start: event that starts it.
        stop: event that stops it.
        reset: event that resets the module's timer.
        packet_id: id in its packets' headers.
        packet_type: type in its packets' headers.
    """

    module: str
    col: int
    row: int
    events: tuple[int, ...] = ()
    ports: tuple[int | None, ...] = (None,) * SLOTS
    mode: int | None = None
    start: int | None = None
    stop: int | None = None
    reset: int | None = None
    packet_id: int | None = None
    packet_type: int | None = None

    @property
    def place(self) -> Place:
        """Module, column and row."""
        return self.module, self.col, self.row

    @property
    def slots(self) -> tuple[int, ...]:
        """Event numbers of all 8 slots."""
        return (self.events + (0,) * SLOTS)[:SLOTS]


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration.

    Attributes:
        device: ``aie2`` or ``aie2p``.
        colshift: column of a packet minus column of the design; None: not stated.
        frequency: clock of the array in Hz, None when it is unknown.
        units: the trace units by module, column of the design and row.
        trigger: column of the shim tile whose user events are broadcast as start and stop, None if not stated.
    """

    device: str = "aie2"
    colshift: int | None = None
    frequency: Fraction | None = None
    units: Mapping[Place, Unit] = field(default_factory=dict)
    trigger: int | None = None

    @property
    def slots(self) -> Mapping[Place, tuple[int, ...]]:
        """(module, column of the design, row) -> event numbers, slot 0 first."""
        return {place: unit.events for place, unit in self.units.items()}

    def slot_names(self, module: str, col: int, row: int) -> tuple[str, ...]:
        """Return the labels of the 8 slots of a module, "" where none is known; ``col`` is the design's.

        A label is the event's name; that of a PORT event also says which port it watches.
        """
        unit = self.units.get((module, col, row))
        if unit is None:
            return ("",) * SLOTS
        named = []
        for number in unit.slots:
            name = self.event_name(module, number) if number else ""
            selection = self.port(unit, number)
            named.append(name if selection is None else f"{name} ({registers.port_name(module, selection)})")
        return tuple(named)

    def event_name(self, module: str, number: int) -> str:
        """Return the name of an event, ``event 54`` if it has none."""
        return events.names(self.device, module).get(number, f"event {number}")

    def port(self, unit: Unit, number: int) -> int | None:
        """Return the selection byte of the port that an event of a unit watches, None if it is no PORT event."""
        slot = events.port_slot(self.event_name(unit.module, number))
        return None if slot is None else unit.ports[slot]


def config_of(device: str, units: Iterable[Unit], **more: Any) -> Config:
    """Return a configuration of units; the last of those at one place stands."""
    return Config(device, units={unit.place: unit for unit in units}, **more)


# --- finding and reading ------------------------------------------------------------------------------------------


def find(capture: Capture, *, path: str | None, mlir_path: str | None) -> tuple[Config, Source | None]:
    """Return the configuration of a capture, and the file that it was read from.

    What is given; else ``NAME.config.json`` or ``NAME.mlir`` beside the capture; else an empty one.

    Raises:
        UsageError: it cannot be read, makes no sense, or two are given.
    """
    if path is not None and mlir_path is not None:
        raise UsageError("a configuration and an MLIR text are given", hint="say --config or --mlir")
    given = mlir_path if path is None else path
    if given is None:
        beside = [p for end in ("config.json", "mlir") for p in capture.find(glob.escape(f"{capture.name}.{end}"))]
        if not beside:
            return Config(), None
        found = beside[0]
    else:
        found = Path(given)
    known = load_mlir(found) if mlir_path is not None or found.suffix == ".mlir" else load(found)
    return known, capture.use("config", found)


def load(path: Path) -> Config:
    """Read a configuration file: JSON of this form, or the registers that ``lanescope aie-config`` writes.

    Raises:
        UsageError: it cannot be read, or says something that makes no sense; the message names the place.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(f"configuration {path} cannot be read: {error}", hint="it is a JSON object") from None
    try:
        if isinstance(content, dict) and "begin" in content:
            from lanescope.devices.aie import configure

            return configure.from_document(content)
        return parse(content)
    except ConfigError as error:
        raise UsageError(f"configuration {path}: {error}", hint=error.hint) from None


def load_mlir(path: Path) -> Config:
    """Read the configuration from an MLIR text.

    Raises:
        UsageError: it cannot be read, or holds no configuration of a trace.
    """
    from lanescope.devices.aie import mlir

    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(f"MLIR text {path} cannot be read: {error}", hint="say --mlir FILE") from None
    try:
        return mlir.read(text)
    except ConfigError as error:
        raise UsageError(f"MLIR text {path}: {error}", hint=error.hint) from None


class ConfigError(ValueError):
    """A configuration makes no sense; the message says where and why, ``hint`` what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint or "docs: how to name what AIE traces show"


# --- JSON ---------------------------------------------------------------------------------------------------------


def parse(content: Any) -> Config:
    """Return the configuration that a JSON value says.

    Raises:
        ConfigError: it makes no sense.
    """
    if not isinstance(content, dict):
        raise ConfigError("it is no object", "write {...}")
    _check_keys(content, KEYS, "a configuration")
    device = content.get("device", "aie2")
    if device not in events.DEVICES:
        raise _unknown("device", device, events.DEVICES)
    tiles = content.get("tiles")
    if not isinstance(tiles, list):
        raise ConfigError("tiles is missing, or no list")
    common = {name: content[name] for name in ("mode", "start", "stop") if name in content}
    units = {}
    for index, tile in enumerate(tiles):
        try:
            unit = _unit(device, tile, common)
        except ConfigError as error:
            raise ConfigError(f"tile {index + 1}: {error}", error.hint) from None
        if unit.place in units:
            raise ConfigError(f"tile {index + 1}: {unit.module} ({unit.col}, {unit.row}) stands there twice")
        units[unit.place] = unit
    first = content.get("first_packet_id")
    if first is not None:
        units = {unit.place: unit for unit in with_packet_ids(units.values(), integer(first, 31, "first_packet_id"))}
    shift, hertz, trigger = content.get("colshift"), content.get("frequency_hz"), content.get("trigger")
    return Config(
        device,
        colshift=None if shift is None else integer(shift, 127, "colshift", least=-127),
        frequency=None if hertz is None else _hertz(hertz),
        units=units,
        trigger=None if trigger is None else integer(trigger, 127, "trigger"),
    )


def _unit(device: str, tile: Any, common: Mapping[str, Any]) -> Unit:
    if not isinstance(tile, dict):
        raise ConfigError("it is no object", "write {...}")
    _check_keys(tile, TILE_KEYS, "a tile")
    module = tile.get("type")
    if module not in events.MODULES:
        raise _unknown("type", module, events.MODULES)
    numbers = tile.get("events", ())
    if not isinstance(numbers, list | tuple):
        raise ConfigError("events is no list")
    if len(numbers) > SLOTS:
        raise ConfigError(f"it has {len(numbers)} events, a unit has {SLOTS} slots")
    said = {name: value for name, value in {**common, **tile}.items() if value is not None}
    stated: dict[str, int] = {}
    for name in ("start", "stop", "reset"):
        if name in said:
            event = said[name] if name in tile else _broadcast(module, said[name])
            stated[name] = event_number(device, module, event)
    if "mode" in said and (module == "core" or "mode" in tile):
        stated["mode"] = _mode(module, said["mode"])
    for name, most in (("packet_id", 31), ("packet_type", 7)):
        if name in said:
            stated[name] = integer(said[name], most, name)
    for name in ("col", "row"):
        if name not in tile:
            raise ConfigError(f"{name} is missing")
    return Unit(
        module,
        integer(tile["col"], 127, "col"),
        integer(tile["row"], 31, "row"),
        stripped(event_number(device, module, event) for event in numbers),
        _selections(module, tile.get("ports", {})),
        **stated,
    )


def stripped(numbers: Iterable[int]) -> tuple[int, ...]:
    """Return event numbers without the zeros at the end."""
    kept = list(numbers)
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)


def event_number(device: str, module: str, event: Any) -> int:
    """Return the number of an event that is given by name or number.

    Raises:
        ConfigError: there is no such event; those that come close are named.
    """
    if isinstance(event, str):
        try:
            return events.number(device, module, event)
        except UsageError as error:
            raise ConfigError(error.message, error.hint) from None
    number = integer(event, 255, "event")
    if number not in events.names(device, module):
        raise ConfigError(f"{module} of {device} has no event {number}")
    return number


def _broadcast(module: str, event: Any) -> Any:
    """Return what a shim calls the broadcast that all units are to use; it has two kinds of them."""
    if module == "shim" and isinstance(event, str) and event.startswith("BROADCAST_") and event[10:].isdigit():
        return f"BROADCAST_A_{event[10:]}"
    return event


def _mode(module: str, mode: Any) -> int:
    words = {name: number for number, name in MODES.items() if number < 3}
    if isinstance(mode, str):
        if mode.lower() not in words:
            raise _unknown("mode", mode, words)
        number = words[mode.lower()]
    else:
        number = integer(mode, 2, "mode")
    if number and module != "core":
        raise ConfigError(f"only cores have other modes than event-time, and it is a {module}")
    return number


def _selections(module: str, given: Any) -> tuple[int | None, ...]:
    if not isinstance(given, dict):
        raise ConfigError("ports is no object", 'write "ports": {"0": "DMA:0 master"}')
    found: list[int | None] = [None] * SLOTS
    for key, port in given.items():
        if key not in tuple("01234567"):
            raise ConfigError(f"ports: there is no PORT event {key!r}", "they are 0 to 7")
        found[int(key)] = port_selection(module, port)
    return tuple(found)


def port_selection(module: str, port: Any) -> int:
    """Return the selection byte of a port that is given by name (``DMA:0 master``) or as that byte.

    Raises:
        ConfigError: the module has no such port.
    """
    known = registers.ports(module)
    if not known:
        raise ConfigError(f"{module} has no ports to watch", "PORT events are those of core, shim and memtile")
    if isinstance(port, str):
        if port not in known:
            raise _unknown("port", port, known)
        return known[port]
    return integer(port, 0x3F, "port")


def integer(value: Any, most: int, what: str, *, least: int = 0) -> int:
    """Return a whole number in bounds; ``ConfigError`` if it is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ConfigError(f"{what} {_shown(value)} is none of {least} to {most}")
    return value


def _hertz(value: Any) -> Fraction:
    text = str(value)
    try:
        # A huge exponent would take for ever as an exact ratio.
        if not isinstance(value, bool) and ("/" in text or 0 < float(text) < float("inf")) and len(text) < 60:
            return Fraction(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    raise ConfigError(f"frequency_hz {_shown(value)} is no frequency")


def _check_keys(content: Mapping[str, Any], known: Mapping[str, str], what: str) -> None:
    for key in content:
        if key not in known:
            hint = events.suggestion(key, known) or "there are " + ", ".join(known)
            raise ConfigError(f"{what} has no {_shown(key)}", hint)


def _unknown(what: str, value: Any, known: Iterable[str]) -> ConfigError:
    listed = list(known)
    hint = events.suggestion(value, listed) or "there are " + ", ".join(listed)
    return ConfigError(f"there is no {what} {_shown(value)}", hint)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def with_packet_ids(units: Iterable[Unit], first: int = 1) -> list[Unit]:
    """Give units that have none a packet id, in the order of column, row and module.

    Raises:
        ConfigError: an id is left for nobody; headers have 5 bits for it.
    """
    from dataclasses import replace

    listed = list(units)
    taken = {unit.packet_id for unit in listed}
    free = iter([number for number in range(first, 32) if number not in taken])
    given: dict[Place, Unit] = {}
    for unit in sorted(listed, key=lambda u: (u.col, u.row, events.MODULES.index(u.module))):
        number = unit.packet_id if unit.packet_id is not None else next(free, None)
        if number is None:
            raise ConfigError(f"{len(listed)} units need more packet ids than there are", "trace 31 units at most")
        given[unit.place] = replace(unit, packet_id=number)
    return [given[unit.place] for unit in listed]


def to_json(config: Config) -> dict[str, Any]:
    """Return the JSON value that says a configuration: the inverse of ``parse``."""
    content: dict[str, Any] = {"device": config.device}
    if config.frequency is not None:
        hertz = config.frequency
        content["frequency_hz"] = hertz.numerator if hertz.denominator == 1 else str(hertz)
    if config.colshift is not None:
        content["colshift"] = config.colshift
    if config.trigger is not None:
        content["trigger"] = config.trigger
    content["tiles"] = [_tile(config, unit) for unit in config.units.values()]
    return content


def _tile(config: Config, unit: Unit) -> dict[str, Any]:
    def event(number: int) -> str | int:
        return events.names(config.device, unit.module).get(number, number)

    tile: dict[str, Any] = {"type": unit.module, "col": unit.col, "row": unit.row}
    tile["events"] = [event(number) for number in unit.events]
    names = {selection: name for name, selection in registers.ports(unit.module).items()}
    ports = {str(slot): names.get(port, port) for slot, port in enumerate(unit.ports) if port is not None}
    if ports:
        tile["ports"] = ports
    if unit.mode is not None:
        tile["mode"] = MODES[unit.mode] if unit.mode < 3 else unit.mode
    for name in ("start", "stop", "reset"):
        value = getattr(unit, name)
        if value is not None:
            tile[name] = event(value)
    for name in ("packet_id", "packet_type"):
        value = getattr(unit, name)
        if value is not None:
            tile[name] = value
    return tile

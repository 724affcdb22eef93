"""Configurations as short JSON, the form that people write.

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

``col`` and ``row`` are those of the design; a packet's column is that plus ``column_shift``, since the runtime may
place a design at any free column. When it is left out, decoding finds the shift that fits the capture best.
``events`` are names or numbers, slot 0 first. Everything but ``tiles`` may be left out; what ``lanescope aie-config``
needs besides is in ``TILE_KEYS`` and ``KEYS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from lanescope.devices.aie.config.model import SLOTS, Config, Unit, strip_trailing_zeros, with_packet_ids
from lanescope.devices.aie.config.validators import (
    ConfigError,
    event_number,
    integer,
    port_selection,
    quote_value,
    unknown_name_error,
)
from lanescope.devices.aie.formats import events, registers
from lanescope.devices.aie.formats.layout import MODES

#: What a configuration may say, and what a tile in it may say.
KEYS = {
    "device": "aie2 or aie2p",
    "frequency_hz": "clock of the array",
    "column_shift": "column of packets minus column of the design",
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
    "combos": "combo events 0 to 2: two events with AND, AND_NOT, OR or OR_NOT between",
    "edges": "edge events 0 and 1: an event and RISING, FALLING or BOTH",
    "packet_type": "0 to 7; by convention 0 core, 1 mem, 2 shim, 3 memtile",
}


def parse(content: Any) -> Config:
    """Return the configuration that a JSON value says.

    Raises:
        ConfigError: it makes no sense.
    """
    if not isinstance(content, dict):
        raise ConfigError("invalid configuration: expected a JSON object", "write {...}")
    _check_keys(content, KEYS, "configuration")
    device = content.get("device", "aie2")
    if device not in events.DEVICES:
        raise unknown_name_error("device", device, events.DEVICES)
    tiles = content.get("tiles")
    if not isinstance(tiles, list):
        raise ConfigError("invalid tiles: expected a list", 'write "tiles": [...]')
    common = {name: content[name] for name in ("mode", "start", "stop") if name in content}
    units = {}
    for index, tile in enumerate(tiles):
        try:
            unit = _unit(device, tile, common)
        except ConfigError as error:
            raise ConfigError(f"tile {index + 1}: {error}", error.hint) from None
        if unit.place in units:
            raise ConfigError(f"tile {index + 1}: {unit.module} ({unit.col}, {unit.row}) is listed twice")
        units[unit.place] = unit
    first = content.get("first_packet_id")
    if first is not None:
        units = {unit.place: unit for unit in with_packet_ids(units.values(), integer(first, 31, "first_packet_id"))}
    shift, hertz, trigger = content.get("column_shift"), content.get("frequency_hz"), content.get("trigger")
    return Config(
        device,
        column_shift=None if shift is None else integer(shift, 127, "column_shift", least=-127),
        frequency=None if hertz is None else _hertz(hertz),
        units=units,
        trigger=None if trigger is None else integer(trigger, 127, "trigger"),
    )


def to_json(config: Config) -> dict[str, Any]:
    """Return the JSON value that says a configuration: the inverse of ``parse``."""
    content: dict[str, Any] = {"device": config.device}
    if config.frequency is not None:
        hertz = config.frequency
        content["frequency_hz"] = hertz.numerator if hertz.denominator == 1 else str(hertz)
    if config.column_shift is not None:
        content["column_shift"] = config.column_shift
    if config.trigger is not None:
        content["trigger"] = config.trigger
    content["tiles"] = [_tile(config, unit) for unit in config.units.values()]
    return content


def _unit(device: str, tile: Any, common: Mapping[str, Any]) -> Unit:
    if not isinstance(tile, dict):
        raise ConfigError("expected a JSON object", "write {...}")
    _check_keys(tile, TILE_KEYS, "tile")
    module = tile.get("type")
    if module not in events.MODULES:
        raise unknown_name_error("type", module, events.MODULES)
    numbers = tile.get("events", ())
    if not isinstance(numbers, list | tuple):
        raise ConfigError("invalid events: expected a list", 'write "events": [...]')
    if len(numbers) > SLOTS:
        raise ConfigError(f"too many events: {len(numbers)}, a unit has {SLOTS} slots", f"list {SLOTS} events or fewer")
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
            raise ConfigError(f"missing {name}")
    return Unit(
        module,
        integer(tile["col"], 127, "col"),
        integer(tile["row"], 31, "row"),
        strip_trailing_zeros(event_number(device, module, event) for event in numbers),
        _selections(module, tile.get("ports", {})),
        **stated,
        logic=_logic(device, module, tile),
    )


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
    if unit.logic:
        from lanescope.devices.aie.config import made_events

        combos, edges = made_events.watched(config, unit)
        made: dict[str, Mapping[int, tuple[str, ...]]] = {"combos": combos, "edges": edges}
        tile |= {key: {str(n): " ".join(each) for n, each in of.items()} for key, of in made.items() if of}
    for name in ("packet_id", "packet_type"):
        value = getattr(unit, name)
        if value is not None:
            tile[name] = value
    return tile


def _broadcast(module: str, event: Any) -> Any:
    """Return what a shim calls the broadcast that all units are to use; it has two kinds of them."""
    if module == "shim" and isinstance(event, str) and event.startswith("BROADCAST_") and event[10:].isdigit():
        return f"BROADCAST_A_{event[10:]}"
    return event


def _mode(module: str, mode: Any) -> int:
    words = {name: number for number, name in MODES.items() if number < 3}
    if isinstance(mode, str):
        if mode.lower() not in words:
            raise unknown_name_error("mode", mode, words)
        number = words[mode.lower()]
    else:
        number = integer(mode, 2, "mode")
    if number and module != "core":
        raise ConfigError(f"invalid mode {number}: {module} supports event-time (0) only")
    return number


def _selections(module: str, given: Any) -> tuple[int | None, ...]:
    if not isinstance(given, dict):
        raise ConfigError("invalid ports: expected a JSON object", 'write "ports": {"0": "DMA:0 master"}')
    found: list[int | None] = [None] * SLOTS
    for key, port in given.items():
        if key not in tuple("01234567"):
            raise ConfigError(f"ports: unknown PORT event {key!r}", "use numbers 0 to 7")
        found[int(key)] = port_selection(module, port)
    return tuple(found)


def _logic(device: str, module: str, tile: Mapping[str, Any]) -> dict[str, int]:
    """Return the registers of combo and edge events."""
    if not tile.get("combos") and not tile.get("edges"):
        return {}
    from lanescope.devices.aie.config import made_events

    combos = {}
    for number, (first, logic, second) in _made(tile, "combos", 3, 3).items():
        if logic not in registers.LOGIC:
            raise unknown_name_error("combo", logic, registers.LOGIC)
        combos[number] = event_number(device, module, first), logic, event_number(device, module, second)
    edges = {}
    for number, (event, trigger) in _made(tile, "edges", 2, 2).items():
        if trigger not in ("RISING", "FALLING", "BOTH"):
            raise unknown_name_error("edge", trigger, ("RISING", "FALLING", "BOTH"))
        edges[number] = event_number(device, module, event), trigger
    return made_events.registers_of(device, module, combos, edges)


def _made(tile: Mapping[str, Any], key: str, numbers: int, words: int) -> dict[int, list[str]]:
    given = tile.get(key) or {}
    known = [str(number) for number in range(numbers)]
    hint = 'write "combos": {"0": "LOCK_STALL AND_NOT ACTIVE"} or "edges": {"0": "LOCK_STALL RISING"}'
    if not isinstance(given, dict) or any(
        number not in known or not isinstance(text, str) or len(text.split()) != words for number, text in given.items()
    ):
        raise ConfigError(f"invalid {key} {quote_value(given)}", hint)
    return {int(number): text.split() for number, text in given.items()}


def _hertz(value: Any) -> Fraction:
    text = str(value)
    try:
        # A huge exponent would take for ever as an exact ratio.
        if not isinstance(value, bool) and ("/" in text or 0 < float(text) < float("inf")) and len(text) < 60:
            return Fraction(text)
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    raise ConfigError(f"invalid frequency_hz {quote_value(value)}: expected Hz, e.g. 1.25e9")


def _check_keys(content: Mapping[str, Any], known: Mapping[str, str], what: str) -> None:
    for key in content:
        if key not in known:
            hint = events.suggestion(key, known) or "use one of " + ", ".join(known)
            raise ConfigError(f"unknown {what} key {quote_value(key)}", hint)

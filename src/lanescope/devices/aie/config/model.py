"""A configuration: the trace units of a design, and what each of them records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from lanescope.declaration import frozen_class, replace, value_names
from lanescope.devices.aie.config.validators import ConfigError
from lanescope.devices.aie.formats import events

if TYPE_CHECKING:
    from fractions import Fraction

SLOTS = events.SLOTS
Place = tuple[str, int, int]
#: Packet type by kind of module, as is the convention.
PACKET_TYPES = {module: number for number, module in enumerate(events.MODULES)}
#: Fields of a unit by which its packets are routed: they label nothing.
ROUTING = ("packet_id", "packet_type")
_NONE: Mapping[Any, Any] = MappingProxyType({})


@frozen_class
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
        logic: the registers that make combo and edge events: name, of ``registers.LOGIC_NAMES`` -> value.
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
    logic: Mapping[str, int] = _NONE

    @property
    def place(self) -> Place:
        """Module, column and row."""
        return self.module, self.col, self.row

    @property
    def slots(self) -> tuple[int, ...]:
        """Event numbers of all 8 slots."""
        return (self.events + (0,) * SLOTS)[:SLOTS]


@frozen_class
class Run:
    """One run of a design, and where in the dump its packets lie.

    Attributes:
        design: ``device:sequence`` that ran; "" if the text does not name it.
        offset: byte offset in the dump.
        size: bytes.
        known: what that sequence sets up.
        follows: whether the run before it was of the same device, so that nothing was configured between both.
    """

    design: str
    offset: int
    size: int
    known: Config
    follows: bool = False


@frozen_class
class Config:
    """A configuration.

    Attributes:
        device: ``aie2`` or ``aie2p``.
        column_shift: column of a packet minus column of the design; None: not stated.
        frequency: clock of the array in Hz, None when it is unknown.
        units: the trace units by module, column of the design and row.
        trigger: column of the shim tile whose user events are broadcast as start and stop, None if not stated.
        contradictions: units that are configured in several ways, and what differs. Such a unit is in ``units`` only
            where nothing but its packet id or type differs, which are None then.
        unread: statements of the text that were passed over though they concern the trace, and how many of each.
        other_operations: what an instruction stream does besides tracing, and how often.
        runs: the runs that share a dump, in its order; empty: it is not divided.
    """

    device: str = "aie2"
    column_shift: int | None = None
    frequency: Fraction | None = None
    units: Mapping[Place, Unit] = _NONE
    trigger: int | None = None
    contradictions: Mapping[Place, str] = _NONE
    unread: Mapping[str, int] = _NONE
    other_operations: Mapping[str, int] = _NONE
    runs: tuple[Run, ...] = ()

    @property
    def reset_apart(self) -> list[Unit]:
        """Units whose timer is reset by another event than the one that starts them: they count from something else."""
        return [unit for unit in self.units.values() if unit.start and unit.reset not in (None, unit.start)]

    @property
    def places(self) -> Set[Place]:
        """All units that are configured, whether or not it is settled how."""
        return self.units.keys() | self.contradictions.keys()

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
        return tuple(self.label(unit, number) if number else "" for number in unit.slots)

    def label(self, unit: Unit, number: int) -> str:
        """Return the name of an event that a unit watches, with its port; or what it means, if it is made of others."""
        name = self.event_name(unit.module, number)
        if unit.logic:
            from lanescope.devices.aie.config import made_events

            name = made_events.meaning(self, unit, name) or name
        selection = self.port(unit, number)
        return name if selection is None else f"{name} ({self.port_name(unit.module, selection)})"

    @staticmethod
    def port_name(module: str, selection: int) -> str:
        """Return the name of the port that a selection byte means."""
        # Registers are dear to load, and most captures have no configuration.
        from lanescope.devices.aie.formats import registers

        return registers.port_name(module, selection)

    def event_name(self, module: str, number: int) -> str:
        """Return the name of an event, ``event 54`` if it has none."""
        return events.names(self.device, module).get(number, f"event {number}")

    def port(self, unit: Unit, number: int) -> int | None:
        """Return the selection byte of the port that an event of a unit watches, None if it is not a PORT event."""
        slot = events.port_slot(self.event_name(unit.module, number))
        return None if slot is None else unit.ports[slot]


def config_of(device: str, units: Iterable[Unit], **more: Any) -> Config:
    """Return a configuration of units; the last of those at one place stands."""
    return Config(device, units={unit.place: unit for unit in units}, **more)


def agreed(parts: Mapping[str, Config]) -> Config:
    """Return what the designs and sequences of one text agree on.

    A dump does not tell which of them a packet is from. A unit that they configure alike, or that only one of them
    configures, is settled; the others have a contradiction.

    Args:
        parts: configuration by the name of design and sequence, at least one, all of one device.
    """
    if len(parts) == 1:
        return next(iter(parts.values()))
    variants: dict[Place, dict[str, Unit]] = {}
    contradictions: dict[Place, str] = {}
    refused: set[Place] = set()
    for name, part in parts.items():
        contradictions |= part.contradictions
        refused |= part.contradictions.keys() - part.units.keys()
        for place, unit in part.units.items():
            variants.setdefault(place, {})[name] = unit
    units: dict[Place, Unit] = {}
    for place, told in variants.items():
        first, unit = next(iter(told.items()))
        differing = [
            of for of in value_names(Unit) if any(getattr(other, of) != getattr(unit, of) for other in told.values())
        ]
        if differing:
            other = next(name for name, made in told.items() if made != unit)
            contradictions.setdefault(place, f"{first} and {other} differ in {', '.join(differing)}")
        if place not in refused and set(differing) <= set(ROUTING):
            unstated: dict[str, Any] = dict.fromkeys(differing)
            units[place] = replace(unit, **unstated)
    triggers = {part.trigger for part in parts.values()} - {None}
    unread = sum((Counter(part.unread) for part in parts.values()), Counter())
    if len(triggers) > 1:
        unread["broadcasts of start and stop by several shim tiles"] += len(triggers)
    return replace(
        next(iter(parts.values())),
        units=units,
        trigger=triggers.pop() if len(triggers) == 1 else None,
        contradictions=contradictions,
        unread=unread,
    )


def with_packet_ids(units: Iterable[Unit], first: int = 1) -> list[Unit]:
    """Assign packet ids to the units that have none, in the order of column, row and module.

    Raises:
        ConfigError: all ids are in use; headers have 5 bits for them.
    """
    listed = list(units)
    taken = {unit.packet_id for unit in listed}
    free = iter([number for number in range(first, 32) if number not in taken])
    given: dict[Place, Unit] = {}
    for unit in sorted(listed, key=lambda u: (u.col, u.row, events.MODULES.index(u.module))):
        number = unit.packet_id if unit.packet_id is not None else next(free, None)
        if number is None:
            raise ConfigError(f"too many units for packet ids: {len(listed)}", "trace at most 31 units")
        given[unit.place] = replace(unit, packet_id=number)
    return [given[unit.place] for unit in listed]


def strip_trailing_zeros(numbers: Iterable[int]) -> tuple[int, ...]:
    """Return event numbers without the zeros at the end."""
    kept = list(numbers)
    while kept and not kept[-1]:
        kept.pop()
    return tuple(kept)

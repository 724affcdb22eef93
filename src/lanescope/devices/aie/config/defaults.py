"""What a configuration leaves open, chosen as mlir-aie chooses it.

What starts and stops the units is broadcast by a shim tile (the *trigger*), from user events that the host generates
there: event 1 at the beginning, event 0 after its last wait.
"""

from __future__ import annotations

from lanescope.declaration import replace
from lanescope.devices.aie.config.model import PACKET_TYPES, Config, Unit, with_packet_ids
from lanescope.devices.aie.config.register_writes import settled
from lanescope.devices.aie.config.validators import ConfigError
from lanescope.devices.aie.formats import events

#: Broadcast channels that mlir-aie uses.
_START_CHANNEL, _STOP_CHANNEL = 15, 14


def apply_defaults(known: Config) -> Config:
    """Return a configuration in which all units say everything, as mlir-aie would choose it.

    Units start on broadcast 15 and stop on 14 (the trigger's own shim: on the user events behind them), reset their
    timers when they start, and get packet ids in the order of columns and rows, and the conventional packet types.

    Raises:
        ConfigError: there are more units than packet ids, or a unit is configured in several ways.
    """
    for (module, col, row), what in known.contradictions.items():
        raise ConfigError(
            f"{module} ({col}, {row}) has contradictory configurations: {what}",
            "pass one design with one runtime sequence",
        )
    units = []
    for unit in with_packet_ids(known.units.values()):
        start = _start(known, unit, _START_CHANNEL, "USER_EVENT_1") if unit.start is None else unit.start
        stop = _start(known, unit, _STOP_CHANNEL, "USER_EVENT_0") if unit.stop is None else unit.stop
        made = replace(
            unit,
            start=start,
            stop=stop,
            reset=start if unit.reset is None else unit.reset,
            mode=unit.mode or 0,
            packet_type=PACKET_TYPES[unit.module] if unit.packet_type is None else unit.packet_type,
            ports=settled(known, unit, unit.ports),
        )
        units.append(made)
    return replace(known, units={unit.place: unit for unit in units})


def _start(known: Config, unit: Unit, channel: int, user_event: str) -> int:
    if unit.module == "shim":
        name = user_event if unit.col == known.trigger else f"BROADCAST_A_{channel}"
    else:
        name = f"BROADCAST_{channel}"
    return events.number(known.device, unit.module, name)

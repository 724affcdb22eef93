"""What a trace unit was told to record: a small JSON file beside the capture.

::

    {
      "device": "aie2",
      "frequency_hz": 1000000000,
      "colshift": 1,
      "tiles": [
        {"type": "core", "col": 0, "row": 2, "events": ["INSTR_EVENT_0", "INSTR_EVENT_1", 37]}
      ]
    }

``col`` and ``row`` are those of the design; a packet's column is that plus ``colshift``, since the runtime may place a
design at any free column. When it is left out, decoding finds the shift that fits the capture best.
``events`` are names or numbers, slot 0 first. Everything but ``tiles`` may be left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from lanescope.devices.aie import events
from lanescope.errors import UsageError

SLOTS = 8


@dataclass(frozen=True, slots=True)
class Config:
    """A configuration.

    Attributes:
        device: ``aie2`` or ``aie2p``.
        colshift: column of a packet minus column of the design; None: not stated.
        frequency: clock of the array in Hz, None when it is unknown.
        slots: (module, column of the design, row) -> event numbers, slot 0 first.
    """

    device: str = "aie2"
    colshift: int | None = None
    frequency: Fraction | None = None
    slots: Mapping[tuple[str, int, int], tuple[int, ...]] = field(default_factory=dict)

    def slot_names(self, module: str, col: int, row: int) -> tuple[str, ...]:
        """Return the names of the 8 slots of a module, "" where none is known; ``col`` is the design's."""
        numbers = self.slots.get((module, col, row), ())
        known = events.names(self.device, module)
        named = tuple(known.get(number, f"event {number}") if number else "" for number in numbers)
        return (named + ("",) * SLOTS)[:SLOTS]


def load(path: Path) -> Config:
    """Read a configuration file.

    Raises:
        UsageError: it cannot be read, or says something that makes no sense; the message names the place.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"configuration {path} cannot be read: {error}", hint="it is a JSON object") from None
    try:
        return _config(content)
    except (KeyError, TypeError, ValueError, AttributeError, ZeroDivisionError) as error:
        raise UsageError(f"configuration {path}: {error!r}", hint="docs: formats, aie, configuration") from None


def _config(content: Mapping[str, Any]) -> Config:
    device = content.get("device", "aie2")
    colshift = content.get("colshift")
    slots = {}
    for tile in content["tiles"]:
        module = tile["type"]
        events.names(device, module)  # refuses unknown devices and modules
        numbers = tuple(_number(device, module, event) for event in tile["events"])
        if len(numbers) > SLOTS:
            raise ValueError(
                f"{module} ({tile['col']}, {tile['row']}) has {len(numbers)} events, a unit has {SLOTS} slots"
            )
        slots[module, int(tile["col"]), int(tile["row"])] = numbers
    hertz = content.get("frequency_hz")
    frequency = None if hertz is None else Fraction(str(hertz))
    return Config(device, None if colshift is None else int(colshift), frequency, slots)


def _number(device: str, module: str, event: str | int) -> int:
    if isinstance(event, str):
        return events.number(device, module, event)
    if event not in events.names(device, module):
        raise ValueError(f"{module} has no event {event}")
    return event

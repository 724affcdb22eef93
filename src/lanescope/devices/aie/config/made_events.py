"""Events that a module makes of others: combo events of two or four, edge events of one.

Three registers of a module say which. A combo event joins two events, combo event 2 joins combo events 0 and 1; combo
event 3 is a state machine without a setting. Source: Xilinx/aie-rt and Xilinx/mlir-aie, which agree on the codes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from lanescope.devices.aie.formats import events, registers
from lanescope.devices.aie.formats.registers import EDGE_CONTROL, LOGIC, LOGIC_CONTROL, LOGIC_INPUTS

if TYPE_CHECKING:
    from lanescope.devices.aie.config.model import Config, Unit

_NAME = re.compile(r"(COMBO|EDGE_DETECTION)_EVENT_([0-3])$")
_TRIGGERS = {1: "RISING", 2: "FALLING", 3: "BOTH"}
_EDGES = {1: "rising", 2: "falling", 3: "changing"}


def fields(module: str, said: Mapping[str, int]) -> dict[str, int]:
    """Return the fields of the registers of a unit: name of register -> value in ``said``."""
    found: dict[str, int] = {}
    for name, value in said.items():
        register = registers.register(module, name)
        if register is not None:
            found |= register.record.decode(value)
    return found


def combo(unit: Unit, number: int) -> tuple[int, str, int] | None:
    """Return the event numbers that combo event 0 or 1 joins, and how; None if that is not stated."""
    if number > 1 or LOGIC_INPUTS not in unit.logic:
        return None
    known = fields(unit.module, unit.logic)
    first, second = (known[f"input_{letter}"] for letter in ("ab", "cd")[number])
    return first, LOGIC[known.get(f"logic{number}", 0)], second


def edge(unit: Unit, number: int) -> tuple[int, str] | None:
    """Return the event whose edges make an edge event, and which ones; None if that is not stated."""
    known = fields(unit.module, unit.logic)
    trigger = known.get(f"rising{number}", 0) | known.get(f"falling{number}", 0) << 1
    return (known[f"edge{number}"], _TRIGGERS[trigger]) if trigger else None


def combo2(unit: Unit) -> str | None:
    """Return how combo event 2 joins combo events 0 and 1; None if that is not stated."""
    known = fields(unit.module, unit.logic)
    return LOGIC[known["logic2"]] if LOGIC_INPUTS in unit.logic and "logic2" in known else None


def meaning(known: Config, unit: Unit, name: str) -> str:
    """Return what an event means that a module makes of others, such as ``LOCK_STALL AND NOT PORT_RUNNING_0``.

    Args:
        known: the configuration.
        unit: the unit that watches it.
        name: of the event.

    Returns:
        "" for other events, and where the registers are not stated.
    """
    match = _NAME.match(name)
    if match is None or not unit.logic:
        return ""
    number = int(match[2])
    if match[1] == "EDGE_DETECTION":
        found = edge(unit, number) if number < 2 else None
        return "" if found is None else f"{known.label(unit, found[0])} {_EDGES[_trigger_code(found[1])]}"
    if number == 2:
        logic, parts = combo2(unit), [meaning(known, unit, f"COMBO_EVENT_{i}") for i in range(2)]
        return f"({parts[0]}) {_words(logic)} ({parts[1]})" if logic and all(parts) else ""
    joined = combo(unit, number)
    if joined is None:
        return ""
    return f"{known.label(unit, joined[0])} {_words(joined[1])} {known.label(unit, joined[2])}"


def _words(logic: str) -> str:
    return logic.replace("_", " ")


def _trigger_code(word: str) -> int:
    return next(code for code, name in _TRIGGERS.items() if name == word)


def registers_of(
    device: str, module: str, combos: Mapping[int, tuple[int, str, int]], edges: Mapping[int, tuple[int, str]]
) -> dict[str, int]:
    """Return the registers that make these events: name -> value.

    Args:
        device: ``aie2`` or ``aie2p``.
        module: kind of module.
        combos: number -> event, how (of ``LOGIC``), event; those of combo event 2 are combo events 0 and 1.
        edges: number -> event, trigger (``RISING``, ``FALLING``, ``BOTH``).
    """
    said: dict[str, dict[str, int]] = {}
    for number, (first, logic, second) in combos.items():
        if number < 2:
            letters = ("ab", "cd")[number]
            inputs = said.setdefault(LOGIC_INPUTS, {})
            inputs |= {f"input_{letters[0]}": first, f"input_{letters[1]}": second}
        said.setdefault(LOGIC_CONTROL, {})[f"logic{number}"] = LOGIC.index(logic)
    for number, (event, trigger) in edges.items():
        code = _trigger_code(trigger)
        of_edges = said.setdefault(EDGE_CONTROL, {})
        of_edges |= {f"edge{number}": event, f"rising{number}": code & 1, f"falling{number}": code >> 1}
    made = {}
    for name, values in said.items():
        register = registers.register(module, name)
        if register is not None:
            made[name] = register.record.encode(values)
    return made


def watched(known: Config, unit: Unit) -> tuple[dict[int, tuple[str, str, str]], dict[int, tuple[str, str]]]:
    """Return the combo and edge events of a unit by number, with the names of their events; see ``registers_of``."""

    def name(number: int) -> str:
        return events.names(known.device, unit.module).get(number, f"event {number}")

    combos = {}
    for number in range(2):
        joined = combo(unit, number)
        if joined is not None and (joined[0] or joined[2]):
            combos[number] = name(joined[0]), joined[1], name(joined[2])
    edges = {}
    for number in range(2):
        found = edge(unit, number)
        if found is not None:
            edges[number] = name(found[0]), found[1]
    logic = combo2(unit)
    wants = {n for n in unit.events if name(n) == "COMBO_EVENT_2"}
    if logic is not None and (wants or logic != LOGIC[0]):
        combos[2] = "COMBO_EVENT_0", logic, "COMBO_EVENT_1"
    return combos, edges

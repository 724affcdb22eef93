"""Registers of trace units, as data: where they lie in a tile, what their bits mean, which ports an event may watch.

A tile's registers share 20 bits of address; ``ROW_SHIFT`` and ``COLUMN_SHIFT`` put the tile above them. Names are those
of AMD's register reference, which MLIR texts use as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

from lanescope.declaration import frozen_class
from lanescope.devices.aie.formats import control_packets
from lanescope.devices.aie.formats.events import SLOTS
from lanescope.devices.aie.formats.layout import HEADER, MODE0, MODES, PACKET
from lanescope.wire import Field, Record

ROW_SHIFT, COLUMN_SHIFT = 20, 25
OFFSET_MASK = (1 << ROW_SHIFT) - 1
MASTER = 0x20

_AM025 = "AMD AM025 (register reference); Xilinx/mlir-aie, python/utils/trace"
_AIE_RT = "Xilinx/aie-rt, AIE2 headers; not checked for AIE2P"
_PORTS = "Xilinx/mlir-aie, lib/Dialect/AIE/IR/AIETargetModel.cpp"


def _record(name: str, *fields: Field, doc: str, source: str = _AM025) -> Record:
    """Return a register of 32 bits; bits that no field names are reserved ones."""
    used = sorted((field.lsb, field.lsb + field.width) for field in fields)
    holes = []
    at = 0
    for begin, end in (*used, (32, 32)):
        if begin > at:
            holes.append(Field(f"reserved_{at}", lsb=at, width=begin - at, doc="Reserved.", default=0))
        at = end
    return Record(f"aie.{name}", bits=32, fields=(*fields, *holes), doc=doc, source=source)


def _control0(name: str, width: int, *, has_mode: bool) -> Record:
    mode = (Field("mode", lsb=0, width=2, doc="Trace mode.", values=MODES, default=0),) if has_mode else ()
    return _record(
        name,
        Field("stop", lsb=24, width=width, doc="Event that stops the trace."),
        Field("start", lsb=16, width=width, doc="Event that starts the trace."),
        *mode,
        doc="When a unit records, and how.",
    )


def _events(name: str, first: int) -> Record:
    return _record(
        name,
        *(
            Field(f"event{first + i}", lsb=8 * i, width=8, doc=f"Event that slot {first + i} watches.")
            for i in range(4)
        ),
        doc=f"What slots {first} to {first + 3} watch. Core and shim events need 7 bits, those of memory tiles 8.",
    )


def _timer(name: str, width: int) -> Record:
    return _record(
        name,
        Field("reset", lsb=8, width=width, doc="Event that sets the module's timer to 0.", default=0),
        doc="What resets the timer that Start frames show.",
    )


def _ports(name: str, first: int) -> Record:
    fields = []
    for i in range(4):
        fields.append(Field(f"port{first + i}_id", lsb=8 * i, width=5, doc="Number of the port among its kind."))
        fields.append(
            Field(f"port{first + i}_master", lsb=8 * i + 5, width=1, doc="Its kind.", values={0: "slave", 1: "master"})
        )
    return _record(name, *fields, doc=f"Which ports events PORT_..._{first} to {first + 3} watch.")


def _logic_inputs(name: str, width: int) -> Record:
    return _record(
        name,
        *(
            Field(f"input_{letter}", lsb=8 * i, width=width, doc=f"Event that combo event {i // 2} joins.", default=0)
            for i, letter in enumerate("abcd")
        ),
        doc="What combo events 0 and 1 join. Combo event 2 joins these two.",
        source=_AIE_RT,
    )


def _edges(name: str, width: int) -> Record:
    fields = []
    for i, lsb in enumerate((0, 16)):
        fields += [
            Field(f"edge{i}", lsb=lsb, width=width, doc=f"Event whose edges make edge event {i}.", default=0),
            Field(f"rising{i}", lsb=9 + lsb, width=1, doc="Whether its begin does.", default=0),
            Field(f"falling{i}", lsb=10 + lsb, width=1, doc="Whether its end does.", default=0),
        ]
    return _record(name, *fields, doc="What edge events are, which last one cycle.", source=_AIE_RT)


def _one_event(name: str, field: str, doc: str) -> Record:
    return _record(name, Field(field, lsb=0, width=7, doc=doc), doc=doc)


CONTROL0 = {
    "core": _control0("core.trace_control0", 7, has_mode=True),
    "module": _control0("trace_control0", 7, has_mode=False),
    "memtile": _control0("memtile.trace_control0", 8, has_mode=False),
}
CONTROL1 = _record(
    "trace_control1",
    Field("packet_type", lsb=12, width=3, doc="Packet type; by convention it tells the kind of module."),
    Field("packet_id", lsb=0, width=5, doc="Packet id, which routes the packets."),
    doc="What the headers of a unit's packets say.",
)
STATUS = _record(
    "trace_status",
    Field("state", lsb=8, width=2, doc="What the unit does.", values={0: "idle", 1: "running", 3: "overrun"}),
    Field("mode", lsb=0, width=3, doc="Trace mode."),
    doc="Read only.",
)
EVENT0, EVENT1 = _events("trace_event0", 0), _events("trace_event1", 4)
TIMER = {"module": _timer("timer_control", 7), "memtile": _timer("memtile.timer_control", 8)}
PORTS0, PORTS1 = _ports("port_selection0", 0), _ports("port_selection1", 4)
GENERATE = _one_event("event_generate", "event", "Event that writing this register generates.")
BROADCAST = _one_event("event_broadcast_a", "event", "Event that the channel broadcasts.")

#: How a combo event joins two others, by code; names of the registers that say so.
LOGIC = ("AND", "AND_NOT", "OR", "OR_NOT")
LOGIC_INPUTS, LOGIC_CONTROL, EDGE_CONTROL = "Combo_event_inputs", "Combo_event_control", "Edge_Detection_event_control"
LOGIC_NAMES = (LOGIC_INPUTS, LOGIC_CONTROL, EDGE_CONTROL)
INPUTS = {"module": _logic_inputs("combo_event_inputs", 7), "memtile": _logic_inputs("memtile.combo_event_inputs", 8)}
JOINS = _record(
    "combo_event_control",
    *(
        Field(
            f"logic{i}",
            lsb=8 * i,
            width=2,
            doc=f"How combo event {i} joins two others.",
            values=dict(enumerate(LOGIC)),
            default=0,
        )
        for i in range(3)
    ),
    doc="How combo events join others.",
    source=_AIE_RT,
)
EDGES = {"module": _edges("edge_event_control", 7), "memtile": _edges("memtile.edge_event_control", 8)}

#: For the reference pages.
RECORDS = (
    *CONTROL0.values(),
    CONTROL1,
    STATUS,
    EVENT0,
    EVENT1,
    *TIMER.values(),
    PORTS0,
    PORTS1,
    GENERATE,
    BROADCAST,
    *INPUTS.values(),
    JOINS,
    *EDGES.values(),
)
LAYOUTS = (HEADER, PACKET, MODE0, *RECORDS, control_packets.ROUTE, control_packets.CONTROL)


@frozen_class
class Register:
    """One register of one kind of module.

    Attributes:
        name: AMD's name.
        module: kind of module.
        offset: byte offset in the tile.
        record: its bits.
        fields: AMD's names of fields, where MLIR texts use them -> ours.
    """

    name: str
    module: str
    offset: int
    record: Record
    fields: Mapping[str, str]


_FIELDS = {
    "Trace_Control0": {"Trace_Start_Event": "start", "Trace_Stop_Event": "stop", "Mode": "mode"},
    "Trace_Control1": {"ID": "packet_id", "Packet_Type": "packet_type"},
    "Trace_Event0": {f"Trace_Event{i}": f"event{i}" for i in range(4)},
    "Trace_Event1": {f"Trace_Event{i}": f"event{i}" for i in range(4, SLOTS)},
    "Timer_Control": {"Reset_Event": "reset"},
    LOGIC_INPUTS: {f"event{letter.upper()}": f"input_{letter}" for letter in "abcd"},
    LOGIC_CONTROL: {f"combo{i}": f"logic{i}" for i in range(3)},
    EDGE_CONTROL: {
        name.format(i): f"{field}{i}"
        for i in range(2)
        for name, field in (
            ("Edge_Detection_Event_{}", "edge"),
            ("Edge_Detection_{}_Trigger_Rising", "rising"),
            ("Edge_Detection_{}_Trigger_Falling", "falling"),
        )
    },
}
for _i in range(SLOTS):
    _FIELDS.setdefault(f"Stream_Switch_Event_Port_Selection_{_i // 4}", {}).update(
        {f"Port_{_i}_ID": f"port{_i}_id", f"Port_{_i}_Master_Slave": f"port{_i}_master"}
    )

CONTROL_NAMES = ("Trace_Control0", "Trace_Control1", "Trace_Event0", "Trace_Event1")
PORT_NAMES = ("Stream_Switch_Event_Port_Selection_0", "Stream_Switch_Event_Port_Selection_1")
#: Broadcast channels of a shim tile.
CHANNELS = 16


def _registers() -> Iterator[Register]:
    for module, base in (("core", 0x34000), ("mem", 0x14000), ("shim", 0x34000), ("memtile", 0x94000)):
        control0 = CONTROL0.get(module, CONTROL0["module"])
        listed = [
            ("Timer_Control", base, TIMER.get(module, TIMER["module"])),
            ("Trace_Control0", base + 0xD0, control0),
            ("Trace_Control1", base + 0xD4, CONTROL1),
            ("Trace_Status", base + 0xD8, STATUS),
            ("Trace_Event0", base + 0xE0, EVENT0),
            ("Trace_Event1", base + 0xE4, EVENT1),
            (LOGIC_INPUTS, base + 0x400, INPUTS.get(module, INPUTS["module"])),
            (LOGIC_CONTROL, base + 0x404, JOINS),
            (EDGE_CONTROL, base + 0x408, EDGES.get(module, EDGES["module"])),
        ]
        if module != "mem":  # a core's memory has no stream switch
            first = 0xB0F00 if module == "memtile" else 0x3FF00
            listed += [(PORT_NAMES[0], first, PORTS0), (PORT_NAMES[1], first + 4, PORTS1)]
        if module in ("core", "shim"):
            listed.append(("Event_Generate", base + 0x8, GENERATE))
        if module == "shim":
            listed += [(f"Event_Broadcast{k}_A", base + 0x10 + 4 * k, BROADCAST) for k in range(CHANNELS)]
        for name, offset, record in listed:
            yield Register(name, module, offset, record, _FIELDS.get(name, {}))


REGISTERS = tuple(_registers())
#: What is not read of a register, by byte offset: inputs that are combo events. mlir-aie writes them for combo event 2,
#: in place of those of combo event 0, whose meaning is lost.
UNREAD = {base + 0x400: f"{LOGIC_INPUTS} of combo events" for base in (0x34000, 0x14000, 0x94000)}
_BY_NAME = {(register.module, register.name): register for register in REGISTERS}
_BY_OFFSET = {(register.module == "shim", register.offset): register for register in REGISTERS}


def register(module: str, name: str) -> Register | None:
    """Return a register by the kind of module and its name, None if there is none."""
    return _BY_NAME.get((module, name))


def at(row: int, offset: int) -> Register | None:
    """Return the register at a byte offset of a tile in some row, None if it is none of a trace.

    Cores and shims have theirs at the same place; shims are those of row 0.
    """
    return _BY_OFFSET.get((row == 0, offset))


# --- ports --------------------------------------------------------------------------------------------------------

#: Bundles of ports in order of their numbers, with how many each has: (module, is it a master) -> ...
_BUNDLES: dict[tuple[str, bool], tuple[tuple[str, int], ...]] = {
    ("core", False): (
        ("Core", 1), ("DMA", 2), ("TileControl", 1), ("FIFO", 1), ("South", 6), ("West", 4), ("North", 4), ("East", 4),
        ("Trace", 2),
    ),
    ("core", True): (
        ("Core", 1), ("DMA", 2), ("TileControl", 1), ("FIFO", 1), ("South", 4), ("West", 4), ("North", 6), ("East", 4),
    ),
    ("memtile", False): (("DMA", 6), ("TileControl", 1), ("South", 6), ("North", 4), ("Trace", 1)),
    ("memtile", True): (("DMA", 6), ("TileControl", 1), ("South", 4), ("North", 6)),
    ("shim", False): (
        ("TileControl", 1), ("FIFO", 1), ("South", 8), ("West", 4), ("North", 4), ("East", 4), ("Trace", 2),
    ),
    ("shim", True): (("TileControl", 1), ("FIFO", 1), ("South", 6), ("West", 4), ("North", 6), ("East", 4)),
}  # fmt: skip


@cache
def ports(module: str) -> dict[str, int]:
    """Return what can be watched in a module's stream switch: ``DMA:0 master`` -> selection byte.

    The master port ``DMA:0`` feeds S2MM channel 0, the slave port of that name takes from MM2S channel 0.
    """
    found = {}
    for is_master in (True, False):
        number = 0
        for bundle, count in _BUNDLES.get((module, is_master), ()):
            for channel in range(count):
                kind = "master" if is_master else "slave"
                found[f"{bundle}:{channel} {kind}"] = number | (MASTER if is_master else 0)
                number += 1
    return found


@cache
def _port_names(module: str) -> dict[int, str]:
    return {selection: name for name, selection in ports(module).items()}


def port_name(module: str, selection: int) -> str:
    """Return the name of a port from its selection byte, such as ``DMA:0 master``; ``port 30 slave`` if unknown."""
    kind = "master" if selection & MASTER else "slave"
    return _port_names(module).get(selection & 0x3F, f"port {selection & 0x1F} {kind}")

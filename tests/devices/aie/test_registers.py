"""Register layout, checked against the writes of mlir-aie and mlir-air."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.devices.aie.formats import events, registers
from lanescope.wire import Record

#: (row, offset, value) of published designs -> register and what it says.
WRITES = [
    (2, 213200, 2038038528, "Trace_Control0", {"start": 122, "stop": 121, "mode": 0}),
    (2, 213204, 1, "Trace_Control1", {"packet_type": 0, "packet_id": 1}),
    (2, 213216, 2236709, "Trace_Event0", {"event0": 37, "event1": 33, "event2": 34, "event3": 0}),
    (2, 213220, 741165903, "Trace_Event1", {"event4": 79, "event5": 75, "event6": 45, "event7": 44}),
    (2, 212992, 31232, "Timer_Control", {"reset": 122}),
    (2, 261888, 289, "Stream_Switch_Event_Port_Selection_0", {"port0_id": 1, "port0_master": 1, "port1_id": 1}),
    (1, 606208, 40192, "Timer_Control", {"reset": 157}),
    (1, 606416, 10289152, "Trace_Control0", {"start": 157, "stop": 0}),
    (1, 606420, 12288, "Trace_Control1", {"packet_type": 3, "packet_id": 0}),
    (1, 606436, 1549821032, "Trace_Event1", {"event4": 104, "event5": 100, "event6": 96, "event7": 92}),
    (0, 212992, 32512, "Timer_Control", {"reset": 127}),
    (0, 213068, 127, "Event_Broadcast15_A", {"event": 127}),
    (0, 213000, 127, "Event_Generate", {"event": 127}),
]


@pytest.mark.parametrize(("row", "offset", "value", "name", "fields"), WRITES)
def test_published_writes_are_read(row, offset, value, name, fields):
    register = registers.at(row, offset)
    assert register.name == name
    assert register.module == {0: "shim", 1: "memtile"}.get(row, "core")
    decoded = register.record.decode(value)
    assert {key: decoded[key] for key in fields} == fields
    assert not any(number for key, number in decoded.items() if key.startswith("reserved"))
    assert register.record.encode(decoded) == value


@given(st.sampled_from(registers.REGISTERS), st.integers(0, 2**32 - 1))
def test_every_bit_of_a_register_is_kept(register, value):
    assert isinstance(register.record, Record)
    assert register.record.encode(register.record.decode(value)) == value


def test_no_two_registers_share_a_place_or_a_name():
    places = {(r.module, r.offset) for r in registers.REGISTERS}
    names = {(r.module, r.name) for r in registers.REGISTERS}
    assert len(places) == len(names) == len(registers.REGISTERS)
    # An offset alone does not tell a core from a shim: the row does.
    assert registers.at(0, 0x340D0).module == "shim"
    assert registers.at(5, 0x340D0).module == "core"
    assert registers.at(2, 0x140D0).module == "mem"
    assert registers.at(2, 0x14) is None


@pytest.mark.parametrize(
    ("module", "port", "selection"),
    [
        # mlir-air's designs watch these, and the events' names in their traces say the same.
        ("core", "DMA:0 master", 0x21),
        ("core", "DMA:0 slave", 0x01),
        ("memtile", "DMA:1 master", 0x21),
        ("memtile", "DMA:0 slave", 0x00),
        ("core", "Trace:1 slave", 24),
        ("shim", "North:0 master", 0x2C),
    ],
)
def test_ports(module, port, selection):
    assert registers.ports(module)[port] == selection
    assert registers.port_name(module, selection) == port


def test_ports_have_one_number_each():
    for module in events.MODULES:
        known = registers.ports(module)
        assert len(set(known.values())) == len(known)
    assert not registers.ports("mem")
    assert registers.port_name("core", 0x1F) == "port 31 slave"


def test_levels_and_pulses():
    kinds = {name: events.kind(name) for module in events.MODULES for name in events.names("aie2", module).values()}
    assert {kinds[n] for n in ("LOCK_STALL", "ACTIVE", "PORT_RUNNING_3", "DMA_S2MM_0_STALLED_LOCK")} == {"level"}
    assert {kinds[n] for n in ("DMA_MM2S_SEL1_STREAM_BACKPRESSURE", "DMA_S2MM_1_STREAM_STARVATION")} == {"level"}
    assert {kinds[n] for n in ("INSTR_EVENT_0", "DMA_S2MM_0_START_TASK", "DMA_MM2S_SEL0_FINISHED_BD")} == {"pulse"}
    assert {kinds[n] for n in ("COMBO_EVENT_0", "PERF_CNT_1", "NONE")} == {"unknown"}
    assert events.port_slot("PORT_TLAST_7") == 7
    assert events.port_slot("LOCK_STALL") is None

"""Combo and edge events: what they mean, in each form of a configuration."""

import json

import pytest

from lanescope.devices.aie import config
from lanescope.devices.aie.config import (
    ConfigError,
    instruction_stream,
    json_config,
    mlir_parser,
    mlir_writer,
    register_json,
    register_writes,
)
from lanescope.devices.aie.formats import events, registers

TILE = {
    "type": "core",
    "col": 0,
    "row": 2,
    "events": ["COMBO_EVENT_0", "COMBO_EVENT_1", "COMBO_EVENT_2", "EDGE_DETECTION_EVENT_1", "LOCK_STALL"],
    "ports": {"0": "DMA:0 master"},
    "combos": {
        "0": "LOCK_STALL AND_NOT PORT_RUNNING_0",
        "1": "INSTR_VECTOR OR INSTR_LOAD",
        "2": "COMBO_EVENT_0 OR_NOT COMBO_EVENT_1",
    },
    "edges": {"1": "ACTIVE FALLING"},
    "start": "BROADCAST_15",
    "stop": "BROADCAST_14",
}
LABELS = (
    "LOCK_STALL AND NOT PORT_RUNNING_0 (DMA:0 master)",
    "INSTR_VECTOR OR INSTR_LOAD",
    "(LOCK_STALL AND NOT PORT_RUNNING_0 (DMA:0 master)) OR NOT (INSTR_VECTOR OR INSTR_LOAD)",
    "ACTIVE falling",
    "LOCK_STALL",
)
MADE = {"combo": "COMBO_EVENT_0", "edge": "EDGE_DETECTION_EVENT_0"}


def known(**more):
    return config.apply_defaults(json_config.parse({"trigger": 0, "tiles": [TILE | more]}))


def labels(made):
    (unit,) = made.units.values()
    return tuple(name for name in made.slot_names(*unit.place) if name)


FORMS = {
    "json": lambda made: json_config.parse(json_config.to_json(made)),
    "registers": lambda made: register_json.from_document(register_json.to_document(made)),
    "mlir": lambda made: mlir_parser.read(mlir_writer.to_mlir(made)),
    "writes": lambda made: mlir_parser.read(mlir_writer.to_mlir_writes(made)),
    "insts": lambda made: instruction_stream.read(instruction_stream.written(made)),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_says_what_they_mean(form):
    made = known()
    assert labels(made) == LABELS
    again = FORMS[form](made)
    assert labels(again) == LABELS
    assert again.unread == {}
    assert next(iter(again.units.values())).logic == next(iter(made.units.values())).logic


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("module", events.MODULES)
def test_they_mean_the_same_in_each_module(module, form):
    tile = {"type": module, "row": {"core": 2, "mem": 2, "shim": 0, "memtile": 1}[module], "ports": {}}
    tile |= {"events": ["COMBO_EVENT_1", "EDGE_DETECTION_EVENT_0"], "edges": {"0": "TRUE BOTH"}}
    # A memory tile has numbers of 8 bits.
    other = "BROADCAST_15" if module == "memtile" else "PERF_CNT_0"
    made = known(**tile, combos={"1": f"TRUE AND {other}"}, start=None, stop=None)
    assert labels(made) == (f"TRUE AND {other}", "TRUE changing")
    assert labels(FORMS[form](made)) == labels(made)


def test_registers_lie_where_the_device_has_them():
    made = register_writes.start_writes(known())
    writes = {write.register.name: (hex(write.register.offset), hex(write.value)) for write in made}
    names = ("LOCK_STALL", "PORT_RUNNING_0", "INSTR_VECTOR", "INSTR_LOAD", "ACTIVE")
    number = {name: events.number("aie2", "core", name) for name in names}
    inputs = sum(number[name] << 8 * place for place, name in enumerate(names[:4]))
    assert writes[registers.LOGIC_INPUTS] == ("0x34400", hex(inputs))
    # 1 AND NOT, 2 OR, 3 OR NOT, at bits 0, 8 and 16; edge event 1 at bits 16 to 22, its falling edge bit 26.
    assert writes[registers.LOGIC_CONTROL] == ("0x34404", hex(1 | 2 << 8 | 3 << 16))
    assert writes[registers.EDGE_CONTROL] == ("0x34408", hex(number["ACTIVE"] << 16 | 1 << 26))


def test_operations_as_the_compiler_prints_them():
    text = """aie.device(npu1_1col) { %t = aie.tile(0, 2)
      aie.trace @x(%t) {
        aie.trace.combo_event<0> <"CoreEventAIE2::LOCK_STALL"> OR <"INSTR_VECTOR">
        aie.trace.edge_event<1> event=<"CoreEventAIE2::ACTIVE"> trigger=RISING
        aie.trace.event<"COMBO_EVENT_0"> aie.trace.event<"EDGE_DETECTION_EVENT_1"> } }"""
    assert labels(mlir_parser.read(text)) == ("LOCK_STALL OR INSTR_VECTOR", "ACTIVE rising")
    lowered = """aie.device(npu1_1col) { %t = aie.tile(0, 2)
      aie.trace.config @x(%t) packet_type = core {
        aie.trace.reg register = "Combo_event_inputs" field = "eventA" value = "LOCK_STALL"
        aie.trace.reg register = "Combo_event_inputs" field = "eventB" value = "INSTR_VECTOR"
        aie.trace.reg register = "Combo_event_control" field = "combo0" value = 3 : i32
        aie.trace.reg register = "Edge_Detection_event_control" field = "Edge_Detection_Event_1" value = "ACTIVE"
        aie.trace.reg register = "Edge_Detection_event_control" field = "Edge_Detection_1_Trigger_Rising" value = 1
        aie.trace.reg register = "Trace_Event0" field = "Trace_Event0" value = "COMBO_EVENT_0"
        aie.trace.reg register = "Trace_Event0" field = "Trace_Event1" value = "EDGE_DETECTION_EVENT_1" } }"""
    assert labels(mlir_parser.read(lowered)) == ("LOCK_STALL OR NOT INSTR_VECTOR", "ACTIVE rising")


def test_inputs_that_are_lost_mean_nothing():
    """mlir-aie writes the numbers of combo events 0 and 1 over the inputs of combo event 0."""
    text = (
        "aie.device(npu1_1col) { aie.runtime_sequence @s() {\n"
        + "\n".join(
            f"aiex.npu.write32 {{address = {address} : ui32, column = 0 : i32, row = 2 : i32, value = {value} : ui32}}"
            for address, value in ((0x34400, 0x0A09), (0x34404, 1 << 16), (0x340E0, 0x0B09))
        )
        + "} }"
    )
    made = mlir_parser.read(text)
    assert labels(made) == ("COMBO_EVENT_0", "COMBO_EVENT_2")
    assert sum(made.unread.values()) == 1


def test_what_is_not_stated_keeps_its_name():
    tile = {name: value for name, value in TILE.items() if name not in ("combos", "edges")}
    made = json_config.parse({"tiles": [tile]})
    assert labels(made) == ("COMBO_EVENT_0", "COMBO_EVENT_1", "COMBO_EVENT_2", "EDGE_DETECTION_EVENT_1", "LOCK_STALL")
    assert labels(known(events=["COMBO_EVENT_3", "EDGE_DETECTION_EVENT_0"])) == (
        "COMBO_EVENT_3",
        "EDGE_DETECTION_EVENT_0",
    )


def test_units_that_differ_in_them_contradict_each_other():
    one, other = known(), known(combos={"0": "LOCK_STALL AND ACTIVE"})
    made = config.model.agreed({"a": one, "b": other})
    assert made.units == {}
    assert made.contradictions == {("core", 0, 2): "a and b differ in logic"}


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"combos": {"3": "TRUE AND ACTIVE"}}, "invalid combos"),
        ({"combos": {"0": "TRUE XOR ACTIVE"}}, "unknown combo 'XOR'"),
        ({"combos": {"0": "TRUE AND NOTHING"}}, "unknown event"),
        ({"combos": ["TRUE AND ACTIVE"]}, "invalid combos"),
        ({"edges": {"0": "ACTIVE"}}, "invalid edges"),
        ({"edges": {"0": "ACTIVE UP"}}, "unknown edge 'UP'"),
        ({"edges": {"2": "ACTIVE RISING"}}, "invalid edges"),
    ],
)
def test_what_makes_no_sense_is_rejected(more, told):
    with pytest.raises(ConfigError, match=told) as error:
        json_config.parse({"tiles": [TILE | more]})
    assert error.value.hint
    json.dumps(more)

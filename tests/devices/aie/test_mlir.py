"""Configurations from MLIR texts, in each of their forms, and from texts that are none."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from lanescope.devices.aie import config
from lanescope.devices.aie.config import ConfigError, Unit, mlir_parser
from lanescope.devices.aie.formats import mlir_text
from lanescope.errors import UsageError

VECTOR_SCALAR = Unit(
    "core", 0, 2, (37, 33, 34), mode=0, start=122, stop=121, reset=122, packet_id=1, packet_type=0
)  # fmt: skip

DECLARED = """
module {
  aie.device(npu1_1col) {
    %tile_0_2 = aie.tile(0, 2)
    %mem_tile_0_1 = aie.tile(0, 1)
    %shim = aie.tile(0, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    // aie.trace @commented_out(%tile_0_2) { aie.trace.event<"TRUE"> }
    aie.trace @core_trace(%tile_0_2) {
      aie.trace.mode "Event-PC"
      aie.trace.packet id=1 type="core"
      aie.trace.event<"INSTR_EVENT_0"> label = "start of it"
      aie.trace.event <"PORT_RUNNING_1">
      aie.trace.event<"INSTR_VECTOR">
      aie.trace.port<0> port=North channel=1 direction=S2MM
      aie.trace.port<1> port = DMA channel = 0 direction = MM2S
      aie.trace.start broadcast=15
      aie.trace.stop broadcast = 14
    }
    aie.trace @mem_trace(%tile_0_2) {
      aie.trace.packet id=2 type=mem
      aie.trace.event<"DMA_S2MM_0_START_TASK">
      aie.trace.start event=<"BROADCAST_15">
      aie.trace.stop event=<"BROADCAST_14">
    }
    aie.trace @shim_trace(%shim) {
      aie.trace.packet type=shimtile
      aie.trace.event<"DMA_S2MM_0_START_TASK">
      aie.trace.start event=<"TRUE">
      aie.trace.stop event=<"NONE">
    }
    aie.runtime_sequence(%arg0: memref<16xi32>) {
      aie.trace.host_config {buffer_size = 8192 : i32}
      aie.trace.start_config @core_trace
    }
  }
}
"""
LOWERED = """
aie.device(npu2) {
  %t = aie.tile(3, 1)
  aie.trace.config @x(%t) packet_type = memtile {
    aie.trace.reg register = "Trace_Control0" value = 10289152 mask = 0xFFFF0000 comment = "start event"
    aie.trace.reg register = "Trace_Control1" field = "ID" value = 9
    aie.trace.reg register = "Trace_Control1" field = "Packet_Type" value = 3
    aie.trace.reg register = "Trace_Event0" field = "Trace_Event0" value = <"PORT_RUNNING_0">
    aie.trace.reg register = "Trace_Event0" value = 0x7100 mask = 0xFF00
    aie.trace.reg register = "Stream_Switch_Event_Port_Selection_0" field = "Port_0_ID" value = "DMA:2"
    aie.trace.reg register = "Stream_Switch_Event_Port_Selection_0" field = "Port_0_Master_Slave" value = 1
    aie.trace.reg register = "No_Such" value = 7
  }
}
"""
OPERANDS = """
aie.device(npu1_1col) {
  aie.runtime_sequence @sequence() {
    %address = arith.constant 213200 : i32
    %value = arith.constant 5 : i32
    aiex.npu.write32(%address, %value) {column = 2 : i32, row = 2 : i32} : i32, i32
    %address_0 = arith.constant 0x340E0 : i32
    %value_0 = arith.constant -2147483615 : i32
    aiex.npu.write32(%address_0, %value_0) {column = 2 : i32, row = 2 : i32} : i32, i32
    %whole = arith.constant 0x42340E4 : i32
    %value = arith.constant 38 : i32
    aiex.npu.write32(%whole, %value) : i32, i32
    aiex.npu.maskwrite32 {address = 213220 : ui32, column = 2 : i32, mask = 65280 : ui32, row = 2 : i32,
                          value = 9984 : ui32}
    %unknown = arith.addi %value, %value : i32
    aiex.npu.write32(%address_0, %unknown) {column = 2 : i32, row = 2 : i32} : i32, i32
  }
}
"""
GENERIC = """
"builtin.module"() ({
  "aie.device"() <{device = 4 : i32}> ({
    %0 = "aie.tile"() <{col = 1 : i32, row = 3 : i32}> : () -> index
    %1 = "arith.constant"() <{value = 213216 : i32}> : () -> i32
    %2 = "arith.constant"() <{value = 33 : i32}> : () -> i32
    "aiex.npu.write32"(%1, %2) <{column = 1 : i32, row = 3 : i32}> : (i32, i32) -> ()
  }) : () -> ()
}) : () -> ()
"""


def units(text):
    return list(mlir_parser.read(text).units.values())


def test_declarations():
    core, mem, shim = units(DECLARED)
    assert core == Unit(
        "core", 0, 2, (33, 79, 37), (0x2E, 0x01, *(None,) * 6), 1, 122, 121, 122, packet_id=1, packet_type=0
    )
    assert mem == Unit("mem", 0, 2, (19,), mode=0, start=122, stop=121, reset=122, packet_id=2, packet_type=1)
    assert shim == Unit("shim", 0, 0, (14,), mode=0, start=1, stop=0, reset=1, packet_id=None, packet_type=2)
    labels = mlir_parser.read(DECLARED).slot_names("core", 0, 2)
    assert labels[:3] == ("INSTR_EVENT_0", "PORT_RUNNING_1 (DMA:0 slave)", "INSTR_VECTOR")


def test_lowered_registers():
    assert mlir_parser.read(LOWERED).device == "aie2p"
    (unit,) = units(LOWERED)
    assert unit.place == ("memtile", 3, 1)
    assert unit.events == (80, 113)
    assert (unit.start, unit.stop, unit.packet_id, unit.packet_type) == (157, 0, 9, 3)
    assert unit.ports[0] == 0x22
    assert mlir_parser.read(LOWERED).slot_names("memtile", 3, 1)[0] == "PORT_RUNNING_0 (DMA:2 master)"


def test_register_writes_with_operands():
    (unit,) = units(OPERANDS)
    assert unit.place == ("core", 2, 2)
    assert unit.events == (0x21, 0, 0, 0x80, 38, 39)
    assert unit.mode == 1


def test_the_generic_form():
    (unit,) = units(GENERIC)
    assert unit.place == ("core", 1, 3)
    assert unit.events == (33,)


def test_the_published_design(corpus):
    path = corpus / "aie/vector_scalar/input_with_addresses.mlir"
    known = config.load_mlir(path)
    assert dict(known.units) == {("core", 0, 2): VECTOR_SCALAR}
    assert known.trigger == 0
    # Each of its two forms says the same.
    text = path.read_text()
    lines = text.splitlines()
    for kept in (lambda line: "npu.write32" not in line, lambda line: "aie.trace.reg" not in line):
        (unit,) = units("\n".join(filter(kept, lines)))
        assert (unit.events, unit.start, unit.stop, unit.packet_id) == ((37, 33, 34), 122, 121, 1)


def test_its_trace_is_labelled(corpus, tmp_path):
    folder = corpus / "aie/vector_scalar"
    trace = lanescope.open(folder / "trace_emu.bin", mlir=str(folder / "input_with_addresses.mlir"))
    assert {"INSTR_VECTOR", "INSTR_EVENT_0", "INSTR_EVENT_1"} <= set(trace.tracks["name"].tolist())
    assert "aie_unknown_tile" not in set(trace.stats["name"].tolist())
    assert trace.inputs["role"].tolist() == ["main", "config"]
    # The text beside a capture that has its name is found.
    (tmp_path / "run.bin").write_bytes((folder / "trace_emu.bin").read_bytes())
    (tmp_path / "run.mlir").write_bytes((folder / "input_with_addresses.mlir").read_bytes())
    found = lanescope.open(tmp_path / "run.bin")
    assert found.tracks["name"].tolist() == trace.tracks["name"].tolist()


def test_what_is_lower_says_more():
    text = DECLARED.replace("}\n}\n", "")
    text += "aiex.npu.write32 {address = 0x340E0 : ui32, column = 0 : i32, row = 2 : i32, value = 0x26 : ui32}"
    core = units(text)[0]
    assert core.events == (38,)
    assert (core.mode, core.packet_id, core.ports[1]) == (1, 1, 0x01)
    # An unknown event name does not matter if the registers contain its number.
    assert units(text.replace('"INSTR_VECTOR"', '"NEWER_EVENT"'))[0].events == (38,)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "input_with_addresses.mlir"),
        ("module {}", "no trace configuration found"),
        (DECLARED.replace("INSTR_VECTOR", "INSTR_VECTR"), "did you mean INSTR_VECTOR"),
        (DECLARED.replace("port = DMA", "port = DNA"), "did you mean DMA:0 slave"),
        (DECLARED.replace("npu1_1col", "xcvc1902"), "first-generation"),
        ('aie.trace @x(%nowhere) { aie.trace.event<"TRUE"> }', "no trace configuration found"),
    ],
)
def test_what_makes_no_sense_is_one_line(tmp_path, text, said):
    path = tmp_path / "design.mlir"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        config.load_mlir(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_text_is_one_line():
    with pytest.raises(UsageError, match=r"cannot open 'no\.mlir': no such file or directory"):
        config.load_mlir(Path("no.mlir"))


SHORT = """
    { } ( ) < > , = : % " \\ . // 0x -1 99999999999999999999999 aie.tile %t aie.trace.event< "TRUE">
    aie.trace.port<0> aie.trace.start broadcast= event=< aie.trace.reg aie.device(npu1) aiex.npu.write32
    aiex.npu.maskwrite32 (%c,%c) channel=0 port=DMA value="DMA:0" value=3 mask= {address=213216 column=0,row=2
    register="Trace_Event0"
    field="Port_0_ID" %t=aie.tile(0,2)
"""
PIECES = st.sampled_from(
    [
        *SHORT.split(),
        "\n",
        "aie.trace @x(%t) {",
        "aie.trace.config @c(%t) packet_type = core {",
        "aie.device(npu1) @d {",
        "aie.runtime_sequence @s() {",
        "aie.trace.start_config @x",
        'aie.trace.combo_event<0> <"TRUE"> AND <"NONE">',
        "%t = aie.logical_tile<CoreTile>(0, ?)",
        "%c = arith.constant 213216 : i32\n",
    ]
)


def tries(text):
    try:
        known = mlir_parser.read(text)
    except ConfigError:
        return
    for place in known.units:
        assert len(known.slot_names(*place)) == 8


@given(st.lists(PIECES, max_size=60).map(" ".join) | st.text(max_size=200))
@settings(max_examples=some(400))
def test_hostile_text_never_crashes(text):
    tries(text)


@given(st.data())
@settings(max_examples=some(150))
def test_damaged_texts_never_crash(data):
    text = list(data.draw(st.sampled_from([DECLARED, LOWERED, OPERANDS, GENERIC])))
    for _ in range(data.draw(st.integers(1, 8))):
        at = data.draw(st.integers(0, len(text) - 1))
        kind = data.draw(st.integers(0, 2))
        if kind == 0:
            del text[at:]
            text.append("x")
        elif kind == 1:
            text[at] = data.draw(PIECES)
        else:
            text.insert(at, data.draw(PIECES))
    tries("".join(text))


LONG = ["{", '"', "aiex.npu.write32{", "1", "1.", "(%a,", "a=", "a::", "0x", "//", "<{", "\\", "a=<b_"]
LONG += ["aie.trace @x(%t) {", "aie.trace.reg a = <", "aie.trace.packet a = b, "]
LONG += ["%t = aie.tile(0, 2) aie.trace @x(%t) { aie.trace.event<1> aie.trace.port<0> port=DMA channel=0 "]
LONG += ["aiex.npu.maskwrite32 {address = 213216, column = 0, row = 2, mask = 255, value = 1} "]
LONG += ["aiex.control_packet {address = 213216, data = array<i32: 1, ", "aiex.control_packet {data = array<i32: "]
LONG += ["aie.runtime_sequence @s { aiex.npu.write32 {address = 213216, column = 0, row = 2, value = 1} "]
LONG += ["aie.device(npu1) { %t = aie.tile(0, 2) aie.trace @x(%t) { aie.trace.event<1> aie.trace.start_config @x "]
LONG += ["%t = aie.tile(0, 2) aie.trace @x(%t) { aie.trace.event<1> aie.runtime_sequence { aie.trace.start_config @x "]


@pytest.mark.parametrize("piece", LONG)
def test_no_text_is_read_over_and_over(piece, monkeypatch):
    # What would be quadratic here would not end before the test is given up.
    text = piece * (200_000 // len(piece))
    looks = 0
    peek = mlir_text.Tokens.peek

    def counted(self, ahead=0):
        nonlocal looks
        looks += 1
        return peek(self, ahead)

    monkeypatch.setattr(mlir_text.Tokens, "peek", counted)
    tries(text)
    assert looks < 10 * len(text)

"""Configurations that a DMA sends as control packets: read from texts and binaries, and written."""

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.aie.test_configure import configs
from devices.aie.test_instruction_stream import KNOWN, UNITS, WAIT, elf, stream
from effort import some
from lanescope.declaration import replace
from lanescope.devices.aie import config
from lanescope.devices.aie.config import ConfigError, build_file, config_of, instruction_stream, mlir_parser
from lanescope.devices.aie.config.register_writes import start_writes
from lanescope.devices.aie.formats import control_packets

#: What mlir-aie's own test expects of a write, a write of four words and a read.
PUBLISHED = "8000001B 0001F000 00000002 8000001B 09B1F020 00000003 00000004 00000005 00000006 8000001B 02700400"
#: Both units in column 0, which needs no other.
ONE_COLUMN = config_of("aie2", [replace(unit, col=0) for unit in UNITS], trigger=0)


def words_of(content):
    return struct.unpack(f"<{len(content) // 4}I", content)


def test_the_published_packets():
    words = [int(word, 16) for word in PUBLISHED.split()]
    assert control_packets.are_packets(words)
    assert list(control_packets.packets(words)) == [
        (27, 0, 0x1F000, [2]),
        (27, 2, 0x1F020, [3, 4, 5, 6]),
        (27, 1, 0x400, []),
    ]
    assert control_packets.written([(2, 0x1F000, 2)]) == struct.pack("<3I", *words[:3])


def test_packets_say_what_they_set_up(tmp_path):
    content = build_file.to_packets(ONE_COLUMN)
    read = [0x8000001B, 0x00400000, 0x8000001B, 0x00032000, 7]
    (tmp_path / "ctrlpkt.bin").write_bytes(content + struct.pack("<5I", *read))
    made = config.read(tmp_path / "ctrlpkt.bin")
    assert (dict(made.units), made.trigger) == (dict(ONE_COLUMN.units), 0)
    assert made.other_operations == {"register reads": 1, "control packets": 1}
    # Nothing in them names the column.
    assert made.unread == {"columns of control packets (all taken as column 0)": len(start_writes(ONE_COLUMN))}
    (tmp_path / "ctrlpkt.txt").write_text(instruction_stream.lines(content))
    assert config.read(tmp_path / "ctrlpkt.txt").units == made.units


def test_ids_that_each_tile_has_of_its_own_name_the_column():
    content = list(words_of(control_packets.written([(2, 0x340D0, 0x797A0000), (2, 0x340E0, 0x2221)])))
    assert content[0] == 0x8000001B
    for at in (0, 3):
        content[at] = 17 | 0x80000000  # row 2 of column 2
    made = build_file.from_packets(content)
    assert set(made.units) == {("core", 2, 2)}
    assert made.unread == {}
    content[0] = 5 | 0x80000000
    with pytest.raises(ConfigError, match="packet 1 goes to controller id 5"):
        build_file.from_packets(content)


@pytest.mark.parametrize("spoilt", [(0, 1 << 31), (0, 1 << 20), (1, 0xC00000), (1, 1 << 3), (2, None)], ids=str)
def test_other_words_are_no_packets(spoilt):
    words = list(words_of(control_packets.written([(2, 0x340D0, 0x797A0000)])))
    at, bits = spoilt
    words = words[:at] if bits is None else [word ^ bits if i == at else word for i, word in enumerate(words)]
    assert not control_packets.are_packets(words)
    assert not control_packets.are_packets([])


def test_an_elf_file_may_hold_them_beside_the_stream_that_sends_them(tmp_path):
    content = build_file.to_packets(ONE_COLUMN)
    sender = stream((0, 1), [WAIT], generation=4)
    made = instruction_stream.read(elf({".ctrltext": sender, ".ctrldata": content}))
    assert (made.device, dict(made.units)) == ("aie2p", dict(ONE_COLUMN.units))
    assert made.other_operations == {"waits for a task": 1}
    # Other data says nothing.
    with pytest.raises(ConfigError, match="none of its 1 operations"):
        instruction_stream.read(elf({".ctrltext": sender, ".ctrldata": b"abcdefgh"}))
    with pytest.raises(ConfigError, match="none of its 1 operations"):
        instruction_stream.read(control_packets.written([(2, 0x32000, 7)]))


TEXT = """module {{ aie.device(npu1) @d {{
    %t = aie.tile(0, 2) {{controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 5>}}
    aie.runtime_sequence @s() {{ {packets} }} }} }}"""


def packet(address, *data, opcode=0, more=""):
    listed = ", ".join(str(word - (1 << 32) if word >> 31 else word) for word in data)
    said = f"data = array<i32: {listed}>" if data else "length = 4 : i32"
    return (
        f"aiex.control_packet {{address = {address} : ui32, {said}{more}, opcode = {opcode} : i32, "
        "stream_id = 0 : i32}\n"
    )


def test_a_text_has_the_whole_address():
    writes = [(one.col << 25 | one.row << 20 | one.register.offset, one.value) for one in start_writes(KNOWN)]
    made = mlir_parser.read(TEXT.format(packets="".join(packet(*write) for write in writes)))
    assert (dict(made.units), made.trigger, made.unread) == (dict(KNOWN.units), 0, {})


def test_words_of_a_packet_go_to_registers_in_a_row():
    first = 2 << 20 | 0x340D0
    packets = packet(first, 0x797A0000, 5) + packet(first + 0x10, 0x2221, 0x25, opcode=2) + packet(first, opcode=1)
    (unit,) = mlir_parser.read(TEXT.format(packets=packets)).units.values()
    assert (unit.start, unit.stop, unit.packet_id, unit.events) == (0x7A, 0x79, 5, (0x21, 0x22, 0, 0, 0x25))


def test_a_packet_to_several_tiles_is_counted():
    packets = packet(2 << 20 | 0x340E0, 0x2221, more=", mcast_pkt_id = 5 : ui32") + packet(2 << 20 | 0x32000, 1)
    made = mlir_parser.read(TEXT.format(packets=packets))
    assert made.unread == {"aiex.control_packet to several tiles": 1}


def test_where_packets_cannot_be_written_the_reason_is_named():
    with pytest.raises(ConfigError, match="units are in columns 0, 1") as error:
        build_file.to_packets(KNOWN)
    assert "writes" in error.value.hint
    with pytest.raises(ConfigError, match="row 7 has no controller id"):
        build_file.to_packets(config_of("aie2", [replace(UNITS[0], row=7)]))


@given(configs())
@settings(max_examples=some(200))
def test_what_is_loaded_and_back(known):
    made = build_file.read(build_file.to_cdo(known))
    assert start_writes(made) == start_writes(known)
    low = [replace(unit, col=0) for unit in known.units.values() if unit.row < 6]
    if low:
        column = config_of(known.device, low)
        made = build_file.from_packets(words_of(build_file.to_packets(column)), known.device)
        assert start_writes(made) == start_writes(column)


@given(st.lists(st.integers(0, (1 << 32) - 1), max_size=20), st.integers(0, 40), st.integers(0, 31))
@settings(max_examples=some(300))
def test_any_words_are_packets_or_none(tail, at, bit):
    words = [*words_of(build_file.to_packets(ONE_COLUMN)), *tail]
    words[at % len(words)] ^= 1 << bit
    if control_packets.are_packets(words):
        with contextlib.suppress(ConfigError):  # an id of no tile
            assert build_file.from_packets(words).device == "aie2"

"""Configurations from instruction streams: made from known writes, of builds, and from bytes that are none."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from lanescope.cli import main
from lanescope.declaration import replace
from lanescope.devices.aie import config
from lanescope.devices.aie.config import ConfigError, Unit, apply_defaults, config_of, instruction_stream
from lanescope.devices.aie.config.register_writes import start_writes, stop_writes
from lanescope.errors import UsageError

VERSIONS = [(0, 1), (1, 0)]
CORE = Unit("core", 0, 2, (33, 34, 75), (0x21, *[None] * 7), mode=0, start=122, stop=121, reset=122, packet_id=1)
MEMTILE = Unit("memtile", 1, 1, (80, 84), (0x20, 3, *[None] * 6), mode=0, start=157, stop=156, reset=157, packet_id=2)
UNITS = replace(CORE, packet_type=0), replace(MEMTILE, packet_type=3)
KNOWN = config_of("aie2", UNITS, trigger=0)


def write(version, address, value):
    return [0, 0, address, 0, value, 24] if version == (0, 1) else [0, address, value]


def masked(version, address, value, mask):
    return [3, 0, address, 0, value, mask, 28] if version == (0, 1) else [3, address, value, mask]


def block(version, address, data):
    size = 4 * (len(data) + (4 if version == (0, 1) else 3))
    return [1, 0, address, size, *data] if version == (0, 1) else [1, address, size, *data]


WAIT = [0x80, 16, 0, 0x10100]


def stream(version, operations, generation=3):
    major, minor = version
    words = [word for operation in operations for word in operation]
    head = [6 << 24 | generation << 16 | minor << 8 | major, 0x101, len(operations), 4 * len(words) + 16]
    return struct.pack(f"<{len(words) + 4}I", *head, *words)


def writes_of(known, version):
    listed = [*start_writes(known), *stop_writes(known)]
    return [write(version, one.col << 25 | one.row << 20 | one.register.offset, one.value) for one in listed]


def elf(sections):
    """An ELF file of 32 bits with these sections, by name."""
    names, content, rows = b"\0", bytearray(52), [(0,) * 10]
    for name, data in sections.items():
        rows.append((len(names), 1, 0, 0, len(content), len(data), 0, 0, 4, 0))
        names += name.encode() + b"\0"
        content += data
    rows.append((0, 3, 0, 0, len(content), len(names), 0, 0, 1, 0))
    content += names
    head = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\x01\x01\x01", 2, 0, 1, 0, 0, len(content), 0, 52, 0, 0, 40,
                       len(rows), len(rows) - 1)  # fmt: skip
    content[: len(head)] = head
    return bytes(content) + b"".join(struct.pack("<10I", *row) for row in rows)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_a_stream_says_what_its_writes_set_up(version, tmp_path):
    operations = [*writes_of(KNOWN, version), WAIT, write(version, 0x1D204, 7)]
    content = stream(version, operations)
    made = instruction_stream.read(content)
    assert dict(made.units) == dict(KNOWN.units)
    assert (made.device, made.trigger) == ("aie2", 0)
    assert made.other_operations == {"waits for a task": 1, "register writes": 1}
    text = "".join(f"{word:08X}\n" for word in struct.unpack(f"<{len(content) // 4}I", content))
    for name, other in (("insts.txt", text.encode()), ("design.elf", elf({".text": b"abcd", ".ctrltext": content}))):
        (tmp_path / name).write_bytes(other)
        assert dict(config.read(tmp_path / name).units) == dict(KNOWN.units)
        assert dict(config.load(tmp_path / name).units) == dict(KNOWN.units)


def test_a_configuration_is_written_as_the_operations_around_a_run():
    content = instruction_stream.written(KNOWN)
    expected = stream((0, 1), writes_of(KNOWN, (0, 1)))
    assert content[:4] + content[8:] == expected[:4] + expected[8:]
    assert content[4:8] == b"\x02\x01\0\0"  # two columns, one row of memory tiles
    made = instruction_stream.read(content)
    assert (dict(made.units), made.trigger) == (dict(KNOWN.units), KNOWN.trigger)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
def test_masked_and_block_writes_are_replayed_in_order(version):
    at = 0x2340D0
    operations = [
        masked(version, at, 0x007A0000, 0x00FF0000),
        masked(version, at, 0xFF000000, 0x79000000),
        write(version, at + 4, 5),
        block(version, at + 0x10, [0x00002221, 0x25]),
    ]
    (unit,) = instruction_stream.read(stream(version, operations, generation=4)).units.values()
    assert (unit.start, unit.stop, unit.packet_id, unit.events) == (0x7A, 0x79, 5, (0x21, 0x22, 0, 0, 0x25))


def test_a_stream_of_version_1_is_not_read_as_one_of_version_0():
    content = bytearray(stream((1, 0), writes_of(KNOWN, (1, 0))))
    content[0:2] = b"\x00\x01"
    with pytest.raises(ConfigError, match="operation"):
        instruction_stream.read(bytes(content))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (stream((0, 1), [WAIT]), "sets up no trace"),
        (stream((0, 1), [[0x0B, 0, 0, 0]]), "operation 1 .* unknown layout: code 0x0b after 0 operations"),
        (stream((0, 1), [WAIT, [1, 0, 0, 6]]), r"operation 2 .*\(block writes\) has an impossible size"),
        (stream((0, 1), [WAIT])[:-4], "a header for 32"),
        (stream((0, 1), [WAIT], generation=7), "generation 7"),
        (stream((2, 0), [WAIT]), "version 2.0"),
        (b"06030100\n0000z000\n", "line 2 "),
        (b"\x7fELF\x02\x01", "not little-endian with 32 bits"),
        (b"\x7fELF\x01\x01", "ELF file is cut"),
        (elf({".text": b"abcd"}), "without section .ctrltext"),
        (b"\0\1", "without a header"),
    ],
    ids=range(11),
)
def test_what_is_no_stream_is_refused_with_the_reason(content, message):
    with pytest.raises(ConfigError, match=message):
        instruction_stream.read(content)


SOUND = [stream(version, [*writes_of(KNOWN, version), WAIT]) for version in VERSIONS]
SOUND.append(elf({".ctrltext": SOUND[0]}))


@given(
    st.sampled_from(SOUND),
    st.lists(st.tuples(st.integers(0, 1 << 12), st.integers(0, 255)), max_size=6),
    st.integers(0, 1 << 12),
)
@settings(max_examples=some(2000))
def test_damaged_streams_are_read_or_refused(content, changes, end):
    damaged = bytearray(content)
    for at, value in changes:
        damaged[at % len(damaged)] = value
    try:
        made = instruction_stream.read(bytes(damaged[: max(end, 1)]))
    except ConfigError as error:
        said = str(error)
    else:
        said = ""
        assert made.places
    assert "\n" not in said


def test_a_timer_that_something_else_resets_is_a_finding(tmp_path, capsys):
    first, second = UNITS
    apart = config_of("aie2", [first, replace(second, reset=29)], trigger=0)
    (tmp_path / "insts.bin").write_bytes(stream((0, 1), writes_of(apart, (0, 1))))
    assert main(["sim", "aie", "--tiles", "2", "-o", str(tmp_path / "run.bin")]) == 0
    trace = lanescope.open(tmp_path / "run.bin", config=str(tmp_path / "insts.bin"))
    counts = {row["name"]: row["count"] for row in trace.stats.rows()}
    assert counts["aie_timer_reset_apart"] == 1
    assert main(["aie-config", str(tmp_path / "insts.bin"), "--to", "json"]) == 0
    said = capsys.readouterr().err
    assert "memtile (1, 1): " in said
    assert "resets the timer" in said


@pytest.mark.parametrize("version", ["v0_1", "v1_0"])
@pytest.mark.parametrize(
    ("name", "mlir"),
    [
        ("traced", "aie-next/traced_input_with_addresses.mlir"),
        ("vector_scalar", "aie/vector_scalar/input_with_addresses.mlir"),
    ],
)
def test_the_stream_of_a_build_gives_the_configuration_of_its_mlir(corpus, name, mlir, version):
    made = config.read(corpus / f"aie-next/made_from_{name}_{version}.insts.bin")
    expected = config.read(corpus / mlir)
    assert made.units
    assert dict(made.units) == dict(expected.units)
    assert (made.device, made.trigger, made.contradictions) == (expected.device, expected.trigger, {})
    assert apply_defaults(made).units == apply_defaults(expected).units
    assert len(made.reset_apart) == (1 if name == "traced" else 0)


@pytest.mark.parametrize(("name", "count"), [("xdna_emu_insts.bin", 9), ("a5e9f9d3_add_one_insts.txt", 7)])
def test_the_stream_of_a_build_without_a_trace_says_so(corpus, name, count):
    with pytest.raises(UsageError, match=f"sets up no trace: none of its {count} operations"):
        config.read(corpus / "aie-next" / name)

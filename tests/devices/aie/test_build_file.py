"""Configurations from what a build loads: made from known writes, of builds, and from bytes that are none."""

import contextlib
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.aie.test_instruction_stream import KNOWN
from effort import some
from lanescope.cli import main
from lanescope.declaration import replace
from lanescope.devices.aie import config
from lanescope.devices.aie.config import ConfigError, build_file
from lanescope.devices.aie.config.register_writes import start_writes, stop_writes
from lanescope.errors import UsageError


def cdo(commands):
    words = [word for command in commands for word in command]
    header = [4, 0x004F4443, 0x200, len(words)]
    return struct.pack(f"<{5 + len(words)}I", *header, ~sum(header) & 0xFFFFFFFF, *words)


def address(write):
    return write.col << 25 | write.row << 20 | write.register.offset


SPELLINGS = {
    "write": lambda w: [0x103 | 2 << 16, address(w), w.value],
    "write of 64 bits": lambda w: [0x108 | 3 << 16, 0, address(w), w.value],
    "mask write": lambda w: [0x102 | 3 << 16, address(w), 0xFFFFFFFF, w.value],
    "mask write of 64 bits": lambda w: [0x107 | 4 << 16, 0, address(w), 0xFFFFFFFF, w.value],
    "block": lambda w: [0x105 | 3 << 16, 0, address(w), w.value],
    "long block": lambda w: [0x105 | 255 << 16, 3, 0, address(w), w.value],
}
OTHER = [[0x111 | 2 << 16, 0, 0], [0x101 | 3 << 16, 0x232004, 1, 1], [0x105 | 4 << 16, 0, 0x220000, 7, 8]]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_what_is_written_is_read(spelling):
    made = [SPELLINGS[spelling](write) for write in (*start_writes(KNOWN), *stop_writes(KNOWN))]
    found = build_file.read(b"\0" * 16 + cdo([*OTHER, *made]) + b"tail")
    assert found.units == KNOWN.units
    assert found.trigger == KNOWN.trigger
    assert found.other_operations["data writes"] == 1
    assert found.other_operations["other commands"] == 1


def test_masks_hold_and_objects_follow_each_other():
    event0 = 2 << 20 | 0x340E0
    first = cdo([[0x103 | 2 << 16, event0, 0x00000021]])
    second = cdo([[0x102 | 3 << 16, event0, 0x0000FF00, 0x77771A77]])
    (unit,) = build_file.read(first + second).units.values()
    assert unit.events == (0x21, 0x1A)


def test_builds_set_up_no_trace_and_say_so(corpus):
    folder = corpus / "aie-next"
    for name in ("iree_matmul.xclbin", "fffe1bff_aie_cdo_init.bin"):
        with pytest.raises(UsageError, match="loads no configuration of a trace") as error:
            config.read(folder / name)
        assert "CDO writes to a trace unit" in error.value.message
        assert "insts.bin" in error.value.hint


def test_files_without_any_are_refused():
    with pytest.raises(ConfigError, match="no CDO found"):
        build_file.read(b"xclbin2\0" + bytes(500))
    whole = cdo([[0x103 | 2 << 16, 2 << 20 | 0x340E0, 33]])
    for cut in (whole[:-4], cdo([[0x103 | 9 << 16, 0, 0]])):
        with pytest.raises(ConfigError, match="truncated"):
            build_file.read(cut)
        assert build_file.is_build(cut)
    assert not build_file.is_build(whole[:4] + b"CDO?" + whole[8:])


def test_the_command_reads_them(tmp_path, capsys):
    known = replace(KNOWN, trigger=None)
    writes = [SPELLINGS["write"](write) for write in start_writes(known)]
    (tmp_path / "design.pdi").write_bytes(cdo([*OTHER, *writes]))
    assert main(["aie-config", str(tmp_path / "design.pdi"), "--to", "json"]) == 0
    told = capsys.readouterr()
    assert '"INSTR_EVENT_0"' in told.out
    assert "operations besides tracing" in told.err
    (tmp_path / "none.pdi").write_bytes(cdo(OTHER))
    assert main(["aie-config", str(tmp_path / "none.pdi")]) == 2
    assert "loads no configuration of a trace" in capsys.readouterr().err


@given(st.binary(max_size=60), st.integers(0, 200), st.integers(0, 255))
@settings(max_examples=some(200))
def test_any_bytes_are_read_or_refused(tail, at, value):
    content = bytearray(cdo([*OTHER, *(SPELLINGS["block"](write) for write in start_writes(KNOWN))]) + tail)
    content[at % len(content)] = value
    with contextlib.suppress(ConfigError):  # nothing else is raised
        assert build_file.read(bytes(content)).places

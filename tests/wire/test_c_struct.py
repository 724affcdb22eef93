"""C structs: exact both ways, and numpy reads the same values as the reference decoder."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.wire import Field, Member, Record, Struct
from lanescope.wire.strategies import values
from wire.formats import BUFFER, HEADER, PACKET, PHASE, PHASE_OF_TASK, STRUCTS

EACH = pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.name)


def from_numpy(struct, row):
    """Turn one row of a structured array into what ``decode`` returns."""
    found = {}
    for member in struct.members:
        elements = [row[member.name]] if member.count is None else list(row[member.name])
        if isinstance(member.type, Struct):
            elements = [from_numpy(member.type, element) for element in elements]
        elif isinstance(member.type, Record):
            elements = [member.type.decode(int(element)) for element in elements]
        else:
            elements = [int(element) for element in elements]
        found[member.name] = elements[0] if member.count is None else elements
    return found


@EACH
@given(data=st.data())
def test_values_survive_encode_and_decode(struct, data):
    given_values = data.draw(values(struct))
    raw = struct.encode(given_values)
    assert len(raw) == struct.size
    assert struct.decode(raw) == given_values


@EACH
@given(data=st.data())
def test_bytes_survive_decode_and_encode_and_numpy_agrees(struct, data):
    raw = data.draw(st.binary(min_size=struct.size, max_size=struct.size))
    decoded = struct.decode(raw)
    assert struct.encode(decoded) == raw
    rows = np.frombuffer(raw, struct.dtype)
    assert rows.shape == (1,)
    assert from_numpy(struct, rows[0]) == decoded


def test_layout_is_that_of_a_c_compiler():
    class Phase(ctypes.LittleEndianStructure):
        _fields_ = (
            ("start_time", ctypes.c_uint64),
            ("end_time", ctypes.c_uint64),
            *((name, ctypes.c_uint32) for name in ("loop_iter", "kind", "tasks_processed", "pop_hit", "pop_miss")),
            *(
                (f"{pool}_depth_at_{when}", ctypes.c_int16 * 3)
                for pool in ("local", "shared")
                for when in ("start", "end")
            ),
        )

    assert ctypes.sizeof(Phase) == PHASE.size == PHASE.dtype.itemsize
    for name, *_ in Phase._fields_:
        assert getattr(Phase, name).offset == PHASE[name].offset == PHASE.dtype.fields[name][1]
        assert getattr(Phase, name).size == PHASE[name].size
    c_values = Phase(start_time=1, end_time=2**63, kind=1, shared_depth_at_end=(-1, 2, -3))
    decoded = PHASE.decode(bytes(c_values))
    assert (decoded["start_time"], decoded["end_time"], decoded["kind"]) == (1, 2**63, 1)
    assert decoded["shared_depth_at_end"] == [-1, 2, -3]


@given(values(PHASE_OF_TASK))
def test_union_is_a_view(given_values):
    rows = np.frombuffer(PHASE_OF_TASK.encode(given_values), PHASE.dtype)
    assert rows.view(PHASE_OF_TASK.dtype)["task_local_id"].tolist() == [given_values["task_local_id"]]
    assert rows["pop_hit"].tolist() == [given_values["task_local_id"]]


def test_packet_is_a_header_record_and_payload_words():
    raw = bytes.fromhex("01302100") + b"\x30\x03\x00\xf2" + b"\x22" * 24
    packet = PACKET.decode(memoryview(raw))
    assert packet["header"] == HEADER.decode(0x00213001)
    assert packet["payload"] == [0xF2000330, *[0x22222222] * 6]


def test_padding_is_kept_and_defaults_to_zero():
    given_values = {m.name: 0 if m.count is None else [0] * m.count for m in PHASE.members if m.name != "padding"}
    assert PHASE.encode(given_values) == bytes(64)
    assert PHASE.decode(PHASE.encode({**given_values, "padding": [1, 2, 3, 4]}))["padding"] == [1, 2, 3, 4]


PHASE_VALUES = PHASE.decode(bytes(64))
BUFFER_VALUES = BUFFER.decode(bytes(192))
MARKER_VALUES = BUFFER_VALUES["tags"][0]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"records": [PHASE_VALUES]}, r"buffer\.records: .*: expected a list of 2"),
        ({"records": 3}, r"buffer\.records: invalid value 3: expected a list of 2"),
        ({"records": [PHASE_VALUES, 3]}, r"buffer\.records\[1\]: invalid value 3: expected a mapping"),
        (
            {"records": [PHASE_VALUES, PHASE_VALUES | {"kind": -1}]},
            r"buffer\.records\[1\]\.kind: -1 does not fit in 32",
        ),
        (
            {"tags": [MARKER_VALUES, MARKER_VALUES | {"event": 1024}]},
            r"buffer\.tags\[1\]\.event: 1024 does not fit in 10",
        ),
        ({"count": None}, r"buffer\.count: invalid value None: expected an integer"),
        ({"size": 1}, r"buffer\.size: unknown field"),
    ],
)
def test_bad_values_are_refused_with_their_path(wrong, message):
    with pytest.raises(ValueError, match=message):
        BUFFER.encode(BUFFER_VALUES | wrong)


@pytest.mark.parametrize("size", [0, 63, 65])
def test_buffers_of_another_size_are_refused(size):
    with pytest.raises(ValueError, match=f"phase: expected 64 bytes, got {size}"):
        PHASE.decode(bytes(size))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ((Member("a", 0, "u32"), Member("b", 2, "u16")), r"s\.b: overlaps a at byte 2"),
        ((Member("a", 0, "u32"), Member("b", 6, "u16")), r"s: bytes 4 to 5 are undeclared"),
        ((Member("a", 0, "u32", count=3),), r"s\.a: ends at byte 11 of 8"),
    ],
)
def test_contradictory_structs_are_refused(members, message):
    with pytest.raises(ValueError, match=message):
        Struct("s", size=8, members=members)


@pytest.mark.parametrize(
    "arguments",
    [
        {"type": "u24"},
        {"type": "u8", "offset": -1},
        {"type": "u8", "count": 0},
        {"type": "u8", "default": 256},
        {"type": "i8", "values": {128: "big"}},
        {"type": HEADER, "default": 0},
        {"type": Record("r", bits=24, fields=(Field("a", lsb=0, width=24),))},
    ],
)
def test_contradictory_members_are_refused(arguments):
    with pytest.raises(ValueError, match=r"^m: "):
        Member("m", **{"offset": 0, **arguments})


def test_a_member_is_named_as_a_column():
    with pytest.raises(ValueError, match="invalid field name 'M 1'"):
        Member("M 1", "u8", 0)

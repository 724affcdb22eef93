"""Lines of ``dump`` that follow from a declaration."""

import doctest
import sys

import pytest

from lanescope.wire import Field, Member, Record, Struct, dump_lines
from lanescope.wire.c_struct import INTEGERS

FLAG = Record("flag", bits=8, fields=(Field("low", 0, 4), Field("state", 4, 4, values={1: "on"}, signed=True)))
POINT = Struct("point", size=4, members=(Member("x", 0, "i16"), Member("y", 2, "i16")))
PACKET = Struct(
    "packet",
    size=12,
    members=(
        Member("kind", 0, "u8", values={7: "seven"}),
        Member("flag", 1, FLAG),
        Member("words", 2, "u8", count=2),
        Member("points", 4, POINT, count=2),
    ),
)


def test_the_example_holds():
    assert doctest.testmod(sys.modules[dump_lines.__module__]).failed == 0


def test_a_struct_shows_what_is_in_it():
    (line,) = dump_lines(PACKET, bytes([7, 0x13, 1, 2, *(0xFF, 0xFF), 0, 0, 5, 0, 6, 0]))
    fields = "kind=seven flag.low=3 flag.state=on words=1,2 points[0].x=-1 points[0].y=0"
    assert line == f"0x00000000  07 13 01 02 ff ff 00 00 05 00 06 00  packet  {fields} points[1].x=5 points[1].y=6"


def test_offsets_continue_and_an_incomplete_unit_is_shown():
    lines = list(dump_lines(POINT, bytes(range(10)), offset=0x20))
    assert [line[:10] for line in lines] == ["0x00000020", "0x00000024", "0x00000028"]
    assert lines[-1] == "0x00000028  08 09  point  incomplete: 2 of 4 bytes"
    assert list(dump_lines(POINT, b"")) == []


@pytest.mark.parametrize("kind", INTEGERS)
def test_every_integer_is_shown_as_it_decodes(kind):
    size = INTEGERS[kind][0]
    layout = Struct("one", size=size, members=(Member("value", 0, kind),))
    raw = b"\x80".rjust(size, b"\1")
    (line,) = dump_lines(layout, raw)
    assert line.endswith(f" value={layout.decode(raw)['value']}")

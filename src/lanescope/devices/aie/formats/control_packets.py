"""Control packets: register writes that a DMA sends into the array as stream packets (``ctrlpkt.bin``).

A packet is a word that routes it, a word for the registers of the tile that takes it, and up to four words of data.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from lanescope.wire import Field, Record

_SOURCE = "Xilinx/mlir-aie, lib/Targets and its tests"
ROUTE = Record(
    "aie.control_packet_route",
    bits=32,
    fields=(
        Field("parity", lsb=31, width=1, doc="Makes the number of ones in the word odd.", default=0),
        Field("reserved_15", lsb=15, width=16, doc="Zero.", default=0),
        Field("type", lsb=12, width=3, doc="Packet type of the route to the tile.", default=0),
        Field("reserved_5", lsb=5, width=7, doc="Zero.", default=0),
        Field("id", lsb=0, width=5, doc="Packet id of the route: controller id of the tile."),
    ),
    doc="First word of a control packet: where it goes.",
    source=_SOURCE,
    status="documented",
)
CONTROL = Record(
    "aie.control_packet",
    bits=32,
    fields=(
        Field("parity", lsb=31, width=1, doc="Makes the number of ones in the word odd.", default=0),
        Field("stream_id", lsb=24, width=7, doc="Where what is read is sent to.", default=0),
        Field(
            "opcode", lsb=22, width=2, doc="What it does.", values={0: "write", 1: "read", 2: "block write"}, default=0
        ),
        Field("beats", lsb=20, width=2, doc="Words that are written or read, minus 1.", default=0),
        Field("address", lsb=0, width=20, doc="Byte offset in the tile of the first of them."),
    ),
    doc="Second word of a control packet: what it does to registers.",
    source=_SOURCE,
    status="documented",
)
READ = 1
_OPCODES = 3
#: Controller ids by column and row, as mlir-aie gives them. By default all columns have those of the first one.
_IDS = ((15, 26, 27, 29, 30, 31), (14, 21, 22, 23, 24, 25), (13, 11, 17, 18, 19, 20), (12, 28, 7, 8, 9, 10))
_TILES = {number: (col, row) for col, column in enumerate(_IDS) for row, number in enumerate(column)}


class Packet(NamedTuple):
    """A control packet: controller id of its tile, opcode, byte offset in the tile, words that it writes."""

    controller: int
    opcode: int
    offset: int
    words: Sequence[int]

    @property
    def tile(self) -> tuple[int | None, int] | None:
        """Column and row of its tile by the ids of mlir-aie: None for an id that is none of them.

        The column is None where ids repeat in every column.
        """
        found = _TILES.get(self.controller)
        return found if found is None or found[0] else (None, found[1])


def packets(words: Sequence[int]) -> Iterator[Packet | None]:
    """Yield the packets that words are; None, as the last one, for words that are none."""
    at = 0
    while at < len(words):
        head = words[at : at + 2]
        if len(head) < 2 or any(word.bit_count() % 2 == 0 for word in head):
            yield None
            return
        route, control = ROUTE.decode(head[0]), CONTROL.decode(head[1])
        size = 0 if control["opcode"] == READ else control["beats"] + 1
        data = words[at + 2 : at + 2 + size]
        if route["reserved_15"] or route["reserved_5"] or control["opcode"] >= _OPCODES or len(data) < size:
            yield None
            return
        yield Packet(route["id"], control["opcode"], control["address"], data)
        at += 2 + size


def are_packets(words: Sequence[int]) -> bool:
    """Return whether words are control packets, and nothing else."""
    return len(words) > 0 and None not in packets(words)


def written(writes: Iterable[tuple[int, int, int]]) -> bytes:
    """Return control packets that write to the tiles of one column.

    Args:
        writes: row, byte offset in the tile and value of each.

    Raises:
        ValueError: a row has no controller id.
    """
    words: list[int] = []
    for row, offset, value in writes:
        if row >= len(_IDS[0]):
            raise ValueError(row)
        words += [_odd(ROUTE.encode({"id": _IDS[0][row]})), _odd(CONTROL.encode({"address": offset})), value]
    return struct.pack(f"<{len(words)}I", *words)


def _odd(word: int) -> int:
    return word | (~word.bit_count() & 1) << 31

"""Formats of bundles of AIE2 and AIE2P: how long a bundle is, and where its slots lie.

A bundle is a little-endian number of 2 to 16 bytes. Its lowest bits tell its length, others which of the formats of
that length it has: which slots there are, and where. No two formats fit one bundle. Source: facts of llvm-aie's
composite formats, checked on programs that Peano and Chess built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

#: Slots and their widths in bits; ``lng`` takes the place of ``alu`` and ``mv``.
_WIDTHS = {
    "aie2": {"lda": 21, "ldb": 16, "st": 21, "alu": 20, "mv": 22, "vec": 26, "lng": 42},
    "aie2p": {"lda": 20, "ldb": 17, "st": 20, "alu": 20, "mv": 22, "vec": 26, "lng": 42},
}
#: The lowest bits of a bundle of AIE2 by its bytes; of AIE2P the lowest of them is the other way round.
_LENGTH_CODES = {16: "0", 6: "101", 2: "0001", 4: "1001", 8: "0011", 10: "1011", 12: "0111", 14: "1111"}
#: Formats by bytes, from the highest bit down to the length code: slots, fixed bits, and bits that say nothing (x; of
#: AIE2P they are 0 and part of the fixed ones). ``x9`` is nine of them.
_AIE2 = {
    2: ("x12",),
    4: (
        "vec x 0",
        "x 0001 st x 1",
        "x 0011 mv 1",
        "x2 111 ldb x6 1",
        "x 0000 lda x 1",
        "x 0010 alu x2 1",
    ),
    6: (
        "st alu 0111",
        "lng 010",
        "x3 01 ldb st x 00",
        "x3 00 ldb mv 00",
        "x3 10 ldb alu x2 00",
        "lda st 110",
        "lda mv 01",
        "lda ldb x4 1111",
        "lda alu x 011",
    ),
    8: (
        "st x8 010 vec 10",
        "st x9 mv x5 000",
        "x5 mv x2 110 vec 10",
        "x5 ldb x8 000 vec 10",
        "st ldb alu 101",
        "lda x8 100 vec 10",
        "lda ldb st 11",
        "lda ldb alu 001",
        "x10 alu 01 vec 10",
        "x10 lng 0 x4 100",
        "x10 alu mv 1 x4 100",
    ),
    10: (
        "st mv x2 100 vec 00",
        "st x5 alu 01 vec 10",
        "st x5 lng 0 x2 10011",
        "st x5 alu mv 1 x2 10011",
        "st ldb x5 x2 0001 vec 00",
        "st ldb x9 mv 01101011",
        "x5 ldb mv x2 110 vec 00",
        "x5 ldb x5 alu 10 vec 10",
        "x5 ldb x5 lng 0 x2 00011",
        "x5 ldb x5 alu mv 1 x2 00011",
        "lda st x2 1001 vec 00",
        "lda st x4 mv x 0101011",
        "lda st x11 alu 111",
        "lda mv x2 010 vec 00",
        "lda ldb x6 11101 vec 00",
        "lda ldb x9 mv 11101011",
        "lda x5 alu 00 vec 10",
        "lda x5 lng 0 x 001011",
        "lda x5 alu mv 1 x 001011",
        "x5 lng 0 vec 01",
        "x5 alu mv 1 vec 01",
    ),
    12: (
        "st lng 0 vec 01",
        "st alu mv 1 vec 01",
        "st ldb mv x 0110 vec 10",
        "st ldb x5 alu 01 vec 10",
        "st ldb x5 lng 0 x2 00011",
        "st ldb x5 alu mv 1 x2 00011",
        "ldb x lng 0 1010 vec 10",
        "ldb x alu mv 1 1010 vec 10",
        "lda st alu 00 vec 10",
        "lda st lng 0 x2 00111",
        "lda st alu mv 1 x2 00111",
        "lda ldb st x2 1110 vec 10",
        "lda ldb st x4 mv x3 01111",
        "lda ldb x5 alu st x4 10011",
        "lda ldb mv x 0010 vec 10",
        "lda ldb x5 alu 11 vec 10",
        "lda ldb x5 lng 0 x2 01011",
        "lda ldb x5 alu mv 1 x2 01011",
        "lda lng 0 vec 00",
        "lda alu mv 1 vec 00",
    ),
    14: (
        "st ldb lng 0 vec 01",
        "st ldb alu mv 1 vec 01",
        "lda st x15 1 mv vec 10",
        "lda ldb alu 0 x st vec 10",
        "lda ldb lng 0 st x3 0111",
        "lda ldb alu mv 1 st x3 0111",
        "lda ldb lng 0 vec 00",
        "lda ldb alu mv 1 vec 00",
    ),
    16: (
        "ldb lda st lng 0 vec",
        "ldb lda st alu mv 1 vec",
    ),
}
_AIE2P = {
    2: ("x12",),
    4: (
        "00000 lda 001",
        "00111 ldb 000001",
        "00010 alu 001",
        "00011 mv 1",
        "00001 st 001",
        "vec 00",
    ),
    6: (
        "lda ldb 00000111",
        "lda st 00001",
        "lda alu 00101",
        "lda mv 010",
        "ldb 000 st 01001",
        "ldb 000 alu 00011",
        "ldb 000 mv 110",
        "lng 0 00",
        "alu mv 1 00",
        "st alu 01011",
    ),
    8: (
        "lda 000000000 100 vec 10",
        "00000 ldb 0000000000 vec 10",
        "st 0000000000 mv 00000000",
        "st 0000000000 10 vec 10",
        "0000000000 alu 01 vec 10",
        "00000 mv 00110 vec 10",
        "lda ldb st 011",
        "lda ldb alu 001",
        "st ldb alu 101",
    ),
    10: (
        "lda 0 ldb 00000000 mv 11101011",
        "lda 0 ldb 0000011101 vec 00",
        "lda 0 st 000000000000 alu 111",
        "lda 0 st 00000 mv 00101011",
        "lda 0 st 0001001 vec 00",
        "lda 000000 lng 0 0001011",
        "lda 000000 alu mv 1 0001011",
        "lda 000000 alu 00 vec 10",
        "lda 0 mv 00010 vec 00",
        "st 0 ldb 00000000 mv 01101011",
        "st 0 ldb 0000 000001 vec 00",
        "0000 ldb 00000 lng 0 0000011",
        "0000 ldb 00000 alu mv 1 0000011",
        "0000 ldb 00000 alu 10 vec 10",
        "0000 ldb mv 00110 vec 00",
        "st 000000 lng 0 0010011",
        "st 000000 alu mv 1 0010011",
        "st 000000 alu 01 vec 10",
        "st 0 mv 00100 vec 00",
        "00000 lng 0 vec 01",
        "00000 alu mv 1 vec 01",
    ),
    12: (
        "lda ldb 00000 alu st 0000010011",
        "lda ldb st 00000 mv 00001111",
        "lda ldb 0 st 001110 vec 10",
        "lda ldb 00000 lng 0 0001011",
        "lda ldb 00000 alu mv 1 0001011",
        "lda ldb 00000 alu 11 vec 10",
        "lda ldb mv 00010 vec 10",
        "lda 0 st 0 lng 0 0000111",
        "lda 0 st 0 alu mv 1 0000111",
        "lda 0 st 0 alu 00 vec 10",
        "lda 0 lng 0 vec 00",
        "lda 0 alu mv 1 vec 00",
        "st ldb 00000 lng 0 0000011",
        "st ldb 00000 alu mv 1 0000011",
        "st ldb 00000 alu 01 vec 10",
        "st ldb mv 00110 vec 10",
        "ldb lng 0 1010 vec 10",
        "ldb alu mv 1 1010 vec 10",
        "st 0 lng 0 vec 01",
        "st 0 alu mv 1 vec 01",
    ),
    14: (
        "lda st 00000000000000000 1 mv vec 10",
        "lda ldb lng 0 st 00000111",
        "lda ldb alu mv 1 st 00000111",
        "lda ldb alu 00 st 0 vec 10",
        "st ldb lng 0 vec 01",
        "st ldb alu mv 1 vec 01",
        "lda ldb lng 0 vec 00",
        "lda ldb alu mv 1 vec 00",
    ),
    16: (
        "lda ldb st 0 lng 0 vec",
        "lda ldb st 0 alu mv 1 vec",
    ),
}
_FORMATS = {"aie2": _AIE2, "aie2p": _AIE2P}
FAMILIES = tuple(_FORMATS)
#: The bits that tell the length, and those of AIE2P that are the other way round.
_LENGTH_BITS = 15


@dataclass(frozen=True, slots=True)
class BundleFormat:
    """One format.

    Attributes:
        size: bytes.
        slots: name, lowest bit and width of each slot, from the highest down.
        mask: bits that are fixed, the length code among them.
        value: what they are.
    """

    size: int
    slots: tuple[tuple[str, int, int], ...]
    mask: int
    value: int

    def read(self, word: int) -> dict[str, int]:
        """Return the contents of the slots of a bundle of this format."""
        return {name: word >> low & (1 << width) - 1 for name, low, width in self.slots}

    def write(self, contents: Mapping[str, int]) -> bytes:
        """Return a bundle with these contents; slots without any are 0.

        Raises:
            ValueError: a slot is unknown or too narrow.
        """
        word = self.value
        places = {name: (low, width) for name, low, width in self.slots}
        for name, content in contents.items():
            low, width = places.get(name, (0, 0))
            if not 0 <= content < 1 << width:
                raise ValueError(f"{content:#x} does not fit slot {name}")
            word |= content << low
        return word.to_bytes(self.size, "little")


@cache
def formats(family: str, size: int) -> tuple[BundleFormat, ...]:
    """Return the formats of bundles of so many bytes, in order of the table."""
    return tuple(_format(family, size, row) for row in _FORMATS[family][size])


@cache
def _lengths(family: str) -> bytes:
    """Bytes of a bundle, by its four lowest bits."""
    flipped = int(family == "aie2p")
    found = bytearray(_LENGTH_BITS + 1)
    for size, code in _LENGTH_CODES.items():
        for bits in range(_LENGTH_BITS + 1):
            if (bits ^ flipped) & (1 << len(code)) - 1 == int(code, 2):
                found[bits] = size
    return bytes(found)


def _format(family: str, size: int, row: str) -> BundleFormat:
    low = 8 * size
    slots, mask, value = [], 0, 0
    code = _LENGTH_CODES[size]
    if family == "aie2p":
        code = code[:-1] + str(1 - int(code[-1]))
    for part in (*row.split(), code):
        width = _WIDTHS[family].get(part)
        if width is not None:
            low -= width
            slots.append((part, low, width))
        elif part.startswith("x"):
            low -= int(part[1:] or "1")
        else:
            low -= len(part)
            mask |= (1 << len(part)) - 1 << low
            value |= int(part, 2) << low
    if low:
        raise AssertionError(f"a format of {size} bytes has {low} bits too few: {row}")
    return BundleFormat(size, tuple(slots), mask, value)


def length(family: str, first: int) -> int:
    """Return the bytes of a bundle by its first byte; each byte value has a length."""
    return _lengths(family)[first & _LENGTH_BITS]


def recognize(family: str, bundle: bytes) -> BundleFormat | None:
    """Return the format of a bundle; None: no format fits, or bytes are missing at its end.

    Args:
        family: of the device: ``aie2`` or ``aie2p``.
        bundle: bytes from its first on; more may follow.
    """
    size = length(family, bundle[0]) if bundle else 0
    if not 0 < size <= len(bundle):
        return None
    word = int.from_bytes(bundle[:size], "little")
    return next((each for each in formats(family, size) if word & each.mask == each.value), None)

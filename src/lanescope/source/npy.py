"""The header of a NumPy ``.npy`` file, parsed without NumPy: no pickle, no ``eval``, nothing but three known keys."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from lanescope.errors import InputError

MAGIC = b"\x93NUMPY"
#: Headers of version 1 cannot be longer; longer ones of version 2 and 3 describe structured types.
MAX_HEADER = 65535
#: NumPy's own limit.
MAX_AXES = 64

_KEY = re.compile(
    r"\s*(?:'descr'\s*:\s*'(?P<descr>[^']*)'|'fortran_order'\s*:\s*(?P<fortran>True|False)"
    r"|'shape'\s*:\s*\((?P<shape>[\d\s,L]*)\))\s*(?:,|$)"
)


@dataclass(frozen=True, slots=True)
class NpyHeader:
    """Content of the header of an ``.npy`` file.

    Attributes:
        size: bytes before the first element.
        descr: the type of an element: ``<u8``.
        shape: elements along each axis; empty for a scalar.
    """

    size: int
    descr: str
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Total number of elements."""
        return math.prod(self.shape)


def parse(head: bytes) -> NpyHeader | None:
    """Return the header of an ``.npy`` file, None for other bytes.

    Args:
        head: the file's beginning; all of the header, 64 KiB are enough.

    Raises:
        InputError: it is an ``.npy`` file, but its header is cut off, has another version, another order of the axes,
            or is none that NumPy writes for a plain array.
    """
    if head[: len(MAGIC)] != MAGIC:
        return None
    version = head[6] if len(head) > 6 else 0
    if version not in (1, 2, 3) or len(head) < 12:
        raise InputError(f"unsupported .npy version {version}", hint="write the file with numpy.save")
    prefix = 10 if version == 1 else 12
    length = int.from_bytes(head[8:prefix], "little")
    text = head[prefix : prefix + length].decode("latin-1")
    if length > MAX_HEADER or len(text) < length:
        raise InputError(".npy header is truncated", hint="copy the complete file")
    found = _keys(text)
    if found is None:
        raise InputError("invalid .npy header: expected a plain array", hint="write the file with numpy.save")
    descr, fortran, shape = found
    if fortran and len(shape) > 1:
        raise InputError(
            "unsupported .npy array: Fortran order", hint="save a flat array: numpy.save(path, a.ravel('K'))"
        )
    return NpyHeader(size=prefix + length, descr=descr, shape=shape)


def make(count: int) -> bytes:
    """Return the header that ``numpy.save`` writes for a one-dimensional ``<u8`` array of ``count`` elements."""
    text = f"{{'descr': '<u8', 'fortran_order': False, 'shape': ({count},), }}"
    text += " " * (-(10 + len(text) + 1) % 64) + "\n"
    return MAGIC + b"\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin-1")


def _keys(text: str) -> tuple[str, bool, tuple[int, ...]] | None:
    """Return (descr, fortran_order, shape), None unless the text is a dict of just these three keys."""
    body = text.strip()
    if not (body.startswith("{") and body.endswith("}")):
        return None
    body = body[1:-1].strip()
    found: dict[str, str] = {}
    at = 0
    while at < len(body):
        match = _KEY.match(body, at)
        if match is None or match.lastgroup is None or match.lastgroup in found:
            return None
        found[match.lastgroup] = match[match.lastgroup]
        at = match.end()
        while at < len(body) and body[at].isspace():
            at += 1
    if set(found) != {"descr", "fortran", "shape"}:
        return None
    # Python 2 wrote long numbers as 4096L.
    sizes = tuple(part.strip().rstrip("L") for part in found["shape"].split(",") if part.strip())
    if len(sizes) > MAX_AXES or not all(size.isdigit() and len(size) < 19 for size in sizes):
        return None
    return found["descr"], found["fortran"] == "True", tuple(map(int, sizes))

"""Source: the bytes of one file, whatever it is packed in."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from lanescope.errors import InputError
from lanescope.source.sniff import HEAD_BYTES, Head

#: Small enough to stay in the processor's caches next to what is decoded from it.
CHUNK_BYTES = 1 << 20
_GZIP_MAGIC = b"\x1f\x8b"


class Source:
    """One input file: plain, gzip, or ``-`` for standard input.

    Packed files and pipes are unpacked into an unnamed temporary file first, so that every source can be read twice.

    Args:
        path: as the user gave it.

    Raises:
        InputError: there is no such file, it is a folder, it may not be read, or its compression is broken.

    Attributes:
        path: as the user gave it.
        container: ``raw``, ``gzip`` or ``pipe``.
        size: bytes of content, after decompression.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self.container = "raw"
        self._sha256 = ""
        self._file = _open(self.path)
        if self.path == "-" or not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            self.container = "pipe"
            self._file = _spool(self._file, self.path)
        if self._file.read(2) == _GZIP_MAGIC:
            self.container = "gzip"
            self._file.seek(0)
            self._file = _gunzip(self._file, self.path)
        self.size = self._file.seek(0, os.SEEK_END)

    @property
    def name(self) -> str:
        """File name without the folder."""
        return Path(self.path).name or self.path

    def head(self, size: int = HEAD_BYTES) -> Head:
        """Return at most ``size`` bytes from the start."""
        self._file.seek(0)
        return Head(self._file.read(size), self.size, self.name)

    def chunks(self, size: int = CHUNK_BYTES) -> Iterator[memoryview]:
        """Yield the content in pieces of ``size`` bytes; a piece is valid until the next one is asked for."""
        digest = hashlib.sha256()
        buffer = memoryview(bytearray(min(size, self.size) or 1))
        self._file.seek(0)
        while count := self._file.readinto(buffer):  # type: ignore[attr-defined]
            piece = buffer[:count]
            digest.update(piece)
            yield piece
        self._sha256 = digest.hexdigest()

    def read(self) -> npt.NDArray[np.uint8]:
        """Return the whole content, uint8 [size], in memory."""
        content = np.empty(self.size, np.uint8)
        self._file.seek(0)
        count = self._file.readinto(memoryview(content))  # type: ignore[attr-defined]
        if count != self.size:
            raise InputError(f"{self.path} changed while it was read", hint="read it again when its writer is done")
        self._sha256 = hashlib.sha256(content).hexdigest()
        return content

    @property
    def sha256(self) -> str:
        """SHA-256 of the content, hexadecimal; costs a read if nobody has read it through yet."""
        if not self._sha256:
            for _ in self.chunks():
                pass
        return self._sha256

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _open(path: str) -> BinaryIO:
    if path == "-":
        return sys.stdin.buffer
    try:
        return Path(path).open("rb", buffering=0)  # type: ignore[return-value]
    except FileNotFoundError:
        raise InputError(f"{path}: no such file", hint="check the path") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder", hint="name a file inside it") from None
    except PermissionError:
        raise InputError(f"{path} may not be read", hint="check its permissions") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be opened: {error}", hint="check the path") from None


def _spool(file: BinaryIO, path: str) -> BinaryIO:
    spool = tempfile.TemporaryFile(prefix="lanescope-", buffering=0)  # noqa: SIM115 (lives as long as the source)
    try:
        shutil.copyfileobj(file, spool, CHUNK_BYTES)
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}", hint="check what it is") from None
    spool.seek(0)
    return spool  # type: ignore[return-value]


def _gunzip(file: BinaryIO, path: str) -> BinaryIO:
    from isal import igzip

    spool = tempfile.TemporaryFile(prefix="lanescope-", buffering=0)  # noqa: SIM115 (lives as long as the source)
    try:
        with igzip.open(file, "rb") as unpacked:
            shutil.copyfileobj(unpacked, spool, CHUNK_BYTES)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path}: broken gzip data: {error}", hint="unpack it by hand to see what is left") from None
    spool.seek(0)
    return spool  # type: ignore[return-value]

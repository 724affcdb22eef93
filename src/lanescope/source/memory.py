"""Captures from bytes in memory."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lanescope.errors import UsageError
from lanescope.source.capture import Capture
from lanescope.source.detection import HEAD_BYTES, FileHead
from lanescope.source.file import CHUNK_BYTES, Source, gunzip
from lanescope.source.reader import Reader

_ZIP_MAGIC = b"PK\x03\x04"
_GZIP_MAGIC = b"\x1f\x8b\x08"
#: Name of what has none.
_UNNAMED = "memory"
_WAYS = "pass a path, bytes, a binary file object or a NumPy array"

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class MemoryReader(Reader):
    """Random access to bytes in memory.

    Args:
        data: uint8 [n].
    """

    def __init__(self, data: npt.NDArray[np.uint8]) -> None:
        self._data = data

    def __del__(self) -> None:
        """There is nothing to close."""

    def at(self, offset: int, size: int) -> npt.NDArray[np.uint8]:
        """Return ``size`` bytes from ``offset`` on, uint8 [size]."""
        return self._data[offset : offset + size]


class MemorySource(Source):
    """A source of bytes in memory.

    Args:
        data: uint8 [n]; it must not change while a trace is there that was decoded from it (``own``).
        name: what it is called.

    Raises:
        InputError: it is a damaged or hostile archive of arrays.
    """

    def __init__(self, data: npt.NDArray[np.uint8], name: str) -> None:
        self.path = name
        self.container = "memory"
        if data[:4].tobytes() == _ZIP_MAGIC:
            data = _unpacked(data, name)
        self.size = len(data)
        self.hashes = True
        self.reached = [0]
        self._data = data
        self._hex = ""

    def head(self, size: int = HEAD_BYTES) -> FileHead:
        """Return at most ``size`` bytes from the start."""
        return FileHead(self._data[:size].tobytes(), self.size, self.name)

    def chunks(self, size: int = CHUNK_BYTES) -> Iterator[memoryview]:
        """Yield the content in pieces of ``size`` bytes."""
        view = memoryview(self._data.data)
        for begin in range(0, self.size, size):
            yield view[begin : begin + size]

    def read(self) -> npt.NDArray[np.uint8]:
        """Return the whole content, uint8 [size]."""
        return self._data

    def _map(self) -> tuple[npt.NDArray[np.uint8], None]:
        """Return a copy of the content with a zero behind it, uint8 [size + 1]."""
        import numpy as np

        text = np.empty(self.size + 1, np.uint8)
        text[:-1], text[-1] = self._data, 0
        return text, None

    def reader(self) -> Reader:
        """Return what reads the content anywhere."""
        return MemoryReader(self._data)

    @property
    def sha256(self) -> str:
        """SHA-256 of the content, hexadecimal."""
        if not self._hex:
            from hashlib import sha256

            self._hex = sha256(self._data.data, usedforsecurity=False).hexdigest()
        return self._hex

    def close(self) -> None:
        """There is nothing to close."""


def _unpacked(data: npt.NDArray[np.uint8], name: str) -> npt.NDArray[np.uint8]:
    """Return an archive of arrays with its arrays uncompressed."""
    import numpy as np

    from lanescope.source import npz

    found = npz.unpacked(io.BytesIO(data.data), name, io.BytesIO)
    return data if found is None else np.frombuffer(found.read(), np.uint8)


class MemoryCapture(Capture):
    """A capture of one part in memory, without sidecar files.

    Args:
        data: uint8 [n]; it must not change while a trace is there that was decoded from it (``own``).
        name: what the capture is called.
    """

    def __init__(self, data: npt.NDArray[np.uint8], name: str) -> None:
        self.hashes = True
        self.folder = None
        self._begin(MemorySource(data, name))

    def _beside(self, pattern: str) -> list[str]:
        return []


def memory_capture(given: Any) -> MemoryCapture:
    """Return a capture of bytes that are in memory, or that a file object yields.

    Args:
        given: ``bytes``; another buffer or an array, whose bytes in C order are copied; or a binary file object,
            which is read to its end. Its name, if it has one, is the name of the capture. What is compressed by gzip is
            unpacked.

    Raises:
        UsageError: it is none of these.
        InputError: it is compressed and damaged.
    """
    import numpy as np

    name = _UNNAMED
    if hasattr(given, "read"):
        named = getattr(given, "name", None)
        name = os.fspath(named) if isinstance(named, str | os.PathLike) else _UNNAMED
        given = given.read()
        if not isinstance(given, bytes | bytearray | memoryview):
            raise UsageError(f"{name} was opened as text", hint="open it with mode 'rb'")
    if isinstance(given, bytes | bytearray | memoryview):
        data = np.frombuffer(given, np.uint8)
    elif hasattr(given, "__cuda_array_interface__"):
        raise UsageError("the array is on a GPU", hint="use lanescope.cuda.decode, or copy it to the host")
    else:
        data = _bytes_of(given)
    if data[:3].tobytes() == _GZIP_MAGIC:
        with gunzip(io.BytesIO(data.tobytes()), name) as unpacked:
            data = np.frombuffer(unpacked.read(), np.uint8)
    return MemoryCapture(own(data), name)


def own(data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return bytes that nothing else writes to, uint8 [n]: a copy, unless they are so already.

    Raw records and arguments are decoded when somebody reads them, and a program may reuse its buffer before that.
    """
    base = data.base.obj if isinstance(data.base, memoryview) else data.base
    return data if data.flags.owndata or isinstance(base, bytes) else data.copy()


def _bytes_of(given: Any) -> npt.NDArray[np.uint8]:
    """Return the bytes of an array in C order, uint8 [n]."""
    import numpy as np

    try:
        array = np.from_dlpack(given) if hasattr(given, "__dlpack__") else np.asarray(given)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        raise UsageError(f"cannot read {type(given).__name__} as a capture: {error}", hint=_WAYS) from None
    if array.dtype.hasobject or array.dtype.kind in "US" or not (array.shape or hasattr(given, "dtype")):
        raise UsageError(f"cannot read {type(given).__name__} as a capture", hint=_WAYS)
    found: npt.NDArray[np.uint8] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return found

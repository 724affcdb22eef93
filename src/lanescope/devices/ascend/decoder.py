"""A capture's files to a trace: collect them, read them, interpret them, draw them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.devices.ascend.emit import draw
from lanescope.devices.ascend.formats.files import read_records
from lanescope.devices.ascend.formats.records import Bytes, Records
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.devices.ascend.interpret.sidecars import Sidecars
from lanescope.trace import Trace

if TYPE_CHECKING:
    from lanescope.source import Capture


#: Text has no zeros; records are full of them.
_LOOKED_AT = 4096


def is_binary(text: Bytes) -> bool:
    """Return whether a capture (bytes and a NUL, uint8 [size + 1]) is binary."""
    return b"\0" in text[:-1][:_LOOKED_AT].tobytes()


def read(text: Bytes, path: str, options: Mapping[str, Any]) -> Records:
    """Read a capture, be it a records file or a dump of device memory.

    Args:
        text: its bytes and a NUL, uint8 [size + 1].
        path: for messages.
        options: decode options.

    Raises:
        InputError: it is neither, or cannot be read.
    """
    if not is_binary(text):
        return read_records(text, path)
    from lanescope.devices.ascend.formats import device_dump

    return device_dump.read_dump(text[:-1], path, options)


def _terminated(data: memoryview) -> Bytes | None:
    """Return the array with a zero behind a content that ``Source.read`` gave; None for any other."""
    array = data.obj
    whole = array.base if isinstance(array, np.ndarray) else None
    if not isinstance(whole, np.ndarray) or whole.dtype != np.uint8 or len(whole) != len(data) + 1 or whole[-1]:
        return None
    return whole


class AscendDecoder:
    """Collects the records file, and decodes it when it is complete: its streams have to be joined as a whole.

    Args:
        capture: the capture; neighbours are found beside its main file.
        options: ``deps`` and ``names``: paths, ``none``, or None to look for them; and those of ``binary.read_dump``.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture = capture
        self._options = options
        self._text = np.empty(1, np.uint8)
        self._size = 0

    def feed(self, data: memoryview) -> list[Trace]:
        """Keep the next bytes."""
        whole = _terminated(data)
        if whole is not None and not self._size:
            self._text, self._size = whole, len(data)
            return []
        end = self._size + len(data)
        if end >= len(self._text):
            grown = np.empty(max(2 * end, self._capture.main.size) + 1, np.uint8)
            grown[: self._size] = self._text[: self._size]
            self._text = grown
        self._text[self._size : end] = np.frombuffer(data, np.uint8)
        self._size = end
        return []

    def finish(self) -> list[Trace]:
        """Decode: one batch.

        Raises:
            InputError: the file is cut off, no JSON, of another format version, or a neighbour that was asked for is.
        """
        records = read(self._take_text(), self._capture.main.path, self._options)
        parts = Sidecars.find(self._capture, self._options)
        parts.place_log(records)
        given = {name: value for name, value in self._options.items() if value is not None}
        return [draw(Interpreter(records, parts), self._capture, given)]

    def _take_text(self) -> Bytes:
        text = self._text[: self._size + 1]
        text[self._size] = 0
        self._text = np.empty(1, np.uint8)  # the largest thing we hold: it goes as soon as it is read
        self._size = 0
        return text

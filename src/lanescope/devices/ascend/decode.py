"""A capture's files to a trace: collect them, read them, interpret them, draw them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.devices.ascend.draw import draw
from lanescope.devices.ascend.interpret import Interpreter
from lanescope.devices.ascend.parts import Parts
from lanescope.devices.ascend.records import Bytes, read_records
from lanescope.trace import Trace

if TYPE_CHECKING:
    from lanescope.source import Capture


class AscendDecoder:
    """Collects the records file, and decodes it when it is complete: its streams have to be joined as a whole.

    Args:
        capture: the capture; neighbours are found beside its main file.
        options: ``deps`` and ``names``: paths, ``none``, or None to look for them.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture = capture
        self._options = options
        self._text = np.empty(capture.main.size + 1, np.uint8)
        self._size = 0

    def feed(self, data: memoryview) -> list[Trace]:
        """Keep the next bytes."""
        end = self._size + len(data)
        if end >= len(self._text):
            grown = np.empty(2 * end + 1, np.uint8)
            grown[: self._size] = self._text[: self._size]
            self._text = grown
        self._text[self._size : end] = np.frombuffer(data, np.uint8)
        self._size = end
        return []

    def finish(self) -> list[Trace]:
        """Decode: one batch.

        Raises:
            InputError: the file is cut off, no JSON, of another generation, or a neighbour that was asked for is.
        """
        records = read_records(self._take_text(), self._capture.main.path)
        parts = Parts.find(self._capture, self._options)
        given = {name: value for name, value in self._options.items() if value is not None}
        return [draw(Interpreter(records, parts), self._capture, given)]

    def _take_text(self) -> Bytes:
        text = self._text[: self._size + 1]
        text[self._size] = 0
        self._text = np.empty(1, np.uint8)  # the largest thing we hold: it goes as soon as it is read
        self._size = 0
        return text

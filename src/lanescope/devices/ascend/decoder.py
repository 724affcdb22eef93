"""A capture's files to a trace: collect them, read them, interpret them, draw them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lanescope.devices.ascend.emit import draw
from lanescope.devices.ascend.formats.files import read_records
from lanescope.devices.ascend.formats.records import Bytes, Records
from lanescope.devices.ascend.interpret.resolve import Interpreter
from lanescope.devices.ascend.interpret.sidecars import Sidecars, load
from lanescope.source.disk_arrays import large_work_on_disk
from lanescope.trace import Trace

if TYPE_CHECKING:
    from lanescope.source import Capture, Source


#: Text has no zeros; records are full of them.
_LOOKED_AT = 4096


def is_binary(text: Bytes) -> bool:
    """Return whether a capture (bytes and a NUL, uint8 [size + 1]) is binary."""
    return b"\0" in text[:-1][:_LOOKED_AT].tobytes()


def read(text: Bytes, path: str, options: Mapping[str, Any], reached: list[int] | None = None) -> Records:
    """Read a capture, be it a records file or a dump of device memory.

    Args:
        text: its bytes and a NUL, uint8 [size + 1].
        path: for messages.
        options: decode options.
        reached: one number, the byte of a records file that has been read; it is kept up to date.

    Raises:
        InputError: it is neither, or cannot be read.
    """
    if not is_binary(text):
        return read_records(text, path, reached)
    from lanescope.devices.ascend.formats import device_dump

    return device_dump.read_dump(text[:-1], path, options)


class AscendDecoder:
    """Decodes the records file when it is asked for: its streams have to be joined as a whole.

    Args:
        capture: the capture; neighbours are found beside its main file.
        options: ``deps`` and ``names``: paths, ``none``, or None to look for them; and those of ``binary.read_dump``.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture = capture
        self._options = options

    def feed(self, data: memoryview) -> list[Trace]:
        """Take nothing: the file is read as a whole."""
        return []

    def finish(self) -> list[Trace]:
        """Decode: one batch.

        Raises:
            InputError: the file is cut off, no JSON, of another format version, or a neighbour that was asked for is.
        """
        with large_work_on_disk(self._capture.main.size):
            return [self._drawn()]

    def _drawn(self) -> Trace:
        records = _read_main(self._capture.main, self._options)
        parts = Sidecars.find(self._capture, self._options)
        parts.place_log(records)
        given = {name: value for name, value in self._options.items() if value is not None}
        return draw(Interpreter(records, parts), self._capture, given)


def _read_main(main: Source, options: Mapping[str, Any]) -> Records:
    """Read the main file and let go of its bytes: they are the largest thing there is."""
    if b"\0" in main.head(_LOOKED_AT).data:  # what is read of a dump refers to its bytes
        return read(load(main), main.path, options)
    with main.mapped() as text:
        return read(text, main.path, options, main.reached)

"""Bytes -> words -> trace, for every layout of in-kernel probes.

No record can be placed in time before the whole buffer is known (stride, wrap period, resolution), so all batches come
at the end. A small file is read at once; a large one is read in pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lanescope.devices.cuda.emit.batches import batches
from lanescope.devices.cuda.formats import layout_detection
from lanescope.devices.cuda.formats.buffer import Buffer
from lanescope.devices.cuda.formats.layout import MAX_MHZ, SHORT_NAMES
from lanescope.devices.cuda.formats.word_source import WordSource, content_in, content_of
from lanescope.devices.cuda.interpret import names
from lanescope.errors import UsageError, flag
from lanescope.source import Capture
from lanescope.source.disk_arrays import is_memory_limited, large_arrays_on_disk, made_on_disk
from lanescope.trace import Trace
from lanescope.trace.streams import TracePart

#: Role and ending of the sidecar file that declares a buffer's layout.
LAYOUT_PART, LAYOUT_SIDECAR = "layout", ".layout.toml"
#: Larger files are not read whole.
WHOLE_BYTES = 64 << 20
#: The same where the memory is limited.
LIMITED_BYTES = 8 << 20


class CudaDecoder:
    """Decodes one probe buffer: the capture's main file, or what is fed instead.

    Args:
        capture: the capture; names of events are taken from beside it when no others are given.
        options: as ``family.Cuda.options`` declares them.

    Raises:
        UsageError: an option's value is none.
        InputError: the given file of names cannot be read.
    """

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture = capture
        self._options = dict(options)
        self._check_options()
        self._options = with_layout(capture, self._options)
        self._names = names.given(capture, options["events"], options["groups"])
        self._data = np.empty(0, np.uint8)
        self._size = 0
        self._part: TracePart | None = None

    def limit(self, part: TracePart) -> None:
        """Make no rows of regions outside of a part of the timeline."""
        self._part = part

    def _check_options(self) -> None:
        options = self._options
        for name in ("stride", "anchor", "launch_ns", "max_records"):
            value = options[name]
            if value is not None and not _is_count(value):
                raise UsageError(f"invalid value {value!r} for {flag(name)}: must be a non-negative integer")
        if options["max_records"] == 0:
            raise UsageError(f"invalid value 0 for {flag('max_records')}: must be a positive integer")
        if options["after_finalize"] not in ("split", "ignore"):
            raise UsageError(
                f"invalid value {options['after_finalize']!r} for {flag('after_finalize')} (choose from split, ignore)"
            )
        if options["stale"] not in ("drop", "keep"):
            raise UsageError(f"invalid value {options['stale']!r} for {flag('stale')} (choose from drop, keep)")
        name, params = options["layout"], options["layout_params"]
        if name is not None and name not in SHORT_NAMES.values():
            from lanescope.devices.cuda.formats.declared.catalog import is_file, shipped

            if not isinstance(name, str) or not (is_file(name) or name in shipped()):
                known = ", ".join((*SHORT_NAMES, *shipped()))
                raise UsageError(f"unknown layout {name!r} (choose from {known})")
        is_numbers = isinstance(params, Mapping) and all(_is_number(value) for value in params.values())
        if params is not None and not is_numbers:
            raise UsageError(f"invalid value {params!r} for {flag('layout_params')}: expected numbers by name")
        rate, given = options["clock_mhz"], options["host_anchor"]
        if rate is not None and not (isinstance(rate, int | float) and 1 <= rate <= MAX_MHZ):
            raise UsageError(f"invalid value {rate!r} for {flag('clock_mhz')}: expected MHz, e.g. 1755")
        if given is not None:
            numbers = list(given) if isinstance(given, tuple | list) else []
            numbers += [None] * (3 - len(numbers))
            if len(numbers) != 3 or not all(_is_count(n) for n in numbers[:2]) or not _is_count(numbers[2] or 0):
                raise UsageError(f"invalid value {given!r} for {flag('host_anchor')}: expected (globaltimer, unix_ns)")
            options["host_anchor"] = tuple(numbers)

    def feed(self, data: memoryview) -> list[Trace]:
        """Keep the bytes."""
        end = self._size + len(data)
        whole = self._capture.main.size
        if len(data) == end == whole:
            self._data = np.frombuffer(data, np.uint8)
        else:
            if end > len(self._data):
                grown = np.empty(max(end, whole, 2 * len(self._data)), np.uint8)
                grown[: self._size] = self._data[: self._size]
                self._data = grown
            self._data[self._size : end] = np.frombuffer(data, np.uint8)
        self._size = end
        return []

    def finish(self) -> Iterator[Trace]:
        """Decode the buffer.

        Raises:
            InputError: the file is not an array of words, or does not start with a known header.
            UsageError: an option does not go with the layout.
        """
        with large_arrays_on_disk():
            buffer, content = self._read()
        found = batches(self._capture, self._options, self._names, buffer, content, self._part)
        return made_on_disk(found)

    def _read(self) -> tuple[Buffer, WordSource]:
        main = self._capture.main
        if self._size or not main.size:
            content = content_of(self._data[: self._size])
        elif main.container == "memory" or main.size <= _whole_bytes():
            content = content_of(main.read())
        else:
            content = content_in(main.reader(), main.size)
        return layout_detection.read(content, self._options), content


def _whole_bytes() -> int:
    """Return how many bytes a file may have that is read as a whole."""
    return min(LIMITED_BYTES, WHOLE_BYTES) if is_memory_limited() else WHOLE_BYTES


def keeps_lanes_whole(capture: Capture, options: Mapping[str, Any]) -> bool:
    """Return whether no record of one lane ends what another began; errors as those of the decoder."""
    main = capture.main
    is_read = main.container == "memory" or main.size <= _whole_bytes()
    content = content_of(main.read()) if is_read else content_in(main.reader(), main.size)
    return not layout_detection.read(content, with_layout(capture, options)).has_special


def with_layout(capture: Capture, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the layout file next to the capture as its layout, where none is given."""
    found = dict(options)
    if found["layout"] is None:
        source = capture.sidecar(LAYOUT_PART, None, (capture.name_pattern + LAYOUT_SIDECAR,))
        found["layout"] = None if source is None else source.path
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62

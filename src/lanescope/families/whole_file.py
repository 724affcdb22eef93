"""Decoding by one function: it is given a whole file, and returns a builder that has all its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanescope.trace import TimeBase, Trace, TraceBuilder

if TYPE_CHECKING:
    from fractions import Fraction

    from lanescope.families.family import Family, Format
    from lanescope.source import Capture


@dataclass(frozen=True, slots=True, eq=False)
class DecodeContext:
    """What a ``Format.decode_file`` function gets with the bytes.

    Attributes:
        family: the family that decodes.
        format: its format.
        capture: the opened capture; sidecar files are opened with ``capture.sidecar``.
        options: the value of each decode option, defaults filled in.
    """

    family: Family
    format: Format
    capture: Capture
    options: Mapping[str, Any]

    def builder(self, *, frequency: Fraction | int | None, epoch_kind: str = "first_event") -> TraceBuilder:
        """Return a builder with the family's tables and stats, and with the main file as input 0.

        Args:
            frequency: of the timestamps in Hz; None or 0: unknown, and the trace counts cycles instead of nanoseconds.
            epoch_kind: what ``ts == 0`` is, see ``TimeBase``.
        """
        builder = TraceBuilder(
            TimeBase(epoch_kind=epoch_kind, time_unit="ns" if frequency else "cycles"),
            details=self.family.tables,
            stats=self.family.stats,
        )
        main = self.capture.main
        builder.input(
            capture=self.capture.name,
            path=main.path,
            size=main.size,
            sha256=main.sha256,
            family=self.family.name,
            format=self.format.name,
            options=self.options,
        )
        return builder


class WholeFileDecoder:
    """The ``Decoder`` of a format that declares ``decode_file``: one batch, at the end of the input.

    Args:
        context: handed to the function of its format.
    """

    def __init__(self, context: DecodeContext) -> None:
        self._context = context
        self._data = memoryview(b"")

    def feed(self, data: memoryview) -> list[Trace]:
        """Take the file, all of it at once."""
        self._data = data
        return []

    def finish(self) -> list[Trace]:
        """Decode it."""
        decode_file = self._context.format.decode_file
        assert decode_file is not None, f"format {self._context.format.name} declares no decode_file"
        data, self._data = self._data, memoryview(b"")
        return [decode_file(data, self._context).finish()]

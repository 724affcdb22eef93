"""Decoding by one function: it is given a whole file, and returns a builder that has all its rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lanescope.trace import TimeBase, Trace, TraceBuilder

if TYPE_CHECKING:
    from fractions import Fraction

    from lanescope.source import Capture
    from lanescope.trace import StatSpec, TableSpec


@dataclass(frozen=True, slots=True, eq=False)
class DecodeContext:
    """Context of a ``Format.decode_file`` function.

    Attributes:
        family: name of the family that decodes.
        format: name of its format.
        tables: the family's detail tables.
        stats: the family's stats.
        capture: the opened capture; sidecar files are opened with ``capture.sidecar``.
        options: the value of each decode option, defaults filled in.
    """

    family: str
    format: str
    tables: tuple[TableSpec, ...]
    stats: tuple[StatSpec, ...]
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
            details=self.tables,
            stats=self.stats,
        )
        main = self.capture.main
        builder.input(
            capture=self.capture.name,
            path=main.path,
            size=main.size,
            sha256=main.sha256,
            family=self.family,
            format=self.format,
            options=self.options,
        )
        return builder


class WholeFileDecoder:
    """The ``Decoder`` of a format that declares ``decode_file``: one batch, at the end of the input.

    Args:
        decode: the function of the format.
        context: handed to that function.
    """

    def __init__(self, decode: Callable[[memoryview, DecodeContext], TraceBuilder], context: DecodeContext) -> None:
        self._decode = decode
        self._context = context
        self._data = memoryview(b"")

    def feed(self, data: memoryview) -> list[Trace]:
        """Take the file, all of it at once."""
        self._data = data
        return []

    def finish(self) -> list[Trace]:
        """Decode it."""
        data, self._data = self._data, memoryview(b"")
        return [self._decode(data, self._context).finish()]

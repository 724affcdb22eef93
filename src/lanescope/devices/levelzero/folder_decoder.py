"""What decoders of CTF folders share: they read when all is there, and each file is an input."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.text_decoder import tolerance_of
from lanescope.errors import UsageError
from lanescope.source import Capture, Source
from lanescope.trace import Table, Trace, TraceBuilder


class FolderDecoder:
    """Decodes one folder.

    Args:
        capture: the capture: a folder, or the description of one trace in it.
        options: as ``family.LevelZero.options`` declares them.

    Attributes:
        format: name of the format.
        what: what such a folder is, for messages.

    Raises:
        UsageError: an option that only texts have.
    """

    format: str
    what: str

    def __init__(self, capture: Capture, options: Mapping[str, Any]) -> None:
        self._capture, self._options = capture, dict(options)
        self._tolerance = tolerance_of(options)
        if options["time_format"] != "auto" or options["start_date"] is not None:
            raise UsageError(f"{self.what} contains its date and times", hint="remove --time-format and --start-date")

    def feed(self, data: memoryview) -> list[Trace]:
        """Take bytes of the description; the streams beside it are read at the end."""
        return []

    def _inputs(self, builder: TraceBuilder, sources: Iterable[tuple[str, Source]]) -> dict[str, int]:
        """Add each file as an input, the main one first; return their ids by name within the capture."""
        options = {name: value for name, value in self._options.items() if value is not None}
        return {
            part: builder.input(
                capture=self._capture.name,
                role="main" if source is self._capture.main else part,
                path=source.path,
                size=source.size,
                sha256=source.content_hash,
                family="levelzero",
                format=self.format,
                options=options,
            )
            for part, source in sorted(sources, key=lambda pair: pair[1] is not self._capture.main)
        }


def keep_records(builder: TraceBuilder, events: Events) -> None:
    """Keep the event model within reach, as raw records."""
    for name, table in events.items():
        builder.records(f"levelzero.{name}", partial(_same, table))


def _same(table: Table) -> Table:
    return table

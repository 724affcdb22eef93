"""Captures of a dataset, one after the other, as far as a window of each has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lanescope.analysis.windows.window import Window
from lanescope.errors import UsageError
from lanescope.io.dataset import tables
from lanescope.io.dataset.records import CaptureRecord, Catalog
from lanescope.pipeline import trace_queries
from lanescope.trace import Trace


class CaptureParts:
    """Reads the captures of a dataset; of each the part in a window, in times of that capture.

    Args:
        catalog: the dataset.
        window: the window; None: all of each capture.

    Attributes:
        catalog: the dataset.
        window: the window.
        refused: captures that the window fits not at all, as they have no such lane or slice, each with the error.
    """

    def __init__(self, catalog: Catalog, window: Window | None = None) -> None:
        self.catalog = catalog
        self.window = window
        self.refused: dict[str, UsageError] = {}
        self._fits = False

    def each(
        self,
        records: Sequence[CaptureRecord],
        names: Sequence[str] = (),
        columns: Sequence[str] = (),
        *,
        keeps_whole: bool = False,
    ) -> Iterator[tuple[CaptureRecord, Trace]]:
        """Yield each capture with its part; one of them is in memory at a time.

        Args:
            records: the captures.
            names: tables to read; empty: all.
            columns: columns of slices that are wanted; of a window, all are read. Empty: all.
            keeps_whole: a part keeps the capture that it was cut from, as ``trace_queries.window`` does.

        Raises:
            InputError: a file is missing or broken.
            UsageError: the window fits none of the captures that were asked for, now or before.
        """
        for record in records:
            trace = tables.read_capture(self.catalog, record, names, columns if self.window is None else ())
            try:
                part = trace_queries.windowed(trace, self.window, keeps_whole=keeps_whole)
            except UsageError as error:
                self.refused.setdefault(record.capture, error)
                continue
            finally:
                del trace
            self._fits = True
            yield record, part
            del part
        if self.refused and not self._fits:
            raise next(iter(self.refused.values()))

"""Which slices a window selects, where it has all times and lanes: batches need not be cut, nor kept."""

from __future__ import annotations

from lanescope.analysis.windows.cut import Limits, WindowCut
from lanescope.analysis.windows.report import marked
from lanescope.analysis.windows.window import HIGHEST, LOWEST
from lanescope.trace import Table, Trace


class FilterMarks(WindowCut):
    """Tells which slices of the batches of one decode a window selects by name and duration; all of them stay."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits, at_once=True, keeps_filtered=True)
        self._stat_count = 0

    @staticmethod
    def suffice(limits: Limits) -> bool:
        """Return whether a window has all times and lanes, and needs no other slices to tell whether it has one."""
        return limits.begin == LOWEST and limits.end == HIGHEST and not (limits.window.lanes or limits.window.where)

    def mark(self, batch: Trace) -> Trace:
        """Look at the next batch, and return it with the window in its inputs."""
        self._slices(batch.slices, None)
        self._stat_count += len(batch.stats)
        return self._changed(batch, inputs=marked(batch.inputs, self._limits.window))

    def closed(self, last: Trace) -> Trace:
        """Return the last batch with the stats of the window."""
        return self._changed(last, stats=Table.concat([last.stats, self._stats(self._stat_count)]))

    @staticmethod
    def _changed(batch: Trace, **tables: Table) -> Trace:
        return Trace(batch.time, {**batch.tables(), **tables}, batch.details, batch.records)

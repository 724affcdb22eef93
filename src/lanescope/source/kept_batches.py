"""Batches of a stream that are kept until all have come: on disk where the memory is limited."""

from __future__ import annotations

from collections.abc import Iterator

from lanescope.source.disk_arrays import is_memory_limited, kept_on_disk
from lanescope.trace import Table, Trace
from lanescope.trace.trace import SHARED

#: So many rows at a time go to disk where the memory is limited.
SPILLED_ROWS = 1 << 17


class KeptBatches:
    """Batches in their order. Where the memory is limited, many small ones become one whose arrays are on disk."""

    def __init__(self) -> None:
        self._batches: list[Trace] = []
        self._spilled = 0  # so many of them are on disk
        self._waiting = 0  # rows of the others

    def __iter__(self) -> Iterator[Trace]:
        return iter(self._batches)

    def add(self, batch: Trace) -> None:
        """Keep the next batch."""
        self._batches.append(batch)
        self._waiting += sum(len(table) for name, table in batch.tables().items() if name not in SHARED)
        if self._waiting >= SPILLED_ROWS and is_memory_limited():
            self._spill()

    def clear(self) -> None:
        """Let go of all of them."""
        self._batches.clear()
        self._spilled = self._waiting = 0

    def joined(self) -> Trace:
        """Return them as one trace."""
        return Trace.concat(self._batches)

    def _spill(self) -> None:
        some = Trace.concat(self._batches[self._spilled :])
        with kept_on_disk():
            core = {name: table if name in SHARED else _copied(table) for name, table in some.tables().items()}
        details = {name: core[name] for name in some.details}
        self._batches[self._spilled :] = [Trace(some.time, core, details, some.records)]
        self._spilled, self._waiting = len(self._batches), 0


def _copied(table: Table) -> Table:
    """Return a table of arrays that are made now, and refer to nothing else."""
    return Table(table.spec, {name: table.column(name).copied() for name in table.spec.names})

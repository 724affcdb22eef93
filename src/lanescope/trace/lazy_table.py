"""Tables computed at the first read."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from lanescope.trace.schema import TableSpec
from lanescope.trace.table import Table


class LazyTable:
    """A declared table whose rows are computed at the first use and then kept.

    Attributes:
        spec: its declaration; reading it makes nothing.
    """

    def __init__(self, spec: TableSpec, make: Callable[[], Table]) -> None:
        self.spec = spec
        self._make = make

    def __repr__(self) -> str:
        return f"<LazyTable {self.spec.name}: {len(self.spec.columns)} columns>"

    @cached_property
    def table(self) -> Table:
        """The table, computed at the first access."""
        return self._make()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Export as ``Table`` does; makes the table."""
        return self.table.__arrow_c_stream__(requested_schema)

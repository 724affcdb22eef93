"""The event model: decoded by every device family, read by every writer, check and view.

Names are loaded when they are first used: declaring a family needs ``declaration`` of this package, but no numpy.

More than 14 modules: the maker of declared classes lies below all rooms that declare, and costs no room of its own.
"""

from __future__ import annotations

from lanescope.lazy_names import lazy_names

TYPE_CHECKING = False  # as in ``typing``, which costs more to import than all of this
if TYPE_CHECKING:
    from lanescope.trace.builder import TraceBuilder
    from lanescope.trace.clocks import ticks_to_ns, usable_frequency
    from lanescope.trace.column import Column, Dictionary
    from lanescope.trace.schema import ColumnSpec, Flag, TableSpec, argument, ref, ticks, time
    from lanescope.trace.stats import StatSpec
    from lanescope.trace.table import LazyTable, Table
    from lanescope.trace.trace import Origin, TimeBase, Trace

#: The module that holds each name.
_HOME = {
    "Column": "column",
    "ColumnSpec": "schema",
    "Dictionary": "column",
    "Flag": "schema",
    "LazyTable": "table",
    "Origin": "trace",
    "StatSpec": "stats",
    "Table": "table",
    "TableSpec": "schema",
    "TimeBase": "trace",
    "Trace": "trace",
    "TraceBuilder": "builder",
    "argument": "schema",
    "ref": "schema",
    "ticks": "schema",
    "ticks_to_ns": "clocks",
    "time": "schema",
    "usable_frequency": "clocks",
}

__all__ = [
    "Column",
    "ColumnSpec",
    "Dictionary",
    "Flag",
    "LazyTable",
    "Origin",
    "StatSpec",
    "Table",
    "TableSpec",
    "TimeBase",
    "Trace",
    "TraceBuilder",
    "argument",
    "ref",
    "ticks",
    "ticks_to_ns",
    "time",
    "usable_frequency",
]

__getattr__ = lazy_names(__name__, _HOME, globals())


def __dir__() -> list[str]:
    """Return the names, loaded or not."""
    return sorted(__all__)

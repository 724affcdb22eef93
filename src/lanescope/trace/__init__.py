"""The event model: decoded by every device family, read by every writer, check and view."""

from lanescope.trace.builder import TraceBuilder
from lanescope.trace.clocks import ticks_to_ns, usable_frequency
from lanescope.trace.column import Column, Dictionary
from lanescope.trace.schema import ColumnSpec, Flag, TableSpec, argument, ref, ticks, time
from lanescope.trace.stats import StatSpec
from lanescope.trace.table import LazyTable, Table
from lanescope.trace.trace import TimeBase, Trace

__all__ = [
    "Column",
    "ColumnSpec",
    "Dictionary",
    "Flag",
    "LazyTable",
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

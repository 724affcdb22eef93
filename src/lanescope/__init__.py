"""lanescope: one checked timeline from the raw device-side traces of accelerators.

Everything public stands in ``__all__``. Names are loaded when they are first used, so that ``import lanescope``
costs next to nothing: it imports neither numpy nor any other package.

Example:
    >>> import lanescope
    >>> trace = lanescope.open("run.bin")           # doctest: +SKIP
    >>> trace.slices["dur"].sum()                   # doctest: +SKIP
"""

from __future__ import annotations

from lanescope.lazy_names import lazy_names

__version__ = "0.1.0"

TYPE_CHECKING = False  # as in ``typing``, which costs more to import than all of this
if TYPE_CHECKING:
    from lanescope.errors import (
        DataLossError,
        InputError,
        InternalError,
        LanescopeError,
        MergeError,
        MissingDependencyError,
        UsageError,
    )
    from lanescope.pipeline.comparing import compare
    from lanescope.pipeline.session import (
        check,
        convert,
        derived_tables,
        detect,
        explain,
        iter_batches,
        merge,
        open,
        simulate,
        summary,
        write,
    )
    from lanescope.pipeline.trace_queries import align, critical_path, longest_gaps, overview, phases, sql, window
    from lanescope.trace import ColumnSpec, Flag, StatSpec, Table, TableSpec, TimeBase, Trace, TraceBuilder

#: The module that holds each public name.
_HOME = {
    "cuda": "cuda",
    "levelzero": "levelzero",
    "DataLossError": "errors",
    "InputError": "errors",
    "InternalError": "errors",
    "LanescopeError": "errors",
    "MergeError": "errors",
    "MissingDependencyError": "errors",
    "UsageError": "errors",
    "align": "pipeline.trace_queries",
    "check": "pipeline.session",
    "compare": "pipeline.comparing",
    "convert": "pipeline.session",
    "critical_path": "pipeline.trace_queries",
    "derived_tables": "pipeline.session",
    "detect": "pipeline.session",
    "explain": "pipeline.session",
    "iter_batches": "pipeline.session",
    "longest_gaps": "pipeline.trace_queries",
    "overview": "pipeline.trace_queries",
    "merge": "pipeline.session",
    "open": "pipeline.session",
    "phases": "pipeline.trace_queries",
    "simulate": "pipeline.session",
    "sql": "pipeline.trace_queries",
    "summary": "pipeline.session",
    "window": "pipeline.trace_queries",
    "write": "pipeline.session",
    "ColumnSpec": "trace",
    "Flag": "trace",
    "StatSpec": "trace",
    "Table": "trace",
    "TableSpec": "trace",
    "TimeBase": "trace",
    "Trace": "trace",
    "TraceBuilder": "trace",
}

__all__ = [
    "ColumnSpec",
    "DataLossError",
    "Flag",
    "InputError",
    "InternalError",
    "LanescopeError",
    "MergeError",
    "MissingDependencyError",
    "StatSpec",
    "Table",
    "TableSpec",
    "TimeBase",
    "Trace",
    "TraceBuilder",
    "UsageError",
    "__version__",
    "align",
    "check",
    "compare",
    "convert",
    "critical_path",
    "derived_tables",
    "detect",
    "explain",
    "iter_batches",
    "longest_gaps",
    "merge",
    "open",
    "overview",
    "phases",
    "simulate",
    "sql",
    "summary",
    "window",
    "write",
]

__getattr__ = lazy_names(__name__, _HOME, globals())


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted(__all__)

"""lanescope: one checked timeline from the raw device-side traces of accelerators.

Everything public stands in ``__all__``. Names are loaded when they are first used, so that ``import lanescope``
costs next to nothing: it imports neither numpy nor any other package.

Example:
    >>> import lanescope
    >>> trace = lanescope.open("run.bin")           # doctest: +SKIP
    >>> trace.slices["dur"].sum()                   # doctest: +SKIP
"""

from __future__ import annotations

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
    from lanescope.pipeline.session import (
        check,
        convert,
        derived_tables,
        detect,
        iter_batches,
        merge,
        open,
        simulate,
        summary,
        write,
    )
    from lanescope.trace import ColumnSpec, Flag, StatSpec, Table, TableSpec, TimeBase, Trace, TraceBuilder

#: The module that holds each public name.
_HOME = {
    "DataLossError": "errors",
    "InputError": "errors",
    "InternalError": "errors",
    "LanescopeError": "errors",
    "MergeError": "errors",
    "MissingDependencyError": "errors",
    "UsageError": "errors",
    "check": "pipeline.session",
    "convert": "pipeline.session",
    "derived_tables": "pipeline.session",
    "detect": "pipeline.session",
    "iter_batches": "pipeline.session",
    "merge": "pipeline.session",
    "open": "pipeline.session",
    "simulate": "pipeline.session",
    "summary": "pipeline.session",
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
    "check",
    "convert",
    "derived_tables",
    "detect",
    "iter_batches",
    "merge",
    "open",
    "simulate",
    "summary",
    "write",
]


def __getattr__(name: str) -> object:
    """Load a public name at its first use (PEP 562)."""
    from importlib import import_module

    if name in ("cuda", "levelzero"):  # modules of their own: buffers without a file, programs that are recorded
        return import_module(f"lanescope.{name}")
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted(__all__)

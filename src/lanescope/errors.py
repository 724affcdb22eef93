"""Every error that lanescope raises on purpose.

::

    LanescopeError          one line for the user, a hint that says what to do next, an exit status
    ├─ UsageError           the call is wrong: unknown option, unknown family, a column that is not there   exit 2
    ├─ InputError           the bytes cannot be read as a capture: path, permission, no known format        exit 3
    ├─ DataLossError        only under ``--strict``: the capture has lost data                              exit 4
    ├─ MergeError           captures have no common clock, or are the same capture twice                    exit 2
    ├─ MissingDependencyError     an optional package or tool is not there; the hint names it                     exit 2
    └─ InternalError        lanescope broke its own promise (a bug of ours)                                 exit 70

Bad *data* inside a readable capture never raises: it becomes a gap row, a stat and an accounting row.
"""

from __future__ import annotations


class LanescopeError(Exception):
    """Base of all errors raised on purpose.

    Args:
        message: one line, what is wrong.
        hint: one line, what to do next; may be empty.
    """

    exit_status = 70

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Return message and hint on one line."""
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageError(LanescopeError):
    """The call is wrong: an unknown option, family, format or column."""

    exit_status = 2


class InputError(LanescopeError):
    """The input cannot be read as a capture."""

    exit_status = 3


class DataLossError(LanescopeError):
    """The capture has lost data and the caller asked for none."""

    exit_status = 4


class MergeError(LanescopeError):
    """Captures cannot be put on one time base.

    Args:
        message: as of ``LanescopeError``.
        hint: as of ``LanescopeError``.
        lacks: what decode options could add: ``clock`` (a relation of their clocks), ``frequency``, or empty.
        traces: which of the traces lack it.
    """

    exit_status = 2

    def __init__(self, message: str, *, hint: str = "", lacks: str = "", traces: tuple[int, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.lacks = lacks
        self.traces = traces


class MissingDependencyError(LanescopeError):
    """An optional package or tool is missing."""

    exit_status = 2


class InternalError(LanescopeError):
    """lanescope broke one of its own promises."""

    exit_status = 70

"""Every error that lanescope raises on purpose.

::

    LanescopeError                one line for the user, an imperative hint, an exit status
    ├─ UsageError                 invalid call: unknown option, unknown family, unknown column           exit 2
    ├─ InputError                 unreadable capture: path, permission, unrecognized format              exit 3
    ├─ DataLossError              only under ``--strict``: the capture has lost data                     exit 4
    ├─ MergeError                 captures without a common clock, or the same capture twice             exit 2
    ├─ MissingDependencyError     missing optional package or tool; the hint names it                    exit 2
    └─ InternalError              a bug in lanescope                                                     exit 70

Messages are lower case without a final period: ``[SUBJECT: ]PROBLEM``, e.g. ``cannot X``, ``X not found``,
``invalid X 'v': expected Y``, ``unknown X 'v' (choose from a, b)``, ``X already exists``, ``X requires Y``. Hints are
imperative and complete: ``use --force to overwrite``. ``tests/test_language.py`` checks both.

Bad *data* inside a readable capture never raises: it becomes a gap row, a stat and an accounting row.
"""

from __future__ import annotations


def os_reason(error: OSError) -> str:
    """Return the system's reason in lower case, as messages end with it: ``no such file or directory``."""
    text = error.strerror or str(error)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def flag(option: str) -> str:
    """Return an option as the command line spells it: ``clock_mhz`` is ``--clock-mhz``."""
    return "--" + option.replace("_", "-")


class LanescopeError(Exception):
    """Base of all errors raised on purpose.

    Args:
        message: one line, the problem.
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
    """Invalid call: an unknown option, family, format or column."""

    exit_status = 2


class InputError(LanescopeError):
    """Unreadable capture."""

    exit_status = 3


class DataLossError(LanescopeError):
    """Data loss in a capture that was opened with ``--strict``."""

    exit_status = 4


class MergeError(LanescopeError):
    """Captures without a common time base.

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
    """Missing optional package or tool."""

    exit_status = 2


class InternalError(LanescopeError):
    """A bug in lanescope."""

    exit_status = 70

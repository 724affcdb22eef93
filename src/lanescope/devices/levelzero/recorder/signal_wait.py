"""Waiting for blocked signals, for a limited time.

``signal.sigtimedwait`` of Python returns whatever stood in memory, such as the signal before, if this process was
stopped and continued in the meantime (Ctrl-Z, ``fg``) and the time is over then. So the system's function is called.

Standard library only.
"""

from __future__ import annotations

import ctypes
from collections.abc import Collection
from typing import NamedTuple

#: Bytes of ``sigset_t`` and of ``siginfo_t``, where ``si_code`` is the third ``int``. Source: glibc and musl on Linux.
_BYTES = 128
_CODE = 2


class _Time(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("ns", ctypes.c_long))


class Taken(NamedTuple):
    """A signal.

    Attributes:
        number: its number.
        code: where it is from, ``si_code``.
    """

    number: int
    code: int


class SignalWait:
    """Takes signals that are pending in this process.

    Args:
        numbers: the signals, which the caller has blocked.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self._libc = ctypes.CDLL(None)
        self._numbers = ctypes.create_string_buffer(_BYTES)
        self._about = (ctypes.c_int * (_BYTES // ctypes.sizeof(ctypes.c_int)))()
        self._libc.sigemptyset(self._numbers)
        for number in numbers:
            self._libc.sigaddset(self._numbers, int(number))

    def take(self, timeout_s: float) -> Taken | None:
        """Return the next signal; None if none came in time, or if this process was stopped and continued.

        Args:
            timeout_s: how long to wait, s.
        """
        limit = _Time(int(timeout_s), int(timeout_s % 1 * 1_000_000_000))
        number = self._libc.sigtimedwait(self._numbers, self._about, ctypes.byref(limit))
        return Taken(number, self._about[_CODE]) if number > 0 else None

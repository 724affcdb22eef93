"""Signals that were sent to the whole process group: they reach the program by themselves.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
import warnings
from collections.abc import Collection
from types import TracebackType

#: How long a signal may take from one process of a group to another.
_GRACE_S = 0.001
#: Signals of one number that come as close together as this are one, as the kernel may take them too.
_TOGETHER_S = 0.01


class GroupSentinel:
    """A process of our group that only receives signals.

    A signal does not say whether it was sent to one process or to a group. One for the group becomes pending in this
    process, too, and before it does in ours: the kernel begins with the newest member.

    Without such a process, as where none can be forked, every signal is taken for one to us alone.

    Args:
        numbers: the signals, which the caller has blocked.
    """

    def __init__(self, numbers: Collection[int]) -> None:
        self._numbers = set(numbers)
        self._pid = 0
        self._last: dict[int, float] = {}

    def __enter__(self) -> GroupSentinel:
        with contextlib.suppress(OSError):
            self._begin()
        return self

    def _begin(self) -> None:
        asked, self._ask = os.pipe()
        self._answer, answered = os.pipe()
        try:
            with warnings.catch_warnings():
                # Of threads that may hold locks; the new process takes none.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._pid = os.fork()
        except OSError:
            os.close(self._ask)
            os.close(self._answer)
            raise
        finally:
            if self._pid:
                os.close(asked)
                os.close(answered)
        if self._pid == 0:
            self._receive(asked, answered)

    def _receive(self, asked: int, answered: int) -> None:
        """Take what is pending whenever the parent asks for it; end with the parent."""
        try:
            os.close(self._ask)
            while os.read(asked, 1):
                self._drain()
                os.write(answered, b".")
        finally:
            os._exit(0)

    def _drain(self) -> None:
        while signal.sigtimedwait(self._numbers, 0) is not None:
            pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._pid:
            os.close(self._ask)
            os.close(self._answer)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self._pid, 0)

    def has_got(self, number: int) -> bool:
        """Return whether a signal that has just come to us was sent to the group.

        Args:
            number: the signal.
        """
        if not self._pid:
            return False
        is_there = self._is_pending(number)
        if not is_there:
            time.sleep(_GRACE_S)
            is_there = self._is_pending(number)
        now = time.monotonic()
        if is_there:
            with contextlib.suppress(OSError):
                os.write(self._ask, b".")
                os.read(self._answer, 1)
            self._last[number] = now
            return True
        # Another one to the group that came before this one was taken is pending in us alone.
        return now - self._last.get(number, -1.0) < _TOGETHER_S

    def _is_pending(self, number: int) -> bool:
        try:
            with open(f"/proc/{self._pid}/status", "rb") as file:  # noqa: PTH123
                _, _, rest = file.read().partition(b"\nShdPnd:")
        except OSError:
            return False
        mask = rest.split(maxsplit=1)[0] if rest else b"0"
        return bool(int(mask, 16) >> (number - 1) & 1)

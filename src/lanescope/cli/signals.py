"""Signals that ask a command to end: what it has begun to write goes, and its exit status names the signal."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from types import FrameType

from lanescope.cli import EndedBySignal

#: Ctrl-C; what ``kill`` and service managers send; the terminal is gone.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def ending_clean() -> Iterator[None]:
    """Let a signal end the block by an exception, so that everything in it can clean up.

    A second signal ends the process at once, whatever hangs; unfinished outputs are removed even so. Signals that this
    process was told to ignore stay ignored, and handlers of others stay.

    Raises:
        KeyboardInterrupt: SIGINT came.
        EndedBySignal: another one came.
    """
    if current_thread() is not main_thread():  # only there can handlers be set
        yield
        return
    seen: list[int] = []

    def handle(number: int, frame: FrameType | None) -> None:
        if seen:
            _discard()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        seen.append(number)
        raise _exception(number)

    usual = (signal.SIG_DFL, signal.default_int_handler)
    ours = [number for number in ENDING if signal.getsignal(number) in usual]
    before = {number: signal.signal(number, handle) for number in ours}
    try:
        yield
    except BaseException:
        if not seen:
            raise
        # The exception may be another one by now: DuckDB, for example, replaces what a handler has raised.
        _discard()
        raise _exception(seen[0]) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ending_at_once() -> Iterator[None]:
    """Let a signal end the process in the middle of native code that does not look for signals.

    Nothing may be open for writing meanwhile.
    """
    if current_thread() is not main_thread():
        yield
        return
    ours = [number for number in ENDING if signal.getsignal(number) not in (signal.SIG_IGN, None)]
    before = {number: signal.signal(number, signal.SIG_DFL) for number in ours}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _exception(number: int) -> BaseException:
    return KeyboardInterrupt() if number == signal.SIGINT else EndedBySignal(number)


def _discard() -> None:
    output = sys.modules.get("lanescope.io.atomic_file")
    if output is not None:
        output.discard()

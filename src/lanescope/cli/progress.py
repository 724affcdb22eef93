"""How far a command is, on a terminal: bytes, rate and time left of what is read, and what it does after that."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from lanescope.view.formatting import display_width, escape, fit_width, format_bytes

#: Commands that end sooner than this show nothing, in s.
_PATIENCE = 1.0
#: Time between two lines, in s.
_EVERY = 0.1
#: Bytes that have not moved for so long, in s: all that is needed has been read.
_STANDSTILL = 1.0

#: Shorter names of captures say nothing.
_SHORTEST = 8
#: Share of a file after which it counts as read: indexes and names at the ends of files may be read last, or never.
_ALL = 0.99

_meter: Meter | None = None


@contextmanager
def shown(*, is_quiet: bool = False) -> Iterator[None]:
    """Show on standard error how far the command is, from its first second on until it prints its answer.

    Nothing where standard error is not a terminal, or with ``is_quiet``.
    """
    global _meter
    if is_quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield
        return
    meter = Meter(sys.stderr)
    _meter, before = meter, _meter
    try:
        with meter.running():
            yield
    finally:
        _meter = before


@contextmanager
def reading(path: str) -> Iterator[Meter | None]:
    """Yield what is told how far the reading of a capture is, as ``Progress`` is called; None if nothing is shown."""
    if _meter is None:
        yield None
        return
    _meter.read(os.path.basename(path) or path)  # noqa: PTH119
    try:
        yield _meter
    finally:
        _meter.has_read()


class Meter:
    """One line on a terminal that a thread keeps up to date, as most of the work is done in long calls.

    The line goes when anything else is printed. After the first output on a terminal it does not come back: that is
    the answer.

    Args:
        stream: the terminal.
        clock: returns s.
    """

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream, self._clock = stream, clock
        self._write = stream.write
        self._lock = threading.RLock()  # a signal may end a block that holds it, and print an error
        self._end = threading.Event()
        self._drawn, self._is_answered, self._is_line_open = 0, False, False
        self._is_drawing = False  # where both streams are one, its own line goes through what it watches
        self._start = clock()
        self._name, self._what = "", ""
        self._reached: list[int] | None = None
        self._done, self._size = 0, 0
        self._moved = self._since = self._start

    def __call__(self, done: int, size: int) -> None:
        """Take how many bytes have been read, of how many; 0: that is not known."""
        with self._lock:
            self._move(done, size)

    def watch(self, reached: list[int], size: int) -> None:
        """Take where reading keeps how far it is, of so many bytes."""
        with self._lock:
            self._move(0, size)
            self._reached = reached

    def read(self, name: str) -> None:
        """Begin to read a capture."""
        with self._lock:
            self._name, self._reached, self._done, self._size = escape(name), None, 0, 0
            self._since = self._moved = self._clock()
            self._what = "reading"

    def has_read(self) -> None:
        """End the reading of a capture, and what was done with its pieces."""
        with self._lock:
            self._reached = None
            self._done = self._size
            self._what = "working"

    def text(self) -> str:
        """Return the line.

        Example:
            >>> times = iter([0.0, 0.0, 1.5, 2.0, 4.0])
            >>> meter = Meter(sys.stderr, lambda: next(times))
            >>> meter.read("run.bin")
            >>> meter(300 << 20, 1 << 30)
            >>> meter.text()
            'run.bin: 29%  300.0 MiB of 1.0 GiB  150.0 MiB/s  5 s left'
            >>> meter.has_read()
            >>> meter.text()
            'run.bin: 1.0 GiB read, working  4 s so far'
        """
        now = self._clock()
        if self._reached is not None and self._reached[0] > self._done:
            self._done, self._moved = min(self._reached[0], self._size), now
        is_moving = 0 < self._done < self._size * _ALL and now - self._moved < _STANDSTILL
        if is_moving or (self._done and not self._size):
            return f"{self._name}: {_rate_text(self._done, self._size, max(now - self._since, 1e-3))}"
        so_far = f"{_seconds(now - self._start)} so far"
        if not self._name:
            return f"{self._what or 'working'}  {so_far}"
        size = format_bytes(self._size) if self._size else ""
        if not self._done:
            return f"{self._name}: {self._what}{f' {size}' if size else ''}  {so_far}"
        what = "working" if self._what == "reading" else self._what
        return f"{self._name}: {size} read, {what}  {so_far}" if size else f"{self._name}: {what}  {so_far}"

    def draw(self) -> None:
        """Draw the line over the one before."""
        from lanescope.view.table_output import terminal_width

        with self._lock, suppress(OSError, ValueError):  # the terminal may be gone
            if self._is_answered or self._is_line_open or self._end.is_set():
                return
            room = terminal_width(self._stream) - 1  # a full line would wrap, and never be taken away
            text = _fitted(self.text(), self._name, room)
            self._put(f"\r{text}{' ' * (self._drawn - display_width(text))}")
            self._drawn = display_width(text)

    def clear(self) -> None:
        """Take the line away."""
        with self._lock, suppress(OSError, ValueError):
            if self._drawn:
                self._put("\r" + " " * self._drawn + "\r")
                self._drawn = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Keep the line up to date in the block."""
        streams = [sys.stdout, *([sys.stderr] if sys.stderr is not sys.stdout else [])]
        hooked = [each for stream in streams if stream.isatty() for each in self._hook(stream)]
        thread = threading.Thread(target=self._keep, name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._end.set()
            for stream in hooked:
                vars(stream).pop("write", None)
            self.clear()
            thread.join()

    def _put(self, text: str) -> None:
        self._is_drawing = True
        try:
            self._write(text)
            self._stream.flush()
        finally:
            self._is_drawing = False

    def _move(self, done: int, size: int) -> None:
        """Take where reading is; what is read out of order, or once more, counts as far as it ever was."""
        done = max(done, self._done)
        if done > self._done:
            self._moved = self._clock()
        self._done, self._size = done, size

    def _keep(self) -> None:
        if not self._end.wait(_PATIENCE):
            self.draw()
        while not self._end.wait(_EVERY):
            self.draw()

    def _hook(self, stream: Any) -> Iterator[Any]:
        """Take the line away before anything is written to a stream; yields what ``write`` was replaced of."""
        is_answer = stream is sys.stdout
        # Its own line goes through the buffer of standard error, so that is left alone.
        layers: list[Any] = [stream, getattr(stream, "buffer", None)] if is_answer else [stream]
        for layer in layers:
            if not hasattr(layer, "__dict__"):
                continue
            write = layer.write

            def written(data: Any, write: Callable[[Any], int] = write, layer: Any = layer) -> int:
                with self._lock:
                    if self._is_drawing:
                        return write(data)
                    self.clear()
                    self._is_answered |= is_answer
                    if layer is stream and data:
                        self._is_line_open = not data.endswith("\n")
                    return write(data)

            vars(layer)["write"] = written
            yield layer


def _rate_text(done: int, size: int, elapsed: float) -> str:
    """Return bytes, rate, and the time left at that rate; the size is 0 if it is not known."""
    rate = done / elapsed
    speed = f"{format_bytes(int(rate))}/s"
    if size <= 0:
        return f"{format_bytes(done)}  {speed}"
    text = f"{done * 100 // size}%  {format_bytes(done)} of {format_bytes(size)}  {speed}"
    return f"{text}  {_seconds(math.ceil((size - done) / rate))} left"


def _fitted(text: str, name: str, room: int) -> str:
    """Return a line that fits: the name is cut, then parts in the middle go; numbers stay whole."""
    if display_width(text) <= room:
        return text
    rest = text.removeprefix(f"{name}: ")
    left = room - display_width(rest) - 2
    if left >= _SHORTEST and rest != text:
        return f"{fit_width(name, left).rstrip()}: {rest}"
    parts = rest.split("  ")
    while len(parts) > 1 and display_width("  ".join(parts)) > room:
        del parts[-2]
    return fit_width("  ".join(parts), room).rstrip()


def _seconds(number: float) -> str:
    return f"{int(number)} s" if number < 100 else f"{int(number) // 60} min"

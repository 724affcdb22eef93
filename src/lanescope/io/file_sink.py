"""Base of sinks that write one file."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import BinaryIO, Protocol, TypeVar

from lanescope.declaration import frozen_class
from lanescope.io.atomic_file import Output, atomic_writer
from lanescope.trace import Table, Trace
from lanescope.trace.streams import Sink, StreamInfo, Takes, Written

W_co = TypeVar("W_co", bound=Written, covariant=True)


class _Aborted(BaseException):
    """Passed to what is open when a sink is aborted without an error."""


class AtomicSink:
    """Output of a sink: opened under a temporary name, then renamed or removed.

    Attributes:
        stack: what is closed at the end, the last one first.
    """

    def __init__(self) -> None:
        self.stack = ExitStack()

    @property
    def can_restart(self) -> bool:
        """Whether ``start`` after ``abort`` begins an output that has nothing of the one before."""
        return False

    def commit(self) -> None:
        """Close what is open: the output gets its name."""
        self.stack.close()

    def abort(self) -> None:
        """Close what is open because of the error that is being handled: the output is removed."""
        error = sys.exception() or _Aborted()
        self.stack.__exit__(type(error), error, error.__traceback__)


class FileSink(AtomicSink):
    """A sink that writes one file.

    Args:
        out: a path, written under a temporary name and renamed; or a binary file object.
    """

    def __init__(self, out: Output) -> None:
        super().__init__()
        self._out = out

    @property
    def can_restart(self) -> bool:
        """Whether the output is a path: ``abort`` leaves nothing there."""
        return isinstance(self._out, str | os.PathLike)

    def open(self) -> BinaryIO:
        """Open the file."""
        return self.stack.enter_context(atomic_writer(self._out))


@frozen_class
class BlocksReport:
    """Report of a written file: its bytes."""

    bytes: int


class BlocksSink(FileSink):
    """Writes what a function makes of the whole trace, block by block.

    Args:
        out: a path, written under a temporary name and renamed; or a binary file object.
        encode: returns the blocks of the file.
    """

    takes: Takes = "whole"

    def __init__(self, out: Output, encode: Callable[[Trace], Iterable[bytes]]) -> None:
        super().__init__(out)
        self._encode = encode

    def start(self, info: StreamInfo) -> None:
        """Open the file."""
        self._bytes = 0
        self._file = self.open()

    def write(self, batch: Trace) -> None:
        """Write the trace."""
        for block in self._encode(batch):
            self._bytes += self._file.write(block)

    def finish(self, annotations: Table | None = None) -> BlocksReport:
        """Rename the file to its final name; it cannot contain findings."""
        self.commit()
        return BlocksReport(self._bytes)


class _Writes(Sink, Protocol[W_co]):
    def finish(self, annotations: Table | None) -> W_co: ...


def drive(
    sink: _Writes[W_co],
    batches: Iterable[Trace],
    info: StreamInfo,
    annotations: Table | Callable[[], Table] | None = None,
) -> W_co:
    """Write batches to a sink, and nothing where anything fails: for callers that have them at hand.

    Args:
        sink: the sink.
        batches: what it writes.
        info: what is known of them.
        annotations: findings to draw, or what returns them, called after the last batch.
    """
    try:
        sink.start(info)
        for batch in batches:
            sink.write(batch)
            del batch
        return sink.finish(annotations() if callable(annotations) else annotations)
    except BaseException:
        sink.abort()
        raise


def drive_trace(
    sink: _Writes[W_co],
    trace: Trace | Iterable[Trace],
    annotations: Table | Callable[[], Table] | None = None,
    *,
    in_parts: bool,
) -> W_co:
    """Write a trace, or the batches of one decode, to a sink: joined, or ``in_parts`` each batch as it comes."""
    is_parts = in_parts and not isinstance(trace, Trace)
    batches = [trace] if isinstance(trace, Trace) else trace if is_parts else [Trace.concat(trace)]
    return drive(sink, batches, StreamInfo(is_sorted=is_parts, is_whole=not is_parts), annotations)

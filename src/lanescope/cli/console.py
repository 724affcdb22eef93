"""Text on standard error (errors, warnings, results, progress), JSON documents, and checks of output paths."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from lanescope.errors import UsageError
from lanescope.view.formatting import display_width, escape, fit_width, format_bytes, format_count

#: Names of standard output, where the user may name a file.
_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
#: Tables of events, and what a row is.
_EVENTS = {"slices": "slice", "instants": "instant", "counters": "sample", "flows": "flow", "gaps": "gap"}


@contextmanager
def progress(path: str) -> Iterator[Callable[[int, int], object] | None]:
    """Yield a function that shows the progress of reading after the first second; None if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    start = last = time.monotonic()
    name = escape(os.path.basename(path))  # noqa: PTH119
    drawn = 0

    def show(done: int, size: int) -> None:
        nonlocal last, drawn
        now = time.monotonic()
        if now - start > 1 and now - last > 0.1:
            from lanescope.view.table_output import terminal_width

            last = now
            room = terminal_width(sys.stderr) - 1  # a full line would wrap, and never be taken away
            text = progress_text(name, done, size, now - start)
            text = text if display_width(text) <= room else fit_width(text[display_width(name) + 2 :], room).rstrip()
            print(f"\r{text}{' ' * (drawn - display_width(text))}", end="", file=sys.stderr, flush=True)
            drawn = display_width(text)

    try:
        yield show
    finally:
        if drawn:
            print("\r" + " " * drawn + "\r", end="", file=sys.stderr, flush=True)


def progress_text(name: str, done: int, size: int, elapsed: float) -> str:
    """Return how far the reading of a capture is: bytes, rate, and the time left at that rate.

    Args:
        name: the capture.
        done: bytes read so far.
        size: bytes there are; 0 if that is not known.
        elapsed: s since the start, more than 0.

    Example:
        >>> progress_text("run.bin", 300 << 20, 1 << 30, 2.0)
        'run.bin: 29%  300.0 MiB of 1.0 GiB  150.0 MiB/s  5 s left'
        >>> progress_text("run.bin", 300 << 20, 0, 2.0)
        'run.bin: 300.0 MiB  150.0 MiB/s'
    """
    rate = done / elapsed
    speed = f"{format_bytes(int(rate))}/s"
    if size <= 0 or done > size:
        return f"{name}: {format_bytes(done)}  {speed}"
    text = f"{name}: {done * 100 // size}%  {format_bytes(done)} of {format_bytes(size)}  {speed}"
    if not rate:
        return text
    left = math.ceil((size - done) / rate)
    return f"{text}  {left} s left" if left < 100 else f"{text}  {left // 60} min left"


def is_stdout(path: str | None) -> bool:
    """Return whether an output is standard output, which is written directly and never replaced."""
    return path in _STDOUT


def check_output(path: str, inputs: Sequence[str] = (), *, force: bool, is_folder: bool = False) -> None:
    """Refuse, before the work is done, a path where no file, or no folder, can be or may be written.

    Raises:
        UsageError: it is an input, a folder, a device, in a folder that is not there; or a file, and not ``force``.
    """
    from lanescope.io import atomic_file

    atomic_file.check_room(path, is_folder=is_folder)
    from pathlib import Path

    target = Path(path)
    if not target.exists():
        return
    if any(each != "-" and Path(each).exists() and target.samefile(each) for each in inputs):
        raise UsageError(f"{path} is an input", hint="write to another file")
    if not force:
        raise UsageError(f"{path} already exists", hint="use --force to overwrite")


def print_json(schema: str, **content: Any) -> None:
    """Print one JSON document with the name and version of its schema."""
    import json

    plain: dict[type, Callable[[Any], str]] = {
        str: json.encoder.encode_basestring_ascii,
        int: int.__repr__,
        type(None): _null,
    }
    print(_indented({"schema": schema, **content}, "\n", plain))


def _indented(value: Any, newline: str, plain: Mapping[type, Callable[[Any], str]]) -> str:
    """Return what ``json.dumps`` does with an indent of 2 and ``default=str``, in a fraction of the time.

    With an indent, ``json`` encodes in Python, piece by piece.

    Args:
        value: the value.
        newline: what begins the next line of the container.
        plain: what encodes values of the most common types.
    """
    inner = newline + "  "
    if isinstance(value, dict) and value:
        encode = plain[str]
        parts = []
        for key, one in value.items():
            name = encode(key) if type(key) is str else _encoded({key: 0})[1:-4]
            one_of_type = plain.get(type(one))
            parts.append(f"{name}: {one_of_type(one) if one_of_type else _indented(one, inner, plain)}")
        return f"{{{inner}{f',{inner}'.join(parts)}{newline}}}"
    if isinstance(value, list | tuple) and value:
        kinds = set(map(type, value))
        encode_all = plain.get(kinds.pop()) if len(kinds) == 1 else None
        listed = map(encode_all, value) if encode_all else (_indented(one, inner, plain) for one in value)
        return f"[{inner}{f',{inner}'.join(listed)}{newline}]"
    encode_one = plain.get(type(value))
    return encode_one(value) if encode_one else _encoded(value)


def _null(_: None) -> str:
    return "null"


def _encoded(value: Any) -> str:
    """Return a value as JSON on one line."""
    import json

    return json.dumps(value, default=str)


def echo(message: str) -> None:
    """Print a line on standard error."""
    print(message, file=sys.stderr)


def print_error(message: str, hint: str = "", *, kind: str = "error") -> None:
    """Print an error, and on a second line what to do next."""
    with suppress(OSError):  # standard error may be closed; the exit status remains
        print(error_text(message, hint, kind=kind), file=sys.stderr)


def error_text(message: str, hint: str = "", *, kind: str = "error") -> str:
    """Return what ``print_error`` prints."""
    lines = [f"lanescope: {kind}: {_on_one_line(message)}", *([f"  hint: {_on_one_line(hint)}"] if hint else ())]
    return "\n".join(lines)


def warn(message: str) -> None:
    """Print a warning."""
    echo(f"lanescope: warning: {_on_one_line(message)}")


def print_written(path: str, *content: str, size: int) -> None:
    """Report a written output: ``wrote out.pftrace (19,008 slices, 81.4 KiB)``."""
    echo(f"wrote {escape(path)} ({', '.join((*content, format_bytes(size)))})")


def _on_one_line(text: str) -> str:
    return escape(" ".join(text.split()))


def format_row_counts(rows: Mapping[str, int]) -> str:
    """Return how many events there are, in words, from the number of rows by table."""
    return ", ".join(format_count(rows[name], one) for name, one in _EVENTS.items() if rows.get(name))

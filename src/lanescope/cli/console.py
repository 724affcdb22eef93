"""Text on standard error (errors, warnings, results), JSON documents, and checks of output paths."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from lanescope.errors import UsageError
from lanescope.view.formatting import escape, format_bytes, format_count

#: Names of standard output, where the user may name a file.
_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")
_is_quiet = False
#: Tables of events, and what a row is.
_EVENTS = {"slices": "slice", "instants": "instant", "counters": "sample", "flows": "flow", "gaps": "gap"}


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
    """Print one JSON document with the name and version of its schema.

    An iterator is printed as a list, as it comes: nothing of it is kept.
    """
    import json

    plain: dict[type, Callable[[Any], str]] = {
        str: json.encoder.encode_basestring_ascii,
        int: int.__repr__,
        type(None): _null,
    }
    separator = "{\n  "
    for name, value in {"schema": schema, **content}.items():
        sys.stdout.write(f"{separator}{plain[str](name)}: ")
        if isinstance(value, Iterator):
            sys.stdout.writelines(_listed(value, plain))
        else:
            sys.stdout.write(_indented(value, "\n  ", plain))
        separator = ",\n  "
    sys.stdout.write("\n}\n")


def _listed(values: Iterator[Any], plain: Mapping[type, Callable[[Any], str]]) -> Iterator[str]:
    """Yield the list of some values in the outermost container, as ``_indented`` has it."""
    separator, newline = "[", "\n    "
    for value in values:
        yield f"{separator}{newline}{_indented(value, newline, plain)}"
        separator = ","
    yield "[]" if separator == "[" else "\n  ]"


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


@contextmanager
def remarks(*, is_quiet: bool) -> Iterator[None]:
    """Print no remarks in the block if the user wants none; warnings and errors stay."""
    global _is_quiet
    before, _is_quiet = _is_quiet, is_quiet
    try:
        yield
    finally:
        _is_quiet = before


def echo(message: str) -> None:
    """Print a remark on standard error, unless the user wants none."""
    if not _is_quiet:
        _print(message)


def print_error(message: str, hint: str = "", *, kind: str = "error") -> None:
    """Print an error, and on a second line what to do next."""
    with suppress(OSError):  # standard error may be closed; the exit status remains
        _print(error_text(message, hint, kind=kind))


def error_text(message: str, hint: str = "", *, kind: str = "error") -> str:
    """Return what ``print_error`` prints."""
    lines = [f"lanescope: {kind}: {_on_one_line(message)}", *([f"  hint: {_on_one_line(hint)}"] if hint else ())]
    return "\n".join(lines)


def warn(message: str) -> None:
    """Print a warning."""
    _print(f"lanescope: warning: {_on_one_line(message)}")


def _print(text: str) -> None:
    """Print lines on standard error: on a terminal, which would break them inside numbers, as many as they take."""
    stream = sys.stderr
    if stream is not None and stream.isatty():
        from lanescope.view.table_output import is_terminal, terminal_width
        from lanescope.view.tables.layout import wrapped

        width = terminal_width(stream) if is_terminal(stream) else 0
        text = "\n".join(line for each in text.split("\n") for line in wrapped(each, width, "    "))
    print(text, file=stream)


def print_written(path: str, *content: str, size: int) -> None:
    """Report a written output: ``wrote out.pftrace (19,008 slices, 81.4 KiB)``."""
    if not _is_quiet:  # on one line, as a path that is broken cannot be copied
        print(f"wrote {escape(path)} ({', '.join((*content, format_bytes(size)))})", file=sys.stderr)


def _on_one_line(text: str) -> str:
    return escape(" ".join(text.split()))


def format_row_counts(rows: Mapping[str, int]) -> str:
    """Return how many events there are, in words, from the number of rows by table."""
    return ", ".join(format_count(rows[name], one) for name, one in _EVENTS.items() if rows.get(name))

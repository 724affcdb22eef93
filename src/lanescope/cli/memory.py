"""``--memory``: a command holds the limit, or ends with an error that says what to do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from lanescope.cli.reading import is_dataset

#: Commands that read the whole capture for any part of it, as causes lead out of the part.
_FOLLOWING_CAUSES = ("critical-path", "explain", "report")
#: Takes the line of progress away.
_CLEAR_LINE = "\r\x1b[K"


@contextmanager
def within_memory(args: argparse.Namespace, command: str) -> Iterator[None]:
    """End the command with a clear error where it needs more memory than the user allows; no output is left.

    Raises:
        UsageError: the limit is not a size, or too small for any work.
    """
    text = getattr(args, "memory", None)
    if text is None or command == "ingest":  # its workers share the limit
        yield
        return
    from lanescope.cli.console import error_text
    from lanescope.errors import InputError
    from lanescope.pipeline.memory import limited, parse_limit

    told = error_text(f"{command} needs more memory than --memory {text}", _more(args, command)) + "\n"
    with limited(parse_limit(text), (_CLEAR_LINE if sys.stderr.isatty() else "") + told, InputError.exit_status):
        yield


def _more(args: argparse.Namespace, command: str) -> str:
    """Return what to do where the limit does not hold."""
    if command == "convert":
        other = "" if args.output.rstrip("/").endswith(".parquet") else " --no-annotations, write Parquet,"
        return f"use a larger --memory,{other} or convert parts with --start and --end"
    if "ranks" in args and any(map(is_dataset, vars(args).get("inputs", [vars(args).get("input")]))):
        return f"use a larger --memory, or some captures with {'--runs and --ranks' if 'runs' in args else '--ranks'}"
    if command in _FOLLOWING_CAUSES:
        part = "a part that convert --start and --end writes as Parquet: causes outside of it are not followed"
        return f"use a larger --memory, or {part}"
    return "use a larger --memory" + (", or a part with --start and --end" if "start" in args else "")

"""How commands assemble a pipeline on a capture that the user names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from lanescope.cli import progress
from lanescope.cli.arguments import parse_options, parse_window

if TYPE_CHECKING:
    from lanescope import Trace
    from lanescope.pipeline.run import RunReport
    from lanescope.pipeline.sources import CaptureSource


#: What to do where the limit on memory does not hold.
_MORE_MEMORY = "use a larger --memory, write Parquet, or convert parts with --start and --end"


@contextmanager
def within_memory(args: argparse.Namespace) -> Iterator[None]:
    """End the command with a clear error where it needs more memory than the user allows; no output is left."""
    if args.memory is None:
        yield
        return
    from lanescope.cli.console import print_error
    from lanescope.errors import InputError
    from lanescope.io import atomic_file
    from lanescope.pipeline import memory

    def ended(size: int) -> None:
        atomic_file.discard()
        more = f"{size >> 20:,} MiB and more"
        print_error(f"the conversion needs {more}, not --memory {args.memory}", _MORE_MEMORY)
        os._exit(InputError.exit_status)

    with memory.limited(memory.parse_limit(args.memory), ended):
        yield


def is_dataset(path: str) -> bool:
    """Return whether an input is a dataset that ``ingest`` made: a folder, or the URL of one."""
    return "://" in path or os.path.isfile(os.path.join(path, "lanescope-dataset.json"))  # noqa: PTH113, PTH118


@contextmanager
def opened(path: str, args: argparse.Namespace, *, hashes: bool | Literal["parts"] = True) -> Iterator[CaptureSource]:
    """Open a capture with the options and the window that the user gave; ``hashes`` as ``CaptureSource`` takes it."""
    window = parse_window(args)
    from lanescope._native import core
    from lanescope.pipeline.sources import CaptureSource  # and with it numpy, which starts threads

    if getattr(args, "memory", None) is None:
        core.keep_freed_memory()  # a command ends with its work
    with CaptureSource(path, args.family, parse_options(args), hashes=hashes, window=window) as source:
        yield source


def collected(args: argparse.Namespace) -> Trace:
    """Decode the capture that the user names into one trace, or the part of it in the window."""
    from lanescope.pipeline.observers import Collect

    whole = Collect()
    with opened(args.input, args) as source:
        passed(source, args.input, observers=[whole])
    return whole.result()


def passed(source: CaptureSource, path: str, *, refuses: bool = True, **stages: Any) -> RunReport:
    """Run a pipeline on a capture, with progress for those who wait.

    Args:
        source: the opened capture.
        path: its name, for messages.
        refuses: False for commands that show what they found before they refuse it.
        **stages: observers, sink and so on, as ``lanescope.pipeline.run.run`` takes them.

    Raises:
        InputError: nothing but padding and lost units was found.
    """
    from lanescope.pipeline.readable import Readable
    from lanescope.pipeline.run import run

    with progress.reading(path) as shown:
        return run(Readable(source, path) if refuses else source, progress=shown, **stages)

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
    from lanescope.analysis.analysis_cache import AnalysisCache
    from lanescope.pipeline.observers import Counted
    from lanescope.pipeline.run import RunReport
    from lanescope.pipeline.sources import CaptureSource


def is_dataset(path: str) -> bool:
    """Return whether an input is a dataset that ``ingest`` made: a folder, or the URL of one."""
    return "://" in path or os.path.isfile(os.path.join(path, "lanescope-dataset.json"))  # noqa: PTH113, PTH118


@contextmanager
def opened(
    path: str, args: argparse.Namespace, *, hashes: bool | Literal["parts"] = True, is_windowed: bool = True
) -> Iterator[CaptureSource]:
    """Open a capture with the options and the window that the user gave.

    Args:
        path: the capture.
        args: the command line.
        hashes: as ``CaptureSource`` takes it.
        is_windowed: False: it is read as a whole, whatever window the user asks for.
    """
    window = parse_window(args) if is_windowed else None
    from lanescope._native import core
    from lanescope.pipeline.sources import CaptureSource  # and with it numpy, which starts threads

    is_limited = getattr(args, "memory", None) is not None
    if not is_limited:
        core.keep_freed_memory()  # a command ends with its work
    options = parse_options(args)
    with CaptureSource(path, args.family, options, hashes=hashes, window=window, spares_memory=is_limited) as source:
        yield source


def collected(args: argparse.Namespace, *, is_windowed: bool = True) -> Trace:
    """Decode the capture that the user names into one trace, or its part in the window; ``is_windowed``: as above."""
    from lanescope.pipeline.observers import Collect

    whole = Collect()
    with opened(args.input, args, is_windowed=is_windowed) as source:
        passed(source, args.input, observers=[whole])
    return whole.result()


def lanes_of(args: argparse.Namespace) -> tuple[AnalysisCache, Counted]:
    """Decode the capture that the user names for analyses of lanes, its slices on disk if there are many, and count."""
    from lanescope.analysis.lanes_on_disk import LanesOnDisk
    from lanescope.pipeline.observers import Counts

    lanes, counts = LanesOnDisk(), Counts()
    with opened(args.input, args) as source:
        passed(source, args.input, observers=[lanes, counts])
    return lanes.result(), counts.result()


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

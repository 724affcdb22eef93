"""How commands assemble a pipeline on a capture that the user names."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from lanescope.cli import progress
from lanescope.cli.arguments import parse_options, parse_window
from lanescope.cli.console import echo
from lanescope.errors import UsageError
from lanescope.view.formatting import escape

if TYPE_CHECKING:
    from lanescope import Trace
    from lanescope.analysis.analysis_cache import AnalysisCache
    from lanescope.analysis.lanes_on_disk import LanesOnDisk
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

    Raises:
        UsageError: the user asks for some runs or ranks, which only a dataset has.
    """
    if getattr(args, "ranks", None) or getattr(args, "runs", None):
        raise UsageError(
            f"{path} is a capture: --runs and --ranks are for datasets",
            hint="run 'lanescope ingest' first, or pass the captures of these ranks",
        )
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


def with_rest(args: argparse.Namespace) -> Trace:
    """Decode the capture that the user names into one trace; its part in the window keeps the whole, for causes."""
    from lanescope.pipeline.trace_queries import windowed

    window = parse_window(args)
    return windowed(collected(args, is_windowed=window is None), window, keeps_whole=True)


def lanes_of(args: argparse.Namespace) -> tuple[AnalysisCache, Counted]:
    """Decode the capture that the user names for analyses of lanes, see ``lanes_in``, and count."""
    from lanescope.analysis.lanes_on_disk import LanesOnDisk

    with opened(args.input, args) as source:
        return lanes_in(source, args.input, LanesOnDisk())


def lanes_in(source: CaptureSource, path: str, lanes: LanesOnDisk, *others: Any) -> tuple[AnalysisCache, Counted]:
    """Run a pipeline for analyses of lanes: the slices are on disk if there are many.

    They are all slices of the window; what it selects of them by name, duration or condition is told beside.

    Args:
        source: the opened capture.
        path: its name, for messages.
        lanes: gets the batches.
        *others: further observers.
    """
    from lanescope.pipeline.observers import Counts

    counts = Counts()
    source.keep_filtered()
    passed(source, path, observers=[lanes, counts, *others])
    return selecting(lanes.result(), source), counts.result()


def selecting(shared: AnalysisCache, source: CaptureSource) -> AnalysisCache:
    """Return what analyses take with what the window of a source selects, after a pass that kept all slices."""
    if source.selected is not None:
        from lanescope.analysis.windows.selected import SelectedSlices

        shared.selected = SelectedSlices.of(source.selected)
    return shared


def selected_part(shared: AnalysisCache, what: str, total: int, whole: int, **more: int) -> dict[str, Any]:
    """Say how much of an answer is that of selected slices, and return it as JSON documents have it.

    Args:
        shared: what the analysis looked at.
        what: what the whole is, in words.
        total: time of the answer, in the trace's unit.
        whole: time of the answer of all slices.
        **more: further counts of the JSON document.

    Returns:
        ``selected``; empty where no slices are selected by name, duration or condition.
    """
    if shared.selected is None:
        return {}
    from lanescope.analysis.windows.report import filter_in_words
    from lanescope.view.formatting import format_count, format_duration

    count, unit = int(shared.selected.mask.sum()), shared.unit
    share = total / whole if whole else 0.0
    echo(
        f"selected: {escape(filter_in_words(shared.trace))}: {format_count(count, 'slice')}, "
        f"{format_duration(total, unit)} of {format_duration(whole, unit)} {what} ({share:.1%}); "
        "the answer is that of all slices, and this is the part of the selected ones"
    )
    return {"selected": {"slices": count, f"total_{unit}": total, f"whole_{unit}": whole, "share": share, **more}}


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

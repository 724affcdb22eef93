"""Runs compared: summaries of captures, folders of kept summaries, and what differs between two sides."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from lanescope.errors import InputError, UsageError, os_reason
from lanescope.pipeline.diagnostics import losses
from lanescope.trace import Trace

if TYPE_CHECKING:
    from lanescope.analysis.compare.comparison import Comparison
    from lanescope.analysis.compare.run_summary import RunSummary
    from lanescope.pipeline.detection import PathLike

#: How kept summaries end.
SUFFIX = ".run.json"


def compare(
    a: Iterable[Trace | RunSummary] | Trace | RunSummary,
    b: Iterable[Trace | RunSummary] | Trace | RunSummary,
    *,
    by: str | Sequence[str] = ("name", "lane_kind"),
    alpha: float = 0.05,
    floor: float = 0.01,
) -> Comparison:
    """Compare two sides of runs of the same work, as the command ``diff`` does.

    Args:
        a: the runs of the first side: traces, or summaries of runs; or one of them.
        b: those of the second side.
        by: columns that make the identity of a group of slices: ``name``, ``lane_kind``, ``lane``, ``category``,
            ``phase``, ``task``, ``kernel`` or ``TABLE.COLUMN`` of a detail table.
        alpha: largest chance of naming any group if nothing changed.
        floor: smallest change that is named: 0.01 for 1 %.

    Returns:
        What differs: ``named`` groups, all ``groups``, ``conditions`` to read first; ``to_dict()`` for JSON.

    Raises:
        UsageError: a side without runs, runs of different time units, an unknown column, or an invalid number.

    Example:
        >>> from lanescope import open, simulate
        >>> one, other = (open(simulate("cuda", seed).files["attention.npy"]) for seed in (1, 2))
        >>> found = compare(one, other)
        >>> found.method, len(found.groups), found.needed
        ('pair', 10, 4)
    """
    from lanescope.analysis.compare.verdicts import compare_runs

    columns = [by] if isinstance(by, str) else list(by)
    sides = [_listed(side) for side in (a, b)]
    is_pair = [len(side) for side in sides] == [1, 1]
    made = [
        [_made(run, f"{name}{number}", columns, has_sequences=is_pair) for number, run in enumerate(side, 1)]
        for name, side in zip("AB", sides, strict=True)
    ]
    return compare_runs(*made, alpha=alpha, floor=floor)


def _listed(side: Iterable[Trace | RunSummary] | Trace | RunSummary) -> list[Trace | RunSummary]:
    from lanescope.analysis.compare.run_summary import RunSummary

    return [side] if isinstance(side, Trace | RunSummary) else list(side)


def _made(run: Trace | RunSummary, name: str, by: Sequence[str], *, has_sequences: bool) -> RunSummary:
    if not isinstance(run, Trace):
        return run
    paths = run.inputs.values("path").tolist()
    return summarize(run, paths[0] if paths and paths[0] else name, by, has_sequences=has_sequences)


def summarize(trace: Trace, name: str, by: Sequence[str], *, has_sequences: bool = False) -> RunSummary:
    """Return the summary of a run, as comparisons and baselines take it.

    Args:
        trace: the trace.
        name: name of the run, for people.
        by: columns that make the identity of a group.
        has_sequences: keep the durations one by one, for the comparison of one run with one other.

    Raises:
        UsageError: an unknown column.
    """
    from lanescope.analysis.compare.run_summary import summarize_run

    return summarize_run(trace, name, by, losses(trace), has_sequences=has_sequences)


# --- kept summaries -----------------------------------------------------------------------------------------------


def is_summary(path: PathLike) -> bool:
    """Return whether a file is a kept summary, by its name."""
    return os.fspath(path).endswith(SUFFIX)


def is_baseline(path: PathLike) -> bool:
    """Return whether a folder holds kept summaries."""
    return Path(path).is_dir() and any(Path(path).glob("*" + SUFFIX))


def read_summary(path: PathLike) -> RunSummary:
    """Return a kept summary.

    Raises:
        InputError: it cannot be read, is not a summary, or contradicts itself.
    """
    from lanescope.analysis.compare import summary_file

    try:
        with Path(path).open("rb") as file:
            content = file.read(summary_file.LARGEST + 1)
    except OSError as error:
        raise InputError(f"{os.fspath(path)}: {os_reason(error)}", hint="check the path") from None
    if len(content) > summary_file.LARGEST:
        raise InputError(f"{os.fspath(path)}: too large for a run summary", hint="pass the capture itself")
    return summary_file.from_text(content, os.fspath(path))


def read_baseline(folder: PathLike) -> list[RunSummary]:
    """Return the kept summaries of a folder, in the order of their names.

    Raises:
        InputError: there is none, or one cannot be read.
    """
    paths = sorted(Path(folder).glob("*" + SUFFIX)) if Path(folder).is_dir() else []
    if not paths:
        raise InputError(f"{os.fspath(folder)}: no run summaries", hint="run 'lanescope baseline add' first")
    return [read_summary(path) for path in paths]


def add_to_baseline(folder: PathLike, run: RunSummary, *, overwrite: bool = False) -> Path:
    """Keep the summary of a run in a folder, which is made if it is missing.

    Args:
        folder: the folder.
        run: the summary.
        overwrite: replace a summary of the same capture.

    Returns:
        The file.

    Raises:
        UsageError: the folder already has this capture, or summaries of another grouping or time unit; or it cannot be
            written.
    """
    from lanescope.analysis.compare import summary_file

    target = Path(folder)
    kept = read_baseline(target) if is_baseline(target) else []
    for other in kept:
        if (other.by, other.unit) != (run.by, run.unit):
            raise UsageError(
                f"{target}: {other.name} is grouped by {','.join(other.by)} in {other.unit}, "
                f"{run.name} by {','.join(run.by)} in {run.unit}",
                hint="use another folder, or the same --by and clock options",
            )
    path = target / _file_name(run)
    if path.exists() and not overwrite:
        raise UsageError(f"{path} already exists: the capture is in the baseline", hint="use --force to overwrite")
    from lanescope.io.atomic_file import atomic_writer

    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{target}: {os_reason(error)}", hint="use another folder") from None
    # A folder that lives in a repository must not hold paths of one machine.
    kept_run = replace(run, name=Path(run.name).name)
    with atomic_writer(path) as file:
        file.write(summary_file.to_text(kept_run).encode())
    return path


def _file_name(run: RunSummary) -> str:
    """Return the name of a run's file: what is plain of its own name, and the start of its hash."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(run.name).name).strip("-.")[:60] or "run"
    return f"{stem}-{run.sha256[:12] or 'unknown'}{SUFFIX}"

"""Captures in a folder and in the folders below it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lanescope.families import registry
from lanescope.pipeline.detection import PathLike, is_parquet_dataset, recognized
from lanescope.source import is_one

#: File that marks a dataset, whose files are no captures.
DATASET_MARKER = "lanescope-dataset.json"
#: Families of files that lanescope writes itself.
MADE = ("chrome", "perfetto")
#: So many files are looked at in all.
MOST_LOOKED_AT = 5_000


class Captured(NamedTuple):
    """A capture in a folder.

    Attributes:
        path: of its file, or of the folder that is the capture; begins with the folder that was asked for.
        family: the family that takes it for its own; empty: a folder of Parquet files that lanescope wrote.
        format: the family's name for the format.
        size: of the file, bytes; None for a folder.
    """

    path: str
    family: str
    format: str
    size: int | None


class CaptureFolder(NamedTuple):
    """What a folder and the folders below it hold.

    Attributes:
        captures: those of a folder by name, before those of the folders below it.
        is_complete: False: only the first files were looked at, or a folder cannot be read.
    """

    captures: list[Captured]
    is_complete: bool


def captures_below(path: PathLike) -> CaptureFolder | None:
    """Return the captures of a folder that is not one capture itself, and does not hold just one.

    Hidden files and folders are excluded, links to folders are not followed. Sidecar files are not captures, nor are
    files that another tool made of a capture in the same folder.

    Args:
        path: any path.

    Returns:
        None for any other path, and for a folder without captures.
    """
    if path == "-" or not os.path.isdir(path):  # noqa: PTH112 (asked for every input)
        return None
    folder = Path(path)
    if is_one(folder) or is_parquet_dataset(folder):
        return None
    found: list[Captured] = []
    unread: list[OSError] = []
    looked_at = 0
    for file in _candidates(folder, unread):
        looked_at += 1
        if looked_at > MOST_LOOKED_AT:
            break
        if file.is_dir() and is_parquet_dataset(file):
            found.append(Captured(str(file), "", "parquet", None))
        elif (match := recognized(file)) is not None:
            found.append(Captured(str(file), match.family, match.format, _size(file)))
    found = _without_made(found)
    is_complete = looked_at <= MOST_LOOKED_AT and not unread
    if not found or (is_complete and len(found) == 1 and Path(found[0].path).parent == folder):
        return None
    return CaptureFolder(found, is_complete)


def files_below(path: PathLike) -> tuple[list[str], list[str], list[OSError]]:
    """Return the captures of a folder, however many there are, with profiles of other tools.

    Left out is what may have been made of a device's capture in the same folder: Chrome JSON and Perfetto traces.

    Args:
        path: a folder.

    Returns:
        The paths of captures; those of files that are not captures, or made of captures in the same folder; and the
        folders that cannot be read.
    """
    folder = Path(path)
    if is_one(folder):
        return [str(folder)], [], []
    unread: list[OSError] = []
    files = list(_candidates(folder, unread))
    families = {file: match.family for file in files if (match := recognized(file)) is not None}
    mine = {file.parent for file, family in families.items() if family not in registry.FOREIGN}
    kept = [str(file) for file, family in families.items() if family not in MADE or file.parent not in mine]
    wanted = set(kept)
    return kept, [str(file) for file in files if str(file) not in wanted], unread


def _without_made(found: list[Captured]) -> list[Captured]:
    """Return captures without what other tools made of those in the same folder."""
    mine = {Path(each.path).parent for each in found if each.family and each.family not in registry.FOREIGN}
    return [each for each in found if each.family not in registry.FOREIGN or Path(each.path).parent not in mine]


def _size(path: Path) -> int | None:
    try:
        return None if path.is_dir() else path.stat().st_size
    except OSError:  # it went in between
        return None


def _candidates(folder: Path, unread: list[OSError]) -> Iterator[Path]:
    """Yield the files below a folder, and the folders that are one capture; add why folders cannot be read."""
    for at, folders, files in os.walk(folder, onerror=unread.append):
        here = Path(at)
        if DATASET_MARKER in files:
            folders.clear()
            continue
        for name in sorted(files):
            if not name.startswith(".") and (here / name).is_file():
                yield here / name
        below = sorted(name for name in folders if not name.startswith("."))
        whole = [name for name in below if is_one(here / name) or is_parquet_dataset(here / name)]
        yield from (here / name for name in whole)
        folders[:] = [name for name in below if name not in whole]

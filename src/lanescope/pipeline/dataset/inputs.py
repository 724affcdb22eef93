"""The captures that paths, folders, globs and URLs name."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import NamedTuple

from lanescope.errors import InputError, UsageError, os_reason
from lanescope.io.dataset.store import is_url, open_store
from lanescope.pipeline.capture_folders import files_below

_WILDCARDS = frozenset("*?[")


class Inputs(NamedTuple):
    """Result of ``find``.

    Attributes:
        captures: paths and URLs, each once.
        ignored: files in folders that are not captures.
        missing: what was specified and does not exist or cannot be read, and why.
    """

    captures: list[str]
    ignored: list[str]
    missing: list[tuple[str, str]]


def find(given: Iterable[str]) -> Inputs:
    """Return the captures that arguments name.

    Args:
        given: paths of captures; of folders, which are searched with all folders below; globs of both (``**`` for any
            folders); and URLs of objects, whose last part may be a glob.

    Raises:
        UsageError: standard input, or none of the arguments names a capture.
    """
    found = Inputs([], [], [])
    for one in given:
        if one == "-":
            raise UsageError("cannot ingest standard input", hint="write the capture to a file first")
        if is_url(one):
            _add_objects(found, one)
        elif os.path.lexists(one) or _WILDCARDS.isdisjoint(one):
            _add(found, one)
        else:
            paths = sorted(glob.glob(one, recursive=True))  # noqa: PTH207 (globs of whole paths)
            if not paths:
                found.missing.append((one, "no file matches"))
            for path in paths:
                _add(found, path)
    if not found.captures and not found.missing:
        raise InputError("no captures found", hint="pass captures, or folders that contain some")
    return Inputs(list(dict.fromkeys(found.captures)), list(dict.fromkeys(found.ignored)), found.missing)


def _add(found: Inputs, path: str) -> None:
    if not os.path.lexists(path):
        found.missing.append((path, "no such file or directory"))
    elif not os.path.isdir(path):  # noqa: PTH112
        found.captures.append(path)
    else:
        captures, ignored, unread = files_below(path)
        found.captures.extend(captures)
        found.ignored.extend(ignored)
        found.missing.extend((str(error.filename), os_reason(error)) for error in unread)


def _add_objects(found: Inputs, url: str) -> None:
    above, _, name = url.rpartition("/")
    if name and _WILDCARDS.isdisjoint(name):
        found.captures.append(url)
        return
    pattern = name or "*"
    names = [each for each in open_store(above).names("") if fnmatchcase(each, pattern)]
    if not names:
        found.missing.append((url, "no object matches"))
    found.captures.extend(f"{above}/{each}" for each in names)

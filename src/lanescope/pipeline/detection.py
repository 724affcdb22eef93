"""Detection of captures: the capture of a folder, and its device family."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from lanescope.errors import InputError, InternalError, LanescopeError, MissingDependencyError, UsageError
from lanescope.families import registry
from lanescope.families.declaration import UPDATE, described
from lanescope.families.family import Family
from lanescope.source import MINE, TIE, Capture, Detection, FileHead, is_one

if TYPE_CHECKING:
    import numpy.typing as npt

    #: What a capture is opened from: a path, its bytes, a binary file object, or an array of them.
    Openable = str | os.PathLike[str] | bytes | bytearray | memoryview | IO[bytes] | npt.NDArray[Any]

PathLike = str | os.PathLike[str]

#: So many files of a folder are looked at to find the capture in it.
MOST_FILES = 200


class Candidate(NamedTuple):
    """Detection score of one family for a capture.

    Attributes:
        family: name of the family.
        score: 0 to 100; below 50 means no.
        format: the family's name for the format.
        reason: what was checked and how it came out.
    """

    family: str
    score: int
    format: str
    reason: str

    @property
    def is_recognized(self) -> bool:
        """Whether the family takes the capture for its own."""
        return self.score >= MINE


def detect_family(capture: Capture, family: str | None = None) -> tuple[Family, Detection]:
    """Return the family of a capture and how surely it is detected.

    Args:
        capture: the opened capture.
        family: name of the family, if specified; its own detection still gives the format.

    Raises:
        InputError: it is empty, or no family detects it.
        UsageError: two families detect it about equally; or ``family`` is unknown.
        MissingDependencyError: ``family`` is of another package, and that is broken.
    """
    head = capture.main.head()
    chosen = None if family is None else registry.family(family)
    if not head.size:
        raise InputError(f"{capture.main.path!r} is empty (0 bytes)", hint="check that the capture completed")
    if chosen is not None:
        return chosen, _asked(chosen, capture)
    failed: list[Candidate] = []
    matches = _first_matches(head, failed)
    if not matches:
        raise _unknown(capture, head, failed)
    if len(matches) > 1 and matches[0][1].score - matches[1][1].score < TIE:
        reasons = " or ".join(f"{f.name} ({m.reason})" for f, m in matches[:2])
        raise UsageError(f"{capture.main.path}: ambiguous format: {reasons}", hint="use --family NAME")
    return matches[0]


def named_family(capture: Capture, options: Mapping[str, Any]) -> str | None:
    """Return the family that an option or a sidecar file names without doubt; None if none does.

    Args:
        capture: the opened capture.
        options: decode options as given.
    """
    for family in registry.devices():
        if any(option.claims and options.get(option.name) is not None for option in family.options):
            return family.name
        if any(capture.find_sidecar(capture.name_pattern + ending) for ending in family.sidecars):
            return family.name
    return None


def _unknown(capture: Capture, head: FileHead, failed: list[Candidate]) -> InputError:
    """Return the error for an unrecognized format."""
    from lanescope.io import other_formats as known

    found = known.what_is(head.data, head.name)
    if found is not None:
        return InputError(f"{capture.main.path} is {found.what}, not a capture", hint=found.hint)
    near = next((match for _, match in _matches(_of_the_tree(head), head, [], least=1) if match.advice), None)
    if near is not None:
        return InputError(f"{capture.main.path}: unrecognized format: {near.reason}", hint=near.advice)
    what, hint = "unrecognized format", _USE_FAMILY
    formats = [format for family in _of_the_tree(head) for format in family.formats]
    advice = [text for format in formats if format.advise is not None and (text := format.advise(head))]
    if advice:
        return InputError(f"{capture.main.path}: {what}", hint="; ".join(advice))
    if not any(head.data):
        what = f"starts with {len(head.data):,} zero bytes"
        if head.is_whole:
            what, hint = "contains only zero bytes", "check that the buffer was copied from the device"
        return InputError(f"{capture.main.path} {what}", hint="; ".join([hint, *_unasked(failed)]))
    return InputError(f"{capture.main.path}: {what}", hint="; ".join([hint, *_unasked(failed)]))


def capture(path: Openable, *, hashes: bool = True) -> Capture:
    """Open a capture: a file, a folder in which one is, or what is in memory; ``hashes`` as ``Source`` takes it.

    Raises:
        InputError: it cannot be read; or there are several captures in the folder, or none.
        UsageError: it is neither a path nor bytes.
    """
    if not isinstance(path, str | os.PathLike):
        from lanescope.source.memory import memory_capture

        return memory_capture(path)
    return Capture(_main_of(path), hashes=hashes)


def _main_of(path: PathLike) -> PathLike:
    """Return the one capture in a folder; the path itself where there is nothing to choose."""
    if path == "-" or not os.path.isdir(path):  # noqa: PTH112 (asked for every input)
        return path
    from pathlib import Path

    folder = Path(path)
    if is_one(folder):
        return path
    try:
        files = sorted(file for file in folder.iterdir() if file.is_file() and not file.name.startswith("."))
    except OSError:
        return path
    known = {file: candidate for file in files[:MOST_FILES] if (candidate := recognized(file)) is not None}
    # What another tool made of a capture may lie next to it.
    found = [file for file, candidate in known.items() if candidate.family not in registry.FOREIGN] or list(known)
    if len(found) > 1:
        names = ", ".join(file.name for file in found[:3]) + (", ..." if len(found) > 3 else "")
        raise InputError(
            f"{os.fspath(path)!r} contains {len(found)} captures: {names}",
            hint="pass one of them; 'lanescope info FOLDER' lists all",
        )
    if not found:
        near = next(filter(None, map(_near, files[:MOST_FILES])), None)
        if near is not None:
            raise InputError(f"{os.fspath(path)!r} contains no capture: {near[0]}", hint=near[1])
    return found[0] if found else path


def _head(path: PathLike) -> FileHead | None:
    """Return the head of a file in a folder; None if it is empty or cannot be read."""
    try:
        with Capture(path) as opened:
            head = opened.main.head()
    except InputError:
        return None
    return head if head.size else None


def recognized(path: PathLike) -> Candidate | None:
    """Return the family that takes a file, or a folder that is one capture, for its own; None if none does."""
    head = _head(path)
    matches = [] if head is None else _first_matches(head, [])
    return Candidate(matches[0][0].name, *_told(matches[0][1])) if matches else None


def _near(path: PathLike) -> tuple[str, str] | None:
    """Return what a family knows of a file that is not a capture, and what to do about it; None without."""
    head = _head(path)
    found = [] if head is None else _matches(_of_the_tree(head), head, [], least=1)
    match = next((match for _, match in found if match.advice), None)
    return None if match is None or head is None else (f"{head.name} is {match.reason}", match.advice)


def _of_the_tree(head: FileHead) -> tuple[Family, ...]:
    return (*registry.devices(), *registry.foreign(head.data))


def _first_matches(head: FileHead, failed: list[Candidate]) -> list[tuple[Family, Detection]]:
    """Ask families of devices, of other tools' files and of other packages, each kind if those before know nothing.

    In this order: what a device's own collector wrote may well be JSON too, and finding packages is dear.
    """
    found = _matches(registry.devices(), head, failed)
    found = found or _matches(registry.foreign(head.data), head, failed)
    return found or _matches(registry.plugin_families(), head, failed)


def _matches(
    families: Iterable[Family], head: FileHead, failed: list[Candidate], least: int = MINE
) -> list[tuple[Family, Detection]]:
    """Ask ``families``, the surest first; one whose detection fails does not count and is added to ``failed``."""
    found = []
    for family in families:
        try:
            match = family.detect(head)
        except Exception as error:  # of one family: the capture may well be another one's
            failed.append(Candidate(family.name, 0, "", f"its detection failed: {described(error)}"))
        else:
            found.append((family, match))
    return sorted((pair for pair in found if pair[1].score >= least), key=lambda pair: -pair[1].score)


def _asked(family: Family, capture: Capture) -> Detection:
    """Ask the family that the user names; raise in its name if its detection fails."""
    try:
        return family.detect(capture.main.head())
    except LanescopeError:
        raise
    except Exception as error:
        what = f"detection by device family {family.name!r} failed on {capture.main.path}: {described(error)}"
        if family.name in registry.BUILTIN:
            raise InternalError(what) from error
        raise MissingDependencyError(what, hint=UPDATE) from error


_USE_FAMILY = f"use --family NAME to force a decoder: {', '.join(registry.BUILTIN)}"


def _unasked(failed: Iterable[Candidate]) -> Iterator[str]:
    """Yield which families could not be asked, and why."""
    for candidate in failed:
        yield f"device family {candidate.family!r} could not look at it: {candidate.reason}"
    for broken in registry.plugins().broken:
        yield f"cannot load device family {broken.name!r} of another package: {broken.reason}"


def detect(path: Openable) -> list[Candidate]:
    """Ask every family that may know a capture whether it is its own, the surest first.

    Args:
        path: the capture's main file, or ``-``; or what ``lanescope.open`` takes instead of a path.

    Returns:
        One candidate a family that sees anything in it. ``open`` takes the first if it scores 50 or more and no other
        comes within 10 points. Families whose detection fails come last, with a score of 0 and the failure as reason.

    Raises:
        InputError: the file cannot be read.
    """
    with capture(path) as opened:
        failed: list[Candidate] = []
        head = opened.main.head()
        matches = _matches((*_of_the_tree(head), *registry.plugin_families()), head, failed, least=1)
    return [*(Candidate(family.name, *_told(match)) for family, match in matches), *failed]


def _told(match: Detection) -> tuple[int, str, str]:
    return match.score, match.format, match.reason


def is_parquet_dataset(path: Openable) -> bool:
    """Return whether ``path`` is a folder of Parquet files that lanescope wrote, and not a capture."""
    # Asked for every input, so it has to be cheap if the input is a file.
    if not isinstance(path, str | os.PathLike) or not os.path.isdir(path):  # noqa: PTH112
        return False
    from lanescope.io import parquet

    return parquet.is_folder(path)

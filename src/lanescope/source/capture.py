"""Captures: all files of one run, found from the path of the main file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Self

from lanescope.errors import InputError
from lanescope.source.file import Source

if TYPE_CHECKING:
    from pathlib import Path

#: Files that stand for a folder that is one capture, in the order in which they are looked for: the description of a
#: CTF trace, in the folder itself or, where several processes wrote one each, in those inside, or in those of the ranks
#: of a parallel program.
_OF_FOLDERS = (
    "metadata",
    "*/metadata",
    "rank-*/*/metadata",
    # As LTTng and iprof keep them: the traces of users or processes, with the kernel's, below a session or a host.
    *(f"{above}{trace}/metadata" for above in ("", "*/", "*/*/") for trace in ("kernel", "ust/*/*", "ust/*/*/*")),
)

#: Characters by which a pattern may match other names than itself.
_WILDCARDS = frozenset("*?[")

#: The value of an option that switches a sidecar off.
NO_SIDECAR = "none"


class Capture:
    """One run: the main file and its sidecar files. Closes its files at the end of a ``with``.

    Args:
        path: path of the main file, or ``-``; or of a folder that is one capture.
        hashes: see ``Source``.

    Attributes:
        main: the main file.
        folder: the folder that was named, None when a file was.
        parts: every file used, by what it is to the capture (``main``, ``deps``, ``names``, ...).
        ambiguous: roles of sidecars of which several were found.
        unreadable: sidecars that were found and could not be opened, by role.
    """

    def __init__(self, path: str | os.PathLike[str], *, hashes: bool = True) -> None:
        self._hashes = hashes
        self.folder: Path | None = None
        if os.path.isdir(path):  # noqa: PTH112 (asked for every input)
            from pathlib import Path  # costs more than looking at a small file

            self.folder = Path(path)
        self._begin(Source(path if self.folder is None else _main_of(self.folder), hashes=hashes))

    def hash_while_reading(self) -> None:
        """Hash the files while they are read, and not only if somebody asks for that."""
        self._hashes = True
        for part in self.parts.values():
            part.hashes = True

    def _begin(self, main: Source) -> None:
        """Begin with the main file, no sidecars so far."""
        self.main = main
        self.parts: dict[str, Source] = {"main": main}
        self.ambiguous: set[str] = set()
        self.unreadable: dict[str, Path] = {}

    @property
    def name(self) -> str:
        """Name of the run: the main file's name without its endings, or that of the folder."""
        if self.folder is not None:
            return self.folder.resolve().name.split(".")[0] or self.folder.name
        return self.main.name.split(".")[0] or self.main.name

    @property
    def name_pattern(self) -> str:
        """``name`` as a glob that only this name matches."""
        if _WILDCARDS.isdisjoint(self.name):
            return self.name
        import glob

        return glob.escape(self.name)

    def find_sidecar(self, pattern: str) -> list[Path]:
        """Return the files next to the main file whose name matches the glob ``pattern``, sorted by name.

        A part of the pattern that comes from a file's name has to go through ``glob.escape``; see ``name_pattern``.
        """
        found = self._beside(pattern)
        if not found:
            return []
        from pathlib import Path

        return [Path(path) for path in found]

    def _beside(self, pattern: str) -> list[str]:
        """Do what ``find_sidecar`` does, without pathlib, whose import costs as much as reading a small capture."""
        if self.main.container == "pipe":
            return []
        folder, main = os.path.split(self.main.path)
        if "//" in folder or "." in folder.split("/"):
            from pathlib import Path  # writes it in the shortest way

            folder = str(Path(folder)) if Path(folder).parts else ""
        if _WILDCARDS.isdisjoint(pattern):
            names = [pattern]
        else:
            import fnmatch

            try:
                names = sorted(fnmatch.filter(os.listdir(folder or "."), pattern))  # noqa: PTH208
            except OSError:
                return []
        paths = [os.path.join(folder, name) for name in names if name != main]  # noqa: PTH118
        return [path for path in paths if os.path.isfile(path)]  # noqa: PTH113

    def open_sidecar(self, role: str, path: str | os.PathLike[str], *, is_live: bool = False) -> Source:
        """Open a further file of this capture under a role, and remember it; ``is_live`` as of ``Source``."""
        source = Source(path, hashes=self._hashes, is_live=is_live)
        if role in self.parts:
            self.parts[role].close()
        self.parts[role] = source
        return source

    def sidecar(self, role: str, given: str | os.PathLike[str] | None, patterns: Sequence[str] = ()) -> Source | None:
        """Open a sidecar file: the given one, or one next to the main file.

        Of the patterns the first that any file matches counts. Several files that match it are ambiguous: none of them
        is used, and the role is added to ``ambiguous``. A file that was found but cannot be opened is added to
        ``unreadable``.

        Args:
            role: what it is to the capture.
            given: its path, ``none`` for no such file, or None (or empty) to look for it.
            patterns: globs of names next to the main file, as ``find_sidecar`` takes them.

        Raises:
            InputError: the file that was named cannot be opened.
        """
        if given == NO_SIDECAR:
            return None
        if given:
            return self.open_sidecar(role, given)
        found = next((paths for pattern in patterns if (paths := self._beside(pattern))), [])
        if len(found) > 1:
            self.ambiguous.add(role)
        if len(found) != 1:
            return None
        try:
            return self.open_sidecar(role, found[0])
        except InputError:
            from pathlib import Path

            self.unreadable[role] = Path(found[0])
            return None

    def close(self) -> None:
        """Close all its files."""
        for source in self.parts.values():
            source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_one(folder: Path) -> bool:
    """Return whether a folder as a whole is one capture."""
    return _main_of(folder) != folder


def _main_of(folder: Path) -> Path:
    """Return the main file of a folder; the folder itself if it has none."""
    for pattern in _OF_FOLDERS:
        found = min((path for path in folder.glob(pattern) if path.is_file()), default=None)
        if found is not None:
            return found
    return folder

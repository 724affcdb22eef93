"""Atomic output: a file appears under its name when it is complete, or not at all.

A path is written under another name in the same folder and takes its name at the end. What it replaces stays until
then, and is exchanged in one step. Names are random, so nothing that somebody else made is ever taken for ours.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from lanescope.errors import UsageError

Output = str | os.PathLike[str] | BinaryIO

#: How the names of unfinished outputs begin: who finds one after ``kill -9`` sees whose it was.
PREFIX = ".lanescope-"
#: Source: renameat2(2), flags; AT_FDCWD from fcntl.h.
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100
#: Errors by which a system or a file system says that it cannot exchange two names.
_NO_EXCHANGE = (errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM)

#: What has to be on the disk in the end goes there in pieces of so many bytes.
_BEGUN_BYTES = 4 << 20

#: What is being written, and by which process: a child that was forked must not remove its parent's.
_unfinished: dict[Path, int] = {}
#: Are told of each path that is begun, and of each that is finished or gone.
_watcher: tuple[Callable[[Path], object], Callable[[Path], object]] | None = None


@contextmanager
def atomic_writer(out: Output) -> Iterator[BinaryIO]:
    """Open ``out`` for writing; a path appears under its name only when the block ends without an error.

    A path is written beside itself under a temporary name and renamed, replacing what was there; through links: what
    they point to is replaced, not they. What replaces a file is on the disk before the file goes. A file object is
    written to as it is and left open.

    Raises:
        UsageError: the path is a folder, a device or a pipe.
        OSError: it cannot be written; the error names ``out`` and no temporary file.
    """
    if not isinstance(out, str | os.PathLike):
        yield out
        return
    target = _target(out)
    with _unused_name(target.parent) as temporary, _naming(temporary, out):
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        raw = _Raw(out, descriptor, is_synced=target.exists())
        file = io.BufferedWriter(raw)
        try:
            yield file
            file.flush()
            if target.exists():
                os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):  # what went wrong first is what counts
                file.close()
            raise
        file.close()
        temporary.replace(target)


def is_regular(file: BinaryIO) -> bool:
    """Return whether only the system is behind an open file, and nothing that may keep a writer waiting, as a pipe."""
    if not isinstance(file, io.BufferedWriter | io.BufferedRandom | io.FileIO):
        return False
    try:
        return stat.S_ISREG(os.fstat(file.fileno()).st_mode)
    except (OSError, ValueError):
        return False


@contextmanager
def folder(out: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a new folder, which is renamed to ``out`` when the block ends without an error.

    What was there before, a folder or a file, is removed: whoever calls this has made sure that it may be. It goes
    after the new folder is on the disk and has its name. The two names are exchanged in one step where the system can
    do that (Linux, on most file systems); elsewhere the old one is renamed first, so that a kill at the wrong moment
    leaves both, under names that begin with ``PREFIX``, and none is lost.

    Raises:
        UsageError: the path is a device or a pipe.
        OSError: it cannot be written; the error names ``out`` and no temporary folder.
    """
    target = _target(out, is_folder=True)
    with _unused_name(target.parent) as temporary, _naming(temporary, out):
        temporary.mkdir()
        yield temporary
        if target.exists():
            _sync(temporary)
            _exchange(temporary, target)
        else:
            temporary.rename(target)


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a folder in the system's temporary folder that only this user can read; it is removed at the end."""
    import tempfile

    with _unused_name(Path(tempfile.gettempdir())) as made:
        made.mkdir(0o700)
        yield made


def discard() -> None:
    """Remove what this process has begun to write and not finished: for those who end it in the middle of something."""
    for path, process in list(_unfinished.items()):
        if process == os.getpid():
            _remove(path)


def check_room(out: str | os.PathLike[str], *, is_folder: bool = False) -> None:
    """Refuse an output path where no file, or no folder, can be written, before the work is done.

    Raises:
        UsageError: it is a device or a pipe, or a folder where a file is to be; or the folder around it is not there.
        OSError: it cannot be looked at.
    """
    folder = _target(out, is_folder=is_folder).parent
    if not folder.is_dir():
        raise UsageError(
            f"output directory {str(folder)!r} does not exist", hint="run mkdir first, or use another path"
        )


def _target(out: str | os.PathLike[str], *, is_folder: bool = False) -> Path:
    """Return the path behind all links, where a file or a folder is or may be made."""
    with suppress(FileNotFoundError):
        mode = Path(out).stat().st_mode
        if stat.S_ISDIR(mode) and not is_folder:
            raise UsageError(f"{os.fspath(out)!r} is a directory", hint="use a path of a file")
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise UsageError(
                f"{os.fspath(out)!r} is a device or a pipe", hint="use a path of a file, or - for standard output"
            )
    try:
        return Path(out).resolve()
    except RuntimeError:  # what Python 3.11 and 3.12 make of a loop of links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), os.fspath(out)) from None


def _unused_in(folder: Path) -> Path:
    return folder / (PREFIX + os.urandom(8).hex())


@contextmanager
def _unused_name(folder: Path) -> Iterator[Path]:
    """Yield an unused path in a folder; what exists there at the end is removed."""
    path = _unused_in(folder)
    # Known before it is made: a signal may come at any time.
    _unfinished[path] = os.getpid()
    if _watcher is not None:
        _watcher[0](path)
    try:
        yield path
    finally:
        _remove(path)
        _unfinished.pop(path, None)
        if _watcher is not None:
            _watcher[1](path)


@contextmanager
def watched(begin: Callable[[Path], object], end: Callable[[Path], object]) -> Iterator[None]:
    """Tell of unfinished paths inside the block: of each before it is made, and when it is finished or gone."""
    global _watcher
    before, _watcher = _watcher, (begin, end)
    try:
        yield
    finally:
        _watcher = before


def _remove(path: Path) -> None:
    """Remove a file or a folder that lanescope wrote, if it exists."""
    try:
        path.unlink()
    except IsADirectoryError:
        shutil.rmtree(path, ignore_errors=True)
    except OSError:
        pass


@contextmanager
def _naming(temporary: Path, out: str | os.PathLike[str]) -> Iterator[None]:
    """Let errors name what the user knows."""
    try:
        yield
    except OSError as error:
        if not str(error.filename or "").startswith(str(temporary)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(out)) from None


class _Raw(io.FileIO):
    """A file whose errors name it as the user does: those of the system's write name nothing.

    Args:
        out: what the user calls it.
        descriptor: the open file.
        is_synced: whether it has to be on the disk in the end: the system begins with what there is, meanwhile.
    """

    def __init__(self, out: str | os.PathLike[str], descriptor: int, *, is_synced: bool) -> None:
        super().__init__(descriptor, "wb")
        self._out = os.fspath(out)
        self._is_synced = is_synced and hasattr(os, "posix_fadvise")
        self._written = self._begun = 0

    def write(self, data: Any) -> int:
        try:
            count = super().write(data)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._out) from None
        self._written += count
        if self._is_synced and self._written - self._begun >= _BEGUN_BYTES:
            # Pages that are not on the disk yet stay where they are; Linux begins to write them.
            with suppress(OSError):
                os.posix_fadvise(self.fileno(), self._begun, self._written - self._begun, os.POSIX_FADV_DONTNEED)
            self._begun = self._written
        return count


def _sync(folder: Path) -> None:
    """Wait until a folder and all in it are on the disk."""
    for path in (*folder.rglob("*"), folder):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _exchange(new: Path, old: Path) -> None:
    """Exchange two names in one step, or in several of which none loses anything."""
    if _exchanged(new, old):
        return
    aside = _unused_in(old.parent)
    old.rename(aside)
    try:
        new.rename(old)
    except BaseException:
        aside.rename(old)
        raise
    aside.rename(new)


def _exchanged(new: Path, old: Path) -> bool:
    """Exchange two names by the system's own call; False where there is none."""
    import ctypes

    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(new), _AT_FDCWD, os.fsencode(old), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _NO_EXCHANGE:
        return False
    raise OSError(number, os.strerror(number), str(old))

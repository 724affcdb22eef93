"""Input files: bytes of one file, decompressed."""

from __future__ import annotations

import os
import stat
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

from lanescope.errors import InputError, os_reason
from lanescope.source.detection import HEAD_BYTES, FileHead
from lanescope.source.digest import Digest
from lanescope.source.disk_arrays import room_for_content
from lanescope.source.reader import RUN_AGAIN, Reader, check_unchanged, fail, state_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from lanescope._native import core
    from lanescope.source.mapped_text import MappedText

#: Small enough to stay in the processor's caches next to what is decoded from it.
CHUNK_BYTES = 1 << 20

#: ID1, ID2 and the only compression method there is. Source: RFC 1952, section 2.3.
_GZIP_MAGIC = b"\x1f\x8b\x08"
_ZIP_MAGIC = b"PK\x03\x04"
#: Bounds what a hostile gzip file can cost: it unpacks to one GiB, or to so many times its own size.
_UNPACKED_BYTES = 1 << 30
_UNPACKED_RATIO = 200
#: Unpacking stops while this share of the temporary folder's disk is still free, so that it never fills up.
_FREE_SHARE = 0.02
_CHECK_BYTES = 64 << 20
_MORE_SPACE = "set TMPDIR to a directory with more free space"
#: How long a named pipe may have no writer.
_PATIENCE_MS = 5000


class Source:
    """One input file: plain, gzip, a compressed archive of arrays, or ``-`` for standard input.

    Packed files and pipes are unpacked into an unnamed temporary file first, so that every source can be read twice.

    Args:
        path: as the user gave it.
        hashes: hash the content while it is read; False: only if somebody asks for the hash. May be changed later.
        is_live: a program still writes it in place, and the format tells what of it is whole.

    Raises:
        InputError: the file does not exist, is a folder or a device, may not be read, the pipe has no writer, or
            its compression is broken or hostile.

    Attributes:
        path: as the user gave it.
        container: ``raw``, ``gzip``, ``npz`` or ``pipe`` (where the bytes lay; a packed pipe is a ``pipe``).
        size: bytes of content, after decompression, when it was opened; what a writer adds later is not read.
    """

    def __init__(self, path: str | os.PathLike[str], *, hashes: bool = True, is_live: bool = False) -> None:
        self.path = os.fspath(path)
        self._is_live = is_live
        self.container = "raw"
        self.hashes = hashes
        self._digest: Digest | None = None
        self._watch: core.FileWatch | None = None
        self.reached = [0]  # the byte at which the latest read of a reader ended
        self._file, begin = _open(self.path)
        try:
            if begin is not None:
                self.container = "pipe"
                self._replace(_copy(self._file, self.path, begin=begin))
            magic = self._file.read(len(_ZIP_MAGIC))
            packed = None
            if magic.startswith(_GZIP_MAGIC):
                packed, self.container = gunzip(self._file, self.path), "gzip" if begin is None else "pipe"
            elif magic == _ZIP_MAGIC and (packed := _unzip(self._file, self.path)) is not None and begin is None:
                self.container = "npz"
            if packed is not None:
                self._replace(packed)
            self.size = self._file.seek(0, os.SEEK_END)
            self._opened = state_of(self._file.fileno())
        except OSError as error:
            self.close()
            fail(self.path, error)
        except BaseException:
            self.close()
            raise

    def _replace(self, file: BinaryIO) -> None:
        if self.path != "-" or self.container != "pipe" or not _is_stdin(self._file):
            self._file.close()
        self._file = file

    @property
    def name(self) -> str:
        """File name without the folder."""
        return os.path.basename(self.path) or self.path  # noqa: PTH119 (pathlib would turn "run/" into "run")

    def head(self, size: int = HEAD_BYTES) -> FileHead:
        """Return at most ``size`` bytes from the start."""
        wanted = min(size, self.size)
        content = bytearray(wanted)
        self._seek()
        self._fill(memoryview(content), wanted)
        return FileHead(bytes(content), self.size, self.name)

    def chunks(self, size: int = CHUNK_BYTES) -> Iterator[memoryview]:
        """Yield the content in pieces of ``size`` bytes; a piece is valid until the next one is asked for.

        Raises:
            InputError: reading fails, or the file has become shorter or was written over.
        """
        yield from self._pieces(size, hashes=self.hashes)

    def _pieces(self, size: int, *, hashes: bool) -> Iterator[memoryview]:
        digest = Digest(beside=self.size > size, behind=1) if hashes and self._digest is None else None
        # One is hashed while the other is filled and decoded.
        buffers = [memoryview(bytearray(min(size, self.size))) for _ in range(1 if digest is None else 2)]
        self._seek()
        left = self.size
        try:
            while left:
                piece = buffers[0][: min(size, left)]
                buffers.reverse()
                self._fill(piece, left)
                left -= len(piece)
                if digest is not None:
                    digest.add(piece)
                yield piece
        finally:
            if digest is not None:
                digest.end()
        self._check_unchanged()
        if digest is not None:
            self._digest = digest

    def read(self) -> npt.NDArray[np.uint8]:
        """Return the whole content, uint8 [size], in memory; it must stay as it is until ``sha256`` was asked for.

        It is a part of an array with a zero behind it, for readers that stop at one (``base`` of the result).

        Raises:
            InputError: reading fails, or the file has become shorter or was written over.
        """
        array = room_for_content(self.size + 1)
        array[-1] = 0
        content = array[:-1]
        digest = Digest(beside=self.size > CHUNK_BYTES) if self.hashes else None
        self._seek()
        try:
            for begin in range(0, self.size, CHUNK_BYTES):
                piece = memoryview(content.data)[begin : begin + CHUNK_BYTES]
                self._fill(piece, self.size - begin)
                if digest is not None:
                    digest.add(piece)
        finally:
            if digest is not None:
                digest.end()
        self._check_unchanged()
        if digest is not None:
            self._digest = digest
        return content

    def mapped(self) -> MappedText:
        """Return the whole content as text in memory, for a ``with``: pages of the file itself where the system can.

        Nothing is copied then. What is read of it inside the ``with`` is to be kept, not the text: later changes of the
        file show up in it.
        """
        from lanescope.source.mapped_text import MappedText

        return MappedText(self)

    def _map(self) -> tuple[npt.NDArray[np.uint8], core.FileWatch | None]:
        """Return the content with a zero behind it, uint8 [size + 1], and its watch if it is mapped."""
        if self.size > CHUNK_BYTES:  # of less a copy costs less
            from lanescope._native import core

            try:
                found = core.map_file(self._file.fileno(), self.size)
            except OSError:  # not a file of the system
                found = None
            if found is not None:
                text, self._watch = found
                if self.hashes:
                    self._digest = Digest(beside=True)
                    self._digest.add(memoryview(text.data)[:-1])
                    self._digest.end()
                return text, self._watch
        whole: npt.NDArray[np.uint8] | None = self.read().base
        assert whole is not None
        return whole, None

    def _check_length(self, watch: core.FileWatch) -> None:
        # A page that lost a part has zeros there, which is not seen when they are read.
        size = self.size if self._file.closed else os.fstat(self._file.fileno()).st_size
        if size < self.size or watch.is_shorter:
            raise InputError(f"{self.path}: file became shorter while it was read", hint=RUN_AGAIN)
        if not self._file.closed:
            self._check_unchanged()

    def _check_unchanged(self) -> None:
        if not self._is_live:
            check_unchanged(self._file.fileno(), self._opened, self.path)

    def reader(self) -> Reader:
        """Return what reads the content anywhere, also after this source was closed."""
        opened = None if self._is_live else self._opened
        return Reader(os.dup(self._file.fileno()), self.path, self.reached, opened)

    @property
    def sha256(self) -> str:
        """SHA-256 of the content, hexadecimal; costs a read if the content was not hashed before.

        Raises:
            InputError: reading fails, or the file has changed since it was opened.
        """
        while self._digest is None:
            for _ in self._pieces(CHUNK_BYTES, hashes=True):
                pass
            if self._opened != state_of(self._file.fileno()):  # what was read before may have been something else
                self._digest = None
                raise InputError(f"{self.path}: file changed while it was read", hint=RUN_AGAIN)
        found = self._digest.hex
        if self._watch is not None:
            self._check_length(self._watch)
        return found

    @property
    def content_hash(self) -> str | Callable[[], str]:
        """``sha256`` for ``TraceBuilder.input``; or, of a source that does not hash, a function that asks for it."""
        return self.sha256 if self.hashes else lambda: self.sha256

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _seek(self) -> None:
        try:
            self._file.seek(0)
        except OSError as error:
            fail(self.path, error)

    def _fill(self, buffer: memoryview, left: int) -> None:
        """Fill ``buffer`` from the file, however small the pieces that the system gives (2 GiB at most)."""
        done = 0
        while done < len(buffer):
            try:
                count = self._file.readinto(buffer[done:])  # type: ignore[attr-defined]
            except OSError as error:
                fail(self.path, error)
            if not count:
                raise InputError(
                    f"{self.path}: file became shorter while it was read: {left - done} bytes missing",
                    hint=RUN_AGAIN,
                )
            done += count


class SpooledFile:
    """An unnamed temporary file.

    Args:
        size: bytes that will be written, if that is known.

    Raises:
        InputError: it cannot be made, or the temporary folder's disk has no room for it.
    """

    def __init__(self, size: int = 0) -> None:
        import tempfile

        try:
            self._file = tempfile.TemporaryFile(prefix="lanescope-", buffering=0)  # noqa: SIM115
        except OSError as error:
            _no_spool("create a", error)
        weakref.finalize(self, self._file.close)
        disk = os.fstatvfs(self._file.fileno())
        if disk.f_bavail * disk.f_frsize < size + disk.f_blocks * disk.f_frsize * _FREE_SHARE:
            self._file.close()
            raise InputError(
                f"cannot allocate {size >> 20} MiB of temporary space: not enough free space", hint=_MORE_SPACE
            )
        self._reader = Reader(os.dup(self._file.fileno()), "the temporary file", [0])

    def write(self, offset: int, data: npt.NDArray[Any]) -> None:
        """Write an array in C order.

        Raises:
            InputError: the disk is full.
        """
        view = memoryview(data.data).cast("B")
        while view:
            try:
                count = os.pwrite(self._file.fileno(), view, offset)
            except OSError as error:
                _no_spool("write to the", error)
            view, offset = view[count:], offset + count

    def read(self, offset: int, size: int) -> npt.NDArray[np.uint8]:
        """Return ``size`` bytes from ``offset`` on, uint8 [size]."""
        return self._reader.at(offset, size)


def _no_spool(what: str, error: OSError) -> NoReturn:
    raise InputError(f"cannot {what} temporary file: {os_reason(error)}", hint=_MORE_SPACE) from None


def _open(path: str) -> tuple[BinaryIO, bytes | None]:
    """Open a file for reading without buffers.

    Devices are refused: some never end, and opening others has effects.

    Returns:
        The file; and for a pipe the bytes that were read from it already, None for a file that can be read twice.
    """
    if path == "-":
        return _stdin(), b""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116 (pathlib costs more to import than all of this module)
        if stat.S_ISDIR(mode):
            raise InputError(f"{path!r} is a directory", hint="pass a capture file or a Parquet dataset")
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode):
            raise InputError(f"{path!r} is a device, not a file", hint="copy the data to a file first")
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | (os.O_NONBLOCK if stat.S_ISFIFO(mode) else 0))
    except FileNotFoundError:
        raise InputError(f"cannot open {path!r}: no such file or directory", hint="check the path") from None
    except PermissionError:
        raise InputError(f"cannot open {path!r}: permission denied", hint="check the file permissions") from None
    except OSError as error:
        fail(path, error)
    except ValueError as error:  # a NUL in the name, characters that no file name can hold
        raise InputError(f"cannot open {path!r}: {error}", hint="check the path") from None
    file: BinaryIO = open(descriptor, "rb", buffering=0)  # noqa: SIM115, PTH123
    if stat.S_ISREG(mode):
        return file, None
    try:
        return file, _wait_for_writer(descriptor, path)
    except BaseException:
        file.close()
        raise


def _is_stdin(file: BinaryIO) -> bool:
    return sys.stdin is not None and file is sys.stdin.buffer


def _stdin() -> BinaryIO:
    if sys.stdin is None:
        raise InputError("standard input is closed", hint="pass a file or pipe data to standard input")
    file = sys.stdin.buffer
    try:
        descriptor = file.fileno()
    except OSError:  # not a file of the system's: a test or a notebook put it there
        return file
    status = os.fstat(descriptor)
    null = os.stat(os.devnull)  # noqa: PTH116
    is_harmless = status.st_rdev == null.st_rdev or os.isatty(descriptor)
    if stat.S_ISBLK(status.st_mode) or (stat.S_ISCHR(status.st_mode) and not is_harmless):
        raise InputError("standard input is a device, not a file", hint="copy the data to a file first")
    return file


def _wait_for_writer(descriptor: int, path: str) -> bytes:
    """Wait until a named pipe has a writer; return the bytes read to detect it."""
    import select

    begin = b""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    if not poll.poll(_PATIENCE_MS):
        try:
            begin = os.read(descriptor, 1)
        except BlockingIOError:
            pass  # a writer that has written nothing yet
        else:
            if not begin:
                raise InputError(f"{path}: pipe has no writer", hint="start the writer first")
    os.set_blocking(descriptor, True)
    return begin


def gunzip(file: BinaryIO, path: str) -> BinaryIO:
    """Return a temporary file with the content of a gzip file; ``InputError`` if it is damaged or hostile."""
    from isal import igzip, igzip_lib

    packed = file.seek(0, os.SEEK_END)
    file.seek(0)
    broken: tuple[type[Exception], ...] = (EOFError, ValueError, igzip.BadGzipFile, igzip_lib.error)  # type: ignore[assignment]
    unpacked = igzip.open(file, "rb")  # type: ignore[no-untyped-call]
    try:
        return _copy(unpacked, path, limit=max(_UNPACKED_BYTES, _UNPACKED_RATIO * packed))
    except broken as error:
        hint = "recover what there is: gzip -dc FILE > PART"
        raise InputError(f"{path}: invalid gzip data: {error}", hint=hint) from None
    finally:
        unpacked.close()


def _unzip(file: BinaryIO, path: str) -> BinaryIO | None:
    from lanescope.source import npz

    return npz.unpacked(file, path, _spool, _check_space)


def _spool() -> BinaryIO:
    import tempfile

    return tempfile.TemporaryFile(prefix="lanescope-", buffering=0)


def _copy(file: BinaryIO, path: str, *, begin: bytes = b"", limit: int | None = None) -> BinaryIO:
    """Copy ``begin`` and the file into an unnamed temporary file.

    Raises:
        InputError: it is longer than ``limit``, or the temporary folder's disk fills up.
    """
    spool, done = _spool(), 0
    try:
        _write(spool, begin)
        while (piece := file.read(CHUNK_BYTES)) != b"":
            if piece is None:  # somebody has told standard input not to wait
                os.set_blocking(file.fileno(), True)
                continue
            _check_space(spool, path, done, len(piece), limit)
            _write(spool, piece)
            done += len(piece)
        spool.seek(0)
    except BaseException:
        spool.close()
        raise
    return spool


def _check_space(spool: BinaryIO, path: str, done: int, more: int, limit: int | None) -> None:
    if limit is not None and done + more > limit:
        raise InputError(
            f"{path}: decompressed size exceeds {_UNPACKED_RATIO} times the file size",
            hint="decompress the file first",
        )
    if done // _CHECK_BYTES != (done + more) // _CHECK_BYTES:
        disk = os.fstatvfs(spool.fileno())
        if disk.f_bavail < disk.f_blocks * _FREE_SHARE:
            raise InputError(
                f"{path}: not enough temporary space for more than {done >> 20} MiB",
                hint="set TMPDIR to a directory with more free space",
            )


def _write(file: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]

"""Compressed archives of arrays (``.npz``), as archives whose arrays are as they are: what readers find in place."""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Callable
from typing import BinaryIO

from lanescope.errors import InputError

MAGIC = b"PK\x03\x04"
_SUFFIX = ".npy"
#: Bounds what a hostile archive can cost: it unpacks to one GiB, or to so many times its own size.
UNPACKED_BYTES = 1 << 30
UNPACKED_RATIO = 200
_CHUNK_BYTES = 1 << 20
#: More arrays are no buffer.
_MOST_MEMBERS = 4096
#: The flag of members that need a password.
_ENCRYPTED = 1
_HINT = "write it with numpy.savez, not with numpy.savez_compressed"

#: Called before bytes are written: the file, its name, bytes that are there, bytes that are added, the limit.
Check = Callable[[BinaryIO, str, int, int, int | None], None]


def unpacked(file: BinaryIO, path: str, make: Callable[[], BinaryIO], check: Check | None = None) -> BinaryIO | None:
    """Return the same archive with its arrays uncompressed; None where nothing has to be done.

    Args:
        file: any file that begins like an archive.
        path: its name, for errors.
        make: makes the file to write to, without buffers.
        check: raises where nothing more can be written.

    Raises:
        InputError: an array is damaged, needs a password, is compressed as NumPy does not, or unpacks to too much.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    try:
        archive = zipfile.ZipFile(file)
    except (zipfile.BadZipFile, ValueError, NotImplementedError, EOFError):
        return None  # Who reads the archive says what is wrong with it.
    with archive:
        members = archive.infolist()
        is_compressed = any(member.compress_type != zipfile.ZIP_STORED for member in members)
        is_arrays = all(member.filename.endswith(_SUFFIX) for member in members)
        if not is_compressed or not is_arrays or len(members) > _MOST_MEMBERS:
            return None
        out = make()
        try:
            _copy(archive, members, path, out, max(UNPACKED_BYTES, UNPACKED_RATIO * size), check)
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            out.close()
            raise InputError(f"{path}: damaged .npz file: {error}", hint="copy the complete file") from None
        except (NotImplementedError, RuntimeError):
            out.close()
            raise InputError(f"{path}: unsupported compression of the .npz file", hint=_HINT) from None
        except BaseException:
            out.close()
            raise
    out.seek(0)
    return out


def _copy(
    archive: zipfile.ZipFile,
    members: list[zipfile.ZipInfo],
    path: str,
    out: BinaryIO,
    limit: int,
    check: Check | None,
) -> None:
    if any(member.flag_bits & _ENCRYPTED for member in members):
        raise InputError(f"{path}: the .npz file needs a password", hint="write it with numpy.savez")
    promised = sum(member.file_size for member in members)
    if promised > limit:
        raise InputError(f"{path}: unpacks to {promised:,} bytes, the limit is {limit:,}", hint=_HINT)
    done = 0
    buffered = io.BufferedRandom(out)  # type: ignore[arg-type]
    try:
        with zipfile.ZipFile(buffered, "w", zipfile.ZIP_STORED) as made:
            for member in members:
                with archive.open(member) as source, made.open(zipfile.ZipInfo(member.filename), "w") as target:
                    # What a member holds beyond its size is not read, and its checksum tells of it.
                    while piece := source.read(_CHUNK_BYTES):
                        if check is not None:
                            check(out, path, done, len(piece), limit)
                        target.write(piece)
                        done += len(piece)
        buffered.flush()
    finally:
        buffered.detach()

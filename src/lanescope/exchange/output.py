"""Where writers write: a file object as it is, or a path that is whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

Output = str | os.PathLike[str] | BinaryIO


@contextmanager
def opened(out: Output) -> Iterator[BinaryIO]:
    """Open ``out`` for writing; a path appears under its name only when the block ends without an error.

    A path is written beside itself under a temporary name and renamed, replacing what was there; a file object is
    written to as it is and left open.
    """
    if not isinstance(out, str | os.PathLike):
        yield out
        return
    target = Path(out)
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _umask() -> int:
    """Return the process's mask of file modes, which can only be read by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask

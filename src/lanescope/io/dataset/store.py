"""Where a dataset lies: a folder, or a prefix of an object store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from lanescope.errors import InputError, MissingDependencyError
from lanescope.io import atomic_file

if TYPE_CHECKING:
    import duckdb

#: Folder of unfinished work in a dataset that is a folder.
STAGING = "_staging"
#: Requests to an object store that run side by side.
_REQUESTS = 16


class Store(Protocol):
    """Files of a dataset by name; names have ``/`` between their parts.

    Attributes:
        url: path or URL of the dataset, as specified.
    """

    url: str

    def put_new(self, name: str, data: bytes) -> bool:
        """Write a file that does not exist, whole or not at all; return False if it exists."""

    def put(self, name: str, data: bytes) -> None:
        """Write a file, whole or not at all."""

    def put_file(self, name: str, path: Path) -> None:
        """Move a file in, whole or not at all; one of this name is replaced."""

    def get(self, name: str) -> bytes | None:
        """Return the content of a file; None if it does not exist."""

    def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """Return the contents of files, None for those that do not exist."""

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder, without the folder, sorted; hidden ones are left out."""

    def delete(self, name: str) -> None:
        """Remove a file if it exists."""

    def sql_path(self, name: str) -> str:
        """Return the path of a file as DuckDB takes it."""

    def prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Let a connection read the files."""

    def staging(self) -> AbstractContextManager[Path]:
        """Return a private folder for unfinished files, which is removed at the end of a ``with``."""

    def sweep(self) -> None:
        """Remove what processes that were killed left unfinished."""


def is_url(path: str) -> bool:
    """Return whether a path names an object store: ``s3://...``, and not a folder."""
    return "://" in path


def open_store(url: str) -> Store:
    """Return the store of a dataset.

    Args:
        url: path of a folder, or a URL: ``s3://BUCKET/PREFIX``, ``gs://...``, ``az://...``, ``memory:///``. Credentials
            and endpoints come from the environment, as the tools of the services take them.

    Raises:
        MissingDependencyError: an object store without the extra ``cluster``.
        InputError: the URL is not one of a known service.
    """
    return ObjectStore(url) if is_url(url) else LocalStore(url)


class LocalStore:
    """A folder.

    Args:
        url: its path.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._root = Path(url).resolve()

    def put_new(self, name: str, data: bytes) -> bool:
        """Write a file that does not exist, by a link to a finished one: the link is made or not."""
        target = self._root / name
        if target.exists():
            return False
        with self._written(data) as made:
            return _placed(made, target, _link)

    def put(self, name: str, data: bytes) -> None:
        """Write a file."""
        with self._written(data) as made:
            _placed(made, self._root / name, _replace)

    @contextmanager
    def _written(self, data: bytes) -> Iterator[Path]:
        """Yield an unfinished file with this content; it is removed at the end."""
        with self.staging() as folder:
            made = folder / "record"
            made.write_bytes(data)
            _sync(made)
            yield made

    def put_file(self, name: str, path: Path) -> None:
        """Rename a file, after it is on the disk."""
        _sync(path)
        _placed(path, self._root / name, _replace)

    def get(self, name: str) -> bytes | None:
        """Read a file."""
        try:
            return (self._root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """Read files one after the other."""
        return [self.get(name) for name in names]

    def names(self, folder: str) -> list[str]:
        """List a folder."""
        try:
            return sorted(path.name for path in (self._root / folder).iterdir() if not path.name.startswith("."))
        except FileNotFoundError:
            return []

    def delete(self, name: str) -> None:
        """Remove a file, and the folders that are empty without it."""
        path = self._root / name
        path.unlink(missing_ok=True)
        for folder in path.relative_to(self._root).parents[:-1]:
            with suppress(OSError):
                (self._root / folder).rmdir()

    def sql_path(self, name: str) -> str:
        """Return the whole path."""
        return str(self._root / name)

    def prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Allow the folder, and no other."""
        connection.execute("set allowed_directories = ?", [[f"{self._root}/"]])

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Yield a folder in the dataset: its files are renamed, not copied, when they are finished.

        A lock next to it is held meanwhile, which ends with the process, however that ends.
        """
        above = self._root / STAGING
        above.mkdir(parents=True, exist_ok=True)
        made, descriptor = _locked_name(above)
        try:
            made.mkdir(mode=0o700)
            yield made
        finally:
            shutil.rmtree(made, ignore_errors=True)
            made.with_suffix(_LOCK).unlink(missing_ok=True)
            os.close(descriptor)

    def sweep(self) -> None:
        """Remove the unfinished work of processes that were killed: their locks ended with them."""
        for lock in (self._root / STAGING).glob(f"*{_LOCK}"):
            with suppress(OSError):
                descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
                try:
                    _lock(descriptor)
                    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                    lock.unlink(missing_ok=True)
                finally:
                    os.close(descriptor)


#: How often a folder is made again that other processes remove while it is empty.
_ATTEMPTS = 100


def _placed(made: Path, target: Path, place: Callable[[Path, Path], bool]) -> bool:
    """Bring a finished file to its name.

    The folder of the name may go at any time before the file is in it: ``delete`` removes folders that are empty.
    """
    for _ in range(_ATTEMPTS - 1):
        with suppress(FileNotFoundError, FileExistsError):  # the latter of a folder that went while mkdir looked at it
            target.parent.mkdir(parents=True, exist_ok=True)
            return place(made, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    return place(made, target)


def _replace(made: Path, target: Path) -> bool:
    made.replace(target)
    return True


def _link(made: Path, target: Path) -> bool:
    """Give a file a second name; return False if another file has it."""
    try:
        os.link(made, target)
    except FileExistsError:
        return False
    except FileNotFoundError:
        raise
    except OSError:  # a file system without links
        if target.exists():
            return False
        made.replace(target)
    return True


#: Ending of the names of locks.
_LOCK = ".lock"


def _locked_name(above: Path) -> tuple[Path, int]:
    """Return the path of a folder that no other process uses, and the open file that holds the lock on it."""
    while True:
        made = above / os.urandom(8).hex()
        lock = made.with_suffix(_LOCK)
        descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            _lock(descriptor)
            # Another process may have swept it before it was locked.
            if lock.stat().st_ino == os.fstat(descriptor).st_ino:
                return made, descriptor
        except OSError:
            pass
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    """Lock an open file; ``OSError`` if another process has."""
    import fcntl

    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ObjectStore:
    """A prefix of an object store.

    Args:
        url: as ``open_store`` takes it.
    """

    def __init__(self, url: str) -> None:
        try:
            import obstore
            from obstore import store
        except ImportError:
            raise MissingDependencyError(
                f"{url} requires obstore, which is not installed", hint="run pip install 'lanescope[cluster]'"
            ) from None
        self.url = url.rstrip("/")
        self._obstore: Any = obstore
        try:
            self._store: Any = store.from_url(self.url)
        except Exception as error:  # each service has errors of its own
            raise InputError(f"cannot open {url}: {_first_line(error)}", hint="check the URL and credentials") from None

    def put_new(self, name: str, data: bytes) -> bool:
        """Write an object that does not exist: the service refuses a second one."""
        from obstore.exceptions import AlreadyExistsError

        try:
            self._obstore.put(self._store, name, data, mode="create")
        except AlreadyExistsError:
            return False
        return True

    def put(self, name: str, data: bytes) -> None:
        """Write an object."""
        self._obstore.put(self._store, name, data)

    def put_file(self, name: str, path: Path) -> None:
        """Upload a file."""
        self._obstore.put(self._store, name, path)
        path.unlink()

    def get(self, name: str) -> bytes | None:
        """Read an object."""
        try:
            return bytes(self._obstore.get(self._store, name).bytes())
        except FileNotFoundError:
            return None

    def get_all(self, names: Sequence[str]) -> list[bytes | None]:
        """Read objects, some at a time."""
        with ThreadPoolExecutor(_REQUESTS) as pool:
            return list(pool.map(self.get, names))

    def names(self, folder: str) -> list[str]:
        """List what is below a prefix."""
        found = []
        for listed in self._obstore.list(self._store, prefix=folder):
            found += [str(each["path"]) for each in listed]
        return sorted(name.removeprefix(f"{folder}/") for name in found)

    def delete(self, name: str) -> None:
        """Remove an object."""
        with suppress(FileNotFoundError):
            self._obstore.delete(self._store, name)

    def sql_path(self, name: str) -> str:
        """Return the URL of an object."""
        return f"{self.url}/{name}"

    def prepare(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Register a file system: DuckDB's own one is downloaded at its first use."""
        from obstore.fsspec import FsspecStore

        protocol: Any = self.url.partition("://")[0]
        connection.register_filesystem(FsspecStore(protocol))
        connection.execute("set allowed_directories = ?", [[f"{self.url}/"]])

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """Yield a folder in the system's temporary folder."""
        with atomic_file.scratch() as made:
            yield made

    def sweep(self) -> None:
        """Do nothing: objects appear whole."""


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]

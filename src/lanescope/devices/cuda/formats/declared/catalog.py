"""The layouts that come with lanescope, and layouts in files of the user."""

from __future__ import annotations

from functools import cache, lru_cache
from pathlib import Path

from lanescope.devices.cuda.formats.declared import validation
from lanescope.devices.cuda.formats.declared.declaration import MAX_FILE_BYTES, Declaration
from lanescope.devices.cuda.formats.declared.parsing import parse
from lanescope.errors import InputError, UsageError, os_reason

SUFFIX = ".toml"
#: Declarations of the user that are kept.
_MOST_KEPT = 16
_SHIPPED = Path(__file__).parent / "shipped"


@cache
def shipped() -> tuple[str, ...]:
    """Return the names of the layouts that come with lanescope, sorted."""
    return tuple(sorted(path.stem for path in _SHIPPED.glob("*" + SUFFIX)))


def is_file(name: str) -> bool:
    """Return whether a layout is given by its file."""
    return name.endswith(SUFFIX)


@lru_cache(_MOST_KEPT)
def read(text: str, where: str) -> Declaration:
    """Return the declaration in a text: the same one each time, as the files of all ranks may be read by it.

    Raises:
        InputError: it is not a valid declaration.
    """
    declaration = parse(text, where)
    try:
        validation.check(declaration)
    except InputError as error:
        raise InputError(f"{where}: {error.message}", hint=error.hint) from None
    return declaration


def load(name: str) -> Declaration:
    """Return a declaration.

    Args:
        name: of a shipped layout, or the path of a TOML file.

    Raises:
        InputError: the file cannot be read, or is not a valid declaration.
        UsageError: the layout is unknown.
    """
    if is_file(name):
        return read(_text(Path(name)), name)
    if name not in shipped():
        raise UsageError(f"unknown layout {name!r} (choose from {', '.join(shipped())})")
    return _load_shipped(name)


@cache
def _load_shipped(name: str) -> Declaration:
    return read((_SHIPPED / (name + SUFFIX)).read_text(encoding="utf-8"), name)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InputError(f"cannot read {path}: {os_reason(error)}", hint="check the path of the layout file") from None
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"{path} is too large for a layout file", hint="check the path of the layout file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not a text file", hint="write the layout as UTF-8 text") from None

"""Settings of the rules in a file: ``lanescope.toml``, or ``[tool.lanescope]`` in ``pyproject.toml``.

The file is the nearest one from the working directory up to the root of the repository. Outside a repository only the
working directory counts: folders above it may belong to other users.
"""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from lanescope.errors import UsageError, os_reason

T = TypeVar("T")

NAME = "lanescope.toml"
PROJECT = "pyproject.toml"
#: Severities that ``fail-on`` takes, the least first, and none of them.
FAIL_ON = ("notice", "warning", "error", "never")
_KEYS = ("select", "ignore", "fail-on", "thresholds", "docs-url")
#: Any way to write the table `tool.lanescope` of a project: parsing a project that has none takes milliseconds.
_MAY_BE_OURS = re.compile(rb"tool[\s\"']*(?:\.[\s\"']*lanescope|\]|=)")


class Settings(NamedTuple):
    """What a file states.

    Attributes:
        file: its path; empty without a file.
        select: codes, or beginnings of codes, of the rules to apply; empty: all.
        ignore: codes to leave out.
        fail_on: the lowest severity that sets exit status 1, or ``never``.
        thresholds: values by name, as they are in the file.
        docs_url: address of the built documentation, for links to the pages of rules.
    """

    file: str = ""
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str = "warning"
    thresholds: Mapping[str, Any] = {}
    docs_url: str = ""


def load(named: str | None = None) -> Settings:
    """Return the settings of the named file, or of the nearest one.

    Raises:
        UsageError: the file cannot be read, or states something that it cannot.
    """
    if named is not None:
        return _settings(named, is_named=True) or Settings(file=named)
    for folder in _folders():
        for name in (NAME, PROJECT):
            found = _settings(folder + name)
            if found is not None:
                return found
    return Settings()


def _folders() -> Sequence[str]:
    """Return the folders from the working directory up to the root of the repository, as prefixes of file names."""
    folders = [""]
    for _ in range(os.getcwd().count(os.sep)):  # noqa: PTH109 (text: this runs at every start)
        if os.path.exists(f"{folders[-1]}.git"):  # noqa: PTH110
            return folders
        folders.append(f"{folders[-1]}../")
    return folders[:1]


def _settings(file: str, *, is_named: bool = False) -> Settings | None:
    """Return the settings of a file; None if it does not exist, or is a project without any."""
    try:
        with open(file, "rb") as opened:  # noqa: PTH123
            data = opened.read()
    except OSError as error:
        if is_named or not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise UsageError(f"cannot read settings {file!r}: {os_reason(error)}") from None
        return None
    is_project = os.path.basename(file) == PROJECT  # noqa: PTH119
    if is_project and not is_named and not (b"lanescope" in data and _MAY_BE_OURS.search(data)):
        return None
    table = _parsed(file, data)
    if is_project:
        tools = table.get("tool", {})
        if not isinstance(tools, dict) or "lanescope" not in tools:
            if is_named:
                raise UsageError(f"{file}: table [tool.lanescope] not found")
            return None
        table = tools["lanescope"]
        if not isinstance(table, dict):
            raise UsageError(f"{file}: invalid [tool.lanescope]: expected a table")
    return _checked(file, table)


def _parsed(file: str, data: bytes) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        text = str(error)
        reason = text[:1].lower() + text[1:]
        raise UsageError(f"{file}: invalid TOML: {reason}") from None


def _checked(file: str, table: Mapping[str, Any]) -> Settings:
    for key in table:
        if key not in _KEYS:
            raise UsageError(f"{file}: {unknown('key', key, _KEYS)}")
    fail_on = table.get("fail-on", Settings().fail_on)
    if fail_on not in FAIL_ON:
        raise UsageError(f"{file}: invalid fail-on {fail_on!r} (choose from {', '.join(FAIL_ON)})")
    thresholds = table.get("thresholds", {})
    if not isinstance(thresholds, dict):
        raise UsageError(f"{file}: invalid thresholds: expected a table")
    url = table.get("docs-url", "")
    if not isinstance(url, str) or (url and not url.startswith(("https://", "http://", "file://"))):
        raise UsageError(f"{file}: invalid docs-url {url!r}: expected a URL")
    return Settings(file, _codes(file, table, "select"), _codes(file, table, "ignore"), fail_on, thresholds, url)


def _codes(file: str, table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(code, str) and code for code in value):
        raise UsageError(f"{file}: invalid {key} {value!r}: expected a list of rule codes or prefixes")
    return tuple(value)


def unknown(what: str, name: str, known: Collection[str], prefix: str = "") -> str:
    """Return the problem of an unknown name, with the nearest names, or with all if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=3, cutoff=0.6)
    if near:
        return f"unknown {what} {prefix + name!r} (did you mean {' or '.join(repr(prefix + each) for each in near)}?)"
    return f"unknown {what} {prefix + name!r} (choose from {', '.join(known) or 'none'})"


def thresholds(declared: type[T], settings: Settings) -> T:
    """Return the declared thresholds with the values of the file.

    Args:
        declared: a class made of its annotated names, which are thresholds, annotated as ``int`` or ``float`` with
            their lowest and highest value (``Annotated[float, (0, 1)]``), or classes of thresholds.
        settings: of the file.

    Raises:
        UsageError: an unknown name, or a value that the threshold does not take.
    """
    return _thresholds(declared, settings.thresholds, settings.file, ("thresholds",))


def _thresholds(declared: type[T], table: Mapping[str, Any], file: str, path: Sequence[str]) -> T:
    known = get_type_hints(declared, include_extras=True)
    values: dict[str, Any] = {}
    for name, value in table.items():
        where = ".".join((*path, name))
        if name not in known:
            raise UsageError(f"{file}: {unknown('threshold', name, known, '.'.join((*path, '')))}")
        if get_origin(known[name]) is Annotated:
            type_, limits = get_args(known[name])
            values[name] = _number(value, type_, limits, f"{file}: {where}")
        elif isinstance(value, dict):
            values[name] = _thresholds(known[name], value, file, (*path, name))
        else:
            raise UsageError(f"{file}: invalid {where}: expected a table")
    return declared(**values)


def _number(value: Any, type_: type, limits: tuple[float, float], where: str) -> int | float:
    low, high = limits
    noun = "an integer" if type_ is int else "a number"
    bounds = f"from {low:g}" + ("" if high == math.inf else f" to {high:g}")
    is_number = isinstance(value, int | type_) and not isinstance(value, bool)
    # The limit to what a float holds is for integers too: TOML has integers of any size, and "inf" and "nan".
    if not is_number or not low <= value <= min(high, sys.float_info.max):
        raise UsageError(f"{where}: invalid value {value!r}: expected {noun} {bounds}")
    return int(value) if type_ is int else float(value)

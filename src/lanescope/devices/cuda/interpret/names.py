"""Names of events and groups: the buffer holds numbers only."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from lanescope.errors import InputError, UsageError
from lanescope.source import Capture, Source

#: No list of at most 1024 names is longer; a larger file is something else.
MAX_FILE_BYTES = 1 << 20
#: What the capture calls the file of names, and how its neighbour is called.
PART = "events"
NEIGHBOUR = ".events.json"
_FILE_SUFFIXES = (".json", ".txt")

Names = dict[int, str]


@dataclass(frozen=True, slots=True)
class UserNames:
    """Names given by the user.

    Attributes:
        events: by number; None: no names were given, so no number is unknown.
        groups: by number.
        usable: False when a file was there and is none of names.
    """

    events: Names | None = None
    groups: Names = field(default_factory=dict)
    usable: bool = True


def load_names(value: Any) -> Names:
    """Return names by number from what a caller may have at hand.

    Args:
        value: a sequence of names; a mapping of numbers to names or of names to numbers; an ``Enum`` class.

    Raises:
        ValueError: it is none of these, or gives two names to one number.

    Example:
        >>> names_from(["load", "compute"]) == names_from({"0": "load", "1": "compute"}) == {0: "load", 1: "compute"}
        True
    """
    if isinstance(value, type) and issubclass(value, Enum):
        value = {member.name: member.value for member in value}
    if isinstance(value, Mapping):
        pairs = list(value.items())
        if pairs and all(_is_number(number) for _, number in pairs) and not all(_is_number(k) for k, _ in pairs):
            pairs = [(number, name) for name, number in pairs]
        if not all(_is_number(number) and isinstance(name, str) for number, name in pairs):
            raise ValueError("names must map to numbers or numbers to names")
        names = {int(number): name for number, name in pairs}
        if len(names) < len(pairs):
            raise ValueError("two names have the same number")
        return names
    if isinstance(value, Sequence) and not isinstance(value, str | bytes) and all(isinstance(n, str) for n in value):
        return {number: name for number, name in enumerate(value) if name}
    raise ValueError("names must be a list or a mapping between names and numbers")


def is_file(text: str) -> bool:
    """Return whether an option's text names a file; otherwise it is a list with commas."""
    return text.endswith(_FILE_SUFFIXES) or os.sep in text


def given(capture: Capture, events: Any, groups: Any) -> UserNames:
    """Return the names that the options give, or else those in the neighbour ``NAME.events.json``.

    Args:
        capture: the capture; files that are used become parts of it.
        events: a list with commas, a file, a Python value as ``load_names`` takes it, or None.
        groups: the same, but no file.

    Raises:
        InputError: the given file is not there or holds no names.
        UsageError: a value is not a list or mapping of names.
    """
    found = UserNames()
    if events is None:
        found = _beside(capture)
    elif isinstance(events, str) and is_file(events):
        try:
            source = capture.sidecar(PART, events)
            found = UserNames() if source is None else _from_file(source)
        except ValueError as error:
            raise InputError(
                f"{events}: invalid event names: {error}", hint="write a JSON list or one name per line"
            ) from None
    else:
        found = UserNames(_checked("events", events))
    return found if groups is None else replace(found, groups=_checked("groups", groups))


def _checked(option: str, value: Any) -> Names:
    if isinstance(value, str):
        value = [name.strip() for name in value.split(",")]
    try:
        return load_names(value)
    except ValueError as error:
        raise UsageError(f"invalid value for --{option}: {error}", hint=f"use --{option} load,compute,store") from None


def _beside(capture: Capture) -> UserNames:
    source = capture.sidecar(PART, None, (capture.name_pattern + NEIGHBOUR,))
    if source is None:
        return UserNames(usable=PART not in capture.unreadable)
    try:
        return _from_file(source)
    except (ValueError, InputError):
        return UserNames(usable=False)


def _from_file(source: Source) -> UserNames:
    """Return the names in a file: a line each, or JSON: a list, a mapping, or both lists as {"events":, "groups":}."""
    if source.size > MAX_FILE_BYTES:
        raise ValueError(f"file is too large ({source.size} bytes)")
    text = source.read().tobytes()
    if not source.name.endswith(".json"):
        return UserNames(load_names([line.strip() for line in text.decode("utf-8").splitlines()]))
    import json  # the import of msgspec takes more than all else that is done with a small file

    try:
        value = json.loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None
    if isinstance(value, dict) and isinstance(value.get("events"), list | dict):
        return UserNames(load_names(value["events"]), load_names(value.get("groups", [])))
    return UserNames(load_names(value))


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) < 10
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0

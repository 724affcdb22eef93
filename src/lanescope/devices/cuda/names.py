"""Names of events and groups: the buffer holds numbers only."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
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


def names_from(value: Any) -> Names:
    """Return names by number from what a caller may have at hand.

    Args:
        value: a sequence of names; a mapping of numbers to names or of names to numbers; an ``Enum`` class.

    Raises:
        ValueError: it is none of these.

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
            raise ValueError("names must be mapped to numbers, or numbers to names")
        return {int(number): name for number, name in pairs}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes) and all(isinstance(n, str) for n in value):
        return {number: name for number, name in enumerate(value) if name}
    raise ValueError("names must be a list, or a mapping between names and numbers")


def is_file(text: str) -> bool:
    """Tell whether an option's text names a file; otherwise it is a list with commas."""
    return text.endswith(_FILE_SUFFIXES) or os.sep in text


def given(capture: Capture, value: Any) -> Names:
    """Return the names that an option gives: a list with commas, a file, or a Python value.

    Raises:
        InputError: the file is not there or holds no names.
        UsageError: the value is no list or mapping of names.
    """
    if isinstance(value, str):
        if is_file(value):
            source = capture.use(PART, value)
            try:
                return _from_file(source)
            except ValueError as error:
                raise InputError(
                    f"{value} holds no event names: {error}", hint="write a JSON list, or one name per line"
                ) from None
        return {number: name.strip() for number, name in enumerate(value.split(",")) if name.strip()}
    try:
        return names_from(value)
    except ValueError as error:
        raise UsageError(str(error), hint='for example events="load,compute,store"') from None


def beside(capture: Capture) -> tuple[Names | None, bool]:
    """Return the names in the neighbour ``NAME.events.json``, None if there is none, and whether it can be used."""
    found = capture.find(glob.escape(capture.name) + NEIGHBOUR)
    if not found:
        return None, True
    try:
        source = capture.use(PART, found[0])
        return _from_file(source), True
    except (ValueError, InputError):
        return None, False


def _from_file(source: Source) -> Names:
    if source.size > MAX_FILE_BYTES:
        raise ValueError(f"it has {source.size} bytes")
    text = source.read().tobytes()
    if not source.name.endswith(".json"):
        return names_from([line.strip() for line in text.decode("utf-8").splitlines()])
    import msgspec

    try:
        return names_from(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() and value.isdigit() and len(value) < 10
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0

"""What a file holds besides its events: the run, its devices, process groups, and the profiler's own log."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from lanescope.wire.trace_events import decoded

#: Members with the profiler's log, by what they hold.
LOGS = ("ERROR", "WARNING", "INFO")
#: A value that takes more bytes is told by its size only.
MOST_BYTES = 16 << 20


@dataclass(slots=True)
class Metadata:
    """Members of the outermost object, decoded.

    Attributes:
        values: by key, the last of several; those that are not JSON are missing.
        texts: the same as they stand in the file.
        unreadable: keys whose value is not JSON, or too long.
        repeated: how many keys come again.
    """

    values: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)
    repeated: int = 0

    @property
    def base_ns(self) -> int | None:
        """What times count from, Unix time in ns; None if it is not given."""
        value = self.values.get("baseTimeNanoseconds")
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62 else None

    @property
    def devices(self) -> list[dict[str, Any]]:
        """The properties of devices that have a number."""
        found = self.values.get("deviceProperties")
        listed = found if isinstance(found, list) else []
        return [each for each in listed if isinstance(each, dict) and isinstance(each.get("id"), int)]

    @property
    def distributed(self) -> dict[str, Any]:
        """Rank, size and groups of the run; empty if it is not distributed."""
        found = self.values.get("distributedInfo")
        return found if isinstance(found, dict) else {}

    @property
    def groups(self) -> list[dict[str, Any]]:
        """The process groups."""
        found = self.distributed.get("pg_config")
        if isinstance(found, dict):
            found = list(found.values())
        return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []

    def log(self) -> Iterator[tuple[str, str]]:
        """Yield level and text of the entries of the profiler's log."""
        for level in LOGS:
            found = self.values.get(level)
            for entry in found if isinstance(found, list) else [] if found is None else [found]:
                yield level, entry if isinstance(entry, str) else json.dumps(entry, default=str)


def read_metadata(places: list[tuple[int, int, int, int]], read: Callable[[int, int], bytes]) -> Metadata:
    """Decode the members of the outermost object.

    Args:
        places: of each begin and end of its key and of its value, in the file.
        read: gives bytes of the file, by offset and size.
    """
    found = Metadata()
    for key_begin, key_end, begin, end in places:
        key, _ = decoded(read(key_begin, min(key_end - key_begin, MOST_BYTES)))
        found.repeated += key in found.texts
        if end - begin > MOST_BYTES:
            found.unreadable.append(key)
            found.texts[key] = f"({end - begin} bytes)"
            continue
        text = read(begin, end - begin).decode(errors="replace")
        found.texts[key] = text
        try:
            found.values[key] = json.loads(text, parse_float=Decimal, strict=False)
        except (ValueError, RecursionError):
            found.unreadable.append(key)
    return found

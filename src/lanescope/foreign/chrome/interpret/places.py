"""Processes and threads: who events belong to, and what metadata events call them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lanescope.foreign.chrome.formats.events import Events, FileText, Int64
from lanescope.foreign.chrome.formats.layout import METADATA

_NUMBER = re.compile(r"[+-]?\d{1,18}(?:\.\d{0,18})?(?:[eE][+-]?\d{1,2})?")


@dataclass(slots=True)
class Named:
    """What metadata say of a process or a thread; the last event of each kind counts.

    Attributes:
        name: None: none is given.
        sort_index: order among its siblings.
        labels: of a process.
    """

    name: str | None = None
    sort_index: int = 0
    labels: str = ""


@dataclass(slots=True)
class Places:
    """Processes and threads of a file.

    Attributes:
        keys: process and thread of each place; numbers and texts of them are the same.
        place: int32 [lanes], the place of each lane of the events.
        processes, threads: what is known of them; threads by process and thread.
        metadata: process, thread, name and arguments of each metadata event, arguments as JSON.
    """

    keys: list[tuple[str, str]] = field(default_factory=list)
    place: Int64 = field(default_factory=lambda: np.empty(0, np.int64))
    processes: dict[str, Named] = field(default_factory=dict)
    threads: dict[tuple[str, str], Named] = field(default_factory=dict)
    metadata: list[tuple[str, str, str, bytes]] = field(default_factory=list)

    _by_key: dict[tuple[str, str], int] = field(default_factory=dict)

    def add(self, events: Events, file: FileText) -> None:
        """Find the places of the next events, and read their metadata events."""
        place = [
            self._by_key.setdefault((plain_number(process), plain_number(thread)), len(self._by_key))
            for process, thread in events.lanes[len(self.place) :]
        ]
        self.keys = list(self._by_key)
        self.place = np.concatenate([self.place, np.array(place, np.int64)])
        for row, arguments in self._metadata_events(events, file):
            process, thread = self.keys[self.place[events.lane[row]]]
            self._tell(process, thread, events.names[events.name[row]], arguments)

    def _metadata_events(self, events: Events, file: FileText) -> Iterator[tuple[int, bytes]]:
        rows = events.of_phase(METADATA)
        return zip(rows.tolist(), events.arguments(rows, file), strict=True)

    def _tell(self, process: str, thread: str, name: str, arguments: bytes) -> None:
        self.metadata.append((process, thread, name, arguments))
        subject, _, what = name.partition("_")
        if subject not in ("process", "thread") or what not in ("name", "sort_index", "labels"):
            return
        try:
            given = json.loads(arguments.decode(errors="replace"), strict=False) if arguments else {}
        except (ValueError, RecursionError):
            given = {}
        value = given.get(what) if isinstance(given, dict) else None
        if value is None:
            return
        if subject == "process":
            about = self.processes.setdefault(process, Named())
        else:
            about = self.threads.setdefault((process, thread), Named())
        if what == "sort_index":
            about.sort_index = _whole(value)
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            setattr(about, what, text.encode("utf-8", "replace").decode())


def plain_number(text: str) -> str:
    """Return a text; one that is a whole number in its shortest form, so that 7, "7", 7.0 and 70e-1 are the same."""
    if text.isdecimal() and len(text) <= 18 and text.isascii():
        return str(int(text)) if text[0] == "0" else text
    if text[:1] not in "+-0123456789" or not text.isascii() or not _NUMBER.fullmatch(text):
        return text
    from fractions import Fraction  # which costs more to load than all else here, and few files need

    number = Fraction(text)
    return str(number.numerator) if number.denominator == 1 and abs(number) < 10**18 else text


def _whole(value: Any) -> int:
    """Return an order as a number; 0 for what is none."""
    try:
        return max(min(int(value), 1 << 62), -(1 << 62))
    except (TypeError, ValueError, OverflowError):
        return 0

"""Processes and threads as numbers, whether the file has them in quotes, as 7.0 or neither.

The producer writes 7; tools that pass a trace through floats write 7.0.
"""

from __future__ import annotations

import re
from copy import copy

import numpy as np

from lanescope.trace.column import look_up
from lanescope.wire.trace_events import Place, TraceEvents

_NUMBER = re.compile(r"(-?\d{1,18})(?:\.0*)?", re.ASCII)


def with_plain_places(events: TraceEvents) -> TraceEvents:
    """Return the events with one place for 7, 7.0 and "7"."""
    texts = {part for place in events.places for part in place if isinstance(part, str)}
    if not any(_NUMBER.fullmatch(text) for text in texts):
        return events
    plain = [Place(_plain(place.process), _plain(place.thread)) for place in events.places]
    first: dict[Place, int] = {}
    number = [first.setdefault(place, at) for at, place in enumerate(plain)]
    found = copy(events)
    found.places, found.place = plain, look_up(np.array(number, np.int32), events.place)
    return found


def _plain(part: int | str | None) -> int | str | None:
    number = _NUMBER.fullmatch(part) if isinstance(part, str) else None
    return int(number[1]) if number else part

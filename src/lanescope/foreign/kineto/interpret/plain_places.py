"""Processes and threads as numbers, whether the file has them in quotes or not."""

from __future__ import annotations

import re
from copy import copy

import numpy as np

from lanescope.trace.column import look_up
from lanescope.wire.trace_events import Place, TraceEvents

_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)


def with_plain_places(events: TraceEvents) -> TraceEvents:
    """Return the events with one place for 7 and "7": an event with the text lies where those with the number do."""
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
    return int(part) if isinstance(part, str) and _NUMBER.fullmatch(part) else part

"""Traces that lanescope wrote: their epoch, gaps, flags, kinds of lanes and kinds of flows come back.

Kinds, roles and nesting of tracks and what flows are stand in a packet that other readers take for notes. What the
format has no place for does not come back: clocks and ticks, coverage, detail tables (their values stay as arguments),
stats other than the sum of what was lost, and flows whose effect comes before its cause.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.foreign.perfetto.formats import messages
from lanescope.trace import TimeBase
from lanescope.trace.schema import FLOW_KINDS, NESTINGS, QUALITIES, TRACK_KINDS, Flag

Int64 = npt.NDArray[np.int64]

GAP, FLOW, FINDING = "lanescope.gap", "lanescope.flow", "lanescope.finding"
#: Behind the names of top tracks of a trace in cycles, now and in older files.
_CYCLES = (" [cycles: 1 cycle as 1 ns]", " [cycles]")
_WHOLE = "name: "
#: The track of a trace without any.
_NOTHING = "no events"

_EPOCH = re.compile(
    r"time unit: (ns|cycles)(?:, 1 cycle drawn as 1 ns)?; 0 is (-?\d{1,19}) ns on the (\w+) clock(?:; name: (.*))?",
    re.DOTALL,
)
_FLAGS = {str(flag.name).lower(): int(flag) for flag in Flag}
_TEXT = 3
#: Of an end of a flow: it lies at the end of its slice.
_END = "end"


def time_base(description: str) -> TimeBase | None:
    """Return what the description of a top track says of the times; None where lanescope did not write it."""
    found = _EPOCH.fullmatch(description)
    if found is None:
        return None
    try:
        return TimeBase(int(found[2]), found[3], found[1])
    except ValueError:
        return None


def is_nothing(name: str, description: str) -> bool:
    """Return whether a top track only tells that a trace that lanescope wrote is empty."""
    return name == _NOTHING and time_base(description) is not None


def whole_name(name: str, description: str, time: TimeBase, *, is_top: bool) -> str:
    """Return the name of a track, from that under which it is shown and its description."""
    if not is_top:
        return description.removeprefix(_WHOLE) if description.startswith(_WHOLE) else name
    found = _EPOCH.fullmatch(description)
    if found is not None and found[4] is not None:
        return found[4]
    if time.time_unit == "cycles":
        for suffix in _CYCLES:
            if name.endswith(suffix):
                return name.removesuffix(suffix)
    return name


class TrackFacts(NamedTuple):
    """What a track is."""

    kind: str
    role: str
    nesting: str
    sort_key: int


class FlowFacts(NamedTuple):
    """What flows are.

    Attributes:
        kind: int [flows], places in ``FLOW_KINDS``.
        at_source_end, at_destination_end: bool [flows], whether their ends lie at the ends of their slices.
    """

    kind: Int64
    at_source_end: npt.NDArray[np.bool_]
    at_destination_end: npt.NDArray[np.bool_]


class _Tracks(NamedTuple):
    first: int
    tracks: list[TrackFacts]


class _Flows(NamedTuple):
    first: int
    size: int
    kind: int
    at_source_end: bool
    at_destination_end: bool


class Notes:
    """What lanescope says of traces of its own; of several where files were joined."""

    def __init__(self) -> None:
        self._tracks: list[_Tracks] = []
        self._flows: list[_Flows] = []

    def read(self, bundle: bytes) -> None:
        """Add a packet's entries; those that do not hold together say nothing.

        Raises:
            BadMessageError: it is not one.
        """
        for number, entry in messages.fields(bundle):
            if number == 2 and isinstance(entry, bytes):
                texts = dict(messages.fields(entry))
                value = _json(texts.get(2))
                if texts.get(1) == b"lanescope.tracks" and (tracks := _tracks(value)) is not None:
                    self._tracks.append(tracks)
                elif texts.get(1) == b"lanescope.flows" and isinstance(value, list):
                    self._flows += filter(None, map(_flows, value))

    def has_tracks(self) -> bool:
        """Return whether any tracks are told of."""
        return bool(self._tracks)

    def track(self, uuid: int) -> TrackFacts | None:
        """Return what a track is; None where nothing tells."""
        for first, tracks in self._tracks:
            if 0 <= uuid - first < len(tracks):
                return tracks[uuid - first]
        return None

    def is_of_findings(self, uuid: int) -> bool:
        """Return whether a track is none of the trace, but that of findings without a lane."""
        return any(uuid == first + len(tracks) for first, tracks in self._tracks)

    def flows(self, ids: npt.NDArray[np.uint64]) -> FlowFacts:
        """Return what flows are, by their ids: dependencies at the starts of slices where nothing tells."""
        groups = sorted(self._flows)
        known = np.array([group.first for group in groups], np.uint64)
        counts = np.array([group.size for group in groups], np.uint64)
        group = np.searchsorted(known, ids, side="right") - 1
        group[(group < 0) | (ids - known[group] >= counts[group]) if len(groups) else slice(None)] = len(groups)
        groups.append(_Flows(0, 0, 0, at_source_end=False, at_destination_end=False))
        kinds = np.array([each.kind for each in groups])
        at_ends = np.array([(each.at_source_end, each.at_destination_end) for each in groups], np.bool_)
        return FlowFacts(kinds[group], at_ends[group, 0], at_ends[group, 1])


def _json(text: int | bytes | None) -> Any:
    try:
        return json.loads(text) if isinstance(text, bytes) else None
    except (ValueError, RecursionError):
        return None


def _is_number(value: Any, most: int) -> bool:
    return type(value) is int and -most < value < most


def _tracks(about: Any) -> _Tracks | None:
    """Return the tracks of an entry; None where it does not hold together."""
    try:
        first, tracks, kinds = (about[name] for name in ("first", "tracks", "kinds"))
        sort_keys = about["sort_keys"] if "sort_keys" in about else range(len(tracks))
        known = [TrackFacts(kind, _utf8(role), nesting, 0) for kind, role, nesting in kinds]
        is_sound = (
            _is_number(first, 1 << 63)
            and first > 0
            and all(each.kind in TRACK_KINDS and each.nesting in NESTINGS for each in known)
        )
        made = [
            known[number]._replace(sort_key=sort_key)
            for number, sort_key in zip(tracks, sort_keys, strict=True)
            if _is_number(number, len(known)) and number >= 0 and _is_number(sort_key, 1 << 62)
        ]
        return _Tracks(first, made) if is_sound and len(made) == len(tracks) else None
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _flows(group: Any) -> _Flows | None:
    """Return flows of an entry; None where that is of another form."""
    if not isinstance(group, list) or len(group) != len(_Flows._fields):
        return None
    first, size, kind, source, destination = group
    is_sound = _is_number(first, 1 << 63) and _is_number(size, 1 << 63) and first >= 0 and size >= 0
    if not is_sound or kind not in FLOW_KINDS:
        return None
    return _Flows(first, size, FLOW_KINDS.index(kind), source == _END, destination == _END)


class Facts(NamedTuple):
    """What rows say of themselves: int64 [annotated events], with whether it is known, bool [annotated events]."""

    values: Int64
    known: npt.NDArray[np.bool_]


def _picked(reader: core.PerfettoReader, name: str, count: int, words: dict[str, int] | None) -> Facts:
    row, kind, bits, texts = reader.pick(name)
    values, known = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    if words is None:
        is_number = kind < 2
        values[row[is_number]] = bits[is_number].view(np.int64)
        known[row[is_number]] = True
        return Facts(values, known)
    meant = np.array([_bits(text.decode("utf-8", "replace"), words) for text in texts], np.int64)
    is_text = kind == _TEXT
    found = meant[bits[is_text].astype(np.int64)] if len(meant) else np.empty(0, np.int64)
    values[row[is_text]] = np.maximum(found, 0)
    known[row[is_text]] = found >= 0
    return Facts(values, known)


def _bits(text: str, words: dict[str, int]) -> int:
    """Return the sum of words; -1 where one is none."""
    total = 0
    for word in text.split("|"):
        if word in words:
            total |= words[word]
        elif re.fullmatch("0x[0-9a-f]{1,8}", word):
            total |= int(word, 16)
        else:
            return -1
    return total


def flags(reader: core.PerfettoReader, count: int) -> Facts:
    """Return the flags of annotated events."""
    return _picked(reader, "flags", count, _FLAGS)


def qualities(reader: core.PerfettoReader, count: int) -> Facts:
    """Return the qualities of annotated events, by place in ``QUALITIES``."""
    return _picked(reader, "quality", count, {name: place for place, name in enumerate(QUALITIES)})


def number(reader: core.PerfettoReader, name: str, count: int) -> Facts:
    """Return an integer of annotated events."""
    return _picked(reader, name, count, None)

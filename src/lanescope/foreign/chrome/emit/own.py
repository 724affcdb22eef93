"""Rows of a file that lanescope wrote: the trace that it was made of."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np

from lanescope.foreign.chrome.emit.timeline import Drawing, Timeline
from lanescope.foreign.chrome.formats import layout
from lanescope.foreign.chrome.formats.events import Events, Int64
from lanescope.foreign.chrome.formats.own import Written
from lanescope.foreign.chrome.interpret import flows as flow_links
from lanescope.foreign.chrome.survey import with_time
from lanescope.trace import Flag
from lanescope.trace.schema import QUALITIES

#: What the arguments of a slice or an instant begin with where it is unusual; other programs write spaces between.
_FACTS = re.compile(
    rb'\{\s*(?:"quality"\s*:\s*"(\w+)"\s*)?,?\s*(?:"flags"\s*:\s*"([^"]*)"\s*)?,?\s*'
    rb'(?:"last_known_ts"\s*:\s*"?(-?\d{1,19})(?=[",}\s]))?'
)
#: Code of the quality, flags, and the time last known or None.
_Facts = tuple[int, int, int | None]


class OwnTimeline(Timeline):
    """Draws what lanescope wrote.

    Args:
        drawing: what the file is drawn with.
        events: all of the file.
        about: what the file says of the trace.
    """

    def __init__(self, drawing: Drawing, events: Events, about: Written) -> None:
        super().__init__(drawing, events)
        builder, places = drawing.builder, drawing.places
        self._about = about
        for parent, kind, role, name, sort_key, nesting, unit in about.tracks:
            builder.track(
                name,
                kind=kind,
                role=role,
                parent=None if parent < 0 else parent,
                input_id=0,
                nesting=nesting,
                unit=unit,
                sort_key=sort_key,
            )
        kinds = [kind for _, kind, *_ in about.tracks]
        self._is_counter = np.array([kind == "counter" for kind in kinds], np.bool_)
        track = [self._track_of(thread) for _, thread in places.keys]
        self._track = np.array(track, np.int64)[self.place] if len(events) else np.empty(0, np.int64)
        self._of_event = np.full(len(events), -1)  # slice ids; those of instants are not needed

    def _track_of(self, thread: str) -> int:
        number = int(thread) // 2 - 1 if thread.isdecimal() and len(thread) < 10 else -1
        return self._about.threads[number] if 0 <= number < len(self._about.threads) else -1

    def draw(self) -> None:
        """Append all rows."""
        self._draw_own_slices()
        self._draw_own_instants()
        self._draw_samples()
        self._draw_links()
        self.stats.add("chrome_undrawn_flows", self._about.flows_undrawn)
        self.stats.add("chrome_written_loss", self._about.lost)

    def _is(self, rows: Int64, category: str) -> Any:
        return self.categories[rows] == self.builder.categories.code(category)

    def _draw_own_slices(self) -> None:
        events = self.events
        rows = with_time(events, events.of_phase(layout.COMPLETE, layout.BEGIN))
        gaps = self._is(rows, layout.GAP)
        lost = (self._track[rows] < 0) | self._is_counter_at(rows)
        self._count("chrome_not_an_event", rows[lost])
        self._draw_gaps(rows[gaps & ~lost])
        rows = rows[~gaps & ~lost]
        if not len(rows):
            return
        known = ((events.flags[rows] & layout.HAS_DURATION) != 0) & (events.phase[rows] == layout.COMPLETE)
        first = self.builder.append(
            "slices",
            track_id=self._track[rows],
            ts=events.ts[rows] - self.zero,
            dur=np.where(known, np.maximum(events.dur[rows], 0), 0),
            dur_valid=known,
            name=self.names[rows],
            category=self.categories[rows],
            **self._facts(rows, with_last=True),
        )
        ids = first + np.arange(len(rows))
        self._of_event[rows] = ids
        self._append_arguments("chrome_arguments", "slice_id", ids, rows)

    def _is_counter_at(self, rows: Int64) -> Any:
        return np.append(self._is_counter, False)[self._track[rows]]

    def _draw_gaps(self, rows: Int64) -> None:
        if not len(rows):
            return
        events = self.events
        known = (events.flags[rows] & layout.HAS_DURATION) != 0
        given = [_object(text) for text in events.arguments(rows, self.file)]
        columns: dict[str, Any] = {}
        for name in ("lost_count", "first_offset"):
            values = [_number(each.get(name)) for each in given]
            columns[name] = np.array([value or 0 for value in values], np.int64)
            columns[f"{name}_valid"] = np.array([value is not None for value in values], np.bool_)
        causes = self.builder.names.texts
        self.builder.append(
            "gaps",
            track_id=self._track[rows],
            ts=events.ts[rows] - self.zero,
            dur=np.where(known, events.dur[rows], 0),
            dur_valid=known,
            cause=[causes[code] for code in self.names[rows].tolist()],
            input_id=0,
            **columns,
        )

    def _draw_own_instants(self) -> None:
        rows = with_time(self.events, self.events.of_phase(*layout.INSTANTS))
        findings = self._is(rows, layout.FINDING)
        self.stats.add("chrome_findings", int(np.count_nonzero(findings)))
        rows = rows[~findings & ~self._is(rows, layout.FLOW)]
        lost = (self._track[rows] < 0) | self._is_counter_at(rows)
        self._count("chrome_not_an_event", rows[lost])
        rows = rows[~lost]
        if not len(rows):
            return
        first = self.builder.append(
            "instants",
            track_id=self._track[rows],
            ts=self.events.ts[rows] - self.zero,
            name=self.names[rows],
            category=self.categories[rows],
            **self._facts(rows, with_last=False),
        )
        self._append_arguments("chrome_instant_arguments", "instant_id", first + np.arange(len(rows)), rows)

    def _facts(self, rows: Int64, *, with_last: bool) -> dict[str, Any]:
        """Return quality and flags of events, and the last times of slices that are unfinished, as columns."""
        qualities = self.builder.dictionary("slices", "quality")
        quality = np.full(len(rows), qualities.code("exact"), np.int32)
        flags, last, known = (
            np.zeros(len(rows), np.uint32),
            np.zeros(len(rows), np.int64),
            np.zeros(len(rows), np.bool_),
        )
        is_sorted = self._about.is_reordered  # so what is known of an event may be anywhere in its arguments
        told = np.flatnonzero(self.events.args_size[rows] if is_sorted else self.events.flags[rows] & layout.HAS_FACTS)
        read: dict[bytes, _Facts] = {}
        for at, text in zip(told.tolist(), self.events.arguments(rows[told], self.file), strict=True):
            facts = _FACTS.match(_as_written(text) if is_sorted else text)
            if facts is None:
                continue
            if facts[0] not in read:
                quality_text, words, ts = facts.groups()
                read[facts[0]] = (
                    qualities.code(_quality(quality_text or b"")),
                    _flags(words or b""),
                    _number(ts),
                )
            quality[at], flags[at], last_known = read[facts[0]]
            if last_known is not None:
                last[at], known[at] = last_known, True
        columns = {"quality": quality, "flags": flags}
        return {**columns, "last_known_ts": last, "last_known_ts_valid": known} if with_last else columns

    def _draw_samples(self) -> None:
        events = self.events
        counters = with_time(events, events.of_phase(layout.COUNTER))
        self._count("chrome_bad_sample", counters[(events.flags[counters] & layout.BAD_SERIES) != 0])
        rows = events.series_row
        kept = ((events.flags[rows] & layout.HAS_TIME) != 0) & (self._track[rows] >= 0) & self._is_counter_at(rows)
        self._count("chrome_not_an_event", rows[~kept])
        rows, value = rows[kept], events.series_value[kept]
        if len(rows):
            self.builder.append("counters", track_id=self._track[rows], ts=events.ts[rows] - self.zero, value=value)

    def _draw_links(self) -> None:
        """Append flows: an end follows the event that it belongs to."""
        events = self.events
        rows = with_time(events, events.of_phase(layout.FLOW_BEGIN, layout.FLOW_END))
        rows, place = self.with_ids(rows)
        on_track = self._track[rows] >= 0
        rows, place = rows[on_track], place[on_track]
        if not len(rows):
            return
        role = np.where(events.phase[rows] == layout.FLOW_BEGIN, flow_links.STARTS, flow_links.ENDS).astype(np.uint8)
        # The order of the file says nothing here: an end may be on an earlier thread than its start.
        key = events.id_value[place].astype(np.int64)
        linked = flow_links.link(key, role.astype(np.int64), role)
        self._count("chrome_flow_unmatched", np.sort(rows[linked.unmatched]))
        if not len(linked.source):
            return
        is_owner = np.zeros(len(events), np.bool_)
        is_owner[events.of_phase(layout.COMPLETE, layout.BEGIN, *layout.INSTANTS)] = True
        owner = np.maximum.accumulate(np.where(is_owner, np.arange(len(events)), 0))
        kinds = self.builder.dictionary("flows", "kind")
        codes = self._codes(kinds, events.names, events.name[rows[linked.source]])
        own_times = events.ts.copy()
        events.ts[rows] = own_times[owner[rows]]  # an end at the end of its slice is drawn just before it
        self.append_flows(linked, rows, self._track[rows], self._of_event[owner[rows]], codes)
        events.ts = own_times


def _as_written(arguments: bytes) -> bytes:
    """Return what is known of an unusual event as our writer has it, from arguments that another program sorted."""
    found = _object(arguments)
    return json.dumps({name: found[name] for name in ("quality", "flags", "last_known_ts") if name in found}).encode()


def _quality(text: bytes) -> str:
    return text.decode() if text.decode() in QUALITIES else "exact"


def _flags(words: bytes) -> int:
    """Return the bits that names of flags stand for."""
    bits = 0
    for word in words.decode(errors="replace").split("|"):
        if word.upper() in Flag.__members__:
            bits |= Flag[word.upper()]
        elif re.fullmatch("0x[0-9a-f]{1,8}", word):
            bits |= int(word, 16)
    return bits


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _number(value: Any) -> int | None:
    """Return a whole number, which may be a text; None for anything else."""
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if abs(number) < 1 << 62 else None

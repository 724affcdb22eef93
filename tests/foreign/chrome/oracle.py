"""A reader of trace events in plain Python, without the reader's code: slow, and one rule at a time."""

from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from math import floor
from typing import Any

#: Times and durations beyond are not read.
MOST, LONGEST = 1 << 62, 1 << 60


def nanoseconds(value: Any) -> int | None:
    """Return microseconds of JSON as whole nanoseconds; None for anything else."""
    try:
        number = Decimal(value) if isinstance(value, (int, str, Decimal)) and not isinstance(value, bool) else None
    except ArithmeticError:
        return None
    if number is None or not number.is_finite():
        return None
    if isinstance(value, str) and value.strip() != value:
        return None
    if number.adjusted() > 30:
        return None
    size = Fraction(number) * 1000 if number.adjusted() > -30 else Fraction(0)
    whole = floor(size + Fraction(1, 2))  # halves up
    return whole if abs(whole) <= MOST else None


def plain(value: Any) -> str:
    """Return a process or thread as text; whole numbers are the same however they are written."""
    if value is None:
        return ""
    text = str(value)
    try:
        return str(int(text)) if int(text) == Decimal(text) else text
    except (ValueError, ArithmeticError):
        pass
    try:
        number = Decimal(text)
        return str(int(number)) if "e" not in text.lower() and number == int(number) else text
    except (ValueError, ArithmeticError):
        return text


def identity(value: Any) -> Any:
    """Return an id: a number, also of hexadecimal text; any other text."""
    if isinstance(value, str):
        try:
            return int(value, 16) if not set(value) & set("+-_ ") else value
        except ValueError:
            return value
    return value


class Reading:
    """What a sound file holds: rows without ids, as multisets."""

    def __init__(self, text: str) -> None:
        document = json.loads(text, parse_float=Decimal)
        events = document if isinstance(document, list) else document["traceEvents"]
        self.events = [(number, event) for number, event in enumerate(events)]
        self.names: dict[Any, str] = {}
        for _, event in self.events:
            if event.get("ph") == "M" and event["name"] in ("process_name", "thread_name"):
                who = (
                    event["name"],
                    plain(event.get("pid")),
                    *([plain(event.get("tid"))] * (event["name"] == "thread_name")),
                )
                self.names[who] = event["args"]["name"]
            if event.get("ph") == "M" and event["name"] == "process_labels":
                self.names["labels", plain(event.get("pid"))] = f" ({event['args']['labels']})"
        self.slices: Counter[Any] = Counter()
        self.instants: Counter[Any] = Counter()
        self.samples: Counter[Any] = Counter()
        self.flows: Counter[Any] = Counter()
        self.stats: Counter[str] = Counter()
        self.times: list[int] = []
        # Rows of slices of threads: lane, begin, end (None: open), name, category, number of the event.
        self._negative: set[int] = set()  # events of slices that end before they begin
        self._bound: list[tuple[Any, int, int | None, str, str, int]] = []
        self._read()

    def _read(self) -> None:
        timed = []
        for number, event in self.events:
            phase = event.get("ph")
            if phase == "M":
                continue
            if phase in ("N", "O", "D"):
                self.stats["chrome_objects"] += 1
                continue
            ts = nanoseconds(event.get("ts"))
            if ts is None or ts < -LONGEST:
                self.stats["chrome_missing_time"] += 1
                continue
            self.times.append(ts)
            timed.append((ts, number, event))
        timed.sort(key=lambda row: row[:2])
        self._threads(timed)
        self._asynchronous(timed)
        for ts, _, event in timed:
            if event["ph"] in ("i", "I", "R"):
                scope = event.get("s")
                lane = self.lane(event)
                lane = (self.process(event), "process events") if scope == "p" else lane
                lane = ("", "global events") if scope == "g" else lane
                self.instants[lane, ts, event.get("name", ""), event.get("cat", "")] += 1
            if event["ph"] == "C":
                self._sample(ts, event)
        self._flows(timed)

    def process(self, event: dict[str, Any]) -> str:
        key = plain(event.get("pid"))
        name = self.names.get(("process_name", key), f"process {key}" if key else "no process")
        return name + self.names.get(("labels", key), "")

    def lane(self, event: dict[str, Any]) -> tuple[str, str]:
        key = plain(event.get("pid")), plain(event.get("tid"))
        return self.process(event), self.names.get(("thread_name", *key), f"thread {key[1]}" if key[1] else "events")

    def _slice(self, lane: Any, ts: int, end: int | None, event: dict[str, Any], number: int, *, bound: bool) -> None:
        name, category = event.get("name", ""), event.get("cat", "")
        self.slices[lane, ts, None if end is None else end - ts, name, category] += 1
        if bound:
            self._bound.append((lane, ts, end, name, category, number))

    def _threads(self, timed: list[Any]) -> None:
        stacks: dict[Any, list[Any]] = {}
        for ts, number, event in timed:
            if event["ph"] == "X":
                dur = nanoseconds(event.get("dur"))
                dur = None if dur is None or abs(dur) > LONGEST else dur
                self.stats["chrome_missing_duration"] += dur is None
                is_negative = dur is not None and dur < 0
                self.stats["chrome_negative_duration"] += is_negative
                self._slice(
                    self.lane(event), ts, None if dur is None or is_negative else ts + dur, event, number, bound=True
                )
                self._negative |= {number} if is_negative else set()
            elif event["ph"] in "BE":
                stack = stacks.setdefault((plain(event.get("pid")), plain(event.get("tid"))), [])
                self._close(stack, ts, number, event, is_end=event["ph"] == "E", lane=self.lane(event), bound=True)
        self._leave_open(stacks, bound=True)

    def _close(
        self, stack: list[Any], ts: int, number: int, event: dict[str, Any], *, is_end: bool, lane: Any, bound: bool
    ) -> None:
        if not is_end:
            stack.append((ts, event, number, lane))
            return
        fits = [at for at, row in enumerate(stack) if "name" not in event or row[1].get("name") == event["name"]]
        if not fits:
            self.stats["chrome_end_unmatched"] += 1
            return
        begin, begun, of, its_lane = stack.pop(fits[-1])
        self.stats["chrome_crossing_end"] += fits[-1] != len(stack)
        self._slice(its_lane, begin, ts, begun, of, bound=bound)

    def _leave_open(self, stacks: dict[Any, list[Any]], *, bound: bool) -> None:
        for stack in stacks.values():
            for begin, begun, number, lane in stack:
                self.stats["chrome_unfinished"] += 1
                self._slice(lane, begin, None, begun, number, bound=bound)

    def _asynchronous(self, timed: list[Any]) -> None:
        for phases, is_named in (("ben", False), ("SFTp", True)):
            stacks: dict[Any, list[Any]] = {}
            for ts, number, event in timed:
                if event["ph"] not in phases:
                    continue
                found = event.get("id2") or {}
                local = "local" in found
                given = found.get("local", found.get("global", event.get("id")))
                if given is None:
                    self.stats["chrome_missing_id"] += 1
                    continue
                category = event.get("cat", "")
                lane = self.process(event), f"async {category}" if category else "async"
                key = (
                    category,
                    type(identity(given)) is str,
                    identity(given),
                    plain(event.get("pid")) if local else None,
                    event.get("scope") or None,
                )
                if is_named:
                    key += (event.get("name", ""),)
                if event["ph"] in "nTp":
                    self.instants[lane, ts, event.get("name", ""), category] += 1
                    continue
                stack = stacks.setdefault(key, [])
                self._close(stack, ts, number, event, is_end=event["ph"] in "eF", lane=lane, bound=False)
            self._leave_open(stacks, bound=False)

    def _sample(self, ts: int, event: dict[str, Any]) -> None:
        bad = False
        for series, value in (event.get("args") or {}).items():
            if not isinstance(value, (int, Decimal)) or isinstance(value, bool) or not Decimal(value).is_finite():
                bad = True
                continue
            name = event.get("name", "") + (f" {hex(identity(event['id']))}" if "id" in event else "")
            name += f" {series}" if series and series != "value" else ""
            self.samples[(self.process(event), name), ts, float(value)] += 1
        self.stats["chrome_bad_sample"] += bad or not isinstance(event.get("args"), dict)

    def _flows(self, timed: list[Any]) -> None:
        last: dict[Any, Any] = {}
        for ts, number, event in timed:
            phase = event["ph"]
            if phase in "stf" and event.get("id") is None:
                self.stats["chrome_missing_id"] += 1
                continue
            if phase in "stf":
                key = (event.get("cat", ""), event.get("name", ""), identity(event["id"]))
                bound = self._next(event, ts) if phase == "f" and event.get("bp") != "e" else self._inside(event, ts)
            elif "bind_id" in event and phase in "XB" and (event.get("flow_in") or event.get("flow_out")):
                key = ("bind", identity(event["bind_id"]))
                bound = next(row for row in self._bound if row[5] == number)
                phase = "s" if not event.get("flow_in") else "f" if not event.get("flow_out") else "t"
            else:
                continue
            here = [self.lane(event), ts, None if bound is None else bound[:5], False]
            if phase != "s" and key in last:
                source = last[key]
                source[3] = here[3] = True
                self.flows[tuple(source[:3]), tuple(here[:3])] += 1
            if phase == "f":
                self.stats["chrome_flow_unmatched"] += not here[3]
                continue
            if key in last:
                self.stats["chrome_flow_unmatched"] += not last[key][3]
            last[key] = here
        self.stats["chrome_flow_unmatched"] += sum(not row[3] for row in last.values())

    def _inside(self, event: dict[str, Any], ts: int) -> Any:
        lane = self.lane(event)
        found = [row for row in self._bound if row[0] == lane and row[1] <= ts and (row[2] is None or row[2] > ts)]
        found = [row for row in found if row[5] not in self._negative]
        return max(found, key=lambda row: (row[1], -(MOST if row[2] is None else row[2])), default=None)

    def _next(self, event: dict[str, Any], ts: int) -> Any:
        lane = self.lane(event)
        found = [row for row in self._bound if row[0] == lane and row[1] >= ts]
        return min(found, key=lambda row: (row[1], -(MOST if row[2] is None else row[2])), default=None)

"""Files of trace events whose truth is known: threads with nested work, and faults where they are asked for."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from typing import Any

from lanescope.errors import UsageError
from lanescope.families.family import Simulation

_NAMES = ("parse", "layout", "paint", "compile", "copy", "wait")
#: Nanoseconds between two things that a thread does, and how long one takes at most.
_STEP, _LONGEST = 5_000, 4_000


class _File:
    """Events of a file, and what becomes of them."""

    def __init__(self, options: Mapping[str, Any], seed: int) -> None:
        self.random = random.Random(seed)
        self.events: list[dict[str, Any] | str] = []
        self.now: dict[tuple[int, int], int] = {}
        self.slices: list[dict[str, Any]] = []
        self.places = [
            (100 + process, 1000 * (process + 1) + thread)
            for process in range(options["processes"])
            for thread in range(options["threads"])
        ]

    def place(self) -> tuple[int, int]:
        return self.random.choice(self.places)

    def after(self, place: tuple[int, int]) -> int:
        """Return a time at which a thread is free."""
        self.now[place] = self.now.get(place, 1_000_000) + self.random.randint(1, _STEP)
        return self.now[place]

    def event(self, phase: str, place: tuple[int, int], ts: int | None, **rest: Any) -> None:
        times = {} if ts is None else {"ts": _Micros(ts)}
        event = {"ph": phase, "pid": place[0], "tid": place[1], **times, **rest}
        self.events.append({key: value for key, value in event.items() if value is not None})

    def slice(self, place: tuple[int, int], ts: int, dur: int | None, name: str) -> None:
        self.slices.append({"process": place[0], "thread": place[1], "ts": ts, "dur": dur, "name": name})


class _Micros(float):
    """Microseconds that are written with all their nanoseconds."""

    def __new__(cls, nanoseconds: int) -> _Micros:
        made = super().__new__(cls, nanoseconds / 1000)
        made.text = f"{nanoseconds // 1000}.{nanoseconds % 1000:03}"
        return made

    text: str

    def __repr__(self) -> str:
        return self.text


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Return a file and what a reader must find in it.

    Raises:
        UsageError: events are asked for, but not a thread for them.
    """
    file = _File(options, seed)
    drawn = ("events", "pairs", "asynchronous", "instants", "counters", "flows", "unfinished", "unmatched", "timeless")
    if not file.places and any(options[name] for name in drawn):
        raise UsageError(
            "events need at least one process with one thread", hint="set processes and threads to 1 or more"
        )
    for process, thread in file.places:
        file.event("M", (process, thread), None, name="process_name", args={"name": f"worker {process}"})
        file.event("M", (process, thread), None, name="thread_name", args={"name": f"thread {thread % 1000}"})
    _complete(file, options["events"])
    _pairs(file, options["pairs"])
    _asynchronous(file, options["asynchronous"])
    for number in range(options["instants"]):
        place, scope = file.place(), file.random.choice("tpg")
        file.event("i", place, file.after(place), name=f"mark {number % 3}", s=scope)
    for _ in range(options["counters"]):
        place = file.places[0]
        values = {"used": file.random.randint(0, 99), "free": file.random.randint(0, 99)}
        file.event("C", place, file.after(place), name="memory", args=values)
    _flows(file, options["flows"])
    _faults(file, options)
    content = _text(file, options)
    truth = {
        "slices": file.slices,
        "instants": options["instants"],
        "samples": 2 * options["counters"],
        "flows": options["flows"],
        "stats": _expected(options),
    }
    return Simulation({"simulated.trace.json": content}, truth)


def _complete(file: _File, count: int) -> None:
    while count > 0:
        place = file.place()
        ts, dur = file.after(place), file.random.randint(3, _LONGEST)
        name = file.random.choice(_NAMES)
        file.event("X", place, ts, dur=_Micros(dur), name=name, cat="work", args={"number": count})
        file.slice(place, ts, dur, name)
        count -= 1
        if count and file.random.random() < 0.4:
            file.event("X", place, ts + 1, dur=_Micros(dur - 2), name="inner", cat="work")
            file.slice(place, ts + 1, dur - 2, "inner")
            count -= 1
        file.now[place] = ts + dur


def _pairs(file: _File, count: int) -> None:
    while count > 0:
        place = file.place()
        begins = []
        for depth in range(min(count, file.random.randint(1, 3))):
            begins.append((file.after(place), f"level {depth}"))
            file.event("B", place, begins[-1][0], name=begins[-1][1], cat="call")
            count -= 1
        for begin, name in reversed(begins):
            end = file.after(place)
            file.event("E", place, end, name=file.random.choice((name, None)))
            file.slice(place, begin, end - begin, name)


def _asynchronous(file: _File, count: int) -> None:
    for number in range(count):
        place = file.place()
        begin = file.after(place)
        end = begin + file.random.randint(1, 10 * _STEP)
        phases = file.random.choice(("be", "SF"))
        for phase, ts in zip(phases, (begin, end), strict=True):
            file.event(phase, place, ts, name="request", cat="net", id=hex(number))
        file.slice(place, begin, end - begin, "request")


def _flows(file: _File, count: int) -> None:
    for number in range(count):
        times: list[int] = []
        for phase in "sf":
            place = file.place()
            ts = max([file.after(place), *(time + 1 for time in times)])
            times.append(ts)
            file.now[place] = ts + 100
            file.event("X", place, ts, dur=_Micros(100), name="message", cat="flow")
            file.slice(place, ts, 100, "message")
            file.event(phase, place, ts, name="message", cat="flow", id=number, bp="e" if phase == "f" else None)


def _faults(file: _File, options: Mapping[str, Any]) -> None:
    for number in range(options["unfinished"]):
        place = file.places[number % len(file.places)]
        begin = file.after(place)
        file.event("B", place, begin, name="lost end")
        file.slice(place, begin, None, "lost end")
    for number in range(options["unmatched"]):
        place = file.places[number % len(file.places)]
        file.event("E", place, file.after(place), name=f"never started {number}")
    for _ in range(options["timeless"]):
        file.event("X", file.places[0], None, dur=1, name="timeless")
    for number in range(options["objects"]):
        place = file.places[0] if file.places else (1, 1)
        file.event("N", place, 1_000_000, name="thing", id=hex(number))
    for _ in range(options["broken"]):
        file.events.insert(file.random.randint(0, len(file.events)), '{"ph":"X","name":"broken","ts":12..5,"dur":}')


def _text(file: _File, options: Mapping[str, Any]) -> bytes:
    lines = [event if isinstance(event, str) else _json(event) for event in file.events]
    body = ",\n".join(lines)
    if options["cut"] and lines:
        return (("[" if options["array"] else '{"traceEvents":[') + body[: -len(lines[-1]) // 2]).encode()
    if options["array"]:
        return f"[{body}]\n".encode()
    return f'{{"traceEvents":[\n{body}\n],"displayTimeUnit":"ns"}}\n'.encode()


def _json(event: Mapping[str, Any]) -> str:
    fields = (
        f"{json.dumps(key)}:{value!r}" if isinstance(value, _Micros) else _member(key, value)
        for key, value in event.items()
    )
    return "{" + ",".join(fields) + "}"


def _member(key: str, value: Any) -> str:
    return f"{json.dumps(key)}:{json.dumps(value, separators=(',', ':'))}"


def _expected(options: Mapping[str, Any]) -> dict[str, int]:
    counts = {
        "chrome_unfinished": options["unfinished"],
        "chrome_end_unmatched": options["unmatched"],
        "chrome_missing_time": options["timeless"],
        "chrome_objects": options["objects"],
        "chrome_broken": options["broken"],
        "truncated": int(options["cut"]),
        "chrome_unterminated": int(options["cut"]),
    }
    return {name: count for name, count in counts.items() if count}

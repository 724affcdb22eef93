"""Simulated traces: threads with nested slices, counters and arrows, as the SDK or a plain writer writes them.

``sdk``: one sequence a thread, texts by ids, times as steps of an incremental clock, what is the same in all packets as
defaults. ``plain``: one sequence, texts and absolute times in every event. Blocks of packets may be lost: then the next
one says so, and the state is sent again only with the block behind that, so that the packets between cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lanescope.errors import UsageError
from lanescope.families.family import Simulation
from lanescope.foreign.perfetto.formats.encode import compressed, fixed64, message, packet

STYLES = ("sdk", "plain")

_NAMES = ("step", "load", "compute", "store", "wait")
_PID, _CLOCK, _BOOTTIME = 4242, 64, 6
_START = 1_000_000_000
#: Slices of a thread between two places at which packets may be lost.
_BLOCK = 20
_BEGIN, _END, _INSTANT, _COUNTER = 1, 2, 3, 4


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Make a trace and its truth: slices, instants, samples and arrows that can be read, and packets that cannot.

    Raises:
        UsageError: the style is unknown.
    """
    if options["style"] not in STYLES:
        raise UsageError(f"invalid value {options['style']!r} for --style (choose from {', '.join(STYLES)})")
    trace = _Trace(dict(options), np.random.default_rng(seed))
    content = trace.write()
    if options["compressed"]:
        content = compressed(content)
    return Simulation({"run.pftrace": content}, trace.truth)


class _Trace:
    def __init__(self, options: dict[str, Any], random: np.random.Generator) -> None:
        self._options, self._random = options, random
        self._is_sdk = options["style"] == "sdk"
        self._last = _START
        self._interned: set[str] = set()
        self._started: dict[int, int] = {}
        self.truth: dict[str, Any] = {"slices": [], "instants": [], "samples": [], "flows": 0, "lost": 0, "other": 0}

    def write(self) -> bytes:
        """Return the packets."""
        out = [packet((10, 1), (60, message((1, 1), (3, message((1, _PID), (6, "app"))))))]
        for number in range(self._options["other"]):
            out.append(packet((10, 1), (8, _START + number), (45, message((1, message((1, "Linux")))))))
            self.truth["other"] += 1
        out += map(self._thread, range(self._options["threads"]))
        return b"".join(out)

    def _thread(self, thread: int) -> bytes:
        sequence, uuid = 10 + thread, 100 + thread
        names = message((1, _PID), (2, 5000 + thread), (5, f"worker {thread}"))
        out = [packet((10, sequence), (60, message((1, uuid), (4, names))))]
        counter = message((1, 200 + thread), (5, 1), (2, f"load {thread}"), (8, message((3, 2))))
        out.append(packet((10, sequence), (60, counter)))
        now, is_waiting = _START, 0
        for block, begin in enumerate(range(0, self._options["slices"], _BLOCK)):
            is_lost = block > 0 and self._is_sdk and self._random.random() < self._options["lost"]
            is_waiting = 2 if is_lost else max(is_waiting - 1, 0)
            if not is_waiting:
                out.append(self._state(sequence, uuid, now))
            for number in range(begin, min(begin + _BLOCK, self._options["slices"])):
                packets, now = self._slice(thread, number, now, is_waiting)
                out += packets if is_waiting != 2 else []
            if is_lost:
                # It is the first one to arrive since; what follows needs what is gone.
                out.append(packet((10, sequence), (13, 2), (42, 1), (8, 0)))
                self.truth["lost"] += 1
        samples = self._options["samples"]
        if samples:
            out.append(self._state(sequence, uuid, now))
            for value in self._random.integers(0, 100, samples).tolist():
                now += 1000
                out.append(self._event(thread, now, (9, _COUNTER), (11, 200 + thread), (30, value)))
                self.truth["samples"].append([thread, now, value])
        return b"".join(out)

    def _state(self, sequence: int, uuid: int, now: int) -> bytes:
        """Return what begins the state of a sequence: its clock, its defaults, no texts."""
        self._last = now
        self._interned = set()
        if not self._is_sdk:
            return b""
        defaults = message((58, _CLOCK), (11, message((11, uuid))))
        clocks = message((1, message((1, _CLOCK), (2, now), (3, 1))), (1, message((1, _BOOTTIME), (2, now))))
        return packet((10, sequence), (13, 1), (59, defaults)) + packet((10, sequence), (6, clocks))

    def _slice(self, thread: int, number: int, now: int, is_waiting: int) -> tuple[list[bytes], int]:
        """Return the packets of one slice, maybe with another one and an instant inside, and the time behind it."""
        random = self._random
        begin = now + int(random.integers(10, 500))
        packets = []
        flow = 1 + thread * self._options["slices"] + number
        ends = b""
        if not is_waiting and random.random() < self._options["flows"] and thread + 1 < self._options["threads"]:
            ends = fixed64(47, flow)
            self._started[flow] = begin
        cause = flow - self._options["slices"]
        if not is_waiting and self._started.get(cause, begin) < begin:
            ends += fixed64(48, cause)
            self.truth["flows"] += 1
        name = _NAMES[int(random.integers(len(_NAMES)))]
        packets.append(self._event(thread, begin, (9, _BEGIN), name=name, category="work", number=number, ends=ends))
        inside = begin + int(random.integers(0, 200))
        dur = 0
        kind = int(random.integers(3))
        if kind == 1:
            dur = int(random.integers(1, 100))
            packets.append(self._event(thread, inside, (9, _BEGIN), name="inner", category="work"))
            packets.append(self._event(thread, inside + dur, (9, _END)))
        elif kind == 2:
            packets.append(self._event(thread, inside, (9, _INSTANT), name="mark", category="work"))
        end = inside + dur + int(random.integers(1, 100))
        packets.append(self._event(thread, end, (9, _END)))
        if not is_waiting:
            self.truth["slices"].append([thread, begin, end - begin, name])
            if kind == 1:
                self.truth["slices"].append([thread, inside, dur, "inner"])
            elif kind == 2:
                self.truth["instants"].append([thread, inside])
        elif is_waiting == 1:
            self.truth["lost"] += len(packets)
        return packets, end

    def _event(
        self,
        thread: int,
        now: int,
        *fields: tuple[int, int],
        name: str = "",
        category: str = "",
        number: int | None = None,
        ends: bytes = b"",
    ) -> bytes:
        sequence = 10 + thread
        if not self._is_sdk:
            texts: list[tuple[int, Any]] = [(23, name), (22, category)] if name else []
            if number is not None:
                texts.append((4, message((10, "number"), (4, number))))
            track = [] if any(field == 11 for field, _ in fields) else [(11, 100 + thread)]
            return packet((8, now), (10, sequence), (11, message(*fields, *track, *texts) + ends))
        step, self._last = now - self._last, now
        body: list[tuple[int, Any]] = list(fields)
        new: list[tuple[int, Any]] = []
        for field, kind, text in ((10, 2, name), (3, 1, category)):
            if text:
                iid = 1 + (*_NAMES, "inner", "mark").index(text) if kind == 2 else 1
                body.append((field, iid))
                new += self._intern(kind, iid, text)
        if number is not None:
            new += self._intern(3, 1, "number")
            body.append((4, message((1, 1), (4, number))))
        parts: list[tuple[int, Any]] = [(8, step), (10, sequence), (13, 2)]
        if new:
            parts.append((12, message(*new)))
        return packet(*parts, (11, message(*body) + ends))

    def _intern(self, kind: int, iid: int, text: str) -> list[tuple[int, bytes]]:
        key = f"{kind} {text}"
        if key in self._interned:
            return []
        self._interned.add(key)
        return [(kind, message((1, iid), (2, text)))]

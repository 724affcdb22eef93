"""Lies that stay consistent with themselves, written into captures as bytes: which of them does ``check`` find?"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.formats import encode as aie_encode
from lanescope.devices.aie.formats.layout import PACKET_WORDS
from lanescope.devices.aie.formats.raw_frames import Packets, Words
from lanescope.devices.cuda.formats.layout import STAMP_WRAP, TIRX_RECORD
from lanescope.devices.cuda.formats.word_source import content_of
from lanescope.testing.mutations import Judge
from mutations.seeds import simulated

#: Seeds of each lie.
SEEDS = 12
Files = dict[str, bytes]
Lie = Callable[[Files, random.Random], Mapping[str, bytes]]

_MS, _US, _S = 1_000_000, 1_000, 1_000_000_000
_SYNC_WORD = 0xFFFFFFFF
_HERTZ = 50_000_000


def found(families: Iterable[str]) -> dict[str, dict[str, dict[str, int]]]:
    """Return by family and lie how many of ``SEEDS`` captures gave a new finding, by the worst severity."""
    return {
        family: {name: _tried(*_CAPTURES[kind], lie) for name, (kind, lie) in LIES.get(family, {}).items()}
        for family in families
    }


def _tried(family: str, options: Mapping[str, Any], lie: Lie) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for seed in range(SEEDS):
        files = simulated(family, seed=100 + seed, **options)
        with Judge(files) as judge:
            changed = lie(files, random.Random(f"{seed}"))
            counts[judge.judge(changed).name] += 1
    return dict(counts)


# --- CUDA: slots of TIRx, one lane after the other ----------------------------------------------------------------


class _Buffer:
    """The words of a buffer, by lane."""

    def __init__(self, files: Files) -> None:
        self.name = next(iter(files))
        raw = np.frombuffer(files[self.name], np.uint8)
        content = content_of(raw)
        self._head = files[self.name][: content.before]
        self.words = content.words(8).copy()
        lanes = int(self.words[0] & 0xFFFFFFFF) * int(self.words[0] >> 32)
        self.slots = np.arange(1, len(self.words))
        self.lane = (self.slots - 1) % lanes
        self.lanes = lanes

    def of(self, lane: int) -> npt.NDArray[np.int64]:
        """Return the slots of a lane that are used."""
        mine = self.slots[self.lane == lane]
        return mine[self.words[mine] != 0]

    def shift(
        self, slots: npt.NDArray[np.int64], change: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]
    ) -> None:
        """Change the stamps of slots."""
        stamps = TIRX_RECORD["time"].of(self.words[slots]).astype(np.int64)
        low = self.words[slots] & np.uint64((1 << TIRX_RECORD["time"].lsb) - 1)
        self.words[slots] = low | (change(stamps) % STAMP_WRAP).astype(np.uint64) << np.uint64(32)

    def files(self) -> Files:
        """Return the buffer as its file."""
        return {self.name: self._head + self.words.tobytes()}


def _lane(part: Callable[[int], slice], change: Callable[[Any], Any]) -> Lie:
    """Return a lie about the stamps of a part of one lane."""

    def lie(files: Files, draw: random.Random) -> Files:
        buffer = _Buffer(files)
        slots = buffer.of(draw.randrange(1, buffer.lanes - 1))
        buffer.shift(slots[part(len(slots))], change)
        return buffer.files()

    return lie


def _every(change: Callable[[Any], Any]) -> Lie:
    """Return a lie about all stamps."""

    def lie(files: Files, draw: random.Random) -> Files:
        buffer = _Buffer(files)
        used = buffer.slots[buffer.words[buffer.slots] != 0]
        buffer.shift(used, change)
        return buffer.files()

    return lie


def _cuda_lost(part: Callable[[int], slice]) -> Lie:
    def lie(files: Files, draw: random.Random) -> Files:
        buffer = _Buffer(files)
        slots = buffer.of(draw.randrange(1, buffer.lanes - 1))
        buffer.words[slots[part(len(slots))]] = 0
        return buffer.files()

    return lie


def _cuda_exchanged(files: Files, draw: random.Random) -> Files:
    buffer = _Buffer(files)
    one, other = draw.sample(range(buffer.lanes), 2)
    mine, theirs = (buffer.slots[buffer.lane == lane] for lane in (one, other))
    count = min(len(mine), len(theirs))
    words = buffer.words[mine[:count]].copy()
    buffer.words[mine[:count]] = buffer.words[theirs[:count]]
    buffer.words[theirs[:count]] = words
    return buffer.files()


def _half(count: int) -> slice:
    return slice(count // 2, None)


def _all(count: int) -> slice:
    return slice(None)


# --- Level Zero: lines of THAPI's text ----------------------------------------------------------------------------


def _lines(change: Callable[[list[bytes], random.Random], list[bytes]]) -> Lie:
    def lie(files: Files, draw: random.Random) -> Files:
        name = next(iter(files))
        return {name: b"".join(change(files[name].splitlines(keepends=True), draw))}

    return lie


def _without_anchors(lines: list[bytes], draw: random.Random) -> list[bytes]:
    return [line for line in lines if b":device_timer: " not in line]


def _hour(lines: list[bytes], draw: random.Random) -> list[bytes]:
    at = draw.randrange(len(lines) // 4, 3 * len(lines) // 4)
    return [*lines[:at], b"32" + lines[at][2:], *lines[at + 1 :]]


def _host_step(lines: list[bytes], draw: random.Random) -> list[bytes]:
    at = draw.randrange(len(lines) // 4, 3 * len(lines) // 4)
    return [*lines[:at], *(line.replace(b"12:00:00.", b"11:59:59.", 1) for line in lines[at:])]


def _device_rate(lines: list[bytes], draw: random.Random) -> list[bytes]:
    return [re.sub(rb"ticks_per_second_num: (\d+)", rb"ticks_per_second_num: \g<1>0", line) for line in lines]


def _late_end(lines: list[bytes], draw: random.Random) -> list[bytes]:
    results = [at for at, line in enumerate(lines) if b"globalEnd: " in line]
    at = draw.choice(results)
    made = list(lines)
    made[at] = re.sub(rb"globalEnd: (\d+)", lambda match: b"globalEnd: %d" % (int(match[1]) + 2 * 10**9), lines[at])
    return made


# --- Ascend: rows of the records file -----------------------------------------------------------------------------


def _records(change: Callable[[dict[str, Any], random.Random], None]) -> Lie:
    def lie(files: Files, draw: random.Random) -> Files:
        name = next(iter(files))
        records = json.loads(files[name])
        change(records, draw)
        return {name: json.dumps(records).encode()}

    return lie


def _phase(records: dict[str, Any], draw: random.Random) -> tuple[list[Any], int]:
    thread = draw.choice([thread for thread in records["aicpu_scheduler_phases"] if thread])
    return thread, draw.randrange(len(thread))


def _long_phase(records: dict[str, Any], draw: random.Random) -> None:
    thread, at = _phase(records, draw)
    thread[at]["end_cycles"] += 86 * _HERTZ


def _phase_twice(records: dict[str, Any], draw: random.Random) -> None:
    thread, at = _phase(records, draw)
    thread.insert(at, dict(thread[at]))


def _counter_rate(factor: float) -> Lie:
    def change(records: dict[str, Any], draw: random.Random) -> None:
        metadata = records["metadata"]
        metadata["clock_freq_hz"] = int(metadata["clock_freq_hz"] * factor)

    return _records(change)


def _core_missing(records: dict[str, Any], draw: random.Random) -> None:
    core = draw.choice(sorted({row[0] for row in records["aicore_tasks"]}))
    for name in ("aicore_tasks", "aicpu_tasks"):
        records[name] = [row for row in records[name] if row[0] != core]


def _core_off(records: dict[str, Any], draw: random.Random) -> None:
    core = draw.choice(sorted({row[0] for row in records["aicore_tasks"]}))
    for row in records["aicore_tasks"]:
        if row[0] == core:
            row[3:5] = [stamp + _HERTZ // 100 for stamp in row[3:5]]


def _last_end(records: dict[str, Any], draw: random.Random) -> None:
    max(records["aicore_tasks"], key=lambda row: row[4])[4] += 20 * _HERTZ


def _tasks_exchanged(records: dict[str, Any], draw: random.Random) -> None:
    rows = records["aicore_tasks"]
    one = draw.choice(rows)
    other = draw.choice([row for row in rows if row[1] != one[1]])
    one[1], other[1] = other[1], one[1]


def _core_types(records: dict[str, Any], draw: random.Random) -> None:
    records["metadata"]["core_types"].reverse()


# --- AIE: packets -------------------------------------------------------------------------------------------------


def _packets(change: Callable[[list[Any], list[Any], random.Random], None]) -> Lie:
    """Return a lie about the packets of one source: gets all packets, and the places of the source's."""

    def lie(files: Files, draw: random.Random) -> Files:
        name = next(iter(files))
        words = Words.of(np.frombuffer(files[name], np.uint8))
        found = Packets.of(words)
        firsts = [
            first + PACKET_WORDS * number
            for first, count, run, _ in found.entries.tolist()
            if run == 0
            for number in range(count // PACKET_WORDS)
        ]
        packets = [words.values[first : first + PACKET_WORDS].tolist() for first in firsts]
        header = draw.choice(found.headers)
        change(packets, [at for at, packet in enumerate(packets) if packet[0] == header], draw)
        return {name: np.array(packets, "<u4").tobytes()}

    return lie


def _inner(places: list[int], draw: random.Random) -> int:
    """Return a packet that is neither the first nor the last of its source."""
    return draw.choice(places[1:-1] or places)


def _packet_lost(packets: list[Any], places: list[Any], draw: random.Random) -> None:
    del packets[_inner(places, draw)]


def _packet_twice(packets: list[Any], places: list[Any], draw: random.Random) -> None:
    at = _inner(places, draw)
    packets.insert(at, list(packets[at]))


def _packets_swapped(packets: list[Any], places: list[Any], draw: random.Random) -> None:
    number = draw.randrange(1, max(len(places) - 2, 2))
    one, other = places[number], places[min(number + 1, len(places) - 1)]
    packets[one], packets[other] = packets[other], packets[one]


def _syncs(packets: list[Any], places: list[Any], draw: random.Random) -> None:
    """Put four Sync frames, a word, into the payload; what follows moves on by a word."""
    payload = [word for at in places for word in packets[at][1:]]
    at = draw.randrange(PACKET_WORDS, len(payload) - PACKET_WORDS)
    header = packets[places[0]][0]
    made = [*payload[:at], _SYNC_WORD, *payload[at:]]
    rows = aie_encode.packets(header, np.array(made, np.uint32)).tolist()
    for place, row in zip(places, rows, strict=False):
        packets[place] = row
    packets[places[-1] + 1 : places[-1] + 1] = rows[len(places) :]


def _source_missing(packets: list[Any], places: list[Any], draw: random.Random) -> None:
    for at in reversed(places):
        del packets[at]


_CAPTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "cuda": ("cuda", {"blocks": 8, "tiles": 8}),
    "levelzero": ("levelzero", {"ops": 160, "style": "thapi"}),
    "ascend": ("ascend", {"tasks": 160, "aic": 6, "aiv": 12}),
    "aie": ("aie", {"tiles": 4, "records": 1500, "zeros": 0}),
    "aie, shared stop": ("aie", {"tiles": 4, "records": 1500, "zeros": 0, "shared_stop": True}),
}
_PACKETS = {
    "packet lost": _packet_lost,
    "packet twice": _packet_twice,
    "4 Sync bytes": _syncs,
    "packets exchanged": _packets_swapped,
}
#: By family and name: the kind of capture, and the lie.
LIES: dict[str, dict[str, tuple[str, Lie]]] = {
    "aie": {
        **{name: ("aie", _packets(change)) for name, change in _PACKETS.items()},
        **{f"{name}, shared stop": ("aie, shared stop", _packets(change)) for name, change in _PACKETS.items()},
        "source missing, no configuration": ("aie", _packets(_source_missing)),
    },
    "ascend": {
        name: ("ascend", lie)
        for name, lie in {
            "phase of 86 s": _records(_long_phase),
            "phase twice": _records(_phase_twice),
            "rate / 50": _counter_rate(1 / 50),
            "rate x 10": _counter_rate(10),
            "core missing in both streams": _records(_core_missing),
            "core off by 10 ms": _records(_core_off),
            "last end + 20 s": _records(_last_end),
            "task ids exchanged": _records(_tasks_exchanged),
            "core types reversed": _records(_core_types),
        }.items()
    },
    "cuda": {
        name: ("cuda", lie)
        for name, lie in {
            "step + 2 s in one lane": _lane(_half, lambda stamps: stamps + 2 * _S),
            "step + 200 us in one lane": _lane(_half, lambda stamps: stamps + 200 * _US),
            "lane off - 1 ms": _lane(_all, lambda stamps: stamps - _MS),
            "lane off + 5 us": _lane(_all, lambda stamps: stamps + 5 * _US),
            "constant clock: lane": _lane(_all, lambda stamps: np.full_like(stamps, stamps[0])),
            "constant clock: all": _every(lambda stamps: np.full_like(stamps, stamps.min())),
            "lane missing": _cuda_lost(_all),
            "tail and finalize lost": _cuda_lost(_half),
            "all x 1000": _every(lambda stamps: stamps.min() + (stamps - stamps.min()) * 1000),
            "steps of 2 us": _every(lambda stamps: stamps // (2 * _US) * (2 * _US)),
            "lanes exchanged": _cuda_exchanged,
        }.items()
    },
    "levelzero": {
        name: ("levelzero", lie)
        for name, lie in {
            "anchors lost": _lines(_without_anchors),
            "hour 32": _lines(_hour),
            "host steps back 1 s": _lines(_host_step),
            "rate x 10": _lines(_device_rate),
            "end + 2e9 ticks": _lines(_late_end),
        }.items()
    },
}

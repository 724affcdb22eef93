"""A simulated attention kernel: groups of warps that load, compute and store at the same time, and what goes wrong.

Each block works through tiles. The load group fills a ring of stages, the compute groups wait for a full stage and give
it back, the store group waits for the compute groups: so lanes overlap, and wait, as they do on hardware.
Times come from raw PCG64 output, so a seed gives the same bytes with every version of NumPy.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.base import Simulation
from lanescope.devices.cuda import encode
from lanescope.devices.cuda.layout import BEGIN, END, FINALIZE, INSTANT, STAMP_WRAP, TIRX_MAX_LANES, TIRX_V1
from lanescope.devices.cuda.names import NEIGHBOUR
from lanescope.errors import UsageError

I64 = npt.NDArray[np.int64]

EVENTS = (
    "tile",
    "wait_empty",
    "load_k",
    "load_v",
    "wait_full",
    "qk",
    "softmax",
    "pv",
    "wait_output",
    "store",
    "step",
    "prefetch",
    "drain",
)
TILE, WAIT_EMPTY, LOAD_K, LOAD_V, WAIT_FULL, QK, SOFTMAX, PV, WAIT_OUTPUT, STORE, STEP, PREFETCH, DRAIN = range(13)

#: Shared memory holds so many tiles at once.
STAGES = 2
#: Typical lengths in ns; each is drawn between 75 % and 150 % of it.
_LENGTHS = {LOAD_K: 420, LOAD_V: 440, QK: 380, SOFTMAX: 300, PV: 400, STORE: 350}
#: From the end of one thing to the begin of the next: a barrier, a branch, the marker itself.
_HOP = 24
#: From the end of a block to the begin of the next one on its SM.
_BLOCK_START = 1500
_NAME = "attention"
#: Where the clock stands when it does not run through zero.
_START = 1_000_000_000
#: How far a second writer, or a clock that steps back, is behind: less than a decoder takes for a wrap.
_BEHIND = 100_000
#: A further launch begins so much later.
_RERUN = 20_000
#: Records that a hole takes.
_HOLE = 3

#: What can go wrong with a lane, by its option. Each has a key of the truth; no lane suffers two of them.
_FAULTS = (
    "unfinished",
    "no_finalize",
    "two_writers",
    "clock_step",
    "holes",
    "corrupt",
    "crossing",
    "stray_ends",
    "reruns",
)


def simulate(options: Mapping[str, Any], seed: int) -> Simulation:
    """Make a buffer and its truth.

    Args:
        options: as ``family.Cuda.sim_options`` declares them.
        seed: the same options and seed give the same bytes.

    Returns:
        ``attention.npy`` and the names of its events; the truth has the keys of the golden buffers (``spans``,
        ``instants``, ``open_regions``, ``lost_by_lane``, ... with full 64-bit times) and one key for each fault.

    Raises:
        UsageError: the options contradict each other.
    """
    setup = _Setup.of(options)
    faults = _Faults(options, seed)
    kernel = _run(setup, _Random(seed))
    lanes = faults.take(kernel)
    index, records = kernel.records(without=[lane.number for lane in lanes])
    for lane in lanes:
        index, records = _joined(index, records, lane)
    slots_needed = 1 + int((records.lane + index * setup.stride).max()) + 1
    slots = setup.slots or slots_needed
    if slots < 1 + setup.lanes:
        raise UsageError(f"{slots} slots have no room for {setup.lanes} lanes", hint="give more, or 0 for just enough")
    words, stored = encode.encode(
        records, num_blocks=setup.blocks, num_groups=setup.groups, stride=setup.stride, slots=slots, index=index
    )
    truth = _truth(setup, kernel, lanes, slots)
    truth |= {"slots_needed": slots_needed, "records": int(np.count_nonzero(stored)), "wraps_32bit": setup.wrap}
    truth["lost_by_lane"] = _lost_by_lane(records.lane[~stored], setup.groups)
    truth["lost_records"] = int(np.count_nonzero(~stored))
    for lane in lanes:
        lane.damage(words, setup, truth)
    files = {
        f"{_NAME}.npy": encode.to_npy(words),
        f"{_NAME}{NEIGHBOUR}": json.dumps({"events": EVENTS, "groups": [g["name"] for g in truth["groups"]]}).encode(),
    }
    return Simulation(files=files, truth=truth)


@dataclass(frozen=True)
class _Setup:
    blocks: int
    groups: int
    threads: tuple[int, ...]
    tiles: int
    sms: int
    tick: int
    stride: int
    slots: int
    nested: bool
    instants: bool
    wrap: bool

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> _Setup:
        threads = tuple(options["threads"] or ())
        groups = len(threads) or options["groups"]
        lanes = options["blocks"] * groups
        if lanes > TIRX_MAX_LANES:
            raise UsageError(f"{lanes} lanes are more than {TIRX_V1} can number", hint=f"stay at {TIRX_MAX_LANES}")
        if options["stride"] and options["stride"] < lanes:
            raise UsageError(f"stride {options['stride']} is too small for {lanes} lanes", hint="leave it out")
        names = ("blocks", "tiles", "sms", "tick", "slots", "nested", "instants", "wrap")
        given = {name: options[name] for name in names}
        return cls(**given, groups=groups, threads=threads, stride=options["stride"] or lanes)

    @property
    def lanes(self) -> int:
        return self.blocks * self.groups

    def role(self, group: int) -> str:
        """What a group does: everything, or its part of the work."""
        if self.groups == 1 or self.threads:
            return "all"
        if group == 0:
            return "load"
        return "store" if group == self.groups - 1 and self.groups > 2 else "compute"

    def pattern(self, group: int) -> list[tuple[int, int]]:
        """The (event, kind) of the records of one tile."""
        parts = {
            "load": (WAIT_EMPTY, LOAD_K, LOAD_V),
            "compute": (WAIT_FULL, QK, SOFTMAX, PV) + ((STORE,) if self.groups == 2 else ()),
            "store": (WAIT_OUTPUT, STORE),
            "all": (LOAD_K, LOAD_V, QK, SOFTMAX, PV, STORE),
        }[self.role(group)]
        inner = [record for event in parts for record in ((event, BEGIN), (event, END))]
        if self.instants:
            inner.append((STEP, INSTANT))
        return [(TILE, BEGIN), *inner, (TILE, END)] if self.nested else inner


class _Random:
    """Uniform numbers from raw PCG64 output, which no version of NumPy changes."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def uniform(self, *shape: int) -> npt.NDArray[np.float64]:
        """Return float64 [shape] in [0, 1)."""
        raw: npt.NDArray[np.uint64] = self._bits.random_raw(int(np.prod(shape)))
        return (raw >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53

    def below(self, limit: int) -> int:
        """Return an integer in [0, limit)."""
        return int(self._bits.random_raw()) % limit

    def shuffled(self, count: int) -> list[int]:
        """Return the numbers below ``count`` in a random order."""
        raw: npt.NDArray[np.uint64] = self._bits.random_raw(count)
        return np.argsort(raw, kind="stable").tolist()  # type: ignore[no-any-return]


@dataclass
class _Kernel:
    """What really happened.

    Attributes:
        times: per group int64 [records of a lane, blocks], full ns, quantised to the clock's step.
        events, kinds: per group int64 [records of a lane].
    """

    setup: _Setup
    times: list[I64]
    events: list[I64]
    kinds: list[I64]

    def records(self, without: list[int]) -> tuple[I64, encode.Records]:
        """Return all records and their positions, but for some lanes."""
        groups = self.setup.groups
        parts = []
        for group in range(groups):
            kept = np.setdiff1d(np.arange(self.setup.blocks), [n // groups for n in without if n % groups == group])
            count = len(self.events[group])
            parts.append(
                (
                    np.tile(np.arange(count), len(kept)),
                    np.repeat(kept * groups + group, count),
                    np.tile(self.events[group], len(kept)),
                    np.tile(self.kinds[group], len(kept)),
                    self.times[group][:, kept].T.ravel(),
                )
            )
        index, *columns = (np.concatenate(column) for column in zip(*parts, strict=True))
        return index, encode.Records(*columns)

    def lane(self, lane: int) -> list[_Entry]:
        """Return the records of one lane, each with the number of its region."""
        group, block = lane % self.setup.groups, lane // self.setup.groups
        regions: list[int] = []
        entries = []
        for number, (event, kind, time) in enumerate(
            zip(
                self.events[group].tolist(),
                self.kinds[group].tolist(),
                self.times[group][:, block].tolist(),
                strict=True,
            )
        ):
            if kind == BEGIN:
                regions.append(number)
            region = regions.pop() if kind == END else number
            entries.append(_Entry(event, kind, time, region))
        return entries


@dataclass(frozen=True, slots=True)
class _Entry:
    """A record of a lane that something happens to; begin and end of one region share its number."""

    event: int
    kind: int
    time: int
    region: int


def _run(setup: _Setup, random: _Random) -> _Kernel:
    """Run all blocks, as many at a time as there are SMs."""
    patterns = [setup.pattern(group) for group in range(setup.groups)]
    sizes = [len(pattern) for pattern in patterns]
    times = [np.empty((setup.tiles * size + 1, setup.blocks)) for size in sizes]
    free = random.uniform(min(setup.sms, setup.blocks)) * 400
    for first in range(0, setup.blocks, setup.sms):
        wave = slice(first, min(first + setup.sms, setup.blocks))
        count = wave.stop - wave.start
        block = _Block(setup, free[:count].copy(), random.uniform(count))
        for tile in range(setup.tiles):
            stamps = block.tile(tile, random)
            for group, size in enumerate(sizes):
                times[group][tile * size : (tile + 1) * size, wave] = stamps[group]
        for group in range(setup.groups):
            times[group][-1, wave] = block.now[group] + _HOP
        free[:count] = block.now.max(axis=0) + _BLOCK_START
    start = _START
    if setup.wrap:
        start = STAMP_WRAP - int(max(part.max() for part in times)) // 2
    start -= start % setup.tick
    quantised = [start + (part / setup.tick).astype(np.int64) * setup.tick for part in times]
    last = np.array([0]), np.array([FINALIZE])
    return _Kernel(
        setup,
        quantised,
        [np.concatenate([np.tile([e for e, _ in p], setup.tiles), last[0]]) for p in patterns],
        [np.concatenate([np.tile([k for _, k in p], setup.tiles), last[1]]) for p in patterns],
    )


class _Block:
    """The blocks of one wave, tile by tile.

    Attributes:
        now: float64 [groups, blocks], when each group is done with what it did last.
    """

    def __init__(self, setup: _Setup, start: npt.NDArray[np.float64], speed: npt.NDArray[np.float64]) -> None:
        self.setup = setup
        self.now = np.repeat(start[None, :], setup.groups, axis=0) + 40 * np.arange(setup.groups)[:, None]
        self.speed = 0.95 + 0.1 * speed
        self.released = [start] * STAGES  # when each stage of the ring was given back

    def tile(self, tile: int, random: _Random) -> list[npt.NDArray[np.float64]]:
        """Work through one tile; return the stamps of each group, [records, blocks]."""
        setup = self.setup
        lengths = random.uniform(len(_LENGTHS) * setup.groups, len(self.speed)) * 0.75 + 0.75
        self._length = iter(lengths * self.speed)
        if setup.role(0) == "all":
            return [self._work(g, (LOAD_K, LOAD_V, QK, SOFTMAX, PV, STORE), {}) for g in range(setup.groups)]
        stage = tile % STAGES
        found = [self._work(0, (WAIT_EMPTY, LOAD_K, LOAD_V), {WAIT_EMPTY: self.released[stage]})]
        full = self.now[0].copy()
        computing = [g for g in range(setup.groups) if setup.role(g) == "compute"]
        turn = full
        for group in computing:
            parts = (WAIT_FULL, QK, SOFTMAX, PV) + ((STORE,) if setup.groups == 2 else ())
            stamps = self._work(group, parts, {WAIT_FULL: turn})
            # The groups take turns at the tensor cores, so that one's softmax runs beside the other's product.
            turn = stamps[setup.nested + 3]
            found.append(stamps)
        done = self.now[computing].max(axis=0)
        self.released[stage] = done
        if setup.groups > 2:
            found.append(self._work(setup.groups - 1, (WAIT_OUTPUT, STORE), {WAIT_OUTPUT: done}))
        return found

    def _work(
        self, group: int, parts: tuple[int, ...], until: dict[int, npt.NDArray[np.float64]]
    ) -> npt.NDArray[np.float64]:
        """Let a group do its parts one after the other; those in ``until`` last until then."""
        now = self.now[group] + _HOP
        stamps = [now] if self.setup.nested else []
        for event in parts:
            begin = now
            if event in until:
                now = np.maximum(begin, until[event]) + _HOP
            else:
                now = begin + _LENGTHS[event] * next(self._length)
            stamps += [begin, now]
        stamps += [now] * (self.setup.instants + self.setup.nested)
        self.now[group] = now
        return np.array(stamps)


@dataclass
class _Lane:
    """A lane that something happens to.

    Attributes:
        number: the lane.
        fault: what, one of ``_FAULTS``.
        entries: its records as they are stored, in write order.
        at: position of the fault.
        note: what the truth says about it, besides block and group.
    """

    number: int
    fault: str
    entries: list[_Entry]
    at: int = 0
    note: list[int] = field(default_factory=list)

    def damage(self, words: npt.NDArray[np.uint64], setup: _Setup, truth: dict[str, Any]) -> None:
        """Spoil words of the buffer, and tell the truth about the lane."""
        first = 1 + self.number + self.at * setup.stride
        # A fault in records that had no room never reached the buffer.
        if self.fault not in ("holes", "corrupt"):
            truth[self.fault].append([*divmod(self.number, setup.groups), *self.note])
        elif first + _HOLE * setup.stride < len(words):
            truth[self.fault].append([*divmod(self.number, setup.groups), *self.note])
            if self.fault == "holes":
                words[first : first + _HOLE * setup.stride : setup.stride] = 0
            else:
                words[first] ^= np.uint64(1 << 12)


class _Faults:
    """Chooses lanes and spoils their records."""

    def __init__(self, options: Mapping[str, Any], seed: int) -> None:
        self._counts = {fault: options[fault] for fault in _FAULTS}
        self._tick: int = options["tick"]
        # A stream of its own: what goes wrong does not change what the kernel does.
        self._random = _Random(seed + (1 << 64))

    def take(self, kernel: _Kernel) -> list[_Lane]:
        """Return the lanes that something happens to."""
        wanted = [fault for fault, count in self._counts.items() for _ in range(count)]
        if len(wanted) > kernel.setup.lanes:
            raise UsageError(
                f"{len(wanted)} faults need as many lanes, there are {kernel.setup.lanes}", hint="simulate more blocks"
            )
        lanes = self._random.shuffled(kernel.setup.lanes)[: len(wanted)]
        return [
            getattr(self, f"_{fault}")(_Lane(n, fault, kernel.lane(n))) for fault, n in zip(wanted, lanes, strict=True)
        ]

    def _ticks(self, ns: int) -> int:
        """Return ``ns`` in whole steps of the clock, rounded up."""
        return -(-ns // self._tick) * self._tick

    def _choose(self, lane: _Lane, *, kind: int | None = None, margin: int = 1) -> int:
        """Return the position of a record, of some kind if given, not at the very end of the lane."""
        places = [i for i, entry in enumerate(lane.entries[:-margin]) if kind is None or entry.kind == kind]
        return places[self._random.below(len(places))]

    def _unfinished(self, lane: _Lane) -> _Lane:
        lane.entries = lane.entries[: self._choose(lane, kind=BEGIN) + 1]
        return lane

    def _no_finalize(self, lane: _Lane) -> _Lane:
        lane.entries = lane.entries[:-1]
        return lane

    def _two_writers(self, lane: _Lane) -> _Lane:
        """Let a second thread, some time behind, win half of the slots, and for sure those of records 1 and 3."""
        behind = self._ticks(_BEHIND)
        for at, entry in enumerate(lane.entries):
            if at in (1, 3) or (at > 3 and self._random.below(2)):
                lane.entries[at] = replace(entry, time=entry.time - behind)
        return lane

    def _clock_step(self, lane: _Lane) -> _Lane:
        lane.at = 1 + self._choose(lane)
        step = lane.entries[lane.at].time - lane.entries[lane.at - 1].time + self._ticks(1)
        lane.entries[lane.at :] = [replace(entry, time=entry.time - step) for entry in lane.entries[lane.at :]]
        lane.note = [lane.at, step]
        return lane

    def _holes(self, lane: _Lane) -> _Lane:
        lane.at = self._choose(lane, margin=_HOLE + 1)
        lane.note = [lane.at, _HOLE]
        return lane

    def _corrupt(self, lane: _Lane) -> _Lane:
        lane.at = self._choose(lane, margin=_HOLE + 1)
        lane.note = [lane.at]
        return lane

    def _crossing(self, lane: _Lane) -> _Lane:
        """Let a prefetch begin inside a region and end behind it."""
        leaves = [
            i
            for i, (one, two) in enumerate(zip(lane.entries, lane.entries[1:], strict=False))
            if one.kind == BEGIN and two.kind == END
        ]
        at = leaves[self._random.below(len(leaves))]
        begin, end = lane.entries[at], lane.entries[at + 1]
        region = len(lane.entries)
        lane.entries.insert(at + 2, _Entry(PREFETCH, END, end.time, region))
        lane.entries.insert(at + 1, _Entry(PREFETCH, BEGIN, begin.time, region))
        lane.note = [at]
        return lane

    def _stray_ends(self, lane: _Lane) -> _Lane:
        lane.at = 1 + self._choose(lane)
        time = lane.entries[lane.at - 1].time
        lane.entries.insert(lane.at, _Entry(DRAIN, END, time, -1))
        lane.note = [DRAIN, time]
        return lane

    def _reruns(self, lane: _Lane) -> _Lane:
        count, last = len(lane.entries), lane.entries[-1].time
        shift = last - lane.entries[0].time + self._ticks(_RERUN)
        lane.entries += [replace(entry, time=entry.time + shift, region=entry.region + count) for entry in lane.entries]
        lane.note = [count]
        return lane


def _joined(index: I64, records: encode.Records, lane: _Lane) -> tuple[I64, encode.Records]:
    """Add the records of one lane."""
    entries = lane.entries
    columns = [[lane.number] * len(entries)]
    columns += [[getattr(entry, name) for entry in entries] for name in ("event", "kind", "time")]
    old = (records.lane, records.event, records.kind, records.time)
    joined = [np.concatenate([a, np.array(b, np.int64)]) for a, b in zip(old, columns, strict=True)]
    return np.concatenate([index, np.arange(len(entries))]), encode.Records(*joined)


# --- the truth ----------------------------------------------------------------------------------------------------


def _truth(setup: _Setup, kernel: _Kernel, lanes: list[_Lane], slots: int) -> dict[str, Any]:
    """Tell what a decoder has to find: rows by lane and begin record, as in the golden buffers."""
    capacity = np.maximum(0, (slots - 2 - np.arange(setup.lanes)) // setup.stride + 1)
    special = {lane.number for lane in lanes}
    spans, opened, instants, finalized = [], [], [], []
    for group in range(setup.groups):
        blocks = np.array([b for b in range(setup.blocks) if b * setup.groups + group not in special], np.int64)
        room = capacity[blocks * setup.groups + group]
        times, events = kernel.times[group], kernel.events[group]
        begin, end = _pairs(kernel.kinds[group])
        spans.append(_rows(blocks, group, begin, end, times, events, (end[:, None] < room)))
        is_open = (begin[:, None] < room) & (end[:, None] >= room)
        opened.append(_rows(blocks, group, begin, end, times, events, is_open))
        marks = np.flatnonzero(kernel.kinds[group] == INSTANT)
        instants.append(_rows(blocks, group, marks, marks, times, events, marks[:, None] < room))
        finalized += [[int(b), group] for b in blocks[len(events) <= room]]
    for lane in lanes:
        found = _lane_rows(lane, setup.groups, int(capacity[lane.number]))
        spans.append(found["spans"])
        opened.append(found["open"])
        instants.append(found["instants"])
        stored = lane.entries[: int(capacity[lane.number])]
        if any(entry.kind == FINALIZE for entry in stored):
            finalized.append(list(divmod(lane.number, setup.groups)))
    return {
        "format": TIRX_V1,
        "num_blocks": setup.blocks,
        "num_groups": setup.groups,
        "stride": setup.stride,
        "slots": slots,
        "tick_ns": setup.tick,
        "event_names": list(EVENTS),
        "groups": _groups(setup),
        "columns": ["block", "group", "event_id", "name", "begin_ns", "end_ns", "dur_ns"],
        "spans": _listed(spans, ends=True),
        "instants": _listed(instants),
        "open_regions": _listed(opened),
        "finalized_lanes": sorted(finalized),
        **{fault: [] for fault in _FAULTS},
    }


def _groups(setup: _Setup) -> list[dict[str, Any]]:
    """Describe the groups: the computing ones have most warps; the first thread of each is its leader, who writes."""
    found = []
    first = 0
    computing = sum(setup.role(group) == "compute" for group in range(setup.groups))
    for group in range(setup.groups):
        role = setup.role(group)
        threads = setup.threads[group] if setup.threads else 128 if role in ("compute", "all") else 32
        number = f" {group - 1}" if role == "compute" and computing > 1 else ""
        name = f"threads {first} to {first + threads - 1}" if role == "all" else f"{role}{number}"
        found.append({"name": name, "threads": threads, "leader": first})
        first += threads
    return found


def _pairs(kinds: I64) -> tuple[I64, I64]:
    """Return the positions of the begins, and of their ends, of properly nested records."""
    stack: list[int] = []
    end_of: dict[int, int] = {}
    for at, kind in enumerate(kinds.tolist()):
        if kind == BEGIN:
            stack.append(at)
        elif kind == END:
            end_of[stack.pop()] = at
    begin = sorted(end_of)
    return np.array(begin, np.int64), np.array([end_of[at] for at in begin], np.int64)


def _rows(blocks: I64, group: int, begin: I64, end: I64, times: I64, events: I64, mask: npt.NDArray[np.bool_]) -> I64:
    """Return rows (block, group, begin record, event, begin, end), int64 [n, 6], of the regions under a mask."""
    region, block = np.nonzero(mask)
    rows = np.empty((len(region), 6), np.int64)
    rows[:, 0] = blocks[block]
    rows[:, 1] = group
    rows[:, 2] = begin[region]
    rows[:, 3] = events[begin[region]]
    rows[:, 4] = times[begin[region], rows[:, 0]]
    rows[:, 5] = times[end[region], rows[:, 0]]
    return rows


def _lane_rows(lane: _Lane, groups: int, capacity: int) -> dict[str, I64]:
    """Return the rows of one lane, by what they are; of a lane with two writers only that it has them."""
    block, group = divmod(lane.number, groups)
    found: dict[str, list[tuple[int, ...]]] = {"spans": [], "open": [], "instants": []}
    begun: dict[int, tuple[int, _Entry]] = {}
    for at, entry in enumerate(lane.entries[:capacity] if lane.fault != "two_writers" else ()):
        if entry.kind == BEGIN:
            begun[entry.region] = at, entry
        elif entry.kind == END and entry.region in begun:
            start, first = begun.pop(entry.region)
            found["spans"].append((block, group, start, entry.event, first.time, entry.time))
        elif entry.kind == INSTANT:
            found["instants"].append((block, group, at, entry.event, entry.time, entry.time))
    found["open"] = [(block, group, start, first.event, first.time, first.time) for start, first in begun.values()]
    return {name: np.array(rows, np.int64).reshape(-1, 6) for name, rows in found.items()}


def _listed(parts: list[I64], *, ends: bool = False) -> list[tuple[Any, ...]]:
    """Return rows (block, group, event, name, begin, end, length) in the order of their lanes and begin records.

    Rows are tuples made of whole columns: lists of rows cost five times the rest of the simulation.
    """
    rows = np.concatenate(parts)
    block, group, _, event, begin, end = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))].T
    columns: list[list[Any]] = [column.tolist() for column in (block, group, event)]
    columns += [[EVENTS[number] for number in columns[2]], begin.tolist()]
    if ends:
        columns += [end.tolist(), (end - begin).tolist()]
    return list(zip(*columns, strict=True))


def _lost_by_lane(lane: I64, groups: int) -> list[list[int]]:
    lanes, counts = np.unique(lane, return_counts=True)
    return [[*divmod(number, groups), count] for number, count in zip(lanes.tolist(), counts.tolist(), strict=True)]

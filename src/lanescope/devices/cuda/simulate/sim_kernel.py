"""A simulated attention kernel: groups of warps that load, compute and store at the same time.

Each block works through tiles. The load group fills a ring of stages, the compute groups wait for a full stage and give
it back, the store group waits for the compute groups: so lanes overlap, and wait, as they do on hardware.
Times come from raw PCG64 output, so a seed gives the same bytes with every version of NumPy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats.encode import strided
from lanescope.devices.cuda.formats.layout import (
    BEGIN,
    END,
    FINALIZE,
    FLASHINFER_V1,
    FLASHINFER_V2,
    INSTANT,
    STAMP_WRAP,
    TIRX_MAX_LANES,
    TIRX_V1,
    WARPSCOPE,
)
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
    "fetch",
    "full",
    "empty",
    "output",
    "in_flight",
    "stored_kib",
    "turn",
)
TILE, WAIT_EMPTY, LOAD_K, LOAD_V, WAIT_FULL, QK, SOFTMAX, PV, WAIT_OUTPUT, STORE, STEP, PREFETCH, DRAIN = range(13)
#: What only layouts with asynchronous regions, flows and counters record.
FETCH, FULL, EMPTY, OUTPUT, IN_FLIGHT, STORED_KIB, TURN = range(13, 20)

#: Shared memory holds so many tiles at once.
STAGES = 2
#: Typical lengths in ns; each is drawn between 75 % and 150 % of it.
_LENGTHS = {LOAD_K: 420, LOAD_V: 440, QK: 380, SOFTMAX: 300, PV: 400, STORE: 350}
#: From the end of one thing to the begin of the next: a barrier, a branch, the marker itself.
_HOP = 24
#: From the end of a block to the begin of the next one on its SM.
_BLOCK_START = 1500  #: Where the clock stands when it does not run through zero.
_START = 1_000_000_000


@dataclass(frozen=True)
class Setup:
    """Parameters of the simulation.

    Attributes:
        blocks, groups, tiles: the kernel.
        threads: of each group, if every group does all of the work.
        sms: blocks that run at the same time.
        tick: step of the clock in ns.
        stride, slots: of a strided layout; 0 slots: just enough.
        nested: an outer region around each tile.
        instants: an instant for each tile.
        wrap: the stamps run through zero halfway.
        layout: name of the layout.
    """

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
    layout: str = TIRX_V1

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Setup:
        """Return the setup that the simulator's options describe.

        Raises:
            UsageError: they contradict each other.
        """
        threads = tuple(options["threads"] or ())
        groups = len(threads) or options["groups"]
        lanes = options["blocks"] * groups
        layout = options["layout"]
        if lanes > TIRX_MAX_LANES:
            raise UsageError(f"too many lanes for layout {layout}: {lanes}", hint=f"use at most {TIRX_MAX_LANES}")
        if options["stride"] and options["stride"] < lanes:
            raise UsageError(f"invalid stride {options['stride']}: too small for {lanes} lanes", hint="remove --stride")
        if options["stride"] > lanes and layout not in (TIRX_V1, WARPSCOPE):
            raise UsageError(f"invalid stride: layout {layout} uses the number of lanes", hint="remove --stride")
        names = ("blocks", "tiles", "sms", "tick", "slots", "nested", "instants", "wrap", "layout")
        given = {name: options[name] for name in names}
        return cls(**given, groups=groups, threads=threads, stride=options["stride"] or lanes)

    @property
    def lanes(self) -> int:
        """Lanes of the grid."""
        return self.blocks * self.groups

    @property
    def finalizes(self) -> bool:
        """True if a lane ends with a finalize record."""
        return self.layout not in (FLASHINFER_V1, FLASHINFER_V2)

    @property
    def sm(self) -> I64:
        """The SM of each block, int64 [blocks]: they take turns in the order in which they become free."""
        return np.arange(self.blocks) % self.sms

    def role(self, group: int) -> str:
        """Return the role of a group: everything, or its part of the work."""
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


class Random:
    """Uniform numbers from raw PCG64 output, which no version of NumPy changes."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def uniform(self, *shape: int) -> npt.NDArray[np.float64]:
        """Return float64 [shape] in [0, 1)."""
        raw: npt.NDArray[np.uint64] = self._bits.random_raw(int(np.prod(shape)))
        return (raw >> np.uint64(11)).astype(np.float64).reshape(shape) * 2.0**-53

    def randrange(self, limit: int) -> int:
        """Return an integer in [0, limit)."""
        return int(self._bits.random_raw()) % limit

    def shuffled(self, count: int) -> list[int]:
        """Return the numbers below ``count`` in a random order."""
        raw: npt.NDArray[np.uint64] = self._bits.random_raw(count)
        return np.argsort(raw, kind="stable").tolist()  # type: ignore[no-any-return]


@dataclass
class Kernel:
    """Ground truth of a simulated kernel.

    Attributes:
        times: per group int64 [records of a lane, blocks], full ns, quantised to the clock's step.
        events, kinds: per group int64 [records of a lane].
    """

    setup: Setup
    times: list[I64]
    events: list[I64]
    kinds: list[I64]

    def keep(self, masks: list[npt.NDArray[np.bool_]]) -> None:
        """Leave records out that no buffer will show; a mask of the records of a lane for each group."""
        for group, mask in enumerate(masks):
            self.times[group] = self.times[group][mask]
            self.events[group] = self.events[group][mask]
            self.kinds[group] = self.kinds[group][mask]

    def first(self, blocks: int) -> Kernel:
        """Return what the first blocks did."""
        times = [times[:, :blocks] for times in self.times]
        return Kernel(replace(self.setup, blocks=blocks), times, list(self.events), list(self.kinds))

    def records(self, without: list[int]) -> tuple[I64, strided.Records]:
        """Return all records and their positions, but for some lanes."""
        groups = self.setup.groups
        parts = []
        for group in range(groups):
            blocks = np.arange(self.setup.blocks)
            kept = blocks[~np.isin(blocks, [n // groups for n in without if n % groups == group])]
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
        return index, strided.Records(*columns)

    def lane(self, lane: int) -> list[Entry]:
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
            entries.append(Entry(event, kind, time, region))
        return entries


@dataclass(frozen=True, slots=True)
class Entry:
    """A record of a lane that something happens to; begin and end of one region share its number."""

    event: int
    kind: int
    time: int
    region: int


def run(setup: Setup, random: Random) -> Kernel:
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
    kernel = Kernel(
        setup,
        quantised,
        [np.array([event for event, _ in p] * setup.tiles + [0], np.int64) for p in patterns],
        [np.array([kind for _, kind in p] * setup.tiles + [FINALIZE], np.int64) for p in patterns],
    )
    if not setup.finalizes:
        kernel.keep([kinds != FINALIZE for kinds in kernel.kinds])
    if setup.layout == FLASHINFER_V2:
        # An instant does not move its writer on, so the next record takes its place.
        kernel.keep([(kinds != INSTANT) | (np.arange(len(kinds)) == len(kinds) - 1) for kinds in kernel.kinds])
    return kernel


class _Block:
    """The blocks of one wave, tile by tile.

    Attributes:
        now: float64 [groups, blocks], when each group is done with what it did last.
    """

    def __init__(self, setup: Setup, start: npt.NDArray[np.float64], speed: npt.NDArray[np.float64]) -> None:
        self.setup = setup
        self.now = np.repeat(start[None, :], setup.groups, axis=0) + 40 * np.arange(setup.groups)[:, None]
        self.speed = 0.95 + 0.1 * speed
        self.released = [start] * STAGES  # when each stage of the ring was given back

    def tile(self, tile: int, random: Random) -> list[npt.NDArray[np.float64]]:
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
            # The groups take turns at the tensor cores: the softmax of one overlaps the product of the other.
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

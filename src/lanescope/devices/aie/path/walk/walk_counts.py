"""What happened how often on a path, as bounds: uses of windows, added up by fact."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie.path.program.program import DELAY_SLOTS, Program
from lanescope.devices.aie.path.walk.core_model import Machine
from lanescope.devices.aie.path.walk.core_state import END
from lanescope.devices.aie.path.walk.state_sets import NOWHERE
from lanescope.devices.aie.path.walk.windows import Fact, Resolved, Window

I64 = npt.NDArray[np.int64]

#: Trips of one loop that are told apart.
_MOST_TRIPS = 4096


class CallNode(NamedTuple):
    """A function as it was called: number of the caller's node (-1: unknown), address of the call, first address."""

    parent: int
    site: int
    entry: int


@dataclass(eq=False)
class Counts:
    """Counts of a walk, as bounds.

    Attributes:
        least: how often at least, by fact; calls are ("call", number of the node).
        most: how often at most.
        unbounded: facts that have no most.
        trips: how often a loop was entered, by (last bundle, passes, is lower bound); passes -1: not known, -2: others
            than the first so many.
        remarks: how often each was relied on, by (kind, address, target).
        frames: how many frames have one path (``certain``), several (``ambiguous``), one that something contradicts
            (``doubted``), none (``unresolved``).
        windows: how many windows there are of each, by the same names.
    """

    least: Counter[Fact] = field(default_factory=Counter)
    most: Counter[Fact] = field(default_factory=Counter)
    unbounded: set[Fact] = field(default_factory=set)
    trips: Counter[tuple[int, int, bool]] = field(default_factory=Counter)
    remarks: Counter[tuple[str, int, int]] = field(default_factory=Counter)
    frames: Counter[str] = field(default_factory=Counter)
    windows: Counter[str] = field(default_factory=Counter)

    def add(self, other: Counts, *, is_trusted: bool) -> None:
        """Add what a piece counted; what is not trusted may also not have happened."""
        self.most.update(other.most)
        self.unbounded |= other.unbounded
        self.remarks.update(other.remarks)
        if is_trusted:
            self.least.update(other.least)
            self.trips.update(other.trips)
            self.frames.update(other.frames)
            self.windows.update(other.windows)
        else:
            self.frames["doubted"] += other.frames.total()
            self.windows["doubted"] += other.windows.total()


class WindowCounter:
    """Counts uses of windows, and turns them into counts of what is in them.

    Args:
        program: the program.
        machine: its rules, by whose stacks calls are named.
        most_paths: paths of a window that are written out.

    Attributes:
        windows: by number.
        nodes: functions as they were called, by number.
        counts: what was counted since it was last taken.
    """

    def __init__(self, program: Program, machine: Machine, most_paths: int) -> None:
        self.program = program
        self.machine = machine
        self.windows: list[Window] = []
        self.nodes: list[CallNode] = []
        self.counts = Counts()
        self._most_paths = most_paths
        self._uses = np.zeros(0, np.int64)
        self._sums: dict[int, I64] = {}
        self._node_of: dict[CallNode, int] = {}
        self._contexts: dict[tuple[int, int], int] = {}
        self._call_site = {behind: site for site, behind in program.behind.items()}

    def add_window(self, steps: tuple[Resolved, ...]) -> int:
        """Add a window; return its number."""
        self.windows.append(Window(self.program, self.machine, steps, self._most_paths))
        return len(self.windows) - 1

    def take(self) -> Counts:
        """Return what was counted, and begin anew."""
        counts, self.counts = self.counts, Counts()
        return counts

    def forget(self) -> None:
        """Forget windows, and the stacks by which calls are found."""
        self.windows = []
        self._contexts = {}

    def count(self, numbers: I64, begins: I64, registers: I64) -> None:
        """Count windows, and add up the registers that they need."""
        if not len(numbers):
            return
        uses = np.bincount(numbers, minlength=len(self.windows))
        found = np.flatnonzero(uses)
        wanting = np.array([number for number in found.tolist() if self.windows[number].registers], np.int64)
        uses[: len(self._uses)] += self._uses
        self._uses = uses
        if not len(wanting):
            return
        wants = np.zeros(len(self.windows), np.bool_)
        wants[wanting] = True
        places = np.flatnonzero(wants[numbers])
        places = places[np.argsort(numbers[places], kind="stable")]
        bounds = np.searchsorted(numbers[places], [*wanting, wanting[-1] + 1])
        for number, low, high in zip(wanting.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            window = self.windows[number]
            at = begins[places[low:high]]
            if len(window.registers) == 1:
                values, times = np.unique(registers[at + window.registers[0]], return_counts=True)
                self._count_registers(number, window, values[:, None], times)
            else:
                values, times = np.unique(
                    registers[at[:, None] + np.array(window.registers)], axis=0, return_counts=True
                )
                self._count_registers(number, window, values, times)

    def _count_registers(self, number: int, window: Window, values: I64, times: I64) -> None:
        counts = self.counts
        if window.is_certain:
            self._sums[number] = self._sums.get(number, 0) + (values * times[:, None]).sum(axis=0)
            column = {at: i for i, at in enumerate(window.registers)}
            for step, remark in window.remarks:
                if remark.factor:
                    at, added = window.bases[step]
                    passes = values[:, column[at]] + (remark.value + added)
                    for trips, n in zip(passes.tolist(), times.tolist(), strict=True):
                        self._count_trips(remark.address, trips, n, is_least=remark.is_least)
            return
        for row, n in zip(values.tolist(), times.tolist(), strict=True):
            least, most, unbounded = window.bounds(row)
            self._add(counts.least, least, n)
            self._add(counts.most, most, n)
            counts.unbounded |= {self._named(fact) for fact in unbounded}

    def _count_trips(self, le: int, trips: int, times: int, *, is_least: bool) -> None:
        key = (le, trips, is_least)
        if key not in self.counts.trips and len(self.counts.trips) > _MOST_TRIPS * max(1, len(self.program.loops)):
            key = (le, -2, is_least)
        self.counts.trips[key] += times

    def drain(self) -> None:
        """Turn uses of windows into counts."""
        counts = self.counts
        for number in np.flatnonzero(self._uses).tolist():
            window, uses = self.windows[number], int(self._uses[number])
            quality = "certain" if window.is_certain else "ambiguous"
            counts.windows[quality] += uses
            counts.frames[quality] += uses * sum(
                step.entry.is_frame and step.entry.before.number != NOWHERE for step in window.steps
            )
            for _, remark in window.remarks:
                if remark.kind != "loop":
                    counts.remarks[remark.kind, remark.address, remark.value] += uses
                elif window.is_certain and not remark.factor:
                    self._count_trips(remark.address, remark.value, uses, is_least=remark.is_least)
            if window.is_certain:
                self._add_certain(window, uses, self._sums.get(number))
            elif not window.registers:
                least, most, unbounded = window.bounds(())
                self._add(counts.least, least, uses)
                self._add(counts.most, most, uses)
                counts.unbounded |= {self._named(fact) for fact in unbounded}
        self._uses = np.zeros(len(self.windows), np.int64)
        self._sums = {}

    def _add_certain(self, window: Window, uses: int, sums: I64 | None) -> None:
        facts = window.facts
        value = dict(zip(window.registers, sums.tolist() if sums is not None else (), strict=True))
        totals = [
            {fact: uses * constant + sum(n * value[at] for at, n in terms) for fact, (constant, terms) in each.items()}
            for each, _ in facts
        ]
        # One path, but perhaps with different callers.
        every: set[Fact] = set().union(*totals)
        self._add(self.counts.least, {fact: min(each.get(fact, 0) for each in totals) for fact in every}, 1)
        self._add(self.counts.most, {fact: max(each.get(fact, 0) for each in totals) for fact in every}, 1)
        for _, unbounded in facts:
            self.counts.unbounded |= {self._named(fact) for fact in unbounded}

    def _add(self, counter: Counter[Fact], counts: dict[Fact, int], times: int) -> None:
        for fact, n in counts.items():
            if n:
                counter[self._named(fact)] += n * times

    def add_tail(self, tail: Resolved, last_register: int) -> None:
        """Count what the last frame leaves open: its bundle is certain, the way to the next one possible."""
        counts = self.counts
        last = Window(self.program, self.machine, (tail,), self._most_paths)
        if tail.entry.before.number != NOWHERE:
            counts.frames["certain" if len({edge.items[: edge.sure] for edge in tail.edges}) == 1 else "ambiguous"] += 1
        sure = {edge.items[: edge.sure] for edge in tail.edges}
        if len(sure) == 1:
            for item in next(iter(sure)):
                if isinstance(item, int):
                    counts.least["visit", item] += 1
        _, most, unbounded = last.bounds([last_register] * len(last.registers))
        self._add(counts.most, most, 1)
        counts.unbounded |= {self._named(fact) for fact in unbounded}
        after = tail.entry.after
        assert after is not None
        beyond: set[int] = set()
        for edge in tail.edges:
            state = after.states[edge.dst]
            if state.need != END:
                i = self.program.index[state.pc]
                beyond |= {bundle.address for bundle in self.program.bundles[i : i + 1 + DELAY_SLOTS]}
        for address in beyond:
            counts.most["visit", address] += 1

    # -- calls

    def _named(self, fact: Fact) -> Fact:
        """Replace the stack of a call by the number of a node, which stays when stacks are forgotten."""
        if fact[0] != "call":
            return fact
        _, stack, site, callee = fact
        assert isinstance(stack, int)
        assert isinstance(site, int)
        assert isinstance(callee, int)
        caller = self.context(stack, site)
        return "call", self._node(CallNode(caller, site, self.program.extent(callee)[0]))

    def context(self, stack: int, address: int) -> int:
        """Return the node of the function at an address, called as the stack says."""
        waiting = []
        while (key := (stack, self.program.extent(address)[0])) not in self._contexts and stack:
            waiting.append(key)
            stack, address = self.machine.pop(stack)
        if key not in self._contexts:
            self._contexts[key] = self._node(CallNode(-1, -1, key[1]))
        node = self._contexts[key]
        for key in reversed(waiting):
            site = self._call_site.get(self.machine.pop(key[0])[1], -1)
            node = self._contexts[key] = self._node(CallNode(node, site, key[1]))
        return node

    def _node(self, node: CallNode) -> int:
        number = self._node_of.get(node)
        if number is None:
            number = self._node_of[node] = len(self.nodes)
            self.nodes.append(node)
        return number

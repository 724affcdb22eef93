"""What is known of a short stretch of frames: one path, or several of which one was taken.

A frame whose bundles are the same in all states is a window by itself. Others are taken together until one state is
left, or ``MOST_STEPS`` have passed; all paths through them are written out and compared, so that guesses which part
only in the books (at which bundle a loop frame came) count as one path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from lanescope.devices.aie.path.program.program import CALLS, DELAY_SLOTS, RETURN, Program
from lanescope.devices.aie.path.walk.core_model import Machine
from lanescope.devices.aie.path.walk.core_state import END, FALLS, Assumption, Item, Repeat, State
from lanescope.devices.aie.path.walk.state_sets import Edge, Entry

#: Frames after which a window is cut while several states are left.
MOST_STEPS = 32
#: Paths of a window that are written out.
MOST_PATHS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Resolved:
    """A transition with what later frames left of it.

    Attributes:
        entry: the transition.
        edges: ways that lead on to where the recording went.
        states_after: states behind it that do.
        agrees: all ways pass the same bundles.
    """

    entry: Entry
    edges: tuple[Edge, ...]
    states_after: int
    agrees: bool


class Iterations(NamedTuple):
    """Iterations of a loop body: ``constant + factor * register``, the register as it was at a step.

    Attributes:
        body: addresses of one pass.
        constant, factor: as above.
        step: 0: exactly so often; else any multiple of it more.
        at: step of the window whose register is meant.
    """

    body: tuple[int, ...]
    constant: int
    factor: int
    step: int
    at: int


Element = int | Iterations


class Path(NamedTuple):
    """One way through a window.

    Attributes:
        elements: addresses and loops, in order.
        follows: the address behind it, -1: there is none.
        stack: the shadow call stack at its begin.
        flight: branch in flight at its begin, and slots that are left of it.
    """

    elements: tuple[Element, ...]
    follows: int
    stack: int
    flight: tuple[int, int]


#: What is counted: ("visit", address), ("edge", from, to), ("call", stack before, site, callee).
Fact = tuple[str | int, ...]
#: A sum: constant, and factors of registers at steps of the window.
Sum = tuple[int, tuple[tuple[int, int], ...]]


@dataclass(eq=False)
class Window:
    """A stretch of frames with the same story.

    Attributes:
        program, machine: the program and the core that took the path.
        steps: its transitions.
        most_paths: paths that are written out.
        remarks: what its paths rest on, with the step of the frame.
    """

    program: Program
    machine: Machine
    steps: tuple[Resolved, ...]
    most_paths: int = MOST_PATHS
    remarks: tuple[tuple[int, Assumption], ...] = field(default=())

    def __post_init__(self) -> None:
        """Collect what the ways rest on, with the step of their frame."""
        said: dict[tuple[int, Assumption], None] = {}
        for i, step in enumerate(self.steps):
            for edge in step.edges:
                for remark in edge.remarks:
                    said[i, remark] = None
        self.remarks = tuple(said)

    @cached_property
    def bases(self) -> tuple[tuple[int, int], ...]:
        """For each step: where its register was last set within the window, and what was added since."""
        found = []
        at, added = 0, 0
        for i, step in enumerate(self.steps):
            if step.entry.sets_register:
                at, added = i, 0
            found.append((at, added))
            added += step.entry.shift
        return tuple(found)

    @cached_property
    def paths(self) -> tuple[Path, ...] | None:
        """All ways through it."""
        before = self.steps[0].entry.before
        # Elements so far, by the state they lead to; each with how it began.
        reached: dict[int, dict[tuple[tuple[Element, ...], int, tuple[int, int]], None]] = {}
        for edge in self.steps[0].edges:
            state = before.states[edge.src] if before.states else None
            begin = ((), state.stack if state else 0, _flight(state))
            reached.setdefault(edge.src, {})[begin] = None
        for i, step in enumerate(self.steps):
            after: dict[int, dict[tuple[tuple[Element, ...], int, tuple[int, int]], None]] = {}
            total = 0
            for edge in step.edges:
                more = tuple(self._element(item, i) for item in edge.items)
                target = after.setdefault(edge.dst, {})
                for elements, stack, flight in reached.get(edge.src, ()):
                    target[(*elements, *more), stack, flight] = None
            total = sum(map(len, after.values()))
            if total > self.most_paths:
                return None
            reached = after
        last = self.steps[-1].entry.after
        assert last is not None
        return tuple(
            Path(elements, -1 if last.states[dst].need == END else last.states[dst].pc, stack, flight)
            for dst, ways in reached.items()
            for elements, stack, flight in ways
        )

    def _element(self, item: Item, step: int) -> Element:
        if not isinstance(item, Repeat):
            return item
        at, added = self.bases[step]
        return Iterations(
            item.body, item.passes + item.factor * added, item.factor, item.step, at if item.factor else 0
        )

    @cached_property
    def strings(self) -> tuple[tuple[Element, ...], ...]:
        """The different paths, of those that are written out."""
        return tuple(dict.fromkeys(path.elements for path in self.paths or ()))

    @property
    def is_certain(self) -> bool:
        """True if exactly one path remains."""
        return self.paths is not None and len(self.strings) == 1

    @cached_property
    def alternatives(self) -> int:
        """Number of different paths that remain; 0: too many to count."""
        return len(self.strings)

    @cached_property
    def registers(self) -> tuple[int, ...]:
        """Steps whose register is needed to know what happened."""
        used = {element.at for path in self.paths or () for element in path.elements if not isinstance(element, int)}
        used |= {self.bases[i][0] for i, remark in self.remarks if remark.factor}
        if self.paths is None:
            used |= {
                self.bases[i][0]
                for i, step in enumerate(self.steps)
                for edge in step.edges
                for item in edge.items
                if isinstance(item, Repeat) and item.factor
            }
        return tuple(sorted(used))

    @cached_property
    def common(self) -> tuple[int, int]:
        """How many elements all paths begin with, and end with."""
        strings = self.strings
        if len(strings) < 2:
            return (len(strings[0]) if strings else 0), 0
        shortest = min(map(len, strings))
        first = strings[0]
        begin = 0
        while begin < shortest and all(string[begin] == first[begin] for string in strings):
            begin += 1
        end = 0
        while end < shortest - begin and all(string[-1 - end] == first[-1 - end] for string in strings):
            end += 1
        return begin, end

    # -- counting

    @cached_property
    def facts(self) -> list[tuple[dict[Fact, Sum], set[Fact]]]:
        """What each path counts, and which of these counts may be any larger."""
        if self.paths is None:
            return []
        return [self._facts(path) for path in dict.fromkeys(self.paths)]

    def _facts(self, path: Path) -> tuple[dict[Fact, Sum], set[Fact]]:
        constant: Counter[Fact] = Counter()
        factors: dict[Fact, Counter[int]] = {}
        unbounded: set[Fact] = set()

        def add(fact: Fact, passes: Iterations) -> None:
            constant[fact] += passes.constant
            if passes.factor:
                factors.setdefault(fact, Counter())[passes.at] += passes.factor
            if passes.step:
                unbounded.add(fact)

        last: int | None = None
        program = self.program
        stack = path.stack
        branch, left = path.flight
        for element in (*path.elements, *((path.follows,) if path.follows >= 0 else ())):
            if not isinstance(element, int):
                for address in element.body:
                    add(("visit", address), element)
                for a, b in zip((element.body[-1], *element.body), element.body, strict=False):
                    add(("edge", a, b), element)
                last = element.body[-1]
                continue
            if last is not None:
                constant["edge", last, element] += 1
            if branch >= 0 and left == 0:
                kind = program.at[branch].kind
                if kind in CALLS:
                    constant["call", stack, branch, element] += 1
                    stack = self._push(stack, program.behind[branch])
                elif kind == RETURN:
                    stack = self._below(stack)
                branch = -1
            last = element
            constant["visit", element] += 1
            if branch >= 0:
                left -= 1
            elif element in program.at and program.at[element].kind in (*CALLS, RETURN):
                branch, left = element, DELAY_SLOTS
        if path.follows >= 0:
            constant["visit", path.follows] -= 1
        sums = {
            fact: (constant[fact], tuple(sorted(factors[fact].items())) if fact in factors else ())
            for fact in {*constant, *factors}
            if constant[fact] or fact in factors
        }
        return sums, unbounded

    def _push(self, stack: int, address: int) -> int:
        return self.machine.push(stack, address)

    def _below(self, stack: int) -> int:
        return self.machine.pop(stack)[0]

    def bounds(self, registers: Sequence[int]) -> tuple[dict[Fact, int], dict[Fact, int], set[Fact]]:
        """Return the least and the most of all that is counted, and which have no most, at registers of its steps.

        Args:
            registers: one for each of ``registers``.
        """
        value = dict(zip(self.registers, registers, strict=True))
        if self.paths is None:
            return self._coarse_bounds(value)
        each = [
            {fact: constant + sum(n * value[at] for at, n in terms) for fact, (constant, terms) in sums.items()}
            for sums, _ in self.facts
        ]
        every: set[Fact] = set().union(*each)
        unbounded: set[Fact] = set().union(*(more for _, more in self.facts))
        least = {fact: min(counts.get(fact, 0) for counts in each) for fact in every}
        most = {fact: max(counts.get(fact, 0) for counts in each) for fact in every}
        return {fact: n for fact, n in least.items() if n}, {fact: n for fact, n in most.items() if n}, unbounded

    def _coarse_bounds(self, value: dict[int, int]) -> tuple[dict[Fact, int], dict[Fact, int], set[Fact]]:
        """Bounds step by step, where there are too many paths: too wide, but never wrong."""
        least: Counter[Fact] = Counter()
        most: Counter[Fact] = Counter()
        unbounded: set[Fact] = set()
        for i, step in enumerate(self.steps):
            counts = []
            at, added = self.bases[i]
            for edge in step.edges:
                visits: Counter[Fact] = Counter()
                for item in edge.items:
                    if isinstance(item, int):
                        visits["visit", item] += 1
                        continue
                    passes = item.passes + item.factor * (value.get(at, 0) + added)
                    for address in item.body:
                        visits["visit", address] += passes
                        if item.step:
                            unbounded.add(("visit", address))
                counts.append(visits)
            for fact in set().union(*counts):
                least[fact] += min(visits[fact] for visits in counts)
                most[fact] += max(visits[fact] for visits in counts)
        return {fact: n for fact, n in least.items() if n}, dict(most), unbounded


def _flight(state: State | None) -> tuple[int, int]:
    if state is None or not state.slots or state.after == FALLS:
        return -1, 0
    return state.branch, state.slots


def addresses(elements: Iterable[Element], registers: dict[int, int]) -> list[int]:
    """Write a path out, loops in full; those of unknown length with their least number of passes."""
    found: list[int] = []
    for element in elements:
        if isinstance(element, int):
            found.append(element)
        else:
            found += element.body * (element.constant + element.factor * registers.get(element.at, 0))
    return found

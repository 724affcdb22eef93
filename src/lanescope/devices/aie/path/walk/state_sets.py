"""Sets of guesses, each worked out once: what may be true between two frames, and how frames lead from one to the next.

A ``StateSet`` holds all states that fit the frames so far. ``Automaton.step`` makes the transition of a belief and a
frame when it is first met; the native core follows those that are known. Counts of loops are kept out of beliefs: they
are relative to one register, so that a loop of a million passes takes a handful of beliefs.
"""

from __future__ import annotations

from dataclasses import dataclass

from lanescope.devices.aie.path.walk.core_model import Machine
from lanescope.devices.aie.path.walk.core_state import (
    END,
    NEED_ADDRESS,
    NEED_ATOM,
    NEED_COUNT,
    NEED_COUNT_AT_END,
    Assumption,
    Item,
    Run,
    State,
    StateLimitExceeded,
)

#: Symbols, as native/core/devices/aie/path_walk.hpp has them.
NOT_TAKEN, TAKEN, ADDRESS_0 = 0, 1, 2
COUNT, WRAPPED_COUNT, SMALL_COUNT_0 = 1 << 15, (1 << 15) + 1, 1 << 16
LEAST_COUNT = 8
START_0, RESUME_0, REGISTER_0 = 1 << 20, 1 << 21, 1 << 22
MOST_REGISTER = 1 << 20
#: Counts of loops that have no other symbol.
ANY_COUNT_0 = 1 << 29
_LAST_ADDRESS = ADDRESS_0 + (1 << 14)

#: Belief number 0: nothing is known, no recording runs.
NOWHERE = 0


@dataclass(frozen=True, slots=True, eq=False)
class StateSet:
    """All states that fit, each with the places of loop frames under which it does."""

    number: int
    states: tuple[State, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Edge:
    """One way from a state of a belief to one of the next.

    Attributes:
        src, dst: positions of the states.
        items: what was executed: from the bundle that the frame is of, up to before the one that needs the next.
        remarks: what it rests on.
        places: places of loop frames under which it holds.
        sure: how many of the items are executed for certain once the frame was seen.
    """

    src: int
    dst: int
    items: tuple[Item, ...]
    remarks: tuple[Assumption, ...]
    places: int
    sure: int


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A transition.

    Attributes:
        number: of the transition.
        symbol: that it is taken under.
        before, after: beliefs; ``after`` is None where nothing fits, or too much does.
        edges: how states lead to states.
        shift: added to the register of loop counts.
        least: the least register for which it holds.
        sets_register: whether its frame sets the register.
        is_frame: whether it takes a frame.
        is_too_many: more states fit than are followed.
    """

    number: int
    symbol: int
    before: StateSet
    after: StateSet | None
    edges: tuple[Edge, ...]
    shift: int = 0
    least: int = 0
    sets_register: bool = False
    is_frame: bool = True
    is_too_many: bool = False


class Automaton:
    """Beliefs and transitions of one machine.

    Args:
        machine: the rules.
        max_states: states of one belief that are followed.
    """

    def __init__(self, machine: Machine, max_states: int) -> None:
        self.machine = machine
        self.max_states = max_states
        self.beliefs: list[StateSet] = []
        self.entries: list[Entry] = []
        self._numbers: dict[frozenset[tuple[State, int]], int] = {}
        self._known: dict[tuple[int, int], Entry] = {}
        self.clear()

    def clear(self) -> None:
        """Forget all, to have room again."""
        self.beliefs = [StateSet(NOWHERE, (), ())]
        self.entries, self._numbers, self._known = [], {}, {}

    def step(self, belief: int, symbol: int) -> Entry:
        """Return the transition of a belief under a symbol."""
        key = (belief, symbol)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._make(self.beliefs[belief], symbol)
        return found

    def exact(self, belief: int, register: int) -> Entry:
        """Return the transition to the same states with their loop counts as they are at this register."""
        key = (belief, REGISTER_0 + register)
        found = self._known.get(key)
        if found is None:
            before = self.beliefs[belief]
            runs = []
            for i, (state, places) in enumerate(zip(before.states, before.places, strict=True)):
                count = state.passes
                if isinstance(count, tuple) and len(count) == 3 and count[2]:
                    state = state._replace(passes=(count[0], count[1] + register, 0))
                runs.append((i, Run(state, places), 0))
            found = self._known[key] = self._entry(before, REGISTER_0 + register, runs, is_frame=False)
        return found

    def _make(self, before: StateSet, symbol: int) -> Entry:
        machine = self.machine
        machine.guard = 0
        begun: list[tuple[int, Run, int]] = []
        try:
            if symbol >= START_0 and symbol < REGISTER_0:
                is_start = symbol < RESUME_0
                starts = machine.start(symbol - START_0) if is_start else machine.resume(symbol - RESUME_0)
                begun = [(0, run, 0) for run in starts]
            else:
                for i, (state, places) in enumerate(zip(before.states, before.places, strict=True)):
                    begun += [(i, run, sure) for run, sure in self._accept(Run(state, places), symbol)]
            reached = [(i, after, sure) for i, run, sure in begun for after in machine.advance(run)]
        except StateLimitExceeded:
            return self._add(Entry(len(self.entries), symbol, before, None, (), is_too_many=True))
        return self._entry(before, symbol, reached, least=machine.guard, sets=symbol in (COUNT, WRAPPED_COUNT))

    def _accept(self, run: Run, symbol: int) -> list[tuple[Run, int]]:
        machine, need = self.machine, run.state.need
        if need == NEED_ATOM and symbol in (TAKEN, NOT_TAKEN):
            return [(after, 1) for after in machine.accept_atom(run, taken=symbol == TAKEN)]
        if need == NEED_ADDRESS and ADDRESS_0 <= symbol < _LAST_ADDRESS:
            return [(after, 1) for after in machine.accept_address(run, symbol - ADDRESS_0)]
        if need in (NEED_COUNT, NEED_COUNT_AT_END) and symbol >= COUNT:
            if symbol == COUNT:
                count = (False, 0, 1)
            elif symbol == WRAPPED_COUNT:
                count = (True, 0, 1)
            else:
                count = (False, symbol - (ANY_COUNT_0 if symbol >= ANY_COUNT_0 else SMALL_COUNT_0), 0)
            sure = int(need == NEED_COUNT_AT_END)
            return [(after, sure) for after in machine.accept_count(run, count)]
        return []

    def _entry(
        self,
        before: StateSet,
        symbol: int,
        reached: list[tuple[int, Run, int]],
        *,
        least: int = 0,
        sets: bool = False,
        is_frame: bool = True,
    ) -> Entry:
        """Join what was reached to a belief."""
        # Counts relative to the register: the largest stands at zero.
        relative = [
            count[1]
            for _, run, _ in reached
            if isinstance(count := run.state.passes, tuple) and len(count) == 3 and count[2]
        ]
        shift = max(relative, default=0)
        # The same way under several places is one way.
        joined: dict[tuple[int, State, tuple[Item, ...], tuple[Assumption, ...], int], int] = {}
        for src, run, sure in reached:
            state = run.state
            count = state.passes
            if shift and isinstance(count, tuple) and len(count) == 3 and count[2]:
                state = state._replace(passes=(count[0], count[1] - shift, 1))
            if state.need == END:
                # Nothing will come of it any more; what it knew besides is of no use.
                state = State(END, state.pc, before=state.before)
            edge = (src, state, run.items, run.remarks, min(sure, len(run.items)))
            joined[edge] = joined.get(edge, 0) | run.places
        places: dict[State, int] = {}
        for (_, state, _, _, _), mask in joined.items():
            places[state] = places.get(state, 0) | mask
        number = len(self.entries)
        if len(places) > self.max_states:
            return self._add(Entry(number, symbol, before, None, (), is_too_many=True, is_frame=is_frame))
        if not places:
            return self._add(Entry(number, symbol, before, None, (), is_frame=is_frame))
        after = self.belief(places)
        position = {state: i for i, state in enumerate(after.states)}
        edges = tuple(
            Edge(src, position[state], items, remarks, mask, sure)
            for (src, state, items, remarks, sure), mask in joined.items()
        )
        return self._add(Entry(number, symbol, before, after, edges, shift, least, sets, is_frame))

    def _add(self, entry: Entry) -> Entry:
        self.entries.append(entry)
        return entry

    def belief(self, places: dict[State, int]) -> StateSet:
        """Return the belief that holds these states, each with its places."""
        key = frozenset(places.items())
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.beliefs)
            self.beliefs.append(StateSet(number, tuple(places), tuple(places.values())))
        return self.beliefs[number]

"""From the frames of recordings to the path of the program: every guess that fits is followed, none is preferred.

Beliefs go forward through the frames; what later frames exclude is taken out again on the way back, which is begun
wherever one state is left. What remains is cut into windows, and windows that read the same are looked at once: memory
is bounded by the program, not by the recording, unless the path itself is asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.common.distinct import distinct
from lanescope.devices.aie.formats.layout import FLOW_KINDS, WRAPPED_TRIPS
from lanescope.devices.aie.path.program.program import Program
from lanescope.devices.aie.path.walk import state_sets as table
from lanescope.devices.aie.path.walk.core_model import Machine
from lanescope.devices.aie.path.walk.core_state import UNKNOWN, Erratum
from lanescope.devices.aie.path.walk.lead import FetchLead
from lanescope.devices.aie.path.walk.state_sets import NOWHERE, Automaton, Entry
from lanescope.devices.aie.path.walk.walk_counts import CallNode, Counts, WindowCounter
from lanescope.devices.aie.path.walk.windows import MOST_PATHS, MOST_STEPS, Resolved, Window

I64 = npt.NDArray[np.int64]
I32 = npt.NDArray[np.int32]
U8 = npt.NDArray[np.uint8]
Bools = npt.NDArray[np.bool_]

START, RESTART, NEW_PC, TAKEN, NOT_TAKEN, LOOP, STOP = range(len(FLOW_KINDS))
#: States of one belief that are followed.
MAX_STATES = 4000
#: Steps between two looks back.
_CHUNK = 1 << 18
#: Transitions that are kept; beyond, all is forgotten and worked out again.
_MOST_KEPT = 1 << 17
#: Windows beyond which they are cut at each frame: a recording that never reads the same twice.
_MOST_WINDOWS = 1 << 14
#: In place of a window's number: inside of one. Below it are pairs of windows that end at once.
_INSIDE = -1
_NO_ENDS = np.zeros(0, np.int64)
_ADDRESS_MASK = (1 << 14) - 1
#: Stretches of one recording that are walked; one that contradicts its program so often has another.
_MOST_PIECES = 20_000
#: Why the native walk halts.
_DONE, _FULL, _MISSING, _DEAD, _SMALL, _ODD = range(6)
#: Why a stretch of frames has no path.
REASONS = {
    "start": "the recording does not begin with a Start",
    "loss": "frames before it are lost",
    "cap": "more guesses fit than are followed",
    "contradiction": "no path of the program fits: frames are lost unmarked, or another program ran",
    "outside": "it begins outside of the program",
}


@dataclass(frozen=True, slots=True, eq=False)
class Stream:
    """The rows of one recording in execution mode.

    Attributes:
        kind: uint8 [n], index into ``FLOW_KINDS``.
        value: int64 [n], address, or trips with bit 28 for those that the frame has no room for.
        count: int64 [n], how often in a row.
        is_after_loss: bool [n], frames before the row are lost.
    """

    kind: U8
    value: I64
    count: I64
    is_after_loss: Bools


class Unresolved(NamedTuple):
    """Rows that no path is known for: the first and the last of them, and why (of ``REASONS``)."""

    first: int
    last: int
    reason: str


@dataclass(eq=False)
class Section:
    """A stretch of rows that was walked through.

    Attributes:
        first: the row of its Start, or of the address that it was resumed at.
        last: the last row that fits.
        anchor: address that it begins at.
        is_resumed: it begins behind a transfer to ``anchor``, with nothing known of loops and callers.
        is_trusted: nothing contradicts it.
        reason: why it ends before the recording does.
        places: places of loop frames that fit.
        tail: what the last frame leaves open; ``last_register``: the register at it.
        numbers, rows, begins: if the path is kept: number, first and last row [n, 2], and first step of each window.
        registers: register of each step.
    """

    first: int
    last: int
    anchor: int
    is_resumed: bool
    is_trusted: bool = True
    reason: str = ""
    places: int = 0
    tail: Resolved | None = None
    last_register: int = 0
    numbers: list[I64] = field(default_factory=list)
    rows: list[I64] = field(default_factory=list)
    begins: list[I64] = field(default_factory=list)
    registers: list[I64] = field(default_factory=list)
    steps: int = 0


@dataclass(eq=False)
class Walk:
    """Result of a walk through one segment.

    Attributes:
        pieces: stretches with a path, in order.
        unresolved: stretches without.
        counts: what happened how often.
        crowd: most states that fitted at a time.
    """

    pieces: list[Section] = field(default_factory=list)
    unresolved: list[Unresolved] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    crowd: int = 1


class Walker:
    """Walks recordings of one program.

    Args:
        program: the program.
        errata: what the device is known to do.
        max_states: states that are followed at a time.
        use_constants: whether registers are followed.
        keeps_path: whether the order of windows is kept: memory grows with the recording then.
        most_paths: paths of a window that are written out.
        chunk: steps between two looks back.
        most_kept: transitions that are kept; beyond, all is forgotten and worked out again.
        wrap: trips that a loop frame has no room for.
    """

    def __init__(
        self,
        program: Program,
        errata: Erratum = UNKNOWN,
        *,
        max_states: int = MAX_STATES,
        use_constants: bool = True,
        keeps_path: bool = False,
        most_paths: int = MOST_PATHS,
        chunk: int = _CHUNK,
        most_kept: int = _MOST_KEPT,
        wrap: int = WRAPPED_TRIPS,
    ) -> None:
        self.program = program
        self.machine = Machine(program, errata, wrap=wrap, use_constants=use_constants)
        self._counter = WindowCounter(program, self.machine, most_paths)
        self._lead = FetchLead(self.machine)
        self._keeps_path = keeps_path
        self._most_kept = most_kept
        self._automaton = Automaton(self.machine, max_states)
        self._entries = np.empty(chunk, np.int32)
        self._registers = np.empty(chunk, np.int64)
        self._walk = Walk()
        self._taken = 0
        self._ends = _NO_ENDS
        #: Addresses that a walk can be resumed at.
        self._resumable = np.zeros(_ADDRESS_MASK + 1, np.bool_)
        for bundle in program.bundles:
            self._resumable[bundle.address & _ADDRESS_MASK] = bool(self.machine.resume(bundle.address))
        self._begin_tables()

    @property
    def windows(self) -> list[Window]:
        """The windows that were met, by number."""
        return self._counter.windows

    @property
    def nodes(self) -> list[CallNode]:
        """Functions as they were called, by number."""
        return self._counter.nodes

    def walk(self, stream: Stream) -> Walk:
        """Walk through one recording."""
        walk = self._walk = Walk()
        kinds = stream.kind
        self._ends = np.cumsum(stream.count) if self._keeps_path else _NO_ENDS
        marks = np.flatnonzero((kinds == START) | (kinds == RESTART) | stream.is_after_loss)
        begins = distinct(np.concatenate([np.zeros(min(1, len(kinds)), np.int64), marks])).tolist()
        for first, end in zip(begins, [*begins[1:], len(kinds)], strict=True):
            self._stretch(stream, first, end)
        return walk

    # -- stretches between losses

    def _stretch(self, stream: Stream, first: int, end: int) -> None:
        kinds = stream.kind
        stops = np.flatnonzero(kinds[first:end] == STOP)
        end = first + int(stops[0]) if len(stops) else end
        at, reason = first, "loss" if first else "start"
        if first < end and kinds[first] in (START, RESTART):
            at, reason = self._piece(stream, first, end)
        # Behind a loss the next address is where the program is again.
        addresses = first + np.flatnonzero(kinds[first:end] == NEW_PC)
        addresses = addresses[self._resumable[stream.value[addresses] & _ADDRESS_MASK]]
        next_one = 0
        while at < end:
            next_one += int(np.searchsorted(addresses[next_one:], at))
            is_hopeless = len(self._walk.pieces) > _MOST_PIECES
            resume = int(addresses[next_one]) if next_one < len(addresses) and not is_hopeless else end
            if resume > at:
                self._abort(stream, at, resume, reason)
            at, reason = self._piece(stream, resume, end) if resume < end else (end, "")

    def _abort(self, stream: Stream, first: int, end: int, reason: str) -> None:
        self._walk.unresolved.append(Unresolved(first, end - 1, reason))
        # Of the row that a piece broke at, some repeats may have fitted.
        self._walk.counts.frames["unresolved"] += int(stream.count[first:end].sum()) - self._taken
        self._taken = 0
        self._walk.counts.windows["unresolved"] += 1

    def _piece(self, stream: Stream, first: int, end: int) -> tuple[int, str]:
        """Walk from a row on; return the row that it ends before, and why if that is not ``end``."""
        if len(self._automaton.entries) > self._most_kept:
            self._forget()
        anchor = int(stream.value[first])
        is_resumed = bool(stream.kind[first] == NEW_PC)
        begun = self._automaton.step(NOWHERE, (table.RESUME_0 if is_resumed else table.START_0) + anchor)
        if begun.after is None:
            reason = "cap" if begun.is_too_many else "outside"
            self._abort(stream, first, first + 1, reason)
            return first + 1, reason
        piece = Section(first, end - 1, anchor, is_resumed)
        # A resumed piece begins behind its address: there is nothing more to read from that row.
        row, why = self._follow(piece, stream, begun, end)
        piece.last, piece.reason, piece.is_trusted = row - 1, why, why != "contradiction"
        self._walk.pieces.append(piece)
        self._counter.drain()
        if piece.tail is not None:
            self._counter.add_tail(piece.tail, piece.last_register)
        if not is_resumed:
            self._walk.counts.most.update(self._lead.most(anchor))
        self._walk.counts.add(self._counter.take(), is_trusted=piece.is_trusted)
        return row, why

    def _follow(self, piece: Section, stream: Stream, begun: Entry, end: int) -> tuple[int, str]:
        assert begun.after is not None
        kind, value, count = stream.kind[:end], stream.value[:end], stream.count[:end]
        ends = self._ends[piece.first + 1 : end]
        entries, registers = self._entries, self._registers
        entries[0], registers[0], steps = begun.number, 0, 1
        row, taken, state, register = piece.first + 1, 0, begun.after.number, 0
        self._walk.crowd = max(self._walk.crowd, len(begun.after.states))
        reason = ""
        self._taken = 0
        while True:
            why, row, taken, state, register, steps = self._forward.walk(
                kind, value, count, row, taken, state, register, entries, registers, steps
            )
            if why == _DONE:
                break
            if why == _FULL:
                steps = self._commit(piece, steps, ends)
                if len(self._automaton.entries) > self._most_kept and steps == 1:
                    state = self._restart()
                continue
            symbol = _symbol(int(kind[row]), int(value[row]))
            if why == _MISSING:
                self._learn(state, symbol)
                continue
            if why == _SMALL:
                # A count so small that it has to be known exactly.
                if kind[row] == LOOP:
                    symbol = table.ANY_COUNT_0 + (int(value[row]) & (1 << 28) - 1)
                    found = self._automaton.step(state, symbol)
                    if found.after is not None:
                        entries[steps], registers[steps], steps = found.number, register, steps + 1
                        state, taken = found.after.number, taken + 1
                        row, taken = (row + 1, 0) if taken >= count[row] else (row, taken)
                        continue
                elif 0 <= register < table.MOST_REGISTER:
                    exact = self._automaton.exact(state, register)
                    assert exact.after is not None
                    self._forward.add(state, table.REGISTER_0 + register, exact.number, exact.after.number, 0, 0)
                    continue
            reason = "cap" if self._automaton.step(state, symbol).is_too_many else "contradiction"
            self._taken = taken
            break
        self._commit(piece, steps, ends, is_end=True)
        return row, reason

    def _learn(self, state: int, symbol: int) -> None:
        entry = self._automaton.step(state, symbol)
        after = -1
        if entry.after is not None:
            self._walk.crowd = max(self._walk.crowd, len(entry.after.states))
            after = entry.after.number
        self._forward.add(state, symbol, entry.number, after, entry.shift, entry.least)

    # -- looking back

    def _begin_tables(self) -> None:
        self._forward, self._backward = core.AieTransitions(self.machine.wrap), core.AieTransitions()
        self._resolved: list[Resolved] = []
        #: Sets of states that later frames left over, as places of each; number 0: all of them.
        self._alive: list[tuple[int, ...]] = [()]
        self._alive_of: dict[tuple[int, ...], int] = {}
        self._flags = np.zeros((0, 2), np.bool_)
        self._tree = core.AieTransitions()
        self._branches: list[tuple[int, ...]] = [()]
        self._pairs: list[tuple[int, int]] = []
        self._leaves: dict[tuple[int, ...], int] = {}

    def _forget(self) -> None:
        """Forget all transitions, to have room again."""
        self._counter.drain()
        self._begin_tables()
        self._automaton.clear()
        if not self._keeps_path:
            self._counter.forget()
            self.machine.forget_stacks()

    def _restart(self) -> int:
        """Forget all but the last step; return the number of the belief that it leads to."""
        last = self._automaton.entries[self._entries[0]]
        before = last.before
        stacks = [self.machine.addresses(state.stack) for state in before.states]
        self._forget()
        states = [
            state._replace(stack=self.machine.stack_of(addresses))
            for state, addresses in zip(before.states, stacks, strict=True)
        ]
        number = NOWHERE
        if before.number != NOWHERE:
            number = self._automaton.belief(dict(zip(states, before.places, strict=True))).number
        if last.symbol >= table.REGISTER_0 and last.symbol < table.ANY_COUNT_0:
            again = self._automaton.exact(number, last.symbol - table.REGISTER_0)
        else:
            again = self._automaton.step(number, last.symbol)
        assert again.after is not None
        self._entries[0] = again.number
        return again.after.number

    def _entry_flags(self) -> npt.NDArray[np.bool_]:
        """For each transition: whether one state is behind it, whether it takes a frame."""
        known = self._automaton.entries
        if len(self._flags) < len(known):
            more = [(e.after is not None and len(e.after.states) == 1, e.is_frame) for e in known[len(self._flags) :]]
            self._flags = np.concatenate([self._flags, np.array(more, np.bool_).reshape(-1, 2)])
        return self._flags

    def _commit(self, piece: Section, steps: int, ends: I64, *, is_end: bool = False) -> int:
        """Settle what is behind; return the steps that are left to be settled, moved to the begin."""
        flags = self._entry_flags()
        entries, registers = self._entries[:steps], self._registers[:steps]
        cut = steps
        if not is_end:
            # The last step stays: if it is the very last one, only its bundle is certain.
            settled = np.flatnonzero(flags[entries[:-1], 0])
            cut = int(settled[-1]) + 1 if len(settled) else steps - 1
        resolved = self._backtrack(entries[:cut])
        whole = cut
        if is_end:
            # Of the last frame only its bundle is certain.
            whole = cut - 1
            piece.tail = self._resolved[resolved[-1]]
            piece.last_register = int(registers[-1])
            after = piece.tail.entry.after
            assert after is not None
            piece.places = 0
            for places in after.places:
                piece.places |= places
        numbers, begins = self._cut(resolved[:whole])
        self._counter.count(numbers, begins, registers)
        if self._keeps_path and whole:
            # Frames up to each step, the start not among them.
            frames = np.cumsum(flags[entries[:whole], 1]) - 1 + piece.steps
            lasts = np.append(begins[1:], whole) - 1
            wanted = np.stack([frames[begins], frames[lasts]], axis=1)
            before = int(self._ends[piece.first])
            rows = np.searchsorted(ends, wanted + before, side="left")
            piece.numbers.append(numbers)
            piece.rows.append(piece.first + 1 + rows - (wanted == 0))
            piece.begins.append(begins + sum(map(len, piece.registers)))
            piece.registers.append(registers[:whole].copy())
            piece.steps = int(frames[-1]) + 1
        self._entries[: steps - cut] = entries[cut:].copy()
        self._registers[: steps - cut] = registers[cut:].copy()
        return steps - cut

    def _backtrack(self, entries: I32) -> I32:
        """Take out what later frames exclude; return numbers of resolved transitions."""
        backwards = np.ascontiguousarray(entries[::-1])
        found = np.empty_like(backwards)
        at, alive = 0, 0
        while at < len(backwards):
            done, alive = self._backward.follow(alive, backwards[at:], found[at:])
            at += done
            if at < len(backwards):
                number, before = self._resolve(self._automaton.entries[backwards[at]], alive)
                self._backward.add(alive, int(backwards[at]), number, before)
        return np.ascontiguousarray(found[::-1])

    def _resolve(self, entry: Entry, alive: int) -> tuple[int, int]:
        """Return the number of a transition with the states behind it that are left, and the set before it."""
        assert entry.after is not None
        left = self._alive[alive] if alive else entry.after.places
        before = [0] * len(entry.before.states)
        edges = []
        for edge in entry.edges:
            places = edge.places & left[edge.dst]
            if places:
                edges.append(edge)
                if before:
                    before[edge.src] |= places
        agrees = len({edge.items for edge in edges}) == 1
        self._resolved.append(Resolved(entry, tuple(edges), sum(map(bool, left)), agrees))
        key = tuple(before)
        if key == entry.before.places:
            return len(self._resolved) - 1, 0
        if key not in self._alive_of:
            self._alive_of[key] = len(self._alive)
            self._alive.append(key)
        return len(self._resolved) - 1, self._alive_of[key]

    # -- windows

    def _cut(self, resolved: I32) -> tuple[I64, I64]:
        """Cut resolved transitions into windows; return the number of each, and where it begins."""
        out = np.empty(len(resolved), np.int32)
        node = at = 0
        while at < len(resolved):
            done, node = self._tree.follow(node, resolved[at:], out[at:])
            at += done
            if at < len(resolved):
                self._grow(node, int(resolved[at]))
        if node:
            # Several states are left at the end.
            out[-1] = self._leaf(self._branches[node])
        ends = np.flatnonzero(out != _INSIDE)
        codes = out[ends].astype(np.int64)
        pairs = codes < _INSIDE
        if pairs.any():
            two = np.array(self._pairs, np.int64)[_INSIDE - 1 - codes[pairs]]
            times = np.where(pairs, 2, 1)
            # Where two end at once, the first ends one step earlier.
            place = np.cumsum(times) - 1
            codes, ends = np.repeat(codes, times), np.repeat(ends, times)
            codes[place[pairs] - 1], codes[place[pairs]] = two[:, 0], two[:, 1]
            ends[place[pairs] - 1] -= 1
        begins = np.concatenate([np.zeros(min(1, len(ends)), np.int64), ends[:-1] + 1])
        return codes, begins

    def _grow(self, node: int, symbol: int) -> None:
        before = self._branches[node]
        path = (*before, symbol)
        step = self._resolved[symbol]
        limit = MOST_STEPS if len(self._leaves) < _MOST_WINDOWS else 1
        if step.agrees and before:
            # All states did the same in this step, whatever they were apart on before.
            self._tree.add(node, symbol, _INSIDE - 1 - len(self._pairs), 0)
            self._pairs.append((self._leaf(before), self._leaf((symbol,))))
        elif step.agrees or step.states_after == 1 or len(path) >= limit:
            self._tree.add(node, symbol, self._leaf(path), 0)
        else:
            self._tree.add(node, symbol, _INSIDE, len(self._branches))
            self._branches.append(path)

    def _leaf(self, path: tuple[int, ...]) -> int:
        number = self._leaves.get(path)
        if number is None:
            steps = tuple(self._resolved[symbol] for symbol in path)
            number = self._leaves[path] = self._counter.add_window(steps)
        return number


def _symbol(kind: int, value: int) -> int:
    """The symbol of a row, as the native core makes it."""
    if kind == TAKEN:
        return table.TAKEN
    if kind == NOT_TAKEN:
        return table.NOT_TAKEN
    if kind == NEW_PC:
        return table.ADDRESS_0 + (value & 0x3FFF)
    if value >> 28 & 1:
        return table.WRAPPED_COUNT
    trips = value & (1 << 28) - 1
    return table.SMALL_COUNT_0 + trips if trips < table.LEAST_COUNT else table.COUNT

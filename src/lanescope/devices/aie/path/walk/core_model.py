"""What a core may do from a state of which only part is known: the rules of branches, slots, stack and loops.

A state is one complete guess. ``Machine.advance`` lets it run to where it needs a frame, ``Machine.accept`` gives it
one; either may fork. Slow and plain: ``automaton`` sees to it that each situation is worked out once.

Source: five delay slots, frames of each branch class, loop registers: measured or published, see the format tables;
what hardware does where nobody has looked is an ``Erratum`` that is left open.
"""

from __future__ import annotations

import enum
from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from lanescope.devices.aie.formats.layout import WRAPPED_TRIPS
from lanescope.devices.aie.path.program.program import (
    ADDRESS,
    ATOM,
    BRANCH,
    BRANCHES,
    CALL_INDIRECT,
    CALLS,
    DELAY_SLOTS,
    DIRECT,
    HALT,
    JUMP,
    JUMP_INDIRECT,
    PLAIN,
    RETURN,
    Bundle,
    Program,
)


class Erratum(enum.Flag):
    """What a device may do where it is not known; several of a kind mean: any of these."""

    LC_AT_WRITE = enum.auto()  # the loop frame comes when the counter is loaded
    LC_AT_BODY = enum.auto()  # before the first bundle of the body
    LC_AT_END = enum.auto()  # when the last bundle of the body is first passed
    FRAME_AT_ISSUE = enum.auto()  # a branch is told when it issues
    FRAME_AFTER_SLOTS = enum.auto()  # after its delay slots
    CALL_LEAVES_LOOP = enum.auto()  # a call whose slots end a loop's body returns behind the loop
    CALL_STAYS_IN_LOOP = enum.auto()  # it returns to the loop's begin
    START_IN_STALL = enum.auto()  # a Start at the end of fetch's lead behind a lock request: the request stalls
    START_IN_SLOTS = enum.auto()  # or the branch between them has issued

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return str(self.name).lower().replace("_", "-")


#: Errata of one kind: at least one of each holds.
KINDS = (
    Erratum.LC_AT_WRITE | Erratum.LC_AT_BODY | Erratum.LC_AT_END,
    Erratum.FRAME_AT_ISSUE | Erratum.FRAME_AFTER_SLOTS,
    Erratum.CALL_LEAVES_LOOP | Erratum.CALL_STAYS_IN_LOOP,
    Erratum.START_IN_STALL | Erratum.START_IN_SLOTS,
)
#: What is known of all devices: only the state at a Start was seen on hardware.
UNKNOWN = KINDS[0] | KINDS[1] | KINDS[2] | Erratum.START_IN_STALL
ERRATUM_DOCS = {
    Erratum.LC_AT_WRITE: "a loop frame comes when the loop counter is loaded",
    Erratum.LC_AT_BODY: "a loop frame comes before the first bundle of the body",
    Erratum.LC_AT_END: "a loop frame comes when the last bundle of the body is first passed",
    Erratum.FRAME_AT_ISSUE: "a branch is told when it issues",
    Erratum.FRAME_AFTER_SLOTS: "a branch is told after its delay slots",
    Erratum.CALL_LEAVES_LOOP: "a call whose delay slots end a loop's body returns behind the loop",
    Erratum.CALL_STAYS_IN_LOOP: "a call whose delay slots end a loop's body returns to the begin of the body",
    Erratum.START_IN_STALL: "a Start at the last delay slot of a branch behind a lock request: the request stalls",
    Erratum.START_IN_SLOTS: "such a Start: the branch has issued, and its frame came before",
}


def settled(known: Erratum) -> Erratum:
    """Return errata with what may be of a kind where none is said."""
    for kind in KINDS:
        known = known if known & kind else known | kind & UNKNOWN
    return known


#: Bits of places where loop frames may come.
AT_WRITE, AT_BODY, AT_END = 1, 2, 4
PLACES = {Erratum.LC_AT_WRITE: AT_WRITE, Erratum.LC_AT_BODY: AT_BODY, Erratum.LC_AT_END: AT_END}
#: Bundles between the fetched address and the branch that retires.
LOOKAHEAD = 6
#: Calls in each other that a stack remembers. A core has room for few; beyond, the outer half is forgotten.
MOST_CALLS = 256

#: What a state waits for: nothing yet, an atom, an address, a loop count, a count at the end of the body; END: nothing.
RUN, NEED_ATOM, NEED_ADDRESS, NEED_COUNT, NEED_COUNT_AT_END, END = range(6)
#: Values of ``State.after`` that are no address: no transfer; a transfer whose frame came before the start.
FALLS, ANYWHERE = -1, -2

#: Passes that are left of a loop, the current one included: (is a lower bound modulo 2**28, constant, times register);
#: or that the counter was loaded but its frame has not come, where; or that it runs but nobody knows how long.
Count = tuple[bool, int, int]
ZERO: Count = (False, 0, 0)


class PendingLoop(NamedTuple):
    """The loop counter was loaded; its frame has not come."""

    address: int


class OngoingLoop(NamedTuple):
    """A loop that began before the recording."""

    why: str = "before"


RUNNING = OngoingLoop()


class State(NamedTuple):
    """One guess.

    Attributes:
        need: what it waits for.
        pc: the bundle that is next.
        slots: delay slots that are left.
        after: where the branch in flight goes after them.
        branch: address of the branch in flight, -1: none.
        stack: number of its shadow call stack; below its bottom nothing is known.
        ls, le: loop addresses, None: not known.
        passes: passes left, None: not known.
        registers: watched registers with known values.
        before: (steps in which the anchor must be met, anchor) until it was met.
    """

    need: int
    pc: int
    slots: int = 0
    after: int = FALLS
    branch: int = -1
    stack: int = 0
    ls: int | None = None
    le: int | None = None
    passes: Count | PendingLoop | OngoingLoop | None = None
    registers: tuple[tuple[str, int], ...] = ()
    before: tuple[int, int] | None = None


class Repeat(NamedTuple):
    """A loop body without any decision, passed several times: ``passes + factor * register``, or more.

    Attributes:
        body: addresses of one pass.
        passes: constant part.
        factor: 1: the register of loop counts is added.
        step: 0: exactly so often; else any multiple of it more.
    """

    body: tuple[int, ...]
    passes: int
    factor: int
    step: int


Item = int | Repeat


class Assumption(NamedTuple):
    """Something that a piece of path rests on, or says of a loop.

    Attributes:
        kind: ``inferred`` (a constant nobody saw written), ``searched`` (a target that was tried), ``open_return``
            (a return below the bottom of the stack), ``stall`` (the lock request that a Start fell into), ``start``
            (a bundle before the fetched one whose frame is the first), ``in_flight`` (a branch whose frame came before
            the Start, and where it went), ``loop``.
        address: of the branch, or the last bundle of the loop.
        value: the target; the fetched address; passes of the loop, constant part; -1: not known.
        factor: loops: the register is added.
        is_least: loops: passes are a lower bound.
    """

    kind: str
    address: int
    value: int
    factor: int = 0
    is_least: bool = False


class Run(NamedTuple):
    """A state, the places of loop frames that it believes in, and what was passed on the way to it."""

    state: State
    places: int
    items: tuple[Item, ...] = ()
    remarks: tuple[Assumption, ...] = ()


#: A state, what was passed on the way to it besides the bundle itself, and what that rests on.
Step = tuple[State, tuple[Item, ...], tuple[Assumption, ...]]


class StateLimitExceeded(Exception):
    """More forks than anybody wants to follow."""


class Machine:
    """The rules for one program.

    Args:
        program: the program.
        errata: what the device is known to do.
        wrap: trips that a loop frame has no room for.
        use_constants: whether registers are followed at all.
    """

    def __init__(
        self,
        program: Program,
        errata: Erratum = UNKNOWN,
        *,
        wrap: int = WRAPPED_TRIPS,
        use_constants: bool = True,
    ) -> None:
        self.program = program
        self.errata = settled(errata)
        self.places = sum(bit for erratum, bit in PLACES.items() if erratum in self.errata)
        self.wrap = wrap
        self.reach = LOOKAHEAD + (DELAY_SLOTS if Erratum.FRAME_AFTER_SLOTS in self.errata else 0)
        self._constants = program.constants if use_constants else {}
        self._use_constants = use_constants
        self._at = program.at
        self._slots = program.slots
        self._behind = program.behind
        self._loops = program.loops
        self._forgets = program.is_self_contained
        self._pairs = [(ls, le) for le, starts in program.loops.items() for ls in starts]
        self._loop_of = self._setups()
        self.forget_stacks()
        self._sites: dict[tuple[int, int], frozenset[int]] = {}
        self._bodies: dict[tuple[object, ...], tuple[int, ...] | None] = {}
        self._most_steps = 4 * len(program.bundles) + 64
        #: The least register of loop counts under which what was worked out since the last reset is right.
        self.guard = 0

    # -- stacks

    def push(self, stack: int, address: int) -> int:
        """Return the stack with a return address on it."""
        if self._depths[stack] >= MOST_CALLS:
            stack = self.stack_of(self.addresses(stack)[-MOST_CALLS // 2 :])
        key = (stack, address)
        found = self._stack_of.get(key)
        if found is None:
            found = self._stack_of[key] = len(self._stacks)
            self._stacks.append(key)
            self._depths.append(self._depths[stack] + 1)
        return found

    def pop(self, stack: int) -> tuple[int, int]:
        """Return (the stack below, the return address on top)."""
        return self._stacks[stack]

    @property
    def stacks(self) -> int:
        """How many stacks were met."""
        return len(self._stacks)

    def addresses(self, stack: int) -> tuple[int, ...]:
        """Return the return addresses of a stack, from the bottom up."""
        found = []
        while stack:
            stack, address = self._stacks[stack]
            found.append(address)
        return tuple(reversed(found))

    def stack_of(self, addresses: Iterable[int]) -> int:
        """Return the stack of these return addresses."""
        stack = 0
        for address in addresses:
            stack = self.push(stack, address)
        return stack

    def forget_stacks(self) -> None:
        """Forget all stacks; states that hold any must not be used again."""
        self._stacks: list[tuple[int, int]] = [(0, 0)]
        self._depths = [0]
        self._stack_of: dict[tuple[int, int], int] = {}

    def return_sites(self, address: int) -> frozenset[int]:
        """Return where a return from the function of an address may go, by the calls that the listing shows."""
        function = self.program.extent(address)
        if function not in self._sites:
            self._sites[function] = frozenset(self._callers(function))
        return self._sites[function]

    def _callers(self, function: tuple[int, int]) -> Iterable[int]:
        """Return sites of calls into a function, and into those that go on in it by a jump."""
        known, waiting = {function}, [function]
        while waiting:
            first, end = waiting.pop()
            for b in self.program.bundles:
                is_into = b.target is None or first <= b.target < end
                if b.kind in CALLS and b.address in self._behind and is_into:
                    behind = self._behind[b.address]
                    yield behind
                    slot = self.program.bundles[self.program.index[b.address] + DELAY_SLOTS].address
                    yield from self._loops.get(slot, ())
                is_jump = b.kind in DIRECT | {BRANCH} and is_into and not first <= b.address < end
                if is_jump or (b.end == first and self._falls_on(b)):
                    other = self.program.extent(b.address)
                    if other not in known:
                        known.add(other)
                        waiting.append(other)

    def _falls_on(self, bundle: Bundle) -> bool:
        """Whether the program goes on behind the last bundle of a function, padding aside."""
        i = self.program.index[bundle.address]
        while i and bundle.kind == PLAIN and bundle.address not in self._slots and not bundle.text.strip("nop; \t"):
            i -= 1
            bundle = self.program.bundles[i]
        branch, slot = self._slots.get(bundle.address, (bundle, 0))
        return not (branch.kind == HALT or (slot == DELAY_SLOTS and branch.kind in (JUMP, JUMP_INDIRECT, RETURN)))

    def _setups(self) -> dict[int, tuple[int, int]]:
        """The loop that a load of the counter belongs to: the first one behind it in its function."""
        found: dict[int, tuple[int, int]] = {}
        pairs = sorted(self._pairs)
        for bundle in self.program.bundles:
            if bundle.sets_lc:
                i = bisect_right(pairs, (bundle.address, 1 << 62))
                if i < len(pairs) and pairs[i][0] < self.program.extent(bundle.address)[1]:
                    found[bundle.address] = pairs[i]
        return found

    # -- starts

    def start(self, anchor: int) -> list[Run]:
        """Return where a recording may have begun that says which address was fetched then."""
        if anchor not in self._at:
            return []
        stalls = self._stalls(anchor)
        found = (
            []
            if stalls and Erratum.START_IN_SLOTS not in self.errata
            else [Run(self._fresh_state(anchor), self.places)]
        )
        said = (Assumption("stall", stalls[0], anchor),) if stalls and not found else ()
        heads = {ls for ls, _ in self._pairs} if self.places & AT_BODY else set()
        for bundle in self.program.bundles:
            at = bundle.address
            if bundle.kind in ATOM | ADDRESS or bundle.sets_lc or at in self._loops or at in heads:
                state = self._fresh_state(at)._replace(before=(self.reach + 1, anchor))
                begun = (Assumption("start", at, anchor),) if at != anchor else ()
                found.append(Run(state, self.places, (), said + begun))
        return found

    def _stalls(self, anchor: int) -> list[int]:
        """Return the lock requests that may stall while an address is fetched that is as far ahead as fetch gets."""
        branch, slot = self._slots.get(anchor, (None, 0))
        if branch is None or slot != DELAY_SLOTS:
            return []
        # Fetch waits at the last slot of a branch that has not issued.
        i = self.program.index[anchor]
        ahead = self.program.bundles[max(0, i - LOOKAHEAD) : self.program.index[branch.address] + 1]
        return [bundle.address for bundle in ahead if bundle.requests_lock]

    def resume(self, address: int) -> list[Run]:
        """Return the state after a transfer to an address, nothing else being known."""
        if address not in self._at or address in self._slots:
            return []
        return [Run(State(RUN, address), self.places)]

    def _fresh_state(self, address: int) -> State:
        if address not in self._slots:
            return State(RUN, address)
        branch, slot = self._slots[address]
        return State(RUN, address, DELAY_SLOTS - slot + 1, ANYWHERE, branch.address)

    # -- running

    def advance(self, run: Run) -> list[Run]:
        """Run up to the next bundles that need a frame.

        Raises:
            TooMany: it forks too often.
        """
        out: list[Run] = []
        work = [run]
        forks = 0
        while work:
            forks += 1
            if forks > 4096:
                raise StateLimitExceeded
            self._advance(work.pop(), work, out)
        return out

    def _advance(self, run: Run, work: list[Run], out: list[Run]) -> None:
        state, places, items, remarks = run
        path = list(items)
        for _ in range(self._most_steps):
            if state.before is not None:
                left, anchor = state.before
                if state.pc == anchor:
                    work.append(Run(state._replace(before=None), places, (), remarks))
                if left == 1:
                    return
                state = state._replace(before=(left - 1, anchor))
            bundle = self._at.get(state.pc)
            if bundle is None or (bundle.kind == HALT and not state.slots):
                if bundle is not None and state.before is None:
                    path.append(bundle.address)
                out.append(Run(state._replace(need=END), places, tuple(path), remarks))
                return
            places = self._wait_for_count(state, bundle, places, path, remarks, out)
            if not places:
                return
            if bundle.kind in BRANCHES and not state.slots:
                if bundle.kind not in DIRECT:
                    need = NEED_ATOM if bundle.kind in ATOM else NEED_ADDRESS
                    out.append(Run(state._replace(need=need), places, tuple(path), remarks))
                    return
                if state.before is None:
                    path.append(bundle.address)
                state = self._issue(state, bundle, bundle.target if bundle.target is not None else FALLS)
                follow: list[Step] = [(state, (), ())]
            else:
                if state.before is None:
                    path.append(bundle.address)
                follow = self._finish(self._effects(state, bundle), bundle)
            if bundle.sets_lc and places & AT_WRITE:
                for after, more, said in follow:
                    waiting = after._replace(need=NEED_COUNT)
                    out.append(Run(waiting, AT_WRITE, (*path, *more), remarks + said))
                places &= ~AT_WRITE
            if not follow or not places:
                return
            for after, more, said in follow[1:]:
                work.append(Run(after, places, (*path, *more), remarks + said))
            state, more, said = follow[0]
            path += more
            remarks += said
        # So long without a decision: it goes round in circles and will never take one.
        out.append(Run(state._replace(need=END), places, tuple(path), remarks))

    def _wait_for_count(
        self,
        state: State,
        bundle: Bundle,
        places: int,
        path: list[Item],
        remarks: tuple[Assumption, ...],
        out: list[Run],
    ) -> int:
        """Wait for a loop frame where one may be due before this bundle; return the places that need not wait."""
        count = state.passes
        if count is not None and not isinstance(count, PendingLoop):
            return places
        pc = bundle.address
        fresh = count if count is not None else PendingLoop(-1)
        if places & AT_BODY:
            inside = [
                (ls, le)
                for ls, le in self._pairs
                if ls <= pc <= le and state.ls in (None, ls) and state.le in (None, le)
            ]
            for ls, le in inside:
                waiting = state._replace(need=NEED_COUNT, ls=ls, le=le, passes=fresh)
                out.append(Run(waiting, AT_BODY, tuple(path), remarks))
            if inside and count is not None:
                places &= ~AT_BODY
        if places & AT_END and pc in self._loops and state.le in (None, pc):
            for ls in self._starts(state, pc):
                waiting = state._replace(need=NEED_COUNT_AT_END, ls=ls, le=pc, passes=fresh)
                out.append(Run(waiting, AT_END, tuple(path), remarks))
        return places

    def _starts(self, state: State, le: int) -> tuple[int, ...]:
        return (state.ls,) if state.ls is not None else self._loops.get(le, ())

    def _effects(self, state: State, bundle: Bundle) -> State:
        """What a bundle writes."""
        for name, value in bundle.writes:
            if name in self.program.watched:
                kept = tuple(pair for pair in state.registers if pair[0] != name)
                if value is not None and self._use_constants:
                    kept = tuple(sorted((*kept, (name, value))))
                state = state._replace(registers=kept)
        if bundle.ls is not None:
            state = state._replace(ls=bundle.ls)
        if bundle.le is not None:
            state = state._replace(le=bundle.le)
        if bundle.sets_lc:
            state = state._replace(passes=PendingLoop(bundle.address))
        return state

    def _issue(self, state: State, bundle: Bundle, target: int) -> State:
        """A branch issues: its slots follow."""
        state = self._effects(state, bundle)
        return state._replace(need=RUN, pc=bundle.end, slots=DELAY_SLOTS, after=target, branch=bundle.address)

    def _finish(self, state: State, bundle: Bundle, *, counted: bool = False) -> list[Step]:
        """Go on behind a bundle: delay slots, transfers, ends of loops; ``counted``: the loop end must have counted."""
        after = bundle.end
        if state.slots > 1:
            return [] if counted else [(state._replace(pc=after, slots=state.slots - 1), (), ())]
        if state.slots == 0:
            return self._loop_end(state, bundle.address, after)
        target, branch = state.after, self._at[state.branch]
        state = state._replace(slots=0, after=FALLS, branch=-1)
        if target == FALLS:
            return self._loop_end(state, bundle.address, after)
        if target != ANYWHERE:
            return self._enter(state, branch, target, bundle, counted=counted)
        found = []
        for guess in (*((None,) if branch.kind in ATOM else ()), *self._targets(state, branch)):
            if guess is None:
                steps = self._loop_end(state, bundle.address, after)
            else:
                steps = self._enter(state, branch, guess, bundle, counted=counted)
            said = Assumption("in_flight", branch.address, after if guess is None else guess)
            found += [(then, items, (*remarks, said)) for then, items, remarks in steps]
        return found

    def _enter(self, state: State, branch: Bundle, target: int, slot: Bundle, *, counted: bool) -> list[Step]:
        """Transfer; a call whose last slot ends a loop's body may come back to either side."""
        if branch.kind not in CALLS:
            return [] if counted else [(state._replace(pc=target), (), ())]
        is_end = slot.address in self._loops and state.le in (None, slot.address)
        found: list[Step] = []
        if not counted and (not is_end or Erratum.CALL_LEAVES_LOOP in self.errata):
            found.append((state._replace(pc=target, stack=self.push(state.stack, slot.end)), (), ()))
        if is_end and Erratum.CALL_STAYS_IN_LOOP in self.errata:
            for back, items, said in self._loop_end(state, slot.address, slot.end):
                found.append((back._replace(pc=target, stack=self.push(state.stack, back.pc)), items, said))
        return found

    def _targets(self, state: State, branch: Bundle) -> list[int]:
        """Where a branch may go whose frame nobody saw."""
        if branch.target is not None:
            return [branch.target]
        if branch.kind == RETURN:
            return sorted(self.return_sites(branch.address))
        known = self._known(state, branch)
        return [known] if known is not None else self._free(branch)

    def _free(self, branch: Bundle) -> list[int]:
        """All bundles that a branch may go to: those outside of delay slots, of its function unless it calls."""
        first, end = self.program.extent(branch.address)
        return [
            b.address
            for b in self.program.bundles
            if b.address not in self._slots and (branch.kind == CALL_INDIRECT or first <= b.address < end)
        ]

    def _known(self, state: State, branch: Bundle) -> int | None:
        if branch.kind not in ATOM or branch.register is None:
            return None
        return dict(state.registers).get(branch.register, self._constants.get(branch.register))

    def _loop_end(self, state: State, pc: int, after: int) -> list[Step]:
        """Pass what may be the end of a loop's body."""
        on = state._replace(pc=after)
        if pc not in self._loops and pc != state.le:
            return [(on, (), ())]
        if state.le is not None and state.le != pc:
            return [(on, (), ())]
        count = state.passes
        if count is None:
            found: list[Step] = [(self._left(state, after), (), ())]
            for ls in self._starts(state, pc):
                said = (Assumption("loop", pc, -1),)
                found += self._again(state._replace(ls=ls, le=pc, passes=RUNNING), after, said)
            return found
        if isinstance(count, PendingLoop):
            return []
        if count == ZERO:
            return [(on, (), ())]
        # A register that was loaded before the recording is not known, whether the other one is or not.
        found = [(on, (), ())] if state.le is None else []
        for ls in self._starts(state, pc):
            found += self._again(state._replace(ls=ls, le=pc), after)
        return found

    def _left(self, state: State, after: int) -> State:
        state = state._replace(pc=after, passes=ZERO)
        return state._replace(ls=None, le=None) if self._forgets else state

    def _again(self, state: State, after: int, said: tuple[Assumption, ...] = ()) -> list[Step]:
        """At the end of the body of a loop that runs: one more pass, or out of it."""
        assert state.ls is not None
        left = self._left(state, after)
        body = self._silent_body(state) if state.before is None else None
        stay = state._replace(pc=state.ls)
        count = state.passes
        if isinstance(count, OngoingLoop):
            if body is not None:
                return [(left, (Repeat(body, 0, 0, 1),), said)]
            return [(left, (), said), (stay, (), said)]
        assert isinstance(count, tuple)
        assert len(count) == 3
        is_least, passes, factor = count
        if body is not None:
            rep = Repeat(body, passes - 1, factor, self.wrap if is_least else 0)
            return [(left, (rep,) if factor or passes > 1 or is_least else (), said)]
        if factor:
            self.guard = max(self.guard, 2 - passes)
            return [(stay._replace(passes=(is_least, passes - 1, factor)), (), said)]
        if passes > 1:
            return [(stay._replace(passes=(is_least, passes - 1, 0)), (), said)]
        if is_least:
            return [(left, (), said), (stay._replace(passes=(True, self.wrap, 0)), (), said)]
        return [(left, (), said)]

    def _silent_body(self, state: State) -> tuple[int, ...] | None:
        """Return the addresses of one pass if none of its bundles needs a frame or changes anything, else None."""
        key = (state.ls, state.le, state.registers)
        if key not in self._bodies:
            self._bodies[key] = self._walk_body(state)
        return self._bodies[key]

    def _walk_body(self, state: State) -> tuple[int, ...] | None:
        pc, slots, after = state.ls, 0, FALLS
        known = dict(state.registers)
        path: list[int] = []
        for _ in range(len(self.program.bundles)):
            bundle = self._at.get(pc) if pc is not None else None
            if bundle is None or bundle.sets_lc or bundle.ls is not None or bundle.le is not None:
                return None
            for name, value in bundle.writes:
                if name in self.program.watched and (value is None or known.get(name) != value):
                    return None
            path.append(bundle.address)
            took = False
            if slots:
                slots -= 1
                took = slots == 0 and after != FALLS
            elif bundle.kind in BRANCHES:
                if bundle.kind not in DIRECT or bundle.kind in CALLS or bundle.target is None:
                    return None
                slots, after = DELAY_SLOTS, bundle.target
            elif bundle.kind == HALT:
                return None
            if bundle.address == state.le and not took and not slots:
                return tuple(path)
            pc = after if took else bundle.end
            if took:
                after = FALLS
        return None

    # -- frames

    def accept_atom(self, run: Run, *, taken: bool) -> list[Run]:
        """Give an atom to a state that waits for one."""
        state, bundle = run.state, self._at[run.state.pc]
        if not taken:
            return [self._branched(run, bundle, FALLS)]
        if bundle.kind == BRANCH:
            return [self._branched(run, bundle, bundle.target if bundle.target is not None else FALLS)]
        name = bundle.register or ""
        told = dict(state.registers).get(name)
        if told is not None:
            return [self._branched(run, bundle, told)]
        if name in self._constants:
            value = self._constants[name]
            return [self._branched(run, bundle, value, Assumption("inferred", bundle.address, value))]
        found = []
        for guess in self._free(bundle):
            known = tuple(sorted((*state.registers, (name, guess))))
            learned = run._replace(state=state._replace(registers=known))
            found.append(self._branched(learned, bundle, guess, Assumption("searched", bundle.address, guess)))
        return found

    def accept_address(self, run: Run, address: int) -> list[Run]:
        """Give an address to a state that waits for one."""
        state, bundle = run.state, self._at[run.state.pc]
        if address not in self._at or address in self._slots:
            return []
        if bundle.kind != RETURN:
            return [self._branched(run, bundle, address)]
        if state.stack:
            below, top = self.pop(state.stack)
            if top != address:
                return []
            return [self._branched(run._replace(state=state._replace(stack=below)), bundle, address)]
        if address not in self.return_sites(bundle.address):
            return []
        return [self._branched(run, bundle, address, Assumption("open_return", bundle.address, address))]

    def _branched(self, run: Run, bundle: Bundle, target: int, *said: Assumption) -> Run:
        items = (bundle.address,) if run.state.before is None else ()
        return Run(self._issue(run.state, bundle, target), run.places, items, said)

    def accept_count(self, run: Run, count: Count) -> list[Run]:
        """Give the count of a loop frame to a state that waits for one."""
        state = run.state
        fresh = state.passes
        where = self._loop_of.get(fresh.address) if isinstance(fresh, PendingLoop) else None
        # At its load the counter may come before the loop's addresses.
        le = where[1] if where is not None and run.places == AT_WRITE else state.le
        said = (Assumption("loop", le if le is not None else -1, count[1], count[2], count[0]),)
        if state.need == NEED_COUNT:
            return [Run(state._replace(need=RUN, passes=count), run.places, (), said)]
        bundle = self._at[state.pc]
        items = (bundle.address,) if state.before is None else ()
        state = self._effects(state._replace(need=RUN, passes=count), bundle)
        found = []
        for after, more, remarks in self._finish(state, bundle, counted=True):
            found.append(Run(after, run.places, items + more, said + remarks))
        return found

"""What a core may do from a state of which only part is known: the rules of branches, slots, stack and loops.

A state is one complete guess. ``Machine.advance`` lets it run to where it needs a frame, ``Machine.accept`` gives it
one; either may fork. Slow and plain: ``state_sets`` sees to it that each situation is worked out once.

Source: five delay slots, frames of each branch class, loop registers: measured or published, see the format tables;
behavior that was never measured is an unresolved ``Erratum``.
"""

from __future__ import annotations

from bisect import bisect_right

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
    RETURN,
    Bundle,
    Program,
)
from lanescope.devices.aie.path.walk.calls import CallSites, CallStacks
from lanescope.devices.aie.path.walk.core_state import (
    ANYWHERE,
    AT_BODY,
    AT_END,
    AT_WRITE,
    END,
    FALLS,
    LOOKAHEAD,
    NEED_ADDRESS,
    NEED_ATOM,
    NEED_COUNT,
    NEED_COUNT_AT_END,
    PLACES,
    RUN,
    RUNNING,
    UNKNOWN,
    ZERO,
    Assumption,
    Count,
    Erratum,
    Item,
    OngoingLoop,
    PendingLoop,
    Repeat,
    Run,
    State,
    StateLimitExceeded,
    Step,
    settled,
)


class Machine(CallStacks):
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
        self._loops = program.loops
        self._forgets = program.is_self_contained
        self._pairs = [(ls, le) for le, starts in program.loops.items() for ls in starts]
        self._loop_of = self._setups()
        super().__init__()
        self.return_sites = CallSites(program).return_sites
        self._bodies: dict[tuple[object, ...], tuple[int, ...] | None] = {}
        self._most_steps = 4 * len(program.bundles) + 64
        #: The least register of loop counts under which what was worked out since the last reset is right.
        self.guard = 0

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
            StateLimitExceeded: it forks too often.
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
        """Return the state after the writes of a bundle."""
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

    def targets(self, branch: Bundle) -> list[int] | None:
        """Return where a branch may go, whatever was executed before; None: anywhere in its function, or at all."""
        return self._told_targets(State(RUN, branch.address), branch)

    def _targets(self, state: State, branch: Bundle) -> list[int]:
        """Return the possible targets of a branch without a frame."""
        told = self._told_targets(state, branch)
        return self._free(branch) if told is None else told

    def _told_targets(self, state: State, branch: Bundle) -> list[int] | None:
        if branch.target is not None:
            return [branch.target]
        if branch.kind == RETURN:
            return sorted(self.return_sites(branch.address))
        known = self._known(state, branch)
        return None if known is None else [known]

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
        """Pass an atom to a state that waits for one."""
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
        """Pass an address to a state that waits for one."""
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
        """Pass the count of a loop frame to a state that waits for one."""
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

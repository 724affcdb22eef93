"""Calls: the stacks of return addresses that states hold, and where returns may go by the listing."""

from __future__ import annotations

from collections.abc import Iterable

from lanescope.devices.aie.path.program.program import (
    BRANCH,
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

#: Calls in each other that a stack remembers. A core has room for few; beyond, the outer half is forgotten.
MOST_CALLS = 256


class CallStacks:
    """Stacks of return addresses, each with a number; 0 is the empty one."""

    def __init__(self) -> None:
        self.forget_stacks()

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
        """Number of distinct stacks."""
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


class CallSites:
    """Possible targets of returns, from the calls in a listing.

    Args:
        program: the program.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._slots = program.slots
        self._behind = program.behind
        self._loops = program.loops
        self._sites: dict[tuple[int, int], frozenset[int]] = {}

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
        """Return whether the program continues after the last bundle of a function, apart from padding."""
        i = self.program.index[bundle.address]
        while i and bundle.kind == PLAIN and bundle.address not in self._slots and not bundle.text.strip("nop; \t"):
            i -= 1
            bundle = self.program.bundles[i]
        branch, slot = self._slots.get(bundle.address, (bundle, 0))
        return not (branch.kind == HALT or (slot == DELAY_SLOTS and branch.kind in (JUMP, JUMP_INDIRECT, RETURN)))

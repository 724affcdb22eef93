"""A core that runs bundles by the branch rules of AI engines, as far as a trace unit in mode 2 sees it.

Every branch, call and return has five delay slots, which always run; the transfer follows them. A zero-overhead loop
goes back from its last bundle to its first without a branch. Fetch runs ahead, but not past the slots of a branch that
has not issued.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from lanescope.devices.aie.simulate.ref_mode2 import Retired

DELAY_SLOTS = 5
#: What a bundle may be, and what of it retires. ``indirect`` means that a register holds the target.
KINDS = {
    "plain": None,
    "halt": None,
    "jump": Retired.DIRECT,
    "call": Retired.DIRECT,
    "branch": Retired.BRANCH,
    "branch_indirect": Retired.BRANCH,
    "jump_indirect": Retired.TARGET,
    "call_indirect": Retired.TARGET,
    "return": Retired.TARGET,
    "loop": Retired.LOOP,
}
_CALLS = ("call", "call_indirect")
_NO_BRANCH = ("plain", "halt", "loop")


@dataclass(frozen=True, slots=True)
class Bundle:
    """One bundle of a program.

    Attributes:
        address: byte address.
        size: bytes.
        kind: of ``KINDS``.
        target: where it goes; ``loop``: the first bundle of the body; unused by ``return``.
        last: ``loop``: address of the last bundle of the body.
    """

    address: int
    size: int
    kind: str = "plain"
    target: int = 0
    last: int = 0


class Step(NamedTuple):
    """A bundle that is about to run, and what it does when it retires; None: nothing that a trace unit sees."""

    address: int
    retired: tuple[Retired, int] | None


class Core:
    """A program and what the core knows while it runs.

    Args:
        program: the bundles, by address.
        decide: (bundle, how often it ran before) -> whether a branch is taken, the trips of a loop.
    """

    def __init__(self, program: Sequence[Bundle], decide: Callable[[Bundle, int], int]) -> None:
        self._program = {bundle.address: bundle for bundle in program}
        self._decide = decide

    def fetch_pc(self, address: int) -> int:
        """Return the address that is fetched while the bundle at ``address`` stalls: the last one known to follow."""
        slots = -1
        for _ in range(DELAY_SLOTS + 1):
            bundle = self._program[address]
            if slots < 0 and bundle.kind not in _NO_BRANCH:
                slots = DELAY_SLOTS + 1
            slots -= 1
            if slots == 0 or address + bundle.size not in self._program:
                break
            address += bundle.size
        return address

    def run(self, entry: int) -> Iterator[Step]:
        """Run from ``entry`` to a ``halt``; a loop whose body has no branch runs its body once for all trips."""
        ran: Counter[int] = Counter()
        stack: list[int] = []
        first = last = trips = 0
        at, after, slots = entry, 0, 0
        while True:
            bundle = self._program[at]
            if bundle.kind == "halt":
                return
            decision = self._decide(bundle, ran[at]) if bundle.kind in ("branch", "branch_indirect", "loop") else 0
            ran[at] += 1
            follows = at + bundle.size
            kind = KINDS[bundle.kind]
            if kind is None:
                yield Step(at, None)
            elif kind == Retired.LOOP:
                first, last, trips = bundle.target, bundle.last, decision
                yield Step(at, (kind, trips))
            else:
                behind = self._behind_slots(bundle)
                if bundle.kind in _CALLS:
                    stack.append(behind)
                target = stack.pop() if bundle.kind == "return" else bundle.target
                is_taken = kind != Retired.BRANCH or bool(decision)
                yield Step(at, (kind, int(is_taken) if kind == Retired.BRANCH else target))
                after, slots = target if is_taken else behind, DELAY_SLOTS + 1
            if at == last and trips:
                trips = trips - 1 if self._branches(first, last) else 0
                follows = first if trips else follows
            if slots:
                slots -= 1
                follows = follows if slots else after
            at = follows

    def _behind_slots(self, branch: Bundle) -> int:
        address = branch.address
        for _ in range(DELAY_SLOTS + 1):
            address += self._program[address].size
        return address

    def _branches(self, first: int, last: int) -> bool:
        return any(first <= at <= last and bundle.kind not in ("plain",) for at, bundle in self._program.items())

"""What a core may have executed between the begin of a recording and the address that its Start says.

A Start says which address was fetched, and fetch is up to ``LOOKAHEAD`` bundles ahead of what is executed: the bundles
in between are executed in the recording, before any frame that the walk begins with. Which they are, no frame decides.
"""

from __future__ import annotations

from collections import Counter

from lanescope.devices.aie.path.program.program import ATOM, CALL_INDIRECT, DELAY_SLOTS, HALT
from lanescope.devices.aie.path.walk.core_model import Machine
from lanescope.devices.aie.path.walk.core_state import LOOKAHEAD
from lanescope.devices.aie.path.walk.windows import Fact


class FetchLead:
    """Bounds of what is executed before the address of a Start.

    Args:
        machine: the rules of the program.
    """

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._known: dict[int, Counter[Fact]] = {}
        self._before: dict[int, set[int]] = {}
        #: Last delay slots of branches that may go anywhere in a range of addresses, by that range.
        self._anywhere: dict[tuple[int, int], set[int]] = {}
        self._is_ready = False

    def most(self, anchor: int) -> Counter[Fact]:
        """Return how often bundles and edges at most were executed before an address was reached, by fact."""
        found = self._known.get(anchor)
        if found is None:
            found = self._known[anchor] = self._count(anchor)
        return found

    def _count(self, anchor: int) -> Counter[Fact]:
        if not self._is_ready:
            self._is_ready = True
            self._connect()
        found: Counter[Fact] = Counter()
        # One bundle is executed at each distance, so each counts once for each distance that it may have.
        follows = {anchor}
        for _ in range(LOOKAHEAD):
            here: set[int] = set()
            for address in follows:
                for before in self._predecessors(address):
                    here.add(before)
                    found["edge", before, address] += 1
            for address in here:
                found["visit", address] += 1
            follows = here
        return found

    def _predecessors(self, address: int) -> set[int]:
        found = self._before.get(address, set())
        if address in self._machine.program.slots:
            return found
        for (first, end), slots in self._anywhere.items():
            if first <= address < end:
                found = found | slots
        return found

    def _connect(self) -> None:
        program = self._machine.program
        for bundle in program.bundles:
            branch, slot = program.slots.get(bundle.address, (None, 0))
            after = {bundle.end, *program.loops.get(bundle.address, ())}
            if branch is None and bundle.kind == HALT:
                continue
            if branch is not None and slot == DELAY_SLOTS:
                known = self._machine.targets(branch)
                if known is None:
                    extent = (0, 1 << 62) if branch.kind == CALL_INDIRECT else program.extent(branch.address)
                    self._anywhere.setdefault(extent, set()).add(bundle.address)
                after = (after if branch.kind in ATOM else set()) | set(known or ())
            for address in after & program.at.keys():
                self._before.setdefault(address, set()).add(bundle.address)

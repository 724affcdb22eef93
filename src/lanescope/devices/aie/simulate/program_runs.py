"""A core that runs the program of a listing, and what its trace unit writes: captures whose path is known.

What the listing does not tell is drawn: outcomes of conditional branches, passes of loops, targets in registers that no
constant was written to.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from types import MappingProxyType

from lanescope.devices.aie.formats import encode
from lanescope.devices.aie.path.program.program import (
    ATOM,
    BRANCHES,
    CALL_INDIRECT,
    CALLS,
    DELAY_SLOTS,
    HALT,
    RETURN,
    Bundle,
    Program,
)
from lanescope.devices.aie.simulate.ref_mode2 import Retired
from lanescope.devices.aie.simulate.ref_trace_unit import FlowUnit


@dataclass(frozen=True, slots=True)
class Run:
    """Actions of a core.

    Attributes:
        path: addresses of all bundles, in order.
        retired: what its trace unit was told: what, value.
        data: the dump: packets of a core in column 1, row 2.
    """

    path: list[int]
    retired: list[tuple[Retired, int]]
    data: bytes


def run(
    program: Program,
    *,
    seed: int = 0,
    bundles: int = 10_000,
    trips: int = 12,
    taken: float = 0.5,
    outcomes: Mapping[int, Sequence[bool]] = MappingProxyType({}),
) -> Run:
    """Run a program from its first bundle, for so many bundles or until it halts.

    Args:
        program: the program.
        seed: the same seed, the same run.
        bundles: most bundles to run.
        trips: most passes of a loop.
        taken: probability of each conditional branch.
        outcomes: for branches by address: whether they are taken, in order, again and again.
    """
    core = _Core(program, random.Random(seed), trips, taken, outcomes)
    unit = FlowUnit()
    unit.start(program.bundles[0].address)
    while len(core.path) < bundles and core.step():
        pass
    for what, value in core.retired:
        unit.retire(what, value)
    unit.stop()
    data = encode.packets(encode.header(0, 1, 2, 2), unit.payload).tobytes()
    return Run(core.path, core.retired, data)


class _Core:
    def __init__(
        self, program: Program, rng: random.Random, trips: int, taken: float, outcomes: Mapping[int, Sequence[bool]]
    ) -> None:
        self._program, self._rng, self._trips, self._taken = program, rng, trips, taken
        self._outcomes = {address: cycle(known) for address, known in outcomes.items()}
        self.path: list[int] = []
        self.retired: list[tuple[Retired, int]] = []
        self._pc = program.bundles[0].address
        self._slots = 0
        self._after: int | None = None
        self._is_call = False
        self._stack: list[int] = []
        self._registers: dict[str, int | None] = {}
        self._ls = self._le = -1
        self._lc = 0
        self._is_fresh = False

    def step(self) -> bool:
        """Run one bundle; False at the end of the program."""
        bundle = self._program.at.get(self._pc)
        if bundle is None:
            return False
        self.path.append(bundle.address)
        if bundle.kind == HALT:
            return False
        took = False
        if bundle.kind in BRANCHES and not self._slots:
            self._after = self._issue(bundle)
            self._slots, self._is_call = DELAY_SLOTS, bundle.kind in CALLS
        elif self._slots:
            self._slots -= 1
            took = self._slots == 0 and self._after is not None
        self._write(bundle)
        follows = bundle.end
        if bundle.address == self._le and self._lc and not took:
            if self._is_fresh:
                self.retired.append((Retired.LOOP, self._lc))
                self._is_fresh = False
            self._lc -= 1
            follows = self._ls if self._lc else follows
        if took:
            if self._is_call:
                self._stack.append(follows)
            assert self._after is not None
            follows = self._after
        self._pc = follows
        return True

    def _issue(self, bundle: Bundle) -> int | None:
        """Return where a branch goes; None: nowhere."""
        if bundle.kind in ATOM:
            told = self._outcomes.get(bundle.address)
            is_taken = next(told) if told is not None else self._rng.random() < self._taken
            self.retired.append((Retired.BRANCH, int(is_taken)))
            if not is_taken:
                return None
            return bundle.target if bundle.target is not None else self._target(bundle)
        if bundle.target is not None:
            return bundle.target
        target = self._stack.pop() if bundle.kind == RETURN and self._stack else self._target(bundle)
        self.retired.append((Retired.TARGET, target))
        return target

    def _target(self, bundle: Bundle) -> int:
        known = self._registers.get(bundle.register or "")
        if known is not None:
            return known
        first, end = self._program.extent(bundle.address)
        if bundle.kind == CALL_INDIRECT:
            return self._rng.choice(self._program.functions).address
        return self._rng.choice([leader for leader in self._program.leaders if first <= leader < end])

    def _write(self, bundle: Bundle) -> None:
        self._registers.update(bundle.writes)
        self._ls = bundle.ls if bundle.ls is not None else self._ls
        self._le = bundle.le if bundle.le is not None else self._le
        if bundle.sets_lc:
            self._lc, self._is_fresh = self._rng.randint(1, self._trips), True

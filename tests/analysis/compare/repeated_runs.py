"""Runs of one simulated program: the same work each time, with the noise of a run, and one phase slower on request.

The simulators draw a new program for each seed. Here the program is drawn once, and what a run adds to it is drawn from
the run's own seed: a factor for all of the run, one for each phase, and one for each slice. Captures go through the
simulators' encoders and the decoders of their families.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from unittest import mock

import numpy as np

import lanescope
from lanescope.analysis.compare.run_summary import RunSummary, summarize_run
from lanescope.devices.aie.simulate import ref_mode0
from lanescope.devices.ascend import simulate as ascend
from lanescope.devices.cuda.simulate import sim_kernel
from lanescope.devices.levelzero.simulate.simulator import Simulator

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Run-to-run variation: of everything together, and of each phase by itself.
COMMON, OWN = 0.002, 0.003
#: Variation of each slice by itself; the CUDA simulator has its own, of a fifth.
EACH = 0.01
#: Family -> the group that is made slower.
PHASES = {"aie": "slot 3", "ascend": "norm", "cuda": "event_5", "levelzero": "softmax"}
_PROGRAM = 7
#: Family -> (role of the lanes that work, options of its simulator).
SETUPS: dict[str, tuple[str, dict[str, Any]]] = {
    "aie": ("", {"tiles": 2, "records": 1500, "overruns": 0}),
    "ascend": ("core", {"tasks": 300}),
    "cuda": ("", {"groups": 1, "blocks": 132, "tiles": 24, "nested": False}),
    "levelzero": ("queue", {"ops": 600, "style": "thapi"}),
}


class Noise:
    """What one run adds to the program.

    Args:
        seed: of the run.
        slower: phase -> factor of its times.
    """

    def __init__(self, seed: int, slower: dict[str, float]) -> None:
        self.random = np.random.Generator(np.random.PCG64([seed, 99]))
        common = self.random.normal(0, COMMON)
        own = np.random.Generator(np.random.PCG64([seed, 98]))
        self._factors: dict[str, float] = defaultdict(lambda: float(np.exp(common + own.normal(0, OWN))))
        self._slower = slower

    def factor(self, phase: str) -> float:
        return self._factors[phase] * self._slower.get(phase, 1.0)

    def times(self, lengths: np.ndarray, phases: list[str]) -> np.ndarray:
        """The lengths of the program as this run has them, float64 [n]."""
        each = np.array([self.factor(phase) for phase in phases])
        return lengths * each * np.exp(self.random.normal(0, EACH, len(lengths)))


def run(family: str, seed: int, slower: float = 1.0) -> RunSummary:
    """Record one run: simulate, encode, write, read, decode, summarize."""
    role, options = SETUPS[family]
    noise = Noise(seed, {PHASES[family]: slower})
    with _PROGRAMS[family](noise):
        # Where the program is drawn by the simulator, its seed stays.
        files = lanescope.simulate(family, seed if family == "cuda" else _PROGRAM, **options).files
    with TemporaryDirectory() as folder:
        for name, content in files.items():
            (Path(folder) / name).write_bytes(content)
        trace = lanescope.open(Path(folder) / next(iter(files)), family)
    summary = summarize_run(trace, f"{family} {seed}", has_sequences=True)
    if not role:
        return summary
    kept = {key: group for key, group in summary.groups.items() if key[1] == role}
    return RunSummary(summary.name, summary.sha256, summary.by, summary.unit, summary.span, kept, summary.conditions)


@contextmanager
def _cuda(noise: Noise) -> Iterator[None]:
    lengths = {event: length * noise.factor(f"event_{event}") for event, length in sim_kernel._LENGTHS.items()}
    with mock.patch.object(sim_kernel, "_LENGTHS", lengths):
        yield


@contextmanager
def _aie(noise: Noise) -> Iterator[None]:
    units = iter(range(100))

    def event_state(_: np.random.Generator, runs: int) -> tuple[np.ndarray, np.ndarray]:
        program = np.random.Generator(np.random.PCG64([_PROGRAM, next(units)]))
        slot = program.integers(0, ref_mode0.SLOTS, runs)
        is_quiet = np.arange(runs) % 2 == 1
        lengths = np.where(is_quiet, program.integers(5, 40, runs), 200 + 40 * slot)
        names = [f"slot {one}" for one in slot.tolist()]
        drawn = np.where(is_quiet, lengths, noise.times(lengths, names))
        mask = np.where(is_quiet, 0, 1 << slot).astype(np.uint8)
        return mask, np.maximum(np.rint(drawn), 1).astype(np.int64)

    with mock.patch.object(ref_mode0, "event_state", event_state):
        yield


@contextmanager
def _ascend(noise: Noise) -> Iterator[None]:
    names = [ascend.NAMES.get(number, f"func_{number}") for number in range(20)]
    chip_run = ascend.chip.run

    class Program:
        """Random numbers of the simulator, but for the durations of functions."""

        def __init__(self, random: np.random.Generator) -> None:
            self._random = random

        def lognormal(self, mean: float, sigma: float, size: int) -> np.ndarray:
            if sigma < 0.5:
                return np.exp(noise.random.normal(mean, EACH, size))
            program = np.random.Generator(np.random.PCG64(_PROGRAM))
            return program.lognormal(mean, sigma, size) * [noise.factor(name) for name in names]

        def __getattr__(self, name: str) -> Any:
            return getattr(self._random, name)

    def patched(scenario: Any, tasks: Any, rows: Any, random: np.random.Generator) -> Any:
        return chip_run(scenario, tasks, rows, Program(random))  # type: ignore[arg-type]

    with mock.patch.object(ascend.chip, "run", patched):
        yield


@contextmanager
def _levelzero(noise: Noise) -> Iterator[None]:
    work = Simulator._work

    def patched(self: Simulator, submitted: np.ndarray, block: Any, *, in_order: bool) -> Any:
        program = self.rng

        class Program:
            def integers(self, low: int, high: int, size: int) -> np.ndarray:
                drawn = program.integers(low, high, size)
                if high != 20_000:
                    return drawn
                return np.maximum(noise.times(drawn, block.name.tolist()), 1).astype(np.int64)

        self.rng = Program()
        try:
            return work(self, submitted, block, in_order=in_order)
        finally:
            self.rng = program

    with mock.patch.object(Simulator, "_work", patched):
        yield


_PROGRAMS = {"aie": _aie, "ascend": _ascend, "cuda": _cuda, "levelzero": _levelzero}

"""How often a comparison of simulated runs is right: of one phase 3 % slower, and where nothing changed.

    python -m analysis.compare.rates --seeds 200 [--family cuda] [--each 0.025] [--blocks 33]

A seed gives three sides of seven runs: two alike, one with a slower phase. *Right* names that phase and nothing else,
*found* names it among others, *silent* names nothing in two sides that are alike. Groups are those of the lanes that
work: of Ascend the cores, of Level Zero the queues.
"""

from __future__ import annotations

import argparse
from collections import Counter
from typing import NamedTuple

from analysis.compare import repeated_runs
from analysis.compare.repeated_runs import PHASES, run
from lanescope.analysis.compare.run_summary import RunSummary
from lanescope.analysis.compare.verdicts import compare_runs

#: Group -> the text by which captures call the phase that is made slower.
NAMES = PHASES | {"cuda": "qk"}
#: Runs per side that are judged.
SIZES = (5, 7)
SLOWER = 1.03


class Sides(NamedTuple):
    """Runs of one seed."""

    first: list[RunSummary]
    alike: list[RunSummary]
    slower: list[RunSummary]


def draw(family: str, seed: int, size: int) -> Sides:
    """Record the three sides of a seed, ``size`` runs each; numbers of runs never repeat."""
    alike, slower = (range(1000 * seed + begin, 1000 * seed + begin + size) for begin in (100, 200))
    first = range(1000 * seed, 1000 * seed + size)
    return Sides(
        [run(family, number) for number in first],
        [run(family, number) for number in alike],
        [run(family, number, SLOWER) for number in slower],
    )


def judge(family: str, sides: Sides, size: int) -> Counter[str]:
    """Return which of ``right``, ``found`` and ``silent`` hold for the first ``size`` runs of each side."""
    verdicts = {group.key[0]: group.verdict for group in compare_runs(sides.first[:size], sides.slower[:size]).named}
    is_silent = not compare_runs(sides.first[:size], sides.alike[:size]).named
    name = NAMES[family]
    return Counter(right=verdicts == {name: "slower"}, found=verdicts.get(name) == "slower", silent=is_silent)


def main() -> None:
    parser = argparse.ArgumentParser(description="How often a comparison of simulated runs is right.")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--family", choices=sorted(PHASES), action="append")
    parser.add_argument("--each", type=float, help="standard deviation of the logarithm of each slice (0.01)")
    parser.add_argument("--blocks", type=int, help="CUDA blocks (132)")
    given = parser.parse_args()
    if given.each is not None:
        repeated_runs.EACH = given.each
    if given.blocks is not None:
        repeated_runs.SETUPS["cuda"][1]["blocks"] = given.blocks
    for family in given.family or sorted(PHASES):
        counts = {size: Counter[str]() for size in SIZES}
        for seed in range(given.seeds):
            sides = draw(family, seed, max(SIZES))
            for size in SIZES:
                counts[size] += judge(family, sides, size)
        for size, count in counts.items():
            shares = ", ".join(f"{name} {count[name] / given.seeds:.1%}" for name in ("right", "found", "silent"))
            print(f"{family}, {size} against {size}: {shares} of {given.seeds}", flush=True)


if __name__ == "__main__":
    main()

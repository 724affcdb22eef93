"""Which rank of a parallel program a process is, as its launcher says in the environment.

Standard library only at import.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

#: Variables with the rank, with the number of ranks, and one that must be there besides; the first rank counts. A batch
#: script of Slurm has a number too, but no step. The recorder's ``stream/ranks.cpp`` has the same.
LAUNCHERS: tuple[tuple[str, str, str], ...] = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", ""),
    ("PMIX_RANK", "", ""),
    ("PMI_RANK", "PMI_SIZE", ""),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", ""),
    ("PALS_RANKID", "PALS_SIZE", ""),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"),
)
#: Variables with a name that all ranks of one start share, and only they.
_JOBS = ("PMIX_NAMESPACE", "PMI_JOBID", "PALS_APID", "SLURM_JOB_ID")
_MOST = 1 << 31
_RANGE = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
#: How the folder of a rank begins.
PREFIX = "rank-"


class Rank(NamedTuple):
    """A rank and how many there are, 0: unknown."""

    number: int
    total: int


def rank_of(environment: Mapping[str, str]) -> Rank | None:
    """Return the rank that a process with this environment has, None if no launcher gave it one."""
    for name, size, needed in LAUNCHERS:
        number = _number(environment.get(name, ""))
        if number is not None and (not needed or needed in environment):
            count = _number(environment.get(size, "")) or 0
            return Rank(number, count if count > number else 0)
    return None


def _number(text: str) -> int | None:
    if not (text.isascii() and text.isdigit()) or len(text) > 10 or int(text) >= _MOST:
        return None
    return int(text)


def job_of(environment: Mapping[str, str]) -> str:
    """Return a name that all ranks of this start share, of characters that a file name may have; empty: unknown."""
    found = next((environment[name] for name in _JOBS if environment.get(name)), "")
    return re.sub(r"[^A-Za-z0-9.]+", "-", found)


def parsed(text: str) -> str:
    """Check a selection of ranks, ``0,4-7``, and return it as it is.

    Raises:
        ValueError: with what is wrong.
    """
    for part in text.split(","):
        match = _RANGE.fullmatch(part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise ValueError("expected ranks, e.g. 0,4-7")
    return text


def is_selected(rank: Rank | None, ranks: str) -> bool:
    """Return whether a selection has a rank; without a selection each process is in, with one only those with ranks."""
    if not ranks or rank is None:
        return not ranks
    ranges = [part.partition("-") for part in ranks.split(",")]
    return any(int(first) <= rank.number <= int(last or first) for first, _, last in ranges)


def folder_of(rank: Rank) -> str:
    """Return the name of the folder of a rank."""
    return f"{PREFIX}{rank.number}"

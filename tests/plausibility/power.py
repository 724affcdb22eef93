"""Power and false rate of the plausibility rules: which lies ``check`` finds, and what it says of sound captures.

    python -m plausibility.power --seeds 1000-1029

Each seed is a simulated capture of each family. Every lie is told once of every capture, on its decoded columns, and is
found if ``check`` reports what it did not report of the sound capture. Three shares: by the other rules at any
severity; by plausibility rules at warning or error; by plausibility rules at any severity.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import numpy as np

from lanescope.analysis import check
from lanescope.errors import LanescopeError
from lanescope.pipeline import session
from lanescope.trace import Trace
from plausibility import captures, odd
from plausibility.columns import Columns
from plausibility.lies import LIES

#: Codes of the plausibility rules, and of all rules for traces of any family.
PLAUSIBLE, ALL = "LS5", "LS"
#: Code, severity and lane of a finding.
_Key = tuple[str, str, str]


@dataclass
class Cell:
    """How often a lie was found in the captures of a family.

    Attributes:
        told: in how many captures it was told.
        others: how often another rule found it.
        warned: how often a plausibility rule found it, as a warning or an error.
        seen: how often a plausibility rule found it.
        either: how often any rule found it.
        codes: how often each rule found it.
    """

    told: int = 0
    others: int = 0
    warned: int = 0
    seen: int = 0
    either: int = 0
    codes: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        return f"{self.others} / {self.warned} / {self.seen} of {self.told}" if self.told else "-"

    def counts(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        numbers = {name: getattr(self, name) for name in ("told", "others", "warned", "seen", "either")}
        return {**numbers, "codes": dict(self.codes)}

    def add(self, found: Iterable[_Key]) -> None:
        """Count what was found in one capture."""
        findings = list(found)
        mine = [severity for code, severity, _ in findings if code.startswith(PLAUSIBLE)]
        self.told += 1
        self.others += len(mine) < len(findings)
        self.warned += any(severity != "notice" for severity in mine)
        self.seen += bool(mine)
        self.either += bool(findings)
        self.codes.update({code for code, _, _ in findings})

    def merge(self, other: Cell) -> None:
        """Add the counts of another cell."""
        for name in ("told", "others", "warned", "seen", "either"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.codes.update(other.codes)


def findings(trace: Trace, select: str = ALL) -> set[_Key]:
    """Return (code, severity, lane) of what ``check`` reports of a trace."""
    found = check.run(trace, select=["LS"])
    return {
        (finding.code, finding.severity, finding.location.track) for finding in found if finding.code.startswith(select)
    }


def judge(family: str, seed: int, only: str = "") -> dict[str, Cell]:
    """Tell every lie once of a capture; return what was found, by the name of the lie."""
    columns = Columns.of(captures.simulated(family, seed))
    if not (columns.closed & columns.is_device).any():
        return {}  # instants alone: nothing that these lies change
    sound = findings(columns.to_trace())
    cells = {}
    for number, lie in enumerate(LIES):
        if only not in lie.name:
            continue
        cell = cells[lie.name] = Cell()
        changed = lie.make(columns, np.random.default_rng([seed, number]))
        if changed is not None:
            cell.add(findings(changed.to_trace()) - sound)
    return cells


# --- sound captures -----------------------------------------------------------------------------------------------


def sound(family: str, seed: int) -> list[_Key]:
    """Return what ``check`` reports of a simulated capture without a fault."""
    return sorted(findings(captures.simulated(family, seed)))


def odd_trace(kind: str, seed: int) -> list[_Key]:
    """Return what plausibility rules report of a trace that is true but odd."""
    number = list(odd.KINDS).index(kind)
    return sorted(findings(odd.KINDS[kind](np.random.default_rng([seed, number])), PLAUSIBLE))


def recorded(folder: Path) -> dict[str, list[_Key]]:
    """Return what plausibility rules report of each capture in a folder that lanescope can read, by its path."""
    found: dict[str, list[_Key]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and "repro" not in path.relative_to(folder).parts:
            try:
                trace = session.open(path)
            except (LanescopeError, OSError):
                continue
            if len(trace.slices) + len(trace.instants):
                found[str(path.relative_to(folder))] = sorted(findings(trace, PLAUSIBLE))
    return found


# --- tables -------------------------------------------------------------------------------------------------------


def power_table(cells: dict[str, dict[str, Cell]], families: Sequence[str]) -> str:
    """Return the table of lies and families, as Markdown.

    Args:
        cells: by lie and family.
        families: the columns.
    """
    lines = [_row("lie", "found by", *families), _row(*["---"] * (2 + len(families)))]
    total, by_family = Cell(), {family: Cell() for family in families}
    for name, row in cells.items():
        codes: Counter[str] = sum((cell.codes for cell in row.values()), Counter())
        best = [code for code, count in codes.most_common(3) if count * 10 >= sum(cell.told for cell in row.values())]
        lines.append(_row(name, " ".join(best), *[str(row.get(family, Cell())) for family in families]))
        for family, cell in row.items():
            total.merge(cell)
            by_family[family].merge(cell)
    lines.append(_row(f"**all {total.told}**", "", *[str(by_family[family]) for family in families]))
    lines.append("")
    for what, cell in (*by_family.items(), ("all", total)):
        if cell.told:
            shares = {
                "other rules": cell.others,
                "plausibility, warning": cell.warned,
                "plausibility": cell.seen,
                "either": cell.either,
            }
            said = ", ".join(f"{word} {count} ({count / cell.told:.0%})" for word, count in shares.items())
            lines.append(f"* {what}: {said} of {cell.told}")
    return "\n".join(lines)


def false_table(found: dict[str, list[list[_Key]]]) -> str:
    """Return the table of captures without a fault: how many, those with warnings and notices, and whose they are."""
    lines = [_row("captures", "number", "with warnings", "with notices", "rules"), _row(*["---"] * 5)]
    for what, each in found.items():
        warned = sum(any(severity != "notice" for _, severity, _ in keys) for keys in each)
        noted = sum(any(severity == "notice" for _, severity, _ in keys) for keys in each)
        codes = Counter(f"{code} {severity}" for keys in each for code, severity in {key[:2] for key in keys})
        lines.append(_row(what, len(each), warned, noted, ", ".join(f"{code}: {n}" for code, n in codes.items())))
    return "\n".join(lines)


def _row(*cells: object) -> str:
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


# --- command ------------------------------------------------------------------------------------------------------


def _seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def _judge(task: tuple[str, int, str]) -> tuple[str, dict[str, Cell]]:
    return task[0], judge(*task)


def _sound(task: tuple[str, int]) -> tuple[str, list[_Key]]:
    return task[0], sound(*task)


def _odd(task: tuple[str, int]) -> tuple[str, list[_Key]]:
    return task[0], odd_trace(*task)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="plausibility.power", description=__doc__)
    parser.add_argument("--seeds", type=_seeds, default=_seeds("1000-1029"), help="captures with lies: FIRST-LAST")
    parser.add_argument("--sound", type=_seeds, default=_seeds("2000-2099"), help="sound captures and odd traces")
    parser.add_argument("--family", action="append", choices=captures.FAMILIES, help="only this family")
    parser.add_argument("--lie", default="", help="only lies whose name contains this")
    parser.add_argument("--only", choices=("lies", "sound", "odd", "recorded"), help="only this table")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--json", help="also write the counts to a file")
    given = parser.parse_args(arguments)
    families = given.family or captures.FAMILIES
    report: dict[str, Any] = {}
    with Pool(given.jobs) as pool:
        if given.only in (None, "lies"):
            cells: dict[str, dict[str, Cell]] = {lie.name: {} for lie in LIES if given.lie in lie.name}
            tasks = [(family, seed, given.lie) for family in families for seed in given.seeds]
            for family, found in pool.imap_unordered(_judge, tasks):
                for name, cell in found.items():
                    cells[name].setdefault(family, Cell()).merge(cell)
            print(power_table(cells, families), end="\n\n")
            report["lies"] = {
                name: {family: cell.counts() for family, cell in row.items()} for name, row in cells.items()
            }
        if given.only in (None, "sound"):
            report["sound"] = _collect(pool, _sound, families, given.sound)
        if given.only in (None, "odd"):
            report["odd"] = _collect(pool, _odd, odd.KINDS, given.sound)
    corpus = os.environ.get("LANESCOPE_CORPUS")
    if given.only in (None, "recorded") and corpus:
        found = recorded(Path(corpus))
        print(false_table({name: [keys] for name, keys in found.items()}))
        report["recorded"] = found
    if given.json:
        Path(given.json).write_text(json.dumps(report, indent=1) + "\n")
    return 0


def _collect(pool: Any, work: Any, what: Iterable[str], seeds: Sequence[int]) -> dict[str, list[list[_Key]]]:
    found: dict[str, list[list[_Key]]] = {name: [] for name in what}
    for name, keys in pool.imap(work, [(name, seed) for name in found for seed in seeds]):
        found[name].append(keys)
    print(false_table(found), end="\n\n")
    return found


if __name__ == "__main__":
    sys.exit(main())

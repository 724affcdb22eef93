"""The ledger of detection: what became of every mutant, by family, layout, record and field."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lanescope.testing.mutations import DETECTED, Judge, mutations
from mutations.seeds import Seed

SAME, UNDETECTABLE, OPEN = "same", "undetectable", "open"
#: What a mutant may become, in the order of the ledger's columns.
OUTCOMES = (*DETECTED, SAME, UNDETECTABLE, OPEN)
#: Name of the changes to whole records.
WHOLE = "(records)"
#: The mildest finding: it does not change the exit status of ``check``.
NOTICE = "notice"
_EXAMPLES = 3


@dataclass
class Row:
    """What became of the mutants of one field.

    Attributes:
        counts: mutants by outcome.
        reasons: why the undetectable ones are: mutants by reason.
        examples: of the open ones: the change, where, the values.
    """

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """All mutants."""
        return self.counts.total()

    @property
    def detected(self) -> int:
        """Mutants of which the user learns."""
        return sum(self.counts[name] for name in DETECTED)

    @property
    def warned(self) -> int:
        """Mutants of which the user is warned: by more than a notice."""
        return self.detected - self.counts[NOTICE]


#: Layout, record, field.
Key = tuple[str, str, str]
Ledger = dict[str, dict[Key, Row]]


def run(seeds: Sequence[Seed], count: int) -> dict[Key, Row]:
    """Judge about ``count`` mutants of one family's captures, evenly over the captures and their fields."""
    found: dict[Key, Row] = {}
    share = -(-count // len(seeds))
    for seed in seeds:
        with Judge(seed.files, seed.main, seed.options) as judge:
            for mutant in mutations(seed.declared, seed.files, count=share):
                row = found.setdefault((seed.format, mutant.record, mutant.field or WHOLE), Row())
                verdict = judge.judge(mutant.files)
                if verdict.is_detected or verdict.name == SAME:
                    row.counts[verdict.name] += 1
                elif mutant.reason:
                    row.counts[UNDETECTABLE] += 1
                    row.reasons[mutant.reason] += 1
                else:
                    row.counts[OPEN] += 1
                    if len(row.examples) < _EXAMPLES:
                        row.examples.append(f"{mutant.change}: {mutant.detail}")
    return found


def to_json(ledger: Mapping[str, Mapping[Key, Row]]) -> dict[str, Any]:
    """Return a ledger as JSON has it."""
    return {
        family: [
            {
                "format": key[0],
                "record": key[1],
                "field": key[2],
                "counts": {name: row.counts[name] for name in OUTCOMES if row.counts[name]},
                **({"reasons": dict(sorted(row.reasons.items()))} if row.reasons else {}),
                **({"examples": row.examples} if row.examples else {}),
            }
            for key, row in sorted(rows.items())
        ]
        for family, rows in ledger.items()
    }


def from_json(content: Mapping[str, Iterable[Mapping[str, Any]]]) -> Ledger:
    """Return what ``to_json`` made."""
    return {
        family: {
            (row["format"], row["record"], row["field"]): Row(
                Counter(row["counts"]), Counter(row.get("reasons", {})), list(row.get("examples", ()))
            )
            for row in rows
        }
        for family, rows in content.items()
    }


def worse(kept: Mapping[Key, Row], now: Mapping[Key, Row]) -> Iterator[str]:
    """Yield a line for each field of which less is detected or warned of, or more left open, than in a kept ledger."""
    for key, row in now.items():
        before = kept.get(key)
        name = ".".join(key)
        if before is None:
            yield f"{name}: not in the kept ledger"
        elif row.detected * before.total < before.detected * row.total:
            yield f"{name}: {row.detected} of {row.total} detected, before {before.detected} of {before.total}"
        elif row.warned * before.total < before.warned * row.total:
            yield f"{name}: {row.warned} of {row.total} above a notice, before {before.warned} of {before.total}"
        elif row.counts[OPEN] * before.total > before.counts[OPEN] * row.total:
            example = f", e.g. {row.examples[0]}" if row.examples else ""
            yield f"{name}: {row.counts[OPEN]} open, before {before.counts[OPEN]}{example}"
    yield from (f"{'.'.join(key)}: has no mutants now" for key in kept.keys() - now.keys())

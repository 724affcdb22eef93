"""The ledger as text: what ``make mutate`` prints, and the page of the reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lanescope.testing.mutations import DETECTED
from mutations.ledger import OPEN, SAME, UNDETECTABLE, Key, Row, from_json
from mutations.lies import SEEDS

_COLUMNS = ("mutants", "detected", "of these notices", SAME, UNDETECTABLE, OPEN)
_TITLES = {
    "aie": "AMD AI Engine",
    "ascend": "Ascend",
    "cuda": "CUDA probes",
    "levelzero": "Level Zero",
    "kineto": "PyTorch profiler",
    "chrome": "Chrome trace events",
    "perfetto": "Perfetto",
}
_HEAD = """# Ledger of detection

<!-- Written by `make mutate`, see below. Do not edit. -->

A profile is worth as much as its wrong numbers are visible. This page lists every declared field of every format. For
each it says what lanescope makes of captures in which one value of the field, or one record, was changed. `make mutate`
repeats the run. Captures and changes, and so the numbers, are the same each time. `make test-full` repeats a smaller
run and fails if less of a field is detected, or if warnings became notices.

* **detected**: `check` reports a finding that the original does not have, more data counts as lost, or the file is
  refused. Findings of severity *notice* are counted once more in the next column.
* **same**: the decoded tables are those of the original. Nothing wrong reaches the user.
* **undetectable**: the tables differ, and a healthy device could have written exactly that, all else being as recorded.
  The reasons are listed for each family.
* **open**: the tables differ, nothing tells, and something could. These are work.

Changes to a value: one bit flipped, plus or minus 1, zero, the maximum, exchanged with the next one of its lane, a copy
of the previous one. Changes to whole records: dropped, duplicated, exchanged with the next one, the file cut inside.
"""


def page(kept: Mapping[str, Any]) -> str:
    """Return the page of the reference, from the content of ``ledger.json``."""
    ledger = from_json(kept["ledger"])
    parts = [_HEAD, *_summary(ledger, kept["count"])]
    parts += ["\n## Lies that contradict nothing\n", *_lies(kept["lies"])]
    for family, rows in ledger.items():
        parts += [f"\n## {_TITLES[family]}\n", *_open(rows), *_reasons(rows), *_fields(rows)]
    return "\n".join(parts) + "\n"


def _summary(ledger: Mapping[str, Mapping[Key, Row]], count: int) -> Iterator[str]:
    how = f"`make mutate MUTATE='--write --count {count}'`"
    yield f"This page has about {count:,} mutants per family and was written by {how}.\n"
    yield from _header(("family", "fields", *_COLUMNS))
    for family, rows in ledger.items():
        yield _line((_TITLES[family], len(rows), *_numbers(_sum(rows.values()))))


def _lies(injected: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Iterator[str]:
    yield f"Captures that were changed so that they stay consistent with themselves, {SEEDS} of each kind. The numbers"
    yield "count the captures with a new finding of at least that severity. A refused file counts as an error.\n"
    yield from _header(("family", "lie", "warning", "notice"))
    for family, rows in injected.items():
        for lie, counts in rows.items():
            yield _line((_TITLES[family], lie, found(counts, ("warning",)), found(counts, ("warning", "notice"))))


def found(counts: Mapping[str, int], names: Sequence[str]) -> int:
    """Return how many captures were refused, or gave an error or a finding of one of some severities."""
    return sum(counts.get(name, 0) for name in ("refused", "error", *names))


def _open(rows: Mapping[Key, Row]) -> Iterator[str]:
    """Yield the fields with open mutants, those with the most first."""
    left = sorted(
        ((row.counts[OPEN], key) for key, row in rows.items() if row.counts[OPEN]), key=lambda each: (-each[0], each[1])
    )
    if not left:
        yield "Nothing is open.\n"
        return
    yield from _header(("open", "of", "format", "field", "example"))
    for number, key in left:
        example = rows[key].examples[0] if rows[key].examples else ""
        yield _line((number, rows[key].total, key[0], _name(key), _code(example)))
    yield ""


def _reasons(rows: Mapping[Key, Row]) -> Iterator[str]:
    reasons: Counter[str] = Counter()
    for row in rows.values():
        reasons.update(row.reasons)
    if reasons:
        yield from _header(("undetectable", "because the capture would be"))
        for reason, count in sorted(reasons.items(), key=lambda each: (-each[1], each[0])):
            yield _line((count, reason))
        yield ""


def _fields(rows: Mapping[Key, Row]) -> Iterator[str]:
    for name in dict.fromkeys(key[0] for key in rows):
        yield f"### {name}\n"
        yield from _header(("field", *_COLUMNS))
        for key, row in rows.items():
            if key[0] == name:
                yield _line((_name(key), *_numbers(row)))
        yield ""


def _name(key: Key) -> str:
    return f"`{key[1]}` {key[2]}" if key[2].startswith("(") else f"`{key[1]}.{key[2]}`"


def _code(text: str) -> str:
    short = text if len(text) <= 70 else f"{text[:67]}..."
    printable = "".join(letter if letter.isprintable() else "?" for letter in short)
    return f"`{printable}`" if text and "`" not in printable else printable


def _sum(rows: Any) -> Row:
    total = Row()
    for row in rows:
        total.counts.update(row.counts)
    return total


def _numbers(row: Row) -> Sequence[int]:
    return row.total, row.detected, row.counts["notice"], row.counts[SAME], row.counts[UNDETECTABLE], row.counts[OPEN]


def _header(names: Sequence[str]) -> Iterator[str]:
    yield _line(names)
    yield _line(["---"] * len(names))


def _line(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


# --- on a terminal ------------------------------------------------------------------------------------------------


def family_lines(family: str, rows: Mapping[Key, Row], *, only_open: bool = False) -> Iterator[str]:
    """Yield the fields of a family as a table for a terminal."""
    names = (*DETECTED, SAME, UNDETECTABLE, OPEN)
    yield f"{family:<60}" + "".join(f"{name:>13}" for name in names)
    layout = ""
    for key, row in sorted(rows.items()):
        if only_open and not row.counts[OPEN]:
            continue
        if key[0] != layout:
            layout = key[0]
            yield f"  {layout}"
        example = f"  {row.examples[0]}" if row.examples else ""
        yield f"    {f'{key[1]}.{key[2]}':<56}" + "".join(f"{row.counts[name] or '.':>13}" for name in names) + example
    total = _sum(rows.values())
    yield f"  {'total':<58}" + "".join(f"{total.counts[name]:>13}" for name in names)


def lie_lines(family: str, rows: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """Yield what was found of injected lies as a table for a terminal."""
    yield f"{family + ': lies, of ' + str(SEEDS):<40}{'warning':>10}{'notice':>10}"
    for lie, counts in rows.items():
        yield f"  {lie:<38}{found(counts, ('warning',)):>10}{found(counts, ('warning', 'notice')):>10}"

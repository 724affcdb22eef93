"""The SQL query behind a finding: it returns the evidence rows, and runs as it stands in ``lanescope sql``.

Evidence may be a million rows, and a list of so many ids is not a query that anybody reads or runs. Ids are written as
ranges, with a step where they are regular. Where even that is long, a condition on flags and lanes is looked for that
holds for the evidence and for no other row. Failing that, the query returns the first rows and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np

from lanescope.common.distinct import distinct
from lanescope.common.intervals import Ints
from lanescope.trace.schema import CORE_TABLES, Flag

if TYPE_CHECKING:
    from lanescope.trace import Table
    from lanescope.trace.column import Mask

#: Ranges, and lanes, that a query names at most.
TERMS = 100
#: Regular ids form a range from this number on.
_RUN = 3
#: Ids that are scattered among the first ones are scattered.
_TRIAL = 1000
#: Flags of which the checker keeps every slice that has one: what holds for kept slices holds for all.
_KEPT_FLAGS = (
    Flag.AFTER_GAP,
    Flag.CLOCK_SUSPECT,
    Flag.WRAP_AMBIGUOUS,
    Flag.BELOW_RESOLUTION,
    Flag.NEGATIVE_DURATION,
    Flag.UNFINISHED,
    Flag.TRUNCATED,
    Flag.UNFINISHED | Flag.TRUNCATED,
)
_HAS_ID = frozenset(spec.name for spec in CORE_TABLES)


def query(table: str, ids: Ints, where: str = "") -> tuple[str, int]:
    """Return the query that returns rows of a table, by id, and how many of them it returns.

    Args:
        table: the table.
        ids: of the rows, int64 [n].
        where: a condition in SQL that holds for these rows only; empty: their ids have to do.

    Example:
        >>> query("slices", np.array([2, 4, 6, 8, 20]))
        ('select * from slices where (id between 2 and 8 and id % 2 = 0) or id in (20) order by id', 5)
    """
    count = len(ids)
    comment = ""
    if not where:
        runs = _first_runs(np.sort(ids))
        if len(runs) > TERMS:
            runs = runs[:TERMS]
            comment = f"/* the first {sum(map(len, runs))} of {count} rows */ "
            count = sum(map(len, runs))
        where = _ids(runs)
    name = f'"{table}"' if not table.isidentifier() else table
    if table not in _HAS_ID:
        name = f"(select row_number() over () - 1 as id, * from {name})"
    return f"{comment}select * from {name} where {where} order by id", count


def condition(ids: Ints, positions: Ints, slices: Table) -> str:
    """Return a condition for slices that are too scattered for ranges; empty where none is needed, or none is proven.

    Args:
        ids: of the slices, int64 [n].
        positions: ids of the slices that are there, int64 [m], rising.
        slices: those slices; all that have one of the flags above are among them.
    """
    if len(ids) <= TERMS or not len(positions):
        return ""
    ids = np.sort(ids)
    if len(_first_runs(ids)) <= TERMS:
        return ""
    is_dense = positions[-1] - positions[0] == len(positions) - 1
    at = ids - positions[0] if is_dense else np.searchsorted(positions, ids)
    if at[0] < 0 or at[-1] >= len(positions) or not np.array_equal(positions[at], ids):
        return ""
    is_evidence = np.zeros(len(positions), np.bool_)
    is_evidence[at] = True
    for text, holds in _candidates(slices, at):
        if np.array_equal(holds, is_evidence):
            return text
    return ""


def _candidates(slices: Table, rows: Ints) -> Iterator[tuple[str, Mask]]:
    """Yield conditions that hold for ``rows``, and where they hold, bool [n]; the simplest first."""
    track, flags = slices.values("track_id"), slices.values("flags")
    of_rows = flags[rows]
    common = [flag for flag in _KEPT_FLAGS if ((of_rows & np.uint32(flag)) != 0).all()]
    for flag in common:
        yield f"flags & {int(flag)} <> 0", (flags & np.uint32(flag)) != 0
    if not common:
        return
    lanes = distinct(track[rows])
    if len(lanes) > TERMS:
        return
    on_lanes, names = np.isin(track, lanes), _ids(list(_runs(lanes)), "track_id")
    for flag in common:
        yield f"({names}) and flags & {int(flag)} <> 0", ((flags & np.uint32(flag)) != 0) & on_lanes


def _first_runs(ids: Ints) -> list[range]:
    """Return the ranges of rising ids, one more than ``TERMS`` of them at most."""
    runs = list(islice(_runs(ids[:_TRIAL]), TERMS + 1))
    return runs if len(runs) > TERMS or len(ids) <= _TRIAL else list(islice(_runs(ids), TERMS + 1))


def _runs(ids: Ints) -> Iterator[range]:
    """Yield rising ids as ranges of one step; ids that are not regular are ranges of one."""
    if len(ids) < _RUN:
        yield from (range(one, one + 1) for one in ids.tolist())
        return
    steps = np.diff(ids)
    edges = np.flatnonzero(np.diff(steps)) + 1
    numbers = ids.tolist() if len(ids) <= _TRIAL else ids  # a list is faster, but few of many ids may be asked for
    at = 0  # the first id that has not been yielded
    for first, last in pairwise([0, *edges.tolist(), len(steps)]):
        begin = max(first, at)
        if last - begin + 1 >= _RUN:
            for one in range(at, begin):
                yield range(int(numbers[one]), int(numbers[one]) + 1)
            step = int(steps[first])
            yield range(int(numbers[begin]), int(numbers[last]) + 1, step)
            at = last + 1
    for one in ids[at:].tolist():
        yield range(one, one + 1)


def _ids(runs: list[range], name: str = "id") -> str:
    """Return the condition that a column has one of the values of the ranges."""
    terms = [_range(run, name) for run in runs if len(run) > 1]
    single = [str(run[0]) for run in runs if len(run) == 1]
    if single:
        terms.append(f"{name} in ({', '.join(single)})")
    return " or ".join(terms) if terms else "false"


def _range(run: range, name: str) -> str:
    between = f"{name} between {run[0]} and {run[-1]}"
    return between if run.step == 1 else f"({between} and {name} % {run.step} = {run[0] % run.step})"

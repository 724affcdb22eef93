"""Collectives of several ranks on one timeline: each waits for the rank that begins it last."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np

from lanescope.common.intervals import Intervals, Ints
from lanescope.families import CauseEdges, CauseKind
from lanescope.trace import Trace
from lanescope.trace.column import Mask

#: Collectives of which every rank's result needs every rank's data, in lower case: none ends before the last one has
#: begun. Of others, such as broadcasts, a rank may leave before the rest comes.
OF_ALL = re.compile(r"all_?reduce|_?all_?gather(?:_base)?|_?reduce_?scatter(?:_base)?|all_?to_?all|barrier")

_COLLECTIVE = CauseKind("collective", 1, is_blocking=True)
#: What rows of one operation have in common on all ranks, besides what they communicate.
_SAME = ("source_rank", "destination_rank")


def collectives(trace: Trace, is_work: Mask, input_of: Ints, extents: Intervals) -> CauseEdges:
    """Return for each row of a collective that the rank that begins it last let it go on.

    Rows of one operation are those of one process group, number in it and kind, one from each capture. The others wait
    inside their rows until the last begins: what follows in them is work. A row that ended before, on clocks that
    contradict each other, has a cause that is later than it. Without a number, or where several rows of a capture have
    one, nothing joins them: they are counted as unplaced. Others than ``OF_ALL`` are not joined: whom they wait for is
    not recorded.

    Args:
        trace: the trace of several captures.
        is_work: bool [slices], rows of devices.
        input_of: int64 [slices], the capture of each.
        extents: the time of each.
    """
    table = trace.details.get("kineto_collectives")
    pairs: list[tuple[int, int]] = []
    unplaced = 0
    if table is not None and len(table) and (input_of != input_of[0]).any():
        operations: dict[tuple[object, ...], dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for row in table.rows("slice_id", "group_name", "sequence", "collective", *_SAME):
            each = int(row["slice_id"])
            if not is_work[each] or not OF_ALL.fullmatch(str(row["collective"] or "").lower()):
                continue
            if row["sequence"] is None:
                unplaced += 1
                continue
            key = (row["group_name"], row["sequence"], row["collective"], *(row[name] for name in _SAME))
            operations[key][int(input_of[each])].append(each)
        for ranks in operations.values():
            rows = [each for several in ranks.values() for each in several]
            if len(rows) != len(ranks):
                unplaced += len(rows)
            elif len(rows) > 1:
                last = max(rows, key=lambda each: (int(extents.begin[each]), each))
                pairs += [(last, each) for each in rows if each != last]
    source, target = np.array(pairs, np.int64).reshape(-1, 2).T
    begin = extents.begin[source]
    return CauseEdges(_COLLECTIVE, source, begin, target, np.minimum(begin, extents.end[target]), unplaced)

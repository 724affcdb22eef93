"""Primitives of device families: wrapping counters, missing records, pairing, coverage, stats, joins, intervals.

The names below are for families of other packages too. They are loaded when they are first used; no module has the name
of one of them, so ``from lanescope.common import unwrap`` always gives the function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lanescope.lazy_names import lazy_names

if TYPE_CHECKING:
    from lanescope.common.coverage import evidence_spans
    from lanescope.common.intervals import Intervals
    from lanescope.common.key_join import match_unique
    from lanescope.common.missing_records import Gaps, drop_gaps, sequence_gaps
    from lanescope.common.pairing import Pairs, pair_fifo, pair_stack
    from lanescope.common.stat_tally import StatTally
    from lanescope.common.wrapping_counters import at_or_after, circular_start, nearest, unwrap

#: The module that holds each public name.
_HOME = {
    "Gaps": "missing_records",
    "Intervals": "intervals",
    "Pairs": "pairing",
    "StatTally": "stat_tally",
    "at_or_after": "wrapping_counters",
    "circular_start": "wrapping_counters",
    "drop_gaps": "missing_records",
    "evidence_spans": "coverage",
    "match_unique": "key_join",
    "nearest": "wrapping_counters",
    "pair_fifo": "pairing",
    "pair_stack": "pairing",
    "sequence_gaps": "missing_records",
    "unwrap": "wrapping_counters",
}

__all__ = [
    "Gaps",
    "Intervals",
    "Pairs",
    "StatTally",
    "at_or_after",
    "circular_start",
    "drop_gaps",
    "evidence_spans",
    "match_unique",
    "nearest",
    "pair_fifo",
    "pair_stack",
    "sequence_gaps",
    "unwrap",
]

__getattr__ = lazy_names(__name__, _HOME, globals())

"""LS5xx: what is strange next to everything else that was recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lanescope.analysis.check.model import CheckContext
from lanescope.families.rules import Rule, Violation


def _of(code: str) -> Callable[[CheckContext], Iterable[Violation]]:
    """Return what finds the violations of a plausibility rule."""
    return lambda subject: subject.plausibility.violations(code)


RULES = (
    Rule(
        "LS501",
        "few records far from everything else",
        "warning",
        "Nearly all timestamps lie close together, and these records lie many times that time away, where no second "
        "device and no host thread has records. Columns cannot tell a wrong timestamp from a wait that is really so "
        "long. It is a warning from 100 times the length of the rest on, or when the distance is a power of two that "
        "counters wrap at; else, and on host threads, a notice.",
        "Read window, idle time and totals without these rows. Look at the first of them with `lanescope dump`: a "
        "missed counter wrap, a clock step, or a corrupt timestamp.",
        _of("LS501"),
    ),
    Rule(
        "LS503",
        "clock that stands still",
        "warning",
        "Slices have no length and one timestamp, or all timestamps take few values: the clock was not running, was "
        "not read, or ticks too coarsely for what it measures. It is an error if nearly all slices of the trace have "
        "one timestamp.",
        "Do not use durations of these lanes. Check that the clock is enabled and read at each marker, and its "
        "resolution.",
        _of("LS503"),
    ),
    Rule(
        "LS505",
        "same records twice",
        "warning",
        "Slices have the lane, the start, the end and the name of another one, or a lane has the slices of another "
        "lane at the same times. A buffer was probably copied or read twice.",
        "Count these slices once. Look for a buffer that was copied twice, or two lanes that read one buffer.",
        _of("LS505"),
    ),
    Rule(
        "LS507",
        "implausible clock rate or unit",
        "warning",
        "The declared rate of a clock is one that such clocks do not have, its anchors give another rate, all "
        "timestamps are multiples of an implausible number, or all slices of one lane take many times as long as "
        "those of the same names on the lanes like it.",
        "Check the frequency and the unit that the times were computed with. Ratios within a lane hold; durations may "
        "not.",
        _of("LS507"),
    ),
)

#: Codes of the rules here.
CODES = frozenset(rule.code for rule in RULES)

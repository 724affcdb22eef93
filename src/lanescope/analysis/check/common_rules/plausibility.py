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
        "Nearly all timestamps are close together, and these records are many times that time away. No second "
        "device and no host thread has records there. Either a timestamp is wrong or a lane really waited so long. "
        "It is a warning from 100 times the length of the rest, or if the distance is a power of two at which "
        "counters wrap. Otherwise, and on host threads, it is a notice.",
        "Read window, idle time and totals without these rows. Inspect the first of them with `lanescope dump`. "
        "Look for a missed counter wrap, a clock step, or a corrupt timestamp.",
        _of("LS501"),
    ),
    Rule(
        "LS502",
        "gap that no sibling has",
        "warning",
        "One lane has a gap many times as long as any gap of the lanes like it. Everything after the gap is late "
        "by about as much, or everything before it is early. A clock that steps forward looks like this, and so "
        "does a wait of this lane alone. It is a notice if the gap is shorter than the lanes are, and on host "
        "threads. Known gaps of the lane do not count.",
        "Do not read the gap as idle time. Compare the other lanes of the same block or core at that time. If "
        "they went on, the clock of this lane stepped, or records are missing.",
        _of("LS502"),
    ),
    Rule(
        "LS503",
        "stopped or coarse clock",
        "warning",
        "Slices have no length and one timestamp, or all timestamps of a lane take few values. The clock did not "
        "run, was not read, or ticks too coarsely for what it measures. It is an error if nearly all slices of the "
        "trace have one timestamp.",
        "Do not use durations of these lanes. Check that the clock is enabled and read at each marker, and its "
        "resolution.",
        _of("LS503"),
    ),
    Rule(
        "LS504",
        "lane without the records of its siblings",
        "warning",
        "Lanes that are alike have about as many records each. One of them has none, or lacks many at its end or "
        "at its start. Or a group has no lane of a kind that all groups like it have. Records were probably lost "
        "without a trace. It is a notice if the siblings differ more, and on the first and the last of them, "
        "which may have had less to do.",
        "Do not read the missing time as idle time. Look for a lane that was not enabled, a buffer that was not "
        "copied, or one that was full.",
        _of("LS504"),
    ),
    Rule(
        "LS505",
        "same records twice",
        "warning",
        "A slice repeats lane, start, end and name of another one, or a lane has the slices of another lane at the "
        "same times. A buffer was probably copied or read twice.",
        "Use totals without these slices. Look for a buffer that was copied twice, or two lanes that read one buffer.",
        _of("LS505"),
    ),
    Rule(
        "LS506",
        "lane shifted as a whole",
        "warning",
        "A lane starts and ends early, or late, by the same amount. The lanes next to it, or its siblings, all differ "
        "by much less. Its clock probably has another offset than theirs. Next to siblings alone it is a notice: the "
        "lane may just have started later.",
        "Do not compare times of this lane with those of other lanes; durations hold. Align its clock, or record an "
        "anchor for it.",
        _of("LS506"),
    ),
    Rule(
        "LS507",
        "implausible clock rate or unit",
        "warning",
        "A clock has a rate that such clocks do not have, or its anchors contradict the declared rate. Or all "
        "timestamps are multiples of an implausible number. Or all slices of a lane are many times as long as "
        "those of the same names on similar lanes.",
        "Check the frequency and the unit of the times. Use ratios within a lane, not durations.",
        _of("LS507"),
    ),
    Rule(
        "LS508",
        "records on a lane of another kind",
        "warning",
        "Records have names that nearly all lanes of another kind have, and hardly any lane of this kind. Lanes "
        "were exchanged, or records or names were attributed to the wrong lane.",
        "Do not compare this lane with the lanes like it. Check the numbers of lanes and of events that the "
        "recorder writes, and the list of names.",
        _of("LS508"),
    ),
    Rule(
        "LS509",
        "one record decides",
        "notice",
        "One record, or a few, are many times as long as the next longest of that name, and make up most of its "
        "time. Or one record makes its lane end long after all lanes like it. Sums and means are about these "
        "records alone. It may be true: a first record that warms up, a wait.",
        "Read the median of the name, or its time without these records. Look at their start and end.",
        _of("LS509"),
    ),
    Rule(
        "LS510",
        "recorder that ends elsewhere than the others",
        "warning",
        "Most recorders stop at one time, as they do on a shared signal. This one stops earlier or later: it lost, "
        "repeated or invented time on the way. It is a notice if only two agree.",
        "Do not compare times of this recorder with those of the others. Look for lost or repeated packets of it.",
        _of("LS510"),
    ),
)

#: Codes of the rules here.
CODES = frozenset(rule.code for rule in RULES)

"""What a trace of Level Zero cannot prove."""

from __future__ import annotations

from collections.abc import Iterator

from lanescope.families.limit import Limit
from lanescope.trace import Trace


def _without_loss_counts(trace: Trace) -> Iterator[str]:
    if "thapi_text" in trace.inputs.values("format").tolist():
        yield "text trace"


def _without_date(trace: Trace) -> Iterator[str]:
    if trace.time.epoch_kind != "unix":
        yield "all times"


LIMITS = (
    Limit(
        "lost-events",
        "That no event is missing: the text does not contain the counts of discarded events of the recording.",
        "Record with `lanescope record`, or convert the CTF recording, which counts them.",
        _without_loss_counts,
    ),
    Limit(
        "date",
        "When the run took place: captures of other hosts and devices cannot be placed next to it.",
        "Record with `lanescope record`, or pass the date with --start-date.",
        _without_date,
    ),
)

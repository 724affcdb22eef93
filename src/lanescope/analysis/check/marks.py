"""Which rule reports the flags of slices and instants, and the values of their quality, or why none does."""

from __future__ import annotations

from typing import NamedTuple

from lanescope.trace import Flag


class Carrier(NamedTuple):
    """What a reader of findings learns of a flag or a quality.

    Attributes:
        rule: code of the rule that reports the rows; empty if none does.
        reason: why none does.
    """

    rule: str = ""
    reason: str = ""


FLAGS: dict[Flag, Carrier] = {
    Flag.UNFINISHED: Carrier("LS103"),
    Flag.TRUNCATED: Carrier("LS103"),
    Flag.PARTIAL_OVERLAP: Carrier("LS101"),
    Flag.BELOW_RESOLUTION: Carrier("LS303"),
    Flag.CLOCK_SUSPECT: Carrier("LS304"),
    Flag.WRAP_AMBIGUOUS: Carrier("LS302"),
    Flag.INFERRED_START: Carrier(
        reason="the time from which work was known to run is a lower bound, and the gap before it is a finding"
    ),
    Flag.INFERRED_IDENTITY: Carrier(
        reason="one identity was possible; where several were, the decoder counts a stat of LS402 or LS404"
    ),
    Flag.NEGATIVE_DURATION: Carrier("LS301"),
    Flag.AFTER_GAP: Carrier("LS104"),
    Flag.CUT: Carrier(reason="the window was asked for, and the slice goes on outside of it"),
}
QUALITIES: dict[str, Carrier] = {
    "exact": Carrier(reason="recorded, or determined by what was recorded"),
    "estimated": Carrier("LS305"),
    "inferred": Carrier("LS305"),
}

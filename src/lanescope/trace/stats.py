"""Stats: decode diagnostics, each declared with a severity before it can be counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lanescope.trace.schema import SEVERITIES

#: Endings of stats about who or what a record is; the rules LS401 and LS402 report them, whatever their severity.
UNMATCHED = "_unmatched"
DUPLICATE = "_duplicate"
#: Ending of stats about what a recorder gave up, or did in another way than usual; the rule LS403 reports them.
DEGRADED = "_degraded"
#: Ending of stats about what a configuration leaves open, so that labels may be missing or wrong; the rule LS404.
CONFIG = "_config"
#: Endings of stats about a capture that holds nothing, about losses that nothing proves or rules out, and about what an
#: earlier run left; the rules LS004 to LS006 report them.
NO_RECORDS = "_no_records"
MAY_BE_LOST = "_may_be_lost"
STALE = ("_stale", "_stale_words")


@dataclass(frozen=True, slots=True)
class StatSpec:
    """Declaration of a stat that a decoder may count.

    Attributes:
        name: lower case; a family's own stats begin with its name (``aie_bad_header``). Those that count records
            without a partner (an end without a begin, a row of no known task) end in ``_unmatched``, those that count
            identities met twice in ``_duplicate``, those about an unsettled configuration in ``_config``: the checks
            know them by it.
        severity: ``info`` (worth knowing), ``notice`` (unusual), ``data_loss`` (something is missing), ``error``
            (something is contradictory).
        doc: one line: what is counted, a noun phrase in the plural; then, after a colon, what it means for the reader.
    """

    name: str
    severity: str
    doc: str

    def __post_init__(self) -> None:
        """Reject an unknown severity."""
        if self.severity not in SEVERITIES:
            raise ValueError(f"stat {self.name}: unknown severity {self.severity!r}")

    @property
    def counted(self) -> str:
        """What is counted: the documentation up to its first colon."""
        return self.doc.partition(": ")[0]


def counted(row: Mapping[str, Any]) -> str:
    """Return what a row of ``stats`` counts; its name if the trace was stored without the column."""
    return str(row.get("counted") or row["name"])


#: Stats that any family may count.
CORE_STATS: tuple[StatSpec, ...] = (
    StatSpec("unverified_encoding", "notice", "records with an encoding that is documented but unverified"),
    StatSpec("truncated", "data_loss", "truncated inputs: the file ends inside a unit"),
)

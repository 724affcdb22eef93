"""Stats: decode diagnostics, each declared with a severity, and a rule that reports it, before it can be counted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from lanescope.declaration import frozen_class
from lanescope.trace.schema import SEVERITIES

#: Rule, and severity of the finding, of stats about labels that may be of something else: commands warn of them.
AMBIGUOUS = ("LS404", "warning")
#: Rule for stats about a capture that holds nothing: commands warn of it.
NO_RECORDS = "LS004"
#: Rules for all traces that report stats. Those of a device family may report its stats, too.
STAT_RULES = (
    "LS002", "LS003", "LS004", "LS005", "LS006", "LS105", "LS305", "LS401", "LS402", "LS403", "LS404",
)  # fmt: skip
#: Severity of the finding, by the severity of the stat, unless the stat declares another one.
_FINDING_SEVERITIES = {"info": "notice", "notice": "warning", "data_loss": "warning", "error": "error"}
_FINDING = re.compile(r"([A-Z]{2,12}[0-9]{3})(?: (notice|warning|error))?")
#: What a count may be a share of: all slices and instants, or all lanes but those of the host. "": of neither.
SHARES = ("", "events", "lanes")


@frozen_class
class StatSpec:
    """Declaration of a stat that a decoder may count.

    Each stat is a finding of a rule, or gives the reason why it is none. Of severity ``data_loss`` and ``error`` it is
    one of LS002, unless it declares another rule.

    Attributes:
        name: lower case; a family's own stats begin with its name (``aie_bad_header``).
        severity: ``info`` (worth knowing), ``notice`` (unusual), ``data_loss`` (something is missing), ``error``
            (something is contradictory).
        doc: one line: what is counted, a noun phrase in the plural; then, after a colon, what it means for the reader.
        finding: code of the rule that reports it, and severity of the finding: ``LS305 warning``. Without a severity an
            ``info`` is a notice, an ``error`` is an error, and all others are warnings. The rule is one of
            ``STAT_RULES`` or one of the family.
        silent: reason why no rule reports it; of ``info`` and ``notice`` only.
        share_of: what the count is a share of: ``events`` (slices and instants) or ``lanes`` (but those of the host);
            empty: of neither. A finding of LS003, LS105, LS305 or LS404 gives the share, and is one step more severe
            if it is above 5% of the events.
        dropped_units: units of ``accounting`` of scope ``producer``, as patterns with ``*``, that the stat counts as
            dropped: such a row of the same input is the same loss.
        lost_units: the same of units of scope ``input`` that the stat counts as lost.
    """

    name: str
    severity: str
    doc: str
    finding: str = ""
    silent: str = ""
    share_of: str = ""
    dropped_units: tuple[str, ...] = ()
    lost_units: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Reject an unknown severity, rule or share, and a stat that nothing would report."""
        if self.severity not in SEVERITIES:
            raise ValueError(f"stat {self.name}: unknown severity {self.severity!r}")
        if self.share_of not in SHARES:
            raise ValueError(f"stat {self.name}: unknown share_of {self.share_of!r}")
        is_loss = self.severity in ("data_loss", "error")
        if self.finding and self.silent:
            raise ValueError(f"stat {self.name}: finding and silent exclude each other")
        if not (self.finding or self.silent or is_loss):
            raise ValueError(f"stat {self.name}: requires the rule that reports it (finding) or a reason (silent)")
        if self.silent and is_loss:
            raise ValueError(f"stat {self.name}: a stat of severity {self.severity} cannot be silent")
        if self.finding and not _FINDING.fullmatch(self.finding):
            raise ValueError(f"stat {self.name}: finding {self.finding!r} is not a rule code and a severity")
        if self.rule.startswith("LS") and self.rule not in STAT_RULES:
            raise ValueError(f"stat {self.name}: {self.rule} does not report stats")

    @property
    def counted(self) -> str:
        """What is counted: the documentation up to its first colon."""
        return self.doc.partition(": ")[0]

    @property
    def rule(self) -> str:
        """Code of the rule that reports the stat; empty if none does."""
        if self.finding or self.silent:
            return self.finding.partition(" ")[0]
        return "LS002"

    @property
    def finding_severity(self) -> str:
        """Severity of the finding; empty if there is none."""
        if self.silent:
            return ""
        return self.finding.partition(" ")[2] or _FINDING_SEVERITIES[self.severity]


def counted(row: Mapping[str, Any]) -> str:
    """Return what a row of ``stats`` counts; its name if the trace was stored without the column."""
    return str(row.get("counted") or row["name"])


def reported_by(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the rule that reports a row of ``stats``, and the severity of its finding; both empty if none does.

    If the trace was stored without these columns, they follow from the severity: losses and errors are reported as
    such, and what else was unusual is a notice of LS404, as its meaning is not known.
    """
    if row.get("rule") is not None:
        return str(row["rule"]), str(row.get("finding_severity") or "")
    if row["severity"] in ("data_loss", "error"):
        return "LS002", _FINDING_SEVERITIES[row["severity"]]
    return ("LS404", "notice") if row["severity"] == "notice" else ("", "")


_ASKED = "the window was asked for"
#: Stats that any family may count.
CORE_STATS: tuple[StatSpec, ...] = (
    StatSpec(
        "unverified_encoding",
        "notice",
        "records with an encoding that is documented but unverified",
        silent="says how well the format is known, nothing about this capture",
    ),
    StatSpec("truncated", "data_loss", "truncated inputs: the file ends inside a unit"),
    StatSpec(
        "unaligned_capture",
        "notice",
        "captures on a time axis of their own: merged side by side, as they share no clock with the first one",
        finding="LS305 warning",
    ),
    StatSpec(
        "kernel_placed_capture",
        "info",
        "captures placed by the kernels that ran their launches, as far as the name of their group states",
        finding="LS305",
    ),
    StatSpec(
        "placement_error",
        "info",
        "nanoseconds by which the place of a capture may be off against the first one: orders closer than that are "
        "undecided",
        silent="the name of its group states it, and rules that compare its times take it into account",
    ),
    StatSpec(
        "unknown_placement",
        "info",
        "captures placed with an unknown error: orders of their times and those of others are undecided",
        silent="the name of its group states it, and rules that compare its times take it into account",
    ),
    StatSpec(
        "unplaced_lanes",
        "info",
        "lanes that an alignment could not place: orders of their times and those of others are undecided",
        silent="the names of their groups state it, and rules that compare their times take it into account",
    ),
    StatSpec(
        "window_start",
        "info",
        "windows with a start: all but the accounting excludes what came before",
        silent=_ASKED,
    ),
    StatSpec(
        "window_end",
        "info",
        "windows with an end: all but the accounting excludes what came after",
        silent=_ASKED,
    ),
    StatSpec("window_excluded", "info", "excluded slices and instants: outside the window", silent=_ASKED),
    StatSpec(
        "window_filtered_slices",
        "info",
        "excluded slices in the window, by name, duration or condition: their lanes look idle meanwhile",
        silent=_ASKED,
    ),
    StatSpec("window_cut_slices", "info", "slices cut by the window: their durations are those in it", silent=_ASKED),
    StatSpec(
        "window_open_flows",
        "info",
        "excluded flows with one end in the window: the other end is outside",
        silent=_ASKED,
    ),
)

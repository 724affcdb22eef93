"""LS4xx: identity of records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.analysis.check.model import CheckContext
from lanescope.analysis.check.rules_accounting import stat_violation
from lanescope.families.rules import Rule, Violation
from lanescope.trace.stats import CONFIG, DEGRADED, DUPLICATE, UNMATCHED

#: Severity of a finding about identity, by the severity of its stat.
_WEIGHTS = {"info": "notice", "notice": "warning", "data_loss": "warning", "error": "error"}


def _stats(subject: CheckContext, ending: str) -> Iterator[Violation]:
    for row in subject.trace.stats.rows():
        if row["name"].endswith(ending):
            yield stat_violation(subject, row, _WEIGHTS[row["severity"]])


def _unmatched(subject: CheckContext) -> Iterator[Violation]:
    yield from _stats(subject, UNMATCHED)


def _duplicates(subject: CheckContext) -> Iterator[Violation]:
    yield from _stats(subject, DUPLICATE)
    tracks = subject.trace.tracks
    inputs = np.where(tracks.valid("input_id"), tracks.values("input_id"), -1).tolist()
    seen: dict[tuple[object, ...], int] = {}
    for track, key in enumerate(
        zip(subject.tree.parents, tracks.values("kind"), tracks.values("name"), inputs, strict=True)
    ):
        first = seen.setdefault(key, track)
        if first != track:
            yield Violation(
                detail="duplicate track path",
                table="tracks",
                rows=np.array([first, track], np.int64),
                count=1,
                track_id=track,
            )


def _degraded(subject: CheckContext) -> Iterator[Violation]:
    yield from _stats(subject, DEGRADED)


def _unsettled(subject: CheckContext) -> Iterator[Violation]:
    yield from _stats(subject, CONFIG)


RULES = (
    Rule(
        "LS401",
        "unmatched records",
        "warning",
        "The decoder found records without their partner: an end without a start, or a row of an unknown task. They "
        "are in no slice, or in a slice with an incomplete identity. The severity follows the stat.",
        "Look for lost records near the location. Check that all files of the capture are present and from the same "
        "run.",
        _unmatched,
    ),
    Rule(
        "LS402",
        "duplicate identities",
        "warning",
        "An identity that must be unique occurs more than once, so the assignment of records is uncertain. Or two "
        "tracks have the same path and cannot be distinguished by name.",
        "Look for IDs that are reused across launches, and for a file that was passed twice.",
        _duplicates,
    ),
    Rule(
        "LS403",
        "degraded recording",
        "warning",
        "The recorder could not record these objects completely: records of one kind are missing or less precise. The "
        "recorded program is not affected. The severity follows the stat.",
        "Read the description of the stat for what is missing. Treat idle time on these lanes as unknown.",
        _degraded,
    ),
    Rule(
        "LS404",
        "ambiguous or incomplete configuration",
        "warning",
        "The configuration that labels the lanes matches the capture in several ways, contradicts itself about one "
        "unit, or contains unsupported statements. Lanes then have no labels, labels from one of several matches, or "
        "incomplete labels. The severity follows the stat.",
        "Run `lanescope info` for the reason. Pass the configuration of the recorded design and sequence: `--config` "
        "or `--mlir` for AIE dumps, and `--column-shift` if several columns match.",
        _unsettled,
    ),
)

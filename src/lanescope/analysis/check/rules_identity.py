"""LS4xx: who or what a record is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.analysis.check.model import CheckContext
from lanescope.analysis.check.rules_accounting import stat_violation
from lanescope.families.rules import Rule, Violation
from lanescope.trace.stats import CONFIG, DEGRADED, DUPLICATE, UNMATCHED

#: How a stat's severity weighs in a finding about attribution.
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
                detail="two tracks have this path",
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
        "The decoder found records without their partner: an end without a begin, a row of no known task. They stand "
        "in no slice, or in one whose identity is incomplete. A notice or an error where the decoder weighs it so.",
        "Look for lost records around the place. Were all files of the capture given, and of the same run?",
        _unmatched,
    ),
    Rule(
        "LS402",
        "duplicate identities",
        "warning",
        "One identity was met more than once where it must be unique, so what belongs to which is a guess; or two "
        "tracks have the same path, so that nobody can tell them apart by name.",
        "Look for ids that are reused across launches, and for a file that was given twice.",
        _duplicates,
    ),
    Rule(
        "LS403",
        "the recorder gave something up",
        "warning",
        "The recorder could not do what it does elsewhere, so records of one kind are missing for these objects, or "
        "were made in a coarser way. What the program did is not changed by that. A notice or an error where the "
        "decoder weighs it so.",
        "The stat's text says what is missing. Idle time on the lanes concerned is not idle, it is unknown.",
        _degraded,
    ),
    Rule(
        "LS404",
        "the configuration does not settle the labels",
        "warning",
        "The configuration that labels the lanes fits the capture in several ways, says different things about one "
        "unit, or has statements that are not read. Lanes are then unlabelled, labelled by one of several choices, or "
        "their labels say less than the configuration. A notice or an error where the decoder weighs it so.",
        "`lanescope info` says which it is. Give the configuration of the one design and sequence that was recorded; "
        "for AIE dumps `--config` or `--mlir`, and `--colshift` where several columns fit.",
        _unsettled,
    ),
)

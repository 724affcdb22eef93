"""LS4xx: identity of records."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.analysis.check.common_rules.stat_findings import reports
from lanescope.analysis.check.model import CheckContext
from lanescope.families.rules import Rule, Violation


def _duplicates(subject: CheckContext) -> Iterator[Violation]:
    yield from reports("LS402")(subject)
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


RULES = (
    Rule(
        "LS401",
        "unmatched records",
        "warning",
        "The decoder found records without their partner: an end without a start, or a row of an unknown task. They "
        "are in no slice, or in a slice with an incomplete identity. The severity follows the stat.",
        "Look for lost records near the location. Check that all files of the capture are present and from the same "
        "run.",
        reports("LS401"),
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
        reports("LS403"),
    ),
    Rule(
        "LS404",
        "inferred identity or meaning",
        "warning",
        "The meaning of these records, or their task, kernel or tile, is not recorded, or the configuration is "
        "ambiguous or incomplete. The decoder chose an interpretation. The severity follows the stat, one step higher "
        "if more than 5% of the events are concerned.",
        "Run `lanescope info` for the reason. Pass the file or option that settles it, for AIE "
        "dumps `--config` or `--mlir`, and `--column-shift` if several columns match.",
        reports("LS404"),
    ),
)

"""What the collector of a capture says of its own work: ``metadata.collection``.

A collector that keeps several runs apart writes one file for each, and into it what of the run it knows to be missing.
Files of collectors that do not keep runs apart lack the object.
"""

from __future__ import annotations

from typing import Any

from lanescope.declaration import frozen_class

#: What a file says of itself that exists: complete, lacking records, and not known to be complete.
VERDICTS = ("published", "partial_safe", "partial_cut_unknown")
_MAX_COUNT = 1 << 62


@frozen_class
class Collection:
    """What a collector says that a file lacks.

    Attributes:
        lost: records that the device made and the collector did not get.
        buffers: buffers of core records, at least, that the device handed over and the collector did not get.
        doubts: statements that the file may lack records, none of which says how many.
        wrong: values that no collector writes.
    """

    lost: int = 0
    buffers: int = 0
    doubts: int = 0
    wrong: int = 0

    def __bool__(self) -> bool:
        """Return whether the file may lack records."""
        return bool(self.lost or self.buffers or self.doubts)


def collection_of(metadata: dict[str, Any]) -> Collection:
    """Return what ``metadata`` says of the collection; nothing is missing where they do not say."""
    told = metadata.get("collection")
    if not isinstance(told, dict):
        return Collection(wrong=int(told is not None))
    counts = {}
    wrong = 0
    for name in (
        "unpublished_loss",
        "transport_retired_records",
        "not_received_buffers",
        "transport_retired",
        "cut_failed_queues",
        "unattributable_handoffs",
    ):
        value = told.get(name, 0)
        is_count = type(value) is int and 0 <= value <= _MAX_COUNT
        counts[name] = value if is_count else 0
        wrong += not is_count
    answers = {}
    for name in ("processing_complete", "metadata_complete", "handoff_identity_verified"):
        answers[name] = told.get(name, True)
        wrong += type(answers[name]) is not bool
    verdict = told.get("verdict", VERDICTS[0])
    wrong += verdict not in VERDICTS
    # Of the buffers that were not received some may be among those whose records are counted.
    buffers = max(counts["not_received_buffers"] - counts["transport_retired"], 0)
    lost = counts["unpublished_loss"] + counts["transport_retired_records"]
    doubts = bool(counts["cut_failed_queues"]) + bool(counts["unattributable_handoffs"])
    doubts += sum(answers[name] is False for name in ("processing_complete", "metadata_complete"))
    if not (lost or buffers or doubts) and verdict in VERDICTS[1:]:
        doubts = 1
    return Collection(lost, buffers, doubts, wrong)

"""The versions of the file format: how each is detected by its shape, and what its stamps mean.

No file contains its version. Between two versions names change, and meanings: those that a reader has to know are
errata, named here, and asked for by name wherever they matter.

Source: as in ``layout``.
"""

from __future__ import annotations

import enum

from lanescope.declaration import frozen_class
from lanescope.devices.ascend.formats.layout import AICORE, HOST_SUBMITS
from lanescope.devices.ascend.formats.records import Records


class Erratum(enum.Enum):
    """A meaning that is not the same in all format versions."""

    END_AFTER_FIN = "the end is stamped after the finish register was written: it contains the write"
    END_BEFORE_FIN = "the end is stamped before the finish register is written"
    RECEIVE_AT_DOORBELL = "receive is stamped again when a task that was staged early is let go"
    RECEIVE_AT_PICKUP = "receive of a task that was staged early is stamped before it waits for its producers"
    DISPATCH_PER_BATCH = "all tasks that one pass publishes share the dispatch stamp"
    COUNTER_PER_RUN = "reg_task_id restarts with each run of the file"
    STREAMS_LEFT_OUT = "streams without records are not written: the index in the list is not a thread"
    SLOT_NOT_RESERVED = "a record at the end of a buffer may land in the next one"
    HALF_IDS = "markers name only the lower half of their task id"
    DEPTH_COPIED = "the queue depths at the end of `complete` are a copy of those at its start"
    JOINED = "the collector joined the streams: what had no partner is not in the file"
    MICROSECONDS = "times are microseconds with three decimals since the smallest stamp, not counter readings"
    SUBSTEPS = "a submit may be written as several records, one a step"


@frozen_class
class FormatVersion:
    """One version of the format.

    Attributes:
        name: as this project calls it.
        doc: one line: when, and how it is told.
        errata: what holds in it; that of hosts that orchestrate comes on top, see ``errata``.
        has_receive: whether cores write when they took a task.
        status: as in ``lanescope.wire``: ``published`` is known from its sources alone.
    """

    name: str
    doc: str
    errata: frozenset[Erratum]
    has_receive: bool = True
    status: str = "documented"


def _set(*errata: Erratum) -> frozenset[Erratum]:
    return frozenset((Erratum.DISPATCH_PER_BATCH, *errata))


_V1 = _set(Erratum.END_AFTER_FIN, Erratum.SLOT_NOT_RESERVED, Erratum.JOINED, Erratum.MICROSECONDS)
_V3 = _set(Erratum.END_AFTER_FIN, Erratum.SLOT_NOT_RESERVED, Erratum.HALF_IDS, Erratum.DEPTH_COPIED)
_CHIP = _set(Erratum.END_BEFORE_FIN)

FORMAT_VERSIONS = {
    format_version.name: format_version
    for format_version in (
        FormatVersion(
            "v1a",
            "until May 2026: `version` holds the level, `tasks` in microseconds, at first with `fanout`",
            _V1 | {Erratum.SUBSTEPS},
            has_receive=False,
            status="published",
        ),
        FormatVersion(
            "v1b", "end of May 2026: as v1a, level in `l2_perf_level`", _V1, has_receive=False, status="published"
        ),
        FormatVersion(
            "v1c", "June 2026: as v1a, level in `l2_swimlane_level`", _V1, has_receive=False, status="published"
        ),
        FormatVersion("v2", "June 2026: `aicore_tasks` rows of 5 numbers", _V3, has_receive=False),
        FormatVersion("v3", "June 2026 on: rows of 6 numbers", _V3 | {Erratum.RECEIVE_AT_DOORBELL}),
        FormatVersion("v3c", "August 2026: rows of 6 numbers, `chip_swimlane_level`", _CHIP),
        FormatVersion(
            "v4",
            "September 2026: rows of 7 numbers, `scheduler_tasks` and `scheduler_records`",
            _CHIP | {Erratum.COUNTER_PER_RUN, Erratum.STREAMS_LEFT_OUT},
            status="published",
        ),
    )
}

#: Runtimes that v4 names; the host builds the graph in the first one.
HOST_BUILT, RINGS = "host_build_graph", "tensormap_and_ringbuffer"


def on_host(records: Records) -> bool:
    """Return whether the orchestrator runs on the host."""
    metadata = records.metadata
    return (
        HOST_SUBMITS.name in records.sections
        or metadata.get("orchestrator_source") == "host"
        or metadata.get("runtime") == HOST_BUILT
    )


def errata(records: Records, runtime: str) -> frozenset[Erratum]:
    """Return what holds in a capture.

    Args:
        records: its records file.
        runtime: ``HOST_BUILT``, ``RINGS``; empty: not known.
    """
    found = FORMAT_VERSIONS[of(records)].errata
    if not found.isdisjoint((Erratum.RECEIVE_AT_DOORBELL, Erratum.MICROSECONDS)) or of(records) == "v2":
        return found
    return found | {Erratum.RECEIVE_AT_DOORBELL if runtime == HOST_BUILT else Erratum.RECEIVE_AT_PICKUP}


def of(records: Records) -> str:
    """Return the name of the format version of a capture: what its reader said, or what the shape of its rows says.

    A file without rows of cores is told by its naming alone.
    """
    if records.format_version:
        return records.format_version
    rows = records[AICORE]
    if len(rows) and rows.has("run_epoch").any():
        return "v4"
    if len(rows) and not rows.has("receive_to_start_cycles").any():
        return "v2"
    return "v3c" if records.level_key == "chip_swimlane_level" else "v3"

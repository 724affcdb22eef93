"""The generations of the file format: how each is told by its shape, what its stamps mean, and which reader takes it.

No generation says its version. Between two of them names change, and meanings: those that a reader has to know are
errata, named here, and asked for by name wherever they matter.

Source: as in ``layout``.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from lanescope.devices.ascend.frozen import frozen
from lanescope.devices.ascend.layout import AICORE, AICPU, HOST_SUBMITS, PHASES, SUBMITS, V1_TASKS, V4_AICPU
from lanescope.errors import InputError

if TYPE_CHECKING:
    from lanescope.devices.ascend.records import Bytes, File, Records


class Erratum(enum.Enum):
    """A meaning that is not the same in all generations."""

    END_AFTER_FIN = "the end is stamped after the finish register was written: it contains the write"
    END_BEFORE_FIN = "the end is stamped before the finish register is written"
    RECEIVE_AT_DOORBELL = "receive is stamped again when a task that was staged early is let go"
    RECEIVE_AT_PICKUP = "receive of a task that was staged early is stamped before it waits for its producers"
    DISPATCH_PER_BATCH = "all tasks that one pass publishes share the dispatch stamp"
    COUNTER_PER_RUN = "reg_task_id restarts with each run of the file"
    STREAMS_LEFT_OUT = "streams without records are not written: the place in the list is no thread"
    SLOT_NOT_RESERVED = "a record at the end of a buffer may land in the next one"
    HALF_IDS = "markers name only the lower half of their task id"
    DEPTH_COPIED = "the queue depths at the end of `complete` are a copy of those at its start"
    JOINED = "the collector joined the streams: what had no partner is not in the file"
    MICROSECONDS = "times are microseconds with three decimals since the smallest stamp, not counter readings"
    SUBSTEPS = "a submit may be written as several records, one a step"


@frozen
class Generation:
    """One generation of the format.

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

GENERATIONS = {
    generation.name: generation
    for generation in (
        Generation(
            "v1a",
            "until May 2026: `version` holds the level, `tasks` in microseconds, at first with `fanout`",
            _V1 | {Erratum.SUBSTEPS},
            has_receive=False,
            status="published",
        ),
        Generation(
            "v1b", "end of May 2026: as v1a, level in `l2_perf_level`", _V1, has_receive=False, status="published"
        ),
        Generation(
            "v1c", "June 2026: as v1a, level in `l2_swimlane_level`", _V1, has_receive=False, status="published"
        ),
        Generation("v2", "June 2026: `aicore_tasks` rows of 5 numbers", _V3, has_receive=False),
        Generation("v3", "June 2026 on: rows of 6 numbers", _V3 | {Erratum.RECEIVE_AT_DOORBELL}),
        Generation("v3c", "August 2026: rows of 6 numbers, `chip_swimlane_level`", _CHIP),
        Generation(
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
    """Tell whether the host orchestrates."""
    metadata = records.metadata
    return (
        HOST_SUBMITS.name in records.sections
        or metadata.get("orchestrator_source") == "host"
        or metadata.get("runtime") == HOST_BUILT
    )


def errata(records: Records) -> frozenset[Erratum]:
    """Return what holds in a capture."""
    found = GENERATIONS[of(records)].errata
    if not found.isdisjoint((Erratum.RECEIVE_AT_DOORBELL, Erratum.MICROSECONDS)) or of(records) == "v2":
        return found
    return found | {Erratum.RECEIVE_AT_DOORBELL if on_host(records) else Erratum.RECEIVE_AT_PICKUP}


def of(records: Records) -> str:
    """Return the name of the generation of a capture: what its reader said, or what the shape of its rows says.

    A file without rows of cores is told by its naming alone.
    """
    if records.generation:
        return records.generation
    rows = records[AICORE]
    if len(rows) and rows.has("run_epoch").any():
        return "v4"
    if len(rows) and not rows.has("receive_to_start_cycles").any():
        return "v2"
    return "v3c" if records.level_key == "chip_swimlane_level" else "v3"


def records(file: File, text: Bytes) -> Records:
    """Return a file's records, by the reader of its generation.

    Args:
        file: what stands in it.
        text: its bytes.

    Raises:
        InputError: it is no records file, or mixes generations.
    """
    shape = _shape(file)
    if shape == "v1":
        from lanescope.devices.ascend import v1

        return v1.records(file, _level(file), text)
    if shape == "v4":
        from lanescope.devices.ascend import v4

        return v4.records(file, _level(file))
    return _raw(file, _level(file))


def _shape(file: File) -> str:
    """Return the family of generations that a file belongs to: ``v1``, ``raw`` (v2, v3, v3c) or ``v4``."""
    lists = {name for name, section in file.lists.items() if len(section)}
    given = {*file.lists, *file.other, *(name for name, _, _ in file.unknown)}
    is_v1 = V1_TASKS.name in file.lists and given.isdisjoint(("edges", "tensors"))
    # An empty list proves little, but a file with it is no deps file.
    is_v1 |= "l2_perf_level" in file.levels or not lists.isdisjoint(("v1_scheduler_phases", "v1_orchestrator_phases"))
    rows = file.lists.get(AICORE.name)
    is_v4 = not given.isdisjoint((V4_AICPU.name, "v4_scheduler_records")) or bool(file.streams)
    is_v4 |= rows is not None and bool(rows.has("run_epoch").any())
    raw = {AICORE.name, AICPU.name} & given
    phases = {PHASES.name, SUBMITS.name} & lists
    found = [
        name for name, is_it in (("v1", is_v1), ("v4", is_v4), ("raw", bool(raw or phases) and not is_v4)) if is_it
    ]
    is_double = {AICPU.name, V4_AICPU.name} <= lists or {PHASES.name, "v4_scheduler_records"} <= lists
    if len(found) > 1 or is_double:
        raise InputError(
            f"{file.path} has lists of more than one generation", hint="no collector writes both: was the file edited?"
        )
    return found[0] if found else "raw"


def _level(file: File) -> tuple[str, int]:
    """Return the key of the level and the level; ``InputError`` without a usable one."""
    levels = dict(file.levels)
    if len(levels) > 1 or V1_TASKS.name not in file.lists:
        levels.pop("version", None)
    if len(levels) != 1 or not {"edges", "tensors"}.isdisjoint({*file.other, *(name for name, _, _ in file.unknown)}):
        raise InputError(
            f"{file.path} has {'no' if not levels or len(levels) == 1 else 'more than one'} level of the swimlane",
            hint="is it the records file, *_swimlane_records.json?",
        )
    key, level = next(iter(levels.items()))
    if type(level) is not int or not 1 <= level <= 4:
        raise InputError(f"{file.path} has the level {level!r}", hint="levels go from 1 to 4: was the file edited?")
    return key, level


def metadata_of(file: File) -> dict[str, Any]:
    """Return the metadata of a file that has counter readings; ``InputError`` if their frequency is not in it."""
    if not isinstance(file.metadata, dict):
        raise InputError(
            f"{file.path} has no metadata", hint="the counter's frequency stands there: take the capture again"
        )
    frequency = file.metadata.get("clock_freq_hz")
    if type(frequency) is not int or not 0 < frequency <= 1 << 62:
        raise InputError(
            f"{file.path} has the counter frequency {frequency!r}",
            hint="metadata.clock_freq_hz must be a number of Hz above 0",
        )
    return file.metadata


def _raw(file: File, level: tuple[str, int]) -> Records:
    """Read v2, v3 and v3c: the lists are what they say."""
    from lanescope.devices.ascend.records import Records

    return Records(*level, metadata_of(file), file.lists, tuple(file.unknown), file.size)

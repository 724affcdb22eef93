"""Where the fields of a file lie, and which other values a healthy run could have written.

Rows are not counted, and stand in no order. What ties them together is compared when a file is checked: correlations,
the order of calls and their work, the streams of rows, nesting, sizes with durations and rates, launch configurations
with the device, groups with their sizes. What is left is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lanescope.common.trace_event_sites import Cell, event_sites
from lanescope.families.field_sites import CUT, FieldMap, Possible, PossibleChange, Value, each

_MOST = 1 << 64
_GROUP_TEXT = "Process Group Description"
_TIMES = frozenset({"ts", "dur"})
_TIME = "another time that keeps rows of a lane apart or nested, and calls before their work: a row has one clock"
_HOST_PLACE = "another process or thread: a row of the host has its place only in pid and tid"
_GROUP = "a group that is not listed, or of the same ranks: the list of groups may not have all"
#: Why another value is possible, by field: what the file lacks to see it.
_REASONS = {
    "name": "another name: the file has the name of a row once, and no list of names",
    "pid": _HOST_PLACE,
    "tid": _HOST_PLACE,
    "args.correlation": "another correlation that no row has: a call and its rows have no second key",
    "args.External id": "another operator of a row without a partner: its correlation has only one External id",
    "args.Ev Idx": "another number of the event: numbers of events may have gaps and come in any order",
    "args.Record function id": "another number of the function: the file does not have the list of functions",
    "args.Python id": "another number of the call: only its callees refer to it, and they may be of another call",
    "args.Python parent id": "another caller: callers may have begun before the record",
    "args.cbid": "another number of the call: the file does not have the list of numbers and names of calls",
    "args.context": "another context: the file has it only in rows, and a stream may have been made anew",
    "args.queued": "another state of the queue: the file has it once",
    "args.registers per thread": "registers or memory that give another occupancy: limits of an SM are not in the file",
    "args.shared memory": "registers or memory that give another occupancy: limits of an SM are not in the file",
    "args.est. achieved occupancy %": "an estimate from limits of an SM that are not in the file",
    "args.blocks per SM": "another fraction within the digits that the producer writes",
    "args.warps per SM": "another fraction within the digits that the producer writes",
    "args.grid": "a configuration whose blocks on an SM are the same within the digits of the file",
    "args.block": "a configuration whose warps on an SM are the same within the digits of the file",
    "args.bytes": "a size that fits duration and bandwidth within the tolerance of the rule",
    "args.memory bandwidth (GB/s)": "a bandwidth that fits size and duration within the tolerance of the rule",
    "args.graph id": "another graph of rows whose launch has no other ones: the file has it once",
    "args.graph node id": "another node: the file does not have the graph",
    "args.Total Allocated": "another total: what threads without the profiler allocate has no events",
    "args.Total Reserved": "another total: what was reserved has no events of its own",
    "args.Device Id": "another device: the file has the device of an allocation once",
    "args.Device Type": "another device: the file has the device of an allocation once",
    "args.Seq": "another collective: collectives on other streams may have the numbers between",
    "args.Process Group Name": _GROUP,
    "args.Process Group Description": "no description, or one of a group that the run does not list",
    "args.Process Group Ranks": "a text that cannot be read as a list, which is taken for a shortened one",
    "args.In msg nelems": "another message: no rule compares what a collective takes with what it gives",
    "args.Out msg nelems": "another message: no rule compares what a collective takes with what it gives",
    "args.In split size": "another split: the file has it once",
    "args.Out split size": "another split: the file has it once",
    "args.dtype": "another type: sizes are counted in elements, not in bytes",
    "args.Collective name": "another collective: names of kernels and of collectives are not in one form",
    "file.distributedInfo.pg_count": "another count: healthy files count 10 groups where they list 11",
    "file.distributedInfo.pg_config.ranks": "another rank within the run: which ranks a group has is in the list only",
    "file.distributedInfo.rank": "another rank of the run: only the profiler of that rank knows it",
    "file.distributedInfo.world_size": "a larger run: the file is that of one rank",
    "file.baseTimeNanoseconds": "another date in steps that the producer makes: no other member has one",
    "file.deviceProperties.numSms": "other SMs that give the same blocks on an SM within the digits of the file",
    "file.deviceProperties.warpSize": "another warp that no configuration contradicts",
}
_NO_TEXT = "no description: older files have none"
_OTHER = "an argument that the file has once and no rule reads: {}"
_FILE = "a property of the run or its device that the file has once: {}"


def field_map(files: Mapping[str, bytes]) -> FieldMap:
    """Return the sites of a file, the first of ``files``."""
    return event_sites(files, _kind, _possible, _possible_change)


def _kind(event: Mapping[str, Any]) -> str:
    """Return the category of a row; of other events their phase, with the category if they have one."""
    phase, category = str(event.get("ph", "")), str(event.get("cat", ""))
    return category if phase == "X" else f"{phase} {category}".strip()


def _possible(record: str, name: str, cells: Sequence[Cell], events: Sequence[Mapping[str, Any]]) -> Possible:
    if name in _TIMES:
        return each(lambda _, value: _TIME if isinstance(value, int) and abs(value) < _MOST else "")
    if name == "args.External id":
        tied = _tied(events)
        return lambda values: (
            _REASONS[name] if all(map(_is_sound, values.values())) and _keeps_ties(events, cells, tied, values) else ""
        )
    if name == "args.graph id":
        return lambda values: (
            _REASONS[name] if all(map(_is_sound, values.values())) and _keeps_graphs(events, cells, values) else ""
        )
    if name == "args.Process Group Description":  # the run lists all groups of the seeds
        told = {str(event.get("args", {}).get(_GROUP_TEXT, "")).encode() for event in events}
        return each(lambda _, value: _REASONS[name] if isinstance(value, bytes) and value.strip(b'"') in told else "")
    if name == "distributedInfo.pg_config.pg_desc" and any(_GROUP_TEXT in event.get("args", {}) for event in events):
        described = {str(event.get("args", {}).get(_GROUP_TEXT, "")).encode() for event in events}
        return each(lambda _, value: _NO_TEXT if isinstance(value, bytes) and value.strip(b'"') in described else "")
    if record == "file":
        reason = _REASONS.get(f"file.{name}", _FILE.format(name.rpartition(".")[2]))
    elif name in ("ph", "cat", "s", "bp", "id"):
        reason = "another kind or tie of an event that may have these members"
    else:
        reason = _REASONS.get(name, _OTHER.format(name.removeprefix("args.")))
    return each(lambda _, value: reason if _is_sound(value) else "")


def _external_id(event: Mapping[str, Any]) -> Any:
    return event.get("args", {}).get("External id")


def _tied(events: Sequence[Mapping[str, Any]]) -> frozenset[int]:
    """Return the numbers of calls and rows that share a correlation with others which have an External id."""
    mine: dict[Any, list[int]] = {}
    for number, event in enumerate(events):
        correlation = event.get("args", {}).get("correlation")
        if event.get("ph") == "X" and correlation is not None and _external_id(event) is not None:
            mine.setdefault(correlation, []).append(number)
    return frozenset(number for numbers in mine.values() if len(numbers) > 1 for number in numbers)


def _keeps_ties(
    events: Sequence[Mapping[str, Any]], cells: Sequence[Cell], tied: frozenset[int], values: Mapping[int, Value]
) -> bool:
    """Return whether each of the values is that which is recorded, where the row has a partner."""
    return all(
        cells[at].event not in tied or value == _external_id(events[cells[at].event]) for at, value in values.items()
    )


def _keeps_graphs(events: Sequence[Mapping[str, Any]], cells: Sequence[Cell], values: Mapping[int, Value]) -> bool:
    """Return whether the rows of each launch name one graph."""
    changed = {cells[at].event: value for at, value in values.items()}
    graphs: dict[Any, set[Any]] = {}
    for number, event in enumerate(events):
        args = event.get("args", {})
        if event.get("ph") == "X" and "graph id" in args:
            graphs.setdefault(args.get("correlation"), set()).add(changed.get(number, args["graph id"]))
    return all(len(found) == 1 for found in graphs.values())


def _possible_change(kind: str, numbers: Sequence[int], events: Sequence[Mapping[str, Any]]) -> PossibleChange:
    return lambda change, _: "" if change == CUT else "rows are not counted, have no number, and come in any order"


def _is_sound(value: Value) -> bool:
    return (isinstance(value, int) and abs(value) < _MOST) or (isinstance(value, bytes) and b"\\" not in value)

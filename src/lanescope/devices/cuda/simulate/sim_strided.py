"""The simulated kernel with probes of TIRx v1, and of the layouts that share its slots."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats.encode import strided
from lanescope.devices.cuda.formats.layout import BEGIN, END, FINALIZE, FLASHINFER_V2, INSTANT, WARPSCOPE
from lanescope.devices.cuda.formats.word_source import Words
from lanescope.devices.cuda.simulate.expected_analysis import expected
from lanescope.devices.cuda.simulate.fault_injection import FAULTS, Faults, FaultyLane, joined
from lanescope.devices.cuda.simulate.sim_common import files, groups_of
from lanescope.devices.cuda.simulate.sim_kernel import EVENTS, I64, Entry, Kernel, Random, Setup, run
from lanescope.errors import UsageError, flag
from lanescope.families.family import Simulation

#: Tiles that an earlier launch has more than the one after it.
_MORE_TILES = 2


def simulate(setup: Setup, options: Mapping[str, Any], seed: int) -> Simulation:
    """Make a buffer of TIRx v1, or of a layout that shares its slots, and its truth; see ``simulate.simulate``."""
    _refuse(setup, options)
    faults = Faults(options, seed)
    kernel = run(setup, Random(seed))
    lanes = faults.take(kernel)
    index, records = kernel.records(without=[lane.number for lane in lanes])
    for lane in lanes:
        index, records = joined(index, records, lane)
    slots_needed = 1 + int((records.lane + index * setup.stride).max()) + 1
    old = _earlier(setup, options, seed, kernel) if options["stale"] else []
    # Without a finalize a lane that is just full cannot be told from one that lost something.
    slots = setup.slots or slots_needed + (0 if setup.finalizes else setup.stride)
    if old and not setup.slots:
        slots = max(slots, *map(len, old))
    if options["overflow"]:
        slots = max(1 + setup.lanes, slots_needed * 3 // 5)
    if slots < 1 + setup.lanes:
        raise UsageError(
            f"invalid slots {slots}: too few for {setup.lanes} lanes", hint="use more slots or 0 for the exact number"
        )
    max_records = options["max_records"]
    if max_records:
        slots = min(slots, 1 + max_records * setup.stride)
    words, stored = strided.encode(
        records, num_blocks=setup.blocks, num_groups=setup.groups, stride=setup.stride, slots=slots, index=index
    )
    truth = _truth(setup, kernel, lanes, slots)
    truth |= {"slots_needed": slots_needed, "records": int(np.count_nonzero(stored)), "wraps_32bit": setup.wrap}
    truth["lost_by_lane"] = _lost_by_lane(records.lane[~stored], setup.groups)
    truth["lost_records"] = int(np.count_nonzero(~stored))
    if setup.layout == FLASHINFER_V2:
        words = strided.to_flashinfer2(words, num_blocks=setup.blocks, num_groups=setup.groups, sm=setup.sm)
        truth["sm"] = setup.sm.tolist()
    truth["stale_launches"] = [_leave(words, launch, setup) for launch in old]
    truth["stale"] = _together(truth["stale_launches"])
    for lane in lanes:
        lane.corrupt_words(words, setup, truth)
    truth["expected"] = expected(kernel)
    if max_records:
        # A probe with a limit leaves the slots behind it alone, however large the buffer is.
        words = np.concatenate([words, np.zeros(setup.stride, np.uint64)])
    return Simulation(files=files(strided.to_npy(words), truth), truth=truth)


def _earlier(setup: Setup, options: Mapping[str, Any], seed: int, kernel: Kernel) -> list[Words]:
    """Return the buffer as each earlier launch of the same kernel left it, on other SMs and with tiles of its own.

    The one right before this launch is the first; each further one has more tiles.
    """
    found = []
    begin = min(int(times[0].min()) for times in kernel.times)
    for number in range(options["launches"]):
        tiles = options["stale"] + number * _MORE_TILES
        old = run(replace(setup, tiles=tiles, wrap=False), Random(seed + (3 + number << 64)))
        end = max(int(times[-1].max()) for times in old.times)
        old.times = [times + (begin - options["apart"] - end) for times in old.times]
        begin = min(int(times[0].min()) for times in old.times)
        index, records = old.records(without=[])
        words, _ = strided.encode(
            records, num_blocks=setup.blocks, num_groups=setup.groups, stride=setup.stride, index=index
        )
        if setup.layout == FLASHINFER_V2:
            sm = (setup.sm + 1 + number) % setup.sms
            words = strided.to_flashinfer2(words, num_blocks=setup.blocks, num_groups=setup.groups, sm=sm)
        found.append(words)
    return found


def _together(launches: list[list[list[int]]]) -> list[list[int]]:
    """Return the rows of ``_leave`` for all earlier launches as one."""
    found: dict[tuple[int, int], list[int]] = {}
    for block, group, at, count in (row for launch in launches for row in launch):
        before = found.get((block, group), [block, group, at, 0])
        found[block, group] = [block, group, min(before[2], at), before[3] + count]
    return [found[key] for key in sorted(found)]


def _leave(words: Words, old: Words, setup: Setup) -> list[list[int]]:
    """Put what an earlier launch left where this one stored nothing.

    Returns:
        A row for each lane that holds any of it: block, group, its first position, records.
    """
    length = min(len(words), len(old))
    slots = np.flatnonzero((words[:length] == 0) & (old[:length] != 0))
    words[slots] = old[slots]
    index, lane = np.divmod(slots - 1, setup.stride)
    lanes, first, counts = np.unique(lane, return_index=True, return_counts=True)
    rows = zip(lanes.tolist(), index[first].tolist(), counts.tolist(), strict=True)
    return [[*divmod(number, setup.groups), at, count] for number, at, count in rows]


def _refuse(setup: Setup, options: Mapping[str, Any]) -> None:
    """Refuse options that the layout has no way to show."""
    for name in ("ring", "clock64", "payload", "refused", "across"):
        if options[name]:
            raise UsageError(f"{flag(name)} requires --layout ls2", hint="use --layout ls2")
    if options["max_records"] and setup.layout != WARPSCOPE:
        raise UsageError(f"layout {setup.layout} has no record limit", hint="use --layout warpscope or --slots")
    for name in ("no_finalize", "reruns"):
        if options[name] and not setup.finalizes:
            raise UsageError(
                f"{flag(name)} is not supported by layout {setup.layout}: no finalize records",
                hint=f"remove {flag(name)}",
            )


# --- the truth ----------------------------------------------------------------------------------------------------


def _truth(setup: Setup, kernel: Kernel, lanes: list[FaultyLane], slots: int) -> dict[str, Any]:
    """Return the rows that a decoder must find, by lane and begin record, as in the golden buffers."""
    capacity = np.maximum(0, (slots - 2 - np.arange(setup.lanes)) // setup.stride + 1)
    special = {lane.number for lane in lanes}
    spans, opened, instants, finalized = [], [], [], []
    for group in range(setup.groups):
        blocks = np.array([b for b in range(setup.blocks) if b * setup.groups + group not in special], np.int64)
        room = capacity[blocks * setup.groups + group]
        times, events = kernel.times[group], kernel.events[group]
        begin, end = _pairs(kernel.kinds[group])
        spans.append(_rows(blocks, group, begin, end, times, events, (end[:, None] < room)))
        is_open = (begin[:, None] < room) & (end[:, None] >= room)
        opened.append(_rows(blocks, group, begin, end, times, events, is_open))
        marks = np.flatnonzero(kernel.kinds[group] == INSTANT)
        instants.append(_rows(blocks, group, marks, marks, times, events, marks[:, None] < room))
        if setup.finalizes:
            finalized += [[int(b), group] for b in blocks[len(events) <= room]]
    for lane in lanes:
        found = _lane_rows(lane, setup.groups, int(capacity[lane.number]))
        spans.append(found["spans"])
        opened.append(found["open"])
        instants.append(found["instants"])
        stored = lane.entries[: int(capacity[lane.number])]
        if any(entry.kind == FINALIZE for entry in stored):
            finalized.append(list(divmod(lane.number, setup.groups)))
    return {
        "format": setup.layout,
        "num_blocks": setup.blocks,
        "num_groups": setup.groups,
        "stride": setup.stride,
        "slots": slots,
        "tick_ns": setup.tick,
        "event_names": list(EVENTS),
        "groups": groups_of(setup),
        "columns": ["block", "group", "event_id", "name", "begin_ns", "end_ns", "dur_ns"],
        "spans": _listed(spans, ends=True),
        "instants": _listed(instants),
        "unfinished_regions": _listed(opened),
        "finalized_lanes": sorted(finalized),
        **{fault: [] for fault in FAULTS},
    }


def _pairs(kinds: I64) -> tuple[I64, I64]:
    """Return the positions of the begins, and of their ends, of properly nested records."""
    stack: list[int] = []
    end_of: dict[int, int] = {}
    for at, kind in enumerate(kinds.tolist()):
        if kind == BEGIN:
            stack.append(at)
        elif kind == END:
            end_of[stack.pop()] = at
    begin = sorted(end_of)
    return np.array(begin, np.int64), np.array([end_of[at] for at in begin], np.int64)


def _rows(blocks: I64, group: int, begin: I64, end: I64, times: I64, events: I64, mask: npt.NDArray[np.bool_]) -> I64:
    """Return rows (block, group, begin record, event, begin, end), int64 [n, 6], of the regions under a mask."""
    region, block = np.nonzero(mask)
    rows = np.empty((len(region), 6), np.int64)
    rows[:, 0] = blocks[block]
    rows[:, 1] = group
    rows[:, 2] = begin[region]
    rows[:, 3] = events[begin[region]]
    rows[:, 4] = times[begin[region], rows[:, 0]]
    rows[:, 5] = times[end[region], rows[:, 0]]
    return rows


def _lane_rows(lane: FaultyLane, groups: int, capacity: int) -> dict[str, I64]:
    """Return the rows of one lane, by what they are; of a lane with two writers only that it has them."""
    block, group = divmod(lane.number, groups)
    found: dict[str, list[tuple[int, ...]]] = {"spans": [], "open": [], "instants": []}
    begun: dict[int, tuple[int, Entry]] = {}
    for at, entry in enumerate(lane.entries[:capacity] if lane.fault != "two_writers" else ()):
        if entry.kind == BEGIN:
            begun[entry.region] = at, entry
        elif entry.kind == END and entry.region in begun:
            start, first = begun.pop(entry.region)
            found["spans"].append((block, group, start, entry.event, first.time, entry.time))
        elif entry.kind == INSTANT:
            found["instants"].append((block, group, at, entry.event, entry.time, entry.time))
    found["open"] = [(block, group, start, first.event, first.time, first.time) for start, first in begun.values()]
    return {name: np.array(rows, np.int64).reshape(-1, 6) for name, rows in found.items()}


def _listed(parts: list[I64], *, ends: bool = False) -> list[tuple[Any, ...]]:
    """Return rows (block, group, event, name, begin, end, length) in the order of their lanes and begin records.

    Rows are tuples made of whole columns: lists of rows cost five times the rest of the simulation.
    """
    rows = np.concatenate(parts)
    block, group, _, event, begin, end = rows[np.lexsort((rows[:, 2], rows[:, 1], rows[:, 0]))].T
    columns: list[list[Any]] = [column.tolist() for column in (block, group, event)]
    columns += [[EVENTS[number] for number in columns[2]], begin.tolist()]
    if ends:
        columns += [end.tolist(), (end - begin).tolist()]
    return list(zip(*columns, strict=True))


def _lost_by_lane(lane: I64, groups: int) -> list[list[int]]:
    lanes, counts = np.unique(lane, return_counts=True)
    return [[*divmod(number, groups), count] for number, count in zip(lanes.tolist(), counts.tolist(), strict=True)]

"""The simulated kernel with LS2 probes: asynchronous loads, flows between its groups, counters, and exact losses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.encode import ls2, strided
from lanescope.devices.cuda.formats.encode.ls2 import Ls2Records, Ls2Setup
from lanescope.devices.cuda.formats.layout import (
    ASYNC_BEGIN,
    ASYNC_END,
    BEGIN,
    COUNTER,
    END,
    FINALIZE,
    FLOW_IN,
    FLOW_OUT,
    INSTANT,
    LS2_FLOAT,
)
from lanescope.devices.cuda.simulate.expected_analysis import expected
from lanescope.devices.cuda.simulate.sim_common import files, groups_of
from lanescope.devices.cuda.simulate.sim_kernel import (
    EMPTY,
    EVENTS,
    FETCH,
    FULL,
    I64,
    IN_FLIGHT,
    LOAD_K,
    LOAD_V,
    OUTPUT,
    PV,
    QK,
    STAGES,
    STORE,
    STORED_KIB,
    TURN,
    WAIT_EMPTY,
    WAIT_FULL,
    WAIT_OUTPUT,
    Kernel,
    Random,
    Setup,
    run,
)
from lanescope.errors import UsageError, flag
from lanescope.families.family import Simulation

_TOKENS = layout.LS2_RECORD["token"].mask
#: Cycles a nanosecond of the simulated SMs, as a ratio.
_MHZ = 1755
#: How far the counters of the SMs lie apart, in cycles.
_SPREAD = 3_540_000_000
#: The timers of two GPUs, and of a GPU and the host, differ by this much.
_GPU_OFFSET = 777_777_777_777
_UNIX_OFFSET = 1_795_000_000_000_000_000
_ANCHOR_ERROR = 900
_FAULTS = ("unfinished", "holes", "corrupt")
_HOLE = 3


@dataclass(frozen=True, slots=True)
class _Flat:
    """All records that the kernel offered, lane after lane.

    Attributes:
        records: as the encoder takes them; times in ns.
        region: int64 [n], the same for begin and end of one region, -1 for other records.
        tile: int64 [n].
        value: float64 [n], of counters.
    """

    records: Ls2Records
    region: I64
    tile: I64
    value: npt.NDArray[np.float64]

    def take(self, rows: Any) -> _Flat:
        return _Flat(self.records.take(rows), self.region[rows], self.tile[rows], self.value[rows])


def simulate(setup: Setup, options: Mapping[str, Any], seed: int) -> Simulation:
    """Make an LS2 buffer and its truth; ``simulate.simulate`` describes both."""
    _refuse(options)
    clocked = options["clock64"]
    kernel = run(Setup.of({**options, "tick": 1}) if clocked else setup, Random(seed))
    grid_blocks, blocks = setup.blocks, setup.blocks - options["refused"]
    kernel, setup = kernel.first(blocks), replace(setup, blocks=blocks)
    random = Random(seed + (1 << 64))
    flat = _flatten(kernel, random, payload=options["payload"], across=options["across"])
    killed, flat = _truncate_lanes(flat, kernel, options["unfinished"], random)
    width = 2 if options["payload"] else 1
    grid: dict[str, Any] = {"num_blocks": setup.blocks, "num_groups": setup.groups, "record_words": width}
    _, needed = ls2.positions(flat.records, Ls2Setup(**grid, capacity=1))
    capacity = 1 << max(0, int(needed.max()) - 1).bit_length()
    if options["overflow"]:
        capacity = max(1, capacity // 2)
    origin = options["gpu"] * _GPU_OFFSET
    sm = np.repeat(setup.sm, setup.groups)
    begin, end = _extent(kernel, setup.tick)
    heads = ls2.lane_heads(
        setup.lanes,
        state=np.where(killed, layout.RUNNING, layout.FINALIZED),
        begin_ns=begin // setup.tick * setup.tick + origin,
        begin_cycles=_cycles(begin, sm, seed),
        end_ns=np.where(killed, 0, end // setup.tick * setup.tick + origin),
        end_cycles=np.where(killed, 0, _cycles(end, sm, seed)),
        sm=sm,
        warp=np.tile([group["leader"] // 32 for group in groups_of(setup)], setup.blocks),
        cluster_rank=np.repeat(np.arange(setup.blocks) % 2, setup.groups),
        grid_id=seed + 1,
    )
    times = _cycles(flat.records.time, sm[flat.records.lane], seed) if clocked else flat.records.time + origin
    host = Ls2Setup(
        **grid,
        capacity=capacity,
        clock=layout.CLOCK64 if clocked else layout.GLOBALTIMER,
        is_ring=options["ring"],
        launch=seed,
        ordinal=options["gpu"],
        anchors=tuple(
            (at + origin, at + _UNIX_OFFSET + late, _ANCHOR_ERROR)
            for at, late in ((int(begin.min()) - 50_000, 400), (int(end.max()) + 50_000, -300))
        ),
    )
    old = flat.records
    packed = Ls2Records(old.lane, old.event, old.kind, times, old.token, old.payload)
    block, group = np.divmod(np.arange(grid_blocks * setup.groups), setup.groups)
    host = ls2.refuse(host, grid_blocks, block, group)
    words, stored, offered = ls2.encode(packed, host, heads)
    damage = _damage(words, host, options, random, flat, stored)
    truth = {
        "format": layout.LS2,
        "num_blocks": setup.blocks,
        "num_groups": setup.groups,
        "capacity": capacity,
        "tick_ns": setup.tick,
        "origin_ns": origin,
        "unix_offset_ns": _UNIX_OFFSET - origin,
        "event_names": list(EVENTS),
        "groups": groups_of(setup),
        "sm": setup.sm.tolist(),
        "records": int(np.count_nonzero(stored)),
        "grid_blocks": grid_blocks,
        "unallocated_lanes": options["refused"] * setup.groups,
        "lost_by_lane": _lost(offered, capacity, setup.groups),
        "killed_lanes": [list(divmod(n, setup.groups)) for n in np.flatnonzero(killed).tolist()],
        "extent": _listed(setup, np.arange(setup.lanes), begin, end),
        **damage,
        **_truth(setup, flat, stored),
        "expected": expected(kernel),
    }
    return Simulation(files=files(strided.to_npy(words), truth), truth=truth)


def _refuse(options: Mapping[str, Any]) -> None:
    faults = ("no_finalize", "two_writers", "clock_step", "crossing", "stray_ends", "reruns")
    for name in (*faults, "slots", "max_records", "stale"):
        if options[name]:
            raise UsageError(f"{flag(name)} is not supported by layout ls2", hint=f"remove {flag(name)}")
    if options["refused"] >= options["blocks"]:
        raise UsageError("too many refused blocks: the buffer holds at least one block", hint="simulate more blocks")
    if options["across"] and options["groups"] < 2:
        raise UsageError("--across requires a group that loads for others", hint="use --groups 2 or more")
    if options["clock64"] and options["wrap"]:
        raise UsageError("--wrap and SM counters are mutually exclusive", hint="remove --wrap")


# --- what is recorded ---------------------------------------------------------------------------------------------


def _plan(kernel: Kernel, group: int, *, across: bool) -> dict[str, I64]:
    """Return what one lane of a group records: columns event, kind, row (whose time it has), tile, token, region.

    With ``across`` the group that waits for a load ends it, by a token that the two have agreed on: that of the tile,
    which is never 0.
    """
    setup = kernel.setup
    role, size = setup.role(group), len(setup.pattern(group))
    # Compute groups take turns: the first one waits for the load, each other one for the product of the one before it.
    beside = (setup.role(other) if other < setup.groups else "" for other in (group - 1, group + 1))
    is_later, is_followed = (role == other == "compute" for other in beside)
    awaits = next((g for g in range(setup.groups) if (WAIT_FULL, END) in setup.pattern(g)), -1)
    awaited = {WAIT_EMPTY: EMPTY, WAIT_FULL: FULL, WAIT_OUTPUT: OUTPUT}
    plan: list[tuple[int, int, int, int, int]] = []
    for tile in range(setup.tiles):
        token = tile & _TOKENS
        for at, (event, kind) in enumerate(setup.pattern(group)):
            row = tile * size + at
            if kind == END and event == WAIT_FULL and is_later:
                turn = tile * setup.groups + group
                plan.append((TURN, FLOW_IN, row, turn, turn & _TOKENS))
            elif kind == END and event in awaited and (event != WAIT_EMPTY or tile >= STAGES):
                back = STAGES if event == WAIT_EMPTY else 0
                plan.append((awaited[event], FLOW_IN, row, tile - back, tile - back & _TOKENS))
            if kind == END and event == QK and is_followed:
                turn = tile * setup.groups + group + 1
                plan.append((TURN, FLOW_OUT, row, turn, turn & _TOKENS))
            if kind == END and role == "load" and event == LOAD_V:
                plan.append((FULL, FLOW_OUT, row, tile, token))
            if kind == END and role == "compute" and event == PV:
                plan.append((EMPTY, FLOW_OUT, row, tile, token))
                if setup.groups > 2:
                    plan.append((OUTPUT, FLOW_OUT, row, tile, token))
            plan.append((event, kind, row, tile, 0))
            if across and kind == END and event == WAIT_FULL and group == awaits:
                plan.append((FETCH, ASYNC_END, row, tile, 1 + tile % _TOKENS))
            if kind == BEGIN and event == LOAD_K:
                plan.append((FETCH, ASYNC_BEGIN, row, tile, 1 + tile % _TOKENS if across else token))
                if tile and not across:
                    plan.append((FETCH, ASYNC_END, row, tile - 1, tile - 1 & _TOKENS))
            if kind == END and event == WAIT_EMPTY:
                plan.append((IN_FLIGHT, COUNTER, row, tile, 0))
            if kind == END and event == STORE:
                plan.append((STORED_KIB, COUNTER, row, tile, LS2_FLOAT))
    if role in ("load", "all") and not across:
        plan.append((FETCH, ASYNC_END, setup.tiles * size - 1, setup.tiles - 1, setup.tiles - 1 & _TOKENS))
    columns = np.array(plan, np.int64).T
    found = dict(zip(("event", "kind", "row", "tile", "token"), columns, strict=True))
    found["region"] = _regions(found["kind"].tolist(), found["tile"].tolist(), across=across)
    return found


def _regions(kinds: list[int], tiles: list[int], *, across: bool) -> I64:
    """Number the regions of a lane by their begin; records that are neither begin nor end have -1.

    Regions over lanes have the numbers of their tiles, from -2 down.
    """
    stack: list[int] = []
    fetches: dict[int, int] = {}
    found = [-1] * len(kinds)
    for at, (kind, tile) in enumerate(zip(kinds, tiles, strict=True)):
        if kind == BEGIN:
            stack.append(at)
            found[at] = at
        elif kind == END:
            found[at] = stack.pop()
        elif across and kind in (ASYNC_BEGIN, ASYNC_END):
            found[at] = -2 - tile
        elif kind == ASYNC_BEGIN:
            found[at] = fetches[tile] = at
        elif kind == ASYNC_END:
            found[at] = fetches.pop(tile)
    return np.array(found, np.int64)


def _flatten(kernel: Kernel, random: Random, *, payload: bool, across: bool) -> _Flat:
    """Return what all lanes record."""
    setup = kernel.setup
    parts, longest = [], 0
    for group in range(setup.groups):
        plan = _plan(kernel, group, across=across)
        count = len(plan["event"])
        longest = max(longest, count)
        times = kernel.times[group][plan["row"]].T.ravel()
        lane = np.repeat(np.arange(setup.blocks) * setup.groups + group, count)
        columns = [np.tile(plan[name], setup.blocks) for name in ("event", "kind", "token", "tile", "region")]
        parts.append((lane, times, *columns))
    lane, times, event, kind, token, tile, region = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.argsort(lane, kind="stable")
    lane, times, event, kind, token, tile, region = (
        column[order] for column in (lane, times, event, kind, token, tile, region)
    )
    over = (lane // setup.groups) * setup.tiles + setup.lanes * longest - 2 - region
    region = np.where(region >= 0, region + lane * longest, np.where(region < -1, over, -1))
    whole = np.minimum(tile + 1, STAGES) - 2 * (tile % 3 == 2)
    value = np.where(token == LS2_FLOAT, tile * 0.5, whole.astype(np.float64))
    bits = np.where(token == LS2_FLOAT, value.view(np.uint64), whole.astype(np.uint64))
    if payload:
        numbers = (random.uniform(len(lane)) * 2.0**53).astype(np.uint64) << np.uint64(11)
    else:
        numbers = np.zeros(len(lane), np.uint64)
    payloads = np.where(kind == COUNTER, bits, numbers)
    return _Flat(Ls2Records(lane, event, kind, times, token, payloads), region, tile, value)


def _extent(kernel: Kernel, tick: int) -> tuple[I64, I64]:
    """Return when each lane was begun and finalized, both int64 [lanes], ns."""
    begin = np.stack([times[0] - 3 * max(tick, 32) for times in kernel.times], axis=1).ravel()
    end = np.stack([times[-1] for times in kernel.times], axis=1).ravel()
    assert all(kinds[-1] == FINALIZE for kinds in kernel.kinds)
    return begin, end


def _cycles(ns: I64, sm: I64, seed: int) -> I64:
    """Return what the SMs' counters show at a time."""
    start = (Random(seed + (2 << 64)).uniform(int(sm.max()) + 1) * _SPREAD).astype(np.int64)
    found: I64 = start[sm] + ns * _MHZ // 1000
    return found


# --- what goes wrong ----------------------------------------------------------------------------------------------


def _truncate_lanes(flat: _Flat, kernel: Kernel, count: int, random: Random) -> tuple[npt.NDArray[np.bool_], _Flat]:
    """Let some lanes end in the middle; return which, bool [lanes], and what is left."""
    killed = np.zeros(kernel.setup.lanes, np.bool_)
    if count > len(killed):
        raise UsageError(f"too many lanes to end early: {count} of {len(killed)}", hint="simulate more blocks")
    kept = np.ones(len(flat.tile), np.bool_)
    for lane in random.shuffled(len(killed))[:count]:
        killed[lane] = True
        rows = np.flatnonzero(flat.records.lane == lane)
        kept[rows[1 + random.randrange(len(rows) - 1) :]] = False
    return killed, flat.take(kept)


def _damage(
    words: npt.NDArray[np.uint64],
    host: Ls2Setup,
    options: Mapping[str, Any],
    random: Random,
    flat: _Flat,
    stored: npt.NDArray[np.bool_],
) -> dict[str, Any]:
    """Spoil words of some lanes; return what was done, by fault."""
    found: dict[str, Any] = {fault: [] for fault in ("holes", "corrupt")}
    wanted = [fault for fault in found for _ in range(options[fault])]
    if len(wanted) > host.lanes:
        raise UsageError(f"too many faults: {len(wanted)} for {host.lanes} lanes", hint="simulate more blocks")
    lanes = words[layout.LS2_FILE_WORDS :].reshape(host.lanes, host.lane_words)[:, layout.LS2_LANE_WORDS :]
    for fault, lane in zip(wanted, random.shuffled(host.lanes), strict=False):
        count = int(np.count_nonzero(flat.records.lane[stored] == lane))
        at = random.randrange(max(1, count - _HOLE - 1)) * host.record_words
        if fault == "holes":
            lanes[lane, at : at + _HOLE * host.record_words] = 0
        else:
            lanes[lane, at] &= ~np.uint64(3)
        found[fault].append(list(divmod(lane, host.num_groups)))
    return found


def _lost(offered: I64, capacity: int, groups: int) -> list[list[int]]:
    lost = np.maximum(0, offered - capacity)
    return [[*divmod(lane, groups), int(lost[lane])] for lane in np.flatnonzero(lost).tolist()]


# --- the truth ----------------------------------------------------------------------------------------------------


def _truth(setup: Setup, flat: _Flat, stored: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return the rows that a decoder must find, by lane and record."""
    records = flat.records
    begins = np.flatnonzero((records.kind == BEGIN) | (records.kind == ASYNC_BEGIN))
    ends = np.flatnonzero((records.kind == END) | (records.kind == ASYNC_END))
    end_of = np.full(int(flat.region.max(initial=-1)) + 1, -1, np.int64)
    begin_of = end_of.copy()
    end_of[flat.region[ends]] = ends
    begin_of[flat.region[begins]] = begins
    end = end_of[flat.region[begins]]
    has_end = (end >= 0) & stored[np.maximum(end, 0)]
    is_async = records.kind[begins] == ASYNC_BEGIN
    whole, cut = stored[begins] & has_end, stored[begins] & ~has_end
    begun = begin_of[flat.region[ends]]
    stray = ends[stored[ends] & ~((begun >= 0) & stored[np.maximum(begun, 0)])]
    marks = np.flatnonzero(stored & (records.kind == INSTANT))
    counters = np.flatnonzero(stored & (records.kind == COUNTER))

    def rows(at: I64, *columns: Any) -> list[tuple[Any, ...]]:
        return _listed(setup, records.lane[at], records.event[at], records.time[at], *columns)

    def spans(mask: npt.NDArray[np.bool_]) -> list[tuple[Any, ...]]:
        return rows(begins[mask], records.time[end[mask]])

    return {
        "spans": spans(whole & ~is_async),
        "async": spans(whole & is_async),
        "across": rows(
            begins[over := whole & is_async & (records.lane[np.maximum(end, 0)] != records.lane[begins])],
            records.time[end[over]],
            records.lane[end[over]] % setup.groups,
        ),
        "unfinished_regions": rows(begins[cut & ~is_async]),
        "open_async": rows(begins[cut & is_async]),
        "stray_ends": rows(stray),
        "instants": rows(marks),
        "counters": rows(counters, flat.value[counters]),
        "flows": _flows(setup, flat, stored),
        "payloads": [str(value) for value in records.payload[begins[whole & ~is_async]].tolist()],
    }


def _flows(setup: Setup, flat: _Flat, stored: npt.NDArray[np.bool_]) -> list[tuple[Any, ...]]:
    """Return [block, event, tile, group and time of the cause, then of the effect]; the latest cause counts.

    A turn has a number of its own for each tile and group.
    """
    records = flat.records
    block, group = records.lane // setup.groups, records.lane % setup.groups
    key = (block * len(EVENTS) + records.event) * (setup.tiles + STAGES) * setup.groups + flat.tile + STAGES
    causes = np.flatnonzero(stored & (records.kind == FLOW_OUT))
    effects = np.flatnonzero(stored & (records.kind == FLOW_IN))
    causes = causes[np.lexsort((records.lane[causes], records.time[causes], key[causes]))]
    at = np.searchsorted(key[causes], key[effects], side="right") - 1
    # An effect without a cause before it, or where no cause was stored at all, picks the -1, which is not a key.
    known = np.append(key[causes], -1)[at] == key[effects]
    effect, cause = effects[known], causes[at[known]]
    columns = [block[effect], records.event[effect], flat.tile[effect], group[cause], records.time[cause]]
    columns += [group[effect], records.time[effect]]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


def _listed(setup: Setup, lane: I64, *columns: Any) -> list[tuple[Any, ...]]:
    """Return rows that begin with block and group."""
    parts = [lane // setup.groups, lane % setup.groups, *columns]
    return list(zip(*(np.asarray(part).tolist() for part in parts), strict=True))

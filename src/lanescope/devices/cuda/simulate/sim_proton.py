"""The simulated kernel as Proton records it: a ring for each warp, cycles of the SMs, times at the ends of a CTA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.devices.cuda.formats.encode import proton
from lanescope.devices.cuda.formats.encode.proton import Entries, ProtonSetup
from lanescope.devices.cuda.formats.layout import (
    ASYNC,
    ASYNC_39,
    BEGIN,
    END,
    FINALIZE,
    INSTANT,
    MARK,
    METRIC,
    PROTON,
    SCOPE,
)
from lanescope.devices.cuda.simulate.sim_common import files, groups_of
from lanescope.devices.cuda.simulate.sim_kernel import EVENTS, I64, LOAD_K, LOAD_V, STORE, Kernel, Random, Setup, run
from lanescope.errors import UsageError, flag
from lanescope.families.family import Simulation

#: Cycles a microsecond of the simulated SMs, and how far their counters lie apart.
_MHZ = 1755
_SPREAD = 3_540_000_000
#: From a CTA's entry to its first record, and from its last one to its end.
_ENTRY_NS, _EXIT_NS, _COPY_NS = 400, 600, 2000


def simulate(setup: Setup, options: Mapping[str, Any], seed: int) -> Simulation:
    """Make a file of Proton and its truth; ``simulate.simulate`` describes both. A group is one warp here."""
    refused = ("unfinished", "no_finalize", "two_writers", "clock_step", "holes", "corrupt", "crossing", "stray_ends")
    for name in (*refused, "reruns", "slots", "max_records", "ring", "clock64", "payload", "refused", "stale"):
        if options[name]:
            raise UsageError(f"{flag(name)} is not supported by layout proton", hint=f"remove {flag(name)}")
    kernel = run(Setup.of({**options, "tick": 1, "wrap": False}), Random(seed))
    flat = _flatten(kernel)
    is_39 = options["across"]
    if is_39:
        _check_across(setup, options)
        flat = _hand_over(setup, flat)
    lane, time, event, kind, _ = flat
    begin = np.stack([times.min(axis=0) for times in kernel.times]).min(axis=0) - _ENTRY_NS
    end = np.stack([times.max(axis=0) for times in kernel.times]).max(axis=0) + _EXIT_NS
    begin, end = (moment // setup.tick * setup.tick for moment in (begin, end))
    # With a wrap the counters pass 32 bits while the kernel runs, which 43 bits hold.
    random = Random(seed + (2 << 64))
    sms = int(setup.sm.max()) + 1
    start = (random.uniform(sms) * _SPREAD).astype(np.int64)
    if setup.wrap:
        start = (1 << 32) - (int(begin.min()) + 5000) * _MHZ // 1000 + (random.uniform(sms) * 8000).astype(np.int64)
    sm = setup.sm[lane // setup.groups]
    cycles = start[sm] + time * _MHZ // 1000
    is_load = (event == LOAD_K) | (event == LOAD_V)
    types = np.where(kind == INSTANT, MARK, np.where(is_load, ASYNC_39 if is_39 else ASYNC, SCOPE))
    # The store group adds a value to each of its begins.
    has_value = (kind == BEGIN) & (event == STORE) & (not is_39)
    values = np.arange(len(lane)) % 1000 + 1
    order = np.repeat(np.arange(len(lane)), 1 + has_value)
    is_value = np.zeros(len(order), np.bool_)
    is_value[1:] = order[1:] == order[:-1]
    entries = Entries(
        lane[order],
        event[order],
        np.where(is_value, METRIC, types[order]),
        (kind[order] == END) & ~is_value,
        np.where(is_value, values[order], cycles[order]),
    )
    longest = int(np.bincount(entries.lane).max())
    room = 1 << (longest - 1).bit_length()
    if options["overflow"]:
        room = max(1, room // 2)
    host = ProtonSetup(
        sm=setup.sm,
        warps=setup.groups + 1,
        uids=tuple(range(1, setup.groups + 1)),
        entries=room,
        times=np.stack([begin, end, end + _COPY_NS], axis=1),
    )
    data, stored = proton.encode(entries, host)
    kept = np.zeros(len(lane), np.bool_)
    kept[order[stored & ~is_value]] = True
    lost = np.bincount(entries.lane[~stored], minlength=setup.lanes)
    truth = {
        "format": PROTON,
        "num_blocks": setup.blocks,
        "num_groups": setup.groups,
        "capacity": room,
        "tick_ns": setup.tick,
        "event_names": list(EVENTS),
        # Warp 0 is not recorded; names of groups are those of warps.
        "groups": [{"name": "idle"}, *groups_of(setup)],
        "sm": setup.sm.tolist(),
        "records": int(np.count_nonzero(stored)),
        "lost_by_lane": [[*divmod(n, setup.groups), int(lost[n])] for n in np.flatnonzero(lost).tolist()],
        **_truth(setup, flat, kept, is_load, np.where(has_value, values, 0)),
    }
    return Simulation(files=files(data, truth, ".bin"), truth=truth)


def _check_across(setup: Setup, options: Mapping[str, Any]) -> None:
    """Refuse what Triton 3.9 does not record, and kernels without a warp that loads for others.

    Raises:
        UsageError: the options ask for one of these.
    """
    for name in ("instants", "overflow"):
        if options[name]:
            raise UsageError(f"{flag(name)} is not supported with --across", hint=f"remove {flag(name)}")
    if setup.groups < 2 or setup.role(0) != "load":
        raise UsageError("--across requires a group that loads for others", hint="use --groups 2 or more")


def _hand_over(setup: Setup, flat: tuple[I64, I64, I64, I64, I64]) -> tuple[I64, I64, I64, I64, I64]:
    """Return the records with the ends of the second loads in the next warp, which waits for them."""
    lane, time, event, kind, region = flat
    lane = np.where((event == LOAD_V) & (kind == END) & (lane % setup.groups == 0), lane + 1, lane)
    order = np.lexsort((time, lane))
    return lane[order], time[order], event[order], kind[order], region[order]


def _flatten(kernel: Kernel) -> tuple[I64, I64, I64, I64, I64]:
    """Return lane, time, event, kind and number of the region of all records, lane after lane."""
    setup = kernel.setup
    parts = []
    longest = max(len(kinds) for kinds in kernel.kinds)
    for group in range(setup.groups):
        kept = kernel.kinds[group] != FINALIZE
        kinds, events = kernel.kinds[group][kept], kernel.events[group][kept]
        regions, stack = [], []
        for at, kind in enumerate(kinds.tolist()):
            if kind == BEGIN:
                stack.append(at)
            regions.append(stack.pop() if kind == END else at)
        lane = np.repeat(np.arange(setup.blocks) * setup.groups + group, len(kinds))
        region = np.tile(np.array(regions, np.int64), setup.blocks) + lane * longest
        times = kernel.times[group][kept].T.ravel()
        parts.append((lane, times, np.tile(events, setup.blocks), np.tile(kinds, setup.blocks), region))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    lane, time, event, kind, region = (column[order] for column in columns)
    return lane, time, event, kind, region


def _truth(
    setup: Setup,
    flat: tuple[I64, I64, I64, I64, I64],
    kept: npt.NDArray[np.bool_],
    is_async: npt.NDArray[np.bool_],
    values: I64,
) -> dict[str, Any]:
    """Return the rows that a decoder must find, by lane and record."""
    lane, time, event, kind, region = flat
    begins, ends = np.flatnonzero(kind == BEGIN), np.flatnonzero(kind == END)
    end_of = np.full(int(region.max(initial=-1)) + 1, -1, np.int64)
    begin_of = end_of.copy()
    end_of[region[ends]], begin_of[region[begins]] = ends, begins
    end = end_of[region[begins]]
    whole, cut = kept[begins] & kept[end], kept[begins] & ~kept[end]
    stray = ends[kept[ends] & ~kept[begin_of[region[ends]]]]
    marks = np.flatnonzero(kept & (kind == INSTANT))

    def rows(at: I64, *columns: Any) -> list[tuple[Any, ...]]:
        parts = [lane[at] // setup.groups, lane[at] % setup.groups, event[at], time[at], *columns]
        return list(zip(*(np.asarray(part).tolist() for part in parts), strict=True))

    def spans(mask: npt.NDArray[np.bool_]) -> list[tuple[Any, ...]]:
        return rows(begins[mask], time[end[mask]], values[begins[mask]])

    return {
        "spans": spans(whole & ~is_async[begins]),
        "async": spans(whole & is_async[begins]),
        "unfinished_regions": rows(begins[cut]),
        "stray_ends": rows(stray),
        "instants": rows(marks),
    }

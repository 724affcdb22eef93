"""What kind of memory an address lies in: allocations live and die, and their addresses come back."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.asof_join import Int64, group, join
from lanescope.devices.levelzero.formats import layout
from lanescope.devices.levelzero.formats.event_model import Events
from lanescope.devices.levelzero.interpret.call_matching import NEVER

Kinds = npt.NDArray[np.uint8]
UInt64 = npt.NDArray[np.uint64]

#: Index of a kind of memory in ``layout.MEMORIES`` plus 1; 0 means none or unknown.
CODES = {memory: place + 1 for place, memory in enumerate(layout.MEMORIES)}
_SYSTEM = CODES[layout.SYSTEM]
_ADDRESS_MAX = np.uint64((1 << 64) - 1)
_SIGN = np.uint64(1 << 63)


def kinds_of(events: Events, process: npt.NDArray[np.int32]) -> tuple[Kinds, Kinds]:
    """Return the kind of memory that each Append writes and reads, as ``CODES``, uint8 [appends] each.

    What the record says counts; else the live allocation around the address; memory of no allocation is the system's.
    """
    return _kinds(events, process, "dst"), _kinds(events, process, "src")


def _kinds(events: Events, process: npt.NDArray[np.int32], column: str) -> Kinds:
    appends = events["appends"]
    found = np.zeros(len(appends), np.uint8)
    said = np.flatnonzero(appends.valid(f"{column}_memory"))
    if len(said):
        texts = appends.column(f"{column}_memory").dictionary.texts  # type: ignore[union-attr]
        codes = np.array([CODES.get(text, 0) for text in texts], np.uint8)
        found[said] = codes[appends.codes(f"{column}_memory")[said]]
    asked = np.flatnonzero(appends.valid(column) & (found == 0))
    if len(asked):
        found[asked] = lookup(events, process[asked], appends.values(column)[asked], appends.values("seq")[asked])
    return found


def lookup(events: Events, process: npt.NDArray[np.int32], address: UInt64, seq: Int64) -> Kinds:
    """Return the kind of memory at addresses, as ``CODES``, uint8 [n].

    Args:
        events: the event model, for its ``allocations``.
        process: [n], whose address space.
        address: uint64 [n].
        seq: int64 [n], when: allocations and frees before it count.

    Complexity:
        One join where no address is used twice in a process; else O((n + allocations) log allocations) sorts' worth.
    """
    found = np.full(len(address), _SYSTEM, np.uint8)
    allocations = events["allocations"]
    if not len(allocations):
        return found
    is_alloc = np.flatnonzero(allocations.values("bytes") > 0)
    if not len(is_alloc):
        return found
    owner, base = events.process("allocations")[is_alloc], allocations.values("base")[is_alloc]
    end = base + np.minimum(allocations.values("bytes")[is_alloc], _ADDRESS_MAX - base)
    texts = allocations.column("memory").dictionary.texts  # type: ignore[union-attr]
    kind = np.array([CODES.get(text, _SYSTEM) for text in texts], np.uint8)[allocations.codes("memory")[is_alloc]]
    born, died = allocations.values("seq")[is_alloc], _ends(events)[is_alloc]

    by_base = group([owner], _sortable(base))
    order = by_base.order
    # Allocations that share addresses at different times form a cluster; most stand alone.
    reach = _reach(end[order], by_base.first)
    alone = by_base.first.copy()
    alone[1:] |= base[order][1:] >= reach[:-1]
    cluster = np.empty(len(order), np.int64)
    cluster[order] = np.cumsum(alone) - 1
    members = np.bincount(cluster)
    nearest = join([process], _sortable(address), [owner], _sortable(base), strict=False).last_before()
    hit = nearest >= 0
    shared = np.zeros(len(address), np.bool_)
    shared[hit] = members[cluster[nearest[hit]]] > 1
    simple = np.flatnonzero(hit & ~shared)
    chosen = np.full(len(address), -1, np.int64)
    chosen[simple] = nearest[simple]
    hard = np.flatnonzero(shared)
    if len(hard):
        rows = np.flatnonzero(members[cluster] > 1)
        place = _among_lives(owner[rows], base[rows], born[rows], died[rows], process[hard], address[hard], seq[hard])
        chosen[hard] = np.where(place >= 0, rows[place], -1)
    good = np.flatnonzero(chosen >= 0)
    pick = chosen[good]
    inside = (address[good] < end[pick]) & (born[pick] < seq[good]) & (seq[good] < died[pick])
    found[good[inside]] = kind[pick[inside]]
    return found


def _sortable(address: UInt64) -> Int64:
    """Return addresses as int64 in the same order."""
    return (address ^ _SIGN).view(np.int64)


def _ends(events: Events) -> Int64:
    """Return when each allocation ends: at the next record of its address, int64 [allocations]."""
    allocations = events["allocations"]
    by_base = group([events.process("allocations"), allocations.values("base")], allocations.values("seq"))
    order, count = by_base.order, len(by_base.order)
    following = np.full(count, NEVER, np.int64)
    same = ~by_base.first[1:]
    following[order[:-1][same]] = allocations.values("seq")[order[1:][same]]
    return following


def _reach(end: UInt64, first: npt.NDArray[np.bool_]) -> UInt64:
    """Return the highest end so far within each group, uint64 [n]."""
    starts = np.flatnonzero(first)
    if len(starts) == 1:
        return np.maximum.accumulate(end)
    found = np.empty_like(end)
    for low, high in zip(starts.tolist(), [*starts[1:].tolist(), len(end)], strict=True):
        np.maximum.accumulate(end[low:high], out=found[low:high])
    return found


def _among_lives(
    owner: npt.NDArray[np.int32],
    base: UInt64,
    born: Int64,
    died: Int64,
    process: npt.NDArray[np.int32],
    address: UInt64,
    seq: Int64,
) -> Int64:
    """Return the live allocation with the highest base not above each address, int64 [n], -1 for none.

    A segment tree over time holds each allocation at the few nodes that make up its life; a query looks into the nodes
    around its time, one on each level.
    """
    times = np.sort(np.concatenate([born, died[died != NEVER]]))
    leaves = 1 << (len(times) + 1).bit_length()
    low = np.searchsorted(times, born) + 1 + leaves
    high = np.where(died == NEVER, len(times), np.searchsorted(times, died)) + 1 + leaves
    leaf = np.searchsorted(times, seq) + leaves
    best = np.full(len(address), -1, np.int64)
    highest = np.zeros(len(address), np.uint64)
    rows = np.arange(len(base))
    while leaf.size and leaves:
        open_ = low < high
        odd_low, odd_high = open_ & (low & 1 == 1), open_ & (high & 1 == 1)
        node = np.concatenate([low[odd_low], high[odd_high] - 1])
        member = np.concatenate([rows[odd_low], rows[odd_high]])
        if len(node):
            place = join(
                [process, leaf], _sortable(address), [owner[member], node], _sortable(base[member]), strict=False
            ).last_before()
            hit = np.flatnonzero(place >= 0)
            pick = member[place[hit]]
            better = (best[hit] < 0) | (base[pick] >= highest[hit])
            best[hit[better]] = pick[better]
            highest[hit[better]] = base[pick[better]]
        low, high = (low + odd_low) >> 1, (high - odd_high) >> 1
        leaf = leaf >> 1
        leaves >>= 1
    return best

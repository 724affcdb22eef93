"""Records that an earlier launch left in a buffer that was not cleared.

Nobody clears a strided buffer between two launches but the host. Where it does not, each lane holds the records of the
later launch, and behind them what the earlier one had stored at those positions. A launch is over before the next one
begins, so all of that is stamped before the first record of the later one: a step back of the clock, over everything
that the lane holds so far, to before the whole launch.

A single clock that steps back, or two writers, do not cause that. Two other things do: a silence of more than half a
wrap period of the 32-bit counter, and a clock that steps back by more than the launch took. Then regions are open in
most lanes. If they are, and nothing proves two launches, the records stay unchanged. The same holds for a killed launch
over the remains of an earlier launch of the same kernel. The duration of the launch decides.

What is left may be of several launches, each shorter than the one before it in time. The same rules tell them apart.

Launches more than half a wrap period (2.1 s) apart may appear in reverse order. That is recognized only after a
finalize, and only from ends of regions that started before it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.buffer import Summary
from lanescope.devices.cuda.formats.lanes import I64, STEP_BACK, turns_of
from lanescope.devices.cuda.formats.layout import BEGIN, END, FINALIZE, STAMP_BITS, STAMP_WRAP, TIRX_RECORD
from lanescope.devices.cuda.formats.tirx import TirxBuffer
from lanescope.devices.cuda.formats.word_source import Words, WordStore

Mask = npt.NDArray[np.bool_]

#: No position: nothing of the lane is of an earlier launch.
NEVER = np.iinfo(np.int64).max
_HALF = STAMP_WRAP // 2
#: Positions that are looked at together, and records that are decoded together.
_AT_ONCE, _RECORDS_AT_ONCE = 1 << 20, 1 << 22
#: More launches that one buffer holds records of are not told apart.
_MOST_LAUNCHES = 16
#: Of the lanes that speak for an earlier launch, as many may be at odds with it: damaged ones.
_ODD_SHARE = 4


@frozen_class
class Earlier:
    """Remains of an earlier launch.

    Attributes:
        cuts: int64 [lanes], the first position of each lane that holds a record of it; ``NEVER`` where none does.
        records: how many there are.
        lanes: lanes that have any.
        first_slot: slot of the first of them.
    """

    cuts: I64
    records: int
    lanes: int
    first_slot: int


def odd_lanes(summary: Summary) -> Mask:
    """Return the lanes that may hold records of two launches, bool [lanes]; without any there is nothing to find.

    Args:
        summary: as ``find`` takes it.
    """
    odd: Mask = (summary["backward"] > 0) | (summary["jumps"] > 0) | (summary["after_finalize"] > 0)
    return odd


def find(buffer: TirxBuffer, summary: Summary, *, sm: I64 | None, launch_ns: int | None) -> Earlier | None:
    """Return what an earlier launch left in a buffer; None: nothing that could be told from records of the latest one.

    Args:
        buffer: the buffer; its stride is known.
        summary: of all lanes, as the core counts them when it takes all records for those of one launch.
        sm: int64 [lanes], the SM of each lane where the layout says it: the clock may be the SM's own.
        launch_ns: how long the launch took by the host's clock, if that is known.
    """
    odd = odd_lanes(summary)
    if not buffer.geometry.stride or not odd.any():
        return None
    lanes = _Lanes(buffer, summary, np.flatnonzero(odd), sm)
    cuts = lanes.by_steps_back(launch_ns)
    if cuts is None:
        cuts = lanes.by_finalize()
    if cuts is None:
        return None
    return _counted(buffer, cuts)


def generations(
    buffer: TirxBuffer, earlier: Earlier, *, sm: I64 | None, launch_ns: int | None, step_back: int = STEP_BACK
) -> I64:
    """Return the cuts between an earlier launch and those before it, int64 [lanes, launches], not falling.

    Column 0 is ``earlier.cuts``. Where a launch left nothing in a lane, its cut is that of the launch before it.

    Args:
        buffer: the buffer.
        earlier: as ``find`` returns it.
        sm: as ``find`` takes it.
        launch_ns: likewise.
        step_back: ticks by which a timestamp may step back while its wrap period stays certain.
    """
    found = [earlier.cuts]
    while len(found) < _MOST_LAUNCHES:
        words = Latest(buffer.words, buffer.geometry.stride, found[-1], is_inverse=True)
        rest = TirxBuffer.read(words, stride=buffer.geometry.stride)
        parts = [
            rest.decode(split=False, step_back=step_back, part=part).summary for part in rest.parts(_RECORDS_AT_ONCE)
        ]
        summary = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        before = find(rest, summary, sm=sm, launch_ns=launch_ns)
        if before is None:
            break
        cuts = np.maximum(before.cuts, found[-1])
        if not (cuts > found[-1]).any():
            break
        found.append(cuts)
    return np.stack(found, axis=1)


class Latest(WordStore):
    """The words of a buffer without the records of an earlier launch.

    Args:
        words: the buffer.
        stride: slots between two records of a lane.
        cuts: as ``Earlier`` has them.
        is_inverse: what the earlier launch left is kept instead, and all else is left out.
    """

    def __init__(self, words: WordStore, stride: int, cuts: I64, *, is_inverse: bool = False) -> None:
        self._store, self._stride, self._cuts, self._is_inverse = words, stride, cuts, is_inverse
        self.is_in_memory = words.is_in_memory
        if self.is_in_memory:
            self._made = self._cut(0, words.whole())

    def __len__(self) -> int:
        return len(self._store)

    def window(self, first: int, last: int) -> Words:
        """Return the words from ``first`` to before ``last``, or to the end, uint64 [m]."""
        return self._made[first:last] if self.is_in_memory else self._cut(first, self._store.window(first, last))

    def _cut(self, first: int, words: Words) -> Words:
        index, lane = np.divmod(np.arange(first, first + len(words)) - 1, self._stride)
        inside = lane < len(self._cuts)
        old = inside & ((index >= self._cuts[np.where(inside, lane, 0)]) != self._is_inverse)
        if first == 0:
            old[:1] = False
        return np.where(old, np.uint64(0), words)


def _gathered(buffer: TirxBuffer, lanes: I64) -> Iterator[tuple[I64, Words, Mask]]:
    """Yield some of the lanes, rising, their words [n, positions], and which of those are records of their lane."""
    rows = max(1, -(-buffer.found.last_used // buffer.geometry.stride))
    gather = _from_memory if buffer.words.is_in_memory else _from_file
    tag = TIRX_RECORD["lane"]
    for some, words in gather(buffer, lanes, rows, max(1, _AT_ONCE // rows)):
        yield some, words, (words != 0) & (tag.of(words).astype(np.int64) == some[:, None])


def _from_memory(buffer: TirxBuffer, lanes: I64, rows: int, width: int) -> Iterator[tuple[I64, Words]]:
    """Yield ``width`` of the lanes at a time, and their words [n, rows]."""
    words = buffer.words.whole()
    for first in range(0, len(lanes), width):
        some = lanes[first : first + width]
        at = 1 + some[:, None] + np.arange(rows) * buffer.geometry.stride
        yield some, np.where(at < len(words), words[np.minimum(at, len(words) - 1)], np.uint64(0))


def _from_file(buffer: TirxBuffer, lanes: I64, rows: int, width: int) -> Iterator[tuple[I64, Words]]:
    """Do as ``_from_memory``, from the parts in which the buffer is decoded: any lane may be on all pages."""
    for first, last in buffer.lane_parts or buffer.parts(_AT_ONCE):
        mine = lanes[np.searchsorted(lanes, first) : np.searchsorted(lanes, last)]
        if not len(mine):
            continue
        table = buffer.table(first, last, rows)
        for at in range(0, len(mine), width):
            some = mine[at : at + width]
            yield some, np.ascontiguousarray(table[:, some - first].T)


def _counted(buffer: TirxBuffer, cuts: I64) -> Earlier | None:
    """Count what stands behind the cuts; lanes in which nothing does have none."""
    records, first_slot = 0, NEVER
    has = np.zeros(len(cuts), np.bool_)
    for lanes, words, valid in _gathered(buffer, np.flatnonzero(cuts < NEVER)):
        old = valid & (np.arange(words.shape[1]) >= cuts[lanes][:, None])
        some = old.any(axis=1)
        records += int(np.count_nonzero(old))
        has[lanes] = some
        if some.any():
            slots = 1 + lanes[some] + old[some].argmax(axis=1) * buffer.geometry.stride
            first_slot = min(first_slot, int(slots.min()))
    if not records:
        return None
    return Earlier(np.where(has, cuts, NEVER), records, int(np.count_nonzero(has)), first_slot)


class _Lanes:
    """The lanes of a buffer, cut in two where that is possible.

    Args:
        buffer: the buffer.
        summary: of all lanes.
        odd: lanes that may hold records of two launches.
        sm: of each lane, if it is known.

    Attributes:
        cut: int64 [lanes], the first position from which on everything is stamped before all that is in front of it.
        low, high: int64 [lanes], the last stamp behind it and the earliest in front of it.
        begin, end: int64 [lanes], the extent of the records before it, or of the whole lane without a cut.
        speaks: bool [lanes], whether a finalize in front of the cut or a stray end behind it shows two launches.
        is_cut_short: bool [lanes], whether a region is open in front of it.
        records: int64 [lanes], records in front of it.
        left_at: int64 [lanes], the first record behind a finalize, ``NEVER`` where there is none.
        left_begin: int64 [lanes], the earliest stamp from there on.
        left_before: int64 [lanes], the latest stamp in front of it.
        left_is_stray: bool [lanes], whether an end from there on has no begin, though no record is missing.
    """

    def __init__(self, buffer: TirxBuffer, summary: Summary, odd: I64, sm: I64 | None) -> None:
        count = len(summary["records"])
        self.used = summary["records"] > 0
        self.turns, _ = turns_of(summary, None, STAMP_BITS)
        self.begin, self.end = summary["min"] + self.turns, summary["max"] + self.turns
        self.cut = np.full(count, NEVER)
        self.low, self.high, self.records = (np.zeros(count, np.int64) for _ in range(3))
        self.speaks, self.is_cut_short = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        self.left_at = np.full(count, NEVER)
        self.left_begin, self.left_before = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.left_is_stray = np.zeros(count, np.bool_)
        for lanes, words, valid in _gathered(buffer, odd[self.used[odd]]):
            self._look(lanes, words, valid)
        self._sm = sm

    def _look(self, lanes: I64, words: Words, valid: Mask) -> None:
        """Look at lanes: words [n, positions]."""
        stamp, kind = (TIRX_RECORD[name].of(words).astype(np.int64) for name in ("time", "kind"))
        event = TIRX_RECORD["event"].of(words).astype(np.int64)
        row = np.arange(len(lanes))
        # An invalid word takes the timestamp of the record before it, or of the first record.
        at = np.maximum.accumulate(np.where(valid, np.arange(words.shape[1]), -1), axis=1)
        at = np.where(at < 0, valid.argmax(axis=1)[:, None], at)
        stamp = np.take_along_axis(stamp, at, axis=1)
        steps = (np.diff(stamp, axis=1) + _HALF) % STAMP_WRAP - _HALF
        time = np.concatenate([stamp[:, :1], stamp[:, :1] + np.cumsum(steps, axis=1)], axis=1)
        time += self.turns[lanes][:, None]
        before = np.minimum.accumulate(time, axis=1)
        behind = np.maximum.accumulate(time[:, ::-1], axis=1)[:, ::-1]
        clean = valid[:, 1:] & (behind[:, 1:] < before[:, :-1])
        found = clean.any(axis=1)
        cut = np.where(found, clean.argmax(axis=1) + 1, 0)
        last = np.maximum(cut - 1, 0)
        front = np.maximum.accumulate(time, axis=1)[row, last]
        self.cut[lanes[found]] = cut[found]
        self.low[lanes], self.high[lanes] = behind[row, cut], before[row, last]
        self.begin[lanes] = np.where(found, before[row, last], self.begin[lanes])
        self.end[lanes] = np.where(found, front, self.end[lanes])
        self.records[lanes] = (valid & (np.arange(words.shape[1]) < cut[:, None])).sum(axis=1)
        stray, is_open = _over(kind, event, valid, cut)
        finalized = kind[row, at[row, last]] == FINALIZE
        self.speaks[lanes] = found & (finalized | stray)
        self.is_cut_short[lanes] = found & is_open
        # Behind the first finalize.
        ends = valid & (kind == FINALIZE)
        left = np.where(ends.any(axis=1), ends.argmax(axis=1) + 1, words.shape[1])
        later = valid & (np.arange(words.shape[1]) >= left[:, None])
        some = later.any(axis=1)
        first = later.argmax(axis=1)
        stray, _ = _over(kind, event, valid, np.where(some, first, words.shape[1]))
        whole = valid.sum(axis=1) == valid.shape[1] - valid[:, ::-1].argmax(axis=1)
        self.left_at[lanes[some]] = first[some]
        self.left_begin[lanes] = np.where(later, time, NEVER).min(axis=1)
        self.left_before[lanes] = np.where(later, -NEVER, time).max(axis=1)
        self.left_is_stray[lanes] = some & stray & whole

    def by_steps_back(self, launch_ns: int | None) -> I64 | None:
        """Return the cuts, int64 [lanes], if steps back over a whole launch show them."""
        cut = self.cut < NEVER
        if not cut.any():
            return None
        if self._is_one_clock():
            found = self._before_the_launch(cut)
            if found is None:
                return None
            mine, cuts = found
        else:
            mine, cuts = cut, self.cut
        return cuts if self.speaks[mine].any() or self._is_plain(mine, launch_ns) else None

    def _is_plain(self, mine: Mask, launch_ns: int | None) -> bool:
        """Return whether only the timestamps of these lanes show two launches, without other evidence."""
        count = np.count_nonzero(mine)
        # A lane among others, and a small step: a clock that is not quite steady does that too.
        is_small = int((self.high - self.low)[mine].max()) <= STEP_BACK
        if (count == 1 < np.count_nonzero(self.used) and is_small) or int(self.records[mine].max()) < 2:
            return False
        # A launch that is over has ended its regions. Else there may have been a silence.
        if launch_ns is not None:
            return launch_ns < _HALF
        return bool(2 * np.count_nonzero(self.is_cut_short[mine]) < count)

    def _before_the_launch(self, cut: Mask) -> tuple[Mask, I64] | None:
        """Return which lanes a time between two launches cuts, and all cuts; None: no such time exists."""
        lows, highs = np.sort(self.low[cut]), np.sort(self.high[cut])
        # The moment that lies in most lanes' step back; of several, the latest.
        moments = highs[::-1]
        over = np.searchsorted(lows, moments, side="left") - np.searchsorted(highs, moments, side="left")
        moment = int(moments[over.argmax()])
        mine = cut & (self.low < moment) & (moment <= self.high)
        low, high = int(self.low[mine].max()), int(self.high[mine].min())
        # Lanes that the later launch never wrote hold the earlier one alone: they begin before its known end.
        rest = self.used & ~mine
        is_old = rest & (self.end < high)
        order = np.flatnonzero(is_old)[np.argsort(self.begin[is_old], kind="stable")]
        known = np.maximum.accumulate(np.append(low, self.end[order]))
        is_beyond = self.begin[order] > known[:-1]
        low = int(known[is_beyond.argmax() if is_beyond.any() else -1])
        is_old = is_old & (self.begin <= low)
        odd = rest & ~is_old & (self.begin <= low)
        if low >= high or _ODD_SHARE * np.count_nonzero(odd) > np.count_nonzero(mine):
            return None
        return mine, np.where(is_old, 0, np.where(cut & (self.low < moment), self.cut, NEVER))

    def _is_one_clock(self) -> bool:
        """Return whether the stamps of all SMs are of one clock: lanes of several SMs then run at the same time."""
        if self._sm is None:
            return True
        lanes = np.flatnonzero(self.used)
        lanes = lanes[np.argsort(self.begin[lanes], kind="stable")]
        if len(distinct(self._sm[lanes])) < 2:
            return True
        reached = np.maximum.accumulate(self.end[lanes])
        overlaps = self.begin[lanes][1:] <= reached[:-1]
        return bool((overlaps & (self._sm[lanes][1:] != self._sm[lanes][:-1])).any())

    def by_finalize(self) -> I64 | None:
        """Return the cuts, int64 [lanes], if what is behind finalizes cannot have been begun there."""
        left = self.left_at < NEVER
        if not self.left_is_stray.any():
            return None
        ended = np.where(left, self.left_before, self.end)[self.used]
        if int(ended.max()) >= int(self.left_begin[left].min()):
            return None
        return np.where(left, self.left_at, NEVER)


def _over(kind: I64, event: I64, valid: Mask, cut: I64) -> tuple[Mask, Mask]:
    """Return for lanes, [n, positions], how the records after a cut match those before it.

    Returns:
        bool [n] each: an end behind it has no begin on either side; a region that was begun in front has no end there.
    """
    stray, cut_short = np.zeros(len(kind), np.bool_), np.zeros(len(kind), np.bool_)
    lane, at = np.nonzero(valid & ((kind == BEGIN) | (kind == END)))
    if not len(lane):
        return stray, cut_short
    key = lane * (TIRX_RECORD["event"].mask + 1) + event[lane, at]
    order = np.argsort(key, kind="stable")
    lane, at, key = lane[order], at[order], key[order]
    step = np.where(kind[lane, at] == BEGIN, 1, -1)
    first = np.flatnonzero(np.diff(key, prepend=-1))
    depth = np.cumsum(step)
    depth -= np.repeat((depth - step)[first], np.diff(first, append=len(key)))
    is_behind = at >= cut[lane]
    big = len(key) + 1
    lowest = np.minimum(0, np.minimum.reduceat(np.where(is_behind, 0, depth), first))
    total = np.add.reduceat(np.where(is_behind, 0, step), first)
    is_open = total - lowest
    fall = np.minimum.reduceat(np.where(is_behind, depth, big), first) - total
    stray[lane[first[fall < -is_open]]] = True
    cut_short[lane[first[is_open > 0]]] = True
    return stray, cut_short

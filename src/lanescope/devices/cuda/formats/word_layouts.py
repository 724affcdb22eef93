"""Which of the layouts with one 64-bit word a record a buffer may have, and what distinguishes them.

TIRx, FlashInfer's second layout, Mirage's two and Triton-distributed begin with the same header and have the same
slots. They differ in the bits of a tag that name the lane, and buffers of one lane, or of few records, often agree with
several of them. What the producers do decides then: a finalize, numbers that count events, blocks that stay on their
SM. Where that is not enough either, nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.declaration import frozen_class
from lanescope.devices.cuda.formats.flashinfer import Rewritten
from lanescope.devices.cuda.formats.layout import (
    BEGIN,
    END,
    FINALIZE,
    FLASHINFER_V2,
    FLASHINFER_V2_RECORD,
    INSTANT,
    SHORT_NAMES,
    STAMP_WRAP,
    TIRX_RECORD,
    TIRX_V1,
)
from lanescope.devices.cuda.formats.tirx import find_stride, header
from lanescope.devices.cuda.formats.word_source import Words, WordSource, WordStore
from lanescope.errors import InputError

#: Records from which on agreement is not a coincidence.
ENOUGH_RECORDS = 8
#: The same where lanes are finalized: few numbers look like that.
_ENOUGH_FINALIZED = 3
#: The least share of words that must be where their lane says.
MOST = 0.9
MPK, TRANSPILER, TRITON_DISTRIBUTED = "mirage-mpk", "mirage-transpiler", "triton-distributed"
FLASHINFER_V2_CLOCK = "flashinfer-v2-clock"
#: Where Mirage's tags have the number of the event, the lowest bit and the width.
_NUMBERS = {MPK: (19, 13), TRANSPILER: (24, 8)}
#: An event that begins so often in a lane is numbered by Mirage.
_REPEATS = 3
#: Of so many different timestamps with a common divisor of at least so many ns none are cycles.
_TIMES, _TIMER_STEP = 8, 16
#: The share of lanes from which on their SM cannot be what changes while time goes on.
_MOVED = 0.25
#: By how many times the length of the longest lane lanes of one timer are not apart.
_SCATTERED = 1000
#: An empty position of Triton-distributed.
_SENTINEL = 0x7FFF_FFFF_FFFF_FFFF
#: What names a layout in options.
_SHORT = {name: short for short, name in SHORT_NAMES.items()}
#: The layouts, and what their tags have above the event.
TAGS = {
    TIRX_V1: "lane in bits 12 to 31",
    FLASHINFER_V2: "SM in bits 24 to 31, timestamps in ns",
    FLASHINFER_V2_CLOCK: "the same, timestamps in cycles of each SM",
    MPK: "lane in bits 11 to 18",
    TRANSPILER: "number of the event in bits 24 to 31",
    TRITON_DISTRIBUTED: "a begin is 1, after a word for each block",
}


@frozen_class
class Told:
    """What the words of a buffer tell of its layout.

    Attributes:
        names: layouts that nothing excludes; one is concluded, of several none.
        used: records that were looked at.
        reason: what is missing for a conclusion; empty where nothing is but records, or no layout fits.
        excluded: layouts whose bits agree, and what excludes them all the same.
        may_be_tirx: whether the bits are those of TIRx; of few records, most of them.
        enough: records from which on a layout is certain.
    """

    names: tuple[str, ...]
    used: int
    reason: str = ""
    excluded: Mapping[str, str] = {}
    may_be_tirx: bool = False
    enough: int = ENOUGH_RECORDS

    @property
    def name(self) -> str | None:
        """The only layout, on enough records; None: none is certain."""
        is_certain = len(self.names) == 1 and self.used >= self.enough and not self.reason
        return self.names[0] if is_certain else None

    @property
    def is_ambiguous(self) -> bool:
        """Whether there are layouts, and none is certain."""
        return bool(self.names) and self.name is None

    @property
    def summary(self) -> str:
        """Which layouts fit, in a clause."""
        what = f"{self.used} records fit" if self.used < self.enough else "the words fit"
        return f"{what} {_listed(self.names)}"

    @property
    def advice(self) -> str:
        """How to choose, and what would distinguish them."""
        options = [f"--layout {_SHORT.get(name, name)} ({TAGS[name]})" for name in self.names]
        reason = self.reason or f"fewer than {self.enough} records agree by coincidence"
        return f"use {_listed(options, 'or')}: {reason}"


def ambiguity(told: Told) -> InputError:
    """Return the error for a buffer of which several layouts, or too few records, fit."""
    return InputError(f"layout not certain: {told.summary}", hint=told.advice)


def tell(content: WordSource, size: int, store: WordStore | None = None) -> Told:
    """Return which layouts the beginning of a buffer may have.

    Args:
        content: the buffer or its beginning, in memory.
        size: bytes of the whole array.
        store: the whole buffer, if it is there: lanes are finalized at their ends.

    Raises:
        InputError: the header is missing, or no kernel writes it.
    """
    words = content.words(8)
    geometry = header(words)
    if len(words) <= geometry.lanes or geometry.lanes > size // 8 - 1:
        return Told((), 0)
    _, found = find_stride(words, geometry)
    shares = {TIRX_V1: 1 - found.misplaced / max(1, found.used)}
    if not found.used:
        return Told((), 0)
    if not found.misplaced and _is_finalized(words, store):
        # No other producer finalizes, and tags of several lanes agree with no other layout by coincidence.
        return Told((TIRX_V1,), found.used, may_be_tirx=True, enough=_ENOUGH_FINALIZED)
    if store is None and 8 * len(words) < size and not found.misplaced and _is_of_blocks(words, geometry.num_groups):
        # Only the whole buffer tells these two apart, and excludes all others.
        return Told((TIRX_V1, TRANSPILER), found.used, "its beginning has no finalize", may_be_tirx=True)
    records = _Records(words, geometry.num_groups, geometry.lanes)
    shares[FLASHINFER_V2] = (Rewritten(words).agree - np.count_nonzero(records.kind == FINALIZE)) / found.used
    excluded: dict[str, str] = {}
    used = dict.fromkeys(shares, found.used)
    for name, (share, count) in _declared(content, size).items():
        shares[name], used[name] = share, count
    best = max(shares.values())
    fitting = [name for name, share in shares.items() if share >= MOST and share == best]
    for name in fitting:
        reason = records.contradicts(name)
        if reason:
            excluded[name] = reason
    names = [name for name in fitting if name not in excluded]
    if names and names not in ([TIRX_V1], [FLASHINFER_V2]):  # their own readers judge the order
        ordered = _in_order(names, content, size)
        excluded |= dict.fromkeys(set(names) - set(ordered), "its starts and ends are out of order")
        names = ordered
    if not names:
        return Told((), found.used, "", excluded)
    if names == [TIRX_V1] and best < 1 and not records.contradicts(TRANSPILER):
        # Damage does not tell them apart.
        names.append(TRANSPILER)
    reason = _undecided(names, records)
    if FLASHINFER_V2 in names and not records.is_of_timer:
        names.insert(names.index(FLASHINFER_V2) + 1, FLASHINFER_V2_CLOCK)
        reason = reason or "no common step of the timestamps tells a timer from a counter of cycles"
        if records.is_scattered:
            reason = "lanes are far apart, as on counters of cycles, and no common step shows a timer"
    most = max(used[name] for name in names if name in used)
    is_few = most < ENOUGH_RECORDS
    enough = _ENOUGH_FINALIZED if is_few and names == [TIRX_V1] and records.is_whole else ENOUGH_RECORDS
    may_be_tirx = TIRX_V1 in fitting or (is_few and shares[TIRX_V1] >= MOST)
    return Told(tuple(names), most, reason, excluded, may_be_tirx, enough)


def is_finalized(store: WordStore) -> bool:
    """Return whether any lane of a buffer of TIRx's words is finalized, all words looked at.

    Args:
        store: the whole buffer.

    Raises:
        InputError: the header is missing, or no kernel writes it.
    """
    lanes, kind, event, tag = header(store).lanes, *(TIRX_RECORD[name] for name in ("kind", "event", "lane"))
    last = np.uint64(FINALIZE << kind.lsb)
    mask = np.uint64(kind.mask << kind.lsb | event.mask << event.lsb)
    # Lanes are finalized at their ends, so most buffers show it in the last words that are looked at first.
    for first, piece in store.pieces_from_end(1):
        at = np.flatnonzero((piece & mask) == last)
        if len(at) and (tag.of(piece[at]).astype(np.int64) == (first - 1 + at) % lanes).any():
            return True
    return False


def _is_finalized(words: Words, store: WordStore | None) -> bool:
    """Return whether records of several lanes, all in their slots by TIRx's tags, end with finalize records.

    Args:
        words: uint64 [n], the beginning of a buffer.
        store: all of it; None: the beginning alone is judged.
    """
    kind, event, tag = (TIRX_RECORD[name] for name in ("kind", "event", "lane"))
    slots = words[1:]
    if not int(np.bitwise_or.reduce(slots, initial=0)) >> tag.lsb & tag.mask:
        return False
    ends = event.of(slots[(slots & np.uint64(kind.mask << kind.lsb)) == np.uint64(FINALIZE << kind.lsb)])
    if len(ends):
        return not ends.any()
    return store is not None and len(store) > len(words) and is_finalized(store)


def _is_of_blocks(words: Words, groups: int) -> bool:
    """Return whether records that are in their slots by TIRx's tags are of several blocks, with ends among them.

    FlashInfer has SMs there, which differ between blocks, and early versions of Mirage's transpiler store no such ends.
    """
    records = words[1:][words[1:] != 0]
    kind, tag = TIRX_RECORD["kind"], TIRX_RECORD["lane"]
    return bool((kind.of(records) == END).any() and (tag.of(records) >= groups).any())


def _declared(content: WordSource, size: int) -> dict[str, tuple[float, int]]:
    """Return the share of records that agree, and their number, for layouts that have no reader of their own."""
    from lanescope.devices.cuda.formats.declared import recognition

    fits = recognition.fits(content, size, (MPK, TRANSPILER, TRITON_DISTRIBUTED))
    # A single record that disagrees excludes them.
    return {fit.name: (1.0 if not fit.failed else 0.0, fit.used) for fit in fits}


def _in_order(names: list[str], content: WordSource, size: int) -> list[str]:
    """Return the layouts with which records make sense one after the other as well."""
    from lanescope.devices.cuda.formats.declared import recognition

    return [name for name in names if recognition.is_in_order(name, content, size)]


def _undecided(names: list[str], records: _Records) -> str:
    """Return what is missing for one of the layouts that fit; empty: nothing."""
    if records.lanes == 1 or not records.lane.any():
        return _undecided_lane(names, records)
    if set(names) == {TIRX_V1, TRANSPILER}:
        return f"no lane is finalized, and no event begins {_REPEATS} times in one, which Mirage numbers"
    return "their tags are the same" if len(names) > 1 else ""


def _undecided_lane(names: list[str], records: _Records) -> str:
    """Return the same where all records are of lane 0: zeros and small numbers name it as well."""
    if len(names) > 1:
        return "all records are of lane 0, whose tag is the same in each"
    if names == [TIRX_V1] and not records.is_finalized_once:
        return "the only lane is not finalized once, at its end"
    if names[0] in _NUMBERS and not records.number(names[0]).any():
        return "all records are of lane 0 and number 0"
    if names == [TRITON_DISTRIBUTED] and not records.has_sentinels:
        return "the only lane has no empty position, which has a value of its own"
    return ""


class _Records:
    """The records of a buffer, lane after lane, in the slots of all of these layouts but Triton-distributed's.

    Args:
        words: uint64 [n], the buffer or its beginning.
        groups: of a block.
        lanes: of the grid.

    Attributes:
        lanes: of the grid.
        has_sentinels: whether words have the value that Triton-distributed's empty positions have.
        lane: int64 [records].
        kind, event: int64 [records], of TIRx's tags.
    """

    def __init__(self, words: Words, groups: int, lanes: int) -> None:
        slots = np.flatnonzero(words[1:])
        lane = slots % lanes
        order = np.argsort(lane, kind="stable")
        self.lanes, self.has_sentinels = lanes, bool((words == _SENTINEL).any())
        self._words, self.lane, self._groups = words[1:][slots[order]], lane[order].astype(np.int64), groups
        self.kind, self.event = (TIRX_RECORD[name].of(self._words).astype(np.int64) for name in ("kind", "event"))

    @property
    def is_finalized(self) -> bool:
        """Whether there are finalize records, and no others of their type."""
        ends = self.kind == FINALIZE
        return bool(ends.any() and not self.event[ends].any())

    @property
    def is_finalized_once(self) -> bool:
        """Whether every lane with a finalize has one, and ends with it."""
        is_last = np.diff(self.lane, append=-1) != 0
        return self.is_finalized and bool(is_last[self.kind == FINALIZE].all())

    @property
    def is_whole(self) -> bool:
        """Whether there is one lane, whose regions are closed, the inner ones first, before it is finalized."""
        if self.lanes > 1 or not self.is_finalized_once:
            return False
        opened: list[int] = []
        for kind, event in zip(self.kind.tolist(), self.event.tolist(), strict=True):
            if kind == BEGIN:
                opened.append(event)
            elif kind == END and (not opened or opened.pop() != event):
                return False
        return not opened

    @property
    def is_of_timer(self) -> bool:
        """Whether the timestamps have a step that cycles do not have."""
        times = distinct(TIRX_RECORD["time"].of(self._words).astype(np.int64))
        return len(times) >= _TIMES and int(np.gcd.reduce(np.diff(times))) >= _TIMER_STEP

    @property
    def is_scattered(self) -> bool:
        """Whether timestamps of lanes are much farther apart than any lane is long."""
        time = TIRX_RECORD["time"].of(self._words).astype(np.int64)
        first = np.flatnonzero(np.diff(self.lane, prepend=-1))
        last = np.append(first[1:], len(time)) - 1
        longest = int(((time[last] - time[first]) % STAMP_WRAP).max())
        return int(np.ptp(time[first])) > _SCATTERED * max(1, longest)

    def number(self, name: str) -> Words:
        """Return the numbers of events that a layout of Mirage has, uint64 [records]."""
        bit, width = _NUMBERS[name]
        return self._words >> np.uint64(bit) & np.uint64((1 << width) - 1)

    def contradicts(self, name: str) -> str:
        """Return what the producer of a layout whose tags agree would not store; empty: nothing."""
        if name == TIRX_V1:
            return self._contradicts_tirx()
        if name == FLASHINFER_V2:
            return self._contradicts_flashinfer()
        return self._contradicts_mirage(name) if name in _NUMBERS else ""

    def _contradicts_tirx(self) -> str:
        ends = self.kind == FINALIZE
        if np.count_nonzero(self.event[ends]) > np.count_nonzero(ends) / 2:
            return "a finalize has no event"
        starts, marks = self.kind == BEGIN, self.kind == INSTANT
        if (self.kind == END).any() or np.count_nonzero(starts) < _REPEATS:
            return ""
        # Versions of Mirage's transpiler store ends as type 2.
        closes = starts[:-1] & marks[1:] & (self.event[1:] == self.event[:-1]) & (self.lane[1:] == self.lane[:-1])
        is_pairs = 2 * np.count_nonzero(closes) >= np.count_nonzero(starts)
        return "no start has an end, and type 2 follows it" if is_pairs else ""

    def _contradicts_flashinfer(self) -> str:
        sm = FLASHINFER_V2_RECORD["sm"].of(self._words)
        if (self.lane >= self._groups).any() and not sm.any():
            return "several blocks are not all on SM 0"
        time = TIRX_RECORD["time"].of(self._words).astype(np.int64)
        is_later = (np.diff(time) % STAMP_WRAP < STAMP_WRAP // 2) & (np.diff(self.lane) == 0)
        moved = distinct(self.lane[1:][is_later & (sm[1:] != sm[:-1])])
        return "blocks do not move from SM to SM" if len(moved) > _MOVED * len(distinct(self.lane)) else ""

    def _contradicts_mirage(self, name: str) -> str:
        number = self.number(name)
        if name == TRANSPILER:
            first = np.flatnonzero(np.diff(self.lane, prepend=-1))
            if number[first].any():
                return "Mirage numbers events from 0"
        if name == MPK and self.is_finalized_once:
            return "a task that is fetched has a type"
        return "Mirage numbers events that are repeated" if not number.any() and self._is_repeated else ""

    @property
    def _is_repeated(self) -> bool:
        """Whether an event of a lane begins again and again, others in between."""
        starts = self.kind == BEGIN
        lane, event = self.lane[starts], self.event[starts]
        is_other = np.ones(len(lane), np.bool_)
        is_other[1:] = (lane[1:] != lane[:-1]) | (event[1:] != event[:-1])
        at: npt.NDArray[np.int64] = lane << 10 | event
        _, counts = np.unique(at[is_other], return_counts=True)
        return bool((counts >= _REPEATS).any())


def _listed(names: list[str] | tuple[str, ...], word: str = "and") -> str:
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last

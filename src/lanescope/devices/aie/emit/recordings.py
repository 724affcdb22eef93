"""What the core noted of recordings, block by block: each gets its place on the axis, and lanes for what it asserts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lanescope._native import core
from lanescope.devices.aie.config import SLOTS
from lanescope.devices.aie.emit.runs import Begun
from lanescope.devices.aie.interpret import notes
from lanescope.devices.aie.interpret.growing import GrowingColumn

if TYPE_CHECKING:
    from lanescope.devices.aie.emit.runs import Runs
    from lanescope.devices.aie.emit.tracks import TileTracks
    from lanescope.devices.aie.interpret.derived_state import DerivedState
    from lanescope.devices.aie.interpret.shard_state import Shard

I64 = npt.NDArray[np.int64]
#: What the core noted, by shard: rows of notes.
Noted = Sequence[tuple["Shard", I64]]

_MODES = 4


class Recordings:
    """Follows the recordings of a dump.

    Nearly all are further ones of their unit, which has its tracks: those go through arrays. What has none yet gets
    them one by one, in the order of the dump.

    Args:
        scanner: what finds the packets.
        runs: where recordings lie on the axis.
        tracks: their tracks.
        derived: what is concluded from them.
    """

    def __init__(self, scanner: core.AieScanner, runs: Runs, tracks: TileTracks, derived: DerivedState) -> None:
        self._scanner = scanner
        self._runs = runs
        self._tracks = tracks
        self._derived = derived
        self._groups = GrowingColumn()  # by source * _MODES + mode: number of the group, -1: none yet

    def take(self, noted: Noted) -> None:
        """Take the notes of the next block; recordings of the shards get their numbers in the dump."""
        rows, shard = notes.in_order([events for _, events in noted])
        if not len(rows):
            return
        kinds = rows[:, notes.KIND]
        at = np.flatnonzero(kinds == notes.SEGMENT)
        begun = self._begun(rows[at], np.array([shard.number for shard, _ in noted], np.int64)[shard[at]])
        first = len(self._tracks.members)
        segments = self._number(noted, rows, shard, at, first)
        ended = np.flatnonzero(kinds == notes.END)
        before = np.searchsorted(at, ended)
        ends = np.stack([before, segments[ended], rows[ended, notes.TICK]], axis=1)
        ticks, own = self._runs.place(self._scanner, begun, ends)
        new = at[:0]
        if len(at):
            groups, new = self._grouped(begun, own)
            self._tracks.add_recordings(groups, begun.mode, ticks)
        slots = np.flatnonzero(kinds == notes.SLOT)
        if len(new) or len(slots):
            lanes = self._tracks.lanes_of(segments[slots]) | rows[slots, notes.VALUE]
            self._make_tracks(begun, own, at[new], new, slots, lanes)
        if len(at):
            self._watch(begun, groups, first)
        if self._derived.needs_ends:
            for _, segment, tick in ends.tolist():
                self._derived.end_recording(segment, tick)

    @staticmethod
    def _begun(rows: I64, shard: I64) -> Begun:
        """Return the recordings that begin, from the notes that say so and the number of the shard of each."""
        detail = rows[:, notes.DETAIL]
        mode, is_restart = detail >> 1 & 3, detail & 1 == 1
        timer = np.where(is_restart | (mode >= notes.EXECUTION), -1, rows[:, notes.VALUE])
        return Begun((detail >> 8) * core.AIE_PARTS + shard, mode, timer)

    @staticmethod
    def _number(noted: Noted, rows: I64, shard: I64, at: I64, first: int) -> I64:
        """Number the recordings that begin, from ``first``; return the recording that each note is about."""
        segments = np.empty(len(rows), np.int64)
        for number, (state, _) in enumerate(noted):
            state.segments.extend(first + np.flatnonzero(shard[at] == number))
            own = shard == number
            segments[own] = state.segments.values[rows[own, notes.RECORDING]]
        return segments

    def _grouped(self, begun: Begun, own: I64) -> tuple[I64, I64]:
        """Return the number of the group of each recording, and which need tracks to be made: the first of theirs."""
        keys = begun.source * _MODES + begun.mode
        known = self._groups
        known.extend(np.full(max(0, int(keys.max(initial=-1)) + 1 - len(known)), -1, np.int64))
        alone = np.flatnonzero(own)
        unknown = np.flatnonzero((own == 0) & (known.values[keys] < 0))
        new = np.sort(np.append(alone, unknown[np.unique(keys[unknown], return_index=True)[1]]))
        columns = begun.source[new], begun.mode[new], own[new]
        numbers = [
            self._tracks.number(self._runs.sources[source], mode, single)
            for source, mode, single in zip(*(column.tolist() for column in columns), strict=True)
        ]
        found = np.array(numbers, np.int64)
        is_shared = own[new] == 0
        known.values[keys[new[is_shared]]] = found[is_shared]
        groups = known.values[keys]
        groups[new] = found
        return groups, new

    def _make_tracks(self, begun: Begun, own: I64, at: I64, new: I64, slots: I64, lanes: I64) -> None:
        """Make the tracks that are missing, in the order of the dump.

        Args:
            begun: the recordings that begin.
            own: numbers of those that share no tracks, else 0.
            at: int64 [n], which notes begin the recordings whose tracks may be missing.
            new: int64 [n], which recordings those are.
            slots: int64 [m], which notes assert slots.
            lanes: int64 [m], the lane of each: number of the group * SLOTS + slot.
        """
        tracks = self._tracks
        wanted, firsts = np.unique(lanes, return_index=True)
        missing: dict[int, tuple[int, int]] = {}  # by their note, which lanes
        for note, lane in zip(slots[firsts].tolist(), wanted.tolist(), strict=True):
            if tracks.lacks(*divmod(lane, SLOTS)):
                missing[note] = divmod(lane, SLOTS)
        recordings = dict(zip(at.tolist(), new.tolist(), strict=True))
        for note in sorted([*missing, *recordings]):
            if note in missing:
                tracks.add_lane(*missing[note])
                continue
            recording = recordings[note]
            source, mode = self._runs.sources[int(begun.source[recording])], int(begun.mode[recording])
            group = tracks.make(source, mode, int(own[recording]))
            if self._derived.watched(source.known, tracks.place_of(source.header), mode) is not None:
                tracks.kernel_lane(group)

    def _watch(self, begun: Begun, groups: I64, first: int) -> None:
        """Look for invocations in the recordings that begin, whose numbers go on from ``first``."""
        watched: dict[int, tuple[int, ...]] = {}
        for number in set(begun.source.tolist()):
            source = self._runs.sources[number]
            slots = self._derived.watched(source.known, self._tracks.place_of(source.header), mode=0)
            if slots is not None:
                watched[number] = slots
        if watched:
            rows = np.flatnonzero(np.isin(begun.source, list(watched)) & (begun.mode == 0))
            slots_of = (watched[number] for number in begun.source[rows].tolist())
            self._derived.add_recordings(first + rows, groups[rows], slots_of)

"""Rows about recordings as a whole: instants, gaps, coverage, segments, stats, accounting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lanescope.devices.aie import schema
from lanescope.devices.aie.formats.layout import (
    HEADER,
    INCOMPLETE_RUN,
    LOST_RUN,
    ORPHAN_RUN,
    PACKET_RUN,
    PACKET_WORDS,
    ZEROS_RUN,
)
from lanescope.devices.aie.interpret import notes
from lanescope.trace import Flag

if TYPE_CHECKING:
    from lanescope._native import core
    from lanescope.devices.aie.emit.tracks import TileTracks
    from lanescope.trace import TraceBuilder

I64 = npt.NDArray[np.int64]

STOP, _RESTARTED = schema.ENDINGS.index("stop"), schema.ENDINGS.index("restarted")
_OTHER_MODE = "other_mode"


class Summary:
    """Appends what concerns recordings as a whole.

    Args:
        builder: where to.
        tracks: the tracks of the recordings.
        input_id: the input.
        to_ts: from ticks to trace time.

    Methods take these arrays: ``noted``, int64 [n, ``core.AIE_EVENT_COLUMNS``], what the core noted; ``columns``,
    ``notes.SEGMENT_COLUMNS`` with int64 [recordings] each; ``counts``, int64 [recordings, ``schema.SEGMENT_STATS``, 2],
    count and first offset; ``groups``, int64 [recordings], group tracks.
    """

    def __init__(self, builder: TraceBuilder, tracks: TileTracks, input_id: int, to_ts: Callable[[I64], I64]) -> None:
        self._builder = builder
        self._tracks = tracks
        self._input = input_id
        self._to_ts = to_ts

    def add_instants(self, noted: I64, columns: Mapping[str, I64]) -> None:
        """Start, restart and Stop, on the tile's lane ``trace``."""
        what, detail = noted[:, notes.KIND], noted[:, notes.DETAIL]
        is_stop = (what == notes.END) & (detail == STOP)
        is_start = what == notes.SEGMENT
        is_restart = (what == notes.RESTART) | (is_start & (detail & 1 == 1))
        chosen = is_stop | is_start | is_restart
        if not chosen.any():
            return
        is_stop, is_restart, rows = is_stop[chosen], is_restart[chosen], noted[chosen]
        segment = rows[:, notes.RECORDING]
        ticks = rows[:, notes.TICK] + self._tracks.begins.values[segment]
        names = self._builder.names.codes(("Start", "Restart", "Stop"))
        exact, estimated, inferred = self._builder.dictionary("instants", "quality").codes(schema.QUALITIES)
        mode = columns["mode"][segment]
        is_exact = ((columns["is_exact"][segment] == 1) & (mode == 0)) | ~(is_stop | is_restart)
        self._builder.append(
            "instants",
            track_id=self._tracks.traces_of(segment),
            ts=self._to_ts(ticks),
            ts_ticks=ticks,
            ts_ticks_valid=(mode == 0) | ~(is_stop | (is_restart & (mode == notes.EXECUTION))),
            name=names[np.where(is_stop, 2, is_restart.astype(np.int64))],
            category="trace",
            quality=np.where(
                is_exact, exact, np.where(is_restart | (columns["restarts"][segment] > 0), inferred, estimated)
            ).astype(np.int32),
            flags=np.where(is_restart, np.uint32(Flag.AFTER_GAP), np.uint32(0)),
        )

    def add_gaps(self, gaps: I64) -> None:
        """Add gaps as they are noted; they go out no later than what follows them.

        They lie on the tile's group, as they concern all its lanes.
        """
        if not len(gaps):
            return
        at = self._tracks.begins.values[gaps[:, notes.RECORDING]]
        begin, end = self._to_ts(gaps[:, notes.TICK] + at), self._to_ts(gaps[:, notes.VALUE] + at)
        lost = gaps[:, notes.LOST]
        self._builder.append(
            "gaps",
            track_id=self._tracks.groups_of(gaps[:, notes.RECORDING]),
            ts=begin,
            dur=end - begin,
            dur_valid=gaps[:, notes.KIND] == notes.GAP,
            cause=self._builder.dictionary("gaps", "cause").codes(schema.CAUSES)[gaps[:, notes.DETAIL]],
            lost_count=lost,
            lost_count_valid=lost > 0,
            input_id=self._input,
            first_offset=gaps[:, notes.OFFSET],
        )

    def add_other_modes(self, columns: Mapping[str, I64], groups: I64) -> None:
        """Append one gap for each recording in the reserved mode."""
        others = np.flatnonzero(columns["mode"] == notes.RESERVED)
        if len(others):
            self._builder.append(
                "gaps",
                track_id=groups[others],
                ts=self._to_ts(self._tracks.begins.values[others]),
                dur=None,
                cause=_OTHER_MODE,
                lost_count=None,
                input_id=self._input,
                first_offset=columns["offset"][others],
            )

    def add_coverage(self, noted: I64, columns: Mapping[str, I64], groups: I64) -> None:
        """From Start to Stop, or to the last known cycle, without the gaps; only mode 0 records every cycle."""
        gaps = noted[notes.is_gap(noted)]
        gaps = gaps[columns["mode"][gaps[:, notes.RECORDING]] == 0]
        recorded = np.flatnonzero(columns["mode"] == 0)
        # In order of recording and time: what is known ends where a gap begins, and begins again where one ends.
        segment = np.concatenate([recorded, gaps[:, notes.RECORDING], gaps[:, notes.RECORDING], recorded])
        tick = np.concatenate(
            [columns["begin"][recorded], gaps[:, notes.TICK], gaps[:, notes.VALUE], columns["end"][recorded]]
        )
        turn = np.concatenate(
            (
                np.full(len(recorded), -1),
                np.arange(len(gaps)) * 2,
                np.arange(len(gaps)) * 2 + 1,
                np.full(len(recorded), 2 * len(gaps)),
            )
        )
        order = np.lexsort((turn, segment))
        tick = tick + self._tracks.begins.values[segment]
        segment, tick = segment[order][::2], self._to_ts(tick[order])
        ts, dur = tick[::2], tick[1::2] - tick[::2]
        keep = dur > 0
        if keep.any():
            self._builder.append("coverage", track_id=groups[segment[keep]], ts=ts[keep], dur=dur[keep])

    def add_segments(
        self,
        columns: Mapping[str, I64],
        counts: I64,
        groups: I64,
        packet_headers: Sequence[int],
        placed: Mapping[str, I64],
    ) -> None:
        """Append a row of ``aie_segments`` for each recording; ``placed``: ``run`` and ``distance``, int64 [n] each."""
        if not len(groups):
            return
        builder = self._builder
        source = columns["source"]
        headers = np.array(packet_headers, np.uint32)[source]
        packet_type = HEADER["type"].of(headers)
        modules = builder.dictionary("aie_segments", "module").codes(
            self._tracks.place_of(header)[0] for header in packet_headers
        )
        start_lost = [spec.name for spec in schema.SEGMENT_STATS].index("aie_missing_start")
        builder.append(
            "aie_segments",
            track_id=groups,
            module=modules[source],
            col=HEADER["column"].of(headers),
            row=HEADER["row"].of(headers),
            packet_type=packet_type,
            packet_id=HEADER["id"].of(headers),
            segment_index=columns["ordinal"],
            run=placed["run"],
            run_valid=placed["run"] > 0,
            begin_cycles=self._tracks.begins.values,
            distance=builder.dictionary("aie_segments", "distance").codes(schema.DISTANCES)[placed["distance"]],
            mode=columns["mode"],
            start_timer=columns["timer"],
            start_timer_valid=columns["mode"] < notes.EXECUTION,
            start_pc=columns["timer"],
            start_pc_valid=columns["mode"] == notes.EXECUTION,
            start_offset=columns["offset"],
            has_start=counts[:, start_lost, 0] == 0,
            has_stop=columns["ending"] == STOP,
            end_reason=builder.dictionary("aie_segments", "end_reason").codes(schema.ENDINGS)[columns["ending"]],
            dur_cycles=columns["end"],
            dur_cycles_valid=columns["mode"] == 0,
            is_lossless=(columns["is_exact"] == 1) & (columns["mode"] != notes.RESERVED),
            packets=columns["packets"],
            frames=columns["frames"],
            restarts=columns["restarts"],
        )

    def add_input_stats(
        self, tallies: Iterable[Sequence[int]], over_limit: Sequence[tuple[int, int]], text: core.AieText | None
    ) -> None:
        """Append what concerns no recording.

        Args:
            tallies: count and first offset of each of ``schema.SCAN_STATS``.
            over_limit: the same of Starts beyond the number of recordings that are kept apart, by shard.
            text: the reader of hex text; None: the dump is binary.
        """
        for spec, (count, first) in zip(schema.SCAN_STATS, tallies, strict=True):
            self.add_stat(spec.name, count, first)
        first = min((first for count, first in over_limit if count), default=0)
        self.add_stat("aie_segment_limit", sum(count for count, _ in over_limit), first)
        if text is not None:
            self.add_stat("aie_bad_line", *text.bad_lines)

    def add_segment_stats(self, noted: I64, columns: Mapping[str, I64], counts: I64) -> None:
        """Append what the core counted in each recording, and recordings without a Stop."""
        for segment, number in np.argwhere(counts[:, :, 0]).tolist():
            count, first = counts[segment, number].tolist()
            name = schema.SEGMENT_STATS[number].name
            self.add_stat(name, count, first, segment)
            if name in ("aie_restart", "aie_missing_start") and columns["mode"][segment] in (0, notes.EXECUTION):
                # No capture that we know holds a restart of another mode than 1.
                self.add_stat("unverified_encoding", count, first, segment)
        ended = noted[(noted[:, notes.KIND] == notes.END) & (noted[:, notes.DETAIL] != STOP)]
        for row in ended.tolist():
            segment = row[notes.RECORDING]
            if columns["mode"][segment] != notes.RESERVED:
                self.add_stat("aie_missing_stop", 1, None, segment)
            if row[notes.DETAIL] == _RESTARTED:
                self.add_stat("aie_overlapping_segment", 1, row[notes.OFFSET], segment)

    def add_stat(self, name: str, count: int, first: int | None, segment: int | None = None) -> None:
        """Append a stat of the dump, or of one recording."""
        group = None if segment is None else int(self._tracks.groups[segment])
        self._builder.add_stat(name, count, track_id=group, input_id=self._input, first_offset=first)

    def add_accounting(
        self,
        total: int,
        shard_words: Iterable[Sequence[int]],
        run_words: Sequence[int],
        text: core.AieText | None,
        added: int = 0,
    ) -> None:
        """Account for bytes, then for words: each word of a line or of four bytes is decoded, padding or lost.

        Args:
            total: bytes of the dump.
            shard_words: words that each shard decoded, passed over as padding, lost.
            run_words: words of each kind of run (``formats.layout.RUNS``).
            text: the reader of hex text; None: the dump is binary.
            added: words that the dump does not hold: headers that were put in front of payload.
        """
        builder = self._builder
        self.add_stat("aie_odd_packets", run_words[PACKET_RUN] // PACKET_WORDS % 2, None)
        decoded, padding, lost = map(sum, zip(*shard_words, strict=True))
        padding += run_words[ZEROS_RUN]
        lost += run_words[LOST_RUN] + run_words[ORPHAN_RUN] + run_words[INCOMPLETE_RUN]
        decoded, lost = max(decoded - added, 0), lost - max(added - decoded, 0)
        unit_bytes, bytes_decoded, bytes_padding, bytes_lost = 4, total - total % 4, 0, total % 4
        if text is None:
            self.add_stat("truncated", int(bytes_lost > 0), bytes_decoded)
        else:
            unit_bytes = 8
            bytes_decoded, bytes_padding, bytes_lost = text.bytes
            # Each line that is not a word was replaced by a placeholder, which was counted as lost.
            lost -= text.bad_lines[0]
        builder.add_bytes(decoded=bytes_decoded, padding=bytes_padding, lost=bytes_lost, input_id=self._input)
        builder.add_accounting(
            input_id=self._input,
            layer=1,
            unit="word",
            unit_bytes=unit_bytes,
            total=decoded + padding + lost,
            decoded=decoded,
            padding=padding,
            lost=lost,
        )

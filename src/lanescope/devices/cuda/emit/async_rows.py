"""Rows that several records make together: asynchronous regions, flows, samples of counters."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.pairing import Pairs
from lanescope.devices.cuda.emit.trace_assembly import TraceAssembly
from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.buffer import TaggedRecords
from lanescope.devices.cuda.formats.lanes import I64, Decoded
from lanescope.devices.cuda.interpret import flow_matching, region_matching
from lanescope.devices.cuda.schema import LINKS, MARKS, REGIONS
from lanescope.trace import Column, Flag

Mask = npt.NDArray[np.bool_]

#: Wider than any event or token.
_EVENTS, _TOKENS = 1 << 16, 1 << 12


class Joined:
    """Adds the rows of lanes that the core knows only as instants.

    Args:
        making: the assembly that receives the rows.
    """

    def __init__(self, making: TraceAssembly) -> None:
        self._making = making

    def add(self, decoded: Decoded, first_slice: int) -> Mask:
        """Add rows for everything but instants; return which records are instants, bool [instants].

        Args:
            decoded: the lanes, placed. All lanes of a block are among them.
            first_slice: id of its first slice.
        """
        rows = decoded.instants
        stray = rows["is_end"] != 0
        special = self._making.buffer.special(rows.lane, rows["index"])
        kind = np.where(stray, layout.INSTANT, special.kind)
        where = (kind == layout.ASYNC_BEGIN) | (kind == layout.ASYNC_END)
        self._regions(decoded, special, where, kind, first_slice)
        self._flows(decoded, special, (kind == layout.FLOW_OUT) | (kind == layout.FLOW_IN), kind, first_slice)
        self._counters(decoded, special, kind == layout.COUNTER)
        self._unknown(decoded, special, kind > layout.INSTANT)
        return np.asarray(kind == layout.INSTANT)

    def _regions(self, decoded: Decoded, special: TaggedRecords, where: Mask, kind: I64, first_slice: int) -> None:
        at = np.flatnonzero(where)
        if not len(at):
            return
        making, rows = self._making, decoded.instants
        lane, event = rows.lane[at].astype(np.int64), rows["event"][at].astype(np.int64)
        launch, tick, flags = rows["launch"][at].astype(np.int64), rows["tick"][at], rows["flags"][at]
        ts = making.lane_ns(lane, tick) - making.t0
        pairs, repeated = self._pairs(at, decoded, special, kind[at] == layout.ASYNC_END)
        strays = np.setdiff1d(pairs.unmatched, repeated, assume_unique=True)
        self._strays(at[strays], decoded, special, "end", "cuda_end_unmatched")
        self._strays(at[repeated], decoded, special, "start", "cuda_start_repeated")
        begin, end = pairs.start, pairs.end
        if not len(begin):
            return
        is_open = end < 0
        negative = ~is_open & (ts[end] < ts[begin])
        closed = ~is_open & ~negative
        dur = np.where(closed, ts[end] - ts[begin], 0)
        of_end = np.where(is_open, np.uint32(0), flags[end] & ~np.uint32(Flag.AFTER_GAP))
        found = np.asarray(flags[begin] | of_end, np.uint32)
        found[is_open & (making.summary["full"][lane[begin]] != 0)] |= np.uint32(Flag.TRUNCATED)
        if making.step is not None and making.timeline is None:
            found[closed & (dur < 2 * making.step)] |= np.uint32(Flag.BELOW_RESOLUTION)
        used, row = np.unique(lane[begin], return_inverse=True)
        tracks = np.full(len(at), -1, np.int64)
        tracks[begin] = np.array([making.tree.asynchronous(number) for number in used.tolist()], np.int64)[row]
        slices = making.builder.add_pairs(
            pairs,
            tracks,
            ts,
            tick,
            name=self._names(event[begin]),
            category="async",
            quality=making.best_quality,
            flags=found,
            last_known_ts=making.end[lane[begin]] - making.t0,
        )
        slot = special.slot[at]
        begins, ends = Column.array(slot[begin]), Column.array(np.where(is_open, 0, slot[end]), valid=~is_open)
        grid, of = making.grid, lane[begin]
        sm = {} if grid.sm is None else {"sm": np.maximum(grid.sm[of], 0), "sm_valid": grid.sm[of] >= 0}
        elsewhere = ~is_open & (lane[end] != of)
        making.builder.append(
            REGIONS.name,
            slice_id=slices,
            launch=launch[begin],
            block=grid.block[of],
            group=grid.group[of],
            event_id=event[begin],
            token=special.token[at][begin],
            begin_slot=begins,
            end_slot=ends,
            end_group=np.where(elsewhere, grid.group[lane[end]], 0),
            end_group_valid=elsewhere,
            payload=making.payload(begins),
            end_payload=making.payload(ends),
            resolution_ns=making.resolution(dur, closed),
            **sm,
        )
        moved = np.flatnonzero(elsewhere & closed)
        self._moved(
            at[begin[moved]], at[end[moved]], tracks[begin[moved]], slices[moved], decoded, special, first_slice
        )
        for mask, stat in (
            (is_open, "cuda_unfinished_region"),
            (negative, "cuda_negative_duration"),
            (pairs.is_ambiguous, "cuda_ambiguous_async_end"),
        ):
            self._count(stat, begin[mask], at, decoded, special)

    def _pairs(self, at: I64, decoded: Decoded, special: TaggedRecords, is_end: Mask) -> tuple[Pairs, I64]:
        """Pair starts and ends at ``at``, as ``region_matching.pair`` describes it."""
        making, rows = self._making, decoded.instants
        lane, token = rows.lane[at], special.token[at]
        by_event = not making.buffer.has_tokens
        code, most = token, _TOKENS
        if ((token < 0) | (token >= _TOKENS)).any():
            numbers, code = np.unique(token, return_inverse=True)
            most = len(numbers)
        key = (rows["launch"][at].astype(np.int64) * _EVENTS + rows["event"][at]) * most + code
        # A caller's token may leave its lane; no token stays there.
        return region_matching.pair(
            self._block_of[lane],
            key,
            rows["tick"][at],
            lane,
            rows["launch"][at],
            is_end,
            across=np.ones(len(at), np.bool_) if by_event else (token != 0) & making.buffer.tokens_leave_lanes,
            is_lossy=self._lossy()[lane],
            by_event=by_event,
        )

    @cached_property
    def _block_of(self) -> I64:
        """Number of the block of each lane, rising, int64 [lanes]: lanes of one block follow each other."""
        block = self._making.grid.block
        return np.cumsum(np.diff(block, prepend=block[:1]) != 0)

    def _lossy(self) -> Mask:
        """Return which lanes lost records, or may have."""
        making = self._making
        found: Mask = (making.summary["missing"] > 0) | (making.summary["full"] > 0)
        return found if making.grid.lost is None else found | (making.grid.lost > 0)

    def _moved(
        self,
        begin: I64,
        end: I64,
        tracks: I64,
        slices: I64,
        decoded: Decoded,
        special: TaggedRecords,
        first_slice: int,
    ) -> None:
        """Add a flow for each region that another lane ended than began it."""
        if not len(begin):
            return
        making, rows = self._making, decoded.instants
        source, target = rows.lane[begin].astype(np.int64), rows.lane[end].astype(np.int64)
        # Records are looked up in the order of lanes.
        order = np.argsort(end, kind="stable")
        around = np.empty(len(end), np.int64)
        around[order] = flow_matching.enclosing(decoded.slices, rows.lane[end[order]], rows["index"][end[order]])
        first = making.builder.append(
            "flows",
            kind="signal",
            src_track_id=tracks,
            src_ts=making.lane_ns(source, rows["tick"][begin]) - making.t0,
            dst_track_id=making.tree.lane[target],
            dst_ts=making.lane_ns(target, rows["tick"][end]) - making.t0,
            src_slice_id=slices,
            dst_slice_id=np.where(around >= 0, first_slice + around, 0),
            dst_slice_id_valid=around >= 0,
        )
        making.builder.append(
            LINKS.name,
            flow_id=first + np.arange(len(begin)),
            block=making.grid.block[source],
            event_id=rows["event"][begin],
            token=special.token[begin],
            src_slot=special.slot[begin],
            dst_slot=special.slot[end],
        )

    def _strays(self, at: I64, decoded: Decoded, special: TaggedRecords, what: str, stat: str) -> None:
        """Count ends of asynchronous regions that nothing began, or starts of what was open; kept as instants."""
        if not len(at):
            return
        making, rows = self._making, decoded.instants
        lane = rows.lane[at].astype(np.int64)
        dictionary = making.builder.names
        events = rows["event"][at].astype(np.int64)
        code = {n: dictionary.code(f"{what} {making.event_name(n)}?") for n in distinct(events).tolist()}
        first = making.builder.append(
            "instants",
            track_id=making.tree.lane[lane],
            ts=making.lane_ns(lane, rows["tick"][at]) - making.t0,
            ts_ticks=rows["tick"][at],
            name=np.array([code[n] for n in events.tolist()], np.int32),
            category=f"unmatched_{what}",
            quality=making.best_quality,
            flags=rows["flags"][at],
        )
        slot = Column.array(special.slot[at])
        making.builder.append(
            MARKS.name,
            instant_id=first + np.arange(len(at)),
            launch=rows["launch"][at],
            block=making.grid.block[lane],
            group=making.grid.group[lane],
            event_id=events,
            slot=slot,
            payload=making.payload(slot),
        )
        self._count(stat, np.arange(len(at)), at, decoded, special)

    def _flows(self, decoded: Decoded, special: TaggedRecords, where: Mask, kind: I64, first_slice: int) -> None:
        at = np.flatnonzero(where)
        if not len(at):
            return
        making, rows = self._making, decoded.instants
        lane, event = rows.lane[at].astype(np.int64), rows["event"][at].astype(np.int64)
        launch = rows["launch"][at].astype(np.int64)
        ts = making.lane_ns(lane, rows["tick"][at]) - making.t0
        block = making.grid.block[lane]
        # Lanes of one block follow each other, so its number does not have to rise.
        blocks = np.cumsum(np.diff(block, prepend=block[:1]) != 0)
        key = (launch * _EVENTS + event) * _TOKENS + special.token[at]
        effect, cause, lonely, unused = flow_matching.join(blocks, key, ts, kind[at] == layout.FLOW_IN)
        self._count("cuda_flow_unmatched", lonely, at, decoded, special)
        self._count("cuda_flow_unused", unused, at, decoded, special)
        if not len(effect):
            return
        around = flow_matching.enclosing(decoded.slices, rows.lane[at], rows["index"][at])
        src, dst = around[cause], around[effect]
        first = making.builder.append(
            "flows",
            kind="signal",
            src_track_id=making.tree.lane[lane[cause]],
            src_ts=ts[cause],
            dst_track_id=making.tree.lane[lane[effect]],
            dst_ts=ts[effect],
            src_slice_id=np.where(src >= 0, first_slice + src, 0),
            src_slice_id_valid=src >= 0,
            dst_slice_id=np.where(dst >= 0, first_slice + dst, 0),
            dst_slice_id_valid=dst >= 0,
        )
        making.builder.append(
            LINKS.name,
            flow_id=first + np.arange(len(effect)),
            block=block[effect],
            event_id=event[effect],
            token=special.token[at][effect],
            src_slot=special.slot[at][cause],
            dst_slot=special.slot[at][effect],
        )

    def _counters(self, decoded: Decoded, special: TaggedRecords, where: Mask) -> None:
        at = np.flatnonzero(where)
        if not len(at):
            return
        making, rows = self._making, decoded.instants
        self._count(
            "cuda_contradictory_counter", np.flatnonzero(special.token[at] > layout.LS2_FLOAT), at, decoded, special
        )
        lane, event = rows.lane[at].astype(np.int64), rows["event"][at].astype(np.int64)
        owners, row = np.unique(lane * _EVENTS + event, return_inverse=True)
        tracks = np.array(
            [
                making.tree.counter(owner // _EVENTS, owner % _EVENTS, making.event_name(owner % _EVENTS))
                for owner in owners.tolist()
            ],
            np.int64,
        )
        making.builder.append(
            "counters",
            track_id=tracks[row],
            ts=making.lane_ns(lane, rows["tick"][at]) - making.t0,
            value=making.buffer.values(special.slot[at], special.token[at]),
        )

    def _unknown(self, decoded: Decoded, special: TaggedRecords, where: Mask) -> None:
        """Count records whose event has no name."""
        known = self._making.names.events
        at = np.flatnonzero(where)
        if known is None or not len(at):
            return
        is_known = np.zeros(_EVENTS, np.bool_)
        is_known[[number for number in known if 0 <= number < _EVENTS]] = True
        self._count(
            "cuda_unknown_event", np.flatnonzero(~is_known[decoded.instants["event"][at]]), at, decoded, special
        )

    def _names(self, events: I64) -> npt.NDArray[np.int32]:
        making = self._making
        used, row = np.unique(events, return_inverse=True)
        codes = np.array([making.builder.names.code(making.event_name(n)) for n in used.tolist()], np.int32)
        found: npt.NDArray[np.int32] = codes[row]
        return found

    def _count(self, stat: str, which: I64, at: I64, decoded: Decoded, special: TaggedRecords) -> None:
        """Count records, given as places in ``at``, with the place of the first."""
        if not len(which):
            return
        making, row = self._making, int(at[which].min())
        lane = decoded.instants.lane[row : row + 1]
        ts = int(making.lane_ns(lane, decoded.instants["tick"][row : row + 1])[0]) - making.t0
        offset = making.before + int(special.slot[row]) * making.buffer.unit_bytes
        making.stats.add(stat, len(which), offset=offset, ts=ts, by_offset=True)

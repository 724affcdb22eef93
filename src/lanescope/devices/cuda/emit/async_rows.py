"""Rows that several records make together: asynchronous regions, flows, samples of counters."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lanescope.common.distinct import distinct
from lanescope.common.pairing import pair_fifo
from lanescope.devices.cuda.emit.trace_assembly import TraceAssembly
from lanescope.devices.cuda.formats import layout
from lanescope.devices.cuda.formats.buffer import TaggedRecords
from lanescope.devices.cuda.formats.lanes import I64, Decoded
from lanescope.devices.cuda.interpret import flow_matching
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
        self._regions(decoded, special, (kind == layout.ASYNC_BEGIN) | (kind == layout.ASYNC_END), kind)
        self._flows(decoded, special, (kind == layout.FLOW_OUT) | (kind == layout.FLOW_IN), kind, first_slice)
        self._counters(decoded, special, kind == layout.COUNTER)
        return np.asarray(kind == layout.INSTANT)

    def _regions(self, decoded: Decoded, special: TaggedRecords, where: Mask, kind: I64) -> None:
        at = np.flatnonzero(where)
        if not len(at):
            return
        making, rows = self._making, decoded.instants
        lane, event = rows.lane[at].astype(np.int64), rows["event"][at].astype(np.int64)
        launch, tick, flags = rows["launch"][at].astype(np.int64), rows["tick"][at], rows["flags"][at]
        key = ((lane * (int(launch.max()) + 1) + launch) * _EVENTS + event) * _TOKENS + special.token[at]
        pairs = pair_fifo(key, kind[at] == layout.ASYNC_END)
        ts = making.lane_ns(lane, tick) - making.t0
        self._strays(at[pairs.unmatched], decoded, special)
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
            payload=making.payload(begins),
            end_payload=making.payload(ends),
            resolution_ns=making.resolution(dur, closed),
            **sm,
        )
        for mask, stat in (
            (is_open, "cuda_unfinished_region"),
            (negative, "cuda_negative_duration"),
            (pairs.is_ambiguous, "cuda_ambiguous_async_end"),
        ):
            self._count(stat, begin[mask], at, decoded, special)

    def _strays(self, at: I64, decoded: Decoded, special: TaggedRecords) -> None:
        """Count ends of asynchronous regions that nothing began; they are kept as instants."""
        if not len(at):
            return
        making, rows = self._making, decoded.instants
        lane = rows.lane[at].astype(np.int64)
        dictionary = making.builder.names
        events = rows["event"][at].astype(np.int64)
        code = {n: dictionary.code(f"end {making.event_name(n)}?") for n in distinct(events).tolist()}
        first = making.builder.append(
            "instants",
            track_id=making.tree.lane[lane],
            ts=making.lane_ns(lane, rows["tick"][at]) - making.t0,
            ts_ticks=rows["tick"][at],
            name=np.array([code[n] for n in events.tolist()], np.int32),
            category="unmatched_end",
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
        self._count("cuda_end_unmatched", np.arange(len(at)), at, decoded, special)

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
        making.stats.add(stat, len(which), offset=offset, ts=ts)

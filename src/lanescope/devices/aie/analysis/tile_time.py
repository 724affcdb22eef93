"""What limits a tile, and where the time of an invocation went: by the stalls that its trace units record.

Time is cycles of the window of a tile: from the first invocation of each segment to the end of its last one, or all of
the segment if it has none. Only what is traced is counted. A stall that is not traced may hide in any other time, so
its sum is NULL, and time that it may explain has no known cause.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lanescope.common.intervals import Intervals, intersect, join, subtract, total_length, union
from lanescope.errors import UsageError
from lanescope.trace import LazyTable, Table, TableSpec, Trace
from lanescope.trace.schema import ColumnSpec, ref, ticks

I64 = npt.NDArray[np.int64]

_CORE_STALLS = ("memory", "stream", "lock")
_DMA_STALLS = ("dma_lock", "dma_stream", "dma_memory")
_KINDS = ("vector", *_CORE_STALLS, *_DMA_STALLS)
_CORE_EVENTS = {
    "INSTR_VECTOR": "vector",
    "MEMORY_STALL": "memory",
    "STREAM_STALL": "stream",
    "CASCADE_STALL": "stream",
    "LOCK_STALL": "lock",
}
_NO_INTS = np.zeros(0, np.int64)
_NONE = Intervals(_NO_INTS, _NO_INTS, _NO_INTS)


def _sums(*kinds: str) -> tuple[ColumnSpec, ...]:
    said = {
        "vector": "cycles with an issued vector instruction",
        "memory": "cycles of memory stalls of the core",
        "stream": "cycles of stream and cascade stalls of the core",
        "lock": "cycles of lock stalls of the core",
        "dma_lock": "cycles in which a DMA channel of the tile waited for a lock",
        "dma_stream": "cycles in which a DMA channel of the tile waited for its stream",
        "dma_memory": "cycles in which a DMA channel of the tile waited for memory",
    }
    return tuple(ticks(f"{kind}_cycles", f"{said[kind]}; NULL if not traced", nullable=True) for kind in kinds)


INVOCATION_STALLS = TableSpec(
    "aie_invocation_stalls",
    "stalls during one kernel invocation. DMA stalls are those of the tile's memory module, whose clock differs from "
    "that of the core by a few cycles",
    (ref("slice_id", "slices", "slice on the lane `kernel` of its tile"), *_sums(*_KINDS)),
    key="slice_id",
)
DERIVED = (INVOCATION_STALLS,)
TILES = TableSpec(
    "aie_tile_summary",
    "where the time of one tile went, and what limits it",
    (
        ColumnSpec("id", "int64", "row number, dense"),
        ColumnSpec("group", "utf8", "tile, with its design if there are several"),
        ColumnSpec(
            "bound",
            "utf8",
            "largest part of the time: compute, memory, stream, lock, or unknown (not explained by traced events)",
        ),
        ColumnSpec("invocations", "int64", "number of invocations; NULL if not traced", nullable=True),
        ticks("window", "cycles from the first invocation to the end of the last one, of all segments"),
        ticks("kernel_cycles", "cycles inside invocations; NULL if not traced", nullable=True),
        ticks("compute_cycles", "cycles inside invocations without a traced stall; NULL without", nullable=True),
        *_sums(*_KINDS),
        ticks("unexplained_cycles", "cycles outside invocations without a traced stall"),
        ColumnSpec("share", "float64", "fraction of the window that the largest part takes", nullable=True, unit="1"),
        ColumnSpec("untraced", "utf8", "stalls of the core that are not traced"),
    ),
)


class _Tile(NamedTuple):
    """Name of a tile, and what is traced there: kinds of ``_KINDS``, and ``kernel``."""

    name: str
    traced: set[str]


class _Time:
    """Time of all tiles of a trace, in ticks.

    Attributes:
        tiles: the tiles.
        kinds: time of each kind, in groups by tile.
        kernels: invocations, in groups by tile, in order of ``aie_invocations``.
        slices: their rows.
        windows: in groups by tile.
    """

    def __init__(self, trace: Trace) -> None:
        names = trace.tracks.values("name").tolist()
        parents = np.where(trace.tracks.valid("parent_id"), trace.tracks.values("parent_id"), -1)
        roles = trace.tracks.values("role")
        designs = np.where((parents >= 0) & (roles[parents] == "array tile"), parents[parents], parents)
        tile_of = np.full(len(parents), -1, np.int64)  # of groups, then of lanes
        self.tiles: list[_Tile] = []
        known: dict[tuple[int, int, int], int] = {}
        segments = [row for row in trace.details["aie_segments"].rows() if row["mode"] == 0]
        for row in segments:
            group = row["track_id"]
            key = int(designs[group]), row["col"], row["row"]
            if key not in known:
                design = f"{names[key[0]]} " if key[0] >= 0 else ""
                place = names[group].partition(" ")[2].partition(")")[0] + ")"
                known[key] = len(self.tiles)
                self.tiles.append(_Tile(f"{design}{place}", set()))
            tile_of[group] = known[key]
        modules = {row["track_id"]: row["module"] for row in segments}
        kind_of = np.full(len(parents), -1, np.int64)
        for row in trace.details["aie_slots"].rows():
            lane = row["track_id"]
            kind = _kind(modules.get(int(parents[lane]), ""), row["event_name"])
            if kind:
                kind_of[lane] = _KINDS.index(kind)
                tile_of[lane] = tile_of[parents[lane]]
                self.tiles[int(tile_of[lane])].traced.add(kind)
        for lane in np.flatnonzero(roles == "kernel").tolist():
            tile_of[lane] = tile_of[parents[lane]]
            self.tiles[int(tile_of[lane])].traced.add("kernel")
        track = trace.slices.values("track_id")
        begin = trace.slices.values("ts_ticks")
        end = begin + trace.slices.values("dur_ticks")

        def of(rows: I64) -> Intervals:
            return Intervals(tile_of[track[rows]], begin[rows], end[rows])

        of_kind = kind_of[track]
        self.kinds = {kind: union(of(np.flatnonzero(of_kind == i))) for i, kind in enumerate(_KINDS)}
        self.slices = trace.details["aie_invocations"].values("slice_id")
        self.kernels = of(self.slices)
        self.windows = self._windows(segments, tile_of)

    def _windows(self, segments: Iterable[Mapping[str, Any]], tile_of: I64) -> Intervals:
        """Return from the first invocation to the end of the last one of each segment, in groups by tile."""
        recorded = sorted(
            {
                (int(tile_of[row["track_id"]]), row["begin_cycles"], row["begin_cycles"] + row["dur_cycles"])
                for row in segments
                if row["module"] == "core" or "kernel" not in self.tiles[int(tile_of[row["track_id"]])].traced
            }
        )
        tile, first, last = np.array(recorded, np.int64).reshape(-1, 3).T
        kernels = self.kernels.take(np.lexsort((self.kernels.begin, self.kernels.group)))
        if len(kernels.group):
            has_kernel = np.array(["kernel" in one.traced for one in self.tiles])[tile]
            for index in np.flatnonzero(has_kernel).tolist():
                low, high = np.searchsorted(kernels.group, [tile[index], tile[index] + 1])
                inside = slice(
                    low + np.searchsorted(kernels.begin[low:high], first[index]),
                    low + np.searchsorted(kernels.begin[low:high], last[index] + 1),
                )
                ends = kernels.end[inside]
                begin = kernels.begin[inside][0] if len(ends) else last[index]
                first[index], last[index] = begin, ends.max(initial=begin)
        return union(Intervals(tile, first, last))


def _kind(module: str, event: str) -> str:
    """Return which of ``_KINDS`` an event is time of, "" for none."""
    if module == "core":
        return _CORE_EVENTS.get(event, "")
    if event.startswith("DMA_") and event.endswith("_STALLED_LOCK"):
        return "dma_lock"
    if event.startswith("DMA_") and event.endswith(("_STARVATION", "_BACKPRESSURE")):
        return "dma_stream" if "_STREAM_" in event else "dma_memory"
    return ""


def _check(trace: Trace) -> None:
    if "aie_segments" not in trace.details:
        raise UsageError("trace contains no AI Engine data", hint="use --by name, lane, device or category")


def summarize(trace: Trace) -> Table:
    """Return the time of each tile, and what limits it.

    Raises:
        UsageError: the trace holds nothing of this family.
    """
    _check(trace)
    time = _Time(trace)
    count = len(time.tiles)

    def length(*parts: Intervals) -> I64:
        return total_length(intersect(join(*parts), time.windows), count)

    kernel = union(time.kernels)
    stalls = union(join(*(time.kinds[kind] for kind in _CORE_STALLS)))
    window = total_length(time.windows, count)
    sums = {kind: length(time.kinds[kind]) for kind in _KINDS}
    inside, computing = length(kernel), length(subtract(kernel, stalls))
    unexplained = window - length(kernel, stalls, time.kinds["vector"])
    invocations = np.bincount(time.kernels.group, minlength=count)
    rows = []
    for index, tile in enumerate(time.tiles):
        has_kernel = "kernel" in tile.traced
        parts = {kind: int(sums[kind][index]) for kind in _CORE_STALLS if kind in tile.traced}
        parts["compute"] = int(computing[index] if has_kernel else sums["vector"][index])
        parts["unknown"] = int(unexplained[index])
        untraced = [kind for kind in _CORE_STALLS if kind not in tile.traced]
        bound = max(parts, key=lambda kind: parts[kind]) if window[index] else "unknown"
        share = parts[bound] / int(window[index]) if window[index] else None
        is_vector = 2 * int(sums["vector"][index]) >= parts["compute"] > 0
        if bound == "compute" and untraced and not is_vector:
            bound = "unknown"  # a stall that is not traced looks the same
        rows.append(
            {
                "id": index,
                "group": tile.name,
                "bound": bound,
                "invocations": int(invocations[index]) if has_kernel else None,
                "window": int(window[index]),
                "kernel_cycles": int(inside[index]) if has_kernel else None,
                "compute_cycles": parts["compute"] if has_kernel else None,
                **{f"{kind}_cycles": int(sums[kind][index]) if kind in tile.traced else None for kind in _KINDS},
                "unexplained_cycles": int(unexplained[index]),
                "share": share,
                "untraced": ", ".join(untraced),
            }
        )
    return Table.from_arrays(TILES, {name: [row[name] for row in rows] for name in TILES.names})


def remarks(table: Table) -> Iterable[str]:
    """Yield a sentence for each limit that tiles have, and what should be traced where none is known."""
    rows = list(table.rows())
    for bound in ("compute", "memory", "stream", "lock"):
        names = [row["group"] for row in rows if row["bound"] == bound]
        if names:
            yield f"{bound} bound: {', '.join(names[:8])}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    missing = sorted(
        {kind for row in rows if row["bound"] == "unknown" for kind in row["untraced"].split(", ") if kind}
    )
    if missing:
        events = ", ".join(sorted(event for event, kind in _CORE_EVENTS.items() if kind in missing))
        yield f"unknown bounds: trace {events}, INSTR_EVENT_0 and INSTR_EVENT_1 of the cores"


def invocation_stalls(trace: Trace) -> Iterable[LazyTable]:
    """Return the table ``aie_invocation_stalls``; none of a trace that is not of this family."""
    if "aie_segments" not in trace.details:
        return ()
    return (LazyTable(INVOCATION_STALLS, lambda: _stalls(trace)),)


def _stalls(trace: Trace) -> Table:
    time = _Time(trace)
    columns: dict[str, object] = {"slice_id": time.slices}
    group, begin, end = time.kernels
    for kind in _KINDS:
        found = _covered(time.kinds[kind], group, end) - _covered(time.kinds[kind], group, begin)
        traced = np.array([kind in tile.traced for tile in time.tiles], np.bool_)
        is_traced = traced[group] if len(group) else np.zeros(0, np.bool_)
        columns[f"{kind}_cycles"] = [
            value if known else None for value, known in zip(found.tolist(), is_traced.tolist(), strict=True)
        ]
    return Table.from_arrays(INVOCATION_STALLS, columns)


def _covered(disjoint: Intervals, group: I64, at: I64) -> I64:
    """Return how much of a group's disjoint, sorted intervals lies before a tick, int64 [n]."""
    total = np.append(0, np.cumsum(disjoint.end - disjoint.begin))
    found = np.zeros(len(at), np.int64)
    for tile in dict.fromkeys(group.tolist()):
        rows = np.flatnonzero(group == tile)
        low, high = np.searchsorted(disjoint.group, [tile, tile + 1])
        count = low + np.searchsorted(disjoint.begin[low:high], at[rows])
        over = np.zeros(len(rows), np.int64)
        has_any = count > low
        over[has_any] = np.maximum(disjoint.end[count[has_any] - 1] - at[rows][has_any], 0)
        found[rows] = total[count] - total[low] - over
    return found

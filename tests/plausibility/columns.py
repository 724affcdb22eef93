"""Columns of a decoded trace that a lie can change, and the trace that they make afterwards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lanescope.analysis.track_tree import Tree
from lanescope.trace import Column, Table, TableSpec, Trace
from lanescope.trace.schema import CLOCKS, INSTANTS, SLICES, TRACKS

#: Digits and addresses, of which the lanes of one kind differ.
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass
class Columns:
    """What the rules of plausibility read of a trace. A lie replaces arrays and writes into none.

    Attributes:
        trace: the trace as decoded.
        lane, ts, end, name: int64 [slices]; ``end`` of a slice without a known end is its last known time.
        closed: bool [slices], whether the end is known.
        ilane, its, iname: int64 [instants].
        iquality: int64 [instants], codes of their quality.
        rates: frequency of each clock that a lie has changed, in Hz.
        without: tracks that a lie has removed.
    """

    trace: Trace
    lane: Ints
    ts: Ints
    end: Ints
    closed: Mask
    name: Ints
    ilane: Ints
    its: Ints
    iname: Ints
    iquality: Ints
    rates: dict[int, float] = field(default_factory=dict)
    without: tuple[int, ...] = ()

    @classmethod
    def of(cls, trace: Trace) -> Columns:
        """Return the columns of a trace."""
        slices, instants = trace.slices, trace.instants
        ts, closed = slices.values("ts"), slices.valid("dur")
        last = np.where(slices.valid("last_known_ts"), slices.values("last_known_ts"), ts)
        return cls(
            trace,
            slices.values("track_id"),
            ts,
            np.where(closed, ts + slices.values("dur"), last),
            np.array(closed),
            slices.codes("name").astype(np.int64),
            instants.values("track_id"),
            instants.values("ts"),
            instants.codes("name").astype(np.int64),
            instants.codes("quality").astype(np.int64),
        )

    # --- what a lie asks ---------------------------------------------------------------------------------------

    @property
    def role(self) -> list[str]:
        """Role of each track."""
        roles: list[str] = self.trace.tracks.values("role").tolist()
        return roles

    @property
    def family(self) -> str:
        """The device family that decoded the trace."""
        return str(self.trace.inputs.values("family")[0])

    @property
    def is_device(self) -> Mask:
        """Bool [slices]: those that a device has recorded."""
        host = np.array([role == "host_thread" for role in self.role])
        mine: Mask = ~host[self.lane] if len(host) else np.zeros(len(self.lane), np.bool_)
        return mine

    @property
    def window(self) -> tuple[int, int]:
        """The first and the last timestamp of devices."""
        mine = self.is_device
        stamps = np.concatenate([self.ts[mine], self.end[mine]])
        return int(stamps.min()), int(stamps.max())

    @property
    def span(self) -> int:
        """Time from the first to the last timestamp of devices, at least 1."""
        first, last = self.window
        return max(last - first, 1)

    def lanes(self, least: int) -> Ints:
        """Return the device lanes with so many closed slices, int64, by id."""
        count = np.bincount(self.lane[self.closed & self.is_device], minlength=len(self.trace.tracks))
        return np.flatnonzero(count >= max(least, 1))

    def rows(self, lane: int) -> Ints:
        """Return the slices of a lane by start, int64."""
        mine = np.flatnonzero(self.lane == lane)
        return mine[np.lexsort((-self.end[mine], self.ts[mine]))]

    def tick(self, lane: int) -> float:
        """Return the trace units of one tick of a lane's clock; 1 where the trace does not tell."""
        clocks, tracks = self.trace.clocks, self.trace.tracks
        if self.trace.time.time_unit != "ns" or not len(clocks):
            return 1.0
        clock = int(tracks.values("clock_id")[lane]) if tracks.valid("clock_id")[lane] else 0
        if not clocks.valid("frequency_num")[clock]:
            return 1.0
        return 1e9 * int(clocks.values("frequency_den")[clock]) / int(clocks.values("frequency_num")[clock])

    def shapes(self) -> list[tuple[int, str, str, str]]:
        """Return for each track its device, role, nesting, and path with numbers masked: siblings have the same."""
        tree = Tree(self.trace.tracks)
        nesting = self.trace.tracks.values("nesting").tolist()
        paths = [_NUMBER.sub("#", tree.path(track)) for track in range(len(tree))]
        return list(zip(map(tree.device, range(len(tree))), self.role, nesting, paths, strict=True))

    # --- what a lie does ---------------------------------------------------------------------------------------

    def kept(self, slices: Mask, instants: Mask | None = None) -> Columns:
        """Return the columns with some of the rows."""
        left = np.ones(len(self.its), np.bool_) if instants is None else instants
        return replace(
            self,
            **{name: getattr(self, name)[slices] for name in ("lane", "ts", "end", "closed", "name")},
            **{name: getattr(self, name)[left] for name in ("ilane", "its", "iname", "iquality")},
        )

    def repeated(self, rows: Ints) -> Columns:
        """Return the columns with some slices twice, each copy after its original."""
        order = np.sort(np.concatenate([np.arange(len(self.ts)), rows]), kind="stable")
        return replace(self, **{name: getattr(self, name)[order] for name in ("lane", "ts", "end", "closed", "name")})

    def moved(self, lane: int, change: Any) -> Columns:
        """Return the columns with other timestamps on one lane.

        Args:
            lane: the lane; -1: all lanes of devices.
            change: function from int64 times to times.
        """
        host = np.array([role == "host_thread" for role in self.role])
        mine = ~host[self.lane] if lane < 0 else self.lane == lane
        points = (~host[self.ilane] if lane < 0 else self.ilane == lane) if len(self.its) else np.zeros(0, np.bool_)
        return replace(
            self,
            ts=np.where(mine, change(self.ts), self.ts),
            end=np.where(mine, change(self.end), self.end),
            its=np.where(points, change(self.its), self.its),
        )

    def to_trace(self) -> Trace:
        """Return the trace: no stats, flags or flows, and coverage only from first to last row of each lane."""
        tables = self.trace.tables()
        number = np.cumsum(~np.isin(np.arange(len(self.trace.tracks)), self.without)) - 1
        left = np.setdiff1d(np.arange(len(number)), self.without)
        tracks = tables["tracks"].take(left)
        parents = tracks.values("parent_id")
        made = {
            "tracks": _with(tracks, TRACKS, {"id": np.arange(len(left)), "parent_id": number[parents]}),
            "clocks": self._clocks(tables["clocks"]),
            "slices": _rows(
                SLICES,
                tables["slices"],
                {"track_id": number[self.lane], "ts": self.ts, "name": self.name},
                dur=(np.where(self.closed, self.end - self.ts, 0), self.closed),
                last_known_ts=(np.where(self.closed, 0, self.end), ~self.closed),
            ),
            "instants": _rows(
                INSTANTS,
                tables["instants"],
                {"track_id": number[self.ilane], "ts": self.its, "name": self.iname, "quality": self.iquality},
            ),
            "gaps": tables["gaps"],
        }
        if self.without:
            stays = ~np.isin(tables["gaps"].values("track_id"), self.without)
            gaps = tables["gaps"].where(stays)
            made["gaps"] = _with(gaps, gaps.spec, {"track_id": number[gaps.values("track_id")]})
        return Trace(self.trace.time, {**{name: tables[name] for name in ("inputs", "anchors")}, **made})

    def _clocks(self, clocks: Table) -> Table:
        if not self.rates:
            return clocks
        rate = {"frequency_num": clocks.values("frequency_num").copy(), "frequency_den": clocks.values("frequency_den")}
        rate["frequency_den"] = rate["frequency_den"].copy()
        for clock, hertz in self.rates.items():
            rate["frequency_num"][clock], rate["frequency_den"][clock] = round(hertz * 1000), 1000
        return _with(clocks, CLOCKS, rate)


def pairs(columns: Columns, lanes: Ints) -> Iterator[tuple[int, int]]:
    """Yield pairs of lanes of different kinds, those under one parent first: the last part of their shapes differs."""
    kinds = [path.rpartition("/")[2] for *_, path in columns.shapes()]
    parents = columns.trace.tracks.values("parent_id")
    found = [
        (int(one), int(two)) for at, one in enumerate(lanes) for two in lanes[at + 1 :] if kinds[one] != kinds[two]
    ]
    yield from sorted(found, key=lambda pair: parents[pair[0]] != parents[pair[1]])


def _with(table: Table, spec: TableSpec, values: dict[str, Ints]) -> Table:
    columns = {name: table.column(name) for name in spec.names}
    for name, array in values.items():
        columns[name] = Column.array(np.ascontiguousarray(array), valid=columns[name].valid)
    return Table(spec, columns)


def _rows(spec: TableSpec, source: Table, known: dict[str, Ints], **nullable: tuple[Ints, Mask]) -> Table:
    """Return a table of rows with these columns; texts keep their dictionary, the rest is blank."""
    count = len(known["ts"])
    columns = {}
    for column in spec.columns:
        old = source.column(column.name)
        if column.name == "id":
            made = Column.array(np.arange(count))
        elif column.name in known and old.dictionary is not None:
            made = Column.array(known[column.name].astype(np.int32), dictionary=old.dictionary)
        elif column.name in known:
            made = Column.array(np.ascontiguousarray(known[column.name]))
        elif column.name in nullable:
            values, valid = nullable[column.name]
            made = Column.array(values, valid=valid)
        elif column.nullable:
            made = Column.null(count, old.values.dtype)
        elif column.type == "text":
            texts = {"quality": "exact"}.get(column.name, "")
            made = Table.from_arrays(spec, dict.fromkeys(spec.names, ())).column(column.name)
            dictionary = made.dictionary
            assert dictionary is not None
            made = Column.constant(dictionary.code(texts), count, np.int32, dictionary=dictionary)
        else:
            made = Column.constant(0, count, old.values.dtype)
        columns[column.name] = made
    return Table(spec, columns)

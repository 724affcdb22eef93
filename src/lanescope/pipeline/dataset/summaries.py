"""Where the time goes in many captures: sums by group, and ranks that take longer than the others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lanescope.analysis.covered_time import KeyedIntervals, united_by_key
from lanescope.analysis.groupings import SLICES
from lanescope.analysis.summary import spec
from lanescope.analysis.track_tree import Tree
from lanescope.common.intervals import Intervals, Ints, known_extents, sums, union
from lanescope.declaration import replace
from lanescope.foreign.kineto.analysis.collectives import OF_ALL
from lanescope.io.dataset import tables
from lanescope.io.dataset.records import CaptureRecord, Catalog
from lanescope.pipeline.dataset.capture_parts import CaptureParts
from lanescope.trace import Column, ColumnSpec, Table, TableSpec, Trace

if TYPE_CHECKING:
    import duckdb

#: What slices of datasets can be grouped by, besides what those of captures can.
OF_DATASETS = ("rank", "run", "capture")
#: Modified z-scores above this mark outliers. Source: Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993.
OUTLIER_SCORE = 3.5
#: Ranks that a median and a spread can be told from.
LEAST_RANKS = 4

#: Lengths of each group and how often they occur, then what they say of it: exact, without all lengths in memory.
_STATISTICS = """
with counted as ({counted}),
ranked as (select *, sum(times) over (partition by key order by dur) as upto, sum(times) over (partition by key) as of
    from counted where dur is not null),
known as (select key, max(of)::bigint as count, sum(dur::hugeint * times)::bigint as total, min(dur) as least,
    min(dur) filter (2 * upto >= of) as median, min(dur) filter (100 * upto >= 99 * of) as p99, max(dur) as most
    from ranked group by 1),
unfinished as (select key, times from counted where dur is null),
keys as (select distinct key from counted)
select keys.key, coalesce(count, 0), coalesce(times, 0), coalesce(total, 0), least, median, p99, most
from keys left join known on keys.key is not distinct from known.key
    left join unfinished on keys.key is not distinct from unfinished.key"""
#: Where they come from: the files of all captures at once, or what ``_PartLengths`` collected.
_OF_FILES = "select {key} as key, dur, count(*) as times from slices{joined} group by all"
_OF_PARTS = "select key, dur, sum(times) as times from lengths group by all"
#: What the covered time of slices follows from.
_COVERING = ("track_id", "name", "category", "ts", "dur", "last_known_ts")


def summary(parts: CaptureParts, records: Sequence[CaptureRecord], by: str, unit: str) -> Table:
    """Return what ``analysis.summary`` returns, of many captures.

    Args:
        parts: the dataset, and which part of its captures counts.
        records: the captures.
        by: one of ``groupings.SLICES``; or ``rank``, ``run``, ``capture`` (path).
        unit: time unit of the captures.

    Returns:
        One row per group, the largest total first. Lanes and devices have the run and the rank before their paths.

    Raises:
        UsageError: the window fits none of the captures.
    """
    catalog = parts.catalog
    if parts.window is None:
        with tables.connect(catalog, records, "slices") as connection:
            counted = _OF_FILES.format(key=_key(connection, catalog, records, by), joined=_joined(by))
            rows = connection.execute(_STATISTICS.format(counted=counted)).fetchall()
        covered, busy = _covered(parts.each(records, ("slices", "tracks"), _COVERING), by)
    else:
        with tables.connect(catalog, records, "captures") as connection:
            lengths = _PartLengths(connection, by)
            covered, busy = _covered(lengths.of(parts.each(records, ("slices", "tracks"))), by)
            rows = connection.execute(_STATISTICS.format(counted=_OF_PARTS)).fetchall()
    texts = _texts(catalog, records, by)
    rows.sort(key=lambda row: (-row[3], -(row[1] + row[2]), str(row[0])))
    declared = spec(by if by in SLICES else "name", unit)
    columns = list(declared.columns)
    columns[1] = ColumnSpec(by, "utf8", f"{by} of the slices")
    names = [each.name for each in columns]
    values: dict[str, list[Any]] = {name: [] for name in names}
    for at, row in enumerate(rows):
        share = covered[row[0]] / busy if busy else None
        for name, value in zip(names, (at, texts(row[0]), *row[1:], share), strict=True):
            values[name].append(value)
    return Table.from_arrays(TableSpec("summary", declared.doc, tuple(columns)), values)


def _key(connection: duckdb.DuckDBPyConnection, catalog: Catalog, records: Sequence[CaptureRecord], by: str) -> str:
    """Return the SQL of the group of a slice, and register what it takes."""
    if by in ("name", "category", "run"):
        return by
    if by == "rank":
        return "rank::varchar"
    if by == "capture":
        return "capture"
    connection.register("lanes", _lane_table(((each, tables.read_tracks(catalog, each)) for each in records), by))
    return "lane_group"


def _joined(by: str) -> str:
    return " join lanes using (capture, track_id)" if by in ("lane", "device") else ""


_LANES = TableSpec(
    "lanes",
    "lane of a capture",
    (
        ColumnSpec("capture", "utf8", "capture"),
        ColumnSpec("track_id", "int64", "lane"),
        ColumnSpec("lane_group", "utf8", "group of the lane"),
    ),
)


def _lane_table(captures: Iterable[tuple[CaptureRecord, Table]], by: str) -> Table:
    """Return the group of each lane of captures with their tracks: its path, or that of its device."""
    found: dict[str, list[Any]] = {name: [] for name in _LANES.names}
    for record, tracks in captures:
        groups = _lane_groups(record, tracks, by)
        found["capture"] += [record.capture] * len(groups)
        found["track_id"] += range(len(groups))
        found["lane_group"] += groups
    return Table.from_arrays(_LANES, found)


def _lane_groups(record: CaptureRecord, tracks: Table, by: str) -> list[str]:
    """Return the group of each lane of a capture."""
    tree = Tree(tracks)
    where = record.run + ("" if record.rank is None else f"/rank {record.rank}")
    return [f"{where}/{tree.path(tree.device(track) if by == 'device' else track)}" for track in range(len(tree))]


class _PartLengths:
    """The lengths of slices of parts of captures, and how often they occur: the table ``lengths`` of a connection.

    Args:
        connection: where the table is.
        by: group of a slice, as of ``summary``.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, by: str) -> None:
        self._connection, self._by = connection, by
        connection.execute(
            "create temp table lengths (run varchar, rank bigint, key varchar, dur bigint, times bigint)"
        )

    def of(self, parts: Iterable[tuple[CaptureRecord, Trace]]) -> Iterator[tuple[CaptureRecord, Trace]]:
        """Yield parts of captures, and add what they have."""
        for record, trace in parts:
            self._add(record, trace)
            yield record, trace

    def _add(self, record: CaptureRecord, trace: Trace) -> None:
        key, own = "$own", {"rank": record.rank, "run": record.run, "capture": record.capture}.get(self._by)
        if self._by in ("name", "category"):
            key = self._by
        elif self._by in ("lane", "device"):
            key = "lane_group"
            self._connection.register("lanes", _lane_table([(record, trace.tracks)], self._by))
        self._connection.register("part", trace.slices)
        joined = " join lanes using (track_id)" if key == "lane_group" else ""
        given = {"run": record.run, "rank": record.rank} | ({"own": own} if key == "$own" else {})
        self._connection.execute(
            f"insert into lengths select $run, $rank, {key}, dur, count(*) from part{joined} group by all", given
        )
        self._connection.unregister("part")


def _covered(parts: Iterable[tuple[CaptureRecord, Trace]], by: str) -> tuple[Counter[Any], int]:
    """Return the time that slices of captures cover, by group, and by all lanes together."""
    covered: Counter[Any] = Counter()
    busy = 0
    for record, trace in parts:
        if not len(trace.slices):
            continue
        lane, begin, end = known_extents(trace.slices)
        if by in ("name", "category"):
            keys, key = _text_keys(trace.slices.column(by))
            time = united_by_key([KeyedIntervals(key, lane, begin, end)])
            lengths = sums(time.key, time.end - time.begin, len(keys))
            covered.update(dict(zip(keys, lengths.tolist(), strict=True)))
        by_lane = union(Intervals(lane, begin, end))
        lengths = by_lane.end - by_lane.begin
        if by in ("lane", "device"):
            groups = _lane_groups(record, trace.tracks, by)
            is_track = (by_lane.group >= 0) & (by_lane.group < len(groups))
            by_track = sums(by_lane.group[is_track], lengths[is_track], len(groups))
            for group, length in zip(groups, by_track.tolist(), strict=True):
                covered[group] += length
            lengths = by_track
        elif by in OF_DATASETS:
            rank = None if record.rank is None else str(record.rank)
            covered[{"rank": rank, "run": record.run, "capture": record.capture}[by]] += int(lengths.sum())
        busy += int(lengths.sum())
    return covered, busy


def _text_keys(column: Column) -> tuple[list[str | None], Ints]:
    """Return the texts of a column, and the number of that of each row, int64 [n]; unknown ones are the last."""
    texts = [] if column.dictionary is None else list(column.dictionary.texts)
    codes = column.values.astype(np.int64) if texts else np.zeros(len(column), np.int64)
    return [*texts, None], codes if column.valid is None else np.where(column.valid, codes, len(texts))


def _texts(catalog: Catalog, records: Sequence[CaptureRecord], by: str) -> Any:
    """Return what makes the text of a group."""
    if by == "capture":
        paths = {record.capture: record.path for record in records}
        return lambda key: paths[key]
    return lambda key: "" if key is None else str(key)


STRAGGLERS = TableSpec(
    "stragglers",
    "time of a name on one rank, compared with that of the other ranks of the run",
    (
        ColumnSpec("run", "utf8", "run"),
        ColumnSpec("name", "utf8", "name of the slices"),
        ColumnSpec("rank", "int64", "rank"),
        ColumnSpec("count", "int64", "number of slices of known length"),
        ColumnSpec("total", "int64", "sum of the lengths", unit="ns"),
        ColumnSpec("median_of_ranks", "int64", "median of the totals of all ranks of the run", unit="ns"),
        ColumnSpec("excess", "int64", "difference between the total and the median", unit="ns"),
        ColumnSpec("ratio", "float64", "total divided by the median; NULL if the median is 0", nullable=True, unit="1"),
        ColumnSpec(
            "score",
            "float64",
            "modified z-score: 0.6745 times the excess divided by the median absolute deviation; NULL if that is 0",
            nullable=True,
            unit="1",
        ),
        ColumnSpec(
            "is_outlier",
            "bool",
            "whether the score is beyond 3.5; without a score, whether the total differs from the median",
        ),
    ),
)


#: The time of each name on each rank: of all captures at once, or of what ``_PartLengths`` collected.
_TOTALS_OF_FILES = """select run, name, rank, count(dur) as count, coalesce(sum(dur), 0)::bigint as total
    from slices where rank is not null and run in (from runs) group by all"""
_TOTALS_OF_PARTS = """select run, key as name, rank, coalesce(sum(times) filter (dur is not null), 0)::bigint as count,
        coalesce(sum(dur::hugeint * times), 0)::bigint as total
    from lengths where run in (from runs) group by all"""


def stragglers(parts: CaptureParts, records: Sequence[CaptureRecord], unit: str) -> Table:
    """Return the time of each name on each rank next to the median over the ranks of the run.

    A rank without slices of a name has a total of 0. Captures without a rank do not count. Runs need ``LEAST_RANKS``
    ranks: of fewer, no spread can be told.

    Args:
        parts: the dataset, and which part of its captures counts.
        records: the captures.
        unit: time unit of the captures.

    Returns:
        Outliers first, then by the distance from the median, the largest first.

    Raises:
        UsageError: the window fits none of the captures.
    """
    ranked = [record for record in records if record.rank is not None]
    query = f"""
with ranks as (select distinct run, rank from captures where rank is not null),
runs as (select run from ranks group by run having count(*) >= {LEAST_RANKS}),
totals as ({_TOTALS_OF_FILES if parts.window is None else _TOTALS_OF_PARTS}),
names as (select distinct run, name from totals),
filled as (select run, name, rank, coalesce(count, 0) as count, coalesce(total, 0) as total
    from names join ranks using (run) left join totals using (run, name, rank)),
medians as (select run, name, median(total) as middle from filled group by all),
spreads as (select run, name, middle, median(abs(total - middle)) as mad
    from filled join medians using (run, name) group by all)
select run, name, rank, count, total, round(middle)::bigint, round(total - middle)::bigint,
    case when middle > 0 then total / middle end,
    case when mad > 0 then 0.6745 * (total - middle) / mad end as score,
    coalesce(abs(score) > {OUTLIER_SCORE}, total <> middle) as is_outlier
from filled join spreads using (run, name)
order by is_outlier desc, abs(total - middle) desc, run, name, rank"""
    if not ranked:
        return _of_rows(STRAGGLERS, [], unit)
    with tables.connect(parts.catalog, ranked, query) as connection:
        if parts.window is not None:
            lengths = _PartLengths(connection, "name")
            for _ in lengths.of(parts.each(ranked, ("slices", "tracks"))):
                pass
        rows = connection.execute(query).fetchall()
    return _of_rows(STRAGGLERS, rows, unit)


COLLECTIVES = TableSpec(
    "collectives",
    "time that ranks wait in collectives of a run for the rank that comes last",
    (
        ColumnSpec("run", "utf8", "run"),
        ColumnSpec("rank", "int64", "rank that comes last: its part of the collective is the shortest"),
        ColumnSpec("collectives", "int64", "number of collectives to which it comes last"),
        ColumnSpec("waited", "int64", "time that the other ranks are longer in them, summed", unit="ns"),
        ColumnSpec("worst", "int64", "largest such time of one collective", unit="ns"),
        ColumnSpec("share", "float64", "part of the time of all ranks in collectives of the run", unit="1"),
    ),
)


def collectives(catalog: Catalog, records: Sequence[CaptureRecord], unit: str) -> Table:
    """Return for which rank the others wait in collectives.

    No rank leaves a collective before the last one has come. So where its part is shortest, that rank came last.
    Durations alone are compared: the clocks of the ranks need no alignment. Collectives that a rank may leave before
    others come (broadcasts, sends), of which a rank is missing, or without a sequence number, do not count.

    Args:
        catalog: the dataset.
        records: the captures.
        unit: time unit of the captures.

    Returns:
        One row per run and rank, the largest wait first; none where no capture has collectives.
    """
    query = f"""
with calls as (select s.run, c.group_name, c.sequence, c.collective, c.group_size, s.rank, s.dur
    from kineto_collectives c join slices s on s.capture = c.capture and s.id = c.slice_id
    where s.category = 'kernel' and s.dur is not null and c.sequence is not null
        and regexp_full_match(lower(c.collective), '{OF_ALL.pattern}')),
waits as (select run, arg_min(rank, (dur, rank)) as last_rank, sum(dur) as length,
        sum(dur) - count(*) * min(dur) as waited
    from calls group by run, group_name, sequence, collective, group_size
    having count(*) = group_size and count(distinct rank) = group_size),
runs as (select run, sum(length) as length from waits group by 1)
select run, last_rank, count(*), sum(waited)::bigint, max(waited)::bigint,
    sum(waited) / greatest(any_value(runs.length), 1)
from waits join runs using (run) group by run, last_rank order by 4 desc, run, last_rank"""
    ranked = [record for record in records if record.rank is not None and record.rows.get("kineto_collectives")]
    rows = []
    if ranked:
        with tables.connect(catalog, ranked, query) as connection:
            rows = connection.execute(query).fetchall()
    return _of_rows(COLLECTIVES, rows, unit)


def _of_rows(declared: TableSpec, rows: Sequence[Sequence[Any]], unit: str) -> Table:
    """Return the rows of a query as a table whose times are in ``unit``."""
    columns = tuple(replace(each, unit=unit) if each.unit == "ns" else each for each in declared.columns)
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    named = {each.name: list(value) for each, value in zip(columns, values, strict=True)}
    return Table.from_arrays(replace(declared, columns=columns), named)

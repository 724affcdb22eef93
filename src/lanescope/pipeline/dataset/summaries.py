"""Where the time goes in many captures: sums by group, and ranks that take longer than the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lanescope.analysis.summary import GROUPS, spec
from lanescope.analysis.track_tree import Tree
from lanescope.declaration import replace
from lanescope.io.dataset import tables
from lanescope.io.dataset.records import CaptureRecord, Catalog
from lanescope.trace import ColumnSpec, Table, TableSpec

if TYPE_CHECKING:
    import duckdb

#: What slices of datasets can be grouped by, besides what those of captures can.
OF_DATASETS = ("rank", "run", "capture")
#: Modified z-scores above this mark outliers. Source: Iglewicz and Hoaglin, How to Detect and Handle Outliers, 1993.
OUTLIER_SCORE = 3.5
#: Ranks that a median and a spread can be told from.
LEAST_RANKS = 4

#: Up to when each slice is known to have run, as ``common.intervals.known_extents`` has it.
_EXTENTS = """
select capture, run, rank, track_id, name, category, dur, greatest(dur, 0) as length, ts,
    case when dur is null then greatest(coalesce(last_known_ts, ts), ts) else ts + greatest(dur, 0) end as until
from slices"""
#: Time that is covered at least once, by capture, lane and key, without that which an earlier slice covers.
_FRESH = """
sum(greatest(0, until - greatest(ts, coalesce(earlier, ts)))) as covered from (
    select {key} as key, ts, until, max(until) over (
        partition by {parts} order by ts rows between unbounded preceding and 1 preceding) as earlier from extents)"""


def summary(catalog: Catalog, records: Sequence[CaptureRecord], by: str, unit: str) -> Table:
    """Return what ``analysis.summary`` returns, of many captures.

    Args:
        catalog: the dataset.
        records: the captures.
        by: one of ``GROUPS`` of that module; or ``rank``, ``run``, ``capture`` (path).
        unit: time unit of the captures.

    Returns:
        One row per group, the largest total first. Lanes and devices have the run and the rank before their paths.
    """
    with tables.connect(catalog, records, "slices tracks captures") as connection:
        key = _key(connection, catalog, records, by)
        connection.execute(f"create temp view extents as select *, {key} as group_key from ({_EXTENTS}){_joined(by)}")
        rows = connection.execute(
            "select group_key, count(dur), count(*) - count(dur), coalesce(sum(dur), 0)::bigint, min(dur), "
            "quantile_disc(dur, 0.5), quantile_disc(dur, 0.99), max(dur) from extents group by 1"
        ).fetchall()
        parts = "capture, track_id" + (", group_key" if by in ("name", "category") else "")
        fresh = _FRESH.format(key="group_key", parts=parts)
        covered = dict(connection.execute(f"select key, {fresh} group by 1").fetchall())
        busy = sum(covered.values())
        if by in ("name", "category"):
            found = connection.execute(f"select {_FRESH.format(key='1', parts='capture, track_id')}").fetchone()
            busy = (found[0] if found else 0) or 0
    texts = _texts(catalog, records, by)
    rows.sort(key=lambda row: (-row[3], -(row[1] + row[2]), str(row[0])))
    declared = spec(by if by in GROUPS else "name", unit)
    columns = list(declared.columns)
    columns[1] = ColumnSpec(by, "utf8", f"{by} of the slices")
    names = [each.name for each in columns]
    values: dict[str, list[Any]] = {name: [] for name in names}
    for at, row in enumerate(rows):
        share = int(covered[row[0]]) / int(busy) if busy else None
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
    connection.register("lanes", _lanes(catalog, records, by))
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


def _lanes(catalog: Catalog, records: Sequence[CaptureRecord], by: str) -> Table:
    """Return the group of each lane of each capture: its path, or that of its device."""
    found: dict[str, list[Any]] = {name: [] for name in _LANES.names}
    for record in records:
        tree = Tree(tables.read_tracks(catalog, record))
        where = record.run + ("" if record.rank is None else f"/rank {record.rank}")
        for track in range(len(tree)):
            found["capture"].append(record.capture)
            found["track_id"].append(track)
            path = tree.path(tree.device(track) if by == "device" else track)
            found["lane_group"].append(f"{where}/{path}")
    return Table.from_arrays(_LANES, found)


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


def stragglers(catalog: Catalog, records: Sequence[CaptureRecord], unit: str) -> Table:
    """Return the time of each name on each rank next to the median over the ranks of the run.

    A rank without slices of a name has a total of 0. Captures without a rank do not count. Runs need ``LEAST_RANKS``
    ranks: of fewer, no spread can be told.

    Args:
        catalog: the dataset.
        records: the captures.
        unit: time unit of the captures.

    Returns:
        Outliers first, then by the distance from the median, the largest first.
    """
    ranked = [record for record in records if record.rank is not None]
    query = f"""
with ranks as (select distinct run, rank from captures where rank is not null),
runs as (select run from ranks group by run having count(*) >= {LEAST_RANKS}),
totals as (select run, name, rank, count(dur) as count, coalesce(sum(dur), 0)::bigint as total
    from slices where rank is not null and run in (from runs) group by all),
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
    with tables.connect(catalog, ranked, query) as connection:
        rows = connection.execute(query).fetchall() if ranked else []
    columns = tuple(replace(each, unit=unit) if each.unit == "ns" else each for each in STRAGGLERS.columns)
    values = list(zip(*rows, strict=True)) or [()] * len(columns)
    named = {each.name: list(value) for each, value in zip(columns, values, strict=True)}
    return Table.from_arrays(replace(STRAGGLERS, columns=columns), named)

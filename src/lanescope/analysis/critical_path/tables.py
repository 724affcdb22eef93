"""Declarations of the tables of critical paths."""

from __future__ import annotations

from lanescope.trace import ColumnSpec, TableSpec, ref

_ID = ColumnSpec("id", "int64", "dense, in order")
_WINDOW = ColumnSpec("window", "text", "name of the window; empty for the whole trace")
_CAUSE = ColumnSpec(
    "cause",
    "text",
    "work, wait without cause, latency, delay beyond, lane idle, resource, unknown, no known cause, after last end",
)
_KIND = ColumnSpec("kind", "text", "kind of the cause waited for; empty without one")

_QUALITY = (
    "exact; estimated if the cause is recorded and not its moment, for which the end of its slice is taken;"
    " inferred if the cause follows from times and orders only"
)


def parts_spec(unit: str) -> TableSpec:
    """Return the declaration of the parts of paths for a time unit."""
    return TableSpec(
        "critical_path_parts",
        "a stretch of a critical path; those of a window are in order of time and fill it",
        (
            _ID,
            _WINDOW,
            ColumnSpec("ts", "int64", "start", unit=unit, is_time=True),
            ColumnSpec("dur", "int64", "duration", unit=unit),
            _CAUSE,
            _KIND,
            ref(
                "slice_id",
                "slices",
                "slice that works or waits, or whose start or end ended the part; NULL where a window lacks it",
                nullable=True,
            ),
            ref(
                "from_slice_id",
                "slices",
                "slice waited for; NULL without one, or where a window lacks it",
                nullable=True,
            ),
            ref("track_id", "tracks", "lane of the slice"),
            ColumnSpec("quality", "text", _QUALITY),
            ColumnSpec("is_cut", "bool", "whether the slice that works or waits reaches over an edge of the window"),
        ),
    )


def summary_spec(unit: str) -> TableSpec:
    """Return the declaration of the sums of paths for a time unit."""
    return TableSpec(
        "critical_path_summary",
        "one cause, name and role of lanes on the critical path of a window",
        (
            _ID,
            _WINDOW,
            _CAUSE,
            _KIND,
            ColumnSpec("name", "text", "name of the slices; empty for lane idle, unknown and what has no known cause"),
            ColumnSpec("role", "text", "role of their lanes"),
            ColumnSpec("dur", "int64", "time on the path", unit=unit),
            ColumnSpec("share", "float64", "share of the window"),
            ColumnSpec("parts", "int64", "number of parts"),
            ColumnSpec(
                "busy_share", "float64", "share of the name in the work of all lanes; NULL but for work", nullable=True
            ),
            ColumnSpec(
                "slack_min",
                "int64",
                "smallest slack of slices of the name; NULL but for work",
                nullable=True,
                unit=unit,
            ),
        ),
    )


def edges_spec(unit: str) -> TableSpec:
    """Return the declaration of the kinds of causes for a time unit."""
    return TableSpec(
        "critical_path_edges",
        "one kind of cause: its number, its shortest lag, and what was excluded",
        (
            _ID,
            ColumnSpec("kind", "text", "kind"),
            ColumnSpec("quality", "text", _QUALITY),
            ColumnSpec("count", "int64", "causes in the graph"),
            ColumnSpec("floor", "int64", "shortest lag; 0 where fewer than 20 are known on a device", unit=unit),
            ColumnSpec("floor_count", "int64", "lags that were compared; 0 where they are too few"),
            ColumnSpec("binding", "int64", "causes that arrived last"),
            ColumnSpec("backward", "int64", "excluded causes that are later than their effects"),
            ColumnSpec("undecided", "int64", "excluded causes that are later by no more than the errors of two clocks"),
            ColumnSpec("backward_max", "int64", "largest time by which one is later", unit=unit),
            ColumnSpec("cyclic", "int64", "excluded causes at one time that lead back to themselves"),
            ColumnSpec("unplaced", "int64", "excluded causes without a known slice on both sides"),
        ),
    )


def waits_spec(unit: str) -> TableSpec:
    """Return the declaration of the names of waits for a time unit."""
    return TableSpec(
        "critical_path_waits",
        "one name of slices that wait, in which nothing else happened: their number, and what one costs at least",
        (
            _ID,
            ColumnSpec("name", "text", "name"),
            ColumnSpec("count", "int64", "such slices"),
            ColumnSpec(
                "floor",
                "int64",
                "duration of the shortest that had nothing to wait for; 0 without one, or of fewer than 20 slices",
                unit=unit,
            ),
            ColumnSpec("floor_count", "int64", "slices that were compared; 0 where they are too few"),
        ),
    )


def slack_spec(unit: str) -> TableSpec:
    """Return the declaration of the slack of slices for a time unit."""
    return TableSpec(
        "slack",
        "how much longer a slice may take before the path ends later, in the window that ends last",
        (
            _ID,
            ref("slice_id", "slices", "slice"),
            ColumnSpec(
                "slack",
                "int64",
                "estimate: other causes cost what they cost at least; NULL if nothing on the path depends on it",
                nullable=True,
                unit=unit,
            ),
            ColumnSpec(
                "slack_safe",
                "int64",
                "guaranteed: all causes cost what they cost in the trace; often too small; NULL likewise",
                nullable=True,
                unit=unit,
            ),
            ColumnSpec(
                "slack_max", "int64", "optimistic: other causes cost nothing; NULL likewise", nullable=True, unit=unit
            ),
            ColumnSpec("is_on_path", "bool", "whether work or a wait of it is on the path of a window"),
        ),
    )


def what_if_spec(unit: str) -> TableSpec:
    """Return the declaration of answers to what-if questions for a time unit."""
    return TableSpec(
        "what_if",
        "length of a window after a change, for the same lanes, the same order, and lags that do not depend on load",
        (
            _ID,
            _WINDOW,
            ColumnSpec("change", "text", "the change: NAME=FACTOR, or kind:NAME=FACTOR"),
            ColumnSpec("observed", "int64", "length in the trace", unit=unit),
            ColumnSpec("nominal", "int64", "length if other causes cost what they cost at least", unit=unit),
            ColumnSpec("low", "int64", "length at least", unit=unit),
            ColumnSpec("high", "int64", "length at most", unit=unit),
            ColumnSpec("assumes", "text", "assumptions of the answer"),
        ),
    )

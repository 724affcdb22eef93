"""Sums of sensors: minimum, mean and maximum of what was sampled while operations ran."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lanescope.errors import UsageError
from lanescope.trace import ColumnSpec, Table, TableSpec, Trace

TELEMETRY = TableSpec(
    "levelzero_telemetry",
    "a sensor of a device",
    (
        ColumnSpec("id", "int64", "row number, dense"),
        ColumnSpec("device", "utf8", "name of the device"),
        ColumnSpec("sensor", "utf8", "sensor kind and the part of the device"),
        ColumnSpec("unit", "utf8", "unit of the values"),
        ColumnSpec("samples", "int64", "number of values"),
        ColumnSpec("interval", "int64", "mean time between samples; NULL without values", nullable=True, unit="ns"),
        ColumnSpec("min", "float64", "minimum value; NULL without values", nullable=True),
        ColumnSpec("mean", "float64", "mean over time; NULL without values", nullable=True),
        ColumnSpec("max", "float64", "maximum value; NULL without values", nullable=True),
    ),
)


def telemetry(trace: Trace) -> Table:
    """Return the sums of each sensor.

    Raises:
        UsageError: nothing was sampled.
    """
    if "levelzero_sensors" not in trace.details or not len(trace.details["levelzero_sensors"]):
        raise UsageError("trace contains no samples of sensors", hint="record with --sample 50ms")
    tracks, samples = trace.tracks, trace.details["levelzero_samples"]
    parent, names, units = tracks.values("parent_id"), tracks.values("name"), tracks.values("unit")
    rows = list(_rows(trace))
    return Table.from_arrays(
        TELEMETRY,
        {
            "id": range(len(rows)),
            "device": [str(names[parent[track]]) for track, _ in rows],
            "sensor": [str(names[track]) for track, _ in rows],
            "unit": [str(units[track]) for track, _ in rows],
            "samples": [len(mine) for _, mine in rows],
            "interval": [int(samples.values("interval")[mine].mean()) if len(mine) else None for _, mine in rows],
            "min": [float(samples.values("value")[mine].min()) if len(mine) else None for _, mine in rows],
            "mean": [_mean(samples, mine) if len(mine) else None for _, mine in rows],
            "max": [float(samples.values("value")[mine].max()) if len(mine) else None for _, mine in rows],
        },
    )


def _rows(trace: Trace) -> Iterator[tuple[int, np.ndarray[tuple[int], np.dtype[np.int64]]]]:
    of = trace.details["levelzero_samples"].values("track_id")
    for track in trace.details["levelzero_sensors"].values("track_id").tolist():
        yield track, np.flatnonzero(of == track)


def _mean(samples: Table, mine: np.ndarray[tuple[int], np.dtype[np.int64]]) -> float:
    """Return the mean over time; of one value, that value."""
    value, weight = samples.values("value")[mine], samples.values("interval")[mine].astype(np.float64)
    return float(np.average(value, weights=weight)) if weight.sum() else float(value.mean())

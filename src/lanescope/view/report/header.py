"""The header of a report: all that is not a column, as the package's docstring declares it."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

import numpy as np

from lanescope.io.viewer_names import numbered
from lanescope.trace import Flag
from lanescope.trace.stats import counted
from lanescope.view.model.findings import Place, RolledFinding
from lanescope.view.model.tables import ViewTable
from lanescope.view.model.tree import ranks
from lanescope.view.model.view_model import ViewModel
from lanescope.view.report.bundles import Rows
from lanescope.view.report.columns import EXACT

VERSION = 2
#: Inputs, and places of a finding, that are listed.
_INPUTS, _PLACES = 50, 200
#: Longer texts are cut in the middle.
_TEXT = 400


def header(model: ViewModel, rows: Rows, title: str) -> dict[str, Any]:
    """Return the fields that depend on the trace and on its rows only.

    Args:
        model: the trace.
        rows: what is drawn.
        title: title of the page.
    """
    trace, (low, _) = model.trace, model.window
    inputs = [_input(row) for row in trace.inputs.rows()]
    first = inputs[0] if inputs else {"path": "", "family": "", "format": "", "sha256": "", "size": 0}
    return {
        "v": VERSION,
        "title": title,
        "capture": PurePath(str(first["path"])).name,
        "family": first["family"],
        "format": first["format"],
        "sha256": first["sha256"],
        "size": first["size"],
        "inputs": inputs[:_INPUTS],
        "inputs_total": len(inputs),
        "unit": model.unit,
        "lo": str(low),
        "span": model.span,
        "total": {
            "slices": len(trace.slices),
            "lanes": len(model.tracks.lanes),
            "flows": len(trace.flows),
            "instants": len(trace.instants),
            "counters": len(trace.counters),
        },
        "rows": len(rows.begin),
        "lost": _lost(model),
        "accounting": _accounting(model),
        "tracks": _tracks(model),
        "short": _short_names(model),
        "tree": [[list(row.chain), row.depth, int(row.is_open), list(row.other)] for row in model.tree],
        "side": model.side,
        "sides": [{**side._asdict(), "low": str(side.low)} for side in model.sides],
        "row_track": model.strips.row_track.tolist(),
        "names": model.names,
        "kinds": model.kinds,
        "colours": model.colours,
        "flags": [str(flag.name).lower().replace("_", " ") for flag in Flag],
        "findings": [_finding(found, rows, low) for found in model.findings],
        "words": [list(pair) for pair in model.words],
        "tables": [_table(table, low) for table in model.tables],
    }


def encoded(fields: dict[str, Any]) -> bytes:
    """Return a header as JSON in UTF-8; halves of surrogate pairs are escapes, which JSON has for them."""
    text = json.dumps(_exact(fields), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def _exact(value: Any) -> Any:
    """Return a value as JavaScript has it: large numbers as texts, infinite ones as null, long texts cut."""
    if isinstance(value, str):
        return value if len(value) <= _TEXT else f"{value[: _TEXT // 2]}…{value[-_TEXT // 2 + 1 :]}"
    if isinstance(value, dict):
        return {key: _exact(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_exact(each) for each in value]
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= EXACT else str(value)
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return _exact(value.item()) if hasattr(value, "item") else _exact(str(value))


def cut_texts(model: ViewModel) -> int:
    """Return how many names of slices are longer than what a report has of them."""
    return sum(len(name) > _TEXT for name in model.names)


def _input(row: Any) -> dict[str, Any]:
    # A report is sent to others: where the file was is not for them.
    shown = {name: row[name] for name in ("path", "family", "format", "sha256", "size")}
    return {**shown, "path": PurePath(str(row["path"])).name}


def _accounting(model: ViewModel) -> list[list[Any]]:
    names = ("input_id", "scope", "unit", "total", "decoded", "padding", "lost")
    return [[row[name] for name in names] for row in model.trace.accounting.rows()]


def _lost(model: ViewModel) -> dict[str, Any]:
    rows = list(model.trace.accounting.rows())
    kinds = [row for row in model.trace.stats.rows() if row["severity"] == "data_loss" and row["count"]]
    return {
        "bytes": sum(int(row["lost"]) * int(row["unit_bytes"]) for row in rows if not row["layer"] and _is_input(row)),
        "records": sum(int(row["lost"]) for row in rows if not _is_input(row)),
        "kinds": [[counted(row), int(row["count"])] for row in kinds],
    }


def _is_input(row: Any) -> bool:
    return str(row["scope"]) == "input"


def _tracks(model: ViewModel) -> list[list[Any]]:
    tracks, tree = model.trace.tracks, model.tracks
    kinds, units, roles = (tracks.values(name).tolist() for name in ("kind", "unit", "role"))
    rank, drawn, busy = ranks(tree), model.strips.rows.tolist(), model.busy
    return [
        [
            None if tree.parents[track] < 0 else tree.parents[track],
            kinds[track][0],
            tree.names[track],
            rank[track],
            units[track],
            roles[track],
            drawn[track],
            None if busy[track] is None else round(busy[track] or 0.0, 6),
        ]
        for track in range(len(tree))
    ]


def _short_names(model: ViewModel) -> dict[int, str]:
    """Return what lanes are called in the list of lanes, where that is not their name: numbers replace addresses."""
    names = model.tracks.names
    shown = numbered((name for name in names if "0x" in name), names)
    return {track: shown[name] for track, name in enumerate(names) if shown.get(name, name) != name}


def _finding(found: RolledFinding, rows: Rows, low: int) -> dict[str, Any]:
    return {
        "code": found.code,
        "severity": found.severity,
        "title": found.title,
        "detail": found.detail,
        "help": found.help,
        "count": found.violations,
        "share": found.share,
        "places": [_place(place, rows, low) for place in found.places[:_PLACES]],
        "places_total": len(found.places),
    }


def _place(place: Place, rows: Rows, low: int) -> dict[str, Any]:
    return {
        "track": place.track,
        "t": None if place.ts is None else place.ts - low,
        "dur": place.dur,
        "row": None if place.row is None else int(rows.row_of[place.row]),
        "detail": place.detail,
    }


def _table(table: ViewTable, low: int) -> dict[str, Any]:
    moments = [number for number, column in enumerate(table.columns) if column.kind == "moment"]
    found: dict[str, Any] = {
        "id": table.id,
        "title": table.title,
        "about": table.about,
        "total": table.total,
        "columns": [column._asdict() for column in table.columns],
        "rows": [
            [value - low if number in moments and value is not None else value for number, value in enumerate(row)]
            for row in table.rows
        ],
    }
    if table.matrix is not None:
        found["matrix"] = table.matrix._asdict()
    return found

"""What the viewer shows at first: which groups are open, and how it writes times."""

from __future__ import annotations

import re
from typing import TypedDict

import numpy as np

from lanescope.io.viewer_names import CYCLES, shown_names
from lanescope.trace import Table, TimeBase, Trace
from lanescope.view import perfetto_views

#: So many tracks are drawn at once without making the viewer slow.
ALL_TRACKS = 500
#: Of more, groups are opened until so many rows are there.
ROWS = 120


#: Group in which the viewer puts top tracks without others below them, such as that of findings without a lane.
_TOPS = "Global Track Events"


class InitialView(TypedDict):
    """What ``Viewer`` takes of a trace."""

    expanded: str
    time_format: str
    query: str


def initial_view(trace: Trace) -> InitialView:
    """Return what ``Viewer`` takes of a trace: groups to open, format of times, views for queries."""
    return InitialView(
        expanded=groups_to_open(trace.tracks), time_format=time_format(trace.time), query=perfetto_views.sql()
    )


def time_format(time: TimeBase) -> str:
    """Return the viewer's name of the format for times: whole numbers for cycles, which are no ns; empty: its own."""
    return "" if time.time_unit == "ns" else "traceNsLocale"


def groups_to_open(tracks: Table) -> str:
    """Return a regular expression, for JavaScript, that matches the names of the groups to open.

    All of them where there are few tracks; else those nearest to the root, in drawing order, for as long as their
    tracks are not more than ``ROWS`` in all. Groups of one name are opened together.

    Args:
        tracks: the tracks of a trace.
    """
    if len(tracks) <= ALL_TRACKS:
        return ".*"
    shown_as = shown_names(tracks, TimeBase())
    names = [shown_as.get(row, name).strip() for row, name in enumerate(tracks.values("name").tolist())]
    known = tracks.valid("parent_id")
    parent = np.where(known, tracks.values("parent_id"), -1)
    children: dict[int, list[int]] = {}
    for row in np.lexsort((tracks.values("id"), tracks.values("sort_key"))).tolist():
        children.setdefault(int(parent[row]), []).append(row)
    of_id = {number: row for row, number in enumerate(tracks.values("id").tolist())}
    weight: dict[str, int] = {}
    for number, rows in children.items():
        if number >= 0:
            name = names[of_id[number]]
            weight[name] = weight.get(name, 0) + len(rows)
    ids = tracks.values("id").tolist()
    level, shown, chosen = children.get(-1, []), len(children.get(-1, [])), dict[str, None]()
    while level:
        for row in level:
            name = names[row]
            if name in chosen or ids[row] not in children:
                continue
            # The first group is opened whatever it holds: else nothing would be seen.
            if chosen and shown + weight[name] > ROWS:
                return _pattern(chosen)
            chosen[name] = None
            shown += weight[name]
        if len(chosen) == 1 and shown > ROWS:
            shown = 0  # what the root holds counts for nothing beside what is opened in it
        level = [child for row in level if names[row] in chosen for child in children.get(ids[row], [])]
    return _pattern(chosen)


def _pattern(names: dict[str, None]) -> str:
    # Those of hosts may begin with a space, those of top tracks end with the unit of time.
    return f"^ ?(?:{'|'.join(map(re.escape, [*names, _TOPS]))})(?:{re.escape(CYCLES)})?$"

"""Selection of the track groups that the viewer opens at first."""

from __future__ import annotations

import re

import numpy as np

from lanescope.trace import Table

#: So many tracks are drawn at once without making the viewer slow.
ALL_TRACKS = 500
#: Of more, groups are opened until so many rows are there.
ROWS = 120


def groups_to_open(tracks: Table) -> str:
    """Return a regular expression, for JavaScript, that matches the names of the groups to open.

    All of them where there are few tracks; else those nearest to the root, in drawing order, for as long as their
    tracks are not more than ``ROWS`` in all. Groups of one name are opened together.

    Args:
        tracks: the tracks of a trace.
    """
    if len(tracks) <= ALL_TRACKS:
        return ".*"
    names = tracks.values("name").tolist()
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
    # Titles of roots may say the unit of time behind the name.
    return f"^(?:{'|'.join(map(re.escape, names))})(?: \\(.*\\))?$"

"""Levels, reduction, slack and counts of a task graph, straight from the files of a capture; nothing of the package."""

from __future__ import annotations

import json
from pathlib import Path


def pairs(deps):
    """Return the dependencies of a task graph file, each once: (producer, consumer)."""
    return sorted(
        {
            (int(edge["pred"]), int(edge["succ"]))
            for edge in deps["edges"]
            if edge["pred"] != edge["succ"] and "wait" in edge.get("flags", ["wait"])
        }
    )


def levels(tasks, edges):
    """Return the number of edges on the longest way to each task, by trying until nothing changes."""
    level = dict.fromkeys(tasks, 0)
    changes = True
    while changes:
        changes = False
        for pred, succ in edges:
            if level[succ] < level[pred] + 1:
                level[succ], changes = level[pred] + 1, True
    return level


def reaches(edges, begin, end):
    """Return whether a path of edges leads from one task to another."""
    front, seen = [begin], set()
    while front:
        task = front.pop()
        if task == end:
            return True
        if task not in seen:
            seen.add(task)
            front += [succ for pred, succ in edges if pred == task]
    return False


def reduction(edges):
    """Return the edges that no path of the others implies."""
    return [edge for edge in edges if not reaches([other for other in edges if other != edge], *edge)]


def ends(capture):
    """Return the last end of each task that ran on cores, and its first start, in ns since the first of all stamps."""
    clock = capture["metadata"]["clock_freq_hz"]
    first, last = {}, {}
    for row in capture["aicore_tasks"]:
        first[row[1]] = min(first.get(row[1], row[3]), row[3])
        last[row[1]] = max(last.get(row[1], row[4]), row[4])
    return {task: (first[task] * 10**9 // clock, last[task] * 10**9 // clock) for task in first}


def load(folder):
    """Return the capture and the task graph of a folder."""
    folder = Path(folder)
    return (json.loads((folder / name).read_bytes()) for name in ("chip_swimlane_records.json", "deps.json"))

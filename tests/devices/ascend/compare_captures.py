"""Compare captures with scripts that read their files without the package: ``compare_captures.py FOLDER...``.

Each folder holds the files of a run of version 3c, or folders of such runs. Prints what differs, and exits with 1.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from devices.ascend.helpers import decode_file, stats
from devices.ascend.slice_truth import Slices
from lanescope.analysis import check

RECORDS = "chip_swimlane_records.json"
#: Rows that a line lists.
_SHOWN = 3
#: Stats that claim that something is missing or wrong.
_LOSSES = ("unmatched", "_lost", "missing", "unaccounted", "contradict", "_hole", "dropped", "_order", "violat")


def folders(path):
    """Return the folders with a capture in a folder, itself included."""
    return sorted(found.parent for found in Path(path).rglob(RECORDS))


def differences(folder):
    """Yield what differs between a capture as it is decoded and as its files say, and findings that are too grave."""
    truth, trace = Slices(Path(folder)), decode_file(Path(folder) / RECORDS)
    tasks = trace.details["ascend_graph_tasks"]
    kinds = dict(zip(tasks["task_id"].tolist(), tasks["kind"].tolist(), strict=True))
    yield from _apart("kinds", set(kinds.items()), set(truth.kinds.items()))
    yield from _apart("slices", drawn(trace), truth.slices)
    rows = trace.details["ascend_tasks"]
    begin = trace.slices["ts_ticks"][rows["slice_id"]]
    labels = Counter(zip(rows["core"].tolist(), begin.tolist(), rows["label"].tolist(), strict=True))
    yield from _apart("labels", labels, truth.labels)
    edges = trace.details["ascend_edges"]
    pairs = set(zip(edges["pred_task_id"].tolist(), edges["succ_task_id"].tolist(), strict=True))
    yield from _apart("edges", pairs, truth.waits)
    ends, begins = truth.ends(), truth.begins()
    for row in edges.rows():
        pair = row["pred_task_id"], row["succ_task_id"]
        has_both = pair[0] in ends and pair[1] in begins
        if (row["flow_id"] is None) == has_both and truth.kinds[pair[0]] != "alloc":
            yield f"arrow {pair}: {'missing' if has_both else 'too many'}"
    grave = [finding for finding in check.run(trace) if finding.severity != "notice"]
    found = {f"{finding.code} {finding.severity} {finding.title}: {finding.detail}" for finding in grave}
    yield from sorted(found)
    yield from (f"{name}: {count}" for name, count in stats(trace).items() if any(word in name for word in _LOSSES))
    lost = [row for row in trace.accounting.rows() if row["lost"]]
    yield from (f"lost: {row}" for row in lost)


def drawn(trace):
    """Return the slices of a trace as (lane, category, name, begin, end), in ticks of the lane's clock."""
    slices = trace.slices
    ends = slices["ts_ticks"] + slices.values("dur_ticks")
    lanes = trace.tracks["name"][slices["track_id"]]
    columns = (lanes, slices["category"], slices["name"], slices["ts_ticks"], ends)
    return Counter(zip(*(column.tolist() for column in columns), strict=True))


def _apart(what, found, expected):
    for text, rows in (("too many", found - expected), ("missing", expected - found)):
        if rows:
            listed = sorted(rows, key=str)
            more = f" and {len(listed) - _SHOWN} more" if len(listed) > _SHOWN else ""
            yield f"{what} {text}: {', '.join(map(str, listed[:_SHOWN]))}{more}"


def main(paths):
    wrong = 0
    for folder in (folder for path in paths for folder in folders(path)):
        found = list(differences(folder))
        wrong += bool(found)
        print(f"{folder}: " + ("equal" if not found else "".join(f"\n  {text}" for text in found)))
    return int(wrong > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

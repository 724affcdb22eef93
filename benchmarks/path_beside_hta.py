"""Critical paths of a window of a PyTorch profile, that of lanescope and that of HolisticTraceAnalysis side by side.

``python benchmarks/path_beside_hta.py FILE ANNOTATION [INSTANCE]`` prints, by name, the time on both paths of a window,
that of an annotation, and the sums. HolisticTraceAnalysis is installed into an environment of its own the first time
(``LANESCOPE_BENCH_LARGE=1``, half a GiB).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import lanescope
import peers
from lanescope.analysis.critical_path.answer import CriticalPath
from lanescope.analysis.critical_path.windows import WindowChoice

#: Run with HolisticTraceAnalysis: file, annotation, instance -> time by name and by kind, us; its log goes to stderr.
_HTA = """
import json, logging, shutil, sys, tempfile, warnings
warnings.filterwarnings("ignore")
logging.disable(logging.CRITICAL)
from hta.trace_analysis import TraceAnalysis
with tempfile.TemporaryDirectory() as folder:
    shutil.copy(sys.argv[1], folder)
    out, sys.stdout = sys.stdout, sys.stderr
    graph, is_done = TraceAnalysis(trace_dir=folder).critical_path_analysis(
        rank=0, annotation=sys.argv[2], instance_id=int(sys.argv[3]))
    assert is_done
    found = graph.get_critical_path_breakdown()
    sys.stdout = out
def spent(by):
    return found.fillna({by: ""}).groupby(by).duration.sum().to_dict()
counts = {"nodes": len(graph.critical_path_nodes), "events": len(graph.critical_path_events_set)}
for edge in graph.critical_path_edges_set:
    counts[edge.type.name] = counts.get(edge.type.name, 0) + 1
total = float(found.duration.sum())
print(json.dumps({"names": spent("s_name"), "kinds": spent("bound_by"), "sum": total, "counts": counts}))
"""


class Answer(NamedTuple):
    """A path: time by name and by kind, and all of it, us; how many nodes, events and edges of each type it has."""

    names: dict[str, float]
    kinds: dict[str, float]
    total: float
    counts: dict[str, int]


def of_hta(path: Path, annotation: str, instance: int) -> Answer:
    """Return what HolisticTraceAnalysis says.

    Raises:
        peers.MissingPeerError: it is not here, or fails.
    """
    found: dict[str, Any] = json.loads(peers.run(_HTA, path, annotation, str(instance), group=peers.HTA))
    return Answer(found["names"], found["kinds"], found["sum"], found["counts"])


def of_lanescope(path: Path, annotation: str, instance: int) -> Answer:
    """Return what lanescope says of the same window: from the first begin to the last end of what begins in it."""
    trace = lanescope.open(path)
    names = trace.slices["name"]
    row = [each for each, name in enumerate(names) if name == annotation][instance]
    begin, end = trace.slices["ts"][row], trace.slices["ts"][row] + trace.slices["dur"][row]
    rows = CriticalPath(trace).made.graph.rows
    inside = (rows.begin >= begin) & (rows.begin < end)
    choice = WindowChoice(begin=int(rows.begin[inside].min()), end=int(rows.end[inside].max()))
    by_name: dict[str, float] = {}
    by_cause: dict[str, float] = {}
    for part in CriticalPath(trace, choice).parts.rows():
        name = "" if part["cause"] == "lane idle" or part["slice_id"] is None else names[part["slice_id"]]
        by_name[name] = by_name.get(name, 0) + part["dur"]
        by_cause[part["cause"]] = by_cause.get(part["cause"], 0) + part["dur"]
    total = sum(by_name.values())
    in_us = ({name: dur / 1000 for name, dur in of.items()} for of in (by_name, by_cause))
    return Answer(*in_us, total / 1000, {})


def table(one: Answer, two: Answer) -> str:
    """Return the two answers side by side."""
    lines = []
    for title, left, right in (("name", one.names, two.names), ("kind", one.kinds, two.kinds)):
        rows = sorted({*left, *right}, key=lambda name: -max(left.get(name, 0), right.get(name, 0)))
        lines.append(f"{title:<44} {'HTA, us':>12} {'lanescope, us':>14}")
        lines += [
            f"{(name or '(no name)')[:44]:<44} {left.get(name, 0):>12,.0f} {right.get(name, 0):>14,.3f}"
            for name in rows
        ]
        lines.append("")
    return "\n".join([*lines, f"{'sum':<44} {one.total:>12,.0f} {two.total:>14,.3f}"])


def main(arguments: list[str]) -> int:
    """Print the table."""
    path, annotation, instance = Path(arguments[0]), arguments[1], int(arguments[2]) if arguments[2:] else 0
    try:
        print(table(of_hta(path, annotation, instance), of_lanescope(path, annotation, instance)))
    except peers.MissingPeerError as error:
        print(f"HolisticTraceAnalysis is not here: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

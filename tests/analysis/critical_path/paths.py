"""Paths for tests: of simulated captures, checked for what holds for all of them."""

import lanescope
from lanescope.analysis.critical_path.answer import CriticalPath
from lanescope.analysis.critical_path.event_graph import CAUSES


def simulated(folder, family, **options):
    simulation = lanescope.simulate(family, seed=3, **options)
    for name, content in simulation.files.items():
        (folder / name).write_bytes(content)
    return lanescope.open(folder / next(iter(simulation.files)))


def checked(trace, **options):
    """Return the path of a trace, whose parts fill its windows and whose replay is the trace."""
    path = CriticalPath(trace, **options)
    for each in path.paths:
        parts = each.parts
        assert int((parts.end - parts.begin).sum()) == each.length
        assert (parts.begin[1:] == parts.end[:-1]).all()
        assert len(parts.begin) == 0 or parts.begin[0] == each.window.begin
    graph = path.made.graph
    for bound in ("low", "nominal", "high"):
        assert graph.replay(bound=bound).tolist() == graph.time.tolist()
    assert min(graph.slack().tolist()) >= 0
    return path


def shares(path):
    return {cause: share for cause, share in zip(CAUSES, path.longest.shares, strict=True) if share}


def longest(path):
    return max(path.summary.rows(), key=lambda row: row["dur"])

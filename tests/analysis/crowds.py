"""Traces for the tests of instances: drawn ones with lanes of many kinds, and small simulated ones of each family."""

import numpy as np
from hypothesis import strategies as st

from analysis.sweep import NAMES
from lanescope.analysis.instances import ALL, LANE, PARENT, roles
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.pipeline import session
from lanescope.trace import ColumnSpec, TableSpec, TimeBase, TraceBuilder

TIMES = st.integers(0, 25)
#: The core of each lane; a group may have other lanes too.
CORES = TableSpec(
    "test_cores",
    "lanes that are cores",
    (
        ColumnSpec("track_id", "int64", "the lane", references="tracks"),
        ColumnSpec("core", "int64", "its number", nullable=True),
    ),
    key="track_id",
)


@st.composite
def crowds(draw):
    """Return a trace in whose groups lanes of several roles and cores stand side by side, at any depth."""
    builder = TraceBuilder(TimeBase(), details=[CORES])
    found, parents = [], [None]
    for number in range(draw(st.integers(1, 3))):
        role = draw(st.sampled_from(["device", "block", "worker"]))
        parents.append(
            builder.track(f"{role} {number}", kind="group", role=role, parent=draw(st.sampled_from(parents)))
        )
    for number in range(draw(st.integers(1, 5))):
        lane = builder.track(
            f"lane {number}",
            kind="lane",
            role=draw(st.sampled_from(["core", "queue", "group"])),
            parent=draw(st.sampled_from(parents)),
            nesting=draw(st.sampled_from(["nested", "free"])),
        )
        found.append(lane)
        core = draw(st.one_of(st.none(), st.integers(0, 2)))
        if core is not None:
            builder.append("test_cores", track_id=lane, core=core, core_valid=np.array([draw(st.integers(0, 3)) > 0]))
    for _ in range(draw(st.integers(0, 10))):
        length = draw(st.one_of(st.none(), st.integers(0, 12), st.integers(0, 12)))
        begin = draw(TIMES)
        builder.append(
            "slices",
            track_id=draw(st.sampled_from(found)),
            ts=begin,
            dur=0 if length is None else length,
            dur_valid=np.array([length is not None]),
            last_known_ts=begin + draw(st.integers(0, 5)),
            name=draw(st.sampled_from(NAMES)),
        )
    anywhere = [*found, *(parent for parent in parents if parent is not None)]
    for _ in range(draw(st.integers(0, 2))):
        builder.append("gaps", track_id=draw(st.sampled_from(anywhere)), ts=draw(TIMES), dur=draw(TIMES), cause="hole")
    for _ in range(draw(st.integers(0, 2))):
        builder.append("coverage", track_id=draw(st.sampled_from(anywhere)), ts=draw(TIMES), dur=draw(TIMES))
    for _ in range(draw(st.integers(0, 2))):
        builder.append("instants", track_id=draw(st.sampled_from(found)), ts=draw(TIMES), name="x")
    return builder.finish()


def every_role(trace):
    return dict.fromkeys([*roles(trace), ALL, PARENT, LANE])


#: Captures small enough to be swept: family, seed and options of its simulator.
SCENARIOS = {
    "aie": ("aie", 3, {"tiles": 3, "records": 40, "overruns": 1}),
    "aie, nothing lost": ("aie", 7, {"tiles": 2, "records": 60}),
    "ascend": (
        "ascend",
        3,
        {"tasks": 14, "aic": 2, "aiv": 2, "threads": 2, "dummy": 0.3, "alloc": 0.2, "drop_aicore": 2, "drop_both": 1},
    ),
    "ascend, nothing lost": ("ascend", 7, {"tasks": 14, "aic": 2, "aiv": 2, "threads": 2}),
    "cuda ls2": ("cuda", 3, {"blocks": 4, "tiles": 2, "sms": 2, "layout": "ls2", "unfinished": 1, "instants": True}),
    "cuda tirx": ("cuda", 7, {"blocks": 4, "tiles": 2, "sms": 2}),
    "cuda tirx, crossing": ("cuda", 3, {"blocks": 4, "tiles": 2, "sms": 2, "crossing": 2}),
    "cuda warpscope, overflow": (
        "cuda",
        3,
        {"blocks": 4, "tiles": 3, "layout": "warpscope", "overflow": True},
    ),
    "cuda proton": ("cuda", 3, {"blocks": 4, "tiles": 2, "sms": 2, "layout": "proton"}),
    "levelzero": ("levelzero", 3, {"ops": 12}),
    "levelzero, another": ("levelzero", 7, {"ops": 12}),
}


def simulated(name, folder):
    """Return the trace of one of ``SCENARIOS``, whose files are written to a folder."""
    wanted, seed, options = SCENARIOS[name]
    (family,) = (family for family in registry.builtin() if family.name == wanted)
    files = family.simulate(resolve_options(family.sim_options, options, what="simulator"), seed).files
    for file, content in files.items():
        (folder / file).write_bytes(content)
    trace = session.open(folder / next(iter(files)))
    assert 20 < len(trace.slices) < 600  # enough to say something, and little enough to be swept
    return trace

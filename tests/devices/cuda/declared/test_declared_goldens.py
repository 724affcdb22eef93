"""Buffers packed after the producers' stores, decoded by nothing but their declarations, to the packer's truth."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from lanescope import cuda
from lanescope.devices.cuda.formats.declared import catalog

GOLDEN = Path(__file__).parents[1] / "golden" / "declared"
#: Golden -> layout, and names of its truth's parameters in the declaration.
LAYOUTS = {
    "mirage_mpk": ("mirage-mpk", {}),
    "triton_distributed": ("triton-distributed", {}),
    "flashinfer_v2": ("flashinfer-v2.toml", {}),
    "flashinfer_v2_clock": ("flashinfer-v2-clock", {}),
    "nuggets_legacy": ("nuggets-legacy", {"max_events": "max_events"}),
    "open_cuprof": ("open-cuprof", {"max_events": "max_events", "max_warps": "max_warps", "clock_mhz": "mhz"}),
    "ikp": ("ikp", {"max_events": "cap", "warps": "warps"}),
    "tileops": ("tileops", {"max_events": "max_events", "groups": "groups"}),
    "cutez": ("cutez", {"segment": "segment", "warps": "warps"}),
    "cutedsl_trace": ("cutedsl-trace", {"row": "row", "lanes": "lanes"}),
    "mori": ("mori", {"max_events": "cap"}),
    "npkit": ("npkit", {"gpu_mhz": "gpu_mhz", "cpu_mhz": "cpu_mhz"}),
    "tk_profiler": ("thunderkittens", {"rows": "rows", "width": "width"}),
}
#: Goldens whose layouts count what had no room.
COUNTED = {"nuggets_legacy", "open_cuprof", "ikp", "cutedsl_trace"}


def load(name):
    """The bytes of a golden (an archive where it has several arrays), its truth, and the options to decode it."""
    truth = json.loads((GOLDEN / f"{name}.json").read_text())
    layout, names = LAYOUTS[name]
    data = (GOLDEN / f"{name}.bin").read_bytes()
    others = list(GOLDEN.glob(f"{name}.*.bin"))
    if others:
        file = io.BytesIO()
        arrays = {path.name.split(".")[1]: np.frombuffer(path.read_bytes(), np.uint32) for path in others}
        np.savez(file, buffer=np.frombuffer(data, np.uint64), **arrays)
        data = file.getvalue()
    if layout.endswith(".toml"):
        layout = str(Path(catalog.__file__).parent / "shipped" / layout)
    params = {mine: truth["params"][theirs] for mine, theirs in names.items()}
    options = {"layout": layout} | ({"layout_params": params} if params else {})
    if truth["base"] is not None:
        options["anchor"] = truth["base"]
    return data, truth, options


def rows_of(trace):
    """Closed regions and instants, as the truth has them, in ticks."""
    regions = {row["slice_id"]: row for row in trace.tables()["cuda_regions"].rows()}
    marks = {row["instant_id"]: row for row in trace.tables()["cuda_instants"].rows()}
    found = []
    for row in trace.slices.rows():
        of = regions[row["id"]]
        if row["dur_ticks"] is not None:
            end = row["ts_ticks"] + row["dur_ticks"]
            found.append((of["block"], of["group"], of["sm"], of["event_id"], row["ts_ticks"], end, of["payload"] or 0))
    for row in trace.instants.rows():
        of = marks[row["id"]]
        if row["category"] == "mark":
            # The truth keeps no payload of instants.
            found.append((of["block"], of["group"], of["sm"], of["event_id"], row["ts_ticks"], None, 0))
    return sorted(found, key=str)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_golden_is_decoded_to_its_truth(name):
    data, truth, options = load(name)
    trace = cuda.decode(data, **options)
    assert rows_of(trace) == sorted((tuple(row) for row in truth["spans"]), key=str)
    dropped = sum(row["count"] for row in trace.stats.rows() if row["name"] == "cuda_dropped")
    if name in COUNTED:
        assert dropped == truth["lost"]
        assert all(row["dropped"] is not None for row in trace.tables()["cuda_lanes"].rows())
    else:
        assert all(row["dropped"] is None for row in trace.tables()["cuda_lanes"].rows())


@pytest.mark.parametrize("name", LAYOUTS)
def test_every_byte_of_a_golden_is_accounted_for(name):
    data, _, options = load(name)
    trace = cuda.decode(data, **options)
    first = next(row for row in trace.accounting.rows() if row["layer"] == 0)
    assert (first["total"], first["lost"]) == (len(data), 0)
    assert not {"cuda_corrupt_record", "cuda_trailing_bytes", "cuda_hole"} & {row["name"] for row in trace.stats.rows()}


def test_a_ring_that_counts_nothing_reports_what_it_must_have_overwritten():
    data, _, options = load("mori")
    trace = cuda.decode(data, **options)
    lanes = list(trace.tables()["cuda_lanes"].rows())
    assert [row["dropped_at_least"] for row in lanes] == [6, 6, 6, 7]
    assert {row["cause"] for row in trace.gaps.rows()} == {"overrun"}


def test_lanes_of_counters_that_are_not_comparable_have_no_common_time():
    data, _, options = load("flashinfer_v2_clock")
    trace = cuda.decode(data, **options)
    assert trace.time.time_unit == "cycles"
    # Two SMs whose counters are a billion cycles apart: the trace is as long as the launch of one.
    assert int((trace.slices["ts"] + trace.slices["dur"]).max()) < 10_000
    assert not [row for row in trace.stats.rows() if row["name"] == "cuda_wrap_ambiguous"]


def test_names_and_ids_beyond_16_bits():
    data, _, options = load("tileops")
    trace = cuda.decode(data, **options)
    assert "event_16777215" in set(trace.slices.values("name").tolist())
    named = cuda.decode(data, **options, events={16777215: "last"})
    assert "last" in set(named.slices.values("name").tolist())
    unknown = [row["count"] for row in named.stats.rows() if row["name"] == "cuda_unknown_event"]
    assert sum(unknown) == len(trace.slices) + len(trace.instants) - sum(
        row["name"] in ("last", "end last?") for row in (*named.slices.rows(), *named.instants.rows())
    )

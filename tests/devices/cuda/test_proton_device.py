"""Files of random kernels by the stores of Proton's device code, decoded to their truth."""

from __future__ import annotations

from collections import Counter

import pytest

import lanescope
from devices.cuda.helpers import accounts, decode, lanes, stats
from devices.cuda.proton_device import launch
from effort import some
from lanescope.devices.cuda import decoder
from lanescope.devices.cuda.emit import batches


def truth_of(trace, bits):
    """What a trace says of scopes, events and marks, as ``proton_device.Launch`` has it."""
    wrap, spans, regions, marks = 1 << bits, Counter(), Counter(), Counter()
    of_slice = {row["slice_id"]: row for row in trace.tables()["cuda_regions"].rows()}
    of_instant = {row["instant_id"]: row for row in trace.tables()["cuda_instants"].rows()}
    for row in trace.slices.rows():
        of = of_slice[row["id"]]
        lane = of["block"], of["group"], of["sm"], of["event_id"], row["ts_ticks"] % wrap, row["dur_ticks"]
        if row["category"] == "async":
            end = of["group"] if of["end_group"] is None else of["end_group"]
            regions[(*lane, None if row["dur_ticks"] is None else end)] += 1
        else:
            spans[lane] += 1
    for row in trace.instants.rows():
        of = of_instant[row["id"]]
        marks[of["block"], of["group"], of["event_id"], row["category"], row["ts_ticks"] % wrap] += 1
    return spans, regions, marks


@pytest.mark.parametrize("is_released", [True, False])
@pytest.mark.parametrize("seed", range(some(60)))
def test_what_a_kernel_stores_is_decoded_to_its_truth(seed, is_released):
    made = launch(seed, is_released=is_released)
    trace = decode(made.data, name="run.bin", layout="proton")
    assert truth_of(trace, made.bits) == (Counter(made.spans), Counter(made.regions), Counter(made.marks))
    assert {lane: row["dropped"] for lane, row in lanes(trace).items() if row["dropped"]} == made.lost
    assert accounts(trace)["byte"]["total"] == len(made.data)
    # A value whose record was overwritten is lost with it; it is not corrupt.
    assert not {"cuda_corrupt_record", "cuda_bad_block", "cuda_clock_reversal", "cuda_reserved_bits"} & set(
        stats(trace)
    )


@pytest.mark.parametrize("records", [1, 9])
@pytest.mark.parametrize("seed", range(some(20)))
def test_parts_of_any_size_make_the_same_trace(seed, records, tmp_path, monkeypatch):
    made = launch(seed, is_released=False)
    path = tmp_path / "run.bin"
    path.write_bytes(made.data)
    whole = lanescope.open(path, layout="proton")
    monkeypatch.setattr(decoder, "WHOLE_BYTES", 1)
    monkeypatch.setattr(batches, "PART_RECORDS", records)
    monkeypatch.setattr(batches, "_FEW_PARTS", 0)
    parts = lanescope.open(path, layout="proton")
    assert truth_of(parts, made.bits) == truth_of(whole, made.bits)
    assert list(parts.stats.rows()) == list(whole.stats.rows())
    assert list(parts.clocks.rows()) == list(whole.clocks.rows())
    flags = [sorted(trace.slices["flags"].tolist()) for trace in (parts, whole)]
    assert flags[0] == flags[1]

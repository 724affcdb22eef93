"""The simulator's truth, found again: 200 seeds with everything that may go wrong."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest

from devices.cuda.helpers import accounts, decode_simulation, gaps, instants, lanes, simulate, spans, stats
from effort import some
from lanescope.devices.cuda.formats.layout import STAMP_WRAP
from lanescope.devices.cuda.simulate.sim_kernel import EVENTS
from lanescope.errors import UsageError
from lanescope.families.family import Simulation
from lanescope.trace import Flag

#: Lanes of these faults lose records, so what is left of them may pair otherwise; the decoder says where.
DAMAGED = ("holes", "corrupt")


def scenario(seed):
    """Return options that differ from seed to seed; each fault comes and goes."""
    bits = np.random.PCG64(seed)

    def pick(*values):
        return values[int(bits.random_raw()) % len(values)]

    groups = pick(1, 2, 3, 4)
    options = {
        "blocks": 9 + pick(0, 1, 2, 7),
        "groups": groups,
        "sms": pick(2, 5, 132),
        "tiles": pick(2, 3, 6),
        "tick": pick(1, 32, 32, 1024),
        "nested": pick(True, False),
        "instants": pick(True, False),
        "wrap": pick(True, False, False),
    }
    lane_count = options["blocks"] * groups
    options["stride"] = pick(0, 0, lane_count + 1, lane_count + 13)
    for fault in ("unfinished", "no_finalize", "two_writers", "clock_step", "holes", "corrupt", "crossing", "reruns"):
        options[fault] = pick(0, 0, 1)
    options["stray_ends"] = pick(0, 0, 1)
    if pick(0, 0, 1):
        options["slots"] = (options["stride"] or lane_count) * pick(5, 8) + 1 + pick(0, 2)
    return options


def lane_of(row):
    return tuple(row[:2])


def check(simulation, trace):
    """Compare a trace with the truth of its simulation."""
    truth = simulation.truth
    found, found_stats = lanes(trace), stats(trace)
    faulty = {fault: {lane_of(row) for row in truth[fault]} for fault in (*DAMAGED, "two_writers", "reruns")}
    blind = faulty["holes"] | faulty["corrupt"] | faulty["two_writers"]
    writers = faulty["two_writers"]

    def sure(rows):
        return [tuple(row) for row in rows if lane_of(row) not in blind]

    stamps = [row[4] for key in ("spans", "instants", "unfinished_regions") for row in truth[key]]
    stamps += [row[5] for row in truth["spans"]]
    raw = trace.details["cuda_buffers"]["t0_ticks"][0]
    # Full times differ from unwrapped timestamps by whole wrap periods, the same for all.
    origin = raw + (min(stamps) - raw + STAMP_WRAP // 2) // STAMP_WRAP * STAMP_WRAP
    rows = spans(trace, origin=origin)

    # Slices: exactly those of the sound lanes; an end before its begin has no length.
    closed = [row for row in rows if not row[7] & Flag.UNFINISHED]
    wanted = [(*row[:5], *((None, None) if row[6] < 0 else row[5:7])) for row in sure(truth["spans"])]
    assert sure(row[:7] for row in closed) == wanted
    opened = [row[:5] for row in rows if row[7] & Flag.UNFINISHED]
    assert sure(opened) == sure(truth["unfinished_regions"])
    marks = instants(trace, origin=origin)
    assert sure(row for row in marks if row[3] == EVENTS[row[2]]) == sure(truth["instants"])
    stray = {(*row[:3], EVENTS[row[2]], row[3]) for row in truth["stray_ends"]}
    strays = {
        (*row[:3], row[3].removeprefix("end ").removesuffix("?"), row[4]) for row in marks if row[3].endswith("?")
    }
    stored = {lane for lane, row in found.items() if row["unmatched_ends"]}
    assert {row for row in strays if lane_of(row) not in blind} == {row for row in stray if lane_of(row) in stored}

    # What lanes lost is in its place, and what does not span it is right.
    damaged = [(*lane_of(row), "hole", row[3]) for row in truth["holes"]]
    damaged += [(*lane_of(row), "bad_bytes", 1) for row in truth["corrupt"]]
    assert sorted(row for row in gaps(trace) if row[2] != "overrun") == sorted(damaged)
    real = {tuple(row) for row in truth["spans"]}
    for row in closed:
        if lane_of(row) in faulty["holes"] | faulty["corrupt"] and not row[7] & Flag.INFERRED_IDENTITY:
            assert row[:7] in real

    # Two writers, steps back and further launches are seen.
    for lane in writers:
        assert found[lane]["clock_reversals"] > 0
    for block, group, at, _step in truth["clock_step"]:
        lane = found[block, group]
        assert lane["clock_reversals"] == (at < lane["records"])
    assert bool(found_stats.get("cuda_multiple_writers")) >= bool(
        [lane for lane in writers if found[lane]["clock_reversals"] > 1 and found[lane]["missing_slots"] == 0]
    )
    for block, group, records in truth["reruns"]:
        assert found[block, group]["launches"] == 1 + (found[block, group]["records"] > records)
    crossing = {lane_of(row) for row in rows if row[7] & Flag.PARTIAL_OVERLAP}
    for block, group, at in truth["crossing"]:
        if found[block, group]["records"] > at + 2:
            assert (block, group) in crossing

    # Losses: every lane that lost something is known to be full, and the bound holds.
    lost = {lane_of(row): row[2] for row in truth["lost_by_lane"]}
    assert {lane for lane, row in found.items() if row["is_full"]} >= set(lost) - blind - faulty["reruns"]
    for block, group, cause, count in gaps(trace):
        if cause == "overrun" and count is not None and (block, group) in lost:
            assert count <= lost[block, group]
    finalized = {lane for lane, row in found.items() if row["finalize_ts"] is not None}
    assert finalized == {tuple(lane) for lane in truth["finalized_lanes"]}

    # Everything is accounted for.
    account = accounts(trace)["slot"]
    spoiled = sum(row[3] for row in truth["holes"]) + len(truth["corrupt"])
    assert account["decoded"] == 1 + truth["records"] - spoiled
    assert account["lost"] == spoiled
    assert account["total"] == truth["slots"]
    geometry = next(trace.details["cuda_buffers"].rows())
    assert (geometry["num_blocks"], geometry["num_groups"]) == (truth["num_blocks"], truth["num_groups"])
    assert geometry["stride"] == truth["stride"]


@pytest.mark.parametrize("seed", range(some(200, 40)))
def test_truth_is_found(seed):
    simulation = simulate(seed=seed, **scenario(seed))
    check(simulation, decode_simulation(simulation))


def test_all_faults_come_up():
    met = set()
    for seed in range(200):
        options = scenario(seed)
        met |= {name for name, value in options.items() if value}
    assert {"two_writers", "clock_step", "holes", "corrupt", "crossing", "reruns", "stray_ends", "slots", "wrap"} <= met


def test_same_seed_same_bytes_and_never_other_ones():
    # Made with PCG64's raw output: no version of NumPy may change it.
    simulation = simulate(seed=1, blocks=4, tiles=3)
    assert simulation.files == simulate(seed=1, blocks=4, tiles=3).files
    assert simulation.files != simulate(seed=2, blocks=4, tiles=3).files
    digest = hashlib.sha256(simulation.files["attention.npy"]).hexdigest()
    assert digest == "86c5c8a2b4a7e03a2cf2e571910637233d4d0f19dd330f8fe19530905afeef12"


def test_faults_do_not_change_what_the_kernel_does():
    sound, faulty = simulate(seed=7, blocks=4, tiles=3), simulate(seed=7, blocks=4, tiles=3, holes=1, unfinished=1)
    touched = {lane_of(row) for fault in ("holes", "unfinished") for row in faulty.truth[fault]}
    assert len(touched) == 2
    assert [row for row in sound.truth["spans"] if lane_of(row) not in touched] == [
        row for row in faulty.truth["spans"] if lane_of(row) not in touched
    ]


def test_truth_is_json_and_has_the_keys_of_the_golden_buffers():
    truth = simulate(blocks=2, tiles=1).truth
    again = json.loads(json.dumps(dict(truth)))
    for key in ("num_blocks", "stride", "slots_needed", "records", "lost_by_lane", "tick_ns", "columns", "spans",
                "instants", "unfinished_regions", "finalized_lanes", "wraps_32bit", "event_names"):  # fmt: skip
        assert key in again
    assert len(again["spans"][0]) == len(again["columns"])


def test_groups_overlap_as_in_a_pipeline():
    truth = simulate(seed=3, blocks=1, tiles=8, groups=4, nested=False).truth
    assert [group["name"] for group in truth["groups"]] == ["load", "compute 0", "compute 1", "store"]
    assert [group["leader"] for group in truth["groups"]] == [0, 32, 160, 288]
    times = {
        name: [(row[4], row[5]) for row in truth["spans"] if row[3] == name and row[1] in (group, -1)]
        for name, group in (("load_k", 0), ("qk", 2), ("softmax", 1), ("store", 3), ("wait_full", 1))
    }

    def overlapping(one, two):
        return sum(a < d and c < b for a, b in times[one] for c, d in times[two])

    assert min(overlapping("load_k", "softmax"), overlapping("softmax", "qk"), overlapping("store", "qk")) > 0
    # A consumer goes on only when its tile is loaded.
    loaded = [row[5] for row in truth["spans"] if row[3] == "load_v"]
    assert all(end >= full for (_, end), full in zip(times["wait_full"], loaded, strict=True))


def test_groups_that_are_no_multiples_of_a_warp():
    simulation = simulate(seed=3, blocks=2, tiles=2, threads="48,48,32")
    assert [(group["threads"], group["leader"]) for group in simulation.truth["groups"]] == [
        (48, 0),
        (48, 48),
        (32, 96),
    ]
    trace = decode_simulation(simulation)
    assert trace.tracks["name"].tolist()[2:5] == ["threads 0 to 47", "threads 48 to 95", "threads 96 to 127"]
    check(simulation, trace)
    events = {(row[1], row[3]) for row in simulation.truth["spans"]}
    assert {(group, name) for group in range(3) for name in ("load_k", "qk", "store")} <= events


def test_names_come_from_beside_the_buffer():
    trace = decode_simulation(simulate(blocks=2, tiles=2))
    assert set(trace.slices["name"]) <= set(EVENTS)
    assert set(trace.tracks["name"]) >= {"load", "compute", "store"}
    assert trace.inputs["role"].tolist() == ["main", "events"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"blocks": 600_000, "groups": 2}, "too many lanes"),
        ({"blocks": 4, "stride": 3}, "too small"),
        ({"blocks": 1, "holes": 4}, "too many faults: 4 for"),
        ({"blocks": 4, "tiles": 1, "slots": 5}, "too few for 12 lanes"),
    ],
)
def test_contradicting_options(options, message):
    with pytest.raises(UsageError, match=message):
        simulate(**options)


@pytest.mark.parametrize("bit", [1, 3, 12, 37])
def test_the_comparison_notices_one_wrong_bit(bit):
    simulation = simulate(seed=11, blocks=4, tiles=4)
    (name, data), *others = simulation.files.items()
    words = np.frombuffer(data[128:], "<u8").copy()
    words[200] ^= np.uint64(1 << bit)
    spoiled = Simulation({name: data[:128] + words.tobytes(), **dict(others)}, simulation.truth)
    check(simulation, decode_simulation(simulation))
    with pytest.raises(AssertionError):
        check(spoiled, decode_simulation(spoiled))

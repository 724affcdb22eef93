"""Every layout: what was simulated is decoded, whatever was lost; no lane is mixed with another."""

from __future__ import annotations

import numpy as np
import pytest

from devices.cuda.helpers import accounts, decode, decode_simulation, gaps, lanes, simulate, spans, stat, stats
from lanescope.devices.cuda.formats.encode import strided
from lanescope.devices.cuda.formats.layout import SHORT_NAMES
from lanescope.devices.cuda.simulate.sim_kernel import EVENTS
from lanescope.errors import InputError, UsageError
from lanescope.trace import Flag, TimeBase, TraceBuilder
from lanescope.trace.merge import align

STRIDED = ("tirx", "flashinfer1", "flashinfer2", "warpscope")


def closed(trace, category, origin):
    """Return sorted (block, group, event, begin, end) of the closed slices of a category."""
    rows = zip(trace.slices.rows(), trace.details["cuda_regions"].rows(), strict=True)
    found = [
        (r["block"], r["group"], r["event_id"], s["ts"] + origin, s["ts"] + s["dur"] + origin)
        for s, r in rows
        if s["category"] == category and s["dur"] is not None
    ]
    return sorted(found)


def opened(trace, category, origin):
    rows = zip(trace.slices.rows(), trace.details["cuda_regions"].rows(), strict=True)
    return sorted(
        (r["block"], r["group"], r["event_id"], s["ts"] + origin)
        for s, r in rows
        if s["category"] == category and s["flags"] & Flag.UNFINISHED
    )


def marks(trace, category, origin):
    rows = zip(trace.instants.rows(), trace.details["cuda_instants"].rows(), strict=True)
    return sorted(
        (m["block"], m["group"], m["event_id"], i["ts"] + origin) for i, m in rows if i["category"] == category
    )


def lost(trace):
    return sorted([row["block"], row["group"], row["dropped"]] for row in lanes(trace).values() if row["dropped"])


# --- layouts with shared slots ------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", STRIDED)
@pytest.mark.parametrize("seed", range(6))
def test_strided_layouts(layout, seed):
    options = {"blocks": 9, "tiles": 5, "sms": 4, "groups": 1 + seed % 4, "wrap": seed % 2 == 1, "layout": layout}
    options |= {"instants": seed == 2, "nested": seed != 2, "overflow": seed > 3, "tick": (32, 1)[seed == 3]}
    simulation = simulate(seed, **options)
    # Only the step of a timer tells timestamps of FlashInfer's second layout from cycles.
    told = ("tirx", "flashinfer2") if options["tick"] > 1 else ("tirx",)
    trace = decode_simulation(simulation, layout=None if layout in told else SHORT_NAMES[layout])
    truth = simulation.truth
    assert trace.inputs["format"][0] == truth["format"] == SHORT_NAMES[layout]
    origin = min(row[4] for key in ("spans", "instants", "unfinished_regions") for row in truth[key])
    assert [row[:7] for row in spans(trace, origin=origin) if row[5]] == truth["spans"]
    assert opened(trace, "region", origin) == sorted((*row[:3], row[4]) for row in truth["unfinished_regions"])
    assert marks(trace, "mark", origin) == sorted((*row[:3], row[4]) for row in truth["instants"])
    assert bool(truth["lost_records"]) == (seed > 3)
    assert {lane for lane, row in lanes(trace).items() if row["is_full"]} >= {
        tuple(row[:2]) for row in truth["lost_by_lane"]
    }
    assert (
        sorted([*lane] for lane, row in lanes(trace).items() if row["finalize_ts"] is not None)
        == (truth["finalized_lanes"])
    )


@pytest.mark.parametrize("groups", [2, 3])
def test_flashinfer_v2_with_several_groups_does_not_mix_lanes(groups):
    simulation = simulate(5, layout="flashinfer2", blocks=8, groups=groups, tiles=4, sms=5, nested=False)
    trace = decode_simulation(simulation)
    for (block, group), row in lanes(trace).items():
        mine = [one for one in simulation.truth["spans"] if one[:2] == (block, group)]
        assert row["records"] == 2 * len(mine)
        assert row["sm"] == simulation.truth["sm"][block] == block % 5
    names = dict(zip(trace.tracks["id"].tolist(), trace.tracks["name"].tolist(), strict=True))
    parents = dict(zip(trace.tracks["id"].tolist(), trace.tracks["parent_id"].tolist(), strict=True))
    for row in lanes(trace).values():
        block = parents[row["track_id"]]
        assert (names[block], names[parents[block]]) == (f"block {row['block']}", f"SM {row['sm']}")
    # What the layout's own host makes of the tags: block // groups and block % groups.
    assert len({row[0] for row in spans(trace)}) == 8


def test_flashinfer_v2_blocks_beyond_its_field_have_no_sm():
    simulation = simulate(1, layout="flashinfer2", blocks=4100, groups=1, tiles=1, sms=132, nested=False)
    trace = decode_simulation(simulation)
    known = {row["block"] for row in lanes(trace).values() if row["sm"] is not None}
    assert known == set(range(4096))
    assert stats(trace)["cuda_sm_unknown"] == 4
    assert len(trace.slices) == len(simulation.truth["spans"])


def test_flashinfer_v2_keeps_only_the_last_instant_of_a_lane():
    simulation = simulate(1, layout="flashinfer2", blocks=3, groups=2, tiles=4, instants=True, nested=False)
    trace = decode_simulation(simulation)
    assert stats(trace)["cuda_instants_unreliable"] == len(simulation.truth["instants"]) == 6


def test_flashinfer_v2_word_of_another_block():
    simulation = simulate(1, layout="flashinfer2", blocks=4, groups=2, tiles=4, corrupt=1)
    (name, data), *_ = simulation.files.items()
    trace = decode(data, name=name, layout="flashinfer-v2")
    bad = [row for row in gaps(trace) if row[2] != "overrun"]
    assert bad == [(*simulation.truth["corrupt"][0][:2], "bad_bytes", 1)]
    assert stats(trace)["cuda_corrupt_record"] == 1


def test_lane_on_two_multiprocessors():
    simulation = simulate(1, layout="flashinfer2", blocks=2, groups=1, tiles=4)
    words = np.frombuffer(simulation.files["attention.npy"][128:], "<u8").copy()
    words[5] ^= np.uint64(3 << 24)
    trace = decode(words, layout="flashinfer-v2")
    assert stats(trace)["cuda_multiple_sms"] == 1
    assert [row["sm"] for row in lanes(trace).values()] == [None, 1]
    assert [row["sm"] for row in trace.details["cuda_regions"].rows()] == [
        None if row["block"] == 0 else 1 for row in trace.details["cuda_regions"].rows()
    ]


def test_a_tie_goes_to_tirx():
    words = strided.to_flashinfer2(
        np.frombuffer(simulate(1, blocks=4, groups=1, tiles=2).files["attention.npy"][128:], "<u8"),
        num_blocks=4,
        num_groups=1,
        sm=np.zeros(4, np.int64),
    )
    assert decode(words).inputs["format"][0] == "tirx-v1"


def test_finalize_is_no_record_of_flashinfer():
    (data, *_) = simulate(1, blocks=2, groups=1, tiles=2).files.values()
    trace = decode(data, layout="flashinfer-v1")
    assert stats(trace)["cuda_corrupt_record"] == 2
    assert [row["finalize_ts"] for row in lanes(trace).values()] == [None, None]


def test_a_probe_with_a_limit():
    simulation = simulate(2, layout="warpscope", blocks=3, groups=2, tiles=6, max_records=20)
    assert simulation.truth["lost_by_lane"]
    told = decode_simulation(simulation, layout="warpscope", max_records=20)
    assert {lane for lane, row in lanes(told).items() if row["is_full"]} == {
        tuple(row[:2]) for row in simulation.truth["lost_by_lane"]
    }
    assert {row["capacity"] for row in lanes(told).values()} == {20}
    # A limit that was told wrong is seen: words stand behind it.
    wrong = decode_simulation(simulation, layout="warpscope", max_records=19)
    assert stat(wrong, "cuda_corrupt_record")["count"] == 6
    assert accounts(wrong)["slot"]["lost"] == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "flashinfer-v1", "stride": 9}, "invalid stride: layout flashinfer-v1 uses the number of lanes, 4"),
        ({"layout": "tirx-v1", "max_records": 9}, "no record limit"),
        ({"layout": "ls2", "stride": 9}, "--stride and layout ls2 are mutually exclusive"),
    ],
)
def test_options_that_do_not_go_with_the_layout(options, message):
    (data, *_) = simulate(1, blocks=2, groups=2, tiles=2).files.values()
    with pytest.raises(UsageError, match=message):
        decode(data, **options)


@pytest.mark.parametrize("layout", ["ls2", "proton"])
def test_a_layout_that_the_bytes_are_not(layout):
    (data, *_) = simulate(1, blocks=2, groups=2, tiles=2).files.values()
    with pytest.raises(InputError) as error:
        decode(data, layout=layout)
    assert error.value.hint


# --- LS2 ----------------------------------------------------------------------------------------------------------


def check_ls2(simulation, trace):
    truth = simulation.truth
    described = next(trace.details["cuda_buffers"].rows())
    origin, policy = described["t0_ticks"] - truth["origin_ns"], described["overflow_policy"]
    damaged = {tuple(row) for fault in ("holes", "corrupt") for row in truth[fault]}
    blocks = {block for block, _ in damaged}

    def sure(rows):
        return sorted(tuple(row) for row in rows if tuple(row[:2]) not in damaged)

    assert sure(closed(trace, "region", origin)) == sure(truth["spans"])
    assert sure(closed(trace, "async", origin)) == sure(truth["async"])
    assert sure(opened(trace, "region", origin)) == sure(truth["unfinished_regions"])
    assert sure(opened(trace, "async", origin)) == sure(truth["open_async"])
    assert sure(marks(trace, "mark", origin)) == sure(truth["instants"])
    assert sure(marks(trace, "unmatched_end", origin)) == sure(truth["stray_ends"])
    # Counters and flows.
    tracks = dict(zip(trace.tracks["id"].tolist(), trace.tracks["parent_id"].tolist(), strict=True))
    names = dict(zip(trace.tracks["id"].tolist(), trace.tracks["name"].tolist(), strict=True))
    found = sorted(
        (int(names[tracks[row["track_id"]]].removeprefix("block ")), names[row["track_id"]], row["ts"], row["value"])
        for row in trace.counters.rows()
    )
    groups = [group["name"] for group in truth["groups"]]
    expected = sorted((b, f"{groups[g]} {EVENTS[e]}", at - origin, value) for b, g, e, at, value in truth["counters"])
    if not damaged:
        assert found == expected
    lane_of = {row["track_id"]: (row["block"], row["group"]) for row in lanes(trace).values()}
    links = zip(trace.flows.rows(), trace.details["cuda_flows"].rows(), strict=True)
    flows = sorted(
        (
            link["block"],
            link["event_id"],
            link["token"],
            lane_of[flow["src_track_id"]][1],
            flow["src_ts"] + origin,
            lane_of[flow["dst_track_id"]][1],
            flow["dst_ts"] + origin,
        )
        for flow, link in links
        if link["block"] not in blocks
    )
    assert flows == sorted(tuple(row) for row in truth["flows"] if row[0] not in blocks)
    # Losses, exactly.
    killed = {tuple(row) for row in truth["killed_lanes"]}
    counted = [row for row in truth["lost_by_lane"] if lanes(trace)[tuple(row[:2])]["dropped"] is not None]
    assert lost(trace) == counted
    # Only a lane that was killed when it was full leaves open how much it lost.
    assert all(tuple(row[:2]) in killed and policy == "drop" for row in truth["lost_by_lane"] if row not in counted)
    assert {lane for lane, row in lanes(trace).items() if row["finalize_ts"] is None} == killed
    if not damaged:
        assert accounts(trace)["slot"]["lost"] == 0
    assert {(row["block"], row["sm"]) for row in lanes(trace).values()} == set(enumerate(truth["sm"]))
    # Lanes that the buffer had no room for, exactly.
    refused, grid = truth["unallocated_lanes"], truth["grid_blocks"]
    assert (described["unallocated_lanes"], described["required_blocks"]) == (refused, grid if refused else None)
    assert described["required_groups"] is None
    account = accounts(trace)["lane"]
    assert (account["scope"], account["lost"], account["decoded"]) == ("producer", refused, len(lanes(trace)))
    assert stats(trace).get("cuda_unallocated_lane", 0) == refused
    unix = int(np.flatnonzero(trace.clocks["name"] == "unix")[0])
    readings = [row for row in trace.anchors.rows() if row["clock_id"] == unix]
    assert len(readings) == 2
    for row in readings:
        real = row["ts"] + described["t0_ticks"] + truth["unix_offset_ns"]
        assert abs(row["ticks"] - real) <= row["error_ns"]


@pytest.mark.parametrize("seed", range(24))
def test_ls2(seed):
    options = {
        "layout": "ls2",
        "blocks": 3 + seed % 4,
        "groups": (3, 1, 4, 2)[seed % 4],
        "tiles": (3, 7, 12)[seed % 3],
        "sms": 3,
        "wrap": seed % 2 == 1,
        "overflow": seed % 3 == 1,
        "ring": seed // 3 % 2 == 1,
        "payload": seed % 5 < 2,
        "instants": seed % 7 == 1,
        "nested": seed % 3 != 2,
        "gpu": seed % 2,
        "unfinished": (seed // 6) % 2,
        "holes": seed % 8 == 5,
        "corrupt": seed % 8 == 6,
        "refused": (0, 1, 0, 2, 5)[seed % 5],
    }
    options["blocks"] += options["refused"]
    simulation = simulate(seed, **options)
    assert simulation.truth["num_blocks"] == options["blocks"] - options["refused"]
    trace = decode_simulation(simulation)
    check_ls2(simulation, trace)


def test_ls2_as_the_issue_asks_for_it():
    simulation = simulate(3, layout="ls2", blocks=132, groups=3, wrap=True, overflow=True)
    trace = decode_simulation(simulation)
    check_ls2(simulation, trace)
    assert len(simulation.truth["lost_by_lane"]) == 264
    assert stats(trace)["cuda_dropped"] == sum(row[2] for row in simulation.truth["lost_by_lane"])
    assert trace.coverage["dur"].tolist() == [
        row[3] // 32 * 32 - row[2] // 32 * 32 for row in simulation.truth["extent"]
    ]


def test_ls2_payloads():
    simulation = simulate(3, layout="ls2", blocks=2, tiles=3, payload=True)
    trace = decode_simulation(simulation)
    regions = trace.details["cuda_regions"]
    is_region = trace.slices["category"] == "region"
    assert [str(value) for value in regions["payload"][is_region].tolist()] == simulation.truth["payloads"]
    assert regions.valid("end_payload").all()


def test_waits_of_ls2_point_at_their_producers():
    trace = decode_simulation(simulate(3, layout="ls2", blocks=2, groups=4, tiles=6))
    names = trace.slices["name"]
    pairs = {(names[row["src_slice_id"]], names[row["dst_slice_id"]]) for row in trace.flows.rows()}
    assert pairs == {("load_v", "wait_full"), ("qk", "wait_full"), ("pv", "wait_empty"), ("pv", "wait_output")}
    # The second compute group waits for its turn, not for the load.
    groups = {row["track_id"]: row["group"] for row in trace.details["cuda_lanes"].rows()}
    waits = {
        (groups[r["src_track_id"]], names[r["src_slice_id"]], groups[r["dst_track_id"]]) for r in trace.flows.rows()
    }
    assert {wait for wait in waits if wait[2] == 2} == {(1, "qk", 2)}


def test_ls2_ring_lost_its_beginning():
    simulation = simulate(3, layout="ls2", blocks=2, tiles=12, overflow=True, ring=True)
    trace = decode_simulation(simulation)
    overrun = [row for row in gaps(trace) if row[2] == "overrun"]
    assert [[b, g, n] for b, g, _, n in overrun] == simulation.truth["lost_by_lane"]
    assert all(row["ts"] == begin for row, begin in zip(trace.gaps.rows(), _begins(trace), strict=False))


def _begins(trace):
    lost_lanes = {row["track_id"] for row in trace.gaps.rows()}
    return [row["ts"] for row in trace.coverage.rows() if row["track_id"] in lost_lanes]


# --- Proton -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(9))
def test_proton(seed):
    across = seed > 5
    options = {
        "layout": "proton",
        "blocks": 6,
        "tiles": 4,
        "groups": seed - 4 if across else 1 + seed % 3,
        "sms": 3,
        "overflow": seed % 2 == 1 and not across,
        "instants": 2 < seed < 6,
        "wrap": seed > 3,
        "across": across,
    }
    simulation = simulate(seed, **options)
    truth = simulation.truth
    trace = decode_simulation(simulation, clock_mhz=1755.0)
    assert trace.inputs["format"][0] == "proton"
    counts = {
        (category, is_open): sum(
            1
            for row in trace.slices.rows()
            if row["category"] == category and bool(row["flags"] & Flag.UNFINISHED) == is_open
        )
        for category in ("region", "async")
        for is_open in (False, True)
    }
    assert counts["region", False] == len(truth["spans"])
    assert counts["async", False] == len(truth["async"])
    assert counts["region", True] + counts["async", True] == len(truth["unfinished_regions"])
    # Groups are warps, and warp 0 is not recorded.
    assert lost(trace) == [[b, g + 1, n] for b, g, n in truth["lost_by_lane"]]
    error = max(row["error_ns"] for row in trace.anchors.rows())
    origin = next(trace.details["cuda_buffers"].rows())["t0_ticks"]
    for category in ("region", "async"):
        key = {"region": "spans", "async": "async"}[category]
        expected = sorted((b, g + 1, e, begin, end) for b, g, e, begin, end, _ in truth[key])
        found = closed(trace, category, origin)
        assert [row[:3] for row in found] == [row[:3] for row in expected]
        for one, other in zip(found, expected, strict=True):
            assert abs(one[3] - other[3]) <= error
            assert abs((one[4] - one[3]) - (other[4] - other[3])) <= 2
    stray = marks(trace, "unmatched_end", origin)
    assert [row[:3] for row in stray] == sorted((b, g + 1, e) for b, g, e, _ in truth["stray_ends"])
    # Half of the loads end in the next warp, without a doubt.
    ends = {row["end_group"] for row in trace.details["cuda_regions"].rows()}
    assert ends == ({None, 2} if across else {None})
    assert len(trace.flows) == (len(truth["async"]) // 2 if across else 0)
    assert "cuda_ambiguous_async_end" not in stats(trace) or options["overflow"]
    values = {
        (r["block"], r["group"], s["ts"] + origin): r["payload"]
        for s, r in zip(trace.slices.rows(), trace.details["cuda_regions"].rows(), strict=True)
        if r["payload"] is not None
    }
    assert sorted(values.values()) == sorted(row[5] for row in truth["spans"] if row[5])


# --- clocks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tick", [32, 1024])
@pytest.mark.parametrize("sms", [4, 132])
@pytest.mark.parametrize("rate", [None, 1755.0])
def test_cycles_are_placed_within_the_stated_error(tick, sms, rate):
    simulation = simulate(7, layout="ls2", blocks=12, tiles=8, clock64=True, tick=tick, sms=sms)
    trace = decode_simulation(simulation, clock_mhz=rate)
    truth = simulation.truth
    origin = next(trace.details["cuda_buffers"].rows())["t0_ticks"]
    rows = zip(trace.slices.rows(), trace.details["cuda_regions"].rows(), strict=True)
    errors = {
        trace.clocks["device"][row["clock_id"]].removeprefix("GPU 0 SM "): row["error_ns"]
        for row in trace.anchors.rows()
        if trace.clocks["name"][row["clock_id"]] == "clock64"
    }
    expected = iter(truth["spans"])
    count = 0
    for row, region in rows:
        if row["category"] != "region":
            continue
        block, group, event, begin, end = next(expected)
        assert (region["block"], region["group"], region["event_id"]) == (block, group, event)
        assert abs(row["ts"] + origin - begin) <= errors[str(region["sm"])] + 1
        assert abs(row["dur"] - (end - begin)) < region["resolution_ns"] + 1
        assert row["quality"] == "estimated"
        count += 1
    assert count == len(truth["spans"])
    assert next(expected, None) is None


def test_counters_that_contradict_the_timer_are_flagged():
    simulation = simulate(7, layout="ls2", blocks=8, tiles=4, clock64=True, sms=2)
    words = np.frombuffer(simulation.files["attention.npy"][128:], "<u8").copy()
    lane_words = 8 + int(words[3])
    # The counter of one lane's SM jumps between its begin and the others of that SM.
    for at in (3, 5):
        words[16 + 3 * lane_words + at] += np.uint64(50_000_000)
    trace = decode(words)
    assert stats(trace)["cuda_clock_mismatch"] > 0
    assert any(row["flags"] & Flag.CLOCK_SUSPECT for row in trace.slices.rows())


def test_gpus_are_joined_by_the_hosts_anchors():
    simulations = [simulate(3, layout="ls2", blocks=2, tiles=3, gpu=gpu) for gpu in (0, 1)]
    traces = [decode_simulation(simulation) for simulation in simulations]
    placed = align(traces)
    real = []
    for simulation, trace in zip(simulations, traces, strict=True):
        t0 = next(trace.details["cuda_buffers"].rows())["t0_ticks"]
        real.append(t0 + simulation.truth["unix_offset_ns"])
    assert abs((placed[1].shift - placed[0].shift) - (real[1] - real[0])) <= placed[1].error_ns < 3000


def test_a_gpu_is_joined_to_what_counts_from_the_unix_epoch():
    simulation = simulate(3, layout="ls2", blocks=2, tiles=3)
    gpu = decode_simulation(simulation)
    begin = next(gpu.details["cuda_buffers"].rows())["t0_ticks"] + simulation.truth["unix_offset_ns"]
    builder = TraceBuilder(TimeBase(epoch_ns=begin - 5_000_000, epoch_kind="unix"))
    builder.append("slices", track_id=builder.track("host", kind="lane", role="host_thread"), ts=0, dur=10, name="go")
    host, device = align([builder.finish(), gpu])
    assert host.shift == 0
    assert abs(device.shift - 5_000_000) <= device.error_ns < 1000


@pytest.mark.parametrize("layout", ["tirx", "flashinfer2"])
def test_a_host_anchor_by_hand(layout):
    anchors = [(900_000_000, 10**18, 300), "500000000,1000000000000000000"]
    gpus = [
        decode_simulation(
            simulate(n, layout=layout, blocks=2, tiles=2), host_anchor=anchor, device=f"GPU {n}", launch_ns=10_000
        )
        for n, anchor in enumerate(anchors)
    ]
    one, other = align(gpus)
    t0 = [next(gpu.details["cuda_buffers"].rows())["t0_ticks"] for gpu in gpus]
    assert one.shift - other.shift == (t0[0] - 900_000_000) - (t0[1] - 500_000_000)
    assert other.error_ns is None  # the second one's was not given


def test_wraps_without_proof_are_said():
    simulation = simulate(1, blocks=2, tiles=3, wrap=True)
    assert (
        stats(decode_simulation(simulation))["cuda_wrap_assumed"] == stats(decode_simulation(simulation))["cuda_wrap"]
    )
    assert "cuda_wrap_assumed" not in stats(decode_simulation(simulation, launch_ns=30_000))
    assert "cuda_wrap_assumed" not in stats(decode_simulation(simulate(1, layout="ls2", blocks=2, wrap=True)))

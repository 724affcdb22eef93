"""Where the time of the simulated pipeline went: tables equal the ground truth of the simulator to the nanosecond."""

from collections import Counter

import numpy as np
import pytest

from analysis.sweep import Sweep
from devices.cuda.helpers import decode, decode_simulation, simulate
from lanescope.analysis import idle, overlap
from lanescope.analysis.analysis_cache import AnalysisCache
from lanescope.devices.cuda.family import FAMILY
from lanescope.devices.cuda.simulate import expected_analysis
from lanescope.devices.cuda.simulate.expected_analysis import LOADS, WAITS, waits
from lanescope.devices.cuda.simulate.sim_kernel import EVENTS, Random, Setup, run
from lanescope.families.options import resolve_options
from lanescope.io import duckdb_sql
from lanescope.pipeline import session
from lanescope.trace import Table, Trace
from lanescope.trace.schema import FLOWS

SETUPS = [
    {"blocks": 4, "tiles": 6},
    {"blocks": 7, "tiles": 5, "sms": 3},
    {"blocks": 3, "tiles": 5, "groups": 4, "nested": False},
    {"blocks": 3, "tiles": 5, "groups": 2, "instants": True},
    {"blocks": 2, "tiles": 4, "groups": 5, "tick": 1},
    {"blocks": 3, "tiles": 4, "groups": 3, "tick": 1024},
    {"blocks": 3, "tiles": 4, "groups": 1},
    {"blocks": 2, "tiles": 3, "threads": "48,48,32", "wrap": True},
]


@pytest.fixture(
    scope="module", params=range(len(SETUPS)), ids=lambda n: ",".join(f"{k}={v}" for k, v in SETUPS[n].items())
)
def kernel(request):
    """A simulation, its trace, and a connection that knows all its tables."""
    simulation = simulate(seed=request.param, **SETUPS[request.param])
    trace = decode_simulation(simulation)
    with duckdb_sql.connect(trace, session.derived_tables(trace).values()) as connection:
        yield simulation.truth, trace, connection


def ask(kernel, query):
    return kernel[2].execute(query).fetchall()


def test_overlap_equals_the_ground_truth(kernel):
    expected = {(one, other): ns for one, other, ns in kernel[0]["expected"]["overlap"]}
    assert expected
    for query in (
        "select region, other_region, overlap_ns from overlap where overlap_ns > 0",
        "select region, other_region, sum(overlap_ns)::bigint from cuda_overlap group by all",
    ):
        assert {(one, other): ns for one, other, ns in ask(kernel, query)} == expected


def test_hidden_load_equals_the_ground_truth(kernel):
    truth = kernel[0]["expected"]
    query = "select total_ns, hidden_ns, exposed_ns from exposure where kind = 'load' and region is null"
    assert ask(kernel, query) == [
        (truth["load_ns"], truth["load_hidden_ns"], truth["load_ns"] - truth["load_hidden_ns"])
    ]
    parts = ask(kernel, "select region from exposure where kind = 'load' and region is not null order by 1")
    assert [name for (name,) in parts] == [EVENTS[event] for event in LOADS]


def test_idle_of_every_lane_equals_the_ground_truth(kernel):
    expected = {(block, group, kind, name): ns for block, group, kind, name, ns in kernel[0]["expected"]["idle"]}
    found = ask(
        kernel,
        'select block, "group", kind, name, sum(total_ns)::bigint from cuda_idle join cuda_lanes using (track_id) '
        "group by all",
    )
    assert {row[:4]: row[4] for row in found} == expected


def test_occupancy_equals_the_ground_truth(kernel):
    truth = kernel[0]["expected"]
    found = dict(ask(kernel, "select counted, sum(dur * active)::bigint from occupancy group by 1"))
    assert found == truth["occupancy_ns"]
    assert ask(kernel, "select sum(dur * blocks)::bigint from cuda_residency") == [(truth["resident_ns"],)]
    assert ask(kernel, "select sum(resident_ns)::bigint from cuda_blocks") == [(truth["resident_ns"],)]


def test_blocks_account_for_the_whole_window(kernel):
    rows = ask(
        kernel, "select block, busy_ns + stalled_ns + unknown_ns + vacant_ns - window_ns from cuda_blocks order by 1"
    )
    assert rows == [(block, 0) for block in range(kernel[0]["num_blocks"])]


def with_flows(trace, kernel):
    """Add the signals of the pipeline to a trace: from the end of what is waited for to the end of the wait."""
    track = {(r["block"], r["group"]): r["track_id"] for r in trace.details["cuda_lanes"].rows()}
    origin = min(int(times.min()) for times in kernel.times)
    ended = {(row["track_id"], row["name"], row["ts"] + row["dur"]): row["id"] for row in trace.slices.rows()}
    rows = []
    for wait in waits(kernel):
        for tile, block in np.ndindex(wait.begin.shape):
            source, done = track[block, int(wait.producer_group[tile, block])], int(wait.done[tile, block]) - origin
            by = ended[source, EVENTS[wait.producer], done]
            rows.append((source, done, track[block, wait.group], int(wait.end[tile, block]) - origin, by))
    names = ("src_track_id", "src_ts", "dst_track_id", "dst_ts", "src_slice_id")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    flows = Table.from_arrays(
        FLOWS,
        {"id": range(len(rows)), "kind": ["signal"] * len(rows), **columns, "dst_slice_id": [None] * len(rows)},
    )
    return Trace(trace.time, {**trace.tables(), "flows": flows}, trace.details)


def charged(trace, table, quality):
    """(group, wait, producer group, producer) -> stretches, blocked and latency, from the rows of ``idle``."""
    groups = {r["track_id"]: r["group"] for r in trace.details["cuda_lanes"].rows()}
    found = {}
    for row in table.rows():
        if row["kind"] == "wait" and row["quality"] == quality:
            key = (groups[row["track_id"]], row["name"], groups[row["producer_track_id"]], row["waits_for"])
            parts = (1, row["blocked_ns"], row["latency_ns"])
            found[key] = tuple(a + b for a, b in zip(found.get(key, (0, 0, 0)), parts, strict=True))
    return found


@pytest.mark.parametrize("number", range(6))
def test_waits_are_charged_to_their_producers_through_flows(number):
    options = resolve_options(FAMILY.sim_options, SETUPS[number], what="simulator cuda")
    kernel = run(Setup.of(options), Random(number))
    trace = decode_simulation(FAMILY.simulate(options, number))
    table = idle.idle(AnalysisCache(with_flows(trace, kernel)), "block")
    expected = {tuple(row[:4]): tuple(row[4:]) for row in expected_analysis.expected(kernel)["charged"]}
    # Two groups that end together are one producer as good as the other; which, the sums do not tell.
    assert merged(charged(trace, table, "exact")) == merged(expected)


def merged(found):
    total = Counter()
    for (group, wait, _, producer), parts in found.items():
        for name, part in zip(("count", "blocked", "latency"), parts, strict=True):
            total[group, wait, producer, name] += part
    return total


def test_without_flows_most_of_the_waiting_is_charged_right():
    simulation = simulate(seed=5, blocks=16, tiles=40)
    trace = decode_simulation(simulation)
    found = merged(charged(trace, idle.idle(AnalysisCache(trace), "block"), "inferred"))
    expected = merged({tuple(row[:4]): tuple(row[4:]) for row in simulation.truth["expected"]["charged"]})
    blocked = [key for key in expected if key[3] == "blocked"]
    assert len(blocked) == 3
    for key in blocked:
        assert found[key] == expected[key]
    # What is not blocked at all is not charged without a flow, or to something that ended by chance.
    wrong = sum(n for key, n in found.items() if key[3] == "blocked" and key not in blocked)
    assert wrong <= 0.001 * sum(expected[key] for key in blocked)


@pytest.mark.parametrize("seed", range(3))
def test_a_sweep_over_every_nanosecond_finds_the_same(seed):
    simulation = simulate(seed=seed, blocks=2, tiles=2, groups=3, tick=16)
    trace = decode_simulation(simulation)
    sweep = Sweep(trace)
    names = trace.tracks["name"].tolist()
    expected = {(int(names[unit].split()[1]), *pair): ns for (unit, *pair), ns in sweep.overlaps().items()}
    table = session.derived_tables(trace)["cuda_overlap"].table
    assert {(r["block"], r["region"], r["other_region"]): r["overlap_ns"] for r in table.rows()} == expected
    summed = Counter()
    for (_, one, other), ns in expected.items():
        summed[one, other] += ns
    assert {(one, other): ns for one, other, ns in simulation.truth["expected"]["overlap"]} == summed
    lanes_waiting = Counter()
    for _, _, kind, name, ns in simulation.truth["expected"]["idle"]:
        lanes_waiting[kind, name] += ns
    by_region = Counter(row["name"] for rows in sweep.doing.values() for row in rows)
    for event in WAITS:
        assert lanes_waiting["wait", EVENTS[event]] == by_region[EVENTS[event]]


def test_the_comparison_notices_one_wrong_stamp():
    simulation = simulate(seed=2, blocks=2, tiles=3)
    (_, data), *_ = simulation.files.items()
    words = np.frombuffer(data[128:], "<u8").copy()
    words[40] += np.uint64(32 << 32)
    truth = {(a, b): ns for a, b, ns in simulation.truth["expected"]["overlap"]}
    trace = decode(words, beside=dict(list(simulation.files.items())[1:]), name="attention.npy")
    rows = overlap.overlap(AnalysisCache(trace)).rows()
    assert {(r["region"], r["other_region"]): r["overlap_ns"] for r in rows if r["overlap_ns"]} != truth


@pytest.mark.parametrize("layout", ["flashinfer1", "flashinfer2", "warpscope", "ls2"])
@pytest.mark.parametrize("seed", range(2))
def test_every_layout_tells_the_same(layout, seed):
    simulation = simulate(seed=seed, blocks=5, tiles=6, sms=2, groups=3 + seed, layout=layout)
    trace = decode_simulation(simulation)
    truth = simulation.truth["expected"]
    tables = session.derived_tables(trace)
    names = {name for name, _, _ in truth["overlap"]}  # LS2 also records when loads are in flight
    found = {
        (r["region"], r["other_region"]): r["overlap_ns"] for r in tables["overlap"].table.rows() if r["overlap_ns"]
    }
    assert {pair: ns for pair, ns in found.items() if names.issuperset(pair)} == {
        (one, other): ns for one, other, ns in truth["overlap"]
    }
    waiting = Counter()
    for _, group, kind, name, ns in truth["idle"]:
        if kind == "wait":
            waiting[group, name] += ns
    groups = {r["track_id"]: r["group"] for r in trace.details["cuda_lanes"].rows()}
    rows = [r for r in tables["cuda_idle"].table.rows() if r["kind"] == "wait"]
    total = Counter()
    for row in rows:
        total[groups[row["track_id"]], row["name"]] += row["total_ns"]
    assert total == waiting


@pytest.mark.parametrize("options", [{}, {"groups": 5}, {"ring": True}, {"payload": True, "sms": 3}])
def test_flows_of_a_buffer_charge_waits_to_their_producers(options):
    simulation = simulate(seed=9, **{"blocks": 6, "tiles": 9, "layout": "ls2", **options})
    trace = decode_simulation(simulation)
    # The buffer has no signal by which one computing group gives its turn to the next one.
    truth = [row for row in simulation.truth["expected"]["charged"] if row[3] != "qk"]
    expected = merged({tuple(row[:4]): tuple(row[4:]) for row in truth})
    found = merged(charged(trace, session.derived_tables(trace)["idle"].table, "exact"))
    assert {key[:2] for key in expected} >= {(0, "wait_empty"), (1, "wait_full")}
    assert {key: n for key, n in found.items() if key[:2] in {key[:2] for key in expected}} == expected


def test_loads_in_flight_belong_to_their_block():
    trace = decode_simulation(simulate(seed=4, blocks=3, tiles=5, layout="ls2"))
    tables = session.derived_tables(trace)
    rows = {(r["block"], r["other_region"]): r for r in tables["cuda_overlap"].table.rows() if r["region"] == "fetch"}
    assert {block for block, _ in rows} == {0, 1, 2}
    # Asynchronous: while a load is in flight its issuer loads the next one, or waits.
    assert all(rows[block, "fetch"]["region_ns"] > rows[block, "qk"]["overlap_ns"] > 0 for block in range(3))


# A lane that ends with the buffer, and without a finalize, may have lost records: FlashInfer needs room to spare.
@pytest.mark.parametrize(("layout", "slots"), [("flashinfer2", 3000), ("ls2", 0)])
def test_multiprocessors_are_told_where_the_layout_says_them(layout, slots):
    trace = decode_simulation(simulate(seed=1, blocks=7, tiles=4, sms=3, layout=layout, slots=slots))
    rows = {row["sm"]: row for row in session.derived_tables(trace)["cuda_sms"].table.rows()}
    assert {sm: row["blocks"] for sm, row in rows.items()} == {0: 3, 1: 2, 2: 2}
    for row in rows.values():
        assert row["busy_ns"] + row["stalled_ns"] + row["unknown_ns"] + row["vacant_ns"] == row["window_ns"]
        assert 0 <= row["tail_ns"] <= row["vacant_ns"]
    assert min(row["tail_ns"] for row in rows.values()) == 0
    # Three waves on one, two on the others: what is left is their tail.
    assert rows[1]["tail_ns"] > rows[0]["tail_ns"]
    resident = Counter()
    for row in session.derived_tables(trace)["cuda_sm_residency"].table.rows():
        assert row["blocks"] == 1
        resident[row["sm"]] += row["dur"]
    assert resident == {sm: row["resident_ns"] for sm, row in rows.items()}
    spread = {row["region"]: row for row in session.derived_tables(trace)["cuda_region_stats"].table.rows()}
    assert spread["qk"]["instances"] == 3
    assert spread["qk"]["slowest_instance"] == "sm 0"
    assert 1.0 < spread["qk"]["imbalance"] < 9 / 7 * 1.1


def test_several_gpus_have_multiprocessors_of_their_own(tmp_path):
    for gpu in range(2):
        simulation = simulate(seed=gpu, blocks=3, tiles=2, sms=2, layout="ls2", gpu=gpu)
        for name, content in simulation.files.items():
            (tmp_path / name.replace("attention", f"gpu{gpu}")).write_bytes(content)
    trace = session.merge([session.open(tmp_path / f"gpu{gpu}.npy") for gpu in range(2)])
    rows = list(session.derived_tables(trace)["cuda_sms"].table.rows())
    assert [(row["sm"], row["blocks"]) for row in rows] == [(0, 2), (1, 1)] * 2
    assert len({row["instance"] for row in rows}) == 4


def test_a_layout_without_multiprocessors_has_no_rows_of_them():
    trace = decode_simulation(simulate(seed=1, blocks=3, tiles=2))
    assert len(session.derived_tables(trace)["cuda_sms"].table) == 0
    assert session.derived_tables(trace)["cuda_region_stats"].table["instances"].max() == 3


def test_what_is_lost_is_no_idle_time():
    simulation = simulate(seed=3, blocks=4, tiles=10, overflow=True)
    trace = decode_simulation(simulation)
    assert len(trace.gaps)
    full = simulate(seed=3, blocks=4, tiles=10)
    rows = overlap.exposure(AnalysisCache(trace), "block").rows()
    (row,) = [r for r in rows if r["kind"] == "load" and r["region"] is None]
    truth = full.truth["expected"]
    # What is said to be exposed is: losses only make the numbers smaller, and what may be either is unknown.
    assert row["unknown_ns"] > 0
    assert row["hidden_ns"] <= truth["load_hidden_ns"]
    assert row["exposed_ns"] <= truth["load_ns"] - truth["load_hidden_ns"]
    stalled = {r["block"]: r["stalled_ns"] for r in session.derived_tables(trace)["cuda_blocks"].table.rows()}
    really = {
        r["block"]: r["stalled_ns"] for r in session.derived_tables(decode_simulation(full))["cuda_blocks"].table.rows()
    }
    assert all(ns <= really[block] for block, ns in stalled.items())
    assert sum(r["unknown_ns"] for r in session.derived_tables(trace)["cuda_blocks"].table.rows()) > 0

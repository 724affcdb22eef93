"""How control processors start and end a run whose cores schedule themselves: ``aicpu_lifecycle_records``."""

import pytest

from devices.ascend.helpers import decode, decode_simulated, records, simulated, stats
from lanescope.analysis import check
from lanescope.devices.ascend.formats.layout import STAGES

#: As the runtime writes it: threads from 0 on, of which the first configures the run; 0 where a thread has no part.
LEADER = {
    "aicpu_thread_id": 0,
    "handshake_start_cycles": 1000,
    "handshake_complete_cycles": 1010,
    "config_start_cycles": 1020,
    "topology_complete_cycles": 1030,
    "context_publish_start_cycles": 1030,
    "context_publish_complete_cycles": 1040,
    "bootstrap_wait_start_cycles": 1050,
    "bootstrap_complete_cycles": 1060,
    "register_release_start_cycles": 1070,
    "register_release_end_cycles": 1080,
    "exit_signal_start_cycles": 1810,
    "exit_signal_end_cycles": 1820,
    "exit_wait_start_cycles": 1830,
    "exit_wait_end_cycles": 1840,
}
OTHER = LEADER | {"aicpu_thread_id": 1, "config_start_cycles": 0, "topology_complete_cycles": 0}
CONTRADICTS = "ascend_lifecycle_contradicts"


def capture(*lifecycle):
    """Return a capture of the second level of a run that cores scheduled."""
    made = records([[0, 7, 7, 1200, 1800, 10, 5]], key="chip_swimlane_level", cores=("aiv",), clock=1_000_000_000)
    del made["aicpu_tasks"]
    made["metadata"]["runtime"] = "host_build_graph"
    made["scheduler_tasks"] = {"producer": "aicore", "records": [[0, 7, 1150, 1805, 5]]}
    return made | {"aicpu_lifecycle_records": list(lifecycle)}


def stages_of(trace):
    """Return lane, name and stamps of what is drawn of control processors."""
    names = dict(zip(trace.tracks.values("id").tolist(), trace.tracks.values("name"), strict=True))
    slices = trace.slices
    columns = (slices.values(name).tolist() for name in ("track_id", "ts_ticks", "dur_ticks"))
    found = [
        (names[track], name, begin, begin + length)
        for name, category, track, begin, length in zip(
            slices.values("name"), slices.values("category"), *columns, strict=True
        )
        if category == "lifecycle"
    ]
    return sorted(found)


def test_stages_are_drawn_on_a_lane_for_each_thread():
    trace = decode(capture(LEADER, OTHER))
    expected = [
        (f"AICPU_{row['aicpu_thread_id']}", name, row[begin], row[end])
        for row in (LEADER, OTHER)
        for name, begin, end in STAGES
        if row[begin]
    ]
    assert stages_of(trace) == sorted(expected)
    assert len(expected) == 13
    # The run begins with the first stamp of a control processor.
    assert int(trace.slices.values("ts").min()) == 0
    lost = {row["unit"]: row["lost"] for row in trace.accounting.rows()}
    assert lost["byte"] == 0
    assert set(stats(trace)) == {"unverified_encoding"}
    assert not list(check.run(trace))


def test_a_stage_that_did_not_end_is_open():
    trace = decode(capture(LEADER | {"exit_wait_end_cycles": 0}))
    is_open = trace.slices.valid("dur") == 0
    assert trace.slices.values("name")[is_open].tolist() == ["exit_wait"]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"handshake_complete_cycles": 990}, CONTRADICTS),
        ({"register_release_start_cycles": 1005}, CONTRADICTS),
        ({"exit_wait_start_cycles": 1815}, CONTRADICTS),
        ({"exit_signal_start_cycles": 1075}, CONTRADICTS),
        ({"aicpu_thread_id": 1}, CONTRADICTS),
        ({"bootstrap_wait_start_cycles": 0}, "ascend_missing_start"),
        ({"exit_wait_end_cycles": "late"}, "ascend_invalid_row"),
    ],
)
def test_what_contradicts_itself_is_counted(changes, name):
    assert stats(decode(capture(LEADER | changes)))[name] == 1


@pytest.mark.parametrize(("begin", "end"), [stage[1:] for stage in STAGES])
def test_each_stage_ends_behind_its_begin(begin, end):
    exchanged = {begin: LEADER[end], end: LEADER[begin]}
    assert stats(decode(capture(LEADER | exchanged)))[CONTRADICTS] == 1


def test_stamps_that_no_run_reaches_are_left_out():
    content = capture(LEADER | {"exit_wait_end_cycles": 1 << 61})
    content["metadata"]["clock_freq_hz"] = 50_000_000
    trace = decode(content)
    assert stats(trace)["ascend_timestamp_out_of_range"] == 1
    assert "exit_wait" not in {name for _, name, *_ in stages_of(trace)}


def test_only_the_first_thread_configures():
    assert stats(decode(capture(LEADER, LEADER | {"aicpu_thread_id": 1})))[CONTRADICTS] == 1
    assert stats(decode(capture(LEADER, OTHER | {"aicpu_thread_id": 0})))[CONTRADICTS] == 1


def test_elements_of_another_form_are_lost_and_counted():
    content = capture(LEADER) | {"aicpu_lifecycle_records": [LEADER, [11, 12]]}
    trace = decode(content)
    assert stats(trace)["ascend_invalid_row"] == 1
    assert [row["lost"] for row in trace.accounting.rows() if row["unit"] == "byte"] == [len("[11, 12]")]
    assert len(stages_of(trace)) == 7


@pytest.mark.parametrize("seed", range(3))
def test_simulated_stages_are_read_back(seed):
    made = simulated(seed, format_version="v4", host=True, level=2, clock=1_000_000_000, tasks=60, threads=3)
    trace = decode_simulated(made)
    expected = [(f"AICPU_{row['thread']}", row["stage"], row["begin"], row["end"]) for row in made.truth["stages"]]
    assert stages_of(trace) == sorted(expected)
    assert len(expected) == 3 * 7 - 2
    assert not [finding for finding in check.run(trace) if finding.severity != "notice"]


#: One element a core, as older writers have it: a thread stamps what it does for each of its cores.
CORE = {
    "worker_id": 6,
    "aicpu_thread_id": 1,
    "core_type": "aiv",
    "physical_core_id": 9,
    "handshake_observed_cycles": 1000,
    "handshake_partition_complete_cycles": 1010,
    "config_start_cycles": 1020,
    "topology_complete_cycles": 1030,
    "context_publish_complete_cycles": 1040,
    "bootstrap_wait_start_cycles": 1050,
    "bootstrap_complete_cycles": 1060,
    "register_release_cycles": 1070,
    "exit_signal_cycles": 1810,
    "exit_ack_cycles": 1840,
}
CORE_STAGES_DRAWN = [
    ("handshake", 1000, 1010),
    ("configuration", 1020, 1030),
    ("context_publish", 1040, 1040),
    ("bootstrap_wait", 1050, 1060),
    ("register_release", 1070, 1070),
    ("exit", 1810, 1840),
]


def test_older_writers_have_an_element_for_each_core():
    trace = decode(capture(CORE, CORE | {"worker_id": 2, "aicpu_thread_id": 0}))
    expected = [(lane, *stage) for lane in ("AICPU_0 Core_2", "AICPU_1 Core_6") for stage in CORE_STAGES_DRAWN]
    assert stages_of(trace) == sorted(expected)
    assert int(trace.slices.values("ts").min()) == 0
    assert set(stats(trace)) == {"unverified_encoding"}
    assert not [finding for finding in check.run(trace) if finding.severity != "notice"]


def test_the_oldest_writers_stamp_the_release_and_the_end_of_a_core():
    known = ("worker_id", "aicpu_thread_id", "register_release_cycles", "exit_signal_cycles", "exit_ack_cycles")
    trace = decode(capture({name: CORE[name] for name in known}))
    assert [name for _, name, *_ in stages_of(trace)] == ["exit", "register_release"]
    trace = decode(capture(CORE | {"exit_ack_cycles": 0}))
    is_open = trace.slices.valid("dur") == 0
    assert trace.slices.values("name")[is_open].tolist() == ["exit"]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"handshake_partition_complete_cycles": 990}, CONTRADICTS),
        ({"exit_ack_cycles": 1800}, CONTRADICTS),
        ({"register_release_cycles": 1005}, CONTRADICTS),
        ({"exit_signal_cycles": 1065}, CONTRADICTS),
        ({"config_start_cycles": 0}, "ascend_missing_start"),
        ({"exit_ack_cycles": "late"}, "ascend_invalid_row"),
        ({"claim_cycles": 5}, "ascend_unknown_key"),
    ],
)
def test_what_contradicts_itself_in_the_element_of_a_core_is_counted(changes, name):
    assert stats(decode(capture(CORE | changes)))[name] == 1


def test_a_core_has_one_element():
    assert stats(decode(capture(CORE, CORE)))[CONTRADICTS] == 1
    assert CONTRADICTS not in stats(decode(capture(CORE, CORE | {"worker_id": 7})))


def test_schemas_that_no_writer_has_are_counted():
    content = capture(LEADER)
    content["scheduler_tasks"]["schema_version"] = 1
    trace = decode(content)
    assert set(stats(trace)) == {"unverified_encoding"}
    assert not [row for row in trace.accounting.rows() if row["unit"] == "byte" and row["lost"]]
    content["scheduler_tasks"]["schema_version"] = 2
    assert stats(decode(content))["ascend_unknown_value"] == 1

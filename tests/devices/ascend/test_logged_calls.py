"""Calls in the log of the host: as rounds, and on the clock of the device by its counter."""

import re
from pathlib import Path

import pytest

from devices.ascend.helpers import decode, decode_file, decode_simulated, records, simulated, stats
from devices.ascend.test_host_log import ANCHORS, NAME, RUN, span, spans
from lanescope.analysis import check
from lanescope.devices.ascend.analysis.report import remarks_on, summarize

WALL = "chip.run.runner_run.device_wall"
#: Around the executions of ``capture``, which are at 1990 to 3010.
AROUND = (1900, 3040)
LENGTH = 22_800


def wall(begin, end, *, inv=1, pid=7, clock=50_000_000, length=None, device=0, name=WALL):
    length = (end - begin) * 20 if length is None else length
    readings = f"dev_start_cycle={begin} dev_end_cycle={end} dev_cnt_hz={clock}"
    return span(name, 0, length, depth=2, inv=inv, pid=pid, more=f"clk=dev dev_id={device} {readings}")


def call(inv, ts, dur=60_000, *, pid=7, more="", hid="0", name="chip.run"):
    inner = span(f"{name}.runner_run", ts + 1000, dur - 2000, depth=1, inv=inv, pid=pid)
    return tuple(
        line.replace("hid=0", f"hid={hid}") for line in (inner, span(name, ts, dur, inv=inv, pid=pid, more=more))
    )


def capture(*lines, anchors=None, beside=None, epochs=(1,), level=2):
    """Decode an execution, one in each run of a file of version 4 if there are several."""
    metadata = {} if anchors is None else {"clock_anchors": anchors}
    text = "".join(f"{line}\n" for line in lines).encode()
    if epochs == (1,):
        content = records([[0, 1, 1, 2000, 3000, 0]], [[0, 1, 1990, 3010]], metadata=metadata)
        return decode(content, beside={NAME: text, **(beside or {})})
    metadata["runtime"] = "tensormap_and_ringbuffer"
    rows = [[0, 1, 1, 2000 + 10_000 * at, 3000 + 10_000 * at, 0, epoch] for at, epoch in enumerate(epochs)]
    content = records(rows, level=1, key="chip_swimlane_level", metadata=metadata)
    return decode(content, beside={NAME: text})


def walls(trace):
    """Return run, start and length on the timeline, and quality of the spans of the device that have a place."""
    slices = trace.slices
    return [
        (row["run"], int(slices["ts"][at]), int(slices["dur"][at]), str(slices["quality"][at]))
        for row in trace.details["ascend_host_spans"].rows()
        if row["clock"] == "device" and (at := row["slice_id"]) is not None
    ]


# --- on the clock of the device ---------------------------------------------------------------------------------------


def test_readings_of_the_counter_place_the_span_of_the_device():
    trace = capture(*call(1, 90_000), wall(*AROUND))
    assert walls(trace) == [(1, 0, LENGTH, "exact")]
    kernel = trace.details["ascend_tasks"]["slice_id"][0]
    assert (trace.slices["ts"][kernel], trace.slices["ts_ticks"][kernel]) == (2000, 2000)
    assert stats(trace) == {"ascend_host_spans_unplaced": 2}
    assert trace.time.epoch_ns == 1900 * 20


def test_parts_of_the_span_have_no_known_origin():
    part = span(f"{WALL}.sched", 0, 10, depth=3, more="clk=dev")
    trace = capture(*call(1, 90_000), wall(*AROUND), part)
    assert (len(walls(trace)), stats(trace)["ascend_host_spans_of_device"]) == (1, 1)


@pytest.mark.parametrize(
    "lines",
    [
        (wall(1995, 3100),),  # it began after the first dispatch
        (wall(1900, 3005),),  # it ended before the last finish
        (wall(*AROUND, clock=1_000_000_000, length=1140),),  # another counter
        (wall(*AROUND), wall(*AROUND, inv=2)),  # two fit
        (wall(*AROUND), wall(1800, 3200, pid=8, device=1)),  # another chip that started at the same time
        (wall(0, 3100),),  # 0: never read
    ],
)
def test_without_a_proof_it_has_no_place(lines):
    trace = capture(*call(1, 90_000), *lines)
    assert walls(trace) == []
    assert stats(trace)["ascend_host_spans_of_device"] == len(lines)


def test_the_host_says_of_which_run_the_capture_is():
    # Two chips: the run is known by its host.
    trace = capture(*RUN, wall(1920, 3030), wall(*AROUND, pid=8, device=1), span(ts=190_000, pid=8), anchors=ANCHORS)
    assert [row[:1] for row in walls(trace)] == [(1,)]
    assert "ascend_host_spans_contradict" not in stats(trace)


@pytest.mark.parametrize(
    ("lines", "count"),
    [
        ((wall(*AROUND),), 0),
        ((wall(1995, 3040),), 1),  # the span of this run is not around its records
        ((wall(1900, 3005),), 1),
        ((wall(*AROUND, length=LENGTH + 1),), 0),  # rounding
        ((wall(*AROUND, length=LENGTH + 2),), 1),
    ],
)
def test_spans_of_the_device_agree_with_the_records_of_their_run(lines, count):
    found = stats(capture(*RUN, *lines, anchors=ANCHORS))
    assert found.get("ascend_host_spans_contradict", 0) == count


def test_spans_of_the_device_lie_in_those_of_the_host_around_them():
    # 2900 cycles in 40 us of the host, which it has not, and a span that begins before the host waits for it.
    for at in ((900, 3040), (1040, 3040)):
        trace = capture(*RUN, wall(*at), anchors=ANCHORS)
        assert (walls(trace), "ascend_host_spans_contradict" in stats(trace)) == ([], True)


def test_each_run_of_a_file_has_its_span():
    lines = [
        line
        for inv in (1, 2)
        for line in (*call(inv, 90_000 * inv), wall(10_000 * inv - 8100, 10_000 * inv - 6900, inv=inv))
    ]
    trace = capture(*lines, epochs=(1, 2))
    assert walls(trace) == [(1, 0, 24_000, "exact"), (2, 200_000, 24_000, "exact")]


def test_calls_that_number_their_run_are_found_by_it():
    lines = [*call(4, 90_000, more="run_epoch=3"), wall(1900, 3100, inv=4), wall(1900, 3100, inv=5)]
    assert [row[0] for row in walls(capture(*lines, epochs=(3, 9)))] == [4]
    lines[2] = wall(2100, 3100, inv=4)
    trace = capture(*lines, epochs=(3, 9))
    assert (walls(trace), stats(trace)["ascend_host_spans_contradict"]) == ([], 1)


def test_a_long_span_of_the_device_makes_no_record_suspect():
    rows = [
        [core, core * 20 + number, number + 1, 1_000_000 + 50 * number + core, 1_000_035 + 50 * number + 2 * core, 0]
        for core in range(6)
        for number in range(20)
    ]
    sent = [[row[0], row[2], row[3] - 5, row[4] + 5] for row in rows]
    text = "\n".join([*call(1, 90_000, 900_000), wall(980_000, 1_020_000)]).encode()
    trace = decode(records(rows, sent, cores=("aic",) * 6), beside={NAME: text})
    assert len(walls(trace)) == 1
    assert {(finding.code, finding.severity) for finding in check.run(trace)} <= {
        ("LS305", "notice"),
        ("LS501", "notice"),
    }
    assert set(trace.details["ascend_cores"]["window_ticks"].tolist()) == {995}


@pytest.mark.parametrize("seed", range(4))
def test_simulated_calls_of_later_versions_are_placed(seed):
    trace = decode_simulated(simulated(seed, format_version="v4", tasks=60, log=True))
    assert [row[0] for row in walls(trace)] == [1]
    table = trace.slices
    (at,) = (row["slice_id"] for row in trace.details["ascend_host_spans"].rows() if row["slice_id"] is not None)
    ends = table["ts"] + table["dur"]
    assert (table["ts"][at], ends[at]) == (table["ts"].min(), ends.max())
    assert stats(trace)["ascend_host_spans_of_device"] == 1
    assert "ascend_host_spans_contradict" not in stats(trace)


def test_the_point_of_device_boundaries_is_on_the_clock_of_the_host():
    point = span(
        "chip.run.runner_run.device_boundaries", 139_000, 0, depth=2, more="clk=dev dev_id=0 aic_start=5 aic_rc=0"
    )
    trace = capture(*RUN, point, anchors=ANCHORS)
    assert spans(trace)[-1][1:] == (49_000, 0, 139_000)


# --- as rounds --------------------------------------------------------------------------------------------------------


def rounds(trace):
    table = summarize("round", trace)
    return list(table.rows()), list(remarks_on("round", table))


def test_calls_are_rounds():
    lines = [
        *(
            line
            for inv, ts in ((1, 1_000_000), (2, 1_300_000), (3, 1_700_000))
            for line in call(inv, ts, 200_000 + inv)
        ),
        wall(1900, 3100),
        wall(8100, 9000, inv=2),
        span(f"{WALL}.orch", 100, 300, depth=3, inv=2, more="clk=dev"),
        span(f"{WALL}.sched", 250, 500, depth=3, inv=2, more="clk=dev"),
        *call(9, 2_000_000, 50_000, hid="ab"),
        span("node.submit", 3_000_000, 5, inv=0),
    ]
    found, told = rounds(capture(*lines))
    keys = (
        "group",
        "start",
        "length",
        "pause",
        "period",
        "device",
        "effective",
        "orchestrator",
        "scheduler",
        "device_pause",
    )
    assert [tuple(row[key] for key in keys) for row in found] == [
        ("1", 0, 200_001, None, None, 24_000, None, None, None, None),
        ("2", 300_000, 200_002, 99_999, 300_000, 18_000, 650, 300, 500, 100_000),
        ("3", 700_000, 200_003, 199_998, 400_000, None, None, None, None, None),
        ("9", 0, 50_000, None, None, None, None, None, None, None),
    ]
    assert [row["series"].removeprefix("log: function ") for row in found] == [
        *["0 of process 7"] * 3,
        "ab of process 7",
    ]
    # The first is that of the capture, by its counter.
    assert [row["executions"] for row in found] == [1, None, None, None]
    assert told[0].startswith(
        "3 calls (log: function 0 of process 7), from start to start: median 300,000 ns; on the host"
    )
    assert told[0].endswith("on the device: median 18,000 ns, of 2")


def test_rounds_of_the_file_stand_next_to_those_of_the_log():
    lines = [line for inv in (1, 2) for line in call(inv, 90_000 * inv)]
    found, _ = rounds(capture(*lines, epochs=(1, 2)))
    assert [row["series"] for row in found] == ["run", "run", "log: function 0", "log: function 0"]


def test_calls_of_earlier_logs_have_another_name():
    found, _ = rounds(capture(*call(1, 90_000, name="simpler_run"), *call(2, 190_000, name="simpler_run")))
    assert [row["period"] for row in found] == [None, 100_000]


@pytest.mark.parametrize("changed", ["dev_id=1", "dev_cnt_hz=1", "dev_start_cycle=x"])
def test_counters_of_two_devices_are_not_compared(changed):
    key = changed.partition("=")[0]
    second = re.sub(rf"{key}=\d+", changed, wall(8100, 9000, inv=2))
    found, _ = rounds(capture(*call(1, 90_000), wall(1900, 3100), *call(2, 190_000), second))
    assert found[1]["device_pause"] is None


SPAN = re.compile(r"\[STRACE\].* inv=(\d+) hid=(\w+) .*name=(\S+) ts=(\d+) dur=(\d+)")


@pytest.mark.parametrize("name", ["vec_l4", "pa_l4", "graph_l4", "hpred_l4"])
def test_rounds_of_the_producer_are_those_of_its_log(corpus, name):
    folder = Path(corpus, "producers/ascend")
    log = folder / "logs" / f"{name}.log"
    times = {}
    for inv, _, span_name, ts, dur in SPAN.findall(log.read_text()):
        times.setdefault(inv, {})[span_name] = (int(ts), int(dur))
    first = min(named["chip.run"][0] for named in times.values())
    expected = []
    for inv, named in times.items():
        orch, sched = (named.get(f"{WALL}.{part}") for part in ("orch", "sched"))
        both = [part for part in (orch, sched) if part]
        effective = max(sum(part) for part in both) - min(part[0] for part in both) if both else None
        start, length = named["chip.run"]
        device = named[WALL][1]
        expected.append((inv, start - first, length, device, effective, orch and orch[1], sched and sched[1]))
    for number, path in enumerate(sorted((folder / name).iterdir()), 1):
        found, _ = rounds(decode_file(path / "chip_swimlane_records.json", log=str(log)))
        found = [row for row in found if row["series"].startswith("log")]
        keys = ("group", "start", "length", "device", "effective", "orchestrator", "scheduler")
        assert [tuple(row[key] for key in keys) for row in found] == expected
        # Runs that the device orchestrates have no clock in common with the log.
        of_file = {row["group"] for row in found if row["executions"] is not None}
        assert of_file == ({str(number)} if name in ("graph_l4", "hpred_l4") else set())

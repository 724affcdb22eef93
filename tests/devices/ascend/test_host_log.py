"""Spans and messages of the log of a host next to a capture."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.ascend.helpers import (
    assert_all_bytes_count,
    decode,
    decode_file,
    decode_simulated,
    records,
    simulated,
    stats,
)
from devices.ascend.test_host_phases import ANCHORS, line, row
from effort import some
from lanescope.devices.ascend.formats.strace import encode_log, read_log
from lanescope.errors import InputError

NAME = "host.7.log"
PREFIX = "[mono_ns=1000000][T0x7f][TIMING] emit_host_span: "


def span(name="chip.run", ts=90_000, dur=60_000, *, pid=7, tid=7, inv=1, depth=0, more=""):
    """Return one line of a log."""
    return (
        f"{PREFIX}[STRACE] v=1 pid={pid} tid={tid} inv={inv} hid=0 depth={depth} name={name} ts={ts} dur={dur} {more}"
    )


#: The run of the capture, and one after it.
RUN = (span("chip.run.bind", 91_000, 9000, depth=1), span("chip.run.runner_run", 101_000, 40_000, depth=1), span())
NEXT = span(ts=190_000, inv=2)
MESSAGES = ("[mono_ns=95000][T0x1a][WARN] bind: slow: 3 ms", "[mono_ns=1000][T0x1a][INFO] f: early")


def capture(*lines, anchors=ANCHORS, beside=None, name=NAME, **options):
    """Decode one execution, host times 120000 to 140000, next to a log."""
    metadata = {} if anchors is None else {"clock_anchors": anchors}
    content = records([[0, 1, 1, 2000, 3000, 0]], [[0, 1, 1990, 3010]], metadata=metadata)
    text = "".join(f"{text}\n" for text in lines).encode()
    return decode(content, beside={name: text, **(beside or {})}, **options)


def spans(trace):
    """Return (name, begin and length on the timeline, recorded start) of the spans, None where they have no slice."""
    slices = trace.slices
    return [
        (
            entry["name"],
            *((None, None) if at is None else (int(slices["ts"][at]), int(slices["dur"][at]))),
            entry["start_ns"],
        )
        for entry in trace.details["ascend_host_spans"].rows()
        for at in [entry["slice_id"]]
    ]


def test_spans_of_the_run_are_on_the_axis_of_the_cores():
    trace = capture(*RUN, NEXT)
    assert spans(trace) == [
        ("chip.run.bind", 1000, 9000, 91_000),
        ("chip.run.runner_run", 11_000, 40_000, 101_000),
        ("chip.run", 0, 60_000, 90_000),
        ("chip.run", None, None, 190_000),
    ]
    kernel = trace.details["ascend_tasks"]["slice_id"][0]
    assert trace.slices["ts"][kernel] == 30_000
    assert stats(trace) == {"ascend_host_spans_of_others": 1}
    assert trace.inputs["role"].tolist() == ["main", "log"]
    quality = trace.slices["quality"][trace.details["ascend_host_spans"]["slice_id"][:3]]
    assert set(quality.tolist()) == {"estimated"}


def test_spans_and_phases_of_a_thread_share_its_lane():
    beside = {"host_phase_records.jsonl": line(row(start=95_000, end=96_000)).encode()}
    trace = capture(*RUN, beside=beside)
    lanes = {trace.slices["track_id"][at] for at in trace.details["ascend_host_spans"]["slice_id"]}
    lanes |= {trace.slices["track_id"][at] for at in trace.details["ascend_host_phases"]["slice_id"]}
    assert [str(trace.tracks["name"][at]) for at in lanes] == ["Thread 7"]
    assert len(trace.details["ascend_host_phases"]) == 1
    assert stats(trace) == {}


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        (RUN, {"anchors": None}),  # nothing joins the clocks
        ((NEXT,), {}),  # the run is not in the log
        ((*RUN, span(pid=8)), {}),  # two processes ran at that time
        ((span(ts=125_000, dur=9000),), {}),  # the execution began before the run
        (RUN, {"beside": {"host_phase_records.jsonl": line(row(), pid=9).encode()}}),  # another process
        (RUN, {"beside": {"host_phase_records.jsonl": line(row(), inv=2).encode()}}),  # another run of it
    ],
)
def test_without_a_proof_no_span_is_placed(lines, more):
    trace = capture(*lines, **more)
    assert {entry[1] for entry in spans(trace)} == {None}
    assert stats(trace)["ascend_host_spans_unplaced"] == len(lines)


def test_processes_are_told_apart_by_what_the_host_recorded():
    beside = {"host_phase_records.jsonl": line(row()).encode()}
    trace = capture(*RUN, span(pid=8), beside=beside)
    assert [entry[1] for entry in spans(trace)] == [1000, 11_000, 0, None]


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (RUN[:2], {"ascend_host_spans_unplaced": 2, "ascend_host_span_unmatched": 2}),
        ((*RUN, span("chip.run.bind.args", 92_000, 10, depth=2)), {}),
        ((*RUN, span("chip.run.bind.args", 92_000, 8001, depth=2)), {"ascend_host_spans_contradict": 1}),
        ((*RUN, span("chip.run.bind.args", 92_000, 10, depth=3)), {"ascend_host_spans_contradict": 1}),
        ((*RUN, span("chip.run.bond.args", 92_000, 10, depth=2)), {"ascend_host_span_unmatched": 1}),
        ((*RUN, RUN[0]), {"ascend_host_spans_contradict": 1}),
        ((*RUN[1:], RUN[0].replace("hid=0", "hid=1")), {"ascend_host_spans_contradict": 1}),
    ],
)
def test_spans_lie_in_those_around_them(changed, expected):
    assert stats(capture(*changed)) == expected


def test_both_files_of_the_host_agree():
    simulation = simulated(1, format_version="v3c", host=True, tasks=30)
    (name, content), *beside = simulation.files.items()
    files = dict(beside)
    text = files.pop("host_phase_records.jsonl")
    run = json.loads(text)
    (submit, *_) = (entry for entry in run["records"] if entry["phase"] == "submit_task")
    (copy,) = (entry for entry in run["records"] if entry["phase"] == "graph_upload")
    for entry, key in ((submit, "start_ns"), (submit, "detail"), (copy, "end_ns"), (copy, "detail")):
        entry[key] += 1
        found = stats(decode(content, name=name, beside=files | {"host_phase_records.jsonl": json.dumps(run).encode()}))
        assert found["ascend_host_phases_contradict"] == 1, key
        entry[key] -= 1
    del run["records"][0]
    found = stats(decode(content, name=name, beside=files | {"host_phase_records.jsonl": json.dumps(run).encode()}))
    assert found["ascend_count_contradicts"] == 1
    assert "ascend_host_phases_contradict" not in found


def test_times_of_the_device_have_no_place():
    trace = capture(*RUN, span("chip.run.runner_run.device_wall", 0, 100, depth=2, more="clk=dev"))
    assert spans(trace)[-1] == ("chip.run.runner_run.device_wall", None, None, 0)
    assert trace.details["ascend_host_spans"]["clock"].tolist() == ["host"] * 3 + ["device"]
    assert stats(trace) == {"ascend_host_spans_of_device": 1}


def test_spans_of_no_run_are_drawn_while_the_run_lasts():
    trace = capture(
        *RUN, span("node.dispatch", 95_000, 10, pid=5, inv=0), span("node.dispatch", 5000, 10, pid=5, inv=0)
    )
    assert [entry[1] for entry in spans(trace)][3:] == [5000, None]


def test_messages_are_instants_of_the_run():
    message = "[mono_ns=95000][T0x1a][WARN] bind: slow: 3 ms"
    trace = capture("== a test ==", message, *RUN, "[mono_ns=1000][T0x1a][INFO] f: early")
    found = trace.details["ascend_log_messages"].rows()
    assert [(entry["instant_id"], entry["level"], entry["source"], entry["text"]) for entry in found] == [
        (0, "WARN", "bind", "slow: 3 ms"),
        (None, "INFO", "f", "early"),
    ]
    assert (trace.instants["ts"].tolist(), trace.instants["name"].tolist()) == ([5000], ["bind"])


def test_every_byte_is_accounted():
    torn = PREFIX + "[STRACE] v=1 pid=7 tid=7 inv=1 hid=0 dep"
    message = "[mono_ns=95000][T0x1a][WARN] bind: slow"
    lines = ("text", torn, RUN[0] + RUN[1], torn + RUN[2], message, "[STRACE] v=2", "more [] text")
    trace = capture(*lines)
    assert stats(trace) == {"ascend_invalid_row": 3}
    assert [entry[0] for entry in spans(trace)] == ["chip.run.bind", "chip.run.runner_run", "chip.run"]
    (account,) = (entry for entry in trace.accounting.rows() if entry["input_id"] == 1)
    assert account["lost"] == 2 * len(torn) + len("[STRACE] v=2")
    assert account["decoded"] == sum(map(len, RUN)) + len(message)
    assert account["total"] == sum(map(len, lines)) + len(lines)


def test_dropped_records_are_reported():
    drops = "[mono_ns=95000][T0x1a][WARN] flush: [HOSTLOG_DROPS] v=1 pid=7 new=2 total={} queue_full=2"
    assert stats(capture(*RUN, drops.format(2), drops.format(5)))["ascend_log_dropped"] == 5


def test_escaped_names_and_attributes():
    text = span("ext.app.a%20b%5B1%5D", more="k=x%3Dy z=1")
    log = read_log(np.frombuffer(text.encode(), np.uint8), "a")
    assert (log.name.tolist(), log.attributes.tolist()) == (["ext.app.a b[1]"], ["k=x=y z=1"])


def test_one_log_for_each_process():
    trace = capture(*RUN, beside={"host.8.log": span("node.dispatch", 95_000, 10, pid=8, inv=0).encode()})
    assert trace.inputs["role"].tolist() == ["main", "log", "log 2"]
    assert [entry[1] for entry in spans(trace)] == [1000, 11_000, 0, 5000]


def test_colors_of_a_terminal_are_no_part_of_spans_and_messages():
    lines = (*RUN, span("chip.run.runner_run.device_wall", 0, 30_000, depth=2, more="clk=dev"), *MESSAGES)
    plain, colored = (
        capture(*(f"{one}{text}{two}" for text in lines)) for one, two in (("", ""), ("\x1b[32m", "\x1b[0m"))
    )
    assert stats(colored) == stats(plain)
    for name in ("ascend_host_spans", "ascend_log_messages"):
        assert list(colored.details[name].rows()) == list(plain.details[name].rows())
    assert len(plain.details["ascend_log_messages"]) == len(MESSAGES)


@pytest.mark.parametrize("lines", [(), ("no line of the runtime",), "messages"])
def test_a_log_of_the_runtime_may_have_no_spans(lines):
    messages = MESSAGES if lines == "messages" else ()
    trace = capture(*(messages or lines))
    assert "ascend_unreadable_sidecar" not in stats(trace)
    assert {row["lost"] for row in trace.accounting.rows()} == {0}
    assert len(trace.details["ascend_log_messages"]) == len(messages)
    assert len(trace.details["ascend_host_spans"]) == 0


def test_which_files_are_logs():
    assert capture(*RUN, name="run.log").inputs["role"].tolist() == ["main", "log"]
    trace = capture("a console", name="run.log")
    assert (trace.inputs["role"].tolist(), stats(trace)) == (["main"], {})
    assert stats(capture("a console")) == {}  # the runtime writes what its verbosity wants
    assert capture(*RUN, log="none").inputs["role"].tolist() == ["main"]
    with pytest.raises(InputError, match="not-there"):
        capture(*RUN, log="not-there.log")


PIECES = (*RUN, "[STRACE] v=1", "[mono_ns=1][T0x1]", "[HOSTLOG_DROPS] v=1 pid=1 new=1 total=9", "\n", "\r\n", "%5", "é")


@given(
    st.binary(max_size=200) | st.lists(st.sampled_from(PIECES), max_size=9).map(lambda parts: "".join(parts).encode())
)
@settings(max_examples=some(300))
def test_any_bytes_are_read_or_refused(content):
    try:
        found = read_log(np.frombuffer(content, np.uint8), "a")
    except InputError:
        return
    assert_all_bytes_count(content, found.tally, NAME)


@pytest.mark.parametrize("seed", range(6))
def test_simulated_logs_are_placed_and_written_as_they_are_read(seed):
    simulation = simulated(seed, format_version="v3c", host=True, tasks=60, log=True)
    content = simulation.files["host.1000.log"]
    log = read_log(np.frombuffer(content, np.uint8), "a")
    assert log.tally.good_bytes == len(content) - content.count(b"\n")
    assert len(encode_log(log)) == len(content)
    trace = decode_simulated(simulation)
    expected = {"ascend_host_spans_of_others": 4, "ascend_host_spans_of_device": 2}
    assert {name: count for name, count in stats(trace).items() if "span" in name} == expected
    table = trace.details["ascend_host_spans"]
    placed = table.valid("slice_id")
    assert placed.sum() == 4
    at = table["slice_id"][placed]
    assert (trace.slices["ts"][at] + trace.time.epoch_ns).tolist() == table["start_ns"][placed].tolist()
    (outer,) = (at for at in at.tolist() if trace.slices["name"][at] == "chip.run")
    ends = trace.slices["ts"] + trace.slices["dur"]
    assert trace.slices["ts"].min() == trace.slices["ts"][outer]
    assert ends.max() == trace.slices["ts"][outer] + trace.slices["dur"][outer]


@pytest.mark.parametrize("name", ["graph_l4", "hpred_l4"])
def test_runs_of_the_producer_are_found_in_its_log(corpus, name):
    folder = Path(corpus, "producers/ascend")
    log = folder / "logs" / f"{name}.log"
    captures = sorted((folder / name).iterdir())
    assert len(captures) == 2
    for run, path in enumerate(captures, 1):
        trace = decode_file(path / "chip_swimlane_records.json", log=str(log))
        table = trace.details["ascend_host_spans"]
        placed = table.valid("slice_id")
        assert set(table["run"][placed].tolist()) == {run}
        assert [str(each) for each in table["name"][placed]] == [
            "chip.run.bind",
            "chip.run.runner_run",
            "chip.run.validate",
            "chip.run",
        ]
        first = json.loads((path / "host_phase_records.jsonl").read_text())["records"][0]["start_ns"]
        phases = trace.slices["ts"][trace.details["ascend_host_phases"]["slice_id"]]
        assert phases.min() + trace.time.epoch_ns == first
        device = trace.slices["ts"][trace.details["ascend_tasks"]["slice_id"]]
        (inside,) = np.flatnonzero(placed & (table["name"] == "chip.run.runner_run"))
        start = int(table["start_ns"][inside]) - trace.time.epoch_ns
        assert start < device.min() < device.max() < start + int(table["duration_ns"][inside])


def test_logs_of_runs_that_the_device_orchestrates_have_no_common_clock(corpus):
    folder = Path(corpus, "producers/ascend")
    (path,) = (folder / "vec_l4").iterdir()
    trace = decode_file(path / "chip_swimlane_records.json", log=str(folder / "logs/vec_l4.log"))
    assert stats(trace) == {"ascend_host_spans_of_device": 7, "ascend_host_spans_unplaced": 6}
    text = (folder / "logs/vec_l4.log").read_text()
    assert len(trace.details["ascend_host_spans"]) == text.count("[STRACE]")

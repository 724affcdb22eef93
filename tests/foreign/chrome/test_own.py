"""What lanescope wrote comes back as the trace that was written, up to what the format cannot hold."""

import io
import json
from collections import Counter

import pytest
from hypothesis import given, settings

import lanescope
from effort import TRACES, some
from foreign.chrome.reading import read, stats
from lanescope.analysis import check
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.foreign.chrome.formats.own import written
from lanescope.io import chrome
from lanescope.testing import assert_accounted, assert_consistent, strategies
from lanescope.trace import Flag, TimeBase, TraceBuilder

#: Readings of counters and the clocks behind them, and which file a row is from.
LEFT_OUT = {"id", "ts_ticks", "dur_ticks", "clock_id", "input_id"}
SIMULATED = {
    "aie": {"records": 2000, "overruns": 1},
    "ascend": {"tasks": 80, "drop_aicore": 2},
    "cuda": {"blocks": 8},
    "levelzero": {"ops": 200},
}


def rows(trace, table):
    found = (
        tuple((key, value) for key, value in row.items() if key not in LEFT_OUT) for row in getattr(trace, table).rows()
    )
    return Counter(found)


def ends(trace):
    """Return kind, lanes and slices of all flows; the format holds their times as those of the slices."""
    slices = [tuple((key, value) for key, value in row.items() if key not in LEFT_OUT) for row in trace.slices.rows()]
    return Counter(
        (
            row["kind"],
            *(row[f"{side}_track_id"] for side in ("src", "dst")),
            *(None if row[f"{side}_slice_id"] is None else slices[row[f"{side}_slice_id"]] for side in ("src", "dst")),
        )
        for row in trace.flows.rows()
    )


@pytest.mark.parametrize("family", SIMULATED)
@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_a_capture_that_was_converted_opens_as_it_was(family, suffix, tmp_path):
    chosen = registry.family(family)
    files = chosen.simulate(resolve_options(chosen.sim_options, SIMULATED[family], what="sim"), 3).files
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    trace = lanescope.open(tmp_path / next(iter(files)))
    target = tmp_path / f"written{suffix}"
    lanescope.convert(tmp_path / next(iter(files)), target)
    again = lanescope.open(target)
    assert again.inputs["family"].tolist() == ["chrome"]
    assert again.time == trace.time
    for table in ("tracks", "slices", "instants", "counters", "gaps"):
        assert rows(again, table) == rows(trace, table), table
    assert ends(again) == ends(trace)
    assert len(again.flows) == len(trace.flows) > (-1 if family in ("aie", "cuda") else 0)
    lost = sum(row["count"] for row in trace.stats.rows() if row["severity"] == "data_loss")
    assert stats(again).get("chrome_written_loss", 0) == lost
    assert_accounted(again)
    assert_consistent(again)


@given(strategies.traces(**TRACES))
@settings(max_examples=some(300))
def test_any_trace_comes_back(tmp_path_factory, trace):
    out = io.BytesIO()
    report = chrome.write(trace, out, findings=check.to_table(check.run(trace)))
    again = read(tmp_path_factory.getbasetemp(), out.getvalue())
    assert again.time == trace.time
    assert stats(again).get("chrome_findings", 0) == report.findings
    assert stats(again).get("chrome_undrawn_flows", 0) == report.flows_undrawn
    assert len(again.flows) == report.flows
    for table in ("tracks", "slices", "instants", "counters", "gaps"):
        assert readable(rows(again, table)) == readable(rows(trace, table)), table
    assert_accounted(again)


def readable(found):
    """Return rows as they are in UTF-8, which has no halves of characters."""
    return Counter(tuple((key, _text(value)) for key, value in row) for row in found.elements())


def _text(value):
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def written_file(**metadata):
    builder = TraceBuilder(TimeBase(epoch_ns=5, epoch_kind="unix"))
    lane = builder.track("core", kind="lane", role="core", nesting="free")
    builder.append(
        "slices", track_id=lane, ts=[1_700_000_000_000_000_123, 1_700_000_000_000_000_125], dur=[3, 4], name="a"
    )
    out = io.BytesIO()
    chrome.write(builder.finish(), out)
    document = json.loads(out.getvalue())
    document["metadata"].update(metadata)
    return json.dumps(document)


def is_own(tmp_path, document):
    """Whether the file is read as what lanescope wrote."""
    return "host_thread" not in read(tmp_path, json.dumps(document)).tracks["role"].tolist()


def test_times_beyond_what_doubles_hold_come_back(tmp_path):
    trace = read(tmp_path, written_file())
    assert trace.slices["ts"].tolist() == [1_700_000_000_000_000_123, 1_700_000_000_000_000_125]
    assert trace.time == TimeBase(epoch_ns=5, epoch_kind="unix")


@pytest.mark.parametrize(
    "metadata",
    [
        {"tracks": None},
        {"tracks": [[0, "lane", "core", "core", 0, "free", ""]]},  # its own parent
        {"tracks": [[-1, "line", "core", "core", 0, "free", ""]]},
        {"tracks": [[-1, "lane", "core", "core", 0, "free"]]},
        {"threads": [7]},
        {"threads": [-2]},
        {"epoch_kind": "moon"},
        {"base_ns": "x"},
        {"lost_records": -1},
        {"producer": "another"},
    ],
)
def test_what_does_not_hold_together_is_read_as_any_other_file(tmp_path, metadata):
    text = written_file(**metadata)
    assert written(json.dumps(json.loads(text)["metadata"]).encode()) is None
    trace = read(tmp_path, text)
    assert trace.tracks["role"].tolist() == ["process", "host_thread", "host_thread"]
    assert trace.slices["dur"].tolist() == [3, 4]


@pytest.mark.parametrize("far", [0, 1])
def test_times_that_leave_the_range_make_it_any_other_file(tmp_path, far):
    document = json.loads(written_file(base_ns=(1 << 62) - 1))
    events = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert is_own(tmp_path, document)
    events[far]["ts"] = 2_400_000_000_000_000
    assert not is_own(tmp_path, document)


def test_events_that_belong_to_no_track_of_the_trace_are_counted(tmp_path):
    document = json.loads(written_file())
    document["traceEvents"] += [
        {"ph": "X", "pid": 1, "tid": 99, "ts": 1, "dur": 1, "name": "b"},
        {"ph": "C", "pid": 1, "tid": 2, "ts": 1, "name": "b", "args": {"value": 1}},
    ]
    trace = read(tmp_path, json.dumps(document))
    assert (len(trace.slices), len(trace.counters)) == (2, 0)
    assert stats(trace) == {"chrome_not_an_event": 2}


def test_bits_of_flags_without_a_name_come_back(tmp_path):
    made = TraceBuilder(TimeBase())
    lane = made.track("core 0", kind="lane", role="core")
    flags = [0, int(Flag.CUT), int(Flag.CUT | Flag.TRUNCATED), 1 << 27, int(Flag.CUT) | 1 << 31]
    made.append("slices", track_id=lane, ts=[10 * i for i in range(len(flags))], dur=5, name="a", flags=flags)
    target = tmp_path / "a.json"
    made.finish().save(target)
    assert lanescope.open(target).slices["flags"].tolist() == flags


@pytest.mark.parametrize("form", [{}, {"indent": 1}, {"separators": (",", ":")}, {"sort_keys": True}])
def test_what_is_known_of_unusual_events_is_read_however_a_program_wrote_the_file_anew(form, tmp_path):
    made = TraceBuilder(TimeBase())
    lane = made.track("core 0", kind="lane", role="core")
    made.append("slices", track_id=lane, ts=0, dur=5, name="a", quality="inferred")
    made.append("slices", track_id=lane, ts=10, dur=5, name="a", flags=int(Flag.CUT))
    open_ended = {"dur": 0, "dur_valid": [False], "last_known_ts": 27, "last_known_ts_valid": [True]}
    made.append("slices", track_id=lane, ts=20, name="a", flags=int(Flag.UNFINISHED), **open_ended)
    made.append("instants", track_id=lane, ts=30, name="a", quality="inferred", flags=int(Flag.CLOCK_SUSPECT))
    before = made.finish()
    before.save(tmp_path / "a.json")
    (tmp_path / "b.json").write_text(json.dumps(json.loads((tmp_path / "a.json").read_text()), **form))
    again = lanescope.open(tmp_path / "b.json")
    for table in ("slices", "instants"):
        names = [name for name in before.tables()[table].spec.names if name not in LEFT_OUT]
        assert list(again.tables()[table].rows(*names)) == list(before.tables()[table].rows(*names))


@pytest.mark.parametrize("start", [-1_700_000_000_000_000_123, 1_700_000_000_000_000_123, 4_500_000_000_000_000_123])
def test_last_known_times_of_any_clock_come_back(start, tmp_path):
    made = TraceBuilder(TimeBase())
    lane = made.track("core 0", kind="lane", role="core")
    ends = {"dur": 0, "dur_valid": [False], "last_known_ts": start + 27, "last_known_ts_valid": [True]}
    made.append("slices", track_id=lane, ts=start, name="a", flags=int(Flag.UNFINISHED), **ends)
    made.finish().save(tmp_path / "a.json")
    assert list(lanescope.open(tmp_path / "a.json").slices.rows("ts", "dur", "last_known_ts")) == [
        {"ts": start, "dur": None, "last_known_ts": start + 27}
    ]


@pytest.mark.parametrize("told", ["9" * 19, "9" * 20, "x", None, 1.5])
def test_a_last_known_time_that_is_none_is_unknown(told, tmp_path):
    made = TraceBuilder(TimeBase())
    lane = made.track("core 0", kind="lane", role="core")
    ends = {"dur": 0, "dur_valid": [False], "last_known_ts": 27, "last_known_ts_valid": [True]}
    made.append("slices", track_id=lane, ts=5, name="a", flags=int(Flag.UNFINISHED), **ends)
    made.finish().save(tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text()
    assert text.count('"27"') + text.count(":27") == 1
    text = text.replace('"27"', json.dumps(told)) if '"27"' in text else text.replace(":27", f":{json.dumps(told)}")
    (tmp_path / "a.json").write_text(text)
    slices = lanescope.open(tmp_path / "a.json").slices
    assert slices["ts"].tolist() == [5]
    assert list(slices.rows("last_known_ts")) == [{"last_known_ts": None}]


def test_a_slice_whose_length_was_taken_out_is_of_unknown_length(tmp_path):
    made = TraceBuilder(TimeBase())
    lane = made.track("core 0", kind="lane", role="core")
    made.append("slices", track_id=lane, ts=[0, 10], dur=[5, 6], name=["a", "b"])
    made.finish().save(tmp_path / "a.json")
    text = (tmp_path / "a.json").read_text()
    changed = text.replace('"dur":0.005,', "")
    assert changed != text
    (tmp_path / "b.json").write_text(changed)
    assert [(row["name"], row["dur"]) for row in lanescope.open(tmp_path / "b.json").slices.rows()] == [
        ("a", None),
        ("b", 6),
    ]

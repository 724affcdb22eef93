"""Files of others: equal to an oracle in plain Python, whatever they hold; and the faults that they have."""

import gzip
import json
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from foreign.chrome.oracle import Reading, nanoseconds
from foreign.chrome.reading import flows, instants, places, read, samples, slices, stats
from lanescope._native import core
from lanescope.errors import InputError
from lanescope.families import registry
from lanescope.families.options import resolve_options
from lanescope.foreign.chrome.interpret.places import plain_number
from lanescope.testing import assert_accounted, assert_consistent
from lanescope.trace import Flag
from lanescope.wire.trace_events import TraceEventReader

#: Stats of what the oracle does not look at.
UNSEEN = {"chrome_time_order", "chrome_rounded", "chrome_text_time", "chrome_no_events"}


def dumped(events):
    """Return events as JSON; texts between = as they are."""
    text = json.dumps(events, default=str)
    return re.sub(r'"=([^"]*)="', r"\1", text)


TIMES = st.one_of(
    st.integers(0, 60),
    st.integers(0, 60).map(str),
    st.integers(0, 60_000).map(lambda ns: f"={ns // 1000}.{ns % 1000:03}="),
    st.integers(0, 600_000).map(lambda part: f"={part // 10_000}.{part % 10_000:04}="),
    st.sampled_from(
        [
            "=1e1=",
            "=2.5E+1=",
            "=400e-1=",
            "=-0=",
            "=12.0000000000000000001=",
            "=0.0005=",
            "=4611686018427387.904=",
            "=4611686018427387.905=",
            "=-1152921504606846.976=",
            "=-1152921504606846.977=",
        ]
    ),
)
NAMES = st.sampled_from(["a", "b", "c", 'quoted "d"', "ünï", "back\\slash", "line\nbreak", ""])
CATEGORIES = st.sampled_from(["x", "y,z"])
IDS = st.sampled_from([1, 2, 16, "1", "10", "0x10", "not a number"])


@st.composite
def event(draw):
    phase = draw(st.sampled_from("XXXXBBEEEiIRCbenSFTpstfstfN"))
    made = {"ph": phase, "pid": draw(st.sampled_from([1, "1", 2, "p"])), "tid": draw(st.sampled_from([1, "7", 7, 1]))}
    if draw(st.integers(0, 30)):
        made["ts"] = draw(TIMES)
    if phase not in "E" or draw(st.booleans()):
        made["name"] = draw(NAMES)
    if draw(st.booleans()):
        made["cat"] = draw(CATEGORIES)
    if phase == "X" and draw(st.integers(0, 8)):
        made["dur"] = draw(TIMES)
    if phase in "benSFTpstfN" and draw(st.integers(0, 9)):
        made["id"] = draw(IDS)
    if phase in "ben" and draw(st.integers(0, 3)) == 0:
        made.pop("id", None)
        made["id2"] = {draw(st.sampled_from(["local", "global"])): draw(IDS)}
    if phase in "benSFTpsf" and draw(st.integers(0, 2)) == 0:
        made["scope"] = draw(st.sampled_from(["one", "two", ""]))
    if phase == "f" and draw(st.booleans()):
        made["bp"] = "e"
    if phase == "i":
        made["s"] = draw(st.sampled_from("tpg"))
    if phase == "C":
        made["args"] = draw(
            st.dictionaries(st.sampled_from(["value", "u", ""]), st.integers(-5, 5) | st.none(), max_size=3)
        )
    elif draw(st.booleans()):
        made["args"] = {"deep": [{"ph": "X", "ts": 1}, '}]\\"', None]}
    if phase in "XB" and draw(st.integers(0, 5)) == 0:
        made["bind_id"] = draw(st.sampled_from([5, "0x5", 6]))
        made["flow_in"], made["flow_out"] = draw(st.booleans()), draw(st.booleans())
    keys = draw(st.permutations(list(made)))
    return {key: made[key] for key in keys}


METADATA = [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "first"}},
    {"ph": "M", "pid": 1, "tid": "7", "name": "thread_name", "args": {"name": "seventh"}},
]


@given(st.lists(event(), max_size=25), st.booleans(), st.booleans())
@settings(max_examples=some(300))
def test_rows_are_those_of_a_reader_in_plain_python(tmp_path_factory, events, is_array, is_named):
    text = dumped([*(METADATA if is_named else []), *events])
    text = text if is_array else f'{{"a": [1, {{"b": "]"}}], "traceEvents": {text}, "otherData": {{"x": 1}}}}'
    wanted = Reading(text)
    trace = read(tmp_path_factory.getbasetemp(), text)
    assert sorted(slices(trace), key=repr) == sorted(wanted.slices.elements(), key=repr)
    assert instants(trace) == wanted.instants
    assert samples(trace) == wanted.samples
    found = {name: count for name, count in stats(trace).items() if name not in UNSEEN}
    assert found == {name: count for name, count in wanted.stats.items() if count}
    assert len(trace.flows) == wanted.flows.total()
    if len(set(wanted.slices)) == wanted.slices.total() == len({row[:2] for row in wanted.slices}):
        assert flows(trace) == wanted.flows  # where no two slices begin together, it is clear which one is meant
    assert_accounted(trace)
    assert_consistent(trace)


@given(
    st.one_of(
        st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**16), max_value=10**16), st.integers()
    ).map(str)
)
@settings(max_examples=some(500))
def test_times_are_read_to_the_nanosecond(text):
    found = core.trace_event_nanoseconds(text)
    assert (None if found is None else found[0]) == nanoseconds(text)
    if found is not None:
        assert found[1] == (Fraction(text) * 1000 != found[0])


@given(st.binary(max_size=300) | st.text(alphabet='[]{}",:\\ \n0123456789.eE-phXtsname', max_size=200).map(str.encode))
@settings(max_examples=some(300))
def test_any_bytes_are_accounted_for(tmp_path_factory, content):
    if content[:2] in (b"\x1f\x8b", b"PK") or not content:
        return
    trace = read(tmp_path_factory.getbasetemp(), content)
    assert_accounted(trace)
    assert_consistent(trace)


SOUND = dumped(
    [
        *METADATA,
        *(
            {"ph": "X", "pid": 1, "tid": 7, "ts": f"={n}.125=", "dur": 2, "name": f"n{n % 5}", "args": {"n": n}}
            for n in range(30)
        ),
        {"ph": "B", "pid": 1, "tid": 1, "ts": 3, "name": "b"},
        {"ph": "E", "pid": 1, "tid": 1, "ts": 9},
        {"ph": "s", "pid": 1, "tid": 7, "ts": 4, "name": "f", "id": 3},
        {"ph": "f", "pid": 1, "tid": 7, "ts": 9, "name": "f", "id": 3, "bp": "e"},
        {"ph": "C", "pid": 1, "ts": 5, "name": "c", "args": {"u": 1, "v": 2.5}},
    ]
)


@given(st.data())
@settings(max_examples=some(200))
def test_what_is_changed_or_cut_anywhere_is_accounted_for(tmp_path_factory, data):
    content = bytearray(SOUND.encode())
    for _ in range(data.draw(st.integers(0, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(1, len(content)))
    trace = read(tmp_path_factory.getbasetemp(), bytes(content[:cut]))
    assert_accounted(trace)
    assert_consistent(trace)


@pytest.mark.parametrize("size", [1, 7, 64, 333, 1 << 16])
@pytest.mark.parametrize("broken", [False, True])
def test_any_pieces_give_the_same_events(tmp_path, size, broken):
    text = SOUND.replace('"n3"', '"n3"" ') + " and  more " if broken else SOUND
    whole = read(tmp_path, text)
    reader, data = TraceEventReader(), text.encode()
    for begin in range(0, len(data), size):
        reader.feed(data[begin : begin + size])
    again = reader.finish()
    assert len(data) - again.decoded == int(whole.accounting.values("lost")[0])
    assert again.begin.tolist() == whole.records["chrome.event"].values("offset").tolist()
    assert again.ts[again.has_ts].tolist() == [
        ts for ts in whole.records["chrome.event"]["ts"].tolist() if ts is not None
    ]


def test_arguments_stay_in_the_file_until_they_are_read(tmp_path):
    trace = read(tmp_path, SOUND)
    texts = trace.details["chrome_arguments"].values("args").tolist()
    assert [json.loads(text) for text in texts] == [{"n": n} for n in range(30)]
    path = tmp_path / "packed.json.gz"
    path.write_bytes(gzip.compress(SOUND.encode()))
    packed = lanescope.open(path)
    path.unlink()
    assert packed.details["chrome_arguments"].values("args").tolist() == texts
    assert slices(packed) == slices(trace)


def one(**keys):
    return {"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 2, "name": "a", **keys}


FAULTS = {
    # what is wrong: the text, slices that are read, stats
    "a list without an end": ("[" + dumped([one(), one(ts=5)])[1:-1], 2, {"chrome_unterminated": 1}),
    "a comma before nothing": ("[" + dumped([one()])[1:-1] + ",", 1, {"chrome_unterminated": 1}),
    "a comma before the end": ("[" + dumped([one()])[1:-1] + ",]", 1, {"chrome_unterminated": 1}),
    "an end inside an event": ("[" + dumped([one(), one()])[1:-9], 1, {"chrome_unterminated": 1, "truncated": 1}),
    "an end inside a value": (
        '{"traceEvents": [], "otherData": {"a": ',
        0,
        {"chrome_no_events": 1, "chrome_unterminated": 1, "truncated": 1},
    ),
    "an event that is not JSON": (
        "[" + dumped([one()])[1:-1] + ', {"ph": "X", nonsense}, ' + dumped([one(ts=9)])[1:],
        2,
        {"chrome_broken": 1},
    ),
    "elements other than events": ("[1, null, " + dumped([one()])[1:-1] + ', "a", {}]', 1, {"chrome_not_an_event": 4}),
    "events without commas": (
        "[" + dumped([one()])[1:-1] + "\n" + dumped([one(ts=9)])[1:],
        2,
        {"chrome_missing_comma": 1},
    ),
    "two lists": (
        f'{{"traceEvents": {dumped([one()])}, "traceEvents": {dumped([one(ts=9)])}}}',
        2,
        {"chrome_repeated_list": 1},
    ),
    "something behind the end": (dumped([one()]) + '\n{"more": 1}', 1, {"chrome_trailing": 1}),
    "a negative duration": (dumped([one(dur=-2)]), 1, {"chrome_negative_duration": 1}),
    "no duration": (
        dumped([{key: value for key, value in one().items() if key != "dur"}]),
        1,
        {"chrome_missing_duration": 1},
    ),
    "a duration that is not a number": (dumped([one(dur="=NaN=")]), 1, {"chrome_missing_duration": 1}),
    "an infinite time": (dumped([one(), one(ts="=-Infinity=")]), 1, {"chrome_missing_time": 1}),
    "a time out of range": (dumped([one(), one(ts="=1e300=")]), 1, {"chrome_missing_time": 1}),
    "times finer than a nanosecond": (dumped([one(ts="=1.00050001=")]), 1, {"chrome_rounded": 1}),
    "keys that are repeated": (
        '[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"ts":7,"name":"b","name":"a"}]',
        1,
        {"chrome_repeated_key": 1},
    ),
    "arguments too deep": (dumped([one(args=f"={'[' * 101}{']' * 101}=")]), 1, {"chrome_deep_arguments": 1}),
    "half of a character": ('[{"ph":"X","pid":1,"tid":1,"ts":1,"dur":1,"name":"\\ud800"}]', 1, {"chrome_bad_text": 1}),
    "a long name": (dumped([one(name="n" * 70_000)]), 1, {"chrome_long_text": 1}),
    "thread clocks": (dumped([one(tts=1, tdur=2)]), 1, {"chrome_thread_time": 1}),
    "stacks": (dumped([one(sf=3)]), 1, {"chrome_stacks": 1}),
    "stack frames": (
        f'{{"stackFrames": {{"1": {{"name": "f"}}}}, "traceEvents": {dumped([one()])}}}',
        1,
        {"chrome_stack_frames": 1},
    ),
    "samples": (f'{{"traceEvents": {dumped([one()])}, "samples": [{{"sf": 1}}]}}', 1, {"chrome_sample_lists": 1}),
    "a system trace": (
        f'{{"traceEvents": {dumped([one()])}, "systemTraceEvents": "# ]}}"}}',
        1,
        {"chrome_system_traces": 1},
    ),
    "objects": (
        dumped([one(), *({"ph": phase, "ts": 1, "id": 1, "name": "o"} for phase in "NOD")]),
        1,
        {"chrome_objects": 3},
    ),
    "memory dumps": (
        dumped([one(), {"ph": "V", "ts": 1, "id": 1}, {"ph": "v", "ts": 1, "id": 1}]),
        1,
        {"chrome_memory_dumps": 2},
    ),
    "sample events": (dumped([one(), {"ph": "P", "ts": 1}]), 1, {"chrome_samples": 1}),
    "contexts": (dumped([one(), {"ph": "(", "ts": 1}, {"ph": ")", "ts": 1}]), 1, {"chrome_contexts": 2}),
    "clock synchronization": (
        dumped([one(), {"ph": "c", "ts": 1, "name": "clock_sync"}]),
        1,
        {"chrome_clock_syncs": 1},
    ),
    "an unknown phase": (dumped([one(), {"ph": "?", "ts": 1}]), 1, {"chrome_unknown_phase": 1}),
    "a counter that is not a number": (
        dumped([one(), {"ph": "C", "pid": 1, "ts": 1, "name": "c", "args": {"v": "many"}}]),
        1,
        {"chrome_bad_sample": 1},
    ),
    "an end of another name": (
        dumped([one(ph="B"), one(ph="E", name="other")]),
        1,
        {"chrome_end_unmatched": 1, "chrome_unfinished": 1},
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_counted_and_costs_nothing_else(tmp_path, fault):
    text, count, counted = FAULTS[fault]
    trace = read(tmp_path, text)
    assert stats(trace) == counted
    assert len(trace.slices) == count
    assert_accounted(trace)
    assert_consistent(trace)


def test_bytes_that_are_not_utf_8_are_replaced_and_counted(tmp_path):
    trace = read(tmp_path, dumped([one(name="@")]).encode().replace(b"@", b"\xff"))
    assert trace.slices["name"].tolist() == ["�"]
    assert stats(trace) == {"chrome_bad_text": 1}


def test_what_is_not_drawn_has_its_bytes_in_the_accounting(tmp_path):
    objects = dumped([{"ph": "N", "ts": 1, "id": 1, "name": "o"}, {"ph": "X", "dur": 1, "name": "without a time"}])[
        1:-1
    ]
    trace = read(tmp_path, f"[{dumped([one()])[1:-1]}, {objects}]")
    layers = [(row["unit"], row["decoded"], row["padding"], row["lost"]) for row in trace.accounting.rows()]
    size = len(dumped([one()])) - 2
    assert layers == [("byte", size + len(objects) + 4, 0, 0), ("event byte", size, 6, len(objects) - 2)]


def test_the_last_value_of_a_repeated_key_counts(tmp_path):
    trace = read(tmp_path, FAULTS["keys that are repeated"][0])
    assert slices(trace) == [(("process 1", "thread 1"), 7000, 1000, "a", "")]


def test_a_slice_is_as_long_as_its_end_is_after_its_begin(tmp_path):
    where = {"pid": 1, "tid": 1, "cat": "x", "id": "0x1"}
    events = [
        {"ph": phase, "ts": ts, "name": name, **where}
        for phase, ts, name in (
            ("B", 2, "outer"), ("B", 3, "inner"), ("E", 5, "inner"), ("E", 9, "outer"),
            ("b", 4, "far"), ("e", 11, "far"),
        )
    ]  # fmt: skip
    trace = read(tmp_path, dumped(events))
    assert sorted((name, ts, dur) for _, ts, dur, name, _ in slices(trace)) == [
        ("far", 4000, 7000), ("inner", 3000, 2000), ("outer", 2000, 7000),
    ]  # fmt: skip
    assert stats(trace) == {}


def test_asynchronous_instants_alone_are_in_order(tmp_path):
    events = [{"ph": "n", "pid": 1, "tid": 1, "ts": ts, "name": "a", "cat": "x", "id": "0x1"} for ts in (4, 6)]
    trace = read(tmp_path, dumped(events))
    assert instants(trace).total() == 2
    assert "chrome_time_order" not in stats(trace)


def test_an_unfinished_slice_is_known_until_the_last_event_of_its_thread(tmp_path):
    events = [one(ph="B"), one(ts=8, dur=1), one(ts=20, tid=2)]
    trace = read(tmp_path, dumped(events))
    row = next(row for row in trace.slices.rows() if row["dur"] is None)
    assert (row["last_known_ts"] + trace.time.epoch_ns, row["flags"]) == (8000, Flag.UNFINISHED)


def test_an_event_without_a_time_is_not_the_last_of_its_thread(tmp_path):
    timeless = {"ph": "X", "pid": 1, "tid": 1, "dur": 2, "name": "a"}
    trace = read(tmp_path, dumped([one(ph="B", ts=-20), one(ts=-10, dur=1), timeless]))
    row = next(row for row in trace.slices.rows() if row["dur"] is None)
    assert row["last_known_ts"] + trace.time.epoch_ns == -10_000


def test_a_time_of_metadata_is_not_that_of_an_event(tmp_path):
    timed = {"ph": "M", "pid": 1, "tid": 1, "ts": 3, "name": "thread_name", "args": {"name": "main"}}
    timeless = {"ph": "X", "pid": 1, "tid": 1, "dur": 2, "name": "a"}
    trace = read(tmp_path, dumped([timed, timeless, one(ts=7)]))
    assert slices(trace) == [(("process 1", "main"), 7000, 2000, "a", "")]
    assert stats(trace)["chrome_missing_time"] == 1


def test_tracks_are_named_ordered_and_labelled_by_metadata(tmp_path):
    def told(name, value, **where):
        key = name.partition("_")[2].replace("name", "name")
        return {"ph": "M", "pid": 1, "tid": 1, **where, "name": name, "args": {key: value}}

    events = [
        one(),
        one(pid=2, tid=5),
        told("process_name", "old"),
        told("process_name", "new"),
        told("process_labels", "idle"),
        told("process_sort_index", -4),
        told("thread_name", "main"),
        told("thread_sort_index", "6"),
        told("thread_name", "", pid=2, tid=5),
        told("process_uptime_seconds", 9),
    ]
    trace = read(tmp_path, dumped(events))
    assert places(trace) == [("", "new (idle)"), ("new (idle)", "main"), ("", "process 2"), ("process 2", "")]
    assert trace.tracks["sort_key"].tolist()[:2] == [-4, 6]
    kept = [(row["name"], row["value"]) for row in trace.details["chrome_metadata"].rows()]
    assert ("process_uptime_seconds", '{"uptime_seconds": 9}') in kept


def test_threads_and_processes_of_one_name_are_told_apart_by_their_numbers(tmp_path):
    events = [one(pid=pid, tid=tid) for pid in (1, 2, 3) for tid in (1, 2)]
    events += [
        {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
        for pid, name in ((1, "GPU"), (2, "GPU"), (3, "host"))
    ]
    events += [
        {
            "ph": "M",
            "pid": pid,
            "tid": tid,
            "name": "thread_name",
            "args": {"name": "core" if pid == 1 else f"core {tid}"},
        }
        for pid in (1, 2)
        for tid in (1, 2)
    ]
    names = [place for place in places(read(tmp_path, dumped(events))) if place[0]]
    assert names == [
        *(("GPU (1)", "core (1)"), ("GPU (1)", "core (2)"), ("GPU (2)", "core 1"), ("GPU (2)", "core 2")),
        *(("host", "thread 1"), ("host", "thread 2")),
    ]


def test_flows_of_a_file_without_slices_lead_from_thread_to_thread(tmp_path):
    events = [
        {"ph": "s", "pid": 1, "tid": 1, "ts": 1, "id": 7, "name": "a", "cat": "x"},
        {"ph": "f", "pid": 1, "tid": 2, "ts": 3, "id": 7, "name": "a", "cat": "x"},
    ]
    trace = read(tmp_path, json.dumps(events))
    assert len(trace.slices) == 0
    (((source, begin, from_slice), (destination, end, to_slice)),) = flows(trace)
    assert (source != destination, end - begin, from_slice, to_slice) == (True, 2000, None, None)
    assert_accounted(trace)


@pytest.mark.parametrize("local", ["s", "f"])
@pytest.mark.parametrize("process", [1, 2])
def test_a_flow_of_one_process_does_not_meet_one_of_all(tmp_path, local, process):
    events = [
        {"ph": phase, "pid": pid, "tid": 1, "ts": ts, "name": "a", "cat": "x"}
        | ({"id2": {"local": "0x7"}} if phase == local else {"id": "0x7"})
        for phase, pid, ts in (("s", process, 1), ("f", 3 - process, 3))
    ]
    others = [{"ph": "i", "pid": pid, "tid": 1, "ts": 0, "name": "b"} for pid in (1, 2)]
    trace = read(tmp_path, json.dumps(others + events))
    assert not flows(trace)
    assert stats(trace)["chrome_flow_unmatched"] == 2


@pytest.mark.parametrize("others", [[], [("s", 1), ("f", 8)]])
def test_a_flow_that_a_slice_binds_leads_from_that_slice_and_no_inner_one(tmp_path, others):
    events = [
        one(name="outer", ts=1, dur=9, bind_id="0x5", flow_out=True),
        one(name="inner", ts=1, dur=2),
        one(name="target", tid=2, ts=20, dur=9, bind_id="0x5", flow_in=True),
        one(name="in target", tid=2, ts=20, dur=2),
        *({"ph": phase, "pid": 1, "tid": 1, "ts": ts, "name": "f", "cat": "x", "id": 9} for phase, ts in others),
    ]
    trace = read(tmp_path, dumped(events))
    names = trace.slices.values("name").tolist()
    assert (names.index("outer"), names.index("target")) in [
        (row["src_slice_id"], row["dst_slice_id"]) for row in trace.flows.rows()
    ]
    assert len(trace.flows) == 1 + len(others) // 2


def test_one_thread_is_enough_to_simulate_counters(tmp_path):
    chosen = registry.family("chrome")
    given = {"processes": 1, "threads": 1, "counters": 3}
    (content,) = chosen.simulate(resolve_options(chosen.sim_options, given, what="sim"), 1).files.values()
    assert samples(read(tmp_path, content)).total() == 6


def test_hostile_nesting_ends_soon(tmp_path):
    for text in ("[" * 200_000, '[{"a":' * 50_000, '{"a":' * 50_000, ',{"ph":"X"' * 50_000):
        trace = read(tmp_path, text)
        assert_accounted(trace)


def test_arguments_that_are_nested_too_deep_are_counted_and_left_out(tmp_path):
    deep = '{"a":' * 200 + "1" + "}" * 200
    trace = read(tmp_path, dumped([one(args={"k": 1}), one(ts=5, args="DEEP")]).replace('"DEEP"', deep))
    assert len(trace.slices) == 2
    assert [(row["slice_id"], json.loads(row["args"])) for row in trace.details["chrome_arguments"].rows()] == [
        (0, {"k": 1})
    ]
    assert stats(trace) == {"chrome_deep_arguments": 1}


def test_native_pairs_refuse_what_does_not_fit():
    lane, name, ends = np.array([5], np.int32), np.zeros(1, np.int32), np.zeros(1, np.uint8)
    with pytest.raises(ValueError, match="no such lane"):
        core.trace_event_pairs(lane, name, ends, 3, np.empty(1, np.int64), np.empty(1, np.uint8))
    with pytest.raises(ValueError, match="different lengths"):
        core.trace_event_pairs(lane, name, ends, 9, np.empty(2, np.int64), np.empty(1, np.uint8))


def test_what_is_no_list_of_events_is_not_recognized(tmp_path):
    for content in ('{"a": 1}', "[1, 2, 3]", '[{"name": "x", "size": 3}]', '{"ph": "X"}', "[]"):
        path = tmp_path / "other.json"
        path.write_text(content)
        with pytest.raises(InputError):
            lanescope.open(path)


#: Files of others that a slow oracle reads in a moment.
SMALL_FILES = (
    "hta/amd_trace",
    "hta/benchmark_simple_add_trace",
    "hta/cpu_only",
    "hta/critical_path_simple_add",
    "hta/cuda_event_sync_multi_stream",
    "hta/trace_compare_base",
    "hta/triton_example",
    "tracelens/h100_bert_small",
    "tracelens/mi210_gpu_only",
    "tracelens/mi300_bert_small",
)


@pytest.mark.parametrize("name", SMALL_FILES)
def test_files_of_others_are_read_as_by_a_reader_in_plain_python(corpus, tmp_path, name):
    text = gzip.decompress((corpus / f"foreign/{name}.json.gz").read_bytes()).decode()
    wanted = Reading(text)
    trace = read(tmp_path, text)
    assert sorted(slices(trace), key=repr) == sorted(wanted.slices.elements(), key=repr)
    assert instants(trace) == wanted.instants
    assert samples(trace) == wanted.samples
    assert len(trace.flows) == wanted.flows.total()
    found = {stat: count for stat, count in stats(trace).items() if stat not in UNSEEN}
    assert found == {stat: count for stat, count in wanted.stats.items() if count}
    assert_accounted(trace)


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ("1e0", True), ("10e-1", True), ("0.1E1", True), ("1.", True), ("+1", True), ("01", True), ("1.000", True),
        ("1e1", False), ("1.5", False), ("-1", False), ("1e99", False), ("1e-99", False), ("1e", False),
        ("\u0661", False), ("18446744073709551617", False),
    ],
)  # fmt: skip
def test_a_number_of_a_process_is_the_same_however_it_is_written(other, same):
    assert (plain_number(other) == "1") == same
    assert plain_number("1") == "1"


def test_a_process_with_an_exponent_is_that_of_the_number(tmp_path):
    first = '{"ph":"X","name":"a","pid":10,"tid":2,"ts":1,"dur":2}'
    other = '{"ph":"X","name":"b","pid":1E1,"tid":0.2e+1,"ts":5,"dur":2}'
    trace = read(tmp_path, f"[{first},{other}]")
    assert trace.tracks["name"].tolist() == ["process 10", "thread 2"]
    assert trace.slices["track_id"].tolist() == [1, 1]

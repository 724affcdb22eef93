"""The scanner of trace events: any text, however it is cut; what is lost is told by its bytes."""

import json
import random
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.wire.trace_events import Bit, TraceEventReader, Wanted, decoded, read_windows

WANTED = {
    "bytes": Wanted("integer", ("bytes", "Bytes")),
    "rate": Wanted("number", ("rate",)),
    "kind": Wanted("text", ("kind",)),
    "grid": Wanted("triple", ("grid",)),
    "done": Wanted("boolean", ("done",)),
}


def read(content, *, size=None):
    reader = TraceEventReader(WANTED)
    for begin in range(0, len(content), size or max(len(content), 1)):
        reader.feed(content[begin : begin + (size or len(content))])
    return reader.finish()


def one(text):
    """Read one event."""
    events = read(b"[" + text + b"]")
    assert len(events) == 1
    assert not events.lost
    return events


def value(events, name):
    (found,) = events.values[name].value.tolist()
    return found


def half_up(value):
    floor = value.to_integral_value(ROUND_FLOOR)
    return int(floor if value - floor < Decimal("0.5") else value.to_integral_value(ROUND_CEILING))


@settings(max_examples=some(500, 50), deadline=None)
@given(
    st.one_of(
        st.integers(-(10**15), 10**15).map(str),
        st.decimals(-(10**12), 10**12, places=3, allow_nan=False).map(lambda value: f"{value:f}"),
        st.decimals(-(10**9), 10**9, places=7, allow_nan=False).map(lambda value: f"{value:f}"),
        st.floats(-1e12, 1e12, allow_nan=False).map(repr),
        st.tuples(st.integers(-999, 999), st.integers(-9, 9)).map(lambda parts: f"{parts[0]}e{parts[1]}"),
    )
)
def test_times_are_exact(text):
    events = one(b'{"ph": "X", "ts": ' + text.encode() + b"}")
    exact = Decimal(text) * 1000
    assert events.ts.tolist() == [half_up(exact)]
    assert bool(events.flags[0] & Bit.ROUNDED) == (exact != exact.to_integral_value())
    assert events.has_ts.all()


@pytest.mark.parametrize("text", ["5e18", "1e99", "99999999999999999999", "true", '"soon"', "[]", "{}"])
def test_times_that_no_timeline_holds_are_marked(text):
    events = one(b'{"ph": "X", "ts": ' + text.encode() + b"}")
    assert events.flags[0] & Bit.BAD_TIME
    assert not events.has_ts.any()


def test_times_may_be_texts():
    events = one(b'{"ph": "X", "ts": "12.5", "dur": null}')
    assert events.ts.tolist() == [12_500]
    assert events.flags[0] == ord("X") | Bit.HAS_TIME | Bit.TEXT_TIME


def test_places_are_integers_texts_or_nothing():
    events = read(b'[{"pid": -5, "tid": "a"}, {"pid": 1.5}, {"tid": null}, {"pid": 99999999999999999999, "tid": 2}]')
    assert events.places == [(-5, "a"), ("1.5", None), (None, None), ("99999999999999999999", 2)]
    assert events.place.tolist() == [0, 1, 2, 3]


def test_arguments_of_every_kind():
    events = one(
        b'{"ph":"X","s":"t","args":{"bytes": "12", "rate": -2.5e1, "kind": [1, "]"], "grid": [3, 4], "done": true,'
        b' "other": {"bytes": 7}}}'
    )
    assert (value(events, "bytes"), value(events, "rate"), value(events, "done")) == (12, -25.0, 1)
    assert events.texts[value(events, "kind")] == '[1, "]"]'
    assert value(events, "grid") == [3, 4, 1]


@pytest.mark.parametrize(
    ("name", "text"),
    [("bytes", '"x"'), ("bytes", "1.5"), ("bytes", "18446744073709551616"), ("rate", "true"), ("grid", "[1,2,3,4]"),
     ("grid", "[]"), ("grid", '["1"]'), ("done", "1")],
)  # fmt: skip
def test_arguments_of_another_type_are_odd(name, text):
    events = one(b'{"ph": "X", "args": {"' + name.encode() + b'": ' + text.encode() + b"}}")
    assert events.values[name].odd.tolist() == [0]
    assert not len(events.values[name].event)


def test_null_is_missing_and_the_last_of_a_repeated_key_counts():
    events = one(b'{"ph": "i", "ph": "X", "args": {"bytes": 1, "rate": null, "Bytes": 2}}')
    assert value(events, "bytes") == 2
    assert not len(events.values["rate"].event)
    assert chr(events.phase[0]) == "X"
    assert events.flags[0] & Bit.REPEATED_KEY


@pytest.mark.parametrize(
    ("arguments", "sound", "odd", "is_repeated"),
    [
        ('"bytes": 1, "bytes": null', [], [], True),
        ('"bytes": 1, "bytes": "many"', [], [0], True),
        ('"bytes": "many", "bytes": 2', [2], [], True),
        ('"bytes": null, "bytes": 3', [3], [], True),
        ('"bytes": 1, "rate": 2, "bytes": 4', [4], [], True),
        ('"bytes": 1, "Bytes": null', [1], [], False),
        ('"bytes": 1, "Bytes": 2', [2], [], False),
    ],
)
def test_the_last_value_of_a_repeated_argument_counts_whatever_it_is(arguments, sound, odd, is_repeated):
    """A key that comes twice is a fault of the file, two names of one argument are not: null says nothing there."""
    events = one(b'{"ph": "X", "args": {' + arguments.encode() + b"}}")
    found = events.values["bytes"]
    assert (found.value.tolist(), found.odd.tolist()) == (sound, odd)
    assert bool(events.flags[0] & Bit.REPEATED_KEY) == is_repeated


def test_events_without_an_argument_have_none_wherever_they_stand():
    values = read(b'[{"ph": "X"}, {"ph": "X", "args": {"bytes": 7}}, {"ph": "i"}]').values["bytes"]
    at, has = values.find(np.arange(3))
    assert (has.tolist(), values.value[at[has]].tolist()) == ([False, True, False], [7])
    assert values.of(np.arange(3), -1).tolist() == [-1, 7, -1]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"ph": "X", "flow_in": true', "FLOW_IN"),
        ('"ph": "X", "flow_out": true', "FLOW_OUT"),
        ('"ph": "f", "bp": "e"', "ENCLOSING"),
        ('"ph": "i", "s": "p"', "PROCESS_SCOPE"),
        ('"ph": "i", "s": "g"', "GLOBAL_SCOPE"),
        ('"ph": "X", "args": {}', "HAS_ARGUMENTS"),
        ('"ph": "X", "ts": 1', "HAS_TIME"),
        ('"ph": "X", "dur": 1', "HAS_DURATION"),
        ('"ph": "X", "ts": "1"', "HAS_TIME TEXT_TIME"),
        ('"ph": "C", "args": {"a": "b"}', "HAS_ARGUMENTS BAD_SERIES"),
        ('"ph": "b", "id": 1', "HAS_ID"),
        ('"ph": "X", "bind_id": 1', "HAS_BIND_ID"),
        ('"ph": "X", "sf": 1', "HAS_STACK"),
        ('"ph": "X", "tts": 1', "HAS_THREAD_TIME"),
    ],
)
def test_each_member_of_an_event_has_a_bit_of_its_own(text, names):
    events = one(b"{" + text.encode() + b"}")
    assert int(events.flags[0]) & ~0xFF == sum(Bit[name] for name in names.split())


@pytest.mark.parametrize(("window", "piece"), [(1, 1), (100, 7), (100, 1000), (1 << 20, 64)])
def test_events_of_windows_are_those_of_the_whole(window, piece):
    content = json.dumps([{"ph": "X", "ts": at, "args": {"bytes": 3 * at}} for at in range(40)]).encode()

    def read_at(begin, count):
        return content[begin : begin + count]

    parts = list(read_windows(read_at, len(content), window, WANTED, piece))
    assert (len(parts) == 1) == (window > len(content))
    assert [ts for part in parts for ts in part.ts.tolist()] == read(content).ts.tolist()
    assert [found for part in parts for found in part.values["bytes"].value.tolist()] == [3 * at for at in range(40)]


def test_values_of_counters():
    events = read(b'[{"ph": "C", "args": {"": 2.5, "a": 3, "b": "x"}}, {"args": {"a": 9}, "ph": "C"}]')
    event, key, found = events.series
    assert (event.tolist(), [events.texts[code] for code in key], found.tolist()) == (
        [0, 0, 1],
        ["", "a", "a"],
        [2.5, 3, 9],
    )
    assert events.odd_series == 1


def test_members_before_and_behind_the_list():
    content = b'\xef\xbb\xbf {"a": {"x": [1]}, "traceEvents": [{"ph":"X"}], "b": 2, "traceEvents": [{"ph":"i"}]} \n'
    events = read(content)
    assert [(content[a:b], content[c:d]) for a, b, c, d in events.member_places] == [
        (b"a", b'{"x": [1]}'),
        (b"b", b"2"),
    ]
    assert events.phase.tolist() == [ord("X"), ord("i")]
    assert (events.ending, events.is_bare, events.decoded) == ("whole", False, len(content))


@pytest.mark.parametrize(
    ("content", "lost", "count", "ending"),
    [
        (b'[{"ph":"X"},]', [], 1, "whole"),
        (b'[{"ph":"X"} {"ph":"X"}]', [], 2, "whole"),
        (b'[{"ph":"X"},', [], 1, "unterminated"),
        (b'[{"ph":"X"},{"ph":"X","na', [b'{"ph":"X","na'], 1, "unterminated"),
        (b'[{"ph":"X"}] x', [b"x"], 1, "whole"),
        (b'[{"ph":"X"}, nul, {"ph":"i"}]', [b"nul, "], 2, "whole"),
        (
            b'[{"ph":"X", "args": {"a": {"ph": 1}, }}, {"ph":"i"}]',
            [b'{"ph":"X", "args": {"a": {"ph": 1}, }}, '],
            1,
            "whole",
        ),
        (b'[{"ph":"X","name":nul}, {"ph":"i","ts":NaN,"dur":-Infinity}]', [b'{"ph":"X","name":nul}, '], 1, "whole"),
        (b'[{"ph":"X","a":1x}, {"ph":"i","a":1e5}]', [b'{"ph":"X","a":1x}, '], 1, "whole"),
        (b'{"x": ?, "traceEvents": [{"ph":"X"}]}', [b'"x": ?, '], 1, "whole"),
        (b"hello", [b"hello"], 0, "foreign"),
        (b'{"x": 1', [b'"x": 1'], 0, "unterminated"),
    ],
)
def test_what_is_no_event_is_lost(content, lost, count, ending):
    for size in (1, 3, len(content)):
        events = read(content, size=size)
        assert [content[run.begin : run.end] for run in events.lost] == lost
        assert (len(events), events.ending) == (count, ending)
        assert events.decoded + sum(map(len, lost)) == len(content) == events.file_size


def test_deep_nesting_is_marked_and_has_a_limit():
    def read_nested(depth):
        return read(b'[{"ph": "X", "args": {"a": ' + b"[" * depth + b"]" * depth + b'}}, {"ph": "i"}]')

    assert [bool(flag & Bit.TOO_DEEP) for flag in read_nested(99).flags.tolist()] == [False, False]
    assert [bool(flag & Bit.TOO_DEEP) for flag in read_nested(100).flags.tolist()] == [True, False]
    events = read_nested((1 << 16) + 1)
    assert events.phase.tolist() == [ord("i")]
    assert [run.loss for run in events.lost] == ["broken"]


@pytest.mark.parametrize(
    ("raw", "text", "is_sound"),
    [
        (rb"plain", "plain", True),
        (rb"\u00e4\t\/", "ä\t/", True),
        (rb"\ud83d\ude00", "\U0001f600", True),
        (rb"\ud83d", "\ufffd", False),
        (b"\xff", "\ufffd", False),
        (rb"\x", r"\x", False),
    ],
)
def test_texts_become_sound(raw, text, is_sound):
    assert decoded(raw) == (text, is_sound)


def sample(seed):
    """A text with everything in it."""
    draw = random.Random(seed)
    events = [
        {
            "ph": draw.choice("XiCMsf"),
            "name": draw.choice(["a", 'q"{}[],', "\u20ac\\", "x" * 40]),
            "pid": draw.choice([1, 2, "p"]),
            "ts": draw.choice([1, 2.5, 1e6]),
            "args": {draw.choice(["bytes", "kind", "z"]): draw.choice([1, "}", [1, [2]], {"ph": "X"}, None])},
        }
        for _ in range(12)
    ]
    return json.dumps(
        {"schemaVersion": 1, "traceEvents": events, "end": [1, {"a": "]"}]}, indent=draw.choice([None, 1])
    ).encode()


def columns(events):
    found = [
        getattr(events, name).tolist()
        for name in ("begin", "size", "phase", "ts", "name", "place", "flags", "args_size")
    ]
    found += [(values.event.tolist(), values.value.tolist(), values.odd.tolist()) for values in events.values.values()]
    return [*found, events.lost, events.ending, events.member_places, events.decoded]


@settings(max_examples=some(2000, 200), deadline=None)
@given(st.integers(0, 50), st.lists(st.tuples(st.floats(0, 0.999), st.integers(0, 255), st.booleans()), max_size=6),
       st.floats(0, 1), st.integers(1, 200))  # fmt: skip
def test_hostile_bytes_are_read_alike_however_they_are_cut(seed, changes, keep, size):
    content = bytearray(sample(seed))
    for where, byte, is_insert in changes:
        place = int(where * len(content))
        content[place : place + (not is_insert)] = bytes([byte])
    content = bytes(content[: int(keep * len(content)) + 1])
    whole, cut = read(content), read(content, size=size)
    assert columns(cut) == columns(whole)
    assert whole.decoded + sum(run.end - run.begin for run in whole.lost) == len(content)
    runs = sorted((run.begin, run.end) for run in whole.lost)
    assert all(begin < end for begin, end in runs)
    for begin, length in zip(whole.begin.tolist(), whole.size.tolist(), strict=True):
        text = content[begin : begin + length]
        assert text.startswith(b"{")
        assert text.endswith(b"}")
        assert not any(first < begin + length and begin < last for first, last in runs)


def test_a_sound_text_is_that_of_the_standard_library():
    for seed in range(20):
        content = sample(seed)
        events, wanted = read(content, size=7), json.loads(content)["traceEvents"]
        assert [events.names[code] for code in events.name.tolist()] == [event["name"] for event in wanted]
        assert events.ts.tolist() == [int(event["ts"] * 1000) for event in wanted]
        assert [
            json.loads(content[b : b + s]) for b, s in zip(events.begin.tolist(), events.size.tolist(), strict=True)
        ] == wanted
        assert not np.count_nonzero(events.flags & Bit.BAD_TIME)

"""Descriptions of CTF 2: the same streams are read as by those of CTF 1.8, and what cannot be read is refused."""

import json
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from effort import some
from lanescope.wire import tsdl
from lanescope.wire.tsdl.trace_kinds import Clock
from wire import foreign
from wire.fragments_writer import fragments, transcribed
from wire.tsdl_writer import Writer


@given(st.integers(0, 2**32), st.sampled_from(("le", "be")))
@settings(max_examples=some(60), deadline=None)
def test_streams_are_read_as_by_the_description_of_ctf_1_8(seed, order):
    writer = Writer(seed, order)
    first = tsdl.describe(writer.text)
    second = tsdl.describe(tsdl.metadata_text(transcribed(first, seed).encode()))
    for data in writer.streams.values():
        expected = foreign.events_of(first, tsdl.Reader(first), data)
        assert foreign.events_of(second, tsdl.Reader(second), data) == expected


U8 = {"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian"}
STRING = {"type": "null-terminated-string"}
I8 = {**U8, "type": "fixed-length-signed-integer"}
PREAMBLE = {"type": "preamble", "version": 2}
CLOCK = {"type": "clock-class", "id": "the clock", "frequency": 1000, "origin": "unix-epoch"}
STREAM = {
    "type": "data-stream-class",
    "default-clock-class-id": "the clock",
    "event-record-header-field-class": {
        "type": "structure",
        # Names say nothing in CTF 2: roles do.
        "member-classes": [
            {"name": "timestamp", "field-class": {**U8, "roles": ["event-record-class-id"]}},
            {"name": "id", "field-class": {**U8, "roles": ["default-clock-timestamp"]}},
        ],
    },
}


def structure(**members):
    return {"type": "structure", "member-classes": [{"name": k, "field-class": v} for k, v in members.items()]}


def description(payload, **more):
    event = {"type": "event-record-class", "name": "e", "payload-field-class": payload}
    return fragments(PREAMBLE, CLOCK, STREAM, event | more)


def fields_of(text, *bodies):
    """Return the fields of events, whose numbers and times are 0, of one packet."""
    about = tsdl.describe(tsdl.metadata_text(text.encode()))
    data = b"".join(b"\0\0" + body for body in bodies)
    return [event[3]["fields"] for event in foreign.events_of(about, tsdl.Reader(about), data)]


def here(*path):
    return {"origin": "event-record-payload", "path": list(path)}


def test_roles_say_what_a_field_means_not_names():
    about = tsdl.describe(description(structure(id=U8)))
    assert about.clocks == {"the clock": Clock("the clock", 1000, is_absolute=True)}
    walk = tsdl.Reader(about).read(np.frombuffer(bytes((0, 5, 7, 0, 9, 7)), np.uint8))
    assert walk.times.tolist() == [5, 9]
    assert walk.lost == 0


def test_optional_fields():
    payload = structure(
        has={"type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian"},
        a={
            "type": "optional",
            "selector-field-location": here("has"),
            "field-class": {"type": "null-terminated-string"},
        },
        sign=I8,
        b={
            "type": "optional",
            "selector-field-location": {"path": ["sign"]},
            "selector-field-ranges": [[-4, -2], [5, 5]],
            "field-class": structure(x=U8),
        },
        end=U8,
    )
    found = fields_of(description(payload), b"\x80yes\0\xfd\1\2", b"\0\xff\3", b"\0\5\6\7")
    assert found == [
        {"has": 128, "a": "yes", "sign": -3, "b": {"x": 1}, "end": 2},
        {"has": 0, "a": None, "sign": -1, "b": None, "end": 3},
        {"has": 0, "a": None, "sign": 5, "b": {"x": 6}, "end": 7},
    ]


def test_fields_are_found_from_roots_and_through_parents():
    inner = structure(
        more=U8,
        own={"type": "dynamic-length-array", "length-field-location": {"path": ["more"]}, "element-field-class": U8},
        up={"type": "dynamic-length-blob", "length-field-location": {"path": [None, "n"]}},
        root={"type": "dynamic-length-string", "length-field-location": here("list", "more")},
    )
    payload = structure(
        n=U8, list={"type": "static-length-array", "length": 2, "element-field-class": inner}, _n=U8, end=U8
    )
    (found,) = fields_of(description(payload), b"\1" + b"\2abxde" + b"\3cccyfgh" + b"\7\x08")
    assert found == {
        "n": 1,
        "list": [
            {"more": 2, "own": [97, 98], "up": [120], "root": "de"},
            {"more": 3, "own": [99] * 3, "up": [121], "root": "fgh"},
        ],
        "_n": 7,
        "end": 8,
    }


def test_bits_and_alignments():
    payload = structure(
        bits={"type": "fixed-length-bit-map", "length": 4, "byte-order": "big-endian", "flags": {"A": [[0, 0]]}},
        array={"type": "fixed-length-bit-array", "length": 4, "byte-order": "big-endian"},
        list={
            "type": "static-length-array",
            "length": 2,
            "minimum-alignment": 32,
            "element-field-class": {"type": "fixed-length-boolean", "length": 4, "byte-order": "little-endian"},
        },
        blob={"type": "static-length-blob", "length": 2},
        text={"type": "static-length-string", "length": 4},
    )
    body = b"\x4f" + b"\0\0\0" + b"\x12" + b"\1\2" + b"ab\0c"
    (found,) = fields_of(description({**payload, "minimum-alignment": 64}), bytes(6) + body)
    assert found == {"bits": 4, "array": 15, "list": [2, 1], "blob": [1, 2], "text": "ab"}


def test_streams_of_several_kinds_have_clocks_of_their_own(tmp_path):
    header = {
        "type": "trace-class",
        "packet-header-field-class": structure(which={**U8, "roles": ["data-stream-class-id"]}),
    }
    other = {**CLOCK, "id": "other", "frequency": 10, "offset-from-origin": {"seconds": 2, "cycles": 5}}
    event = {"type": "event-record-class", "payload-field-class": structure(a=U8)}
    text = fragments(
        PREAMBLE,
        header,
        CLOCK,
        other,
        STREAM,
        {**STREAM, "id": 7, "default-clock-class-id": "other"},
        {**event, "name": "x"},
        {**event, "name": "y", "data-stream-class-id": 7},
    )
    folder = tmp_path / "trace"
    folder.mkdir()
    (folder / "metadata").write_text(text)
    (folder / "one").write_bytes(struct.pack("4B", 0, 0, 100, 1))
    (folder / "two").write_bytes(struct.pack("4B", 7, 0, 5, 1))
    trace = lanescope.open(folder)
    names = [row["name"] for row in trace.instants.rows()]
    times = [row["ts"] + trace.time.epoch_ns for row in trace.instants.rows()]
    assert dict(zip(names, times, strict=True)) == {"x": 100_000_000, "y": 3_000_000_000}
    assert not len(trace.stats)


#: What takes the place of values.
VALUES = (None, -1, 0, 1, 2**64, 2**70, "x", "c", [], {}, [[0, 1]], True, 1.5, ["id"])
BLOB = {"type": "dynamic-length-blob"}
TEXT = transcribed(tsdl.describe(Writer(5).text), 5)
REFUSED = {
    "another version": (lambda text: text.replace('"version": 2', '"version": 3'), "fragment 1: .*version 3"),
    "no JSON": (lambda text: text + "\x1e{", "fragment .* is not JSON"),
    "deep JSON": (lambda text: text + "\x1e" + "[" * 100_000, "is not JSON"),
    "no object": (lambda text: text + "\x1e5", "not an object"),
    "a second preamble": (lambda text: text + text, "has to be the preamble"),
    "an extension": (
        lambda text: fragments({**PREAMBLE, "extensions": {"my": {"way": None}}}) + text,
        "fragment 1: unsupported extensions my: way",
    ),
    "extensions of no names": (
        lambda text: fragments({**PREAMBLE, "extensions": {"my": 5}}) + text,
        "fragment 1: my is not an object",
    ),
    "an unknown fragment": (lambda text: text + fragments({"type": "strange"}), "unknown type 'strange'"),
    "a fragment of an odd type": (lambda text: text + fragments({"type": ["strange"]}), r"type \['strange'\]"),
    "an unknown clock": (lambda text: text.replace('class-id": "c"', 'class-id": "d"'), "unknown clock 'd'"),
    "a clock of a far future": (lambda text: text + clock(2**62), rf"seconds: {2**62} is not a whole number"),
    "a clock of a far past": (lambda text: text + clock(-(2**62)), rf"seconds: -{2**62} is not a whole number"),
    "an unknown stream": (lambda text: text.replace('stream-class-id": 4', 'stream-class-id": 3'), "unknown stream 3"),
    "an event twice": (lambda text: text + text[text.rindex("\x1e") :], "occurs twice"),
    "an unknown origin": (
        lambda text: description(
            structure(
                a=U8,
                b={"type": "optional", "field-class": U8, "selector-field-location": {"origin": "x", "path": ["a"]}},
            )
        ),
        "unknown origin 'x'",
    ),
    "no such field": (
        lambda text: description(structure(b={**BLOB, "length-field-location": here("a")})),
        "unknown field",
    ),
    "a path above all": (
        lambda text: description(structure(b={**BLOB, "length-field-location": {"path": [None, "a"]}})),
        "invalid path",
    ),
    "a length with a sign": (
        lambda text: description(structure(a=I8, b={**BLOB, "length-field-location": here("a")})),
        "has a sign",
    ),
    "many bits": (
        lambda text: description(structure(a={**U8, "length": 65})),
        "fragment 4: unsupported: fields of 65 bits",
    ),
    "a short number": (
        lambda text: description(structure(a={**U8, "type": "fixed-length-floating-point-number", "length": 16})),
        "floating point numbers of 16 bits",
    ),
    "bits backwards": (lambda text: description(structure(a={**U8, "bit-order": "last-to-first"})), "the other order"),
    "UTF-16": (
        lambda text: description(structure(a={"type": "null-terminated-string", "encoding": "utf-16le"})),
        "unsupported: text in utf-16le",
    ),
    "an unknown type": (
        lambda text: description(structure(a={"type": "strange"})),
        "unsupported: fields of type 'strange'",
    ),
    "an unknown alias": (lambda text: description(structure(a="u8")), "unknown field class 'u8'"),
    "an alignment": (lambda text: description(structure(a={**U8, "alignment": 12})), "alignment 12"),
    "a range": (
        lambda text: description(structure(a={**U8, "mappings": {"x": [[2, 1]]}})),
        r"x: invalid range \[2, 1\]",
    ),
    "a member twice": (
        lambda text: description({"type": "structure", "member-classes": [{"name": "a", "field-class": U8}] * 2}),
        "'a' occurs twice",
    ),
    "an array for a payload": (
        lambda text: description({"type": "static-length-array", "length": 1, "element-field-class": U8}),
        "not a structure",
    ),
    "deep types": (lambda text: description(deep(40)), "32 deep"),
}


def clock(seconds):
    return fragments({**CLOCK, "offset-from-origin": {"seconds": seconds}})


def deep(levels):
    kind = structure(a=U8)
    for _ in range(levels):
        kind = structure(a=kind)
    return kind


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_read_is_refused_by_fragment(case):
    change, message = REFUSED[case]
    with pytest.raises(tsdl.TsdlError, match=f"^the metadata: .*{message}"):  # and no line: fragments have none
        tsdl.Reader(tsdl.describe(tsdl.metadata_text(change(TEXT).encode())))


@pytest.mark.parametrize("seconds", [2**62 - 1, 1 - 2**62])
def test_clocks_may_begin_as_far_away_as_their_times_can_be_told(seconds):
    about = tsdl.describe(fragments(PREAMBLE) + clock(seconds))
    assert about.clocks["the clock"].offset_s == seconds


@given(st.integers(0, 20), st.data())
@settings(max_examples=some(200), deadline=None)
def test_any_description_is_read_or_refused(seed, data):
    """Values anywhere in the fragments are replaced by others."""
    writer = Writer(seed)
    parts = [json.loads(part) for part in transcribed(tsdl.describe(writer.text), seed).split("\x1e")[1:]]
    places = [place for part in parts for place in _places(part)]
    for _ in range(data.draw(st.integers(1, 4))):
        of, key = data.draw(st.sampled_from(places))
        value = data.draw(
            st.sampled_from((None, -1, 0, 1, 2**64, 2**70, "x", "c", [], {}, [[0, 1]], True, 1.5, ["id"]))
        )
        if data.draw(st.booleans()):
            of[key] = value
        elif isinstance(of, dict):
            of.pop(key, None)
    try:
        reader = tsdl.Reader(tsdl.describe(fragments(*parts)))
    except tsdl.TsdlError:
        return
    walk = reader.read(np.frombuffer(writer.streams["stream_0"], np.uint8))
    assert walk.decoded + walk.padding + walk.lost == len(walk.data)


def _places(value):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield value, key
        yield from _places(item)

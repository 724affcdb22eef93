"""CTF: what the native reader sees in any bytes is what the reference sees; descriptions are read or refused."""

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effort import some
from lanescope.wire import ctf

UUID = bytes(range(16))
DESCRIPTION = b"""/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; } := uint16_t;
typealias integer { size = 32; align = 8; } := uint32_t;
typealias integer { size = 64; align = 8; base = hexadecimal; } := uint64_t;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias enum : uint8_t { "none", "two" = 2, three } := how_t;
trace { major = 1; minor = 8; uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f"; byte_order = le;
    packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; }; };
env { domain = "test"; pid = 7; };
clock { name = c; freq = 1000000000; offset_s = 3; offset = 4; };
stream { id = 0;
    packet.context := struct { uint64_t timestamp_begin; uint64_t timestamp_end; uint64_t content_size;
        uint64_t packet_size; uint64_t events_discarded; uint64_t packet_seq_num; uint32_t thread; uint32_t complete; };
    event.header := struct { uint16_t id; uint32_t timestamp; }; };
event { id = 0; name = "empty"; stream_id = 0; fields := struct { }; };
event { id = 1; name = "numbers"; fields := struct { uint8_t a; uint16_t b; int32_t c; uint64_t d; how_t e; }; };
event { id = 3; name = "texts"; fields := struct { string s; uint8_t n; uint16_t many[n]; string t; }; };
"""
ABOUT = ctf.describe(DESCRIPTION)
HEADER = 80
U32 = st.integers(0, 2**32 - 1)
TEXT = st.binary(max_size=6).map(lambda text: text.replace(b"\0", b"x"))

# An event: its number, its time after the one before, and the values of its fields.
EVENTS = st.one_of(
    st.tuples(st.just(0), U32, st.just(())),
    st.tuples(
        st.just(1),
        U32,
        st.tuples(
            st.integers(0, 255),
            st.integers(0, 2**16 - 1),
            st.integers(-(2**31), 2**31 - 1),
            st.integers(0, 2**64 - 1),
            st.integers(0, 3),
        ),
    ),
    st.tuples(st.just(3), U32, st.tuples(TEXT, st.lists(st.integers(0, 2**16 - 1), max_size=5), TEXT)),
)
PACKETS = st.lists(st.tuples(st.integers(0, 2**40), st.lists(EVENTS, max_size=8), st.integers(0, 9)), max_size=4)


def payload(number, values):
    if number == 1:
        return struct.pack("<BHiQB", *values)
    if number == 3:
        first, many, second = values
        return first + b"\0" + bytes([len(many)]) + struct.pack(f"<{len(many)}H", *many) + second + b"\0"
    return b""


def stream_of(packets):
    """Write packets: begin, events, bytes of padding."""
    data = b""
    for sequence, (begin, events, padding) in enumerate(packets):
        time, body = begin, b""
        for number, step, values in events:
            time += step
            body += struct.pack("<HI", number, time & 0xFFFFFFFF) + payload(number, values)
        used = HEADER + len(body)
        context = (begin, time, 8 * used, 8 * (used + padding), 5, sequence, 42, 1)
        data += struct.pack("<I16sI6QII", ctf.MAGIC, UUID, 0, *context) + body + bytes(padding)
    return data


def both(data):
    return ctf.Reader(ABOUT).read(np.frombuffer(data, np.uint8)), ctf.ReferenceReader(ABOUT).read(data)


def assert_same(fast, slow):
    for name in ("packets", "losses", "classes", "times", "payloads"):
        assert np.array_equal(getattr(fast, name), getattr(slow, name)), name
    assert (fast.decoded, fast.padding, fast.lost) == (slow.decoded, slow.padding, slow.lost)


@given(PACKETS)
def test_what_is_written_is_read(packets):
    data = stream_of(packets)
    fast, slow = both(data)
    assert_same(fast, slow)
    written = [(begin, event) for begin, events, _ in packets for event in events]
    assert fast.classes.tolist() == [number for _, (number, _, _) in written]
    times = [
        begin + sum(step for _, step, _ in events[: i + 1]) for begin, events, _ in packets for i in range(len(events))
    ]
    assert fast.times.tolist() == times
    assert fast.lost == 0
    assert fast.padding == sum(padding for _, _, padding in packets)
    assert fast.decoded == len(data) - fast.padding
    for number in (1, 3):
        rows = np.flatnonzero(fast.classes == number)
        columns = ctf.Reader(ABOUT).columns(fast, number, rows)
        values = [values for _, (found, _, values) in written if found == number]
        reference = [ctf.ReferenceReader(ABOUT).values(data, number, at) for at in fast.payloads[rows].tolist()]
        if number == 1:
            assert columns["a"][0].tolist() == [value[0] for value in values]
            assert columns["c"][0].astype(np.uint32).view(np.int32).tolist() == [value[2] for value in values]
            assert columns["d"][0].tolist() == [value[3] for value in values]
            assert reference == [list(value) for value in values]
        else:
            assert ctf.texts(fast.data, columns["t"]) == [value[2].decode(errors="replace") for value in values]
            owner, elements = ctf.sequences(fast.data, columns["many"], 2)
            assert elements.tolist() == [item for value in values for item in value[1]]
            assert owner.tolist() == [row for row, value in enumerate(values) for _ in value[1]]
            assert [found[2] for found in reference] == [value[1] for value in values]


@st.composite
def damaged(draw):
    """Streams with bytes changed, left out, doubled or put in between."""
    data = bytearray(stream_of(draw(PACKETS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(data)))
        how = draw(st.sampled_from(("change", "cut", "insert", "double", "end")))
        if how == "change" and at < len(data):
            data[at] = draw(st.integers(0, 255))
        elif how == "cut":
            del data[at : at + draw(st.integers(0, 50))]
        elif how == "insert":
            data[at:at] = draw(st.binary(max_size=30))
        elif how == "double":
            data[at:at] = data[at : at + draw(st.integers(0, 200))]
        else:
            del data[at:]
    return bytes(data)


@given(damaged())
@settings(max_examples=some(400))
def test_any_bytes_are_accounted_for_and_read_as_the_reference_reads_them(data):
    fast, slow = both(data)
    assert_same(fast, slow)
    assert fast.decoded + fast.padding + fast.lost == len(data)
    assert int(fast.packet("events").sum()) == len(fast.classes)
    assert (fast.times < 2**63).all()


def test_a_damaged_packet_costs_no_other():
    event = (1, 1, (1, 2, 3, 4, 0))
    packets = [(100, [event] * 3, 0), (200, [event] * 3, 0), (300, [event] * 3, 0)]
    whole = stream_of(packets)
    size = len(whole) // 3
    # Its size grows into its neighbour, its magic goes, an event has no number, its end is missing.
    for offset, value in ((48, 0xFFFF), (0, 0), (HEADER, 2)):
        data = bytearray(whole)
        struct.pack_into("<H", data, size + offset, value)
        fast, slow = both(bytes(data))
        assert_same(fast, slow)
        assert {int(time) for time in fast.times} >= {101, 102, 103, 301, 302, 303}
        assert fast.lost > 0 or offset == 48
    fast, _ = both(whole[:-10])
    assert len(fast.classes) == 8
    assert fast.packet("cut").tolist() == [0, 0, 1]


def test_zeros_behind_a_stream_are_filler_and_other_bytes_are_not():
    data = stream_of([(1, [(0, 1, ())], 0)])
    fast, _ = both(data + bytes(100))
    assert (fast.padding, fast.lost) == (100, 0)
    fast, _ = both(data + b"x" * 100)
    assert (fast.padding, fast.lost, fast.losses.tolist()) == (0, 100, [[len(data), 100]])


def test_without_its_last_packet_a_stream_adds_up_too():
    data = stream_of([(1, [(0, 1, ())], 3), (9, [(0, 1, ()), (0, 1, ())], 4)])
    fast, _ = both(data)
    less = fast.drop_last_packet()
    assert (len(less.classes), less.decoded + less.padding + less.lost) == (1, len(data))


def test_a_description_says_what_there_is():
    assert ABOUT.uuid == UUID
    assert ABOUT.epoch_ns == 3_000_000_004
    assert dict(ABOUT.environment) == {"domain": "test", "pid": 7}
    assert [event.name for event in ABOUT.events.values()] == ["empty", "numbers", "texts"]
    assert dict(ABOUT.events[1].fields[4].labels) == {0: "none", 2: "two", 3: "three"}
    assert ABOUT.events[3].fields[2] == ctf.Field("many", ctf.SEQUENCE, 2, length=1)


REFUSED = {
    "another format": (b"/* CTF 1.8 */", b"CTF 2"),
    "bits": (b"size = 16; align = 8", b"size = 12; align = 8"),
    "alignment": (b"size = 16; align = 8", b"size = 16; align = 16"),
    "big-endian": (b"byte_order = le", b"byte_order = be"),
    "no uuid": (b'uuid = "0001', b'uuid = "'),
    "another clock": (b"freq = 1000000000", b"freq = 1000"),
    "endless epoch": (b"offset_s = 3", b"offset_s = 99999999999999"),
    "an unknown type": (b"how_t e", b"float e"),
    "an unknown length": (b"many[n]", b"many[m]"),
    "a field twice": (b"uint32_t timestamp;", b"uint32_t timestamp; uint32_t timestamp;"),
    "a setting twice": (b"freq = 1000000000", b"freq = 1000000000; freq = 1000000000"),
    "digits of another script": (b"freq = 1000000000", b"freq = 1000000000; offset_s2 = \xd9\xa3"),
    "a number and more": (b"offset = 4", b"offset = 4x"),
    "a quote without an end": (b'uuid = "0001', b"uuid = 0001"),
    "an unknown escape": (b'domain = "test"', b'domain = "te\\qst"'),
    "a number twice": (b"id = 1; name", b"id = 0; name"),
    "a number above 16 bits": (b"id = 1; name", b"id = 65536; name"),
    "cut short": (b"string t; }; };", b"string t;"),
    "no times": (b"uint32_t timestamp;", b"uint32_t when;"),
    "no magic": (b"uint32_t magic;", b"uint64_t magic;"),
    "no octal number": (b"offset = 4", b"offset = 09"),
    "a number without end": (b"offset = 4", b"offset = " + b"4" * 5000),
    "enumerations of enumerations": (b"enum : uint8_t", b"enum : " * 5000 + b"uint8_t"),
    "a text in a header": (b"uint32_t thread;", b"string thread;"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_read_is_refused_in_words(case):
    old, new = REFUSED[case]
    assert old in DESCRIPTION
    with pytest.raises(ctf.CtfError):
        ctf.Reader(ctf.describe(DESCRIPTION.replace(old, new)))


@given(st.data())
def test_any_description_is_read_or_refused(data):
    text = bytearray(DESCRIPTION)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(20, len(text) - 1))
        if data.draw(st.booleans()):
            text[at] = data.draw(st.integers(0, 255))
        else:
            del text[at : at + data.draw(st.integers(1, 30))]
    try:
        reader = ctf.Reader(ctf.describe(bytes(text)))
    except ctf.CtfError:
        return
    reader.read(np.frombuffer(stream_of([(1, [(1, 1, (1, 2, 3, 4, 0))], 0)]), np.uint8))


def test_hostile_streams_take_linear_time():
    """Marks of packets everywhere, each with a size that reaches to the end: nothing is looked at again and again."""
    mark = struct.pack("<I16sI6QII", ctf.MAGIC, UUID, 0, 0, 0, 8 * HEADER, 8 << 40, 0, 0, 0, 0)
    many = 20_000
    fast, _ = ctf.Reader(ABOUT).read(np.frombuffer(mark * many, np.uint8)), None
    assert len(fast.packets) == many
    headless = struct.pack("<I16s", ctf.MAGIC, UUID) * 100_000
    fast = ctf.Reader(ABOUT).read(np.frombuffer(headless, np.uint8))
    assert fast.lost + fast.padding + fast.decoded == len(headless)


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        (b"freq = 1000000000", b"freq = 19200000", "clock frequency"),
        (b"offset_s = 3;", b"offset_s = -1;", "clock offset"),
        (b"offset_s = 3; offset = 4;", b"offset_s = 5; offset = -5000000001;", "clock offset"),
        (b"offset_s = 3;", b"offset_s = 99999999999;", "clock offset"),
    ],
)
def test_a_rewritten_trace_whose_clock_is_not_ours_is_refused(old, new, error):
    with pytest.raises(ctf.CtfError, match=error):
        ctf.RewrittenReader(DESCRIPTION.replace(old, new))


def test_a_rewritten_trace_keeps_what_its_description_says():
    about = ctf.RewrittenReader(DESCRIPTION).about
    assert (about.uuid, about.epoch_ns) == (UUID, 3_000_000_004)
    nameless = DESCRIPTION.replace(b'uuid = "00010203-0405-0607-0809-0a0b0c0d0e0f"; ', b"").replace(
        b" uint8_t uuid[16];", b""
    )
    assert ctf.RewrittenReader(nameless).about.uuid == bytes(16)


def test_a_rewritten_trace_has_the_same_events_and_packets_without_any():
    packets = [(1, [(0, 1, ()), (1, 2, (1, 2, -3, 4, 0))], 3), (9, [], 4), (20, [(0, 5, ())], 0), (30, [], 0)]
    data = np.frombuffer(stream_of(packets), np.uint8)
    fast, rewritten = ctf.Reader(ABOUT).read(data), ctf.RewrittenReader(DESCRIPTION).read(data)
    assert_same(fast, ctf.ReferenceReader(ABOUT).read(data.tobytes()))
    assert (rewritten.classes.tolist(), rewritten.times.tolist()) == (fast.classes.tolist(), fast.times.tolist())
    for name in ("offset", "size", "content", "lost", "begin", "end", "discarded", "sequence", "events", "cut"):
        assert rewritten.packet(name).tolist() == fast.packet(name).tolist(), name
    # Threads are those of events.
    assert rewritten.packet("thread").tolist() == [42, 0, 42, 0]
    assert (rewritten.decoded, rewritten.padding, rewritten.lost) == (fast.decoded, fast.padding, fast.lost)

"""Compression of packets: what comes back, and when it is left to another compressor."""

import io
import random
import zlib

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from isal import isal_zlib

from lanescope._native import core
from lanescope.io import perfetto
from lanescope.trace import TimeBase, TraceBuilder
from track_events import SQL, by_bindings, by_perfetto

#: What is behind the time of packets: ends, and begins of some names.
TAILS = [bytes.fromhex("50025a024802"), *(bytes.fromhex("50025a04480150") + bytes([n]) for n in range(6))]


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def packet(delta, tail):
    body = b"\x40" + varint(delta) + tail
    return b"\x0a" + varint(len(body)) + body


def inflated(stream):
    reader = zlib.decompressobj(-15)
    found = reader.decompress(stream)
    assert reader.eof
    assert not reader.unused_data
    return found


def packets(deltas, *, seed=0, odd=()):
    """Packets of random tails at these times, and here and there other bytes between them."""
    bits = random.Random(seed)
    made = [packet(delta, bits.choice(TAILS)) for delta in deltas]
    for other in odd:
        made.insert(bits.randrange(len(made) + 1), other)
    return b"".join(made)


ODD = [
    packet((1 << 64) - 5, TAILS[0]),  # a step back
    packet(3, b"\x50\x02\x62" + varint(300) + bytes(range(256)) + bytes(44)),
    b"\x0a\x02\x50\x02",
    b"\x0a\xff\xff\xff\xff\x7f",
    b"\x0a\x80\x00",
    b"\x12\x03abc",
    b"\x0a\x40",
]


@given(
    seed=st.integers(0, 1 << 32),
    count=st.integers(0, 3000),
    largest=st.sampled_from([2, 100, 5000, 1 << 20, 1 << 40]),
    odd=st.lists(st.sampled_from(ODD), max_size=4),
    cut=st.integers(0, 30),
)
@example(seed=1, count=3000, largest=5000, odd=ODD, cut=0)
@example(seed=1, count=3000, largest=1 << 40, odd=[], cut=7)
def test_what_is_compressed_comes_back(seed, count, largest, odd, cut):
    bits = random.Random(seed)
    block = packets((int(largest ** bits.random()) for _ in range(count)), seed=seed, odd=odd)
    block = block[: len(block) - cut]
    stream = core.perfetto_deflate(block)
    assert stream is None or inflated(stream) == block


@given(st.binary(max_size=2000))
def test_any_bytes_come_back_or_are_left_alone(data):
    stream = core.perfetto_deflate(data)
    assert stream is None or inflated(stream) == data


def test_packets_at_random_times_take_less_than_where_matches_are_searched():
    bits = random.Random(1)
    block = packets(int(bits.expovariate(1 / 900)) for _ in range(20_000))
    assert len(core.perfetto_deflate(block)) < 0.95 * len(isal_zlib.compress(block, 1))


def test_codes_are_no_longer_than_the_format_allows():
    """Bytes that are each as frequent as the two before together would have codes of more than 15 bits."""
    often = [1, 1]
    while len(often) < 25:
        often.append(often[-1] + often[-2])
    # Of the frequent ones there are several, so that the same time seldom comes twice in a row.
    deltas = [byte for byte, count in enumerate(often[:21]) for _ in range(count)]
    deltas += [40 + n % 64 for n in range(sum(often[21:]))]
    random.Random(2).shuffle(deltas)
    block = packets(deltas, seed=3)
    assert inflated(core.perfetto_deflate(block)) == block


@pytest.mark.parametrize(
    ("block", "why"),
    [
        (packets([32] * 20_000), "times repeat, so matches reach over them"),
        (random.Random(4).randbytes(100_000), "nothing repeats"),
        (b"".join(packet(5, random.Random(n).randbytes(12)) for n in range(5000)), "tails do not repeat"),
    ],
)
def test_left_to_another_compressor(block, why):
    assert core.perfetto_deflate(block) is None, why


def random_lanes(slices):
    """Slices of four names on four lanes, whose lengths and distances are random."""
    rng = np.random.default_rng(5)
    builder = TraceBuilder(TimeBase())
    for number in range(4):
        times = np.cumsum(rng.exponential(700, 2 * slices).astype(np.int64) + 1)
        codes = np.array([builder.names.code(f"work {code}") for code in range(4)], np.int32)
        builder.append(
            "slices",
            track_id=builder.track(f"lane {number}", kind="lane", role="core"),
            ts=times[::2],
            dur=times[1::2] - times[::2],
            name=codes[rng.integers(0, 4, slices)],
        )
    return builder.finish()


def test_readers_find_all_that_was_compressed(trace_processor, tmp_path, monkeypatch):
    trace, path, searched = random_lanes(8000), tmp_path / "random.pftrace", io.BytesIO()
    report = perfetto.write(trace, path)
    data = path.read_bytes()
    picture = by_bindings(data)
    assert len(picture.slices) == len(trace.slices)
    assert by_perfetto(trace_processor(path, *SQL)) == picture
    monkeypatch.setattr(core, "perfetto_deflate", lambda block: None)
    assert perfetto.write(trace, searched).raw_bytes == report.raw_bytes
    assert by_bindings(searched.getvalue()) == picture
    assert len(data) < 0.95 * len(searched.getvalue())

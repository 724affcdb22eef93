"""Compressed blocks of Perfetto packets: they come back as they were, smaller than by a search."""

import random
import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib

from effort import some
from lanescope._native import core
from lanescope.io.perfetto_packets import compress_block

BEGIN_TAILS = [bytes((0x50, 2, 0x5A, 6, 0x48, 1, 0x50, name, 0x18, 1)) for name in (1, 2, 3)]
TAILS = [*BEGIN_TAILS, bytes((0x50, 2, 0x5A, 2, 0x48, 2))]


def varint(value):
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*out, value))


def packet(time, tail):
    body = b"\x40" + varint(time) + tail
    return b"\x0a" + varint(len(body)) + body


def slices(seed, count, *, bits=20):
    """Begins and ends of slices of three names, some time apart."""
    rng = random.Random(seed)
    return b"".join(
        packet(rng.getrandbits(rng.randrange(1, bits)), tail)
        for _ in range(count)
        for tail in (TAILS[rng.randrange(3)], TAILS[3])
    )


def deflated(packets):
    return core.deflate_packets(np.frombuffer(packets, np.uint8), zlib.adler32(packets))


@pytest.mark.parametrize("bits", [2, 8, 20, 28, 40, 63])
@pytest.mark.parametrize("count", [60, 2000, 20_000])
def test_packets_come_back(bits, count):
    packets = slices(bits, count, bits=bits)
    stream = deflated(packets)
    assert stream is None or zlib.decompress(stream) == packets
    assert zlib.decompress(compress_block(packets)) == packets


def test_packets_of_few_shapes_take_less_than_by_a_search():
    packets = slices(1, 20_000)
    stream = deflated(packets)
    assert zlib.decompress(stream) == packets
    assert len(stream) < 0.95 * len(isal_zlib.compress(packets, 1))
    assert compress_block(packets) == stream


def test_a_search_takes_what_repeats_as_a_whole():
    """Loops whose times repeat, arguments that differ, and texts."""
    loops = slices(3, 40) * 400
    arguments = b"".join(packet(n, TAILS[0] + varint(n * 0x9E3779B1 % 2**40)) for n in range(20_000))
    for block in (loops, arguments, random.Random(1).randbytes(200_000)):
        assert deflated(block) is None
        assert compress_block(block) == isal_zlib.compress(block, 1)


def test_a_block_that_begins_or_ends_as_loops_comes_back():
    for block in (slices(5, 20) * 60 + slices(6, 9000), slices(6, 9000) + slices(5, 20) * 60):
        assert zlib.decompress(compress_block(block)) == block


@given(
    st.lists(st.tuples(st.integers(0, 2**35), st.binary(max_size=140)), max_size=12),
    st.integers(1, some(400)),
    st.binary(max_size=40),
    st.integers(0, 40),
)
def test_any_packets_come_back(shapes, times, rest, cut):
    packets = b"".join(packet(time ^ n * 0x9E37, tail) for n in range(times) for time, tail in shapes)
    packets = packets[cut:] + rest
    stream = deflated(packets)
    assert stream is None or zlib.decompress(stream) == packets


def test_every_cut_of_a_block_comes_back():
    packets = slices(7, 200)
    for cut in range(len(packets) - 600, len(packets)):
        stream = deflated(packets[:cut])
        assert zlib.decompress(stream) == packets[:cut]


def test_of_the_farthest_matches():
    """A shape that comes every 32 KiB and a little more or less."""
    filler = b"".join(packet(n * 37 % 100_000, TAILS[3]) for n in range(3200))
    for extra in range(-12, 13):
        far = filler[: 32768 - 8 + extra]
        packets = b"".join((packet(5, TAILS[0]), far) * 4)
        stream = deflated(packets)
        assert stream is None or zlib.decompress(stream) == packets

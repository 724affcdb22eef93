"""Bytes from anywhere: never a crash, never a hang, always a sum; and how they are cut changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from devices.cuda.helpers import accounts, buffer, decode, decode_simulation, simulate, spans
from effort import some
from lanescope.devices.cuda.formats.encode import strided
from lanescope.errors import InputError

#: Columns in which a decode may not differ from another of the same bytes.
SAME = (
    "slices",
    "instants",
    "gaps",
    "coverage",
    "tracks",
    "stats",
    "accounting",
    "clocks",
    "cuda_regions",
    "cuda_lanes",
)


def rows(trace):
    return {name: list(trace.tables()[name].rows()) for name in SAME}


@st.composite
def wild(draw):
    """Return any words behind a header that can be, some of them with tags that can be."""
    blocks, groups = draw(st.integers(1, 5)), draw(st.integers(1, 3))
    lanes = blocks * groups
    count = draw(st.integers(lanes, lanes + 80))
    word = st.one_of(st.just(0), st.integers(0, 2**64 - 1))
    words = np.array([strided.header_word(blocks, groups), *draw(st.lists(word, min_size=count, max_size=count))], "u8")
    for slot in draw(st.sets(st.integers(1, count), max_size=60)):
        lane = np.uint64(draw(st.integers(0, lanes)))
        words[slot] = (words[slot] & ~np.uint64(0xFFFFF << 12)) | lane << np.uint64(12)
    return words


@settings(max_examples=some(300))
@given(wild(), st.sampled_from(["split", "ignore"]), st.sampled_from([None, 0, 7]))
@example(np.array([1 << 32 | 1, 1 << 32 | 1, 1], np.uint64), "split", None)  # the last word is of an earlier launch
@example(np.array([2 << 32 | 1, *[0] * 39, 1], np.uint64), "split", 7)  # which other layouts may have written, too
def test_random_words_are_decoded_and_accounted_for(words, after_finalize, extra):
    stride = None if extra is None else int(words[0] & 0xFFFFFFFF) * int(words[0] >> 32) + extra
    layout = {} if stride is None else {"layout": "tirx", "stride": stride}
    trace = decode(words, after_finalize=after_finalize, **layout)  # the builder refuses sums that do not add up
    used = int(np.count_nonzero(words[1:]))
    account = accounts(trace)["slot"]
    assert account["total"] == len(words)
    earlier = sum(row["count"] for row in trace.stats.rows() if row["name"] == "cuda_stale")
    assert account["decoded"] - 1 + account["lost"] + earlier >= used
    assert sum(row["records"] for row in trace.details["cuda_lanes"].rows()) == account["decoded"] - 1
    assert len(trace.slices) == 0 or trace.slices["ts"].min() >= 0
    assert (trace.slices.values("dur") >= 0).all()
    assert (trace.coverage["dur"] >= 0).all()
    assert len(spans(trace)) == len(trace.slices)
    assert len(trace.records["cuda_records"]) == used


@settings(max_examples=some(200))
@given(st.binary(max_size=400))
def test_random_bytes_are_refused_or_decoded(data):
    try:
        trace = decode(data, name="run.bin")
    except InputError:
        return
    assert accounts(trace)["byte"]["total"] == len(data)


@settings(max_examples=some(100))
@given(st.data())
def test_spoiled_npy_headers(data):
    whole = bytearray(strided.to_npy(buffer([[("B", 1, 5), ("E", 1, 9), ("F", 0, 10)]])))
    for at in data.draw(st.lists(st.integers(0, 127), max_size=4)):
        whole[at] = data.draw(st.integers(0, 255))
    whole = bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        trace = decode(whole)
    except InputError:
        return
    assert accounts(trace)["byte"]["total"] == len(whole)


def test_all_ones():
    words = np.full(1000, 2**64 - 1, np.uint64)
    with pytest.raises(InputError):
        decode(words)
    words[0] = strided.header_word(1, 1)
    trace = decode(words)
    assert accounts(trace)["slot"]["lost"] == 999


def test_largest_grid():
    words = np.zeros(2 + (1 << 20), np.uint64)
    words[0] = strided.header_word(1 << 19, 2)
    words[1 + 77] = 9 << 32 | 77 << 12
    trace = decode(words)
    assert len(trace.tracks) == 3
    assert spans(trace)[0][:2] == (38, 1)


def test_finalize_in_every_word_is_not_slow_in_tracks():
    records = strided.Records(
        *(np.zeros(50_000, np.int64), np.zeros(50_000, np.int64), np.full(50_000, 3), np.arange(50_000))
    )
    words, _ = strided.encode(records, num_blocks=1, num_groups=1)
    trace = decode(words)
    assert len(trace.tracks) == 3
    assert trace.details["cuda_lanes"]["launches"].tolist() == [50_000]


@pytest.mark.parametrize("chunk", [1, 7, 8, 100, 4096])
def test_any_cut_gives_the_same_rows(chunk):
    faults = dict.fromkeys(("two_writers", "clock_step", "holes", "corrupt", "crossing", "stray_ends", "reruns"), 1)
    simulation = simulate(seed=4, blocks=6, tiles=2, instants=True, wrap=True, **faults)
    assert rows(decode_simulation(simulation, chunk=chunk)) == rows(decode_simulation(simulation))


def test_more_bytes_than_the_file_had():
    # A pipe is spooled and so has its size; a file that grows is read as far as it goes.
    from lanescope.devices.cuda.decoder import CudaDecoder
    from lanescope.devices.cuda.family import FAMILY
    from lanescope.families.options import resolve_options
    from lanescope.source import Capture

    data = strided.to_npy(buffer([[("B", 1, 5), ("E", 1, 9), ("F", 0, 10)]]))
    import tempfile

    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        with Capture(file.name) as capture:
            decoder = CudaDecoder(capture, resolve_options(FAMILY.options, {}, what="family cuda"))
            for piece in (data, b"12345"):
                assert decoder.feed(memoryview(piece)) == []
            (trace,) = decoder.finish()
    assert accounts(trace)["byte"]["lost"] == 5


@pytest.mark.parametrize("seed", range(6))
def test_parts_give_the_rows_of_the_whole(seed, monkeypatch):
    from lanescope.devices.cuda.emit import batches

    faults = dict.fromkeys(("two_writers", "clock_step", "holes", "corrupt", "crossing", "stray_ends", "reruns"), 1)
    simulation = simulate(
        seed, blocks=9, tiles=4, instants=True, wrap=seed % 2 == 1, slots=(0, 700)[seed > 3], **faults
    )
    whole = rows(decode_simulation(simulation))
    monkeypatch.setattr(batches, "PART_RECORDS", (40, 150)[seed % 2])
    assert rows(decode_simulation(simulation)) == whole


def rows_or_refusal(words):
    """Return the rows of a buffer; where several layouts fit, the error that says which."""
    try:
        return rows(decode(words))
    except InputError as error:
        if not error.message.startswith("layout not certain"):
            raise
        return error.message


@settings(max_examples=some(100))
@given(wild(), st.integers(1, 30))
@example(np.array([2 << 32 | 1, 0, 1], np.uint64), 1)  # fits two layouts
def test_parts_of_any_words(words, limit):
    from lanescope.devices.cuda.emit import batches

    whole = rows_or_refusal(words)
    before, batches.PART_RECORDS = batches.PART_RECORDS, limit
    try:
        assert rows_or_refusal(words) == whole
    finally:
        batches.PART_RECORDS = before

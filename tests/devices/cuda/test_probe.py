"""Scores: sure of its own, silent about everything else."""

from __future__ import annotations

import random
import struct

import numpy as np
import pytest

from devices.cuda.helpers import GOLDEN, buffer, simulate
from lanescope.devices.cuda.family import FAMILY
from lanescope.devices.cuda.formats.encode import strided
from lanescope.source import CERTAIN, HEAD_BYTES, MINE, TIE, FileHead

LANE = [("B", 1, 1000), ("E", 1, 1200), ("B", 2, 1300), ("E", 2, 1500), ("F", 0, 1600)]


def probe(data, size=None):
    return FAMILY.detect(FileHead(data[:HEAD_BYTES], size or len(data), "name"))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.npy")), ids=lambda path: path.stem)
@pytest.mark.parametrize("skip", [0, 128])
def test_golden_buffers_are_certain(path, skip):
    match = probe(path.read_bytes()[skip:])
    assert match.score >= CERTAIN
    assert match.format == "tirx-v1"
    assert "words match their lane" in match.reason


@pytest.mark.parametrize("options", [{"tiles": 100}, {"blocks": 20_000, "tiles": 1}, {"blocks": 40, "stride": 500}])
def test_large_captures_are_certain_by_their_heads(options):
    data = simulate(**options).files["attention.npy"]
    assert len(data) > HEAD_BYTES
    assert probe(data).score >= CERTAIN


def test_damaged_captures_are_still_recognised():
    faults = dict.fromkeys(("two_writers", "clock_step", "holes", "corrupt", "crossing", "stray_ends", "reruns"), 2)
    data = simulate(blocks=20, tiles=4, **faults).files["attention.npy"]
    assert probe(data).score >= MINE + TIE


def test_little_evidence_scores_less():
    few, closed, none = buffer([LANE[:-1]]), buffer([LANE]), buffer([[]], slots=9)
    # Four records of one lane are as well records of Mirage, which never finalizes a lane.
    assert 0 < probe(few.tobytes()).score == probe(strided.to_npy(few)).score < MINE
    assert probe(closed.tobytes()).score >= MINE
    assert probe(none.tobytes()).score < MINE <= probe(strided.to_npy(none)).score < CERTAIN


@pytest.mark.parametrize("size", [0, 1, 7, 8, 100, 4096, HEAD_BYTES])
def test_zeros(size):
    assert probe(bytes(size)).score < MINE
    assert probe(strided.to_npy(np.zeros(size, np.uint64))).score < MINE


@pytest.mark.parametrize("seed", range(50))
def test_random_bytes(seed):
    data = random.Random(seed).randbytes(HEAD_BYTES)
    assert probe(data, size=1 << 40).score == 0
    assert probe(strided.to_npy(np.frombuffer(data, "<u8"))).score == 0


@pytest.mark.parametrize("seed", range(50))
def test_random_bytes_behind_a_header_that_could_be(seed):
    source = random.Random(seed)
    header = struct.pack("<II", source.randrange(1, 40), source.randrange(1, 5))
    assert probe(header + source.randbytes(HEAD_BYTES - 8)).score < MINE


@pytest.mark.parametrize(
    "data",
    [
        b'{"traceEvents": []}' * 3000,
        b"\n".join(b"%08x" % (i * 2654435761 % 2**32) for i in range(5000)),
        b"".join(struct.pack("<II", 1, i) for i in range(4000)),
        b"".join(struct.pack("<II", i, 1) for i in range(1, 4000)),
        struct.pack("<QQ", 1 << 32 | 1, 0) + b"".join(struct.pack("<Q", i * 4 + 1) for i in range(1000)),
        struct.pack("<II", 2, 3) + b"".join(struct.pack("<d", i / 7) for i in range(4000)),
        b"\x7fELF" + bytes(range(256)) * 30,
        b"\x1f\x8b" + bytes(range(256)) * 30,
        np.arange(8000, dtype="<u8").tobytes(),
        np.arange(1 << 32 | 2, (1 << 32) + 8000, dtype="<u8").tobytes(),
    ],
    ids=range(10),
)
def test_other_files(data):
    assert probe(data).score < MINE


def test_npy_of_other_types():
    for dtype in (">u8", "<f8", "<u2"):
        assert probe(strided.to_npy(buffer([LANE])).replace(b"<u8", dtype.encode())).score == 0


def test_captures_of_other_families(corpus):
    others = [path for family in ("aie", "ascend", "thapi") for path in (corpus / family).rglob("*") if path.is_file()]
    assert others
    for path in others:
        with path.open("rb") as file:
            assert FAMILY.detect(FileHead(file.read(HEAD_BYTES), path.stat().st_size, path.name)).score < MINE, path


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    ("layout", "name", "least"),
    [("ls2", "ls2", 100), ("proton", "proton", CERTAIN), ("flashinfer2", "flashinfer-v2", CERTAIN)],
)
def test_other_layouts_are_certain(layout, name, least, large):
    data, *_ = simulate(layout=layout, blocks=12, groups=2, tiles=(4, 60)[large]).files.values()
    assert (len(data) > HEAD_BYTES) == large
    match = probe(data)
    assert (match.format, match.score >= least) == (name, True)
    assert "12 blocks" in match.reason


def test_words_that_only_begin_like_other_layouts():
    rest = np.random.default_rng(5).integers(0, 2**32, 2000, np.uint32).astype("<u4").tobytes()
    assert probe(b"LSPROBE2" + rest).score < MINE
    assert probe(np.array([1, 4, 44, 44, 256, 1, 1, 2, 256, 1, 0], "<u4").tobytes() + rest).score < MINE
    assert probe(np.array([1, 4, 44, 44, 256, 1, 1, 0, 256, 1, 0, 0xDEADBEEF], "<u4").tobytes() + rest).score < MINE

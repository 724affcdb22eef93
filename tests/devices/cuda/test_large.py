"""Files that are not read whole: the same rows, and never more than a piece in memory."""

import os
from contextlib import nullcontext
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lanescope
from devices.cuda.helpers import buffer, simulate, stats
from devices.cuda.test_malformed_input import wild
from effort import some
from lanescope.devices.cuda import decoder as decoding
from lanescope.devices.cuda.emit import batches, tracks
from lanescope.devices.cuda.formats import tirx, word_source
from lanescope.devices.cuda.formats.encode import strided
from lanescope.devices.cuda.formats.strided import StridedBuffer
from lanescope.errors import InputError
from lanescope.source import Reader, Source, SpooledFile
from lanescope.source.disk_arrays import memory_limited
from lanescope.trace import Trace

PIECE, PART = 512, 900
FAULTS = dict.fromkeys(("two_writers", "clock_step", "holes", "corrupt", "crossing", "stray_ends", "reruns"), 1)
CASES = {
    "tirx": {"layout": "tirx", **FAULTS},
    "sparse": {"layout": "tirx", "slots": 90_000},
    "full": {"layout": "tirx", "overflow": True, "wrap": True},
    "strided": {"layout": "tirx", "stride": 41},
    "flashinfer1": {"layout": "flashinfer1"},
    "flashinfer2": {"layout": "flashinfer2", "holes": 1},
    "warpscope": {"layout": "warpscope", "max_records": 400, "tiles": 160},
    "ls2": {"layout": "ls2", "instants": True, "overflow": True},
    "ring": {"layout": "ls2", "ring": True, "overflow": True, "payload": True},
    "cycles": {"layout": "ls2", "clock64": True},
    "proton": {"layout": "proton"},
}


def tables(trace: Trace):
    """Return the rows of all tables, inputs and raw records too."""
    found = {name: list(table.rows()) for name, table in trace.tables().items()}
    return found | {name: list(table.rows()) for name, table in trace.records.items()}


def differing(one: Trace, other: Trace) -> list[str]:
    """Return the names of tables that differ; to show how would take minutes."""
    left, right = tables(one), tables(other)
    return [name for name in left | right if left.get(name) != right.get(name)]


def opened(path: Path, monkeypatch, **limits: int) -> Trace:
    with monkeypatch.context() as patch:
        for module, name in ((decoding, "WHOLE_BYTES"), (word_source, "PIECE_WORDS"), (batches, "PART_RECORDS")):
            if name in limits:
                patch.setattr(module, name, limits[name])
        return lanescope.open(
            path, "cuda", **({"layout": "warpscope", "max_records": 400} if "warpscope" in path.name else {})
        )


@pytest.mark.parametrize("case", CASES)
def test_the_rows_are_those_of_a_file_read_whole(case, tmp_path, monkeypatch):
    simulation = simulate(5, blocks=12, **({"tiles": 40} | CASES[case]))
    files = {name.replace("attention", case): data for name, data in simulation.files.items()}
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    path = tmp_path / next(iter(files))
    # Tracks that only some lanes need are numbered as they come, batch by batch.
    ls2 = case in ("ls2", "ring", "cycles")
    whole = opened(path, monkeypatch, **({"PART_RECORDS": PART} if ls2 or case == "proton" else {}))
    monkeypatch.setattr("lanescope.devices.cuda.formats.proton.PIECE_WORDS", PIECE)
    monkeypatch.setattr("lanescope.devices.cuda.formats.ls2.PIECE_WORDS", PIECE)
    monkeypatch.setattr("lanescope.devices.cuda.formats.word_source._BEGINNING", 4096)
    monkeypatch.setattr("lanescope.source.npy.MAX_HEADER", 4096)
    monkeypatch.setattr(tirx, "SAMPLE_SLOTS", 500)
    sizes = []
    read = Reader.at

    def at(self, offset, size):
        sizes.append(size)
        return read(self, offset, size)

    with monkeypatch.context() as patch:
        patch.setattr(Reader, "at", at)
        large = opened(path, monkeypatch, WHOLE_BYTES=0, PIECE_WORDS=PIECE, PART_RECORDS=PART)
    # A beginning, a piece or a part; or the lanes of one block, which stay together.
    block = 8 * 3 * int(large.details["cuda_lanes"]["capacity"].max()) if ls2 or case == "proton" else 0
    assert path.stat().st_size > 4 * 3600
    assert max(sizes) <= max(4096 + 12, 8 * PART + 500, 2 * block + 500)
    assert max(sizes) < path.stat().st_size / 3
    assert not differing(large, whole)


@pytest.mark.parametrize("case", ["tirx", "flashinfer2", "ls2"])
def test_tracks_and_details_of_many_lanes_are_made_in_pieces(case, tmp_path, monkeypatch):
    simulation = simulate(6, blocks=12, **({"tiles": 10} | CASES[case]))
    for name, data in simulation.files.items():
        (tmp_path / name).write_bytes(data)
    path = tmp_path / next(iter(simulation.files))
    whole = lanescope.open(path, "cuda")
    monkeypatch.setattr(tracks, "_MANY", 5)
    monkeypatch.setattr(batches, "PART_LANES", 4)
    assert len(list(lanescope.iter_batches(path, "cuda"))) > 5
    pieces = lanescope.open(path, "cuda")
    rows = len(pieces.tracks)
    some = [row for at in range(0, rows, 7) for row in pieces.tracks.piece(at, min(at + 7, rows)).rows()]
    assert some == list(whole.tracks.rows())
    assert not differing(pieces, whole)


@settings(max_examples=some(60))
@given(wild(), st.integers(1, 30), st.integers(1, 40))
def test_any_words(tmp_path_factory, words, part, piece):
    path = tmp_path_factory.mktemp("any") / "any.npy"
    path.write_bytes(strided.to_npy(words))
    with pytest.MonkeyPatch.context() as patch:
        whole = opened(path, patch)
        large = opened(path, patch, WHOLE_BYTES=0, PIECE_WORDS=piece, PART_RECORDS=part)
        assert not differing(large, whole)


def test_a_stride_is_found_among_the_first_slots(tmp_path, monkeypatch):
    lanes = [[(kind, 0, 10 * i + at + 1) for i in range(40) for at, kind in enumerate("BE")] for _ in range(3)]
    path = tmp_path / "s.npy"
    path.write_bytes(strided.to_npy(buffer(lanes, blocks=3, stride=5)))
    monkeypatch.setattr(tirx, "SAMPLE_SLOTS", 30)
    trace = opened(path, monkeypatch, WHOLE_BYTES=0, PIECE_WORDS=16, PART_RECORDS=50)
    assert trace.details["cuda_buffers"]["stride"].tolist() == [5]
    assert len(trace.slices) == 120
    assert "cuda_corrupt_record" not in stats(trace)


def test_a_file_that_becomes_shorter_is_told(tmp_path):
    path = tmp_path / "f.bin"
    path.write_bytes(bytes(100))
    source = Source(path)
    reader = source.reader()
    source.close()
    assert reader.at(90, 10).tolist() == [0] * 10
    os.truncate(path, 50)
    with pytest.raises(InputError, match="file became shorter"):
        reader.at(40, 20)


def test_a_spool_needs_room(monkeypatch):
    spool = SpooledFile(100)
    spool.write(40, np.arange(5, dtype=np.uint8))
    assert spool.read(41, 3).tolist() == [1, 2, 3]
    disk = os.statvfs("/")
    with pytest.raises(InputError, match="temporary space"):
        SpooledFile(int(Fraction(disk.f_blocks) * disk.f_frsize * 100))


@pytest.mark.parametrize("is_limited", [False, True])
@pytest.mark.parametrize("case", ["sparse", "flashinfer2", "warpscope"])
def test_few_parts_are_decoded_once_unless_the_memory_is_limited(case, is_limited, tmp_path, monkeypatch):
    simulation = simulate(6, blocks=12, **({"tiles": 10} | CASES[case]))
    for name, data in simulation.files.items():
        (tmp_path / name).write_bytes(data)
    path = tmp_path / next(iter(simulation.files))
    whole = lanescope.open(path, "cuda")
    decoded = []
    decode = StridedBuffer.decode
    monkeypatch.setattr(
        StridedBuffer, "decode", lambda self, part, **rules: decoded.append(part) or decode(self, part, **rules)
    )
    monkeypatch.setattr(batches, "PART_RECORDS", len(whole.slices))
    with memory_limited(1 << 20) if is_limited else nullcontext():
        parts = lanescope.open(path, "cuda")
    assert 1 < len(set(decoded)) <= 4
    assert len(decoded) == len(set(decoded)) * (1 + is_limited)
    assert not differing(parts, whole)

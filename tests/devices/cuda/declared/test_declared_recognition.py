"""Declared layouts are recognized by arithmetic and agreement, and never concluded without a header."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lanescope
from lanescope.devices.cuda.formats.declared import catalog
from lanescope.devices.cuda.formats.declared.encode import encode, example
from lanescope.errors import InputError

GOLDEN = Path(__file__).parents[1] / "golden" / "declared"


def best(path):
    return lanescope.detect(path)[0]


@pytest.mark.parametrize(
    ("golden", "layout"), [("mirage_mpk", "mirage-mpk"), ("triton_distributed", "triton-distributed")]
)
def test_goldens_with_a_header_are_recognized(golden, layout):
    found = best(GOLDEN / f"{golden}.bin")
    assert (found.family, found.format, found.score) == ("cuda", layout, 90)
    trace = lanescope.open(GOLDEN / f"{golden}.bin")
    assert trace.inputs.values("format").tolist() == [layout]
    assert not len(trace.instants)


@pytest.mark.parametrize("name", ["mirage-transpiler", "sm-profiler"])
def test_examples_with_a_header_are_recognized(name, tmp_path):
    path = tmp_path / "run.bin"
    path.write_bytes(example(catalog.load(name))[0]["buffer"])
    assert (best(path).format, best(path).is_recognized) == (name, True)
    assert lanescope.open(path).inputs.values("format").tolist() == [name]


def test_npy_files_are_recognized_as_well(tmp_path):
    path = tmp_path / "run.npy"
    np.save(path, np.frombuffer((GOLDEN / "mirage_mpk.bin").read_bytes(), np.uint64))
    assert best(path).format == "mirage-mpk"
    assert len(lanescope.open(path).slices) == 800


@pytest.mark.parametrize("golden", ["cutez", "nuggets_legacy", "tk_profiler", "mori", "ikp", "tileops", "npkit"])
def test_headerless_buffers_are_never_concluded(golden):
    with pytest.raises(InputError, match="unrecognized format"):
        lanescope.open(GOLDEN / f"{golden}.bin")


def test_a_single_record_that_disagrees_prevents_a_conclusion(tmp_path):
    words = np.frombuffer((GOLDEN / "mirage_mpk.bin").read_bytes(), np.uint64).copy()
    words[17] ^= np.uint64(1 << 11)
    path = tmp_path / "run.bin"
    path.write_bytes(words.tobytes())
    with pytest.raises(InputError) as caught:
        lanescope.open(path)
    assert "mirage-mpk (1 of 1,600 records contradict tag == lane % 256)" in caught.value.hint
    assert len(lanescope.open(path, layout="mirage-mpk").slices) >= 798


def test_a_buffer_without_records_is_not_concluded(tmp_path):
    # With zeros behind the header, all "records" of Triton-distributed's layout would agree.
    path = tmp_path / "run.npy"
    np.save(path, np.array([1 << 32 | 1, *[0] * 40], np.uint64))
    assert best(path).format == "tirx-v1"


def test_buffers_of_tirx_stay_buffers_of_tirx(tmp_path):
    # A single lane: all tags are 0, so several layouts fit, and TIRx wins.
    declaration = catalog.load("tirx-v1")
    of = declaration.example
    fields = {name: value for name, value in of.fields.items() if name not in ("num_blocks", "num_groups")}
    one = {name: type(fields["tag"])("1", name) for name in ("num_blocks", "num_groups")}
    data = encode(declaration, sizes={"buffer": 8 * 17}, params={}, fields=fields | one)["buffer"]
    path = tmp_path / "run.bin"
    path.write_bytes(data)
    assert best(path).format == "tirx-v1"

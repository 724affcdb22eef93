"""Declared layouts are recognized by arithmetic and agreement, and never concluded without a header."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lanescope
from devices.cuda.declared.producers import WRITERS, Shape
from devices.cuda.declared.test_declared_producers import SHAPES
from lanescope.devices.cuda.family import _detect as detect
from lanescope.devices.cuda.formats.declared import catalog, search
from lanescope.devices.cuda.formats.declared.encode import encode, example
from lanescope.devices.cuda.formats.detect import advise
from lanescope.devices.cuda.formats.word_source import content_of
from lanescope.errors import InputError
from lanescope.source import FileHead

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


#: Layouts whose words are valid words of another layout, which is what a file without a name is taken for: the same
#: regions at the same times, but for the clock or the SM.
SAME_WORDS = {
    "flashinfer-v2-clock": {"flashinfer-v2"},
    "mirage-transpiler": {"flashinfer-v2", "tirx-v1"},
    "mirage-mpk": {"tirx-v1"},
}
CASES = [(layout, writer, shape) for layout, writers in WRITERS.items() for writer in writers for shape in SHAPES[::2]]


def head_of(data):
    return FileHead(data[: 1 << 16], len(data), "run.bin")


@pytest.mark.parametrize(("layout", "writer", "shape"), CASES, ids=lambda part: getattr(part, "__name__", str(part)))
def test_no_layout_is_taken_for_another(layout, writer, shape):
    made = writer(shape)
    data = next(iter(made.arrays.values())).tobytes()
    found = detect(head_of(data))
    if found.is_recognized:
        assert found.format in {layout} | SAME_WORDS.get(layout, set())
        return
    hints = search.search(content_of(np.frombuffer(data, np.uint8)), len(data))
    assert all(fit.name == layout for fit in hints[:1])


@pytest.mark.parametrize("layout", ["tileops", "quack", "nanotrace", "cutedsl-trace", "open-cuprof", "mosaic-gpu"])
def test_parameters_are_found_and_decode_the_buffer(layout):
    made = WRITERS[layout][0](Shape(blocks=3, groups=1, capacity=16, regions=6))
    [fit, *_] = search.search(content_of(np.frombuffer(made.file(), np.uint8)), len(made.file()))
    assert fit.name == layout
    assert {**made.params, **fit.params} == made.params
    assert fit.options.startswith(f"--layout {layout} --layout-params ")


@pytest.mark.parametrize("layout", ["ikp", "mori"])
def test_parameters_of_several_arrays_are_found(layout):
    made = WRITERS[layout][0](Shape(blocks=3, groups=2, capacity=16, regions=12))
    [fit, *_] = search.search(content_of(np.frombuffer(made.file(), np.uint8)), len(made.file()))
    assert (fit.name, {**made.params, **fit.params}) == (layout, made.params)


def test_names_of_arrays_tell_a_layout_without_parameters():
    made = WRITERS["iris"][0](Shape(blocks=3, capacity=16, regions=8))
    made.arrays["timestamp"] = made.arrays.pop("buffer")
    [fit] = search.search(content_of(np.frombuffer(made.file(), np.uint8)), len(made.file()))
    assert fit.options == "--layout iris"


@pytest.mark.parametrize("seed", range(24))
def test_advice_on_any_bytes_is_a_line(seed):
    bits = np.random.default_rng(seed)
    words = bits.integers(0, 1 << int(bits.integers(1, 32)), int(bits.integers(1, 3000))).astype(np.uint32)
    data = words.tobytes()[: int(bits.integers(1, 12000))]
    head = FileHead(data, int(bits.choice([len(data), 1 << 20, 1 << 40])), "run.bin")
    assert "\n" not in advise(head)


@pytest.mark.parametrize("seed", range(200))
def test_random_bytes_have_no_layout(seed):
    bits = np.random.default_rng(seed)
    size = int(bits.integers(1, 4000)) * 8
    kinds = {
        0: lambda: bits.integers(0, 256, size).astype(np.uint8),
        1: lambda: bits.normal(size=size // 4).astype(np.float32),
        2: lambda: bits.integers(0, 1000, size // 4).astype(np.uint32),
        3: lambda: np.concatenate(
            ([bits.integers(1, 5) | bits.integers(1, 5) << 32], bits.integers(0, 1 << 62, size // 8))
        ),
        4: lambda: np.arange(size // 8, dtype=np.uint64) << np.uint64(32),
    }
    data = kinds[seed % 5]().tobytes()
    assert not detect(head_of(data)).is_recognized
    if seed % 4 == 0:
        assert not search.search(content_of(np.frombuffer(data, np.uint8)), len(data))


def test_a_refusal_names_the_layout_that_agrees_with_its_parameters():
    with pytest.raises(InputError) as caught:
        lanescope.open(GOLDEN / "tileops.bin")
    assert caught.value.hint == "use --layout tileops --layout-params max_events=12: its lanes and records agree"

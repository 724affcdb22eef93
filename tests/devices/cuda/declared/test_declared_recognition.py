"""Declared layouts are recognized by arithmetic and agreement, and never concluded without a header."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import lanescope
from devices.cuda.declared.producers import WRITERS, Shape
from devices.cuda.declared.test_declared_producers import SHAPES
from devices.cuda.helpers import simulate, stats
from effort import some
from lanescope import cuda
from lanescope.devices.cuda.family import _detect as detect
from lanescope.devices.cuda.formats.declared import catalog, search
from lanescope.devices.cuda.formats.declared.encode import encode, example
from lanescope.devices.cuda.formats.detect import advise
from lanescope.devices.cuda.formats.layout import SHORT_NAMES
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


@pytest.mark.parametrize("name", ["sm-profiler"])
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
    # A single lane: all tags are 0. Only TIRx finalizes it.
    declaration = catalog.load("tirx-v1")
    of = declaration.example
    fields = {name: value for name, value in of.fields.items() if name not in ("num_blocks", "num_groups")}
    made = {
        "num_blocks": "1",
        "num_groups": "1",
        "type": "3 if k == 15 else k % 2 + k // 15",
        "event": "k // 2 % 7 * (k < 15)",
    }
    one = {name: type(fields["tag"])(text, name) for name, text in made.items()}
    data = encode(declaration, sizes={"buffer": 8 * 17}, params={}, fields=fields | one)["buffer"]
    path = tmp_path / "run.bin"
    path.write_bytes(data)
    assert best(path).format == "tirx-v1"


#: Small and odd grids: where layouts agree with each other.
TINY = [Shape(blocks=1, groups=1, regions=count, seed=count) for count in (1, 2, 3, 4, 6, 12)] + [
    Shape(blocks=blocks, groups=groups, regions=count, top=top, seed=3)
    for blocks in (1, 2, 4)
    for groups in (1, 3)
    for count in (1, 3, 8)
    for top in (True, False)
]
CASES = [(layout, writer) for layout, writers in WRITERS.items() for writer in writers]
WITH_HEADER = ("mirage-mpk", "mirage-transpiler", "triton-distributed", "sm-profiler", "flashinfer-v2")


def head_of(data):
    return FileHead(data[: 1 << 16], len(data), "run.bin")


def on_timer(made):
    """The same buffer with timestamps of a timer that counts in steps of 32 ns."""
    words = made.arrays["buffer"].copy()
    words[1:] &= ~np.uint64(31 << 32)
    return words


@pytest.mark.parametrize(("layout", "writer"), CASES, ids=[writer.__name__ for _, writer in CASES])
def test_no_layout_is_taken_for_another(layout, writer):
    for shape in (*SHAPES, *TINY):
        made = writer(shape)
        data = next(iter(made.arrays.values())).tobytes()
        for share in (1, 0.8, 0.3):
            found = detect(head_of(data[: int(len(data) * share) // 8 * 8]))
            assert not found.is_recognized or found.format == layout, (shape, share)
        if shape in SHAPES[::2] and layout not in WITH_HEADER:
            hints = search.search(content_of(np.frombuffer(data, np.uint8)), len(data))
            assert all(fit.name == layout for fit in hints[:1])


@pytest.mark.parametrize("layout", WITH_HEADER)
def test_what_can_be_told_apart_is(layout):
    for shape in (Shape(), Shape(blocks=9, groups=1), Shape(blocks=5, groups=7), Shape(blocks=70, groups=6)):
        made = WRITERS[layout][0](shape)
        words = on_timer(made) if layout == "flashinfer-v2" else made.arrays["buffer"]
        found = detect(head_of(words.tobytes()))
        assert (found.format, found.is_recognized) == (layout, True), shape


@pytest.mark.parametrize("layout", SHORT_NAMES)
@pytest.mark.parametrize("seed", range(4))
def test_a_simulated_layout_is_concluded_or_refused_with_its_name(layout, seed, tmp_path):
    options = {"layout": layout, "blocks": 1 + 2 * seed, "groups": 1 + seed % 3, "tiles": (1, 2, 4, 12)[seed]}
    [(name, data), *_] = simulate(seed, tick=(32, 1)[seed % 2], **options).files.items()
    path = tmp_path / name
    path.write_bytes(data)
    # TIRx's words are those of FlashInfer's first layout and of warpscope.
    true = SHORT_NAMES[layout] if layout in ("ls2", "proton", "flashinfer2") else "tirx-v1"
    found = best(path)
    if found.is_recognized:
        assert found.format == true
        return
    with pytest.raises(InputError) as caught:
        lanescope.open(path)
    assert f"--layout {'flashinfer2' if layout == 'flashinfer2' else 'tirx'}" in caught.value.hint


def test_words_of_two_clocks_are_refused_and_the_hint_names_both(tmp_path):
    path = tmp_path / "run.bin"
    path.write_bytes((GOLDEN / "flashinfer_v2_clock.bin").read_bytes())
    with pytest.raises(InputError, match="the words fit flashinfer-v2 and flashinfer-v2-clock") as caught:
        lanescope.open(path)
    hint = caught.value.hint
    assert "--layout flashinfer2 (SM in bits 24 to 31, timestamps in ns)" in hint
    assert "--layout flashinfer-v2-clock (the same, timestamps in cycles of each SM)" in hint
    assert hint.endswith("lanes are far apart, as on counters of cycles, and no common step shows a timer")
    assert len(lanescope.open(path, layout="flashinfer-v2-clock").slices)
    with pytest.raises(InputError, match="layout not certain"):
        lanescope.open(path, family="cuda")


def test_regions_that_no_producer_is_known_by_are_those_of_several(tmp_path):
    path = tmp_path / "run.npy"
    path.write_bytes(simulate(1, layout="flashinfer1", blocks=3, tiles=1).files["attention.npy"])
    with pytest.raises(InputError, match="the words fit tirx-v1 and mirage-transpiler") as caught:
        lanescope.open(path)
    assert "no lane is finalized, and no event begins 3 times in one" in caught.value.hint
    # Who says that it is a probe buffer gets TIRx's reading, and a notice.
    trace = lanescope.open(path, family="cuda")
    assert [row["count"] for row in trace.stats.rows() if row["name"] == "cuda_layout_assumed"] == [1]


def test_ends_that_an_older_mirage_stores_as_marks_are_not_taken_for_marks_of_tirx(tmp_path):
    words = WRITERS["mirage-transpiler"][0](Shape(blocks=3, groups=2, regions=8)).arrays["buffer"].copy()
    words[1:] &= ~np.uint64(0xFF << 24)  # this version has no number
    words[1:][words[1:] & np.uint64(3) == 1] += np.uint64(1)
    path = tmp_path / "run.bin"
    path.write_bytes(words.tobytes())
    with pytest.raises(InputError) as caught:
        lanescope.open(path)
    assert "tirx" not in caught.value.hint.split(":")[0]


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


def any_bytes(seed):
    """Bytes of no layout: floats, counters, small numbers, sorted pairs of numbers, headers before any of these."""
    bits = np.random.default_rng(seed)
    size = int(bits.choice([3, 4, 5, 6, 7, 8, 12, 30, 300, 4000]))
    few = int(bits.choice([2, 4, 8, 1000]))
    kinds = (
        lambda: bits.integers(0, 256, 8 * size).astype(np.uint8),
        lambda: bits.normal(size=2 * size).astype(np.float32),
        lambda: bits.integers(0, few, 2 * size).astype(np.uint32),
        lambda: bits.integers(0, few, size).astype(np.uint64),
        lambda: np.concatenate(([1, 1], bits.integers(0, few, 2 * size))).astype(np.uint32),
        lambda: np.concatenate(([bits.integers(1, 5) | bits.integers(1, 5) << 32], bits.integers(0, 1 << 62, size))),
        lambda: np.arange(size, dtype=np.uint64) << np.uint64(32),
        lambda: np.arange(1, 2 * size, dtype=np.uint32).repeat(2),
        lambda: np.ones(2 * size, np.uint32),
        lambda: np.concatenate(([1 | 1 << 32], np.sort(bits.integers(0, 1 << 30, size)) << 32 | bits.integers(0, few))),
        lambda: np.concatenate(
            ([1 | 1 << 32], np.sort(bits.integers(0, 1 << 30, size)) << 32 | bits.integers(0, few, size))
        ),
    )
    content = kinds[seed % len(kinds)]()
    if seed % 3:
        return content.tobytes()
    file = io.BytesIO()
    np.save(file, content)
    return file.getvalue()


@pytest.mark.parametrize("part", range(20))
def test_random_bytes_have_no_layout(part):
    count = some(300)
    for seed in range(part * count, part * count + count):
        data = any_bytes(seed)
        found = detect(head_of(data))
        # An array of a header and nothing else is one without records, whoever has written it.
        assert not found.is_recognized or found.reason.endswith("no records"), (seed, found)
        if seed % 40 == 1 and seed % 3:
            assert not search.search(content_of(np.frombuffer(any_bytes(seed), np.uint8)), len(data))


def test_a_refusal_names_the_layout_that_agrees_with_its_parameters():
    with pytest.raises(InputError) as caught:
        lanescope.open(GOLDEN / "tileops.bin")
    assert caught.value.hint == "use --layout tileops --layout-params max_events=12: its lanes and records agree"


def test_a_large_grid_is_told_by_the_whole_buffer(tmp_path):
    # Its beginning has a few records of each lane, and the finalize is far behind.
    [(name, data), *_] = simulate(1, blocks=700, groups=4, tiles=20, sms=700).files.items()
    path = tmp_path / name
    path.write_bytes(data)
    assert detect(FileHead(data[: 1 << 16], len(data), name)).format == "tirx-v1"
    assert "cuda_layout_assumed" not in {row["name"] for row in lanescope.open(path).stats.rows()}
    words = WRITERS["mirage-transpiler"][0](Shape(blocks=700, groups=4, regions=60)).arrays["buffer"].copy()
    early = words[1 : 1 + 4 * 2800]
    early &= ~np.uint64(0xFF << 24)  # the first iteration of a loop
    path.write_bytes(words.tobytes())
    assert lanescope.open(path).inputs.values("format").tolist() == ["mirage-transpiler"]


@pytest.mark.parametrize("layout", ["mirage-mpk", "triton-distributed"])
def test_what_an_earlier_launch_left_does_not_hide_a_layout(layout):
    words, later = (WRITERS[layout][0](Shape(blocks=4, groups=3, regions=n)).arrays["buffer"] for n in (8, 2))
    head, count = 1 if layout == "mirage-mpk" else 1 + 4, 12 * 4
    words[head : head + count] = later[head : head + count] + np.uint64(20_000_000 << 32)
    trace = cuda.decode(words.tobytes())
    assert trace.inputs.values("format")[0] == layout
    assert int(trace.details["cuda_lanes"]["records"].sum()) == count
    assert stats(trace)["cuda_stale"] > 0


def test_a_layout_that_contradicts_the_records_is_an_assumption():
    words = np.zeros(40, np.uint64)
    words[0] = 3 | 1 << 32
    # Lanes that no tag names: no layout fits.
    words[1:31] = np.arange(30, dtype=np.uint64) * 100 + 5 << np.uint64(32) | np.uint64(0xABC << 12)
    assert stats(cuda.decode(words))["cuda_layout_assumed"] == 1
    # Few records of another layout are not read as those of TIRx.
    made = WRITERS["triton-distributed"][0](Shape(blocks=1, groups=1, regions=2))
    with pytest.raises(InputError, match="layout not certain: 4 records fit triton-distributed"):
        cuda.decode(made.file())

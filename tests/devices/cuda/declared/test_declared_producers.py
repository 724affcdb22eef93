"""Buffers of independent writers, in many shapes, decoded by the shipped declarations to the writers' truth."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from devices.cuda.declared.producers import BASE, WRITERS, Shape, flydsl
from devices.cuda.declared.test_declared_goldens import rows_of
from devices.cuda.helpers import stats
from lanescope import cuda
from lanescope.devices.cuda.formats.declared import catalog
from lanescope.errors import InputError

SHAPES = [
    Shape(),
    Shape(blocks=1, groups=1),
    Shape(blocks=1, groups=5, regions=1),
    Shape(blocks=9, groups=1, regions=None),
    Shape(blocks=3, groups=4, capacity=4, regions=20),
    Shape(blocks=2, groups=3, capacity=8, regions=4),
    Shape(blocks=5, groups=7, wrap=True, regions=5),
    Shape(blocks=70, groups=6, regions=2, top=False),
    Shape(blocks=3, groups=2, capacity=16, regions=9, wrap=True),
]
CASES = [(layout, writer) for layout, writers in WRITERS.items() for writer in writers]


def name_of(layout):
    """A layout that a reader in code has as well is given as its file."""
    if layout in ("flashinfer-v2", "tirx-v1"):
        return str(Path(catalog.__file__).parent / "shipped" / f"{layout}.toml")
    return layout


def decode(made, layout, **more):
    options = {key: value for key, value in made.options.items() if key != "fold"}
    params = {"layout_params": made.params} if made.params else {}
    return cuda.decode(made.file(), layout=name_of(layout), **options, **params, **more)


def folded(rows, made):
    """Rows in an order; where nothing gives a full reading of the counter, starts count within its bits."""
    bits = made.options.get("fold")
    if bits is None:
        return sorted(rows, key=str)
    low = (1 << bits) - 1
    return sorted(
        ((*row[:4], row[4] & low, None if row[5] is None else row[5] - row[4], row[6]) for row in rows), key=str
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("layout", "writer"), CASES, ids=[writer.__name__ for _, writer in CASES])
def test_what_a_producer_stores_is_decoded_to_its_truth(layout, writer, shape):
    made = writer(shape)
    trace = decode(made, layout)
    assert folded(rows_of(trace), made) == folded([tuple(row) for row in made.spans], made)
    dropped = sum(row["count"] for row in trace.stats.rows() if row["name"] == "cuda_dropped")
    if made.lost is not None:
        assert dropped == made.lost
    assert not {"cuda_corrupt_record", "cuda_bad_lane_header", "cuda_bad_count", "cuda_trailing_bytes"} & {
        row["name"] for row in trace.stats.rows()
    }


def test_a_marker_of_tt_metal_has_the_pairs_of_words_after_it_as_its_payloads():
    value = 0xFEDC_BA98_7654_3210

    def marker(kind, number, clock):
        return [1 << 31 | kind << 28 | number << 12 | clock >> 32, clock & 0xFFFF_FFFF]

    pair = [value >> 32, value & 0xFFFF_FFFF]
    words = [0, 0, 1 << 11, 7, *[0x8000_0000, 0] * 4]
    words += marker(3, 5, 1000) + pair + marker(4, 6, 1100) + marker(5, 7, 1200) + [1, 2, *pair]
    words += [*marker(5, 9, 1250), 3, 4, 0, 0, *marker(5, 8, 1300), 6, 7]
    data, control = np.zeros((1, 40), np.uint32), np.zeros((1, 32), np.uint32)
    data[0, : len(words)], control[0, 0] = words, len(words)
    params = {"words": 40, "riscs": 1}
    file = io.BytesIO()
    np.savez(file, buffer=data, control=control)
    trace = cuda.decode(file.getvalue(), layout="tt-metal", layout_params=params)
    rows = trace.tables()["cuda_instants"].rows()
    # The last marker has lost its second value.
    assert [(row["event_id"], row["payload"], row["payload2"]) for row in rows] == [
        (5, value, 0),
        (6, 0, 0),
        (7, 1 << 32 | 2, value),
        (9, 3 << 32 | 4, 0),
        (8, 6 << 32 | 7, 0),
    ]


@pytest.mark.parametrize(
    ("launch_ns", "assumed"), [(None, 3), (1 << 24, 1), ((1 << 24) + 499, 1), ((1 << 24) + 500, 2), (1 << 40, 3)]
)
def test_lengths_that_may_have_wrapped_are_counted(launch_ns, assumed):
    lengths = (500, (1 << 24) - 1, 1 << 24)  # the last one is stored as 0
    words = [BASE, *(BASE + 50 * k & 0xFFFF_FFFF | (ns & 0xFF_FFFF) << 32 | 1 << 56 for k, ns in enumerate(lengths))]
    options = {} if launch_ns is None else {"launch_ns": launch_ns}
    trace = cuda.decode(
        np.array(words, np.uint64), layout="nuggets-compact", layout_params={"max_events": 3}, **options
    )
    assert [row["dur"] for row in trace.slices.rows()] == [500, (1 << 24) - 1, 0]
    assert stats(trace)["cuda_length_assumed"] == assumed


def test_nothing_is_assumed_of_lengths_in_a_short_launch():
    made = WRITERS["nuggets-compact"][0](Shape())
    assert "cuda_length_assumed" not in stats(decode(made, "nuggets-compact", launch_ns=10_000_000))


@pytest.mark.parametrize(
    "layout", ["flashinfer-v2", "flashinfer-v2-clock", "mirage-mpk", "mirage-transpiler", "tirx-v1"]
)
def test_instants_that_are_overwritten_are_reported(layout):
    words = np.zeros(40, np.uint64)
    words[0] = 1 << 32 | 1
    words[1:13] = [(k % 2 if k < 11 else 2) | k // 2 << 2 | 1000 + k << 32 for k in range(12)]
    trace = cuda.decode(words, layout=name_of(layout))
    assert stats(trace).get("cuda_instants_unreliable") == (None if layout == "tirx-v1" else 1)


#: Layouts that count what they drop, or cannot drop anything.
EXACT = (
    "cutedsl-trace",
    "cutedsl-trace-static",
    "flydsl",
    "flydsl-static",
    "ikp",
    "nanotrace",
    "nanotrace-static",
    "nuggets-legacy",
    "open-cuprof",
    "quack",
    "sm-profiler",
)


@pytest.mark.parametrize("layout", EXACT)
def test_a_lane_of_an_exact_layout_is_never_doubtful(layout):
    for shape in (Shape(capacity=4, regions=20), Shape(capacity=16, regions=4)):
        made = WRITERS[layout][0](shape)
        trace = decode(made, layout)
        assert not {"cuda_lane_may_be_lost", "cuda_dropped_at_least"} & {row["name"] for row in trace.stats.rows()}
        assert sum(row["dropped"] for row in trace.tables()["cuda_lanes"].rows()) == (made.lost or 0)


def test_every_shipped_layout_has_a_writer():
    # TIRx has a simulator and goldens of its own.
    assert {*WRITERS, "tirx-v1"} == set(catalog.shipped())


@pytest.mark.parametrize(("layout", "writer"), CASES, ids=[writer.__name__ for _, writer in CASES])
def test_nothing_recorded_is_nothing_decoded(layout, writer):
    if layout in ("npkit", "flydsl-static"):
        pytest.skip("the layout always has records")
    made = writer(Shape(regions=0))
    try:
        trace = decode(made, layout)
    except InputError:
        return
    assert not rows_of(trace)
    assert {"cuda_no_records", "cuda_bad_lane_header"} & {row["name"] for row in trace.stats.rows()}


@pytest.mark.parametrize("share", [0.03, 0.31, 0.5, 0.77, 0.98])
@pytest.mark.parametrize(("layout", "writer"), CASES, ids=[writer.__name__ for _, writer in CASES])
def test_a_cut_buffer_gives_no_region_that_was_not_there(layout, writer, share):
    made = writer(Shape(blocks=5, groups=2, capacity=16, regions=6))
    name, array = next(iter(made.arrays.items()))
    data = array.tobytes()
    cut = np.frombuffer(data[: int(len(data) * share) // 8 * 8], np.uint8)
    made.arrays[name] = cut
    try:
        trace = decode(made, layout)
    except InputError:
        return
    more = Counter(folded(rows_of(trace), made)) - Counter(folded([tuple(row) for row in made.spans], made))
    assert not more


@pytest.mark.parametrize("behind", [1, 4, 8, 12])
@pytest.mark.parametrize(("layout", "writer"), CASES, ids=[writer.__name__ for _, writer in CASES])
def test_bytes_behind_a_buffer_change_nothing_or_are_refused(layout, writer, behind):
    if layout in ("npkit", "flydsl", "iris", "tt-metal"):
        pytest.skip("the size of the buffer is that of its only lane, or of its arrays")
    made = writer(Shape(blocks=3, groups=2, capacity=16, regions=6))
    name, array = next(iter(made.arrays.items()))
    made.arrays[name] = np.frombuffer(array.tobytes() + bytes(behind), np.uint8)
    trace = decode(made, layout)
    assert folded(rows_of(trace), made) == folded([tuple(row) for row in made.spans], made)


@pytest.mark.parametrize(
    "layout", ["tileops", "quack", "nanotrace", "cutez", "thunderkittens", "nuggets-legacy", "ikp"]
)
def test_a_lane_that_is_cut_is_reported(layout):
    made = WRITERS[layout][0](Shape(blocks=5, groups=1, capacity=16, regions=6))
    array = made.arrays["buffer"].tobytes()
    lane = len(array) // 5
    made.arrays["buffer"] = np.frombuffer(array[: 2 * lane + lane // 2 // 8 * 8], np.uint8)
    trace = decode(made, layout)
    counted = [row["count"] for row in trace.stats.rows() if row["name"] == "cuda_trailing_bytes"]
    # The counts of the lanes that are missing are an array of their own.
    assert counted == [lane // 2 // 8 * 8 + (3 * 4 if layout == "ikp" else 0)]
    [lowest] = [row for row in trace.accounting.rows() if row["layer"] == 0 and row["scope"] != "producer"]
    assert lowest["lost"] == counted[0]


@pytest.mark.parametrize("layout", ["mori", "ikp", "tt-metal"])
def test_lanes_that_only_one_array_has_are_reported(layout):
    made = WRITERS[layout][0](Shape(blocks=4, groups=1, capacity=16, regions=6))
    words = made.arrays["buffer"].reshape(-1)
    made.arrays["buffer"] = words[: len(words) // 2]
    trace = decode(made, layout)
    assert stats(trace)["cuda_trailing_bytes"] > 0
    [lowest] = [row for row in trace.accounting.rows() if row["layer"] == 0 and row["scope"] != "producer"]
    assert lowest["lost"] == stats(trace)["cuda_trailing_bytes"]


@pytest.mark.parametrize("layout", ["nanotrace", "nanotrace-static", "flydsl", "flydsl-static", "nuggets-compact"])
@pytest.mark.parametrize("anchor", [(1 << 64) - 1, 1 << 63, (1 << 63) - 1])
def test_an_anchor_that_no_counter_reads_is_a_header_that_is_none(layout, anchor):
    made = WRITERS[layout][0](Shape(blocks=3, groups=1, capacity=16, regions=6))
    at = 8 if layout.startswith("nanotrace") else 0
    lane = made.arrays["buffer"].nbytes // 3
    data = bytearray(made.arrays["buffer"].tobytes())
    data[lane + at : lane + at + 8] = anchor.to_bytes(8, "little")
    if layout.startswith("flydsl"):
        data[lane + 8 : lane + 16] = anchor.to_bytes(8, "little")
    made.arrays["buffer"] = np.frombuffer(data, np.uint8)
    trace = decode(made, layout)
    assert stats(trace)["cuda_bad_lane_header"] == 1
    kept = [tuple(row) for row in made.spans if row[0] != 1]
    assert rows_of(trace) == sorted(kept, key=str)


def test_a_file_without_a_byte_has_no_records():
    trace = cuda.decode(b"", layout="npkit", layout_params={"gpu_mhz": 2000})
    assert stats(trace)["cuda_no_records"] == 1


def test_groups_may_have_any_number():
    made = WRITERS["nuggets-legacy"][0](Shape(blocks=8, capacity=4, regions=20))
    words = made.arrays["buffer"]
    units = words.reshape(8, -1)
    units[:, 0] = 0  # static slots: nothing is counted
    units[:, 4::4] = 1 << 61
    units[4:, -4:] = 0
    trace = decode(made, "nuggets-legacy")
    assert set(trace.details["cuda_lanes"].values("group").tolist()) == {1 << 61}
    assert stats(trace)["cuda_lane_may_be_lost"] == 4


SITES = """
[tables.kinds]
"0" = 0
"1" = 1
"2" = 2
"3" = 0
"4" = 1
"5" = 2
"6" = 0
"7" = 1
"8" = 2

[tables.ids]
"0" = 0
"1" = 0
"2" = 0
"3" = 1
"4" = 1
"5" = 1
"6" = 2
"7" = 2
"8" = 2

[names.table]
"0" = "load"
"1" = "mma"
"2" = "store"
"""


def test_sites_become_regions_by_tables_in_a_copy_of_a_layout(tmp_path):
    made = flydsl(Shape(blocks=4, groups=3, capacity=12, regions=5), regions=True)
    text = catalog.load("flydsl").text
    text = text.replace('kind = "instant"', 'kind = ["kinds[site]", {"0" = "begin", "1" = "end", "2" = "instant"}]')
    text = text.replace('id = "site"', 'id = "ids[site]"')
    path = tmp_path / "kernel.toml"
    path.write_text(text + SITES)
    trace = cuda.decode(made.file(), layout=str(path), layout_params=made.params)
    assert folded(rows_of(trace), made) == folded([tuple(row) for row in made.spans], made)
    assert set(trace.slices.values("name").tolist()) == {"load", "mma", "store"}

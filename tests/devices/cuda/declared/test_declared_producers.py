"""Buffers of independent writers, in many shapes, decoded by the shipped declarations to the writers' truth."""

from __future__ import annotations

from pathlib import Path

import pytest

from devices.cuda.declared.producers import WRITERS, Shape
from devices.cuda.declared.test_declared_goldens import rows_of
from lanescope import cuda
from lanescope.devices.cuda.formats.declared import catalog

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


def test_every_shipped_layout_has_a_writer():
    # TIRx has a simulator and goldens of its own.
    assert {*WRITERS, "tirx-v1"} == set(catalog.shipped())

"""The header of .npy files against NumPy's own writer."""

from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lanescope.errors import InputError
from lanescope.source import npy


def saved(array, version=None):
    file = io.BytesIO()
    if version is None:
        np.save(file, array)
    else:
        np.lib.format.write_array(file, array, version=version)
    return file.getvalue()


@pytest.mark.parametrize("count", [0, 1, 9, 10, 99, 4096, 100_000])
def test_made_like_numpy_does(count):
    data = saved(np.zeros(count, "<u8"))
    assert npy.make(count) == data[: len(data) - 8 * count]


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("shape", [(), (0,), (7,), (2, 3), (1, 1, 5)])
@pytest.mark.parametrize("dtype", ["<u8", "<i8", ">u8", "<f4", "|b1"])
def test_reads_what_numpy_writes(version, shape, dtype):
    array = np.zeros(shape, dtype)
    data = saved(array, version)
    header = npy.parse(data)
    assert header is not None
    assert (header.descr, header.shape, header.count) == (dtype, shape, array.size)
    assert header.size == len(data) - array.nbytes


def test_python_2_numbers():
    data = npy.make(10).replace(b"(10,), }", b"(10L,),}")
    assert npy.parse(data).shape == (10,)


def test_not_npy():
    assert npy.parse(b"") is None
    assert npy.parse(b"\x93NUMP") is None
    assert npy.parse(bytes(1000)) is None


def test_fortran_order_is_refused_where_it_matters():
    with pytest.raises(InputError, match="Fortran"):
        npy.parse(saved(np.asfortranarray(np.zeros((2, 3), "<u8"))))
    assert npy.parse(npy.make(5).replace(b"False", b"True ")).shape == (5,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "{'descr': '<u8'}",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (4,), 'more': 1}",
        "{'descr': '<u8', 'descr': '<u8', 'fortran_order': False, 'shape': (4,)}",
        "{'descr': [('a', '<u8')], 'fortran_order': False, 'shape': (4,)}",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (-4,)}",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (9999999999999999999999,)}",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (" + "1," * 70 + ")}",
        "{'descr': '<u8', 'fortran_order': False, 'shape': (__import__('os').getpid(),)}",
    ],
)
def test_other_headers_are_refused(text):
    body = text.encode()
    with pytest.raises(InputError):
        npy.parse(npy.MAGIC + b"\x01\x00" + len(body).to_bytes(2, "little") + body)


@pytest.mark.parametrize("version", [0, 4, 255])
def test_other_versions_are_refused(version):
    with pytest.raises(InputError, match=f"version {version}"):
        npy.parse(npy.MAGIC + bytes([version, 0]) + bytes(100))


@given(st.binary(max_size=200), st.sampled_from([b"\x01\x00", b"\x02\x00", b"\x03\x00"]))
def test_garbage_behind_the_magic(garbage, version):
    with pytest.raises(InputError):
        npy.parse(npy.MAGIC + version + garbage)


def test_cut_header():
    for size in range(6, 128):
        with pytest.raises(InputError):
            npy.parse(npy.make(10)[:size])

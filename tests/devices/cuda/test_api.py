"""``lanescope.cuda``: arrays of any kind in, and the functions that it takes the place of."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

import lanescope
from devices.cuda.helpers import buffer, decode_simulation, simulate, spans, stats
from lanescope.devices.cuda.formats.layout import STAMP_WRAP
from lanescope.devices.cuda.probes import cuda_driver
from lanescope.errors import InputError, UsageError
from lanescope.trace import Flag
from track_events import by_bindings

LANE = [("B", 0, 1000), ("E", 0, 1200), ("B", 1, 1300), ("E", 1, 1500), ("F", 0, 1600)]
NAMES = ["load", "compute"]


class OnlyDlpack:
    """Shows an array by DLPack and by nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class FarAway(OnlyDlpack):
    """An array that only its producer can bring to the host."""

    def __dlpack__(self, *, dl_device=None, copy=None, **options):
        if dl_device != (1, 0) or not copy:
            raise BufferError("it is on a device")
        return self._array.__dlpack__(dl_device=dl_device, copy=copy, **options)

    def __dlpack_device__(self):
        return (1, 0)


class OnlyArray:
    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return self._array


WORDS = buffer([LANE, LANE])
HOLDERS = {
    "numpy": lambda: WORDS,
    "signed": lambda: WORDS.view(np.int64),
    "halves": lambda: WORDS.view(np.uint32),
    "table": lambda: np.ascontiguousarray(np.concatenate([WORDS, WORDS[:1] * 0]).reshape(2, -1)),
    "strided": lambda: np.repeat(WORDS, 2)[::2],
    "bytes": WORDS.tobytes,
    "memoryview": lambda: memoryview(WORDS),
    "dlpack": lambda: OnlyDlpack(WORDS),
    "dlpack from elsewhere": lambda: FarAway(WORDS),
    "array protocol": lambda: OnlyArray(WORDS),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_any_array(holder):
    trace = lanescope.cuda.decode(HOLDERS[holder](), events=NAMES)
    assert [row[3:6] for row in spans(trace)] == [("load", 0, 200), ("compute", 300, 500)] * 2
    assert trace.inputs["format"][0] == "tirx-v1"


@pytest.mark.parametrize("other", [None, 5, "text", [1.5], np.zeros(4), np.zeros(4, ">u8"), object()])
def test_what_is_no_array_of_words(other):
    with pytest.raises(UsageError) as error:
        lanescope.cuda.decode(other)
    assert error.value.hint


def test_the_same_rows_as_from_a_file():
    simulation = simulate(4, layout="ls2", blocks=4, tiles=3)
    (data, *_) = simulation.files.values()
    one, other = lanescope.cuda.decode(np.frombuffer(data[128:], "<u8")), decode_simulation(simulation, events="a")
    for table in ("instants", "gaps", "counters", "flows", "coverage"):
        drop = {"name", "first_offset"}
        rows = [
            [{k: v for k, v in row.items() if k not in drop} for row in t.tables()[table].rows()] for t in (one, other)
        ]
        assert rows[0] == rows[1]
    assert one.slices["ts"].tolist() == other.slices["ts"].tolist()


# --- the GPU ------------------------------------------------------------------------------------------------------

DRIVER = """
#include <stdint.h>
#include <string.h>
static int pushed, synchronised;
int cuInit(unsigned flags) { return flags; }
int cuPointerGetAttribute(void **context, int what, uint64_t pointer) {
    if (what != 1 || pointer == 0xBAD) return 1;
    *context = (void *)0x1234;
    return 0;
}
int cuCtxPushCurrent_v2(void *context) { ++pushed; return context == (void *)0x1234 ? 0 : 201; }
int cuCtxPopCurrent_v2(void **context) { --pushed; *context = 0; return 0; }
int cuCtxSynchronize(void) { synchronised = 1; return pushed == 1 ? 0 : 201; }
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
    if (pushed != 1 || !synchronised) return 201;
    memcpy(to, (void *)from, size);
    return 0;
}
int left(void) { return pushed; }
"""


class OnDevice:
    def __init__(self, array, **more):
        self._array = array
        self.__cuda_array_interface__ = {
            "shape": array.shape,
            "typestr": array.dtype.str,
            "data": (array.ctypes.data, False),
            "version": 3,
            **more,
        }


@pytest.fixture
def fake_driver(tmp_path, monkeypatch):
    """A driver whose device memory is the host's, and that insists on the order of the calls."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler to build a driver with")
    source, library = tmp_path / "driver.c", tmp_path / "driver.so"
    source.write_text(DRIVER)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    monkeypatch.setattr(cuda_driver, "LIBRARY", str(library))
    return ctypes.CDLL(str(library))


def test_array_on_the_gpu(fake_driver):
    trace = lanescope.cuda.decode(OnDevice(WORDS))
    assert len(trace.slices) == 4
    assert len(lanescope.cuda.decode(OnDevice(WORDS, strides=(8,))).slices) == 4
    assert fake_driver.left() == 0


def test_array_on_the_gpu_that_cannot_be_copied(fake_driver):
    with pytest.raises(UsageError, match="cuPointerGetAttribute failed with 1"):
        lanescope.cuda.decode(OnDevice(WORDS, data=(0xBAD, False)))
    with pytest.raises(UsageError, match="not contiguous"):
        lanescope.cuda.decode(OnDevice(WORDS, strides=(16,)))
    with pytest.raises(UsageError, match="float64"):
        lanescope.cuda.decode(OnDevice(np.zeros(4)))
    assert fake_driver.left() == 0


def test_no_driver(monkeypatch):
    monkeypatch.setattr(cuda_driver, "LIBRARY", "no-such-driver.so")
    with pytest.raises(UsageError, match="CUDA driver not found") as error:
        lanescope.cuda.decode(OnDevice(WORDS))
    assert "host" in error.value.hint


# --- the drop-in --------------------------------------------------------------------------------------------------


def exported(words, tmp_path, *, flashinfer=False, **options):
    path = tmp_path / "out.pftrace"
    if flashinfer:
        lanescope.cuda.export_to_perfetto_trace(words, NAMES, str(path), **options)
    else:
        lanescope.cuda.export_to_perfetto_trace(words, str(path), NAMES, **options)
    return by_bindings(path.read_bytes())


@pytest.mark.parametrize("flashinfer", [False, True])
def test_both_orders_of_arguments(tmp_path, flashinfer):
    picture = exported(WORDS, tmp_path, flashinfer=flashinfer)
    found = sorted((row.path[-1], row.name, row.ts, row.dur) for row in picture.slices)
    assert [row[1:] for row in found] == [("compute", 300, 200), ("load", 0, 200)] * 2


def test_keywords_of_both(tmp_path):
    path = tmp_path / "out.pftrace"
    lanescope.cuda.export_to_perfetto_trace(profiler_buffer=WORDS, file_name=path, event_type_names=NAMES)
    first = path.read_bytes()
    lanescope.cuda.export_to_perfetto_trace(profiler_buffer=WORDS, event_names=NAMES, file_name=str(path))
    assert path.read_bytes() == first


def test_region_over_the_wrap_keeps_its_length(tmp_path):
    near = STAMP_WRAP - 100
    picture = exported(buffer([[("B", 0, near), ("E", 0, near + 300), ("F", 0, near + 400)]]), tmp_path)
    assert [(row.ts, row.dur) for row in picture.slices] == [(0, 300)]


def test_open_region_stays_open_and_says_so(tmp_path):
    picture = exported(buffer([[("B", 0, 100), ("B", 1, 150), ("E", 1, 180)], LANE], slots=40), tmp_path)
    (row,) = [row for row in picture.slices if row.dur == -1]
    assert (row.name, row.ts) == ("load", 0)
    assert "unfinished" in str(dict(row.args))


def test_names_that_are_missing_are_numbers(tmp_path):
    picture = exported(buffer([[("B", 7, 100), ("E", 7, 150), ("F", 0, 160)]]), tmp_path)
    assert {row.name for row in picture.slices} == {"event_7"}


def test_header_that_was_never_written(tmp_path):
    with pytest.raises(InputError, match="header not written") as error:
        exported(np.zeros(64, np.uint64), tmp_path)
    assert "check that block 0 ran" in error.value.hint
    assert list(tmp_path.iterdir()) == []


def test_flashinfers_groups_are_not_mixed(tmp_path):
    simulation = simulate(2, layout="flashinfer2", blocks=4, groups=2, tiles=3, nested=False)
    words = np.frombuffer(simulation.files["attention.npy"][128:], "<u8")
    lanescope.cuda.export_to_perfetto_trace(words, simulation.truth["event_names"], str(tmp_path / "out.pftrace"))
    picture = by_bindings((tmp_path / "out.pftrace").read_bytes())
    lanes = {row.path for row in picture.slices}
    assert len(lanes) == 8
    for lane in lanes:
        ends = sorted((row.ts, row.ts + row.dur) for row in picture.slices if row.path == lane)
        assert all(one[1] <= other[0] for one, other in pairwise(ends))


@pytest.mark.parametrize("arguments", [(), ("a.pftrace",), ("a.pftrace", "b.pftrace"), (NAMES, NAMES)])
def test_arguments_that_are_missing(arguments):
    with pytest.raises(UsageError, match="one of each"):
        lanescope.cuda.export_to_perfetto_trace(WORDS, *arguments)


def test_no_torch_is_loaded():
    code = "import sys, lanescope, numpy; lanescope.cuda.decode(numpy.array([1 << 32 | 1, 5 << 32], 'u8'))\n"
    code += "assert not {'torch', 'cupy', 'numba'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_flags_of_a_lane_that_was_cut():
    trace = lanescope.cuda.decode(buffer([LANE[:3]], slots=4))
    assert spans(trace)[-1][7] == Flag.UNFINISHED | Flag.TRUNCATED
    assert stats(trace)["cuda_lane_full"] == 1

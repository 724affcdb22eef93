"""Numba kernels with probes, compiled to PTX without a GPU; run by ``test_frameworks.py``."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from numba import cuda, float32, int64, types, uint64
from numba.cuda import dispatcher

from lanescope.cuda import numba_probes as ls

CHIPS = ((8, 0), (9, 0), (10, 0))


def marked(x, out, probes):
    i = cuda.grid(1)
    lane = ls.init(probes, 0, cuda.threadIdx.x == 0)
    lane = ls.begin(lane, 5, 7)
    value = x[i]
    ls.consume(lane, value)
    lane = ls.end(lane, 5)
    lane = ls.value(lane, 1, i)
    lane = ls.value_float(lane, 1, value)
    lane = ls.instant(lane, 2)
    out[i] = value * 2
    ls.finalize(lane)


def plain(x, out, probes):
    i = cuda.grid(1)
    value = x[i]
    out[i] = value * 2


def unfenced(x, out, probes):
    lane = ls.init(probes, 0, cuda.threadIdx.x == 0, 1, False)
    lane = ls.begin(lane, 5)
    lane = ls.end(lane, 5)
    ls.finalize(lane)


@pytest.fixture(params=CHIPS, ids=str)
def compiled(request, monkeypatch):
    """Return a function that compiles a kernel for a chip."""
    # Numba compiles device functions for the GPU at hand, even where the kernel's chip is given.
    chip = SimpleNamespace(compute_capability=request.param)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: chip)

    def compile_(kernel, probes=uint64[::1]):
        signature = (float32[::1], float32[::1], probes)
        ptx, _ = cuda.compile_ptx(kernel, signature, cc=request.param)
        body = ptx[ptx.index(".entry") : ptx.index("\n}", ptx.index(".entry"))]
        lines = (re.sub(r"//.*|\$L\w+|\w*(marked|plain)\w*", "", line).strip() for line in body.splitlines())
        return [line for line in lines if line]

    return compile_


def test_markers_are_where_they_were_written(compiled):
    lines = compiled(marked)
    marks = {
        "timer": "%globaltimer_lo",
        "fence": r"membar\.cta",
        "load": r"ld\.(global\.)?(f32|b32)",
        "use": "pmevent",
        "whole": r"%globaltimer;",
        "store": r"st\.(global\.)?(f32|b32)",
    }
    order = [name for line in lines for name, pattern in marks.items() if re.search(pattern, line)]
    assert order == [
        "whole",
        *("timer", "fence", "load", "use", "fence", "timer"),
        *("fence", "timer", "fence", "timer", "fence", "timer"),
        "store",
        *("fence", "whole"),
    ]
    assert not [line for line in lines if ".local" in line or "call" in line]


def test_fences_are_left_out_when_they_are_not_wanted(compiled):
    lines = compiled(unfenced)
    assert sum("%globaltimer_lo" in line for line in lines) == 2
    assert not [line for line in lines if "membar" in line]


def named(x, out, probes):
    lane = ls.init(probes, every=4)
    lane = ls.begin(lane, 5, payload=x[0])
    ls.finalize(lane)


def test_arguments_have_names_and_words_may_be_signed(compiled):
    """PyTorch allocates signed words."""
    for words in (uint64[::1], int64[::1]):
        lines = compiled(named, words)
        assert sum("%globaltimer_lo" in line for line in lines) == 1
        # No number became a float on its way.
        assert not [line for line in lines if ".f64" in line]


def test_lanes_without_room_are_counted(compiled):
    for words, sign in ((uint64[::1], "u"), (int64[::1], "s")):
        atomics = [line.split()[0].split(".") for line in compiled(marked, words) if re.match(r"(@%p\d+ )?atom", line)]
        assert [atomic[-2:] for atomic in atomics] == [["add", "u64"], *[["max", f"{sign}64"]] * 2]


def test_of_disabled_probes_nothing_is_left(compiled):
    without, never = compiled(marked, types.none), compiled(plain, types.none)
    assert without == never
    assert not [line for line in without if "timer" in line or "membar" in line or "pmevent" in line]

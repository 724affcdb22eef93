"""Triton kernels with probes, compiled without a GPU; run by ``test_frameworks.py``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from lanescope.cuda import triton_probes as ls

CHIPS = (80, 90, 100)
EVENT = tl.constexpr(5)


@triton.jit
def marked(x, out, n, probes, FENCE: tl.constexpr, BLOCK: tl.constexpr):
    lane = ls.init(probes, 0, True, 1, FENCE)
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for tile in range(n):
        lane = ls.begin(lane, EVENT, tile)
        value = tl.load(x + at + tile * BLOCK)
        ls.consume(lane, value)
        lane = ls.end(lane, EVENT)
        lane = ls.value(lane, 1, tile)
        lane = ls.instant(lane, 2)
        tl.store(out + at + tile * BLOCK, value * 2)
    ls.finalize(lane)


@triton.jit
def plain(x, out, n, probes, FENCE: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for tile in range(n):
        value = tl.load(x + at + tile * BLOCK)
        tl.store(out + at + tile * BLOCK, value * 2)


def compiled(kernel, chip, probes="*u64", fence="cta"):
    constants = {"FENCE": fence, "BLOCK": 128}
    signature = {"x": "*fp32", "out": "*fp32", "n": "i32", "probes": probes, "FENCE": "constexpr", "BLOCK": "constexpr"}
    if probes == "constexpr":
        constants["probes"] = None
    return triton.compile(ASTSource(kernel, signature, constants), target=GPUTarget("cuda", chip, 32))


def disassembled(made, folder):
    cubin = folder / "kernel.cubin"
    cubin.write_bytes(made.asm["cubin"])
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/nvdisasm"
    return subprocess.run([tool, "-c", cubin], capture_output=True, text=True, check=True).stdout


def code(ptx):
    """Return the instructions of a kernel, without names, comments and where they come from."""
    body = ptx[ptx.index(".entry") : ptx.index("\n}", ptx.index(".entry"))]
    lines = (re.sub(r"//.*|\$L\w+|\w*(marked|plain)\w*", "", line).strip() for line in re.split(r"\n|(?<=;) ", body))
    return [line for line in lines if line and not line.startswith((".loc", ".file"))]


@pytest.mark.parametrize("chip", CHIPS)
def test_markers_are_where_they_were_written(chip):
    made = compiled(marked, chip)
    lines = code(made.asm["ptx"])
    marks = {
        "timer": "%globaltimer_lo",
        "fence": "membar.cta",
        "load": r"ld\.global.*v4\.b32|ld\.global\.b32",
        "use": "pmevent",
        "finalize": r"%globaltimer;",
        "store": r"st\.global\.(v\d\.)?b32",
    }
    order = [name for line in lines for name, pattern in marks.items() if re.search(pattern, line)]
    # init reads the whole timer; begin, the load, its use, a fence, end; a value; an instant; finalize.
    assert order == [
        "finalize",
        *("timer", "fence", "load", "use", "fence", "timer"),
        *("fence", "timer", "fence", "timer"),
        "store",
        *("fence", "finalize"),
    ]
    assert made.asm["cubin"][:4] == b"\x7fELF"


@pytest.mark.parametrize("chip", CHIPS)
def test_machine_code_keeps_the_order_and_spills_nothing(chip, tmp_path):
    text = disassembled(compiled(marked, chip), tmp_path)
    # A stamp of 32 bits is under a predicate, because the other clock may be wanted.
    marks = {
        "stamp": r"@!?P\d C?S2U?R.*SR_GLOBALTIMERLO",
        "whole": r" C?S2U?R .*SR_GLOBALTIMERLO",
        "fence": "MEMBAR",
        "load": r"LDG\.E R",
        "use": "PMTRIG",
        "store": r"STG\.E desc|STG\.E \[",
        "spill": "STL|LDL",
    }
    order = [name for line in text.splitlines() for name, pattern in marks.items() if re.search(pattern, line)]
    order = order[1 + order.index("whole") :]
    assert order[:6] == ["stamp", "fence", "load", "use", "fence", "stamp"]
    assert order.count("stamp") == 4
    assert order.count("fence") == 5
    assert "spill" not in order


@triton.jit
def several(n, probes, MARKERS: tl.constexpr):
    lane = ls.init(probes)
    for _ in range(n):
        for _ in tl.static_range(MARKERS):
            lane = ls.end(lane, EVENT)
    ls.finalize(lane)


def test_a_marker_takes_as_many_instructions_as_the_page_on_cost_says(tmp_path):
    def instructions(markers):
        signature = {"n": "i32", "probes": "*u64", "MARKERS": "constexpr"}
        made = triton.compile(ASTSource(several, signature, {"MARKERS": markers}), target=GPUTarget("cuda", 90, 32))
        return len(re.findall(r"/\*[0-9a-f]{4}\*/ +(?!NOP)", disassembled(made, tmp_path)))

    page = (Path(__file__).parents[5] / "docs/explain/probe-cost.md").read_text()
    stated = int(re.search(r"adds about (\d+) instructions to a loop of a Triton kernel", page)[1])
    each = (instructions(3) - instructions(1)) / 2
    assert abs(each - stated) <= 1, each


@pytest.mark.parametrize("chip", CHIPS)
def test_every_store_of_a_probe_is_under_a_predicate_and_nothing_spills(chip):
    lines = code(compiled(marked, chip).asm["ptx"])
    stores = [line for line in lines if "st.global" in line and ".b64" in line]
    # init 5, begin and end 3 each (record, payload, count), value 3, instant 3, finalize 4
    assert len(stores) == 5 + 3 * 4 + 4
    assert all(line.startswith("@") for line in stores)
    assert not [line for line in lines if ".local" in line]


@pytest.mark.parametrize("chip", CHIPS)
def test_lanes_without_room_are_counted_by_atomics_that_nothing_waits_for(chip):
    lines = code(compiled(marked, chip).asm["ptx"])
    atomics = [line for line in lines if re.search(r"\b(atom|red)\b", line)]
    kinds = [re.match(r"@%p\d+ red\.global\.gpu\.relaxed\.(\w+\.u64) ", line)[1] for line in atomics]
    assert kinds == ["add.u64", "max.u64", "max.u64"]
    assert not [line for line in lines if "bar.sync" in line or ".shared" in line]


@pytest.mark.parametrize("chip", CHIPS)
def test_fences_are_left_out_when_they_are_not_wanted(chip):
    lines = code(compiled(marked, chip, fence="none").asm["ptx"])
    assert sum("%globaltimer_lo" in line for line in lines) == 4
    assert not [line for line in lines if "membar" in line]


@pytest.mark.parametrize("chip", CHIPS)
def test_of_disabled_probes_nothing_is_left(chip):
    without, never = (code(compiled(kernel, chip, "constexpr").asm["ptx"]) for kernel in (marked, plain))
    assert without == never
    assert not [line for line in without if "timer" in line or "membar" in line or "pmevent" in line]


def test_words_may_be_signed_for_pytorch():
    assert code(compiled(marked, 90, "*i64").asm["ptx"]) == code(compiled(marked, 90, "*u64").asm["ptx"])


@pytest.mark.parametrize("chip", CHIPS)
def test_the_matrix_product_of_make_gpu(chip):
    """Loads stay between their markers, unless Triton pipelines the loop: then they are issued tiles ahead."""
    from devices.cuda.probes.frameworks.benchmark import triton_matmul

    names = ("a", "b", "c", "probes", "n", "depth", "TILE", "STEP")
    types = ("*fp32", "*fp32", "*fp32", "*i64", "i32", "i32", "constexpr", "constexpr")
    kernel = triton_matmul().matmul

    def made(stages, **more):
        signature = dict(zip(names, types, strict=True)) | dict.fromkeys(more, "constexpr")
        source = ASTSource(kernel, signature, {"TILE": 64, "STEP": 32, **more})
        options = {"num_stages": stages}
        return triton.compile(source, target=GPUTarget("cuda", chip, 32), options=options).asm["ptx"]

    def order(ptx):
        marks = {
            "stamp": "%globaltimer_lo",
            "load": r"ld\.global.*b32|cp\.async\.c[ag]",
            "use": "pmevent",
            "store": r"st\.global.*b32",
        }
        found = [name for line in code(ptx) for name, pattern in marks.items() if re.search(pattern, line)]
        return [name for name, before in zip(found, [None, *found], strict=False) if name != before]

    assert order(made(1)) == ["stamp", "load", "use", "stamp", "use", "stamp", "store", "stamp"]
    # What the page on markers says of pipelined loops.
    assert order(made(3))[0] == "load"
    assert order(made(3))[1:4] == ["stamp", "use", "stamp"]
    bare = made(1, probes=None)
    assert "globaltimer" not in bare
    assert "pmevent" not in bare

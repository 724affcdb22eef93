"""The header's generated code, without a GPU: stamps in order, nothing spilled, nothing left when disabled."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devices.cuda.probes.code import ARCHITECTURES, Compiled, Instruction, Toolkit, without_markers

KERNELS = Path(__file__).parent / "kernels"
DOCS = Path(__file__).parents[4] / "docs"
VARIANTS = [
    ("stages", ()),
    ("stages", ("-DNO_FENCE", "-DCONSUME")),
    ("verbs", ()),
    ("verbs", ("-DPAYLOAD",)),
    ("verbs", ("-DCYCLES",)),
    ("tirx", ()),
]
each_variant = pytest.mark.parametrize(("name", "flags"), VARIANTS, ids=lambda value: "".join(value))
each_architecture = pytest.mark.parametrize("sm", ARCHITECTURES)


@pytest.fixture(scope="session")
def toolkit(require_tool) -> Toolkit:
    return Toolkit(require_tool("cuda"))


@pytest.fixture(scope="session")
def compiled(toolkit, tmp_path_factory):
    """Return a function to what NVRTC makes of a kernel, and to its instructions."""
    cubin, done = tmp_path_factory.mktemp("code") / "kernel.cubin", {}

    def compile_(name: str, sm: int, *flags: str) -> Compiled:
        key = (name, sm, flags)
        if key not in done:
            done[key] = toolkit.nvrtc((KERNELS / f"{name}.cu").read_text(), sm, "--ptxas-options=-v", *flags)
            assert done[key].status == 0, done[key].log
        return done[key]

    def instructions(name: str, sm: int, *flags: str) -> list[Instruction]:
        key = (name, sm, flags, "instructions")
        if key not in done:
            cubin.write_bytes(compile_(name, sm, *flags).cubin)
            done[key] = toolkit.instructions(cubin)
        return done[key]

    compile_.instructions = instructions
    return compile_


@each_architecture
@each_variant
def test_nothing_is_spilled(compiled, name, flags, sm):
    said = compiled(name, sm, *flags).log
    assert "ptxas info    : 0 bytes gmem" in said
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in said
    registers = int(re.search(r"Used (\d+) registers", said)[1])
    assert registers <= 40


@pytest.mark.parametrize(
    ("name", "flags", "sm"), [*((*variant, 90) for variant in VARIANTS), ("verbs", (), 80), ("verbs", (), 100)]
)
def test_disabled_leaves_nothing(toolkit, compiled, name, flags, sm):
    """The kernel with markers, compiled out, is byte for byte the PTX of the kernel that never had any."""
    source = (KERNELS / f"{name}.cu").read_text()
    bare = without_markers(source)
    assert "lane" not in bare.partition("extern")[2]
    off = toolkit.nvrtc(source, sm, *flags, "-DLANESCOPE_PROBES=0")
    assert off.status == 0
    assert b"globaltimer" not in off.ptx
    assert off.ptx == toolkit.nvrtc(bare, sm, *flags).ptx
    assert off.ptx != compiled(name, sm, *flags).ptx


def test_disabled_leaves_nothing_by_nvcc_either(toolkit, tmp_path):
    bare = tmp_path / "bare.cu"
    bare.write_text(without_markers((KERNELS / "verbs.cu").read_text()))
    found = []
    for source, flags in [(KERNELS / "verbs.cu", ("-DLANESCOPE_PROBES=0",)), (bare, ())]:
        ptx, cubin = tmp_path / "code.ptx", tmp_path / "code.cubin"
        toolkit.nvcc(source, ptx, "-arch=sm_90", *flags)
        said = toolkit.nvcc(source, cubin, "-arch=sm_90", "-Xptxas=-v", *flags)
        assert "0 bytes spill stores, 0 bytes spill loads" in said
        found.append((ptx.read_text(), toolkit.instructions(cubin)))
    assert found[0] == found[1]


def skeleton(code):
    """Return the order of what matters in a kernel: stamps T, record stores R, L and S its own loads and stores."""
    letters = []
    for instruction in code:
        if instruction.is_stamp:
            letters.append("T")
        elif re.match(r"STG\.E\.64", instruction.opcode):
            letters.append("R")
        elif instruction.opcode in ("LDG.E", "LDG.E.CONSTANT"):
            letters.append("L")
        elif instruction.opcode == "STG.E":
            letters.append("S")
        elif instruction.opcode.startswith("CS2R") and "CLOCKLO" in instruction.text:
            letters.append("C")  # the last reading of init, and one of finalize
    return "".join(letters)


@each_architecture
@pytest.mark.parametrize("flags", [(), ("-DCONSUME",), ("-DNO_FENCE",), ("-DNO_FENCE", "-DCONSUME")], ids="".join)
def test_stamps_and_stores_keep_the_order_of_the_program(compiled, sm, flags):
    code = compiled.instructions("stages", sm, *flags)
    between = skeleton(code).split("C")[1]
    # Up to two stores: the rest of init, which the compiler may put behind the readings.
    assert re.fullmatch(r"R{0,2}TRLTRTRTRTRS{1,2}TRR?", between), between


@each_architecture
@each_variant
def test_every_marker_reads_the_timer_and_stores_once(compiled, sm, name, flags):
    code = compiled.instructions(name, sm, *flags)
    source = (KERNELS / f"{name}.cu").read_text()
    verbs = re.findall(r"lane\.(\w+)\(", source)
    dropped = 1 if name == "verbs" else 0  # the preprocessor takes one of two instants
    stamped = [verb for verb in verbs if verb != "consume" and (verb != "finalize" or name == "tirx")]
    # An integer of 64 bits is stored as it is, or as a float where it needs more than 62: two places, one is run.
    twice = 1 if name == "verbs" and "-DPAYLOAD" not in flags else 0
    assert sum(instruction.is_stamp for instruction in code) == len(stamped) - dropped + twice


@each_architecture
@each_variant
def test_lanes_without_room_are_counted_by_atomics_that_nothing_waits_for(compiled, sm, name, flags):
    """One addition of 1 and two maxima, whatever the markers; no result of an atomic goes anywhere. TIRx has none."""
    ptx = compiled(name, sm, *flags).ptx.decode()
    counted = re.findall(r"atom\.global\.(?:add\.u64.*, 1;|max\.u64)", ptx)
    assert len(counted) == (0 if name == "tirx" else 3)
    code = compiled.instructions(name, sm, *flags)
    atomics = [instruction for instruction in code if re.match(r"REDG?\.|ATOM", instruction.opcode)]
    assert sum(".MAX.64" in instruction.opcode for instruction in atomics) == (0 if name == "tirx" else 2)
    assert all(instruction.opcode.startswith("RED") or " RZ, " in instruction.text for instruction in atomics)


@each_architecture
@pytest.mark.parametrize(("name", "flags"), [variant for variant in VARIANTS if variant[0] != "stages"])
def test_every_store_is_behind_a_comparison(compiled, sm, name, flags):
    """Between a stamp and its store stands a comparison whose outcome the store, or a branch around it, hangs on."""
    code = compiled.instructions(name, sm, *flags)
    checked = 0
    for at, instruction in enumerate(code):
        if not instruction.is_stamp:
            continue
        end = next((n for n in range(at + 1, len(code)) if code[n].is_stamp), len(code))
        compared: set[str] = set()
        for other in code[at + 1 : end]:
            if re.match(r"U?ISETP\.(GT|GE|LE|LT)\.(U32|AND\.EX)", other.opcode):
                compared.add(re.search(r"\b(UP\d|P\d)\b", other.text.partition(other.opcode)[2])[1])
            elif other.opcode.startswith(("BRA", "EXIT")) and compared:
                compared |= {"branched"} if other.guard in compared or ".U" in other.opcode else set()
            elif other.opcode.startswith("STG.E.64"):
                assert other.guard in compared or "branched" in compared, (instruction.text, other.text)
                checked += 1
    assert checked


@pytest.mark.parametrize(
    ("sm", "value", "fence"),
    [
        *((sm, "float", fence) for sm in ARCHITECTURES for fence in ((), ("-DNO_FENCE",))),
        *((90, value, ("-DNO_FENCE",)) for value in ("double", "unsigned short")),
    ],
)
def test_consume_waits_for_the_load(compiled, sm, fence, value):
    """With it the end stamp is behind an instruction that waits for the load's scoreboard, without it it is not."""
    waits = {}
    for consume in (True, False):
        code = compiled.instructions(
            "stages", sm, "-DNO_COMPUTE", f"-DVALUE={value}", *fence, *(["-DCONSUME"] if consume else [])
        )
        first = next(at for at, instruction in enumerate(code) if instruction.is_stamp)
        load = next(at for at in range(first, len(code)) if code[at].opcode.startswith("LDG"))
        stamp = next(at for at in range(load, len(code)) if code[at].is_stamp)
        assert code[load].result is not None
        before = [at for at in range(load + 1, stamp + 1) if code[load].result in code[at].waits]
        waits[consume] = bool(before)
        if consume:
            assert any("PMTRIG" in instruction.text for instruction in code[before[0] : stamp])
    assert waits == {True: True, False: False}


def letters(code):
    """Return what a kernel does between its first stamp and its last record.

    T stamp, r record store, L load, u use of a consumed value, M fence, f arithmetic.
    """
    found = ""
    for instruction in code:
        if instruction.is_stamp:
            found += "T"
        elif "PMTRIG" in instruction.text:
            found += "u"
        else:
            kinds = {"STG.E.64": "r", "LDG": "L", "MEMBAR": "M", "FFMA": "f", "FMUL": "f"}
            found += next((letter for start, letter in kinds.items() if instruction.opcode.startswith(start)), "")
    return found[found.index("T") : found.rindex("T") + 2]


@each_architecture
@pytest.mark.parametrize("pointer", [(), ("-DINPUT=const float* __restrict__",)], ids="".join)
def test_what_is_consumed_stays_in_its_region(compiled, sm, pointer):
    """LOAD holds the load and its use, SUM the arithmetic, four times over; also where nothing but consume holds it."""
    code = compiled.instructions("moved", sm, "-DNO_FENCE", "-DCONSUME", *pointer)
    assert re.fullmatch("(T(Lr|rL)uTr" + "TrfuTr){4}", letters(code))


@each_architecture
def test_what_is_not_consumed_moves(compiled, sm):
    """What docs/explain/markers.md says: three regions SUM are empty, and a fence does not hold a read-only load."""
    bare = letters(compiled.instructions("moved", sm, "-DNO_FENCE"))
    assert re.fullmatch("(TrLf*Tr" + "TrTr){3}TrLf+Tr" + "Trf*Tr", bare)
    fenced = letters(compiled.instructions("moved", sm))
    assert re.fullmatch("(TrMLMTr" + "TrMMf*Tr){3}TrMLMTr" + "Trf*MMf*Tr", fenced)
    read_only = letters(compiled.instructions("moved", sm, "-DINPUT=const float* __restrict__"))
    assert re.fullmatch("(T(Lr|rL)MMTr" + "TrMMf*Tr){3}T(Lr|rL)MMTr" + "Trf*MMf*Tr", read_only)


SHOWN = re.compile(r"<!-- sass: (\w+) (\d+) (.*?) -->\n```text\n(.*?)```", re.DOTALL)


def test_machine_code_in_the_docs_is_what_the_compiler_makes(compiled):
    """The lines of each block stand in the code in this order, with the scoreboards that the remarks name."""
    blocks = SHOWN.findall((DOCS / "explain" / "markers.md").read_text())
    assert len(blocks) == 4
    for name, sm, flags, text in blocks:
        code = iter(compiled.instructions(name, int(sm), *re.split(r" (?=-D)", flags)))
        for line in text.splitlines():
            shown, _, remark = (part.strip() for part in line.partition("//"))
            found = next((instruction for instruction in code if instruction.text == shown), None)
            assert found is not None, line
            board = re.search(r"scoreboard (\d)", remark)
            if board and "waits" in remark:
                assert int(board[1]) in found.waits
            elif board:
                assert int(board[1]) == found.result


def test_instructions_of_a_marker_in_the_docs_are_counted(toolkit, tmp_path):
    source = """#include <lanescope/probe.cuh>
    struct Chosen : lanescope::Options {{ {options} }};
    extern "C" __global__ void kernel(float* x, int n, void* p) {{
        auto lane = lanescope::{init};
        #pragma unroll 1
        for (int k = 0; k < n; ++k) {{ {body} }}
        lane.finalize();
    }}"""
    instant, ls2 = "lane.instant({n});", "init<Chosen>(p)"
    variants = {
        "LS2": ("", ls2, instant),
        "LS2, `Fence::none`": ("enum : unsigned { fence = lanescope::Fence::none };", ls2, instant),
        "LS2, with a payload": ("enum : unsigned { record_words = 2 };", ls2, instant),
        "LS2, `Clock::clock64`": ("enum : unsigned { clock = lanescope::Clock::clock64 };", ls2, instant),
        "LS2, `async_begin` with a token that varies": ("", ls2, "lane.async_begin({n}, k);"),
        "LS2, `async_end` with a token that varies": ("", ls2, "lane.async_end({n}, k);"),
        "TIRx v1": ("", "init_tirx<Chosen>(p, 1000)", instant),
    }

    def count(options, init, marker, markers, *flags):
        body = " ".join(f"x[threadIdx.x] += {n}; {marker.format(n=n)}" for n in range(1, markers + 1))
        made = toolkit.nvrtc(source.format(options=options, init=init, body=body), 90, *flags)
        assert made.status == 0, made.log
        (tmp_path / "code.cubin").write_bytes(made.cubin)
        return sum(instruction.opcode != "NOP" for instruction in toolkit.instructions(tmp_path / "code.cubin"))

    page = (DOCS / "explain" / "probe-cost.md").read_text()
    without = [count("", ls2, instant, markers, "-DLANESCOPE_PROBES=0") for markers in (4, 5)]
    for name, variant in variants.items():
        more = count(*variant, 5) - count(*variant, 4)
        assert f"| {name} | {more - (without[1] - without[0])} |" in page


PAGES = [path for folder in ("tutorials", "howto", "explain") for path in sorted((DOCS / folder).glob("*.md"))]
PAGES = [path for path in PAGES if "```cuda" in path.read_text()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_cuda_in_the_docs_compiles(toolkit, tmp_path, page):
    for number, text in enumerate(re.findall(r"^```cuda\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)):
        source = tmp_path / f"{number}.cu"
        source.write_text(text)
        toolkit.nvcc(source, tmp_path / "code.cubin", "-arch=sm_90")


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_nvcc_makes_the_code_of_nvrtc(toolkit, compiled, tmp_path, sm):
    cubin = tmp_path / "verbs.cubin"
    said = toolkit.nvcc(KERNELS / "verbs.cu", cubin, f"-arch=sm_{sm}", "-Xptxas=-v")
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in said
    assert toolkit.instructions(cubin) == compiled.instructions("verbs", sm)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("lanescope::init(p).begin(1, 2, 3)", "records of one word have no payload"),
        ("lanescope::init_tirx(p, 9).value(1, 2)", "no member"),
        ("lanescope::init<Cycles>(p), lanescope::init_tirx<Cycles>(p, 9)", "stamps of the global timer only"),
        ("lanescope::init<Three>(p)", "a record has one word, or two with a payload"),
    ],
)
def test_what_a_layout_cannot_store_does_not_compile(toolkit, call, message):
    source = f"""#include <lanescope/probe.cuh>
    struct Cycles : lanescope::Options {{ enum : unsigned {{ clock = lanescope::Clock::clock64 }}; }};
    struct Three : lanescope::Options {{ enum : unsigned {{ record_words = 3 }}; }};
    extern "C" __global__ void kernel(void* p) {{ {call}; }}"""
    made = toolkit.nvrtc(source, 90)
    assert made.status != 0
    assert message in made.log


def test_enabled_and_disabled_in_one_program(toolkit):
    """Both sides of a comparison can come from one compilation."""
    source = """#include <lanescope/probe.cuh>
    struct Off : lanescope::Options { enum : unsigned { enabled = 0 }; };
    template <class Options> __device__ void work(float* x, void* p) {
        auto lane = lanescope::init<Options>(p);
        lane.begin(0); x[threadIdx.x] *= 2; lane.end(0); lane.finalize();
    }
    extern "C" __global__ void on(float* x, void* p) { work<lanescope::Options>(x, p); }
    extern "C" __global__ void off(float* x, void* p) { work<Off>(x, p); }
    extern "C" __global__ void bare(float* x, void* p) { x[threadIdx.x] *= 2; }"""
    made = toolkit.nvrtc(source, 90)
    assert (made.status, made.log) == (0, "")
    bodies = re.findall(r"\.entry (\w+)\(.*?\)\s*\{(.*?)\n\}", made.ptx.decode(), re.DOTALL)
    code = {name: body.replace(f"{name}_param", "param") for name, body in bodies}
    assert code["off"] == code["bare"] != code["on"]

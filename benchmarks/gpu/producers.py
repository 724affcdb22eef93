"""Other in-kernel profilers, run for real: TIRx, FlashInfer and Proton, and their buffers beside their own exporters.

The kernels are ours and small, the probes in them are the producers': TVM makes the source of one, FlashInfer's header
is included by another, Triton compiles the third. Each buffer is decoded, compared with what the kernel is known to
have done, and region by region with what the producer's exporter draws of it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from compiler import compile_
from driver import Gpu

import lanescope
from lanescope import LanescopeError, MissingDependencyError, Trace

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
Check = Callable[..., None]
#: Block, group, name, begin and end in ticks.
Region = tuple[int, int, str, int, int]
_WORD = 0xFFFFFFFF
#: What sources of the producers include and NVRTC comes without, as far as the kernels here need it.
_HEADERS = {
    "cuda.h": "",
    "cuda/std/cstdint": """#pragma once
namespace cuda::std {
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
}
""",
    "cuda/std/type_traits": """#pragma once
namespace cuda::std {
template <class T, class U> struct is_same { static constexpr bool value = false; };
template <class T> struct is_same<T, T> { static constexpr bool value = true; };
template <class T, class U> constexpr bool is_same_v = is_same<T, U>::value;
template <class T> struct is_integral;
template <class T> struct is_signed;
template <class T> struct is_unsigned;
template <class T> struct is_floating_point;
template <bool, class T = void> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <bool, class T, class U> struct conditional { using type = T; };
template <class T, class U> struct conditional<false, T, U> { using type = U; };
}
""",
}


@dataclass
class Case:
    """A producer's kernel after its launch.

    Attributes:
        name: of the producer.
        path: file with the buffer.
        names: of events, by number.
        lanes: the (block, group) that have to be there.
        counts: regions of each name in a lane.
        versions: of what made it.
        options: without which the buffer is not decoded.
    """

    name: str
    path: Path
    names: dict[int, str]
    lanes: list[tuple[int, int]]
    counts: dict[str, int]
    versions: dict[str, str]
    options: dict[str, Any]


# --- where the producers are ------------------------------------------------------------------------------------------


@cache
def python_with(module: str) -> str | None:
    """Return the Python that has a module: this one, or the one that ``tools/fetch_tools probes`` made."""
    for python in (sys.executable, str(ROOT / ".tools/probes/bin/python")):
        test = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
        if Path(python).exists() and not subprocess.run([python, "-c", test], check=False).returncode:
            return python
    return None


def flashinfer_folder() -> Path | None:
    """Return the folder of FlashInfer: its package, or the two files that ``tools/fetch_tools flashinfer`` fetched."""
    spec = importlib.util.find_spec("flashinfer")
    given = os.environ.get("LANESCOPE_FLASHINFER")
    places = [Path(given)] if given else []
    places += [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    places.append(ROOT / ".tools/flashinfer/flashinfer")
    return next((place for place in places if (place / "data/include/flashinfer/profiler.cuh").exists()), None)


def _said(command: Sequence[str | Path], what: str, libraries: Path | None = None) -> str:
    """Return what a program prints; it looks for libraries in a folder first."""
    parts = [str(part) for part in command]
    path = [str(libraries)] if libraries else []
    path += [place for place in [os.environ.get("LD_LIBRARY_PATH")] if place]
    environment = {**os.environ, **({"LD_LIBRARY_PATH": os.pathsep.join(path)} if path else {})}
    done = subprocess.run(parts, capture_output=True, text=True, check=False, timeout=600, cwd=HERE, env=environment)
    if done.returncode:
        last = (done.stderr.strip() or "no output").splitlines()[-1]
        raise MissingDependencyError(f"{what} failed: {last}", hint=f"run it alone: {' '.join(map(str, command))}")
    return done.stdout


def _python(module: str, package: str) -> str:
    python = python_with(module)
    if python is None:
        raise MissingDependencyError(f"{module} is not here", hint=f"tools/fetch_tools {package}")
    return python


# --- the kernels ------------------------------------------------------------------------------------------------------


@dataclass
class TirxCode:
    """What TVM makes: machine code, the kernel's name, its parameters in TVM's order, the compiler."""

    code: bytes
    kernel: str
    parameters: list[str]
    compiler: str


def tirx_code(chip: int) -> TirxCode:
    """Compile the kernel with TIRx's probes."""
    text = _said([_python("tvm", "probes"), HERE / "tirx_source.py", "on", str(chip)], "TVM")
    name, parameters = re.findall(r"__global__ void __launch_bounds__\(\d+\) (\w+)\(([^)]*)\)", text)[-1]
    with _stand_ins() as (folder, stubs):
        source = folder / "tirx.cu"
        source.write_text(text)
        code, compiler = compile_(source, chip, [stubs])
    return TirxCode(code, name, re.findall(r"([a-z]+)_ptr", parameters), compiler)


def flashinfer_code(chip: int) -> tuple[bytes, str]:
    """Compile the kernel with FlashInfer's probes."""
    folder = flashinfer_folder()
    if folder is None:
        raise MissingDependencyError("FlashInfer is not here", hint="tools/fetch_tools flashinfer")
    with _stand_ins() as (_, stubs):
        return compile_(HERE / "flashinfer_stages.cu", chip, [stubs, folder / "data/include"])


def proton_code(chip: int, folder: Path) -> tuple[bytes, dict[str, Any]]:
    """Compile the kernel with Proton's probes; return what has to be known of it."""
    folder.mkdir(parents=True, exist_ok=True)
    _said(
        [_python("triton", "probes"), "-W", "ignore", HERE / "proton_probes.py", "compile", folder, str(chip)], "Triton"
    )
    return (folder / "proton.cubin").read_bytes(), json.loads((folder / "proton.json").read_text())


@contextmanager
def _stand_ins() -> Iterator[tuple[Path, Path]]:
    """Make a folder, and one with the headers that NVRTC has not and that these sources include for nothing."""
    with tempfile.TemporaryDirectory() as made:
        stubs = Path(made, "stubs")
        (stubs / "cuda/std").mkdir(parents=True)
        for name, text in _HEADERS.items():
            (stubs / name).write_text(text)
        yield Path(made), stubs


# --- the launches -----------------------------------------------------------------------------------------------------


def run_tirx(gpu: Gpu, check: Check, out: Path) -> Case:
    """Two groups of 16 threads a block load and scale four tiles."""
    blocks, groups, tiles = 3, 2, 4
    made = tirx_code(gpu.architecture)
    gpu.load(made.code)
    values = np.arange(blocks * tiles * 32, dtype=np.float32)
    words = np.zeros(1 + blocks * groups * (4 * tiles + 1), np.uint64)
    memory = {"source": gpu.array(values), "target": gpu.array(np.zeros_like(values)), "probes": gpu.array(words)}
    gpu.kernel(made.kernel, blocks, 32, *(memory[name] for name in made.parameters))()
    gpu.wait()
    check("tirx: computes what it must", holds=bool((memory["target"].get() == 2 * values).all()), seen=None)
    path = _saved(out, "tirx", memory["probes"].get())
    lanes = [(block, group) for block in range(blocks) for group in range(groups)]
    versions = {"tvm": _version("tvm", "apache-tvm"), "compiler": made.compiler}
    return Case("tirx", path, {0: "load", 1: "scale"}, lanes, {"load": tiles, "scale": tiles}, versions, {})


def run_flashinfer(gpu: Gpu, check: Check, out: Path, groups: int = 1) -> Case:
    """Groups of 32 threads load and scale four tiles; several blocks, so that they are on several multiprocessors."""
    blocks, tiles, name = 8, 4, f"flashinfer-{groups}"
    code, compiler = flashinfer_code(gpu.architecture)
    gpu.load(code)
    values = np.arange(blocks * tiles * 32 * groups, dtype=np.float32)
    source, target = gpu.array(values), gpu.array(np.zeros_like(values))
    probes = gpu.array(np.zeros(1 + blocks * groups * 4 * tiles, np.uint64))
    sizes = (np.int32(tiles), np.int32(groups))
    gpu.kernel("flashinfer_stages", blocks, 32 * groups, source, target, *sizes, probes)()
    gpu.wait()
    check(f"{name}: computes what it must", holds=bool((target.get() == 2 * values).all()), seen=None)
    path = _saved(out, name, probes.get())
    lanes = [(block, group) for block in range(blocks) for group in range(groups)]
    versions = {"flashinfer": _flashinfer_version(), "compiler": compiler}
    # A timer in steps of less than 16 ns does not tell this layout from cycles, which have the same words.
    options = {"layout": "flashinfer2"}
    return Case(name, path, {0: "load", 1: "scale"}, lanes, {"load": tiles, "scale": tiles}, versions, options)


def run_proton(gpu: Gpu, check: Check, out: Path) -> Case:
    """Four warps a program double four tiles; the file is what Proton's hook would save of the launch."""
    programs = 4
    code, known = proton_code(gpu.architecture, out / "proton")
    gpu.load(code)
    values = np.arange(programs * known["tiles"] * known["width"], dtype=np.float32)
    source, target = gpu.array(values), gpu.array(np.zeros_like(values))
    warps, scratch = known["num_warps"], known["profile_scratch_size"]
    probes = gpu.array(np.zeros(programs * scratch, np.uint8))
    launch = gpu.kernel(known["name"], programs, 32 * warps, source, target, None, probes, shared=known["shared"])
    launch()
    gpu.wait()
    check("proton: computes what it must", holds=bool((target.get() == 2 * values).all()), seen=None)
    size = 40 + 4 * warps
    header = [1, 4, size, size, programs * scratch, 1, programs, warps, scratch, warps, *range(warps)]
    path = out / "proton" / "proton.bin"
    path.write_bytes(np.array(header, "<u4").tobytes() + probes.get().tobytes())
    names = {int(number): name for number, name in known["names"]}
    _save_names(path, names)
    lanes = [(program, warp) for program in range(programs) for warp in range(warps)]
    counts = dict.fromkeys(names.values(), known["tiles"])
    return Case("proton", path, names, lanes, counts, {"triton": known["triton"]}, {})


def _saved(out: Path, name: str, words: np.ndarray) -> Path:
    folder = out / name.partition("-")[0]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.npy"
    np.save(path, words)
    _save_names(path, {0: "load", 1: "scale"})
    return path


def _save_names(path: Path, names: dict[int, str]) -> None:
    events = {"events": {name: number for number, name in names.items()}}
    path.with_name(f"{path.stem}.events.json").write_text(json.dumps(events) + "\n")


def _version(module: str, package: str) -> str:
    text = f"from importlib.metadata import version; print(version({package!r}))"
    return _said([_python(module, "probes"), "-c", text], module).strip()


def _flashinfer_version() -> str:
    folder = flashinfer_folder()
    assert folder is not None
    found = sorted(folder.parent.glob("flashinfer_python-*.dist-info"))
    return found[-1].name.removeprefix("flashinfer_python-").removesuffix(".dist-info") if found else "unknown"


# --- beside the producers' own exporters ------------------------------------------------------------------------------


def regions_of(trace: Trace) -> list[Region]:
    """Return the closed regions of a trace, in ticks as they are counted in lanescope."""
    rows = zip(trace.details["cuda_regions"].rows(), trace.slices.rows(), strict=True)
    return sorted(
        (at["block"], at["group"], row["name"], row["ts_ticks"], row["ts_ticks"] + row["dur_ticks"])
        for at, row in rows
        if row["dur"] is not None
    )


def drawn_by_exporter(case: Case) -> list[Region]:
    """Return the regions that TIRx's or FlashInfer's exporter draws; times are 32 bits of ns."""
    producer = case.name.partition("-")[0]
    names = json.dumps([case.names[number] for number in sorted(case.names)])
    python = _python("tvm", "probes") if producer == "tirx" else sys.executable
    command = [python, "-W", "ignore", HERE / "exporter_calls.py", producer, case.path, names]
    folder = flashinfer_folder()
    found = json.loads(_said([*command, *([folder] if producer == "flashinfer" and folder else [])], producer))
    pattern = r"/block_(\d+)/group_(\d+)" if producer == "tirx" else r"/SM_\d+/blk(\d+)_g(\d+)"
    drawn = []
    for path, name, begin, end in found["regions"]:
        place = re.fullmatch(pattern, path)
        assert place is not None, path
        drawn.append((int(place[1]), int(place[2]), name, begin, end))
    return sorted(drawn)


def drawn_by_proton(chrome: dict[str, Any]) -> list[Region]:
    """Return the regions of the trace that Proton's library writes; times are cycles from a block's first region.

    A region over two warps is an arrow between two events there; it counts for the warp in which it begins.
    """
    rows = []
    arrows: dict[int, dict[bool, tuple[int, int, str, int]]] = {}
    for event in chrome["traceEvents"]:
        place = re.fullmatch(r".* Core\d+ CTA(\d+)", event.get("pid", ""))
        lane = re.match(r"warp (\d+) ", event.get("tid", ""))
        if place is None or lane is None:
            continue
        begin = round(1000 * event["ts"])
        where = int(place[1]), int(lane[1]), event["name"], begin
        if event.get("cat") == "flow":
            arrows.setdefault(event["bind_id"], {})["flow_out" in event] = where
        else:
            rows.append((*where, begin + round(1000 * event["dur"])))
    rows += [(*ends[True], ends[False][3]) for ends in arrows.values()]
    return from_first(rows)


def from_first(rows: Sequence[Region]) -> list[Region]:
    """Return regions with times from the first one of their block on: blocks have no common time."""
    first: dict[int, int] = {}
    for block, _, _, begin, _ in rows:
        first[block] = min(begin, first.get(block, begin))
    return sorted((block, group, name, a - first[block], b - first[block]) for block, group, name, a, b in rows)


def beside(mine: Sequence[Region], theirs: Sequence[Region]) -> dict[str, Any]:
    """Compare regions one by one; return how many are the same, and examples of those that only one of both has."""
    ours, others = Counter(mine), Counter(theirs)
    only_ours, only_others = ours - others, others - ours
    return {
        "same": (ours & others).total(),
        "only_lanescope": only_ours.total(),
        "only_exporter": only_others.total(),
        "examples": {
            "lanescope": [list(row) for row in sorted(only_ours)[:3]],
            "exporter": [list(row) for row in sorted(only_others)[:3]],
        },
    }


def compare(case: Case, driver: str) -> dict[str, Any]:
    """Compare a buffer with what its producer's exporter draws of it."""
    mine = regions_of(lanescope.open(case.path, **case.options))
    if case.name != "proton":
        return beside([(b, g, n, t & _WORD, e & _WORD) for b, g, n, t, e in mine], drawn_by_exporter(case))
    folder = case.path.parent
    command = [_python("triton", "probes"), "-W", "ignore", HERE / "proton_probes.py", "export", folder, driver]
    with tempfile.TemporaryDirectory() as made:
        if Path(driver).is_file():
            # Proton's library looks for the driver by its usual name.
            Path(made, "libcuda.so.1").symlink_to(Path(driver).resolve())
        _said(command, "Proton", Path(made))
    return beside(from_first(mine), drawn_by_proton(json.loads((folder / "proton.chrome_trace").read_text())))


def examine(case: Case, check: Check) -> None:
    """Check that a buffer says what its kernel is known to have done."""
    trace = lanescope.open(case.path, **case.options)
    found = [row["name"] for row in trace.stats.rows() if row["severity"] in ("error", "data_loss")]
    # That multiprocessors have no common clock is so, and no fault of the probes.
    errors = [name for name in found if name not in ("cuda_clock_mismatch", "cuda_unaligned_sms")]
    check(f"{case.name}: no error, nothing lost", holds=not errors, seen=errors)
    regions = Counter((block, group, name) for block, group, name, _, _ in regions_of(trace))
    wanted = {(*lane, name): count for lane in case.lanes for name, count in case.counts.items()}
    check(f"{case.name}: every region is there, in its lane", holds=regions == wanted, seen=regions.total())


def recognized(case: Case) -> str:
    """Return the layout that a buffer is taken for when nothing is said about it."""
    try:
        info = next(iter(lanescope.open(case.path).inputs.rows()))
    except LanescopeError as error:
        return f"none: {error}"
    return str(info["format"])


def run_all(gpu: Gpu, driver: str, check: Check, out: Path) -> tuple[dict[str, Any], list[Case]]:
    """Run the producers that are here.

    Args:
        gpu: where.
        driver: the driver's library.
        check: is called with a name, ``holds`` and what was ``seen``.
        out: folder for the buffers.

    Returns:
        What was found by producer, JSON-able, and the launches whose checks hold.
    """
    figures: dict[str, Any] = {}
    cases = []
    for name, run in (
        ("tirx", run_tirx),
        ("flashinfer-1", run_flashinfer),
        ("flashinfer-2", lambda *given: run_flashinfer(*given, groups=2)),
        ("proton", run_proton),
    ):
        try:
            case = run(gpu, check, out)
        except MissingDependencyError as error:
            figures[name] = {"not_run": str(error)}
            continue
        examine(case, check)
        cases.append(case)
        figures[name] = {**case.versions, "recognized": recognized(case)}
        try:
            figures[name]["exporter"] = seen = compare(case, driver)
        except MissingDependencyError as error:
            figures[name]["exporter"] = {"not_run": str(error)}
            continue
        differing = seen["only_lanescope"] + seen["only_exporter"]
        if name != "flashinfer-2":
            check(f"{name}: regions are those of its own exporter", holds=not differing, seen=seen)
    return figures, cases

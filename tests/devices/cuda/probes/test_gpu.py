"""``make gpu`` without a GPU: its kernels compile, and everything around them runs on a driver that is none."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import lanescope
from devices.cuda.probes import host
from devices.cuda.probes.code import ARCHITECTURES, Toolkit
from lanescope.devices.cuda.formats.encode import proton

MODE = (
    "default:metric_type=METRIC_TYPE.CYCLE:sampling_strategy=SAMPLING_STRATEGY.NONE:sampling_options="
    ":granularity=GRANULARITY.WARP:buffer_strategy=BUFFER_STRATEGY.CIRCULAR:buffer_type=BUFFER_TYPE.SHARED"
    ":buffer_size=0:optimizations="
)
SMALL = ("ls2", "ls2_clock64", "ls2_no_fence", "ls2_payload", "pipeline", "tirx")
ROOT = Path(__file__).resolve().parents[4]
GPU = ROOT / "benchmarks" / "gpu"


#: The producers' parts of the shim: FlashInfer's folder, as ``make gpu`` looks for one.
FLASHINFER = host.SHIM / "flashinfer"


@pytest.fixture(scope="session")
def driver():
    """Return a driver's library that runs the kernels on the CPU."""
    flags = [f'-DKERNELS="{GPU / "kernels.cu"}"', "-Wno-clobbered", "-Wno-unknown-pragmas"]
    return host.build(host.SHIM / "driver.cpp", *flags)._name


@pytest.fixture(scope="session")
def producers(require_tool, tmp_path_factory):
    """Return such a library that has the kernels of other profilers too; TVM makes the source of TIRx's."""
    python, folder = require_tool("probes"), tmp_path_factory.mktemp("producers")
    command = [str(python), str(GPU / "tirx_source.py"), "on", "90"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200).stdout
    text, count = re.subn(r"asm volatile\([^;]*%globaltimer_lo[^;]*;[^;]*;", "ret = read_timer();", text)
    assert count == 1
    (folder / "tirx.cu").write_text("\n".join(line for line in text.splitlines() if "#include" not in line))
    name = re.findall(r"__global__ void __launch_bounds__\(\d+\) (\w+)\(", text)[-1]
    flags = [f'-DKERNELS="{GPU / "kernels.cu"}"', "-Wno-clobbered", "-Wno-unknown-pragmas", "-Wno-unused"]
    flags += ["-DPRODUCERS", f'-DTIRX="{folder / "tirx.cu"}"', f"-DTIRX_KERNEL={name}", f'-DTIRX_NAME="{name}"']
    folders = [f"-I{GPU}", f"-I{FLASHINFER / 'data/include'}"]
    return host.build(host.SHIM / "driver.cpp", *flags, *folders, "-fpermissive", "-w")._name


def run(folder, library, *arguments, fault="", flashinfer=""):
    arguments = arguments or ("--no-keep", "--own")
    command = [sys.executable, GPU / "run.py", "--quick", "--driver", library, "-o", folder, *arguments]
    environment = {**os.environ, "FAKE_FAULT": fault, "LANESCOPE_FLASHINFER": str(flashinfer)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)


def test_the_whole_report(driver, require_tool, tmp_path):
    require_tool("cuda")
    done = run(tmp_path, driver)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["device"]["name"] == "none, a simulation"
    figures = report["figures"]
    assert figures["globaltimer"]["step_ns"] == 32
    assert figures["globaltimer"]["mhz"] == pytest.approx(2000, rel=0.01)
    assert set(figures["marker_cost"]) == {"ls2", "ls2_no_fence", "ls2_payload", "ls2_clock64", "tirx"}
    # One reading of a clock is all that takes time here: 3 ns, 6 cycles.
    assert all(cost["cycles"] == 6 for cost in figures["marker_cost"].values())
    assert all(row["slowdown"] > 1 for row in [*figures["stages"].values(), *figures["pipeline"].values()])
    assert len(report["checks"]) > 50
    assert all(check["holds"] for check in report["checks"])
    assert f"{len(report['checks'])} of {len(report['checks'])} hold" in done.stdout
    for path in tmp_path.glob("*.npy"):
        if path.stem != "timer":
            trace = lanescope.open(path)
            assert len(trace.slices) or len(trace.instants)
            assert "event_" not in "".join(trace.slices["name"])


def test_other_profilers_are_run_and_compared_with_their_own_exporters(producers, require_tool, tmp_path):
    """TVM and Triton compile their kernels, TIRx's exporter and Proton's library read what these leave."""
    require_tool("cuda")
    root, out = tmp_path / "root", tmp_path / "out"
    (root / "docs/explain").mkdir(parents=True)
    shutil.copy(ROOT / "docs/explain/probe-cost.md", root / "docs/explain")
    done = run(out, producers, "--root", root, flashinfer=FLASHINFER)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((out / "report.json").read_text())
    found = report["figures"]["producers"]
    same = {name: row["exporter"]["same"] for name, row in found.items()}
    assert same == {"tirx": 48, "flashinfer-1": 64, "flashinfer-2": same["flashinfer-2"], "proton": 256}
    assert all(row["exporter"]["only_lanescope"] == 0 for name, row in found.items() if name != "flashinfer-2")
    # The exporter divides the block's number by the groups.
    assert found["flashinfer-2"]["exporter"]["only_exporter"] > 100
    assert {name: row["recognized"] for name, row in found.items()} == {
        "tirx": "tirx-v1",
        "flashinfer-1": "flashinfer-v2",
        "flashinfer-2": "flashinfer-v2",
        "proton": "proton",
    }
    # What is kept, and that it says the same again.
    kept = sorted(path.name for path in (root / "tests/devices/cuda/golden/gpu/none-a-simulation").glob("*.truth.json"))
    names = ["flashinfer-1", "flashinfer-2", "proton", *(f"small-{name}" for name in SMALL), "tirx"]
    assert kept == [f"{name}.truth.json" for name in names]
    page = (root / "docs/explain/probe-cost.md").read_text()
    assert "| none, a simulation | 32 ns | 6.0 (3.0) |" in page
    assert "| proton | none, a simulation | proton | 256 | 0 | 0 |" in page


def random_entries(choose, block):
    """Return entries of four warps: asynchronous ones in any order, scopes that nest in their warp."""
    rows, cycle, open_scopes = [], 100, [[] for _ in range(4)]
    for _ in range(choose.randrange(2, 24)):
        cycle, warp = cycle + choose.choice([0, 1, 5, 40]), choose.randrange(4)
        stack = open_scopes[warp]
        if choose.random() < 0.7:
            rows.append((block, warp, choose.randrange(2), 1, choose.randrange(2), cycle))
        elif stack and choose.random() < 0.6:
            rows.append((block, warp, stack.pop(), 0, 1, cycle))
        elif len(stack) < 3:
            stack.append(4 + len(stack))
            rows.append((block, warp, stack[-1], 0, 0, cycle))
    return rows


@pytest.mark.parametrize("case", ["golden", "two producers", "broadcast", "nested", "random"])
def test_asynchronous_regions_are_those_of_protons_library(driver, require_tool, tmp_path, monkeypatch, case):
    """The rules by which starts and ends of several warps pair are the producer's: its library draws the same."""
    require_tool("probes")
    monkeypatch.syspath_prepend(str(GPU))
    import producers

    #: (CTA, warp, event, asynchronous, end, cycle)
    cases = {
        "two producers": [(0, 0, 3, 1, 0, 100), (0, 1, 3, 1, 0, 150), (0, 2, 3, 1, 1, 400), (0, 2, 3, 1, 1, 500)],
        "broadcast": [(0, 1, 2, 1, 0, 90), (0, 0, 2, 1, 1, 300), (0, 3, 2, 1, 1, 350), (1, 1, 2, 1, 0, 99)],
        "nested": [(0, 0, 1, 0, 0, 10), (0, 0, 4, 1, 0, 20), (0, 0, 1, 0, 1, 70), (0, 0, 4, 1, 1, 95)],
    }
    cases["random"] = [row for block in range(200) for row in random_entries(random.Random(block), block)]
    if case == "golden":
        raw = (Path(__file__).parents[1] / "golden" / "proton_39.bin").read_bytes()
    else:
        rows = np.array(cases[case])
        lanes = rows[:, 0] * 4 + rows[:, 1]
        kinds = np.where(rows[:, 3] == 1, 4, 0)  # bit 22, as the released version stores it
        entries = proton.Entries(lanes, rows[:, 2], kinds, rows[:, 4] == 1, rows[:, 5])
        blocks = int(rows[:, 0].max()) + 1
        times = np.array([[1000, 9000, 9100]] * blocks)
        raw, _ = proton.encode(entries, proton.ProtonSetup(np.arange(blocks), 4, (0, 1, 2, 3), 32, times))
    head = np.frombuffer(raw[:40], "<u4")
    (tmp_path / "proton.bin").write_bytes(raw)
    known = {"name": "k", "mode": MODE, "names": [[n, f"event_{n}"] for n in range(8)], "parents": []}
    known |= {"num_warps": int(head[7]), "profile_scratch_size": int(head[8])}
    known["target"] = {"backend": "cuda", "arch": 90, "warp_size": 32}
    (tmp_path / "proton.json").write_text(json.dumps(known))
    seen = producers.compare(producers.Case("proton", tmp_path / "proton.bin", {}, [], {}, {}, {}), driver)
    assert (seen["only_lanescope"], seen["only_exporter"]) == (0, 0), seen
    if case == "random":
        assert seen["same"] > 500
    else:
        assert seen["same"] == {"golden": 6, "two producers": 2, "broadcast": 1, "nested": 2}[case]


def test_regions_that_an_exporter_draws_otherwise_are_failures(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(GPU))
    from producers import beside, drawn_by_proton, from_first

    mine = [(0, 1, "load", 5, 9), (0, 1, "load", 5, 9), (1, 0, "scale", 3, 4)]
    seen = beside(mine, [(0, 1, "load", 5, 9), (1, 0, "scale", 3, 5)])
    assert (seen["same"], seen["only_lanescope"], seen["only_exporter"]) == (1, 2, 1)
    assert seen["examples"]["exporter"] == [[1, 0, "scale", 3, 5]]
    arrow = {"cat": "flow", "bind_id": 7}
    events = [
        {"pid": "k Core3 CTA1", "tid": "warp 2 (line 0)", "name": "a", "ts": 0.062, "dur": 0.007},
        {"pid": "k Core3 CTA1", "tid": "warp 0 (line 1)", "name": "b", "ts": 0.05, "dur": 0.03},
        {"pid": "k Core3 CTA1", "tid": "warp 3 (line 0)", "name": "c", "ts": 0.07, "dur": 0, **arrow, "flow_in": True},
        {"pid": "k Core3 CTA1", "tid": "warp 1 (line 0)", "name": "c", "ts": 0.04, "dur": 0, **arrow, "flow_out": True},
        {"pid": "none of a block", "tid": "warp 0", "name": "c", "ts": 1, "dur": 1},
    ]
    drawn = drawn_by_proton({"traceEvents": events})
    assert drawn == [(1, 0, "b", 10, 40), (1, 1, "c", 0, 30), (1, 2, "a", 22, 29)]
    assert from_first([(1, 2, "a", 1012, 1019), (1, 1, "c", 990, 1020), (1, 0, "b", 1000, 1030)]) == drawn


def test_a_coarse_timer_is_measured(driver, require_tool, tmp_path):
    require_tool("cuda")
    run(tmp_path, driver, fault="timer")
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["figures"]["globaltimer"]["step_ns"] == 1024
    assert [check["name"] for check in report["checks"] if not check["holds"]] == []


def test_wrong_results_are_failures(driver, require_tool, tmp_path):
    """One byte of everything that comes back is wrong: the report is there all the same, and says so."""
    require_tool("cuda")
    done = run(tmp_path, driver, fault="output")
    assert done.returncode == 1
    failed = [
        check["name"] for check in json.loads((tmp_path / "report.json").read_text())["checks"] if not check["holds"]
    ]
    assert "check_known_regions comes to its end" in failed
    assert "FAILED" in done.stdout


@pytest.mark.parametrize(("library", "fault"), [("libno-such-driver.so", ""), ("", "devices")])
def test_without_a_gpu_the_kernels_are_compiled_and_one_line_says_so(driver, require_tool, tmp_path, library, fault):
    require_tool("cuda")
    done = run(tmp_path, library or driver, fault=fault)
    assert done.returncode == 2
    assert re.fullmatch(r"lanescope: no GPU: .*\n", done.stderr)
    made = sorted(path.name for path in tmp_path.glob("*.cubin"))
    assert made == sorted(f"kernels.sm_{sm}.cubin" for sm in ARCHITECTURES)
    assert all((tmp_path / name).read_bytes().startswith(b"\x7fELF") and name in done.stdout for name in made)


@pytest.mark.parametrize("sm", ARCHITECTURES)
def test_its_kernels_compile_and_spill_nothing(require_tool, sm):
    toolkit = Toolkit(require_tool("cuda"))
    made = toolkit.nvrtc((GPU / "kernels.cu").read_text(), sm, "--ptxas-options=-v")
    assert made.status == 0, made.log
    kernels = re.findall(r"Compiling entry function '(\w+)'", made.log)
    assert len(kernels) == 18
    assert made.log.count("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads") == len(kernels)

"""``make gpu`` without a GPU: its kernels compile, and everything around them runs on a driver that is none."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lanescope
from devices.cuda.probes import host
from devices.cuda.probes.code import ARCHITECTURES, Toolkit

ROOT = Path(__file__).resolve().parents[4]
GPU = ROOT / "benchmarks" / "gpu"


@pytest.fixture(scope="session")
def driver():
    """Return a driver's library that runs the kernels on the CPU."""
    flags = [f'-DKERNELS="{GPU / "kernels.cu"}"', "-Wno-clobbered", "-Wno-unknown-pragmas"]
    return host.build(host.SHIM / "driver.cpp", *flags)._name


def run(folder, library, *, fault=""):
    command = [sys.executable, GPU / "run.py", "--quick", "--driver", library, "-o", folder]
    environment = {**os.environ, "FAKE_FAULT": fault}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200, check=False)


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
    made = sorted(path.name for path in tmp_path.iterdir())
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

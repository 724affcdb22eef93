"""What it costs to start: instructions, counted by callgrind, so that a busy machine changes nothing.

Measured on a wheel in an environment of its own: an editable install adds its import hook to every start.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from measure import Row

ROOT = Path(__file__).resolve().parents[1]
HOME = ROOT / "build" / "startup"
PYTHON = HOME / "venv" / "bin" / "python"
PROGRAM = HOME / "venv" / "bin" / "lanescope"
PIP = ("-m", "pip", "--quiet", "--quiet", "--disable-pip-version-check")

#: Goals, as multiples of the instructions of ``python -c "import argparse"``.
HELP_GOAL, INFO_GOAL = 2, 8

#: How large a simulated capture has to be asked for to have about 1 MB.
CAPTURES = {
    "aie": ("run.bin", ["--records", "172000"]),
    "ascend": ("run.json", ["--tasks", "1830"]),
    "cuda": ("run.npy", ["--tiles", "31"]),
    "levelzero": ("run.thapi_text", ["--ops", "1090"]),
}


def _run(*words: str | Path, environment: dict[str, str] | None = None) -> str:
    """Run a program; return what it said on stderr, and say it where it failed."""
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, errors="replace")
    if done.returncode:
        # Without the path of this checkout: what is said here is kept.
        said = f"{' '.join(command[-3:])}: exit {done.returncode}: {done.stderr.strip()[-300:]}"
        raise RuntimeError(said.replace(f"{ROOT}{os.sep}", ""))
    return done.stderr


def prepare() -> None:
    """Build the wheel and install it."""
    wheels = HOME / "dist"
    for old in wheels.glob("*.whl"):
        old.unlink()
    _run(
        *(sys.executable, *PIP, "wheel", "--no-build-isolation", "--no-deps"),
        *("--config-settings", "build-dir=build/wheel", "--wheel-dir", wheels, "."),
    )
    if not PYTHON.exists():
        _run(sys.executable, "-m", "venv", HOME / "venv")
    (wheel,) = wheels.glob("*.whl")
    _run(PYTHON, *PIP, "install", wheel)  # the requirements
    _run(PYTHON, *PIP, "install", "--force-reinstall", "--no-deps", wheel)


def instructions(*words: str | Path) -> int:
    """Return how many instructions ``python WORDS...`` takes."""
    fetched = ROOT / ".tools" / "bin" / "valgrind"
    valgrind = fetched if fetched.exists() else "valgrind"
    # Run twice, count the second: the first may still compile modules.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PYTHONHASHSEED"] = "0"
    _run(PYTHON, *words, environment=environment)
    talk = _run(
        *(valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", PYTHON, *words), environment=environment
    )
    found = re.search(r"Collected : (\d+)", talk)
    if found is None:
        raise RuntimeError(f"callgrind says nothing of what it counted: {talk[-500:]}")
    return int(found[1])


def _info(family: str) -> tuple[int, int]:
    """Return the instructions of ``lanescope info`` of a simulated capture of about 1 MB, and the capture's size."""
    name, options = CAPTURES[family]
    capture = HOME / name
    _run(PYTHON, PROGRAM, "sim", family, *options, "--force", "-o", capture)
    return instructions(PROGRAM, "info", capture), capture.stat().st_size


def run() -> list[Row]:
    """Count."""
    prepare()
    # Two at a time: counts do not disturb each other.
    with ThreadPoolExecutor(2) as pool:
        argparse = pool.submit(instructions, "-c", "import argparse")
        usage = pool.submit(instructions, PROGRAM, "--help")
        infos = {family: pool.submit(_info, family) for family in CAPTURES}
    base, count = argparse.result(), usage.result()
    rows = [
        Row("python -c 'import argparse'", 1, "x", note=f"{base / 1e6:.0f} M instructions"),
        Row("lanescope --help", count / base, "x", HELP_GOAL, note=f"{count / 1e6:.0f} M instructions"),
    ]
    for family, info in infos.items():
        row = f"lanescope info, {family}"
        try:
            count, size = info.result()
        except RuntimeError as error:
            rows.append(Row(row, None, "x", INFO_GOAL, note=str(error)))
            continue
        note = f"{count / 1e6:.0f} M instructions, {size / 1e6:.2f} MB"
        rows.append(Row(row, count / base, "x", INFO_GOAL, note=note))
    return rows

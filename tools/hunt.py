"""Run the property tests at full effort, round after round with a fresh seed, and keep what they find.

Usage: hunt.py MINUTES. A round begins while the minutes last, and ends when its tests do. HUNT_JOBS=N runs N tests at a
time (1), PYTEST adds arguments. Each round prints its seed, tests, failures and CPU seconds; every failure goes with
its falsifying example to build/hunt/SEED.log. Exits 1 if there was one.
"""

from __future__ import annotations

import os
import resource
import secrets
import shlex
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build/hunt"


def cpu_seconds() -> float:
    """Return the user and system time of all processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def play(seed: int) -> tuple[int, list[tuple[str, str]]]:
    """Run one round; return how many tests it ran, and the name and text of each failure."""
    report = FOLDER / f"{seed}.xml"
    jobs = os.environ.get("HUNT_JOBS") or "1"
    command = [sys.executable, "-m", "pytest", "-q", "-m", "hypothesis", "-p", "no:cacheprovider", "--tb=short"]
    command += [f"--hypothesis-seed={seed}", f"--junitxml={report}", "-n", "0" if jobs == "1" else jobs]
    # Shrinking a find takes minutes; a test that takes longer hangs, which is a find as well.
    command += ["-o", "timeout=900", *shlex.split(os.environ.get("PYTEST", ""))]
    environment = {**os.environ, "LANESCOPE_EFFORT": "full"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    tests, failures = 0, []
    if report.exists():
        for case in ET.parse(report).iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            tests += case.find("skipped") is None
            failures += [(name, each.text or "") for each in case if each.tag in ("failure", "error")]
        report.unlink()
    if done.returncode and not failures:
        # An interpreter that dies writes no report, and no test at all is a fault of the hunt.
        failures = [(f"pytest ended with {done.returncode}", done.stdout[-20_000:] + done.stderr[-20_000:])]
    return tests, failures


def main() -> int:
    """Hunt for as long as the command line says; return the exit status."""
    if len(sys.argv) != 2 or not sys.argv[1].replace(".", "", 1).isdigit():
        sys.exit(__doc__)
    FOLDER.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + 60 * float(sys.argv[1])
    rounds, ran, found = 0, 0, {}
    while rounds == 0 or time.monotonic() < end:
        seed, before = secrets.randbits(32), cpu_seconds()
        try:
            tests, failures = play(seed)
        except KeyboardInterrupt:
            break
        rounds, ran = rounds + 1, ran + tests
        used = cpu_seconds() - before
        print(f"seed {seed}: {tests} tests, {len(failures)} failed, {used:.0f} CPU seconds", flush=True)
        for name, text in failures:
            found.setdefault(name, []).append(seed)
            print(f"  {name}", flush=True)
            with (FOLDER / f"{seed}.log").open("a") as log:
                log.write(f"==== {name}\nLANESCOPE_EFFORT=full pytest --hypothesis-seed={seed}\n{text}\n\n")
    print(f"{rounds} rounds, {ran} tests, {cpu_seconds():.0f} CPU seconds; {len(found)} tests failed", flush=True)
    for name, seeds in found.items():
        print(f"  {name}: {', '.join(f'build/hunt/{seed}.log' for seed in seeds)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Memory of answers: peak of each command, and what a further slice takes; printed as a Markdown table.

``python benchmarks/answer_memory.py [--slices N] [--more N] [--memory SIZE] [COMMAND ...]`` simulates two captures of
in-kernel markers on 396 lanes in a temporary folder, of so many slices and of so many more, runs each command on both,
and removes them. Peaks are resident memory, as the kernel has it of the process. A capture of 64 MiB or less is mapped,
and its pages count: these are larger.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

#: Slices of a tile, on all lanes together.
PER_TILE = 1_584
COMMANDS = {
    "phases": ("phases",),
    "gaps": ("gaps",),
    "phases --name": ("phases", "--name", "q*"),
    "summary": ("summary",),
    "check": ("check", "--fail-on", "never"),
    "summary --by idle": ("summary", "--by", "idle"),
    "critical-path": ("critical-path",),
    "explain": ("explain",),
    "report": ("report", "-o", "report.html", "--force"),
}


def peak(folder: str, *words: str) -> int:
    """Run a command in a folder, and return the most memory that it took, in bytes.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    child = subprocess.Popen(
        [sys.executable, "-m", "lanescope", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=folder
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise subprocess.CalledProcessError(child.returncode, words)
    return usage.ru_maxrss << 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("commands", metavar="COMMAND", nargs="*", help=f"only these: {', '.join(COMMANDS)}")
    parser.add_argument("--slices", type=float, default=4e6)
    parser.add_argument("--more", type=float, default=2e6)
    parser.add_argument("--memory", metavar="SIZE", help="limit of each command")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        captures = []
        for slices in (args.slices, args.slices + args.more):
            tiles = max(1, round(slices / PER_TILE))
            path = str(Path(folder) / f"{tiles}.npy")
            subprocess.run(
                [sys.executable, "-m", "lanescope", "sim", "cuda", "-O", f"tiles={tiles}", "-o", path],
                check=True,
                capture_output=True,
            )
            captures.append((path, tiles * PER_TILE))
        (small, few), (large, many) = captures
        heads = ("command", f"peak of {few / 1e6:.1f} M slices", f"of {many / 1e6:.1f} M", "for each further slice")
        print(f"| {' | '.join(heads)} |\n|---|---|---|---|")
        for name in args.commands or COMMANDS:
            words = (*COMMANDS[name], *(("--memory", args.memory) if args.memory else ()))
            least, most = peak(folder, *words, small), peak(folder, *words, large)
            each = f"{(most - least) / (many - few):.0f} bytes"
            print(f"| `{name}` | {least >> 20:,} MiB | {most >> 20:,} MiB | {each} |", flush=True)


if __name__ == "__main__":
    main()

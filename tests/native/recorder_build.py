"""Build the programs that drive the recorder of Level Zero, and the recorder itself under sanitizers."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build(levelzero: Path, sanitize: str = "") -> Path:
    """Build what has changed, in ``build/recorder`` or, sanitized, in ``build/recorder-NAME``.

    Args:
        levelzero: the folder of Level Zero's ``include`` and ``lib``.
        sanitize: sanitizers for gcc: ``address,undefined`` or ``thread``.

    Returns:
        The folder of what was built; the recorder lies in ``recorder`` within.
    """
    folder = ROOT / "build" / (f"recorder-{sanitize.split(',')[0]}" if sanitize else "recorder")
    folder.mkdir(parents=True, exist_ok=True)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    source = ROOT / "tests/native/recorder"
    settings = [f"-DRECORDER_LEVELZERO={levelzero}", f"-DRECORDER_SANITIZE={sanitize}"]
    configure = ["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja", "--log-level=WARNING", *settings]
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may come at once
        for command in (configure, ["cmake", "--build", str(folder)]):
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}
            )
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)} failed\n{done.stdout[-8000:]}{done.stderr[-4000:]}")
    return folder

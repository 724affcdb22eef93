"""Build the software driver of Level Zero and its programs for tests, once for each choice of sanitizers."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class FakeZe:
    """The software driver, as built.

    Attributes:
        folder: where all of it lies.
        levelzero: Debian's Level Zero: ``include`` and ``lib``.
    """

    folder: Path
    levelzero: Path

    @property
    def driver(self) -> Path:
        """The driver's library, for ZE_ENABLE_ALT_DRIVERS."""
        return self.folder / "libfake_ze.so"

    @property
    def app(self) -> Path:
        """The program ``fake_ze_app``, linked with the loader."""
        return self.folder / "fake_ze_app"

    @property
    def app_dlopen(self) -> Path:
        """The same program, which opens the loader by name."""
        return self.folder / "fake_ze_app_dlopen"

    def environment(self, loader: Path | None = None, **quirks: str | int | Path) -> dict[str, str]:
        """Return the environment in which a program finds the loader and this driver.

        Args:
            loader: the folder of the loader; Debian's by default.
            quirks: variables of ``fake_ze/driver_quirks.hpp`` without their prefix, in any case:
                ``host_reset="sticky"``.

        Returns:
            A copy of this process's environment, without its own FAKE_ZE and ZE variables.
        """
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("FAKE_ZE_", "ZE_", "ZEL_"))}
        kept["ZE_ENABLE_ALT_DRIVERS"] = str(self.driver)
        kept["LD_LIBRARY_PATH"] = str(loader or self.levelzero / "lib")
        kept.update({f"FAKE_ZE_{name.upper()}": str(value) for name, value in quirks.items()})
        return kept


def build(levelzero: Path, sanitize: str = "") -> FakeZe:
    """Build what has changed, in ``build/fake_ze`` or, sanitized, in ``build/fake_ze-NAME``.

    Args:
        levelzero: the folder of Level Zero's ``include`` and ``lib``.
        sanitize: sanitizers for gcc: ``address,undefined`` or ``thread``.

    Returns:
        What was built.
    """
    name = f"fake_ze-{sanitize.split(',')[0]}" if sanitize else "fake_ze"
    folder = ROOT / "build" / name
    folder.mkdir(parents=True, exist_ok=True)
    programs = Path(sys.executable).parent
    path = f"{programs}{os.pathsep}{os.environ.get('PATH', '')}"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may come at once
        configure = ["cmake", "-S", str(ROOT / "tests/native"), "-B", str(folder), "-G", "Ninja", "--log-level=WARNING"]
        settings = [f"-DFAKE_ZE_LEVELZERO={levelzero}", f"-DFAKE_ZE_SANITIZE={sanitize}"]
        environment = {**os.environ, "PATH": path}
        for command in ([*configure, *settings], ["cmake", "--build", str(folder)]):
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)} failed\n{done.stdout[-8000:]}{done.stderr[-4000:]}")
    return FakeZe(folder, levelzero)


def build_model() -> Path:
    """Build the model that says which random programs are legal, if its source has changed; return the program."""
    source, folder = ROOT / "tests/native/matrix_legal.cpp", ROOT / "build/matrix_legal"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "matrix_legal"
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
            command = [os.environ.get("CXX", "c++"), "-std=c++20", "-O2", str(source), "-o", str(program)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                raise RuntimeError(f"{' '.join(command)} failed\n{done.stderr[-4000:]}")
    return program

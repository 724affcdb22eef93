"""Runs command lines, with the family of ``examples/blinker`` installed as a package from elsewhere would be."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from lanescope import devices

ROOT = Path(__file__).resolve().parents[2]


class Done(NamedTuple):
    """How a command ended: exit status, standard output, standard error."""

    status: int
    out: str
    err: str


@pytest.fixture(scope="session")
def plugin_path(tmp_path_factory):
    """Folders that make the blinker family known to whoever has them on its path."""
    folder = tmp_path_factory.mktemp("plugins")
    info = folder / "lanescope_blinker-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: lanescope-blinker\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[lanescope.devices]\nblinker = lanescope_blinker.family:FAMILY\n")
    return [str(folder), str(ROOT / "examples/blinker/src")]


@pytest.fixture
def plugins(plugin_path, monkeypatch):
    """Make the family known to this process."""
    for folder in plugin_path:
        monkeypatch.syspath_prepend(folder)
    for cached in (devices.plugins, devices.family):
        cached.cache_clear()
    yield
    for cached in (devices.plugins, devices.family):
        cached.cache_clear()


@pytest.fixture
def call(plugins, capfd, monkeypatch, tmp_path):
    """Return a function that runs a command line in this process, in an empty folder."""
    from lanescope.cli import main

    monkeypatch.chdir(tmp_path)

    def call(*arguments):
        capfd.readouterr()
        status = main([str(argument) for argument in arguments])
        return Done(status, *capfd.readouterr())

    return call


@pytest.fixture
def shell(plugin_path, tmp_path):
    """Return a function that runs a command line as a process of its own, in the same empty folder."""

    def shell(*arguments, env=(), check=False, **options):
        command = [sys.executable, "-W", "error", "-m", "lanescope", *arguments]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(plugin_path),
            "PYTHONIOENCODING": "utf-8",
            **dict(env),
        }
        options = {"stdin": subprocess.DEVNULL, "cwd": tmp_path, "timeout": 120, **options}
        done = subprocess.run(command, capture_output=True, check=False, env=environment, **options)
        out, err = (data.decode("utf-8", "surrogateescape") for data in (done.stdout, done.stderr))
        if check:
            assert done.returncode == 0, err
        return Done(done.returncode, out, err)

    return shell


@pytest.fixture
def run_file(call, tmp_path):
    """Return a small capture without losses: ``run.blink`` in the folder where commands run."""
    assert call("sim", "blinker", "--changes", 20, "--seed", 3, "-o", "run.blink").status == 0
    return tmp_path / "run.blink"


@pytest.fixture
def lossy_file(call, tmp_path):
    """Return a small capture that has lost records: ``lossy.blink``."""
    assert call("sim", "blinker", "--changes", 60, "--drop", 0.2, "--seed", 3, "-o", "lossy.blink").status == 0
    return tmp_path / "lossy.blink"

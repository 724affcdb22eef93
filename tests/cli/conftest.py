"""Runs command lines, with the family of ``examples/blinker`` known as a package from elsewhere would be."""

import csv
import io
import os
import signal
import subprocess
import sys
from typing import NamedTuple

import pytest


class Done(NamedTuple):
    """How a command ended: exit status, standard output, standard error."""

    status: int
    out: str
    err: str


def csv_rows(text):
    """Return the records of a CSV table, the header first."""
    return list(csv.reader(io.StringIO(text, newline="")))


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

    def shell(*arguments, env=(), check=False, program=None, **options):
        flags = ["-m", "lanescope"] if program is None else program
        command = [sys.executable, "-W", "error", *flags, *arguments]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(plugin_path),
            "PYTHONIOENCODING": "utf-8",
            **dict(env),
        }
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        options = {**pipes, "cwd": tmp_path, "timeout": 120, **options}
        done = subprocess.run(command, check=False, env=environment, **options)
        out, err = ((data or b"").decode("utf-8", "surrogateescape") for data in (done.stdout, done.stderr))
        if check:
            assert done.returncode == 0, err
        return Done(done.returncode, out, err)

    return shell


def as_new():
    """Let signals do in a child what they do by default, whatever this process was started to ignore."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


@pytest.fixture
def start(plugin_path, tmp_path):
    """Return a function that starts ``python ARGUMENTS`` in the same empty folder; at the end it is killed."""
    started = []

    def start(*arguments, env=(), preexec_fn=as_new):
        child = subprocess.Popen(
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(plugin_path), **dict(env)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=preexec_fn,
        )
        started.append(child)
        return child

    yield start
    for child in started:
        with child:
            child.kill()


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

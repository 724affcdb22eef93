"""Runs command lines in this process, in an empty folder."""

import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest


class Done(NamedTuple):
    """How a command ended: exit status, standard output, standard error."""

    status: int
    out: str
    err: str


@pytest.fixture
def call(capfd, monkeypatch, tmp_path):
    """Return a function that runs a command line."""
    from lanescope.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments, stdin=os.devnull):
        capfd.readouterr()
        with Path(stdin).open() as file:
            monkeypatch.setattr(sys, "stdin", file)
            status = main([str(argument) for argument in arguments])
        return Done(status, *capfd.readouterr())

    return call


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Return a function that installs a package with a device family: its name, and its module's text."""
    from lanescope.families import registry

    def forget():
        for cached in (registry.plugins, registry.family):
            cached.cache_clear()

    site = tmp_path / "site"

    def install(name, module):
        info = site / f"{name}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[lanescope.devices]\n{name} = {name}:FAMILY\n")
        (site / f"{name}.py").write_text(module)
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.delitem(sys.modules, name, raising=False)
        forget()

    yield install
    if site.exists():
        forget()

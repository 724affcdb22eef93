"""Captures to ingest."""

from __future__ import annotations

import subprocess
import sys

import pytest

from lanescope.pipeline import session


@pytest.fixture(scope="session")
def fleet(tmp_path_factory):
    """A folder with captures of two runs: profiles of four ranks, and kernels without a rank."""
    folder = tmp_path_factory.mktemp("fleet")
    for rank in range(4):
        _write(folder / "train", "kineto", f"r{rank}.json", rank + 1, ranks=4, rank=rank)
    for seed in range(3):
        _write(folder / f"kernels/rank_{seed}", "cuda", None, seed, tiles=1)
    return folder


@pytest.fixture(scope="session")
def many(tmp_path_factory):
    """A folder with 200 captures of small kernels."""
    folder = tmp_path_factory.mktemp("many")
    for rank in range(200):
        _write(folder / f"rank_{rank}", "cuda", None, rank, tiles=1)
    return folder


@pytest.fixture(scope="session")
def many_ingested(many, tmp_path_factory):
    """The dataset that one uninterrupted command makes of ``many``."""
    out = tmp_path_factory.mktemp("datasets") / "many"
    command = [sys.executable, "-m", "lanescope", "ingest", str(many), "-o", str(out), "--jobs", "2"]
    subprocess.run(command, check=True, capture_output=True, timeout=600)
    return out


def _write(folder, family, name, seed, **options):
    folder.mkdir(parents=True, exist_ok=True)
    for at, (own, content) in enumerate(session.simulate(family, seed, **options).files.items()):
        (folder / (name if name and not at else own)).write_bytes(content)

"""Captures to ingest."""

from __future__ import annotations

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


def _write(folder, family, name, seed, **options):
    folder.mkdir(parents=True, exist_ok=True)
    for at, (own, content) in enumerate(session.simulate(family, seed, **options).files.items()):
        (folder / (name if name and not at else own)).write_bytes(content)

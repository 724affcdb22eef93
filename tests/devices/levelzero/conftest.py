"""Fixtures of the tests that record: the software driver, and programs that drive the recorder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from native.fake_ze_build import FakeZe


@pytest.fixture(scope="session")
def levelzero(require_tool: Callable[[str], Path]) -> Path:
    """Level Zero's headers and loader."""
    return require_tool("levelzero")


@pytest.fixture(scope="session")
def fake_ze(levelzero: Path) -> FakeZe:
    """The software driver of Level Zero and its programs."""
    from native.fake_ze_build import build

    return build(levelzero)


@pytest.fixture(scope="session")
def programs(levelzero: Path) -> Path:
    """The folder of programs that drive the recorder."""
    from native.recorder_build import build

    return build(levelzero)

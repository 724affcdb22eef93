"""Fixtures of the native tests: the software driver, built once a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from native.fake_ze_build import FakeZe, build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def fake_ze(require_tool: Callable[[str], Path]) -> FakeZe:
    """The software driver of Level Zero and its programs."""
    return build(require_tool("levelzero"))

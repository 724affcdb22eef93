"""Fixtures of the native tests: the software driver, built once a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from native.softze_build import Softze, build

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def softze(require_tool: Callable[[str], Path]) -> Softze:
    """The software driver of Level Zero and its programs."""
    return build(require_tool("levelzero"))

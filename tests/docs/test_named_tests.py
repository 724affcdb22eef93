"""Pages that promise something name the test that shows it, and each of those tests exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/explain/faults.md"])
def test_named_tests_exist(page):
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / page).read_text())
    assert len(named) >= 10
    for file, name in named:
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file}::{name}"
    rows = [line for line in (ROOT / page).read_text().splitlines() if line.startswith("| ") and "---" not in line]
    assert all("::" in row for row in rows if not row.startswith(("| Part ", "| Fault "))), "a row without a test"

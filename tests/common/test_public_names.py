"""The names that ``lanescope.common`` and ``lanescope.families`` give to families of other packages."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from lanescope import common, families

ROOMS = pytest.mark.parametrize("room", [common, families], ids=lambda room: room.__name__)


@ROOMS
def test_every_name_is_what_its_module_has_and_what_type_checkers_see(room):
    tree = ast.parse(Path(room.__file__).read_text())
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lanescope.")
        if node.module != "lanescope.lazy_names"
        for alias in node.names
    }
    assert sorted(seen) == sorted(room.__all__)
    for name, module in seen.items():
        assert getattr(room, name) is getattr(import_module(module), name)


@ROOMS
def test_no_module_hides_a_name(room):
    modules = {path.stem for path in Path(room.__file__).parent.glob("*.py")}
    assert not modules & set(room.__all__)


@ROOMS
def test_an_unknown_name_is_an_attribute_error(room):
    with pytest.raises(AttributeError, match="nothing_like_it"):
        room.nothing_like_it  # noqa: B018


@ROOMS
def test_importing_the_room_loads_nothing_heavy(room):
    code = f"import sys, {room.__name__}; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_function_stays_a_function_after_its_module_was_imported():
    code = (
        "from lanescope.common.wrapping_counters import nearest; from lanescope.common.missing_records import Gaps; "
        "from lanescope.common import sequence_gaps, unwrap; assert callable(unwrap) and callable(sequence_gaps)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

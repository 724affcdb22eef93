"""The public names, and what it costs to load them."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import lanescope

#: What takes long to import. None of it may be loaded before it is needed.
HEAVY = ("numpy", "rich", "duckdb", "msgspec", "pyarrow", "isal")


def loaded_after(code: str) -> set[str]:
    """Return the names of all modules that a fresh interpreter has loaded after ``code``."""
    report = "import sys; print('\\n' + ' '.join(sys.modules))"
    script = f"try:\n    {code}\nexcept SystemExit as done:\n    assert not done.code\n{report}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_all_is_sorted_and_is_what_dir_shows():
    assert list(lanescope.__all__) == sorted(lanescope.__all__)
    assert dir(lanescope) == lanescope.__all__


@pytest.mark.parametrize("name", lanescope.__all__)
def test_every_public_name_loads(name):
    assert getattr(lanescope, name) is not None


def test_every_public_name_is_where_type_checkers_find_it():
    """The lazy table and the imports that only type checkers see tell the same."""
    tree = ast.parse(Path(lanescope.__file__).read_text())
    seen = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("lanescope.")
        if node.module != "lanescope.lazy_names"
        for alias in node.names
    }
    assert sorted(seen) == sorted(set(lanescope.__all__) - {"__version__"})
    for name, module in seen.items():
        assert getattr(lanescope, name) is getattr(import_module(module), name)


def test_all_errors_are_public():
    errors = vars(import_module("lanescope.errors"))
    tree = {name for name, value in errors.items() if isinstance(value, type) and issubclass(value, Exception)}
    assert tree <= set(lanescope.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_like_it"):
        lanescope.nothing_like_it  # noqa: B018


def test_import_loads_nothing_heavy():
    assert not loaded_after("import lanescope").intersection(HEAVY)


@pytest.mark.skipif(not Path(lanescope.__file__).with_name("cli").joinpath("__init__.py").exists(), reason="no cli yet")
@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_help_loads_nothing_heavy(arguments):
    loaded = loaded_after(f"import lanescope.cli; raise SystemExit(lanescope.cli.main({arguments!r}))")
    assert "argparse" in loaded
    assert not loaded.intersection(HEAVY)

"""Each module can be read alone: none imports one that, over whatever way, imports it, wherever the import stands."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from lanescope.devices import cuda

ROOT = Path(cuda.__file__).parent


def imports(source, known):
    """Return which of the known modules a source imports: at the top, in functions, for types only."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & known


def order(sources):
    return list(TopologicalSorter({name: imports(text, set(sources)) for name, text in sources.items()}).static_order())


def test_no_module_imports_itself_over_others():
    paths = {path: (cuda.__name__, *path.relative_to(ROOT).with_suffix("").parts) for path in ROOT.rglob("*.py")}
    sources = {".".join(parts).removesuffix(".__init__"): path.read_text() for path, parts in paths.items()}
    found = order(sources)
    assert len(found) == len(sources) > 40
    assert found.index("lanescope.devices.cuda.formats.layout") < found.index("lanescope.devices.cuda.emit.batches")


@pytest.mark.parametrize("late", ["def f():\n    from a import x", "if TYPE_CHECKING:\n    import a", "import a"])
def test_a_circle_is_found(late):
    with pytest.raises(CycleError):
        order({"a": "import b", "b": "from c import f", "c": late})

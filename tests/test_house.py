"""The house keeps its measures: no module is too long, no folder too full, unless its first comment gives the reason.

Tests have no such limits: a test file may be as long as its subject.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MOST_LINES = 500
MOST_MODULES = 14
#: How the first comment of a module or folder that is larger begins its reason.
LONG, FULL = f"More than {MOST_LINES} lines: ", f"More than {MOST_MODULES} modules: "
NATIVE = {".cpp", ".hpp", ".h", ".def"}


def modules(root: Path) -> list[Path]:
    """All Python modules and native files of the package."""
    python = list((root / "src" / "lanescope").rglob("*.py"))
    native = [path for path in (root / "native").rglob("*") if path.suffix in NATIVE and "build" not in path.parts]
    return sorted(python + native)


def first_comment(path: Path) -> str:
    """The docstring of a module; of a native file the comment that it begins with; else nothing."""
    if not path.exists():
        return ""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return ast.get_docstring(ast.parse(text)) or ""
    lines = re.match(r"(?:(?://|#).*\n)*", text)
    return " ".join(line.lstrip("/# ") for line in (lines[0] if lines else "").splitlines())


def long_modules(root: Path) -> dict[str, int]:
    """Modules with too many lines and no reason, and how many they have."""
    found = {}
    for path in modules(root):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > MOST_LINES and not re.search(re.escape(LONG) + r"\w", first_comment(path)):
            found[path.relative_to(root).as_posix()] = lines
    return found


def full_folders(root: Path) -> dict[str, int]:
    """Folders with too many modules and no reason, and how many they have; a header and its source are one module."""
    found = {}
    names = {(path.parent, path.stem) for path in modules(root) if path.stem != "__init__"}
    for folder, count in Counter(folder for folder, _ in names).items():
        said = first_comment(folder / "__init__.py") + first_comment(folder / "CMakeLists.txt")
        if count > MOST_MODULES and not re.search(re.escape(FULL) + r"\w", said):
            found[folder.relative_to(root).as_posix()] = count
    return found


def test_no_module_is_too_long() -> None:
    assert len(modules(ROOT)) > 400
    assert long_modules(ROOT) == {}, f"cut them, or begin a sentence of the first comment: {LONG}"


def test_no_folder_is_too_full() -> None:
    assert full_folders(ROOT) == {}, f"cut them, or begin a sentence of the first comment: {FULL}"


@pytest.mark.parametrize(
    ("name", "text", "is_long"),
    [
        ("src/lanescope/a.py", '"""Text."""\n' + "\n" * 500, True),
        ("src/lanescope/a.py", '"""Text."""\n' + "\n" * 499, False),
        ("src/lanescope/a.py", f'"""Text. {LONG}one grammar."""\n' + "\n" * 500, False),
        ("src/lanescope/a.py", f'"""Text. {LONG}"""\n' + "\n" * 500, True),
        ("native/a.cpp", "// Text.\n" + "\n" * 500, True),
        ("native/a.cpp", f"// Text.\n// {LONG}one table.\n" + "\n" * 500, False),
        ("native/a.cpp", "\n" * 500 + f"// {LONG}not its first comment.\n", True),
    ],
)
def test_long_modules_are_found(tmp_path: Path, name: str, text: str, *, is_long: bool) -> None:
    path = tmp_path / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert list(long_modules(tmp_path)) == ([name] if is_long else [])


def test_full_folders_are_found(tmp_path: Path) -> None:
    folder, native = tmp_path / "src" / "lanescope" / "a", tmp_path / "native" / "b"
    for made in (folder, native):
        made.mkdir(parents=True)
    (folder / "__init__.py").write_text('"""Text."""\n')
    for number in range(MOST_MODULES + 1):
        (native / f"m{number}.cpp").touch()
        (folder / f"m{number}.py").touch()
        expected = ["native/b", "src/lanescope/a"] if number == MOST_MODULES else []
        assert sorted(full_folders(tmp_path)) == expected
    (folder / "__init__.py").write_text(f'"""Text. {FULL}one for each kind."""\n')
    (native / "m0.hpp").touch()
    assert full_folders(tmp_path) == {"native/b": MOST_MODULES + 1}

"""News become lines of CHANGELOG.md, and a version is written wherever the package has it, or nowhere."""

import datetime
import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DAY = datetime.date(2027, 2, 3)
CHANGELOG = """\
# Changelog

The form.

## Unreleased

### Added

- `old` is there.

### Fixed

- A fault of two
  lines.
"""


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools/release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def package(tmp_path):
    (tmp_path / "src/lanescope").mkdir(parents=True)
    for name in ("src/lanescope/__init__.py", "CITATION.cff"):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    (tmp_path / "news").mkdir()
    shutil.copy(ROOT / "news/README.md", tmp_path / "news")
    return tmp_path


def texts(folder):
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_the_news_of_this_repository_can_be_taken(tool):
    tool.news(ROOT)
    text = (ROOT / "CHANGELOG.md").read_text()
    lines, taken = text.splitlines(), tool.with_news(text, {}).splitlines()
    assert sorted(filter(None, taken)) == sorted(filter(None, lines))


def test_news_are_the_first_lines_of_their_sections(tool, package):
    (package / "news/b.added.md").write_text("`b` is there.\n")
    (package / "news/a.added.md").write_text(f"`a` is {'very ' * 40}long.\n")
    (package / "news/c.changed.md").write_text("`c` is\nanother.")
    assert tool.collect(package) == 3
    text = (package / "CHANGELOG.md").read_text()
    assert re.findall(r"(?m)^(?:#+ |- ).*", text) == [
        "# Changelog", "## Unreleased",
        "### Added", *re.findall(r"- `a` is.*", text), "- `b` is there.", "- `old` is there.",
        "### Changed", "- `c` is another.", "### Fixed", "- A fault of two",
    ]  # fmt: skip
    assert max(map(len, text.splitlines())) <= tool.WIDTH
    assert [path.name for path in (package / "news").iterdir()] == ["README.md"]
    assert tool.collect(package) == 0
    assert (package / "CHANGELOG.md").read_text() == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "text"), ("a.removed.md", "text"), ("a.added.txt", "text"), ("a.b.added.md", "text"),
        ("a.added.md", " \n"), ("a.added.md", "one\n\ntwo"), ("a.added.md", "- one"), ("a.added.md", "# one"),
    ],
)  # fmt: skip
def test_news_that_are_not_one_paragraph_of_a_kind_are_refused(tool, package, name, text):
    (package / "news" / name).write_text(text)
    before = texts(package)
    for refused in (lambda: tool.collect(package), lambda: tool.release(package, "9.0.0", DAY)):
        with pytest.raises(tool.WrongNewsError, match=re.escape(f"news/{name}: not ")):
            refused()
        assert texts(package) == before


def test_a_version_is_written_everywhere(tool, package):
    (package / "news/a.fixed.md").write_text("`a` works.")
    tool.release(package, "9.10.0", DAY)
    found = texts(package)
    assert '\n__version__ = "9.10.0"\n' in found["src/lanescope/__init__.py"]
    assert "\nversion: 9.10.0\n" in found["CITATION.cff"]
    assert re.findall(r"(?m)^(?:##+ |- ).*", found["CHANGELOG.md"]) == [
        "## Unreleased", "## 9.10.0 - 2027-02-03", "### Added", "- `old` is there.", "### Fixed", "- `a` works.",
        "- A fault of two",
    ]  # fmt: skip
    # The next one has what came since, and nothing else.
    (package / "news/d.changed.md").write_text("`d` is another.")
    tool.release(package, "9.10.1", DAY)
    assert re.findall(r"(?m)^##+ .*|- .*", (package / "CHANGELOG.md").read_text())[:4] == [
        "## Unreleased", "## 9.10.1 - 2027-02-03", "### Changed", "- `d` is another.",
    ]  # fmt: skip


@pytest.mark.parametrize("version", ["9", "9.0", "9.0.0rc1", "v9.0.0", "09.0.0", "0.0.9", "", "9.0.0\n"])
def test_a_version_that_is_none_or_earlier_changes_nothing(tool, package, version):
    before = texts(package)
    with pytest.raises(tool.WrongNewsError):
        tool.release(package, version, DAY)
    assert texts(package) == before


def test_a_version_is_released_once_and_has_news(tool, package):
    tool.release(package, "9.2.0", DAY)
    before = texts(package)
    for version, reason in (("9.2.0", "has it already"), ("9.10.0", "nothing is new")):
        with pytest.raises(tool.WrongNewsError, match=reason):
            tool.release(package, version, DAY)
    assert texts(package) == before

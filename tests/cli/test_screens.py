"""Every table of every reporting command, of a capture of each family: on terminals of many widths, piped, as CSV."""

import io
import re
import sys

import pytest

import lanescope
from cli.conftest import csv_rows
from effort import QUICK
from lanescope import cli
from lanescope.cli import main
from lanescope.cli.commands import completion
from lanescope.families import registry
from lanescope.view.formatting import display_width

FAMILIES = [family.name for family in registry.builtin() if family.simulator is not None]
WIDTHS = (60, 80, 110) if QUICK else (60, 70, 80, 95, 110, 130, 160, 200)
GROUPS = ("name", "lane", "device", "category", "region", "block", "core", "tile", "queue", "sm")
#: What is drawn on a terminal, and a table elsewhere.
DRAWN = ("overlap", "idle", "occupancy")
#: Verbs with ``--json`` that this walks through.
WALKED = {"info", "check", "summary", "phases", "gaps", "explain", "critical-path", "sql", "doctor"}


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self):
        return True


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """Return the main file of a simulated capture of each family."""
    found = {}
    for name in FAMILIES:
        folder = tmp_path_factory.mktemp(name)
        family = registry.family(name)
        files = lanescope.simulate(name, seed=2, **dict(family.simulator.demo)).files
        for file, content in files.items():
            (folder / file).write_bytes(content)
        found[name] = folder / next(iter(files))
    return found


@pytest.fixture
def capture(captures, family, monkeypatch):
    """Return the name of the capture of a family, in the folder with it: names of files are never cut."""
    monkeypatch.chdir(captures[family].parent)
    return captures[family].name


def commands(family, path):
    yield from (["info", path], ["check", path, "--all"], ["phases", path], ["phases", path, "--by", "lane"])
    yield from (["gaps", path], ["critical-path", path], ["explain", path], ["doctor", path], ["doctor"])
    yield from (["sql", path], ["sql", path, "select * from slices limit 30"], ["sql", path, "select * from stats"])
    own = [summary.name for summary in registry.family(family).summaries]
    for by in dict.fromkeys((*GROUPS, *DRAWN, *own)):
        yield ["summary", path, "--by", by]
    if family == "ascend":
        yield ["ascend-deps", path]


def shown(monkeypatch, capfd, arguments, width=0):
    """Return the status of a command, and what it writes to a terminal of some width, or to a pipe."""
    stream = Terminal() if width else io.StringIO()
    with monkeypatch.context() as patch:
        patch.setenv("TERM", "xterm-256color")
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", str(width or 80))
        patch.setattr(sys, "stdout", stream)
        status = main(arguments)
    capfd.readouterr()
    return status, stream.getvalue()


def cells(line):
    return [text for text in re.split(r"  +", line.strip()) if text]


@pytest.mark.parametrize("family", FAMILIES)
def test_no_line_is_too_long_and_no_number_is_split(capture, monkeypatch, capfd, family):
    tables = 0
    for arguments in commands(family, capture):
        status, piped = shown(monkeypatch, capfd, arguments)
        if status in (2, 3):  # the capture has no such groups, or no path
            continue
        assert status in (0, 1), arguments
        assert "\x1b" not in piped
        assert not re.search(r"(?<![\d.])0\.0*[1-9]\d{3,}|[1-9]\.\d{4,}", piped), arguments
        known = {cell for line in piped.splitlines() for cell in cells(line)}
        tables += "──" in piped
        for width in WIDTHS:
            again, text = shown(monkeypatch, capfd, arguments, width)
            assert again == status
            where = f"{arguments} at {width}\n{text}"
            lines = [line for line in text.splitlines() if not line.startswith("    lanescope ")]
            assert max([display_width(line) for line in lines], default=0) <= width, where
            if "summary" in arguments and arguments[-1] in DRAWN:
                continue
            in_table = False
            for line in lines:
                if set(line) == {"─", " "} or not line or line.startswith("hidden: "):
                    in_table = bool(line) and line[0] in "─ "
                    continue
                for cell in cells(line) if in_table else ():
                    is_cut = "…" in cell or set(cell) <= set(" ▏▎▍▌▋▊▉█")
                    assert is_cut or cell in known, f"{cell!r}\n{where}"
            if "hidden: " in text:
                assert "(--wide)" in text
    assert tables >= 8


@pytest.mark.parametrize("family", FAMILIES)
def test_every_command_has_csv_with_a_table_that_is_exact(capture, monkeypatch, capfd, family):
    for arguments in commands(family, capture):
        if arguments == ["doctor"]:
            continue
        status, text = shown(monkeypatch, capfd, [*arguments, "--csv"])
        if status in (2, 3):
            continue
        assert text, arguments
        head, *rows = csv_rows(text)
        assert all(len(row) == len(head) for row in rows), arguments
        assert len(set(head)) == len(head)
        if "summary" in arguments:
            status, shares = shown(monkeypatch, capfd, [*arguments, "--csv", "--color", "always", "--wide"])
            assert shares == text, "nothing but the table"


def test_every_verb_that_has_json_has_csv_and_is_walked_through():
    verbs = completion.full_parser()._subparsers._group_actions[0].choices
    with_json = {name for name, parser in verbs.items() if "--json" in parser._option_string_actions}
    with_csv = {name for name, parser in verbs.items() if "--csv" in parser._option_string_actions}
    assert with_json == with_csv
    assert with_json & set(cli.COMMANDS) >= WALKED


@pytest.mark.parametrize("family", ["cuda"])
@pytest.mark.parametrize(("unit", "name"), [("us", "µs"), ("ms", "ms")])
def test_one_unit_for_a_table_is_in_its_header(capture, monkeypatch, capfd, unit, name):
    status, text = shown(monkeypatch, capfd, ["summary", capture, "--unit", unit])
    assert status == 0
    assert f"total [{name}]" in text
    assert f" {name} " not in text


@pytest.mark.parametrize("family", FAMILIES)
def test_info_is_a_block_of_keys_and_values_at_every_width(capture, monkeypatch, capfd, family):
    _, piped = shown(monkeypatch, capfd, ["info", capture])
    title, *lines = piped.splitlines()
    assert title == capture
    keys = [line[2:].split("  ")[0] for line in lines[: lines.index("")]]
    assert [key for key in keys if key and key != "sidecar"][:6] == [
        "format", "size", "duration", "time", "contents", "data loss"
    ]  # fmt: skip
    assert any(line.startswith("Byte accounting") for line in lines)
    for width in WIDTHS:
        _, text = shown(monkeypatch, capfd, ["info", capture], width)
        assert text.split()[:40] == piped.split()[:40], width


@pytest.mark.parametrize("family", FAMILIES)
def test_a_line_of_context_is_above_tables_of_a_capture(capture, monkeypatch, capfd, family):
    for verb in (["summary"], ["summary", "--by", "lane"], ["phases"], ["gaps"], ["critical-path"]):
        status, text = shown(monkeypatch, capfd, [*verb, capture])
        if status in (2, 3):
            continue
        about, empty, *_ = text.splitlines()
        found = re.fullmatch(rf"{re.escape(capture)}: [\d.,]+ (ns|µs|ms|s|cycles), [\d,]+ lanes, [\d,]+ slices", about)
        assert found, about
        assert not empty
        status, text = shown(monkeypatch, capfd, [*verb, capture, "--csv"])
        assert not text.startswith(capture)


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_are_right_aligned_and_every_column_is_shown_or_named_as_hidden(capture, monkeypatch, capfd, family):
    numbers = 0
    for verb in (["summary"], ["summary", "--by", "lane"], ["phases"]):
        status, piped = shown(monkeypatch, capfd, [*verb, capture])
        if status in (2, 3):
            continue
        head = piped.splitlines()[2]
        known = cells(head)
        for width in (80, 110, 160):
            _, text = shown(monkeypatch, capfd, [*verb, capture], width)
            _, _, titles, rule, *rows = text.splitlines()
            hidden = re.search(r"hidden: (.*?) \(--wide\)", " ".join(rows))
            named = hidden[1].split(", ") if hidden else []
            where = f"{verb} at {width}\n{text}"
            assert sorted([*cells(titles), *named]) == sorted(known), where
            spans = [(match.start(), match.end()) for match in re.finditer("─+", rule)]
            for row in rows[:5]:
                if not row.strip() or row[0] == " " or "hidden" in row or len(row) < spans[-2][1]:
                    break
                for low, high in spans[1:-1]:
                    cell = row[low:high]
                    if re.fullmatch(r" *[\d.,]+( [nµm]?s|%)?", cell.rstrip()):
                        assert cell == cell.rstrip(), f"{cell!r} in {where}"
                        numbers += 1
    assert numbers > 50

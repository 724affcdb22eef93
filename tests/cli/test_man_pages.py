"""Man pages are made from the parsers: every command has one, every option is on it, and groff takes it as it is."""

import argparse
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

from lanescope import cli
from lanescope.cli import arguments as parsing
from lanescope.families import registry

TOOL = Path(__file__).parents[2] / "tools/make_man_pages"


@pytest.fixture(scope="module")
def tool():
    loader = SourceFileLoader("make_man_pages", str(TOOL))
    module = module_from_spec(spec_from_loader("make_man_pages", loader))
    bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    loader.exec_module(module)
    sys.dont_write_bytecode = bytecode
    return module


@pytest.fixture(scope="module")
def pages(tool):
    return dict(tool.pages())


def parser_of(name):
    if name in cli.COMMANDS:
        module = import_module(f"lanescope.cli.commands.{name.replace('-', '_')}")
        return parsing.build_parser(name, module, [name], registry.builtin())
    family = registry.family(cli.FAMILY_COMMANDS[name][0])
    (command,) = (command for command in family.commands if command.name == name)
    return parsing.command_parser(command, family)


def test_every_command_has_a_page_with_all_its_options(tool, pages):
    names = {*cli.COMMANDS, *cli.FAMILY_COMMANDS}
    assert set(pages) == {"lanescope", *(f"lanescope-{name}" for name in names)}
    for name in names:
        assert tool.escaped(f"lanescope-{name}") in pages["lanescope"]
        for action in parser_of(name)._actions:
            for flag in action.option_strings if action.help is not argparse.SUPPRESS else ():
                assert f"\\fB{tool.escaped(flag)}\\fR" in pages[f"lanescope-{name}"], (name, flag)


def test_pages_have_the_sections_that_readers_expect(pages):
    for name, page in pages.items():
        sections = re.findall(r'^\.SH "?([^"\n]*)"?$', page, re.MULTILINE)
        assert sections[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"], name
        assert page.startswith(".TH LANESCOPE")
        assert f".SH NAME\n{name.replace('-', chr(92) + '-')} \\- " in page


def test_groff_takes_them_without_a_warning(pages, tmp_path):
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    for name, page in pages.items():
        (tmp_path / f"{name}.1").write_text(page)
        command = ["groff", "-man", "-Tutf8", "-ww", "-P-cbou", str(tmp_path / f"{name}.1")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == "", name
        assert "  lanescope " in done.stdout
    assert (
        "--min-dur DURATION"
        in subprocess.run(
            [*command[:-1], str(tmp_path / "lanescope-summary.1")], capture_output=True, text=True, check=True
        ).stdout
    )


def test_text_is_never_a_request(tool):
    assert tool.escaped(".so /etc/passwd\n'x \\n-") == "\\&.so /etc/passwd\n\\(aqx \\en\\-"


def test_the_tool_writes_files(tool, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["make_man_pages", str(tmp_path / "man")])
    assert tool.main() == 0
    assert (tmp_path / "man/lanescope-info.1").read_text().startswith(".TH LANESCOPE")
    assert capsys.readouterr().err.startswith("wrote ")

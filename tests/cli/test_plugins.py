"""Broken families of other packages: each is named, and none affects another family."""

import json
import os

import pytest

from error_text import is_one_error
from lanescope.declaration import replace
from lanescope.families import Rule, registry

FAMILY = """
from lanescope.families import Command, Family, Format
from lanescope.source import Detection

def toy(name, detect=lambda head: Detection(0), **more):
    return Family(name, "a toy", (Format("toy", detect, "no_such_module:decode"),), **more)

def raising(head): raise ValueError("what is\\n this?")

def silent(head): return None
"""
#: Package -> its entry point and its module.
PACKAGES = {
    "gone": ("gone = no_such_module:FAMILY", None),
    "leaves": ("leaves = leaves:FAMILY", "raise SystemExit('no licence')"),
    "module": ("module = module", "FAMILY = 1"),
    "options": ("options = options:FAMILY", FAMILY + "FAMILY = toy('options', options=('--fast',))"),
    "raising": (
        "raising = raising:FAMILY",
        FAMILY
        + "commands = tuple(Command(name, 'it shows', 'none:run') for name in ('show', 'aie-path'))\n"
        + "FAMILY = toy('raising', raising, commands=commands)",
    ),
    "silent": ("silent = silent:FAMILY", FAMILY + "FAMILY = toy('silent', silent)"),
    "older": ("older = older:FAMILY", FAMILY + "FAMILY = toy('older', api=0)"),
    "one": ("twin = one:FAMILY", FAMILY + "FAMILY = toy('twin')"),
    "other": ("two = other:FAMILY", FAMILY + "FAMILY = toy('twin')"),
    "pretender": ("cuda = pretender:FAMILY", FAMILY + "FAMILY = toy('cuda')"),
}
#: Name by which a broken one is known -> part of the reason.
BROKEN = {
    "gone": "package gone: ModuleNotFoundError: No module named 'no_such_module'",
    "leaves": "package leaves: SystemExit: no licence",
    "module": "is not a lanescope.families.Family",
    "options": "package options: TypeError: options: '--fast' is not of type Option",
    "older": "package older: TypeError: it is written for version 0 of lanescope.families, which is at version 1 here",
    "twin": "more than one family has this name, of the packages one, other",
    "cuda": "package pretender: lanescope has a family of this name itself",
}


@pytest.fixture
def broken_shell(shell, tmp_path, plugin_path):
    """Return ``shell`` where all these packages are installed, and the blinker."""
    site = tmp_path / "site"
    for package, (point, content) in PACKAGES.items():
        info = site / f"{package}-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[lanescope.devices]\n{point}\n")
        if content is not None:
            (site / f"{package}.py").write_text(content)
    (tmp_path / "text").write_text("no capture")
    path = os.pathsep.join([str(site), *plugin_path])
    return lambda *arguments: shell(*arguments, env={"PYTHONPATH": path})


def is_one_line(text):
    return is_one_error(text)


def test_broken_plugins_break_no_help_and_hide_no_other_family(broken_shell):
    assert broken_shell("info", "--help")[::2] == (0, "")
    done = broken_shell("info", "--help-family", "blinker")
    assert (done.status, done.err) == (0, "")
    assert "options of blinker" in done.out
    assert broken_shell("sim", "blinker", "--changes", "20", "-o", "run.blink").status == 0
    done = broken_shell("info", "--json", "run.blink")
    assert (done.status, done.err) == (0, "")
    assert json.loads(done.out)["family"] == "blinker"


def test_doctor_lists_each_broken_plugin_by_name_with_its_fault(broken_shell):
    done = broken_shell("doctor", "--json")
    assert done.status == 1
    rows = {(row["what"], row["state"]): row["remark"] for row in json.loads(done.out)["rows"]}
    assert {what for what, state in rows if state == "broken"} == {f"family {name}" for name in BROKEN}
    for name, reason in BROKEN.items():
        assert reason in rows[f"family {name}", "broken"]
        assert rows[f"family {name}", "broken"].endswith("; update or uninstall that package")
    for name in ("aie", "cuda", "blinker", "raising"):
        assert (f"family {name}", "ok") in rows


@pytest.mark.parametrize("name", sorted(set(BROKEN) - {"cuda"}))
def test_a_broken_plugin_is_an_error_only_for_those_who_name_it(broken_shell, name):
    done = broken_shell("info", "text", "--family", name)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"lanescope: error: cannot load device family {name!r} of another package: ")
    assert BROKEN[name] in done.err
    assert is_one_line(done.err)


def test_a_plugin_cannot_take_the_place_of_a_family_of_the_tree(broken_shell):
    assert broken_shell("sim", "cuda", "-o", "run.npy").status == 0
    assert broken_shell("info", "run.npy", "--family", "cuda").status == 0


def test_unrecognized_input_names_each_broken_family_once(broken_shell):
    done = broken_shell("info", "text")
    assert (done.status, done.out) == (3, "")
    assert is_one_line(done.err)
    for name, reason in BROKEN.items():
        assert done.err.count(f"cannot load device family {name!r} of another package: ") == 1
        assert reason in done.err
    assert "device family 'raising' could not look at it: its detection failed: ValueError: what is this?" in done.err
    assert (
        "device family 'silent' could not look at it: its detection failed: TypeError: format toy returned None"
        in done.err
    )


@pytest.mark.parametrize(
    ("name", "reason"), [("raising", "ValueError: what is this?"), ("silent", "TypeError: format toy r")]
)
def test_a_probe_that_raises_is_reported_by_the_name_of_its_family(broken_shell, name, reason):
    done = broken_shell("info", "text", "--family", name)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith(f"lanescope: error: detection by device family {name!r} failed on text: {reason}")
    assert is_one_line(done.err)


def test_a_command_of_a_broken_plugin_is_reported_and_takes_no_other_ones_place(broken_shell):
    done = broken_shell("show", "text")
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("lanescope: error: none:run of another package cannot be loaded: ModuleNotFoundError")
    assert is_one_line(done.err)
    done = broken_shell("aie-path", "--help")
    assert (done.status, done.err) == (0, "")
    done = broken_shell("completion", "bash")
    assert (done.status, done.err) == (0, "")
    assert "--lamps" in done.out


def test_what_a_plugin_decoded_is_read_back_where_the_plugin_is_not_installed(call, run_file, monkeypatch, tmp_path):
    assert call("convert", "run.blink", "-o", "run.parquet").status == 0
    missing = registry.Plugins((), (registry.Broken("blinker", "it is gone"),))
    with monkeypatch.context() as without:
        without.setattr(registry, "plugins", lambda: missing)
        registry.family.cache_clear()
        assert call("convert", "run.parquet", "-o", "run.pftrace").status == 0
        assert call("check", "run.parquet", "--fail-on", "error").status == 0
        assert call("info", "run.parquet").status == 0


def test_the_command_knows_rules_of_other_packages(call, plugins, monkeypatch):
    (blinker,) = [family for family in registry.plugin_families() if family.name == "blinker"]
    dim = Rule("BLINKER101", "dim", "warning", "it is dim", "look", lambda context: (), scope="rows")
    changed = replace(blinker, rules=(dim,))
    known = registry.family
    with monkeypatch.context() as other:
        other.setattr(registry, "plugin_families", lambda: (changed,))
        other.setattr(registry, "family", lambda name: changed if name == "blinker" else known(name))
        assert "BLINKER101 dim (warning)" in call("check", "--explain", "BLINKER101").out
        assert call("sim", "blinker", "-o", "run.blink").status == 0
        done = call("check", "run.blink", "--select", "BLINKER", "--json")
        assert (done.status, json.loads(done.out)["rules"]) == (0, ["BLINKER101"])

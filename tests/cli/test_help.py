"""Every help page ends with two command lines that work."""

import shlex
import shutil
from importlib import import_module

import pytest

from lanescope import cli, devices


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_help_page_ends_with_two_examples(call, verb):
    module = import_module(f"lanescope.cli.{verb}")
    done = call(verb, "--help")
    assert (done.status, done.err) == (0, "")
    assert done.out.startswith(f"usage: lanescope {verb} ")
    assert len(module.EXAMPLES) == 2
    assert done.out.endswith("examples:\n" + "".join(f"  {example}\n" for example in module.EXAMPLES))
    assert all(len(line) <= 120 for line in done.out.splitlines())


@pytest.mark.parametrize("verb", [verb for verb in cli.VERBS if verb not in ("view", "record")])
def test_the_examples_run(call, verb, tmp_path):
    for example in import_module(f"lanescope.cli.{verb}").EXAMPLES:
        name, *arguments = shlex.split(example)
        assert (name, arguments[0]) == ("lanescope", verb)
        if "capture.bin" in arguments and not (tmp_path / "capture.bin").exists():
            assert call("sim", "aie", "-o", "capture.bin").status == 0
        done = call(*arguments)
        assert done.status in (0, 1), (example, done.err)
        shutil.rmtree(tmp_path / "lanescope-demo", ignore_errors=True)


def test_help_shows_the_options_of_all_families(call):
    done = call("info", "--help")
    families = (*devices.builtin(), *devices.plugin_families())
    assert any(family.name == "blinker" for family in families)
    for family in families:
        for option in family.options:
            assert option.flag in done.out
    assert "options of blinker (Lamp controller of the documentation's recipe):" in done.out
    assert "--lamps A,B,..." in done.out


def test_help_shows_the_options_of_the_simulators(call):
    assert "number of changes; default: 1000" in call("sim", "--help").out
    assert "--changes" in call("sim", "blinker", "--help").out
